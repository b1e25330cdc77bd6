"""Promise GLUE-16: `get_job_bookmark` and `reset_job_bookmark`, with Glue's parameters and answers."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from airflow_bookmarks.core.errors import OptionError
from airflow_bookmarks.core.job import RunIdentity
from airflow_bookmarks.files.opener import open_one_filesystem
from airflow_bookmarks.glue.bookmarks import EntityNotFoundException, get_job_bookmark, reset_job_bookmark
from airflow_bookmarks.lifecycle.protocol.lease import RunEnvironment
from airflow_bookmarks.lifecycle.run.enabled import ActiveRun
from airflow_bookmarks.sources.files.options import FileOptions
from airflow_bookmarks.sources.files.planner import FileSource
from airflow_bookmarks.store.bookmark_store import BookmarkStore, open_store

NAME, KEY = "nightly orders", "nightly~20orders"


@pytest.fixture
def store(tmp_path: Path) -> BookmarkStore:
    """A job of two runs, each with one file."""
    store = open_store(f"sqlite:///{tmp_path}/bookmarks.db?create=true")
    store.init()
    folder = tmp_path / "raw"
    folder.mkdir()
    files = open_one_filesystem([str(folder)])
    for number in (1, 2):
        (folder / f"{number}.csv").write_text("id\n", encoding="utf-8")
        run = ActiveRun.begin(store, KEY, RunIdentity(f"jr_{number}"), RunEnvironment())
        run.plan("data~20source", FileSource(files, [files.canonical(str(folder))], FileOptions()))
        run.commit()
    return store


def test_bookmark_has_the_shape_of_glue(store: BookmarkStore) -> None:
    entry = get_job_bookmark(JobName=NAME, store=store)["JobBookmarkEntry"]
    contexts = json.loads(entry["JobBookmark"])
    assert {name: entry[name] for name in ("JobName", "Run", "Attempt", "PreviousRunId", "RunId")} == {
        "JobName": NAME,
        "Run": 3,
        "Attempt": 0,
        "PreviousRunId": "jr_1",
        "RunId": "jr_2",
    }
    assert {ctx: state["jsonClass"] for ctx, state in contexts.items()} == {
        "data source": "HadoopDataSourceJobBookmarkState"
    }


def test_bookmark_of_a_run_is_that_of_then(store: BookmarkStore) -> None:
    entry = get_job_bookmark(NAME, "jr_1", store=store)["JobBookmarkEntry"]
    assert (entry["RunId"], entry["Run"], "PreviousRunId" in entry) == ("jr_1", 2, False)


def test_version_grows_with_each_run(store: BookmarkStore) -> None:
    first, last = (get_job_bookmark(NAME, run, store=store)["JobBookmarkEntry"]["Version"] for run in ("jr_1", "jr_2"))
    assert first < last


def test_reset_goes_back_to_the_beginning_with_a_reason(store: BookmarkStore) -> None:
    entry = reset_job_bookmark(NAME, store=store, who="ann")["JobBookmarkEntry"]
    assert (entry["Run"], entry["JobBookmark"], "RunId" in entry) == (1, "{}", False)
    (event,) = [each for each in store.events(KEY) if each["kind"] == "reset"]
    assert (event["why"], event["who"]) == ("reset-job-bookmark of the Glue layer", "ann")


def test_reset_to_a_run_is_a_rewind(store: BookmarkStore) -> None:
    entry = reset_job_bookmark(NAME, RunId="jr_1", store=store, reason="the second was wrong")["JobBookmarkEntry"]
    assert (entry["RunId"], entry["Run"]) == ("jr_1", 2)


def test_unknown_job_or_run_is_not_found(store: BookmarkStore) -> None:
    for call in (get_job_bookmark, reset_job_bookmark):
        with pytest.raises(EntityNotFoundException, match=r"EntityNotFoundException: .*no\.such"):
            call("no.such", store=store)
        with pytest.raises(EntityNotFoundException, match="jr_9"):
            call(NAME, "jr_9", store=store)


def test_store_is_that_of_the_environment(
    store: BookmarkStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AIRFLOW_BOOKMARKS_STORE", f"sqlite:///{tmp_path}/bookmarks.db")
    assert get_job_bookmark(NAME)["JobBookmarkEntry"]["Run"] == 3
    monkeypatch.delenv("AIRFLOW_BOOKMARKS_STORE")
    with pytest.raises(OptionError, match="no store"):
        get_job_bookmark(NAME)
