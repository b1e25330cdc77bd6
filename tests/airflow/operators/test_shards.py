"""Sharded jobs in Airflow (DEP-11): a mapped task is done when all its shards are, and a retry reads the rest."""

from __future__ import annotations

import os
import stat
import sys
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.sdk import DAG

from airflow_bookmarks.core.errors import (
    AttemptRefusedError,
    ChangeRefusedError,
    JobBusyError,
    NotCommittedError,
    OptionError,
)
from airflow_bookmarks.core.job import RunIdentity
from airflow_bookmarks.core.rules.shard import ShardShare, VirtualShard, shard_name, shard_names, shards
from airflow_bookmarks.core.settings import Settings
from airflow_bookmarks.lifecycle.protocol.lease import RunEnvironment
from airflow_bookmarks.lifecycle.run.enabled import ActiveRun
from airflow_bookmarks.operators.spark_submit import BookmarkSparkSubmitOperator
from airflow_bookmarks.operators.task.attempt import Attempt
from airflow_bookmarks.operators.task.sharded_attempt import ShardedAttempt
from airflow_bookmarks.sources.files.planner import FileSource
from tests.airflow.conftest import Player, World
from tests.lifecycle.shop import FILES, Shop

PROJECT = Path(__file__).resolve().parents[3]
JOB = "shop.copy"
RUN_ID = "shop/manual__1/copy/0"


def drive(shop: Shop, number: int, attempt: int = 1, run_id: str = RUN_ID, left_out: int = 0) -> None:
    """Make the run of a virtual shard, as a driver does."""
    run = ActiveRun.begin(shop.store, shard_name(JOB, number), RunIdentity(run_id, attempt), RunEnvironment())
    run.plan("raw", FileSource(FILES, [str(shop.raw)], shard=VirtualShard(number)))
    if left_out:
        run.count_left_out("clean", "no id", left_out)
    run.commit()


def tried(shop: Shop, attempt: int = 1, first: int = 1, share: str = "0:3") -> ShardedAttempt:
    return ShardedAttempt(
        Attempt(shop.store, JOB, RunIdentity(RUN_ID, attempt), first, RunEnvironment()), ShardShare.of(share)
    )


# ---- one try


def test_task_is_done_when_all_its_shards_are(world: World) -> None:
    for number in (0, 1, 2):
        drive(world.shop, number)
    summary = tried(world.shop).finish().as_dict()
    assert (summary["job"], summary["run_number"], summary["is_published"]) == (JOB, None, True)
    assert summary["contexts"]["raw"]["files"] == 0


def test_counts_are_those_of_all_its_shards(world: World) -> None:
    for i in range(30):
        world.shop.put(f"f{i}.txt", "line")
    for number in range(64):
        drive(world.shop, number)
    figures = tried(world.shop, share="0:64").finish().contexts["raw"]
    assert (figures["files"], figures["listed"], figures["known"], figures["skipped"]) == (30, 30, 0, {})


def test_what_the_steps_of_its_shards_left_out_is_added_up(world: World) -> None:
    for number, left_out in enumerate((3, 0, 4)):
        drive(world.shop, number, left_out=left_out)
    assert tried(world.shop).finish().left_out == {"clean": {"no id": 7}}


def test_script_that_leaves_a_shard_out_fails_the_task(world: World) -> None:
    drive(world.shop, 0)
    with pytest.raises(NotCommittedError, match="1 of 3 virtual shards are committed"):
        tried(world.shop).finish()


def test_retry_after_some_shards_runs_spark_and_after_all_it_does_not(world: World) -> None:
    drive(world.shop, 0)
    assert tried(world.shop, attempt=2).finish_earlier() is None
    assert tried(world.shop, attempt=2).cleared("replay") == (None, None)  # a retry is no cleared task
    for number in (0, 1, 2):
        drive(world.shop, number, attempt=2)
    assert tried(world.shop, attempt=3).finish_earlier() is not None


def test_task_that_failed_in_spark_says_how_many_shards_are_done(world: World) -> None:
    drive(world.shop, 0)
    error = RuntimeError("spark failed")
    assert tried(world.shop).settle(error) is None
    assert "1 of 3 virtual shards are committed" in error.__notes__[0]


def test_spark_that_fails_after_all_shards_were_committed_leaves_a_task_that_succeeds(world: World) -> None:
    for number in (0, 1, 2):
        drive(world.shop, number)
    assert tried(world.shop).settle(RuntimeError("spark failed")) is not None


def test_killed_try_is_fenced_in_each_shard(world: World) -> None:
    tried(world.shop).fence(world.store)
    for number in (0, 1, 2):
        with pytest.raises(AttemptRefusedError):
            drive(world.shop, number)
    drive(world.shop, 3)


def test_shard_that_another_run_works_on_is_busy_before_spark_starts(world: World) -> None:
    run = world.shop.begin(shard_name(JOB, 1))
    with pytest.raises(JobBusyError):
        tried(world.shop).check_free("fail")
    tried(world.shop).check_free("wait")
    run.abort("over")
    tried(world.shop).check_free("fail")


def test_cleared_task_is_not_replayed(world: World) -> None:
    for number in (0, 1, 2):
        drive(world.shop, number)
    again = tried(world.shop, attempt=2, first=2)
    with pytest.raises(ChangeRefusedError, match="has finished 3 virtual shards"):
        again.cleared("replay")
    replay, summary = again.cleared("skip")
    assert (replay, summary is not None) == (None, True)


# ---- the operator

SPARK_SUBMIT = """#!{python}
import json, os, pathlib, subprocess, sys
arguments = sys.argv[1:]
flags = [i for i, a in enumerate(arguments) if a == "--conf"]
conf = dict(arguments[i + 1].split("=", 1) for i in flags)
environment = {{**os.environ, "SHOP_CONF": json.dumps(conf), "PYTHONPATH": {project!r}}}
script = next(a for a in arguments if a.endswith(".py"))
sys.exit(subprocess.run([{python!r}, script], env=environment).returncode and 1)
"""
DRIVER = """
import json, os
from pathlib import Path
from airflow_bookmarks.core.settings import Settings
from airflow_bookmarks.core.rules.shard import ShardShare, VirtualShard, shard_name
from airflow_bookmarks.lifecycle.run.enabled import ActiveRun
from airflow_bookmarks.lifecycle.protocol.lease import RunEnvironment
from airflow_bookmarks.sources.files.planner import FileSource
from airflow_bookmarks.store.bookmark_store import open_store
from tests.lifecycle.shop import FILES
settings = Settings.from_conf(json.loads(os.environ["SHOP_CONF"]))
store = open_store(settings.store)
for number in ShardShare.of(settings.shard).numbers:
    run = ActiveRun.begin(store, shard_name(settings.job, number), settings.identity("none"), RunEnvironment())
    run.plan("raw", FileSource(FILES, [{raw!r}], shard=VirtualShard(number)))
    run.commit()
"""


@pytest.fixture
def script(world: World, monkeypatch: pytest.MonkeyPatch) -> str:
    """Put a stand-in for spark-submit on the path, and write a driver without Spark; return its path."""
    programs = world.folder / "bin"
    programs.mkdir()
    program = programs / "spark-submit"
    program.write_text(SPARK_SUBMIT.format(python=sys.executable, project=str(PROJECT)))
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{programs}{os.pathsep}{os.environ['PATH']}")
    path = world.folder / "job.py"
    path.write_text(DRIVER.format(raw=str(world.shop.raw)))
    return str(path)


def play(player: Player, script: str, texts: Any) -> list[dict[str, Any]]:
    """Play a DAG with one mapped task for each share; return what they say."""
    with DAG("shop", schedule=None, start_date=datetime(2026, 1, 1, tzinfo=UTC)) as dag:
        BookmarkSparkSubmitOperator.partial(task_id="copy", application=script).expand(bookmark_shard=texts)
    played = player.play(dag)
    assert played.state == "success"
    tasks = played.run.get_task_instances()
    return [task.xcom_pull(task_ids="copy", map_indexes=task.map_index) for task in tasks]


@pytest.mark.seldom
@pytest.mark.slow
def test_mapped_tasks_work_on_one_job_and_read_each_file_once(world: World, player: Player, script: str) -> None:
    for i in range(20):
        world.shop.put(f"f{i}.txt", "line")
    made = play(player, script, shards(3))
    assert {summary["job"] for summary in made} == {JOB}
    assert [summary["contexts"]["raw"]["listed"] for summary in made] == [20, 20, 20]
    assert sum(summary["contexts"]["raw"]["files"] for summary in made) == 20

    world.shop.put("late.txt", "line")
    made = play(player, script, shards(4))

    assert sum(summary["contexts"]["raw"]["files"] for summary in made) == 1
    assert set(world.store.heads(shard_names(JOB))) == set(shard_names(JOB))


def test_share_is_a_template(world: World) -> None:
    sent: list[Settings] = []

    class Submitted(BookmarkSparkSubmitOperator):
        def submit(self, context: Any, conf: Any, runtime: Any) -> None:
            sent.append(Settings.from_conf({k: v for k, v in conf.items() if k.startswith("spark.bookmarks.")}))
            (number,) = ShardShare.of(sent[0].shard or "").numbers
            drive(world.shop, number, run_id=sent[0].run_id or "")

    task = Submitted(task_id="copy", application="job.py", bookmark_shard="{{ ti.map_index }}/64")
    ti = SimpleNamespace(dag_id="shop", task_id="copy", run_id="manual__1", map_index=63, try_number=1, max_tries=0)
    context: Any = {"ti": ti, "logical_date": None}
    task.render_template_fields(context)
    task.execute(context)
    assert (sent[0].job, sent[0].shard, sent[0].run_id) == (JOB, "63/64", "shop/manual__1/copy/63")


def test_share_that_is_none_is_an_error_when_the_dag_file_is_read() -> None:
    with pytest.raises(OptionError, match="4/4"):
        BookmarkSparkSubmitOperator(task_id="copy", application="job.py", bookmark_shard="4/4")


@pytest.mark.parametrize("other", [{"skip_when_empty": True}, {"conf_for": dict}])
def test_what_looks_at_one_bookmark_is_refused_with_shares(other: Any) -> None:
    with pytest.raises(OptionError, match="look at one bookmark"):
        BookmarkSparkSubmitOperator(task_id="copy", application="job.py", bookmark_shard="0/4", **other)
