"""Queries for what a database tells of a table. Each names its table by literals and returns plain columns."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_bookmarks.core.database.sink_table import DialectName, SinkTable, is_mysql, quoted, text_literal

if TYPE_CHECKING:
    from collections.abc import Iterable


_OF_CONNECTION = {"postgresql": "current_schema()", "mysql": "database()", "mariadb": "database()", "sqlite": "'main'"}


def schema_query(dialect: DialectName) -> str:
    """Return the query for the schema of tables that are named without one."""
    return f"SELECT {_OF_CONNECTION[dialect]}"


def columns_query(dialect: DialectName, table: SinkTable) -> str:
    """Return the query for the names of a table's columns, in their order; no rows: there is no such table."""
    schema, name = _place(dialect, table)
    if dialect == "postgresql":
        return (
            "SELECT a.attname FROM pg_catalog.pg_attribute a JOIN pg_catalog.pg_class c ON c.oid = a.attrelid "
            f"JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = {schema} "
            f"AND c.relname = {name} AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum"
        )
    if is_mysql(dialect):
        return (
            "SELECT column_name FROM information_schema.columns "
            f"WHERE table_schema = {schema} AND table_name = {name} ORDER BY ordinal_position"
        )
    return f"SELECT name FROM pragma_table_info({name}, {schema}) ORDER BY cid"


def unique_query(dialect: DialectName, table: SinkTable) -> str:
    """Return the query for the unique keys of a table: rows of (key, column).

    Those that can't tell each row from each other are left out: partial ones, and those over expressions or prefixes.
    """
    schema, name = _place(dialect, table)
    if dialect == "postgresql":
        return (
            "SELECT i.indexrelid::text, a.attname FROM pg_catalog.pg_index i "
            "JOIN pg_catalog.pg_class c ON c.oid = i.indrelid "
            "JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace "
            "CROSS JOIN LATERAL unnest(i.indkey::smallint[]) WITH ORDINALITY AS k(attnum, place) "
            "JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid AND a.attnum = k.attnum "
            "WHERE i.indisunique AND i.indisvalid AND i.indimmediate AND i.indpred IS NULL AND i.indexprs IS NULL "
            f"AND k.place <= i.indnkeyatts AND n.nspname = {schema} AND c.relname = {name}"
        )
    if is_mysql(dialect):
        at = f"table_schema = {schema} AND table_name = {name}"
        return (
            f"SELECT index_name, column_name FROM information_schema.statistics WHERE {at} AND non_unique = 0 "
            f"AND index_name NOT IN (SELECT index_name FROM information_schema.statistics WHERE {at} "
            "AND (sub_part IS NOT NULL OR column_name IS NULL))"
        )
    return (
        f"SELECT l.name, i.name FROM pragma_index_list({name}, {schema}) l, pragma_index_info(l.name, {schema}) i "
        'WHERE l."unique" AND NOT l.partial UNION ALL '
        f"SELECT 'primary key', name FROM pragma_table_info({name}, {schema}) WHERE pk > 0"
    )


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


def keys_of(rows: Iterable[tuple[str, str]]) -> list[frozenset[str]]:
    """Return the columns of each unique key, from the rows of `unique_query`."""
    columns: dict[str, set[str]] = {}
    for key, column in rows:
        columns.setdefault(key, set()).add(column)
    return [frozenset(each) for each in columns.values()]


def _place(dialect: DialectName, table: SinkTable) -> tuple[str, str]:
    """Return schema and name of a table as expressions."""
    schema = _OF_CONNECTION[dialect] if table.schema is None else text_literal(dialect, table.schema)
    return schema, text_literal(dialect, table.name)
