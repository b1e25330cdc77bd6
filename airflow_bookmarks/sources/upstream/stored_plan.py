"""Say how the output that a stored plan reads was written, also where runs that wrote it were collected."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_bookmarks.core.errors import SourceError
from airflow_bookmarks.sources.upstream.layout import layout_of
from airflow_bookmarks.sources.upstream.written import newest_entry, written_in
from airflow_bookmarks.store.transitions.collection import collected_until

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from airflow_bookmarks.core.files.file_plan import FilePlan
    from airflow_bookmarks.core.plan import UpstreamWindow
    from airflow_bookmarks.core.run import OutputEntry
    from airflow_bookmarks.sources.upstream.job import UpstreamJob
    from airflow_bookmarks.sources.upstream.layout import GivenLayout, Likeness
    from airflow_bookmarks.sources.upstream.table_outputs import TableOutputs
    from airflow_bookmarks.sources.upstream.written import WrittenRun

_SELF_DESCRIBING = frozenset(["parquet", "orc"])  # formats, and how the names of their files end


def entry_of_stored(
    job: UpstreamJob,
    tables: TableOutputs,
    plan: FilePlan,
    window: UpstreamWindow,
    likeness: Likeness,
    given: GivenLayout | None,
) -> OutputEntry | None:
    """Return how the newest run that a stored plan reads wrote its output, by the runs that the store has still.

    For an empty plan: how the newest run with data did. None where that is not known, and need not be.

    Raises:
        SourceError: the runs were not written alike; or some were collected, and how they were written can't be told
            any more, nor is it `given`.
    """
    written = written_in(job, tables, plan, window)
    broken = likeness.break_in(job, written)
    if broken is not None:
        raise SourceError(
            f"job {job.consumer!r} is to read again what it has read of upstream {job.name!r}, and "
            f"{broken[1]}. One frame can't read both. Nothing was read or changed. Read it in parts: a pause "
            "between runs of this job (from, to) that have read the one or the other."
        )
    lost = set(plan.files.paths).difference(*(each.paths for each in written))
    if lost:
        _check_known(job, lost, plan.roots, written, given)
    if written or lost:
        return newest_entry(written)
    until = window.until if window.runs else job.head().data_run_number
    for run in job.store.runs(job.name, until=until, reverse=True):
        entry = next((e for name, e in run.outputs.items() if window.output in ("", name)), None)
        if run.state.is_committed and entry is not None and entry.schema is not None:
            return entry
    return None


def _check_known(
    job: UpstreamJob,
    lost: Collection[str],
    roots: Sequence[str],
    written: Sequence[WrittenRun],
    given: GivenLayout | None,
) -> None:
    """Make sure that files whose runs were collected are read rightly without what these runs had stored.

    Files of some formats say by themselves how they were written, unless a folder holds a column of theirs. Read
    with the options of another run, any other file may give other rows, without an error: then the script has to
    say all of it.
    """
    endings = {path.rpartition(".")[2] for path in lost}
    layouts = [layout_of(each.entry) for each in written]
    below = (path.removeprefix(next(filter(path.startswith, roots), "")) for path in lost)
    is_plain = not any("=" in path.rpartition("/")[0] for path in below)
    is_alike = all({each["format"]} == endings and not each["partitionBy"] for each in layouts)
    if len(endings) == 1 and endings <= _SELF_DESCRIBING and is_plain and is_alike:
        return
    if is_plain and given is not None and given.covers(layouts):
        return
    is_collected = collected_until(job.store, job.name) > 0
    went = "were collected, and with them" if is_collected else "are not found, nor"
    by_hand = "ead these files with spark.read, with the format, options and partitions that they were written with"
    in_script = "Give .format(...), .schema(...) and each .option(...) that they were written with, or r"
    raise SourceError(
        f"job {job.consumer!r} is to read again what it has read of upstream {job.name!r}, and the runs "
        f"that wrote {len(lost)} of these files {went} how they were written, the first: {min(lost)!r}. Nothing "
        f"was read or changed. {in_script if is_plain else 'R'}{by_hand}."
    )


def format_of(job: UpstreamJob, entry: OutputEntry) -> str:
    """Return the format in which an output of the upstream was written.

    Raises:
        SourceError: none is stored with it, as where a script has staged the output by itself.
    """
    written = entry.metadata.format
    if written is None:
        raise SourceError(
            f"job {job.consumer!r}: upstream {job.name!r} has stored no format with its output in "
            f"{entry.target}, so how to read it is not known. Nothing was read or changed: it does not count as "
            "consumed. Give .format(...) of its files."
        )
    return written


def format_by_name(plan: FilePlan) -> str:
    """Return the format of files of which nothing is stored any more, as `entry_of_stored` lets pass."""
    endings = {path.rpartition(".")[2] for path in plan.files.paths}
    return next(iter(endings & _SELF_DESCRIBING), "parquet")
