"""How a store is asked: several requests at a time and no more, and a listing instead of looks where that is less."""

from __future__ import annotations

import threading

import pytest

from airflow_bookmarks.files.concurrency import Concurrency

S3 = Concurrency(at_once=16, listed=1000)
DISK = Concurrency()


# ---- listing, or looks


@pytest.mark.parametrize(
    ("files", "roots", "listed", "is_cheaper"),
    [
        (100_000, 1, 100_000, True),  # a first run: 101 requests and not 100,000
        (100_000, 1, 50_000_000, True),
        (100, 1, 1_000_000, False),  # a small increment of a large folder
        (1000, 1, 1_000_000, False),  # 1,001 against 1,000
        (1002, 1, 1_000_000, True),
        (1, 1, 1, False),
        (2, 1, 2, True),
        (3, 3, 3, False),  # files that are roots of their own
        (0, 1, 1000, False),
    ],
)
def test_listing_is_chosen_where_it_takes_fewer_requests(files: int, roots: int, listed: int, is_cheaper: bool) -> None:
    assert S3.is_listing_cheaper(files, roots, listed) is is_cheaper


@pytest.mark.parametrize("files", [0, 1, 500, 1_000_000])
def test_a_disk_is_never_listed_again(files: int) -> None:
    assert not DISK.is_listing_cheaper(files, 1, max(files, 1))


# ---- requests at a time


def test_each_item_is_asked_for_once_and_told_with_its_answer() -> None:
    for concurrency in (DISK, Concurrency(4)):
        told: dict[int, int] = {}

        concurrency.each(lambda item: item * item, range(100), told.__setitem__)

        assert told == {item: item * item for item in range(100)}
        concurrency.each(lambda item: item, [], told.__setitem__)


def test_no_more_requests_than_the_store_bears_are_under_way() -> None:
    lock, all_there = threading.Lock(), threading.Barrier(4)
    under_way, most = 0, 0

    def request(_: int) -> None:
        nonlocal under_way, most
        with lock:
            under_way += 1
            most = max(most, under_way)
        all_there.wait(60)  # ends only when four are there
        with lock:
            under_way -= 1

    Concurrency(4).each(request, range(12), lambda item, answer: None)

    assert most == 4


def test_answers_are_told_in_the_calling_thread() -> None:
    threads = set()

    Concurrency(4).each(lambda item: item, range(20), lambda item, answer: threads.add(threading.current_thread()))

    assert threads == {threading.current_thread()}


def test_first_error_is_raised_when_the_others_have_ended_and_nothing_more_begins() -> None:
    begun: list[int] = []
    ended: list[int] = []
    has_failed, told = threading.Event(), []

    def request(item: int) -> None:
        begun.append(item)
        if item == 0:
            has_failed.set()
            raise PermissionError("no right")
        has_failed.wait(60)
        ended.append(item)

    with pytest.raises(PermissionError, match="no right"):
        Concurrency(4).each(request, range(10_000), lambda item, answer: told.append(item))

    assert sorted(begun) == sorted([0, *ended])
    assert len(begun) < 1000
    assert not any(thread.name.startswith("bookmark-files") for thread in threading.enumerate())


def test_error_of_the_one_who_is_told_ends_the_requests_as_well() -> None:
    def refuse(item: int, answer: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Concurrency(4).each(lambda item: item, range(100), refuse)

    assert not any(thread.name.startswith("bookmark-files") for thread in threading.enumerate())
