"""What the sink asks of Delta. The driver's Spark session answers (`spark.sinks.delta_session`); nothing else can."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from airflow_bookmarks.core.errors import SourceError

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

    def burn(self, target: DeltaTarget, token: DeltaToken) -> None:
        """Commit nothing under a token, so that no lower number of its application lands any more; wait for no writer.

        Nothing happens where the number, or a higher one, is there. Another writer that meets this commit fails.

        Raises:
            SourceError: there is no such Delta table, or it takes no commit.
        """
        ...


def find_commit(
    tables: DeltaTables, target: DeltaTarget, tokens: Collection[str], before: int | None
) -> TableCommit | None:
    """Return the commit that carries one of these tokens, later than the version `before` (None: any); None: none does.

    If the table was made anew since, its versions began again, and what lay under the tokens went with the old one.

    Raises:
        SourceError: the history does not go back far enough to tell, or the table is out of reach.
    """
    (newest,) = tables.commits(target, 1)
    if newest.told in tokens:
        return newest
    later = None if before is None or newest.version < before else newest.version - before
    commits = [] if later == 0 else tables.commits(target, later)
    found = next((commit for commit in commits if commit.told in tokens), None)
    first, oldest = (0 if later is None else newest.version - later + 1), min((c.version for c in commits), default=0)
    if found is None and commits and oldest > first:
        raise SourceError(
            f"whether the run has written to the Delta table {target.name} is not known: the history of the table "
            f"begins with version {oldest}, and the run would have written version {first} or a later one (log "
            "retention, delta.logRetentionDuration, has removed the others). Look in the table whether the rows of the "
            "run are there"
        )
    return found


def _first(metrics: Mapping[str, str], *names: str) -> int | None:
    return next((int(metrics[name]) for name in names if name in metrics), None)
