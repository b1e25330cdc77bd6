"""What a read may be told together: checked before anything is read."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from airflow_bookmarks.core.errors import OptionError
from airflow_bookmarks.core.selection.bound import Bound
from airflow_bookmarks.lifecycle.protocol.source_cleanup import Disposal
from airflow_bookmarks.sources.files.options import FileOptions
from airflow_bookmarks.spark.read_options import Batches, ReadOptions

BOUNDS = [{"max_files": 1}, {"max_bytes": 1}, {"max_rows": 1}, {"window": timedelta(hours=1)}]


def options(files: FileOptions) -> ReadOptions:
    return ReadOptions(
        files=files,
        disposal=Disposal(),
        on_missing="error",
        on_upstream_rewind="fail",
        on_source_change="error",
        moved_from=None,
        on_corrupt="error",
        watermark_column=None,
        shard_by="path",
        infer_schema="sample",
        count_rows=False,
        read_by=None,
    )


@pytest.mark.parametrize("bound", BOUNDS, ids=lambda bound: next(iter(bound)))
def test_starting_over_at_other_columns_in_parts_is_refused(bound: Any) -> None:
    files = FileOptions(on_schema_change="reset", bound=Bound(**bound))
    with pytest.raises(OptionError, match=rf"bound \({next(iter(bound))},.*Nothing was read.*'fail'.*reset.*drain"):
        options(files)


def test_bound_of_a_loop_counts_as_well() -> None:
    unbound = FileOptions(on_schema_change="reset")
    with pytest.raises(OptionError, match=r"bound \(max_files,"):
        options(Batches(Bound(max_files=1)).bounded(unbound))


@pytest.mark.parametrize("choice", ["fail", "accept"])
def test_other_choices_go_with_a_bound(choice: Any) -> None:
    assert options(FileOptions(on_schema_change=choice, bound=Bound(max_files=1))).files.bound.is_given


def test_starting_over_without_a_bound_is_no_contradiction() -> None:
    assert options(FileOptions(on_schema_change="reset")).files.on_schema_change == "reset"
