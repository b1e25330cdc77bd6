"""Functions over records: what they get, what becomes of what they return, and of what they raise."""

from __future__ import annotations

import datetime
from collections.abc import Iterable
from decimal import Decimal
from typing import Any

import pytest
from pyspark.sql import SparkSession

from airflow_bookmarks.glue.context import GlueContext
from airflow_bookmarks.glue.dynamic.error_records import ErrorThresholdError
from airflow_bookmarks.glue.dynamic.frame import DynamicFrame
from airflow_bookmarks.glue.run import current_run
from airflow_bookmarks.glue.transforms.classes import ErrorsAsDynamicFrame, Filter, Map
from tests.glue.transforms.frames import codes, dicts_of, frame_of, friends, rows_of, tree

PROVIDERS = "`Provider Street Address` string, `Provider City` string, `Provider State` string, `Provider Id` string"
PROVIDER_ROWS = [("1108 ROSS CLARK CIRCLE", "DOTHAN", "AL", "10001"), ("2505 U S HIGHWAY", "BOAZ", "AL", "10005")]


def merge_address(rec: Any) -> Any:
    """Do what the function of AWS's example does."""
    rec["Address"] = {}
    rec["Address"]["Street"] = rec["Provider Street Address"]
    rec["Address"]["City"] = rec["Provider City"]
    rec["Address"]["Array"] = [rec["Provider Street Address"], rec["Provider City"]]
    del rec["Provider Street Address"]
    del rec["Provider City"]
    return rec


@pytest.mark.seldom
def test_example_of_aws_merges_fields_into_a_struct(shared_spark: SparkSession) -> None:
    mapped = frame_of(shared_spark, PROVIDER_ROWS, PROVIDERS).map(f=merge_address)
    assert sorted(tree(mapped)) == sorted(
        [
            "|-- Provider State: string",
            "|-- Provider Id: string",
            "|-- Address: struct",
            "|    |-- Street: string",
            "|    |-- City: string",
            "|    |-- Array: array",
            "|    |    |-- element: string",
        ]
    )
    assert dicts_of(mapped)[0]["Address"] == {
        "Street": "1108 ROSS CLARK CIRCLE",
        "City": "DOTHAN",
        "Array": ["1108 ROSS CLARK CIRCLE", "DOTHAN"],
    }


@pytest.mark.seldom
def test_record_that_becomes_none_is_dropped_and_counted(shared_spark: SparkSession) -> None:
    frame = frame_of(shared_spark, [(1,), (2,), (3,)], "id int")
    mapped = Map.apply(frame=frame, f=lambda rec: rec if rec["id"] != 2 else None, transformation_ctx="drops_two")
    assert [row[0] for row in rows_of(mapped)] == [1, 3]
    assert (mapped.count(), mapped.errorsCount()) == (2, 0)
    assert current_run(shared_spark).counts[("dropped records", "drops_two")] == 1


@pytest.mark.seldom
def test_fields_are_attributes_as_well(shared_spark: SparkSession) -> None:
    def moved(rec: Any) -> Any:
        rec.state = rec.location.state if rec.location else None
        del rec.location
        return rec

    mapped = friends(shared_spark).drop_fields(["friends"]).map(moved)
    assert sorted(row["state"] or "" for row in dicts_of(mapped)) == ["", "AK", "NE", "NY", "WY"]


@pytest.mark.seldom
def test_choice_is_the_value_that_it_holds(shared_spark: SparkSession) -> None:
    mapped = codes(shared_spark).map(lambda rec: {"kind": type(rec["code"]).__name__})
    assert sorted(row["kind"] for row in dicts_of(mapped)) == ["NoneType", "int", "str", "str"]


def failing(rec: Any) -> Any:
    if rec["id"] == 2:
        raise RuntimeError("two is refused")
    return rec


def failing_often(rec: Any) -> bool:
    if rec["id"] % 10 == 2:
        raise RuntimeError("refused")
    return True


@pytest.mark.parametrize("transform", [Map, Filter], ids=["map", "filter"])
def test_exception_makes_an_error_record(shared_spark: SparkSession, transform: type[Map | Filter]) -> None:
    frame = frame_of(shared_spark, [(1,), (2,), (3,)], "id int")
    made = transform.apply(frame=frame, f=failing, transformation_ctx=f"{transform.__name__}ctx", info="step 4")
    assert sorted(row[0] for row in rows_of(made)) == [1, 3]
    assert (made.errorsCount(), made.stageErrorsCount()) == (1, 1)
    error = ErrorsAsDynamicFrame.apply(made).toDF().collect()[0]["error"]
    assert "two is refused" in error["msg"]
    assert current_run(shared_spark).counts[("error records", f"{transform.__name__}ctx")] == 1


@pytest.mark.seldom
def test_failures_of_a_filter_are_counted_though_nobody_asks(
    shared_spark: SparkSession,
) -> None:
    frame = DynamicFrame.fromDF(shared_spark.range(0, 40, 1, 4), GlueContext(shared_spark), "many")
    made = Filter.apply(frame=frame, f=failing_often, transformation_ctx="often")
    for _ in range(3):  # each action runs the function anew
        assert made.toDF().count() == 36
    assert made.toDF().limit(1).collect()
    run = current_run(shared_spark)
    run.end()
    assert run.counts[("error records", "often")] == 4


@pytest.mark.seldom
@pytest.mark.parametrize("transform", [Map, Filter], ids=["map", "filter"])
def test_more_failures_than_allowed_refuse_the_frame(shared_spark: SparkSession, transform: type[Map | Filter]) -> None:
    frame = frame_of(shared_spark, [(2,), (2,), (3,)], "id int")
    for threshold, is_refused in ((1, True), (2, False), (0, False)):
        made = transform.apply(frame=frame, f=failing, stageThreshold=threshold)
        if is_refused:
            with pytest.raises(ErrorThresholdError, match="stageThreshold is 1"):
                made.toDF()
        else:
            assert made.count() == 1


def test_example_of_aws_filters_by_a_lambda(shared_spark: SparkSession) -> None:
    kept = frame_of(shared_spark, PROVIDER_ROWS, PROVIDERS).filter(
        f=lambda x: x["Provider State"] in ["CA", "AL"] and x["Provider City"] in ["SACRAMENTO", "BOAZ"]
    )
    assert [row[3] for row in rows_of(kept)] == ["10005"]


@pytest.mark.seldom
@pytest.mark.parametrize("error", [KeyError, ValueError, TypeError])
def test_what_a_record_lacks_counts_as_false(shared_spark: SparkSession, error: type[Exception]) -> None:
    def asks(rec: Any) -> bool:
        if rec["id"] == 2:
            raise error("gone")
        return True

    kept = frame_of(shared_spark, [(1,), (2,)], "id int").filter(asks)
    assert rows_of(kept) == [(1,)]
    assert kept.errorsCount() == 0


def test_filter_changes_no_type(shared_spark: SparkSession) -> None:
    frame = codes(shared_spark)
    assert tree(frame.filter(lambda rec: rec["id"] < 3)) == tree(frame)
    frame = frame_of(shared_spark, [(1, None)], "id bigint, price decimal(9,2)")
    assert tree(Filter.apply(frame, lambda rec: True)) == tree(frame)


@pytest.mark.seldom
def test_records_of_another_kind_are_errors(shared_spark: SparkSession) -> None:
    mapped = frame_of(shared_spark, [(1,), (2,)], "id int").map(lambda rec: rec if rec["id"] == 1 else [rec])
    assert (mapped.count(), mapped.errorsCount()) == (1, 1)
    assert "returned list" in mapped.errorsAsDynamicFrame().toDF().collect()[0]["error"]["msg"]


@pytest.mark.seldom
def test_value_that_no_column_holds_makes_an_error_record(shared_spark: SparkSession) -> None:
    mapped = frame_of(shared_spark, [(1,), (2,)], "id int").map(
        lambda rec: {"id": object()} if rec["id"] == 1 else {"id": 2}
    )
    assert (mapped.count(), mapped.errorsCount()) == (1, 1)


_KINDS = (
    "small tinyint, id bigint, price decimal(9,2), name string, by_name map<string, bigint>, seen timestamp_ntz, "
    "part struct<n: bigint, gone: date>, list array<bigint>, `empty` array<bigint>"
)
_VALUES: list[Any] = [
    (1, 2, Decimal("3.5"), None, {"a": 1}, datetime.datetime.fromisoformat("2024-01-02T03:00"), (4, None), [5], []),
    (None, None, None, None, {}, None, None, None, []),
]


@pytest.mark.seldom
def test_fields_keep_their_types_whatever_their_values(shared_spark: SparkSession) -> None:
    frame = frame_of(shared_spark, _VALUES, _KINDS)
    mapped = frame.map(lambda rec: rec)
    assert tree(mapped) == ["|-- small: int", *tree(frame)[1:]]
    assert rows_of(mapped) == rows_of(frame)
    assert tree(mapped.map(lambda rec: {**rec, "id": None, "new": None})) == [*tree(mapped), "|-- new: null"]


@pytest.mark.seldom
def test_field_gets_the_type_of_values_that_no_longer_fit(shared_spark: SparkSession) -> None:
    frame = frame_of(shared_spark, _VALUES, _KINDS).select_fields(["id", "price", "name"])
    mapped = frame.map(lambda rec: {"id": str(rec["id"]), "price": Decimal("1234.567"), "name": 1 << 40})
    assert tree(mapped) == ["|-- id: string", "|-- price: decimal(7,3)", "|-- name: long"]


@pytest.mark.seldom
def test_partitions_are_made_anew_as_a_whole(shared_spark: SparkSession) -> None:
    def summed(number: int, records: Iterable[Any]) -> Iterable[Any]:
        yield {"part": number, "sum": sum(rec["id"] for rec in records)}

    frame = frame_of(shared_spark, [(1,), (2,), (3,)], "id int")
    assert dicts_of(frame.mapPartitionsWithIndex(summed)) == [{"part": 0, "sum": 6}]
    assert dicts_of(frame.mapPartitions(lambda records: summed(7, records))) == [{"part": 7, "sum": 6}]


@pytest.mark.seldom
def test_map_evaluates_its_function_once_for_each_record(shared_spark: SparkSession) -> None:
    calls = shared_spark.sparkContext.accumulator(0)

    def counted(rec: Any) -> Any:
        calls.add(1)
        return rec

    mapped = frame_of(shared_spark, [(1,), (2,)], "id int").map(counted)
    assert mapped.count() == len(mapped.toDF().collect()) == len(mapped.toDF().collect())
    assert calls.value == 2


def test_what_is_no_function_is_refused(shared_spark: SparkSession) -> None:
    frame = frame_of(shared_spark, [(1,)], "id int")
    for call in (frame.map, frame.filter, frame.mapPartitions):
        with pytest.raises(TypeError, match="expected a function"):
            call("upper")  # type: ignore[arg-type]
