"""Partitions that are too old to be listed: files that landed there since, which no run will see.

`partition_time` lets runs pass over old partitions without a look, so only somebody who lists them in full finds what
came too late for it. This does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_bookmarks.core.plan import FilePlan
from airflow_bookmarks.lifecycle.maintenance.doctor.finding import Finding, Severity
from airflow_bookmarks.sources.files.planner import OPTIONS, recorded_files
from airflow_bookmarks.sources.source import PlanInput

if TYPE_CHECKING:
    from collections.abc import Iterator

    from airflow_bookmarks.core.run import ContextState, PlanEntry
    from airflow_bookmarks.lifecycle.maintenance.doctor.survey import Survey


def examine_partitions(survey: Survey) -> Iterator[Finding]:
    """Find files in partitions that are not listed any more, and that no run has read."""
    if survey.head is None:
        return
    for ctx, state in survey.head.contexts.items():
        entry = _last_plan(survey, ctx)
        if entry is not None and "partition_time" in entry.facts.get(OPTIONS, {}):
            yield from _overlooked(survey, ctx, state, entry)


def _overlooked(survey: Survey, ctx: str, state: ContextState, entry: PlanEntry) -> Iterator[Finding]:
    payload = survey.position_of(ctx, state)
    body = survey.bytes_of(entry.body)
    position = None if payload is None else survey.bytes_of(payload)
    if body is None or position is None:
        return  # which the looks at payloads and positions have named
    found = PlanInput(
        position, survey.store.blobs.get_named, entry.facts.get("partition_types", {}), facts=dict(entry.facts)
    )
    source = recorded_files(FilePlan.decode(body).roots, entry.facts[OPTIONS], lambda: survey.now)
    files = source.overlooked(found)
    if not len(files):
        return
    what = (
        f"{len(files)} file(s) of {ctx!r} landed in partitions that are too old to be listed, and no run has read "
        f"them, the first: {files.paths[0]!r}"
    )
    mend = (
        "To read them, run the job once without partition_time, and with a late_after that reaches back to them; or "
        "move them into a newer partition."
    )
    yield Finding("file-in-old-partition", survey.job, Severity.WARNING, what, files.paths[0], mend)


def _last_plan(survey: Survey, ctx: str) -> PlanEntry | None:
    for run in reversed(survey.living()):
        if ctx in run.plans:
            return run.plans[ctx]
    return None
