"""What runs of the upstream have written of an output: how, and which of their files are there and not replaced."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from airflow_bookmarks.core.errors import SourceError
from airflow_bookmarks.core.files.file_list import decode_moves
from airflow_bookmarks.store.outputs import numbers_replacing

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from airflow_bookmarks.core.files.file_plan import FilePlan
    from airflow_bookmarks.core.plan import UpstreamWindow
    from airflow_bookmarks.core.run import OutputEntry
    from airflow_bookmarks.core.timeline import SelectedRuns
    from airflow_bookmarks.sources.upstream.job import UpstreamJob
    from airflow_bookmarks.sources.upstream.table_outputs import TableOutputs


@dataclass(frozen=True, slots=True)
class WrittenRun:
    """What is to be read of one run: how it was written, where, and which of its files are there and not replaced."""

    number: int
    entry: OutputEntry
    folder: str
    paths: tuple[str, ...]
    replaced: int = 0


def written_by(job: UpstreamJob, tables: TableOutputs, selected: SelectedRuns, output: str) -> list[WrittenRun]:
    """Return what the runs of a window have written of an output, oldest first, without what later ones replaced.

    Raises:
        SourceError: one wrote it to a sink that can't be read as an upstream.
    """
    found: list[tuple[int, OutputEntry]] = []
    for run in selected.window:
        entry, number = run.outputs.get(output), run.key.number
        if entry is not None and not (entry.lies_in_files or tables.find(entry)):
            raise _unreadable(job, number, output, entry)
        if entry is not None and entry.makes_visible:
            found.append((number, entry))
    replaced_by = {
        **numbers_replacing(job.store.blobs, selected.deleting, selected.dropped),
        **_taken_out(tables, found),
    }
    written: list[WrittenRun] = []
    for number, entry in found:
        paths = _paths_of(job, tables, number, entry)
        kept = tuple(path for path in paths if replaced_by.get(path, 0) <= number)
        written.append(WrittenRun(number, entry, tables.folder(entry), kept, len(paths) - len(kept)))
    return written


def _paths_of(job: UpstreamJob, tables: TableOutputs, number: int, entry: OutputEntry) -> Collection[str]:
    """Return the files that a run has written."""
    table = tables.find(entry)
    if table is not None:
        return table.files(number, entry)
    if entry.publish is None:
        return ()
    return [path for _, path in decode_moves(job.store.blobs.get(entry.publish))]


def _taken_out(tables: TableOutputs, found: Sequence[tuple[int, OutputEntry]]) -> Mapping[str, int]:
    """Return the number of the last of these runs that has taken a file out of its table, by an overwrite."""
    overwrites = ((number, entry, tables.find(entry)) for number, entry in found if not entry.metadata.is_append)
    return {
        path: number
        for number, entry, table in overwrites
        if table is not None
        for path in table.removed(number, entry)
    }


def _unreadable(job: UpstreamJob, number: int, output: str, entry: OutputEntry) -> SourceError:
    return SourceError(
        f"job {job.consumer!r}: run {number} of upstream {job.name!r} wrote output {output!r} to a sink of "
        f"kind {entry.sink!r} ({entry.target}), which can't be read as an upstream here. Nothing was read or "
        "changed: it does not count as consumed. Read another output of it (output=), or that place itself."
    )


def written_in(job: UpstreamJob, tables: TableOutputs, plan: FilePlan, window: UpstreamWindow) -> list[WrittenRun]:
    """Return the runs whose files a stored plan reads, oldest first; each run lists its files."""
    wanted, written = set(plan.files.paths), list[WrittenRun]()
    for run in job.store.runs(job.name, until=window.until, reverse=True) if wanted else ():
        for name, entry in run.outputs.items():
            is_readable = entry.lies_in_files or (tables.find(entry) and tables.folder(entry) in plan.roots)
            if window.output not in ("", name) or not (run.state.is_committed and entry.makes_visible and is_readable):
                continue
            paths = wanted.intersection(_paths_of(job, tables, run.key.number, entry))
            if paths:
                written.append(WrittenRun(run.key.number, entry, tables.folder(entry), tuple(paths)))
                wanted -= paths
        if not wanted:
            break
    return written[::-1]


def newest_entry(written: Sequence[WrittenRun]) -> OutputEntry | None:
    """Return how the newest of these runs that has anything to read was written; None where there is no run."""
    if not written:
        return None
    return next((each for each in reversed(written) if each.paths), written[-1]).entry
