"""A small world for lifecycle tests: a raw folder, a target, and a job that copies lines, without Spark."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

from airflow_bookmarks.core.job import RunIdentity
from airflow_bookmarks.core.option import Choice
from airflow_bookmarks.files.local import LocalFileSystem
from airflow_bookmarks.lifecycle.maintenance.doctor import Finding, examine
from airflow_bookmarks.lifecycle.protocol.lease import RunEnvironment
from airflow_bookmarks.lifecycle.run.detached import DetachedRun
from airflow_bookmarks.lifecycle.run.enabled import ActiveRun
from airflow_bookmarks.lifecycle.run.session import RunSession
from airflow_bookmarks.lifecycle.state.summary import Summary
from airflow_bookmarks.sinks.staging import Mode, StagingRequest, collect_staged
from airflow_bookmarks.sources.files.options import FileOptions
from airflow_bookmarks.sources.files.planner import FileSource
from airflow_bookmarks.sources.upstream.source import UpstreamSource
from airflow_bookmarks.store.bookmark_store import BookmarkStore

FILES = LocalFileSystem()


@dataclass
class Shop:
    """Raw files under `root/raw`, one job per name, each copying the lines of new files to `root/<job>`."""

    root: Path
    store: BookmarkStore
    environment: RunEnvironment = field(default_factory=RunEnvironment)
    mode: Mode = Mode.APPEND
    runs_made: int = 0
    overwrites_published: bool = True  # also of pause and disable runs

    @property
    def raw(self) -> Path:
        return self.root / "raw"

    def put(self, name: str, *lines: str, seconds: int = 1_700_000_000) -> Path:
        """Write a raw file that is dated `seconds`."""
        path = self.raw / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(f"{line}\n" for line in lines))
        os.utime(path, (seconds, seconds))
        return path

    def identity(self, run_id: str | None = None, attempt: int = 1) -> RunIdentity:
        self.runs_made += 1
        return RunIdentity(run_id or f"manual/{self.runs_made}", attempt)

    def begin(self, job: str = "copy", run_id: str | None = None, attempt: int = 1, **kwargs: Any) -> ActiveRun:
        return ActiveRun.begin(self.store, job, self.identity(run_id, attempt), self.environment, **kwargs)

    def side(
        self, job: str = "copy", option: str = "pause", from_run: str | None = None, to_run: str | None = None
    ) -> DetachedRun:
        choice = Choice.of(option, from_run, to_run)
        return DetachedRun.begin(self.store, job, self.identity(), choice, self.environment)

    def copy(
        self,
        run: RunSession,
        *,
        upstream: str | None = None,
        on_missing: Any = "error",
        on_rewind: Any = "fail",
        options: FileOptions = FileOptions(),  # noqa: B008 (a frozen value)
        between: Callable[[], object] | None = None,
    ) -> list[str]:
        """Read what is planned and stage it; return the lines read."""
        source = (
            FileSource(FILES, [str(self.raw)], options, clock=self.environment.clock)
            if upstream is None
            else UpstreamSource(self.store, run.job, upstream, on_rewind=on_rewind)
        )
        plan = run.plan("raw", source, on_missing=on_missing)
        lines: list[str] = []
        target = self.root / run.job
        figures = {"format": "text", "mode": self.mode.value}
        place = StagingRequest("files", str(target), stats=figures, overwrites_published=self.overwrites_published)
        folder = Path(run.place("out", place))
        for i, path in enumerate(plan.files.paths):
            text = Path(path).read_text()
            lines += text.splitlines()
            parent = Path(path).parent.name
            partition = parent if "=" in parent else f"file={Path(path).stem}"
            part = folder / partition / f"part-{i}.txt"
            part.parent.mkdir(parents=True, exist_ok=True)
            part.write_text(text)
        if between is not None:
            between()
        run.staged(
            "out",
            collect_staged(
                FILES, str(folder), str(target), run.file_token, self.mode, rows=len(lines), schema='{"fields":[]}'
            ),
        )
        return lines

    def run(
        self, job: str = "copy", run_id: str | None = None, attempt: int = 1, **kwargs: Any
    ) -> tuple[list[str], Summary]:
        """Make one whole run; return the lines read and the summary."""
        run = self.begin(job, run_id, attempt)
        lines = self.copy(run, **kwargs)
        return lines, run.commit()

    def side_lines(
        self, option: str, from_run: str | None = None, to_run: str | None = None, job: str = "copy"
    ) -> list[str]:
        run = self.side(job, option, from_run, to_run)
        lines = self.copy(run)
        run.commit()
        return lines

    def target_lines(self, job: str = "copy") -> Counter[str]:
        """Return the visible lines of a job's target, with how often each is there."""
        target = self.root / job
        if not target.exists():
            return Counter()
        paths = FILES.list(str(target), recursive=True).files.paths
        return Counter(line for path in paths for line in Path(path).read_text().splitlines())

    def staged_files(self, job: str = "copy") -> Sequence[Path]:
        staging = self.root / job / "_bookmarks"
        return [path for path in staging.rglob("*") if path.is_file()] if staging.exists() else []


def unsound(store: BookmarkStore, **how: Any) -> list[Finding]:
    """Return what the doctor finds, but for what a change without a clean left in a target, as it was asked to."""
    return [finding for finding in examine(store, **how) if finding.code != "undone-files-left"]


def short_lease() -> RunEnvironment:
    """Return a machine whose leases have run out as soon as they are taken."""
    return RunEnvironment(lease_time=timedelta(seconds=0))
