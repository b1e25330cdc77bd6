"""A backfill from the page: the plan, the rights that it takes, and what is made of it."""

from __future__ import annotations

from typing import Any

import pytest

from airflow_bookmarks.core.job import RunIdentity
from airflow_bookmarks.lifecycle.changes.change import rewind
from airflow_bookmarks.lifecycle.run.enabled import ActiveRun
from airflow_bookmarks.sources.upstream.source import UpstreamSource
from tests.airflow.conftest import World
from tests.lifecycle.maintenance.test_damage import damage_head
from tests.plugin.conftest import API, Site

from .test_change import audited, post

pytestmark = [pytest.mark.airflow, pytest.mark.xdist_group("plugin")]

CLEAN, REPORT, NIGHTLY = "flights.clean", "flights.report", "nights.mail"


@pytest.fixture
def chain(world: World, dags: object) -> World:
    """Let `report` of the same DAG read `clean`, and a job of another DAG read `report`: two runs each."""
    for number in (1, 2):
        world.shop.put(f"{number}.txt", f"line {number}")
        for job, upstream in ((CLEAN, None), (REPORT, CLEAN), (NIGHTLY, REPORT)):
            dag_id, _, task_id = job.partition(".")
            identity = RunIdentity(f"{dag_id}/{number}/{task_id}", dag_id=dag_id, task_id=task_id)
            run = ActiveRun.begin(world.store, job, identity, world.shop.environment)
            world.shop.copy(run, upstream=upstream)
            run.commit()
    return world


def meant(plan: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"reason": "bad delivery", "confirm": CLEAN, "expected_versions": plan["versions"], **more}


def epochs(world: World) -> list[int]:
    return [world.store.head(job).epoch for job in (CLEAN, REPORT, NIGHTLY)]


def test_plan_is_shown_and_then_made(site: Site, chain: World, looks: None) -> None:
    plan = post(site, "ada", f"{CLEAN}/backfill/preview", {"to": "1", "clean": True})
    assert [(step["job"], step["to_run"], step["refused"]) for step in plan["steps"]] == [
        (CLEAN, 1, None), (REPORT, 1, None), (NIGHTLY, 1, None)
    ]  # fmt: skip
    assert plan["steps"][2]["because"] == {REPORT: 1}
    assert (plan["undone_run_count"], plan["read_again"]["files"], plan["files_to_clean"]) == (3, 3, 3)
    assert [each["dag_id"] for each in plan["dag_runs"]] == ["flights", "nights"]
    assert epochs(chain) == [1, 1, 1]

    told = post(site, "ada", f"{CLEAN}/backfill", meant(plan, to="1", clean=True))

    assert f"{CLEAN}, {REPORT}, {NIGHTLY} went back" in told["said"]
    assert "then trigger, in this order: flights, nights" in told["said"]
    assert epochs(chain) == [2, 2, 2]
    assert ("bookmark.backfill", "ada") in [(row[0], row[1]) for row in audited()]
    assert {event["who"] for event in chain.store.events(NIGHTLY)} == {"ada"}


def test_plan_says_which_jobs_run_outside_this_airflow(site: Site, chain: World) -> None:
    for job, identity in (
        ("abroad.copy", RunIdentity("abroad/1/copy", dag_id="abroad", task_id="copy")),
        ("notebook", RunIdentity("notebook/1")),
    ):
        run = ActiveRun.begin(chain.store, job, identity, chain.shop.environment)
        chain.shop.copy(run, upstream=CLEAN)
        run.commit()

    plan = post(site, "otto", f"{CLEAN}/backfill/preview", {"to": "1"})

    assert {(each["dag_id"], *each["jobs"]): each["is_here"] for each in plan["dag_runs"]} == {
        ("flights", CLEAN, REPORT): True,
        ("nights", NIGHTLY): True,
        ("abroad", "abroad.copy"): False,
        (None, "notebook"): False,
    }


def test_job_that_changed_since_the_plan_refuses_all_of_it(site: Site, chain: World) -> None:
    plan = post(site, "ada", f"{CLEAN}/backfill/preview", {"to": "1"})
    rewind(chain.store, NIGHTLY, 1, reason="meanwhile", who="otto")
    refused = post(site, "ada", f"{CLEAN}/backfill", meant(plan, to="1"), 409)
    assert refused["error"] == "ChangedMeanwhileError"
    assert epochs(chain) == [1, 1, 2]


def test_versions_of_other_jobs_than_the_plan_has_are_refused(site: Site, chain: World) -> None:
    plan = post(site, "ada", f"{CLEAN}/backfill/preview", {"to": "1"})
    fewer = {**plan, "versions": {CLEAN: plan["versions"][CLEAN]}}
    assert post(site, "ada", f"{CLEAN}/backfill", meant(fewer, to="1"), 409)["error"] == "ChangedMeanwhileError"
    assert epochs(chain) == [1, 1, 1]


def test_plan_with_a_job_that_may_not_be_looked_at_names_it_nowhere(site: Site, chain: World) -> None:
    refused = site.as_user("flo").post(f"{API}/jobs/{CLEAN}/backfill/preview", json={"to": "1"})
    assert refused.status_code == 403
    assert "1 of the jobs that read it" in refused.json()["message"]
    assert NIGHTLY not in refused.text
    plan = post(site, "ada", f"{CLEAN}/backfill/preview", {"to": "1"})
    sneaky = site.as_user("flo").post(f"{API}/jobs/{CLEAN}/backfill", json=meant(plan, to="1"))
    assert sneaky.status_code == 404  # as if there were no such job
    probing = {"to": "1", "leave": [NIGHTLY]}
    missing = {"to": "1", "leave": ["no.such"]}
    answers = [
        site.as_user("flo").post(f"{API}/jobs/{CLEAN}/backfill/preview", json=body) for body in (probing, missing)
    ]
    assert [each.status_code for each in answers] == [404, 404]
    assert epochs(chain) == [1, 1, 1]


@pytest.mark.parametrize("is_damaged", [False, True], ids=["whole", "damaged"])
def test_backfill_without_a_plan_names_no_job_at_a_distance_that_is_hidden(
    site: Site, chain: World, is_damaged: bool
) -> None:
    if is_damaged:  # it has no version then, so that the others are all that a plan would have
        damage_head(chain.shop, NIGHTLY)
    guessed = {job: chain.store.head(job).version for job in (CLEAN, REPORT)}
    body = meant({"versions": guessed if is_damaged else {CLEAN: guessed[CLEAN]}}, to="1")

    refused = site.as_user("flo").post(f"{API}/jobs/{CLEAN}/backfill", json=body)

    assert refused.status_code == 403
    assert "1 of the jobs that read it" in refused.json()["message"]
    assert NIGHTLY not in refused.text
    assert is_damaged or NIGHTLY in site.as_user("ada").post(f"{API}/jobs/{CLEAN}/backfill", json=body).text
    assert chain.store.head(CLEAN).epoch == 1


def test_backfill_of_jobs_in_a_circle_names_none_that_is_hidden(site: Site, chain: World) -> None:
    identity = RunIdentity("flights/3/report", dag_id="flights", task_id="report")
    run = ActiveRun.begin(chain.store, REPORT, identity, chain.shop.environment)
    run.plan("back", UpstreamSource(chain.store, REPORT, NIGHTLY))
    run.commit()

    refused = site.as_user("flo").post(f"{API}/jobs/{CLEAN}/backfill", json=meant({"versions": {}}, to="1"))

    assert refused.status_code == 409
    assert "in a circle" in refused.json()["message"]
    assert NIGHTLY not in refused.text


def test_reader_that_is_left_out_stays(site: Site, chain: World) -> None:
    plan = post(site, "ada", f"{CLEAN}/backfill/preview", {"to": "1", "leave": [REPORT]})
    assert ([step["job"] for step in plan["steps"]], plan["left_out"]) == ([CLEAN], [REPORT])
    post(site, "ada", f"{CLEAN}/backfill", meant(plan, to="1", leave=[REPORT]))
    assert epochs(chain) == [2, 1, 1]


def test_job_that_a_run_holds_refuses_the_plan_unless_it_is_forced(site: Site, chain: World) -> None:
    chain.shop.begin(REPORT)
    plan = post(site, "ada", f"{CLEAN}/backfill/preview", {})
    assert (plan["refused_jobs"], plan["steps"][1]["refused"] is None) == (1, False)
    assert "can't go back" in post(site, "ada", f"{CLEAN}/backfill", meant(plan), 409)["message"]
    forced = post(site, "ada", f"{CLEAN}/backfill/preview", {"force": True})
    post(site, "ada", f"{CLEAN}/backfill", meant(forced, force=True))
    assert epochs(chain) == [2, 2, 2]


def test_viewer_may_not_plan(site: Site, chain: World) -> None:
    post(site, "vera", f"{CLEAN}/backfill/preview", {"to": "1"}, 403)


@pytest.mark.parametrize("hides", [False, True], ids=["shown", "hidden"])
def test_plan_has_the_values_of_job_state_before_and_after(
    site: Site, chain: World, monkeypatch: pytest.MonkeyPatch, hides: bool
) -> None:
    monkeypatch.setattr("airflow_bookmarks.plugin.connection.PageHook.hides_state", hides)
    for number in (3, 4):
        chain.shop.put(f"{number}.txt", f"line {number}")
        identity = RunIdentity(f"flights/{number}/clean", dag_id="flights", task_id="clean")
        run = ActiveRun.begin(chain.store, CLEAN, identity, chain.shop.environment)
        chain.shop.copy(run)
        run.state("cursor").set(number)
        run.commit()

    plan = post(site, "ada", f"{CLEAN}/backfill/preview", {"to": "3"})

    before, after = ("(hidden)", "(hidden)") if hides else ("4", "3")
    assert [(step["job"], step["state"]) for step in plan["steps"]] == [
        (CLEAN, {"cursor": {"before": before, "after": after}})
    ]
