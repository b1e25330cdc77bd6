"""Bookmarks as Glue shows them."""

from __future__ import annotations

import json

import pytest

from airflow_bookmarks.core.errors import (
    JobUnknownError,
    RunUnknownError,
)
from airflow_bookmarks.lifecycle.changes.naming import delete
from airflow_bookmarks.lifecycle.maintenance.transfer.glue_entry import as_glue_entry
from tests.lifecycle.shop import Shop


def test_entry_has_the_shape_of_glue(busy: Shop) -> None:
    entry = as_glue_entry(busy.store, "copy")

    bookmark = json.loads(entry.pop("JobBookmark"))
    last, before = busy.store.committed_run("copy", 4), busy.store.committed_run("copy", 2)
    assert last is not None
    assert before is not None
    assert entry == {
        "JobName": "copy",
        "Version": busy.store.head("copy").version,
        "Run": 5,
        "Attempt": 0,
        "PreviousRunId": before.run_id,
        "RunId": last.run_id,
    }
    state = bookmark["raw"]
    assert state["jsonClass"] == "HadoopDataSourceJobBookmarkState"
    assert {type(value) for value in state["timestamps"].values()} == {str}
    assert state["timestamps"]["RUN"] == "4"


def test_entry_of_a_run_is_that_of_then(busy: Shop) -> None:
    first = busy.store.committed_run("copy", 1)
    assert first is not None
    entry = as_glue_entry(busy.store, "copy", first.run_id)
    assert (entry["Run"], entry["RunId"], "PreviousRunId" in entry) == (2, first.run_id, False)
    with pytest.raises(RunUnknownError):
        as_glue_entry(busy.store, "copy", "9")
    with pytest.raises(JobUnknownError):
        as_glue_entry(busy.store, "no.such")


def test_entry_after_a_deletion_has_no_run(busy: Shop) -> None:
    delete(busy.store, "lake.copy", typed_name="lake.copy", reason="gone", who="ann")
    entry = as_glue_entry(busy.store, "copy")
    assert (entry["Run"], entry["JobBookmark"], "RunId" in entry) == (1, "{}", False)


def test_entry_of_a_consumer_names_the_run_of_its_upstream(busy: Shop) -> None:
    (state,) = json.loads(as_glue_entry(busy.store, "report")["JobBookmark"]).values()
    assert (state["jsonClass"], state["values"]["WATERMARK"]) == ("UpstreamJobBookmarkState", "4")
