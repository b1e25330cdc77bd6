"""Which browser is taken, and when it is no use to go on without one."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.ui import chromium


@pytest.fixture
def program(tmp_path: Path) -> Path:
    """Return a program that is named like Chromium."""
    path = tmp_path / "chromium"
    path.touch(mode=0o755)
    return path


def test_browser_of_the_path_is_found(program: Path) -> None:
    assert chromium.find({"PATH": str(program.parent)}) == str(program)


def test_browser_that_is_named_is_taken_before_that_of_the_path(program: Path) -> None:
    named = program.rename(program.with_name("mine"))

    assert chromium.find({"PATH": "/usr/bin", "CHROMIUM": str(named)}) == str(named)


def test_browser_that_is_named_and_not_there_is_not_replaced_by_another(program: Path) -> None:
    assert chromium.find({"PATH": str(program.parent), "CHROMIUM": "/nowhere/chromium"}) is None


def test_what_to_do_without_one_is_said() -> None:
    assert "install the package `chromium`" in chromium.HOW_TO
    assert "CHROMIUM" in chromium.HOW_TO


@pytest.mark.parametrize("name", ["CI", "REQUIRE_CHROMIUM"])
def test_no_browser_is_a_failure_where_nobody_reads_of_skipped_tests(name: str) -> None:
    assert chromium.is_required({name: "1"})
    assert not chromium.is_required({name: ""})
    assert not chromium.is_required({})
