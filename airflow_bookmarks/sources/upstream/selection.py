"""Select the runs, and the output, that a window over an upstream covers.

Which of the upstream's runs these are is decided in `core.timeline`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from airflow_bookmarks.core.errors import OptionError, StateCorruptError
from airflow_bookmarks.core.metadata.output import OutputMetadata
from airflow_bookmarks.core.rules.mode import Mode
from airflow_bookmarks.core.selection.bound import RunSize
from airflow_bookmarks.core.text.instant import from_text
from airflow_bookmarks.core.timeline import Ancestry, SelectedRuns, choose_runs, has_living_number
from airflow_bookmarks.store.transitions.collection import check_readable

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from airflow_bookmarks.core.head import Head
    from airflow_bookmarks.core.position import UpstreamPosition
    from airflow_bookmarks.core.run import Run
    from airflow_bookmarks.core.selection.bound import Bound
    from airflow_bookmarks.sources.upstream.job import UpstreamJob


def select_runs(job: UpstreamJob, after: int, head: Head, until: int | None) -> SelectedRuns:
    """Return the published runs after one, up to and including `until` (None: all of them).

    Raises:
        StateCorruptError: a run is gone, and was not collected. RunUnknownError: it was collected.
    """
    seen = [run for run in job.store.runs(job.name, after=after, until=head.run_number) if run.state.is_committed]
    if len(seen) < head.run_number - after:  # each number was committed once
        _check_missing(job, after, head, {run.key.number for run in seen})
    return choose_runs(seen, living_among(job, seen, head), head.publishing, until)


def _check_missing(job: UpstreamJob, after: int, head: Head, seen: set[int]) -> None:
    """Make sure that what is missing above the edge was undone anyway."""
    lines = job.store.lines(job.name)
    missing = (number for number in range(after + 1, head.run_number + 1) if number not in seen)
    lost = next((number for number in missing if has_living_number(head.epoch, lines, number - 1, number)), None)
    if lost is None:
        return
    check_readable(job.store, job.consumer, job.name, after)
    raise StateCorruptError(
        f"job {job.consumer!r}: run {lost} of upstream {job.name!r} is gone, and was not collected. "
        f"Nothing was read or changed. 'airflow-bookmarks doctor {job.name}' says what else is wrong."
    )


def living_among(job: UpstreamJob, runs: Iterable[Run], head: Head) -> Ancestry:
    """Return which of these runs of the upstream are history now."""
    if all(run.epoch == head.epoch for run in runs):
        return Ancestry({head.epoch: None})
    return job.store.ancestry(job.name, head.epoch)


def within_bound(selected: SelectedRuns, output: str, bound: Bound) -> tuple[SelectedRuns, int]:
    """Keep the runs that a bound takes; return also how many files those have that are left for the next run."""
    if not bound.is_given:
        return selected, 0
    amounts = [_amount(run, output) for run in selected.window]
    count = bound.fitting(amounts)
    left = sum(amount.files for amount in amounts[count:])
    return replace(selected, window=selected.window[:count]), left


def _amount(run: Run, output: str) -> RunSize:
    entry = run.outputs.get(output)
    written = OutputMetadata() if entry is None else entry.metadata
    return RunSize(
        files=written.files or 0,
        size_bytes=written.bytes or 0,
        rows=written.rows,
        committed_ms=None if run.committed_at is None else int(from_text(run.committed_at).timestamp() * 1000),
    )


def output_of(job: UpstreamJob, window: Sequence[Run], before: UpstreamPosition, wanted: str | None) -> str:
    """Return the output that is read: the one that is `wanted`, or the only one; empty where none is known yet.

    Raises:
        OptionError: there are several, or no run ever wrote the one that is wanted.
    """
    # A purge makes nothing visible, so it is no output to read.
    made = ((name, entry) for run in window for name, entry in run.outputs.items())
    names = sorted({name for name, entry in made if entry.metadata.mode != Mode.PURGE})
    if wanted is not None:
        is_known = before.run_number > 0 and before.output == wanted
        if names and wanted not in names and not is_known:
            _check_ever_written(job, wanted)
    elif len(names) > 1:
        raise OptionError(
            f"upstream {job.name!r} has several outputs: {names}. Nothing was read or changed. Say which "
            f"with .upstream({job.name!r}, output=...)."
        )
    else:
        wanted = names[0] if names else ""
    # What the position has read of an output proves that there was one, also where those runs were collected.
    return wanted or before.output


def _check_ever_written(job: UpstreamJob, output: str) -> None:
    """Make sure that some run wrote an output: one that a window of runs did not write is an empty increment."""
    others: set[str] = set()
    for run in job.store.runs(job.name, reverse=True):
        if run.state.is_committed and output in run.outputs:
            return
        others |= set(run.outputs) if run.state.is_committed else set()
    raise OptionError(
        f"no run of upstream {job.name!r} ever wrote an output {output!r}; there is {sorted(others)}. "
        "Nothing was read or changed."
    )
