"""The head: a job's current state, who holds it, and the rule on who may take it over."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum, auto
from typing import TYPE_CHECKING

from airflow_bookmarks.core.errors import JobBusyError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from airflow_bookmarks.core.run import ContextState, Execution, Payload, RunKey


@dataclass(frozen=True, slots=True)
class Lease:
    """Who works on a job now.

    The fence on the head grows each time the lease changes hands, and every write checks it. `expires_at` only says
    when others may take over; the holder of the current fence can commit, however late.

    `nonce` tells an own take whose reply was lost from another take under the same run id and attempt.
    """

    run_id: str
    attempt: int
    since: datetime
    expires_at: datetime
    nonce: str

    def is_held(self, now: datetime) -> bool:
        """Whether the holder still counts as at work at `now`; from the moment it expires, others may take over."""
        return now < self.expires_at


@dataclass(frozen=True, slots=True)
class Failure:
    """A try that ended without a commit: when, which try of which execution, at which version of the head, its error.

    It is over once the head has another version: a run committed since, or somebody moved the position. `exit_code` is
    that of its driver, from 0 to 255; None: it is not known.
    """

    at: datetime
    run_id: str
    attempt: int
    version: int
    error: str
    exit_code: int | None = None


@dataclass(frozen=True, slots=True)
class Move:
    """What somebody did to the position, such as "rewind": when, and the version of the head that it began."""

    kind: str
    at: datetime
    version: int


@dataclass(frozen=True, slots=True)
class Head:
    """A job's current state.

    `version` grows with each commit, reset and rewind; `epoch` with each reset and rewind; `fence` with each takeover,
    kill and reset; `changes` with each replay. `run_number` is the last committed run, `published` the last published
    one, `data_run_number` the last one of the living line that was not empty. `publishing` names a run that is
    committed and not yet marked as published. `staging` lists the folders under which runs of this job may have staged
    output. `cleaning` is the list of what undone runs staged and published and that is still to be removed. On a
    `protected` job a change needs the approval of a second person. `owner` is the DAG that the job belongs to, None
    where no DAG ran it yet, or none since heads name their owner; `shared_with` lists other DAGs that may run it.

    For people alone, and for no decision of the protocol: `commits` are the times of the last commits, oldest first,
    one for each execution; `failure` is the last try that failed, `move` the last change of the position by a person.
    """

    version: int = 0
    epoch: int = 1
    fence: int = 0
    changes: int = 0
    run_number: int = 0
    published: int = 0
    data_run_number: int = 0
    publishing: RunKey | None = None
    lease: Lease | None = None
    contexts: Mapping[str, ContextState] = field(default_factory=dict)
    staging: tuple[str, ...] = ()
    cleaning: Payload | None = None
    protected: bool = False
    owner: str | None = None
    shared_with: tuple[str, ...] = ()
    commits: tuple[datetime, ...] = ()
    failure: Failure | None = None
    move: Move | None = None

    @property
    def failed(self) -> Failure | None:
        """The failure that no commit, and no change of the position, has followed."""
        return self.failure if self.failure is not None and self.failure.version == self.version else None

    @property
    def moved(self) -> Move | None:
        """The change of the position that no commit has followed."""
        return self.move if self.move is not None and self.move.version == self.version else None

    def holder(self, now: datetime) -> Lease | None:
        """Return the lease of whoever works on the job at `now`; None where it is free, or its lease has expired."""
        return self.lease if self.lease is not None and self.lease.is_held(now) else None


class LeaseDecision(Enum):
    """The verdict of the rule on leases for a run that wants to begin."""

    ALLOWED = auto()
    BUSY = auto()
    KILLED = auto()
    SUPERSEDED = auto()


def may_take(head: Head | None, execution: Execution | None, run_id: str, attempt: int, now: datetime) -> LeaseDecision:
    """Say whether an attempt may take the lease of a job.

    A killed attempt, or one lower than an attempt already seen, never may (an orphaned driver that starts late). A
    lease that is free, run out, or held by a lower attempt of the same execution may be taken.
    """
    if execution is not None and attempt <= execution.killed_attempt:
        return LeaseDecision.KILLED
    if execution is not None and attempt < execution.attempt:
        return LeaseDecision.SUPERSEDED
    lease = head.holder(now) if head is not None else None
    if lease is None or (lease.run_id == run_id and lease.attempt < attempt):
        return LeaseDecision.ALLOWED
    return LeaseDecision.BUSY


class CommitDecision(Enum):
    """The verdict of the rule on commits for a run that has read and staged all it planned."""

    ALLOWED = auto()
    FENCED = auto()
    MOVED = auto()


def may_commit(head: Head | None, fence: int, version: int) -> CommitDecision:
    """Say whether a run that took a job under a fence, when it stood at a version, may commit, or commit a replay.

    No clock is asked: whose lease has run out may commit as long as nobody has taken the job. A store asks the same as
    conditions of its transaction (`store.transitions.base.commit_conditions`), so that it holds at the very commit.

    Example:
        >>> may_commit(Head(version=3, fence=7), 7, 3).name, may_commit(Head(version=3, fence=8), 7, 3).name
        ('ALLOWED', 'FENCED')
    """
    if head is None or head.fence != fence:
        return CommitDecision.FENCED
    return CommitDecision.ALLOWED if head.version == version else CommitDecision.MOVED


def busy_error(job: str, head: Head | None) -> JobBusyError:
    """Return the error that names the holder of a job.

    Raises:
        ValueError: the job has no lease.
    """
    lease = head.lease if head is not None else None
    if lease is None:
        raise ValueError(f"job {job!r} has no lease")
    return JobBusyError(job, lease.run_id, lease.attempt, lease.since, lease.expires_at)
