"""Transitions of a replay: a published run gets another revision, and nothing else of the job moves."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from airflow_bookmarks.core.errors import ConditionFailedError
from airflow_bookmarks.core.run import RunState
from airflow_bookmarks.core.text.instant import to_text
from airflow_bookmarks.store.codec import item
from airflow_bookmarks.store.table import Attributes, Check, Equals, Exists, Operation, Update
from airflow_bookmarks.store.transitions.base import LeaseGrant, Transitions, commit_conditions

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from airflow_bookmarks.core.run import OutputEntry, Run


class ReplayStore(Transitions):
    """The transitions of a replay; part of `BookmarkStore`."""

    def add_staging(self, grant: LeaseGrant, staging: Sequence[str]) -> None:
        """Store the roots under which a replay stages, before its first byte is written; they hold its fence's places.

        Raises:
            FencedError: the job is not ours any more; nothing was written.
        """
        conditions = [Equals("fence", grant.fence)]
        head = Update(self.keys(grant.job).head, set={"staging": list(staging)}, conditions=conditions)
        self._held(grant, [head], "store where it stages")

    def end_replay(self, grant: LeaseGrant, run: Run) -> None:
        """Release the lease after the replay of an empty run: it published nothing, so there is nothing to replace.

        Raises:
            FencedError: the job is not ours any more.
        """
        keys = self.keys(grant.job)
        operations = [
            Update(keys.head, remove=item.LEASE_ATTRIBUTES, conditions=[Equals("fence", grant.fence)]),
            Update(
                keys.execution(grant.identity.run_id),
                set={"finished": True} | (_as_its_own(run) if grant.first_run is None else {}),
                remove=["replaying"],
            ),
        ]
        self._held(grant, operations, "end the replay")

    def commit_replay(self, grant: LeaseGrant, run: Run, outputs: Mapping[str, OutputEntry]) -> Run:
        """Give a published run another revision, whose publish is then due; return the run as it is then.

        Position, version, run number and every other run stay as they are. The event of it names no attribute that
        only changes by people have, which the policies of jobs refuse; `StateReader.events` returns it as any other.

        Raises:
            FencedError: the job is not ours any more. ChangedMeanwhileError: its version moved. Nothing was written.
        """
        keys, now = self.keys(grant.job), to_text(self._clock())
        changes = grant.base.changes + 1
        after = replace(
            run,
            state=RunState.COMMITTED,
            revision=run.revision + 1,
            changes=changes,
            fences=(*run.fences, grant.fence),
            outputs=outputs,
            replayed_by=grant.identity.run_id,
        )
        update: Attributes = {"state": after.state.value, "revision": after.revision, "changes": changes}
        update |= {"fences": list(after.fences), "replayed_by": after.replayed_by, "replayed_at": now}
        for name, output in outputs.items():
            update |= item.output_attribute(name, output)
        event: Attributes = {"run": str(run.key), "revision": after.revision, "version_before": grant.base.version}
        event |= {"replayed_by": after.replayed_by, "replayed_at": now}
        operations: list[Operation] = [
            Update(
                keys.head,
                set={"publishing": str(run.key), "changes": changes},
                conditions=commit_conditions(grant),
            ),
            Update(
                keys.run(run.key),
                set=update,
                conditions=[Equals("state", RunState.PUBLISHED.value), Equals("revision", run.revision)],
            ),
            # The execution that made the run knows it already, unless its item was collected meanwhile.
            Update(keys.execution(grant.identity.run_id), set=_as_its_own(run))
            if grant.identity.run_id != run.run_id or grant.first_run is None
            else Check(keys.execution(run.run_id), [Exists()]),
            Update(keys.event(self.new_id()), set=event),
        ]
        try:
            self.table.transact(operations, token=self._token())
        except ConditionFailedError as error:
            found = self.run(grant.job, run.key)
            is_own = found is not None and found.replayed_by == grant.identity.run_id
            if found is None or not is_own or grant.fence not in found.fences:
                raise self._unchanged(grant, "commit the replay") from error
        return after


def _as_its_own(run: Run) -> Attributes:
    """Return what an execution that has replayed a run notes: a cleared task replays that run again."""
    return {"first_run": run.key.number, "last_run": run.key.number}
