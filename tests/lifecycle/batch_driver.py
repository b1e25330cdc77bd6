"""A loop of batches without Spark: it copies the lines of new files, each batch a run of its own.

As a process, for the kill tests; it kills itself when it comes by a point for the n-th time (0: never):

python -m tests.lifecycle.batch_driver <root> <attempt> <max_files> <point> <n>
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from airflow_bookmarks.core.selection.bound import Bound
from airflow_bookmarks.files.filesystem import FileSystem
from airflow_bookmarks.lifecycle.protocol.failpoint import Failpoint
from airflow_bookmarks.lifecycle.protocol.lease import RunEnvironment
from airflow_bookmarks.lifecycle.run.session import RunSession
from airflow_bookmarks.lifecycle.state.summary import Summary
from airflow_bookmarks.sinks.staging import Mode, StagingRequest, collect_staged
from airflow_bookmarks.sources.files.backlog import Backlog
from airflow_bookmarks.sources.files.options import FileOptions
from airflow_bookmarks.sources.files.planner import FileSource
from airflow_bookmarks.store.backends.sqlite import SqliteTable
from airflow_bookmarks.store.bookmark_store import BookmarkStore
from tests.lifecycle.shop import FILES, Shop


@dataclass
class Batch:
    """What one batch has read, and what it came to."""

    lines: list[str]
    summary: Summary


@dataclass
class Loop:
    """A loop over the batches of a run that has begun. `before` is called before each of them."""

    shop: Shop
    run: RunSession
    options: FileOptions
    files: FileSystem = FILES
    before: Callable[[int], object] = lambda number: None
    backlog: Backlog = field(default_factory=Backlog)

    def batches(self) -> Iterator[Batch]:
        """Make one batch after the other, up to the last."""
        number = 1
        while True:
            self.before(number)
            lines = self._copy()
            yield Batch(lines, self.run.commit())
            if not self.run.goes_on:
                return
            self.run, number = self.run.following(), number + 1

    def _copy(self) -> list[str]:
        run, target = self.run, self.shop.root / self.run.job
        source = FileSource(self.files, [str(self.shop.raw)], self.options, backlog=self.backlog)
        plan = run.plan("raw", source, on_missing="skip")
        folder = Path(
            run.place("out", StagingRequest("files", str(target), stats={"format": "text", "mode": Mode.APPEND.value}))
        )
        lines: list[str] = []
        for i, path in enumerate(plan.files.paths):
            text = Path(path).read_text()
            lines += text.splitlines()
            part = folder / f"part-{i}.txt"
            part.parent.mkdir(parents=True, exist_ok=True)
            part.write_text(text)
        staged = collect_staged(
            FILES, str(folder), str(target), run.file_token, Mode.APPEND, rows=len(lines), schema='{"fields":[]}'
        )
        run.staged("out", staged)
        return lines


def fault_at(point: str, count: int) -> Callable[[Failpoint], None]:
    """Return a hook that kills this process when it comes by `point` for the `count`-th time."""
    passed: list[Failpoint] = []

    def at(now: Failpoint) -> None:
        passed.append(now)
        if now == point and passed.count(now) == count:
            os.kill(os.getpid(), signal.SIGKILL)

    return at


def main(root: str, attempt: str, max_files: str, point: str, count: str) -> None:
    """Drain the raw folder as attempt `attempt` of the execution `task`."""
    store = BookmarkStore(SqliteTable(Path(root) / "bookmarks.db"), "test")
    shop = Shop(Path(root), store, replace(RunEnvironment(), at=fault_at(point, int(count))))
    run = shop.begin("copy", "task", int(attempt), in_batches=True)
    for batch in Loop(shop, run, FileOptions(bound=Bound.of(max_files=max_files))).batches():
        print(batch.summary.in_words())


if __name__ == "__main__":
    main(*sys.argv[1:])
