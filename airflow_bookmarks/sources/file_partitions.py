"""Read files partition by partition, each in a run of its own: those of one that failed are new to the next run.

The ledger knows each file by itself, so nothing has to be stored for what is left.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from airflow_bookmarks.core.errors import OptionError
from airflow_bookmarks.core.ledger.segment import bare_name
from airflow_bookmarks.core.plan import PlanPart
from airflow_bookmarks.core.selection.partition import is_partition, unescaped
from airflow_bookmarks.core.selection.reason import OVER_BOUND
from airflow_bookmarks.sources.files.backlog import Rest
from airflow_bookmarks.sources.files.planner import FileSource

if TYPE_CHECKING:
    from airflow_bookmarks.sources.files.recorded_plan import RecordedPlan
    from airflow_bookmarks.sources.part_loop import PartLoop
    from airflow_bookmarks.sources.source import PlanInput

PARTITION = "partition"


class PartitionedFileSource(FileSource):
    """Files below some folders, of which a plan has those of one partition: `region=eu/month=1`.

    Args:
        loop: which partitions the runs of its loop have taken on.
    """

    def __init__(self, *args: Any, loop: PartLoop, **how: Any) -> None:
        super().__init__(*args, **how)
        self._loop = loop
        given = {
            "late_after": self.options.late_after is not None,
            "max_files, max_bytes or window": self.options.bound.is_given,
            "reread": self.options.reread is not None,
        }
        for what, is_given in given.items():
            if is_given:
                raise OptionError(
                    f"per_partition=True with {what}: files of a partition that failed could be left out, or a part of "
                    "it be read. Nothing was read or changed. Leave one of them out."
                )

    def plan(self, found: PlanInput) -> RecordedPlan:
        """Fix the new files of the first partition that the loop has not taken on; see `Source.plan`."""
        whole = self._planned(found)
        parts = [_part_of(path) for path in whole.files.paths]
        left = sorted(set(parts) - self._loop.taken, key=str)
        part = left[0] if left else None
        self._loop.take(part, is_last=len(left) < 2)
        is_taken = np.array([each == part for each in parts], np.bool_)
        others = np.flatnonzero(~is_taken)
        skipped = {**whole.skipped, OVER_BOUND: len(others)} if len(others) else whole.skipped
        files = whole.files.take(np.flatnonzero(is_taken))
        rest = Rest(whole, whole.files, np.arange(len(whole)))
        bases = rest.bases_of(files) if whole.bases else ()
        return replace(whole, files=files, skipped=skipped, over=(whole.files, others), bases=bases, part=part)


def _part_of(path: str) -> PlanPart:
    folders = bare_name(path.rpartition("/")[0]).split("/")
    partition = "/".join(unescaped(folder) for folder in folders if is_partition(folder))
    if not partition:
        raise OptionError(
            f"per_partition=True, and {path!r} lies in no partition (name=value). Nothing was read or changed. Read "
            "without it, or load folders with partitions."
        )
    return PlanPart(PARTITION, partition)
