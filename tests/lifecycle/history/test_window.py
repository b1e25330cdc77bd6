"""Promises of OPT-5 and RUN-12: a pause over a window of runs reads what they read, or says why it does not."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest

from airflow_bookmarks.core.errors import RunUnknownError, SourceSwitchedError
from airflow_bookmarks.core.run import Run
from airflow_bookmarks.core.text.instant import utc_now
from airflow_bookmarks.lifecycle.changes.change import rename_context
from airflow_bookmarks.lifecycle.maintenance.retention import collect
from airflow_bookmarks.lifecycle.run.session import RunSession
from airflow_bookmarks.sources.files.planner import FileSource
from airflow_bookmarks.sources.upstream.source import UpstreamSource
from tests.lifecycle.shop import FILES, Shop


def read_as(shop: Shop, run: RunSession, ctx: str, form: str = "csv") -> int:
    return len(run.plan(ctx, FileSource(FILES, [str(shop.raw)], format=form)))


def two_names(shop: Shop) -> None:
    """Read a file, rename the context, and read another one."""
    for name, ctx in (("a.txt", "raw"), ("b.txt", "flights")):
        shop.put(name, name)
        run = shop.begin()
        assert read_as(shop, run, ctx) == 1
        run.commit()
        if ctx == "raw":
            rename_context(shop.store, "copy", "raw", "flights", reason="a test", who="me")


def test_pause_window_reads_what_a_context_read_under_its_former_name(shop: Shop) -> None:
    two_names(shop)
    assert read_as(shop, shop.side("copy", "pause", "0", "2"), "flights") == 2


def test_pause_window_over_runs_that_never_read_a_context_says_so(shop: Shop, caplog: pytest.LogCaptureFixture) -> None:
    two_names(shop)
    side = shop.side("copy", "pause", "1", "2")
    assert len(side.plan("other", FileSource(FILES, [str(shop.root / "elsewhere")]))) == 0
    assert "none of the runs [2] read it, they read 'flights'" in caplog.text


def test_pause_window_does_not_read_files_as_another_format_or_kind(shop: Shop) -> None:
    two_names(shop)
    side = shop.side("copy", "pause", "0", "2")
    with pytest.raises(SourceSwitchedError):
        read_as(shop, side, "flights", "json")
    with pytest.raises(SourceSwitchedError):
        side.plan("flights", UpstreamSource(shop.store, "copy", "up"))


def test_pause_window_whose_first_run_is_collected_meanwhile_is_refused(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("a.txt", "b.txt"):
        shop.put(name, name)
        shop.run()
    read_runs = shop.store.runs

    def collected_first(job: str, **which: Any) -> Iterator[Run]:
        if which.get("after") == 0:  # the look at the window
            monkeypatch.setattr(shop.store, "runs", read_runs)
            collect(shop.store, clock=lambda: utc_now() + timedelta(days=100))
        return read_runs(job, **which)

    monkeypatch.setattr(shop.store, "runs", collected_first)
    with pytest.raises(RunUnknownError, match="was collected: runs up to 1 are older than the retention"):
        shop.side("copy", "pause", "0", "2")
    assert shop.store.runs is read_runs
