"""The example `people_tables`: after each DAG run both tables hold the newest version of each person who is there."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from airflow_bookmarks.hooks.bookmark import BookmarkHook
from airflow_bookmarks.operators.spark_submit import BookmarkSparkSubmitOperator
from tests.quick_spark import with_java_options
from tools.jars import fetch_for_spark

from .conftest import Played, Player, World
from .test_dags_examples import Examples
from .test_orders_report import repository_with

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.thorough]

DAG_ID = "people_tables"


@pytest.fixture
def examples(world: World, player: Player, monkeypatch: pytest.MonkeyPatch) -> Examples:
    made = Examples(world, monkeypatch)
    monkeypatch.setenv("AIRFLOW_VAR_PEOPLE_DATA", str(world.folder / "people"))
    jars = [jar for kind in ("delta", "iceberg") for jar in fetch_for_spark(kind).glob("*.jar")]
    share = made.dag(DAG_ID).get_task("share")
    assert isinstance(share, BookmarkSparkSubmitOperator)
    home = world.folder / "home"
    repository_with(home, [*str(share.packages).split(","), "io.delta:delta-storage:4.4.0"], jars)
    for name, value in with_java_options(f"-Duser.home={home}").items():
        monkeypatch.setenv(name, value)
    return made


def deliver(folder: Path, name: str, *people: tuple[int, str, int, bool]) -> None:
    raw = folder / "people" / "raw" / "people"
    raw.mkdir(parents=True, exist_ok=True)
    lines = [dict(zip(("id", "name", "seen", "gone"), each, strict=True)) for each in people]
    (raw / name).write_text("".join(f"{json.dumps(line)}\n" for line in lines))


def play(examples: Examples) -> None:
    played = Played(examples.dag(DAG_ID).test())
    assert played.state == "success"


def test_both_tables_follow_new_changed_and_deleted_people(examples: Examples, world: World) -> None:
    deliver(world.folder, "a.json", (1, "Ada", 1, False), (2, "Bob", 1, False), (3, "Cid", 1, False))
    play(examples)
    deliver(world.folder, "b.json", (1, "Ada L.", 2, False), (2, "", 2, True), (4, "Dan", 1, False))
    play(examples)
    play(examples)  # with nothing new
    for task in ("land", "share"):
        runs = [run for run in BookmarkHook().history(f"{DAG_ID}.{task}") if run["outputs"]]
        assert len([run for run in runs if run["outputs"] and _rows(run)]) == 2
    wanted = [(1, "Ada L."), (3, "Cid"), (4, "Dan")]
    assert tables_in(world.folder / "people") == {"delta": wanted, "iceberg": wanted}


def _rows(run: Any) -> int:
    return sum(each["rows"] or 0 for each in run["outputs"].values())


def tables_in(folder: Path) -> dict[str, list[tuple[Any, ...]]]:
    """Return the people in both tables, by a Spark that has nothing to do with the DAG."""
    jars = [str(jar) for kind in ("delta", "iceberg") for jar in fetch_for_spark(kind).glob("*.jar")]
    builder = SparkSession.builder.master("local[1]").config("spark.driver.extraClassPath", ":".join(jars))
    builder = builder.config("spark.sql.extensions", "io.delta.sql.DeltaSparkSessionExtension")
    builder = builder.config("spark.sql.catalog.spark_catalog", "org.apache.spark.sql.delta.catalog.DeltaCatalog")
    builder = builder.config("spark.sql.catalog.lake", "org.apache.iceberg.spark.SparkCatalog")
    builder = builder.config("spark.sql.catalog.lake.type", "hadoop")
    spark = builder.config("spark.sql.catalog.lake.warehouse", str(folder / "iceberg")).getOrCreate()
    try:
        frames = {
            "delta": spark.read.format("delta").load(str(folder / "delta" / "people")),
            "iceberg": spark.table("lake.shop.people"),
        }
        return {kind: sorted(map(tuple, frame.select("id", "name").collect())) for kind, frame in frames.items()}
    finally:
        spark.stop()
