"""Which types of a frame a column of a table takes: pure, without Spark."""

from __future__ import annotations

import pytest

from airflow_bookmarks.spark.sinks.widening import is_wider, length_of

WIDER = [
    ("int", "int"), ("struct<a:int>", "struct<a:int>"), ("tinyint", "bigint"), ("int", "decimal(10,0)"),
    ("bigint", "decimal(21,2)"), ("decimal(5,2)", "decimal(7,3)"), ("float", "double"), ("int", "double"),
    ("date", "timestamp"), ("date", "string"), ("boolean", "string"), ("decimal(5,2)", "string"),
    ("string", "varchar(10)"), ("string", "char(1)"), ("INT", "BigInt"),
]  # fmt: skip
NARROWER = [
    ("bigint", "int"), ("int", "decimal(9,0)"), ("int", "decimal(10,1)"), ("decimal(5,2)", "decimal(5,3)"),
    ("decimal(5,2)", "decimal(9,1)"), ("bigint", "double"), ("double", "float"), ("string", "date"),
    ("string", "int"), ("timestamp", "date"), ("double", "string"), ("struct<a:int>", "struct<a:bigint>"),
    ("decimal(5,0)", "int"), ("int", "varchar(10)"), ("int", "boolean"), ("timestamp_ntz", "timestamp"),
]  # fmt: skip


@pytest.mark.parametrize(("given", "wanted"), WIDER)
def test_type_that_holds_each_value_is_wider(given: str, wanted: str) -> None:
    assert is_wider(given, wanted)


@pytest.mark.parametrize(("given", "wanted"), NARROWER)
def test_type_that_may_lose_a_value_is_not(given: str, wanted: str) -> None:
    assert not is_wider(given, wanted)


def test_length_is_that_of_text_alone() -> None:
    assert [length_of(kind) for kind in ("varchar(10)", "char(3)", "string", "decimal(10,2)")] == [10, 3, None, None]
