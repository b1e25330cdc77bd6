"""The sensor: what releases it, and what it says while it waits."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.sdk import DAG
from airflow.sdk.exceptions import AirflowSensorTimeout, AirflowSkipException

from airflow_bookmarks.core.errors import OptionError
from airflow_bookmarks.core.job import Caller
from airflow_bookmarks.lifecycle.active_run import ActiveRun
from airflow_bookmarks.lifecycle.change import reset, rewind
from airflow_bookmarks.lifecycle.replay import ReplayRun
from airflow_bookmarks.sensors.bookmark import BookmarkSensor

from .conftest import Player, World

DAG_RUN = "manual__1"


def told(dag_run_id: str = DAG_RUN) -> Any:
    """Return what Airflow hands to `execute`, as far as the sensor looks at it."""
    return {"ti": SimpleNamespace(run_id=dag_run_id)}


def look(job: Any = "up", dag_run_id: str = DAG_RUN, **arguments: Any) -> Any:
    """Poke once, and make sure that reschedule mode says the same."""
    poked = BookmarkSensor(task_id="wait", job=job, **arguments).poke(told(dag_run_id))
    again = BookmarkSensor(task_id="wait", job=job, mode="reschedule", **arguments).poke(told(dag_run_id))
    assert (poked.is_done, poked.xcom_value) == (again.is_done, again.xcom_value)
    return poked


def run_by_dag(world: World, job: str = "up", dag_run_id: str = DAG_RUN, *, until: str = "published") -> None:
    """Make one run of `job`, by the task `work` of the DAG `flights`."""
    caller = Caller(f"flights/{dag_run_id}/work", 1, "flights", "work", dag_run_id=dag_run_id)
    run = ActiveRun.begin(world.store, job, caller, world.shop.machine)
    world.shop.copy(run)
    if until == "published":
        run.commit()


# ---- for a consumer


def test_consumer_waits_until_there_is_something_it_has_not_consumed(world: World) -> None:
    assert not look(consumer="down").is_done

    world.shop.put("a.txt", "a")
    world.shop.run("up")
    found = look(consumer="down")
    assert found.is_done
    assert (found.xcom_value["job"], found.xcom_value["run_number"]) == ("up", "1")

    world.shop.run("down", upstream="up")
    assert not look(consumer="down").is_done
    assert look(consumer="another").is_done

    world.shop.put("b.txt", "b")
    world.shop.run("up")
    world.shop.run("up")
    found = look(consumer="down")
    assert (found.xcom_value["run_number"], found.xcom_value["is_empty"]) == ("2", False)


def test_empty_runs_are_no_news(world: World) -> None:
    world.shop.put("a.txt", "a")
    world.shop.run("up")
    world.shop.run("down", upstream="up")

    world.shop.run("up")

    assert not look(consumer="down").is_done


def test_consumer_is_released_when_its_upstream_went_back_below_it(world: World) -> None:
    for name in ("a.txt", "b.txt"):
        world.shop.put(name, name)
        world.shop.run("up")
    world.shop.run("down", upstream="up")

    rewind(world.store, "up", 1, reason="r", who="w")
    assert look(consumer="down").xcom_value["run_number"] == "1"

    reset(world.store, "up", reason="r", who="w")
    found = look(consumer="down")
    assert (found.is_done, found.xcom_value["run_number"], found.xcom_value["epoch"]) == (True, None, "3")


def test_consumer_is_released_when_a_run_it_has_consumed_was_replayed(world: World) -> None:
    for name in ("a.txt", "b.txt"):
        world.shop.put(name, name)
        world.shop.run("up")
    world.shop.run("down", upstream="up")
    assert not look(consumer="down").is_done

    run = ReplayRun.begin_replay(world.store, "up", world.shop.caller(), world.shop.machine, 1)
    world.shop.copy(run)
    run.commit()

    assert look(consumer="down").xcom_value["run_number"] == "1"
    world.shop.run("down", upstream="up", on_rewind="ignore")
    assert not look(consumer="down").is_done


# ---- for a run number


def test_run_number_is_waited_for(world: World) -> None:
    world.shop.run("up")
    assert not look(run_number=2).is_done

    world.shop.run("up")
    assert look(run_number=2).xcom_value["run_number"] == "2"
    assert look(run_number="1").is_done


def test_number_of_an_undone_run_does_not_release(world: World) -> None:
    world.shop.run("up")
    world.shop.run("up")
    rewind(world.store, "up", 1, reason="r", who="w")

    assert not look(run_number=2).is_done

    world.shop.run("up")
    assert look(run_number=2).xcom_value["run_number"] == "3"


@pytest.mark.parametrize("number", ["0", "-1", "two", "1.5"])
def test_run_number_has_to_be_one(world: World, number: str) -> None:
    with pytest.raises(OptionError, match="expected a number from 1"):
        look(run_number=number)


# ---- for a DAG run


def test_own_dag_run_is_waited_for_by_default(world: World) -> None:
    run_by_dag(world, dag_run_id="manual__0")
    assert not look().is_done

    run_by_dag(world)
    assert look().xcom_value["run_number"] == "2"
    assert look(dag_run_id="other", upstream_dag_run_id="manual__0").xcom_value["run_number"] == "1"


def test_empty_run_releases_who_waits_for_its_dag_run(world: World) -> None:
    run_by_dag(world)

    assert look().xcom_value["is_empty"] is True


def test_run_that_has_begun_does_not_release(world: World) -> None:
    run_by_dag(world, until="staged")

    assert not look().is_done


def test_undone_run_does_not_release(world: World) -> None:
    run_by_dag(world)
    reset(world.store, "up", reason="r", who="w")

    assert not look().is_done


def test_job_that_no_dag_made_is_waited_for_and_named(world: World) -> None:
    world.shop.run("up")
    sensor = BookmarkSensor(task_id="wait", job="up", timeout=0, poke_interval=0)

    with pytest.raises(AirflowSensorTimeout, match="was not made by a task of a DAG"):
        sensor.execute(told())


# ---- several jobs


def test_several_jobs_release_together(world: World) -> None:
    run_by_dag(world, "one")
    assert not look(["one", "two"]).is_done

    run_by_dag(world, "two")
    assert [found["job"] for found in look(["one", "two"]).xcom_value] == ["one", "two"]


# ---- what it says


@pytest.mark.parametrize(
    "two",
    [
        {"consumer": "down", "run_number": 1},
        {"run_number": 1, "upstream_dag_run_id": "x"},
    ],
)
def test_two_conditions_are_an_error_when_the_dag_file_is_read(two: dict[str, Any]) -> None:
    with pytest.raises(OptionError, match="waits for one of them"):
        BookmarkSensor(task_id="wait", job="up", **two)


@pytest.mark.parametrize("name", ["consumer", "run_number", "upstream_dag_run_id"])
def test_condition_whose_template_gives_nothing_is_an_error(world: World, name: str) -> None:
    with pytest.raises(OptionError, match=f"{name}='None'"):
        look(**{name: "None"})


def test_list_without_a_job_is_an_error(world: World) -> None:
    with pytest.raises(OptionError, match="at least one job"):
        look([])


@pytest.mark.parametrize(("is_soft", "error"), [(False, AirflowSensorTimeout), (True, AirflowSkipException)])
def test_timeout_ends_the_wait(world: World, is_soft: bool, error: type[Exception]) -> None:
    sensor = BookmarkSensor(
        task_id="wait", job="up", consumer="down", timeout=0, poke_interval=timedelta(0), soft_fail=is_soft
    )

    with pytest.raises(error):
        sensor.execute(told())


def test_timeout_says_what_was_waited_for_and_where_it_stood(world: World) -> None:
    world.shop.put("a.txt", "a")
    world.shop.run("up")
    world.shop.run("down", upstream="up")
    sensor = BookmarkSensor(task_id="wait", job=["up", "gone"], consumer="down", timeout=0, poke_interval=0)

    with pytest.raises(AirflowSensorTimeout) as raised:
        sensor.execute(told())

    said = str(raised.value)
    assert "something that 'down' has not consumed" in said
    assert "'up': last published run 1" in said
    assert "'gone': no bookmark of that name yet" in said


# ---- in a DAG


@pytest.mark.parametrize("mode", ["poke", "reschedule"])
def test_what_is_there_already_passes_at_once(world: World, player: Player, mode: str) -> None:
    world.shop.put("a.txt", "a")
    world.shop.run("up")
    with DAG("reports", schedule=None, start_date=datetime(2026, 1, 1, tzinfo=UTC)) as dag:
        BookmarkSensor(task_id="wait", job="{{ 'up' }}", consumer="{{ dag.dag_id }}.delays", mode=mode)

    played = player.play(dag)

    assert played.state == "success"
    assert json.loads(json.dumps(played.xcom("wait")))["run_number"] == "1"
