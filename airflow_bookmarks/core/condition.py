"""Conditions: what one waits for before a run begins that needs another job. Rules on what the state says, no I/O.

`news_for_consumer`   the job has published something that this consumer has not consumed, or went back below it
`run_reached`         a living run with this number, or a later one, is published
`dag_run_done`        the runs that one DAG run made are published
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from airflow_bookmarks.core.line import last_common_run
from airflow_bookmarks.core.run import RunState

if TYPE_CHECKING:
    from collections.abc import Iterable

    from airflow_bookmarks.core.edge import Edge
    from airflow_bookmarks.core.head import Head
    from airflow_bookmarks.core.line import Ancestry, Line
    from airflow_bookmarks.core.run import Execution, Run


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether a condition holds, and in words where the job stands.

    `run` is the run that satisfies it; None while nothing does, and when the job went back to before its first run.
    `rewound_to` is set where the condition holds because of a reset or rewind: the last run that is still shared.
    """

    is_met: bool
    standing: str
    run: Run | None = None
    rewound_to: int | None = None


UNKNOWN = Verdict(False, "no bookmark of that name yet")


def newest_published(runs: Iterable[Run], living: Ancestry, *, with_data: bool = False) -> Run | None:
    """Return the first of `runs` (newest first) that is published and living history, and not empty if so wanted."""
    for run in runs:
        is_visible = run.state is RunState.PUBLISHED and living.is_living(run.key.number, run.epoch)
        if is_visible and not (with_data and run.is_empty):
            return run
    return None


def rewound_below(edge: Edge | None, head: Head, lines: Iterable[Line]) -> int | None:
    """Return the last run that a consumer still shares with the job, None where nothing it has consumed was undone.

    The edge is at the lowest of the consumer's contexts; the highest may have consumed what was undone.
    """
    if edge is None:
        return None
    return last_common_run(edge.epoch, head.epoch, edge.highest, lines)


def news_for_consumer(
    consumer: str,
    head: Head | None,
    edge: Edge | None,
    newest: Run | None,
    rewound_to: int | None,
    replayed: Run | None = None,
) -> Verdict:
    """Say whether there is something that `consumer` has not consumed.

    It also holds when the job went back below the consumer's edge, or a run below it was replayed, so that the
    consumer's run can say REWOUND or REPLAYED.

    Args:
        head, edge: of the job; what the consumer has consumed of it (None: nothing yet).
        newest: the newest published living run with data.
        rewound_to: see `rewound_below`.
        replayed: the lowest consumed run that was replayed since.
    """
    if head is None:
        return UNKNOWN
    consumed = 0 if edge is None else edge.run_number
    if rewound_to is not None:
        return Verdict(True, f"went back to run {rewound_to}, and {consumer!r} is at {consumed}", newest, rewound_to)
    if replayed is not None and replayed.state is RunState.PUBLISHED:
        return Verdict(True, f"replayed run {replayed.key.number}, and {consumer!r} is at {consumed}", replayed)
    if newest is not None and newest.key.number > consumed:
        return Verdict(True, f"published run {newest.key.number}, and {consumer!r} is at {consumed}", newest)
    return Verdict(False, f"{_standing(head)}; {consumer!r} has consumed up to run {consumed}, nothing since has data")


def run_reached(number: int, head: Head | None, newest: Run | None) -> Verdict:
    """Say whether run `number` or a later one is published and living; `newest` is the newest run that is both."""
    if head is None:
        return UNKNOWN
    if newest is not None and newest.key.number >= number:
        return Verdict(True, f"published run {newest.key.number}", newest)
    return Verdict(False, _standing(head))


def dag_run_done(run_id: str, execution: Execution | None, last: Run | None, living: Ancestry) -> Verdict:
    """Say whether the execution of one DAG run is finished and its last run published.

    Args:
        run_id: the name of that execution.
        last: the last run that the execution committed.
        living: the history of the job now: a run that was undone since releases nobody.
    """
    if execution is None or execution.attempt == 0:
        return Verdict(False, f"{run_id!r} has not begun")
    if last is None or not execution.is_finished:
        return Verdict(False, f"{run_id!r} (attempt {execution.attempt}) has begun and is not finished")
    if last.state is not RunState.PUBLISHED:
        return Verdict(False, f"run {last.key.number} of {run_id!r} is {last.state} and not published")
    if not living.is_living(last.key.number, last.epoch):
        return Verdict(False, f"run {last.key.number} of {run_id!r} was undone by a reset or rewind")
    return Verdict(True, f"published run {last.key.number} of {run_id!r}", last)


def _standing(head: Head) -> str:
    due = f", run {head.publishing.number} is committed and not published" if head.publishing is not None else ""
    return f"last published run {head.published}, last with data {head.data_run_number}, epoch {head.epoch}{due}"
