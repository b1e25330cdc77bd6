"""Transitions that start a line: reset, rewind, set and undo."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from airflow_bookmarks.core.errors import ChangeRefusedError, ConditionFailedError
from airflow_bookmarks.core.head import Move
from airflow_bookmarks.core.run import RunState
from airflow_bookmarks.core.text.instant import from_text, to_text
from airflow_bookmarks.core.timeline import Timeline, TimelineChange
from airflow_bookmarks.store.codec import item
from airflow_bookmarks.store.table import MAX_OPERATIONS, Attributes, Equals, Missing, Operation, Put, Update
from airflow_bookmarks.store.transitions.approval import carried_out, still_approved
from airflow_bookmarks.store.transitions.base import LeaseGrant, Transitions, protected_as, same_state

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from airflow_bookmarks.core.head import Head
    from airflow_bookmarks.core.position import Edge
    from airflow_bookmarks.core.rules.audit import AuditEvent
    from airflow_bookmarks.core.run import ContextState, Payload, Run, RunKey


@dataclass(frozen=True, slots=True)
class TimelineSwitch:
    """The start of a line.

    `kept` is the last run that is kept of the `parent` line (None: of the present one; 0: no run). `contexts` and
    `data_run_number` are the state as it is then, `positions` what of it is new, `publishing` what stays due, `edges`
    those that move. `cleaning` lists what is to be removed, and `abandoned` the open runs that go with it.
    `bodies` are the blobs that all this refers to, and `check` proves what else the switch relies on. `request_id` is
    the approved request that this carries out.
    """

    kind: str
    kept: int
    contexts: Mapping[str, ContextState]
    data_run_number: int
    publishing: RunKey | None
    edges: Mapping[str, Edge]
    event: AuditEvent
    parent: int | None = None
    positions: Mapping[str, Payload] = field(default_factory=dict)
    cleaning: Payload | None = None
    abandoned: Sequence[Run] = ()
    bodies: Sequence[bytes] = ()
    check: Operation | None = None
    request_id: str | None = None


class TimelineTransitions(Transitions):
    """The transitions that start a line, and the one that breaks a lease; part of `BookmarkStore`."""

    def begin_timeline(
        self, job: str, seen: Head, switch: TimelineSwitch, *, keep: LeaseGrant | None = None
    ) -> Head | None:
        """Start a line: epoch, fence and version grow, positions become those that `switch` names.

        One transaction. Return the head after it, None if the job moved since `seen`. The lease is removed, unless
        `keep` names the driver that does this within its own run: its lease then goes on under the new fence.

        Raises:
            ChangeRefusedError: it is more than one transaction holds. Nothing was changed.
        """
        for body in switch.bodies:
            self.blobs.put(body)
        keys, now = self.keys(job), to_text(self._clock())
        event = keys.event(self.new_id())
        parent = seen.epoch if switch.parent is None else switch.parent
        line = Timeline(seen.epoch + 1, parent, switch.kept, seen.run_number)
        after = replace(
            seen,
            version=seen.version + 1,
            epoch=line.epoch,
            fence=seen.fence + 1,
            contexts=switch.contexts,
            data_run_number=switch.data_run_number,
            publishing=switch.publishing,
            cleaning=switch.cleaning or seen.cleaning,
            lease=seen.lease if keep else None,
            move=Move(switch.kind, from_text(now), seen.version + 1),
        )
        line_change = _turning(seen, after, line, switch)
        operations: list[Operation] = [
            self._head_update(job, seen, after, keep),
            Update(keys.line(line.epoch), set=item.line_change_attributes(line_change), conditions=[Missing()]),
            Update(event, set={**switch.event, "kind": switch.kind, "at": now, "epoch_after": after.epoch}),
        ]
        operations += [
            Update(self.keys(upstream).edge(job), set=item.edge_attributes(replace(edge, updated_at=now)))
            for upstream, edge in switch.edges.items()
        ]
        operations += [
            Update(
                keys.run(run.key),
                set={"state": RunState.ABANDONED.value, "abandoned_by": f"{switch.kind} (epoch {after.epoch})"},
                conditions=[Equals("state", run.state.value)],
            )
            for run in switch.abandoned
        ]
        operations += [] if switch.check is None else [switch.check]
        operations += carried_out(self, job, switch.request_id)
        operations += [self.blobs.proof(body) for body in dict.fromkeys(switch.bodies)]
        _check_room(job, switch, operations)
        try:
            self.table.transact(operations, token=self._token())
        except ConditionFailedError:
            if event not in self.table.get([event]):  # it is there if only the reply was lost
                return None
        return after

    def _head_update(self, job: str, seen: Head, after: Head, keep: LeaseGrant | None) -> Update:
        changes: Attributes = {"version": after.version, "epoch": after.epoch, "fence": after.fence}
        changes |= {"contexts": item.contexts_value(after.contexts), "data_run_number": after.data_run_number}
        changes |= {} if after.move is None else item.move_attribute(after.move)
        if after.publishing is not None:
            changes["publishing"] = str(after.publishing)
        if after.cleaning is not None:
            changes["cleaning"] = item.payload_value(after.cleaning)
        remove = [] if keep else list(item.LEASE_ATTRIBUTES)
        remove += [] if after.publishing else ["publishing"]
        conditions = same_state(seen)
        if keep is None:  # what a run does within itself needs no approval
            conditions.append(protected_as(seen))
        return Update(self.keys(job).head, set=changes, remove=remove, conditions=conditions)

    def break_lease(self, job: str, seen: Head, event: AuditEvent, *, request_id: str | None = None) -> Head | None:
        """Fence the holder of a job, and free it; None if the job moved since `seen`.

        Nothing else changes: the open run stays, and the next run settles it. `request_id` is an approved request that
        this prepares.
        """
        keys = self.keys(job)
        key = keys.event(self.new_id())
        after = replace(seen, fence=seen.fence + 1, lease=None)
        # A change prepared before the job was protected is refused, and must not have fenced a run by then.
        conditions = [Equals("fence", seen.fence), protected_as(seen)]
        operations: list[Operation] = [
            Update(keys.head, set={"fence": after.fence}, remove=item.LEASE_ATTRIBUTES, conditions=conditions),
            Put(key, {**event, "at": to_text(self._clock()), "version_before": seen.version}),
            *still_approved(self, job, request_id),
        ]
        try:
            self.table.transact(operations, token=self._token())
        except ConditionFailedError:
            if key not in self.table.get([key]):
                return None
        return after

    def note_clean(self, grant: LeaseGrant) -> LeaseGrant:
        """Record that what undone runs staged and published is removed.

        Raises:
            FencedError: the job is not ours any more; whoever took it over does the cleaning again.
        """
        head = Update(self.keys(grant.job).head, remove=["cleaning"], conditions=[Equals("fence", grant.fence)])
        self._held(grant, [head], "note that the clean is done")
        return replace(grant, base=replace(grant.base, cleaning=None))


def _check_room(job: str, switch: TimelineSwitch, operations: Sequence[Operation]) -> None:
    # Only of a job that an earlier version let read more upstream jobs, or of one with very many open runs.
    if len(operations) > MAX_OPERATIONS:
        raise ChangeRefusedError(
            f"job {job!r}: this {switch.kind} takes {len(operations)} writes at once (one for each of the "
            f"{len(switch.edges)} upstream jobs whose contexts it moves, one for each of {len(switch.abandoned)} open "
            f"runs), and a DynamoDB transaction holds {MAX_OPERATIONS}. Nothing was changed. Reset or rewind some of "
            "the contexts at a time, by name (--ctx), which takes no clean."
        )


def _turning(seen: Head, after: Head, line: Timeline, switch: TimelineSwitch) -> TimelineChange:
    dropped = seen.publishing if seen.publishing != after.publishing else None
    return TimelineChange(
        line,
        switch.kind,
        after.fence,
        seen.contexts,
        seen.data_run_number,
        dropped,
        switch.cleaning is not None,
        switch.positions,
    )
