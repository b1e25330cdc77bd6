"""Promise FILE-18: a column that no value was seen of has no type yet; the first real one is its type."""

from __future__ import annotations

import json
from typing import Any

import pytest

from airflow_bookmarks.core.errors import SchemaChangedError
from tests.spark.lake import Lake, reader_of

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]


def read(lake: Lake, source: str, **kwargs: Any) -> tuple[list[tuple[str, str]], list[tuple[Any, ...]]]:
    """Make a run that reads what is new; return its columns and rows."""
    with lake.job() as job:
        reader = reader_of(job, "raw", **kwargs).options(header=True, inferSchema=True)
        frame = reader.format(source).load(lake.path("raw"))
        return frame.dtypes, sorted(map(tuple, frame.collect()), key=repr)


@pytest.mark.seldom
def test_header_without_rows_gives_columns_the_type_of_the_first_values(lake: Lake) -> None:
    lake.put("a.csv", "carrier,delay")
    assert read(lake, "csv")[0] == [("carrier", "string"), ("delay", "string")]
    assert read(lake, "csv")[0] == [("carrier", "string"), ("delay", "string")]  # an empty run changes nothing
    lake.put("b.csv", "carrier,delay", "AA,")
    assert read(lake, "csv") == ([("carrier", "string"), ("delay", "string")], [("AA", None)])
    lake.put("c.csv", "carrier,delay", "BA,7")
    assert read(lake, "csv") == ([("carrier", "string"), ("delay", "int")], [("BA", 7)])
    lake.put("d.csv", "carrier,delay", "CA,late")
    with pytest.raises(SchemaChangedError, match="delay: int -> string"):
        read(lake, "csv")


def test_null_in_json_gives_the_column_the_type_of_the_first_value(lake: Lake) -> None:
    lake.put("a.json", '{"a": null, "s": {"b": null, "c": 1}, "t": "text"}')
    assert read(lake, "json")[0] == [("a", "string"), ("s", "struct<b:string,c:bigint>"), ("t", "string")]
    lake.put("b.json", '{"t": "more"}')
    assert read(lake, "json")[1] == [(None, None, "more")]
    lake.put("c.json", '{"a": {"x": 1}, "s": {"b": 2, "c": 3}, "t": "last"}')
    columns, rows = read(lake, "json")
    assert columns == [("a", "struct<x:bigint>"), ("s", "struct<b:bigint,c:bigint>"), ("t", "string")]
    assert json.loads(json.dumps(rows)) == [[[1], [2, 3], "last"]]


def test_text_that_was_seen_stays_text(lake: Lake) -> None:
    lake.put("a.json", '{"t": "text"}')
    read(lake, "json")
    lake.put("b.json", '{"t": 1}')
    assert read(lake, "json") == ([("t", "string")], [("1",)])


def test_columns_of_the_last_run_have_the_types_that_it_read_them_with(lake: Lake) -> None:
    lake.put("a.json", '{"a": null}')
    read(lake, "json")
    lake.put("b.json", '{"a": 1}')
    assert read(lake, "json", infer_schema="last") == ([("a", "string")], [("1",)])
    lake.put("c.json", '{"a": 2}')
    assert read(lake, "json") == ([("a", "string")], [("2",)])
