"""Bounds: paths in state that the job may neither move nor delete. By their text alone: no file is looked at."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from airflow_bookmarks.core.errors import OutOfBoundsError
from airflow_bookmarks.core.plan import decode_paths
from airflow_bookmarks.core.rules.territory import OutputBounds, Territory
from airflow_bookmarks.lifecycle.maintenance.doctor.finding import RESTORE_ALONE, Finding, Severity
from airflow_bookmarks.lifecycle.protocol.cleanup import CleanList, listed_changes
from airflow_bookmarks.lifecycle.protocol.file_changes import HEAD_STAGING, check_staging
from airflow_bookmarks.store.transitions.collection import copied_until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from airflow_bookmarks.core.head import Head
    from airflow_bookmarks.core.run import Run
    from airflow_bookmarks.lifecycle.maintenance.doctor.survey import Survey

CODE = "path-foreign"


def examine_bounds(survey: Survey) -> Iterator[Finding]:
    """Find what the head and the runs name that the job may not touch; runs that came with a copy it never touches."""
    head, territory = survey.head, Territory(survey.store.namespace, survey.job)
    if head is None:
        return
    yield from _refused(survey, lambda: check_staging(territory, head.staging))
    body = None if head.cleaning is None else survey.bytes_of(head.cleaning)
    if body is not None:
        yield from _refused(
            survey, lambda: listed_changes(survey.store, survey.job, head.epoch, CleanList.decode(body))
        )
    copied = copied_until(survey.store, survey.job)
    for run in survey.runs.values():
        if run.state.is_committed and run.key.number > copied:
            for name in (name for name, output in run.outputs.items() if output.is_staged):
                yield from _refused(survey, partial(_check, survey, head, run, name))


def _check(survey: Survey, head: Head, run: Run, name: str) -> None:
    """Check what a run has published and replaced, and, where its publish is due, from where it moves."""
    output = run.outputs[name]
    bounds = OutputBounds.of(Territory(survey.store.namespace, survey.job), run, name)
    for source, target in survey.moves_of(output):
        bounds.check_own(target)
        if run.key == head.publishing:
            bounds.check_move(source, target)
    body = None if output.delete is None else survey.bytes_of(output.delete)
    for path in [] if body is None else decode_paths(body):
        if run.key == head.publishing:
            bounds.check_delete(path)
        else:
            bounds.check_replaced(path)


def _refused(survey: Survey, check: Callable[[], object]) -> Iterator[Finding]:
    """Yield the finding that a check was refused, if it was."""
    try:
        check()
    except OutOfBoundsError as error:
        what = f"{error.item} names {error.path!r}, which this job may neither move nor delete: {error.why}"
        is_root = error.item == HEAD_STAGING
        mend = "Take such folders off the list; no file is touched." if is_root else RESTORE_ALONE
        yield Finding(CODE, survey.job, Severity.ERROR, what, error.item, mend, is_root)
