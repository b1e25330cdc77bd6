"""The base of all transitions: a clock, identifiers, and writes that prove that the job is still ours."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from random import Random, SystemRandom
from typing import TYPE_CHECKING

from airflow_bookmarks.core.errors import BookmarkError, ChangedMeanwhileError, ConditionFailedError, FencedError
from airflow_bookmarks.core.head import CommitDecision, Failure, may_commit
from airflow_bookmarks.core.run import RunKey
from airflow_bookmarks.core.text.instant import to_text, utc_now
from airflow_bookmarks.core.text.redaction import stored_error
from airflow_bookmarks.core.text.ulid import new_ulid
from airflow_bookmarks.store.artifacts import ArtifactStore
from airflow_bookmarks.store.blobs import BlobStore
from airflow_bookmarks.store.codec import item
from airflow_bookmarks.store.reader import StateReader
from airflow_bookmarks.store.shelf import SegmentShelf
from airflow_bookmarks.store.table import Condition, Equals, Lacks

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from airflow_bookmarks.core.head import Head
    from airflow_bookmarks.core.job import RunIdentity
    from airflow_bookmarks.core.rules.audit import AuditEvent
    from airflow_bookmarks.core.run import Run
    from airflow_bookmarks.store.object_store import ObjectStore
    from airflow_bookmarks.store.table import Attributes, Key, Operation, Table


ERROR_ON_HEAD = 300  # characters: each read of a head pays for them, and the run has more
ALIAS_OF = "alias_of"  # on the index entry of an alias, and on the empty head that was there before


def same_state(head: Head) -> list[Condition]:
    """Return the conditions under which a head, apart from its lease, is unchanged since it was read.

    Fence and version alone are not enough: a replay commits, and a mark clears what is due, without changing either.
    And its name may have become that of another job.
    """
    conditions: list[Condition] = [Equals("fence", head.fence), Equals("version", head.version)]
    conditions += [Equals("changes", head.changes), Lacks(ALIAS_OF)]
    due = None if head.publishing is None else str(head.publishing)
    conditions.append(Lacks("publishing") if due is None else Equals("publishing", due))
    clean = None if head.cleaning is None else item.payload_value(head.cleaning)
    conditions.append(Lacks("cleaning") if clean is None else Equals("cleaning", clean))
    return conditions


def protected_as(head: Head) -> Condition:
    """Return the condition under which a head is still protected, or not, as it was read: no version tells that."""
    return Equals("protected", True) if head.protected else Lacks("protected")


@dataclass(frozen=True, slots=True)
class LeaseGrant:
    """What a driver holds after a take: the job, its fence, and the head as it was then.

    `run_number` is the number that its run will commit under; `first_run` the first one that its execution committed.
    """

    job: str
    identity: RunIdentity
    fence: int
    nonce: str
    base: Head
    begun_at: datetime
    first_run: int | None = None

    @property
    def run_number(self) -> int:
        return self.base.run_number + 1

    @property
    def key(self) -> RunKey:
        return RunKey(self.run_number, self.fence)

    def has_made(self, run: Run) -> bool:
        """Whether a run item is of this holding: compared by its maker too, for an import brings fences of others."""
        is_same_try = (run.run_id, run.attempt) == (self.identity.run_id, self.identity.attempt)
        return is_same_try and self.fence in run.fences


def commit_conditions(grant: LeaseGrant) -> list[Condition]:
    """Return what `core.head.may_commit` asks of the head, as conditions of the transaction that commits."""
    return [Equals("fence", grant.fence), Equals("version", grant.base.version)]


class Transitions(StateReader):
    """A state that can be changed: the base of `BookmarkStore`, which documents the arguments."""

    def __init__(
        self,
        table: Table,
        namespace: str,
        *,
        clock: Callable[[], datetime] = utc_now,
        random: Random | None = None,
        state_uri: str | None = None,
        objects: ObjectStore | None = None,
        ascii_names: bool = False,
    ) -> None:
        super().__init__(table, namespace)
        self.ascii_names = ascii_names
        self.blobs = BlobStore(table, namespace, clock, state_uri=state_uri, objects=objects)
        self.artifacts = ArtifactStore(self.blobs)
        self.segments = SegmentShelf(self.blobs.get_named)
        self._clock = clock
        self._random = random or SystemRandom()

    def now(self) -> datetime:
        """Return the present time by the store's clock."""
        return self._clock()

    def new_id(self) -> str:
        """Return a new identifier that sorts by time."""
        return new_ulid(self._clock(), self._random)

    def new_artifact(self, job: str) -> str:
        """Return the URI of a new folder for what belongs to a position of a job.

        Raises:
            OptionError: the store has no `state_uri`.
        """
        return self.artifacts.new(job, self.new_id())

    def drop_artifact(self, job: str, uri: str) -> None:
        """Remove a folder that `new_artifact` has returned to this caller, and that nothing names.

        Raises:
            StoreAccessError: it can't be removed from here. A collection does it later.
        """
        self.artifacts.remove(job, uri.rpartition("/")[2])

    # ---- within

    def _held(self, grant: LeaseGrant, operations: Sequence[Operation], what: str) -> None:
        """Write `operations`, whose conditions include that the fence is ours. Repeating them is harmless."""
        try:
            self.table.transact(operations, token=self._token())
        except ConditionFailedError as error:
            raise self._fenced(grant, what) from error

    def _fenced(self, grant: LeaseGrant, what: str) -> BookmarkError:
        head = self.snapshot(grant.job).head
        lease = head.lease if head is not None else None
        fence = head.fence if head is not None else "none"
        taken = "killed, reset or rewound"
        if lease is not None and lease.nonce != grant.nonce:
            taken = f"taken over by {lease.run_id!r} (attempt {lease.attempt}) at {to_text(lease.since)}"
        else:
            for run in self.runs(grant.job, after=grant.base.run_number, reverse=True, limit=1):
                if run.key.fence > grant.fence:
                    taken = f"taken over by {run.run_id!r} (attempt {run.attempt}), which has ended since"
        return FencedError(
            f"job {grant.job!r}: this run ({grant.identity.run_id!r}, attempt {grant.identity.attempt}, fence "
            f"{grant.fence}) could not {what}: the job was {taken} (fence {fence}). This run changed nothing further "
            "in the state; what it staged is swept by the run that has the job now."
        )

    def _unchanged(self, grant: LeaseGrant, what: str) -> BookmarkError:
        """Return why a commit was refused: the version moved under the own fence, or the fence is another's."""
        now = self.snapshot(grant.job).head
        if now is None or may_commit(now, grant.fence, grant.base.version) is CommitDecision.FENCED:
            return self._fenced(grant, what)
        return ChangedMeanwhileError(
            f"job {grant.job!r} moved from version {grant.base.version} to {now.version} under this run. "
            "Nothing was committed. Run it again."
        )

    def _failure(
        self, grant: LeaseGrant, error: str, version: int | None = None, exit_code: int | None = None
    ) -> Failure:
        """Return the failure of a try as the head says it, at its version by now; the error is redacted and cut."""
        version = grant.base.version if version is None else version
        by = (grant.identity.run_id, grant.identity.attempt)
        return Failure(self._clock(), *by, version, stored_error(error, ERROR_ON_HEAD), exit_code)

    def _token(self) -> str:
        return f"{self._random.getrandbits(128):032x}"


def stamped(store: Transitions, head: Head, event: AuditEvent) -> Attributes:
    """Return an event that changes no position: with its time, and the version, epoch and protection that it met.

    IAM policies of jobs recognise what people do by these names (`epoch_after`, `protected`): no run writes them.
    """
    return {
        **event,
        "at": to_text(store.now()),
        "protected": head.protected,
        "version_before": head.version,
        "epoch_before": head.epoch,
        "epoch_after": head.epoch,
    }


def transact_once(store: Transitions, trace: Key, operations: list[Operation]) -> bool:
    """Write all of `operations`, one of which puts the item `trace`; False if a condition did not hold.

    `trace` is there only if this very transaction was written: so a lost reply is not taken for a refusal.
    """
    try:
        store.table.transact(operations)
    except ConditionFailedError:
        return trace in store.table.get([trace])
    return True
