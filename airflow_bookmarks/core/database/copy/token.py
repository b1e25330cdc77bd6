"""The table of fences of Redshift, one row for each output of a job: which fence has published, and what is staged.

Redshift enforces no key, so two transactions could both add a row, and it has no locks of rows. Its isolation does not
help by itself: a transaction reads a snapshot, which the first SELECT, UPDATE, COPY or CREATE TABLE takes. Of two
publishers that had both taken theirs, the second one would wait for the first, and then see the fence as it was before:
under SERIALIZABLE it is rolled back, and under SNAPSHOT, the default of new databases, that depends on the rows.

So the table is locked as the first statement of each transaction. LOCK takes no snapshot: whoever has waited for it
sees what those before it have committed, and the plain condition `fence < mine` is right. It lasts until the
transaction ends; so publishes into one schema follow each other, and so does a sweep. Untried: see `copy`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from airflow_bookmarks.core.database.dialects.quoting import spelled_text
from airflow_bookmarks.core.database.sink_table import SinkTable
from airflow_bookmarks.core.database.stage_name import job_id

if TYPE_CHECKING:
    from collections.abc import Sequence

    from airflow_bookmarks.core.database.stage_name import StageName
    from airflow_bookmarks.core.rules.territory import Territory

COPY_TABLE = "_bookmarks_copies"

_LABEL = 250  # characters of four bytes each fit


def copy_table(schema: str) -> SinkTable:
    """Return the table of fences of a schema."""
    return SinkTable(schema, COPY_TABLE)


def lock_copies(schema: str) -> str:
    """Return the statement after which nobody else reads or changes the fences, until the transaction ends.

    Example:
        >>> lock_copies("public")
        'LOCK TABLE "public"."_bookmarks_copies"'
    """
    return f"LOCK TABLE {copy_table(schema).sql('redshift')}"


def burn_copies(schema: str, territory: Territory, fence: int) -> str:
    """Return the statement after which nothing of a job is published under this fence or a lower one."""
    job = spelled_text(job_id(territory))
    table = copy_table(schema).sql("redshift")
    return f"UPDATE {table} SET fence = {fence}, published_rows = 0 WHERE job_id = {job} AND fence < {fence}"


@dataclass(frozen=True, slots=True)
class CopyRow:
    """What the row of an output says: which fence has published how many rows, and which one has staged what.

    It is read after `lock_copies`, so nobody changes it before the transaction ends; and what is decided by it does not
    depend on whether a client counts the rows of an UPDATE.
    """

    fence: int
    published_rows: int
    staged_fence: int
    digest: str

    @classmethod
    def of(cls, rows: Sequence[Sequence[Any]]) -> CopyRow | None:
        """Return what `CopyToken.read` has found; None: there is no row."""
        return None if not rows else cls(int(rows[0][0]), int(rows[0][1]), int(rows[0][2]), str(rows[0][3]))

    def may_stage(self, fence: int) -> bool:
        """Whether a driver of this fence may stage: no later one was here, and nothing was published under it."""
        return self.fence < fence and self.staged_fence <= fence

    def may_load(self, fence: int, digest: str) -> bool:
        """Whether a publish may load under a fence: nothing was, and this very load was staged.

        Example:
            >>> [CopyRow(fence, 0, 15, "a").may_load(15, "a") for fence in (14, 15, 16)]
            [True, False, False]
        """
        return self.fence < fence and self.staged_fence == fence and self.digest == digest


@dataclass(frozen=True, slots=True)
class CopyToken:
    """The row of an output. Each of its statements runs after `lock_copies`, in the same transaction.

    `schema` is that of the target.
    """

    schema: str
    name: StageName

    def create_table(self) -> str:
        """Return the statement that makes the table unless it is there."""
        return (
            f"CREATE TABLE IF NOT EXISTS {self._table} (output_id varchar(32) NOT NULL, job_id varchar(16) NOT NULL, "
            "output_name varchar(1024) NOT NULL, fence bigint NOT NULL, published_rows bigint NOT NULL, "
            "staged_fence bigint NOT NULL, digest varchar(64) NOT NULL)"
        )

    def read(self) -> str:
        """Return the query for the row: its fence, how many rows were published, the staged fence and digest."""
        return f"SELECT fence, published_rows, staged_fence, digest FROM {self._table} WHERE {self._is_it}"

    def add(self, label: str) -> str:
        """Return the statement that adds the row, where `read` finds none; `label` tells people what it is of."""
        values = ", ".join(spelled_text(text) for text in (self.id, self.name.job, label[:_LABEL]))
        return (
            f"INSERT INTO {self._table} (output_id, job_id, output_name, fence, published_rows, staged_fence, digest) "
            f"VALUES ({values}, 0, 0, 0, '')"
        )

    def stage(self, digest: str) -> str:
        """Return the statement that notes what the own fence has staged; no row: a later fence was here."""
        fence = self.fence
        return (
            f"UPDATE {self._table} SET staged_fence = {fence}, digest = '{digest}' "
            f"WHERE {self._is_it} AND fence < {fence} AND staged_fence <= {fence}"
        )

    def take(self, digest: str) -> str:
        """Return the statement that takes the row; it changes no row if it was taken, or another load was staged."""
        fence = self.fence
        return (
            f"UPDATE {self._table} SET fence = {fence}, published_rows = 0 "
            f"WHERE {self._is_it} AND fence < {fence} AND staged_fence = {fence} AND digest = '{digest}'"
        )

    def note(self, rows: int) -> str:
        """Return the statement that notes how many rows were published."""
        return f"UPDATE {self._table} SET published_rows = {rows} WHERE {self._is_it}"

    @property
    def id(self) -> str:
        """What tells the output from any other."""
        return self.name.output_id

    @property
    def fence(self) -> int:
        """The fence under which the output is staged."""
        return self.name.key.fence

    @property
    def _table(self) -> str:
        return copy_table(self.schema).sql("redshift")

    @property
    def _is_it(self) -> str:
        return f"output_id = {spelled_text(self.id)}"
