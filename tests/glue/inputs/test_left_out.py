"""Records that a script's frames leave out: counted on the record of the run, by step and reason."""

from __future__ import annotations

from typing import Any

import pytest

from airflow_bookmarks.glue.context import GlueContext
from airflow_bookmarks.glue.transforms.classes import Filter, Map
from airflow_bookmarks.lifecycle.inspect.runs import history
from airflow_bookmarks.store.bookmark_store import BookmarkStore
from tests.glue.running import Script

pytestmark = pytest.mark.spark

COUNTS = {
    "raw": {"error records": 2},
    "mapped": {"dropped records": 1, "error records": 1},
    "kept": {"error records": 1},
}


def _cleaned(rec: Any) -> Any:
    if rec["id"] == 1:
        return None
    return {"id": rec["id"], "half": 6 // (rec["id"] - 2)}


def _is_kept(rec: Any) -> bool:
    if rec["id"] == 3:
        raise RuntimeError("three is refused")
    return True


def _body(script: Script) -> Any:
    def body(context: GlueContext) -> None:
        raw = context.create_dynamic_frame.from_options(
            "file", {"paths": [script.path("raw")]}, "json", transformation_ctx="raw"
        )
        mapped = Map.apply(raw, _cleaned, transformation_ctx="mapped")
        kept = Filter.apply(mapped, _is_kept, transformation_ctx="kept")
        context.write_dynamic_frame.from_options(kept, "file", {"path": script.path("out")}, "json")

    return body


@pytest.fixture
def lines(script: Script) -> None:
    script.put("raw/a.json", '{"id": 1}', "no JSON", '{"id": 2}', "[3]", '{"id": 3}', '{"id": 4}')


@pytest.mark.seldom
@pytest.mark.usefixtures("lines")
def test_records_left_out_are_counted_on_the_record_of_the_run(script: Script, store: BookmarkStore) -> None:
    script.run(_body(script))

    job = script.glue_run.job
    assert job is not None
    assert job.summary is not None
    assert job.summary["left_out"] == COUNTS
    (row,) = history(store, "script")
    assert row["left_out"] == COUNTS
    assert row["rows_written"] == 1


@pytest.mark.seldom
@pytest.mark.usefixtures("lines")
def test_records_left_out_of_a_run_that_moves_nothing_are_in_its_summary(script: Script) -> None:
    script.run(_body(script), "pause")

    job = script.glue_run.job
    assert job is not None
    assert job.summary is not None
    assert job.summary["left_out"] == COUNTS


@pytest.mark.seldom
def test_run_that_leaves_nothing_out_says_nothing_of_it(script: Script, store: BookmarkStore) -> None:
    script.put("raw/a.json", '{"id": 4}')
    script.run(_body(script))

    assert script.glue_run.job is not None
    assert "left_out" not in (script.glue_run.job.summary or {})
    assert history(store, "script")[0]["left_out"] == {}
