"""What somebody might learn of jobs and files by how they ask: by patterns, and by pages of a list that changes."""

from __future__ import annotations

from typing import Any

import pytest

from airflow_bookmarks.core.selection.listing import FileInfo
from airflow_bookmarks.store.table import Delete
from tests.airflow.conftest import World
from tests.hostile.test_large_json import one_document, with_plan
from tests.plugin.conftest import API, Site, run_of_dag, three_runs

pytestmark = [pytest.mark.airflow, pytest.mark.xdist_group("plugin")]

# Of SQL, of Hadoop, of Python's regular expressions, and of the conditions of DynamoDB.
PATTERNS = [
    "%",
    "_",
    "f%",
    "flights_clean",
    "*",
    "fl*",
    "f?ights*",
    "[f]*",
    "{flights,x}*",
    ".*",
    "^f",
    "fl.ghts.clean",
]


@pytest.mark.seldom
@pytest.mark.parametrize("pattern", PATTERNS)
def test_pattern_finds_no_job(site: Site, world: World, dags: object, pattern: str) -> None:
    run_of_dag(world, "flights")
    viewer = site.as_user("vera")
    for how in ({"search": pattern}, {"search": pattern, "sort": "state"}):
        assert viewer.get(f"{API}/jobs", params=how).json()["total"] == (1 if pattern in "flights.clean" else 0)
    assert viewer.get(f"{API}/dags/{pattern.replace('?', '%3F')}/jobs").json()["total"] == 0
    absent = viewer.get(f"{API}/jobs/{pattern.replace('?', '%3F').replace('%', '%25')}")
    assert absent.status_code in (404, 422)


@pytest.mark.seldom
@pytest.mark.parametrize("search", ["nights", "night", "s.cle", "%", "*"])
def test_search_counts_nothing_of_a_job_that_may_not_be_looked_at(
    site: Site, world: World, dags: object, search: str
) -> None:
    run_of_dag(world, "flights")
    seen = site.as_user("vera")
    before = seen.get(f"{API}/jobs", params={"search": search}).json()["total"]
    run_of_dag(world, "unknown")  # of no DAG that Airflow has
    found = seen.get(f"{API}/jobs", params={"search": search}).json()
    assert "unknown" not in str(found)
    assert found["total"] == before


@pytest.mark.parametrize(
    "value", ["retry:%", "retry:/lake/*", "retry:**", "retry:/lake/secret?", "retry:{/lake/secret}", "retry:", "*", "%"]
)
def test_set_takes_no_pattern_of_files_and_no_viewer(site: Site, world: World, dags: object, value: str) -> None:
    job = three_runs(world)
    spec = {"kind": "set", "ctx": "raw", "value": value}
    refused = site.as_user("vera").post(f"{API}/jobs/{job}/preview", json=spec)
    assert refused.status_code == 403
    answer = site.as_user("ada").post(f"{API}/jobs/{job}/preview", json=spec)
    assert answer.status_code == 422, answer.text
    assert str(world.shop.raw) not in answer.text


# ---- pages of a list that changes between them


def page(site: Site, job: str, offset: int) -> Any:
    return site.as_user("vera").get(f"{API}/jobs/{job}/runs/1/files", params={"offset": offset, "limit": 2})


def some_files(count: int, folder: str) -> bytes:
    return one_document([FileInfo(f"/{folder}/{n}", n, n, None) for n in range(count)])


def test_page_of_a_list_that_became_shorter_is_empty_and_says_how_many_there_are(
    site: Site, world: World, dags: object
) -> None:
    job = run_of_dag(world, "flights")
    with_plan(world, job, some_files(5, "first"))
    assert [file["path"] for file in page(site, job, 0).json()["files"]] == ["/first/0", "/first/1"]
    with_plan(world, job, some_files(1, "second"))
    told = page(site, job, 2).json()
    assert (told["files"], told["total"]) == ([], 1)


def test_page_of_a_list_that_was_collected_meanwhile_is_damage_without_its_name(
    site: Site, world: World, dags: object
) -> None:
    job = run_of_dag(world, "flights")
    with_plan(world, job, some_files(5, "first"))
    assert page(site, job, 0).status_code == 200
    blobs = [entry.body.sha256 for entry in list(world.store.runs(job))[-1].plans.values()]
    keys = [world.store.blobs._key(name, 0) for name in blobs]
    world.store.table.transact([Delete(key) for key in keys])
    gone = page(site, job, 2)
    assert gone.status_code == 500
    assert not any(name in gone.text for name in blobs)
