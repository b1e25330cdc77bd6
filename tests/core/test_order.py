"""How watermarks compare, and what is stored of it."""

from __future__ import annotations

import pytest

from airflow_bookmarks.core.head import Head
from airflow_bookmarks.core.order import ORDERS, PATH, TEXT, order_like, order_of
from airflow_bookmarks.core.position import Greatest, Position, state_after
from airflow_bookmarks.core.run import ContextState, RunKey
from airflow_bookmarks.core.selection.sequence import order_by
from airflow_bookmarks.store.codec.item import head_attributes, head_of

STATE = ContextState("files", "files:/raw", RunKey(1, 1))
TIME, NUMBER, LOCAL_TIME = ORDERS["time"], ORDERS["number"], ORDERS["local_time"]


@pytest.mark.parametrize(
    ("order", "low", "high"),
    [
        ("number", "9", "10"),
        ("number", "-10", "-9.5"),
        ("number", "9.5", "10.25"),
        ("time", "2013-01-31T23:59:59+01:00", "2013-01-31T23:00:00Z"),
        ("local_time", "2013-01-31", "2013-01-31T00:00:00.000001"),
        ("text", "10a", "9a"),
        ("path", "10", "9"),
    ],
)
def test_watermarks_compare_by_their_order(order: str, low: str, high: str) -> None:
    assert ORDERS[order].compare(low, high) == -1
    assert ORDERS[order].compare(high, low) == 1
    assert ORDERS[order].compare(low, low) == 0


@pytest.mark.parametrize(
    ("order", "text"),
    [
        ("number", "2013-01-31"),
        ("number", "1e3"),
        ("number", "9" * 5000),
        ("time", "2013-01-31"),
        ("time", "20130131"),
        ("local_time", "20130131"),
        ("local_time", "2013-01-31T00:00:00Z"),
        ("text", "42"),
        ("text", "2013-01-31"),
    ],
)
def test_value_of_another_order_is_none_of_this_one(order: str, text: str) -> None:
    assert ORDERS[order].parse(text) is None
    assert ORDERS[order].compare(text, text) is None


def test_names_of_orders_never_change() -> None:
    assert list(ORDERS) == ["number", "time", "local_time", "text", "path"]


@pytest.mark.parametrize("watermark", ["42", "0.5", "2013-01-31", "2013-01-31T23:59:58.123456Z", "part-9a", ""])
def test_watermark_stored_before_orders_were_compares_as_it_looks(watermark: str) -> None:
    assert order_of(None, watermark) is order_like(watermark)
    assert order_of("path", watermark) is PATH


def test_head_stored_before_orders_were_is_read_and_written_as_it_was() -> None:
    state = ContextState("files", "files:/raw", RunKey(1, 1), "2013-01-31T00:00:00.000000Z")
    stored = head_attributes(Head(contexts={"raw": state}))["contexts"]
    assert stored == {
        "raw": {"kind": "files", "fingerprint": "files:/raw", "run": "1.1", "watermark": "2013-01-31T00:00:00.000000Z"}
    }


@pytest.mark.parametrize("order", [None, "time", "of a newer version"])
def test_order_is_read_as_it_was_stored(order: str | None) -> None:
    state = ContextState("files", "files:/raw", RunKey(1, 1), "42", order=order)
    assert head_of(head_attributes(Head(contexts={"raw": state}))).contexts == {"raw": state}


def test_context_has_the_order_that_its_position_says() -> None:
    assert state_after(STATE, Position(b"", "42", order=NUMBER), None, None).order == "number"
    assert state_after(STATE, Position(b"", None, order=TIME), None, None).order == "time"
    assert state_after(STATE, Position(b"", "42"), None, None).order is None


def test_context_has_the_order_of_the_column_whose_values_are_its_watermark() -> None:
    position = Position(b"", "2013-01-31T00:00:00.000000Z", order=TIME)
    first = state_after(STATE, position, None, Greatest("id", None, NUMBER))
    read = state_after(STATE, position, first, Greatest("id", "42", NUMBER))
    unread = state_after(STATE, position, read, Greatest("id"))
    other = state_after(STATE, position, unread, Greatest("id", "2013-01-31", LOCAL_TIME))

    assert [(s.watermark, s.order) for s in (first, read, unread, other)] == [
        (None, "number"),
        ("42", "number"),
        ("42", "number"),
        ("2013-01-31", "local_time"),
    ]


def test_sequence_compares_by_path_or_as_its_values_look() -> None:
    assert order_by("path", "0042") is PATH
    assert order_by("path", None) is PATH
    assert order_by("(?P<n>.*)", None) is None
    assert [order_by("(?P<n>.*)", mark) for mark in ("42", "2013-01-31", "9a")] == [NUMBER, LOCAL_TIME, TEXT]


def test_watermark_goes_on_by_the_order_that_is_stored_with_it() -> None:
    position = Position(b"{}", None)
    first = state_after(STATE, position, None, Greatest("name", "9", PATH))
    assert state_after(STATE, position, first, Greatest("name", "10", PATH)).watermark == "9"
    assert state_after(STATE, position, first, Greatest("name", "10", NUMBER)).watermark == "10"
