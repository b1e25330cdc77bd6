"""The sensor: what releases it, and what it says while it waits."""

from __future__ import annotations

import asyncio
import json
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.sdk import DAG

from airflow_bookmarks.airflow_compat import (
    AirflowSensorTimeout,
    AirflowSkipException,
    TaskDeferralError,
    TaskDeferred,
    triggerer_survives_requests,
)
from airflow_bookmarks.core.errors import BookmarkError, OptionError, StoreUnavailableError
from airflow_bookmarks.core.job import RunIdentity
from airflow_bookmarks.lifecycle.changes.change import reset, rewind
from airflow_bookmarks.lifecycle.run.enabled import ActiveRun
from airflow_bookmarks.lifecycle.run.replay import ReplayRun
from airflow_bookmarks.operators.task.task_config import TaskConfig, untils
from airflow_bookmarks.sensors.bookmark import BookmarkSensor
from airflow_bookmarks.store.backends.sqlite import SqliteTable
from tests.airflow.compat import AirflowRescheduleException, DagSerialization, needs_deferral
from tests.airflow.conftest import Player, World

DAG_RUN = "manual__1"


def told(dag_run_id: str = DAG_RUN) -> Any:
    """Return what Airflow hands to `execute`, as far as the sensor looks at it."""
    return {"ti": SimpleNamespace(run_id=dag_run_id, get_first_reschedule_date=lambda context: None)}


def look(job: Any = "up", dag_run_id: str = DAG_RUN, **arguments: Any) -> Any:
    """Poke once, and make sure that reschedule mode, deferrable mode and the trigger (if there is one) say the same."""
    poked = BookmarkSensor(task_id="wait", job=job, **arguments).poke(told(dag_run_id))
    again = BookmarkSensor(task_id="wait", job=job, mode="reschedule", **arguments).poke(told(dag_run_id))
    assert (poked.is_done, poked.xcom_value) == (again.is_done, again.xcom_value)
    waiting = BookmarkSensor(task_id="wait", job=job, deferrable=True, timeout=0, **arguments)
    if poked.is_done:
        assert waiting.execute(told(dag_run_id)) == poked.xcom_value
    elif triggerer_survives_requests():
        assert event_of(deferred(waiting, dag_run_id))["status"] == "timed_out"
    return poked


def deferred(sensor: BookmarkSensor, dag_run_id: str = DAG_RUN) -> TaskDeferred:
    """Let a sensor defer itself."""
    with pytest.raises(TaskDeferred) as raised:
        sensor.execute(told(dag_run_id))
    return raised.value


def event_of(deferral: TaskDeferred) -> Any:
    """Run the trigger of a deferral, and return the payload of its event."""

    async def scene() -> Any:
        return [event.payload async for event in deferral.trigger.run()]

    (payload,) = asyncio.run(scene())
    return payload


def run_by_dag(world: World, job: str = "up", dag_run_id: str = DAG_RUN, *, until: str = "published") -> None:
    """Make one run of `job`, by the task `work` of the DAG `flights`."""
    date = "2026-05-03T00:00:00.000000Z"
    identity = RunIdentity(f"flights/{dag_run_id}/work", 1, "flights", "work", dag_run_id=dag_run_id, logical_date=date)
    run = ActiveRun.begin(world.store, job, identity, world.shop.environment)
    world.shop.copy(run)
    if until == "published":
        run.commit()


class Operator:
    """Stands for an operator that runs a job, as far as the sensor looks at it."""

    def __init__(self, job: str | None, shard: str | None = None) -> None:
        self.job, self.shard, self.dag_id, self.task_id = job, shard, "flights", "clean"

    def task_config(self) -> TaskConfig:
        return TaskConfig(job=self.job, shard=self.shard)


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
    # No run to read up to, so no bound: the consumer's run is told that its upstream went back.
    assert untils(found.xcom_value) == {}


def test_consumer_is_released_when_a_run_it_has_consumed_was_replayed(world: World) -> None:
    for name in ("a.txt", "b.txt"):
        world.shop.put(name, name)
        world.shop.run("up")
    world.shop.run("down", upstream="up")
    assert not look(consumer="down").is_done

    run = ReplayRun.begin_replay(world.store, "up", world.shop.identity(), world.shop.environment, 1)
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


# ---- for a logical date, for a watermark


def test_logical_date_is_waited_for(world: World) -> None:
    assert not look(upstream_logical_date="2026-05-03T00:00:00Z").is_done

    run_by_dag(world, dag_run_id="scheduled__of_that_day")

    assert look(upstream_logical_date="2026-05-03 02:00:00+02:00").xcom_value["run_number"] == "1"
    assert not look(upstream_logical_date="2026-05-04T00:00:00Z").is_done


def test_watermark_is_waited_for(world: World) -> None:
    world.shop.put("a.txt", "a", seconds=1_700_000_000)
    world.shop.run("up")

    assert not look(watermark="2023-11-14T22:13:21Z").is_done
    assert look(watermark="2023-11-14T22:13:20Z", watermark_ctx="raw").xcom_value["run_number"] == "1"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"watermark": "yesterday"}, "expected a number or an ISO 8601 time"),
        ({"upstream_logical_date": "2026-05-03"}, "expected an ISO 8601 time with a zone"),
        ({"watermark_ctx": "raw"}, "given without a watermark"),
        ({"poll_interval": 0}, "expected seconds above 0"),
        ({"poll_interval": float("inf")}, "expected seconds above 0"),
        ({"run_number": "9" * 5000}, "expected a number from 1"),
        ({"watermark": "9" * 5000}, "expected a number or an ISO 8601 time"),
    ],
)
def test_what_is_no_condition_is_refused(world: World, arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        look(**arguments)


# ---- the consumer as an operator


def test_consumer_may_be_given_as_its_operator(world: World) -> None:
    world.shop.put("a.txt", "a")
    world.shop.run("up")
    world.shop.run("flights.clean", upstream="up")

    assert not look(consumer=Operator(None)).is_done
    assert not look(consumer=Operator("flights.clean")).is_done
    assert look(consumer=Operator("another")).is_done
    assert BookmarkSensor(task_id="wait", job="up", consumer=Operator("{{ x }}")).consumer == "{{ x }}"


def test_operator_of_the_package_is_a_consumer() -> None:
    from airflow_bookmarks.operators.spark_submit import BookmarkSparkSubmitOperator

    with DAG("reports", schedule=None, start_date=datetime(2026, 1, 1, tzinfo=UTC)):
        consumer = BookmarkSparkSubmitOperator(task_id="delays", application="delays.py")
        sensor = BookmarkSensor(task_id="wait", job="up", consumer=consumer)

    assert sensor.consumer == "reports.delays"


def test_consumer_with_a_script_for_aws_glue_has_the_job_of_its_arguments() -> None:
    from airflow_bookmarks.operators.spark_submit import BookmarkSparkSubmitOperator

    consumer = BookmarkSparkSubmitOperator(
        task_id="land", application="land.py", glue=True, application_args=["--JOB_NAME", "nightly"]
    )

    assert BookmarkSensor(task_id="wait", job="up", consumer=consumer).consumer == "nightly"


def test_task_without_a_job_is_no_consumer() -> None:
    with pytest.raises(OptionError, match="runs no job"):
        BookmarkSensor(task_id="wait", job="up", consumer=object())  # type: ignore[arg-type]


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


@pytest.mark.parametrize("job", ["None", None, ["up", None], {"job": "up", "run_number": "1"}, {"up"}, 7])
def test_job_that_is_no_name_is_an_error_and_not_a_wait(world: World, job: Any) -> None:
    with pytest.raises(OptionError, match="expected the name of a job, or a list of names"):
        look(job, run_number=1)


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


# ---- not deferred, where the triggerer would not survive it


@pytest.fixture
def frail_triggerer(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the triggerer be as it is in Airflow before 3.2.2."""
    monkeypatch.setattr("airflow_bookmarks.sensors.bookmark.triggerer_survives_requests", lambda: False)


@pytest.mark.usefixtures("frail_triggerer")
def test_sensor_is_rescheduled_where_the_triggerer_would_not_survive_its_trigger(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    sensor = BookmarkSensor(task_id="wait", job="up", run_number=1, deferrable=True, poke_interval=17)

    with pytest.raises(AirflowRescheduleException):
        sensor.execute(told())

    assert "it is not deferred" in caplog.text
    assert "looks every 17 seconds (poke_interval)" in caplog.text
    assert "Upgrade to Airflow 3.2.2 or later" in caplog.text

    world.shop.run("up")
    assert sensor.execute(told())["run_number"] == "1"


@pytest.mark.usefixtures("frail_triggerer")
def test_scheduler_knows_that_such_a_sensor_is_rescheduled() -> None:
    with DAG("stored", schedule=None, start_date=datetime(2026, 1, 1, tzinfo=UTC)) as dag:
        BookmarkSensor(task_id="deferrable", job="up", deferrable=True)
        BookmarkSensor(task_id="poking", job="up")

    tasks: Any = DagSerialization.from_dict(DagSerialization.to_dict(dag)).task_dict

    assert (tasks["deferrable"].reschedule, tasks["poking"].reschedule) == (True, False)


@pytest.mark.usefixtures("frail_triggerer")
def test_such_a_sensor_times_out_as_one_that_is_rescheduled(world: World) -> None:
    sensor = BookmarkSensor(task_id="wait", job="up", run_number=1, deferrable=True, timeout=0, poke_interval=0)

    with pytest.raises(AirflowSensorTimeout, match="no bookmark of that name yet"):
        sensor.execute(told())


def test_sensor_is_deferred_only_where_the_triggerer_survives_it(world: World) -> None:
    sensor = BookmarkSensor(task_id="wait", job="up", run_number=1, deferrable=True)

    with pytest.raises(TaskDeferred if triggerer_survives_requests() else AirflowRescheduleException):
        sensor.execute(told())


# ---- deferred


@needs_deferral
def test_deferred_sensor_returns_what_the_trigger_found(world: World) -> None:
    sensor = BookmarkSensor(task_id="wait", job=["up"], consumer="down", deferrable=True, poll_interval=0.01)
    deferral = deferred(sensor)
    world.shop.put("a.txt", "a")
    world.shop.run("up")

    found = sensor.resume_execution(deferral.method_name, {"event": event_of(deferral)}, told())

    assert [one["run_number"] for one in found] == ["1"]


@needs_deferral
@pytest.mark.parametrize(("is_soft", "error"), [(False, AirflowSensorTimeout), (True, AirflowSkipException)])
def test_deferred_wait_ends_at_the_same_timeout(world: World, is_soft: bool, error: type[Exception]) -> None:
    sensor = BookmarkSensor(task_id="wait", job="gone", run_number=1, deferrable=True, timeout=0, soft_fail=is_soft)
    event = event_of(deferred(sensor))

    with pytest.raises(error) as raised:
        sensor.resume_execution("execute_complete", {"event": event}, told())

    cause = raised.value.__cause__ if is_soft else raised.value
    assert "It waits for run 1 or a later one. Where it stands: 'gone': no bookmark of that name yet" in str(cause)


@needs_deferral
def test_wrong_wait_fails_the_deferred_sensor_with_the_same_error(world: World) -> None:
    sensor = BookmarkSensor(task_id="wait", job="up", watermark="42", deferrable=True, poll_interval=0.01)
    deferral = deferred(sensor)
    world.shop.put("a.txt", "a")
    world.shop.run("up")
    event = event_of(deferral)

    with pytest.raises(OptionError, match="can't be compared"):
        sensor.resume_execution("execute_complete", {"event": event}, told())


def test_where_no_triggerer_works_the_timeout_says_where_it_stands(world: World) -> None:
    sensor = BookmarkSensor(task_id="wait", job="up", run_number=1, deferrable=True)
    no_triggerer = {"error": "Trigger timeout"}

    with pytest.raises(AirflowSensorTimeout, match=r"not ended by its trigger.*no bookmark of that name yet"):
        sensor.resume_execution("__fail__", no_triggerer, told())

    world.shop.run("up")
    assert sensor.resume_execution("__fail__", no_triggerer, told())["run_number"] == "1"


@needs_deferral
@pytest.mark.parametrize("lenient", [{"soft_fail": True}, {"never_fail": True}])
@pytest.mark.parametrize("silence", ["Trigger timeout", "Trigger failure"])
def test_what_is_there_passes_also_where_the_trigger_was_lost(world: World, silence: str, lenient: Any) -> None:
    sensor = BookmarkSensor(task_id="wait", job="up", run_number=1, deferrable=True, **lenient)
    with pytest.raises(AirflowSkipException, match="no bookmark of that name yet"):
        sensor.resume_execution("__fail__", {"error": silence}, told())

    world.shop.run("up")

    assert sensor.resume_execution("__fail__", {"error": silence}, told())["run_number"] == "1"


@pytest.mark.parametrize(
    "event", [None, {}, {"status": "met"}, {"status": "failed", "error": "OptionError"}, {"status": "?"}, "met"]
)
def test_event_that_is_none_is_no_answer_and_the_state_is_asked(world: World, event: Any) -> None:
    sensor = BookmarkSensor(task_id="wait", job="up", run_number=1, deferrable=True)
    with pytest.raises(TaskDeferralError, match=r"which is no event.*no bookmark of that name yet"):
        sensor.resume_execution("execute_complete", {"event": event}, told())

    world.shop.run("up")

    assert sensor.resume_execution("execute_complete", {"event": event}, told())["run_number"] == "1"


@pytest.mark.parametrize("name", ["JobBusyError", "annotations", "NoSuchError"])
def test_error_that_can_not_be_made_again_keeps_its_message(world: World, name: str) -> None:
    sensor = BookmarkSensor(task_id="wait", job="up", run_number=1, deferrable=True)
    event = {"status": "failed", "error": name, "standing": "what went wrong"}

    with pytest.raises(BookmarkError, match="what went wrong"):
        sensor.resume_execution("execute_complete", {"event": event}, told())


@needs_deferral
def test_deferred_wait_begins_also_while_the_store_does_not_answer(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    sensor = BookmarkSensor(task_id="wait", job="up", run_number=1, deferrable=True, poll_interval=0.01)
    with monkeypatch.context() as outage:
        outage.setattr(SqliteTable, "get", cut)
        deferral = deferred(sensor)
        with pytest.raises(StoreUnavailableError):
            BookmarkSensor(task_id="wait", job="up", run_number=1).execute(told())

    world.shop.run("up")

    assert event_of(deferral)["status"] == "met"


def cut(table: SqliteTable, keys: object) -> Any:
    raise StoreUnavailableError("the cable is cut")


@needs_deferral
def test_each_try_of_a_deferred_sensor_has_the_whole_timeout(world: World) -> None:
    sensor = BookmarkSensor(task_id="wait", job="up", run_number=1, deferrable=True, timeout=3600)

    first, second = (datetime.fromisoformat(deferred(sensor).trigger.deadline) for _ in range(2))

    assert first < second


def test_sensor_that_never_fails_is_skipped_in_each_mode(world: World) -> None:
    for mode in ({}, {"mode": "reschedule"}, {"deferrable": True}):
        sensor = BookmarkSensor(task_id="wait", job="a#b", run_number=1, never_fail=True, **mode)
        with pytest.raises(AirflowSkipException):
            sensor.execute(told())


@pytest.mark.parametrize("mode", [{}, {"mode": "reschedule"}])
def test_skip_at_the_timeout_says_where_it_stands(world: World, mode: dict[str, Any]) -> None:
    sensor = BookmarkSensor(task_id="wait", job="gone", run_number=1, timeout=0, poke_interval=0, soft_fail=True)

    with pytest.raises(AirflowSkipException, match=r"run 1 or a later one.*no bookmark of that name yet"):
        sensor.execute(told())


# ---- in a DAG


def test_sensor_survives_being_stored_with_its_dag(world: World) -> None:
    with DAG("stored", schedule=None, start_date=datetime(2026, 1, 1, tzinfo=UTC)) as dag:
        BookmarkSensor(task_id="one", job="ünï.cødé", consumer="日本.語", deferrable=True)
        BookmarkSensor(task_id="several", job=["a", "b"], watermark=42, watermark_ctx="raw")
        BookmarkSensor.partial(task_id="mapped", consumer="down", deferrable=True).expand(job=["a", "b"])

    stored = json.dumps(DagSerialization.to_dict(dag))
    tasks: Any = DagSerialization.from_dict(json.loads(stored)).task_dict

    assert (tasks["one"].job, tasks["one"].consumer) == ("ünï.cødé", "日本.語")
    assert (tasks["several"].job, tasks["several"].watermark) == (["a", "b"], 42)
    assert tasks["mapped"].is_mapped


def test_mapped_sensors_wait_each_for_its_own(world: World, player: Player) -> None:
    jobs = ["ünï.cødé", "日本.語"]
    world.shop.put("a.txt", "a")
    for job in jobs:
        world.shop.run(job)
    with DAG("mapping", schedule=None, start_date=datetime(2026, 1, 1, tzinfo=UTC)) as dag:
        BookmarkSensor.partial(task_id="wait", consumer="down", deferrable=True).expand(job=jobs)

    played = player.play(dag)

    assert played.state == "success"
    pushed = [task.xcom_pull(task_ids="wait", map_indexes=task.map_index) for task in played.run.get_task_instances()]
    assert sorted(one["job"] for one in pushed) == sorted(jobs)


@pytest.mark.parametrize("mode", [{"mode": "poke"}, {"mode": "reschedule"}, {"deferrable": True}])
def test_what_is_there_already_passes_at_once(world: World, player: Player, mode: dict[str, Any]) -> None:
    world.shop.put("a.txt", "a")
    world.shop.run("up")
    with DAG("reports", schedule=None, start_date=datetime(2026, 1, 1, tzinfo=UTC)) as dag:
        BookmarkSensor(task_id="wait", job="{{ 'up' }}", consumer="{{ dag.dag_id }}.delays", **mode)

    played = player.play(dag)

    assert played.state == "success"
    assert json.loads(json.dumps(played.xcom("wait")))["run_number"] == "1"


class LateSensor(BookmarkSensor):
    """A sensor whose upstream publishes between its own look and the first look of its trigger."""

    world: World

    def defer(self, **arguments: Any) -> Any:
        type(self).world.shop.put("a.txt", "a")
        type(self).world.shop.run("up")
        super().defer(**arguments)


@needs_deferral
def test_deferred_sensor_is_released_by_what_is_published_while_it_waits(world: World, player: Player) -> None:
    LateSensor.world = world
    with DAG("deferring", schedule=None, start_date=datetime(2026, 1, 1, tzinfo=UTC)) as dag:
        LateSensor(task_id="wait", job="up", consumer="{{ dag.dag_id }}.delays", deferrable=True, poll_interval=0.01)

    played = player.play(dag)

    assert played.state == "success"
    assert played.xcom("wait")["run_number"] == "1"


def test_deferred_sensor_that_times_out_fails_its_task(world: World, player: Player) -> None:
    with DAG("giving_up", schedule=None, start_date=datetime(2026, 1, 1, tzinfo=UTC)) as dag:
        BookmarkSensor(task_id="wait", job="up", run_number=1, deferrable=True, timeout=0)

    assert player.play(dag).state == "failed"


# ---- docs/guides/waiting.md

_ROOT = Path(__file__).parents[3]
_PAGE = (_ROOT / "docs" / "guides" / "waiting.md").read_text()


@pytest.mark.parametrize("example", re.findall(r"^```python\n(.*?)^```$", _PAGE, flags=re.MULTILINE | re.DOTALL))
def test_examples_of_the_page_can_be_read_as_a_dag_file(example: str) -> None:
    with DAG("examples", schedule=None, start_date=datetime(2026, 1, 1, tzinfo=UTC)) as dag:
        exec(example, {})  # noqa: S102 - our own page

    assert all(isinstance(task, BookmarkSensor) for task in dag.tasks)


@pytest.mark.parametrize("name", ["consumer", "run_number", "upstream_dag_run_id", "watermark"])
def test_condition_that_rendered_to_none_is_not_one_that_was_left_out(world: World, name: str) -> None:
    run_by_dag(world)
    given: dict[str, Any] = {name: "{{ params.x }}"}
    sensor = BookmarkSensor(task_id="wait", job="up", **given)
    setattr(sensor, name, None)  # as rendered natively

    with pytest.raises(OptionError, match="its template gave nothing"):
        sensor.poke(told())


def test_consumer_with_a_share_of_a_job_is_refused(world: World) -> None:
    consumer = Operator("down", "0/4")
    with pytest.raises(OptionError, match="virtual shards have each consumed something"):
        BookmarkSensor(task_id="wait", job="up", consumer=consumer)
