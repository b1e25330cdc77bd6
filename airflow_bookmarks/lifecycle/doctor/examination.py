"""Examinations: all that can be wrong with a job, looked for in one survey of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_bookmarks.core.errors import JobUnknownError
from airflow_bookmarks.core.instant import utc_now
from airflow_bookmarks.lifecycle.doctor.edge import examine_edges
from airflow_bookmarks.lifecycle.doctor.finding import RESTORE, Finding, Severity
from airflow_bookmarks.lifecycle.doctor.head import examine_head
from airflow_bookmarks.lifecycle.doctor.payload import examine_payloads
from airflow_bookmarks.lifecycle.doctor.position import examine_positions
from airflow_bookmarks.lifecycle.doctor.run import examine_runs
from airflow_bookmarks.lifecycle.doctor.survey import Survey
from airflow_bookmarks.lifecycle.doctor.target import examine_targets

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from datetime import datetime

    from airflow_bookmarks.store.bookmark_store import BookmarkStore

_LOOKS = 3


def examine(
    store: BookmarkStore,
    *,
    jobs: Sequence[str] | None = None,
    with_files: bool = True,
    clock: Callable[[], datetime] = utc_now,
) -> list[Finding]:
    """Prove the state of jobs; return what is wrong, by job. It reads only, and can run beside drivers.

    Args:
        jobs: these jobs; None: all of the namespace.
        with_files: also look at published and staged files; takes a listing of each target.
        clock: returns the present time, aware.

    Raises:
        JobUnknownError: a named job has no item at all.

    Example:
        >>> from airflow_bookmarks.store.bookmark_store import open_store
        >>> examine(open_store("sqlite:///:memory:?create=true"))
        []
    """
    names = [name for name, _ in store.jobs()] if jobs is None else list(jobs)
    return [finding for name in names for finding in examine_job(store, name, clock(), with_files, jobs is not None)]


def examine_job(
    store: BookmarkStore, job: str, now: datetime, with_files: bool = True, must_exist: bool = True
) -> list[Finding]:
    """Prove the state of one job. What was found while the job moved is looked for again."""
    for _ in range(_LOOKS):
        survey = Survey.of(store, job, now)
        if not survey.items:
            if must_exist:
                raise JobUnknownError(f"no bookmark named {job!r} in namespace {store.namespace!r}; nothing was read.")
            return []  # another name of a job, or one that never began
        findings = list(_findings(survey, with_files))
        if not findings or (survey.is_settled and survey.is_still()):
            return findings
    what = f"job {job!r} moved while it was looked at, each time, so what seems wrong may be a run at work"
    return [Finding("unsettled", job, Severity.NOTICE, what, "HEAD", "Look again when it is at rest.")]


def _findings(survey: Survey, with_files: bool) -> Iterator[Finding]:
    for key, why in survey.unreadable.items():
        what = f"the item {key.sk} can't be read: {why}"
        yield Finding("item-unreadable", survey.job, Severity.ERROR, what, key.sk, RESTORE)
    yield from examine_payloads(survey)
    yield from examine_head(survey)
    if survey.head is None:
        return  # without a head nothing else has a meaning
    yield from examine_runs(survey)
    yield from examine_edges(survey)
    yield from examine_positions(survey)
    if with_files:
        yield from examine_targets(survey)
