"""What lists of jobs are sorted and filtered by: the index, the heads of all jobs, and what their health depends on."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from airflow_bookmarks.core.errors import BookmarkError
from airflow_bookmarks.core.head import Head
from airflow_bookmarks.lifecycle.inspect.status import readable_keys
from airflow_bookmarks.plugin.presenters.health import Surroundings

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from airflow_bookmarks.store.bookmark_store import BookmarkStore
    from airflow_bookmarks.store.stored_item import IndexEntry

JobHeads = Mapping[str, Head | BookmarkError]

_HEADS_KEPT_S, _HEADS_KEPT_AT_MOST_S = 10.0, 60.0
# Reading heads takes processor time that all of the API server shares: a tenth of it at most.
_KEPT_PER_READING = 10.0
_INDEX_KEPT_S = 5.0
# A smaller index is read within one request, and is not worth to be seconds behind.
_INDEX_WORTH_KEEPING = 1000


class AllHeads:
    """What lists are sorted and filtered by, the index and the heads of all jobs: read once, and kept for some seconds.

    Ten thousand heads take seconds to read, and longer than a request may last where the machine is busy. The thread
    that reads them goes on when its request was given up, so whoever asks again finds them. They are kept for ten
    times as long as it took to read them: ten seconds at least, a minute at most.

    Args:
        monotonic: the clock, in seconds.
    """

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._lock = threading.Lock()
        self._store: BookmarkStore | None = None
        self._until = 0.0
        self._heads: dict[str, Head | BookmarkError | None] = {}
        self._around = Surroundings()
        self._index: _Index | None = None

    def with_surroundings(
        self, store: BookmarkStore, entries: Mapping[str, IndexEntry]
    ) -> tuple[JobHeads, Surroundings]:
        """Return the heads of jobs, and what else their health depends on, a minute old at most.

        Args:
            store: the store.
            entries: of the index, by job.
        """
        with self._lock:
            heads = self._of(store, list(entries))
            new = {job: head for job, head in heads.items() if job not in self._around.lags}
            if new:
                self._around |= Surroundings.of(store, new, entries)
            return heads, self._around

    def of(self, store: BookmarkStore, jobs: Sequence[str]) -> JobHeads:
        """Return the heads of some jobs, a minute old at most."""
        with self._lock:  # who comes meanwhile waits for the same heads
            return self._of(store, jobs)

    def _of(self, store: BookmarkStore, jobs: Sequence[str]) -> JobHeads:
        began = self._monotonic()
        if store is not self._store or began >= self._until:
            self._store, self._heads, self._around = store, {}, Surroundings()
        is_first = not self._heads
        missing = [job for job in jobs if job not in self._heads]
        if missing:
            found = store.heads_or_damage(missing)
            self._heads |= {job: found.get(job) for job in missing}
            if is_first:
                now = self._monotonic()
                kept_s = max(_HEADS_KEPT_S, _KEPT_PER_READING * (now - began))
                self._until = now + min(kept_s, _HEADS_KEPT_AT_MOST_S)
        return {job: head for job in jobs if (head := self._heads[job]) is not None}

    def index_of(self, store: BookmarkStore) -> tuple[Mapping[str, IndexEntry], Mapping[str, BookmarkError]]:
        """Return the index as `readable_keys` does; a large one is five seconds old at most."""
        kept = self._index
        if kept is None or store is not kept.store or self._monotonic() >= kept.until:
            # Without a lock: where the store hangs, whoever waits should not have to wait for all before.
            entries, damage = readable_keys(store)
            kept = _Index(store, self._monotonic() + _INDEX_KEPT_S, entries, damage)
            self._index = kept if len(entries) >= _INDEX_WORTH_KEEPING else None
        return kept.entries, kept.damage


@dataclass(frozen=True, slots=True)
class _Index:
    """The index of a store, and until when it is kept."""

    store: BookmarkStore
    until: float
    entries: Mapping[str, IndexEntry]
    damage: Mapping[str, BookmarkError]
