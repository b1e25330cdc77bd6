"""Batches in Airflow: a task whose execution makes several runs is done with its last, and a retry goes on behind."""

from __future__ import annotations

import os
import stat
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest
from airflow.sdk import DAG

from airflow_bookmarks.core.errors import ChangeRefusedError, NotCommittedError
from airflow_bookmarks.core.job import RunIdentity
from airflow_bookmarks.core.option import Choice
from airflow_bookmarks.core.selection.bound import Bound
from airflow_bookmarks.lifecycle.changes.change import reset
from airflow_bookmarks.lifecycle.protocol.finish import ExecutionOutcome, outcome, side_summary
from airflow_bookmarks.lifecycle.protocol.lease import RunEnvironment
from airflow_bookmarks.lifecycle.run.detached import DetachedRun
from airflow_bookmarks.lifecycle.run.enabled import ActiveRun
from airflow_bookmarks.operators.spark_submit import BookmarkSparkSubmitOperator
from airflow_bookmarks.operators.task.attempt import Attempt
from airflow_bookmarks.sources.files.options import FileOptions
from tests.airflow.conftest import Player, World
from tests.lifecycle.batch_driver import Loop
from tests.lifecycle.shop import Shop

PROJECT = Path(__file__).resolve().parents[3]
JOB, RUN_ID = "shop.copy", "shop/manual__1/copy"
OPTIONS = FileOptions(bound=Bound(max_files=2))


def put_many(shop: Shop, count: int) -> list[str]:
    for i in range(count):
        shop.put(f"f{i}.txt", f"line {i}")
    return [f"line {i}" for i in range(count)]


def loop(shop: Shop, attempt: int = 1) -> Loop:
    """Begin a loop of batches of two files each, as a driver does."""
    run = ActiveRun.begin(shop.store, JOB, RunIdentity(RUN_ID, attempt), RunEnvironment(), in_batches=True)
    return Loop(shop, run, OPTIONS)


def tried(shop: Shop, attempt: int = 1, first: int = 1) -> Attempt:
    return Attempt(shop.store, JOB, RunIdentity(RUN_ID, attempt), first, RunEnvironment())


class UnpublishedError(Exception):
    """Raised by a driver that dies between a commit and its publish."""


def die_after_the_commit_of(going: Loop, number: int) -> None:
    """Run a loop up to the commit of a batch, and leave it as a driver does that was killed then."""
    batches = going.batches()
    for _ in range(number - 1):
        next(batches)

    def no_publish(run: object, *, goes_on: bool) -> None:
        raise UnpublishedError

    following = going.run.following()
    assert isinstance(following, ActiveRun)
    following._leased.publish = no_publish  # type: ignore[assignment, method-assign]
    with pytest.raises(UnpublishedError):
        next(Loop(going.shop, following, going.options, backlog=going.backlog).batches())


# ---- one try


def test_summary_has_the_sums_over_all_batches(world: World) -> None:
    put_many(world.shop, 5)
    list(loop(world.shop).batches())
    summary = tried(world.shop).finish().as_dict()
    assert (summary["run_number"], summary["first_run_number"], summary["is_empty"]) == ("3", "1", False)
    figures = summary["contexts"]["raw"]
    assert (figures["files"], figures["listed"], figures["known"], figures["skipped"]) == (5, 5, 0, {})
    assert figures["watermark_from"] is None
    assert summary["outputs"]["out"]["rows"] == 5


def test_task_of_one_run_has_its_summary_alone(world: World) -> None:
    put_many(world.shop, 2)
    list(loop(world.shop).batches())
    assert "first_run_number" not in tried(world.shop).finish().as_dict()


def test_batches_that_a_failed_try_has_made_count_for_the_retry(world: World) -> None:
    put_many(world.shop, 5)
    going = loop(world.shop)
    next(going.batches())
    going.run.leave()
    list(loop(world.shop, attempt=2).batches())
    summary = tried(world.shop, attempt=2).finish()
    assert (summary.first_run_number, summary.run_number) == (1, 3)
    assert summary.contexts["raw"]["files"] == 5


def test_loop_that_was_left_fails_the_task_and_says_how_far_it_came(world: World) -> None:
    put_many(world.shop, 5)
    going = loop(world.shop)
    next(going.batches())
    going.run.leave()
    with pytest.raises(NotCommittedError, match=r"committed and published up to run 1.*nothing is read twice"):
        tried(world.shop).finish()


def test_batch_that_is_due_is_published_by_the_worker_and_the_retry_reads_the_rest(world: World) -> None:
    lines = put_many(world.shop, 5)
    die_after_the_commit_of(loop(world.shop), 2)
    assert outcome(world.store, JOB, RUN_ID)[0] is ExecutionOutcome.PARTLY_DUE
    error = RuntimeError("spark failed")
    assert tried(world.shop).settle(error) is None
    assert "its runs up to 2 are committed and published" in error.__notes__[0]
    assert world.shop.target_lines(JOB) == dict.fromkeys(lines[:4], 1)
    assert tried(world.shop, attempt=2).finish_earlier() is None
    list(loop(world.shop, attempt=2).batches())
    assert world.shop.target_lines(JOB) == dict.fromkeys(lines, 1)
    assert tried(world.shop, attempt=2).finish().first_run_number == 1


def test_retry_after_the_worker_died_too_lets_spark_publish_and_go_on(world: World) -> None:
    lines = put_many(world.shop, 5)
    die_after_the_commit_of(loop(world.shop), 2)
    assert tried(world.shop, attempt=2).finish_earlier() is None
    assert tried(world.shop, attempt=2).cleared("replay") == (None, None)
    list(loop(world.shop, attempt=2).batches())
    assert world.shop.target_lines(JOB) == dict.fromkeys(lines, 1)


def test_last_batch_that_is_due_is_published_without_spark(world: World) -> None:
    lines = put_many(world.shop, 4)
    die_after_the_commit_of(loop(world.shop), 2)
    summary = tried(world.shop, attempt=2).finish_earlier()
    assert summary is not None
    assert (summary.first_run_number, summary.run_number, summary.contexts["raw"]["files"]) == (1, 2, 4)
    assert world.shop.target_lines(JOB) == dict.fromkeys(lines, 1)


def test_cleared_task_of_several_runs_is_not_replayed_and_says_where_to_rewind_to(world: World) -> None:
    world.shop.put("before.txt", "before")
    world.shop.run(JOB)
    put_many(world.shop, 4)
    list(loop(world.shop).batches())
    with pytest.raises(ChangeRefusedError, match=r"several runs, from 2 on.*--to 1'"):
        tried(world.shop, attempt=2, first=2).cleared("replay")
    replay, summary = tried(world.shop, attempt=2, first=2).cleared("skip")
    assert replay is None
    assert summary is not None
    assert (summary.first_run_number, summary.run_number) == (2, 3)


def test_cleared_task_whose_runs_were_undone_counts_them_no_more(world: World) -> None:
    put_many(world.shop, 4)
    list(loop(world.shop).batches())
    reset(world.store, JOB, reason="again", who="test")
    run = ActiveRun.begin(world.store, JOB, RunIdentity(RUN_ID, 2), RunEnvironment())
    world.shop.copy(run)
    run.commit()
    assert tried(world.shop, attempt=2, first=2).finish().first_run_number is None
    assert tried(world.shop, attempt=3, first=3).cleared("replay") == (3, None)


def test_paused_batches_are_one_summary(world: World) -> None:
    put_many(world.shop, 5)
    identity = RunIdentity(RUN_ID, 1)
    run = DetachedRun.begin(world.store, JOB, identity, Choice.of("pause"), RunEnvironment(), in_batches=True)
    list(Loop(world.shop, run, OPTIONS).batches())
    figures = side_summary(world.store, JOB, identity, "pause").contexts["raw"]
    assert (figures["files"], figures["rows"]) == (5, None)


# ---- the operator

SPARK_SUBMIT = """#!{python}
import json, os, subprocess, sys
arguments = sys.argv[1:]
flags = [i for i, a in enumerate(arguments) if a == "--conf"]
conf = dict(arguments[i + 1].split("=", 1) for i in flags)
environment = {{**os.environ, "SHOP_CONF": json.dumps(conf), "PYTHONPATH": {project!r}}}
script = next(a for a in arguments if a.endswith(".py"))
sys.exit(subprocess.run([{python!r}, script], env=environment).returncode and 1)
"""

# A driver without Spark, which is killed in the second batch of its first try.
DRIVER = """
import json, os
from dataclasses import replace
from pathlib import Path
from airflow_bookmarks.core.selection.bound import Bound
from airflow_bookmarks.core.settings import Settings
from airflow_bookmarks.lifecycle.run.enabled import ActiveRun
from airflow_bookmarks.lifecycle.protocol.lease import RunEnvironment
from airflow_bookmarks.sources.files.options import FileOptions
from airflow_bookmarks.store.bookmark_store import open_store
from tests.lifecycle.batch_driver import Loop, fault_at
from tests.lifecycle.shop import Shop
settings = Settings.from_conf(json.loads(os.environ["SHOP_CONF"]))
identity, store = settings.identity("none"), open_store(settings.store)
environment = replace(RunEnvironment(), at=fault_at("before_commit", 2)) if identity.attempt == 1 else RunEnvironment()
run = ActiveRun.begin(store, settings.job, identity, environment, in_batches=True)
loop = Loop(Shop(Path({root!r}), store, environment), run, FileOptions(bound=Bound(max_files=2)))
for batch in loop.batches():
    print(batch.summary.in_words())
"""


@pytest.mark.seldom
@pytest.mark.slow
def test_task_that_is_killed_within_its_batches_is_retried_and_reads_each_file_once(
    world: World, player: Player, monkeypatch: pytest.MonkeyPatch
) -> None:
    programs = world.folder / "bin"
    programs.mkdir()
    submit, script = programs / "spark-submit", world.folder / "job.py"
    submit.write_text(SPARK_SUBMIT.format(python=sys.executable, project=str(PROJECT)))
    submit.chmod(submit.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{programs}{os.pathsep}{os.environ['PATH']}")
    script.write_text(DRIVER.format(root=str(world.folder)))
    lines = put_many(world.shop, 5)
    with DAG("shop", schedule=None, start_date=datetime(2026, 1, 1, tzinfo=UTC)) as dag:
        BookmarkSparkSubmitOperator(task_id="copy", application=str(script), retries=1)
    played = player.play(dag)
    assert (played.state, played.tries("copy")) == ("success", 2)
    summary = played.xcom("copy")
    assert (summary["first_run_number"], summary["run_number"]) == ("1", "3")
    assert summary["contexts"]["raw"]["files"] == 5
    assert world.shop.target_lines(JOB) == dict.fromkeys(lines, 1)
    head = world.store.head(JOB)
    assert (head.run_number, head.published, head.lease) == (3, 3, None)
