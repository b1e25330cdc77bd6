"""What is recorded of the health of a job, so that a list of very many jobs need not read the head of each.

A record holds what lists are searched, sorted and filtered by, and who may look at the job; no error, no path and no
name of another job. It was true at `judged_at`: what is shown of a job is read from its head.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Literal
from zlib import crc32

from airflow_bookmarks.core.rules.owner import DAG_ID, FORMER_OWNERS, former_in

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from airflow_bookmarks.core.head import Head
    from airflow_bookmarks.core.health.verdict import HealthState, HealthVerdict

HEALTH_SHARDS = 64
"""In how many items the records of a namespace lie: one request reads them all."""

Standing = Literal["NEW", "IDLE", "RUNNING", "EXPIRED", "DUE", "DAMAGED"]

_CLOCKS = timedelta(seconds=5)  # by how much the clocks of two machines may differ


@dataclass(frozen=True, slots=True)
class IndexFacts:
    """What the index says of a job: its owners and task, its last commit, and whether it is marked as deleted."""

    dag_id: str | None = None
    task_id: str | None = None
    run_number: int | None = None
    last_commit_at: str | None = None
    former_owners: tuple[str, ...] = ()
    deleted_version: int | None = None

    @classmethod
    def of(cls, entry: Mapping[str, Any]) -> IndexFacts:
        """Return the facts of an index entry; values of a wrong type are left out, as everywhere.

        Example:
            >>> IndexFacts.of({"dag_id": "flights", "run_number": True}).run_number is None
            True
        """
        dag_id, task_id = _text(entry.get(DAG_ID)), _text(entry.get("task_id"))
        number, commit = _number(entry.get("run_number")), _text(entry.get("last_commit_at"))
        deleted = _number(entry.get("deleted_version"))
        return cls(dag_id, task_id, number, commit, tuple(former_in(entry)), deleted)

    def as_entry(self) -> dict[str, Any]:
        """Return them under the names that an index entry has; what is not known is absent."""
        values = {name: getattr(self, name) for name in self.__slots__ if name != FORMER_OWNERS}
        known = {name: value for name, value in values.items() if value is not None}
        return {**known, FORMER_OWNERS: list(self.former_owners)} if self.former_owners else known


@dataclass(frozen=True, slots=True)
class HealthRecord:
    """How a job was when somebody looked at it.

    Attributes:
        judged_at: the time before its head was read: whatever was written earlier is in it.
        standing: whether a run holds it, and what is due; "DAMAGED" where its head can't be read.
        health: the worst that was known of it; None where its head can't be read.
        version, epoch: those of the head; None where it can't be read.
        index: what the index said of it.
        waiting_since: since when a change of it waits for a second person; None: none does.
    """

    judged_at: datetime
    standing: Standing
    health: HealthState | None
    version: int | None = None
    epoch: int | None = None
    index: IndexFacts = field(default_factory=IndexFacts)
    waiting_since: datetime | None = None

    def says_the_same(self, other: HealthRecord) -> bool:
        """Whether another record differs in its time alone."""
        return replace(self, judged_at=other.judged_at) == other


def record_of(head: Head | None, index: IndexFacts, verdict: HealthVerdict | None, judged_at: datetime) -> HealthRecord:
    """Return the record of a job; without a head that can be read, that of a damaged one."""
    if head is None or verdict is None:
        return HealthRecord(judged_at, "DAMAGED", None, index=index)
    standing, waiting = standing_of(head, judged_at), verdict.waiting_since
    return HealthRecord(judged_at, standing, verdict.state, head.version, head.epoch, index, waiting)


def standing_of(head: Head, now: datetime) -> Standing:
    """Return whether a run holds a job, and what is due.

    Example:
        >>> from airflow_bookmarks.core.head import Head
        >>> from datetime import UTC, datetime
        >>> standing_of(Head(), datetime(2013, 1, 31, tzinfo=UTC))
        'NEW'
    """
    if head.lease is not None:
        return "RUNNING" if head.lease.is_held(now) else "EXPIRED"
    if head.publishing is not None or head.cleaning is not None:
        return "DUE"
    return "IDLE" if head.run_number else "NEW"


def is_outdated(record: HealthRecord, index: IndexFacts, now: datetime, kept: timedelta) -> bool:
    """Whether a job has to be judged anew: the record is older than `kept`, or the index says something else by now.

    A record from the future, by a clock that was wrong, is outdated too: nothing would ever replace it.
    """
    age = now - record.judged_at
    return age >= kept or age < -_CLOCKS or record.index != index


def health_shard(job: str) -> int:
    """Return in which of the items the record of a job lies.

    Example:
        >>> health_shard("flights.clean")
        60
    """
    return crc32(job.encode()) % HEALTH_SHARDS


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _number(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None
