"""Promise AIR-4, below Airflow: a run that reads nothing is committed without Spark, and is a run like any other."""

from __future__ import annotations

import shutil

import pytest

from airflow_bookmarks.core.errors import JobBusyError, StoreUnavailableError
from airflow_bookmarks.core.run import RunState
from airflow_bookmarks.lifecycle.inspect.pending import pending
from airflow_bookmarks.lifecycle.maintenance.doctor import examine
from airflow_bookmarks.lifecycle.run.empty import commit_empty
from airflow_bookmarks.lifecycle.state.summary import Summary
from airflow_bookmarks.sources.upstream.source import UpstreamSource
from airflow_bookmarks.store.bookmark_store import BookmarkStore
from tests.lifecycle.shop import Shop


def empty(shop: Shop, job: str = "copy") -> Summary | None:
    return commit_empty(shop.store, job, shop.identity(), shop.environment)


def test_worker_commits_a_run_that_reads_nothing(shop: Shop) -> None:
    shop.put("a.txt", "a")
    shop.run()
    before = shop.store.head("copy").contexts["raw"].watermark

    summary = empty(shop)

    assert summary is not None
    assert (summary.run_number, summary.is_empty, summary.is_published) == (2, True, True)
    assert summary.contexts["raw"]["files"] == 0
    head = shop.store.head("copy")
    assert (head.run_number, head.published, head.data_run_number, head.lease) == (2, 2, 1, None)
    assert head.contexts["raw"].watermark == before
    assert examine(shop.store) == []


def test_run_after_empty_ones_reads_what_is_new_and_nothing_else(shop: Shop) -> None:
    shop.put("a.txt", "a")
    shop.run()
    for _ in range(3):
        assert empty(shop) is not None
        assert pending(shop.store, "copy").is_empty
    shop.put("b.txt", "b")

    assert shop.run()[0] == ["b"]
    assert shop.target_lines() == {"a": 1, "b": 1}


def test_what_came_between_the_looks_is_left_to_spark(shop: Shop) -> None:
    shop.put("a.txt", "a")
    shop.run()
    assert pending(shop.store, "copy").is_empty
    shop.put("b.txt", "b")

    assert empty(shop) is None

    failed = [run for run in shop.store.runs("copy") if run.state is RunState.FAILED]
    assert [run.error for run in failed] == [
        "the worker does not commit this as empty: 1 file of context 'raw' came meanwhile"
    ]
    assert shop.store.head("copy").lease is None
    assert shop.run()[0] == ["b"]


def test_source_that_can_not_be_looked_at_is_left_to_spark(shop: Shop) -> None:
    shop.put("a.txt", "a")
    shop.run()
    shutil.rmtree(shop.raw)

    assert empty(shop) is None
    assert shop.store.head("copy").run_number == 1


def test_job_that_never_ran_is_left_to_spark(shop: Shop) -> None:
    assert empty(shop) is None


def test_job_that_another_run_holds_is_not_taken(shop: Shop) -> None:
    shop.put("a.txt", "a")
    shop.run()
    run = shop.begin()

    with pytest.raises(JobBusyError):
        empty(shop)
    run.abort("stopped")


def test_consumer_moves_on_over_runs_without_data(shop: Shop) -> None:
    shop.put("a.txt", "a")
    shop.run()
    shop.run("report", upstream="copy")
    shop.run()  # nothing is new: a run without data

    assert empty(shop, "report") is not None

    edge = shop.store.edge("copy", "report")
    assert edge is not None
    assert edge.run_number == 2
    shop.put("b.txt", "b")
    shop.run()
    assert shop.run("report", upstream="copy")[0] == ["b"]


def test_empty_run_that_can_not_be_committed_leaves_the_job_free(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    shop.put("a.txt", "a")
    shop.run()

    def outage(*_: object, **__: object) -> None:
        raise StoreUnavailableError("no answer")

    monkeypatch.setattr(BookmarkStore, "commit", outage)
    with pytest.raises(StoreUnavailableError):
        empty(shop)

    assert (shop.store.head("copy").lease, shop.store.head("copy").run_number) == (None, 1)


def test_columns_of_the_last_read_stay_known_behind_an_empty_run(shop: Shop) -> None:
    shop.put("a.txt", "a")
    shop.run()
    reader = shop.begin("after")
    reader.plan("in", UpstreamSource(shop.store, "after", "copy"))
    reader.set_schema("in", '{"fields":[]}')
    reader.commit()
    shop.run()  # an empty run of the upstream, which moves the position of its consumer
    assert commit_empty(shop.store, "after", shop.identity(), shop.environment) is not None
    following = shop.begin("after")
    following.plan("in", UpstreamSource(shop.store, "after", "copy"))
    assert following.schema_before("in") == '{"fields":[]}'
