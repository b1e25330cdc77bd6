"""Stored JSON that takes the parser a second or more, in which nobody else of the API server would be answered.

What is measured is what the parser is given, not how long it takes.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import pytest

from airflow_bookmarks.core.errors import LookFailedError, StateCorruptError, TooLargeHereError
from airflow_bookmarks.core.files.file_list import decode_moves, decode_paths, decode_published, encode_moves
from airflow_bookmarks.core.files.file_plan import FilePlan
from airflow_bookmarks.core.job_state import MAX_STATE_BYTES, decode_states
from airflow_bookmarks.core.ledger.file_ledger import Ledger
from airflow_bookmarks.core.position import UpstreamPosition
from airflow_bookmarks.core.selection.listing import FileInfo, Listing
from airflow_bookmarks.core.text import stored_json
from airflow_bookmarks.core.text.deflated import deflated, packed_parts
from airflow_bookmarks.core.text.stored_json import JSON_BOUND, JsonBound, parsing_at_most, read_json
from airflow_bookmarks.lifecycle.changes.change import Change, apply
from airflow_bookmarks.plugin.scan.child import LIMITS, _parsed
from airflow_bookmarks.sinks.clean import CleanList
from airflow_bookmarks.store.codec import item
from airflow_bookmarks.store.table import Update
from tests.airflow.conftest import World
from tests.plugin.conftest import API, Site, run_of_dag

MIB = 1024**2
MANY = 60 * MIB // 3
REST: dict[str, Any] = {"v": 1, "roots": ["/lake"], "listed": 1, "known": 0, "skipped": {}, "partition_types": {}}

# What becomes 60 MiB and more: of lists, of objects, of numbers, of text, and of text that is written in escapes.
RAW: dict[str, Callable[[], bytes]] = {
    "lists": lambda: b"[" + b"[]," * MANY + b"[]]",
    "objects": lambda: b"[" + b"{}," * MANY + b"{}]",
    "numbers": lambda: b"[" + b"0," * (MANY + MANY // 2) + b"0]",
    "text": lambda: b'["' + b"a" * (60 * MIB) + b'"]',
    "escapes": lambda: b'["' + b"\\u0041" * (MANY // 2) + b'"]',
}


@contextmanager
def watched(monkeypatch: pytest.MonkeyPatch, bound: JsonBound) -> Iterator[list[int]]:
    """Note the size of everything that this package gives to the parser, in this process."""
    given: list[int] = []
    parse = json.loads

    def noting(text: Any, **how: Any) -> Any:
        given.append(len(text))
        return parse(text, **how)

    with monkeypatch.context() as patch:
        patch.setattr(json, "loads", noting)
        yield given
    assert max(given, default=0) <= bound.size_bytes


# ---- what unpacks


@pytest.mark.parametrize("kind", RAW)
@pytest.mark.parametrize(
    "decode",
    [FilePlan.decode, lambda body: FilePlan.page(body, 0, 1), decode_moves, decode_published, decode_paths,
     CleanList.decode],
    ids=["plan", "page", "moves", "published", "paths", "clean"],
)  # fmt: skip
def test_no_list_is_parsed_beyond_the_bound(
    kind: str, decode: Callable[[bytes], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    body = zlib.compress(RAW[kind](), 1)
    with parsing_at_most(JSON_BOUND), watched(monkeypatch, JSON_BOUND) as given:
        with pytest.raises(TooLargeHereError, match="Nothing was read or changed"):
            decode(body)
        assert given == []


def test_parts_of_a_plan_are_bounded_as_plans_are() -> None:
    part = zlib.compress(RAW["lists"](), 1)
    part += b"RAW\0" + (3 * MANY + 4).to_bytes(8, "big")
    body = packed_parts({"v": 2, "files": [7]}, [deflated(REST), part])
    with parsing_at_most(JSON_BOUND), pytest.raises(TooLargeHereError):
        FilePlan.page(body, 0, 1)


def test_root_of_a_ledger_is_bounded() -> None:
    root = Ledger.empty().root()
    with parsing_at_most(JsonBound(size_bytes=10)), pytest.raises(TooLargeHereError, match="stored ledger"):
        Ledger.from_root(root, lambda names: {})


def test_what_has_a_most_of_its_own_is_damage_above_that() -> None:
    for decode in (decode_states, UpstreamPosition.decode):
        with pytest.raises(StateCorruptError, match="bytes"):
            decode(b'{"cursor":"' + b"a" * (4 * MAX_STATE_BYTES) + b'"}')


def test_without_a_bound_all_is_parsed() -> None:
    assert read_json(b"[0,0,0]", "list") == [0, 0, 0]
    with parsing_at_most(JsonBound(values=5)):
        with pytest.raises(TooLargeHereError):
            read_json(b"[0,0,0]", "list")
        assert read_json(b"[0]", "list") == [0]
    assert stored_json.read_json(b"[0,0,0]", "list") == [0, 0, 0]


@pytest.mark.seldom
def test_lists_of_a_hundred_thousand_files_are_within_the_bound() -> None:
    files = [FileInfo(f"s3://lake/raw/day=2013-01-31/part-{n:06}.parquet", n, n, f"{n:032x}") for n in range(100_000)]
    moves = [(file.path, file.path) for file in files]
    with parsing_at_most(JSON_BOUND):
        assert len(FilePlan.decode(one_document(files)).files) == len(files)
        assert len(decode_moves(encode_moves(moves))) == len(files)


def one_document(files: list[FileInfo]) -> bytes:
    """Return a plan as versions wrote it that know of no parts."""
    listing = Listing.of(files)
    columns = {
        "base": "",
        "path": list(listing.paths),
        "size": listing.sizes.tolist(),
        "time": listing.times_ms.tolist(),
        "etag": None if listing.etags is None else list(listing.etags),
    }
    return deflated(REST | {"upstream": None} | columns)


def test_answer_of_a_child_is_bounded() -> None:
    with parsing_at_most(JSON_BOUND), pytest.raises(LookFailedError):
        _parsed(b'{"answer":[' + b"[]," * MIB + b"0]}", "copy", LIMITS)


# ---- the API server


def with_plan(world: World, job: str, body: bytes) -> None:
    """Let the last run of a job have another plan."""
    run = list(world.store.runs(job))[-1]
    ctx, entry = next(iter(run.plans.items()))
    stored = item.plan_attribute(ctx, entry)
    ((name, value),) = stored.items()
    assert isinstance(value, dict)
    value = {**value, "body": item.payload_value(world.store.blobs.put(body))}
    world.store.table.transact([Update(world.store.keys(job).run(run.key), set={name: value})])


@pytest.mark.airflow
@pytest.mark.xdist_group("plugin")
@pytest.mark.seldom  # half a minute
def test_large_stored_plan_is_parsed_by_no_thread_of_the_api_server(
    site: Site, world: World, dags: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = run_of_dag(world, "flights")
    with_plan(world, job, zlib.compress(RAW["lists"](), 1))
    paths = [f"/jobs/{job}/runs/1/files", f"/jobs/{job}/pending", f"/jobs/{job}/lag", f"/jobs/{job}/runs", "/me"]
    with watched(monkeypatch, JSON_BOUND), ThreadPoolExecutor(len(paths)) as pool:
        asked = list(pool.map(lambda path: site.as_user("vera").get(f"{API}{path}"), paths))
        spec = {"kind": "set", "ctx": "raw", "value": "now"}
        preview = site.as_user("ada").post(f"{API}/jobs/{job}/preview", json=spec)
    files, pending, lag, runs, me = (answer.status_code for answer in asked)
    assert (runs, me) == (200, 200)
    assert all(status in (409, 422, 500, 502) for status in (files, preview.status_code)), (asked[0].text, preview.text)
    assert pending in (200, 409, 500, 502)
    assert lag in (200, 409, 500, 502)


@pytest.mark.seldom
@pytest.mark.airflow
@pytest.mark.xdist_group("plugin")
def test_files_of_a_plan_above_the_bound_are_listed_by_another_process(
    site: Site, world: World, dags: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = run_of_dag(world, "flights")
    files = [FileInfo(f"/lake/{n:06}", n, n, None) for n in range(400_000)]
    with_plan(world, job, one_document(files))
    with watched(monkeypatch, JSON_BOUND):
        answer = site.as_user("vera").get(f"{API}/jobs/{job}/runs/1/files", params={"offset": 399_999, "limit": 5})
    assert answer.status_code == 200, answer.text
    assert answer.json()["total"] == 400_000
    assert [file["path"] for file in answer.json()["files"]] == ["/lake/399999"]


@pytest.mark.seldom
@pytest.mark.airflow
@pytest.mark.xdist_group("plugin")
def test_large_value_that_a_job_keeps_is_damage_of_that_value(
    site: Site, world: World, dags: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = run_of_dag(world, "flights")
    apply(world.store, job, Change("set-state", state="cursor", value="7"), reason="a test", who="ann")
    line = world.store.keys(job).line(world.store.head(job).epoch)
    stored = world.store.blobs.put(b'{"a":' + RAW["lists"]() + b"}")
    world.store.table.transact([Update(line, set={"position:.state": item.payload_value(stored)})])
    with watched(monkeypatch, JSON_BOUND):
        answer = site.as_user("vera").get(f"{API}/jobs/{job}")
    assert answer.status_code == 200
    assert "is damaged" in str(answer.json()["job_state"])
