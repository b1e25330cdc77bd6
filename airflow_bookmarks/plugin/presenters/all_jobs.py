"""What lists of jobs are searched, sorted and filtered by: the index, and the health of all jobs.

    few jobs    the index is read for each request. Heads are judged within one, and the verdicts kept for some seconds
    many jobs   what was recorded of them (`lifecycle.health.recorded`) is read at once, by one request to the store. A
                thread of its own reads the index and the outdated heads meanwhile, and records what it finds

So the first page of ten thousand jobs is there before their heads could be read. What it shows is read anew in any
case; which jobs it shows is as of `KnownJobs.as_of`. Where nothing is recorded of many jobs, a request waits a few
seconds for the thread, and then goes on without those that nobody has looked at yet (`KnownJobs.unjudged`).
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import TYPE_CHECKING

from airflow_bookmarks.core.errors import BookmarkError
from airflow_bookmarks.core.health.record import IndexFacts, is_outdated
from airflow_bookmarks.core.rules.shard import sharded_name
from airflow_bookmarks.lifecycle.health.recorded import MANY_JOBS, RecordedHealth
from airflow_bookmarks.lifecycle.inspect.status import readable_keys
from airflow_bookmarks.plugin.presenters.health import records_of
from airflow_bookmarks.store.transitions.naming import DELETED_VERSION

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from datetime import datetime

    from airflow_bookmarks.core.health.record import HealthRecord
    from airflow_bookmarks.store.bookmark_store import BookmarkStore
    from airflow_bookmarks.store.stored_item import IndexEntry

log = logging.getLogger(__name__)

_KEPT_S, _KEPT_AT_MOST_S = 10.0, 60.0
# Reading heads takes processor time that all of the API server shares: a tenth of it at most.
_KEPT_PER_READING = 10.0
_INDEX_KEPT_S = 5.0
_AT_A_TIME = 500  # jobs that are judged together: then their records can be seen
# How long a request waits for a reading where what is known is older than it may be: then it says how old it is.
_WAIT_S = 0.7
# The same where the health of many jobs is not known at all: a list without them says less.
_FIRST_WAIT_S = 5.0


@dataclass(frozen=True, slots=True)
class KnownJobs:
    """All jobs of a namespace, as far as lists need them.

    Attributes:
        entries: of the index, by job.
        damage: why an index entry can't be read, by name.
        records: how each job was, where that was asked for.
        is_live: whether the index was read for this request.
        unjudged: those of the index that are not among the entries, because nobody has looked at their health yet.
    """

    entries: Mapping[str, IndexEntry] = field(default_factory=dict)
    damage: Mapping[str, BookmarkError] = field(default_factory=dict)
    records: Mapping[str, HealthRecord] = field(default_factory=dict)
    is_live: bool = False
    unjudged: Mapping[str, IndexEntry] = field(default_factory=dict)

    def as_of(self, jobs: Iterable[str]) -> datetime | None:
        """Return since when what is known of the health of some jobs may have changed; None: it is known of none."""
        return min((self.records[job].judged_at for job in jobs if job in self.records), default=None)

    def count_unjudged(self, is_wanted: Callable[[str, IndexEntry], bool]) -> int:
        """Return how many more jobs there may be among the wanted ones; a sharded job is one, a deleted one none."""
        left = {job: entry for job, entry in self.unjudged.items() if DELETED_VERSION not in entry}
        return len({sharded_name(job) or job for job, entry in left.items() if is_wanted(job, entry)})


class AllJobs:
    """Knows all jobs of a store. What it knows is shared by all requests; safe between threads.

    Verdicts are kept for ten times as long as it took to read all heads: ten seconds at least, a minute at most.

    Args:
        monotonic: the clock, in seconds.
    """

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._lock, self._reading = threading.Lock(), threading.Lock()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="bookmarks health of all jobs")
        self._forget("")

    def _forget(self, place: str) -> None:
        self._place, self._listed = place, KnownJobs()
        self._recorded: RecordedHealth | None = None
        self._index_until, self._waits_until = 0.0, 0.0
        self._kept = timedelta(seconds=_KEPT_S)
        self._refresh: Future[None] | None = None

    def look(self, store: BookmarkStore, *, with_health: bool) -> KnownJobs:
        """Return all jobs, with their health if that is asked for.

        Raises:
            StoreError: the store does not answer, and nothing is known yet.
        """
        self._open(store)
        if len(self._listed.entries) < MANY_JOBS:
            self._read_index(store)
            is_few = len(self._listed.entries) < MANY_JOBS
            if with_health and is_few:
                with self._reading:  # who comes meanwhile waits for the same heads
                    self._judge(store)
            if is_few or not with_health:
                return replace(self._listed, is_live=True)
        if with_health:
            self._judge_new(store)
        self._begin(store, with_health)
        return _judged_of(self._listed) if with_health else self._listed

    def note(self, records: Mapping[str, HealthRecord]) -> None:
        """Keep what was found of some jobs besides, where it is newer."""
        with self._lock:
            known = self._listed.records
            newer = {
                job: record
                for job, record in records.items()
                if job not in known or known[job].judged_at < record.judged_at
            }
            self._listed = replace(self._listed, records={**known, **newer})

    def settle(self) -> None:
        """Wait for a reading that goes on."""
        reading = self._refresh
        if reading is not None:
            reading.result()

    def close(self) -> None:
        """End the thread once its reading ends."""
        self._thread.shutdown(wait=False, cancel_futures=True)

    # ---- within

    def _open(self, store: BookmarkStore) -> None:
        """Begin with what is recorded, where another store is asked than before."""
        place = f"{store.describe()} {store.namespace}"
        with self._lock:
            if place == self._place:
                return
        recorded = RecordedHealth(store)
        records = recorded.read()
        with self._lock:
            self._forget(place)
            self._recorded = recorded
            if len(records) >= MANY_JOBS:
                entries = {job: record.index.as_entry() for job, record in records.items()}
                self._listed = KnownJobs(entries, records=records)

    def _read_index(self, store: BookmarkStore) -> None:
        # Without a lock: where the store hangs, whoever waits should not have to wait for all before.
        entries, damage = readable_keys(store)
        with self._lock:
            self._index_until = self._monotonic() + _INDEX_KEPT_S
            records = {job: record for job, record in self._listed.records.items() if job in entries}
            self._listed = KnownJobs(entries, damage, records)

    def _judge_new(self, store: BookmarkStore) -> None:
        """Judge the jobs of which nothing is known yet, if they are a few: many are left to the thread."""
        listed, new = self._listed, _new_in(self._listed)
        if 0 < len(new) <= _AT_A_TIME:  # nobody should wait for these until all that is old is read anew
            self.note(records_of(store, {job: listed.entries[job] for job in new}))

    def _judge(self, store: BookmarkStore) -> None:
        """Judge what is not known or outdated, the latter last, and record it where there are many."""
        listed, now, began = self._listed, store.now(), self._monotonic()
        new, old = _new_in(listed), self._outdated(listed, now)
        for part in (new, old):
            for start in range(0, len(part), _AT_A_TIME):
                self.note(records_of(store, {job: listed.entries[job] for job in part[start : start + _AT_A_TIME]}))
        if not new and not old:
            return
        took_s = (self._monotonic() - began) * len(listed.entries) / (len(new) + len(old))
        self._kept = timedelta(seconds=min(max(_KEPT_S, _KEPT_PER_READING * took_s), _KEPT_AT_MOST_S))
        if self._recorded is not None and len(listed.entries) >= MANY_JOBS:
            self._recorded.write(self._listed.records, listed.entries)

    def _outdated(self, listed: KnownJobs, now: datetime) -> list[str]:
        """Return the jobs to judge anew: first those that have committed since, then the oldest records."""
        found: list[tuple[bool, datetime, str]] = []
        for job, record in listed.records.items():
            entry = listed.entries.get(job)
            if entry is None:
                continue
            index = IndexFacts.of(entry)
            if is_outdated(record, index, now, self._kept):
                found.append((record.index == index, record.judged_at, job))
        return [job for *_, job in sorted(found)]

    # ---- behind requests

    def _begin(self, store: BookmarkStore, with_health: bool) -> None:
        """Have what is outdated read by the thread, and wait a little where it is older than it may be."""
        with self._lock:
            if self._refresh is None or self._refresh.done():
                needs_index = self._monotonic() >= self._index_until
                new = _new_in(self._listed) if with_health else []
                if not needs_index and not new and not (with_health and self._outdated(self._listed, store.now())):
                    return
                self._waits_until = self._monotonic() + (_FIRST_WAIT_S if new else _WAIT_S)
                context = copy_context()  # with what this request may read, and how much it may parse
                self._refresh = self._thread.submit(context.run, self._read_again, store, needs_index, with_health)
                self._refresh.add_done_callback(_log_fault)
            reading = self._refresh
        left_s = self._waits_until - self._monotonic()
        if left_s > 0 and self._is_too_old(store.now(), with_health):
            try:
                reading.result(timeout=left_s)
            except TimeoutError:
                return

    def _is_too_old(self, now: datetime, with_health: bool) -> bool:
        if with_health and _new_in(self._listed):
            return True
        as_of = self._listed.as_of(self._listed.records) if with_health or self._index_until == 0.0 else None
        return as_of is not None and now - as_of > timedelta(seconds=2 * _KEPT_AT_MOST_S)

    def _read_again(self, store: BookmarkStore, needs_index: bool, with_health: bool) -> None:
        try:
            if needs_index:
                self._read_index(store)
            if with_health:
                with self._reading:
                    self._judge(store)
        except BookmarkError as error:
            # The page goes on with what is known, and says how old it is. What it shows, it reads itself.
            log.warning("the health of all jobs is not read anew for now: %s", error)


def _new_in(listed: KnownJobs) -> list[str]:
    """Return the jobs of which nothing is known yet."""
    return [job for job in listed.entries if job not in listed.records]


def _judged_of(listed: KnownJobs) -> KnownJobs:
    """Return what is known without the jobs that nobody has looked at yet; a sharded job is whole, or left out."""
    new = _new_in(listed)
    if not new:
        return listed
    wholes = {sharded_name(job) for job in new} - {None}
    left = {*new, *(job for job in listed.entries if sharded_name(job) in wholes)}
    known = {job: entry for job, entry in listed.entries.items() if job not in left}
    return replace(listed, entries=known, unjudged={job: listed.entries[job] for job in sorted(left)})


def _log_fault(reading: Future[None]) -> None:
    fault = None if reading.cancelled() else reading.exception()
    if fault is not None:  # of this package: nobody may be waiting for it
        log.error("the health of all jobs can't be read anew", exc_info=fault)
