"""Who waits for a long listing is told how far it is, and nobody is told of a quick one."""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import UTC, datetime
from itertools import count
from pathlib import Path

import pytest

from airflow_bookmarks.files.local import LocalFileSystem
from airflow_bookmarks.files.progress import EVERY_S, Progress
from airflow_bookmarks.sources.files.scan import scan_folders
from airflow_bookmarks.sources.files.scan_filter import ScanFilter, ScanRoot


def steps(seconds: float) -> Callable[[], float]:
    """Return a clock on which so much passes between two looks at it."""
    times = count()
    return lambda: 1000.0 + seconds * next(times)


def test_long_listing_says_each_ten_seconds_how_much_it_has_seen(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    progress = Progress("/lake/raw", monotonic=steps(EVERY_S / 4))

    for _ in range(9):
        progress.saw(1000)

    assert caplog.messages == [
        "bookmark: listing /lake/raw: 4000 entries so far, after 10 s",
        "bookmark: listing /lake/raw: 8000 entries so far, after 20 s",
    ]


def test_quick_listing_says_nothing(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    progress = Progress("/lake/raw", monotonic=steps(EVERY_S / 100))

    for _ in range(99):
        progress.saw(1000)

    assert caplog.messages == []


def test_look_at_several_folders_counts_all_of_them(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    for name in ("a/1", "a/2", "b/1"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    places = [ScanRoot(f"{tmp_path}/a"), ScanRoot(f"{tmp_path}/b")]

    scan_folders(LocalFileSystem(), places, ScanFilter(), listed_at=datetime.now(UTC), monotonic=steps(EVERY_S))

    assert caplog.messages == [
        f"bookmark: listing {tmp_path}/a and more: 2 entries so far, after 10 s",
        f"bookmark: listing {tmp_path}/a and more: 3 entries so far, after 20 s",
    ]
