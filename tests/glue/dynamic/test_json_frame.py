"""JSON with choices: what is a choice, at any depth, and that no record is lost."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from airflow_bookmarks.glue.dynamic.frame import DynamicFrame
from airflow_bookmarks.glue.dynamic.json_records import json_frame, texts
from airflow_bookmarks.glue.dynamic.json_records.json_frame import frame_of_json
from airflow_bookmarks.glue.dynamic.json_records.shapes import NestingError
from airflow_bookmarks.glue.dynamic.records import FieldCaseError, check_cases
from airflow_bookmarks.glue.dynamic.types import Field, IntegerType, StructType
from airflow_bookmarks.glue.run import current_run
from airflow_bookmarks.spark.features import has_variants
from tests.glue.dynamic.frames import frame_of, held, tree
from tests.thorough import mostly_thorough

# By the types that shapes tell, where they do; by variants: shapes merged here or, where there are too many, by Spark's
# aggregate; and on a Spark without variants.
WAYS = ("texts", "shapes", "aggregate", "records") if has_variants() else ("records",)


@pytest.fixture(params=mostly_thorough(WAYS, *WAYS[:2]))
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Read in each way."""
    read_by(request.param, monkeypatch)
    return str(request.param)


def read_by(way: str, patch: pytest.MonkeyPatch) -> None:
    patch.setattr(json_frame, "has_variants", lambda: way != "records")
    if way != "texts":
        patch.setattr(json_frame, "told_types", lambda *_: None)
    if way == "aggregate":
        patch.setattr(texts, "_MOST_SHAPES", 0)


def persistent_rdds(spark: SparkSession) -> set[int]:
    """Return the ids of what the session's Spark holds: other tests may have left some, which may go at any time."""
    return set(spark.sparkContext._jsc.getPersistentRDDs().keySet())


CONFLICTS = {
    "int beside string": (['{"x": 1}', '{"x": "a"}'], "|-- x: choice\n|    |-- int\n|    |-- string"),
    "int beside double": (['{"x": 1}', '{"x": 1.5}'], "|-- x: choice\n|    |-- int\n|    |-- double"),
    "int beside a whole fraction": (['{"x": 1}', '{"x": 1.0}'], "|-- x: choice\n|    |-- int\n|    |-- double"),
    "text beside a whole fraction": (['{"x": "a"}', '{"x": 100.0}'], "|-- x: choice\n|    |-- double\n|    |-- string"),
    "whole fractions in an array": (
        ['{"x": [1, 1.0]}', '{"x": [2.0]}'],
        "|-- x: array\n|    |-- element: choice\n|    |    |-- int\n|    |    |-- double",
    ),
    "int beside exponent": (['{"x": 1}', '{"x": 1e-5}'], "|-- x: choice\n|    |-- int\n|    |-- double"),
    "long beside string": (['{"x": 5000000000}', '{"x": "a"}'], "|-- x: choice\n|    |-- long\n|    |-- string"),
    "struct beside scalar": (
        ['{"x": {"y": 1}}', '{"x": "a"}'],
        "|-- x: choice\n|    |-- string\n|    |-- struct\n|    |    |-- y: int",
    ),
    "array beside scalar": (
        ['{"x": [1]}', '{"x": true}'],
        "|-- x: choice\n|    |-- boolean\n|    |-- array\n|    |    |-- element: int",
    ),
    "in a struct": (
        ['{"x": {"y": 1}}', '{"x": {"y": "a"}}'],
        "|-- x: struct\n|    |-- y: choice\n|    |    |-- int\n|    |    |-- string",
    ),
    "in one array": (
        ['{"x": [1, "a", 2.5]}'],
        "|-- x: array\n|    |-- element: choice\n|    |    |-- int\n|    |    |-- double\n|    |    |-- string",
    ),
    "in structs of an array": (
        ['{"x": [{"y": 1}, {"y": "a"}, {}]}', "{}"],
        "|-- x: array\n|    |-- element: struct\n|    |    |-- y: choice\n"
        "|    |    |    |-- int\n|    |    |    |-- string",
    ),
    "in arrays of arrays": (
        ['{"x": [[1], ["a"]]}', '{"x": [[], null]}'],
        "|-- x: array\n|    |-- element: array\n|    |    |-- element: choice\n"
        "|    |    |    |-- int\n|    |    |    |-- string",
    ),
    "in arrays of different records": (
        ['{"x": [{"y": 1}]}', '{"x": [{"y": "a"}, {"y": "b"}]}', '{"x": [{"y": 2.5}]}'],
        "|-- x: array\n|    |-- element: struct\n|    |    |-- y: choice\n"
        "|    |    |    |-- int\n|    |    |    |-- double\n|    |    |    |-- string",
    ),
    "in one array and in another record": (
        ['{"x": [{"y": 1}, "a"]}', '{"x": [{"y": true}, {"y": "b"}]}', '{"x": [{"y": 2.5}]}'],
        "|-- x: array\n|    |-- element: choice\n|    |    |-- string\n|    |    |-- struct\n"
        "|    |    |    |-- y: choice\n"
        "|    |    |    |    |-- int\n|    |    |    |    |-- double\n|    |    |    |    |-- string\n"
        "|    |    |    |    |-- boolean",
    ),
    "in the struct of a choice": (
        ['{"x": {"y": 1}}', '{"x": {"y": "b"}}', '{"x": "a"}'],
        "|-- x: choice\n|    |-- string\n|    |-- struct\n|    |    |-- y: choice\n"
        "|    |    |    |-- int\n|    |    |    |-- string",
    ),
}


@pytest.fixture(scope="module")
def conflicts(shared_spark: SparkSession) -> dict[str, dict[str, Any]]:
    """Return what is read of all conflicts, each in a column of its own, by way: the schema, and the records."""
    return {way: _read(shared_spark, way, CONFLICTS) for way in WAYS}


def _read(spark: SparkSession, way: str, cases: dict[str, tuple[list[str], str]]) -> dict[str, Any]:
    """Read the records of all cases at once: the first record holds the first of each case, and so on."""
    most = max(len(records) for records, _ in cases.values())
    whole = [
        {case: json.loads(records[number]) for case, (records, _) in cases.items() if number < len(records)}
        for number in range(most)
    ]
    with pytest.MonkeyPatch.context() as patch:
        read_by(way, patch)
        frame = frame_of(spark, *[json.dumps(record) for record in whole])
        return {"schema": frame.schema(), "held": held(frame)}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("case", CONFLICTS)
def test_values_of_several_types_are_a_choice_and_all_are_kept(
    conflicts: dict[str, dict[str, Any]], way: str, case: str
) -> None:
    records, expected = CONFLICTS[case]
    read = conflicts[way]

    of_case = read["schema"].getField(case).dataType
    assert StructType(sorted(of_case, key=lambda field: field.name)).treeString() == f"root\n{expected}"
    found = [_without_nulls(record[case]) for record in read["held"][: len(records)]]
    assert found == [_without_nulls(json.loads(text)) for text in records]


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nulls(part) for key, part in value.items() if part is not None}
    return [_without_nulls(part) for part in value] if isinstance(value, list) else value


PLAIN = {
    "whole numbers of four bytes": (['{"x": 2147483647}', '{"x": -2147483648}'], "|-- x: int"),
    "whole numbers of eight bytes": (['{"x": 1}', '{"x": 2147483648}'], "|-- x: long"),
    "fractions": (['{"x": 1.0}', '{"x": 2.25}'], "|-- x: double"),
    "fractions that are all whole": (['{"x": 1.0}', '{"x": -0.0}'], "|-- x: double"),
    "fraction that is whole beside an exponent": (['{"x": 1.0}', '{"x": 1e-7}'], "|-- x: double"),
    "fraction that is whole, of many digits": (['{"x": 999999999999999.0}'], "|-- x: double"),
    "whole fractions in a struct": (['{"x": {"y": 1.0}}', '{"x": {"y": 20.0}}'], "|-- x: struct\n|    |-- y: double"),
    "whole fractions in an array": (['{"x": [1.0]}', '{"x": [2.0, null]}'], "|-- x: array\n|    |-- element: double"),
    "digits in a text": (['{"x": 1, "y": "12345678901"}'], "|-- x: int\n|-- y: string"),
    "fractions in an array": (['{"x": [0.5, 1e300]}'], "|-- x: array\n|    |-- element: double"),
    "nothing but null": (['{"x": null, "y": true}'], "|-- x: null\n|-- y: boolean"),
    "an empty array": (['{"x": []}'], "|-- x: array\n|    |-- element: string"),
    "an empty struct": (['{"x": {}, "y": 1}'], "|-- x: null\n|-- y: int"),
    "whole numbers in an array": (['{"x": [1]}', '{"x": [-7, null]}'], "|-- x: array\n|    |-- element: int"),
    "long numbers in an array": (['{"x": [1]}', '{"x": [2147483648]}'], "|-- x: array\n|    |-- element: long"),
    "names that look like types": (
        ['{"x": {"DECIMAL(3,1)": 1.25, "y: DECIMAL(4,2)": "a"}}'],
        "|-- x: struct\n|    |-- DECIMAL(3,1): double\n|    |-- y: DECIMAL(4,2): string",
    ),
    "names with signs": (
        ['{"a.b": 1, "it\'s \\"x\\"": "c", "d`e": {"f g": 1}}'],
        '|-- a.b: int\n|-- d`e: struct\n|    |-- f g: int\n|-- it\'s "x": string',
    ),
    "records whose columns differ": (['{"a": 1}', '{"b": "x"}'], "|-- a: int\n|-- b: string"),
}


@pytest.fixture(scope="module")
def plain(shared_spark: SparkSession) -> dict[str, dict[str, Any]]:
    """Return what is read of all plain values, as `conflicts` does."""
    return {way: _read(shared_spark, way, PLAIN) for way in WAYS}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("case", PLAIN)
def test_values_of_one_type_are_plain(plain: dict[str, dict[str, Any]], way: str, case: str) -> None:
    _, expected = PLAIN[case]

    of_case = plain[way]["schema"].getField(case).dataType
    assert StructType(sorted(of_case, key=lambda field: field.name)).treeString() == f"root\n{expected}"


@pytest.mark.parametrize("whole", [9223372036854775808, 12345678901234567890])  # of nineteen digits, and of twenty
def test_whole_number_of_more_than_eight_bytes_keeps_its_digits(spark: SparkSession, way: str, whole: int) -> None:
    frame = frame_of(spark, json.dumps({"x": whole}), '{"x": 1}')

    assert [int(row.x) for row in frame.resolveChoice(choice="cast:decimal(38,0)").toDF().collect()] == [whole, 1]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"x": 0.12345678901, "y": 2147483648}', "|-- x: double\n|-- y: long"),
        ('{"x": 1234567890.5, "y":-2147483649}', "|-- x: double\n|-- y: long"),
        ('{"x": [0.12345678901,2147483648.5], "y": 7}', "|-- x: array\n|    |-- element: double\n|-- y: int"),
        ('{"x": "0.5 12345678901", "y": [2147483648]}', "|-- x: string\n|-- y: array\n|    |-- element: long"),
    ],
)
def test_long_numbers_are_told_from_the_digits_of_fractions_and_texts(
    spark: SparkSession, way: str, text: str, expected: str
) -> None:
    assert frame_of(spark, text).schema().treeString() == f"root\n{expected}"


def test_digits_of_fractions_make_no_shapes_of_their_own(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(texts, "_MOST_SHAPES", 1)
    monkeypatch.setattr(json_frame, "looked_at_variants", lambda parsed: pytest.fail("more than one shape"))

    frame = frame_of(spark, '{"x": 1.5, "y": [0.25]}', '{"x": 22.0, "y": [1000.5, 3.25]}')

    assert held(frame) == [{"x": 1.5, "y": [0.25]}, {"x": 22.0, "y": [1000.5, 3.25]}]


def test_what_is_no_object_is_an_error_record_and_other_columns_go_along(spark: SparkSession, way: str) -> None:
    lines = ['{"id": 1, "id": 2}', '{"id": 2,', "", "5", '{"id": "b"}', " ", "null"]
    text = spark.createDataFrame([(line, number) for number, line in enumerate(lines)], "value string, line int")

    rows = frame_of_json(text, run=current_run(spark))

    frame = DynamicFrame.of(rows.frame, None, "json", errors=rows.errors)
    assert held(frame) == [{"id": 2, "line": 0}, {"id": "b", "line": 4}]  # a key that comes twice has its last value
    assert frame.errorsCount() == 3
    sources = sorted(row.error.source for row in frame.errorsAsDynamicFrame().toDF().collect())
    assert sources == ["5", "null", '{"id": 2,']


@pytest.mark.parametrize("lines", [['{"b": 2}'], ['{"b": "c"}', "no JSON"]], ids=["plain", "choice-and-error"])
@pytest.mark.seldom  # texts of twenty million characters
def test_text_longer_than_the_parser_of_spark_takes_is_read(
    spark: SparkSession, lines: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    long_record = F.concat(F.lit('{"b": 1, "a": "'), F.repeat(F.lit("x"), 20_000_001), F.lit('"}'))
    others = spark.createDataFrame([(line,) for line in lines], "value string")
    text = others.union(spark.range(1).select(long_record.alias("value")))

    rows = frame_of_json(text, run=current_run(spark), name="raw")

    frame = DynamicFrame.of(rows.frame, None, "raw", errors=rows.errors).toDF()
    assert frame.columns == ["a", "b"]
    assert [row[0] for row in frame.select(F.length("a")).collect()] == [None, 20_000_001]
    assert rows.errors.count() == lines.count("no JSON")
    if has_variants():
        assert re.search(r"raw: [12] records? of JSON .* more than 20,000,000 characters", caplog.text)


@pytest.mark.usefixtures("way")
def test_fields_are_sorted_by_name_at_any_depth(spark: SparkSession) -> None:
    frame = frame_of(spark, '{"b": [{"d": 1, "c": 2}], "a": {"f": 1, "e": "x"}}', '{"a": {"f": "y"}, "A1": 1}')
    assert list(frame.schema().field_map) == ["A1", "a", "b"]
    assert tree(frame).index("e: string") < tree(frame).index("f: choice")
    assert tree(frame).index("c: int") < tree(frame).index("d: int")


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("records", [['{"n": 1, "DT": 5}'], ['{"n": 1, "DT": "x", "dt": 6}', '{"n": "a"}']])
def test_field_with_the_name_of_another_column_is_left_out(
    spark: SparkSession, records: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    text = spark.createDataFrame([(record, "monday") for record in records], "value string, dt string")

    rows = frame_of_json(text, run=current_run(spark), name="raw").frame

    assert rows.columns == ["n", "dt"]
    assert {row.dt for row in rows.collect()} == {"monday"}
    assert "raw: the records have fields with the names of partitions" in caplog.text


@pytest.mark.usefixtures("way")
def test_field_whose_name_differs_in_case_stays_where_spark_tells_them_apart(spark: SparkSession) -> None:
    spark.conf.set("spark.sql.caseSensitive", "true")
    text = spark.createDataFrame([('{"DT": 5}', "monday")], "value string, dt string")
    assert frame_of_json(text, run=current_run(spark)).frame.collect() == [(5, "monday")]


# Of records of very many shapes Spark itself gives up on the deepest.
TOO_DEEP = [(by, levels) for by in WAYS for levels in (151, 600) if (by, levels) != ("aggregate", 600)]


@pytest.mark.parametrize(("by", "levels"), TOO_DEEP)
def test_record_that_nests_too_deep_is_an_error_in_own_words(
    shared_spark: SparkSession, by: str, levels: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    read_by(by, monkeypatch)
    text = '{"a":' * levels + "1" + "}" * levels
    with pytest.raises(NestingError, match="more than 150 levels"):
        frame_of(shared_spark, '{"b": 1}', text)


@pytest.mark.usefixtures("way")
def test_record_deeper_than_any_parser_follows_is_an_error_record(spark: SparkSession) -> None:
    frame = frame_of(spark, '{"b": 1}', '{"a":' * 3000 + "1" + "}" * 3000)
    assert (held(frame), frame.errorsCount()) == ([{"b": 1}], 1)


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("other", ['{"x": "a"}', '{"x": 2}'])
def test_whole_number_of_more_than_eight_bytes_is_there_beside_fractions(spark: SparkSession, other: str) -> None:
    huge, *rest = held(frame_of(spark, '{"x": 12345678901234567890}', '{"x": 1.5}', other))

    assert float(huge["x"]) == 12345678901234567890.0
    assert rest == [{"x": 1.5}, json.loads(other)]


EMPTY = {
    "beside a number": ['{"x": {}, "y": 1}', '{"x": 1}'],
    "in an array": ['{"x": [{}], "y": 1}', '{"x": [], "y": 2}'],
    "in an array beside a number": ['{"x": [{}, 1], "y": 1}'],
    "in arrays of arrays": ['{"x": [[{}]], "y": 1}', '{"y": 3}'],
}


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("case", EMPTY)
def test_empty_object_takes_no_other_field_with_it(spark: SparkSession, case: str) -> None:
    found = held(frame_of(spark, *EMPTY[case]))
    assert [record.get("y") for record in found] == [json.loads(line).get("y") for line in EMPTY[case]]


@pytest.mark.usefixtures("way")
def test_fields_may_have_the_names_of_columns_that_stand_between(spark: SparkSession) -> None:
    names = ["glue_0", "glue_1", "glue_case", "glue_parsed", "glue_read", "glue_record", "glue_shape", "value"]
    lines = [json.dumps({name: {"x": value} for name in names}) for value in (1, "a")]
    assert held(frame_of(spark, *lines)) == [json.loads(line) for line in lines]


def test_no_record_at_all_is_a_frame_without_columns(spark: SparkSession, way: str) -> None:
    frame = frame_of(spark)

    assert frame.toDF().columns == []
    assert frame.count() == 0


def test_source_is_read_once_and_let_go_at_the_end_of_the_run(spark: SparkSession, way: str) -> None:
    reads = spark.sparkContext.accumulator(0)
    held_by_others = persistent_rdds(spark)

    def read(number: int) -> tuple[str]:
        reads.add(1)
        return ('{"x": 1}' if number % 2 else '{"x": "a"}',)

    text = spark.sparkContext.parallelize(range(4), 2).map(read).toDF("value string")
    run = current_run(spark)
    rows = frame_of_json(text, run=run)
    frame = DynamicFrame.of(rows.frame, None, "json")
    frame.count()
    frame.resolveChoice(choice="make_cols").toDF().agg(F.sum("x_int")).collect()

    assert reads.value == 4
    assert persistent_rdds(spark) - held_by_others
    run.release()
    assert not persistent_rdds(spark) - held_by_others


SPELLED = {
    "top level": '{"Id": 1, "id": 2}',
    "in different records": '{"Id": 1}|{"id": 2}',
    "in a struct": '{"x": {"Id": 1, "id": 2}}',
    "in structs of an array": '{"x": [{"Id": 1}, {"id": 2}]}',
}


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("lines", SPELLED.values(), ids=list(SPELLED))
def test_fields_that_differ_only_in_case_are_an_error_that_names_them(shared_spark: SparkSession, lines: str) -> None:
    text = shared_spark.createDataFrame([(line,) for line in lines.split("|")], "value string")
    with pytest.raises(FieldCaseError, match=r"raw: the fields 'Id' and 'id' .*caseSensitive=true"):
        frame_of_json(text, run=current_run(shared_spark), name="raw")


@pytest.mark.parametrize(("first", "second"), [("\u03c3", "\u03c2"), ("\u0131", "i"), ("\u0130", "i"), ("Id", "iD")])
def test_names_that_spark_takes_for_one_differ_in_case(shared_spark: SparkSession, first: str, second: str) -> None:
    rows = shared_spark.createDataFrame([({first: 1, second: 2},)], f"x struct<`{first}`: int, `{second}`: int>")
    with pytest.raises(AnalysisException, match="AMBIGUOUS_REFERENCE_TO_FIELDS"):
        rows.select(F.col("x").getField(first))

    with pytest.raises(FieldCaseError):
        check_cases(StructType([Field(first, IntegerType()), Field(second, IntegerType())]), shared_spark, "raw")


def test_names_that_spark_tells_apart_are_two(shared_spark: SparkSession) -> None:
    check_cases(StructType([Field(name, IntegerType()) for name in ("stra\u00dfe", "strasse")]), shared_spark, "raw")


@pytest.mark.usefixtures("way")
def test_fields_that_differ_only_in_case_are_two_where_spark_tells_them_apart(spark: SparkSession) -> None:
    spark.conf.set("spark.sql.caseSensitive", "true")
    text = spark.createDataFrame([('{"Id": 1, "id": 2}',)], "value string")
    rows = frame_of_json(text, run=current_run(spark)).frame
    assert {column: rows.collect()[0][column] for column in rows.columns} == {"Id": 1, "id": 2}
