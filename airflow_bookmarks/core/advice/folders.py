"""Rules on the folders of a source of files, each from what its last runs have recorded.

    deep        four partition columns or more. Each column multiplies the folders: year, month and day are 365 a year,
                and a fourth column makes each of them as many as it has values. A listing that goes folder by folder
                (HDFS, a local disk, or any store once a filter prunes) sends a request for each of them
    coarse      the newest partition is at least two usual intervals wide, so that each file in it is listed again
                before it is complete. Below two, jitter would decide
    unordered   at least half of the new files land below the newest partition that there was before. In an order of
                time next to none do, late ones apart; of values in no order, k of k + 1 do once k were seen
    unfiltered  at least half of what is listed is known, and no option leaves a folder out

What is listed in vain counts from a page on: an object store answers with 1,000 names at a time, so fewer cost one
request whatever they are; and from 100 folders on, where each is a request of its own of some 10 to 50 ms: seconds.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any

from airflow_bookmarks.core.advice.advice import LEAST_RUNS, Advice, AdviceCode, is_most
from airflow_bookmarks.core.advice.cost import ListingCost
from airflow_bookmarks.core.text.count import counted, runs_in_words, runs_named
from airflow_bookmarks.core.text.instant import in_words

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import datetime

    from airflow_bookmarks.core.advice.advice import Figures
    from airflow_bookmarks.core.advice.reads import FileReads, FilesOfRun, Folder
    from airflow_bookmarks.core.selection.partition_time import Span

_DEEP = 4  # partition columns
_COARSE = 2  # usual intervals
_MANY_FILES = 1_000  # of a run, listed in vain
_MANY_FOLDERS = 100


def advice_on_files(reads: FileReads) -> Iterator[Advice]:
    """Yield what would make reading these files cheaper."""
    if not reads.columns:
        return
    unordered = _unordered(reads)
    # Where the order of partitions is no use, a line drawn by it is none either.
    found = (_deep(reads), _coarse(reads), unordered, None if unordered else _unfiltered(reads))
    yield from (each for each in found if each is not None)


def _deep(reads: FileReads) -> Advice | None:
    depth = len(reads.columns)
    if depth < _DEEP:
        return None
    cost = ListingCost.of(reads.runs)
    folders = set(chain.from_iterable(run.folders for run in reads.runs))
    read = sum(sum(run.folders.values()) for run in reads.runs)
    return Advice(
        AdviceCode.DEEP_PARTITIONS,
        reads.ctx,
        f"Files lie {depth} partition columns deep, and each column multiplies the folders that a run lists.",
        f"the columns are {', '.join(reads.columns)}; {_who(reads.runs)} read {counted(read, 'new file')} from "
        f"{counted(len(folders), 'folder')}",
        cost.in_words(),
        "Partition by three columns at most, one date in place of year, month and day, and write the others as columns "
        "of the files.",
        {**cost.figures(), "depth": depth, "folders_read": len(folders)},
    )


def _coarse(reads: FileReads) -> Advice | None:
    spans = [_newest(reads, run) for run in reads.runs]
    newest = max((span for span in spans if span is not None), key=_by_start, default=None)
    if newest is None or not reads.usual or not reads.keeps_files:
        return None
    width = newest.end - newest.start
    if width < _COARSE * reads.usual:
        return None
    open_known, found = _listed_again(reads), sum(sum(run.folders.values()) for run in reads.runs)
    again = sum(run.bytes_again for run in reads.runs)
    if not open_known and not again:
        return None
    every, wide = in_words(reads.usual), in_words(width)
    figures: Figures = {
        "runs": len(reads.runs),
        "usual_seconds": reads.usual.total_seconds(),
        "partition_seconds": width.total_seconds(),
        "files_read": found,
        "files_seen_again": open_known,
        "bytes_read_again": again,
    }
    return Advice(
        AdviceCode.COARSE_PARTITIONS,
        reads.ctx,
        "A partition covers several runs, so that each run lists again what earlier ones read of it.",
        f"the job commits every {every} (the median of its last commits), and the newest partition, from "
        f"{newest.start.isoformat(' ', 'minutes')}, covers {wide}: {width / reads.usual:,.0f} runs",
        _again_in_words(reads.runs, found, open_known, again),
        "Partition as finely as the job runs, by a column more (hour=...); or run the job once for each partition.",
        figures,
    )


def _listed_again(reads: FileReads) -> int:
    """Return how often a run listed a file that an earlier one of these had read, in the newest partition of then."""
    seen: dict[Folder, int] = {}
    newest: Span | None = None
    times = 0
    for run in reads.runs:
        newest = max((span for span in (newest, _newest(reads, run)) if span is not None), key=_by_start, default=None)
        if run.listed is not None and newest is not None:
            times += sum(count for folder, count in seen.items() if reads.span(folder) == newest)
        for folder, count in run.folders.items():
            seen[folder] = seen.get(folder, 0) + count
    return times


def _newest(reads: FileReads, run: FilesOfRun) -> Span | None:
    spans = (reads.span(folder) for folder in run.folders)
    return max((span for span in spans if span is not None), key=_by_start, default=None)


def _by_start(span: Span) -> datetime:
    return span.start


def _again_in_words(runs: Sequence[FilesOfRun], found: int, listed_again: int, bytes_again: int) -> str:
    said = (
        f"{_who(runs)} found {counted(found, 'new file')}; in the partition that was then the newest, they listed at "
        f"least {counted(listed_again, 'file')} again that others of them had read"
    )
    if not bytes_again:
        return said
    sizes = [run.bytes for run in runs]
    whole = sum(size for size in sizes if size is not None)
    share = "" if None in sizes or not whole else f", {bytes_again / whole:.0%} of what they read"
    return f"{said}; they read {counted(bytes_again, 'byte')} again{share}"


def _unordered(reads: FileReads) -> Advice | None:
    arrivals = list(_arrivals(reads))
    below, new = sum(each.below for each in arrivals), sum(each.new for each in arrivals)
    if len(arrivals) < LEAST_RUNS or not is_most(below, new) or not _lists_much_in_vain(reads):
        return None
    cost = ListingCost.of(_going_on(reads))
    order = "descend" if all(each.is_descending for each in arrivals) else "come in no order"
    return Advice(
        AdviceCode.UNORDERED_PARTITIONS,
        reads.ctx,
        f"New files land in old partitions, because the values of {', '.join(_ordering(reads))} {order}.",
        f"{below:,} of {counted(new, 'new file')} in {counted(len(arrivals), 'run')} lie below the newest partition "
        "that an earlier run had read",
        f"no partition is ever done, so none can be left out: {cost.in_words()}",
        "Partition first by a time that grows, such as the day of arrival; then partition_time and late_after leave "
        "old folders out.",
        {**cost.figures(), "files_below": below, "files_new": new},
    )


@dataclass(frozen=True, slots=True)
class _Arrival:
    """The new files of a run: how many there are, and how many lie below the newest partition of earlier runs.

    `is_descending`: they all lie below whatever was read before.
    """

    new: int
    below: int
    is_descending: bool


def _arrivals(reads: FileReads) -> Iterator[_Arrival]:
    """Yield the new files of each run that read some after another one had."""
    before: list[Any] = []
    for run in reads.runs:
        placed = [(place, count) for each, count in run.folders.items() if (place := reads.place(each)) is not None]
        places = [place for place, _ in placed]
        if before and places:
            highest = max(before)
            below = sum(count for place, count in placed if place < highest)
            yield _Arrival(sum(count for _, count in placed), below, max(places) < min(before))
        before = [min([*before, *places]), max([*before, *places])] if places else before


def _ordering(reads: FileReads) -> Sequence[str]:
    return reads.columns if reads.time is None else reads.time.columns


def _unfiltered(reads: FileReads) -> Advice | None:
    if reads.partition_filter is not None or reads.partition_time is not None or reads.is_narrowed:
        return None
    runs = [run for run in _going_on(reads) if run.listed is not None]
    cost = ListingCost.of(runs)
    if len(runs) < LEAST_RUNS or not is_most(cost.known or 0, cost.files or 0) or not _lists_much_in_vain(reads):
        return None
    action = "Leave folders out by a predicate on the partition columns: partition_filter=..."
    if reads.time is not None:
        columns = ",".join(reads.time.columns)
        action = f"Leave old folders out: partition_time={columns!r} with late_after=..., or partition_filter=..."
    return Advice(
        AdviceCode.NO_PARTITION_FILTER,
        reads.ctx,
        "The source is partitioned, and read without a filter, so that each run lists all partitions.",
        f"the columns are {', '.join(reads.columns)}, and {_who(runs)} had neither partition_filter nor partition_time",
        cost.in_words(),
        action,
        cost.figures(),
    )


def _going_on(reads: FileReads) -> list[FilesOfRun]:
    """Return the runs that had a position before: for one that begins, all is new, and nothing was listed in vain."""
    return [run for run in reads.runs if run.goes_on]


def _lists_much_in_vain(reads: FileReads) -> bool:
    """Whether a run lists on average more than costs next to nothing, and does not read it."""
    runs = [run for run in _going_on(reads) if run.listed is not None]
    files = sum(run.known or 0 for run in runs)
    folders = sum(run.folders_without_new or 0 for run in runs)
    return bool(runs) and (files >= _MANY_FILES * len(runs) or folders >= _MANY_FOLDERS * len(runs))


def _who(runs: Sequence[FilesOfRun]) -> str:
    return runs_named(runs_in_words([run.number for run in runs]))
