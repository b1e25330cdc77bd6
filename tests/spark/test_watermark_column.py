"""The greatest value of a column as the watermark of a context."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql.types import DataType, DateType, LongType, TimestampNTZType, TimestampType

from airflow_bookmarks.core.errors import OptionError
from airflow_bookmarks.lifecycle.changes.change import rewind, set_position
from airflow_bookmarks.lifecycle.history.point import resolve_point
from airflow_bookmarks.lifecycle.inspect.wait import Wait, condition_of
from airflow_bookmarks.lifecycle.inspect.waiting import evaluate
from airflow_bookmarks.lifecycle.maintenance.doctor import examine
from airflow_bookmarks.spark.contexts.watermark import WatermarkColumn
from tests.spark.lake import Lake

pytestmark = pytest.mark.needs("observations")

SCHEMA = "id INT, event_time TIMESTAMP"


def run(lake: Lake, schema: str = SCHEMA, column: str | None = "event_time", **options: Any) -> dict[str, Any]:
    """Make one whole run that reads all columns; return its summary."""
    with lake.job(**options) as job:
        job.read("raw", watermark_column=column).schema(schema).csv(lake.path("raw")).collect()
    assert job.summary is not None
    return job.summary


def mark(lake: Lake) -> str | None:
    return lake.head().contexts["raw"].watermark


@pytest.mark.parametrize(
    ("kind", "values", "expected"),
    [
        ("TIMESTAMP", ["2013-01-31T23:59:58.123456Z", "2013-01-31T23:59:58.123455Z"], "2013-01-31T23:59:58.123456Z"),
        ("TIMESTAMP", ["2013-01-31T23:59:58Z", ""], "2013-01-31T23:59:58.000000Z"),
        ("TIMESTAMP", ["1066-10-14T09:00:00.000001Z"], "1066-10-14T09:00:00.000001Z"),
        ("TIMESTAMP_NTZ", ["2013-03-10T02:30:00.000001"], "2013-03-10T02:30:00.000001"),
        ("DATE", ["2013-01-31", "2012-12-31"], "2013-01-31"),
        ("BIGINT", ["9", "10", "9007199254740993"], "9007199254740993"),
        ("SMALLINT", ["-9", "-10"], "-9"),
        ("DECIMAL(38,10)", ["0.0000000001", "-7"], "0.0000000001"),
        ("DECIMAL(38,2)", ["123456789012345678901234567890.12"], "123456789012345678901234567890.12"),
    ],
)
def test_greatest_value_is_the_watermark_exactly(lake: Lake, kind: str, values: list[str], expected: str) -> None:
    lake.spark.conf.set("spark.sql.session.timeZone", "America/New_York")  # where 2013-03-10T02:30 is no time
    lake.put("a.csv", *[f"1,{value}" for value in values])

    summary = run(lake, f"id INT, event_time {kind}")

    assert mark(lake) == expected
    assert summary["contexts"]["raw"]["watermark_to"] == expected
    assert summary["contexts"]["raw"]["rows"] == len(values)


@pytest.mark.parametrize(
    ("type_", "order"),
    [(TimestampType(), "time"), (TimestampNTZType(), "local_time"), (DateType(), "local_time"), (LongType(), "number")],
)
def test_type_of_the_column_says_how_its_watermarks_compare(type_: DataType, order: str) -> None:
    assert WatermarkColumn("event_time", type_).order.name == order


def test_watermark_never_goes_down_on_a_late_or_empty_increment(lake: Lake) -> None:
    lake.put("a.csv", "1,2013-01-31T00:00:00Z")
    run(lake)
    lake.put("late.csv", "2,2012-01-01T00:00:00Z")

    late, empty = run(lake), run(lake)

    assert (late["is_empty"], empty["is_empty"]) == (False, True)
    assert mark(lake) == "2013-01-31T00:00:00.000000Z"
    [_, record, _] = lake.store.runs("copy")
    assert record.metrics["contexts"]["raw"]["greatest"] == "2012-01-01T00:00:00.000000Z"
    assert record.metrics["contexts"]["raw"]["watermark_column"] == "event_time"


def test_watermarks_are_compared_as_numbers_and_not_as_text(lake: Lake) -> None:
    lake.put("a.csv", "1,9")
    run(lake, "id INT, event_time BIGINT")
    lake.put("b.csv", "2,10")
    run(lake, "id INT, event_time BIGINT")

    assert mark(lake) == "10"


@pytest.mark.seldom
def test_frame_that_no_action_read_leaves_the_watermark_and_says_so(
    lake: Lake, caplog: pytest.LogCaptureFixture
) -> None:
    lake.put("a.csv", "1,2013-01-31T00:00:00Z")
    run(lake)
    lake.put("b.csv", "2,2014-01-31T00:00:00Z")

    with caplog.at_level(logging.WARNING), lake.job() as job:
        job.read("raw", watermark_column="event_time").schema(SCHEMA).csv(lake.path("raw"))

    assert mark(lake) == "2013-01-31T00:00:00.000000Z"
    assert "event_time has no new watermark: no action has read the frame" in caplog.text


@pytest.mark.parametrize("first", ["isEmpty", "take", "limit"])
def test_watermark_is_that_of_the_write_whatever_was_looked_at_before(lake: Lake, first: str) -> None:
    for day in (1, 2, 3):
        lake.put(f"{day}.csv", *[f"{day},2013-01-0{day}T00:00:00Z"] * 30)

    with lake.job() as job:
        raw = job.read("raw", watermark_column="event_time").schema(SCHEMA).csv(lake.path("raw"))
        if first == "isEmpty":
            assert not raw.isEmpty()
        else:
            assert len(raw.take(1) if first == "take" else raw.limit(1).collect()) == 1
        job.write(raw.where("id > 1"), "out").parquet(lake.path("out"))

    assert mark(lake) == "2013-01-03T00:00:00.000000Z"
    assert job.summary is not None
    assert job.summary["contexts"]["raw"]["rows"] == 90


def test_watermark_of_a_frame_that_was_read_in_part_stays_and_is_warned_about(
    lake: Lake, caplog: pytest.LogCaptureFixture
) -> None:
    lake.put("a.csv", "1,2013-01-31T00:00:00Z")
    run(lake)
    lake.put("b.csv", *["2,2014-01-31T00:00:00Z"] * 30, "3,2015-01-31T00:00:00Z")

    with lake.job() as job:
        raw = job.read("raw", watermark_column="event_time").schema(SCHEMA).csv(lake.path("raw"))
        job.write(raw.limit(1), "out").parquet(lake.path("out"))

    assert mark(lake) == "2013-01-31T00:00:00.000000Z"
    assert "context raw: event_time has no new watermark: no action is known to have read it to its end" in caplog.text
    assert job.summary is not None
    assert job.summary["contexts"]["raw"]["rows"] is None


def test_first_run_that_reads_in_part_has_no_watermark_and_releases_nobody(lake: Lake) -> None:
    lake.put("b.csv", *["2,2013-01-31T00:00:00Z"] * 30)

    with lake.job() as job:
        job.read("raw", watermark_column="event_time").schema(SCHEMA).csv(lake.path("raw")).take(1)

    assert mark(lake) is None
    [answer] = evaluate(lake.store, [Wait(("copy",), condition_of("watermark", "2013-01-31T00:00:00Z"))])
    assert not answer.is_met


def test_rows_without_a_value_leave_the_watermark(lake: Lake, caplog: pytest.LogCaptureFixture) -> None:
    lake.put("a.csv", "1,2013-01-31T00:00:00Z")
    run(lake)
    lake.put("b.csv", "2,")

    with caplog.at_level(logging.WARNING):
        run(lake)

    assert mark(lake) == "2013-01-31T00:00:00.000000Z"
    assert "no row has a value" in caplog.text


def test_first_value_replaces_the_time_of_files_also_where_it_is_lower(lake: Lake) -> None:
    lake.put("a.csv", "1,2012-01-31T00:00:00Z")
    run(lake, column=None)
    assert (mark(lake) or "").startswith("2023-11-14")
    lake.put("b.csv", "2,")
    run(lake)
    assert mark(lake) is None  # no value yet, and the time of a file is none
    lake.put("c.csv", "3,2013-01-31T00:00:00Z")
    run(lake)

    assert mark(lake) == "2013-01-31T00:00:00.000000Z"
    assert lake.head().contexts["raw"].watermark_column == "event_time"


def test_another_column_begins_anew(lake: Lake) -> None:
    lake.put("a.csv", "7,2013-01-31T00:00:00Z")
    run(lake)
    lake.put("b.csv", "8,2013-01-31T00:00:00Z")
    run(lake, column="ID")

    assert mark(lake) == "8"
    assert lake.head().contexts["raw"].watermark_column == "id"


def test_without_the_option_the_watermark_is_the_time_of_files_again(lake: Lake) -> None:
    lake.put("a.csv", "1,2013-01-31T00:00:00Z")
    run(lake)
    lake.put("b.csv", "1,2013-01-31T00:00:00Z")
    run(lake, column=None)

    assert (mark(lake) or "").startswith("2023-11-14")
    assert lake.head().contexts["raw"].watermark_column is None


@pytest.mark.parametrize(
    ("schema", "column", "message"),
    [
        (SCHEMA, "event", r"none of the columns \['id', 'event_time'\]"),
        ("id INT, event_time BOOLEAN", "event_time", "is a boolean"),
        ("id INT, event_time STRING", "event_time", "is a string"),
        ("id INT, event_time DOUBLE", "event_time", "is a double"),
    ],
)
def test_column_that_can_be_no_watermark_is_refused_before_anything_is_read(
    lake: Lake, schema: str, column: str, message: str
) -> None:
    lake.put("a.csv", "1,x")

    with pytest.raises(OptionError, match=message), lake.job() as job:
        job.read("raw", watermark_column=column).schema(schema).csv(lake.path("raw"))
    assert lake.head().run_number == 0


def test_empty_increment_checks_the_column_as_well(lake: Lake) -> None:
    with pytest.raises(OptionError, match="none of the columns"), lake.job() as job:
        job.read("raw", watermark_column="event").schema(SCHEMA).csv(lake.path("raw"))


def test_sequence_is_the_order_alone_where_a_column_is_the_watermark(lake: Lake) -> None:
    for seq, day in ((10, "02"), (9, "01")):
        lake.put(f"part-{seq}.csv", f"{seq},2013-01-{day}T00:00:00Z")
    seen = []
    for _ in range(3):
        with lake.job() as job:
            reader = job.read("raw", watermark_column="event_time").files(sequence=r"part-(?P<seq>\d+)", max_files=1)
            seen.append([row["id"] for row in reader.schema(SCHEMA).csv(lake.path("raw")).collect()])

    assert seen == [[9], [10], []]
    assert mark(lake) == "2013-01-02T00:00:00.000000Z"
    assert examine(lake.store, jobs=["copy"]) == []


def test_watermark_of_an_upstream_is_its_run_number(lake: Lake) -> None:
    with pytest.raises(OptionError, match="watermark_column of an upstream"), lake.job() as job:
        job.read("raw", watermark_column="event_time").upstream("other")


@pytest.mark.parametrize(
    ("kind", "value", "reached", "missed"),
    [
        ("TIMESTAMP", "2013-01-31T00:00:00Z", "2013-01-31T01:00:00+01:00", "2013-01-31T00:00:00.000001Z"),
        ("DATE", "2013-01-31", "2013-01-31", "2013-02-01"),
        ("DECIMAL(10,2)", "9.50", "9.5", "10"),
        ("BIGINT", "10", "9", "10.5"),
    ],
)
def test_sensors_wait_for_it(lake: Lake, kind: str, value: str, reached: str, missed: str) -> None:
    lake.put("a.csv", f"1,{value}")
    run(lake, f"id INT, event_time {kind}")

    def is_met(wanted: str) -> bool:
        [answer] = evaluate(lake.store, [Wait(("copy",), condition_of("watermark", wanted))])
        return answer.is_met

    assert is_met(reached)
    assert not is_met(missed)


def test_rewind_takes_it_back_and_a_point_in_history_finds_it(lake: Lake) -> None:
    lake.put("a.csv", "1,2013-01-31T00:00:00Z")
    run(lake)
    lake.put("b.csv", "1,2014-01-31T00:00:00Z")
    run(lake)

    assert resolve_point(lake.store, "copy", lake.head(), "watermark:2013-06-01T00:00:00Z").key.number == 1
    rewind(lake.store, "copy", 1, reason="r", who="ada")
    assert mark(lake) == "2013-01-31T00:00:00.000000Z"
    run(lake)
    assert mark(lake) == "2014-01-31T00:00:00.000000Z"


def test_context_that_is_set_has_the_watermark_of_its_files(lake: Lake) -> None:
    lake.put("a.csv", "1,2013-01-31T00:00:00Z")
    run(lake)

    set_position(lake.store, "copy", "raw", "now", reason="r", who="ada")

    assert (mark(lake) or "").startswith("2023-11-14")
    assert lake.head().contexts["raw"].watermark_column is None


def test_doctor_finds_nothing_to_say(lake: Lake) -> None:
    lake.put("a.csv", "1,2013-01-31T00:00:00Z")
    run(lake)

    assert examine(lake.store, jobs=["copy"]) == []


@pytest.mark.parametrize("option", ["pause", "disable"])
def test_run_that_changes_nothing_keeps_what_it_read_to_itself(lake: Lake, option: str, tmp_path: Path) -> None:
    lake.put("a.csv", "1,2013-01-31T00:00:00Z")
    run(lake)
    lake.put("b.csv", "1,2014-01-31T00:00:00Z")

    summary = run(lake, option=option)

    assert summary["contexts"]["raw"]["greatest"] == "2014-01-31T00:00:00.000000Z"
    assert mark(lake) == "2013-01-31T00:00:00.000000Z"
