"""Measure how far each job is behind the jobs and folders that it reads, and judge it by `core.rules.lag`.

All jobs of a namespace together cost one query for the index and one request for each hundred heads and each hundred
edges. Only where something is unread, or the upstream's history moved, two or three more queries read the last runs of
the consumer and those of the upstream that it has not read.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from airflow_bookmarks.core.amount import FILES
from airflow_bookmarks.core.errors import StateCorruptError
from airflow_bookmarks.core.head import Head
from airflow_bookmarks.core.job_state import STATE_CONTEXT
from airflow_bookmarks.core.position import lowest_replayed
from airflow_bookmarks.core.rules.condition import rewound_below
from airflow_bookmarks.core.rules.lag import WINDOW, LagPoint, LagState, lag_state
from airflow_bookmarks.core.run import ContextState, RunState, names_now
from airflow_bookmarks.core.text.instant import from_text, to_text
from airflow_bookmarks.core.text.redaction import redacted
from airflow_bookmarks.lifecycle.inspect.pending import pending
from airflow_bookmarks.lifecycle.inspect.runs import sum_of
from airflow_bookmarks.lifecycle.inspect.status import ListedJobs
from airflow_bookmarks.sources.registry import reads_jobs, upstream_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from datetime import datetime

    from airflow_bookmarks.core.errors import BookmarkError
    from airflow_bookmarks.core.position import Edge
    from airflow_bookmarks.core.run import Run
    from airflow_bookmarks.lifecycle.inspect.pending import PendingContext
    from airflow_bookmarks.lifecycle.state.positions import Waiting
    from airflow_bookmarks.store.bookmark_store import BookmarkStore


@dataclass(frozen=True, slots=True)
class Lag:
    """How far `job` is behind one source: an upstream job, or folders (`kind`).

    `consumed` and `published` are runs of the upstream; None for folders. `runs`, `files`, `bytes` and `seconds` are
    what is unread (runs with data; files as the upstream wrote them) and how long the oldest of it is there; None where
    that can't be said. What is not counted in files has a `count` of its `unit`. `why` says a state that is not OK in
    words, `is_by_upstream` that the upstream itself went back, or was replayed. With `recorded_by` the folders were not
    looked at: this is what that run left waiting at the time of `recorded_at`.
    """

    job: str
    source: str
    kind: str
    contexts: tuple[str, ...]
    state: LagState
    consumed: int | None = None
    published: int | None = None
    runs: int | None = None
    files: int | None = None
    bytes: int | None = None
    seconds: int | None = None
    why: str | None = None
    recorded_by: int | None = None
    recorded_at: str | None = None
    unit: str | None = None
    count: int | None = None
    is_by_upstream: bool = False

    def as_dict(self) -> dict[str, Any]:
        """Return it as plain values, without `is_by_upstream`, which `why` says."""
        values = {name: getattr(self, name) for name in self.__slots__ if name != "is_by_upstream"}
        return {**values, "contexts": list(self.contexts), "state": self.state.value}


Lags = dict[str, list[Lag]]  # of each job, by its name: how far it is behind each job that it reads


@dataclass(frozen=True, slots=True)
class JobConsumer:
    """A job that reads another one: by which contexts of which kind, and the edge that says how far (None: none)."""

    job: str
    upstream: str
    contexts: tuple[str, ...]
    edge: Edge | None
    kind: str


@dataclass(frozen=True)
class Neighbours:
    """A snapshot of some jobs: their heads, what each of them reads, and the jobs that they read.

    `heads` holds those of the jobs and of their upstreams, where they exist; `reads` the contexts by job; `deleted` the
    names of deleted jobs; `damaged` says why jobs and upstreams can't be read that have no head here; `other_names` the
    names given by renames, by key. `hidden` says why the last runs of jobs can't be read, which may have read more than
    `reads` tells.
    """

    store: BookmarkStore
    jobs: tuple[str, ...]
    heads: Mapping[str, Head]
    reads: Mapping[str, Mapping[str, ContextState]]
    deleted: frozenset[str] = frozenset()
    damaged: Mapping[str, BookmarkError] = field(default_factory=dict)
    other_names: Mapping[str, Sequence[str]] = field(default_factory=dict)
    hidden: Mapping[str, BookmarkError] = field(default_factory=dict)

    @classmethod
    def of_job(cls, store: BookmarkStore, job: str) -> Neighbours:
        """Read one job and what it reads.

        Raises:
            JobUnknownError: no such bookmark.
        """
        head = store.head(job)
        reads = {job: _contexts(store, job, head, with_last_run=True)}
        wanted = sorted(upstreams_in(reads[job]))
        return cls(store, (job,), {**store.heads(wanted), job: head}, reads)

    @classmethod
    def of_heads(cls, store: BookmarkStore, heads: Mapping[str, Head]) -> Neighbours:
        """Read what jobs read whose heads are known.

        A context that never had anything to read is not seen: the head does not show it, and reading each job's last
        run would take a query for each job.
        """
        reads, hidden = _reads_of(store, heads)
        wanted = {name for contexts in reads.values() for name in upstreams_in(contexts)} - heads.keys()
        found = store.heads_or_damage(sorted(wanted))
        others = {job: head for job, head in found.items() if isinstance(head, Head)}
        damaged = {job: why for job, why in found.items() if not isinstance(why, Head)}
        return cls(store, tuple(heads), {**heads, **others}, reads, damaged=damaged, hidden=hidden)

    @classmethod
    def of_all(cls, store: BookmarkStore) -> Neighbours:
        """Read all jobs of the namespace, as `of_heads` does. Deleted ones no longer read anything."""
        return cls.of_listed(store, ListedJobs.of(store))

    @classmethod
    def of_listed(cls, store: BookmarkStore, listed: ListedJobs) -> Neighbours:
        """Read what all jobs of the namespace read, whose heads are known."""
        living = {job: head for job, head in listed.heads.items() if job not in listed.deleted}
        reads, hidden = _reads_of(store, living)
        return cls(
            store, tuple(living), listed.heads, reads, listed.deleted, listed.damaged, listed.other_names, hidden
        )

    def only(self, jobs: Sequence[str]) -> Neighbours:
        """Return what is known of some of the jobs."""
        return replace(self, jobs=tuple(jobs))

    @cached_property
    def readers(self) -> tuple[JobConsumer, ...]:
        """The readers of each job, by name."""
        pairs = [(job, upstream) for job in self.jobs for upstream in sorted(upstreams_in(self.reads[job]))]
        edges = self.store.edges_of(pairs)
        return tuple(
            JobConsumer(job, upstream, names, edges.get((job, upstream)), self.reads[job][names[0]].kind)
            for job, upstream in pairs
            for names in [_contexts_of(self.reads[job], upstream)]
        )


def lag(store: BookmarkStore, job: str) -> list[Lag]:
    """Return how far a job is behind each job and each folder that it reads. This lists the folders.

    Args:
        job: the key of the job.

    Raises:
        JobUnknownError: no such bookmark.
    """
    return [*lags(Neighbours.of_job(store, job)), *_lags_of_sources(store, job)]


def lags(looked: Neighbours) -> list[Lag]:
    """Return how far each of some jobs is behind each job that it reads. No folder is listed.

    Raises:
        StateCorruptError: what is stored of their runs or edges can't be read.
    """
    windows = _Windows(looked)
    return [_lag(looked, reader, windows) for reader in looked.readers]


def readable_lags(looked: Neighbours) -> Lags:
    """Return how far each of some jobs is behind each job that it reads, by job; UNKNOWN where that can't be read."""
    found: Lags = {job: [] for job in looked.jobs}
    try:
        for each in lags(looked):
            found[each.job].append(each)
    except StateCorruptError as error:
        if len(looked.jobs) == 1:
            return {job: [_unreadable(job, error)] for job in looked.jobs}
        # One of them, or of those that they read, is damaged: that one is found by halves.
        middle = len(looked.jobs) // 2
        return readable_lags(looked.only(looked.jobs[:middle])) | readable_lags(looked.only(looked.jobs[middle:]))
    for job in looked.hidden.keys() & found.keys():
        found[job].append(_unreadable(job, looked.hidden[job]))
    return found


def lags_of_all(store: BookmarkStore) -> list[Lag]:
    """Return how far each job of the namespace is behind each job that it reads. No folder is listed.

    One that can't be read is UNKNOWN, with the reason.
    """
    looked = Neighbours.of_all(store)
    found = readable_lags(looked) | {job: [_unreadable(job, why)] for job, why in looked.damaged.items()}
    return [each for job in sorted(found) for each in found[job]]


def _unreadable(job: str, why: BookmarkError) -> Lag:
    return Lag(job, "", "", (), LagState.UNKNOWN, why=redacted(str(why)))


# ---- who reads what


def _contexts(store: BookmarkStore, job: str, head: Head, *, with_last_run: bool = False) -> dict[str, ContextState]:
    """Return the inputs of a job: the contexts of its head, and those of its last run where the head may lack some.

    A job that was reset has no context until it runs again, although it is then furthest behind its upstreams.
    `with_last_run` reads that run in any case: a context that never had anything to read is not on the head.
    """
    contexts = dict(head.contexts)
    last = store.committed_run(job, head.run_number) if head.run_number and (with_last_run or head.epoch > 1) else None
    if last is not None:
        planned = {ctx: ContextState(entry.kind, entry.fingerprint, last.key) for ctx, entry in last.plans.items()}
        left = {ctx: state for ctx, state in {**planned, **last.contexts}.items() if ctx not in names_now(contexts)}
        contexts = {**left, **contexts}
    return {ctx: state for ctx, state in contexts.items() if ctx != STATE_CONTEXT}


def _reads_of(
    store: BookmarkStore, heads: Mapping[str, Head]
) -> tuple[dict[str, dict[str, ContextState]], dict[str, BookmarkError]]:
    """Return the inputs of jobs, and why those can't be read that may have more: their last run is damaged."""
    reads: dict[str, dict[str, ContextState]] = {}
    hidden: dict[str, BookmarkError] = {}
    for job, head in heads.items():
        try:
            reads[job] = _contexts(store, job, head)
        except StateCorruptError as error:
            reads[job] = {ctx: state for ctx, state in head.contexts.items() if ctx != STATE_CONTEXT}
            hidden[job] = error
    return reads, hidden


def upstreams_in(contexts: Mapping[str, ContextState]) -> set[str]:
    """Return the jobs that contexts read."""
    return {name for state in contexts.values() if (name := upstream_of(state)) is not None}


def _contexts_of(contexts: Mapping[str, ContextState], upstream: str) -> tuple[str, ...]:
    reading = [ctx for ctx, state in contexts.items() if upstream_of(state) == upstream]
    return tuple(sorted(reading))


# ---- behind a job


class _Windows:
    """The last committed runs of consumers, read once for all sources of each."""

    def __init__(self, looked: Neighbours) -> None:
        self._looked = looked
        self._runs: dict[str, list[Run]] = {}

    def runs(self, job: str) -> list[Run]:
        """Return the last committed runs of a job, oldest first, whether or not they were undone since."""
        if job not in self._runs:
            found: list[Run] = []
            for run in self._looked.store.runs(job, until=self._looked.heads[job].run_number, reverse=True):
                if run.state.is_committed:
                    found.append(run)
                if len(found) == WINDOW:
                    break
            self._runs[job] = found[::-1]
        return self._runs[job]


def _lag(looked: Neighbours, reader: JobConsumer, windows: _Windows) -> Lag:
    head, edge = looked.heads.get(reader.upstream), reader.edge
    known = (reader.job, reader.upstream, reader.kind, reader.contexts)
    if reader.upstream in looked.damaged:
        return Lag(*known, LagState.UNKNOWN, why=f"what is stored of {reader.upstream!r} can't be read")
    if head is None:
        return Lag(*known, LagState.UNKNOWN, why=f"there is no bookmark named {reader.upstream!r}")
    if edge is None:
        return Lag(*known, LagState.UNKNOWN, published=head.published, why="how far it has read is not noted any more")
    moved = _moved(looked.store, reader, head, edge)
    if moved is None and head.data_run_number <= edge.run_number:
        return Lag(*known, LagState.OK, edge.run_number, head.published, 0, 0, 0, 0)
    points, unread = _history(looked.store, reader, head, edge, windows.runs(reader.job))
    now, since = looked.store.now(), _published_at(unread[0]) if unread else None
    is_working = looked.heads[reader.job].holder(now) is not None
    state = lag_state(points, len(unread), now, since, is_working=is_working)
    why = _in_words(state, points)
    if moved is not None:
        state, why = moved
    files, size = _written(unread, _outputs(reader, windows.runs(reader.job)))
    waited = 0 if since is None else max(0, int((now - since).total_seconds()))
    numbers = (edge.run_number, head.published, len(unread), files, size, waited)
    return Lag(*known, state, *numbers, why, is_by_upstream=moved is not None)


def _moved(store: BookmarkStore, reader: JobConsumer, head: Head, edge: Edge) -> tuple[LagState, str] | None:
    """Describe what the upstream did to the history that the consumer has read; None: nothing."""
    if edge.epoch != head.epoch:
        target = rewound_below(edge, head, store.lines(reader.upstream))
        if target is not None:
            return LagState.REWOUND, f"{reader.upstream!r} went back to run {target}, and {edge.highest} was read"
    if edge.changes != head.changes:
        replayed = lowest_replayed(store.runs(reader.upstream, until=edge.highest), edge.changes)
        if replayed is not None:
            return LagState.REPLAYED, f"run {replayed.key.number} of {reader.upstream!r} was replayed since it was read"
    return None


def _history(
    store: BookmarkStore, reader: JobConsumer, head: Head, edge: Edge, window: Sequence[Run]
) -> tuple[list[LagPoint], list[Run]]:
    """Return the last commits of a consumer as the rule sees them, and the upstream's runs that it has not read."""
    consumed = _consumed(reader.upstream, edge, window)
    lowest = min([edge.run_number, *consumed])
    living = store.ancestry(reader.upstream, head.epoch)
    published: list[Run] = []
    for run in store.runs(reader.upstream, after=lowest, until=head.run_number):
        if run.state is RunState.COMMITTED and living.has(run):
            break  # a consumer reads no further either
        if run.state is RunState.PUBLISHED and not run.is_empty and living.has(run):
            published.append(run)

    def left(number: int, at: datetime) -> int:
        return sum(run.key.number > number and _published_at(run) <= at for run in published)

    points = [
        LagPoint(from_text(run.committed_at or run.planned_at), number, left(number, from_text(run.planned_at)))
        for run, number in zip(window[len(window) - len(consumed) :], consumed, strict=True)
    ]
    if points and points[-1].consumed != edge.run_number and edge.updated_at is not None:
        # The consumer was taken back since its last run.
        at = from_text(edge.updated_at)
        points = [*points, LagPoint(at, edge.run_number, left(edge.run_number, at))][-WINDOW:]
    return points, [run for run in published if run.key.number > edge.run_number]


def _consumed(upstream: str, edge: Edge, window: Sequence[Run]) -> list[int]:
    """Return up to which run each run of the window, from the first that tells, had read the upstream.

    A run that did not read it leaves it where it was.
    """
    if not any(upstream in run.edges for run in window):
        return [edge.run_number] * len(window)
    numbers: list[int] = []
    for run in window:
        if upstream in run.edges:
            numbers.append(run.edges[upstream]["run_number"])
        elif numbers:
            numbers.append(numbers[-1])
    return numbers


def _published_at(run: Run) -> datetime:
    # A replayed run counts from its replay's commit: it publishes anew.
    at = run.published_at if run.revision == 0 else run.committed_at
    return from_text(at or run.planned_at)


def _outputs(reader: JobConsumer, window: Sequence[Run]) -> frozenset[str]:
    """Return the outputs of the upstream that a job reads, according to its last runs; none: all."""
    reads = (run.measured(ctx) for run in window for ctx in reader.contexts)
    windows = (None if read is None else read.plan.upstream for read in reads)
    return frozenset(window.output for window in windows if window is not None and window.output)


def _written(runs: Iterable[Run], outputs: frozenset[str]) -> tuple[int | None, int | None]:
    read = [entry.metadata for run in runs for name, entry in run.outputs.items() if not outputs or name in outputs]
    return sum_of(each.files for each in read), sum_of(each.bytes for each in read)


def _in_words(state: LagState, points: Sequence[LagPoint]) -> str | None:
    last = points[-1].at.isoformat(timespec="seconds") if points else ""
    return {
        LagState.STOPPED: f"its last run committed at {last}, longer ago than its last {len(points)} runs took",
        LagState.REWOUND: "it was taken back itself, and has not read again what it had read",
        LagState.STALLED: f"its last {len(points)} runs committed and read nothing of it",
        LagState.LAGGING: f"each of its last {len(points)} runs left as much unread as the one before, or more",
    }.get(state)


# ---- behind folders


def _lags_of_sources(store: BookmarkStore, job: str) -> list[Lag]:
    found = pending(store, job)
    contexts = [context for context in found.contexts if not reads_jobs(context.kind)]
    # A job with unknown inputs does not count as one that keeps up.
    rows = [] if found.unknown is None else [Lag(job, "", "", (), LagState.UNKNOWN, why=found.unknown)]
    if not contexts:
        return rows
    head = store.head(job)
    window = _Windows(Neighbours(store, (job,), {job: head}, {})).runs(job)
    is_working = found.holder is not None
    return [*rows, *(_lag_of_source(job, context, window, found.looked_at, is_working) for context in contexts)]


def _lag_of_source(job: str, context: PendingContext, window: Sequence[Run], now: datetime, is_working: bool) -> Lag:
    """Return the lag behind folders. A run takes everything that is there, so it leaves no lag; the time of a file is a
    hint, so `seconds` is one too.
    """
    known = (job, context.source, context.kind, (context.ctx,))
    if context.plan is None:
        return replace(Lag(*known, LagState.UNKNOWN, why=context.unknown), **_recorded(context.waiting))
    points = [LagPoint(from_text(run.committed_at or run.planned_at), run.key.number, 0) for run in window]
    amount = context.plan.amount
    unread = int(context.has_input) if amount.count is None else amount.count
    state = lag_state(points, unread, now, context.oldest, is_working=is_working)
    waited = 0 if context.oldest is None else max(0, int((now - context.oldest).total_seconds()))
    found = Lag(*known, state, bytes=amount.bytes, why=_in_words(state, points))
    if amount.unit == FILES:
        return replace(found, files=amount.count, seconds=waited)
    return replace(found, unit=amount.unit, count=amount.count)


def _recorded(waiting: Waiting | None) -> dict[str, Any]:
    if waiting is None:
        return {}
    at = waiting.looked_at
    waited = None if waiting.oldest is None else max(0, int((at - waiting.oldest).total_seconds()))
    known = {"files": waiting.files, "bytes": waiting.bytes, "seconds": waited if waiting.files else 0}
    return {**known, "recorded_by": waiting.run_number, "recorded_at": to_text(at)}
