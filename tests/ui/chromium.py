"""Chromium: where it is, and how it is started so that it asks nobody but the page under test."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from playwright.sync_api import Browser, sync_playwright

_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
_ARGUMENTS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
HOW_TO = (
    "no Chromium is found: install the package `chromium`, or name the program in the environment variable CHROMIUM"
)


def find(environment: Mapping[str, str] = os.environ) -> str | None:
    """Return the path of Chromium: what CHROMIUM names, else what PATH has; None where there is none."""
    named = environment.get("CHROMIUM")
    if named:
        return shutil.which(named)
    path = environment.get("PATH", os.defpath)
    return next((found for name in _NAMES if (found := shutil.which(name, path=path))), None)


def is_required(environment: Mapping[str, str] = os.environ) -> bool:
    """Whether a missing browser is a failure: it is where nobody would read that tests were skipped."""
    return any(environment.get(name) for name in ("CI", "REQUIRE_CHROMIUM"))


@contextmanager
def running(program: str) -> Iterator[Browser]:
    """Run a browser until the block ends."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=_ARGUMENTS)
        yield browser
        browser.close()
