"""Promises GLUE-10 and GLUE-13: the class `Watermarks` on a table of its own."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any
from uuid import uuid4

import pytest

from airflow_bookmarks.core.errors import OptionError, TableMissingError
from airflow_bookmarks.glue.watermarks.table import WatermarkExistsError, Watermarks
from airflow_bookmarks.glue.watermarks.values import WatermarkValueError
from tests.glue.watermarks.tables import make_table

DAY = datetime.fromisoformat("2013-01-31")  # without a zone, as Spark gives times to Python
NOW = datetime(2026, 5, 3, 12, tzinfo=UTC)


class Clock:
    """A clock that a test sets."""

    def __init__(self) -> None:
        self.now = NOW

    def __call__(self) -> datetime:
        return self.now


@pytest.fixture
def table(client: Any) -> Iterator[str]:
    name = f"glue-watermarks-{uuid4().hex}"
    make_table(client, name)
    yield name
    client.delete_table(TableName=name)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def watermarks(table: str, client: Any, clock: Clock) -> Watermarks:
    return Watermarks(table, client, now=clock)


def add(watermarks: Watermarks, run: str, **values: Any) -> None:
    watermarks.add_watermark(Watermarks.create_watermark_item("flights", run, **values))


# ---- the seven members


def test_table_is_known_by_its_name(watermarks: Watermarks, table: str) -> None:
    assert watermarks.exists(table)
    assert watermarks.exists()
    assert not watermarks.exists("no-such-table")


def test_item_has_the_key_of_the_table_and_the_values_under_one_name() -> None:
    item = Watermarks.create_watermark_item("flights", "jr_1", day="2013-01-31", rows=7)
    assert item == {"jobName": "flights", "runId": "jr_1", "watermarks": {"day": "2013-01-31", "rows": 7}}
    assert Watermarks.create_watermark_item("flights", "jr_1", key="marks", a=1)["marks"] == {"a": 1}
    assert Watermarks.create_watermark_item(job="flights", run="jr_1", a=1)["jobName"] == "flights"


def test_watermark_of_a_run_is_read_back_whole(watermarks: Watermarks) -> None:
    add(watermarks, "jr_1", day="2013-01-31")
    whole = {"jobName": "flights", "runId": "jr_1", "watermarks": {"day": "2013-01-31"}}
    assert watermarks.get_watermark("flights") == whole
    assert watermarks.get_watermark("flights", "jr_1") == whole
    assert watermarks.get_watermark_values("flights", run_id="jr_1") == {"day": "2013-01-31"}


def test_names_of_the_original_class_are_taken(table: str, client: Any) -> None:
    assert Watermarks(table_name=table, dynamodb_client=client).exists(table)
    with pytest.raises(OptionError, match="given twice"):
        Watermarks(table, table_name=table)


def test_first_run_and_unknown_run_have_none(watermarks: Watermarks) -> None:
    assert watermarks.get_most_recent_run_id("flights") is None
    assert watermarks.get_watermark("flights") is None
    assert watermarks.get_watermark_values("flights") is None
    add(watermarks, "jr_1", day="2013-01-31")
    assert watermarks.get_watermark("flights", "jr_2") is None
    assert watermarks.get_watermark_values("flights", "jr_2") is None
    assert watermarks.history("trains") == []


def test_latest_is_what_was_written_last_and_not_the_greatest_run_id(watermarks: Watermarks, clock: Clock) -> None:
    add(watermarks, "jr_ff01", n=1)
    clock.now += timedelta(hours=1)
    add(watermarks, "jr_0a02", n=2)
    assert watermarks.get_most_recent_run_id("flights") == "jr_0a02"
    assert watermarks.get_watermark_values("flights") == {"n": 2}


def test_latest_is_right_though_the_clock_was_set_back(watermarks: Watermarks, clock: Clock) -> None:
    add(watermarks, "jr_b", n=1)
    clock.now -= timedelta(days=1)
    add(watermarks, "jr_a", n=2)
    assert watermarks.get_watermark_values("flights") == {"n": 2}


def test_history_is_in_the_order_of_writing_with_times(watermarks: Watermarks, clock: Clock) -> None:
    for run in ("jr_c", "jr_a", "jr_b"):
        add(watermarks, run, name=run)
        clock.now += timedelta(minutes=1)
    told = watermarks.history("flights")
    assert [item["runId"] for item in told] == ["jr_c", "jr_a", "jr_b"]
    assert [item["writtenAt"] for item in told] == [NOW, NOW + timedelta(minutes=1), NOW + timedelta(minutes=2)]


def test_items_of_another_program_count_as_the_oldest(watermarks: Watermarks, table: str, client: Any) -> None:
    for run, number in (("jr_f", "1.5"), ("jr_e", "2")):
        values = {"M": {"n": {"N": number}}}
        client.put_item(TableName=table, Item={"jobName": {"S": "flights"}, "runId": {"S": run}, "watermarks": values})
    assert watermarks.get_watermark_values("flights") == {"n": Decimal("1.5")}
    assert watermarks.get_watermark_values("flights", "jr_e") == {"n": 2}
    add(watermarks, "jr_a", n=3)
    assert watermarks.get_watermark_values("flights") == {"n": 3}
    assert [item["writtenAt"] for item in watermarks.history("flights")] == [None, None, NOW]


# ---- values

VALUES: dict[str, Any] = {
    "text": "2013-01-31",
    "int": 7,
    "a long int": 10**60,
    "float": 0.1,
    "whole float": 7.0,
    "great float": 1.5e300,
    "infinity": float("inf"),
    "decimal": Decimal("12.50"),
    "long decimal": Decimal("1." + "1" * 60),
    "datetime": datetime.fromisoformat("2013-01-31T12:30:00.123456"),
    "aware datetime": datetime(2013, 1, 31, 12, tzinfo=timezone(timedelta(hours=2))),
    "date": date(2013, 1, 31),
    "bool": True,
    "list": [1, 2.0, date(2013, 1, 31)],
    "dict": {"flights": DAY, "people": 3},
}


@pytest.mark.parametrize("name", VALUES)
def test_value_comes_back_equal_and_of_its_type(watermarks: Watermarks, name: str) -> None:
    add(watermarks, "jr_1", mark=VALUES[name])
    values = watermarks.get_watermark_values("flights")
    assert values is not None
    assert values["mark"] == VALUES[name]
    assert type(values["mark"]) is type(VALUES[name])
    if isinstance(VALUES[name], list):
        assert list(map(type, values["mark"])) == list(map(type, VALUES[name]))


def test_value_can_be_read_in_the_table_by_a_person(watermarks: Watermarks, table: str, client: Any) -> None:
    add(watermarks, "jr_1", at=datetime.fromisoformat("2013-01-31T12:00:00"), share=0.5)
    (item,) = client.scan(TableName=table)["Items"]
    assert item["watermarks"] == {"M": {"at": {"S": "2013-01-31T12:00:00"}, "share": {"N": "0.5"}}}


@pytest.mark.parametrize(
    ("value", "why"),
    [(None, "aggregate over no rows"), (object(), "could not be read back"), ([None], "aggregate over no rows")],
    ids=["none", "another type", "none inside"],
)
def test_value_that_is_none_is_refused_and_the_last_watermark_stays(
    watermarks: Watermarks, value: Any, why: str
) -> None:
    add(watermarks, "jr_1", day="2013-01-31")
    with pytest.raises(WatermarkValueError, match=why):
        add(watermarks, "jr_2", day=value)
    assert watermarks.get_watermark_values("flights") == {"day": "2013-01-31"}


def test_second_watermark_of_a_run_with_other_values_is_refused(watermarks: Watermarks, clock: Clock) -> None:
    add(watermarks, "jr_1", at=DAY)
    clock.now += timedelta(minutes=1)
    add(watermarks, "jr_1", at=DAY)
    with pytest.raises(WatermarkExistsError, match="'jr_1' of job 'flights' has a watermark"):
        add(watermarks, "jr_1", at=DAY + timedelta(days=1))
    assert watermarks.get_watermark_values("flights") == {"at": DAY}
    assert watermarks.history("flights")[0]["writtenAt"] == NOW


# ---- what is wrong


def test_table_that_is_missing_is_named(client: Any) -> None:
    watermarks = Watermarks("no-such-table", client)
    for run in (None, "jr_1"):
        with pytest.raises(TableMissingError, match="no table 'no-such-table' in region 'eu-west-1'"):
            watermarks.get_watermark("flights", run)
    with pytest.raises(TableMissingError, match="no table 'no-such-table'"):
        add(watermarks, "jr_1", day=1)


@pytest.mark.parametrize(
    "item",
    [{"runId": "jr_1"}, {"jobName": "flights", "runId": 7}, {"jobName": "flights", "runId": "a", "writtenAt": "b"}],
    ids=["no job", "a run that is no text", "a name that is kept"],
)
def test_item_that_is_none_is_refused(watermarks: Watermarks, item: dict[str, Any]) -> None:
    with pytest.raises(OptionError, match="Nothing was written"):
        watermarks.add_watermark(item)


def test_key_under_which_nothing_was_written_is_named(watermarks: Watermarks) -> None:
    add(watermarks, "jr_1", day=1)
    with pytest.raises(OptionError, match=r"has no 'marks', but \['watermarks'\]"):
        watermarks.get_watermark_values("flights", key="marks")
    with pytest.raises(OptionError, match="part of the key"):
        Watermarks.create_watermark_item("flights", "jr_1", key="jobName")
