"""Advise on jobs: what makes their runs dearer than they need be, from what these have recorded.

This reads the table and nothing else: no folder is listed, no database is asked. A run that can't be read is left out
and counted, which is damage, and not advice: `examine` names it.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from math import isfinite
from typing import TYPE_CHECKING, Any

from airflow_bookmarks.core.advice.folders import advice_on_files
from airflow_bookmarks.core.advice.reads import FileReads, FilesOfRun
from airflow_bookmarks.core.advice.tables import RowsOfRun, advice_on_keys
from airflow_bookmarks.core.errors import (
    JobUnknownError,
    NameInvalidError,
    OptionError,
    SourceError,
    StateCorruptError,
)
from airflow_bookmarks.core.files.file_plan import FilePlan
from airflow_bookmarks.core.health.cadence import usual_interval
from airflow_bookmarks.core.rules.lag import WINDOW
from airflow_bookmarks.core.selection.partition import partition_values, placed, roots_above
from airflow_bookmarks.core.selection.partition_time import PartitionTime
from airflow_bookmarks.core.selection.reason import NO_KEY
from airflow_bookmarks.core.text.redaction import redacted
from airflow_bookmarks.lifecycle.maintenance.doctor.head import names_to_examine
from airflow_bookmarks.lifecycle.maintenance.doctor.survey import Survey
from airflow_bookmarks.sources.registry import find_kind

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from datetime import timedelta

    from airflow_bookmarks.core.advice.advice import Advice
    from airflow_bookmarks.core.advice.reads import Folder
    from airflow_bookmarks.core.run import PlanEntry, Run, RunKey
    from airflow_bookmarks.store.bookmark_store import BookmarkStore


@dataclass(frozen=True, slots=True)
class JobAdvice:
    """What there is to say about one job.

    `runs` is how many runs were looked at, and `damaged_runs` says of others, by their items, why they could not be.
    `unreadable` is why none could: the job itself is damaged.
    """

    job: str
    runs: int = 0
    advice: tuple[Advice, ...] = ()
    damaged_runs: Mapping[str, str] = field(default_factory=dict)
    unreadable: str | None = None

    def as_dict(self) -> dict[str, Any]:
        """Return it as plain values."""
        return {
            "job": self.job,
            "runs": self.runs,
            "advice": [each.as_dict() for each in self.advice],
            "damaged_runs": {run: redacted(why) for run, why in self.damaged_runs.items()},
            "unreadable": None if self.unreadable is None else redacted(self.unreadable),
        }


def advise(store: BookmarkStore, *, jobs: Sequence[str] | None = None) -> list[JobAdvice]:
    """Return what would make jobs cheaper, as far as their last runs have recorded it. It only reads the table.

    Args:
        jobs: these jobs; None: all of the namespace.

    Raises:
        JobUnknownError: a named job has no item at all.

    Example:
        >>> from airflow_bookmarks.store.bookmark_store import open_store
        >>> advise(open_store("sqlite:///:memory:?create=true"))
        []
    """
    if jobs is not None:
        return [_advised(store, job) for job in jobs]
    names, found = names_to_examine(store, with_lost=False)
    damaged = {finding.job: finding.what for finding in found}
    told = [_advised_if_there(store, name) for name in names if name not in damaged]
    return [
        *(JobAdvice(name, unreadable=what) for name, what in damaged.items()),
        *(each for each in told if each is not None),
    ]


def _advised_if_there(store: BookmarkStore, job: str) -> JobAdvice | None:
    """Return the advice on a job; None for another name of one, and for one that never began."""
    try:
        return _advised(store, job)
    except JobUnknownError:
        return None


def _advised(store: BookmarkStore, job: str) -> JobAdvice:
    try:
        survey = Survey.of(store, job, store.now())
    except (StateCorruptError, NameInvalidError) as error:
        return JobAdvice(job, unreadable=str(error))
    if not survey.items:
        raise JobUnknownError(f"no bookmark named {job!r} in namespace {store.namespace!r}; nothing was read.")
    if survey.head is None or survey.ancestry() is None:
        why = "; ".join(survey.unreadable.values()) or "its head, or a line of its history, is not there"
        return JobAdvice(job, unreadable=why)
    reader = _Reader(survey, usual_interval(survey.head.commits))
    advice = tuple(each for ctx in survey.head.contexts for each in reader.advice_on(ctx))
    return JobAdvice(job, len(reader.read), advice, reader.damaged)


class _Reader:
    """Reads what the last runs of a job have recorded of its contexts.

    `read` are the runs that it has read, and `damaged` says of others why they can't be.
    """

    def __init__(self, survey: Survey, usual: timedelta | None) -> None:
        self._survey, self._usual = survey, usual
        self._living = survey.living()
        self.read: set[RunKey] = set()
        self.damaged = {key.sk: why for key, why in survey.unreadable.items() if key.sk.startswith(_RUN)}

    def advice_on(self, ctx: str) -> Iterator[Advice]:
        """Yield what there is to say about a context."""
        runs = [run for run in self._living if ctx in run.plans]
        # Another source under the name of this one is another story.
        of_source = [run for run in runs if run.plans[ctx].fingerprint == runs[-1].plans[ctx].fingerprint]
        recorded = [found for run in of_source[-WINDOW:] if (found := self._recorded(run, ctx)) is not None]
        rows = [found for found in recorded if isinstance(found, RowsOfRun)]
        reads = [found for found in recorded if isinstance(found, FileReads)]
        yield from advice_on_keys(ctx, rows)
        if reads:
            yield from advice_on_files(replace(reads[-1], runs=[run for each in reads for run in each.runs]))

    def _recorded(self, run: Run, ctx: str) -> FileReads | RowsOfRun | None:
        """Return what a run has recorded; None where its kind has no rules, or it can't be read, which is noted."""
        try:
            found = _recorded(self._survey, run, ctx, self._usual)
        except (StateCorruptError, SourceError, OptionError) as error:
            self.damaged[self._survey.store.keys(self._survey.job).run(run.key).sk] = str(error)
            return None
        self.read.add(run.key)
        return found


def _recorded(survey: Survey, run: Run, ctx: str, usual: timedelta | None) -> FileReads | RowsOfRun | None:
    entry = run.plans[ctx]
    kind = find_kind(entry.kind)
    if kind is None:
        return None  # that it is not known here is a finding of its own
    plan = survey.plan_of(run, ctx)
    if plan is None:
        raise StateCorruptError(
            f"the plan of context {ctx!r} of run {run.key} is gone, damaged or out of reach. Nothing was changed. "
            "'airflow-bookmarks doctor' says which."
        )
    if kind.has_ledger:
        return _files_read(run, ctx, entry, plan, usual) if isinstance(plan, FilePlan) else None
    read = kind.keyed(plan)
    if read is None:
        return None
    metadata = entry.metadata
    return RowsOfRun(run.key.number, read, metadata.planned_rows, metadata.skipped.get(NO_KEY, 0))


def _files_read(run: Run, ctx: str, entry: PlanEntry, plan: FilePlan, usual: timedelta | None) -> FileReads:
    """Return what a run has read of a source of files, and how it was chosen."""
    metadata, of_files, listed = entry.metadata, entry.file_metadata, entry.listed_metadata
    plan_s, whole_s = _seconds(run)
    read = FilesOfRun(
        number=run.key.number,
        files=len(plan),
        bytes=metadata.amount.bytes,
        folders=_folders(plan),
        goes_on=metadata.starts_from is not None and not metadata.starts_over,
        listed=listed.files,
        known=listed.known,
        folders_listed=listed.folders,
        folders_without_new=listed.folders_without_new,
        bytes_again=sum(file.size_bytes for file in plan.files if file.path in plan.again) if plan.again else 0,
        plan_s=plan_s,
        whole_s=whole_s,
        contexts=len(run.plans),
    )
    chosen = of_files.read
    time = None if chosen is None else chosen.partition_time
    return FileReads(
        ctx,
        (read,),
        types=of_files.partition_types,
        usual=usual,
        partition_filter=None if chosen is None else chosen.partition_filter,
        partition_time=None if time is None else PartitionTime.parse(time),
        is_narrowed=chosen is not None and bool(chosen.globs),
        keeps_files=metadata.on_published is None,
    )


def _folders(plan: FilePlan) -> dict[Folder, int]:
    """Return how many of the files of a plan lie in which partition, without those that were read before."""
    places, folders = placed(plan.read_below), plan.files.in_folders()
    counts = Counter(folders.numbers.tolist())
    if plan.again:
        again = (row for row, path in enumerate(plan.files.paths) if path in plan.again)
        counts.subtract(int(folders.numbers[row]) for row in again)
    found: Counter[Folder] = Counter()
    for number, count in counts.items():
        path = f"{folders.names[number]}/."  # as a file in it, which is what the functions of partitions take
        above = roots_above(path, places)
        values = partition_values(path, above[0]) if above else {}
        if values and count:
            found[tuple(values.items())] += count
    return dict(found)


def _seconds(run: Run) -> tuple[float | None, float | None]:
    """Return how long the planning of a run took, and the whole run; None where that is not recorded.

    Raises:
        StateCorruptError: what is recorded is no time.
    """
    recorded = run.metrics.get("seconds", {})
    try:
        parts = {name: float(text) for name, text in recorded.items()}
    except ValueError as error:
        raise _no_seconds(run, error) from error
    if not all(map(isfinite, parts.values())):
        raise _no_seconds(run, recorded)
    return parts.get(_PLAN), sum(parts.values()) if parts else None


def _no_seconds(run: Run, found: object) -> StateCorruptError:
    return StateCorruptError(
        f"the seconds that run {run.key} has recorded can't be read ({found}). Nothing was changed. Restore the table "
        "from a backup, if they matter: nothing else depends on them."
    )


_RUN = "RUN#"  # of the keys of items
_PLAN = "plan"  # of the parts of a run, as its stopwatch names them
