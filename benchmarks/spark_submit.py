"""A stand-in for spark-submit, and the driver behind it: a bookmark run without Spark, timed by itself.

    worker                   spark-submit (sh)          driver (a thread of the benchmark)
    starts spark-submit  ->  its arguments          ->  plan one folder, commit; nothing where there are no settings
    waits                    waits                  <-  done, after so many seconds

The program is the same for both operators and does nothing but pass on and wait, so what is left of the time of a task
without the driver's is the operator's.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING

from airflow_bookmarks.core.settings import PREFIX, Settings
from airflow_bookmarks.files.local import LocalFileSystem
from airflow_bookmarks.lifecycle.protocol.lease import RunEnvironment
from airflow_bookmarks.lifecycle.run.enabled import ActiveRun
from airflow_bookmarks.sources.files.planner import FileSource

if TYPE_CHECKING:
    from airflow_bookmarks.store.bookmark_store import BookmarkStore

_PROGRAM = """#!/bin/sh
printf '%s\\n' "$@" > {asked}
read -r code < {answered}
exit "$code"
"""
_END = "end\n"


class StandIn:
    """A spark-submit in `folder`; its driver reads `raw` and keeps its bookmarks in `store`."""

    def __init__(self, folder: Path, raw: Path, store: BookmarkStore) -> None:
        self.folder = folder
        self._raw, self._store = raw, store
        self._asked, self._answered = folder / "asked", folder / "answered"
        self._driver_s: list[float] = []
        self._error: Exception | None = None

    def take_seconds(self) -> float:
        """Return how long the driver of the last submit was at work.

        Raises:
            RuntimeError: there was not exactly one submit, or its driver failed.
        """
        taken, self._driver_s = self._driver_s, []
        if self._error is not None:
            raise RuntimeError("the driver failed") from self._error
        if len(taken) != 1:
            raise RuntimeError(f"spark-submit was started {len(taken)} times and not once")
        return taken[0]

    def prepare(self) -> None:
        """Put the program and its two pipes in place."""
        self.folder.mkdir()
        program = self.folder / "spark-submit"
        program.write_text(_PROGRAM.format(asked=self._asked, answered=self._answered))
        program.chmod(0o755)
        for pipe in (self._asked, self._answered):
            os.mkfifo(pipe)

    def serve(self) -> None:
        """Drive what is submitted, until the end is told."""
        while (asked := self._asked.read_text()) != _END:
            begun = perf_counter()
            code = self._drive(_conf(asked.splitlines()))
            self._driver_s.append(perf_counter() - begun)
            self._answered.write_text(f"{code}\n")

    def end(self) -> None:
        """Tell the end."""
        self._asked.write_text(_END)

    def _drive(self, conf: dict[str, str]) -> int:
        try:
            if any(name.startswith(PREFIX) for name in conf):
                self._run(Settings.from_conf(conf))
        except Exception as error:  # noqa: BLE001  # of another thread: `take_seconds` raises it
            self._error = error
            return 1
        return 0

    def _run(self, settings: Settings) -> None:
        if settings.job is None:
            raise ValueError(f"the settings name no job: {settings}")
        run = ActiveRun.begin(self._store, settings.job, settings.identity("none"), RunEnvironment())
        run.plan("raw", FileSource(LocalFileSystem(), [str(self._raw)]))
        run.commit()


@contextmanager
def stand_in(folder: Path, raw: Path, store: BookmarkStore) -> Iterator[StandIn]:
    """Put a stand-in into an absent folder, which goes to the front of PATH, and serve it."""
    made = StandIn(folder, raw, store)
    made.prepare()
    # A daemon: where a worker dies before it submits, nobody is left who would end it.
    thread = threading.Thread(target=made.serve, daemon=True)
    thread.start()
    yield made
    made.end()
    thread.join()


def _conf(arguments: list[str]) -> dict[str, str]:
    flags = [number for number, argument in enumerate(arguments) if argument == "--conf"]
    pairs = (arguments[number + 1].partition("=") for number in flags)
    return {name: value for name, _, value in pairs}
