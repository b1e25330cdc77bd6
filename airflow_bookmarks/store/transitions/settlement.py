"""Transitions of an open run: given up, taken over, or left until a person has said what becomes of it.

abandon   check fence | RUN ABANDONED
adopt     check fence | the old RUN ABANDONED | a RUN of one's own that carries it on
note      check fence | RUN with what was seen of its outputs
settle    HEAD: nobody holds it, or its holder is fenced | RUN with what a person has decided, while it is open | EVENT
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from airflow_bookmarks.core.errors import ConditionFailedError
from airflow_bookmarks.core.run import RunState
from airflow_bookmarks.core.text.instant import to_text
from airflow_bookmarks.store.codec import item
from airflow_bookmarks.store.table import Attributes, Check, Equals, Exists, Lacks, Missing, Operation, Put, Update
from airflow_bookmarks.store.transitions.base import LeaseGrant, Transitions, stamped, transact_once

if TYPE_CHECKING:
    from collections.abc import Mapping

    from airflow_bookmarks.core.head import Head
    from airflow_bookmarks.core.rules.audit import AuditEvent
    from airflow_bookmarks.core.run import OutputEntry, Run
    from airflow_bookmarks.store.codec.item import Keys
    from airflow_bookmarks.store.table import Condition


class SettlementStore(Transitions):
    """The transitions of open runs that another driver has left; part of `BookmarkStore`."""

    def abandon(self, grant: LeaseGrant, run: Run) -> None:
        """Give up an open run: its token is burned by then, and its plan is free again.

        Raises:
            FencedError: the job is not ours any more.
        """
        keys = self.keys(grant.job)
        changes: Attributes = {"state": RunState.ABANDONED.value, "abandoned_by": grant.identity.run_id}
        operations: list[Operation] = [
            Check(keys.head, [Equals("fence", grant.fence)]),
            Update(keys.run(run.key), set=changes, conditions=[Exists()]),
        ]
        self._held(grant, operations, f"abandon run {run.key}")

    def adopt(self, grant: LeaseGrant, run: Run) -> Run:
        """Take over the plan, places and output of an open run whose rows have landed; return the new run item.

        One transaction: the old item becomes ABANDONED, a new one under the own fence carries everything on.

        Raises:
            FencedError: the job is not ours any more.
        """
        keys = self.keys(grant.job)
        adopted = replace(
            run,
            key=grant.key,
            state=RunState.PLANNED,
            epoch=grant.base.epoch,
            run_id=grant.identity.run_id,
            attempt=grant.identity.attempt,
            base_version=grant.base.version,
            fences=(*run.fences, grant.fence),
        )
        new = item.run_attributes(adopted) | {"adopted_from": str(run.key)}
        old: Attributes = {"state": RunState.ABANDONED.value, "adopted_by": str(grant.key)}
        operations: list[Operation] = [
            Check(keys.head, [Equals("fence", grant.fence)]),
            Update(keys.run(run.key), set=old, conditions=[Equals("state", run.state.value)]),
            Update(keys.run(grant.key), set=new, conditions=[Missing()]),
        ]
        try:
            self.table.transact(operations, token=self._token())
        except ConditionFailedError as error:
            found = self.run(grant.job, grant.key)
            if found is None or not grant.has_made(found):
                raise self._fenced(grant, f"take over run {run.key}") from error
        return adopted

    def note_outputs(self, grant: LeaseGrant, run: Run, outputs: Mapping[str, OutputEntry]) -> None:
        """Store outputs of an open run anew, with what its recovery has seen of them.

        Raises:
            FencedError: the job is not ours any more.
        """
        operations: list[Operation] = [
            Check(self.keys(grant.job).head, [Equals("fence", grant.fence)]),
            Update(
                self.keys(grant.job).run(run.key),
                set=_attributes(outputs),
                conditions=[Equals("state", run.state.value)],
            ),
        ]
        self._held(grant, operations, f"note what has landed of run {run.key}")

    def settle(self, job: str, head: Head, run: Run, outputs: Mapping[str, OutputEntry], event: AuditEvent) -> bool:
        """Store with an open run what a person has decided; False if it is not open any more, or the job moved on.

        No driver works on the run by then: none has begun since `head` was read, and if `head` has a lease, which has
        expired, its holder is fenced.
        """
        keys = self.keys(job)
        trace = keys.event(self.new_id())
        operations: list[Operation] = [
            _without_driver(keys, head),
            Update(keys.run(run.key), set=_attributes(outputs), conditions=[Equals("state", run.state.value)]),
            Put(trace, stamped(self, head, event), [Missing()]),
        ]
        return transact_once(self, trace, operations)


def _without_driver(keys: Keys, head: Head) -> Operation:
    # A begin moves the fence and no version, and its recovery goes by the outputs as it has read them: a decision that
    # came after that would be overwritten, or not be looked at. The holder of an expired lease may be at it still.
    unmoved: list[Condition] = [Equals("version", head.version), Equals("fence", head.fence)]
    if head.lease is None:
        return Check(keys.head, [*unmoved, Lacks("lease_nonce")])
    unmoved += [Equals("lease_nonce", head.lease.nonce), Equals("lease_until", to_text(head.lease.expires_at))]
    return Update(keys.head, set={"fence": head.fence + 1}, remove=item.LEASE_ATTRIBUTES, conditions=unmoved)


def _attributes(outputs: Mapping[str, OutputEntry]) -> Attributes:
    attributes: Attributes = {}
    for name, entry in outputs.items():
        attributes |= item.output_attribute(name, entry)
    return attributes
