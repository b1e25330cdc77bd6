"""Rows that carry the number and the epoch of the run that wrote them."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql import functions as F

from airflow_bookmarks.core.errors import OptionError
from airflow_bookmarks.lifecycle.changes.change import rewind
from airflow_bookmarks.spark import BookmarkedJob
from tests.spark.lake import Lake


def write(lake: Lake, **kwargs: Any) -> None:
    with lake.job(**kwargs) as job:
        job.write(lake.read(job), "out", stamp_rows=True).parquet(lake.path("out"))


def stamps(lake: Lake) -> list[tuple[str, int, int]]:
    frame = lake.spark.read.parquet(lake.path("out"))
    assert [(f.name, f.dataType.simpleString()) for f in frame.schema.fields][1:] == [
        ("_run_number", "bigint"),
        ("_epoch", "bigint"),
    ]
    return sorted((row["value"], row["_run_number"], row["_epoch"]) for row in frame.collect())


@pytest.mark.seldom
def test_each_row_has_the_number_and_the_epoch_of_its_run(lake: Lake) -> None:
    lake.put("a", "1")
    write(lake)
    lake.put("b", "2")
    write(lake)
    rewind(lake.store, "copy", 1, clean=True, reason="r", who="ada")
    write(lake)

    assert stamps(lake) == [("1", 1, 1), ("2", 3, 2)]


@pytest.mark.seldom
def test_replay_gives_the_numbers_of_the_run_that_it_makes_again(lake: Lake) -> None:
    lake.put("a", "1")
    write(lake)
    lake.put("b", "2")
    write(lake)

    write(lake, replay=1)

    assert stamps(lake) == [("1", 1, 1), ("2", 2, 1)]


@pytest.mark.parametrize("option", ["pause", "disable"])
def test_run_without_a_number_refuses(lake: Lake, option: str) -> None:
    lake.put("a", "1")

    with pytest.raises(OptionError, match=f"option {option} has no number"):
        write(lake, option=option)
    assert lake.visible("out") == []


@pytest.mark.parametrize("name", ["_epoch", "_Run_Number"])
def test_column_of_that_name_is_not_overwritten(lake: Lake, name: str) -> None:
    lake.put("a", "1")

    def write_both(job: BookmarkedJob) -> None:
        job.write(lake.read(job).withColumn(name, F.lit("mine")), "out", stamp_rows=True).parquet(lake.path("out"))

    with pytest.raises(OptionError, match=rf"the frame has \['{name}'\] already"), lake.job() as job:
        write_both(job)
    assert lake.visible("out") == []


def test_without_the_option_rows_have_no_such_columns(lake: Lake) -> None:
    lake.put("a", "1")
    with lake.job() as job:
        job.write(lake.read(job), "out").parquet(lake.path("out"))

    assert lake.spark.read.parquet(lake.path("out")).columns == ["value"]
