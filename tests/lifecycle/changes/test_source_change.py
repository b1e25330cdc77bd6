"""Promise RUN-12: a context that is read from another source than its position is of, fails and shows both."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from airflow_bookmarks.core.errors import BookmarkError, SourceSwitchedError
from airflow_bookmarks.core.run import RunState
from airflow_bookmarks.lifecycle.changes.change import rewind
from airflow_bookmarks.lifecycle.protocol.failpoint import Failpoint
from airflow_bookmarks.lifecycle.run.replay import ReplayRun
from airflow_bookmarks.sinks.staging import Mode
from airflow_bookmarks.sources.files.planner import FileSource
from airflow_bookmarks.sources.upstream.source import UpstreamSource
from tests.lifecycle.run.test_upstream import Stopped, stopping_at
from tests.lifecycle.shop import FILES, Shop


def two_upstreams(shop: Shop) -> None:
    for name in "ab":
        shop.put(f"{name}.txt", name)
        shop.run("one")
        shop.run("two")
    shop.run("down", upstream="one")


def test_other_upstream_under_the_same_context_is_an_error_and_nothing_is_lost(shop: Shop) -> None:
    two_upstreams(shop)
    run = shop.begin("down")
    with pytest.raises(SourceSwitchedError, match=r"'upstream:one'.*'upstream:two'"):
        run.plan("raw", UpstreamSource(shop.store, "down", "two"))
    plan = run.plan("other", UpstreamSource(shop.store, "down", "two"))
    assert len(plan) == 2
    run.abort("a test")


def test_other_upstream_can_be_started_from_its_beginning(shop: Shop) -> None:
    two_upstreams(shop)
    run = shop.begin("down")
    plan = run.plan("raw", UpstreamSource(shop.store, "down", "two"), on_source_change="reset")
    assert len(plan) == 2
    run.commit()
    run = shop.begin("down")
    assert run.plan("raw", UpstreamSource(shop.store, "down", "two")).is_empty
    run.abort("a test")


def test_position_of_one_upstream_is_never_kept_for_another(shop: Shop) -> None:
    two_upstreams(shop)
    run = shop.begin("down")
    with pytest.raises(SourceSwitchedError):
        run.plan("raw", UpstreamSource(shop.store, "down", "two"), on_source_change="keep")
    run.abort("a test")


def test_other_folder_under_the_same_context_is_an_error_unless_the_position_is_kept(shop: Shop) -> None:
    shop.put("a.txt", "a")
    shop.run()
    moved = shop.root / "moved"
    moved.mkdir()
    (moved / "b.txt").write_text("b")
    run = shop.begin()
    source = FileSource(FILES, [str(moved), str(shop.raw)])
    with pytest.raises(SourceSwitchedError):
        run.plan("raw", source)
    plan = run.plan("raw", source, on_source_change="keep")
    assert plan.files.paths == [str(moved / "b.txt")]
    run.abort("a test")


def read_as(shop: Shop, name: str | None, **kwargs: Any) -> list[str]:
    """Make a run that reads the raw folder as a format; return the names of the files it reads."""
    run = shop.begin()
    try:
        plan = run.plan("raw", FileSource(FILES, [str(shop.raw)], format=name), **kwargs)
    except BookmarkError as error:
        run.abort(str(error))
        raise
    run.commit()
    return [path.rpartition("/")[2] for path in plan.files.paths]


def test_other_format_under_the_same_context_is_an_error_unless_somebody_says_what_to_do(shop: Shop) -> None:
    shop.put("a", "a")
    assert read_as(shop, "csv") == ["a"]
    shop.put("b", "b")
    before = shop.store.head("copy").contexts
    for _ in range(2):
        with pytest.raises(SourceSwitchedError, match=r"raw as csv'.*raw as json'"):
            read_as(shop, "json")
    assert shop.store.head("copy").contexts == before

    assert read_as(shop, "json", on_source_change="keep") == ["b"]
    assert read_as(shop, "json") == []
    with pytest.raises(SourceSwitchedError, match=r"raw as json'.*raw as csv'"):
        read_as(shop, "csv")
    assert read_as(shop, "csv", on_source_change="reset") == ["a", "b"]


def test_position_of_which_no_format_is_known_goes_on_in_any(shop: Shop) -> None:
    shop.put("a", "a")
    assert read_as(shop, None) == ["a"]
    shop.put("b", "b")
    assert read_as(shop, "csv") == ["b"]
    shop.put("c", "c")
    with pytest.raises(SourceSwitchedError):
        read_as(shop, "json")


def test_replay_as_another_format_is_an_error(shop: Shop) -> None:
    shop.put("a", "a")
    read_as(shop, "csv")
    replay = ReplayRun.begin_replay(shop.store, "copy", shop.identity(), shop.environment, 1)
    with pytest.raises(SourceSwitchedError, match=r"raw as csv'.*raw as json'"):
        replay.plan("raw", FileSource(FILES, [str(shop.raw)], format="json"))
    replay.abort("a test")


def test_other_kind_of_source_is_an_error(shop: Shop) -> None:
    two_upstreams(shop)
    run = shop.begin("down")
    with pytest.raises(SourceSwitchedError, match="files:"):
        run.plan("raw", FileSource(FILES, [str(shop.raw)]), on_source_change="keep")
    run.abort("a test")


def test_run_undone_before_its_publish_hides_nothing_from_consumers(shop: Shop) -> None:
    shop.mode = Mode.OVERWRITE_PARTITIONS
    good = shop.put("a.txt", "good")
    shop.put("b.txt", "b")
    shop.run("up")
    good.write_text("bad!!\n")
    with pytest.raises(Stopped):
        stopping_at(shop, Failpoint.COMMITTED).run("up", run_id="dies")
    shop.put("a.txt", "good")
    rewind(shop.store, "up", 1, reason="a test", who="me", force=True)
    shop.run("up")
    assert sorted(shop.run("down", upstream="up")[0]) == ["b", "good"]


def test_driver_whose_publish_was_dropped_moves_and_deletes_nothing_after_the_next_run(shop: Shop) -> None:
    shop.mode = Mode.OVERWRITE_PARTITIONS
    shop.put("a.txt", "a1")
    shop.run()
    shop.put("a.txt", "a2", "more")

    def rewound_and_done_again(at: Failpoint) -> None:
        if at is Failpoint.PUBLISHING:
            rewind(shop.store, "copy", 1, reason="a test", who="me", force=True)
            shop.run()

    slow = replace(shop, environment=replace(shop.environment, at=rewound_and_done_again))
    with pytest.raises(BookmarkError):
        slow.run(run_id="slow")
    assert shop.target_lines() == {"a2": 1, "more": 1}
    states = [run.state for run in shop.store.runs("copy")]
    assert states[-1] is RunState.PUBLISHED
