"""The targets of the chain and its bookmarks, and what in them is not as promised."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from airflow_bookmarks.core.errors import JobUnknownError
from airflow_bookmarks.lifecycle.inspect.pending import pending
from airflow_bookmarks.lifecycle.inspect.runs import UNDONE, history
from airflow_bookmarks.store.bookmark_store import BookmarkStore
from tests.chaos.chain.lineup import Lineup
from tests.chaos.chain.stage import RAW, STAGES, job
from tests.chaos.chain.story import RawFile
from tests.chaos.chain.target import TextFiles


@dataclass(frozen=True, slots=True)
class Lake:
    """What lies below `root`: raw files; a target for each stage; and the store with the jobs of the stages."""

    root: Path
    lineup: Lineup
    store: BookmarkStore

    def land(self, file: RawFile) -> None:
        """Let a raw file appear, whole at once, with the time that it says it has."""
        raw = self.root / RAW
        raw.mkdir(exist_ok=True)
        whole = self.root / f".{file.name}"
        whole.write_text("".join(f"{line}\n" for line in file.lines))
        os.utime(whole, (file.seconds, file.seconds))
        whole.replace(raw / file.name)

    def rows(self, name: str) -> Counter[str]:
        """Return the rows that a reader of a stage sees, or of the raw files."""
        target = TextFiles(self.root / RAW) if name == RAW else self.lineup.targets[name]
        return target.rows()

    def runs_made(self, stage: str) -> int:
        """Return how many runs a stage has committed, undone ones among them."""
        head = self.store.snapshot(job(stage)).head
        return 0 if head is None else head.run_number

    def has_run_of(self, stage: str, moment: str) -> bool:
        """Whether a run of a stage that had committed by then is left; `moment` as the history has it."""
        runs = history(self.store, job(stage))
        return any(run["committed_at"] <= moment for run in runs if run["state"] != UNDONE)

    def has_something_new(self, stage: str) -> bool:
        """Whether the next run of a stage would read something, as far as one can tell."""
        try:
            seen = pending(self.store, job(stage))
        except JobUnknownError:
            return True
        return not seen.is_known or any(context.has_input for context in seen.contexts)

    def has_something_to_do(self, stage: str) -> bool:
        """Whether it would read something, or settle what an earlier one left."""
        return self.has_something_new(stage) or not pending(self.store, job(stage)).is_empty

    def faults(self) -> Iterator[str]:
        """Yield what is not as promised once all is still."""
        expected = self.rows(RAW)
        for stage in STAGES:
            rows = self.rows(stage)
            if rows != expected:
                lost, more = expected - rows, rows - expected
                yield f"{stage}: rows lost: {dict(lost)}; rows too many: {dict(more)}"
            yield from self._left_by(stage)

    def _left_by(self, stage: str) -> Iterator[str]:
        staged = self.lineup.targets[stage].staged()
        if staged:
            yield f"{stage}: {len(staged)} are staged, the first: {staged[0]}"
        head = self.store.head(job(stage))
        if head.publishing is not None or head.published != head.run_number:
            yield f"{stage}: run {head.run_number} is committed, and run {head.published} published"
        if head.cleaning is not None:
            yield f"{stage}: what undone runs published is still to be removed"
        if head.lease is not None:
            yield f"{stage}: the job is held by {head.lease.run_id}"
        for run in self.store.open_runs(job(stage), head):
            yield f"{stage}: run {run.key} is open"
