"""Resolve points in history: the run that a number, a run id, a time or a watermark names."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from airflow_bookmarks.core.errors import OptionError, RunUnknownError
from airflow_bookmarks.core.order import order_of
from airflow_bookmarks.core.text.instant import from_text
from airflow_bookmarks.core.timeline import living_runs
from airflow_bookmarks.lifecycle.history.rewind import is_number, resolve_run
from airflow_bookmarks.store.transitions.collection import collected_until

if TYPE_CHECKING:
    from collections.abc import Callable

    from airflow_bookmarks.core.head import Head
    from airflow_bookmarks.core.run import Run
    from airflow_bookmarks.store.bookmark_store import BookmarkStore

WATERMARK = "watermark:"
_SHOWN = 80  # characters of a user's text in a message


def resolve_point(store: BookmarkStore, job: str, head: Head, text: str) -> Run:
    """Return the committed run of the living line that `text` names: the last one at or before it.

    Args:
        text: a run number; a run id; an ISO 8601 time with a zone (the job as it was then: the last run that had
            committed); or `watermark:<value>` (the last run whose watermark is at or below it), for a job with several
            contexts `watermark:<context>=<value>`.

    Raises:
        RunUnknownError: there is no such run, or it was collected. OptionError: it is none of these.

    Example:
        resolve_point(store, "flights.clean", head, "watermark:2013-01-31T00:00:00Z")
    """
    if text.startswith(WATERMARK):
        return _by_watermark(store, job, head, text.removeprefix(WATERMARK))
    if is_number(text) or store.execution(job, text) is not None:
        return resolve_run(store, job, head, text)
    time = _time(job, text)
    if time is None:
        return resolve_run(store, job, head, text)  # its error lists what there is
    return _last(
        store, job, head, lambda run: run.committed_at is not None and from_text(run.committed_at) <= time, text
    )


def is_time(text: str) -> bool:
    """Whether a point in history is a time, rather than a run id."""
    try:
        datetime.fromisoformat(text)
    except ValueError:
        return False
    return True


def _time(job: str, text: str) -> datetime | None:
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        return None
    if time.tzinfo is None:
        raise OptionError(
            f"job {job!r}: {text!r} is a time without a zone. Nothing was read or changed. Write it as "
            "2013-01-31T12:00:00Z."
        )
    return time


def _by_watermark(store: BookmarkStore, job: str, head: Head, text: str) -> Run:
    ctx, value = _context_of(job, head, text)

    def is_reached(run: Run) -> bool:
        state = run.contexts.get(ctx)
        if state is None or state.watermark is None:
            return True  # nothing was read yet, which is below everything
        order = order_of(state.order, state.watermark)
        compared = order.compare(state.watermark, value)
        if compared is None:
            raise OptionError(
                f"job {job!r}: the watermark of {ctx!r} is like {state.watermark!r} (run {run.key.number}), and "
                f"{value[:_SHOWN]!r} can't be compared with it. Nothing was read or changed. Say {order.description}."
            )
        return compared <= 0

    return _last(store, job, head, is_reached, f"{WATERMARK}{text}")


def _context_of(job: str, head: Head, text: str) -> tuple[str, str]:
    named, separator, rest = text.partition("=")
    if separator and named in head.contexts:
        return named, rest
    known = sorted(ctx for ctx, state in head.contexts.items() if state.watermark is not None)
    if len(known) != 1:
        raise OptionError(
            f"job {job!r} has {len(known)} contexts with a watermark ({', '.join(known)}), so say which: "
            f"{WATERMARK}<context>={text}. Nothing was read or changed."
        )
    return known[0], text


def _last(store: BookmarkStore, job: str, head: Head, is_reached: Callable[[Run], bool], text: str) -> Run:
    living = store.ancestry(job, head.epoch)
    runs = store.runs(job, after=collected_until(store, job), until=head.run_number, reverse=True)
    for run in living_runs(runs, living):
        if is_reached(run):
            return resolve_run(store, job, head, str(run.key.number))
    raise RunUnknownError(
        f"job {job!r} has no living run at or before {text!r}: it lies before the first run that is left. Nothing was "
        f"read or changed. 'airflow-bookmarks history {job}' lists the runs; back to the beginning is a reset."
    )
