"""Collect history older than a given time, except what is still referred to.

The oldest runs of each job go, up to a number C (`collected_until`); runs above it are kept whole. C stays below

- the first run that is younger than the retention,
- the newest run of the living line, and any open run,
- the first run that a consumer has not read (its edge).

Of the runs at or below C these are kept as well: one that a publish or a replay is due for, the last run with data, the
newest run with each output (an empty increment takes its schema), and those that hold a position which the head, a run
above C or the last change (for undo) names. While a clean is due C does not grow. Lines, edges and events stay:
they are small, and tell who changed what.

Then blobs that nothing refers to go: see `lifecycle.maintenance.blobs`; and so do the folders of positions: see
`lifecycle.maintenance.artifacts`. It can run beside jobs.
"""

from __future__ import annotations

import logging
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from airflow_bookmarks.core.errors import (
    BookmarkError,
    ChangedMeanwhileError,
    OptionError,
    StateCorruptError,
)
from airflow_bookmarks.core.rules.territory import Territory
from airflow_bookmarks.core.run import RunKey
from airflow_bookmarks.core.text.instant import to_text, utc_now
from airflow_bookmarks.core.text.redaction import redacted
from airflow_bookmarks.lifecycle.inspect.status import readable_keys
from airflow_bookmarks.lifecycle.maintenance.artifacts import collect_artifacts
from airflow_bookmarks.lifecycle.maintenance.blobs import BLOB_GRACE, BlobsGone, collect_blobs, ulid_time
from airflow_bookmarks.sinks.failure import own_errors
from airflow_bookmarks.sinks.registry import SINKS, stored_root
from airflow_bookmarks.store.bookmark_store import SIDE_RETENTION
from airflow_bookmarks.store.transitions import collection
from airflow_bookmarks.store.transitions.collection import Base, SeenExecution, SeenRun

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from airflow_bookmarks.core.head import Head
    from airflow_bookmarks.core.position import Edge
    from airflow_bookmarks.core.run import Run
    from airflow_bookmarks.core.timeline import Ancestry, TimelineChange
    from airflow_bookmarks.sinks.sink import CollectedSink
    from airflow_bookmarks.store.bookmark_store import BookmarkStore
    from airflow_bookmarks.store.reader import StateReader
    from airflow_bookmarks.store.stored_item import ItemKey

log = logging.getLogger(__name__)

_DAY = timedelta(days=1)
RETENTION = 90 * _DAY

_RACES = 10


@dataclass(frozen=True, slots=True)
class JobCollected:
    """What was collected of one job (or would be): run keys, run ids of executions, ids of side records, folders.

    `folders` are those in which killed pause and disable runs staged; a place in a sink of another kind has its name.
    `collected_until` is the number up to which runs may be gone now, `oldest_run` the oldest one left whole, `held_by`
    what keeps more from being collected: "retention", "consumer <name>", "clean", "living line".
    """

    job: str
    collected_until: int
    oldest_run: int | None
    held_by: str
    runs: tuple[str, ...] = ()
    executions: tuple[str, ...] = ()
    sides: tuple[str, ...] = ()
    folders: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Collected:
    """What one collection removed, or with `is_dry_run` would remove.

    `left_alone` says of each job that can't be read why. While there is one, no blob goes: nobody can tell which of
    them it needs. `objects` are those under `state_uri` that no blob named, of drivers that died between two writes;
    `foreign_objects` those of blobs that went, left where they are because they belong to the table of which this one
    is a copy; `artifacts` the folders that belonged to positions which are gone.
    """

    retention: timedelta
    is_dry_run: bool
    jobs: tuple[JobCollected, ...] = ()
    blobs: tuple[str, ...] = ()
    left_alone: Mapping[str, str] = field(default_factory=dict)
    objects: tuple[str, ...] = ()
    foreign_objects: tuple[str, ...] = ()
    artifacts: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """Return it as plain values."""
        return {
            "retention_days": self.retention / _DAY,
            "is_dry_run": self.is_dry_run,
            "runs": sum(len(job.runs) for job in self.jobs),
            "executions": sum(len(job.executions) for job in self.jobs),
            "sides": sum(len(job.sides) for job in self.jobs),
            "folders": sum(len(job.folders) for job in self.jobs),
            "blobs": len(self.blobs),
            "objects": len(self.objects),
            "foreign_objects": list(self.foreign_objects),
            "artifacts": list(self.artifacts),
            "left_alone": dict(self.left_alone),
            "jobs": [{name: _plain(value) for name, value in asdict(job).items()} for job in self.jobs],
        }


def _plain(value: object) -> object:
    return list(value) if isinstance(value, tuple) else value


def collect(
    store: BookmarkStore,
    *,
    retention: timedelta = RETENTION,
    clock: Callable[[], datetime] = utc_now,
    jobs: Sequence[str] | None = None,
    dry_run: bool = False,
) -> Collected:
    """Remove what is older than `retention` and no longer referred to. It can run beside jobs, and be repeated.

    Args:
        retention: how long history is kept; 90 days by default, `BLOB_GRACE` (7 days) at least.
        clock: returns the present time, aware.
        jobs: collect the history of these jobs alone; None: of all. Blobs are those of the namespace in both cases.
        dry_run: remove nothing, and return what would be removed.

    Raises:
        OptionError: the retention is shorter than `BLOB_GRACE`. JobUnknownError: no such job.
        ChangedMeanwhileError: a job was reset or rewound over and over while it was collected.
        StateCorruptError: a position can't be read, or which jobs there are. No blob was removed then.

    Example:
        >>> from airflow_bookmarks.store.bookmark_store import open_store
        >>> collect(open_store("sqlite:///:memory:?create=true")).as_dict()["runs"]
        0
    """
    if retention < BLOB_GRACE:
        raise OptionError(
            f"a retention of {retention / _DAY:g} days is shorter than the {BLOB_GRACE / _DAY:g} that a run may last: "
            "what a running job needs could go. Nothing was removed. Take a longer one."
        )
    now = clock()
    names, left_alone = _readable_jobs(store) if jobs is None else (list(jobs), {})
    done: list[JobCollected] = []
    for job in names:
        try:
            done.append(_collect_job(store, job, now, retention, dry_run))
        except StateCorruptError as error:
            left_alone[job] = redacted(str(error))
    for job, why in left_alone.items():
        log.warning("bookmark %s: its history is not collected, and no blob of the namespace: %s", job, why)
    would_go = _keys_gone(store, done) if dry_run else frozenset()
    gone = BlobsGone() if left_alone else collect_blobs(store, now, dry_run=dry_run, without=would_go)
    artifacts = () if left_alone else collect_artifacts(store, now, dry_run=dry_run, without=would_go)
    return Collected(
        retention, dry_run, tuple(done), gone.blobs, left_alone, gone.objects, gone.foreign_objects, artifacts
    )


def _readable_jobs(store: BookmarkStore) -> tuple[list[str], dict[str, str]]:
    """Return the jobs of the namespace that have a head, and the reason for each head or name that can't be read."""
    index, damage = readable_keys(store)
    heads = store.heads_or_damage(list(index))  # a name without a head is that of a job that never began
    damage |= {job: head for job, head in heads.items() if isinstance(head, BookmarkError)}
    return [job for job in heads if job not in damage], {job: redacted(str(error)) for job, error in damage.items()}


def _keys_gone(store: StateReader, done: Sequence[JobCollected]) -> frozenset[ItemKey]:
    """Return the items that a collection would have removed."""
    keys: set[ItemKey] = set()
    for job in done:
        of_job = store.keys(job.job)
        keys |= {of_job.run(RunKey.parse(run)) for run in job.runs}
        keys |= {of_job.side(ulid) for ulid in job.sides}
    return frozenset(keys)


# ---- one job


@dataclass(frozen=True, slots=True)
class _Past:
    """The facts of a run that matter here; a job may have a hundred thousand runs.

    `touched_at` is the latest thing that happened to it; `holders` are the runs that hold the positions after it;
    `outputs` the names of those that it wrote with a schema.
    """

    seen: SeenRun
    is_living: bool
    run_id: str
    touched_at: str
    data_run_number: int
    holders: frozenset[RunKey]
    outputs: tuple[str, ...]

    @classmethod
    def of(cls, run: Run, living: Ancestry) -> _Past:
        return cls(
            seen=SeenRun(run.key, run.state, run.revision),
            is_living=living.has(run),
            run_id=run.run_id,
            # Times of this package are text that sorts.
            touched_at=max(run.planned_at, run.committed_at or "", run.published_at or ""),
            data_run_number=run.data_run_number,
            holders=frozenset(state.run for state in run.contexts.values()),
            outputs=tuple(name for name, output in run.outputs.items() if output.schema is not None),
        )

    @property
    def key(self) -> RunKey:
        return self.seen.key

    @property
    def is_committed(self) -> bool:
        return self.seen.state.is_committed


@dataclass(frozen=True, slots=True)
class _Job:
    """A job as it was at one moment. `at_work` are the executions that hold it, or have an open or due run."""

    name: str
    head: Head
    runs: Sequence[_Past]
    edges: Sequence[Edge]
    executions: Mapping[str, SeenExecution]
    base: Base
    at_work: frozenset[str]
    line_change: TimelineChange | None = None

    @classmethod
    def load(cls, store: BookmarkStore, job: str) -> _Job:
        """Read it. What a removal relies on comes first: a later move is a commit, or makes the removal fail."""
        base = collection.base(store, job)
        head = store.head(job)
        living = store.ancestry(job, head.epoch)
        runs = [_Past.of(run, living) for run in store.runs(job)]
        return cls(
            name=job,
            head=head,
            runs=runs,
            edges=store.edges(job),
            executions=collection.seen_executions(store, job),
            base=base,
            # Once, and not for each execution: a job may have a hundred thousand of both.
            at_work=_at_work(head, runs),
            line_change=store.line_change(job, head.epoch) if head.epoch > 1 else None,
        )


def _collect_job(store: BookmarkStore, name: str, now: datetime, retention: timedelta, dry_run: bool) -> JobCollected:
    cutoff = to_text(now - retention)
    for _ in range(_RACES):
        job = _Job.load(store, name)
        until, held_by = _bound(job, cutoff)
        gone = _Gone.of(job, until, cutoff)
        if dry_run or _remove(store, job, until, gone):
            sides = collection.expired_sides(store, name, now, SIDE_RETENTION)
            left = _left_aside(store, name, job.head.staging, now - retention)
            if not dry_run:
                collection.remove_sides(store, name, sides)
                left = _removed(left)
            return _collected(job, until, held_by, gone, sides, [each.place for each in left])
    raise ChangedMeanwhileError(
        f"job {name!r} kept changing while its history was collected. Everything removed was unneeded; the rest is "
        "unchanged. Run it again."
    )


def _collected(
    job: _Job, until: int, held_by: str, gone: _Gone, sides: Sequence[str], folders: Sequence[str]
) -> JobCollected:
    left = [run.key.number for run in job.runs if run.is_committed and run.key.number > until]
    return JobCollected(
        job=job.name,
        collected_until=until,
        oldest_run=min(left, default=None),
        held_by=held_by,
        runs=tuple(str(run.key) for run in gone.runs),
        executions=tuple(gone.executions),
        sides=tuple(sides),
        folders=tuple(folders),
    )


def _bound(job: _Job, cutoff: str) -> tuple[int, str]:
    """Return the number up to which runs may go, and what holds the rest."""
    if job.head.cleaning is not None:
        return job.base.collected, "clean"
    bounds = [(_last_old(job, cutoff), "retention"), (_last_replaced(job), "living line")]
    bounds += [(edge.run_number, f"consumer {edge.consumer}") for edge in job.edges]
    until, held_by = min(bounds, key=lambda bound: bound[0])
    # What was announced stays announced, also if a consumer went back since: what is gone is gone.
    return max(until, job.base.collected), held_by


def _last_old(job: _Job, cutoff: str) -> int:
    young = [run.key.number for run in job.runs if run.touched_at >= cutoff]
    return min(young, default=job.head.run_number + 1) - 1


def _last_replaced(job: _Job) -> int:
    newest = [run.key.number for run in job.runs if run.is_living]
    return min(max(newest, default=job.head.run_number), job.head.run_number) - 1


@dataclass(frozen=True, slots=True)
class _Gone:
    """What is to go of one job: runs, and executions as they were seen."""

    runs: Sequence[_Past]
    executions: Mapping[str, SeenExecution]

    @classmethod
    def of(cls, job: _Job, until: int, cutoff: str) -> _Gone:
        executions = {
            run_id: seen for run_id, seen in job.executions.items() if not _is_needed(job, run_id, seen, until, cutoff)
        }
        kept = {n for run_id, seen in job.executions.items() if run_id not in executions for n in seen.runs}
        pinned = _pinned(job, until)
        # A clean that is due lists files of undone runs, and whoever removes them looks whose they are.
        runs = [
            run
            for run in (job.runs if job.head.cleaning is None else ())
            if run.key.number <= until and run.key not in pinned and not (run.is_committed and run.key.number in kept)
        ]
        return cls(runs, executions)


def _is_needed(job: _Job, run_id: str, seen: SeenExecution, until: int, cutoff: str) -> bool:
    """Whether an execution may still be needed: by its task, a driver that holds the job, or a due mark."""
    if seen.touched_at is None or seen.touched_at >= cutoff or any(number > until for number in seen.runs):
        return True
    return run_id in job.at_work


def _at_work(head: Head, runs: Iterable[_Past]) -> frozenset[str]:
    due = frozenset(run.run_id for run in runs if run.seen.state.is_open or run.key == head.publishing)
    return due if head.lease is None else due | {head.lease.run_id}


def _pinned(job: _Job, until: int) -> set[RunKey]:
    """Return the runs at or below `until` that something refers to."""
    left = [run for run in job.runs if run.key.number > until]
    pinned = {state.run for state in job.head.contexts.values()}.union(*(run.holders for run in left))
    data_runs = {job.head.data_run_number, *(run.data_run_number for run in left)}
    due = [job.head.publishing]
    if job.line_change is not None:  # what an undo goes back to
        pinned |= {state.run for state in job.line_change.contexts.values()}
        data_runs.add(job.line_change.data_run_number)
        due.append(job.line_change.dropped)
    pinned |= {key for key in due if key is not None}
    pinned |= {run.key for run in job.runs if run.is_committed and run.key.number in data_runs}
    newest_output = {name: run.key for run in job.runs if run.is_living for name in run.outputs}
    return pinned | set(newest_output.values())


def _remove(store: BookmarkStore, job: _Job, until: int, gone: _Gone) -> bool:
    base = job.base
    if until > base.collected:
        announced = collection.announce(store, job.name, base, until)
        if announced is None:
            return False
        base = announced
    # Executions first: any execution that is left then names a run that is left.
    if not collection.remove_executions(store, job.name, base, gone.executions):
        return False
    return collection.remove_runs(store, job.name, base, [run.seen for run in gone.runs])


# ---- side leftovers


@dataclass(frozen=True, slots=True)
class _Leftover:
    """What a killed pause or disable run has left staged; `place` is where, with the kind of sink before it."""

    territory: Territory
    sink: CollectedSink
    root: str
    run: str
    place: str

    def remove(self) -> None:
        with own_errors(self.sink.kind):
            self.sink.remove_aside(self.territory, self.root, self.run)


def _left_aside(store: BookmarkStore, job: str, staging: Iterable[str], cutoff: datetime) -> list[_Leftover]:
    """Return what pause and disable runs that began before `cutoff` left staged, in each sink that can tell.

    It is looked for beside the staging of enabled runs: of a target that only side runs write, the state knows nothing.
    """
    territory, sinks = Territory(store.namespace, job), SINKS.reaching(store.databases)
    found: list[_Leftover] = []
    for stored in staging:
        known = sinks.find_to_collect(stored)
        if known is None:
            continue
        sink, root = known
        what = f"what killed pause and disable runs staged beside {stored!r}"
        with _telling(f"bookmark {territory.job}: {what} is not looked into"), own_errors(sink.kind):
            for run, place in sink.left_aside(territory, root).items():
                began = ulid_time(run)
                if began is not None and began < cutoff:
                    found.append(_Leftover(territory, sink, root, run, stored_root(sink.kind, place)))
    return found


def _removed(left: Iterable[_Leftover]) -> list[_Leftover]:
    """Remove what killed runs left; return what could be removed."""
    removed: list[_Leftover] = []
    for each in left:
        with _telling(f"{each.place!r}, which a killed pause or disable run left, is not removed"):
            each.remove()
            removed.append(each)
    return removed


@contextmanager
def _telling(what: str) -> Iterator[None]:
    """Log a refusal of a file store and go on; `what` says what is left undone.

    A job may have staged in a bucket that is gone, or that this process may not access, and its state may name folders
    of others, which the doctor finds: none of this must stop the collection.
    """
    try:
        yield
    except (BookmarkError, OSError) as error:  # a sink of a user's own may raise any error of this package
        log.warning("%s, and the next collection tries again: %s", what, error)
