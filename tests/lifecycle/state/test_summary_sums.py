"""Promises of sums over summaries: what was removed, discarded and left out is told of a task with shards, too."""

from __future__ import annotations

from typing import Any

import pytest

from airflow_bookmarks.core.text.count import REMOVED_KEYS
from airflow_bookmarks.lifecycle.state.summary import Summary
from airflow_bookmarks.lifecycle.state.summary_sums import joined, joined_shards


def summary_of(**output: Any) -> Summary:
    written = {"rows": 2, "files": 1, "bytes": 10, **output}
    return Summary("copy", "test", "hour", "enable", outputs={"clean": written}, left_out={"map": {"no id": 1}})


@pytest.mark.parametrize("sums", [joined, lambda made: joined_shards("copy", made)], ids=["batches", "shards"])
def test_counts_of_an_output_are_added_up(sums: Any) -> None:
    discarded = {"discarded": True, "discarded_rows": 3, "discarded_files": 1}
    added = sums([summary_of(**{REMOVED_KEYS: 4}), summary_of(**{REMOVED_KEYS: 1}), summary_of(**discarded)])
    assert added.outputs == {"clean": {"rows": 6, "files": 3, "bytes": 30, REMOVED_KEYS: 5, **discarded}}
    assert added.left_out == {"map": {"no id": 3}}


@pytest.mark.parametrize("sums", [joined, lambda made: joined_shards("copy", made)], ids=["batches", "shards"])
def test_count_that_is_not_known_of_one_is_not_known_of_all(sums: Any) -> None:
    added = sums([summary_of(rows=None), summary_of(discarded=True, discarded_rows=None, discarded_files=1)])
    assert (added.outputs["clean"]["rows"], added.outputs["clean"]["discarded_rows"]) == (None, None)
    assert added.outputs["clean"]["files"] == 2


def test_shards_have_no_number_of_a_run_and_no_watermark() -> None:
    contexts = {"raw": {"rows": 1, "files": 1, "bytes": 1, "watermark_from": "a", "watermark_to": "b"}}
    added = joined_shards("copy", [Summary("copy.1", "test", "hour", "enable", run_number=7, contexts=contexts)])
    assert (added.job, added.run_number, added.contexts["raw"]["watermark_to"]) == ("copy", None, None)
