"""Moments of history: which run a person means by a number, a run id, a time or a watermark."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from airflow_bookmarks.core.errors import OptionError, RunUnknownError
from airflow_bookmarks.core.instant import to_text
from airflow_bookmarks.lifecycle.rewind import is_number, resolve_run
from airflow_bookmarks.store.collection import check_uncollected

if TYPE_CHECKING:
    from collections.abc import Callable

    from airflow_bookmarks.core.run import Run
    from airflow_bookmarks.store.bookmark_store import BookmarkStore

WATERMARK = "watermark:"


def resolve_moment(store: BookmarkStore, job: str, reference: str) -> Run:
    """Return the living run that a reference names.

    Args:
        reference: a run number; a run id; an ISO 8601 time with a zone: the last run committed by then; or
            `watermark:<value>`: the last run none of whose contexts had passed that value.

    Raises:
        RunUnknownError: no such run. OptionError: a time without a zone.
    """
    if reference.startswith(WATERMARK):
        value = reference.removeprefix(WATERMARK)
        return _last(store, job, reference, lambda run: not _has_passed(run, value))
    time = _time(reference)
    if time is None:
        return resolve_run(store, job, store.head(job), reference)
    until = to_text(time)
    return _last(store, job, reference, lambda run: run.committed_at is not None and run.committed_at <= until)


def _time(reference: str) -> datetime | None:
    if is_number(reference):
        return None
    try:
        time = datetime.fromisoformat(reference)
    except ValueError:
        return None
    if time.tzinfo is None:
        raise OptionError(
            f"{reference!r} is a time without a zone. Nothing was read or changed. Write it as 2013-01-31T12:00:00Z."
        )
    return time


def _has_passed(run: Run, value: str) -> bool:
    return any(state.watermark is not None and _is_above(state.watermark, value) for state in run.contexts.values())


def _is_above(watermark: str, value: str) -> bool:
    if is_number(watermark) and is_number(value):
        return int(watermark) > int(value)
    times = _time(watermark), _time(value)
    if times[0] is not None and times[1] is not None:
        return times[0] > times[1]
    return watermark > value


def _last(store: BookmarkStore, job: str, reference: str, belongs: Callable[[Run], bool]) -> Run:
    head = store.head(job)
    living = store.ancestry(job, head.epoch)
    for run in store.runs(job, until=head.run_number, reverse=True):
        if run.state.is_committed and living.is_living(run.key.number, run.epoch) and belongs(run):
            check_uncollected(store, job, run.key.number)
            return run
    check_uncollected(store, job, 1)
    raise RunUnknownError(
        f"job {job!r} has no living run at or before {reference!r}. Nothing was read or changed. Back to the very "
        f"beginning is a reset; 'airflow-bookmarks history {job}' lists the runs."
    )
