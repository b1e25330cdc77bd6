"""Play: the whole demo, from an empty folder to its table."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from airflow_bookmarks.core.errors import BookmarkError
from airflow_bookmarks.lifecycle.inspect.runs import history
from airflow_bookmarks.store.bookmark_store import BookmarkStore, open_store
from demo.airflow import Airflow, PlayerError
from demo.airflow_home import environment, migrate
from demo.check import clean_stage, delays_stage
from demo.class_archive import java_options, kept_archive
from demo.count import Difference
from demo.folders import Folders
from demo.lake import Lake, running_lake
from demo.orders import play_orders
from demo.report import Report, write_json
from demo.step import Demonstration
from demo.store import AWS_ENVIRONMENT, AWS_HIDDEN, running_store

_TAIL_LINES = 40


class Console:
    """Progress for people: what happens now, and after how many seconds."""

    def __init__(self) -> None:
        self._begun = time.monotonic()

    def say(self, text: str) -> None:
        """Print a line at once."""
        print(f"[{time.monotonic() - self._begun:6.1f} s] {text}", flush=True)


def play(root: Path, store_kind: str, files_kind: str = "local") -> int:
    """Play the demo below `root`; return 0 if all was as expected, else 1."""
    try:
        with Folders.claimed(root) as folders:
            return _play_in(folders, store_kind, files_kind)
    except RuntimeError as error:
        print(f"demo: failed: {error}")
        return 1


def _play_in(folders: Folders, store_kind: str, files_kind: str) -> int:
    console = Console()
    console.say(f"everything lies in {folders.root}, logs in {folders.logs}, the state is in {store_kind}")
    if files_kind != "local":
        console.say(f"the files are in {files_kind}; {folders.data} has what was delivered, and copies to count")
    use_aws_environment()
    report = Report()
    try:
        with running_lake(files_kind, folders) as lake, running_store(store_kind, folders.bookmarks) as uri:
            store = open_bookmarks(uri)
            settings = prepare(folders, uri, console.say, lake)
            console.say("Airflow: starting")
            with Airflow(settings, folders.logs) as airflow:
                _play_steps(folders, store, airflow, report, console, lake)
            report.notes.append(
                play_orders(uri, store, settings, f"{lake.data}/orders", folders.logs / "orders.log", console.say)
            )
    except (Difference, PlayerError, BookmarkError, RuntimeError) as error:
        _show_failure(folders, report, error)
        return 1
    print(f"\n{report.table()}\n\ndemo: ok", flush=True)
    return 0


def _play_steps(
    folders: Folders, store: BookmarkStore, airflow: Airflow, report: Report, console: Console, lake: Lake
) -> None:
    clean, delays = (replace(stage, here=lake.here) for stage in (clean_stage(folders), delays_stage(folders)))
    try:
        Demonstration(lake.landing, store, airflow, clean, delays, console.say, report).play()
    finally:
        report.write(folders.root / "summary.json")
        jobs = sorted(name for name, _ in store.jobs())
        write_json(folders.root / "history.json", {job: history(store, job, with_open=True) for job in jobs})


def use_aws_environment() -> None:
    """Let this process, too, know no AWS account."""
    for name in AWS_HIDDEN:
        os.environ.pop(name, None)
    os.environ.update(AWS_ENVIRONMENT)


def open_bookmarks(uri: str) -> BookmarkStore:
    """Open the store, and make what it keeps state in."""
    store = open_store(uri)
    store.init()
    return store


def prepare(folders: Folders, uri: str, say: Callable[[str], None], lake: Lake | None = None) -> dict[str, str]:
    """Make Airflow's home and Spark's class archive; return the environment for both."""
    archive = kept_archive(environment(folders, uri, "", lake), say, None if lake is None else lake.jars)
    settings = environment(folders, uri, java_options(archive), lake)
    say("Airflow: making its home")
    migrate(folders, settings)
    return settings


def _show_failure(folders: Folders, report: Report, error: Exception) -> None:
    """Say on one line what failed, below what was done before and the end of the newest log."""
    if report.lines:
        print(f"\n{report.table()}")
    logs = sorted(folders.logs.glob("*.log"))
    if logs:
        print(f"\nthe end of {logs[-1]}:\n")
        print("\n".join(logs[-1].read_text(errors="replace").splitlines()[-_TAIL_LINES:]))
    print(f"\ndemo: failed: {error}", flush=True)
