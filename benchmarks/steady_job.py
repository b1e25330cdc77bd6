"""A job at its most usual: each run finds one new file per context, reads it, and publishes one file. No Spark."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from airflow_bookmarks.core.job import RunIdentity
from airflow_bookmarks.core.selection.listing import FileInfo, Listing
from airflow_bookmarks.files.filesystem import Listed
from airflow_bookmarks.files.local import LocalFileSystem
from airflow_bookmarks.lifecycle.protocol.lease import RunEnvironment
from airflow_bookmarks.lifecycle.run.enabled import ActiveRun
from airflow_bookmarks.sinks.staging import Mode, StagingRequest, collect_staged
from airflow_bookmarks.sources.files.planner import FileSource

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from airflow_bookmarks.files.filesystem import FileSystem
    from airflow_bookmarks.lifecycle.state.summary import Summary
    from airflow_bookmarks.store.bookmark_store import BookmarkStore

FIRST_SECOND = 1_700_000_000
_LOCAL = LocalFileSystem()


@dataclass
class SteadyJob:
    """Folders `root/raw0`, `root/raw1` ..., one context each, and one output to `root/target`.

    A file is taken away after the run that read it: listings stay short, and what grows is the bookmark's own.
    """

    root: Path
    store: BookmarkStore
    contexts: int = 1
    job: str = "steady"
    environment: RunEnvironment = field(default_factory=RunEnvironment)
    runs: int = 0

    def run(self, *, is_empty: bool = False) -> Summary:
        """Let one file per context arrive (none with `is_empty`), and make a whole run."""
        return self.pass_over(self.arrive(is_empty=is_empty))

    def arrive(self, *, is_empty: bool = False) -> int:
        """Put the files of the next run in place; return its number. What a run costs is counted from here."""
        self.runs += 1
        for number in range(self.contexts):
            folder = self.root / f"raw{number}"
            folder.mkdir(parents=True, exist_ok=True)
            (folder / f"{self.runs - 1:06d}.txt").unlink(missing_ok=True)
            if not is_empty:
                path = folder / f"{self.runs:06d}.txt"
                path.write_text(f"{self.runs:06d}\n")
                os.utime(path, (FIRST_SECOND + self.runs, FIRST_SECOND + self.runs))
        return self.runs

    def pass_over(
        self, number: int, files: FileSystem | None = None, before_commit: Callable[[], None] = lambda: None
    ) -> Summary:
        """Begin, plan, stage, commit, publish; `files` is where the input is listed (default: the local disk)."""
        run = ActiveRun.begin(self.store, self.job, RunIdentity(f"bench/{number:06d}"), self.environment)
        try:
            self._read_and_stage(run, number, files or _LOCAL)
            before_commit()
        except BaseException as error:  # an interrupt, too: the next run would wait for the end of the lease
            run.abort(str(error))
            raise
        return run.commit()

    def _read_and_stage(self, run: ActiveRun, number: int, files: FileSystem) -> None:
        for ctx in range(self.contexts):
            run.plan(f"raw{ctx}", FileSource(files, [str(self.root / f"raw{ctx}")]))
        target = str(self.root / "target")
        folder = Path(run.place("out", StagingRequest("files", target, stats={"format": "text"})))
        folder.mkdir(parents=True)
        (folder / "part-0.txt").write_text(f"{number:06d}\n")
        token, schema = run.file_token, '{"fields":[]}'
        run.staged("out", collect_staged(_LOCAL, str(folder), target, token, Mode.APPEND, rows=1, schema=schema))


class ListedFiles(LocalFileSystem):
    """A file system that lists `count` files without any of them being there: to fill a ledger."""

    def __init__(self, count: int) -> None:
        self._count = count

    def list(
        self,
        root: str,
        *,
        recursive: bool = False,
        enters: Callable[[str], bool] | None = None,
        saw: Callable[[int], None] | None = None,
    ) -> Listed:
        """List the files; see `FileSystem.list`."""
        paths = [f"{root}/old-{i:09d}.txt" for i in range(self._count)]
        times = FIRST_SECOND * 1000 - np.arange(self._count, 0, -1, dtype=np.int64)
        return Listed(Listing(paths, np.full(self._count, 10, np.int64), times))

    def stat(self, paths: Sequence[str]) -> Sequence[FileInfo | None]:
        """Return each file as it was listed; see `FileSystem.stat`."""
        first = FIRST_SECOND * 1000 - self._count
        return [FileInfo(path, 10, first + int(path[-13:-4])) for path in paths]
