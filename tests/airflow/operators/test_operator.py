"""The operator: what the worker does before Spark starts, after it has ended, and when it is killed."""

from __future__ import annotations

import json
import logging
import os
import signal
import stat
import subprocess
import sys
import warnings
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from airflow import sdk
from airflow.providers.apache.spark.hooks.spark_submit import SparkSubmitHook
from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.sdk import DAG, AssetAlias

from airflow_bookmarks.airflow_compat import AirflowFailException
from airflow_bookmarks.core.errors import (
    AttemptRefusedError,
    FencedError,
    JobBusyError,
    NameInvalidError,
    NotCommittedError,
    OptionError,
)
from airflow_bookmarks.core.health.verdict import HealthState
from airflow_bookmarks.core.job import RunIdentity
from airflow_bookmarks.core.settings import PREFIX, Settings
from airflow_bookmarks.databases.access import EnvironmentAccess
from airflow_bookmarks.databases.address import DatabaseAddress
from airflow_bookmarks.hooks.bookmark import BookmarkHook
from airflow_bookmarks.lifecycle.changes.change import reset
from airflow_bookmarks.lifecycle.health.job import health
from airflow_bookmarks.lifecycle.run.enabled import ActiveRun
from airflow_bookmarks.lifecycle.run.replay import ReplayRun
from airflow_bookmarks.lifecycle.run.session import RunSession
from airflow_bookmarks.operators.spark_submit import BookmarkSparkSubmitOperator, _SubmitHook
from airflow_bookmarks.version import __version__
from tests.airflow.compat import AirflowException, DagSerialization
from tests.airflow.conftest import Player, World, connect

PROJECT = Path(__file__).resolve().parents[3]
JOB = "shop.copy"
HAS_DURABLE = hasattr(sdk, "ResumableJobMixin")
SECRET = "wJalrXUtnFEMIK7MDENGbPxRfiCYSECRETKEY"

# Takes the place of spark-submit where Spark itself does not matter: it notes how it was called and runs the script.
SPARK_SUBMIT = """#!{python}
import json, os, pathlib, subprocess, sys
arguments = sys.argv[1:]
flags = [i for i, a in enumerate(arguments) if a == "--conf"]
conf = dict(arguments[i + 1].split("=", 1) for i in flags)
aws = {{k: v for k, v in os.environ.items() if k.startswith("AWS_")}}
with open({calls!r}, "a") as file:
    print(json.dumps({{"arguments": arguments, "conf": conf, "aws": aws}}), file=file)
environment = {{**os.environ, "SHOP_CONF": json.dumps(conf), "PYTHONPATH": {project!r}}}
script = next(a for a in arguments if a.endswith(".py"))
sys.exit(subprocess.run([{python!r}, script], env=environment).returncode and 1)
"""

# A driver without Spark: one run of the shop's copy job.
DRIVER = """
import json, os, sys
from dataclasses import replace
from pathlib import Path
from airflow_bookmarks.core.settings import Settings
from airflow_bookmarks.lifecycle.run.enabled import ActiveRun
from airflow_bookmarks.lifecycle.protocol.lease import RunEnvironment
from airflow_bookmarks.store.bookmark_store import open_store
from tests.chaos.kill import kill_hook
from tests.lifecycle.shop import Shop
settings = Settings.from_conf(json.loads(os.environ["SHOP_CONF"]))
identity = settings.identity("none")
store = open_store(settings.store)
shop = Shop(Path({root!r}), store, replace(RunEnvironment(), at=kill_hook({fault!r}, identity.attempt)))
if {commits}:
    run = ActiveRun.begin(store, settings.job, identity, shop.environment)
    shop.copy(run)
    run.commit()
sys.exit({code})
"""


class Submits:
    """A stand-in for spark-submit on the PATH, and what it was called with."""

    def __init__(self, world: World, patch: pytest.MonkeyPatch) -> None:
        self._world, self._calls = world, world.folder / "calls.jsonl"
        programs = world.folder / "bin"
        programs.mkdir()
        program = programs / "spark-submit"
        text = SPARK_SUBMIT.format(python=sys.executable, calls=str(self._calls), project=str(PROJECT))
        program.write_text(text)
        program.chmod(program.stat().st_mode | stat.S_IXUSR)
        patch.setenv("PATH", f"{programs}{os.pathsep}{os.environ['PATH']}")

    def script(self, *, commits: bool = True, code: int = 0, fault: str = "") -> str:
        """Write a script for the driver, which dies at `fault`; return its path."""
        path = self._world.folder / "job.py"
        path.write_text(DRIVER.format(root=str(self._world.folder), commits=commits, code=code, fault=fault))
        return str(path)

    @property
    def calls(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self._calls.read_text().splitlines()] if self._calls.exists() else []


@pytest.fixture
def submits(world: World, monkeypatch: pytest.MonkeyPatch) -> Submits:
    return Submits(world, monkeypatch)


def dag_of(retries: int = 0, **arguments: Any) -> DAG:
    with DAG("shop", schedule=None, start_date=datetime(2026, 1, 1, tzinfo=UTC)) as dag:
        BookmarkSparkSubmitOperator(task_id="copy", retries=retries, **arguments)
    return dag


def operator(**arguments: Any) -> BookmarkSparkSubmitOperator:
    return BookmarkSparkSubmitOperator(task_id="copy", application="job.py", **arguments)


def context(attempt: int = 1, retries: int = 0, first: int = 1, dag_run_id: str = "manual__1") -> Any:
    """Return what Airflow hands to `execute`, as far as the operator looks at it."""
    ti = SimpleNamespace(
        dag_id="shop",
        task_id="copy",
        run_id=dag_run_id,
        map_index=-1,
        try_number=attempt,
        max_tries=first + retries - 1,
    )
    return {"ti": ti, "logical_date": datetime(2026, 5, 3, tzinfo=UTC)}


def identity(attempt: int = 1) -> RunIdentity:
    return RunIdentity("shop/manual__1/copy", attempt)


def begin(world: World, attempt: int = 1) -> ActiveRun:
    return ActiveRun.begin(world.store, JOB, identity(attempt), world.shop.environment)


def drive(world: World, attempt: int = 1) -> Callable[[Any], None]:
    """Return a submit that makes one whole run."""

    def submit(_: Any) -> None:
        run = begin(world, attempt)
        world.shop.copy(run)
        run.commit()

    return submit


def begin_replay(world: World, task: BookmarkSparkSubmitOperator, attempt: int) -> ReplayRun:
    """Begin the replay that the operator asks for in the conf of this try."""
    number = Settings.from_conf(task.conf or {}).replay
    assert number is not None
    return ReplayRun.begin_replay(world.store, JOB, identity(attempt), world.shop.environment, int(number))


def replay(world: World, task: BookmarkSparkSubmitOperator, attempt: int) -> Callable[[Any], None]:
    """Return a submit that replays what the operator asks for."""

    def submit(_: Any) -> None:
        run = begin_replay(world, task, attempt)
        world.shop.copy(run)
        run.commit()

    return submit


def fail_in(run: RunSession) -> None:
    run.abort("no memory")
    raise AirflowException("Spark failed")


def commit_only(world: World, attempt: int = 1, point: str = "committed") -> None:
    """Run a driver in a process of its own, and kill it between its commit and its publish."""
    script = DRIVER.format(root=str(world.folder), commits=True, code=0, fault=point)
    settings = Settings(job=JOB, store=world.store_uri, run_id=identity().run_id, attempt=str(attempt))
    environment = {**os.environ, "SHOP_CONF": json.dumps(settings.to_conf())}
    done = subprocess.run([sys.executable, "-c", script], env={**environment, "PYTHONPATH": str(PROJECT)}, check=False)
    assert done.returncode == -signal.SIGKILL


def refuse(_: Any) -> None:
    raise AssertionError("Spark was started")


def play(task: BookmarkSparkSubmitOperator, given: Any, submit: Callable[[Any], object]) -> dict[str, Any]:
    """Execute a task; `submit` is what the provider's operator does."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SparkSubmitOperator, "execute", lambda _, context: submit(context))
        return task.execute(given)


# ---- in a DAG


def test_success_means_committed_and_published(world: World, submits: Submits, player: Player) -> None:
    world.shop.put("a.txt", "a1", "a2")

    played = player.play(dag_of(application=submits.script()))

    assert played.state == "success"
    assert world.shop.target_lines(JOB) == {"a1": 1, "a2": 1}
    summary = played.xcom("copy")
    assert (summary["job"], summary["run_number"], summary["epoch"], summary["is_published"]) == (JOB, "1", "1", True)
    assert summary["contexts"]["raw"]["files"] == 1


@pytest.mark.seldom
def test_driver_gets_its_settings_and_the_runtime(world: World, submits: Submits, player: Player) -> None:
    played = player.play(dag_of(application=submits.script(), conf={"spark.x": "1"}, py_files="mine.zip"))

    (call,) = submits.calls
    settings = Settings.from_conf(call["conf"])
    run_id = played.run.run_id
    assert (settings.job, settings.option, settings.attempt, settings.version) == (JOB, "enable", "1", __version__)
    assert (settings.store, settings.run_id) == (world.store_uri, f"shop/{run_id}/copy")
    assert settings.identity("").dag_run_id == run_id
    assert call["conf"]["spark.x"] == "1"
    mine, runtime = call["arguments"][call["arguments"].index("--py-files") + 1].split(",")
    assert mine == "mine.zip"
    assert Path(runtime).name.startswith(f"airflow_bookmarks-{__version__}-")


@pytest.mark.parametrize(("given", "expected"), [(None, "x.zip,y.py"), ("mine.zip", "mine.zip")])
def test_python_files_of_the_conf_stay_beside_the_runtime_unless_the_task_has_some(
    world: World, submits: Submits, player: Player, given: str | None, expected: str
) -> None:
    conf = {"spark.submit.pyFiles": "x.zip,y.py"}

    player.play(dag_of(application=submits.script(), conf=conf, py_files=given))

    (call,) = submits.calls
    listed = call["arguments"][call["arguments"].index("--py-files") + 1]
    assert listed.rpartition(",")[0] == expected


def test_driver_that_never_commits_fails_the_task_and_says_so(
    world: World, submits: Submits, player: Player, capfd: pytest.CaptureFixture[str]
) -> None:
    played = player.play(dag_of(application=submits.script(commits=False)))

    assert played.state == "failed"
    assert "no bookmark run of" in capfd.readouterr().out


def test_run_that_died_after_its_commit_is_published_by_the_worker(
    world: World, submits: Submits, player: Player
) -> None:
    world.shop.put("a.txt", "a")

    played = player.play(dag_of(application=submits.script(fault="committed")))

    assert (played.state, played.tries("copy"), len(submits.calls)) == ("success", 1, 1)
    assert world.shop.target_lines(JOB) == {"a": 1}
    assert played.xcom("copy")["run_number"] == "1"


def test_retry_after_a_driver_that_died_before_its_commit_does_the_work(
    world: World, submits: Submits, player: Player
) -> None:
    world.shop.put("a.txt", "a")

    played = player.play(dag_of(retries=1, application=submits.script(fault="staged@1")))

    assert (played.state, played.tries("copy")) == ("success", 2)
    assert [call["conf"][f"{PREFIX}attempt"] for call in submits.calls] == ["1", "2"]
    assert world.shop.target_lines(JOB) == {"a": 1}


@pytest.mark.seldom
def test_retry_after_a_failure_behind_the_publish_starts_no_spark(
    world: World, submits: Submits, player: Player
) -> None:
    world.shop.put("a.txt", "a")

    played = player.play(dag_of(retries=1, application=submits.script(code=3)))

    assert (played.state, played.tries("copy"), len(submits.calls)) == ("success", 2, 1)
    assert played.xcom("copy")["run_number"] == "1"


@pytest.mark.slow
@pytest.mark.spark
def test_spark_itself_gets_settings_and_runtime_from_the_operator(world: World, player: Player) -> None:
    world.shop.put("a.txt", "a1", "a2")
    script = world.folder / "spark_job.py"
    script.write_text(
        "from pyspark.sql import SparkSession\n"
        "from airflow_bookmarks.spark import BookmarkedJob\n"
        "import airflow_bookmarks\n"
        "assert '.zip' in airflow_bookmarks.__file__, airflow_bookmarks.__file__\n"
        "spark = SparkSession.builder.getOrCreate()\n"
        "with BookmarkedJob(spark) as job:\n"
        f"    lines = job.read('raw').format('text').load({str(world.shop.raw)!r})\n"
        f"    job.write(lines, 'out').format('text').save({str(world.folder / 'out')!r})\n"
    )
    conf = {"spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false"}

    played = player.play(dag_of(application=str(script), conf=conf))

    assert played.state == "success"
    assert played.xcom("copy")["outputs"]["out"]["rows"] == 2


# ---- before Spark starts


def test_half_a_window_is_refused_before_spark_starts(world: World) -> None:
    task = operator(bookmark_option="{{ params.o }}", bookmark_from="{{ params.f }}")
    task.bookmark_option, task.bookmark_from = "pause", "3"  # as rendered

    with pytest.raises(AirflowFailException, match="half a range"):
        play(task, context(), refuse)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"bookmark_option": "enabled"}, "unknown bookmark option 'enabled'"),
        ({"bookmark_option": "pause", "bookmark_from": 3}, "half a range"),
        ({"bookmark_from": "3"}, "half a range"),
        ({"bookmark_option": "enable", "bookmark_from": 1, "bookmark_to": 2}, "'pause' only"),
        ({"bookmark_on_conflict": "ignore"}, "expected 'fail' or 'wait'"),
        ({"bookmark_on_unused": "fail"}, "bookmark_on_unused"),
        ({"bookmark_upstream": "flights.clean"}, "expected a list of job names"),
        ({"conf": {"spark.bookmarks.option": "pause"}}, "conf sets 'spark.bookmarks.option'"),
        (
            {"bookmark_optoin": "pause"},
            "unknown argument 'bookmark_optoin'; those of the bookmark are bookmark_asset, bookmark_databases",
        ),
        ({"default_args": {"bookmark_optoin": "pause"}}, "unknown argument 'bookmark_optoin'"),
    ],
)
def test_what_is_wrong_in_a_dag_file_is_said_when_the_file_is_read(arguments: dict[str, Any], said: str) -> None:
    with pytest.raises(OptionError, match=said):
        operator(**arguments)


@pytest.mark.parametrize("arguments", [{"bookmark_job": "a/b"}, {"bookmark_upstream": ["a#b"]}])
def test_name_that_cannot_be_one_is_refused_when_the_file_is_read(arguments: dict[str, Any]) -> None:
    with pytest.raises(NameInvalidError):
        operator(**arguments)


@pytest.mark.parametrize("nothing", ["", "None", None])
def test_template_that_gives_nothing_counts_as_unset(world: World, nothing: str | None) -> None:
    task = operator(bookmark_option=nothing, bookmark_from=nothing, bookmark_to=nothing, bookmark_job=nothing)

    summary = play(task, context(), drive(world))

    assert (summary["job"], summary["option"]) == (JOB, "enable")


def test_option_of_the_connection_holds_where_the_task_names_none(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    connect(monkeypatch, store=world.store_uri, default_option="disable")

    assert play(operator(), context(), lambda _: None)["option"] == "disable"
    assert play(operator(bookmark_option="enable"), context(), drive(world))["option"] == "enable"


def test_job_that_another_run_holds_is_refused_before_spark_starts(world: World) -> None:
    world.shop.begin(JOB, run_id="somebody/else")

    with pytest.raises(JobBusyError, match="somebody/else"):
        play(operator(), context(), refuse)


def test_job_that_another_run_holds_is_left_to_the_driver_with_wait(world: World) -> None:
    other = world.shop.begin(JOB, run_id="somebody/else")
    task = operator(bookmark_on_conflict="wait")
    travelled: dict[str, str] = {}

    def submit(_: Any) -> None:
        travelled.update(task.conf or {})
        other.abort("done")
        drive(world)(_)

    assert play(task, context(), submit)["run_number"] == "1"
    assert travelled[f"{PREFIX}on_conflict"] == "wait"


def test_what_becomes_of_unused_contexts_travels_to_the_driver(world: World) -> None:
    task = operator(bookmark_on_unused="error")
    travelled: dict[str, str] = {}

    def submit(_: Any) -> None:
        travelled.update(task.conf or {})
        drive(world)(_)

    play(task, context(), submit)

    assert travelled[f"{PREFIX}on_unused"] == "error"


def test_try_that_was_killed_is_refused_before_spark_starts(world: World) -> None:
    world.store.fence(JOB, identity().run_id, 1)

    with pytest.raises(AttemptRefusedError, match="Spark was not started"):
        play(operator(), context(), refuse)


def test_sqlite_store_is_refused_for_a_driver_on_another_machine(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    task = operator(deploy_mode="cluster")
    monkeypatch.setenv("AIRFLOW_CONN_SPARK_DEFAULT", json.dumps({"conn_type": "spark", "host": "yarn"}))

    with pytest.raises(AirflowFailException, match="on another machine"):
        task.execute(context())


def test_what_no_retry_can_mend_fails_without_one(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    task = operator()
    task.bookmark_option = "pasue"  # as a template rendered it

    with pytest.raises(AirflowFailException, match="unknown bookmark option 'pasue'"):
        task.execute(context())
    monkeypatch.delenv("AIRFLOW_CONN_BOOKMARKS_DEFAULT")
    with pytest.raises(AirflowFailException, match="bookmarks_default"):
        operator().execute(context())


def test_mapped_task_has_a_job_and_a_run_id_of_its_own(world: World) -> None:
    task, told = operator(), context()
    told["ti"].map_index = 3
    travelled: dict[str, str] = {}

    def submit(_: Any) -> None:
        travelled.update(task.conf or {})
        raise AirflowException("enough")

    with pytest.raises(AirflowException):
        play(task, told, submit)

    settings = Settings.from_conf(travelled)
    assert (settings.job, settings.run_id) == ("shop.copy.3", "shop/manual__1/copy/3")


# ---- after Spark has ended


@pytest.mark.parametrize("option", ["pause", "disable"])
def test_paused_and_disabled_runs_are_asked_for_no_commit(world: World, option: str) -> None:
    summary = play(operator(bookmark_option=option), context(), lambda _: None)

    assert (summary["option"], summary["run_number"], summary["contexts"]) == (option, None, {})
    assert world.store.snapshot(JOB).head is None


def test_spark_that_fails_before_the_commit_fails_the_task_with_its_own_error(world: World) -> None:
    world.shop.put("a.txt", "a")

    def submit(_: Any) -> None:
        world.shop.copy(begin(world))
        raise AirflowException("Cannot execute: spark-submit")

    with pytest.raises(AirflowException, match="Cannot execute") as raised:
        play(operator(), context(), submit)

    assert any("nothing was committed" in note for note in raised.value.__notes__)
    assert world.store.head(JOB).lease is None


def test_lines_of_spark_are_folded_in_the_log_and_its_error_is_not(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    world.shop.put("a.txt", "a")

    def submit(_: Any) -> None:
        logging.getLogger("airflow.task").warning("a line of Spark")
        fail_in(begin(world))

    with caplog.at_level(logging.INFO), pytest.raises(AirflowException, match="Spark failed"):
        play(operator(), context(), submit)

    lines = [record.getMessage() for record in caplog.records]
    opened, closed = lines.index("::group::Spark"), lines.index("::endgroup::")
    assert opened < lines.index("a line of Spark") < closed
    assert [line for line in lines[opened:closed] if line.startswith("bookmark copy: try 1")] == []
    assert any("is fenced" in line for line in lines[closed:])


def test_what_was_committed_stands_behind_the_lines_of_spark(world: World, caplog: pytest.LogCaptureFixture) -> None:
    world.shop.put("a.txt", "a")
    with caplog.at_level(logging.INFO):
        play(operator(), context(), drive(world))

    lines = [record.getMessage() for record in caplog.records]
    said = "bookmark shop.copy: committed and published: run 1, raw: 1 file, out: 1 rows written"
    assert lines.index(said) > lines.index("::endgroup::")


def test_driver_that_outlives_a_failed_submit_cannot_commit(world: World) -> None:
    world.shop.put("a.txt", "a")
    orphans: list[ActiveRun] = []

    def submit(_: Any) -> None:
        orphans.append(begin(world))
        world.shop.copy(orphans[0])
        raise AirflowException("the JVM was killed")

    with pytest.raises(AirflowException):
        play(operator(), context(), submit)

    with pytest.raises(FencedError):
        orphans[0].commit()
    assert world.shop.target_lines(JOB) == {}


def reason(world: World) -> str:
    verdict = health(world.store, JOB)
    return f"{verdict.state.value}: {verdict.reason}"


def test_driver_that_dies_without_a_word_is_a_failure_with_the_exit_code_of_spark_submit(
    world: World, submits: Submits, player: Player
) -> None:
    world.shop.put("a.txt", "a")
    played = player.play(dag_of(application=submits.script(fault="planned")))
    assert played.state == "failed"
    assert reason(world) == (
        "FAILED: the last try failed with exit code 1: the driver ended without a word; the log of the task says more"
    )


def test_exit_code_that_a_service_does_not_tell_is_not_made_up(world: World) -> None:
    def submit(_: Any) -> None:
        world.shop.copy(begin(world))
        raise AirflowException("the step has failed")

    with pytest.raises(AirflowException):
        play(operator(), context(), submit)

    assert reason(world) == (
        "FAILED: the last try failed: the driver ended without a word; the log of the task says more"
    )


def test_word_of_the_driver_stays_and_has_the_exit_code_of_spark_submit_beside_it(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(BookmarkSparkSubmitOperator, "driver_exit_code", 137)
    with pytest.raises(AirflowException):
        play(operator(), context(), lambda _: fail_in(begin(world)))
    assert reason(world) == "FAILED: the last try failed with exit code 137: no memory"


@pytest.mark.parametrize(
    ("returned", "told"), [(None, None), (0, None), (3, 3), (-9, 137)], ids=["runs", "well", "3", "killed"]
)
def test_exit_code_of_spark_submit_is_told_as_a_shell_does(returned: int | None, told: int | None) -> None:
    hook = _SubmitHook(SparkSubmitHook(), {})
    assert hook.exit_code is None
    hook._submit_sp = SimpleNamespace(returncode=returned)
    assert hook.exit_code == told


def test_run_that_spark_leaves_open_though_it_ended_well_is_a_failure(world: World) -> None:
    with pytest.raises(NotCommittedError):
        play(operator(), context(), lambda _: begin(world))
    assert reason(world) == "FAILED: the last try failed: Spark ended, and nothing was committed"


def test_spark_that_fails_after_the_commit_succeeds_once_the_worker_has_published(world: World) -> None:
    world.shop.put("a.txt", "a")

    def submit(_: Any) -> None:
        commit_only(world)
        raise AirflowException("the driver died")

    summary = play(operator(), context(), submit)

    assert (summary["run_number"], summary["is_published"]) == ("1", True)
    assert world.shop.target_lines(JOB) == {"a": 1}
    assert health(world.store, JOB).state is HealthState.OK


def test_spark_that_fails_behind_the_publish_fails_and_says_that_it_is_published(world: World) -> None:
    def submit(told: Any) -> None:
        drive(world)(told)
        raise AirflowException("in the last line of the script")

    with pytest.raises(AirflowException) as raised:
        play(operator(), context(), submit)

    assert any("run 1 is committed and published" in note for note in raised.value.__notes__)


def test_store_that_cannot_be_asked_after_a_failure_leaves_sparks_own_error(world: World) -> None:
    def submit(_: Any) -> None:
        Path(world.store_uri.removeprefix("sqlite:///").partition("?")[0]).write_text("no database any more")
        raise AirflowException("Spark's own")

    with pytest.raises(AirflowException, match="Spark's own") as raised:
        play(operator(), context(), submit)

    assert any("could not be settled" in note for note in raised.value.__notes__)


def test_run_that_ended_without_a_commit_keeps_nobody_waiting(world: World) -> None:
    with pytest.raises(NotCommittedError, match="has not committed"):
        play(operator(), context(), lambda _: begin(world))

    assert world.store.head(JOB).lease is None


def test_retry_publishes_what_the_earlier_try_committed_without_spark(world: World) -> None:
    world.shop.put("a.txt", "a")
    commit_only(world)

    summary = play(operator(retries=2), context(attempt=2, retries=2), refuse)

    assert summary["run_number"] == "1"
    assert world.shop.target_lines(JOB) == {"a": 1}


def cleared(attempt: int = 2, retries: int = 1) -> Any:
    """Return the context of a task that was cleared after its first try succeeded."""
    return context(attempt=attempt, retries=retries, first=2)


def test_task_that_is_cleared_after_success_replays_its_run(world: World) -> None:
    world.shop.put("a.txt", "a")
    play(operator(retries=1), context(retries=1), drive(world))
    world.shop.put("b.txt", "b")
    task = operator(retries=1)

    summary = play(task, cleared(), replay(world, task, attempt=2))

    assert summary["run_number"] == "1"
    assert world.shop.target_lines(JOB) == {"a": 1}
    run = world.store.committed_run(JOB, 1)
    assert run is not None
    assert run.revision == 1


def test_retry_of_a_replay_that_failed_replays_again(world: World) -> None:
    world.shop.put("a.txt", "a")
    play(operator(retries=1), context(retries=1), drive(world))
    task = operator(retries=1)
    with pytest.raises(AirflowException):
        play(task, cleared(), lambda _: fail_in(begin_replay(world, task, 2)))

    summary = play(task, cleared(attempt=3), replay(world, task, attempt=3))

    assert summary["run_number"] == "1"
    assert world.store.head(JOB).changes == 1


# ---- a DAG file whose `retries` changed since the task was made


def in_series(world: World, series: int, attempt: int = 1) -> Callable[[Any], None]:
    """Return a submit whose driver is told the series of tries, as Spark's settings tell it."""

    def submit(_: Any) -> None:
        of_try = replace(identity(attempt), series=series)
        run = ActiveRun.begin(world.store, JOB, of_try, world.shop.environment)
        world.shop.copy(run)
        run.commit()

    return submit


def test_driver_is_told_the_series_of_its_try(world: World) -> None:
    task = operator(retries=2)
    told: list[RunIdentity] = []

    def submit(given: Any) -> None:
        told.append(Settings.from_conf(task.conf or {}).identity(""))
        in_series(world, 2)(given)

    play(task, context(retries=2), submit)

    assert [one.series for one in told] == [2]


def test_task_succeeds_though_the_dag_file_has_fewer_retries_by_now(world: World) -> None:
    world.shop.put("a.txt", "a")

    summary = play(operator(retries=0), context(retries=2), in_series(world, 2))

    assert (summary["run_number"], summary["is_published"]) == ("1", True)
    again = play(operator(retries=0), context(attempt=2, retries=2), refuse)
    assert again["run_number"] == "1"


def test_clear_replays_though_the_dag_file_has_more_retries_by_now(world: World) -> None:
    world.shop.put("a.txt", "a")
    play(operator(), context(), in_series(world, 0))
    with pytest.raises(AirflowFailException):
        play(operator(retries=3, bookmark_on_clear="fail"), context(attempt=2, first=2), refuse)
    task = operator(retries=3)

    summary = play(task, context(attempt=3, first=3), replay(world, task, attempt=3))

    run = world.store.committed_run(JOB, 1)
    assert run is not None
    assert (summary["run_number"], run.revision) == ("1", 1)


def test_replay_whose_driver_never_began_does_not_pass_for_the_finished_run(world: World) -> None:
    play(operator(retries=1), context(retries=1), drive(world))
    with pytest.raises(NotCommittedError):
        play(operator(retries=1), cleared(), lambda _: None)


def test_task_that_is_cleared_after_its_run_was_rewound_reads_what_is_new(world: World) -> None:
    world.shop.put("a.txt", "a")
    play(operator(retries=1), context(retries=1), drive(world))
    reset(world.store, JOB, reason="again", who="test")

    summary = play(operator(retries=1), cleared(), drive(world, attempt=2))

    assert summary["run_number"] == "2"
    assert world.shop.target_lines(JOB) == {"a": 2}


def test_cleared_task_may_be_left_as_it_is_or_refused(world: World) -> None:
    world.shop.put("a.txt", "a")
    play(operator(retries=1), context(retries=1), drive(world))

    skipping = operator(retries=1, bookmark_on_clear="skip")
    assert play(skipping, cleared(), refuse)["run_number"] == "1"
    with pytest.raises(AirflowFailException, match="bookmark_on_clear"):
        play(operator(retries=1, bookmark_on_clear="fail"), cleared(), refuse)
    with pytest.raises(OptionError, match="bookmark_on_clear"):
        operator(bookmark_on_clear="perhaps")


def test_dag_run_that_was_deleted_and_made_again_runs_again(world: World) -> None:
    play(operator(), context(), drive(world))
    world.shop.put("b.txt", "b")

    assert play(operator(), context(), drive(world))["run_number"] == "2"


def test_cleared_task_whose_driver_never_begins_does_not_pass_for_its_earlier_run(world: World) -> None:
    play(operator(retries=1), context(retries=1), drive(world))

    with pytest.raises(NotCommittedError, match="never began"):
        play(operator(retries=1), context(attempt=2, retries=1, first=2), lambda _: None)


def test_retry_in_a_cleared_task_does_not_pass_for_the_run_before_the_clear(world: World) -> None:
    play(operator(retries=1), context(retries=1), drive(world))
    task = operator(retries=1)

    play(task, cleared(attempt=3), replay(world, task, attempt=3))

    assert world.store.head(JOB).run_number == 1


def test_due_publish_is_left_to_a_living_run_that_holds_the_job(world: World) -> None:
    world.shop.put("a.txt", "a")
    commit_only(world)
    world.store.fence(JOB, identity().run_id, 1)  # as if the lease of the dead driver had run out
    other = RunIdentity("somebody/else")
    assert world.store.take(JOB, other, world.store.snapshot(JOB, other.run_id), world.shop.environment.lease_time)

    with pytest.raises(JobBusyError):
        play(operator(retries=1), context(attempt=2, retries=1), refuse)

    lease = world.store.head(JOB).lease
    assert lease is not None
    assert lease.run_id == "somebody/else"


# ---- kill


def test_killed_try_is_fenced_after_spark_was_stopped(world: World) -> None:
    world.shop.put("a.txt", "a")
    task = operator()

    def submit(_: Any) -> None:
        run = begin(world)
        world.shop.copy(run)
        task.on_kill()
        with pytest.raises(FencedError):
            run.commit()
        raise AirflowException("killed")

    with pytest.raises(AirflowException, match="killed"):
        play(task, context(), submit)

    execution = world.store.execution(JOB, identity().run_id)
    assert execution is not None
    assert execution.killed_attempt == 1
    assert world.shop.target_lines(JOB) == {}


def test_try_is_fenced_though_spark_could_not_be_stopped(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    task = operator()

    def submit(_: Any) -> None:
        begin(world)
        # The provider's hook rejects this connection, so that the kill of Spark itself fails.
        extra = json.dumps({"spark-binary": "other"})
        monkeypatch.setenv("AIRFLOW_CONN_SPARK_DEFAULT", json.dumps({"conn_type": "spark", "extra": extra}))
        with pytest.raises((ValueError, RuntimeError), match="spark-binary"):
            task.on_kill()
        assert world.store.head(JOB).lease is None
        raise AirflowException("killed")

    with pytest.raises(AirflowException, match="killed"):
        play(task, context(), submit)


def test_kill_before_the_bookmark_is_known_fences_nothing(world: World) -> None:
    operator().on_kill()

    assert world.store.jobs() == []


# ---- credentials


@pytest.fixture
def aws(world: World, monkeypatch: pytest.MonkeyPatch, moto_url: str) -> str:
    """Let the connection lead to a DynamoDB table by credentials of an AWS connection."""
    connection = {"conn_type": "aws", "login": "AKIAEXAMPLE", "password": SECRET}
    monkeypatch.setenv("AIRFLOW_CONN_AWS_BOOKMARKS", json.dumps(connection))
    uri = f"dynamodb://bookmarks-{os.getpid()}?region=eu-west-1&endpoint={moto_url}"
    connect(monkeypatch, store=uri, aws_conn_id="aws_bookmarks")
    BookmarkHook().get_conn().init()
    return uri


def test_credentials_reach_the_submit_process_and_nothing_else(
    aws: str, submits: Submits, player: Player, capfd: pytest.CaptureFixture[str]
) -> None:
    played = player.play(
        dag_of(application=submits.script(), bookmark_option="disable", env_vars={"MINE": "1"}, verbose=True)
    )

    (call,) = submits.calls
    assert played.state == "success"
    assert (call["aws"]["AWS_ACCESS_KEY_ID"], call["aws"]["AWS_SECRET_ACCESS_KEY"]) == ("AKIAEXAMPLE", SECRET)
    assert SECRET not in json.dumps(call["arguments"])
    assert SECRET not in json.dumps(played.xcom("copy"))
    printed = capfd.readouterr()
    said = [line for line in (printed.out + printed.err).splitlines() if SECRET in line]
    # Airflow 3.0 and 3.1 write what they are asked to mask into their own debug log.
    assert [line for line in said if not ("[debug" in line and "MaskSecret" in line)] == []
    assert os.environ["AWS_SECRET_ACCESS_KEY"] != SECRET


@pytest.mark.parametrize("master", ["yarn", "local[1]", "spark://host"])
def test_credentials_are_not_on_the_command_line_whatever_the_master(
    aws: str, monkeypatch: pytest.MonkeyPatch, master: str
) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_SPARK_DEFAULT", json.dumps({"conn_type": "spark", "host": master}))
    task = operator(env_vars={"MINE": "1"})
    task._begin(context())

    hook = task._get_hook()
    command = hook._build_spark_submit_command("job.py")

    assert not any(SECRET in part or "AWS_" in part for part in command)
    assert hook._env is not None
    assert (hook._env["AWS_SECRET_ACCESS_KEY"], hook._env["MINE"]) == (SECRET, "1")


def test_driver_of_a_cluster_gets_no_credentials(aws: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_SPARK_DEFAULT", json.dumps({"conn_type": "spark", "host": "yarn"}))
    task = operator(deploy_mode="cluster")
    task._begin(context())

    hook = task._get_hook()
    command = hook._build_spark_submit_command("job.py")

    assert hook._env is None
    assert not any(SECRET in part for part in command)


def login_of_crm(patch: pytest.MonkeyPatch, **fields: Any) -> None:
    fields = {"conn_type": "postgres", "host": "db", "schema": "crm", "login": "etl", "password": SECRET, **fields}
    patch.setenv("AIRFLOW_CONN_CRM", json.dumps(fields))


@pytest.mark.parametrize("master", ["yarn", "local[1]"])
def test_logins_of_databases_reach_the_driver_in_its_environment_alone(
    world: World, monkeypatch: pytest.MonkeyPatch, master: str
) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_SPARK_DEFAULT", json.dumps({"conn_type": "spark", "host": master}))
    login_of_crm(monkeypatch, extra=json.dumps({"sslmode": "require"}))
    task = operator(bookmark_databases=["crm"])
    task._begin(context())

    hook = task._get_hook()
    command = hook._build_spark_submit_command("job.py")

    assert not any(SECRET in part or "AIRFLOW_CONN" in part for part in command)
    assert hook._env is not None
    monkeypatch.setenv("AIRFLOW_CONN_CRM", hook._env["AIRFLOW_CONN_CRM"])  # as the driver has it
    login = EnvironmentAccess().login(DatabaseAddress.parse("conn:crm"))
    assert (login.name, login.user, login.password) == ("jdbc:postgresql://db:5432/crm", "etl", SECRET)
    assert login.parameters == {"sslmode": "require"}


def test_logins_of_databases_are_refused_for_a_driver_on_another_machine(
    aws: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_SPARK_DEFAULT", json.dumps({"conn_type": "spark", "host": "yarn"}))
    login_of_crm(monkeypatch)
    task = operator(deploy_mode="cluster", bookmark_databases=["crm"])

    with pytest.raises(AirflowFailException, match=r"spark\.bookmarks\.access\.crm=aws-secret:NAME"):
        task.execute(context())


@pytest.mark.parametrize(
    ("fields", "what"),
    [({"conn_type": "http"}, "has the type .http."), (None, "has no connection 'crm'")],
)
def test_login_that_is_none_fails_before_spark_starts(
    world: World, monkeypatch: pytest.MonkeyPatch, fields: dict[str, Any] | None, what: str
) -> None:
    if fields is not None:
        login_of_crm(monkeypatch, **fields)
    with pytest.raises(AirflowFailException, match=what) as caught:
        operator(bookmark_databases=["crm"]).execute(context())
    assert SECRET not in str(caught.value)


def test_one_id_in_place_of_a_list_is_refused_when_the_dag_is_parsed() -> None:
    with pytest.raises(OptionError, match="expected a list of ids"):
        operator(bookmark_databases="crm")


# ---- as an operator


def test_operator_survives_serialisation() -> None:
    dag = dag_of(
        application="job.py",
        bookmark_job="j",
        bookmark_option="{{ params.option }}",
        bookmark_upstream=["a", "b"],
        bookmark_on_conflict="wait",
    )

    again: Any = DagSerialization.deserialize_dag(DagSerialization.serialize_dag(dag)).get_task("copy")

    assert again.bookmark_job == "j"
    assert again.bookmark_option == "{{ params.option }}"
    assert list(again.bookmark_upstream) == ["a", "b"]
    assert {"bookmark_job", "bookmark_option", "bookmark_from", "bookmark_to", "application"} <= set(
        again.template_fields
    )


def test_arguments_may_come_from_default_args() -> None:
    task = operator(default_args={"bookmark_option": "pause", "bookmarks_conn_id": "other"})

    assert (task.bookmark_option, task.bookmarks_conn_id) == ("pause", "other")


def test_databases_may_come_from_the_default_args_of_a_dag() -> None:
    with DAG("shop", default_args={"bookmark_databases": ["shop"], "bookmark_option": "pause"}):
        task = operator()

    assert (task.bookmark_databases, task.bookmark_option) == (["shop"], "pause")


@pytest.mark.skipif(not HAS_DURABLE, reason="this Airflow has no durable tasks; they came with 3.3")
def test_task_is_not_durable_unless_asked() -> None:
    assert operator().durable is False
    assert operator(durable=True).durable is True
    assert operator(default_args={"durable": True}).durable is True


@pytest.mark.parametrize("durable", [None, False])
def test_task_that_is_not_durable_is_made_without_a_warning(durable: bool | None) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        task = operator(durable=durable)

    assert not getattr(task, "durable", False)


@pytest.mark.seldom
def test_operator_that_is_executed_again_submits_with_the_settings_of_that_try(world: World, submits: Submits) -> None:
    task = BookmarkSparkSubmitOperator(task_id="copy", application=submits.script(), retries=1)

    for attempt in (1, 2):
        task.execute(context(attempt, retries=1, first=attempt))

    assert [call["conf"][f"{PREFIX}attempt"] for call in submits.calls] == ["1", "2"]


def test_settings_of_one_try_do_not_stay_on_the_operator(world: World) -> None:
    task = operator(conf={"spark.x": "1"})

    play(task, context(), drive(world))

    assert task.conf == {"spark.x": "1"}
    assert task.py_files is None


# ---- templates that gave something else


@pytest.mark.parametrize("given", ["orders", 5, True, ["None"], ["a", None]])
def test_upstream_that_is_no_list_of_names_is_refused(world: World, given: Any) -> None:
    task = operator()
    task.bookmark_upstream = given  # as rendered
    with pytest.raises(AirflowFailException, match="expected a list of job names"):
        play(task, context(), refuse)


@pytest.mark.parametrize("given", ["None", " ", ""])
def test_share_that_rendered_to_nothing_leaves_a_mapped_task_its_own_job(world: World, given: str) -> None:
    task = operator()
    task.bookmark_shard = given
    mapped = context()
    mapped["ti"].map_index = 3

    assert task._begin(mapped).attempt.job == f"{JOB}.3"


@pytest.mark.parametrize(
    "wrong",
    [{"bookmark_asset": "flights"}, {"bookmark_asset": AssetAlias("x")}, {"conf_for": 1}, {"asset_partitions": 1}],
)
def test_argument_of_another_kind_is_refused_when_the_dag_file_is_read(wrong: dict[str, Any]) -> None:
    with pytest.raises(OptionError, match="expected a"):
        operator(**wrong)
