"""Examine jobs: run all checks on one survey of each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_bookmarks.core.errors import (
    JobUnknownError,
    NameInvalidError,
    OptionError,
    SourceError,
    StateCorruptError,
    StoreAccessError,
)
from airflow_bookmarks.core.text.instant import utc_now
from airflow_bookmarks.lifecycle.maintenance.doctor.context import (
    examine_edges,
    examine_gaps,
    examine_kinds,
    examine_partitions,
    examine_positions,
    examine_upstreams,
)
from airflow_bookmarks.lifecycle.maintenance.doctor.finding import RESTORE, Finding, Severity
from airflow_bookmarks.lifecycle.maintenance.doctor.head import (
    examine_head,
    examine_import,
    examine_requests,
    names_to_examine,
)
from airflow_bookmarks.lifecycle.maintenance.doctor.history import examine_lines, examine_runs
from airflow_bookmarks.lifecycle.maintenance.doctor.sink import examine_sinks
from airflow_bookmarks.lifecycle.maintenance.doctor.survey import (
    Survey,
    examine_file,
    examine_objects,
    examine_payloads,
)
from airflow_bookmarks.lifecycle.maintenance.doctor.target import examine_bounds, examine_targets

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
    with_lost: bool = False,
    clock: Callable[[], datetime] = utc_now,
) -> list[Finding]:
    """Examine the state of jobs; return what is wrong, by job. It only reads, and can run beside drivers.

    Args:
        jobs: these jobs; None: all of the namespace.
        with_files: also look at published and staged files, which takes a listing of each target, at tables, which
            takes a connection to each database, and at partitions that runs do not list any more (`partition_time`),
            which takes a listing of the whole source.
        with_lost: also look for jobs that the index has lost, and for objects under `state_uri` that nothing names;
            scans the whole table. Not with `jobs`.
        clock: returns the present time, aware.

    Raises:
        JobUnknownError: a named job has no item at all.

    Example:
        >>> from airflow_bookmarks.store.bookmark_store import open_store
        >>> examine(open_store("sqlite:///:memory:?create=true"))
        []
    """
    names, found = names_to_examine(store, with_lost=with_lost) if jobs is None else (list(jobs), [])
    found += examine_file(store) if jobs is None else []
    found += examine_objects(store) if with_lost else []
    for name in names:
        found += _examined(store, name, clock(), with_files, jobs is not None)
    return found


def _examined(store: BookmarkStore, job: str, now: datetime, with_files: bool, must_exist: bool) -> list[Finding]:
    try:
        return examine_job(store, job, now, with_files, must_exist)
    except (StateCorruptError, NameInvalidError) as error:
        what = f"job {job!r} can't be examined: {error}"
        return [Finding("job-unreadable", job, Severity.ERROR, what, "HEAD", "Restore the table from a backup.")]


def examine_job(
    store: BookmarkStore, job: str, now: datetime, with_files: bool = True, must_exist: bool = True
) -> list[Finding]:
    """Examine the state of one job. What was found while the job moved is looked for again."""
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
        yield Finding("item-unreadable", survey.job, Severity.ERROR, what, key.sk, _as_it_says(key.sk))
    unfinished = list(examine_import(survey))
    yield from unfinished
    if unfinished:
        return
    yield from _try(survey, examine_payloads)
    yield from _try(survey, examine_head)
    yield from _try(survey, examine_requests)
    if survey.head is None:
        return  # without a head, nothing else has a meaning
    for examine_part in (
        examine_lines,
        examine_runs,
        examine_edges,
        examine_upstreams,
        examine_positions,
        examine_kinds,
    ):
        yield from _try(survey, examine_part)
    yield from _try(survey, examine_bounds)
    yield from _try(survey, examine_gaps)
    if with_files:
        yield from _try(survey, examine_targets)
        yield from _try(survey, examine_sinks)
        yield from _try(survey, examine_partitions)


def _as_it_says(sort_key: str) -> str:
    kind = sort_key.partition("#")[0]
    return RESTORE if kind == "RUN" else "Restore the table from a backup; what else helps, the reason says."


def _try(survey: Survey, examine_part: Callable[[Survey], Iterator[Finding]]) -> Iterator[Finding]:
    """Go on with the other checks where one meets bytes or files that can't be read."""
    try:
        yield from examine_part(survey)
    except (StateCorruptError, StoreAccessError, SourceError, OptionError, OSError) as error:
        what = f"not everything of job {survey.job!r} could be looked at: {error}"
        mend = "Mend that, and look again: more may be wrong."
        yield Finding("not-examined", survey.job, Severity.ERROR, what, examine_part.__name__, mend)
