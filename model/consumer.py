"""A second, smaller model: a consumer reads the runs of an upstream that goes on, is rewound and is replayed.

`policy` is the consumer's `on_rewind`: "rewind" goes back before the lowest run that changed, "ignore" takes
note and goes on.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from model.ending import Ending
from model.search import Result, explore

Revision = tuple[int, int | str]  # run number, and which revision was read
Revisions = tuple[Revision, ...]
TORN = "torn"  # read while a replay replaced it

_COMMITS, _REWINDS, _REPLAYS = 3, 1, 2


class UpstreamRun(NamedTuple):
    """A run of the upstream: COMMITTED (its publish is due), PUBLISHED or UNDONE."""

    number: int
    epoch: int
    state: str
    revision: int


class Upstream(NamedTuple):
    """The upstream's head and runs."""

    epoch: int = 1
    changes: int = 0
    runs: tuple[UpstreamRun, ...] = ()


class Edge(NamedTuple):
    """How far the consumer has come, and the epoch and change count that it has seen."""

    number: int = 0
    epoch: int = 1
    changes: int = 0


class Consumer(NamedTuple):
    """The consumer: its plan with the numbers seen at plan, its edge, and what it has read and kept."""

    plan: Revisions | None = None
    changes: int = 0
    epoch: int = 0
    edge: Edge = Edge()
    kept: frozenset[Revision] = frozenset()


class ConsumerState(NamedTuple):
    """All of it, with what is yet to happen."""

    upstream: Upstream = Upstream()
    consumer: Consumer = Consumer()
    commits: int = _COMMITS
    rewinds: int = _REWINDS
    replays: int = _REPLAYS


class ConsumerModel:
    """The moves of upstream and consumer under a policy, without some of the rules."""

    def __init__(self, policy: str, without: frozenset[str]) -> None:
        self._policy = policy
        self._without = without

    def _keeps(self, rule: str) -> bool:
        return rule not in self._without

    def successors(self, state: ConsumerState) -> Iterator[tuple[str, ConsumerState]]:
        """Return what may happen next."""
        yield from self._upstream_moves(state)
        yield from self._consumer_moves(state)

    # ---- the upstream

    def _upstream_moves(self, state: ConsumerState) -> Iterator[tuple[str, ConsumerState]]:
        upstream = state.upstream
        last = max((run.number for run in upstream.runs), default=0)
        is_due = any(run.state == "COMMITTED" for run in upstream.runs)
        if state.commits and not is_due:
            run = UpstreamRun(last + 1, upstream.epoch, "COMMITTED", 0)
            committed = upstream._replace(runs=(*upstream.runs, run))
            yield f"upstream commits run {run.number}", state._replace(upstream=committed, commits=state.commits - 1)
        for run in upstream.runs:
            if run.state == "COMMITTED":
                published = _with_run(upstream, run._replace(state="PUBLISHED"))
                label = f"upstream publishes run {run.number} revision {run.revision}"
                yield label, state._replace(upstream=published)
            elif run.state == "PUBLISHED" and state.replays and not is_due:
                yield self._replay(state, run)
        if state.rewinds:
            yield from (_rewind(state, target) for target in range(last))

    def _replay(self, state: ConsumerState, run: UpstreamRun) -> tuple[str, ConsumerState]:
        replayed = run._replace(state="COMMITTED", revision=run.revision + 1)
        upstream = _with_run(state.upstream, replayed)
        upstream = upstream._replace(changes=upstream.changes + self._keeps("c_count"))
        label = f"upstream replays run {run.number}: revision {replayed.revision} committed"
        return label, state._replace(upstream=upstream, replays=state.replays - 1)

    # ---- the consumer

    def _consumer_moves(self, state: ConsumerState) -> Iterator[tuple[str, ConsumerState]]:
        consumer = state.consumer
        if consumer.plan is not None:
            yield self._read(state, consumer.plan)
            return
        told = self._told(state.upstream, consumer)
        if told != consumer:
            yield "consumer is told", state._replace(consumer=told)
            return
        plan = self._window(state.upstream, consumer.edge)
        if plan:
            planned = consumer._replace(plan=plan, changes=state.upstream.changes, epoch=state.upstream.epoch)
            yield f"consumer plans (run, revision) {plan}", state._replace(consumer=planned)

    def _window(self, upstream: Upstream, edge: Edge) -> Revisions:
        """Return the published runs above the edge, up to the first whose publish is due."""
        window = []
        for run in sorted(upstream.runs):
            if run.number <= edge.number:
                continue
            if run.state == "COMMITTED" and self._keeps("c_stop"):
                break
            if run.state == "PUBLISHED":
                window.append((run.number, run.revision))
        return tuple(window)

    def _told(self, upstream: Upstream, consumer: Consumer) -> Consumer:
        """Return the consumer after it has seen what changed at or below its edge."""
        edge, kept = consumer.edge, consumer.kept
        if (edge.epoch, edge.changes) == (upstream.epoch, upstream.changes):
            return consumer
        changed = [run.number for run in upstream.runs if run.number <= edge.number and _has_changed(run, kept)]
        if not changed or self._policy == "ignore":
            ignored = {run.number for run in upstream.runs if run.state == "UNDONE" and self._policy == "ignore"}
            noted = Edge(edge.number, upstream.epoch, upstream.changes)
            return Consumer(edge=noted, kept=frozenset(each for each in kept if each[0] not in ignored))
        lowest = min(changed)
        back = Edge(lowest - 1, upstream.epoch, upstream.changes)
        return Consumer(edge=back, kept=frozenset(each for each in kept if each[0] < lowest))

    def _read(self, state: ConsumerState, plan: Revisions) -> tuple[str, ConsumerState]:
        """Read what was planned, look at the revisions again, and commit with the numbers seen at plan."""
        upstream, consumer = state.upstream, state.consumer
        runs = {run.number: run for run in upstream.runs}
        seen = tuple((number, _revision_read(runs[number], revision)) for number, revision in plan)
        if seen != plan and self._keeps("c_recheck"):
            given_up = Consumer(edge=consumer.edge, kept=consumer.kept)
            return "consumer sees that a planned run changed: gives up", state._replace(consumer=given_up)
        numbers = consumer if self._keeps("c_edge") else upstream
        edge = Edge(max(number for number, _ in seen), numbers.epoch, numbers.changes)
        read = Consumer(edge=edge, kept=consumer.kept | frozenset(seen))
        return f"consumer reads {list(seen)} and commits", state._replace(consumer=read)

    # ---- the ending

    def judge(self, state: ConsumerState) -> Ending:
        """Let the upstream publish what is due and the consumer run alone, and judge what it has."""
        runs = tuple(
            run._replace(state="PUBLISHED") if run.state == "COMMITTED" else run for run in state.upstream.runs
        )
        upstream = state.upstream._replace(runs=runs)
        consumer = self._told(upstream, Consumer(edge=state.consumer.edge, kept=state.consumer.kept))
        kept = consumer.kept | frozenset(self._window(upstream, consumer.edge))
        violation = next((wrong for run in runs if (wrong := self._violation(run, kept))), None)
        return Ending(violation, ("upstream publishes what is due, the consumer runs alone",))

    def _violation(self, run: UpstreamRun, kept: frozenset[Revision]) -> str | None:
        own = [each for each in kept if each[0] == run.number]
        if run.state == "UNDONE":
            return f"consumer keeps rows of undone run {run.number} and is never told" if own else None
        if len(own) != 1:
            return f"run {run.number} read {len(own)} times"
        revision = own[0][1]
        if revision == TORN:
            return f"run {run.number}: a half-replaced output was read and kept"
        if self._policy == "rewind" and revision != run.revision:
            return f"consumer keeps revision {revision} of run {run.number}, is never told of {run.revision}"
        return None


def _with_run(upstream: Upstream, run: UpstreamRun) -> Upstream:
    return upstream._replace(runs=tuple(run if each.number == run.number else each for each in upstream.runs))


def _rewind(state: ConsumerState, target: int) -> tuple[str, ConsumerState]:
    upstream = state.upstream
    runs = tuple(run if run.number <= target else run._replace(state="UNDONE") for run in upstream.runs)
    rewound = upstream._replace(epoch=upstream.epoch + 1, runs=runs)
    return f"upstream rewinds to run {target}", state._replace(upstream=rewound, rewinds=0)


def _has_changed(run: UpstreamRun, kept: frozenset[Revision]) -> bool:
    return run.state == "UNDONE" or (run.number, run.revision) not in kept


def _revision_read(run: UpstreamRun, planned: int | str) -> int | str:
    if run.revision == planned:
        return planned
    return run.revision if run.state == "PUBLISHED" else TORN


def search_consumer(policy: str, without: frozenset[str] = frozenset(), name: str | None = None) -> Result:
    """Search the model of a consumer."""
    model = ConsumerModel(policy, without)
    return explore(name or f"consumer, policy {policy}", ConsumerState(), model.successors, model.judge, lambda: 0)
