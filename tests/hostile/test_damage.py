"""State that can't be read: to whom the page names items, objects and tables, and to whom it does not."""

from __future__ import annotations

from typing import Any

import pytest

from airflow_bookmarks.lifecycle.changes.change import Change, apply
from airflow_bookmarks.store.table import Update
from tests.airflow.conftest import World
from tests.plugin.conftest import API, Site, run_of_dag, three_runs

pytestmark = [pytest.mark.airflow, pytest.mark.xdist_group("plugin")]

ELSEWHERE = "s3://payroll-of-others/state"
VIEWER, SEES_CONNECTIONS = "vera", "otto"


def get(site: Site, user: str, path: str, **params: Any) -> Any:
    answer = site.as_user(user).get(f"{API}{path}", params=params)
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_why_a_job_or_run_is_damaged_names_items_to_those_alone_who_see_connections(
    site: Site, world: World, dags: object
) -> None:
    job = three_runs(world)
    keys, runs = world.store.keys(job), list(world.store.runs(job))
    world.store.table.transact([Update(keys.run(runs[0].key), set={"state": ELSEWHERE})])
    asked: list[tuple[str, dict[str, Any]]] = [(f"/jobs/{job}/runs", {})]
    told = {user: [get(site, user, path, **how) for path, how in asked] for user in (VIEWER, SEES_CONNECTIONS)}
    world.store.table.transact([Update(keys.head, set={"epoch": ELSEWHERE})])
    asked = [("/jobs", {}), ("/jobs", {"sort": "state"}), (f"/jobs/{job}", {}), ("/dags/flights/jobs", {})]
    for user, answers in told.items():
        answers += [get(site, user, path, **how) for path, how in asked]

    for answer in told[VIEWER]:
        assert "DAMAGED" in str(answer)
        assert ELSEWHERE not in str(answer)
        assert "#JOB#" not in str(answer)
        assert "is damaged; 'airflow-bookmarks doctor' names the item" in str(answer)
    for answer in told[SEES_CONNECTIONS]:
        assert "DAMAGED" in str(answer)
        assert ELSEWHERE in str(answer)


def test_why_values_that_a_job_keeps_are_damaged_names_no_object_to_a_viewer(
    site: Site, world: World, dags: object
) -> None:
    job = run_of_dag(world, "flights")
    change = Change("set-state", state="cursor", value='"2013-01-31"')
    apply(world.store, job, change, reason="a test", who="ann")
    line = world.store.keys(job).line(world.store.head(job).epoch)
    attributes = world.store.table.get([line])[line]
    name, stored = next((name, value) for name, value in attributes.items() if "state" in name and "position" in name)
    assert isinstance(stored, dict)
    world.store.table.transact([Update(line, set={name: {**stored, "sha256": "f" * 64}})])

    assert "f" * 64 in str(get(site, SEES_CONNECTIONS, f"/jobs/{job}")["job_state"])
    told = get(site, VIEWER, f"/jobs/{job}")["job_state"]
    assert "f" * 64 not in str(told)
    assert "is damaged" in str(told)
