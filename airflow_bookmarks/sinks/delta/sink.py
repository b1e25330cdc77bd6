"""The kind `delta`: what becomes of the outputs of a run in Delta tables.

place    the token, and the version of the table before: stored before the write
write    one commit of the table under the token (`spark.sinks.delta`); who wrote looks for it in the history
burn     an empty commit with a higher number than every dead driver's
landed   the token of the run is in the history, after the version before

The history goes with the retention of the log, and the last number of an application stays. So where the history is cut
before the burn, that number is read first: it is that of the run, and its rows are there; or it is lower, and they can
only be in what is committed from then on.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from airflow_bookmarks.core.errors import SourceError
from airflow_bookmarks.core.rules.mode import Mode
from airflow_bookmarks.core.run import RunKey
from airflow_bookmarks.sinks.delta.tables import Search, search
from airflow_bookmarks.sinks.delta.target import DeltaOutput, DeltaTarget
from airflow_bookmarks.sinks.delta.token import DeltaToken, application_of, number_of_write
from airflow_bookmarks.sinks.entry import landing_entry
from airflow_bookmarks.sinks.failure import DELTA_SINK
from airflow_bookmarks.sinks.sink import CommittingSink

if TYPE_CHECKING:
    from collections.abc import Mapping

    from airflow_bookmarks.core.rules.territory import Territory
    from airflow_bookmarks.core.run import OutputEntry
    from airflow_bookmarks.sinks.delta.tables import DeltaTables
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
        self._cut: dict[tuple[str, RunKey, str], LastNumber] = {}  # of outputs whose history was cut before the burn

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
        target = DeltaTarget.of_entry(output.entry)
        if not self._search(output, _version_before(output)).is_whole:
            self._cut[_place_of(output)] = self._last_of(output)
        self._reached.burn(target, DeltaToken.of_burn(output.territory, output.name, fence))

    def landed(self, output: StoredOutput) -> bool:
        """See `CommittingSink.landed`.

        Raises:
            SourceError: neither the history of the table nor its last number tells.
        """
        found = self._search(output, _version_before(output))
        if found.commit is not None or found.is_whole:
            return found.commit is not None
        if len(_keys_of(output)) > 1:
            return True  # another driver has taken it over, because it found its rows
        last = self._cut.get(_place_of(output))
        own = [number_of_write(key.fence) for key in _keys_of(output)]
        if last is not None and last.number in own:
            return True
        if last is not None and last.number < min(own):
            since = self._search(output, last.version)
            if since.commit is not None or since.is_whole:
                return since.commit is not None
        raise SourceError(
            f"whether the run has written to the Delta table {output.entry.target} is not known: log retention "
            "(delta.logRetentionDuration) has removed the versions that would tell, and another run has burned its "
            "token since. Look in the table whether the rows of the run are there"
        )

    def figures(self, output: StoredOutput) -> Mapping[str, Any]:
        """See `CommittingSink.figures`: the version that has the rows, and how many they are."""
        commit = self._search(output, _version_before(output)).commit
        return {} if commit is None else commit.figures()

    def _search(self, output: StoredOutput, before: int | None) -> Search:
        """Look for the commit of a run, under any fence that it has had."""
        tokens = {str(DeltaToken.of_run(output.territory, output.name, key)) for key in _keys_of(output)}
        return search(self._reached, DeltaTarget.of_entry(output.entry), tokens, before)

    def _last_of(self, output: StoredOutput) -> LastNumber:
        target, application = DeltaTarget.of_entry(output.entry), application_of(output.territory, output.name)
        (newest,) = self._reached.commits(target, 1)  # before the number: what comes between the two is looked for
        return LastNumber(self._reached.last_number(target, application) or 0, newest.version)

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


@dataclass(frozen=True, slots=True)
class LastNumber:
    """The highest number that an application had written, 0 for none, when the table had a version, or later."""

    number: int
    version: int


def _version_before(output: StoredOutput) -> int | None:
    return DeltaOutput.of_stats(output.entry.stats).version_before


def _keys_of(output: StoredOutput) -> list[RunKey]:
    """Return under which keys the run may have written: with each fence that it has had."""
    run = output.run
    return [RunKey(run.key.number, fence) for fence in sorted({run.key.fence, *run.fences})]


def _place_of(output: StoredOutput) -> tuple[str, RunKey, str]:
    return output.territory.job, output.run.key, output.name
