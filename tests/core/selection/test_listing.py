"""Promises of a listing: what is taken from it is the same files, in the order and with what was known of them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_bookmarks.core.selection.listing import FileInfo, Folders, Listing

NAMES = st.text(alphabet="ab/=\ue000\U0001f6eb", max_size=3).map(lambda name: f"/d/{name}")
ETAGS = st.sampled_from([None, None, "e1", "e2"])
FILES = st.builds(FileInfo, NAMES, st.integers(0, 2), st.integers(-2, 2), ETAGS)
LISTS = st.lists(FILES, max_size=12)


def rows(*numbers: int) -> np.ndarray[tuple[int], np.dtype[np.intp]]:
    return np.array(numbers, np.intp)


def folders_of(listing: Listing) -> list[str]:
    found = listing.in_folders()
    return [found.names[number] for number in found.numbers]


def abc(*, folders: Folders | None = None) -> Listing:
    numbers = np.arange(3, dtype=np.int64)
    return Listing(["/d/x=1/a", "/d/x=1/b", "/d/x=2/c"], numbers, numbers, folders=folders)


# ---- take


@pytest.mark.seldom
@given(LISTS, st.data())
def test_taken_rows_are_the_files_at_these_places(files: list[FileInfo], data: st.DataObject) -> None:
    at = data.draw(st.lists(st.integers(0, len(files) - 1), max_size=12)) if files else []

    taken = Listing.of(files).take(rows(*at))

    assert list(taken) == [files[i] for i in at]
    assert folders_of(taken) == [files[i].path.rpartition("/")[0] for i in at]


def test_all_rows_as_they_are_are_the_listing_itself() -> None:
    listing = abc()

    assert listing.take(rows(0, 1, 2)) is listing
    assert listing.take(rows(0, 2, 1)) is not listing
    assert listing.take(rows(0, 1)) is not listing


def test_taken_files_keep_the_folders_that_the_listing_told() -> None:
    told = Folders.in_turn(["/told/1", "/told/2"], [2, 1])

    taken = abc(folders=told).take(rows(2, 0))

    assert taken.folders is not None
    assert folders_of(taken) == ["/told/2", "/told/1"]


# ---- where rows come from


def test_rows_are_known_through_everything_that_was_taken_from_them() -> None:
    whole = Listing.of(FileInfo(f"/d/{i}", i, -i) for i in range(6))

    last = whole.take(rows(1, 3, 5)).in_reading_order().take(rows(0, 2))

    found = last.rows_in(whole)
    assert found is not None
    assert [whole.paths[row] for row in found] == list(last.paths) == ["/d/5", "/d/1"]


def test_rows_are_known_where_both_were_taken_from_one_listing() -> None:
    whole = Listing.of(FileInfo(f"/d/{i}", i, -i) for i in range(6))
    part = whole.take(rows(0, 2, 4))

    found = part.take(rows(0, 1, 2)).in_reading_order().rows_in(part)

    assert found is not None
    assert [part.paths[row] for row in found] == ["/d/4", "/d/2", "/d/0"]
    assert whole.take(rows(1)).rows_in(part) is None


def test_rows_of_another_listing_are_not_taken_for_these() -> None:
    assert abc().take(rows(0)).rows_in(abc()) is None


# ---- the order of reading


@given(LISTS)
def test_files_are_read_oldest_first_and_ties_by_path(files: list[FileInfo]) -> None:
    assert [(file.modified_ms, file.path) for file in Listing.of(files).in_reading_order()] == sorted(
        (file.modified_ms, file.path) for file in files
    )


@given(st.lists(FILES, max_size=12, unique_by=lambda file: file.path))
def test_order_does_not_depend_on_the_order_of_the_listing(files: list[FileInfo]) -> None:
    by_path = Listing.of(sorted(files, key=lambda file: file.path))

    assert list(by_path.in_reading_order()) == list(Listing.of(files).in_reading_order())


# ---- versions


@given(st.lists(st.tuples(FILES, FILES), max_size=12))
def test_versions_are_compared_as_those_of_single_files_are(pairs: list[tuple[FileInfo, FileInfo]]) -> None:
    was, now = Listing.of(one for one, _ in pairs), Listing.of(other for _, other in pairs)

    assert was.has_versions_of(now).tolist() == [one.version == other.version for one, other in pairs]


# ---- several listings, and folders


@given(st.lists(LISTS, max_size=3))
def test_joined_listings_stand_behind_each_other(parts: list[list[FileInfo]]) -> None:
    joined = Listing.joined([Listing.of(part) for part in parts])

    assert list(joined) == [file for part in parts for file in part]
    assert folders_of(joined) == [file.path.rpartition("/")[0] for part in parts for file in part]


def test_folder_that_two_listings_hold_files_of_counts_as_one_of_each() -> None:
    joined = Listing.joined([Listing.of([FileInfo("/d/a", 1, 1)]), Listing.of([FileInfo("/d/b", 1, 1)])])

    assert joined.in_folders().first_files() == [0, 1]
    assert joined.in_folders().in_use() == {"/d"}


@pytest.mark.parametrize(
    ("numbers", "first", "used"),
    [([], [], set()), ([0, 0, 2], [0, 2], {"a", "c"}), ([2, 0, 2, 2, 0, 1], [0, 1, 5], {"a", "b", "c"})],
)
def test_folders_tell_their_first_files_wherever_these_stand(
    numbers: Sequence[int], first: Sequence[int], used: set[str]
) -> None:
    folders = Folders(["a", "b", "c"], np.array(numbers, np.int32))

    assert (folders.first_files(), folders.in_use()) == (first, used)


def test_folders_are_found_once_for_all_that_is_taken() -> None:
    listing = abc().with_folders()

    assert listing.with_folders() is listing
    assert listing.take(rows(2)).with_folders().folders is not None
    assert listing.take(rows(2)).in_folders().names is listing.in_folders().names
