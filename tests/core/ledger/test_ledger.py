"""Promises of the file ledger: what is known, what it costs, how it is kept, and that damage is an error."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence

import numpy as np
import pytest

from airflow_bookmarks.core.errors import OptionError, StateCorruptError
from airflow_bookmarks.core.ledger.file_ledger import INLINE_BYTES, ROOT_BYTES, Known, Ledger
from airflow_bookmarks.core.ledger.segment import OVERHEAD_BYTES, Bits64, Segment, blake2b_64
from airflow_bookmarks.core.selection.listing import FileInfo, Listing

NEW, CHANGED, KNOWN = Known.NEW, Known.CHANGED, Known.KNOWN


def file(path: str, size: int = 10, time_ms: int = 1_000, etag: str | None = None) -> FileInfo:
    return FileInfo(path, size, time_ms, etag)


def many(start: int, stop: int) -> Listing:
    """Return files `start` to `stop` of an endless data set, newest last."""
    numbers = np.arange(start, stop, dtype=np.int64)
    return Listing([f"s3://lake/part-{i:07d}" for i in range(start, stop)], numbers % 1000, numbers * 1000)


def known(ledger: Ledger, *files: FileInfo) -> list[Known]:
    return [Known(value) for value in ledger.classify(Listing.of(files))]


def added(ledger: Ledger, *files: FileInfo) -> Ledger:
    return ledger.add(Listing.of(files))


class Store:
    """Blobs by id, and what was asked of them."""

    def __init__(self, *ledgers: Ledger) -> None:
        self.blobs: dict[str, bytes] = {}
        self.calls: list[list[str]] = []
        for ledger in ledgers:
            self.blobs.update(ledger.unsaved())

    def load(self, ids: Sequence[str]) -> Mapping[str, bytes]:
        self.calls.append(list(ids))
        return {blob_id: self.blobs[blob_id] for blob_id in ids if blob_id in self.blobs}


def reopened(ledger: Ledger) -> tuple[Ledger, Store]:
    store = Store(ledger)
    return Ledger.from_root(ledger.root(), store.load), store


def everything_collides(names: Sequence[str]) -> Bits64:
    return np.full(len(names), 7, np.uint64)


# ---- what is known


def test_nothing_is_known_to_an_empty_ledger() -> None:
    assert known(Ledger.empty(), file("/a"), file("/b")) == [NEW, NEW]


def test_file_that_was_read_is_known_and_another_is_new() -> None:
    ledger = added(Ledger.empty(), file("/a"))

    assert known(ledger, file("/b"), file("/a")) == [NEW, KNOWN]


@pytest.mark.parametrize("listed", [1, 2_000])
def test_newest_version_counts_however_many_files_are_looked_up(listed: int) -> None:
    # Few files are looked up in each segment, many in one table that is merged from them.
    overwritten = file("s3://lake/part-0000000", size=77)
    ledger = added(Ledger.empty().add(many(0, 1_000)), overwritten)
    listing = Listing.of([overwritten, *many(2_000, 2_000 + listed - 1)])

    assert ledger.classify(listing)[0] == KNOWN
    assert ledger.classify(many(0, listed))[0] == CHANGED


def test_file_with_older_time_than_any_that_was_read_is_new() -> None:
    ledger = added(Ledger.empty(), file("/a", time_ms=5_000))

    assert known(ledger, file("/late", time_ms=1)) == [NEW]


def test_files_with_one_time_are_told_apart() -> None:
    ledger = added(Ledger.empty(), file("/a", time_ms=5_000))

    assert known(ledger, file("/a", time_ms=5_000), file("/tie", time_ms=5_000)) == [KNOWN, NEW]


@pytest.mark.parametrize("overwrite", [file("/a", size=11), file("/a", time_ms=1_001), file("/a", time_ms=999)])
def test_other_size_or_time_is_a_change(overwrite: FileInfo) -> None:
    assert known(added(Ledger.empty(), file("/a")), overwrite) == [CHANGED]


def test_other_etag_is_a_change_and_another_time_with_the_same_etag_is_none() -> None:
    ledger = added(Ledger.empty(), file("/a", etag="x"))

    assert known(ledger, file("/a", etag="y"), file("/a", time_ms=9_000, etag="x")) == [CHANGED, KNOWN]


def test_new_time_with_the_same_etag_is_a_touch() -> None:
    ledger = added(Ledger.empty(), file("/a", etag="x"), file("/b", etag="x"), file("/c", etag="x"))

    touched = ledger.touched(
        Listing.of([file("/a", time_ms=9_000, etag="x"), file("/b", etag="x"), file("/c", 1, 9_000, "y"), file("/d")])
    )

    assert touched.tolist() == [True, False, False, False]


@pytest.mark.parametrize("fan_out", [2, 3, 32])
def test_a_version_that_returns_is_a_change_again(fan_out: int) -> None:
    ledger = Ledger.empty(fan_out=fan_out)
    for etag in ("v1", "v2"):
        assert known(ledger, file("/a", etag=etag)) != [KNOWN]
        ledger = added(ledger, file("/a", etag=etag))

    assert known(ledger, file("/a", etag="v1")) == [CHANGED]
    assert known(added(ledger, file("/a", etag="v1")), file("/a", etag="v1"), file("/a", etag="v2")) == [KNOWN, CHANGED]


def test_scheme_is_no_part_of_a_path() -> None:
    ledger = added(Ledger.empty(), file("s3://b/k"))

    assert known(ledger, file("s3a://b/k"), file("s3n://b/k"), file("/b/k")) == [KNOWN, KNOWN, NEW]


def test_files_keep_their_verdicts_in_any_order() -> None:
    ledger = Ledger.empty().add(many(0, 500))
    order = np.random.default_rng(1).permutation(1000)

    verdicts = ledger.classify(many(0, 1000).take(order))

    assert (verdicts == np.where(order < 500, KNOWN, NEW)).all()


def test_of_one_path_listed_twice_the_last_row_counts() -> None:
    ledger = added(Ledger.empty(), file("/a", etag="x"), file("/a", etag="y"))

    assert known(ledger, file("/a", etag="x"), file("/a", etag="y")) == [CHANGED, KNOWN]
    assert len(ledger) == 1


def test_empty_listing_adds_nothing() -> None:
    ledger = added(Ledger.empty(), file("/a"))

    assert ledger.add(Listing.of([])) is ledger
    assert ledger.add(Listing.of([]), among=many(0, 5)) is ledger
    assert len(ledger.classify(Listing.of([]))) == 0


def test_files_added_twice_are_known_and_one_entry_each_after_a_merge() -> None:
    ledger = Ledger.empty(fan_out=2).add(many(0, 10))

    assert len(ledger.add(many(0, 10))) == 10
    assert (ledger.add(many(0, 10)).classify(many(0, 10)) == KNOWN).all()


def test_length_is_an_upper_bound_before_a_merge() -> None:
    assert len(Ledger.empty().add(many(0, 10)).add(many(5, 15))) == 20


def test_times_beyond_the_column_are_known_all_the_same() -> None:
    files = [file("/ancient", time_ms=-(10**13)), file("/future", time_ms=10**15)]
    ledger = added(Ledger.empty(), *files)

    assert known(ledger, *files, file("/future", time_ms=10**15 + 1)) == [KNOWN, KNOWN, CHANGED]


def test_file_names_that_are_no_utf8_are_kept_apart() -> None:
    ledger = added(Ledger.empty(), file("/a\udcff"))

    assert known(ledger, file("/a\udcff"), file("/a\udcfe")) == [KNOWN, NEW]


def test_newest_time_is_that_of_any_file_ever_added() -> None:
    ledger = Ledger.empty()
    assert ledger.newest_ms is None

    ledger = added(added(ledger, file("/a", time_ms=9_500)), file("/a", time_ms=700), file("/b", time_ms=-3))

    assert ledger.newest_ms == 9_500
    assert reopened(ledger)[0].newest_ms == 9_500


@pytest.mark.seldom
def test_a_million_files_are_known_at_sixteen_bytes_each() -> None:
    million = many(0, 1_000_000)
    ledger, store = reopened(Ledger.empty().add(million))

    assert (ledger.classify(million) == KNOWN).all()
    assert sum(map(len, store.blobs.values())) == 16_000_000 + OVERHEAD_BYTES


def test_fan_out_below_two_is_refused() -> None:
    with pytest.raises(OptionError, match="2 or more"):
        Ledger.empty(fan_out=1)


# ---- paths that share their bits


def test_colliding_paths_of_one_listing_are_kept_by_name_and_in_no_segment() -> None:
    files = [file("/a"), file("/b", etag="x")]

    ledger = added(Ledger.empty(hasher=everything_collides), *files)

    root = json.loads(ledger.root())["ledger"]
    assert root["names"] == [["/a", "10-1000", 1_000], ["/b", "x", 1_000]]
    assert (root["segments"], root["count"], ledger.unsaved()) == ([], 2, {})
    assert known(ledger, *files, file("/c")) == [KNOWN, KNOWN, NEW]


def test_named_path_is_found_by_name_when_it_is_listed_alone() -> None:
    ledger = added(Ledger.empty(hasher=everything_collides), file("s3://b/a", etag="x"), file("s3://b/c", etag="x"))

    assert known(ledger, file("s3a://b/a", etag="x")) == [KNOWN]
    assert known(ledger, file("s3a://b/c", etag="z")) == [CHANGED]
    assert known(ledger, file("s3a://b/d", etag="x")) == [NEW]


def test_named_path_that_is_read_again_alone_stays_named() -> None:
    ledger = added(Ledger.empty(hasher=everything_collides), file("/a", etag="x"), file("/b", etag="x"))

    ledger = added(ledger, file("/a", etag="y"))

    assert json.loads(ledger.root())["ledger"]["segments"] == []
    assert known(ledger, file("/a", etag="y"), file("/b", etag="x")) == [KNOWN, KNOWN]


def test_bounded_run_tells_colliding_paths_apart_though_it_reads_one() -> None:
    whole = Listing.of([file("/a", etag="copy"), file("/b", etag="copy")])

    ledger = Ledger.empty(hasher=everything_collides).add(whole.take(np.array([0])), among=whole)

    assert ledger.classify(whole).tolist() == [KNOWN, NEW]


def test_path_read_alone_is_known_when_another_with_its_bits_appears() -> None:
    ledger = added(Ledger.empty(hasher=everything_collides), file("/a", etag="x"))
    both = Listing.of([file("/a", etag="x"), file("/b", etag="y")])

    assert ledger.classify(both).tolist() == [KNOWN, NEW]

    ledger = ledger.add(both.take(np.array([1])), among=both)

    assert ledger.classify(both).tolist() == [KNOWN, KNOWN]
    assert known(ledger, file("/a", etag="y")) == [CHANGED]
    assert known(ledger, file("/b", etag="x")) == [CHANGED]


def test_copies_that_share_bits_are_read_rather_than_lost() -> None:
    ledger = added(Ledger.empty(hasher=everything_collides), file("/a", etag="copy"))

    assert known(ledger, file("/a", etag="copy"), file("/b", etag="copy")) == [NEW, NEW]


# The next three are no wishes but the limits that the module states: here so that a change of them is seen.


def test_limit_path_listed_alone_is_judged_by_the_entry_of_another_with_its_bits() -> None:
    ledger = added(Ledger.empty(hasher=everything_collides), file("/a", etag="copy"))

    assert known(ledger, file("/b", etag="copy")) == [KNOWN]
    assert known(ledger, file("/b", etag="other")) == [CHANGED]


def test_limit_new_copy_of_what_an_overwritten_path_with_its_bits_was_is_taken_for_it() -> None:
    ledger = added(Ledger.empty(hasher=everything_collides), file("/a", etag="v1"))

    assert known(ledger, file("/a", etag="v2"), file("/copy-of-a", etag="v1")) == [NEW, KNOWN]


def test_limit_path_that_was_away_when_others_got_names_for_its_bits_is_read_again() -> None:
    ledger = added(Ledger.empty(hasher=everything_collides), file("/away"))

    ledger = added(ledger, file("/a"), file("/b"))

    assert known(ledger, file("/away"), file("/a"), file("/b")) == [NEW, KNOWN, KNOWN]


def test_touch_of_a_named_path_is_seen() -> None:
    ledger = added(Ledger.empty(hasher=everything_collides), file("/a", etag="x"), file("/b", etag="x"))

    assert ledger.touched(Listing.of([file("/a", 10, 5_000, "x"), file("/b", etag="x")])).tolist() == [True, False]


def test_touch_of_a_named_path_stays_seen_while_others_are_read() -> None:
    ledger = added(Ledger.empty(hasher=everything_collides), file("/a", etag="x"), file("/b", etag="x"))
    later = Listing.of([file("/a", 10, 5_000, "x"), file("/b", 10, 5_000, "y")])

    ledger = ledger.add(later.take(np.array([1])), among=later)

    assert ledger.classify(later).tolist() == [KNOWN, KNOWN]
    assert ledger.touched(later).tolist() == [True, False]


def test_names_that_are_no_utf8_survive_the_root() -> None:
    ledger = added(Ledger.empty(hasher=everything_collides), file("/a\udcff"), file("/ä"))

    again = Ledger.from_root(ledger.root(), Store().load, hasher=everything_collides)

    assert known(again, file("/a\udcff"), file("/ä"), file("/a")) == [KNOWN, KNOWN, NEW]


# ---- how it is kept


def test_small_ledger_lies_in_its_root_alone() -> None:
    ledger = added(Ledger.empty(), file("/a"), file("/b"))

    again, store = reopened(ledger)

    assert (store.blobs, ledger.segment_ids()) == ({}, [])
    assert known(again, file("/a"), file("/b"), file("/c")) == [KNOWN, KNOWN, NEW]
    assert store.calls == []


def test_large_segment_is_a_blob_named_by_its_content() -> None:
    ledger = Ledger.empty().add(many(0, 1000))

    [(blob_id, data)] = ledger.unsaved().items()

    assert blob_id == hashlib.sha256(data).hexdigest()
    assert ledger.segment_ids() == [blob_id]
    assert len(Segment.from_bytes(data)) == 1000


def test_stored_segments_are_not_stored_again() -> None:
    ledger, _ = reopened(Ledger.empty().add(many(0, 1000)))

    grown = ledger.add(many(1000, 2000))

    assert ledger.unsaved() == {}
    assert list(grown.unsaved()) == [grown.segment_ids()[0]]
    assert grown.segment_ids()[1:] == ledger.segment_ids()


def test_what_was_never_stored_stays_unsaved() -> None:
    ledger = Ledger.empty().add(many(0, 1000)).add(many(1000, 2000))

    assert set(ledger.unsaved()) == set(ledger.segment_ids())
    assert len(ledger.segment_ids()) == 2


def test_root_read_back_is_the_same_root() -> None:
    ledger = Ledger.empty()
    for run in range(40):
        ledger = ledger.add(many(run * 60, run * 60 + 60))

    again, _ = reopened(ledger)

    assert again.root() == ledger.root()
    assert again.segment_ids() == ledger.segment_ids()
    assert len(again) == len(ledger) == 2400


def test_all_segments_are_fetched_in_one_call_when_first_needed() -> None:
    ledger = Ledger.empty()
    for run in range(5):
        ledger = ledger.add(many(run * 1000, run * 1000 + 1000))
    again, store = reopened(ledger)

    again.root()
    again.classify(Listing.of([]))
    grown = again.add(many(5000, 5001))
    assert store.calls == []

    assert (again.classify(many(0, 5000)) == KNOWN).all()
    assert (grown.classify(many(0, 5001)) == KNOWN).all()
    assert store.calls == [ledger.segment_ids()]


def test_merge_fetches_what_it_merges_in_one_call() -> None:
    ledger = Ledger.empty(fan_out=3)
    for run in range(8):
        ledger = ledger.add(many(run * 1000, run * 1000 + 1000))
    store = Store(ledger)
    again = Ledger.from_root(ledger.root(), store.load, fan_out=3)

    grown = again.add(many(8000, 9000))

    assert store.calls == [ledger.segment_ids()]
    assert len(grown.segment_ids()) == 1
    assert list(grown.unsaved()) == grown.segment_ids()


def test_older_root_stays_valid_after_merges() -> None:
    ledger, store, roots = Ledger.empty(fan_out=2), Store(), []
    for run in range(16):
        roots.append(ledger.root())
        ledger = ledger.add(many(run * 200, run * 200 + 200))
        store.blobs.update(ledger.unsaved())

    for run, root in enumerate(roots):
        older = Ledger.from_root(root, store.load, fan_out=2)
        assert (older.classify(many(0, 3200)) == KNOWN).sum() == run * 200


def test_newer_wins_over_older_through_all_tiers() -> None:
    ledger = Ledger.empty(fan_out=2)
    for run in range(33):
        ledger = added(ledger, file("/steady", etag="s"), file("/a", etag=str(run)), file(f"/{run}"))
        assert known(ledger, file("/a", etag=str(run)), file("/a", etag=str(run - 1))) == [KNOWN, CHANGED]
    assert len(ledger) <= 33 + 2 * 6


def test_bounded_ledger_keeps_its_bound_and_takes_what_is_older_for_read() -> None:
    ledger = added(added(Ledger.empty(), file("/old", time_ms=1_000)), file("/new", time_ms=9_000)).forget(5_000)
    again, _ = reopened(ledger)

    assert (len(again), again.newest_ms, again.forgotten_before_ms) == (1, 9_000, 1_001)
    assert known(again, file("/old"), file("/never_read", time_ms=1_000), file("/other", time_ms=1_001)) == [
        KNOWN,
        KNOWN,
        NEW,
    ]
    listing = Listing.of([file("/old"), file("/new", time_ms=9_000), file("/other", time_ms=1_001)])
    assert again.forgotten(listing).tolist() == [True, False, False]
    assert again.touched(listing).tolist() == [False, False, False]


def test_bound_of_a_ledger_never_goes_back_and_keeps_what_lies_with_newer_files() -> None:
    ledger = added(added(Ledger.empty(), file("/first", time_ms=3_000)), file("/new", time_ms=9_000)).forget(5_000)
    again = added(ledger, file("/old", time_ms=1_000), file("/newer", time_ms=10_000)).forget(2_000)

    assert (len(again), again.forgotten_before_ms) == (3, 3_001)
    listing = Listing.of([file("/old", time_ms=1_000)])
    assert again.forgotten(listing).tolist() == [False]  # it is still known


def test_bound_dated_in_the_future_takes_nothing_for_read_that_comes_later() -> None:
    ledger = added(Ledger.empty(), file("/read", time_ms=1_000)).forget(10**15)

    assert (len(ledger), ledger.forgotten_before_ms) == (0, 1_001)
    assert known(ledger, file("/read", time_ms=1_000), file("/newer", time_ms=1_001)) == [KNOWN, NEW]


def test_ledger_that_was_never_bounded_is_stored_as_before() -> None:
    assert b"forgotten" not in added(Ledger.empty(), file("/a")).root()
    assert b'"format":1' in added(Ledger.empty(), file("/a")).root()


def test_newest_time_up_to_a_limit_leaves_out_later_files() -> None:
    ledger = added(Ledger.empty(), file("/a", time_ms=1_500), file("/b", time_ms=9_500))

    assert [ledger.newest_until(limit) for limit in (9_500, 9_499, 2_000, 500)] == [9_500, 9_000, 1_000, None]


def test_root_names_segments_newest_first_and_tiers_never_fall() -> None:
    ledger = Ledger.empty(fan_out=3)
    for run in range(1, 9):
        ledger = ledger.add(many(run * 10, run * 10 + run))

    segments = json.loads(ledger.root())["ledger"]["segments"]

    assert [(count, tier) for _, count, tier, _ in segments] == [(8, 0), (7, 0), (15, 1), (6, 1)]


# ---- what it costs: counted in bytes, the same on each machine


@pytest.mark.parametrize("inline_bytes", [0, INLINE_BYTES])
@pytest.mark.seldom  # half a minute
def test_root_stays_small_through_ten_thousand_runs(inline_bytes: int) -> None:
    ledger, store, largest = Ledger.empty(inline_bytes=inline_bytes), Store(), 0
    for run in range(10_000):
        ledger = ledger.add(many(run * 3, run * 3 + 3))
        store.blobs.update(ledger.unsaved())
        root = ledger.root()
        largest = max(largest, len(root))
        ledger = Ledger.from_root(root, store.load, inline_bytes=inline_bytes)

    assert largest < ROOT_BYTES < 12_500
    assert (ledger.classify(many(0, 30_001)) == KNOWN).sum() == len(ledger) == 30_000


def test_run_writes_in_proportion_to_what_it_read() -> None:
    runs, files = 1000, 10
    ledger, segments, blobs = Ledger.empty(), 0, 0
    store = Store()
    for run in range(runs):
        before = set(segment_lengths(ledger))
        ledger = ledger.add(many(run * files, run * files + files))
        segments += sum(length for blob_id, length in segment_lengths(ledger).items() if blob_id not in before)
        store.blobs.update(unsaved := ledger.unsaved())
        blobs += sum(map(len, unsaved.values()))
        ledger = Ledger.from_root(ledger.root(), store.load)

    # Each file is written in its run, and once more for each tier that it rises through: here one.
    written_once = files * 16 + OVERHEAD_BYTES
    assert segments < 2 * runs * written_once
    assert blobs < 2 * runs * written_once


def segment_lengths(ledger: Ledger) -> dict[str, int]:
    return {e[0]: e[1] * 16 + OVERHEAD_BYTES for e in json.loads(ledger.root())["ledger"]["segments"]}


def test_ledger_of_many_runs_is_sixteen_bytes_a_file() -> None:
    ledger = Ledger.empty()
    for run in range(1000):
        ledger = ledger.add(many(run * 100, run * 100 + 100))

    assert sum(segment_lengths(ledger).values()) <= 16 * 100_000 + 70 * OVERHEAD_BYTES


def test_root_takes_in_small_segments_until_it_is_full_and_keeps_the_older_ones() -> None:
    ledger, store = Ledger.empty(), Store()
    files = (INLINE_BYTES - OVERHEAD_BYTES) // 16
    inline: list[set[str]] = []
    for run in range(10):
        ledger = ledger.add(many(run * files, run * files + files))
        store.blobs.update(ledger.unsaved())
        inline.append({e[0] for e in json.loads(ledger.root())["ledger"]["segments"] if len(e) == 4})
        ledger = Ledger.from_root(ledger.root(), store.load)

    assert [len(ids) for ids in inline] == [1, 2, 3, 4, 4, 4, 4, 4, 4, 4]
    assert inline[3] == inline[-1]
    assert len(store.blobs) == 6


def test_segment_that_a_growing_root_pushes_out_is_unsaved() -> None:
    ledger, store = Ledger.empty(), Store()
    for run in range(3):
        ledger = ledger.add(many(run * 123, run * 123 + 123))
    small, _ = reopened(ledger)
    assert small.unsaved() == {}

    for run in range(28):
        small = small.add(many(10_000 + run * 200, 10_200 + run * 200))
        store.blobs.update(small.unsaved())
        small = Ledger.from_root(small.root(), store.load)
        assert len(small.root()) < ROOT_BYTES
        assert set(small.segment_ids()) <= set(store.blobs)
    assert (small.classify(many(0, 369)) == KNOWN).all()


# ---- damage


def large_ledger() -> Ledger:
    return Ledger.empty().add(many(0, 1000)).add(many(1000, 1003))


def test_each_changed_byte_of_a_root_is_an_error() -> None:
    root = large_ledger().root()

    for position in range(len(root)):
        for flip in (1, 0x20, 0x80):
            damaged = bytearray(root)
            damaged[position] ^= flip
            with pytest.raises(StateCorruptError):
                Ledger.from_root(bytes(damaged), Store().load)


def test_each_truncation_of_a_root_is_an_error() -> None:
    root = large_ledger().root()

    for length in range(len(root)):
        with pytest.raises(StateCorruptError):
            Ledger.from_root(root[:length], Store().load)


@pytest.mark.parametrize("root", [b"", b"{}", b"null", b"\xff" * 300, Ledger.empty().root() + b" "])
def test_what_is_no_root_is_an_error_and_no_empty_ledger(root: bytes) -> None:
    with pytest.raises(StateCorruptError, match="Nothing was read or changed"):
        Ledger.from_root(root, Store().load)


def sealed(content: str) -> bytes:
    """Return a root with a checksum that fits, whatever it says."""
    checksum = hashlib.blake2b(content.encode(), digest_size=16).hexdigest()
    return f'{{"blake2b":"{checksum}","ledger":{content}}}'.encode()


def body(**changes: object) -> str:
    return json.dumps({"count": 0, "format": 1, "names": [], "newest_ms": None, "segments": [], **changes})


def test_root_of_a_newer_format_is_an_error_that_names_both() -> None:
    with pytest.raises(StateCorruptError, match=r"format 4, and this version .* knows formats 1 to 3"):
        Ledger.from_root(sealed(body(format=4)), Store().load)


@pytest.mark.parametrize(
    "content",
    [
        "[]",
        "7",
        "{",
        "{}",
        body(count=1),
        body(count=1, names=[["/a"]]),
        body(segments=[["00", "many", 0]]),
        body(segments=[[1]]),
        body(count=1, segments=[["00", 1, 0, "no base64"]]),
        body(count=1, segments=[["00", 1, 0, "QUJMUw=="]]),
        body(format=2),
        body(format=2, forgotten_before_ms="1970"),
    ],
)
def test_root_that_means_nothing_is_an_error_though_the_checksum_fits(content: str) -> None:
    with pytest.raises(StateCorruptError):
        Ledger.from_root(sealed(content), Store().load)


def test_missing_segment_is_an_error_that_names_it() -> None:
    ledger = large_ledger()
    again = Ledger.from_root(ledger.root(), Store().load)

    with pytest.raises(StateCorruptError, match=f"{ledger.segment_ids()[0]} is missing"):
        again.classify(many(0, 1))


def test_damaged_segment_is_an_error() -> None:
    again, store = reopened(large_ledger())
    [blob_id] = store.blobs
    store.blobs[blob_id] = store.blobs[blob_id][:-1]

    with pytest.raises(StateCorruptError):
        again.classify(many(0, 1))


def test_another_segment_in_its_place_is_an_error() -> None:
    again, store = reopened(large_ledger())
    [blob_id] = store.blobs
    store.blobs[blob_id] = next(iter(Ledger.empty().add(many(5, 1005)).unsaved().values()))

    with pytest.raises(StateCorruptError, match="bytes of another one"):
        again.classify(many(0, 1))


def test_segment_with_another_count_than_the_root_says_is_an_error() -> None:
    store = Store(large_ledger())
    [blob_id] = store.blobs
    again = Ledger.from_root(sealed(body(count=999, segments=[[blob_id, 999, 0]])), store.load)

    with pytest.raises(StateCorruptError, match="has 1000 files, and the root says 999"):
        again.classify(many(0, 1))


def test_damage_is_found_again_when_asked_again() -> None:
    again = Ledger.from_root(large_ledger().root(), Store().load)

    for _ in range(2):
        with pytest.raises(StateCorruptError):
            again.classify(many(0, 1))


# ---- what is written


def test_segments_hold_the_stated_hash() -> None:
    blobs = added(Ledger.empty(inline_bytes=0), file("s3a://lake/a.csv")).unsaved().values()

    assert [Segment.from_bytes(data).hashes.tolist() for data in blobs] == [blake2b_64(["lake/a.csv"]).tolist()]
