"""What a task says of its bookmark: what is refused, and what is taken for unset."""

from __future__ import annotations

from collections import deque
from typing import Any

import pytest

from airflow_bookmarks.core.errors import NameInvalidError, OptionError
from airflow_bookmarks.core.settings import Settings
from airflow_bookmarks.lifecycle.state.summary import Summary
from airflow_bookmarks.lifecycle.state.summary_sums import joined_shards
from airflow_bookmarks.operators.task.task_config import TaskConfig, untils

SUMMARY = {"job": "flights.clean", "run_number": "7", "epoch": "1"}


def test_bound_is_what_an_operator_returned_or_a_list_of_such() -> None:
    assert untils(SUMMARY) == {"flights.clean": 7}
    assert untils([SUMMARY, {"job": "other", "run_number": 3}]) == {"flights.clean": 7, "other": 3}
    assert untils('{"job": "flights.clean", "run_number": "7"}') == {"flights.clean": 7}


@pytest.mark.parametrize("nothing", [None, "", [], "null"])
def test_bound_that_says_nothing_is_no_bound(nothing: Any) -> None:
    assert untils(nothing) == {}


@pytest.mark.parametrize(
    "given",
    [
        "{'job': 'flights.clean', 'run_number': '7'}",  # a template without tojson
        "7",
        7,
        {"run_number": "7"},
        {"job": "flights.clean"},
        {"job": "flights.clean", "run_number": None},
        {"job": "flights.clean", "run_number": "-1"},
        [SUMMARY, {**SUMMARY, "run_number": "8"}],
    ],
)
def test_bound_that_names_no_run_is_refused(given: Any) -> None:
    with pytest.raises(OptionError, match="Nothing was read or changed"):
        untils(given)


def summary(job: str, number: int) -> Summary:
    return Summary(job, "test", "a run", "enable", run_number=number, epoch=1, version=number)


def test_bound_of_a_sharded_upstream_is_refused() -> None:
    made = joined_shards("flights.clean", [summary("flights.clean~shard0", 3), summary("flights.clean~shard1", 5)])

    with pytest.raises(OptionError, match="is of the sharded upstream"):
        untils(made.as_dict())


def test_sensor_that_was_released_by_a_reset_gives_no_bound() -> None:
    assert untils(Summary("flights.clean", "test", "", "enable", epoch=2, version=9).as_dict()) == {}


def test_results_of_a_mapped_task_are_a_list() -> None:
    assert untils(deque([SUMMARY, {"job": "other", "run_number": 3}])) == {"flights.clean": 7, "other": 3}


def test_bound_on_a_job_that_is_no_job_or_no_declared_upstream_is_refused() -> None:
    with pytest.raises(NameInvalidError):
        untils({"job": "a b", "run_number": "7"})
    with pytest.raises(OptionError, match="does not name"):
        TaskConfig(upstream=["other"], upstream_until=SUMMARY).resolve("copy", None)


def test_bounds_travel_as_json() -> None:
    assert Settings(upstream_until='{"flights.clean": 7}').untils() == {"flights.clean": 7}
    assert Settings().untils() == {}


@pytest.mark.parametrize("text", ["[7]", "7", "{", '{"flights.clean": "7"}', '{"flights.clean": -1}'])
def test_bounds_that_say_something_else_are_refused_by_the_driver(text: str) -> None:
    with pytest.raises(OptionError, match="upstream_until"):
        Settings(upstream_until=text).untils()
