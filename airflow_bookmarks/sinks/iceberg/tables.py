r"""What the sink asks of Iceberg, and what the snapshots of a table tell of a run.

The driver's Spark session answers (`spark.iceberg.session`). A table keeps snapshots in a tree: each knows its
parent, and the table reads from the newest of one branch, `main`. What a run has staged hangs beside it:

    1 --- 2 --- 4          main: 4, which is 3 brought in (`published-wap-id`)
           \
            3              staged over 2 (`wap.id`)

If nobody wrote in between, bringing in 3 makes 3 itself the current one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Protocol

from airflow_bookmarks.core.errors import BookmarkError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from airflow_bookmarks.sinks.iceberg.target import IcebergTarget


class PickRefusedError(BookmarkError):
    """Iceberg will never bring a snapshot into its table: what others have committed since stands against it."""


class Standing(Enum):
    """Where the snapshot of a run stands."""

    STAGED = "staged"
    PUBLISHED = "published"
    GONE = "gone"  # neither staged nor published: it has expired, or the table was made anew
    UNKNOWN = "unknown"  # the snapshots that would tell have expired


@dataclass(frozen=True, slots=True)
class IcebergSnapshot:
    """One snapshot; `wap_id` is the id under which it was staged, `published` that of the one it brought in.

    `rows` and `files` are how many it adds.
    """

    id: int
    parent: int | None
    wap_id: str | None = None
    published: str | None = None
    rows: int = 0
    files: int = 0


@dataclass(frozen=True, slots=True)
class TableHistory:
    """The snapshots of a table that are kept, by id; the current one of `main`, None for none; and the tags."""

    snapshots: Mapping[int, IcebergSnapshot]
    current: int | None
    tags: Mapping[str, int] = field(default_factory=dict)

    def ancestry(self) -> Iterator[IcebergSnapshot]:
        """Yield the current snapshot, its parent, and so on, as far as they are kept."""
        at = self.current
        while at is not None and at in self.snapshots:
            yield self.snapshots[at]
            at = self.snapshots[at].parent

    def staged_as(self, wap_id: str) -> Sequence[IcebergSnapshot]:
        """Return the snapshots that were staged under an id, those that are current or were so among them."""
        return [each for each in self.snapshots.values() if each.wap_id == wap_id]

    def standing(self, wap_id: str, before: int | None) -> Standing:
        """Return where the snapshot of an id stands, which was staged over `before` (None: over an empty table).

        What was published since lies above that snapshot. If the way back to it is cut, the answer may have expired.
        """
        seen: IcebergSnapshot | None = None
        has_passed = self.current is None
        for seen in self.ancestry():
            if wap_id in (seen.wap_id, seen.published):
                return Standing.PUBLISHED
            has_passed |= seen.id == before
        if not has_passed and (seen is None or seen.parent is not None):
            return Standing.UNKNOWN
        return Standing.STAGED if self.staged_as(wap_id) else Standing.GONE


class IcebergTables(Protocol):
    """The tables that a session reaches."""

    def history(self, target: IcebergTarget) -> TableHistory | None:
        """Return the snapshots and tags of a table as they are now, whoever has committed; None: it is not there.

        Raises:
            SourceError: it is out of reach.
        """
        ...

    def pick(self, target: IcebergTarget, snapshot: int) -> None:
        """Bring a staged snapshot into the table, and do nothing where it is there.

        Raises:
            PickRefusedError: Iceberg refuses it for ever. SourceError: it has failed otherwise, or may have.
        """
        ...

    def forward(self, target: IcebergTarget, tag: str) -> None:
        """Let the table stand at a staged snapshot, if nobody has committed since it was staged.

        Raises:
            PickRefusedError: somebody has. SourceError: it has failed otherwise, or may have.
        """
        ...

    def tag(self, target: IcebergTarget, name: str, snapshot: int) -> None:
        """Give a snapshot a name, which keeps it from expiring.

        Raises:
            SourceError: the table is out of reach, or there is no such snapshot.
        """
        ...

    def drop_tag(self, target: IcebergTarget, name: str) -> None:
        """Remove a tag; one that is not there is no error.

        Raises:
            SourceError: the table is out of reach.
        """
        ...

    def expire(self, target: IcebergTarget, snapshots: Sequence[int]) -> None:
        """Remove snapshots with the files that they alone have, so that nobody can bring them in any more.

        Raises:
            SourceError: the table is out of reach, or one of them is in use.
        """
        ...
