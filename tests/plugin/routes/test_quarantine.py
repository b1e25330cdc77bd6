"""The files that a job has set aside, and how the page has them read again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from airflow_bookmarks.core.job import RunIdentity
from airflow_bookmarks.core.text.identity import Identity
from airflow_bookmarks.lifecycle.changes.approval import protect
from airflow_bookmarks.lifecycle.run.enabled import ActiveRun
from airflow_bookmarks.sources.files.planner import FileSource
from tests.airflow.conftest import World
from tests.lifecycle.shop import FILES
from tests.plugin.conftest import API, Site

pytestmark = [pytest.mark.airflow, pytest.mark.xdist_group("plugin")]

JOB = "flights.clean"


@pytest.fixture
def broken(world: World, dags: object) -> list[str]:
    """Let a run of a job set two of its three files aside; return their paths."""
    world.shop.put("a.txt", "a")
    paths = [str(world.shop.put(name, "b")) for name in ("b.txt", "c.txt")]
    identity = RunIdentity("flights/manual__1/clean", 1, dag_id="flights", task_id="clean", dag_run_id="manual__1")
    run = ActiveRun.begin(world.store, JOB, identity, world.shop.environment)
    run.plan("raw", FileSource(FILES, [str(world.shop.raw)]))
    run.quarantine("raw", dict.fromkeys(paths, "1 of 2 records do not fit the schema"))
    run.commit()
    return paths


def get(site: Site, path: str, user: str = "vera", **params: Any) -> Any:
    answer = site.as_user(user).get(f"{API}/jobs/{JOB}{path}", params=params)
    assert answer.status_code == 200, answer.text
    return answer.json()


def post(site: Site, user: str, path: str, **body: Any) -> Any:
    return site.as_user(user).post(f"{API}/jobs/{JOB}{path}", json=body)


def test_files_set_aside_are_listed_with_the_reason_and_counted_by_context(site: Site, broken: list[str]) -> None:
    told = get(site, "/quarantined")

    assert [each["path"] for each in told["files"]] == broken
    first = told["files"][0]
    assert (first["ctx"], first["bytes"], first["run_number"]) == ("raw", 2, 1)
    assert first["error"] == "1 of 2 records do not fit the schema"
    assert told["total"] == 2
    assert [Path(each["path"]).name for each in get(site, "/quarantined", limit=1, offset=1)["files"]] == ["c.txt"]
    assert [context["quarantined"] for context in get(site, "")["contexts"]] == [2]


def test_retry_is_previewed_with_its_files_and_leaves_the_event_of_a_set(
    site: Site, world: World, broken: list[str]
) -> None:
    spec = {"kind": "set", "ctx": "raw", "value": f"retry:{broken[0]}"}

    seen = post(site, "uma", "/preview", **spec).json()
    done = post(site, "uma", "/changes", **spec, reason="mended", expected_version=seen["version"], confirm=JOB)

    assert (seen["read_again"]["files"], seen["read_again"]["bytes"]) == (1, 2)
    assert done.status_code == 200, done.text
    assert [each["path"] for each in get(site, "/quarantined")["files"]] == broken[1:]
    event = get(site, "/events")["events"][0]
    assert (event["kind"], event["ctx"], event["value"], event["who"], event["why"]) == (
        "set", "raw", spec["value"], "uma", "mended",
    )  # fmt: skip


def test_retry_asks_for_the_rights_of_a_change(site: Site, broken: list[str]) -> None:
    spec = {"kind": "set", "ctx": "raw", "value": "retry:*"}

    assert post(site, "vera", "/preview", **spec).status_code == 403
    assert post(site, "nia", "/preview", **spec).status_code == 404
    assert site.as_user("nia").get(f"{API}/jobs/{JOB}/quarantined").status_code == 404


def test_retry_of_a_protected_job_needs_an_approval(site: Site, world: World, broken: list[str]) -> None:
    protect(world.store, JOB, reason="money", who=Identity("ann", True, "os"))
    spec = {"kind": "set", "ctx": "raw", "value": "retry:*"}

    seen = post(site, "uma", "/preview", **spec).json()
    sure = {"reason": "mended", "expected_version": seen["version"], "confirm": JOB}

    assert seen["needs_approval"] is True
    assert post(site, "uma", "/changes", **spec, **sure).status_code == 409
    assert post(site, "uma", "/requests", **spec, **sure).status_code == 201
