"""Loops over partitions in Airflow (DEP-12): XCom has the failed ones, the task fails, its retry reads these alone."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from airflow.sdk import DAG

from airflow_bookmarks.core.errors import NotCommittedError
from airflow_bookmarks.core.job import RunIdentity
from airflow_bookmarks.lifecycle.protocol.lease import RunEnvironment
from airflow_bookmarks.lifecycle.run.enabled import ActiveRun
from airflow_bookmarks.operators.spark_submit import BookmarkSparkSubmitOperator
from airflow_bookmarks.operators.task.attempt import Attempt
from airflow_bookmarks.operators.task.task_try import FAILED_PARTITIONS
from airflow_bookmarks.sources.part_loop import PartLoop
from tests.airflow.conftest import Player, World
from tests.airflow.operators.test_shards import PROJECT, SPARK_SUBMIT
from tests.databases.servers import new_database
from tests.sources.jdbc.shop import Shop
from tests.sources.jdbc.test_partitions import Job, add
from tools.servers import DatabaseServer

DRIVER = """
import json, os, sys
from airflow_bookmarks.core.settings import Settings
from airflow_bookmarks.databases.login import DatabaseLogin
from airflow_bookmarks.lifecycle.protocol.lease import RunEnvironment
from airflow_bookmarks.lifecycle.run.enabled import ActiveRun
from airflow_bookmarks.sources.part_loop import PartLoop
from airflow_bookmarks.store.bookmark_store import open_store
from tests.airflow.operators.test_partitions import drive
from tests.sources.jdbc.shop import Shop
settings = Settings.from_conf(json.loads(os.environ["SHOP_CONF"]))
failing = {failing!r} if settings.attempt == "1" else []
shop = Shop(DatabaseLogin(*{login!r}))
read, failed = drive(open_store(settings.store), settings.job, settings.identity("none"), shop, *failing)
with open({seen!r}, "a") as log:
    print(json.dumps(read), file=log)
sys.exit(1 if failed else 0)
"""


def drive(store: Any, job: str, identity: RunIdentity, shop: Shop, *failing: str) -> tuple[list[Any], list[Any]]:
    """Make the runs of a loop, as a driver does; return the values that were read, and those that failed."""
    loop, read, failed, run = PartLoop("orders"), [], [], None
    while not loop.is_over:
        loop.begin()
        run = (
            run.following()
            if run is not None and run.goes_on
            else ActiveRun.begin(store, job, identity, RunEnvironment(), in_batches=True)
        )
        plan = run.plan("orders", Job(shop).source(loop, identity.run_id))
        if plan.part is not None and plan.part.value in failing:
            failed.append(plan.part.value)
            run.abort("it is wrong")
            continue
        run.commit()
        read.append(None if plan.part is None else plan.part.value)
    if run is not None:
        run.leave()
    return read, failed


@pytest.fixture
def shop(postgresql_server: DatabaseServer) -> Iterator[Shop]:
    """Make a table with orders of three regions."""
    with new_database(postgresql_server) as login:
        made = Shop(login)
        made.run("CREATE TABLE orders (id int PRIMARY KEY, region varchar(9))")
        add(made, (1, "asia"), (2, "eu"), (3, "us"))
        yield made


def play(
    world: World, player: Player, shop: Shop, failing: list[str], retries: int, patch: pytest.MonkeyPatch
) -> tuple[Any, Path]:
    programs = world.folder / "bin"
    programs.mkdir()
    program = programs / "spark-submit"
    program.write_text(SPARK_SUBMIT.format(python=sys.executable, project=str(PROJECT)))
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    patch.setenv("PATH", f"{programs}{os.pathsep}{os.environ['PATH']}")
    script, seen, at = world.folder / "job.py", world.folder / "seen.log", shop.login
    login = (at.dialect, at.host, at.port, at.database, at.user, at.password)
    script.write_text(DRIVER.format(failing=failing, login=login, seen=str(seen)))
    with DAG("shop", schedule=None, start_date=datetime(2026, 1, 1, tzinfo=UTC)) as dag:
        BookmarkSparkSubmitOperator(task_id="copy", application=str(script), retries=retries, retry_delay=timedelta(0))
    return player.play(dag), seen


@pytest.mark.seldom
@pytest.mark.slow
def test_failed_partitions_are_in_xcom_and_the_task_has_failed(
    world: World, player: Player, shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    played, seen = play(world, player, shop, ["asia", "us"], 0, monkeypatch)
    assert played.state == "failed"
    assert played.xcom("copy", FAILED_PARTITIONS) == {"orders": {"region": ["asia", "us"]}}
    assert seen.read_text() == '["eu"]\n'


@pytest.mark.seldom
@pytest.mark.slow
def test_retry_reads_the_failed_partitions_alone(
    world: World, player: Player, shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    played, seen = play(world, player, shop, ["us"], 1, monkeypatch)
    assert (played.state, played.tries("copy")) == ("success", 2)
    assert seen.read_text() == '["asia", "eu"]\n["us"]\n'
    assert played.xcom("copy", FAILED_PARTITIONS) is None


# ---- one try, without Airflow


def tried(world: World, attempt: int = 1) -> Attempt:
    return Attempt(world.store, "shop.copy", RunIdentity("shop/one/copy", attempt), 1, RunEnvironment())


def test_partitions_that_failed_before_any_was_committed_are_known(world: World, shop: Shop) -> None:
    identity = tried(world).identity
    assert drive(world.store, "shop.copy", identity, shop, "asia", "eu", "us") == ([], ["asia", "eu", "us"])
    assert tried(world).partitions_left() == {"orders": {"region": ["asia", "eu", "us"]}}


def test_partitions_that_a_dead_driver_has_not_reached_are_left_too(world: World, shop: Shop) -> None:
    identity, loop = tried(world).identity, PartLoop("orders")
    run = ActiveRun.begin(world.store, "shop.copy", identity, RunEnvironment(), in_batches=True)
    run.plan("orders", Job(shop).source(loop, identity.run_id))
    run.commit()
    assert tried(world).partitions_left() == {"orders": {"region": ["eu", "us"]}}
    error = RuntimeError("spark died")
    assert tried(world).settle(error) is None
    assert "its runs up to 1 are committed and published" in error.__notes__[0]
    assert drive(world.store, "shop.copy", tried(world, 2).identity, shop) == (["eu", "us"], [])
    assert tried(world, 2).partitions_left() == {}
    assert tried(world, 2).finish().run_number == 3


def test_driver_that_dies_within_a_part_leaves_that_part_too(world: World, shop: Shop) -> None:
    identity, loop = tried(world).identity, PartLoop("orders")
    run = ActiveRun.begin(world.store, "shop.copy", identity, RunEnvironment(), in_batches=True)
    run.plan("orders", Job(shop).source(loop, identity.run_id))
    run.commit()
    run.following().plan("orders", Job(shop).source(loop, identity.run_id))
    add(shop, (4, "asia"))
    assert tried(world).settle(RuntimeError("spark died")) is None
    assert tried(world).partitions_left() == {"orders": {"region": ["eu", "us"]}}
    assert drive(world.store, "shop.copy", tried(world, 2).identity, shop) == (["eu", "us"], [])
    other = RunIdentity("shop/two/copy", 1)
    assert drive(world.store, "shop.copy", other, shop) == (["asia"], [])


def test_task_whose_script_hides_that_partitions_failed_fails(world: World, shop: Shop) -> None:
    drive(world.store, "shop.copy", tried(world).identity, shop, "eu")
    with pytest.raises(NotCommittedError):
        tried(world).finish()
    assert tried(world).partitions_left() == {"orders": {"region": ["eu"]}}


def test_other_execution_has_none_left(world: World, shop: Shop) -> None:
    drive(world.store, "shop.copy", RunIdentity("shop/zero/copy", 1), shop, "eu")
    assert tried(world).partitions_left() == {}
