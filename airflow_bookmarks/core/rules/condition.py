"""Conditions that a run waits for before it begins because it needs another job. Pure rules, no I/O.

`NewsFor`            the job has published something that this consumer has not consumed, or went back below it
`NewsSince`          the same, for a reader with its own place in the job's history (the watcher)
`RunReached`         a living run with this number, or a later one, is published
`DagRunDone`         the runs that one DAG run made are published
`LogicalDateDone`    the runs that a DAG run of this logical date made are published
`WatermarkReached`   the newest published living run has a context whose watermark is at or above this
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, TypeAlias

from airflow_bookmarks.core.errors import OptionError
from airflow_bookmarks.core.job import check_name
from airflow_bookmarks.core.order import TEXT, order_like, order_named, order_of
from airflow_bookmarks.core.run import RunState
from airflow_bookmarks.core.timeline import last_common_run

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from airflow_bookmarks.core.head import Head
    from airflow_bookmarks.core.position import Edge
    from airflow_bookmarks.core.run import ContextState, Execution, Run
    from airflow_bookmarks.core.timeline import Ancestry, Timeline

_MOST_DIGITS = 1000  # Python refuses to read a number of more than 4300
_SHOWN = 80  # characters of a user's text in a message


# ---- the conditions; `str()` describes them


@dataclass(frozen=True, slots=True)
class NewsFor:
    """Wait for what the job `consumer` has not consumed."""

    consumer: str

    def __str__(self) -> str:
        return f"something that {self.consumer!r} has not consumed"


@dataclass(frozen=True, slots=True)
class NewsSince:
    """Wait for what was published after run `run_number`, seen in `epoch` with the change count `changes`.

    Without a run number nothing is met: the first evaluation tells where the job stands now.
    """

    run_number: int | None = None
    epoch: int = 1
    changes: int = 0

    def __str__(self) -> str:
        return "what comes from now on" if self.run_number is None else f"something after run {self.run_number}"


@dataclass(frozen=True, slots=True)
class RunReached:
    """Wait for run `number`, or a later one."""

    number: int

    @classmethod
    def of(cls, text: str) -> RunReached:
        """Return the condition that a text means.

        Raises:
            OptionError: it is no number from 1.
        """
        number = _whole_number(text)
        if number is None or number < 1:
            raise OptionError(f"run_number={text!r}: expected a number from 1. Nothing was read or changed.")
        return cls(number)

    def __str__(self) -> str:
        return f"run {self.number} or a later one"


@dataclass(frozen=True, slots=True)
class DagRunDone:
    """Wait for what the DAG run `dag_run_id`, of the DAG that makes the job, has made."""

    dag_run_id: str

    def __str__(self) -> str:
        return f"the run of DAG run {self.dag_run_id!r}"


@dataclass(frozen=True, slots=True)
class LogicalDateDone:
    """Wait for what the DAG run of this logical date has made; `logical_date` is aware."""

    logical_date: datetime

    @classmethod
    def of(cls, text: str) -> LogicalDateDone:
        """Return the condition that a text means.

        Raises:
            OptionError: it is no ISO 8601 time with a zone.
        """
        moment = _time(text)
        if moment is None or moment.tzinfo is None:
            raise OptionError(
                f"upstream_logical_date={text!r}: expected an ISO 8601 time with a zone, for example "
                "2013-01-31T06:00:00Z or {{ logical_date }}. Nothing was read or changed."
            )
        return cls(moment)

    def __str__(self) -> str:
        return f"the run of the logical date {self.logical_date.isoformat()}"


@dataclass(frozen=True, slots=True)
class WatermarkReached:
    """Wait for a watermark at or above `watermark`, of the context `ctx` (None: of the one that has a watermark)."""

    watermark: str
    ctx: str | None = None

    @classmethod
    def of(cls, text: str, ctx: str | None) -> WatermarkReached:
        """Return the condition that two texts mean.

        Raises:
            NameInvalidError: the context can't be one.
        """
        return cls(text, None if ctx is None else check_name("context", ctx))

    def __str__(self) -> str:
        return f"watermark {self.watermark}" + (f" of {self.ctx!r}" if self.ctx else "") + " or above"


Condition: TypeAlias = NewsFor | NewsSince | RunReached | DagRunDone | LogicalDateDone | WatermarkReached


# ---- whether it holds


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether a condition holds, and in words where the job stands.

    `run` is the run that satisfies it; None while nothing does, and when the job went back to before its first run.
    `rewound_to` is set where the condition holds because of a reset or rewind: the last run that is still shared.
    `runs` counts the runs with data that are new to a `NewsSince`.
    """

    is_met: bool
    standing: str
    run: Run | None = None
    rewound_to: int | None = None
    runs: int = 0


UNKNOWN = Verdict(False, "no bookmark of that name yet")


def newest_published(runs: Iterable[Run], living: Ancestry, *, with_data: bool = False) -> Run | None:
    """Return the first of `runs` (newest first) that is published and living history, and not empty if so wanted."""
    for run in runs:
        is_visible = run.state is RunState.PUBLISHED and living.has(run)
        if is_visible and not (with_data and run.is_empty):
            return run
    return None


def rewound_below(edge: Edge | None, head: Head, lines: Iterable[Timeline]) -> int | None:
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


def news_since(
    seen: int, head: Head, newest: Run | None, runs: int, rewound_to: int | None, replayed: Run | None
) -> Verdict:
    """Evaluate whether something was published since run `seen`, for a reader with its own place in the history.

    However much that is, it is one piece of news, and its run is the newest.

    Args:
        newest: the newest published living run with data.
        runs: how many such runs there are above `seen`.
        rewound_to, replayed: as for `news_for_consumer`.
    """
    if rewound_to is not None:
        return Verdict(True, f"went back to run {rewound_to}", newest, rewound_to, runs)
    if newest is not None and runs:
        return Verdict(True, f"published run {newest.key.number}, {runs} new since {seen}", newest, None, runs)
    if replayed is not None and replayed.state is RunState.PUBLISHED:
        return Verdict(True, f"replayed run {replayed.key.number}", replayed, None, 1)
    return Verdict(False, f"{_standing(head)}; nothing since run {seen} has data")


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
    if not living.has(last):
        return Verdict(False, f"run {last.key.number} of {run_id!r} was undone by a reset or rewind")
    return Verdict(True, f"published run {last.key.number} of {run_id!r}", last)


def logical_date_done(found: Iterable[Execution], logical_date: datetime) -> Execution | None:
    """Return the execution of one logical date that counts: the last that has committed, else one that began."""
    of_date = [e for e in found if e.logical_date is not None and _time(e.logical_date) == logical_date]
    return max(of_date, key=lambda execution: execution.last_run or 0, default=None)


# ---- watermarks


def watermark_context(job: str, contexts: Mapping[str, ContextState], ctx: str | None) -> str | None:
    """Return the context whose watermark is meant: `ctx`, else the only one that has a watermark; None if there is none
    yet.

    Raises:
        OptionError: several have one, and `ctx` is not given.
    """
    known = sorted(name for name, state in contexts.items() if state.watermark is not None)
    if ctx is not None:
        return ctx if ctx in known else None
    if len(known) > 1:
        raise OptionError(
            f"job {job!r} has {len(known)} contexts with a watermark ({', '.join(known)}). Nothing was changed. "
            "Say which one is waited for: watermark_ctx='...'."
        )
    return known[0] if known else None


def is_reached(job: str, ctx: str, watermark: str, order: str | None, wanted: str) -> bool:
    """Whether a watermark is at or above the wanted one.

    Args:
        order: the name of the order that is stored with the watermark; None: it compares as it looks.

    Raises:
        OptionError: the wanted one is of another order; a time with a zone and one without are not of one.
    """
    compares_by = order_of(order, watermark)
    compared = compares_by.compare(watermark, wanted)
    if compared is None:
        raise OptionError(
            f"job {job!r}: the watermark of {ctx!r} is like {watermark!r}, and {_shown(wanted)} can't be compared with "
            f"it. Nothing was changed. Wait for {compares_by.description}."
        )
    return compared >= 0


def check_wanted(job: str, condition: WatermarkReached, contexts: Mapping[str, ContextState]) -> None:
    """Make sure that a watermark can be waited for which no context has yet.

    Args:
        contexts: of the job; empty, if it has no bookmark.

    Raises:
        OptionError: the context it is for stores another order; or none is known, and it is neither a number nor a
            time.
    """
    wanted = condition.watermark
    # The next run may give a context that was set another order: that of a column again.
    known = {name: state.order for name, state in contexts.items() if state.set_in is None}
    orders = {name: order_named(order) for name, order in known.items() if order is not None}
    ctx = next(iter(orders), None) if condition.ctx is None and len(orders) == 1 else condition.ctx
    if ctx is not None and ctx in orders:
        if orders[ctx].parse(wanted) is None:
            raise OptionError(
                f"job {job!r}: {_shown(wanted)} can't be compared with the watermarks of {ctx!r}. Nothing was changed. "
                f"Wait for {orders[ctx].description}."
            )
    elif order_like(wanted) is TEXT:
        raise OptionError(
            f"watermark={_shown(wanted)}: expected a number or an ISO 8601 time. Other text compares only with the "
            f"watermark of a context that has one, and job {job!r} has none yet. Nothing was read or changed."
        )


def _shown(text: str) -> str:
    return repr(text) if len(text) <= _SHOWN else f"{text[:_SHOWN]!r}..."


def watermark_reached(job: str, condition: WatermarkReached, head: Head | None, newest: Run | None) -> Verdict:
    """Say whether the watermark of `newest`, the newest published living run, is at or above the wanted one.

    Raises:
        OptionError: it can't be compared, or several contexts have a watermark and none is named.
    """
    if head is None:
        return UNKNOWN
    contexts = {} if newest is None else newest.contexts
    ctx = watermark_context(job, contexts, condition.ctx)
    mark = None if ctx is None else contexts[ctx].watermark
    if newest is None or ctx is None or mark is None:
        check_wanted(job, condition, head.contexts)
        return Verdict(False, _unmarked(condition, head))
    standing = f"published run {newest.key.number} has watermark {mark} of {ctx!r}"
    if is_reached(job, ctx, mark, contexts[ctx].order, condition.watermark):
        return Verdict(True, standing, newest)
    return Verdict(False, f"{standing}; {_standing(head)}")


def unreached_by_head(job: str, condition: WatermarkReached, head: Head) -> Verdict | None:
    """Return the verdict if the head alone rules the wanted watermark out, None where runs have to be read.

    The head's watermark is that of the last committed run, and none before it has a higher one; unless it was set.

    Raises:
        OptionError: as for `watermark_reached`.
    """
    ctx = watermark_context(job, head.contexts, condition.ctx)
    state = None if ctx is None else head.contexts[ctx]
    if ctx is None or state is None or state.watermark is None:
        check_wanted(job, condition, head.contexts)
        return Verdict(False, _unmarked(condition, head))
    if state.set_in is not None or is_reached(job, ctx, state.watermark, state.order, condition.watermark):
        return None
    return Verdict(False, f"watermark {state.watermark} of {ctx!r}; {_standing(head)}")


def _unmarked(condition: WatermarkReached, head: Head) -> str:
    if condition.ctx is None:
        return f"no watermark is published yet; {_standing(head)}"
    known = ", ".join(sorted(head.contexts)) or "none"
    return f"no watermark of {condition.ctx!r} is published yet, contexts are {known}; {_standing(head)}"


def _whole_number(text: str) -> int | None:
    digits = text.removeprefix("-")
    is_number = digits.isascii() and digits.isdecimal() and len(digits) <= _MOST_DIGITS
    return int(text) if is_number else None


def _time(text: str) -> datetime | None:
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        return None


def _standing(head: Head) -> str:
    due = f", run {head.publishing.number} is committed and not published" if head.publishing is not None else ""
    return f"last published run {head.published}, last with data {head.data_run_number}, epoch {head.epoch}{due}"
