"""Runs of a job over any source, and what the preview of a set says that it passes over."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from airflow_bookmarks.lifecycle.changes.change import Change
from airflow_bookmarks.lifecycle.changes.preview import preview
from airflow_bookmarks.lifecycle.inspect.never_read import NeverReadInput
from airflow_bookmarks.sinks.staging import Mode, StagingRequest, collect_staged
from tests.lifecycle.shop import FILES, Shop

CTX = "input"


@dataclass
class Skipping(Shop):
    """A shop whose job `copy` reads one source, and writes a file in each run."""

    def read(self, source: Any) -> None:
        """Make one run."""
        run = self.begin()
        run.plan(CTX, source)
        target = self.root / run.job
        place = StagingRequest("files", str(target), stats={"format": "text", "mode": "append"})
        folder = Path(run.place("out", place))
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "part.txt").write_text("x")
        staged = collect_staged(
            FILES, str(folder), str(target), run.file_token, Mode.APPEND, rows=1, schema='{"fields":[]}'
        )
        run.staged("out", staged)
        run.commit()

    def skips(self, value: str, ctx: str = CTX) -> NeverReadInput:
        """Return what a set to a value skips for good."""
        seen = preview(self.store, "copy", Change("set", ctx=ctx, value=value)).never_read
        assert seen is not None
        return seen
