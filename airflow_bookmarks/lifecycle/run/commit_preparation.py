"""Gather what a commit is built from: of the run itself, or of one that it has taken over.

    outcome -> store positions, outputs, schemas -> build_commit

What is stored here is referred to by the commit, and by nothing before it.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from airflow_bookmarks.core.errors import MisuseError
from airflow_bookmarks.core.files.file_plan import FilePlan
from airflow_bookmarks.core.job_state import STATE_CONTEXT
from airflow_bookmarks.lifecycle.protocol.recover import STARTS_FROM, STARTS_OVER
from airflow_bookmarks.lifecycle.run.checks.going_on import warn_of_standstill
from airflow_bookmarks.lifecycle.run.commit_builder import ContextOutcome, RunOutcome, StoredBodies, build_commit
from airflow_bookmarks.lifecycle.state.positions import position_at_start
from airflow_bookmarks.sources.registry import is_ours, kind_of, upstream_of, with_order
from airflow_bookmarks.sources.source import PlanInput
from airflow_bookmarks.store.bookmark_store import MAX_JOB_UPSTREAMS, MAX_RUN_BYTES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from airflow_bookmarks.core.plan import Plan
    from airflow_bookmarks.core.position import Position
    from airflow_bookmarks.core.run import Payload, PlanEntry, Run
    from airflow_bookmarks.lifecycle.run.use.inputs import PlannedContext, RunInputs
    from airflow_bookmarks.lifecycle.state.job_state import JobStates
    from airflow_bookmarks.lifecycle.state.positions import ContextReader
    from airflow_bookmarks.lifecycle.state.timing import Stopwatch
    from airflow_bookmarks.store.bookmark_store import BookmarkStore, Commit, LeaseGrant


@dataclass(slots=True)
class ItemBodies:
    """The bodies of one run item: inline while all of them fit together, else blobs.

    `contexts` are the bytes that each planned context will take there, about; `upstreams` are the jobs that they read.
    """

    store: BookmarkStore
    used_bytes: int = 0
    contexts: dict[str, int] = field(default_factory=dict)
    upstreams: set[str] = field(default_factory=set)

    def payloads(self, bodies: Mapping[str, bytes], most_bytes: int | None = None) -> dict[str, Payload]:
        """Return references for more bodies of the item; one above `most_bytes` is a blob in any case."""
        payloads = self.store.payloads(bodies, self.used_bytes, most_bytes=most_bytes)
        self.used_bytes += sum(p.size_bytes for p in payloads.values() if p.inline is not None)
        return payloads

    def add_context(self, grant: LeaseGrant, ctx: str, entry: PlanEntry) -> None:
        """Make sure that the item has room for a context, with those before, when the run is committed.

        Raises:
            MisuseError: it has not, so the run could do all its work and never commit; or the job would read more
                upstream jobs than one change of its bookmark can move.
        """
        size = self.store.context_bytes(grant, ctx, entry)
        others = sum(each for name, each in self.contexts.items() if name != ctx)
        if others + size > MAX_RUN_BYTES:
            raise MisuseError(
                f"job {grant.job!r}: this run reads {len(self.contexts)} contexts, and {ctx!r} has no room beside "
                f"them: what is stored of a run takes {MAX_RUN_BYTES:,} bytes at most, as in DynamoDB. Nothing was "
                f"committed, and nothing of {ctx!r} was read. Divide the contexts among several jobs, or give them "
                "shorter names."
            )
        self._add_upstream(grant, ctx, entry)
        self.contexts[ctx] = size

    def _add_upstream(self, grant: LeaseGrant, ctx: str, entry: PlanEntry) -> None:
        upstream = upstream_of(entry)
        if upstream is None:
            return
        known = {name for state in grant.base.contexts.values() if (name := upstream_of(state)) is not None}
        # One that the job has read already stays: an earlier version allowed some more.
        if upstream not in known and len({*known, *self.upstreams, upstream}) > MAX_JOB_UPSTREAMS:
            raise MisuseError(
                f"job {grant.job!r}: {ctx!r} reads upstream job {upstream!r}, and the contexts of this job read "
                f"{len(known | self.upstreams)} others already; {MAX_JOB_UPSTREAMS} are the most that one DynamoDB "
                "transaction can take back with a reset. Nothing was committed, and nothing of "
                f"{ctx!r} was read. Divide the contexts among several jobs."
            )
        self.upstreams.add(upstream)


@dataclass(frozen=True, slots=True)
class CommitPreparation:
    """What a run that holds the job knows when it commits: its head, `job.state`, its item and its time."""

    grant: LeaseGrant
    reader: ContextReader
    states: JobStates
    bodies: ItemBodies
    stopwatch: Stopwatch

    # ---- the run itself

    def outcome(self, inputs: RunInputs, plans: Mapping[str, Plan]) -> RunOutcome:
        """Return what the run found; `plans` are those of its contexts without what was left out at the last look."""
        contexts = {
            ctx: self._context_outcome(ctx, inputs[ctx], plan, is_read_whole=ctx not in inputs.kept)
            for ctx, plan in plans.items()
        }
        return replace(self._outcome(contexts), left_out=inputs.left_out)

    def store_positions(self, outcome: RunOutcome, inputs: RunInputs) -> dict[str, Payload]:
        """Store the new positions, with that of `job.state`; return what the commit refers to."""
        blobs = self.bodies.store.blobs
        for ctx in outcome.contexts:
            relocated = inputs[ctx].found.moved
            # The commit's position does not hold as its own what a position refers to after a move of files.
            for data in () if relocated is None else relocated.position.blobs.values():
                blobs.put(data)
        return self._store_positions(outcome.moved)

    def store_schemas(self, outcome: RunOutcome, inputs: RunInputs) -> dict[str, Payload]:
        """Store the schemas with which contexts were read; for a context that moved unread, the one before."""
        schemas = {ctx: context.schema for ctx, context in inputs.items()}
        for ctx in outcome.moved:
            if schemas[ctx] is None and inputs[ctx].found.position is not None:
                schemas[ctx] = self.reader.known_schema(ctx)
        return self._store_schemas(schemas)

    def _context_outcome(self, ctx: str, context: PlannedContext, plan: Plan, *, is_read_whole: bool) -> ContextOutcome:
        return ContextOutcome(
            context.source.kind,
            str(context.source.ref()),
            plan,
            self._advanced(ctx, context, plan),
            before=None if context.found.position is None else self.reader.state(ctx),
            greatest=context.greatest,
            rows=context.rows,
            schema_change=context.schema_change,
            is_read_whole=is_read_whole,
            missing=plan.missing if isinstance(plan, FilePlan) else None,
        )

    def _advanced(self, ctx: str, context: PlannedContext, plan: Plan) -> Position | None:
        position = context.advance(plan)
        if position is None and context.found.moved is not None:
            position = context.found.moved.position  # nothing is new, and the place is
        elif position is None and ctx not in self.grant.base.contexts:
            position = position_at_start(context.found, plan)
        stands = None if position is None else with_order(context.source.kind, position)
        if not is_ours(context.source.kind):
            warn_of_standstill(self.grant.job, ctx, context.found, plan, stands)
        return stands

    # ---- a run that was taken over

    def commit_adopted(self, adopted: Run) -> Commit:
        """Return the commit of a run that was taken over, as it was planned; its bodies are stored."""
        if adopted.job_state is not None:
            self.states.restore(self.bodies.store.blobs.get(adopted.job_state.values))
        outcome = self._outcome({ctx: self._adopted_outcome(adopted, ctx) for ctx in adopted.plans})
        goes_on = [ctx for ctx, entry in adopted.plans.items() if not entry.metadata.starts_over]
        stored = StoredBodies(
            positions=self._store_positions(outcome.moved),
            outputs=adopted.outputs,
            # The schemas with which it read died with its driver: those of the run before stay.
            schemas=self._store_schemas({ctx: self.reader.known_schema(ctx) for ctx in goes_on}),
        )
        return build_commit(outcome, stored, is_last=False)

    def _adopted_outcome(self, adopted: Run, ctx: str) -> ContextOutcome:
        entry = adopted.plans[ctx]
        kind, starts_over = kind_of(entry.kind), entry.metadata.starts_over
        plan = kind.decode(self.bodies.store.blobs.get(entry.body))
        gaps = entry.file_metadata.gaps if isinstance(plan, FilePlan) else None
        return ContextOutcome(
            entry.kind,
            entry.fingerprint,
            plan,
            self._adopted_position(adopted, ctx, plan),
            before=None if starts_over else self.reader.state(ctx),
            keeps_column=True,  # the content of its rows died with its driver
            is_read_whole=entry.metadata.on_published is None,
            # Its rows are there: what a version before has let a plan say is no reason to refuse it now.
            stored_stats=None if isinstance(plan, FilePlan) else _stats_of_plan(entry),
            missing=None if gaps is None else gaps.missing,
        )

    def _adopted_position(self, adopted: Run, ctx: str, plan: Any) -> Position | None:
        entry = adopted.plans[ctx]
        found = PlanInput() if entry.metadata.starts_over else self.reader.found(ctx)
        position = kind_of(entry.kind).advance(plan, found)
        try:
            return None if position is None else with_order(entry.kind, position)
        except MisuseError as error:
            raise MisuseError(
                f"job {self.grant.job!r}, context {ctx!r}: the rows of run {adopted.key.number} are there, and it "
                f"can't be committed: {error} The next run of the job then commits it."
            ) from error

    # ---- both

    def _outcome(self, contexts: Mapping[str, ContextOutcome]) -> RunOutcome:
        return RunOutcome(
            self.grant.job,
            self.grant.key,
            self.grant.base.contexts,
            contexts,
            state_changed=self.states.has_changed,
            state_stats=self.states.stats(),
            seconds=self.stopwatch.seconds(),
        )

    def _store_positions(self, moved: Mapping[str, Position]) -> dict[str, Payload]:
        for position in moved.values():
            for data in position.blobs.values():
                self.bodies.store.blobs.put(data)
        stored = self.bodies.payloads({ctx: position.body for ctx, position in moved.items()})
        states = self.states.changed()
        return stored if states is None else stored | self.bodies.payloads({STATE_CONTEXT: states})

    def _store_schemas(self, schemas: Mapping[str, str | None]) -> dict[str, Payload]:
        return self.bodies.payloads({ctx: schema.encode() for ctx, schema in schemas.items() if schema is not None})


def _stats_of_plan(entry: PlanEntry) -> dict[str, Any]:
    """Return what a plan itself said when it was stored, without what its run has added."""
    return {name: value for name, value in entry.stats.items() if name not in (STARTS_FROM, STARTS_OVER)}
