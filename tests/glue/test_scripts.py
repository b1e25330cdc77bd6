"""Scripts for AWS Glue, unmodified: each input is read once, each row is written once, wherever the driver dies."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Collection, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import boto3.session
import pytest
from pyspark.sql import SparkSession

from airflow_bookmarks.core.errors import JobBusyError
from airflow_bookmarks.lifecycle.protocol.failpoint import Failpoint
from airflow_bookmarks.spark import BookmarkedJob
from airflow_bookmarks.testing.crash import SimulatedCrash
from tests.conftest import REGION
from tests.glue.script_world import FOLDER, PATH, ScriptWorld
from tests.glue.watermarks.tables import make_table
from tests.spark.drivers import dies_at

# Those with a database need a Spark with its driver: database_script_promises.py runs them.
NAMES = sorted(path.stem for path in FOLDER.glob("*.toml") if "\ndatabase = true\n" not in f"\n{path.read_text()}")
# With these alone a driver that dies leaves something that is the next one's to finish, or to do again.
_POINTS = (Failpoint.STAGED, Failpoint.COMMITTED)
_MORE_BEHIND = (Failpoint.PUBLISHING, Failpoint.MOVED, Failpoint.PUBLISHED, Failpoint.MARKED)
_MORE_POINTS = (Failpoint.PLANNED, Failpoint.PLACED, Failpoint.BEFORE_COMMIT, *_MORE_BEHIND)
_BEHIND = (Failpoint.COMMITTED, *_MORE_BEHIND)
# Of each kind of script one is killed, and run with disable, in each run of the tests.
_OFTEN = ("two_catalog_tables", "purge_and_rewrite_today")

pytestmark = pytest.mark.spark

ROOT = Path(__file__).parents[2]

_READ_BYTES = "glue.ALL.s3.filesystem.read_bytes"

MakeWorld = Callable[[str], ScriptWorld]


@pytest.fixture
def world_of(
    shared_spark: SparkSession,
    tmp_path: Path,
    request: pytest.FixtureRequest,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[MakeWorld]:
    """Return what makes the world of a script; scripts find the session that `SparkSession.builder` finds."""
    spark = SparkSession.builder.getOrCreate()
    made: list[ScriptWorld] = []

    def make(name: str) -> ScriptWorld:
        catalog: Any = None
        if "[[tables]]" in (FOLDER / f"{name}.toml").read_text():
            url: str = request.getfixturevalue("moto_url")
            session: boto3.session.Session = request.getfixturevalue("aws_session")
            monkeypatch.setenv("AWS_ENDPOINT_URL_GLUE", url)
            monkeypatch.setenv("AWS_DEFAULT_REGION", REGION)
            catalog = session.client("glue", region_name=REGION, endpoint_url=url)
        if "watermarks = true" in (FOLDER / f"{name}.toml").read_text():
            request.getfixturevalue("watermarks_table")
        made.append(ScriptWorld(name, tmp_path / name, spark, catalog, monkeypatch))
        return made[-1]

    yield make
    for world in made:
        if world.catalog is not None:
            world.drop_tables()
    for key in ("spark.bookmarks.store", "spark.bookmarks.attempt"):
        spark.conf.unset(key)
    for view in spark.sql("SHOW VIEWS").collect():  # `listTables` fails where Spark compiles no expressions
        spark.catalog.dropTempView(view.viewName)


@pytest.fixture
def watermarks_table(
    moto_url: str, aws_session: boto3.session.Session, monkeypatch: pytest.MonkeyPatch
) -> Iterator[None]:
    """Make the table in which scripts keep watermarks."""
    monkeypatch.setenv("AWS_ENDPOINT_URL_DYNAMODB", moto_url)
    monkeypatch.setenv("AWS_DEFAULT_REGION", REGION)
    client = aws_session.client("dynamodb", region_name=REGION, endpoint_url=moto_url)
    make_table(client, "glue-watermarks")
    yield
    client.delete_table(TableName="glue-watermarks")


def _names(often: Collection[str]) -> list[Any]:
    return [pytest.param(name, marks=() if name in often else pytest.mark.thorough) for name in NAMES]


def _marks_of(name: str) -> list[pytest.MarkDecorator]:
    told = (FOLDER / f"{name}.toml").read_text()
    marks = {"thorough": pytest.mark.thorough, "seldom": pytest.mark.seldom}
    return [mark for word, mark in marks.items() if f"\n{word} = true\n" in told]


@pytest.mark.parametrize("name", [pytest.param(name, marks=_marks_of(name)) for name in NAMES])
def test_script_reads_each_input_once_and_writes_each_row_once(name: str, world_of: MakeWorld) -> None:
    world = world_of(name)
    read: dict[str, list[int]] = {ctx: [] for ctx in world.told.get("read", {})}
    counts: dict[str, list[int]] = {output: [] for output in world.told["outputs"]}

    for when in ("first", "second", "nothing new"):
        world.put(when)
        summary = world.run()
        for ctx, files in read.items():
            files.append(int(summary["contexts"].get(ctx, {}).get("files") or 0))
        for output, rows in counts.items():
            rows.append(world.count(output))

    assert read == world.told.get("read", {})
    assert counts == {output: told["counts"] for output, told in world.told["outputs"].items()}
    assert world.registered() == world.told.get("registered", {})
    shown = {output: told["rows"] for output, told in world.told["outputs"].items() if "rows" in told}
    assert {output: world.rows(output) for output in shown} == shown


@pytest.mark.parametrize("name", _names(_OFTEN))
def test_script_with_disable_reads_and_writes_everything_each_time(name: str, world_of: MakeWorld) -> None:
    world = world_of(name)
    world.put("first")
    counts: dict[str, list[int]] = {output: [] for output in world.told["outputs"]}
    for _ in range(2):
        world.run("disable")
        for output, rows in counts.items():
            rows.append(world.count(output))

    # Where it doesn't say so itself, a script appends the same rows again.
    assert counts == {
        output: told.get("disabled", [told["counts"][0], 2 * told["counts"][0]])
        for output, told in world.told["outputs"].items()
    }


def _kills() -> list[Any]:
    often = [pytest.param(name, point, id=f"{name}-{point}") for name in _OFTEN for point in _POINTS]
    more = [
        pytest.param(name, point, id=f"{name}-{point}", marks=pytest.mark.thorough)
        for name in NAMES
        if "\nunmanaged = true\n" not in (FOLDER / f"{name}.toml").read_text()
        for point in (*_POINTS, *_MORE_POINTS)
        if not (name in _OFTEN and point in _POINTS)
    ]
    return often + more


@pytest.mark.parametrize(("name", "point"), _kills())
def test_script_that_is_killed_and_run_again_leaves_each_row_once(
    name: str, point: Failpoint, world_of: MakeWorld
) -> None:
    world = world_of(name)
    world.put("first")
    try:
        world.run(at=dies_at(point))
        is_killed = False
    except SimulatedCrash:
        is_killed = True

    world.run(attempt=2 if is_killed else 1)
    world.put("second")
    world.run()
    is_bounded = world.told.get("bounded", False)
    if is_bounded:
        world.run()

    told = world.told["outputs"]
    counts = {output: each["counts"][2 if is_bounded else 1] for output, each in told.items()}
    if point in _BEHIND:
        counts |= {output: each["behind"] for output, each in told.items() if "behind" in each}
    assert {output: world.count(output) for output in told} == counts


def test_pause_over_a_window_reads_it_again_and_moves_nothing(world_of: MakeWorld) -> None:
    world = world_of("csv_to_parquet")
    for when in ("first", "second"):
        world.put(when)
        world.run()

    summary = world.run("pause", "--job-bookmark-from", "jr_1", "--job-bookmark-to", "jr_2")

    assert summary["contexts"]["S3bucket_node1"]["files"] == 1
    assert world.count("people") == 4
    assert world.run()["contexts"]["S3bucket_node1"]["files"] == 0


def test_counts_of_a_run_go_to_cloudwatch_with_the_bytes_of_its_increment(
    world_of: MakeWorld, moto_url: str, aws_session: boto3.session.Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL_CLOUDWATCH", moto_url)
    monkeypatch.setenv("AWS_DEFAULT_REGION", REGION)
    world = world_of("csv_to_parquet")
    world.spark.conf.set("spark.bookmarks.glue.metrics", "Glue/csv_to_parquet")
    for when in ("first", "second"):
        world.put(when)
        world.run()
    world.spark.conf.unset("spark.bookmarks.glue.metrics")

    client = aws_session.client("cloudwatch", region_name=REGION, endpoint_url=moto_url)
    sent = {
        name: client.get_metric_statistics(
            Namespace="Glue/csv_to_parquet",
            MetricName=name,
            Dimensions=[{"Name": "JobName", "Value": "csv_to_parquet"}, {"Name": "JobRunId", "Value": "jr_2"}],
            StartTime=datetime.now(UTC) - timedelta(hours=1),
            EndTime=datetime.now(UTC) + timedelta(hours=1),
            Period=7200,
            Statistics=["Sum"],
        )["Datapoints"][0]["Sum"]
        for name in ("glue.driver.aggregate.recordsRead", "glue.driver.aggregate.recordsWritten", _READ_BYTES)
    }
    assert list(sent.values()) == [1, 1, (world.lake / "raw/in/deep/b.csv").stat().st_size]


def test_script_that_swallows_a_failed_init_reads_purges_and_writes_nothing(world_of: MakeWorld) -> None:
    world = world_of("helper_that_swallows_init")
    world.put("first")
    world.run()
    world.put("second")

    with BookmarkedJob(world.spark.newSession(), "helper_that_swallows_init_eu", store=world.store_uri):
        with pytest.raises(JobBusyError):
            world.run()
        assert world.rows("out") == [["1"]]

    world.run()
    assert world.rows("out") == [["2"], ["3"]]


def test_script_without_commit_leaves_its_input_to_the_next_run_at_once(world_of: MakeWorld) -> None:
    world = world_of("without_commit")
    world.put("first")

    world.run()

    with BookmarkedJob(world.spark.newSession(), "without_commit", store=world.store_uri) as job:
        assert job.position("source") is None


@pytest.mark.thorough
def test_script_in_a_process_of_its_own_gives_its_job_back_when_it_ends(world_of: MakeWorld) -> None:
    world = world_of("without_commit")
    world.put("first")
    arguments = [
        "--JOB_NAME",
        "without_commit",
        "--job-bookmark-option",
        "job-bookmark-enable",
        "--lake",
        str(world.lake),
    ]
    environment = {**os.environ, "AIRFLOW_BOOKMARKS_STORE": world.store_uri, "PYTHONPATH": f"{PATH}:{ROOT}"}

    done = subprocess.run(
        [sys.executable, FOLDER / "without_commit.py", *arguments],
        capture_output=True,
        text=True,
        check=True,
        env=environment,
    )

    assert "was not committed: the script ended without job.commit()" in done.stderr
    assert world.count("out") == 0
    with BookmarkedJob(world.spark.newSession(), "without_commit", store=world.store_uri) as job:
        assert job.position("source") is None
