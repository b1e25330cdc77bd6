"""Compare what a run did with the median of what the executions before it did."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby
from statistics import median
from typing import TYPE_CHECKING

from airflow_bookmarks.core.amount import Amount
from airflow_bookmarks.lifecycle.state.summary import Summary
from airflow_bookmarks.lifecycle.state.summary_sums import joined

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from airflow_bookmarks.store.bookmark_store import BookmarkStore

PAST_RUNS = 50  # are looked at: one request
FEWEST = 5  # executions that tell what is usual


@dataclass(frozen=True, slots=True)
class RunFigures:
    """What a run did, or an execution of several.

    Attributes:
        amount: what it read, in the units of its contexts: files, for example; None: not known.
        rows: those that it read, where all contexts were counted, else those that it wrote; None: not counted.
        seconds: how long it took.
    """

    amount: int | None
    rows: int | None
    seconds: float

    @classmethod
    def of(cls, summary: Summary) -> RunFigures:
        """Return the figures of a summary."""
        contexts, outputs = summary.contexts.values(), summary.outputs.values()
        read = total_of(figures.get("rows") for figures in contexts)
        return cls(
            amount=total_of(Amount.of_stats(figures).count for figures in contexts),
            rows=total_of(figures.get("rows") for figures in outputs) if read is None else read,
            seconds=sum(float(seconds) for seconds in summary.seconds.values()),
        )


def total_of(numbers: Iterable[int | None]) -> int | None:
    """Return the sum; None where there is no number, or one of them is not known."""
    given = list(numbers)
    known = [number for number in given if number is not None]
    return sum(known) if given and len(known) == len(given) else None


def times_median(now: float | None, past: Iterable[float | None]) -> float | None:
    """Return how many times the median of past figures this one is; None where fewer than five are known.

    Past figures of 0 do not count.

    Example:
        >>> times_median(30, [10, 10, 11, 9, 10]), times_median(30, [10, 10])
        (3.0, None)
    """
    known = [each for each in past if each]
    return None if now is None or len(known) < FEWEST else now / median(known)


def read_times_median(now: RunFigures, past: Sequence[RunFigures]) -> float | None:
    """Return how many times as much a run read as those before it: in rows, else in files and the like."""
    by_rows = times_median(now.rows, [each.rows for each in past])
    return by_rows if by_rows is not None else times_median(now.amount, [each.amount for each in past])


def past_figures(store: BookmarkStore, job: str, before: int) -> list[RunFigures]:
    """Return the figures of the last executions with data whose runs have lower numbers than `before`, newest first.

    Undone ones count too: they tell what is usual.

    Raises:
        StateCorruptError: a run can't be read.
    """
    runs = list(store.runs(job, until=before - 1, reverse=True, limit=PAST_RUNS))
    grouped = [list(made) for _, made in groupby(runs, key=lambda run: run.run_id)]
    if len(runs) == PAST_RUNS and len(grouped) > 1:
        grouped.pop()  # there may be more of its runs
    found = []
    for made in grouped:
        with_data = [run for run in reversed(made) if run.state.is_committed and not run.is_empty]
        if with_data:
            found.append(RunFigures.of(joined([Summary.of(run, store.namespace, job) for run in with_data])))
    return found
