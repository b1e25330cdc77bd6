"""What `show --by partition` tells: of each part how far, by which run, and since when it fails (OBS-7)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from airflow_bookmarks.cli import main
from airflow_bookmarks.core.errors import JobUnknownError
from airflow_bookmarks.core.job import RunIdentity
from airflow_bookmarks.lifecycle.changes.change import rewind
from airflow_bookmarks.lifecycle.inspect.partitions import by_partition
from airflow_bookmarks.lifecycle.protocol.lease import RunEnvironment
from airflow_bookmarks.lifecycle.run.enabled import ActiveRun
from airflow_bookmarks.sources.registry import registered
from airflow_bookmarks.sources.source import PlanInput
from airflow_bookmarks.store.backends.sqlite import SqliteTable
from airflow_bookmarks.store.bookmark_store import BookmarkStore
from tests.lifecycle.sqlite_keys import KeyKind, KeyPlan, KeySource, make_table
from tests.lifecycle.sqlite_keys import put as put_key
from tests.sources.delta.regions import put, read_by_region

JOB = "shop.copy"


@pytest.fixture
def store(tmp_path: Path) -> Iterator[BookmarkStore]:
    table = SqliteTable(tmp_path / "bookmarks.db", create=True)
    made = BookmarkStore(table, "default")
    made.init()
    yield made
    table.close()


@pytest.fixture
def orders(tmp_path: Path) -> str:
    """Make a table by region."""
    path = str(tmp_path / "orders")
    put(path, (1, "eu"), (2, "us"), (3, "us"))
    return path


def loop(store: BookmarkStore, path: str, *failing: str, run_id: str, attempt: int = 1) -> None:
    read_by_region(store, JOB, path, *failing, identity=RunIdentity(run_id, attempt))


def told(store: BookmarkStore) -> dict[str, dict[str, Any]]:
    return {row["partition"]: row for row in by_partition(store, JOB)}


class OnePartPlan(KeyPlan):
    """Keys of one part of a table."""

    def stats(self) -> dict[str, Any]:
        return super().stats() | {"part": "region='eu'"}


class OnePartSource(KeySource):
    """The planner of such."""

    def plan(self, found: PlanInput) -> OnePartPlan:
        return OnePartPlan(**vars(super().plan(found)))


def test_part_of_what_is_no_files_has_its_amount_in_its_own_unit(store: BookmarkStore, tmp_path: Path) -> None:
    database = str(tmp_path / "crm.db")
    make_table(database)
    with registered(KeyKind()):
        for keys in ((1, 2), (3,)):
            for key in keys:
                put_key(database, key)
            run = ActiveRun.begin(store, JOB, RunIdentity(f"run {keys[0]}"), RunEnvironment())
            run.plan("people", OnePartSource(database))
            run.commit()

        (row,) = by_partition(store, JOB)

    assert (row["files"], row["amounts"]) == (None, {"keys": 3})


def test_each_part_has_what_runs_have_read_of_it_and_how_far(store: BookmarkStore, orders: str) -> None:
    loop(store, orders, run_id="one")
    put(orders, (4, "us"))
    loop(store, orders, run_id="two")
    rows = told(store)
    assert list(rows) == ["region='eu'", "region='us'"]
    eu, us = rows.values()
    assert (eu["runs"], eu["files"], eu["rows"], eu["position"], eu["last_run"]) == (1, 1, 1, "version 0", 1)
    assert (us["runs"], us["files"], us["rows"], us["position"], us["last_run"]) == (2, 2, 3, "version 1", 3)
    assert {row["failed_since"] for row in rows.values()} == {None}
    assert us["committed_at"] > eu["committed_at"]


def test_part_that_fails_comes_first_with_its_error_until_it_is_read(store: BookmarkStore, orders: str) -> None:
    loop(store, orders, "us", run_id="one")
    first = by_partition(store, JOB)[0]
    assert (first["partition"], first["error"], first["position"]) == ("region='us'", "us is wrong", None)
    loop(store, orders, "us", run_id="one", attempt=2)
    again = by_partition(store, JOB)[0]
    assert (again["partition"], again["failed_since"], again["runs"]) == ("region='us'", first["failed_since"], 0)
    loop(store, orders, run_id="one", attempt=3)
    assert [(row["partition"], row["failed_since"]) for row in by_partition(store, JOB)] == [
        ("region='eu'", None),
        ("region='us'", None),
    ]


def test_only_the_newest_runs_are_looked_at_where_these_are_asked_for(store: BookmarkStore, orders: str) -> None:
    loop(store, orders, run_id="one")
    (newest,) = by_partition(store, JOB, newest=1)
    assert (newest["partition"], newest["last_run"]) == ("region='us'", 2)


def test_runs_that_are_undone_count_for_nothing(store: BookmarkStore, orders: str) -> None:
    loop(store, orders, run_id="one")
    rewind(store, JOB, 1, reason="a test", who="ada")
    assert told(store)["region='us'"]["runs"] == 0


def test_part_that_was_read_after_it_failed_does_not_fail_because_that_run_is_undone(
    store: BookmarkStore, orders: str
) -> None:
    loop(store, orders, "us", run_id="one")
    loop(store, orders, run_id="one", attempt=2)
    rewind(store, JOB, 1, reason="a test", who="ada")
    us = told(store)["region='us'"]
    assert (us["runs"], us["failed_since"], us["error"]) == (0, None, None)


def test_job_without_parts_has_no_rows_and_the_command_line_says_why(
    store: BookmarkStore, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ActiveRun.begin(store, JOB, RunIdentity("one", 1), RunEnvironment()).commit()
    assert by_partition(store, JOB) == []
    assert main(["--store", f"sqlite:///{tmp_path}/bookmarks.db", "show", JOB, "--by", "partition"]) == 1
    assert "no run of job 'shop.copy' has read one part of a source by itself" in capsys.readouterr().err
    with pytest.raises(JobUnknownError):
        by_partition(store, "nobody")


def test_command_line_shows_them(
    store: BookmarkStore, orders: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    loop(store, orders, "us", run_id="one")
    assert main(["--store", f"sqlite:///{tmp_path}/bookmarks.db", "show", JOB, "--by", "partition"]) == 0
    head, first, second = [re.split(r"\s{2,}", line.strip()) for line in capsys.readouterr().out.splitlines() if line]
    assert head[:4] == ["CTX", "PARTITION", "FAILED SINCE", "ERROR"]
    assert (first[1], first[3], second[1]) == ("region='us'", "us is wrong", "region='eu'")
