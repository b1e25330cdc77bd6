"""Arrivals of files: content and times are what the name of each says, and the same each time."""

from __future__ import annotations

import gzip
import os
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from airflow_bookmarks.core.errors import OptionError
from airflow_bookmarks.testing import Arrival, files

ROWS: list[dict[str, object]] = [{"id": 1, "name": "a"}, {"id": 2, "name": None}]


def arrive(folder: Path, *arrivals: Arrival) -> Path:
    """Let arrivals come one after the other; return the path of the last."""
    for arrival in arrivals:
        arrival.arrive(folder)
    return folder / arrivals[-1].name


def time_of(path: Path) -> datetime:
    return datetime.fromtimestamp(path.stat().st_mtime, UTC)


# ---- content


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.csv", "id,name\n1,a\n2,\n"),
        ("a.json", '{"id": 1, "name": "a"}\n{"id": 2, "name": null}\n'),
        ("month=1/a.jsonl", '{"id": 1, "name": "a"}\n{"id": 2, "name": null}\n'),
    ],
)
def test_rows_are_written_as_the_name_says(tmp_path: Path, name: str, text: str) -> None:
    arrival = files.new(name, ROWS)
    assert arrive(tmp_path, arrival).read_text() == text
    assert arrival.rows == tuple(ROWS)


def test_csv_names_numbers_as_spark_does_and_tells_an_empty_text_from_none(tmp_path: Path) -> None:
    values = [float("nan"), float("inf"), float("-inf"), 0.5, "", None, True, 'a "b"', "a,b\nc", " a "]
    text = arrive(tmp_path, files.new("a.csv", [{"id": 1, "x": value} for value in values])).read_text()
    assert text == 'id,x\n1,NaN\n1,Inf\n1,-Inf\n1,0.5\n1,""\n1,\n1,True\n1,"a ""b"""\n1,"a,b\nc"\n1," a "\n'


def test_times_and_decimals_of_json_are_text(tmp_path: Path) -> None:
    row = {"day": date(2013, 1, 31), "amount": Decimal("1.50"), "none": None}
    text = arrive(tmp_path, files.new("a.json", [row])).read_text()
    assert text == '{"day": "2013-01-31", "amount": "1.50", "none": null}\n'


@pytest.mark.parametrize(
    ("name", "rows"),
    [
        ("a.csv", [{"id": None}]),
        ("a.csv", [{}]),
        ("a.csv", [{"id": b"x"}]),
        ("a.csv", [{"id": {"a": 1}}]),
        ("a.csv", [{"id": [1]}]),
        ("a.json", [{"id": b"x"}]),
        ("a.json", [{"id": {1, 2}}]),
    ],
)
def test_row_that_no_reader_would_find_is_refused(name: str, rows: list[dict[str, object]]) -> None:
    with pytest.raises(OptionError, match="Nothing was written"):
        files.new(name, rows)


def test_rows_are_compressed_where_the_name_says_so(tmp_path: Path) -> None:
    path = arrive(tmp_path, files.new("a.csv.gz", ROWS))
    assert gzip.decompress(path.read_bytes()) == b"id,name\n1,a\n2,\n"


def test_text_has_one_column(tmp_path: Path) -> None:
    assert arrive(tmp_path, files.new("a.txt", [{"value": "one"}, {"value": "two"}])).read_text() == "one\ntwo\n"
    with pytest.raises(OptionError, match="one column is 'value'"):
        files.new("a.txt", ROWS)


def test_bytes_of_any_other_format_are_given(tmp_path: Path) -> None:
    assert arrive(tmp_path, files.new("a.parquet", ROWS, content=b"PAR1")).read_bytes() == b"PAR1"
    with pytest.raises(OptionError, match="content="):
        files.new("a.parquet", ROWS)


def test_rows_of_a_file_have_the_same_columns() -> None:
    with pytest.raises(OptionError, match="different columns"):
        files.new("a.csv", [{"id": 1}, {"name": "a"}])


# ---- times


def test_new_files_follow_each_other_by_a_minute(tmp_path: Path) -> None:
    first = arrive(tmp_path, files.new("a.csv", ROWS))
    second = arrive(tmp_path, files.new("deep/b.csv", ROWS))
    assert (time_of(first), time_of(second)) == (files.FIRST_TIME, files.FIRST_TIME + timedelta(minutes=1))


def test_late_file_is_older_than_the_youngest(tmp_path: Path) -> None:
    path = arrive(tmp_path, files.new("a.csv"), files.new("b.csv"), files.late("c.csv", by=timedelta(hours=2)))
    assert time_of(path) == files.FIRST_TIME + timedelta(minutes=1) - timedelta(hours=2)


def test_tied_file_has_the_time_of_the_youngest_to_the_nanosecond(tmp_path: Path) -> None:
    youngest = arrive(tmp_path, files.new("a.csv"))
    os.utime(youngest, ns=(0, 1_800_000_000_123_456_789))
    assert arrive(tmp_path, files.tied("b.csv")).stat().st_mtime_ns == youngest.stat().st_mtime_ns


def test_overwritten_file_has_other_content_and_a_new_time(tmp_path: Path) -> None:
    before = time_of(arrive(tmp_path, files.new("a.csv", ROWS)))
    path = arrive(tmp_path, files.overwritten("a.csv", [{"id": 1, "name": "A"}]))
    assert path.read_text() == "id,name\n1,A\n"
    assert time_of(path) == before + timedelta(minutes=1)


@pytest.mark.parametrize(
    ("arrival", "said"),
    [
        (files.late("a.csv", ROWS), r"none can be late.*Nothing was written\. Let new"),
        (files.tied("a.csv", ROWS), "none can be tied"),
        (files.overwritten("a.csv", ROWS), "is not there.*earlier step"),
    ],
    ids=["late", "tied", "overwritten"],
)
def test_arrival_that_needs_an_earlier_one_says_so(tmp_path: Path, arrival: Arrival, said: str) -> None:
    with pytest.raises(OptionError, match=said):
        arrive(tmp_path, arrival)
    assert list(tmp_path.iterdir()) == []


def test_overwriting_a_file_by_what_it_holds_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="has that content already"):
        arrive(tmp_path, files.new("a.csv", ROWS), files.overwritten("a.csv", ROWS))


# ---- other columns, and files that are no input


def test_added_column_and_other_type(tmp_path: Path) -> None:
    added = files.with_added_column("b.csv", ROWS, "carrier", "UA")
    assert arrive(tmp_path, added).read_text() == "id,name,carrier\n1,a,UA\n2,,UA\n"
    other = files.with_other_type("c.json", ROWS, "id", "two")
    assert [row["id"] for row in other.rows] == ["two", "two"]


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: files.with_added_column("b.csv", ROWS, "name", "x"), "have the column 'name' already"),
        (lambda: files.with_other_type("b.csv", ROWS, "id", 3), "no other type: a row has a int there already"),
        (lambda: files.with_other_type("b.csv", ROWS, "year", 3), r"a row has only \['id', 'name'\]"),
    ],
)
def test_change_of_columns_that_changes_nothing_is_an_error(make: Callable[[], Arrival], said: str) -> None:
    with pytest.raises(OptionError, match=said):
        make()


def test_empty_file_has_no_bytes(tmp_path: Path) -> None:
    assert arrive(tmp_path, files.empty("a.csv")).read_bytes() == b""


def test_corrupt_compressed_text_breaks_off(tmp_path: Path) -> None:
    path = arrive(tmp_path, files.corrupt("a.csv.gz"))
    with pytest.raises(EOFError):
        gzip.decompress(path.read_bytes())


def test_corrupt_file_brings_no_rows(tmp_path: Path) -> None:
    assert files.corrupt("a.json").rows == ()
    assert arrive(tmp_path, files.corrupt("a.parquet", content=b"PAR1")).read_bytes() == b"PAR1"


# ---- names and arguments


@pytest.mark.parametrize("name", ["", "/a.csv", "../a.csv", "a/../b.csv", "a//b.csv", "a.csv/", "a\0.csv", 1])
@pytest.mark.parametrize("make", [files.new, files.late, files.tied, files.overwritten, files.empty, files.corrupt])
def test_name_is_a_path_below_the_folder(make: Callable[[Any], Arrival], name: Any) -> None:
    with pytest.raises(OptionError, match="no path below the folder"):
        make(name)


@pytest.mark.parametrize("name", ["_SUCCESS", ".a.csv", "_tmp/a.csv", "a.csv._COPYING_"])
def test_name_that_spark_does_not_read_is_refused(name: str) -> None:
    with pytest.raises(OptionError, match="Spark reads no name"):
        files.new(name, content=b"")


def test_partition_whose_column_begins_with_an_underscore_is_read(tmp_path: Path) -> None:
    assert arrive(tmp_path, files.new("_year=2013/a.csv", ROWS)).exists()


@pytest.mark.parametrize("by", [timedelta(0), timedelta(days=-1), 3600])
def test_late_is_late_by_a_positive_time(by: Any) -> None:
    with pytest.raises(OptionError, match="positive timedelta"):
        files.late("a.csv", by=by)


def test_content_is_bytes() -> None:
    with pytest.raises(OptionError, match="expected bytes"):
        files.new("a.csv", content="id\n")  # type: ignore[arg-type]


# ---- histories


def numbered(number: int) -> dict[str, object]:
    return {"id": number}


def test_history_of_a_seed_is_the_same_each_time(tmp_path: Path) -> None:
    def laid_out(folder: Path) -> dict[str, tuple[bytes, int]]:
        folder.mkdir()
        for step in files.history(8, numbered, seed=7):
            for arrival in step:
                arrival.arrive(folder)
        return {path.name: (path.read_bytes(), path.stat().st_mtime_ns) for path in sorted(folder.iterdir())}

    assert laid_out(tmp_path / "one") == laid_out(tmp_path / "other")


@pytest.mark.parametrize("seed", range(20))
def test_history_brings_each_row_once_and_no_name_twice_in_a_step(tmp_path: Path, seed: int) -> None:
    steps = files.history(10, numbered, seed=seed, suffix=".json")
    assert len(steps) == 10
    rows = [row["id"] for step in steps for arrival in step for row in arrival.rows]
    assert rows == list(range(1, len(rows) + 1))
    for step in steps:
        names = [arrival.name for arrival in step]
        assert len(names) == len(set(names))
        for arrival in step:
            arrival.arrive(tmp_path)


@pytest.mark.parametrize("steps", [0, -1, 1.5, True])
def test_history_has_a_positive_number_of_steps(steps: Any) -> None:
    with pytest.raises(OptionError, match="positive number"):
        files.history(steps, numbered, seed=1)
