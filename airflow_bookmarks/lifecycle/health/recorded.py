"""Keep the records of the health of all jobs in the state table, for lists of very many jobs.

Whoever has judged jobs anyway writes what it found, as far as its role may. Records are no truth: they say which jobs
to show and in which order, and when that was so.
"""

from __future__ import annotations

import logging
from datetime import timedelta
from typing import TYPE_CHECKING

from airflow_bookmarks.core.errors import StoreAccessError, StoreError, StoreUnavailableError
from airflow_bookmarks.core.health.record import health_shard
from airflow_bookmarks.store.transitions.health import HealthShard, health_shards, put_health_shard

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from datetime import datetime

    from airflow_bookmarks.core.health.record import HealthRecord
    from airflow_bookmarks.store.bookmark_store import BookmarkStore

log = logging.getLogger(__name__)

MANY_JOBS = 1_000
"""From how many jobs on records are worth writing: the heads of fewer are read within one request."""

# A record that still says the same is written anew after this time, so that whoever reads it knows its age.
_SAME_FOR = timedelta(minutes=5)


class RecordedHealth:
    """The records of one namespace as they were read, and a way to write newer ones.

    Args:
        store: where they lie.
    """

    def __init__(self, store: BookmarkStore) -> None:
        self._store = store
        self._shards: list[HealthShard] = []
        self._is_refused = False

    def read(self) -> dict[str, HealthRecord]:
        """Return all records by job; none where the role may not read them, or there are none."""
        try:
            self._shards = health_shards(self._store)
        except StoreAccessError as error:
            log.warning(
                "the list of jobs reads the head of each job, because it may not read what is recorded of their "
                "health: %s The policies of this version allow it.",
                error,
            )
            self._is_refused = True
            return {}
        for damage in (shard.damage for shard in self._shards):
            if damage is not None:
                log.warning("%s", damage)
        return {job: record for shard in self._shards for job, record in shard.records.items()}

    def write(self, records: Mapping[str, HealthRecord], jobs: Iterable[str]) -> int:
        """Write records that are newer than those that were read; return how many items were written.

        Args:
            records: what was found.
            jobs: all that there are: records of others are dropped.

        What can't be written is logged, and left as it is: another writer was first, the role may not, or the store
        did not answer in time.
        """
        if not self._shards and not self._is_refused:
            self.read()
        if self._is_refused:
            return 0
        now, written = self._store.now(), 0
        for number, wanted in _by_shard(records, jobs, self._shards).items():
            before = self._shards[number]
            if _says_enough(before, wanted, now):
                continue
            try:
                after = put_health_shard(self._store, number, before, wanted)
            except StoreAccessError as error:
                self._is_refused = True
                log.info("the health of jobs is not recorded, and the list reads the head of each: %s", error)
                return written
            except StoreUnavailableError as error:
                log.warning("the health of jobs is not recorded for now: %s", error)
                return written
            except StoreError as error:  # too many jobs for one item: their heads are read each time
                log.warning("the health of %d jobs is not recorded: %s", len(wanted), error)
                continue
            if after is not None:
                self._shards[number] = after
                written += 1
            else:
                log.debug("another process has recorded the health of the jobs in item %02d meanwhile", number)
                self._shards[number] = health_shards(self._store)[number]
        return written


def _by_shard(
    records: Mapping[str, HealthRecord], jobs: Iterable[str], stored: list[HealthShard]
) -> dict[int, dict[str, HealthRecord]]:
    """Return for each item the newest known record of each of its jobs."""
    found: dict[int, dict[str, HealthRecord]] = {number: {} for number in range(len(stored))}
    for job in jobs:
        number = health_shard(job)
        known = [each for each in (stored[number].records.get(job), records.get(job)) if each is not None]
        if known:
            found[number][job] = max(known, key=lambda each: each.judged_at)
    return found


def _says_enough(before: HealthShard, wanted: Mapping[str, HealthRecord], now: datetime) -> bool:
    if before.damage is not None or before.records.keys() != wanted.keys():
        return False
    for job, record in wanted.items():
        stored = before.records[job]
        if not stored.says_the_same(record):
            return False
        if record is not stored and now - stored.judged_at >= _SAME_FOR:
            return False
    return True
