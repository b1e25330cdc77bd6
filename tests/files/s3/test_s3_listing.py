"""A listing by several requests at a time holds each key once, in order, for hardly more requests than one by one."""

from __future__ import annotations

import random
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from math import ceil

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from airflow_bookmarks.files.s3.listing import list_pages, places_ahead
from airflow_bookmarks.files.s3.page import PAGE_KEYS, Page


class Keys:
    """Some keys, and the requests that were made of them; a page holds `page_keys` of them."""

    def __init__(self, keys: Sequence[str], page_keys: int = 10) -> None:
        self.keys = sorted(keys)
        self.page_keys = page_keys
        self.requests = 0

    def __call__(self, prefix: str, after: str, *, delimiter: str = "", max_keys: int = PAGE_KEYS) -> Page:
        self.requests += 1
        limit = min(max_keys, self.page_keys)
        at = max(bisect_right(self.keys, after), bisect_left(self.keys, prefix))
        keys: list[str] = []
        folders: list[str] = []
        while at < len(self.keys) and self.keys[at].startswith(prefix) and len(keys) + len(folders) < limit:
            folder, slash, _ = self.keys[at][len(prefix) :].partition("/")
            if delimiter and slash:
                folders.append(f"{prefix}{folder}/")
                at = bisect_left(self.keys, f"{prefix}{folder}0")
            else:
                keys.append(self.keys[at])
                at += 1
        more = at < len(self.keys) and self.keys[at].startswith(prefix)
        numbers = np.zeros(len(keys), np.int64)
        return Page(keys, numbers, numbers, [None] * len(keys), folders, more)

    def listed(self, prefix: str = "", connections: int = 16) -> list[str]:
        parts = list_pages(self, prefix, connections, lambda page: list(page.keys))
        return [key for part in parts for key in part]


_NAMES = st.text(st.sampled_from("ab09/=-.\x01\ud7ff\U0010ffffé"), min_size=1, max_size=8)


@settings(max_examples=200, deadline=None)
@given(st.sets(_NAMES, max_size=300), st.integers(1, 6), st.integers(1, 9))
def test_each_key_is_listed_once_and_in_order(names: set[str], connections: int, page_keys: int) -> None:
    keys = Keys([f"raw/{name}" for name in names] + ["ra", "raw", "raw-/a", "raw0", "raw0/b", "x"], page_keys)

    assert keys.listed("raw/", connections) == sorted(f"raw/{name}" for name in names)


_DICE = random.Random(7)
_SHAPES = {
    "one flat folder": [f"raw/part-{i:05d}-c000.parquet" for i in range(20_000)],
    "random names": [f"raw/{_DICE.getrandbits(128):032x}" for _ in range(20_000)],
    "days": [f"raw/year={2000 + d // 365}/day={d % 365:03d}/{i}.csv" for d in range(5_000) for i in range(4)],
    "one folder that is nearly all": [f"raw/{'m' if i % 50 else chr(97 + i % 26)}/{i:06d}" for i in range(20_000)],
    "long common beginnings": [f"raw/{'x' * 200}/{'y' * 200}{i:05d}" for i in range(20_000)],
    "numbers without zeros in front": [f"raw/{i}" for i in range(20_000)],
}


@pytest.mark.parametrize("shape", _SHAPES)
def test_listing_takes_hardly_more_requests_than_one_by_one(shape: str) -> None:
    keys = Keys(_SHAPES[shape], page_keys=20)  # a thousand pages

    assert keys.listed("raw/") == keys.keys
    assert keys.requests <= 1.15 * ceil(len(keys.keys) / keys.page_keys)


@pytest.mark.parametrize("count", [0, 1, 10, 11, 40])
def test_small_listing_takes_one_request_a_page(count: int) -> None:
    keys = Keys([f"raw/{i:03d}" for i in range(count)])

    assert len(keys.listed("raw/")) == count
    assert keys.requests == max(1, ceil(count / 10))


@pytest.mark.parametrize("shape", _SHAPES)
def test_places_to_cut_at_have_keys_behind_them(shape: str) -> None:
    keys = Keys(_SHAPES[shape])
    cursor = keys.keys[500]

    places = places_ahead(keys, "raw/", cursor, None)

    assert places == sorted(places)
    assert cursor < places[0] < keys.keys[-1]


def test_nothing_ahead_gives_no_place_to_cut_at() -> None:
    keys = Keys([f"raw/{i:03d}" for i in range(100)])

    assert places_ahead(keys, "raw/", "raw/099", None) == []
    assert places_ahead(keys, "raw/", "raw/050", "raw/051") == []


def test_part_that_fails_fails_the_listing() -> None:
    keys = Keys([f"raw/{i:03d}" for i in range(1000)])

    def fetch(prefix: str, after: str, *, delimiter: str = "", max_keys: int = PAGE_KEYS) -> Page:
        if after > "raw/700":
            raise ConnectionError("the network went")
        return keys(prefix, after, delimiter=delimiter, max_keys=max_keys)

    with pytest.raises(ConnectionError):
        list_pages(fetch, "raw/", 4, lambda page: page)
