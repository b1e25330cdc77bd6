"""Promise OPT-4: a pause or disable run deletes nothing that runs have published, unless it is asked to by name."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from airflow_bookmarks.core.errors import ChangeRefusedError, PublishError, SourceChangedError
from airflow_bookmarks.core.text.instant import utc_now
from airflow_bookmarks.files.local import LocalFileSystem
from airflow_bookmarks.lifecycle.maintenance.retention import collect
from airflow_bookmarks.lifecycle.run.replay import ReplayRun
from airflow_bookmarks.sinks.staging import Mode, StagingRequest, collect_staged
from airflow_bookmarks.sources.files.planner import FileSource
from tests.aborting import aborted_on_error
from tests.lifecycle.shop import FILES, Shop


def published_twice(shop: Shop) -> None:
    """Publish two runs, of which a consumer has read the first."""
    shop.put("a.txt", "a")
    shop.run("up")
    shop.run("down", upstream="up")
    shop.put("b.txt", "b")
    shop.run("up")


def overwrite(shop: Shop, option: str, *, is_asked_for: bool, mode: Mode = Mode.OVERWRITE) -> None:
    """Let a side run of the upstream replace its target by one file."""
    run = shop.side("up", option)
    run.plan("raw", FileSource(FILES, [str(shop.raw)]))
    target = str(shop.root / "up")
    place = StagingRequest(
        "files", target, stats={"mode": mode.value}, when_empty="publish", overwrites_published=is_asked_for
    )
    part = Path(run.place("out", place)) / "file=b" / "part-0.txt"
    part.parent.mkdir(parents=True)
    part.write_text("made beside\n")
    folder = str(part.parent.parent)
    run.staged("out", collect_staged(FILES, folder, target, run.file_token, mode, rows=1, schema=None))
    with aborted_on_error(run):
        run.commit()


@pytest.mark.parametrize("option", ["pause", "disable"])
@pytest.mark.parametrize("mode", [Mode.OVERWRITE, Mode.OVERWRITE_PARTITIONS])
def test_overwrite_of_what_runs_published_is_refused(shop: Shop, option: str, mode: Mode) -> None:
    published_twice(shop)
    before = shop.target_lines("up")
    with pytest.raises(PublishError, match=r"that runs have published.*overwrite_published=True"):
        overwrite(shop, option, is_asked_for=False, mode=mode)
    assert (shop.target_lines("up"), shop.staged_files("up"), shop.store.sides("up")) == (before, [], [])
    assert shop.run("down", upstream="up")[0] == ["b"]


@pytest.mark.parametrize("option", ["pause", "disable"])
def test_consumer_counts_what_was_replaced_by_request(shop: Shop, option: str) -> None:
    published_twice(shop)
    overwrite(shop, option, is_asked_for=True)
    assert shop.target_lines("up") == {"made beside": 1}
    lines, summary = shop.run("down", upstream="up")
    assert (lines, summary.contexts["raw"]["skipped"]) == ([], {"replaced": 1})
    shop.put("c.txt", "c")
    shop.run("up")
    assert shop.run("down", upstream="up")[0] == ["c"]


def test_what_was_replaced_is_known_for_good(shop: Shop) -> None:
    published_twice(shop)
    overwrite(shop, "disable", is_asked_for=True)
    (record,) = shop.store.sides("up")
    assert "expires_at" not in record
    collect(shop.store, clock=lambda: utc_now() + timedelta(days=60))
    assert shop.run("down", upstream="up")[0] == []


@pytest.mark.parametrize("mode", [Mode.APPEND, Mode.OVERWRITE])
def test_run_whose_files_were_replaced_by_request_is_not_replayed_beside_what_took_their_place(
    shop: Shop, mode: Mode
) -> None:
    shop.mode = mode
    shop.put("a.txt", "a")
    shop.run("up")
    overwrite(shop, "pause", is_asked_for=True)
    with pytest.raises(ChangeRefusedError, match="a pause or disable run has replaced some of its files since"):
        ReplayRun.begin_replay(shop.store, "up", shop.identity(), shop.environment, 1)
    assert shop.target_lines("up") == {"made beside": 1}
    shop.put("b.txt", "b")
    shop.run("up")
    replay = ReplayRun.begin_replay(shop.store, "up", shop.identity(), shop.environment, 2)
    shop.copy(replay)
    replay.commit()
    assert shop.target_lines("up")["b"] == 1


def test_file_that_somebody_else_removed_is_an_error_all_the_same(shop: Shop) -> None:
    published_twice(shop)
    for path in (shop.root / "up").rglob("run-2.*"):
        path.unlink()
    overwrite(shop, "disable", is_asked_for=True)
    run = shop.begin("down")
    with pytest.raises(SourceChangedError, match="are gone"):
        shop.copy(run, upstream="up")
    run.abort("a test")


def test_side_run_that_died_between_its_note_and_its_deletes_takes_nothing_from_consumers(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    published_twice(shop)
    with monkeypatch.context() as patch:
        patch.setattr(LocalFileSystem, "delete", denied)
        with pytest.raises(PublishError, match="denied"):
            overwrite(shop, "disable", is_asked_for=True)
    assert shop.run("down", upstream="up")[0] == ["b"]


def denied(*_: Any) -> bool:
    raise PermissionError("denied")


def test_what_side_runs_wrote_may_be_replaced_by_the_next(shop: Shop) -> None:
    shop.put("a.txt", "a")
    side = replace(shop, mode=Mode.OVERWRITE, overwrites_published=False)
    for _ in range(2):
        run = side.side("up", "disable")
        side.copy(run)
        run.commit()
    assert shop.target_lines("up") == {"a": 1}
