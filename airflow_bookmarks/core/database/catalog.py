"""Queries for what a database tells of a table. Each names its table by literals and returns plain columns."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from airflow_bookmarks.core.database.dialects.quoting import is_mysql, quoted, text_literal
from airflow_bookmarks.core.database.dialects.registry import DIALECTS
from airflow_bookmarks.core.database.sink_table import SinkTable
from airflow_bookmarks.core.errors import OptionError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from airflow_bookmarks.core.database.dialect import DialectName


_IN_TWO_PARTS = re.compile(r"`((?:[^`]|``)+)`\.`((?:[^`]|``)+)`")
_OF_CONNECTION = {"postgresql": "current_schema()", "mysql": "database()", "mariadb": "database()", "sqlite": "'main'"}


def schema_query(dialect: DialectName, name: str) -> str:
    """Return the query for the schema of a table that is named without one: where it is found, or would be made."""
    if dialect != "postgresql":
        return f"SELECT {_OF_CONNECTION[dialect]}"
    # A search path may lead to a table behind its first schema, as whoever reads the table finds it.
    found = text_literal(dialect, SinkTable(None, name).sql(dialect))
    return (
        "SELECT coalesce((SELECT n.nspname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace "
        f"WHERE c.oid = to_regclass({found}) AND n.nspname <> 'pg_catalog'), {_OF_CONNECTION[dialect]})"
    )


def columns_query(dialect: DialectName, table: SinkTable) -> str:
    """Return the query for a table's columns, the name first, in their order; no rows: there is no such table."""
    if dialect != "sqlite":
        return DIALECTS[dialect].columns_query(table.parts)
    schema, name = _place(dialect, table)
    return f"SELECT name FROM pragma_table_info({name}, {schema}) ORDER BY cid"


def unique_query(dialect: DialectName, table: SinkTable) -> str:
    """Return the query for the unique keys of a table, as `Dialect.unique_query` has it.

    Those that can't tell each row from each other are left out: partial ones, and those over expressions or prefixes.
    """
    if dialect != "sqlite":
        return _asked(dialect, DIALECTS[dialect].unique_query(table.parts))
    schema, name = _place(dialect, table)
    return (
        f"SELECT l.name, 0, i.name, 0 FROM pragma_index_list({name}, {schema}) l, "
        f"pragma_index_info(l.name, {schema}) i "
        'WHERE l."unique" AND NOT l.partial UNION ALL '
        f"SELECT 'primary key', 1, name, 0 FROM pragma_table_info({name}, {schema}) WHERE pk > 0"
    )


def needed_query(dialect: DialectName, table: SinkTable) -> str | None:
    """Return the query for the columns that an INSERT has to name, with their types; None where it can't be told.

    They take no NULL, and nothing else gives them a value: no default, no sequence, no expression. In PostgreSQL a
    trigger that comes before the INSERT may, so a table with one needs none; MySQL asks for them before that.
    """
    if dialect == "postgresql":
        name = text_literal(dialect, table.sql(dialect))
        return f"""
            SELECT a.attname, format_type(a.atttypid, a.atttypmod) AS declared
            FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid JOIN pg_type t ON t.oid = a.atttypid
            WHERE a.attrelid = to_regclass({name}) AND a.attnum > 0 AND NOT a.attisdropped AND a.attnotnull
              AND NOT a.atthasdef AND a.attidentity = '' AND t.typdefault IS NULL AND c.relkind IN ('r', 'p')
              AND NOT EXISTS (SELECT 1 FROM pg_trigger g WHERE (g.tgtype & 7) = 7 AND (g.tgrelid = a.attrelid
                              OR g.tgrelid IN (SELECT p.relid FROM pg_partition_tree(a.attrelid) p)))
              AND NOT EXISTS (SELECT 1 FROM pg_rewrite r WHERE r.ev_class = a.attrelid)
            ORDER BY a.attnum"""
    if is_mysql(dialect):
        schema, name = _place(dialect, table)
        return (
            "SELECT column_name, column_type FROM information_schema.columns "
            f"WHERE table_schema = {schema} AND table_name = {name} AND is_nullable = 'NO' AND column_default IS NULL "
            "AND extra NOT LIKE '%auto_increment%' AND extra NOT LIKE '%GENERATED%' AND data_type <> 'enum' "
            "ORDER BY ordinal_position"
        )
    return None


def parents_query(dialect: DialectName, table: SinkTable) -> str:
    """Return the query for the tables to which foreign keys of a table refer: schema and name of each."""
    schema, name = _place(dialect, table)
    if dialect == "postgresql":
        return (
            "SELECT DISTINCT n.nspname, p.relname FROM pg_constraint f JOIN pg_class p ON p.oid = f.confrelid "
            "JOIN pg_namespace n ON n.oid = p.relnamespace "
            f"WHERE f.contype = 'f' AND f.conrelid = to_regclass({text_literal(dialect, table.sql(dialect))})"
        )
    if is_mysql(dialect):
        return (
            "SELECT DISTINCT referenced_table_schema, referenced_table_name FROM information_schema.key_column_usage "
            f"WHERE table_schema = {schema} AND table_name = {name} AND referenced_table_name IS NOT NULL"
        )
    return f'SELECT DISTINCT {schema}, "table" FROM pragma_foreign_key_list({name}, {schema})'


def engine_query(dialect: DialectName, table: SinkTable) -> str | None:
    """Return the query for the engine of a table and whether that has transactions ('YES'); None where all have."""
    if not is_mysql(dialect):
        return None
    schema, name = _place(dialect, table)
    return (
        "SELECT t.engine, e.transactions FROM information_schema.tables t "
        "JOIN information_schema.engines e ON e.engine = t.engine "
        f"WHERE t.table_schema = {schema} AND t.table_name = {name}"
    )


def view_query(dialect: DialectName, table: SinkTable) -> str | None:
    """Return the query for what a view selects; no rows: it is none. None where `engine_query` is None as well."""
    if not is_mysql(dialect):
        return None
    schema, name = _place(dialect, table)
    return f"SELECT view_definition FROM information_schema.views WHERE table_schema = {schema} AND table_name = {name}"


def tables_of_view(definition: str) -> set[SinkTable]:
    """Return the tables that a view of MySQL may select from: all that its definition names in two parts.

    Columns are named like that too, after the alias of their table.

    Example:
        >>> sorted(map(str, tables_of_view("select `b`.`id` AS `k` from `dw`.`base` `b`")))
        ['b.id', 'dw.base']
    """
    found = _IN_TWO_PARTS.findall(definition)
    return {SinkTable.of_parts([part.replace("``", "`") for part in parts]) for parts in found}


def schema_is_there(dialect: DialectName, schema: str) -> str:
    """Return the query that has a row if there is a schema of MySQL of that name."""
    return f"SELECT 1 FROM information_schema.schemata WHERE schema_name = {text_literal(dialect, schema)}"


def tables_query(dialect: DialectName, schema: str | None, prefix: str) -> str:
    """Return the query for the names of the tables of a schema that begin with a prefix."""
    where, begin = _place(dialect, SinkTable(schema, prefix))
    if dialect == "postgresql":
        return (
            f"SELECT tablename FROM pg_catalog.pg_tables WHERE schemaname = {where} "
            f"AND left(tablename, {len(prefix)}) = {begin} ORDER BY tablename"
        )
    if is_mysql(dialect):
        return (
            f"SELECT table_name FROM information_schema.tables WHERE table_schema = {where} "
            f"AND left(table_name, {len(prefix)}) = {begin} ORDER BY table_name"
        )
    master = f"{quoted(dialect, schema or 'main')}.sqlite_master"
    return f"SELECT name FROM {master} WHERE type = 'table' AND substr(name, 1, {len(prefix)}) = {begin} ORDER BY name"


def keys_of(rows: Iterable[Sequence[Any]]) -> list[frozenset[str]]:
    """Return the columns of each unique key that holds at any moment, from the rows of `unique_query`."""
    columns: dict[str, set[str]] = {}
    for key, _, column, is_deferred in rows:
        if is_deferred:
            continue
        columns.setdefault(key, set()).add(column)
    return [frozenset(each) for each in columns.values()]


def _asked(dialect: DialectName, query: str | None) -> str:
    if query is None:
        raise OptionError(f"tables of {dialect} can't be described. Nothing was written or changed.")
    return query


def _place(dialect: DialectName, table: SinkTable) -> tuple[str, str]:
    """Return schema and name of a table as expressions."""
    schema = _OF_CONNECTION[dialect] if table.schema is None else text_literal(dialect, table.schema)
    return schema, text_literal(dialect, table.name)
