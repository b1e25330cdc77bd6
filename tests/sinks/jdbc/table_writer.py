"""What a driver does to write rows to a table, without Spark: the stage table is loaded by plain statements."""

from __future__ import annotations

from collections.abc import Sequence

from airflow_bookmarks.core.database.dialect import DialectName
from airflow_bookmarks.core.database.dialects.quoting import text_literal
from airflow_bookmarks.core.database.publish_sql import names_of
from airflow_bookmarks.databases.database import open_database
from airflow_bookmarks.databases.login import DatabaseLogin
from airflow_bookmarks.lifecycle.run.session import RunSession
from airflow_bookmarks.sinks.failure import JDBC_SINK
from airflow_bookmarks.sinks.jdbc.loading import TableLoad
from airflow_bookmarks.sinks.jdbc.place import StagePlace, TableTarget
from airflow_bookmarks.sinks.staging import Staged, StagingRequest

Row = Sequence[object]


def write_table(
    run: RunSession,
    output: str,
    target: TableTarget,
    login: DatabaseLogin,
    columns: Sequence[str],
    rows: Sequence[Row],
    *,
    gone: Sequence[Row] = (),
    schema: str | None = None,
) -> None:
    """Stage rows for a table, and a delete set, as an output of a run: in a schema (None: beside the target).

    Where there is no target, all its columns are integers.
    """
    stats = {"format": "jdbc", **target.stats()}
    place = StagePlace.parse(run.place(output, StagingRequest(JDBC_SINK, str(target), schema, stats)))
    assert place is not None
    load = TableLoad(f"output {output!r}", target, tuple(columns))
    with open_database(login) as database:
        there = load.check(database)
        load.create(database, place, there, output)
        flags = [] if target.flag is None else [target.flag]
        into = f"{place.loading.sql(login.dialect)} ({names_of(login.dialect, [*columns, *flags])})"
        if there is None:  # Spark makes it by the types of the frame
            kinds = ", ".join(f"{names_of(login.dialect, [column])} int" for column in [*columns, *flags])
            database.execute(f"CREATE TABLE {place.loading.sql(login.dialect)} ({kinds})")
        for row in [*((*row, *(0 for _ in flags)) for row in rows), *((*row, 1) for row in gone)]:
            values = ", ".join(literal(login.dialect, value) for value in row)
            database.execute(f"INSERT INTO {into} VALUES ({values})")
        count = load.seal(database, place, len(rows) + len(gone))
        removed = load.delete_count(database, place)
    run.staged(output, Staged((), rows=count, schema='{"fields":[]}', removed_keys=removed))


def literal(dialect: DialectName, value: object) -> str:
    """Return a value as SQL has it."""
    if value is None:
        return "NULL"
    return str(value) if isinstance(value, int) else text_literal(dialect, str(value))
