"""The kind `delta`: what becomes of the outputs of a run in Delta tables.

place    the token, and the version of the table before: stored before the write
write    one commit of the table under the token (`spark.sinks.delta`); who wrote looks for it in the history
burn     an empty commit with a higher number than every dead driver's
landed   the token of the run is in the history, after the version before
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow_bookmarks.core.errors import SourceError
from airflow_bookmarks.core.rules.mode import Mode
from airflow_bookmarks.core.run import RunKey
from airflow_bookmarks.sinks.delta.tables import find_commit
from airflow_bookmarks.sinks.delta.target import DeltaOutput, DeltaTarget
from airflow_bookmarks.sinks.delta.token import DeltaToken
from airflow_bookmarks.sinks.entry import landing_entry
from airflow_bookmarks.sinks.failure import DELTA_SINK
from airflow_bookmarks.sinks.sink import CommittingSink

if TYPE_CHECKING:
    from collections.abc import Mapping

    from airflow_bookmarks.core.rules.territory import Territory
    from airflow_bookmarks.core.run import OutputEntry
    from airflow_bookmarks.sinks.delta.tables import DeltaTables, TableCommit
    from airflow_bookmarks.sinks.sink import StoredOutput
    from airflow_bookmarks.sinks.staging import StagingRequest

_NO_SPARK = (
    "only Spark with Delta Lake can tell whether its rows have landed in the table, and this process has no Spark "
    "session"
)


class DeltaSink(CommittingSink):
    """Delta tables. `tables` is how they are reached; None: this process has no Spark, and settles no run with them."""

    kind = DELTA_SINK

    def __init__(self, tables: DeltaTables | None = None) -> None:
        self._tables = tables

    def place(self, territory: Territory, key: RunKey, output: str, request: StagingRequest) -> OutputEntry:
        """See `CommittingSink.place`: the token is the place."""
        return landing_entry(request, str(DeltaToken.of_run(territory, output, key)))

    def place_aside(self, territory: Territory, run: str, output: str, request: StagingRequest) -> OutputEntry:
        """See `CommittingSink.place_aside`: an application of its own."""
        return landing_entry(request, str(DeltaToken.aside(territory, output, run)))

    def why_not_here(self) -> str | None:
        """Return why: see `CommittingSink.why_not_here`."""
        return _NO_SPARK if self._tables is None else None

    def burn(self, output: StoredOutput, fence: int) -> None:
        """See `CommittingSink.burn`."""
        token = DeltaToken.of_burn(output.territory, output.name, fence)
        self._reached.burn(DeltaTarget.of_entry(output.entry), token)

    def landed(self, output: StoredOutput) -> bool:
        """See `CommittingSink.landed`.

        Raises:
            SourceError: the history of the table does not go back far enough to tell.
        """
        return self._commit_of(output) is not None

    def figures(self, output: StoredOutput) -> Mapping[str, Any]:
        """See `CommittingSink.figures`: the version that has the rows, and how many they are."""
        commit = self._commit_of(output)
        return {} if commit is None else commit.figures()

    def _commit_of(self, output: StoredOutput) -> TableCommit | None:
        """Return the commit of a run, under any fence that it has had."""
        run = output.run
        keys = {RunKey(run.key.number, fence) for fence in (run.key.fence, *run.fences)}
        tokens = {str(DeltaToken.of_run(output.territory, output.name, key)) for key in keys}
        before = DeltaOutput.of_stats(output.entry.stats).version_before
        return find_commit(self._reached, DeltaTarget.of_entry(output.entry), tokens, before)

    @property
    def _reached(self) -> DeltaTables:
        if self._tables is None:
            raise SourceError(f"{_NO_SPARK}. Run the job, whose driver has one")
        return self._tables

    def holds_rows_once(self, entry: OutputEntry) -> bool:
        """See `Sink.holds_rows_once`: in a table that gets them by key, or all anew."""
        written = DeltaOutput.of_stats(entry.stats)
        return bool(written.keys) or (written.mode is Mode.OVERWRITE and not written.replaces_part)

    def why_not_clean(self, entry: OutputEntry) -> str | None:
        """Return why: rows of a table don't tell which run has written them."""
        return f"went to a Delta table ({entry.target}), whose rows don't tell which run has written them"
