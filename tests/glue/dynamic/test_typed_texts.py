"""JSON that Spark's parser reads by the types that shapes of records tell: as variants would, and nothing is lost."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from airflow_bookmarks.glue.dynamic.json_records import json_frame
from airflow_bookmarks.glue.dynamic.json_records.json_frame import JsonRows, frame_of_json
from airflow_bookmarks.glue.dynamic.json_records.shapes import shape_of
from airflow_bookmarks.glue.dynamic.json_records.texts import looked_at, shape_groups, shaped_texts
from airflow_bookmarks.glue.dynamic.json_records.typed_texts import frame_of_texts, told_types
from airflow_bookmarks.glue.dynamic.types import Field, IntegerType, StructType
from airflow_bookmarks.glue.run import current_run
from airflow_bookmarks.spark.features import has_variants
from tests.thorough import examples

pytestmark = pytest.mark.skipif(not has_variants(), reason="no variants: this Spark tells no shapes of records")

WHOLE = ["0", "-0", "7", "-2147483648", "2147483647"]
HUGE = ["12345678901234567890", "9223372036854775808", "-99999999999999999999999999999999999999"]
LONG = ["2147483648", "-2147483649", "9223372036854775807", "1700000000000"]
SHORT_FRACTIONS = ["0.5", "1.0", "-0.0", "12.341000000000001", "100.0", "1.10"]
FRACTIONS = [
    *SHORT_FRACTIONS,
    "1e3",
    "1E-7",
    "1e400",
    "-1e400",
    "123456789012345678901234567890.5",
    "0." + "1234567890" * 4,
]
TEXTS = ['""', '"7"', '"1.5"', '"true"', '"null"', '"ä€😀"', r'"\ud83d\ude00 \u0000 \" \\ \n"', r'"\ud800"', '" x "']
TEXTS += ['"2026-12-01"', '"NaN"', '"{\\"a\\": 1}"']
# Among longer ones in an array, there may be whole numbers as far as the shape tells.
IN_ARRAYS = {"fraction": SHORT_FRACTIONS}
VALUES = {"whole": WHOLE, "long": LONG, "fraction": FRACTIONS, "text": TEXTS, "boolean": ["true", "false"]}
NAMES = [
    "a",
    "a.b",
    "`",
    "x`y",
    "'",
    '"',
    "$",
    "",
    "_corrupt_record",
    "glue_case",
    "glue_read",
    "ä",
    "a b",
    "DECIMAL(3,1)",
]


def records(chance: random.Random) -> list[str]:
    """Return records of made-up fields: of one type or several, at the top, in a struct, and in arrays."""
    names = chance.sample(NAMES, 6)
    kinds = {name: chance.sample(list(VALUES), chance.choice([1, 1, 2, 3])) for name in names}
    wraps = {
        name: chance.choice(["{}", "{}", '{{"in.ner": {}, "n": 1}}', "[{}, null, {}]", '[{{"e": {}}}, {{}}]'])
        for name in names
    }
    made = [_record(chance, kinds, wraps) for _ in range(30)]
    return ['{"always": 1}', *made]


def _record(chance: random.Random, kinds: dict[str, list[str]], wraps: dict[str, str]) -> str:
    fields = ['"always": 2']
    for name, held in kinds.items():
        kind = chance.choice(held)
        known = IN_ARRAYS if wraps[name].startswith("[") else {}
        values = [chance.choice(known.get(kind, VALUES[kind])) for _ in range(wraps[name].count("{}") + 1)]
        if chance.random() < 0.8:
            fields.append(f"{json.dumps(name)}: {wraps[name].format(*values)}")
        elif chance.random() < 0.5:
            fields.append(f"{json.dumps(name)}: null")
    return "{" + ", ".join(chance.sample(fields, len(fields))) + "}"


def read(spark: SparkSession, lines: list[str]) -> JsonRows:
    text = spark.createDataFrame([(line,) for line in lines], "value string").coalesce(1)
    return frame_of_json(text, run=current_run(spark))


def rows(found: JsonRows) -> list[Any]:
    """Return the rows of a frame, as text: NaN is equal to itself there, and `-0.0` is not `0.0`."""
    return [repr(row).replace("-0.0", "0.0") for row in found.frame.collect()]


@pytest.mark.parametrize("seed", range(examples(40, 4)))
def test_records_are_what_variants_make_of_them(
    shared_spark: SparkSession, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    lines = records(random.Random(seed))
    with monkeypatch.context() as patch:
        patch.setattr(json_frame, "_by_variants", lambda *_: pytest.fail("the shapes tell all"))
        by_text = read(shared_spark, lines)

    monkeypatch.setattr(json_frame, "told_types", lambda *_: None)
    by_variants = read(shared_spark, lines)

    assert by_text.frame.schema.json() == by_variants.frame.schema.json()
    assert rows(by_text) == rows(by_variants)


OPEN = {
    "two types in one array": ['{"x": [1, "a"]}'],
    "a choice of a struct": ['{"x": 1}', '{"x": {"y": 1}}'],
    "a choice of an array": ['{"x": 1}', '{"x": [1]}'],
    "a choice of digits beyond eight bytes": ['{"x": 12345678901234567890}', '{"x": "a"}'],
    "a struct of nulls": ['{"x": {"y": null}}'],
    "no fields": ["{}"],
    "an empty object beside a number": ['{"x": {}}', '{"x": 1}'],
    "what is no object": ['{"x": 1}', "5"],
}


@pytest.mark.parametrize("case", OPEN)
def test_shapes_that_leave_something_open_tell_no_types(shared_spark: SparkSession, case: str) -> None:
    text = shared_spark.createDataFrame([(line,) for line in OPEN[case]], "value string")
    texts = shaped_texts(text, (), None)
    looked = looked_at(shape_groups(texts) or [])
    assert json_frame._by_shapes(texts, looked, current_run(shared_spark), "raw") is None


def test_value_that_does_not_fit_its_type_is_an_error_and_not_null(shared_spark: SparkSession) -> None:
    text = shared_spark.createDataFrame([('{"x": 1}',), ('{"x": "a"}',)], "value string")
    texts = shaped_texts(text, (), None)
    looked = looked_at(shape_groups(texts) or [])
    frame = frame_of_texts(texts, StructType([Field("x", IntegerType())]), looked, ())

    with pytest.raises(Py4JJavaError, match="MALFORMED_RECORD"):
        frame.collect()


def test_record_whose_shape_was_not_seen_is_an_error_and_not_null(shared_spark: SparkSession) -> None:
    text = shared_spark.createDataFrame([('{"x": 1}',), ('{"x": "a"}',)], "value string")
    texts = shaped_texts(text, (), None)
    looked = looked_at(shape_groups(texts) or [])
    types = told_types(texts, looked, current_run(shared_spark), "raw")
    assert types is not None
    seen = {text: shape for text, shape in looked.shapes.items() if shape != shape_of("OBJECT<x: BIGINT>")}
    assert len(seen) == 1
    frame = frame_of_texts(texts, types, replace(looked, shapes=seen), ())

    with pytest.raises(PySparkException, match="another shape than before"):
        frame.collect()


def test_text_is_parsed_once_more_where_a_number_may_be_long_and_the_types_say_where(
    shared_spark: SparkSession,
) -> None:
    found = read(shared_spark, ['{"x": 1, "y": {"z": [1, 3000000000]}, "t": "call 0123456789"}', '{"x": "a"}'])
    assert found.frame.schema.simpleString() == (
        "struct<t:string,x:struct<int:int,string:string>,y:struct<z:array<bigint>>>"
    )


def test_records_that_differ_in_very_many_ways_are_read_by_variants(shared_spark: SparkSession) -> None:
    chance = random.Random(7)
    lines = [
        json.dumps({f"f{at}": chance.choice([1, 1.5]) for at in chance.sample(range(40), 5)} | {"id": number})
        for number in range(300)
    ]
    found = read(shared_spark, lines)

    assert sorted(row.id for row in found.frame.collect()) == list(range(300))


def test_columns_that_go_along_may_have_any_name(shared_spark: SparkSession) -> None:
    columns = ["glue_case", "glue_read", "Glue_0", "glue_corrupt"]
    rows_of_text = [('{"x": 1}', *columns), ('{"x": "a"}', *columns)]
    text = shared_spark.createDataFrame(rows_of_text, ["value", *columns])

    frame = frame_of_json(text, run=current_run(shared_spark)).frame

    assert frame.columns == ["x", *columns]
    assert [tuple(row)[1:] for row in frame.collect()] == [tuple(columns)] * 2


def test_field_in_place_of_which_a_column_comes_differs_in_case_from_none(shared_spark: SparkSession) -> None:
    text = shared_spark.createDataFrame(
        [('{"DT": 5000000000, "dt": 1, "n": 3000000000}', "monday")], "value string, dt string"
    )

    assert frame_of_json(text, run=current_run(shared_spark)).frame.collect() == [(3000000000, "monday")]
