"""A stored plan is read whole, and by pages of which only the parts are unpacked that they lie in."""

from __future__ import annotations

import json
import zlib
from dataclasses import replace
from typing import Any

import pytest

from airflow_bookmarks.core.errors import StateCorruptError
from airflow_bookmarks.core.files import columns
from airflow_bookmarks.core.files import file_plan as plans
from airflow_bookmarks.core.files.file_plan import FilePlan
from airflow_bookmarks.core.selection.listing import FileInfo, Listing
from airflow_bookmarks.core.selection.reason import MISSING
from airflow_bookmarks.core.text.deflated import inflated


@pytest.fixture(autouse=True)
def _small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plans, "PART_FILES", 10)


def made(count: int, *, with_etags: bool = False) -> FilePlan:
    files = [FileInfo(f"/lake/raw/{n:06}.csv", n, n, f"e{n}" if with_etags else None) for n in range(count)]
    again = frozenset(file.path for file in files[::7])
    return FilePlan(Listing.of(files), ("/lake/raw",), count, 0, {"late": 2}, {"day": "int"}, again=again)


@pytest.fixture
def unpacked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Note what is unpacked."""
    seen: list[str] = []

    def noted(body: bytes, what: str) -> Any:
        seen.append(what)
        return inflated(body, what)

    for module in (plans, columns):
        monkeypatch.setattr(module, "inflated", noted)
    return seen


@pytest.mark.parametrize("count", [0, 1, 10, 11, 20, 25])
@pytest.mark.parametrize("with_etags", [False, True])
def test_plan_is_read_as_it_was_stored_in_however_many_parts(count: int, with_etags: bool) -> None:
    plan = made(count, with_etags=with_etags)

    found = FilePlan.decode(plan.encode())

    assert list(found.files) == list(plan.files)
    assert (found.roots, found.skipped, found.again) == (plan.roots, plan.skipped, plan.again)


@pytest.mark.parametrize(("offset", "limit"), [(0, 5), (0, 0), (8, 4), (10, 10), (5, 20), (24, 5), (25, 5), (90, 1)])
def test_page_has_the_files_that_the_whole_has_there(offset: int, limit: int) -> None:
    for count in (7, 25):
        plan = made(count)

        total, files = FilePlan.page(plan.encode(), offset, limit)

        assert (total, list(files)) == (count, list(plan.files)[offset : offset + limit])


@pytest.mark.parametrize(
    ("offset", "limit", "parts"), [(0, 5, 1), (10, 10, 1), (8, 4, 2), (995, 5, 1), (2000, 5, 0), (500, 0, 0)]
)
def test_page_unpacks_only_the_parts_that_it_lies_in(offset: int, limit: int, parts: int, unpacked: list[str]) -> None:
    total, _ = FilePlan.page(made(1000).encode(), offset, limit)

    assert total == 1000
    assert unpacked == ["part of a plan"] * parts


def test_version_that_knows_no_parts_finds_a_format_that_it_does_not_know() -> None:
    assert json.loads(zlib.decompress(made(25).encode()))["v"] == 2
    assert json.loads(zlib.decompress(made(10).encode()))["v"] == 1


def test_parts_that_are_cut_off_or_count_otherwise_are_damage() -> None:
    body = made(25).encode()
    index = zlib.decompressobj()
    raw = index.decompress(body)
    for damaged in (body[:-1], body + b"x", zlib.compress(raw.replace(b"[10,10,5]", b"[10,10,6]")) + index.unused_data):
        with pytest.raises(StateCorruptError):
            FilePlan.decode(damaged)


def test_plan_keeps_what_its_groups_were_read_without() -> None:
    left = Listing.of([FileInfo("/lake/raw/gone.csv", 1, 1), FileInfo("/lake/raw/new.csv", 1, 1)])
    plan = replace(made(3), again=frozenset(["/lake/raw/gone.csv"]), unread={MISSING: left}, in_groups=True)

    found = FilePlan.decode(plan.encode())

    assert (found.in_groups, list(found.replaced_unread.paths)) == (True, ["/lake/raw/gone.csv"])
    assert len(replace(found, in_groups=False).replaced_unread) == 0
    assert not FilePlan.decode(made(3).encode()).in_groups
