"""Each statement that reading and writing tables sends to a database, for one odd table: what golden files hold.

$ python -m tests.core.database.dialects.statements     # write them anew; read the difference before you commit it
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from airflow_bookmarks.core.database import catalog, publish_sql
from airflow_bookmarks.core.database.dialect import Dialect, TableColumn
from airflow_bookmarks.core.database.dialects.registry import DIALECTS
from airflow_bookmarks.core.database.key import KeyColumn, KeyType
from airflow_bookmarks.core.database.publish_sql import TokenRow
from airflow_bookmarks.core.database.sink_table import SinkTable
from airflow_bookmarks.core.database.stage_name import StageName
from airflow_bookmarks.core.database.upsert import Upsert
from airflow_bookmarks.core.database.windows.partitions import hashed
from airflow_bookmarks.core.database.windows.window import KeyWindow, Mark, TableKeys, has_no_key
from airflow_bookmarks.core.rules.territory import Territory
from airflow_bookmarks.core.run import RunKey

FOLDER = Path(__file__).parent / "golden"
PARTS = ("Sales 2013", "Order `\"]' Lines")  # every mark by which any database quotes
# As the catalog of each database has them; the first of each type that can be a key.
DECLARED: dict[str, tuple[str, ...]] = {
    "postgresql": (
        "bigint",
        "numeric(38,10)",
        "date",
        "timestamp(3) without time zone",
        "timestamp with time zone",
        "text",
    ),
    "mysql": ("bigint unsigned", "decimal(65,30)", "date", "datetime(3)", "timestamp(6)", "varchar(40)"),
    "mariadb": ("bigint(20) unsigned", "decimal(65,30)", "date", "datetime(3)", "timestamp(6)", "varchar(40)"),
    "sqlserver": ("bigint", "decimal(38,10)", "date", "datetime2(7)", "datetimeoffset(7)", "nvarchar", "datetime"),
    "oracle": ("NUMBER(38,0)", "NUMBER(*,*)", "DATE", "TIMESTAMP(9)", "TIMESTAMP(6) WITH TIME ZONE"),
    "redshift": ("bigint", "numeric(38,10)", "date", "timestamp without time zone", "timestamp with time zone"),
}
COLLATIONS = {"postgresql": "en_US.utf8", "mysql": "utf8mb4_0900_bin", "mariadb": "utf8mb4_bin"}
VALUES = {
    KeyType.INTEGER: "-42",
    KeyType.DECIMAL: "1234567890.0000000001",
    KeyType.DATE: "2013-01-31",
    KeyType.LOCAL_TIME: "2013-01-31 23:59:58.123456",
    KeyType.TIME: "2013-01-31 23:59:58.123456+00:00",
    KeyType.TEXT: "it's a \\ and \\\nmore",
}
JOB = Territory("prod", "orders.load")


def columns(dialect: Dialect) -> tuple[KeyColumn, ...]:
    """Return a key of each type that a database has."""
    collation = COLLATIONS.get(dialect.name, "Latin1_General_100_BIN2")
    declared = enumerate(DECLARED[dialect.name])
    found = [dialect.key_column(TableColumn(f"k {at}", each, at == 0, collation)) for at, each in declared]
    return tuple(each for each in found if each is not None)


def reading(dialect: Dialect) -> Iterator[tuple[str, str | None]]:
    """Yield the statements for reading by key, each with what it is for."""
    source, keys = dialect.table(PARTS), columns(dialect)
    yield "columns of the table", dialect.columns_query(PARTS)
    yield "columns of a table without a schema", dialect.columns_query(PARTS[1:])
    yield "unique indexes", dialect.unique_query(PARTS)
    yield "types of a query", dialect.types_query("SELECT 1 AS one", ["one"])
    yield "now", dialect.now_query()
    yield "identity", dialect.identity_query()
    for at, query in enumerate(dialect.open_queries()):
        yield f"who may still write, {at}", query
    if dialect.witness is not None:
        yield "witness, its owner", dialect.witness.owner
    yield "what hides who writes", dialect.unseen_query(PARTS)
    for key in keys:
        literal = dialect.literal(VALUES[key.type], key)
        text = f"{dialect.as_text(key)} AS bookmark_key_0"
        yield (
            f"key: {key.type.value}, {key.digits} digits",
            dialect.some(text, source, f"{dialect.column(key)} > {literal}", 10),
        )
        ends = [each for each in (dialect.endless(key), dialect.ending(key)) if each is not None]
        if ends:
            yield f"key: {key.type.value}, with no end", dialect.capped_count(source, " OR ".join(ends), 5)
    yield from _windows(dialect, source, keys)


def _windows(dialect: Dialect, source: str, keys: tuple[KeyColumn, ...]) -> Iterator[tuple[str, str | None]]:
    one, two = keys[0], keys[4]  # an integer and an instant
    table = TableKeys((two, one), ties=(one, keys[2]))
    after, until = (Mark((VALUES[two.type], each), ((each, VALUES[keys[2].type]),)) for each in ("1", "2"))
    select = table.select(dialect)
    window = KeyWindow(after, until, with_nulls=True).condition(dialect, table)
    yield "the last row", dialect.first(select, source, "1 = 1", table.order(dialect, is_backwards=True), 1)
    yield "a window, from its fourth row", dialect.first(select, source, window, table.order(dialect), 1, 3)
    yield "rows without a place", dialect.capped_count(source, has_no_key(dialect, table), 101)
    descending = TableKeys((one,), is_ascending=False)
    down = KeyWindow(Mark(("7",)), Mark(("5",))).condition(dialect, descending)
    yield "a window that goes down", dialect.some(dialect.quote(one.name), source, down, 5)
    for part in hashed(dialect, dialect.as_text(two), 3):
        yield "a part by its hash", dialect.capped_count(source, part, 5)


def _types_by_table(dialect: Dialect) -> Iterator[tuple[str, str | None]]:
    by_table = dialect.types_by_table("SELECT 1 AS one -- more", ["one"])
    if by_table is not None:
        yield "make a table of the types of a query", by_table.make
        yield "read the types", by_table.ask
        yield "drop the table", by_table.drop


def writing(name: str) -> Iterator[tuple[str, str | None]]:
    """Yield the statements for writing tables, each with what it is for."""
    target, stage = SinkTable(*PARTS), SinkTable("stage", "_bm_stage")
    row = TokenRow.of(name, stage, StageName.of(JOB, RunKey(12, 15), "dim"))
    yield "token table", row.create_table()
    yield "token row", row.add("it's orders")
    yield "take a token", row.take(15)
    yield "note how many rows were published", row.note(42)
    yield "read a token", row.read()
    yield "burn tokens", publish_sql.burn_tokens(name, "stage", JOB, 15)
    yield "stage", publish_sql.create_stage(name, stage, target, ["id", "Na me"])
    yield "seal the stage", publish_sql.seal_stage(name, stage.beside("_bm_stage_load"), stage)
    yield "drop a stage", publish_sql.drop_table(name, stage)
    for made in publish_sql.create_target(name, target, stage, ["id", "Na me"], keys=["id"]):
        yield "make the target", made
    yield "empty the target", publish_sql.empty_table(name, target)
    yield "insert", publish_sql.insert(name, target, stage, ["id", "Na me"])
    upsert = Upsert(("id",), ("Na me",))
    for statement in upsert.statements(name, target, stage, ["id", "Na me"]):
        yield "upsert", statement
    deleting = replace(upsert, has_deletes=True)
    for statement in deleting.statements(name, target, stage, ["id", "Na me"]):
        yield "upsert with a delete set", statement
    yield "keys that are NULL", upsert.null_keys(name, stage)
    yield "keys that come twice", upsert.repeated_keys(name, stage)
    yield "stage tables of a job", catalog.tables_query(name, "stage", "_bm_")


WRITTEN = ("postgresql", "mysql", "mariadb")


def statements(name: str) -> list[tuple[str, str]]:
    """Return all statements for a dialect, each with what it is for."""
    dialect = DIALECTS[name]
    each = [*reading(dialect), *_types_by_table(dialect), *(writing(name) if name in WRITTEN else ())]
    return [(title, textwrap.dedent(sql).strip()) for title, sql in each if sql is not None]


def text_of(name: str) -> str:
    """Return what the golden file of a dialect holds."""
    return "\n".join(f"-- {title}\n{sql};\n" for title, sql in statements(name))


if __name__ == "__main__":
    for each in DIALECTS:
        (FOLDER / f"{each}.sql").write_text(text_of(each))
