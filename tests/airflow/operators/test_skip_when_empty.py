"""Promises AIR-4, AIR-13 and DEP-15: no Spark without input, resources that follow the input, and a bound on it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from airflow_bookmarks.airflow_compat import AirflowFailException, AirflowSkipException
from airflow_bookmarks.core.errors import JobBusyError, OptionError
from airflow_bookmarks.core.files.listed_partitions import ListedPartitions
from airflow_bookmarks.lifecycle.changes.naming import rename
from airflow_bookmarks.lifecycle.run.enabled import ActiveRun
from airflow_bookmarks.operators.spark_submit import BookmarkSparkSubmitOperator
from airflow_bookmarks.sources.files.options import FileOptions
from airflow_bookmarks.sources.files.planner import FileSource
from tests.airflow.conftest import World
from tests.airflow.operators.test_operator import JOB, context, drive, identity, operator, play, refuse
from tests.lifecycle.shop import FILES


@pytest.fixture
def read_once(world: World) -> World:
    """Return a world whose job has read all that there is."""
    world.shop.put("a.txt", "a")
    world.shop.run(JOB)
    return world


class Seen:
    """A submit that keeps the conf it was called with, and makes the run."""

    def __init__(self, world: World, task: BookmarkSparkSubmitOperator) -> None:
        self.world, self.task = world, task
        self.conf: dict[str, str] = {}

    def __call__(self, given: Any) -> None:
        self.conf = dict(self.task.conf or {})
        drive(self.world)(given)


# ---- without Spark


def test_task_succeeds_with_an_empty_run_and_without_spark(read_once: World) -> None:
    summary = play(operator(skip_when_empty=True), context(), refuse)

    assert (summary["run_number"], summary["is_empty"], summary["is_published"]) == ("2", True, True)
    assert summary["contexts"]["raw"]["files"] == 0


def test_empty_run_belongs_to_its_dag_run(read_once: World) -> None:
    play(operator(skip_when_empty=True), context(), refuse)

    execution = read_once.store.execution(JOB, identity().run_id)
    assert execution is not None
    assert (execution.is_finished, execution.last_run, execution.dag_run_id) == (True, 2, "manual__1")


def test_task_is_skipped_and_makes_no_run_if_that_is_asked_for(read_once: World) -> None:
    with pytest.raises(AirflowSkipException, match="nothing is new in 1 contexts"):
        play(operator(skip_when_empty=True, on_empty="skip"), context(), refuse)
    assert read_once.store.head(JOB).run_number == 1


def test_new_input_starts_spark(read_once: World) -> None:
    read_once.shop.put("b.txt", "b")

    summary = play(operator(skip_when_empty=True), context(), drive(read_once))

    assert (summary["is_empty"], summary["contexts"]["raw"]["files"]) == (False, 1)


def test_job_that_never_ran_starts_spark(world: World) -> None:
    world.shop.put("a.txt", "a")

    assert play(operator(skip_when_empty=True), context(), drive(world))["run_number"] == "1"


def test_input_that_comes_between_the_looks_is_read_by_spark(read_once: World, monkeypatch: pytest.MonkeyPatch) -> None:
    begin = ActiveRun.begin.__func__  # type: ignore[attr-defined]  # of a class method

    def land_first(cls: type[ActiveRun], *given: Any, **options: Any) -> ActiveRun:
        read_once.shop.put("b.txt", "b")
        return begin(cls, *given, **options)  # type: ignore[no-any-return]

    monkeypatch.setattr(ActiveRun, "begin", classmethod(land_first))

    summary = play(operator(skip_when_empty=True), context(), drive(read_once))

    assert summary["contexts"]["raw"]["files"] == 1
    assert read_once.shop.target_lines(JOB) == {"a": 1, "b": 1}


def test_job_that_another_run_holds_is_not_taken_for_empty(read_once: World) -> None:
    held = ActiveRun.begin(read_once.store, JOB, read_once.shop.identity("another"), read_once.shop.environment)
    with pytest.raises(JobBusyError):
        play(operator(skip_when_empty=True), context(), refuse)
    held.abort("stopped")


def test_what_was_looked_at_is_in_the_log(
    read_once: World, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level("INFO"):
        play(operator(skip_when_empty=True), context(), refuse)
    assert any("looked at" in line and str(read_once.shop.raw) in line for line in caplog.messages)


def test_paused_run_reads_its_window_whatever_is_new(read_once: World) -> None:
    started: list[Any] = []
    play(operator(bookmark_option="pause", skip_when_empty=True), context(), started.append)
    assert len(started) == 1


def test_skipping_without_looking_is_a_contradiction() -> None:
    with pytest.raises(OptionError, match="without skip_when_empty"):
        operator(on_empty="skip")
    with pytest.raises(OptionError, match="'succeed' or 'skip'"):
        operator(skip_when_empty=True, on_empty="stop")


# ---- what the script decides anew each day


def read_by(world: World, options: FileOptions) -> list[str]:
    """Make a run whose script reads by such options; return the names of the files it read."""
    run = world.shop.begin(JOB)
    plan = run.plan("raw", FileSource(FILES, [str(world.shop.raw)], options))
    run.commit()
    return [path.rpartition("/")[2] for path in plan.files.paths]


BY_THE_SCRIPT = [
    (FileOptions(partition_filter="dt = '2026-11-01'"), "1 partitions are pruned, and partition_filter was"),
    (FileOptions(exclusions=["dt=2026-11-02/*"]), "1 files are excluded"),
    (FileOptions(name_pattern="*01.csv"), "1 files are excluded"),
    (FileOptions(sequence=r"f(?P<day>01)", on_unmatched="skip"), "1 files are unmatched"),
]


@pytest.mark.parametrize("on_empty", ["succeed", "skip"])
@pytest.mark.parametrize(("options", "why"), BY_THE_SCRIPT)
def test_what_the_script_may_let_in_today_starts_spark(
    world: World, options: FileOptions, why: str, on_empty: str, caplog: pytest.LogCaptureFixture
) -> None:
    world.shop.put("dt=2026-11-01/f01.csv", "one")
    assert read_by(world, options) == ["f01.csv"]
    world.shop.put("dt=2026-11-02/f02.csv", "two")
    read: list[str] = []

    with caplog.at_level("INFO"):
        task = operator(skip_when_empty=True, on_empty=on_empty)
        play(task, context(), Scripted(world, FileOptions(), read))

    assert read == ["f02.csv"]
    [line] = [line for line in caplog.messages if "Spark is started" in line]
    assert why in line


class Scripted:
    """A submit whose script reads by other options than the run before."""

    def __init__(self, world: World, options: FileOptions, read: list[str]) -> None:
        self.world, self.options, self.read = world, options, read

    def __call__(self, _: Any) -> None:
        shop = self.world.shop
        run = ActiveRun.begin(self.world.store, JOB, identity(), shop.environment)
        plan = run.plan("raw", FileSource(FILES, [str(shop.raw)], self.options))
        self.read += [path.rpartition("/")[2] for path in plan.files.paths]
        run.commit()


@pytest.mark.parametrize(("options", "_"), BY_THE_SCRIPT)
def test_options_that_leave_nothing_out_start_no_spark(world: World, options: FileOptions, _: str) -> None:
    world.shop.put("dt=2026-11-01/f01.csv", "one")
    read_by(world, options)

    assert play(operator(skip_when_empty=True), context(), refuse)["is_empty"]


@pytest.mark.parametrize("on_empty", ["succeed", "skip"])
def test_new_partition_of_a_table_in_a_catalog_is_left_to_spark(
    world: World, on_empty: str, caplog: pytest.LogCaptureFixture
) -> None:
    world.shop.put("dt=2026-11-01/f01.csv", "one")
    read: list[str] = []
    FromCatalog(world, ["2026-11-01"], read)(None)
    world.shop.put("dt=2026-11-02/f02.csv", "two")

    with caplog.at_level("INFO"):
        task = operator(skip_when_empty=True, on_empty=on_empty)
        play(task, context(), FromCatalog(world, ["2026-11-01", "2026-11-02"], read))

    assert read == ["f01.csv", "f02.csv"]
    assert "without Spark: not known: a catalog lists its partitions" in caplog.text


class FromCatalog:
    """A submit whose script reads the partitions that a catalog has by then."""

    def __init__(self, world: World, days: list[str], read: list[str]) -> None:
        self.world, self.days, self.read = world, days, read

    def __call__(self, _: Any) -> None:
        shop = self.world.shop
        listed = ListedPartitions({"dt": "string"}, {f"{shop.raw}/dt={day}": (day,) for day in self.days})
        run = ActiveRun.begin(self.world.store, JOB, identity(), shop.environment)
        plan = run.plan("raw", FileSource(FILES, [str(shop.raw)], listed=listed))
        self.read += [path.rpartition("/")[2] for path in plan.files.paths]
        run.commit()


# ---- resources that follow the input


def test_spark_conf_follows_what_is_pending_and_what_the_user_says_comes_first(read_once: World) -> None:
    read_once.shop.put("b.txt", "b" * 99)
    asked: list[dict[str, Any]] = []

    def resources(pending: dict[str, Any]) -> dict[str, Any]:
        asked.append(pending)
        return {"spark.executor.instances": pending["files"], "spark.executor.memory": "1g"}

    task = operator(conf_for=resources, conf={"spark.executor.memory": "2g"})
    seen = Seen(read_once, task)
    play(task, context(), seen)

    assert (asked[0]["files"], asked[0]["bytes"]) == (1, 100)
    assert (seen.conf["spark.executor.instances"], seen.conf["spark.executor.memory"]) == ("1", "2g")


@pytest.mark.parametrize(
    ("answer", "said"), [(None, "expected a dict"), ({"spark.bookmarks.option": "disable"}, "the operator sets itself")]
)
def test_answer_that_is_no_spark_conf_is_refused_before_spark_starts(read_once: World, answer: Any, said: str) -> None:
    with pytest.raises(AirflowFailException, match=said):
        play(operator(conf_for=lambda _: answer), context(), refuse)


# ---- up to which run upstream jobs are read


def test_bound_travels_to_the_driver(world: World) -> None:
    task = operator(bookmark_upstream=["clean"], bookmark_upstream_until={"job": "clean", "run_number": "7"})
    seen = Seen(world, task)

    play(task, context(), seen)

    assert json.loads(seen.conf["spark.bookmarks.upstream_until"]) == {"clean": 7}
    assert "bookmark_upstream_until" in task.template_fields


@pytest.mark.parametrize("declared", ["up", "lake.up"], ids=["by_key", "by_new_name"])
@pytest.mark.parametrize("bound_of", ["up", "lake.up"], ids=["of_key", "of_new_name"])
def test_upstream_and_bound_travel_by_key_whatever_name_they_are_given_by(
    read_once: World, declared: str, bound_of: str
) -> None:
    read_once.shop.run("up")
    rename(read_once.store, "up", "lake.up", reason="a test", who="ada")
    task = operator(bookmark_upstream=[declared], bookmark_upstream_until={"job": bound_of, "run_number": "1"})
    seen = Seen(read_once, task)

    play(task, context(), seen)

    assert seen.conf["spark.bookmarks.upstream"] == "up"
    assert json.loads(seen.conf["spark.bookmarks.upstream_until"]) == {"up": 1}


def test_bounds_by_two_names_of_one_job_that_differ_are_refused(read_once: World) -> None:
    read_once.shop.run("up")
    rename(read_once.store, "up", "lake.up", reason="a test", who="ada")
    bounds = [{"job": "up", "run_number": "1"}, {"job": "lake.up", "run_number": "2"}]

    with pytest.raises(AirflowFailException, match="names runs 1 and 2"):
        play(operator(bookmark_upstream_until=bounds), context(), refuse)


def test_upstream_that_is_declared_and_was_never_read_starts_spark(read_once: World) -> None:
    read_once.shop.put("b.txt", "b")
    read_once.shop.run("other.up")
    read_once.shop.run(JOB)  # it has read all but what it does not read yet
    task = operator(skip_when_empty=True, bookmark_upstream=["other.up"])

    with pytest.raises(AssertionError, match="Spark was started"):
        play(task, context(), refuse)
