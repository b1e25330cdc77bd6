"""What the sink asks of Delta. The driver's Spark session answers (`spark.sinks.delta_session`); nothing else can."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from airflow_bookmarks.sinks.delta.target import DeltaTarget
    from airflow_bookmarks.sinks.delta.token import DeltaToken


@dataclass(frozen=True, slots=True)
class TableCommit:
    """One version of a table, as its history tells it; `told` is the text that its writer has put there."""

    version: int
    told: str | None = None
    metrics: Mapping[str, str] = field(default_factory=dict)

    def figures(self) -> dict[str, Any]:
        """Return what the record of a run says of it: the version, and counts of what was written."""
        written = {
            "rows": _first(self.metrics, "numTargetRowsInserted", "numOutputRows"),
            "files": _first(self.metrics, "numTargetFilesAdded", "numFiles"),
            "bytes": _first(self.metrics, "numTargetBytesAdded", "numOutputBytes"),
        }
        updated, deleted = (self.metrics.get(f"numTargetRows{what}") for what in ("Updated", "Deleted"))
        if updated is not None and written["rows"] is not None:
            written["rows"] += int(updated)
        known = {name: count for name, count in written.items() if count is not None or name == "rows"}
        return {"version_after": self.version, **known, **({} if deleted is None else {"removed_keys": int(deleted)})}


class DeltaTables(Protocol):
    """The tables that a session reaches."""

    def commits(self, target: DeltaTarget, limit: int | None = None) -> Sequence[TableCommit]:
        """Return what the history of a table still tells, newest first: the `limit` newest, or all.

        Raises:
            SourceError: there is no such Delta table, or it is out of reach.
        """
        ...

    def last_number(self, target: DeltaTarget, application: str) -> int | None:
        """Return the highest number that an application has written, by what the log keeps; None: it has written none.

        Raises:
            SourceError: there is no such Delta table, it forgets numbers, or its log is out of reach.
        """
        ...

    def burn(self, target: DeltaTarget, token: DeltaToken) -> None:
        """Commit nothing under a token, so that no lower number of its application lands any more; wait for no writer.

        Nothing happens where the number, or a higher one, is there. Another writer that meets this commit fails.

        Raises:
            SourceError: there is no such Delta table, or it takes no commit.
        """
        ...


@dataclass(frozen=True, slots=True)
class Search:
    """What a search in the history of a table has found; not `is_whole`: versions that count are there no more."""

    commit: TableCommit | None
    is_whole: bool = True


def search(tables: DeltaTables, target: DeltaTarget, tokens: Collection[str], before: int | None) -> Search:
    """Look for a commit that carries one of these tokens, later than the version `before` (None: any).

    If the table was made anew since, its versions began again, and what lay under the tokens went with the old one.

    Raises:
        SourceError: the table is out of reach.
    """
    (newest,) = tables.commits(target, 1)
    if newest.told in tokens:
        return Search(newest)
    later = None if before is None or newest.version < before else newest.version - before
    commits = [] if later == 0 else tables.commits(target, later)
    found = next((commit for commit in commits if commit.told in tokens), None)
    first = 0 if later is None else newest.version - later + 1
    return Search(found, is_whole=min((commit.version for commit in commits), default=first) <= first)


def _first(metrics: Mapping[str, str], *names: str) -> int | None:
    return next((int(metrics[name]) for name in names if name in metrics), None)
