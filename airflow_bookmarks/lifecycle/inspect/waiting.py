"""Evaluate many wait conditions in a few batched reads.

Each wait names the items that it needs; all of these are read in batches of a hundred, and runs are read only for a
wait whose job moved.

    wait 1   HEAD up, edge up -> down ---+                    +--> nothing new
    wait 2   HEAD up, execution of up ---+--> one batch get --+--> finished: read its last run
    wait 3   HEAD other -----------------+                    +--> not there yet
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeAlias

from airflow_bookmarks.core.errors import BookmarkError, NameInvalidError, OptionError, StateCorruptError
from airflow_bookmarks.core.job import airflow_run_id, check_run_id
from airflow_bookmarks.core.position import Edge, lowest_replayed
from airflow_bookmarks.core.rules.condition import (
    UNKNOWN,
    Condition,
    DagRunDone,
    LogicalDateDone,
    NewsFor,
    NewsSince,
    RunReached,
    Verdict,
    WatermarkReached,
    check_wanted,
    dag_run_done,
    logical_date_done,
    newest_published,
    news_for_consumer,
    news_since,
    rewound_below,
    run_reached,
    unreached_by_head,
    watermark_reached,
)
from airflow_bookmarks.core.timeline import Ancestry
from airflow_bookmarks.lifecycle.inspect.wait import Wait, WaitAnswer, WaitStatus
from airflow_bookmarks.lifecycle.state.summary import Summary
from airflow_bookmarks.store.codec import item
from airflow_bookmarks.store.stored_item import ItemKey, StoredItem
from airflow_bookmarks.store.transitions.base import ALIAS_OF
from airflow_bookmarks.store.transitions.naming import alias_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from airflow_bookmarks.core.head import Head
    from airflow_bookmarks.core.run import Execution, Run
    from airflow_bookmarks.store.bookmark_store import BookmarkStore

NAMES_KEPT_S = 60.0
_FEW = 4  # runs read at first when the newest one is looked for; nearly always that is the first

_Items: TypeAlias = Mapping[ItemKey, StoredItem]
_Reading: TypeAlias = Generator[Sequence[ItemKey], _Items, "WaitStatus"]


@dataclass(slots=True)
class Memory:
    """What a poller remembers between polls, so that polling jobs that did not move reads items once.

    It never hides a change: what a verdict was drawn from is compared with what the table says now. Only names are
    trusted without a read, for `names_kept_s` seconds, since a job can be renamed.
    """

    names_kept_s: float = NAMES_KEPT_S
    monotonic: Callable[[], float] = time.monotonic
    knows_layout: bool = False
    names: dict[str, str] = field(default_factory=dict)
    names_since: float = 0.0
    makers: dict[str, tuple[int, _Maker | None]] = field(default_factory=dict)
    executions: dict[str, tuple[Head, list[Execution]]] = field(default_factory=dict)
    standings: dict[tuple[str, Condition], tuple[object, WaitStatus]] = field(default_factory=dict)

    def forget_old_names(self) -> None:
        """Forget which jobs the names mean if that was read too long ago."""
        now = self.monotonic()
        if now - self.names_since >= self.names_kept_s:
            self.names.clear()
            self.names_since = now

    def keep_only(self, asked: set[tuple[str, Condition]]) -> None:
        """Forget what no wait asks for any more."""
        jobs = {self.names.get(name, name) for name, _ in asked}
        self.standings = {key: value for key, value in self.standings.items() if key in asked}
        self.makers = {job: value for job, value in self.makers.items() if job in jobs}
        self.executions = {job: value for job, value in self.executions.items() if job in jobs}


@dataclass(frozen=True, slots=True)
class _Maker:
    """The task and DAG that make a job."""

    dag_id: str
    task_id: str
    map_index: int

    def run_id(self, dag_run_id: str) -> str:
        return check_run_id(airflow_run_id(self.dag_id, dag_run_id, self.task_id, self.map_index))


def evaluate(store: BookmarkStore, waits: Sequence[Wait], memory: Memory | None = None) -> list[WaitAnswer]:
    """Answer all of `waits`, in their order, by consistent reads that they share.

    200 waits for consumers on 200 jobs that did not move cost four requests: their heads and edges, in batches of a
    hundred; waits of other kinds cost fewer. A wait whose job moved costs one or two more queries.

    Args:
        memory: what to remember between looks; a look without one reads names and layout anew.

    Raises:
        StoreUnavailableError, StoreAccessError, TableMissingError, TableLayoutError: none was answered. What is wrong
            with one wait alone is the `error` of its answer.
    """
    memory = memory or Memory()
    if not memory.knows_layout:
        store.check_layout()
        memory.knows_layout = True
    memory.forget_old_names()
    asked = list(dict.fromkeys((job, wait.condition) for wait in waits for job in wait.jobs))
    found = dict(zip(asked, _together(store, [_StateRead(store, memory, *one).read() for one in asked]), strict=True))
    memory.keep_only(set(asked))
    return [_answer(wait, [found[job, wait.condition] for job in wait.jobs]) for wait in waits]


def _answer(wait: Wait, found: Sequence[WaitStatus | BookmarkError]) -> WaitAnswer:
    errors = [one for one in found if isinstance(one, BookmarkError)]
    if errors:
        return WaitAnswer(wait, error=errors[0])
    return WaitAnswer(wait, tuple(one for one in found if isinstance(one, WaitStatus)))


def _together(store: BookmarkStore, readings: Sequence[_Reading]) -> list[WaitStatus | BookmarkError]:
    """Run all readings in step: what they need next is read together."""
    ended: dict[int, WaitStatus | BookmarkError] = {}
    needed = _step(readings, dict.fromkeys(range(len(readings))), ended)
    while needed:
        keys = list(dict.fromkeys(key for wanted in needed.values() for key in wanted))
        found = store.items(keys)
        needed = _step(readings, dict.fromkeys(needed, found), ended)
    return [ended[i] for i in range(len(readings))]


def _step(
    readings: Sequence[_Reading], given: Mapping[int, _Items | None], ended: dict[int, WaitStatus | BookmarkError]
) -> dict[int, Sequence[ItemKey]]:
    needed: dict[int, Sequence[ItemKey]] = {}
    for i, items in given.items():
        try:
            needed[i] = next(readings[i]) if items is None else readings[i].send(items)
        except StopIteration as end:
            ended[i] = end.value
        except (OptionError, NameInvalidError, StateCorruptError) as error:
            # Wrong for this wait alone: the others are answered.
            ended[i] = error
    return needed


@dataclass(frozen=True, slots=True)
class _Seen:
    """A job as one poll found it: its key, its head, and the other item that its condition is about."""

    job: str
    head: Head | None
    other_key: ItemKey | None = None
    other: StoredItem | None = None


class _StateRead:
    """One evaluation of one condition on one job. `read` yields the keys of what it needs, and is sent the items."""

    def __init__(self, store: BookmarkStore, memory: Memory, name: str, condition: Condition) -> None:
        self.store, self.memory, self.name, self.condition = store, memory, name, condition

    def read(self) -> _Reading:
        """Read what the condition is about, and draw the verdict from it, anew only where something moved."""
        match self.condition:
            case NewsFor(consumer):
                key = yield from self._consumer(consumer)
                seen = yield from self._head(lambda job: self.store.keys(job).edge(key))
                if self._is_torn(seen):
                    seen = yield from self._head(lambda job: self.store.keys(job).edge(key))
                return self._standing(seen, lambda head: self._news(consumer, seen, head))
            case DagRunDone(dag_run_id):
                seen = yield from self._head(lambda job: self._execution_key(job, dag_run_id))
                maker = yield from self._maker(seen)
                seen = yield from self._execution(seen, dag_run_id)
                return self._standing(seen, lambda head: self._dag_run(dag_run_id, seen, head, maker))
            case _:
                seen = yield from self._head(lambda job: None)
                if seen.head is None and isinstance(self.condition, WatermarkReached):
                    check_wanted(self.name, self.condition, {})
                return self._standing(seen, lambda head: self._of_head(seen.job, head))

    # ---- items

    def _head(self, other: Callable[[str], ItemKey | None]) -> Generator[Sequence[ItemKey], _Items, _Seen]:
        """Read the head of the job, and with it the item `other` of it."""
        names = self.memory.names
        job = names.get(self.name, self.name)
        while True:
            head_key, other_key = self.store.keys(job).head, other(job)
            found = yield [head_key] if other_key is None else [head_key, other_key]
            attributes = found.get(head_key)
            is_nameless = attributes is None and job not in names
            if is_nameless or (attributes is not None and ALIAS_OF in attributes):
                # There is no such bookmark, or no longer: the name may have been given to another job.
                index = self.store.keys(job).index
                names[job] = alias_of((yield [index]).get(index), job) or job
                if names[job] != job:
                    job = names[self.name] = names[job]
                    continue
            head = None if attributes is None else item.head_of(attributes)
            return _Seen(job, head, other_key, None if other_key is None else found.get(other_key))

    def _is_torn(self, seen: _Seen) -> bool:
        """Whether the head was read before the job went back, and the edge after its consumer had noticed."""
        if seen.head is None or seen.other is None:
            return False
        edge = item.edge_of("", seen.other)
        return edge.epoch > seen.head.epoch or edge.changes > seen.head.changes

    def _consumer(self, name: str) -> Generator[Sequence[ItemKey], _Items, str]:
        names = self.memory.names
        if name not in names:
            index = self.store.keys(name).index
            names[name] = alias_of((yield [index]).get(index), name) or name
        return names[name]

    def _maker(self, seen: _Seen) -> Generator[Sequence[ItemKey], _Items, _Maker | None]:
        """Return the task that makes the job; read again after each commit, which may be that of another task."""
        if seen.head is None:
            return None
        version, maker = self.memory.makers.get(seen.job, (-1, None))
        if version != seen.head.version:
            index = self.store.keys(seen.job).index
            maker = _maker_of((yield [index]).get(index) or {})
            self.memory.makers[seen.job] = (seen.head.version, maker)
        return maker

    def _execution_key(self, job: str, dag_run_id: str) -> ItemKey | None:
        _, maker = self.memory.makers.get(job, (-1, None))
        return None if maker is None else self.store.keys(job).execution(maker.run_id(dag_run_id))

    def _execution(self, seen: _Seen, dag_run_id: str) -> Generator[Sequence[ItemKey], _Items, _Seen]:
        """Read the execution, unless it was read together with the head."""
        key = self._execution_key(seen.job, dag_run_id)
        if key is None or key == seen.other_key:
            return seen
        return replace(seen, other_key=key, other=(yield [key]).get(key))

    # ---- verdicts

    def _standing(self, seen: _Seen, verdict: Callable[[Head], Verdict]) -> WaitStatus:
        if seen.head is None:
            return WaitStatus(self.name, UNKNOWN)
        # The holder of the lease and its expiry do not matter here: the lease is renewed all the time.
        head = replace(seen.head, lease=None)
        what = (seen.job, head, seen.other)
        known, standing = self.memory.standings.get((self.name, self.condition), (None, None))
        if standing is None or known != what:
            standing = self._drawn(seen.job, head, verdict(head))
            self.memory.standings[self.name, self.condition] = (what, standing)
        return standing

    def _drawn(self, job: str, head: Head, verdict: Verdict) -> WaitStatus:
        summary = self._summary(job, head, verdict.run) if verdict.is_met else None
        return WaitStatus(self.name, verdict, summary, _now(head))

    def _summary(self, job: str, head: Head, run: Run | None) -> dict[str, Any]:
        """Return the summary of a run; without one (the job went back to its beginning), that of the job now."""
        if run is not None:
            return Summary.of(run, self.store.namespace, job).as_dict()
        return Summary(job, self.store.namespace, "", "enable", epoch=head.epoch, version=head.version).as_dict()

    def _news(self, consumer: str, seen: _Seen, head: Head) -> Verdict:
        edge = None if seen.other is None else item.edge_of(consumer, seen.other)
        rewound_to = self._rewound(seen.job, edge, head)
        after = 0 if edge is None or rewound_to is not None else edge.run_number
        newest = self._newest(seen.job, head, after=after, with_data=True) if head.data_run_number > after else None
        return news_for_consumer(consumer, head, edge, newest, rewound_to, self._replayed(seen.job, edge, head))

    def _of_head(self, job: str, head: Head) -> Verdict:
        match self.condition:
            case RunReached(number):
                return run_reached(number, head, self._newest(job, head, after=number - 1))
            case WatermarkReached():
                early = unreached_by_head(job, self.condition, head)
                return early or watermark_reached(job, self.condition, head, self._newest(job, head))
            case LogicalDateDone(moment):
                execution = logical_date_done(self._executions(job, head), moment)
                name = f"the run of {moment.isoformat()}" if execution is None else execution.run_id
                return self._done(job, head, name, execution)
            case NewsSince(number, epoch, changes) if number is not None:
                return self._since(job, head, Edge("", number, epoch, changes))
            case _:
                return Verdict(False, f"stands at run {head.published}")

    def _since(self, job: str, head: Head, seen: Edge) -> Verdict:
        rewound_to = self._rewound(job, seen, head)
        new: list[Run] = []
        if min(head.published, head.data_run_number) > seen.run_number:
            living = self._living(job, head)
            runs = self.store.runs(job, after=seen.run_number, until=head.published, reverse=True)
            new = [run for run in runs if newest_published([run], living, with_data=True)]
        newest = new[0] if new else None
        if rewound_to is not None and newest is None:
            newest = self._newest(job, head, with_data=True)
        replayed = self._replayed(job, seen, head)
        return news_since(seen.run_number, head, newest, len(new), rewound_to, replayed)

    def _dag_run(self, dag_run_id: str, seen: _Seen, head: Head, maker: _Maker | None) -> Verdict:
        if maker is None:
            return Verdict(False, "it was not made by a task of a DAG")
        run_id = maker.run_id(dag_run_id)
        execution = None if seen.other is None else item.execution_of(run_id, seen.other)
        return self._done(seen.job, head, run_id, execution)

    def _done(self, job: str, head: Head, run_id: str, execution: Execution | None) -> Verdict:
        last: Run | None = None
        if execution is not None and execution.is_finished and execution.last_run is not None:
            last = self.store.committed_run(job, execution.last_run)
        living = Ancestry.of(1, []) if last is None else self._living(job, head)
        return dag_run_done(run_id, execution, last, living)

    # ---- runs and lines

    def _newest(self, job: str, head: Head, *, after: int = 0, with_data: bool = False) -> Run | None:
        """Return the newest published living run above `after`."""
        until = min(head.published, head.data_run_number) if with_data else head.published
        if until <= after:
            return None
        living = self._living(job, head)
        for limit in (_FEW, None):
            runs = self.store.runs(job, after=after, until=until, reverse=True, limit=limit)
            newest = newest_published(runs, living, with_data=with_data)
            if newest is not None:
                return newest
        return None

    def _living(self, job: str, head: Head) -> Ancestry:
        return self.store.ancestry(job, head.epoch)

    def _rewound(self, job: str, edge: Edge | None, head: Head) -> int | None:
        if edge is None or edge.epoch == head.epoch:
            return None
        return rewound_below(edge, head, self.store.lines(job))

    def _replayed(self, job: str, edge: Edge | None, head: Head) -> Run | None:
        """Return the lowest run that a consumer has read and that was replayed since."""
        if edge is None or edge.changes == head.changes:
            return None
        return lowest_replayed(self.store.runs(job, until=edge.highest), edge.changes)

    def _executions(self, job: str, head: Head) -> list[Execution]:
        """Return all executions of the job. They can't be found by date, so this reads them all, once for each move of
        the head: a transaction that finishes an execution moves the head too.
        """
        known, executions = self.memory.executions.get(job, (None, []))
        if known != head:
            executions = list(_all_executions(self.store, job))
            self.memory.executions[job] = (head, executions)
        return executions


def _now(head: Head) -> NewsSince:
    """Return the point in history of a reader that has seen everything published."""
    due = head.publishing
    is_replay_due = due is not None and due.number <= head.published
    # The replay is counted from its commit on, and is news from its publish on.
    return NewsSince(head.published, head.epoch, head.changes - 1 if is_replay_due else head.changes)


def _all_executions(store: BookmarkStore, job: str) -> Iterator[Execution]:
    for run_id, attributes in store.execution_items(job):
        yield item.execution_of(run_id, attributes)


def _maker_of(entry: Mapping[str, Any]) -> _Maker | None:
    # A job that was handed over has no task of its owner until a run of that owner has committed.
    if entry.get("dag_id") is None or entry.get("task_id") is None:
        return None
    return _Maker(entry["dag_id"], entry["task_id"], -1 if entry.get("map_index") is None else entry["map_index"])
