"""Rules on tables that are read by key.

nullable   a key column that may be NULL: such a row has no place in the order, so no run ever reaches it. One such
           column is enough, also while no row is without a value: each plan counts them
updated    at least half of the rows that runs read were read before, so that the key follows updates and not new
           rows. Only a run with a lookback names rows, and tells; without one, nothing that is recorded does
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, TypeAlias

from airflow_bookmarks.core.advice.advice import LEAST_RUNS, Advice, AdviceCode, is_most
from airflow_bookmarks.core.text.count import counted, runs_in_words, runs_named

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from airflow_bookmarks.core.database.key import KeyValues

_Row: TypeAlias = "KeyValues"


@dataclass(frozen=True, slots=True)
class KeyedRead:
    """By which keys a plan reads the rows of a table.

    `named` are the rows that it names, by keys and ties, and `trail` those that are known after it as read; None: it
    names none. `told_by` are the places of those values in a row that tell it from all others, such as its primary key;
    empty: all of them are needed. `nullable` are the keys that may be NULL, where the database says so.
    """

    columns: tuple[str, ...]
    nullable: tuple[str, ...] = ()
    named: frozenset[_Row] | None = None
    trail: frozenset[_Row] = frozenset()
    told_by: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class RowsOfRun:
    """What one run has read of a table. `rows` None: not recorded. `without_key`: rows that it left out for that."""

    number: int
    read: KeyedRead
    rows: int | None
    without_key: int


def read_again(before: KeyedRead, now: KeyedRead) -> int | None:
    """Return how many of the rows of a plan were read before; None: it does not name them.

    One that is named again was updated: by its key, which is another now, or in another column.

    Example:
        >>> before = KeyedRead(("at",), trail=frozenset({("08:00", "1"), ("09:00", "2")}), told_by=(1,))
        >>> now = KeyedRead(("at",), named=frozenset({("10:00", "1"), ("10:30", "3")}), told_by=(1,))
        >>> read_again(before, now)
        1
    """
    if now.named is None:
        return None
    known = {_identity(row, now.told_by) for row in before.trail}
    return sum(_identity(row, now.told_by) in known for row in now.named)


def _identity(row: _Row, told_by: Sequence[int]) -> _Row:
    return tuple(row[at] for at in told_by) if told_by else row


def advice_on_keys(ctx: str, runs: Sequence[RowsOfRun]) -> Iterator[Advice]:
    """Yield what would make reading this table by key cheaper, or whole; `runs` are the last ones, oldest first."""
    if not runs:
        return
    found = (_nullable(ctx, runs), _updated(ctx, runs))
    yield from (each for each in found if each is not None)


def _nullable(ctx: str, runs: Sequence[RowsOfRun]) -> Advice | None:
    newest, count = runs[-1], runs[-1].without_key
    if not newest.read.nullable and not count:
        return None
    names = ", ".join(newest.read.nullable or newest.read.columns)
    most = max(run.without_key for run in runs)
    left = f"run {newest.number} left {counted(count, 'row')} out" if count else "no row was without a value"
    return Advice(
        AdviceCode.NULLABLE_KEY,
        ctx,
        f"The key {names} may be NULL, and a row without a key has no place in the order, so no run reaches it.",
        f"run {newest.number} read by {', '.join(newest.read.columns)}"
        + (f", of which the table lets {names} be NULL" if newest.read.nullable else ""),
        f"{left}; {_who(runs)} left {most:,} at most. Each plan counts them by a query of its own",
        f"Fill {names} and declare it NOT NULL, or read by another key; on_null='include_once' reads such rows once.",
        {"runs": len(runs), "rows_without_key": count, "most_rows_without_key": most},
    )


def _updated(ctx: str, runs: Sequence[RowsOfRun]) -> Advice | None:
    known = [(run, again) for run, again in _again(runs) if run.rows]
    again = sum(count for _, count in known)
    rows = sum(run.rows or 0 for run, _ in known)
    if len(known) < LEAST_RUNS or not is_most(again, rows):
        return None
    names = ", ".join(runs[-1].read.columns)
    return Advice(
        AdviceCode.UPDATED_KEY,
        ctx,
        f"Rows are updated after they were read by {names}, so that most of what is read was read before.",
        f"{again:,} of {counted(rows, 'row')} of {_who([run for run, _ in known])} had been read before, "
        "and were updated since",
        f"{again / rows:.0%} of the rows were read again; an output that appends holds each of them once more",
        "Read new rows by a key that is written once (a serial number, the time of the insert); where updates matter, "
        "write by upsert, or compare the table whole by snapshot().",
        {"runs": len(known), "rows_read": rows, "rows_read_again": again},
    )


def _again(runs: Sequence[RowsOfRun]) -> Iterator[tuple[RowsOfRun, int]]:
    for before, run in pairwise(runs):
        again = read_again(before.read, run.read)
        if again is not None:
            yield run, again


def _who(runs: Sequence[RowsOfRun]) -> str:
    return runs_named(runs_in_words([run.number for run in runs]))
