"""What a run knows of its contexts: kept and checked without a store, a source or a file system."""

from __future__ import annotations

from typing import Any

import pytest

from airflow_bookmarks.core.errors import MisuseError
from airflow_bookmarks.core.files.file_plan import FilePlan
from airflow_bookmarks.core.selection.listing import FileInfo, Listing
from airflow_bookmarks.lifecycle.run.use.inputs import PlannedContext, RunInputs
from airflow_bookmarks.sources.source import PlanInput

SOURCE: Any = object()


def planned(files: int = 1) -> PlannedContext:
    found = Listing.of([FileInfo(f"/raw/{number}.csv", 10, 1_000) for number in range(files)])
    return PlannedContext(SOURCE, PlanInput(), FilePlan(found, ("/raw",), listed=files, known=0))


def inputs(**contexts: PlannedContext) -> RunInputs:
    made = RunInputs("clean")
    for ctx, context in contexts.items():
        made.add(ctx, context)
    return made


def test_context_is_read_once() -> None:
    made = inputs(raw=planned())

    made.check_new("people")
    with pytest.raises(MisuseError, match=r"'clean': context 'raw' is read twice.*a name of its own"):
        made.check_new("raw")


def test_run_has_input_as_soon_as_one_context_has() -> None:
    assert not inputs().has_input
    assert not inputs(raw=planned(0)).has_input
    assert inputs(raw=planned(0), people=planned(2)).has_input


def test_contexts_keep_the_order_in_which_they_were_planned() -> None:
    made = inputs(raw=planned(1), people=planned(2))

    assert [(ctx, plan.amount.count) for ctx, plan in made.plans.items()] == [("raw", 1), ("people", 2)]
    assert made.sources == {"raw": SOURCE, "people": SOURCE}


def test_plan_that_lost_a_file_takes_the_place_of_the_former_one() -> None:
    made = inputs(raw=planned(2))
    made["raw"].plan = planned(0).plan

    assert not made.has_input
    assert made.plans["raw"].is_empty


def test_context_that_could_not_be_read_is_named_with_its_error() -> None:
    made = inputs(raw=planned(), people=planned())
    made.check_read("committed")
    made["people"].failure = "OSError: no answer"

    with pytest.raises(
        MisuseError, match=r"'people' was planned and not read: OSError: no answer\. Nothing was published"
    ):
        made.check_read("published")


def test_context_that_was_not_planned_has_nothing_to_learn_of() -> None:
    with pytest.raises(KeyError):
        inputs()["raw"].rows = 1
