"""SINK-2: a dynamic overwrite leaves what Spark's own would leave, whatever lies in the target."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from tests.spark.lake import Lake, rows_of

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]

Make = Callable[[SparkSession, str], None]
SCHEMA = "value STRING, m STRING, d STRING"


def frame(spark: SparkSession, *rows: tuple[str, str | None, str | None]) -> DataFrame:
    return spark.createDataFrame(list(rows), SCHEMA).coalesce(1)


def write(frame: DataFrame, target: str, *partitions: str, mode: str = "append") -> None:
    frame.write.partitionBy(*partitions).mode(mode).parquet(target)


def deeper_folders(spark: SparkSession, target: str) -> None:
    write(frame(spark, ("old", "1", "5"), ("old", "1", "6"), ("stays", "2", "5")), target, "m", "d")


def hidden_files(spark: SparkSession, target: str) -> None:
    write(frame(spark, ("old", "1", "5"), ("stays", "2", "5")), target, "m")
    write(frame(spark, ("hidden", "1", "5")), f"{target}/m=1/_old")
    write(frame(spark, ("hidden", "1", "5")), f"{target}/m=1/.old")


def nested_folders(spark: SparkSession, target: str) -> None:
    """Folders that are no partition, which only a recursive reader sees."""
    write(frame(spark, ("old", "1", "5")), f"{target}/m=1/x/y")
    write(frame(spark, ("stays", "2", "5")), f"{target}/m=2/x/y")


def other_spellings(spark: SparkSession, target: str) -> None:
    write(
        frame(spark, ("stays", "01", "5"), ("stays", "1.0", "5"), ("stays", " 1", "5"), ("old", "1", "5")), target, "m"
    )


def special_characters(spark: SparkSession, target: str) -> None:
    write(frame(spark, ("stays", "a%2Fb", "5"), *(("old", value, "5") for value in CHARACTERS)), target, "m", "d")


def nothing(spark: SparkSession, target: str) -> None:
    pass


CHARACTERS: Sequence[str | None] = ["a/b", "a b", "50%", "x=y", "c:d", "[e]", "{f}", "g#h", "é", "back\\s", None]


@pytest.mark.seldom
@pytest.mark.parametrize(
    ("before", "new", "partitions"),
    [
        pytest.param(deeper_folders, ["1"], ["m"], marks=pytest.mark.thorough),
        (deeper_folders, ["1"], ["m", "d"]),
        pytest.param(hidden_files, ["1"], ["m"], marks=pytest.mark.thorough),
        pytest.param(nested_folders, ["1"], ["m"], marks=pytest.mark.thorough),
        (other_spellings, ["1"], ["m"]),
        (special_characters, CHARACTERS, ["m"]),
        pytest.param(nothing, ["1", "2"], ["m"], marks=pytest.mark.thorough),
    ],
)
def test_dynamic_overwrite_leaves_the_rows_that_sparks_own_leaves(
    lake: Lake, before: Make, new: Sequence[str | None], partitions: Sequence[str]
) -> None:
    lake.put("a.txt", "a")
    rows = frame(lake.spark, *(("new", value, "5") for value in new))
    lake.spark.conf.set("spark.sql.sources.partitionOverwriteMode", "dynamic")
    for target in ("own", "ours"):
        before(lake.spark, lake.path(target))
    write(rows, lake.path("own"), *partitions, mode="overwrite")
    with lake.job() as job:
        lake.read(job)
        job.write(rows, "out").mode("overwrite").partitionBy(*partitions).parquet(lake.path("ours"))
    assert seen(lake, "ours") == seen(lake, "own")
    if partitions == ["m"]:
        assert ("old",) not in seen(lake, "ours")[0]


def seen(lake: Lake, target: str) -> tuple[list[tuple[object, ...]], list[str]]:
    """Return the rows of a target by value and file folder, and the folders that have data."""
    read = lake.spark.read.option("recursiveFileLookup", True).parquet(lake.path(target))
    root = Path(lake.path(target))
    folders = {str(path.parent.relative_to(root)) for path in root.rglob("*.parquet")}
    return rows_of(read.select("value")), sorted(f for f in folders if not any(p[0] in "_." for p in Path(f).parts))
