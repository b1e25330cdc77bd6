"""The export of a job, from the page."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from airflow_bookmarks.core.job import RunIdentity
from airflow_bookmarks.lifecycle.maintenance.transfer.exporting import export
from airflow_bookmarks.lifecycle.maintenance.transfer.importing import import_
from airflow_bookmarks.lifecycle.run.enabled import ActiveRun
from airflow_bookmarks.testing.memory import memory_store
from tests.airflow.conftest import World
from tests.plugin.conftest import API, Site, three_runs

pytestmark = [pytest.mark.airflow, pytest.mark.xdist_group("plugin")]

JOB = "flights.clean"


def ask(site: Site, user: str = "uma", job: str = JOB) -> Any:
    return site.as_user(user).get(f"{API}/jobs/{job}/export")


def test_document_is_that_of_the_command_line_and_is_imported(site: Site, world: World, dags: object) -> None:
    three_runs(world)

    answer = ask(site)

    assert answer.status_code == 200, answer.text
    assert answer.headers["Content-Disposition"] == "attachment; filename*=UTF-8''flights.clean.bookmark.json"
    told = answer.json()
    assert {**told, "exported_at": ""} == {**export(world.store, [JOB]), "exported_at": ""}
    with memory_store() as other:
        import_(other, told, who="uma", reason="a test")
        assert other.head(JOB).contexts == world.store.head(JOB).contexts


def test_export_takes_the_rights_of_a_change(site: Site, world: World, dags: object) -> None:
    three_runs(world)

    assert {user: ask(site, user).status_code for user in ("uma", "flo", "vera", "nia", "none")} == {
        "uma": 200, "flo": 200, "vera": 403, "nia": 404, "none": 404,
    }  # fmt: skip


@pytest.mark.seldom
def test_document_that_names_a_job_which_somebody_may_not_look_at_is_not_for_them(
    site: Site, world: World, dags: object
) -> None:
    three_runs(world)
    identity = RunIdentity("nights/1/down", 1, dag_id="nights", task_id="down", dag_run_id="1")
    run = ActiveRun.begin(world.store, "nights.down", identity, world.shop.environment)
    world.shop.copy(run, upstream=JOB)
    run.commit()

    above, below = ask(site, "flo"), ask(site, "nia", "nights.down")

    for answer in (above, below):
        assert (answer.status_code, answer.json()["error"]) == (409, "ExportRefusedError")
        assert "you may not look at one of them" in answer.json()["message"]
    assert "nights" not in above.text
    assert JOB not in below.text
    assert ask(site, "uma").status_code == 200


def test_connection_that_hides_state_lets_nobody_export(
    site: Site, world: World, dags: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    three_runs(world)
    hides = property(lambda hook: True)
    monkeypatch.setattr("airflow_bookmarks.plugin.connection.PageHook.hides_state", hides)

    answer = ask(site, "ada")

    assert answer.status_code == 409
    assert f"airflow-bookmarks export {JOB} --file PATH" in answer.json()["message"]


def test_what_is_too_large_to_hand_out_says_how_it_is_exported(
    site: Site, world: World, dags: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    three_runs(world)
    backstage = site.app.state.backstage
    monkeypatch.setattr(site.app.state, "backstage", replace(backstage, limits=replace(backstage.limits, answer=3_000)))

    answer = ask(site)

    assert answer.status_code == 409, answer.text
    assert answer.json()["error"] == "ExportRefusedError"
    assert "hands out 3,000 at most" in answer.json()["message"]
    assert f"airflow-bookmarks export {JOB} --file PATH" in answer.json()["message"]
