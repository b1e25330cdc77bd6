"""Cache segments of ledgers from one store: each is fetched, checked and opened once, because it never changes.

A run reads the ledger of each context whole, 16 bytes for each file ever read. A process that makes several runs with
one store reads only what the run before has added. Damage that a segment suffers later is found by the next process
that reads it.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from airflow_bookmarks.core.ledger.segment import Segment

MOST_BYTES = 64 * 1024 * 1024  # four million files


class SegmentShelf:
    """Keeps the segments that were asked for last. Safe between threads.

    Args:
        load: returns the bytes of the blobs with these hashes; raises where one is missing or damaged.
        most_bytes: how much is kept, in bytes.
    """

    def __init__(self, load: Callable[[Sequence[str]], Mapping[str, bytes]], *, most_bytes: int = MOST_BYTES) -> None:
        self._load, self._most_bytes = load, most_bytes
        self._kept: OrderedDict[str, Segment] = OrderedDict()
        self._bytes = 0
        self._lock = threading.Lock()

    def take(self, ids: Sequence[str]) -> Mapping[str, Segment]:
        """Return the segments with these ids; those not kept yet are fetched together.

        Raises:
            StateCorruptError: one is missing or damaged.
        """
        with self._lock:
            taken = {one: self._kept[one] for one in ids if one in self._kept}
            for one in taken:
                self._kept.move_to_end(one)
        missing = [one for one in dict.fromkeys(ids) if one not in taken]
        if missing:
            # Sensors open stores too, and have no use for numpy.
            from airflow_bookmarks.core.ledger.segment import Segment

            fetched = {one: Segment.from_bytes(data, one) for one, data in self._load(missing).items()}
            self._keep(fetched)
            taken |= fetched
        return taken

    def _keep(self, segments: Mapping[str, Segment]) -> None:
        with self._lock:
            for one, segment in segments.items():
                if one not in self._kept:
                    self._kept[one] = segment
                    self._bytes += len(segment.data)
            while self._bytes > self._most_bytes:
                self._bytes -= len(self._kept.popitem(last=False)[1].data)
