"""CSV whose files have other columns than those before: no row and no column is dropped."""

from __future__ import annotations

from typing import Any

import pytest

from tests.glue.running import Script

pytestmark = pytest.mark.spark


def read(script: Script, option: str = "enable", **format_options: Any) -> list[dict[str, Any]]:
    """Make one run; return the rows, without what they lack."""

    def body(context: Any) -> list[dict[str, Any]]:
        frame = context.create_dynamic_frame.from_options(
            "file", {"paths": [script.path("raw")]}, "csv", {"withHeader": True, **format_options}, "raw"
        )
        rows = [{name: value for name, value in row.asDict().items() if value} for row in frame.toDF().collect()]
        return sorted(rows, key=repr)

    return list(script.run(body, option))


@pytest.mark.parametrize("option", ["enable", "disable"])
@pytest.mark.parametrize(
    ("header", "row", "found"),
    [
        pytest.param("a,b,c", "3,4,5", {"a": "3", "b": "4", "c": "5"}, id="added"),
        pytest.param("a", "3", {"a": "3"}, id="removed"),
        pytest.param("b,a", "3,4", {"a": "4", "b": "3"}, id="in-another-order"),
        pytest.param("x,y", "3,4", {"x": "3", "y": "4"}, id="others"),
    ],
)
def test_files_of_one_run_may_have_other_headers(
    script: Script, header: str, row: str, found: dict[str, str], option: str
) -> None:
    script.put("raw/1.csv", "a,b", "1,2")
    script.put("raw/2.csv", header, row)
    assert read(script, option) == sorted([{"a": "1", "b": "2"}, found], key=repr)


@pytest.mark.parametrize(
    ("header", "row", "found"),
    [
        pytest.param("a,b,c", "3,4,5", {"a": "3", "b": "4", "c": "5"}, id="added"),
        pytest.param("a", "3", {"a": "3"}, id="removed"),
        pytest.param("b,a", "3,4", {"a": "4", "b": "3"}, id="in-another-order"),
    ],
)
def test_files_of_a_later_run_may_have_another_header(
    script: Script, header: str, row: str, found: dict[str, str]
) -> None:
    script.put("raw/1.csv", "a,b", "1,2")
    read(script)
    script.put("raw/2.csv", header, row)
    assert read(script) == [found]


def test_longer_row_below_the_first_keeps_its_values_without_a_header(script: Script) -> None:
    script.put("raw/1.csv", "1,2", "3,4,5")
    assert read(script, withHeader=False) == [{"col0": "1", "col1": "2"}, {"col0": "3", "col1": "4", "col2": "5"}]


def test_longer_rows_keep_their_values_without_a_header(script: Script) -> None:
    script.put("raw/1.csv", "1")
    script.put("raw/2.csv", "2,3,4", "5")
    found = read(script, withHeader=False)
    assert found == [{"col0": "1"}, {"col0": "2", "col1": "3", "col2": "4"}, {"col0": "5"}]
