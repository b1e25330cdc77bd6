"""Publish what is staged for Redshift: one transaction takes the token of an output and loads its files.

    LOCK TABLE copies                                     first; `core.database.copy.token` says why
    SELECT, UPDATE copies SET fence = mine                not where it was published, or something else was staged
    preactions
    CREATE TABLE IF NOT EXISTS target
    CREATE TEMP TABLE; COPY; INSERT INTO target SELECT    not where there are no rows
    postactions
    UPDATE copies SET published_rows                      for whoever asks again

`mine` is the fence under which the run staged, whoever publishes it. So any process may repeat a publish: a second one
waits for the lock and then does nothing, and so does one that comes after a later run. A transaction that Redshift
rolls back in favour of another one is tried again. What stands in state without a row of the table that has its digest
is never run: only a driver with a login to Redshift has written that.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING

from airflow_bookmarks.core.database.copy.token import COPY_TABLE, CopyRow, lock_copies
from airflow_bookmarks.core.database.publish_sql import ENDED_FOR_OTHERS
from airflow_bookmarks.core.errors import DatabaseError, SourceError
from airflow_bookmarks.core.text.count import counted
from airflow_bookmarks.databases.redshift import SERIALIZATION
from airflow_bookmarks.sinks.reaching import reached

if TYPE_CHECKING:
    from collections.abc import Callable

    from airflow_bookmarks.databases.access import DatabaseAccess
    from airflow_bookmarks.databases.database import Database
    from airflow_bookmarks.sinks.redshift.client import CopyClient
    from airflow_bookmarks.sinks.redshift.place import StagedCopy
    from airflow_bookmarks.sinks.sink import PublishSteps, StoredOutput

log = logging.getLogger(__name__)

_ENDED_FOR_OTHERS = ENDED_FOR_OTHERS | {SERIALIZATION}
_ATTEMPTS = 10  # in each of them another transaction has got on


@dataclass(frozen=True, slots=True)
class CopyPublication:
    """The publish of one output: checked, and the database is not asked yet."""

    output: StoredOutput
    staged: StagedCopy
    databases: DatabaseAccess
    client: CopyClient

    def publish(self, check_held: Callable[[str], None], steps: PublishSteps) -> int:
        """Load the files into the target; return how many rows that were, also where an earlier publish has done so.

        Raises:
            SourceError: Redshift refuses it, or can't be reached; nothing of the output was published.
            FencedError: the job was taken from the publisher, and statements of its script would run.
        """
        if self.staged.target.script:
            check_held(f"run the statements around the rows of {self.staged.target}")
        rows = self._published()
        steps.done()
        return rows

    def _published(self) -> int:
        target, place = self.staged.target, self.staged.place
        stays = f"Nothing of it was published to {target}, and its files stay in {place}."
        try:
            with reached(self.databases, target.address, stays, self.client.open) as database:
                return self._committed(database)
        except SourceError as error:
            cause = error.__cause__
            if not (isinstance(cause, DatabaseError) and cause.is_lost):
                raise
            lost = cause
        # The reply may be lost of what was done.
        unknown = f"Whether it was published to {target} is not known; the next publish finds out."
        with reached(self.databases, target.address, unknown, self.client.open) as database:
            rows = self._rows_before(database)
        if rows is None:
            raise SourceError(f"{lost} It was asked again. {stays}") from lost
        return rows

    def _committed(self, database: Database) -> int:
        """Run the transaction, and try it again where it was rolled back in favour of another one."""
        left = _ATTEMPTS
        while True:
            left -= 1
            try:
                with database.transaction():
                    rows, is_new = self._run(database)
            except DatabaseError as error:
                if error.code not in _ENDED_FOR_OTHERS or not left:
                    raise
                log.info("bookmark: publish to %s: tried again, because %s", self.staged.target, error)
                continue
            if is_new:
                log.info("bookmark: %s: %s published to %s", self.output, counted(rows, "row"), self.staged.target)
            return rows

    def _run(self, database: Database) -> tuple[int, bool]:
        """Return how many rows were published, and whether it was now."""
        staged, load = self.staged, self.staged.load
        database.execute(lock_copies(staged.target.schema))
        before = self._published_before(database)
        if before is not None:
            return before, False
        database.execute(staged.token.take(load.digest))
        for statement in load.script.before:
            database.execute(statement)
        database.execute(load.creation())
        if load.manifest is not None:
            self._bring(database)
        for statement in load.script.after:
            database.execute(statement)
        database.execute(staged.token.note(staged.rows))
        return staged.rows, True

    def _bring(self, database: Database) -> None:
        load, name = self.staged.load, str(self.staged.name)
        database.execute(load.staging(name))
        try:
            statements = self.client.loading(load, name)
        except OSError as error:
            raise SourceError(f"{self.output}: {error}. Nothing of it was published.") from error
        for statement in statements:
            database.execute(statement)
        rows = int(database.rows(load.count(name))[0][0])
        if rows != self.staged.rows:
            raise SourceError(
                f"{self.output}: COPY has loaded {counted(rows, 'row')}, and the run has staged {self.staged.rows}. "
                f"Nothing of it was published to {self.staged.target}. Its files lie in {self.staged.place}: if they "
                "were changed, put them back, or rewind the job to before this run so that it is done again."
            )
        database.execute(load.added(name))

    def _published_before(self, database: Database) -> int | None:
        """Return how many rows were published under the own fence, 0 if a later one was here; None: load them now."""
        token, target = self.staged.token, self.staged.target
        row = CopyRow.of(database.rows(token.read()))
        if row is None:
            raise SourceError(
                f"{self.output}: its row {token.id!r} of the table {target.schema}.{COPY_TABLE} is gone, which tells "
                f"whether it was published to {target}. Nothing was published now. Look for its rows in the target; if "
                "they are missing, rewind the job to before this run so that it is done again."
            )
        if row.may_load(token.fence, self.staged.load.digest):
            return None
        if row.fence > token.fence:
            log.warning(
                "bookmark: %s: not published to %s, because a run of fence %d has published there since",
                self.output,
                target,
                row.fence,
            )
            return 0
        if row.fence == token.fence:
            return row.published_rows
        raise SourceError(
            f"{self.output}: what state says of it is not what was staged for {target} (fence {row.staged_fence} in "
            f"the row {token.id!r} of {target.schema}.{COPY_TABLE}). Nothing was published. If somebody has changed "
            "that row or the state, put it back; else rewind the job to before this run."
        )

    def _rows_before(self, database: Database) -> int | None:
        """Return how many rows were published under the own fence; None: none were."""
        token = self.staged.token
        with database.transaction():
            database.execute(lock_copies(self.staged.target.schema))
            row = CopyRow.of(database.rows(token.read()))
        return row.published_rows if row is not None and row.fence == token.fence else None
