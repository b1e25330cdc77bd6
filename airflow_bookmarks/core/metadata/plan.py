"""The metadata of a plan of any kind: what is stored with it, or counted once its run has read it, and code decides on.

What files alone have is in `core.metadata.file_plan`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from airflow_bookmarks.core.amount import FILES, ROWS, Amount
from airflow_bookmarks.core.errors import StateCorruptError
from airflow_bookmarks.core.metadata.known import value_of


@dataclass(frozen=True, slots=True)
class WindowMetadata:
    """Which runs of another job a plan covers: (`after`, `until`], as seen in `epoch` with `changes`.

    `output` is empty where it reads all outputs. `runs` are the numbers of those that have published something.
    """

    job: str
    output: str
    after: int
    until: int
    epoch: int
    changes: int
    runs: tuple[int, ...]

    @classmethod
    def of_stats(cls, stats: Mapping[str, Any]) -> WindowMetadata | None:
        """Return the window that is stored with a plan; None if it reads no job.

        Raises:
            StateCorruptError: it is no window.
        """
        window = stats.get("upstream")
        if window is None:
            return None
        try:
            return cls(
                window["job"],
                window.get("output") or "",
                window["after"],
                window["until"],
                window["epoch"],
                window["changes"],
                tuple(window["runs"]),
            )
        except (AttributeError, KeyError, TypeError) as error:
            raise StateCorruptError(
                f"the window of an upstream that is stored with a plan can't be read ({error!r}). Nothing was read or "
                "changed. Restore the table from a backup, or reset the job."
            ) from error


@dataclass(frozen=True, slots=True)
class PlanMetadata:
    """Where a plan starts, how much it holds, what it leaves out, and what becomes of its input.

    `starts_from` names the position that it goes on from (None: there was none); `starts_over` says that it began
    without one, whatever there was. `is_relocated`: its position was moved along with a folder before. `on_published`
    is what is to become of what it has read (None: it stays). `skipped` counts by reason what it leaves out;
    `waiting_bytes` and `waiting_oldest_ms` are of that what a later run reads (None: nothing, or not recorded), and
    `looked_at` is when it was listed, if that was not when its run began. `part` is the one part of the source that it
    reads, such as "region='eu'"; None: all. `planned_rows` are how many rows it reads; None: its source does not tell.
    """

    starts_from: str | None = None
    starts_over: bool = False
    is_relocated: bool = False
    on_published: str | None = None
    amount: Amount = field(default_factory=lambda: Amount(FILES, None))
    skipped: Mapping[str, int] = field(default_factory=dict)
    quarantined: int = 0
    waiting_bytes: int | None = None
    waiting_oldest_ms: int | None = None
    looked_at: str | None = None
    part: str | None = None
    planned_rows: int | None = None
    upstream: WindowMetadata | None = None

    @property
    def files(self) -> int | None:
        """How many files it reads; None if that is not known, or if what it reads is no files."""
        return self.amount.count if self.amount.unit == FILES else None

    @classmethod
    def of_stats(cls, stats: Mapping[str, Any]) -> PlanMetadata:
        """Return what code decides on among what is stored with a plan; the rest is for people, or its kind's own.

        Example:
            >>> PlanMetadata.of_stats({"files": 3, "bytes": 120, "starts_from": "4.7"}).files
            3

        Raises:
            StateCorruptError: one of the values has another type.
        """
        for name in ("files", "bytes"):
            value_of(stats, name)
        amount = Amount.of_stats(stats)
        return cls(
            starts_from=value_of(stats, "starts_from"),
            starts_over=value_of(stats, "starts_over", default=False),
            is_relocated="moved_from" in stats,
            on_published=value_of(stats, "on_published"),
            amount=amount,
            skipped=value_of(stats, "skipped", {}),
            quarantined=value_of(stats, "quarantined", 0),
            waiting_bytes=value_of(stats, "waiting_bytes"),
            waiting_oldest_ms=value_of(stats, "waiting_oldest_ms"),
            looked_at=value_of(stats, "looked_at"),
            part=value_of(stats, "part"),
            planned_rows=amount.count if amount.unit == ROWS else value_of(stats, "planned_rows"),
            upstream=WindowMetadata.of_stats(stats),
        )


@dataclass(frozen=True, slots=True)
class MeasuredRead:
    """What a run has read of one context: its plan as it was committed, and what was counted meanwhile.

    `rows` is None where they were not counted. `is_read_whole` is False if it is not known that all of the plan was
    read, so that its input stays where it is. `watermark_before` is that of the context before the run.
    """

    plan: PlanMetadata
    rows: int | None = None
    is_read_whole: bool = True
    watermark_before: str | None = None

    @classmethod
    def of_stats(cls, stats: Mapping[str, Any]) -> MeasuredRead:
        """Return what code decides on among what a run counted of a context.

        Raises:
            StateCorruptError: one of the values has another type.
        """
        return cls(
            PlanMetadata.of_stats(stats),
            rows=value_of(stats, "rows"),
            is_read_whole=value_of(stats, "is_read_whole", default=True),
            watermark_before=value_of(stats, "watermark_before"),
        )
