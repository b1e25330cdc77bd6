"""Promise RUN-9 without Spark: killed at any named point and started again, each row is in the target once."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from airflow_bookmarks.core.errors import OptionError
from airflow_bookmarks.core.job import RunIdentity
from airflow_bookmarks.lifecycle.protocol.failpoint import Failpoint, no_fault
from airflow_bookmarks.lifecycle.protocol.finish import ExecutionOutcome, finish, outcome
from airflow_bookmarks.lifecycle.protocol.lease import RunEnvironment
from airflow_bookmarks.sinks.staging import Mode
from airflow_bookmarks.store.table import Update, Value
from tests.chaos.kill import kill_hook
from tests.lifecycle.shop import Shop

ROOT = Path(__file__).parents[3]
NOTHING_COMMITTED = {p for p in Failpoint if list(Failpoint).index(p) < list(Failpoint).index(Failpoint.COMMITTED)}


def drive(shop: Shop, attempt: int, mode: Mode, fault: str = "") -> int:
    """Run a driver process; return its exit code."""
    command = [sys.executable, "-m", "tests.lifecycle.driver", str(shop.root), str(attempt), mode.value, fault]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(command, cwd=ROOT, env=environment, check=False, capture_output=True).returncode


@pytest.mark.parametrize("mode", [Mode.APPEND, Mode.OVERWRITE_PARTITIONS])
@pytest.mark.parametrize("point", Failpoint)
def test_killed_at_a_point_and_retried_each_row_is_there_once(shop: Shop, point: Failpoint, mode: Mode) -> None:
    shop.mode = mode
    shop.put("a.txt", "a1")
    shop.put("b.txt", "b")
    shop.run()
    if mode is Mode.OVERWRITE_PARTITIONS:
        shop.put("a.txt", "a2", seconds=1_700_000_500)
    shop.put("c.txt", "c", "cc")
    assert drive(shop, 1, mode, f"{point}@1") == -signal.SIGKILL
    assert drive(shop, 2, mode) == 0
    first = "a2" if mode is Mode.OVERWRITE_PARTITIONS else "a1"
    assert shop.target_lines() == {first: 1, "b": 1, "c": 1, "cc": 1}
    assert shop.staged_files() == []
    head = shop.store.head("copy")
    assert (head.publishing, head.lease, head.published) == (None, None, head.run_number)


@pytest.mark.parametrize("point", [Failpoint.COMMITTED, Failpoint.PUBLISHING, Failpoint.MOVED, Failpoint.PUBLISHED])
def test_worker_publishes_what_a_dead_driver_committed(shop: Shop, point: Failpoint) -> None:
    shop.put("a.txt", "a")
    shop.put("b.txt", "b")
    assert drive(shop, 1, Mode.APPEND, f"{point}@1") == -signal.SIGKILL
    assert outcome(shop.store, "copy", "task")[0] is ExecutionOutcome.DUE
    summary = finish(shop.store, "copy", RunIdentity("task", 1), RunEnvironment())
    assert (summary.run_number, summary.is_published) == (1, True)
    assert shop.target_lines() == {"a": 1, "b": 1}
    assert shop.staged_files() == []
    assert outcome(shop.store, "copy", "task")[0] is ExecutionOutcome.FINISHED


def test_worker_has_published_though_an_old_staging_root_can_not_be_reached(
    shop: Shop, caplog: pytest.LogCaptureFixture
) -> None:
    shop.put("a.txt", "a")
    assert drive(shop, 1, Mode.APPEND, f"{Failpoint.COMMITTED}@1") == -signal.SIGKILL
    staging: list[Value] = ["gopher://old/test/copy", *shop.store.head("copy").staging]
    shop.store.table.transact([Update(shop.store.keys("copy").head, set={"staging": staging})])

    assert finish(shop.store, "copy", RunIdentity("task", 1), RunEnvironment()).is_published

    assert (shop.target_lines(), shop.staged_files()) == ({"a": 1}, [])
    assert "what was staged in 'gopher://old/test/copy' is left" in caplog.text


def test_fault_kills_only_the_attempt_it_names() -> None:
    assert kill_hook("staged@1", 2) is no_fault
    assert kill_hook("staged@1", 1) is not no_fault
    assert kill_hook("", 1) is no_fault
    with pytest.raises(OptionError, match="expected"):
        kill_hook("nowhere", 1)
