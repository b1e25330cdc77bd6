"""Transitions of the lease: who works on a job, under which fence.

take      HEAD lease, fence + 1 | EXEC attempt
renew     HEAD lease_until
release   HEAD without the lease
fence     HEAD fence + 1, no lease | EXEC killed_attempt: a kill
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from airflow_bookmarks.core.errors import ChangedMeanwhileError, ConditionFailedError
from airflow_bookmarks.core.head import Failure, Head, Lease
from airflow_bookmarks.core.rules.owner import DAG_ID
from airflow_bookmarks.core.text.instant import to_text
from airflow_bookmarks.core.text.redaction import stored_error
from airflow_bookmarks.store.codec import item
from airflow_bookmarks.store.table import Attributes, Condition, Equals, Exists, Lacks, Missing, Operation, Update
from airflow_bookmarks.store.transitions.base import ALIAS_OF, ERROR_ON_HEAD, LeaseGrant, Transitions, same_state

if TYPE_CHECKING:
    from airflow_bookmarks.core.job import RunIdentity
    from airflow_bookmarks.core.run import Execution
    from airflow_bookmarks.store.codec.item import Keys
    from airflow_bookmarks.store.reader import Snapshot

RUN_NUMBER = "run_number"  # of the index item: the last run that was committed
_RACES = 20


class LeaseStore(Transitions):
    """The transitions of the lease; part of `BookmarkStore`."""

    def take(
        self,
        job: str,
        identity: RunIdentity,
        seen: Snapshot,
        lease_for: timedelta,
        *,
        replays: int | None = None,
        owner: str | None = None,
    ) -> LeaseGrant | None:
        """Take the lease under a new fence, if the job is still as `seen`; None if it moved meanwhile.

        The caller has checked `core.head.may_take` before. `replays` names the run that this attempt is to replay: what
        the execution has finished stays finished then. `owner` is the DAG that a job without an owner belongs to from
        now on: binding requires a head without an owner, so only one of two DAGs that take it at once succeeds.
        """
        keys, now = self.keys(job), self._clock()
        base = seen.head or Head()
        nonce = self._token()
        lease = Lease(identity.run_id, identity.attempt, now, now + lease_for, nonce)
        binds = owner if base.owner is None else None
        after = replace(base, fence=base.fence + 1, lease=lease, owner=base.owner or binds)
        operations: list[Operation] = []
        if seen.head is None:
            operations.append(Update(keys.head, set=item.head_attributes(after), conditions=[Missing()]))
            unused: list[Condition] = [Lacks(ALIAS_OF), Lacks(RUN_NUMBER)]  # a lost head is not begun anew
            operations.append(Update(keys.index, set=self._index_base(identity, owner, now), conditions=unused))
        else:
            changes: Attributes = {"fence": after.fence, **item.lease_attributes(lease)}
            if binds is not None:
                changes["owner"] = binds
                operations.append(Update(keys.index, set=_owned_by(binds, identity), conditions=[Exists()]))
            operations.append(Update(keys.head, set=changes, conditions=_same_head(seen.head)))
        operations.append(self._take_execution(keys, identity, seen.execution, base.run_number, nonce, replays))
        try:
            self.table.transact(operations, token=nonce)
        except ConditionFailedError:
            found = self.snapshot(job).head
            if found is None or found.lease is None or found.lease.nonce != nonce:
                return None
        first_run = seen.execution.first_run if seen.execution else None
        return LeaseGrant(job, identity, after.fence, nonce, replace(after, lease=None), now, first_run)

    def _take_execution(
        self,
        keys: Keys,
        identity: RunIdentity,
        seen: Execution | None,
        run_number: int,
        nonce: str,
        replays: int | None,
    ) -> Operation:
        conditions = _same_execution(seen)
        changes: Attributes = {"attempt": identity.attempt, "killed_attempt": seen.killed_attempt if seen else 0}
        changes["taken_nonce"] = nonce
        changes |= {"dag_id": identity.dag_id, "task_id": identity.task_id, "dag_run_id": identity.dag_run_id}
        changes |= {
            "logical_date": identity.logical_date,
            "series": identity.series,
            "taken_at": to_text(self._clock()),
        }
        changes["finished"] = replays is not None and seen is not None and seen.is_finished
        remove = [] if replays is not None else ["replaying"]
        if replays is not None:
            changes["replaying"] = replays
        if seen is None or seen.attempt == 0:
            changes["base_run"] = run_number
        return Update(keys.execution(identity.run_id), set=changes, remove=remove, conditions=conditions)

    def _index_base(self, identity: RunIdentity, owner: str | None, now: datetime) -> Attributes:
        return {**_owned_by(owner, identity), "first_seen_at": to_text(now)}

    def renew(self, grant: LeaseGrant, lease_for: timedelta) -> None:
        """Move the end of the lease.

        Raises:
            FencedError: the job was taken over, or the attempt killed, or the job reset.
        """
        until = to_text(self._clock() + lease_for)
        conditions = [Equals("fence", grant.fence), Equals("lease_nonce", grant.nonce)]
        try:
            self.table.transact([Update(self.keys(grant.job).head, set={"lease_until": until}, conditions=conditions)])
        except ConditionFailedError as error:
            raise self._fenced(grant, "keep the lease") from error

    def release(
        self,
        grant: LeaseGrant,
        error: str | None = None,
        *,
        version: int | None = None,
        exit_code: int | None = None,
    ) -> None:
        """Give the lease back without a run; the head says why, where it is because of an error.

        `version` is that of the head by now; None: as it was taken. `exit_code` is that of the driver, if it is known.

        Raises:
            FencedError: it is not ours any more.
        """
        operation = Update(
            self.keys(grant.job).head,
            set={} if error is None else item.failure_attribute(self._failure(grant, error, version, exit_code)),
            remove=item.LEASE_ATTRIBUTES,
            conditions=[Equals("fence", grant.fence)],
        )
        try:
            self.table.transact([operation], token=self._token())
        except ConditionFailedError as refused:
            raise self._fenced(grant, "release the lease") from refused

    def check_held(self, grant: LeaseGrant, what: str) -> None:
        """Make sure that the job is still the holder's; `what` describes what it is about to do.

        Raises:
            FencedError: it is not.
        """
        if self.head(grant.job).fence != grant.fence:
            raise self._fenced(grant, what)

    def fence(
        self, job: str, run_id: str, attempt: int, *, error: str | None = None, exit_code: int | None = None
    ) -> bool:
        """Kill an attempt: it, and lower ones, can't begin any more; if it holds the job, it is fenced.

        Return whether it held the job. Its open run stays, and the next run settles it.

        Args:
            job: the key of the job.
            run_id, attempt: of the attempt.
            error: why its driver has ended, for the head, where the driver itself left no word; None: nobody knows that
                it has ended.
            exit_code: that of the driver, if it is known; the head has it beside the word of the driver, too.
        """
        keys = self.keys(job)
        for _ in range(_RACES):
            seen = self.snapshot(job, run_id)
            killed = max(attempt, seen.execution.killed_attempt if seen.execution else 0)
            changes: Attributes = {"killed_attempt": killed, "killed_at": to_text(self._clock())}
            if seen.execution is None:
                changes |= {"attempt": 0}
            conditions = _same_execution(seen.execution)
            operations: list[Operation] = [Update(keys.execution(run_id), set=changes, conditions=conditions)]
            lease = seen.head.lease if seen.head else None
            is_holder = lease is not None and lease.run_id == run_id and lease.attempt <= attempt
            if seen.head is not None:
                failure = self._failure_left(seen.head, run_id, attempt, is_holder, error, exit_code)
                left: Attributes = {} if failure is None else item.failure_attribute(failure)
                fenced: Attributes = {"fence": seen.head.fence + 1} if is_holder else {}
                same = [Equals("fence", seen.head.fence)]
                gone = item.LEASE_ATTRIBUTES if is_holder else ()
                if left or fenced:
                    operations.append(Update(keys.head, set=left | fenced, remove=gone, conditions=same))
            try:
                self.table.transact(operations, token=self._token())
            except ConditionFailedError:
                continue
            return is_holder
        raise ChangedMeanwhileError(
            f"job {job!r} kept changing while attempt {attempt} of {run_id!r} was killed; try again."
        )

    def _failure_left(
        self, head: Head, run_id: str, attempt: int, is_holder: bool, error: str | None, exit_code: int | None
    ) -> Failure | None:
        """Return what the head has to say of an attempt whose driver has ended; None: nothing more than it says."""
        told = head.failed
        if told is not None and (told.run_id, told.attempt) == (run_id, attempt):
            is_news = exit_code is not None and told.exit_code is None
            return replace(told, exit_code=exit_code) if is_news else None
        if error is None or not is_holder:
            return None
        return Failure(self._clock(), run_id, attempt, head.version, stored_error(error, ERROR_ON_HEAD), exit_code)


def _owned_by(owner: str | None, identity: RunIdentity) -> Attributes:
    is_own = owner == identity.dag_id  # otherwise the task would be one that the owner does not have
    return {
        DAG_ID: owner,
        "task_id": identity.task_id if is_own else None,
        "map_index": identity.map_index if is_own else None,
    }


def _same_head(head: Head) -> list[Condition]:
    # Everything that a holder keeps as its base. The fence alone is not enough: a holder that is about to lose the
    # lease may commit between read and take, and a take that does not know of its publish would sweep what it has
    # staged.
    conditions = [*same_state(head), Equals("staging", list(head.staging))]
    conditions.append(Lacks("owner") if head.owner is None else Equals("owner", head.owner))
    if head.lease is None:
        return [*conditions, Lacks("lease_nonce")]
    # A lease that was renewed since it was read is alive: its end is part of what must not have moved.
    until = to_text(head.lease.expires_at)
    return [*conditions, Equals("lease_nonce", head.lease.nonce), Equals("lease_until", until)]


def _same_execution(seen: Execution | None) -> list[Condition]:
    if seen is None:
        return [Missing()]
    conditions: list[Condition] = [Equals("attempt", seen.attempt), Equals("killed_attempt", seen.killed_attempt)]
    taken = Equals("taken_nonce", seen.taken_nonce) if seen.taken_nonce is not None else Lacks("taken_nonce")
    return [*conditions, taken]
