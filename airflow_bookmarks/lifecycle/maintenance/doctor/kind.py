"""Kinds of sources and sinks that this version does not know: what of them could not be looked at."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_bookmarks.core.job_state import STATE_KIND
from airflow_bookmarks.core.plan import PLANS_OF_FILES
from airflow_bookmarks.lifecycle.maintenance.doctor.finding import Finding, Severity
from airflow_bookmarks.lifecycle.protocol.recover import made_by, unknown_sources

if TYPE_CHECKING:
    from collections.abc import Iterator

    from airflow_bookmarks.lifecycle.maintenance.doctor.survey import Survey

_MEND = "It may be as it should be: ask the version of this package, or the system itself, that knows this kind."


def examine_kinds(survey: Survey) -> Iterator[Finding]:
    """Name each context and each output of which nothing could be proved, and each open run that is refused here."""
    head = survey.head
    kinds = {} if head is None else {ctx: state.kind for ctx, state in head.contexts.items()}
    for ctx, kind in sorted(kinds.items()):
        if kind not in (*PLANS_OF_FILES, STATE_KIND):
            what = f"context {ctx!r} is of kind {kind!r}, which is not known here: its position was not looked at"
            yield Finding("kind-unknown", survey.job, Severity.NOTICE, what, f"HEAD, context {ctx!r}", _MEND)
    sinks = {
        (name, output.sink, output.target)
        for runs in survey.committed.values()
        for run in runs
        for name, output in run.outputs.items()
        if not output.is_staged
    }
    yield from _open_runs(survey)
    for name, sink, target in sorted(sinks):
        what = f"output {name!r} is written to {target!r} by a sink of kind {sink!r}: what lies there was not looked at"
        yield Finding("kind-unknown", survey.job, Severity.NOTICE, what, target, _MEND)


def _open_runs(survey: Survey) -> Iterator[Finding]:
    for run in survey.runs.values():
        for ctx, kind in unknown_sources(run).items() if run.state.is_open else ():
            what = (
                f"the open run {run.key} reads context {ctx!r} from a source of kind {kind!r}, which is not known "
                "here: no run of the job begins with this version of the package"
            )
            mend = f"Run the job once with the version that made it{made_by(run)}, which settles it."
            yield Finding("kind-unknown", survey.job, Severity.WARNING, what, f"RUN {run.key}", mend)
