"""What a read may be told together: checked before anything is read."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from airflow_bookmarks.core.errors import OptionError
from airflow_bookmarks.core.selection.bound import UNBOUND, Bound
from airflow_bookmarks.lifecycle.protocol.source_cleanup import Disposal
from airflow_bookmarks.sources.files.options import FileOptions
from airflow_bookmarks.spark.contexts.options import FileReadOptions, ReadOptions, ReadShare

BOUNDS = [{"max_files": 1}, {"max_bytes": 1}, {"max_rows": 1}, {"window": timedelta(hours=1)}]


def share_of(bound: Bound) -> ReadShare:
    return ReadShare(None, None, None, None, bound, lambda: datetime.now(UTC))


@pytest.mark.parametrize("bound", BOUNDS, ids=lambda bound: next(iter(bound)))
def test_starting_over_at_other_columns_in_parts_is_refused(bound: Any) -> None:
    with pytest.raises(OptionError, match=rf"bound \({next(iter(bound))},.*Nothing was read.*'fail'.*reset.*drain"):
        ReadOptions(on_schema_change="reset").check_ends(Bound(**bound))


@pytest.mark.parametrize("choice", ["fail", "accept"])
def test_other_choices_go_with_a_bound(choice: Any) -> None:
    ReadOptions(on_schema_change=choice).check_ends(Bound(max_files=1))


def test_starting_over_without_a_bound_is_no_contradiction() -> None:
    ReadOptions(on_schema_change="reset").check_ends(UNBOUND)


def test_bound_of_a_read_comes_before_that_of_its_loop() -> None:
    loop, own = Bound(max_files=1), Bound(max_bytes=5)
    assert share_of(loop).bounded(own) == own
    assert share_of(loop).bounded(UNBOUND) == loop


def test_option_that_is_not_the_default_is_known_by_name() -> None:
    selection = FileOptions(bound=Bound(max_files=1), sequence="path", empties=True, on_schema_change="accept")
    given = FileReadOptions(
        selection=selection, disposal=Disposal("delete"), on_missing="skip", read_by="paths"
    ).given()

    assert given == ["sequence", "max_files", "on_published", "on_missing", "read_by"]
    assert FileReadOptions(selection=FileOptions(on_schema_change="reset")).given() == []
