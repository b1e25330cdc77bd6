"""Check kinds: name what of a job can't be looked at here, and what no run here settles."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_bookmarks.core.job_state import STATE_KIND
from airflow_bookmarks.lifecycle.maintenance.doctor.finding import Finding, Severity
from airflow_bookmarks.lifecycle.protocol.recover import made_by, unknown_sinks, unknown_sources
from airflow_bookmarks.sinks.registry import SINKS
from airflow_bookmarks.sources.registry import find_kind, why_unknown

if TYPE_CHECKING:
    from collections.abc import Iterator

    from airflow_bookmarks.core.run import Run
    from airflow_bookmarks.lifecycle.maintenance.doctor.survey import Survey

_MEND = "Nothing to do if that is intended. To check it, ask that system, or a version that knows the kind."


def examine_kinds(survey: Survey) -> Iterator[Finding]:
    """Name each context and output that can't be checked, and each open run that this version refuses."""
    head = survey.head
    kinds = {} if head is None else {ctx: state.kind for ctx, state in head.contexts.items()}
    for ctx, kind in sorted(kinds.items()):
        if kind != STATE_KIND and find_kind(kind) is None:
            what = f"context {ctx!r} is of kind {kind!r}, which is not known here: its position was not looked at"
            what += why_unknown(kind) and f".{why_unknown(kind)}"
            yield Finding("kind-unknown", survey.job, Severity.NOTICE, what, f"HEAD, context {ctx!r}", _MEND)
    sinks = {
        (name, output.sink, output.target)
        for runs in survey.committed.values()
        for run in runs
        for name, output in run.outputs.items()
        if not output.lies_in_files
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
        if _is_left(survey, run):
            yield from _unknown_sinks(survey, run)


def _is_left(survey: Survey, run: Run) -> bool:
    """Whether the next run settles this one: it was left open, or its publish is due. Whoever runs knows its sinks."""
    is_due = survey.head is not None and run.key == survey.head.publishing
    return (run.state.is_open or is_due) and not survey.has_live_lease


def _unknown_sinks(survey: Survey, run: Run) -> Iterator[Finding]:
    for name, output in unknown_sinks(run).items():
        left = "the open run" if run.state.is_open else "the publish is due of run"
        what = (
            f"{left} {run.key}, which wrote output {name!r} to a sink of kind {output.sink!r} ({output.target}) that "
            f"is not known here: no run of the job begins where it is not known.{SINKS.why_unknown(output.sink)}"
        )
        mend = (
            "Run the job where the sink is known, which settles it: by its script if that brings the sink, else with "
            f"the package or the version that made the run{made_by(run)}."
        )
        yield Finding("kind-unknown", survey.job, Severity.WARNING, what, f"RUN {run.key}", mend)
