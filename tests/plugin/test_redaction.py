"""Names of jobs that somebody may not look at are in no answer about another job."""

from __future__ import annotations

from typing import Any

import pytest

from airflow_bookmarks.core.errors import StateCorruptError
from airflow_bookmarks.core.job import RunIdentity
from airflow_bookmarks.core.text.identity import Identity
from airflow_bookmarks.lifecycle.changes.approval import protect, request
from airflow_bookmarks.lifecycle.changes.change import Change, reset
from airflow_bookmarks.lifecycle.run.enabled import ActiveRun
from airflow_bookmarks.plugin import dependencies as visit
from airflow_bookmarks.plugin.auth import UserScope
from airflow_bookmarks.plugin.redaction import with_names_hidden
from airflow_bookmarks.plugin.schemas.responses import LagList, LagRow, Requested, RequestRow
from airflow_bookmarks.sources.files.planner import FileSource
from tests.airflow.conftest import World
from tests.lifecycle.shop import FILES

from .conftest import API, Site, meant, run_of_dag

pytestmark = [pytest.mark.airflow, pytest.mark.xdist_group("plugin")]

ABOVE, OURS, BELOW = "nights.raw", "flights.clean", "nights.report"


@pytest.fixture
def row_of_jobs(world: World) -> World:
    """Make a job of the DAG nights, one of flights that reads it, and one of nights that reads that."""
    world.shop.put("1.txt", "line")
    run_of_dag(world, "nights", ABOVE)
    for job, upstream in ((OURS, ABOVE), (BELOW, OURS)):
        dag_id, _, task_id = job.partition(".")
        run = ActiveRun.begin(
            world.store, job, RunIdentity(f"{job}/1", dag_id=dag_id, task_id=task_id), world.shop.environment
        )
        world.shop.copy(run, upstream=upstream)
        run.commit()
    return world


def scope(*readable: str, assets: bool = False) -> UserScope:
    return UserScope(frozenset(readable), frozenset({"flights", "nights"}), assets, False, False)


def lag_row(**details: Any) -> LagList:
    known: dict[str, Any] = dict.fromkeys(("consumed", "published", "runs", "files", "bytes", "seconds"))
    row = LagRow(job=OURS, source=ABOVE, kind="upstream", contexts=["raw"], state="OK", **known, **details)
    return LagList(lags=[row], looked_at="2026-01-01T00:00:00.000000Z")


def test_text_says_no_name_that_is_hidden_and_every_other_one(row_of_jobs: World) -> None:
    why = f"'{ABOVE}' moved; {ABOVE}.2 and the-{ABOVE} did not, and {OURS} waits for {ABOVE}."
    (told,) = with_names_hidden(row_of_jobs.store, scope("flights"), lag_row(why=why)).lags

    assert told.source == "(hidden)"
    assert told.why == f"'(hidden)' moved; {ABOVE}.2 and the-{ABOVE} did not, and {OURS} waits for (hidden)."


def test_job_that_is_not_there_is_hidden_from_whom_it_would_be(world: World) -> None:
    answer = lag_row(why=f"there is no bookmark named {ABOVE!r}")

    assert (
        with_names_hidden(world.store, scope("nights"), answer).lags[0].why == "there is no bookmark named '(hidden)'"
    )
    assert with_names_hidden(world.store, scope("nights", assets=True), answer) is answer


def test_who_may_look_at_all_is_told_all(row_of_jobs: World) -> None:
    answer = lag_row(why=f"{ABOVE} moved")

    assert with_names_hidden(row_of_jobs.store, scope("flights", "nights"), answer) is answer


def test_request_counts_consumers_that_are_hidden(row_of_jobs: World) -> None:
    store, who = row_of_jobs.store, Identity("uma", True, "airflow")
    protect(store, OURS, reason="asked for", who=who)
    version = store.head(OURS).version
    asked = request(store, OURS, Change("reset"), reason="asked for", who=who, expected_version=version)
    answer = Requested(request=RequestRow(**asked.as_dict(), may_approve=True), said="", audited=True)

    told = with_names_hidden(store, scope("flights"), answer).request.preview

    assert answer.request.preview["consumers"] == {BELOW: 1}
    assert (told["consumers"], told["hidden_consumers"]) == ({}, 1)


def test_health_of_a_job_names_no_upstream_that_is_hidden(
    site: Site, row_of_jobs: World, dags: tuple[str, ...]
) -> None:
    reset(row_of_jobs.store, ABOVE, reason="a test", who="ada")
    told = {user: site.as_user(user).get(f"{API}/jobs/{OURS}") for user in ("flo", "ada")}

    assert {answer.json()["health"]["state"] for answer in told.values()} == {"REWOUND"}
    assert ABOVE in told["ada"].text
    assert ABOVE not in told["flo"].text


def fail_ours(world: World) -> None:
    """Let a run of the job fail at its upstream."""
    identity = RunIdentity(f"{OURS}/2", dag_id="flights", task_id="clean")
    run = ActiveRun.begin(world.store, OURS, identity, world.shop.environment)
    run.plan("more", FileSource(FILES, [str(world.shop.raw)], clock=world.shop.environment.clock))
    run.abort(f"UpstreamRewoundError: REWOUND: upstream '{ABOVE}' went back")


@pytest.mark.parametrize("is_reset", [False, True], ids=["has_read_it", "was_reset"])
@pytest.mark.parametrize(
    "path", [f"jobs/{OURS}", "jobs", "jobs?sort=health", "dags/flights/jobs", f"jobs/{OURS}/runs?limit=1"]
)
def test_error_of_a_failed_try_names_no_upstream_that_is_hidden(
    site: Site, row_of_jobs: World, dags: tuple[str, ...], path: str, is_reset: bool
) -> None:
    if is_reset:  # its head says nothing of the upstream then
        reset(row_of_jobs.store, OURS, reason="a test", who="ada")
    fail_ours(row_of_jobs)
    told = {user: site.as_user(user).get(f"{API}/{path}").text for user in ("flo", "ada")}

    assert f"upstream '{ABOVE}' went back" in told["ada"]
    assert "upstream '(hidden)' went back" in told["flo"]
    assert ABOVE not in told["flo"]


# ---- errors


@pytest.mark.parametrize("value", ["99", "x"])
@pytest.mark.parametrize("path", ["preview", "changes", "requests"])
def test_refusal_names_no_hidden_job(
    site: Site, row_of_jobs: World, dags: tuple[str, ...], path: str, value: str
) -> None:
    if path == "requests":
        protect(row_of_jobs.store, OURS, reason="money", who=Identity("ada", True, "airflow"))
    spec = {"kind": "set", "ctx": "raw", "value": value}
    body = spec if path == "preview" else meant(row_of_jobs, OURS, "set", ctx="raw", value=value)
    told = {user: site.as_user(user).post(f"{API}/jobs/{OURS}/{path}", json=body) for user in ("flo", "ada")}

    assert {answer.status_code for answer in told.values()} == {422}
    assert ABOVE not in told["flo"].text
    assert "number of a published run of upstream '(hidden)'" in told["flo"].json()["message"]
    assert f"number of a published run of upstream '{ABOVE}'" in told["ada"].json()["message"]


def test_refusal_says_nothing_where_nobody_can_say_what_it_names(
    site: Site, row_of_jobs: World, dags: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> str:
        raise StateCorruptError("the edge can't be read")

    monkeypatch.setattr(visit, "text_with_names_hidden", broken)
    answer = site.as_user("flo").post(f"{API}/jobs/{OURS}/preview", json={"kind": "set", "ctx": "raw", "value": "99"})

    assert answer.status_code == 422
    assert ABOVE not in answer.text
