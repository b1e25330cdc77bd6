"""`split_fields`, `split_rows` and `spigot`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from airflow_bookmarks.core.errors import OptionError
from airflow_bookmarks.glue.transforms.classes import Spigot, SplitFields, SplitRows
from tests.glue.transforms.frames import codes, frame_of, friends, rows_of, tree

CONTACTS = "id long, index int, `contact_details.val.type` string"


def test_example_of_aws_splits_fields(shared_spark: SparkSession) -> None:
    split = frame_of(shared_spark, [(1, 0, "fax")], CONTACTS).split_fields(["id", "index"], "left", "right")
    assert list(split.keys()) == ["left", "right"]
    assert tree(split.select("left")) == ["|-- id: long", "|-- index: int"]
    assert tree(split.select("right")) == ["|-- contact_details.val.type: string"]


@pytest.mark.seldom
def test_example_of_aws_splits_rows(shared_spark: SparkSession) -> None:
    frame = frame_of(shared_spark, [(n, 0, "fax") for n in (1, 10, 11, 20)], CONTACTS)
    split = frame.split_rows({"id": {">": 10}}, "high", "low")
    assert [row[0] for row in rows_of(split.select("low"))] == [1, 10]
    assert [row[0] for row in rows_of(split.select("high"))] == [11, 20]


@pytest.mark.seldom
def test_all_comparisons_hold_and_null_holds_none(shared_spark: SparkSession) -> None:
    frame = frame_of(shared_spark, [(5, "a"), (15, "a"), (15, "b"), (None, "a")], "age int, kind string")
    split = SplitRows.apply(frame, {"age": {">": 10, "<": 20}, "kind": {"=": "a"}})
    assert rows_of(split.select("frame1")) == [(15, "a")]
    assert rows_of(split.select("frame2")) == [(5, "a"), (15, "b"), (None, "a")]


def test_numbers_in_text_and_choices_compare_as_numbers(shared_spark: SparkSession) -> None:
    split = codes(shared_spark).split_rows({"code": {">=": 10}}, "yes", "no")
    assert sorted(row[0] for row in rows_of(split.select("yes"))) == [1, 4]
    text = frame_of(shared_spark, [("9",), ("10",), ("x",)], "n string")
    assert rows_of(text.split_rows({"n": {">": 9}}, "yes", "no").select("yes")) == [("10",)]


@pytest.mark.parametrize(
    ("comparisons", "error"),
    [
        ({"age": {"~": 1}}, OptionError),
        ({"gone": {">": 1}}, OptionError),
        ({}, OptionError),
        ({"age": 3}, TypeError),
        ("age > 3", TypeError),
    ],
    ids=["comparator", "absent", "none", "no-comparison", "text"],
)
def test_comparisons_that_say_nothing_clear_are_refused(
    shared_spark: SparkSession, comparisons: Any, error: type[Exception]
) -> None:
    with pytest.raises(error, match="Nothing was read or changed"):
        friends(shared_spark).split_rows(comparisons, "a", "b")


def test_split_names_default_to_those_of_glue(shared_spark: SparkSession) -> None:
    assert list(SplitFields.apply(friends(shared_spark), ["age"]).keys()) == ["frame1", "frame2"]


def lines_of(path: Path) -> list[Any]:
    return [json.loads(line) for part in sorted(path.glob("part-*")) for line in part.read_text().splitlines()]


@pytest.mark.seldom
def test_example_of_aws_writes_the_first_records_as_json(shared_spark: SparkSession, tmp_path: Path) -> None:
    names = frame_of(
        shared_spark, [("Collins", "1944"), ("Huizenga", None), ("Crapo", "1951")], "name string, born string"
    )
    handed_on = names.spigot(path=str(tmp_path / "sample"), options={"topk": 2})
    assert lines_of(tmp_path / "sample") == [{"name": "Collins", "born": "1944"}, {"name": "Huizenga"}]
    assert handed_on.count() == 3


@pytest.mark.seldom
@pytest.mark.parametrize(("options", "expected"), [({"prob": 1.0}, 3), ('{"prob": 0, "topk": 5}', 0), (None, 3)])
def test_sample_is_as_large_as_asked(shared_spark: SparkSession, tmp_path: Path, options: Any, expected: int) -> None:
    frame = frame_of(shared_spark, [(1,), (2,), (3,)], "id int")
    Spigot.apply(frame, str(tmp_path / "sample"), options)
    assert len(lines_of(tmp_path / "sample")) == expected


@pytest.mark.parametrize("options", [{"top": 1}, {"topk": -1}, {"prob": 2}, {"topk": "few"}, "topk=1"])
def test_unknown_sample_is_refused(shared_spark: SparkSession, tmp_path: Path, options: Any) -> None:
    with pytest.raises(OptionError, match="Nothing was read or changed"):
        frame_of(shared_spark, [(1,)], "id int").spigot(str(tmp_path / "sample"), options)
    assert not (tmp_path / "sample").exists()


def test_frame_writes_itself_by_its_context(shared_spark: SparkSession, tmp_path: Path) -> None:
    frame = frame_of(shared_spark, [(1,), (2,)], "id int")
    frame.write("s3", {"path": str(tmp_path / "out")}, "json", accumulator_size=100)
    assert lines_of(tmp_path / "out") == [{"id": 1}, {"id": 2}]
