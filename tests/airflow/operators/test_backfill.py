"""A backfill from Airflow: by the hook, and by the operator, once for a series of tries."""

from __future__ import annotations

from typing import Any

import pytest

from airflow_bookmarks.airflow_compat import AirflowFailException
from airflow_bookmarks.core.errors import (
    BackfillStoppedError,
    ChangedMeanwhileError,
    ChangeRefusedError,
    StoreUnavailableError,
)
from airflow_bookmarks.hooks.bookmark import BookmarkHook
from airflow_bookmarks.lifecycle.changes.change import Change, apply, rewind, set_state
from airflow_bookmarks.operators.backfill import BookmarkBackfillOperator
from airflow_bookmarks.store.bookmark_store import BookmarkStore
from tests.airflow.conftest import World, connect

from .test_sharded_change import told

WHY: dict[str, Any] = {"task_id": "change", "job": "clean", "reason": "bad delivery"}


@pytest.fixture
def chain(world: World) -> World:
    """Let `report` read `clean`, and `mail` read `report`: three runs each."""
    for name in "abc":
        world.shop.put(f"{name}.txt", name)
        world.shop.run("clean")
        world.shop.run("report", upstream="clean")
        world.shop.run("mail", upstream="report")
    return world


def epochs(world: World) -> list[int]:
    return [world.store.head(job).epoch for job in ("clean", "report", "mail")]


def failing_at(job: str) -> Any:
    def failing(store: BookmarkStore, name: str, change: Change, **terms: Any) -> Any:
        if name == job:
            raise StoreUnavailableError("the table does not answer")
        return apply(store, name, change, **terms)

    return failing


def test_hook_makes_the_plan_that_was_looked_at(chain: World) -> None:
    hook = BookmarkHook()
    plan = hook.plan_backfill("clean", to="2")
    assert [step["job"] for step in plan["steps"]] == ["clean", "report", "mail"]
    done = hook.backfill("clean", to="2", reason="bad delivery", expected_versions=plan["versions"])
    assert (list(done["by_job"]), epochs(chain)) == (["clean", "report", "mail"], [2, 2, 2])


def test_plan_says_what_its_runs_cost(chain: World) -> None:
    plan = BookmarkHook().plan_backfill("clean", to="2", cost_per_hour=3600)
    seconds = sum(step["seconds"] for step in plan["steps"])
    assert (plan["cost"], BookmarkHook().plan_backfill("clean", to="2")["cost"]) == (pytest.approx(seconds), None)
    seen = BookmarkBackfillOperator(**WHY, to=2, dry_run=True, cost_per_hour=3600).execute(told())
    assert seen["cost"] == pytest.approx(seconds)


def test_hook_refuses_another_plan_than_the_one_that_was_looked_at(chain: World) -> None:
    hook = BookmarkHook()
    plan = hook.plan_backfill("clean", to="2")
    rewind(chain.store, "mail", 2, reason="meanwhile", who="ada")
    with pytest.raises(ChangedMeanwhileError, match="'mail': not as in the plan"):
        hook.backfill("clean", to="2", reason="bad delivery", expected_versions=plan["versions"])
    assert epochs(chain) == [1, 1, 2]


def test_misspelt_argument_is_an_error(chain: World) -> None:
    with pytest.raises(TypeError, match="claen"):
        BookmarkHook().plan_backfill("clean", to="2", claen=True)  # type: ignore[call-arg]


def test_values_of_the_state_are_hidden_where_the_connection_says_so(
    chain: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_state(chain.store, "clean", "cursor", "secret 7", reason="a test", who="ada")
    assert "secret 7" in str(BookmarkHook().plan_backfill("clean", to="2"))
    connect(monkeypatch, store=chain.store_uri, hide_state="true")
    assert "secret 7" not in str(BookmarkHook().plan_backfill("clean", to="2"))
    assert "secret 7" not in str(BookmarkBackfillOperator(**WHY, to=2, dry_run=True).execute(told()))


def test_operator_takes_all_back_and_says_what_to_trigger(chain: World) -> None:
    done = BookmarkBackfillOperator(**WHY, to=1, clean=True).execute(told())
    assert {job: each["to_run"] for job, each in done["by_job"].items()} == {"clean": 1, "report": 1, "mail": 1}
    assert done["dag_runs"] == [{"dag_id": None, "jobs": ["clean", "report", "mail"]}]
    assert epochs(chain) == [2, 2, 2]


def test_dry_run_changes_nothing(chain: World) -> None:
    plan = BookmarkBackfillOperator(**WHY, dry_run=True).execute(told())
    assert (plan["jobs"], plan["undone_run_count"], epochs(chain)) == (3, 9, [1, 1, 1])


def test_retry_goes_on_with_what_is_left_and_takes_nothing_back_again(
    chain: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    operator = BookmarkBackfillOperator(**WHY, to=1, clean=True, retries=2)
    with monkeypatch.context() as broken:
        broken.setattr("airflow_bookmarks.lifecycle.backfill.carry_out.apply", failing_at("mail"))
        with pytest.raises(BackfillStoppedError):
            operator.execute(told())
    assert epochs(chain) == [2, 2, 1]
    chain.shop.run("clean")  # reads again what was taken back
    chain.shop.run("report", upstream="clean")
    done = operator.execute(told(2))
    assert list(done["by_job"]) == ["mail"]
    assert done["unchanged"] == ["clean", "report"]
    assert epochs(chain) == [2, 2, 2]
    assert chain.shop.target_lines("report") == {"a": 1, "b": 1, "c": 1}


def test_task_that_is_cleared_takes_back_anew(chain: World) -> None:
    BookmarkBackfillOperator(**WHY, to=1, retries=0).execute(told())
    chain.shop.run("clean")
    ti = told(2)
    ti["ti"].max_tries = 1  # as Airflow counts after a clear
    assert list(BookmarkBackfillOperator(**WHY, to=1, retries=0).execute(ti)["by_job"]) == ["clean"]


def test_held_job_is_left_to_the_retry_and_a_wrong_argument_is_not(chain: World) -> None:
    chain.shop.begin("report")
    with pytest.raises(ChangeRefusedError, match="1 of 3 jobs can't go back"):
        BookmarkBackfillOperator(**WHY, to=1).execute(told())
    for wrong in ({"to": 99}, {"leave": ["nobody"]}, {"job": "no.such"}, {"reason": " "}):
        with pytest.raises(AirflowFailException):
            BookmarkBackfillOperator(**{**WHY, "to": 1, **wrong}).execute(told())
    assert epochs(chain) == [1, 1, 1]
