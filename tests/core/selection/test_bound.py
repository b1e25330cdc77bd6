"""Promises of bounds: how much of what is new one run reads, and that runs together read each file once."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_bookmarks.core.errors import OptionError
from airflow_bookmarks.core.selection.bound import UNBOUND, Bound, RunSize, beyond_band
from airflow_bookmarks.core.selection.listing import FileInfo, Listing

HOUR = timedelta(hours=1)
HOUR_MS = 3_600_000


def listing(*files: tuple[str, int, int]) -> Listing:
    """Return files by path, size and time, in reading order."""
    return Listing.of(FileInfo(*file) for file in files).in_reading_order()


def runs_of(bound: Bound, files: Listing) -> list[list[str]]:
    """Return what each run reads until nothing is left."""
    rows, runs = np.arange(len(files)), []
    while len(rows):
        is_taken = bound.takes(files, rows)
        assert is_taken.any()
        runs.append([files.paths[row] for row in rows[is_taken].tolist()])
        rows = rows[~is_taken]
    return runs


def sized(*sizes: int) -> Listing:
    return listing(*((f"/{i}", size, i) for i, size in enumerate(sizes)))


def test_thousand_files_by_five_hundred_take_two_runs() -> None:
    runs = runs_of(Bound(max_files=500), sized(*[1] * 1000))
    assert [len(run) for run in runs] == [500, 500]


def test_files_are_taken_in_reading_order() -> None:
    files = listing(("/b", 1, 5), ("/a", 1, 5), ("/c", 1, 1))
    assert runs_of(Bound(max_files=1), files) == [["/c"], ["/a"], ["/b"]]


def test_bytes_are_filled_up_to_the_bound_and_not_beyond() -> None:
    assert runs_of(Bound(max_bytes=10), sized(4, 6, 1, 10, 9, 1, 1)) == [
        ["/0", "/1"],
        ["/2"],
        ["/3"],
        ["/4", "/5"],
        ["/6"],
    ]


def test_single_file_above_the_bound_is_still_read_when_it_comes_first() -> None:
    assert runs_of(Bound(max_bytes=10), sized(1, 99, 1)) == [["/0"], ["/1"], ["/2"]]


def test_files_without_bytes_go_with_what_fits() -> None:
    assert runs_of(Bound(max_bytes=1), sized(0, 0, 1, 0, 1)) == [["/0", "/1", "/2", "/3"], ["/4"]]


def test_window_takes_the_oldest_that_has_a_file_and_empty_ones_make_no_run() -> None:
    files = listing(("/a", 1, 0), ("/b", 1, HOUR_MS - 1), ("/c", 1, HOUR_MS), ("/d", 1, 9 * HOUR_MS + 5))
    assert runs_of(Bound(window=HOUR), files) == [["/a", "/b"], ["/c"], ["/d"]]


def test_six_hours_by_a_quarter_are_24_runs_aligned_to_the_clock() -> None:
    files = listing(*((f"/{minute:03}", 1, minute * 60_000) for minute in range(360)))
    runs = runs_of(Bound(window=timedelta(minutes=15)), files)
    assert [len(run) for run in runs] == [15] * 24
    shifted = listing(*((f"/{minute:03}", 1, (minute + 7) * 60_000) for minute in range(360)))
    assert [len(run) for run in runs_of(Bound(window=timedelta(minutes=15)), shifted)] == [8, *[15] * 23, 7]


def test_time_before_1970_has_windows_too() -> None:
    files = listing(("/a", 1, -1), ("/b", 1, 0))
    assert runs_of(Bound(window=HOUR), files) == [["/a"], ["/b"]]


def test_window_is_taken_in_an_order_that_is_not_that_of_time() -> None:
    files = Listing.of(
        [FileInfo("/1", 1, HOUR_MS), FileInfo("/2", 1, 0), FileInfo("/3", 1, HOUR_MS), FileInfo("/4", 1, 1)]
    )
    assert runs_of(Bound(window=HOUR), files) == [["/2", "/4"], ["/1", "/3"]]


def test_several_bounds_all_hold() -> None:
    files = listing(("/a", 1, 0), ("/b", 1, 1), ("/c", 1, 2), ("/d", 5, HOUR_MS), ("/e", 5, HOUR_MS))
    bound = Bound(max_files=2, max_bytes=5, window=HOUR)
    assert runs_of(bound, files) == [["/a", "/b"], ["/c"], ["/d"], ["/e"]]


bounds = st.builds(
    Bound,
    max_files=st.none() | st.integers(1, 5),
    max_bytes=st.none() | st.integers(1, 20),
    window=st.none() | st.integers(1, 10).map(lambda ms: timedelta(milliseconds=ms)),
)
lots = st.lists(st.tuples(st.integers(0, 30), st.integers(0, 12)), max_size=40)


@given(bounds, lots)
def test_runs_together_read_each_file_once_for_ties_as_well(bound: Bound, lot: list[tuple[int, int]]) -> None:
    files = listing(*((f"/{i}", size, time) for i, (size, time) in enumerate(lot)))
    runs = runs_of(bound, files)
    assert sorted(path for run in runs for path in run) == sorted(files.paths)
    assert all(bound.max_files is None or len(run) <= bound.max_files for run in runs)
    size_of = dict(zip(files.paths, files.sizes.tolist(), strict=True))
    assert all(
        bound.max_bytes is None or len(run) == 1 or sum(size_of[path] for path in run) <= bound.max_bytes
        for run in runs
    )


def test_no_bound_takes_all() -> None:
    assert runs_of(UNBOUND, sized(1, 2)) == [["/0", "/1"]]
    assert not UNBOUND.is_given


# ---- runs of an upstream


def lots_of(bound: Bound, *amounts: RunSize) -> list[int]:
    """Return how many runs each run of a consumer reads."""
    left, taken = list(amounts), []
    while left:
        count = bound.fitting(left)
        assert count
        taken.append(count)
        left = left[count:]
    return taken


def test_whole_runs_are_taken_as_far_as_they_fit() -> None:
    runs = [RunSize(2, 10, 100), RunSize(2, 10, 100), RunSize(5, 10, 100), RunSize(1, 10, 100)]
    assert lots_of(Bound(max_files=4), *runs) == [2, 1, 1]
    assert lots_of(Bound(max_bytes=30), *runs) == [3, 1]
    assert lots_of(Bound(max_rows=199), *runs) == [1, 1, 1, 1]


def test_run_above_the_bound_is_read_by_itself() -> None:
    assert lots_of(Bound(max_rows=1), RunSize(1, 1, 50), RunSize(1, 1, 50)) == [1, 1]


def test_empty_runs_go_with_the_next_that_has_anything() -> None:
    nothing = RunSize(0, 0, None)
    assert lots_of(Bound(max_files=1), nothing, nothing, RunSize(3, 9, 9), nothing, RunSize(1, 1, 1)) == [4, 1]
    assert lots_of(Bound(max_rows=1), nothing) == [1]


def test_window_of_an_upstream_goes_by_its_commits() -> None:
    runs = [RunSize(1, 1, None, minute * 60_000) for minute in (1, 59, 60, 200)]
    assert lots_of(Bound(window=HOUR), *runs) == [2, 1, 1]


def test_rows_or_times_that_are_not_known_are_refused_with_a_way_out() -> None:
    with pytest.raises(OptionError, match=r"has not counted the rows.*Use max_files"):
        Bound(max_rows=5).fitting([RunSize(1, 1, None)])
    with pytest.raises(OptionError, match=r"not known when.*Use max_files"):
        Bound(window=HOUR).fitting([RunSize(1, 1, 1, None)])


# ---- what is given


def test_text_as_glue_gives_it_is_a_number() -> None:
    assert Bound.of(max_files="500", max_bytes="1000", max_rows="7") == Bound(max_files=500, max_bytes=1000, max_rows=7)


@pytest.mark.parametrize("name", ["max_files", "max_bytes", "max_rows"])
@pytest.mark.parametrize("value", [0, -1, "0", "-5", "5.0", "many", "", "\u0665", 1.5, True])
def test_what_is_no_positive_number_is_refused(name: str, value: Any) -> None:
    with pytest.raises(OptionError, match=f"{name}=.*expected a whole number"):
        Bound.of(**{name: value})


@pytest.mark.parametrize("value", [timedelta(0), timedelta(seconds=-1), timedelta(microseconds=1), 900, "15m"])
def test_window_that_is_no_positive_time_is_refused(value: Any) -> None:
    with pytest.raises(OptionError, match=r"window=.*expected a positive timedelta"):
        Bound.of(window=value)


@given(bounds)
def test_facts_tell_all_of_a_bound(bound: Bound) -> None:
    assert Bound.of_stats(bound.stats()) == bound


# ---- a band of young files


def test_of_young_files_the_oldest_come_first_and_older_ones_do_not_count() -> None:
    files = listing(("/old", 1, 100), ("/b", 1, 300), ("/a", 1, 300), ("/c", 1, 400))
    beyond = beyond_band(files, np.array([True] * 4), 200, 1)
    assert [files.paths[row] for row in np.flatnonzero(beyond).tolist()] == ["/b", "/c"]


def test_young_file_that_is_read_already_takes_no_place_in_the_band() -> None:
    files = listing(("/a", 1, 300), ("/b", 1, 300))
    assert beyond_band(files, np.array([False, True]), 200, 1).tolist() == [False, False]
