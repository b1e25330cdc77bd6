"""Build what a commit writes from what a run read and wrote: pure, without a store, a source or a clock.

What the run found is in a `RunOutcome`; the bodies of its positions, outputs and schemas are stored before, because the
commit only refers to them.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from airflow_bookmarks.core.job_state import STATE_CONTEXT
from airflow_bookmarks.core.position import Edge, Greatest, state_after
from airflow_bookmarks.core.run import ContextState
from airflow_bookmarks.core.text.count import LEFT_OUT
from airflow_bookmarks.lifecycle.history.timeline_switch import resting_contexts
from airflow_bookmarks.lifecycle.protocol.source_cleanup import IS_READ_WHOLE
from airflow_bookmarks.lifecycle.state.discard import increment_of
from airflow_bookmarks.lifecycle.state.job_state import state_context
from airflow_bookmarks.sources.contract import stats_of
from airflow_bookmarks.store.bookmark_store import Commit

if TYPE_CHECKING:
    from collections.abc import Mapping

    from airflow_bookmarks.core.plan import Plan
    from airflow_bookmarks.core.position import Position
    from airflow_bookmarks.core.rules.emptiness import Increment
    from airflow_bookmarks.core.run import OutputEntry, Payload, RunKey


@dataclass(frozen=True, slots=True)
class ContextOutcome:
    """What a run leaves of one context.

    `position` is where its source leads after `plan` (None: the context stays where it is); `before` is the state that
    the run went on from (None: it started anew). `greatest` was read of the column of the watermark (None: the source
    tells the watermark). `keeps_column`: what was read is not known, so the watermark of a column stays as it was.
    `stored_stats` are those that were stored with a plan of another driver (None: its own are asked). `missing` is how
    many numbers or days the plan found missing (None: nobody looks for them).
    """

    kind: str
    fingerprint: str
    plan: Plan
    position: Position | None
    before: ContextState | None = None
    greatest: Greatest | None = None
    keeps_column: bool = False
    rows: int | None = None
    schema_change: Mapping[str, Any] | None = None
    is_read_whole: bool = True
    stored_stats: Mapping[str, Any] | None = None
    missing: int | None = None

    def state(self, key: RunKey) -> ContextState | None:
        """Return where the context stands once run `key` is committed: where it stood, if the run has not moved it."""
        if self.position is None:
            return None if self.before is None else replace(self.before, missing=self.missing)
        greatest = self.greatest
        if self.keeps_column and self.before is not None and self.before.watermark_column is not None:
            greatest = Greatest(self.before.watermark_column)
        state = ContextState(self.kind, self.fingerprint, key, missing=self.missing)
        return state_after(state, self.position, self.before, greatest)

    def stats(self, watermark_before: str | None) -> dict[str, Any]:
        """Return what the run record says of the context."""
        planned = stats_of(self.plan) if self.stored_stats is None else self.stored_stats
        figures = {**planned, "rows": self.rows, "watermark_before": watermark_before}
        if self.schema_change:
            figures["schema_change"] = self.schema_change
        if not self.is_read_whole:
            figures[IS_READ_WHOLE] = False
        if self.greatest is not None:
            figures |= {"watermark_column": self.greatest.column, "greatest": self.greatest.value}
        return figures


@dataclass(frozen=True, slots=True)
class RunOutcome:
    """What a run found and did, as its commit is about to record it.

    `base` are the contexts of the job before the run. `state_changed` is whether `job.state` is to be stored (None: it
    was not used), `state_stats` what the record says of it; `seconds` is the time that each part took. By step of the
    script, and then by reason, `left_out` counts what a step left out.
    """

    job: str
    key: RunKey
    base: Mapping[str, ContextState]
    contexts: Mapping[str, ContextOutcome]
    state_changed: bool | None = None
    state_stats: Mapping[str, Any] = field(default_factory=dict)
    seconds: Mapping[str, str] = field(default_factory=dict)
    left_out: Mapping[str, Mapping[str, int]] = field(default_factory=dict)

    @property
    def plans(self) -> dict[str, Plan]:
        """The plan of each context."""
        return {ctx: context.plan for ctx, context in self.contexts.items()}

    @property
    def moved(self) -> dict[str, Position]:
        """The new position of each context that has one."""
        return {ctx: c.position for ctx, c in self.contexts.items() if c.position is not None}

    @property
    def increment(self) -> Increment:
        """What the run has found."""
        return increment_of(self.plans, state_changed=self.state_changed)


@dataclass(frozen=True, slots=True)
class StoredBodies:
    """What is stored and referred to by a commit: positions (with that of `job.state`), outputs, schemas."""

    positions: Mapping[str, Payload] = field(default_factory=dict)
    outputs: Mapping[str, OutputEntry] = field(default_factory=dict)
    schemas: Mapping[str, Payload] = field(default_factory=dict)


def build_commit(outcome: RunOutcome, stored: StoredBodies, *, is_last: bool = True, has_item: bool = True) -> Commit:
    """Return what the transaction of a commit writes.

    Args:
        is_last: whether no run of the same execution follows.
        has_item: whether the run item exists, because a plan or place was stored before.
    """
    return Commit(
        contexts=contexts_after(outcome, state_moved=STATE_CONTEXT in stored.positions),
        positions=stored.positions,
        outputs=stored.outputs,
        edges=edges_of(outcome.job, outcome.plans, outcome.base),
        schemas=stored.schemas,
        metrics=_metrics(outcome),
        is_empty=outcome.increment.is_empty(publishes=publishes(stored.outputs)),
        is_last=is_last,
        has_item=has_item,
    )


def contexts_after(outcome: RunOutcome, *, state_moved: bool) -> dict[str, ContextState]:
    """Return where all contexts of the job stand after the run; those that it has not moved stay where they are."""
    contexts = dict(outcome.base)
    for ctx, context in outcome.contexts.items():
        state = context.state(outcome.key)
        if state is not None:
            contexts[ctx] = state
    if state_moved:
        contexts[STATE_CONTEXT] = state_context(outcome.key)
    return contexts


def edges_of(job: str, plans: Mapping[str, Plan], base: Mapping[str, ContextState]) -> dict[str, Edge]:
    """Return what `job` will have consumed of each upstream job that this run read, as seen at plan.

    Contexts of the same upstream that this run did not read (`base`) stay where they are; the edge is at the lowest.
    """
    edges: dict[str, Edge] = {}
    for ctx, plan in plans.items():
        window = plan.edge
        if window is None:
            continue
        other = edges.get(window.job)
        contexts = dict(other.contexts) if other else resting_contexts(window.job, base)
        contexts[ctx] = window.until
        # Two contexts of one upstream may have been planned across a rewind: the older view is the safe one.
        epoch = min(window.epoch, other.epoch) if other else window.epoch
        changes = min(window.changes, other.changes) if other else window.changes
        edges[window.job] = Edge(job, min(contexts.values()), epoch, changes, contexts)
    return edges


def publishes(outputs: Mapping[str, OutputEntry]) -> bool:
    """Whether any output becomes visible; what a sink that commits by itself was given already is."""
    return any(entry.makes_visible for entry in outputs.values())


def is_over_bound(plans: Mapping[str, Plan]) -> bool:
    """Whether a bound has left something of these sources to the next run."""
    return any(plan.has_more for plan in plans.values())


def _metrics(outcome: RunOutcome) -> dict[str, Any]:
    contexts: dict[str, Any] = {}
    for ctx, context in outcome.contexts.items():
        before = outcome.base.get(ctx)
        contexts[ctx] = context.stats(None if before is None else before.watermark)
    left_out = {LEFT_OUT: outcome.left_out} if outcome.left_out else {}
    return {"contexts": contexts, "seconds": outcome.seconds, **left_out, **outcome.state_stats}
