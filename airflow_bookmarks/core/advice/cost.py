"""What listing has cost the last runs: sums over those that listed, as figures and in words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from airflow_bookmarks.core.text.count import counted, runs_in_words, runs_named

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from airflow_bookmarks.core.advice.advice import Figures
    from airflow_bookmarks.core.advice.reads import FilesOfRun


@dataclass(frozen=True, slots=True)
class ListingCost:
    """What some runs listed, how much of it they read, and how long that took; None: not recorded by all of them.

    `files` are those that were listed, `known` those of them that were read before, `read` those that were read then.
    The seconds of planning are of all `contexts` of the job: runs don't record them one by one.
    """

    runs: tuple[int, ...]
    files: int | None
    known: int | None
    read: int
    folders: int | None
    folders_without_new: int | None
    plan_s: float | None
    whole_s: float | None
    contexts: int = 1

    @classmethod
    def of(cls, runs: Sequence[FilesOfRun]) -> ListingCost:
        """Add up the runs that listed; those that took files from the listing of an earlier batch did not."""
        listing = [run for run in runs if run.listed is not None]
        plan_s, whole_s = _seconds(run.plan_s for run in listing), _seconds(run.whole_s for run in listing)
        return cls(
            runs=tuple(run.number for run in listing),
            files=_sum(run.listed for run in listing),
            known=_sum(run.known for run in listing),
            read=sum(run.files for run in listing),
            folders=_sum(run.folders_listed for run in listing),
            folders_without_new=_sum(run.folders_without_new for run in listing),
            plan_s=plan_s,
            whole_s=whole_s,
            contexts=max((run.contexts for run in listing), default=1),
        )

    def figures(self) -> Figures:
        """Return the numbers."""
        return {
            "runs": len(self.runs),
            "files_listed": self.files,
            "files_known": self.known,
            "files_read": self.read,
            "folders_listed": self.folders,
            "folders_without_new": self.folders_without_new,
            "plan_seconds": self.plan_s,
            "run_seconds": self.whole_s,
        }

    def in_words(self) -> str:
        """Say what it was, in one sentence, and in another one how long it took.

        Example:
            >>> print(ListingCost((8, 9), 400, 398, 2, 120, 118, 41.2, 55.0).in_words())
            runs 8-9 listed 120 folders, 118 of them without a new file, and 400 files, 398 of them known, to read 2 \
files. Planning, which lists, took 41.2 s of 55.0 s
            >>> print(ListingCost((9,), 40, 30, 10, None, None, None, None).in_words())
            run 9 listed 40 files, 30 of them known, to read 10 files; how many folders is not recorded. How long \
that took is not recorded
        """
        if not self.runs:
            return "not recorded: none of these runs has listed"
        folders = files = ""
        if self.folders is not None:
            without = (
                "" if self.folders_without_new is None else f", {self.folders_without_new:,} of them without a new"
            )
            folders = counted(self.folders, "folder") + (f"{without} file, and " if without else " and ")
        if self.files is not None:
            known = "" if self.known is None else f", {self.known:,} of them known,"
            files = f"{counted(self.files, 'file')}{known}"
        missing = "" if self.folders is not None else "; how many folders is not recorded"
        took = "How long that took is not recorded"
        if self.plan_s is not None and self.whole_s is not None:
            of_all = "" if self.contexts == 1 else f" of all {self.contexts} contexts"
            took = f"Planning{of_all}, which lists, took {self.plan_s:,.1f} s of {self.whole_s:,.1f} s"
        who = runs_named(runs_in_words(self.runs))
        return f"{who} listed {folders}{files} to read {counted(self.read, 'file')}{missing}. {took}"


def _sum(values: Iterable[int | None]) -> int | None:
    found = list(values)
    known = [value for value in found if value is not None]
    return sum(known) if known and len(known) == len(found) else None


def _seconds(values: Iterable[float | None]) -> float | None:
    found = list(values)
    known = [value for value in found if value is not None]
    return round(sum(known), 3) if known and len(known) == len(found) else None
