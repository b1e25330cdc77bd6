"""Publish a stage table: one transaction takes the token of the output and brings the rows into the target.

    UPDATE tokens SET fence = mine WHERE output_id = ... AND fence < mine     no row: somebody has published already
    INSERT INTO target SELECT ... FROM stage                                  or an upsert, or after a DELETE
    UPDATE tokens SET published_rows = ...                                    for whoever asks again

`mine` is the fence under which the run staged, whoever publishes it. So any process may repeat a publish, a second one
waits for the first and then does nothing, and one that comes after a later run has published does nothing either. The
sweep drops the stage table.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING

from airflow_bookmarks.core.database import catalog, publish_sql
from airflow_bookmarks.core.database.publish_sql import TokenRow
from airflow_bookmarks.core.errors import DatabaseError, SourceError
from airflow_bookmarks.core.text.count import counted
from airflow_bookmarks.sinks.jdbc.reaching import reached

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from airflow_bookmarks.core.database.sink_table import SinkTable
    from airflow_bookmarks.databases.access import DatabaseAccess
    from airflow_bookmarks.databases.database import Database
    from airflow_bookmarks.sinks.jdbc.place import StagePlace, TableTarget
    from airflow_bookmarks.sinks.sink import PublishSteps, StoredOutput

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class TablePublication:
    """The publish of one output: its place is checked, and the database is not asked yet."""

    output: StoredOutput
    place: StagePlace
    target: TableTarget
    databases: DatabaseAccess

    def publish(self, check_held: Callable[[str], None], steps: PublishSteps) -> int:
        """Bring the rows into the target; return how many were, also where an earlier publish has done so.

        Raises:
            SourceError: the database refuses it, or can't be reached; nothing of the output was published.
            FencedError: the job was taken from the publisher, and rows of others would be replaced.
        """
        if self.target.replaces:
            check_held(f"replace rows of {self.target.table} by those of run {self.output.run.key}")
        rows = self._published()
        steps.done()
        return rows

    def _published(self) -> int:
        stays = (
            f"Nothing of it was published to {self.target}, and its rows stay in the table {self.place.table}, where "
            "they can be corrected."
        )
        try:
            with reached(self.databases, self.target.address, stays) as database:
                return _Transaction(self, database).run()
        except SourceError as error:
            if not (isinstance(error.__cause__, DatabaseError) and error.__cause__.is_lost):
                raise
            lost = error
        # The reply may be lost of what was done.
        unknown = f"Whether it was published to {self.target} is not known; the next publish finds out."
        with reached(self.databases, self.target.address, unknown) as database:
            rows = _Transaction(self, database).rows_before()
        if rows is None:
            raise lost
        return rows


@dataclass(frozen=True, slots=True)
class _Transaction:
    """The steps of one publish, over one connection."""

    of: TablePublication
    database: Database

    def run(self) -> int:
        database, token = self.database, self._token
        if publish_sql.commits_ddl(database.dialect):
            self._create_target_before()
        with database.transaction():
            if not database.execute(token.take(self._fence)):
                return self._taken()
            rows, deleted = self._bring(self._columns())
            database.execute(token.note(rows))
        log.info("bookmark: %s: %s published to %s", self.of.output, counted(rows, "row"), self.of.target)
        if deleted is not None:
            log.info("bookmark: %s: %s deleted in %s", self.of.output, counted(deleted, "row"), self.of.target)
        return rows

    def rows_before(self) -> int | None:
        """Return how many rows were published under the own fence; None: none were, as far as the token tells."""
        found = self.database.rows(self._token.read())
        return int(found[0][1]) if found and int(found[0][0]) == self._fence else None

    @property
    def _token(self) -> TokenRow:
        return TokenRow.of(self.database.dialect, self.of.place.table, self.of.place.name)

    @property
    def _fence(self) -> int:
        return self.of.place.name.key.fence

    def _taken(self) -> int:
        found = self.database.rows(self._token.read())
        if not found:
            raise SourceError(
                f"the row {self._token.id!r} of the table {self._token.table} is gone, which tells whether the rows of "
                f"{self.of.place.table} were published to {self.of.target}. Nothing was published now. Look for the "
                "rows in the target; then put the row back, with fence = 0 if they are missing, and with "
                f"fence = {self._fence} if they are there"
            )
        fence, rows = int(found[0][0]), int(found[0][1])
        if fence > self._fence:
            log.warning(
                "bookmark: %s: not published to %s, because a run of fence %d has published there since",
                self.of.output,
                self.of.target,
                fence,
            )
            return 0
        return rows

    def _columns(self) -> Sequence[str]:
        """Return the columns to bring; the target is made if it is not there."""
        of, database = self.of, self.database
        columns = self._columns_of_stage()
        there = [name for name, *_ in database.rows(catalog.columns_query(database.dialect, of.target.table))]
        if not there and not publish_sql.commits_ddl(database.dialect):
            self._create_target()
            return self.of.target.columns_of(columns)
        columns = of.target.columns_of(columns)
        missing = [column for column in columns if column not in there]
        if missing:
            raise SourceError(
                f"the table {of.target} has no column {', '.join(map(repr, missing))}, which the run has written. "
                f"Nothing of it was published, and its rows stay in the table {of.place.table}. Add the columns to the "
                "target, or drop them from that table"
            )
        return columns

    def _columns_of_stage(self) -> Sequence[str]:
        query = catalog.columns_query(self.database.dialect, self.of.place.table)
        columns = [name for name, *_ in self.database.rows(query)]
        if not columns:
            raise SourceError(
                f"the stage table {self.of.place.table} is gone, and its rows were not published to {self.of.target}. "
                "Nothing was published now. Somebody else has dropped it, unless the job was rewound or taken over "
                "meanwhile: put it back, or rewind the job to before this run so that it is done again"
            )
        return columns

    def _create_target(self) -> None:
        target, staged = self.of.target, self._columns_of_stage()
        for statement in target.creation(self.database.dialect, target.table, self.of.place.table, staged):
            self.database.execute(statement)

    def _create_target_before(self) -> None:
        """Make the target where that would commit the transaction, unless the publish will do nothing."""
        found = self.database.rows(self._token.read())
        is_there = self.database.rows(catalog.columns_query(self.database.dialect, self.of.target.table))
        if found and int(found[0][0]) < self._fence and not is_there:
            self._create_target()

    def _bring(self, columns: Sequence[str]) -> tuple[int, int | None]:
        """Bring the rows into the target; return how many were brought, and deleted (None: there is no delete set)."""
        database, target, stage = self.database, self.of.target, self.of.place.table
        check_keys(database, target, stage)
        counts = [database.execute(each) for each in target.statements(database.dialect, stage, columns)]
        if target.upsert is None:
            return counts[-1], None
        # What the client counts of an upsert is not the same everywhere: MySQL leaves out rows that stay as they were.
        rows = int(database.rows(target.upsert.chosen_count(database.dialect, stage))[0][0])
        return rows, counts[0] if target.upsert.has_deletes else None


def check_keys(database: Database, target: TableTarget, stage: SinkTable) -> None:
    """Make sure that each row of a stage table has a key, and that it is certain which one counts.

    Raises:
        SourceError: it is not.
    """
    upsert = target.upsert
    if upsert is None:
        return
    keys, of_deletes = ", ".join(upsert.keys), " or its delete set" if upsert.has_deletes else ""
    nulls = int(database.rows(upsert.null_keys(database.dialect, stage))[0][0])
    if nulls:
        has = "has" if nulls == 1 else "have"
        raise SourceError(
            f"{counted(nulls, 'row')} for {target}{of_deletes} {has} NULL in a key ({keys}): no later row would equal "
            "such a row, so they would pile up. Nothing of the output was published; its rows lie in the table "
            f"{stage}. Leave such rows out, or give them a key"
        )
    repeated = 0 if upsert.order_by else int(database.rows(upsert.repeated_keys(database.dialect, stage))[0][0])
    if repeated:
        several = "several rows, or a row and a delete," if upsert.has_deletes else "several rows"
        has = "has" if repeated == 1 else "have"
        raise SourceError(
            f"{counted(repeated, 'key')} ({keys}) {has} {several} for {target}, and nothing says which of them counts. "
            f"Nothing of the output was published; its rows lie in the table {stage}. Name the columns whose greatest "
            "values count (order_by=), or leave one row for each key"
        )
