"""The shelf of segments: each is fetched and opened once, and what is kept is bounded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pytest

from airflow_bookmarks.core.errors import StateCorruptError
from airflow_bookmarks.core.ledger.segment import Segment
from airflow_bookmarks.sources.files.options import FileOptions
from airflow_bookmarks.sources.files.planner import FileSource
from airflow_bookmarks.store.backends.sqlite import SqliteTable
from airflow_bookmarks.store.bookmark_store import BookmarkStore
from airflow_bookmarks.store.shelf import SegmentShelf
from benchmarks.request import RecordingTable
from benchmarks.state_growth import Arrivals, make_run


def segment(number: int) -> Segment:
    return Segment.of(np.array([number], np.uint64), np.array([1], np.uint32), np.array([1_000], np.int64))


SEGMENTS = [segment(number) for number in range(4)]
IDS = [one.id for one in SEGMENTS]
BYTES = len(SEGMENTS[0].data)


class Blobs:
    def __init__(self) -> None:
        self.there = {one.id: one.data for one in SEGMENTS}
        self.asked: list[list[str]] = []

    def load(self, ids: Sequence[str]) -> Mapping[str, bytes]:
        self.asked.append(list(ids))
        return {one: self.there[one] for one in ids if one in self.there}


def test_segment_is_fetched_once() -> None:
    blobs = Blobs()
    shelf = SegmentShelf(blobs.load)
    first = shelf.take([IDS[0], IDS[1], IDS[0]])
    second = shelf.take([IDS[1], IDS[2]])

    assert blobs.asked == [[IDS[0], IDS[1]], [IDS[2]]]
    assert second[IDS[1]] is first[IDS[1]]
    assert [second[one].data for one in (IDS[1], IDS[2])] == [SEGMENTS[1].data, SEGMENTS[2].data]


def test_segment_that_was_not_asked_for_longest_goes_first() -> None:
    blobs = Blobs()
    shelf = SegmentShelf(blobs.load, most_bytes=2 * BYTES)
    for wanted in ([0], [1], [0], [2], [0], [1]):
        shelf.take([IDS[number] for number in wanted])

    assert blobs.asked == [[IDS[0]], [IDS[1]], [IDS[2]], [IDS[1]]]


def test_more_than_is_kept_is_given_all_the_same() -> None:
    blobs = Blobs()
    shelf = SegmentShelf(blobs.load, most_bytes=0)

    assert [one.data for one in shelf.take(IDS).values()] == [one.data for one in SEGMENTS]
    assert len(shelf.take(IDS)) == 4
    assert blobs.asked == [IDS, IDS]


def test_damaged_segment_is_refused_and_not_kept() -> None:
    blobs = Blobs()
    blobs.there[IDS[0]] = SEGMENTS[1].data
    shelf = SegmentShelf(blobs.load)
    with pytest.raises(StateCorruptError):
        shelf.take([IDS[0]])
    blobs.there[IDS[0]] = SEGMENTS[0].data

    assert shelf.take([IDS[0]])[IDS[0]].data == SEGMENTS[0].data


def test_runs_with_one_store_read_no_more_of_a_ledger_that_grows() -> None:
    table = RecordingTable(SqliteTable(":memory:", create=True))
    store, arrivals, read = BookmarkStore(table, "prod"), Arrivals(200), []
    store.init()
    for number in range(1, 65):
        arrivals.lot = number
        table.take()
        make_run(store, FileSource(arrivals, ["/lake/raw"], FileOptions(recursive=True)), f"run/{number}")
        read.append(sum(one.read_bytes for one in table.take() if one.is_blob))

    added = 200 * 16  # by the run before; a merge makes one segment of 32, and the run after it reads that one
    assert max(read[2:32]) < 2 * added
    assert max(read[34:64]) < 2 * added
    assert sum(read) < 64 * 2 * added + 2 * 32 * added
