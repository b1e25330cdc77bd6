"""Promises of a bookmark in a plain Python task, without Spark, and of Spark's own streams beside it (RUN-22)."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import NoReturn

import pytest

from airflow_bookmarks.core.errors import FencedError, MisuseError, OptionError
from airflow_bookmarks.spark import BookmarkedJob, session
from airflow_bookmarks.store.bookmark_store import BookmarkStore, open_store
from tests.spark.lake import Lake
from tools.patience import STUCK_S

# A process of its own, in which pyspark can't be imported, as on a worker that doesn't have it.
PLAIN_TASK = """
import sys

sys.modules["pyspark"] = None

from airflow_bookmarks import BookmarkedJob

with BookmarkedJob(name="orders.fetch", store=sys.argv[1], option=sys.argv[2]) as job:
    cursor = job.state("cursor")
    print("CURSOR", cursor.get(0))
    cursor.set(cursor.get(0) + 10)
    if sys.argv[3] == "fail":
        raise ValueError("the other side said no")
    if sys.argv[3] == "read":
        job.read("orders").csv("/lake/raw/orders")
"""


def run(store: str, *, option: str = "enable", then: str = "") -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", PLAIN_TASK, store, option, then]
    return subprocess.run(command, capture_output=True, text=True, timeout=STUCK_S, check=False)


def cursor_seen_by(store: str, **given: str) -> str:
    done = run(store, **given)
    (line,) = [line for line in done.stdout.splitlines() if line.startswith("CURSOR ")]
    return line.removeprefix("CURSOR ")


@pytest.fixture
def state(tmp_path: Path) -> BookmarkStore:
    """Open an empty store by its URI."""
    store = open_store(f"sqlite:///{tmp_path}/bookmarks.db")
    store.init()
    return store


def test_plain_task_goes_on_from_the_state_that_was_committed_last(state: BookmarkStore, tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path}/bookmarks.db"

    seen = [
        cursor_seen_by(store),
        cursor_seen_by(store, then="fail"),
        cursor_seen_by(store, option="pause"),
        cursor_seen_by(store, option="disable"),
        cursor_seen_by(store),
    ]

    assert seen == ["0", "10", "10", "0", "10"]
    assert (state.head("orders.fetch").run_number, state.head("orders.fetch").lease) == (2, None)


def test_files_are_refused_without_spark_and_nothing_moves(state: BookmarkStore, tmp_path: Path) -> None:
    done = run(f"sqlite:///{tmp_path}/bookmarks.db", then="read")

    assert done.returncode == 1
    assert "was opened without a Spark session" in done.stderr
    assert state.head("orders.fetch").run_number == 0


def test_job_needs_a_name_where_no_session_brings_it() -> None:
    script = "from airflow_bookmarks import BookmarkedJob; BookmarkedJob()"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=STUCK_S, check=False)

    assert done.returncode == 1
    assert "which is read from the Spark session: open that first" in done.stderr


def test_stream_is_refused_with_the_reason(lake: Lake) -> None:
    stream = lake.spark.readStream.format("rate").load()

    with pytest.raises(MisuseError, match="keeps its own position, in its checkpoint"), lake.job() as job:
        job.write(stream, "out").parquet(lake.path("out"))
    with pytest.raises(MisuseError, match="keeps its own position"):
        _ = lake.job().readStream
    assert lake.store.head("copy").run_number == 0


def test_job_that_is_over_is_not_entered_again(state: BookmarkStore) -> None:
    done, failed = BookmarkedJob(name="a", store=state), BookmarkedJob(name="b", store=state)
    with done:
        done.state("cursor").set(1)
    with pytest.raises(ValueError, match="a test"), failed:
        raise ValueError("a test")

    for job in (done, failed):
        with pytest.raises(MisuseError, match="has begun already"), job:
            pass


def test_run_whose_session_can_not_be_prepared_gives_the_job_back(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: object) -> NoReturn:
        raise ValueError("the server says no")

    monkeypatch.setattr(session, "listings_held", refuse)

    with pytest.raises(ValueError, match="the server says no"), lake.job():
        pass
    assert lake.store.head("copy").lease is None


def test_state_that_is_nested_too_deep_is_refused(state: BookmarkStore) -> None:
    deep: list[object] = []
    for _ in range(2000):
        deep = [deep]
    with BookmarkedJob(name="a", store=state) as job:
        with pytest.raises(OptionError, match="more than 100 levels"):
            job.state("cursor").set(deep)
        job.state("cursor").set([[1]])


def test_retry_of_a_plain_task_takes_over_at_once_under_the_name_of_its_execution(state: BookmarkStore) -> None:
    left = BookmarkedJob(name="a", store=state, run_id="dag/run/task", attempt=1).begin()  # and then killed
    with BookmarkedJob(name="a", store=state, run_id="dag/run/task", attempt=2) as job:
        job.state("cursor").set(2)

    with pytest.raises(FencedError):
        left.commit()
    assert state.head("a").run_number == 1
