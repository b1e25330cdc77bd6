"""The store of one driver under test: it records plans, commits and publishes, and dies where the test says."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from airflow_bookmarks.lifecycle.protocol.lease import LEASE_TIME, RunEnvironment
from airflow_bookmarks.lifecycle.run.environment import EnvironmentStore
from airflow_bookmarks.testing.crash import DriverTable, SimulatedCrash

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from airflow_bookmarks.core.run import Payload, PlanEntry, Run, RunKey
    from airflow_bookmarks.lifecycle.protocol.failpoint import Failpoint
    from airflow_bookmarks.store.bookmark_store import BookmarkStore, Commit, LeaseGrant
    from airflow_bookmarks.store.stored_item import SideRecord


class DriverStore(EnvironmentStore):
    """The store that a job function gets for one attempt at one step.

    Args:
        store: the store of the test, which holds the bookmarks.
        crash_at: the point at which the driver dies when it first reaches it; None: it does not die.
        planned: called with the stored plan of each context, before the first byte of it is read.
    """

    def __init__(self, store: BookmarkStore, crash_at: Failpoint | None, planned: Callable[[PlanEntry], None]) -> None:
        self._driver_table = DriverTable(store.table)
        super().__init__(
            self._driver_table,
            store.namespace,
            clock=store.now,
            state_uri=store.blobs.state_uri,
            ascii_names=store.ascii_names,
        )
        self.address = store.address
        # A dead driver renews no lease, and no test waits for the end of the one that it has left.
        lease_time = LEASE_TIME if crash_at is None else timedelta(0)
        self.environment = RunEnvironment(
            clock=store.now, start_thread=lambda renew: None, at=self._at, lease_time=lease_time
        )
        self.crashed_at: Failpoint | None = None
        self.plans: dict[tuple[str, RunKey, str], PlanEntry] = {}
        self.committed: list[tuple[str, Run]] = []
        self.published: list[tuple[str, Run]] = []
        self.own: list[tuple[str, Run]] = []
        self.side_records: dict[str, tuple[str, SideRecord]] = {}
        self._crash_at, self._planned = crash_at, planned

    @property
    def is_used(self) -> bool:
        """Whether a job has asked this store for anything."""
        return self._driver_table.is_used

    def _at(self, point: Failpoint) -> None:
        if point is self._crash_at and self.crashed_at is None:
            self.crashed_at = point
            self._driver_table.is_dead = True
            raise SimulatedCrash(point)

    # ---- what a driver does

    def plan(self, grant: LeaseGrant, ctx: str, entry: PlanEntry, *, option: str, is_last: bool) -> None:
        """See `BookmarkStore.plan`."""
        super().plan(grant, ctx, entry, option=option, is_last=is_last)
        self.plans[grant.job, grant.key, ctx] = entry
        self._planned(entry)

    def commit(self, grant: LeaseGrant, commit: Commit) -> Run:
        """See `BookmarkStore.commit`."""
        run = super().commit(grant, commit)
        self.committed.append((grant.job, run))
        return run

    def mark(
        self, grant: LeaseGrant, run: Run, *, is_own: bool, take_next: timedelta | None = None
    ) -> LeaseGrant | None:
        """See `BookmarkStore.mark`."""
        following = super().mark(grant, run, is_own=is_own, take_next=take_next)
        self.published.append((grant.job, run))
        if is_own:
            self.own.append((grant.job, run))
        return following

    def put_side(
        self, job: str, record: SideRecord, *, ulid: str | None = None, replaced: Mapping[str, Payload] | None = None
    ) -> str:
        """See `BookmarkStore.put_side`."""
        kept = super().put_side(job, record, ulid=ulid, replaced=replaced)
        self.side_records[kept] = (job, record)
        return kept
