"""Check outputs in sinks that tell what lies in them: leftover staging, publishes that wait, targets that are gone."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_bookmarks.core.errors import BookmarkError
from airflow_bookmarks.core.rules.territory import Territory
from airflow_bookmarks.core.run import RunState
from airflow_bookmarks.lifecycle.maintenance.doctor.finding import Finding, Severity
from airflow_bookmarks.lifecycle.maintenance.doctor.target import is_over
from airflow_bookmarks.sinks.examined import DifferenceKind
from airflow_bookmarks.sinks.failure import own_errors
from airflow_bookmarks.sinks.registry import SINKS
from airflow_bookmarks.sinks.sink import StoredOutput

if TYPE_CHECKING:
    from collections.abc import Iterator

    from airflow_bookmarks.core.run import Run, RunKey
    from airflow_bookmarks.lifecycle.maintenance.doctor.survey import Survey
    from airflow_bookmarks.sinks.registry import SinkRegistry

_FOUND = {
    DifferenceKind.WAITS: ("publish-waits", Severity.NOTICE),
    DifferenceKind.STAGED_GONE: ("publish-impossible", Severity.ERROR),
    DifferenceKind.NOT_PUBLISHED: ("published-rows-missing", Severity.ERROR),
    DifferenceKind.TARGET_GONE: ("target-missing", Severity.ERROR),
}
_REACH = "Give this process access to it, and look again: more may be wrong."


def examine_sinks(survey: Survey) -> Iterator[Finding]:
    """Find what sinks say that differs from state, and what no run needs any more. Sinks of files are not asked."""
    sinks = SINKS.reaching(survey.store.databases)
    for run, name in _to_ask(survey):
        yield from _output(survey, sinks, run, name)
    yield from _staging(survey, sinks)


def _to_ask(survey: Survey) -> Iterator[tuple[Run, str]]:
    """Yield the newest published run of each output, and each that is committed and not published."""
    newest: dict[str, Run] = {}
    for run in survey.living():
        if run.state is RunState.PUBLISHED and run.key.number > survey.collected:
            newest |= {name: run for name, output in run.outputs.items() if not output.is_left_out}
        elif run.state is RunState.COMMITTED and not survey.has_live_lease:
            yield from ((run, name) for name in run.outputs)
    yield from ((run, name) for name, run in sorted(newest.items()))


def _output(survey: Survey, sinks: SinkRegistry, run: Run, name: str) -> Iterator[Finding]:
    entry, where = run.outputs[name], f"RUN {run.key}, output {name!r}"
    sink = sinks.find_to_examine(entry.sink)
    if sink is None or entry.commits_by_itself:
        return
    output = StoredOutput(Territory(survey.store.namespace, survey.job), run, name, survey.store.blobs)
    try:
        with own_errors(sink.kind):
            found = sink.examine(output)
    except (BookmarkError, OSError) as error:
        what = f"{where} could not be looked at in {entry.target!r}: {error}"
        yield Finding("target-unreachable", survey.job, Severity.WARNING, what, where, _REACH)
        return
    for each in found:
        code, severity = _FOUND[each.kind]
        yield Finding(code, survey.job, severity, f"{where}: {each.what}", where, each.mend)


def _staging(survey: Survey, sinks: SinkRegistry) -> Iterator[Finding]:
    head = survey.head
    for stored in () if head is None else head.staging:
        if sinks.staging_to_examine(stored) is None:
            continue
        try:
            staged = orphaned_in(survey, sinks, stored)
        except (BookmarkError, OSError) as error:
            what = f"the staging {stored!r} is out of reach, so nobody can tell what is left in it: {error}"
            yield Finding("staging-unreachable", survey.job, Severity.WARNING, what, stored, _REACH)
            continue
        for place, key in staged.items():
            where = f"{stored}: {place}"
            if head is not None and key.fence > head.fence:
                what = (
                    f"{place} was staged by run {key}, and the job has come to fence {head.fence} only: its store was "
                    "put back, or another store has the same namespace and job"
                )
                mend = "Find out which store has that run. No run of this one drops the table."
                yield Finding("staged-ahead", survey.job, Severity.WARNING, what, where, mend)
            else:
                what = f"{place} was staged by run {key}, which is over; nothing of it is open or due"
                mend = "Drop it; the next run of the job would do so as well."
                yield Finding("staged-orphaned", survey.job, Severity.NOTICE, what, where, mend, True)


def orphaned_in(survey: Survey, sinks: SinkRegistry, stored: str) -> dict[str, RunKey]:
    """Return what runs that are over have staged in a root; nothing while a run is at work, or anything is due.

    Raises:
        BookmarkError, OSError: it is out of reach.
    """
    head, found = survey.head, sinks.staging_to_examine(stored)
    if found is None or head is None or survey.has_live_lease or head.publishing or head.cleaning:
        return {}
    sink, root = found
    with own_errors(sink.kind):
        staged = sink.staged_in(Territory(survey.store.namespace, survey.job), root)
    return {place: key for place, key in sorted(staged.items()) if is_over(survey, key)}
