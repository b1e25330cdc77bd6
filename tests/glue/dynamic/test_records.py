"""The record form: the types that records of Python have, and functions that run once."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest
from pyspark.sql import SparkSession

from airflow_bookmarks.glue.dynamic.error_records import ErrorThresholdError, RecordFailure
from airflow_bookmarks.glue.dynamic.frame import DynamicFrame
from airflow_bookmarks.glue.dynamic.records import DynamicRecord, Outcome, RecordTypeError, SeenTypes, json_text
from airflow_bookmarks.glue.run import current_run
from tests.glue.dynamic.frames import held, tree

VALUES: dict[str, tuple[list[Any], str]] = {
    "int": ([1, None, -5], "int"),
    "long": ([1, 2**31], "long"),
    "huge": ([2**70], "decimal(22,0)"),
    "double": ([1.5, float("nan")], "double"),
    "bool": ([True, False], "boolean"),
    "text": (["a", ""], "string"),
    "bytes": ([b"a", bytearray(b"b")], "binary"),
    "date": ([date(2026, 1, 1)], "date"),
    "time": ([datetime(2026, 1, 1, tzinfo=UTC)], "timestamp"),
    "decimal": ([Decimal("1.25"), Decimal("100"), Decimal("1E+3")], "decimal(6,2)"),
    "list": ([[1], (2,), []], "array\n|    |-- element: int"),
    "empty list": ([[]], "array\n|    |-- element: string"),
    "struct": ([{"a": 1}, {"b": "x"}], "struct\n|    |-- a: int\n|    |-- b: string"),
    "nothing": ([None], "null"),
    "int beside double": ([1, 1.5], "choice\n|    |-- int\n|    |-- double"),
    "bool beside text": ([True, "x"], "choice\n|    |-- string\n|    |-- boolean"),
    "struct beside text": ([{"a": 1}, "x"], "choice\n|    |-- string\n|    |-- struct\n|    |    |-- a: int"),
}


@pytest.mark.parametrize(("values", "expected"), VALUES.values(), ids=VALUES)
def test_values_of_python_have_a_type(values: list[Any], expected: str) -> None:
    first, second = SeenTypes(), SeenTypes()
    for number, value in enumerate(values):
        (first, second)[number % 2].add({"x": value})

    assert first.merge(second).schema().treeString() == f"root\n|-- x: {expected}"


def test_value_without_a_type_is_an_error_that_names_its_field() -> None:
    with pytest.raises(RecordTypeError, match=r"'a\[\]\.b' of a record holds a complex"):
        SeenTypes().add({"a": [{"b": 1j}]})


def test_record_has_its_fields_as_attributes() -> None:
    record = DynamicRecord({"id": 1, "list": [{"a": 1}], "address": {"city": "Bonn"}})

    record.id = 2
    record.address.city = "Köln"
    del record.list[0].a
    record["new"] = {"b": 1}

    assert record == {"id": 2, "list": [{}], "address": {"city": "Köln"}, "new": {"b": 1}}
    with pytest.raises(AttributeError):
        _ = record.absent
    with pytest.raises(AttributeError):
        del record.absent


def test_record_is_shown_as_json(spark: SparkSession, capsys: pytest.CaptureFixture[str]) -> None:
    DynamicFrame.fromDF(spark.createDataFrame([(1, "ä")], "id int, name string"), None).show()

    assert capsys.readouterr().out == '{"id": 1, "name": "ä"}\n'
    assert json_text({"d": Decimal("1.5"), "n": Decimal(2), "b": b"a", "t": date(2026, 1, 1)}) == (
        '{"d": 1.5, "n": 2, "b": "YQ==", "t": "2026-01-01"}'
    )


def _outcome(record: dict[str, Any]) -> Outcome:
    if record["id"] == 1:
        return None
    if record["id"] == 2:
        return RecordFailure("KeyError: 'x'", "line 1", record)
    return {**record, "kind": record["id"] if record["id"] % 2 else "even"}


def _mapped(frame: DynamicFrame, ctx: str, **thresholds: int) -> DynamicFrame:
    return frame.derived(outcomes=frame.records().map(_outcome), transformation_ctx=ctx, **thresholds)  # type: ignore[arg-type]


def test_dropped_and_failed_records_are_counted_and_shown(spark: SparkSession) -> None:
    source = DynamicFrame.fromDF(spark.range(5).selectExpr("int(id) AS id"), None, "ids")

    mapped = _mapped(source, "mapped")
    twice = mapped.derived(outcomes=mapped.records().map(dict), transformation_ctx="twice")

    assert held(twice) == [{"id": 0, "kind": "even"}, {"id": 3, "kind": 3}, {"id": 4, "kind": "even"}]
    assert tree(twice) == "|-- id: int\n|-- kind: choice\n|    |-- int\n|    |-- string"
    assert (twice.count(), mapped.count(), twice.errorsCount(), twice.stageErrorsCount()) == (3, 3, 1, 0)
    assert mapped.stageErrorsCount() == 1
    counts = current_run(spark).counts
    assert counts[("dropped records", "mapped")] == 1
    assert counts[("error records", "mapped")] == 1
    (shown,) = twice.errorsAsDynamicFrame().toDF().collect()
    assert shown.error.msg == "KeyError: 'x'"
    assert shown.error.callsite.site == "mapped"
    assert shown.error.dynamicRecord.id == 2


@pytest.mark.seldom
def test_function_runs_once_whatever_is_asked_of_its_frame(spark: SparkSession) -> None:
    calls = spark.sparkContext.accumulator(0)
    source = DynamicFrame.fromDF(spark.range(4), None)

    def count(record: dict[str, Any]) -> dict[str, Any]:
        calls.add(1)
        return record

    made = source.derived(outcomes=source.records().map(count))
    made.count()
    made.toDF().count()
    made.errorsCount()
    made.drop_fields(["absent"]).toDF().collect()

    assert calls.value == 4


@pytest.mark.seldom
@pytest.mark.parametrize("joined", ["first", "second"])
def test_thresholds_of_both_frames_hold_where_they_are_joined(spark: SparkSession, joined: str) -> None:
    source = DynamicFrame.fromDF(spark.range(5), None, "ids")
    outcomes = source.records().map(lambda record: RecordFailure("none"))
    strict = source.derived(outcomes=outcomes, transformation_ctx="strict", stage_threshold=2)
    frames = [strict, _mapped(source, "other")]
    one, other = frames if joined == "first" else reversed(frames)

    both = one.derived(one.df, with_errors_of=other)

    assert both.errorsCount() == 6
    with pytest.raises(ErrorThresholdError, match="strict: 5 records could not be made, and stageThreshold is 2"):
        both.assertErrorThreshold()


@pytest.mark.seldom
def test_more_failures_than_a_threshold_refuse_the_frame(spark: SparkSession) -> None:
    source = DynamicFrame.fromDF(spark.range(5), None, "ids")
    first = _mapped(source, "first")

    allowed = _mapped(first, "second", stage_threshold=1, total_threshold=5)
    allowed.assertErrorThreshold()
    refused = _mapped(source, "third").derived(stage_threshold=0, total_threshold=1)
    refused.assertErrorThreshold()
    outcomes = source.records().map(lambda record: RecordFailure("none"))
    strict = source.derived(outcomes=outcomes, transformation_ctx="strict", stage_threshold=2)

    for asked in (strict.assertErrorThreshold, strict.toDF, strict.count, strict.to_sink):
        with pytest.raises(ErrorThresholdError, match="strict: 5 records could not be made, and stageThreshold is 2"):
            asked()
