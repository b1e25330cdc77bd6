"""Stored plans and lists that mean nothing: each is damage of its own job, never an error that nobody foresaw."""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable
from typing import Any

import pytest

from airflow_bookmarks.cli import main
from airflow_bookmarks.core.errors import OptionError, StateCorruptError
from airflow_bookmarks.core.files.file_list import decode_moves, decode_paths, decode_published
from airflow_bookmarks.core.files.file_plan import FilePlan
from airflow_bookmarks.core.job_state import decode_states, parse_state, shown_states
from airflow_bookmarks.core.position import UpstreamPosition
from airflow_bookmarks.core.text.deflated import deflated, packed_parts
from airflow_bookmarks.lifecycle.changes.change import Change, apply
from airflow_bookmarks.lifecycle.inspect.runs import files_of, page_of
from airflow_bookmarks.lifecycle.maintenance.doctor import examine
from airflow_bookmarks.store.codec import item
from airflow_bookmarks.store.table import Update
from tests.airflow.conftest import World
from tests.lifecycle.shop import Shop
from tests.plugin.conftest import API, Site, run_of_dag

COLUMNS: dict[str, Any] = {"base": "/lake/", "path": ["a"], "size": [1], "time": [1], "etag": None}
REST: dict[str, Any] = {
    "v": 1, "roots": ["/lake"], "listed": 1, "known": 0, "skipped": {}, "partition_types": {}, "upstream": None,
}  # fmt: skip
WINDOW = {"job": "a", "output": "b", "after": 0, "until": 1, "epoch": 1, "changes": 0, "runs": [[1, 0]], "replaced": 0}
HALF_A_CHARACTER = zlib.compress(json.dumps({**REST, **COLUMNS, "path": ["\ud800"]}).encode())

WRONG_COLUMNS: list[dict[str, Any]] = [
    {"size": []},
    {"size": [1, 2]},
    {"size": [[1]]},
    {"size": [1e300]},
    {"time": 7},
    {"time": [[1]]},
    {"time": [[[[1]]]]},
    {"time": [2**64]},
    {"time": [float("nan")]},
    {"time": [float("inf")]},
    {"etag": []},
    {"etag": [7]},
    {"etag": "a"},
    {"etag": {"a": 1}},
    {"path": [7]},
    {"path": "a"},
    {"path": {"a": 1}},
    {"base": [], "path": [["x"]]},
    {"base": 7},
]
WRONG_REST: list[dict[str, Any]] = [
    {"roots": [7]},
    {"roots": "lake"},
    {"bases": ["/lake", None]},
    {"listed": "many"},
    {"skipped": {"late": []}},
    {"skipped": ["late"]},
    {"partition_types": {"day": 7}},
    {"sequence": {"rule": 7, "before": None}},
    {"sequence": {"rule": "path", "before": []}},
    {"upstream": {**WINDOW, "job": 7}},
    {"upstream": {**WINDOW, "until": "all"}},
    {"upstream": {**WINDOW, "runs": [[1, "x"]]}},
    {"unread": {"late": 7}},
    {"unread": {"late": {**COLUMNS, "time": []}}},
    {"quarantined": [[1, 2, 3, 4, 5, 6]]},
    {"again": [2**70]},
]


def parted(counts: object, *parts: bytes, rest: object = REST) -> bytes:
    return packed_parts({"v": 2, "files": counts}, [deflated(rest), *parts])


def part(**columns: Any) -> bytes:
    return deflated({**COLUMNS, **columns})


WRONG_PLANS = [
    *(deflated({**REST, **COLUMNS, **wrong}) for wrong in (*WRONG_COLUMNS, *WRONG_REST)),
    *(parted([1], part(**wrong)) for wrong in WRONG_COLUMNS),
    HALF_A_CHARACTER,
    parted([1], zlib.compress(json.dumps({**COLUMNS, "path": ["\udcff"]}).encode())),
    parted([2], part()),
    parted([2**80], part()),
    parted([1.0], part()),
    parted([1], parted([1], part())),
    parted([1], deflated([1])),
    deflated([1]),
    deflated("v"),
    zlib.compress(b'{"v":2,"v":1,"sizes":[0]}'),
    zlib.compress(b'{"v":2,"sizes":[' + b"9" * 5000 + b"]}"),
]


@pytest.fixture
def planned(shop: Shop) -> Callable[[bytes], None]:
    """Return what stores a plan in the place of the one of run 1 of job "copy"."""
    shop.put("a.txt", "a")
    shop.run()
    (run,) = shop.store.runs("copy")
    key = shop.store.keys("copy").run(run.key)

    def put(body: bytes) -> None:
        entry: Any = shop.store.table.get([key])[key]["plan:raw"]
        (slot,) = (name for name, value in entry.items() if isinstance(value, dict) and "sha256" in value)
        entry[slot] = item.payload_value(shop.store.blobs.refer(body, len(body)))
        shop.store.table.transact([Update(key, set={"plan:raw": entry})])

    return put


def test_the_plan_that_all_others_are_made_of_can_be_read() -> None:
    for body in (deflated({**REST, **COLUMNS}), parted([1], part())):
        assert FilePlan.decode(body).files.paths == ["/lake/a"]
        assert FilePlan.page(body, 0, 1)[0] == 1


@pytest.mark.parametrize("body", WRONG_PLANS, ids=range(len(WRONG_PLANS)))
def test_plan_that_means_nothing_is_damage(body: bytes) -> None:
    with pytest.raises(StateCorruptError, match="nothing was changed"):
        FilePlan.decode(body)


@pytest.mark.parametrize("wrong", WRONG_COLUMNS, ids=str)
@pytest.mark.parametrize(
    "make", [lambda **one: deflated({**REST, **COLUMNS, **one}), lambda **one: parted([1], part(**one))]
)
def test_page_of_a_plan_that_means_nothing_is_damage(make: Callable[..., bytes], wrong: dict[str, Any]) -> None:
    with pytest.raises(StateCorruptError, match="nothing was changed"):
        FilePlan.page(make(**wrong), 0, 1)


@pytest.mark.parametrize("rows", [[7], [["a"]], [["a", 7]], [["a", "b", "c", 1, None]], [["a", "b", 1, 1, 7]], ["ab"]])
@pytest.mark.parametrize("decode", [decode_moves, decode_published])
def test_publish_list_that_means_nothing_is_damage(decode: Callable[[bytes], object], rows: list[Any]) -> None:
    with pytest.raises(StateCorruptError, match="nothing was changed"):
        decode(deflated(rows))


def test_delete_list_that_means_nothing_is_damage() -> None:
    for body in (
        deflated([7]),
        deflated([["a"]]),
        deflated([["a", 1, 1, 7]]),
        deflated([[7, 1, 1, None]]),
        zlib.compress(b'["\\ud800"]'),
    ):
        with pytest.raises(StateCorruptError, match="nothing was changed"):
            decode_paths(body)
    assert decode_paths(zlib.compress(rb'["a\\udir"]')) == ["a\\udir"]


@pytest.mark.parametrize("part", [{"run_number": "x"}, {"job": 7}, {"epoch": None}, {"output": []}], ids=str)
def test_position_in_an_upstream_that_means_nothing_is_damage(part: dict[str, Any]) -> None:
    whole = {"job": "a", "output": "b", "run_number": 1, "epoch": 1, "changes": 0, **part}
    with pytest.raises(StateCorruptError, match="nothing was changed"):
        UpstreamPosition.decode(json.dumps(whole).encode())


@pytest.mark.parametrize("body", [WRONG_PLANS[0], WRONG_PLANS[17], HALF_A_CHARACTER], ids=range(3))
def test_doctor_names_a_plan_that_means_nothing_and_goes_on_to_other_jobs(
    shop: Shop, planned: Callable[[bytes], None], body: bytes
) -> None:
    shop.run("other")
    (run,) = shop.store.runs("other")
    shop.store.table.transact([Update(shop.store.keys("other").run(run.key), set={"state": "LOST"})])
    planned(body)

    found = examine(shop.store)

    assert {"copy", "other"} <= {finding.job for finding in found}
    for read in (
        lambda: files_of(shop.store, "copy", "1"),
        lambda: page_of(shop.store, "copy", "1", offset=0, limit=1),
    ):
        with pytest.raises(StateCorruptError):
            read()
    assert main(["--store", f"sqlite:///{shop.root}/bookmarks.db?namespace=test", "diff", "copy", "1", "1"]) == 1


# ---- half a character, which JSON can hold and no text can


def test_half_a_character_that_a_job_keeps_is_shown_written_out() -> None:
    shown = shown_states(decode_states(b'{"cursor": "\\ud800", "b\\udfff": [NaN]}'))

    assert shown == {"cursor": '"\\ud800"', "b\\udfff": "[NaN]"}
    assert json.dumps(shown, ensure_ascii=False).encode()


def test_value_with_half_a_character_is_refused_where_a_person_sets_it(shop: Shop) -> None:
    shop.run()
    with pytest.raises(OptionError, match="is no JSON"):
        parse_state("cursor", '"\\ud800"')
    with pytest.raises(OptionError, match="is no JSON"):
        apply(shop.store, "copy", Change("set-state", state="cursor", value='"\\udfff"'), reason="a test", who="ann")


@pytest.mark.airflow
@pytest.mark.xdist_group("plugin")
def test_page_shows_a_job_that_keeps_half_a_character(site: Site, world: World, dags: object) -> None:
    job = run_of_dag(world, "flights")
    change = Change("set-state", state="cursor", value='"2013-01-31"')
    apply(world.store, job, change, reason="a test", who="ann")
    line = world.store.keys(job).line(world.store.head(job).epoch)
    stored = world.store.blobs.refer(b'{"cursor":"\\ud800"}', 100)
    world.store.table.transact([Update(line, set={"position:.state": item.payload_value(stored)})])

    answer = site.as_user("vera").get(f"{API}/jobs/{job}")

    assert answer.status_code == 200
    assert answer.json()["job_state"] == {"cursor": '"\\ud800"'}
