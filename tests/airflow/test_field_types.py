"""Types of what a run tells: its summary (XCom) has run number, epoch and version as text, all else has numbers."""

from __future__ import annotations

import json
from typing import Any

import pytest

from airflow_bookmarks.core.rules.until import until_of
from airflow_bookmarks.lifecycle.inspect.runs import history
from airflow_bookmarks.lifecycle.state.summary import Summary
from airflow_bookmarks.operators.task.task_config import untils
from tests.lifecycle.conftest import shop, store  # noqa: F401  # fixtures
from tests.lifecycle.shop import Shop

_AS_TEXT = {"run_number", "epoch", "version"}


def both(shop: Shop) -> tuple[dict[str, Any], dict[str, Any]]:  # noqa: F811
    """Return what XCom and history say of one real run, as JSON has it."""
    shop.put("a.txt", "a")
    shop.run()
    (run,) = shop.store.runs("copy")
    (row,) = history(shop.store, "copy")
    row["run_number"] = row["number"]
    return json.loads(json.dumps(Summary.of(run, "test", "copy").as_dict())), json.loads(json.dumps(row))


def common(one: Any, other: Any, path: str = "") -> list[tuple[str, Any, Any]]:
    """Return each field that two values share, down to what holds no other, with both of its values."""
    if not isinstance(one, dict) or not isinstance(other, dict):
        return [(path.removeprefix("."), one, other)]
    return [pair for name in one.keys() & other.keys() for pair in common(one[name], other[name], f"{path}.{name}")]


def test_field_that_xcom_and_history_share_has_one_value_and_one_type_but_for_three_numbers(
    shop: Shop,  # noqa: F811
) -> None:
    shared = common(*both(shop))
    assert _AS_TEXT | {"run_id", "is_empty", "contexts.raw.files", "outputs.out.files"} <= {name for name, *_ in shared}
    for name, of_xcom, of_history in shared:
        if name in _AS_TEXT:
            assert (type(of_xcom), of_xcom) == (str, str(of_history)), name
        assert name in _AS_TEXT or (type(of_xcom), of_xcom) == (type(of_history), of_history), name


@pytest.mark.parametrize("number", ["7", 7])
def test_summary_is_taken_as_input_with_numbers_as_text_and_as_numbers(number: str | int) -> None:
    summary = {"job": "flights.clean", "run_number": number, "epoch": number, "version": number}
    assert until_of(summary, "flights.clean") == 7
    assert untils(summary) == untils([summary]) == untils(json.dumps(summary)) == {"flights.clean": 7}
