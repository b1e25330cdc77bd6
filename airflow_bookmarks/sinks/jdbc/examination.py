"""Look at an output in its database: the token row, the stage table and the target."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_bookmarks.core.database import catalog
from airflow_bookmarks.core.database.publish_sql import TokenRow
from airflow_bookmarks.core.errors import DatabaseError
from airflow_bookmarks.core.run import RunState
from airflow_bookmarks.sinks.examined import DifferenceKind, SinkDifference

if TYPE_CHECKING:
    from airflow_bookmarks.core.database.sink_table import SinkTable
    from airflow_bookmarks.databases.database import Database
    from airflow_bookmarks.sinks.jdbc.place import StagePlace, TableTarget
    from airflow_bookmarks.sinks.sink import StoredOutput

_LOCKED = frozenset({"55P03", "1205", "3572", "SQLITE_BUSY"})  # PostgreSQL, MariaDB, MySQL, SQLite


def differences(
    database: Database, output: StoredOutput, place: StagePlace, target: TableTarget
) -> list[SinkDifference]:
    """Return where a database differs from what a run says of an output. It needs the right to read the token table.

    Raises:
        DatabaseError: the database refuses a query.
    """
    found = []
    token = TokenRow.of(database.dialect, place.table, place.name)
    rows = database.rows(token.read()) if _is_there(database, token.table) else []
    fence = int(rows[0][0]) if rows else None
    # Another run may have published since, or a sweep have burned the token: then the fence is higher.
    is_published = fence is not None and fence >= place.name.key.fence
    if not is_published:
        found.append(_not_published(database, output, place, target, token, fence))
    if is_published and not _is_there(database, target.table):
        what = f"the table {target} is gone, to which it was published"
        mend = "Put the table back, or rewind the job to before its first run that wrote there."
        found.append(SinkDifference(DifferenceKind.TARGET_GONE, what, mend))
    return found


def is_unpublished(database: Database, place: StagePlace) -> bool:
    """Return whether nobody has published what is staged, or is about to: only an earlier fence has the token.

    A later fence may have burned the token, or published after it: whether this one has published is not known then.

    Raises:
        DatabaseError: the database refuses a query.
    """
    token = TokenRow.of(database.dialect, place.table, place.name)
    if not _is_there(database, token.table):
        return False
    try:
        with database.transaction():
            rows = database.rows(token.read_at_rest())
    except DatabaseError as error:
        if error.code in _LOCKED:
            return False
        raise
    return bool(rows) and int(rows[0][0]) < place.name.key.fence


def _not_published(
    database: Database,
    output: StoredOutput,
    place: StagePlace,
    target: TableTarget,
    token: TokenRow,
    fence: int | None,
) -> SinkDifference:
    if output.run.state is not RunState.COMMITTED:
        says = f"has no row {token.id!r}" if fence is None else f"says fence {fence} in the row {token.id!r}"
        what = f"it was published to {target} under fence {place.name.key.fence}, and the table {token.table} {says}"
        mend = (
            "If the database was restored from a backup, what runs have published since is missing there: rewind the "
            "job to the last run that is in it. If only the token row was changed, put it back."
        )
        return SinkDifference(DifferenceKind.NOT_PUBLISHED, what, mend)
    if _is_there(database, place.table):
        what = f"it is committed and not published to {target}; its rows wait in the table {place.table}"
        mend = (
            "The next run of the job publishes it, and so does a retry of its task. If the database refuses it, their "
            "error says what to do."
        )
        return SinkDifference(DifferenceKind.WAITS, what, mend)
    what = f"it is committed and not published to {target}, and its rows are gone: the table {place.table} is not there"
    mend = "Put that table back, or rewind the job to before this run, so that it is done again."
    return SinkDifference(DifferenceKind.STAGED_GONE, what, mend)


def _is_there(database: Database, table: SinkTable) -> bool:
    return bool(database.rows(catalog.columns_query(database.dialect, table)))
