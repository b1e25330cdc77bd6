"""Runs: one committed run for each number, no open one below, plans as their facts say, executions that have runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_bookmarks.core.errors import StateCorruptError
from airflow_bookmarks.lifecycle.maintenance.doctor.finding import RESTORE, Finding, Severity

if TYPE_CHECKING:
    from collections.abc import Iterator

    from airflow_bookmarks.core.run import PlanEntry, Run
    from airflow_bookmarks.lifecycle.maintenance.doctor.survey import Survey


def examine_runs(survey: Survey) -> Iterator[Finding]:
    """Find what is wrong with run items and executions."""
    yield from _numbers(survey)
    for run in survey.runs.values():
        for ctx, entry in run.plans.items():
            yield from _plan(survey, run, ctx, entry)
    for run_id, execution in survey.executions.items():
        last = execution.last_run
        if last is not None and last not in survey.committed:
            what = f"the execution {run_id!r} says that run {last} was its last, and there is no such committed run"
            yield Finding("execution-without-run", survey.job, Severity.WARNING, what, f"EXEC#{run_id}", RESTORE)
    yield from _executions(survey)


def _executions(survey: Survey) -> Iterator[Finding]:
    """Compare each execution with the runs that it made. Of collected runs it may be gone."""
    made: dict[str, int] = {}
    for number, runs in survey.committed.items():
        made |= {run.run_id: number for run in runs if number > survey.collected}
    for run_id, number in made.items():
        where, execution = f"EXEC#{run_id}", survey.executions.get(run_id)
        if survey.store.keys(survey.job).execution(run_id) in survey.unreadable:
            continue
        if execution is None:
            what = f"run {number} was made by the execution {run_id!r}, and there is no such execution"
            mend = "Clearing its task runs it anew instead of replaying it. Restore the table from a backup."
            yield Finding("execution-missing", survey.job, Severity.WARNING, what, where, mend)
        elif execution.last_run != number and not _is_replay(survey, execution.last_run):
            what = f"the execution {run_id!r} made run {number}, and says that its last one is {execution.last_run}"
            mend = "Clearing its task replays that one. Restore the table from a backup."
            yield Finding("execution-differs", survey.job, Severity.WARNING, what, where, mend)


def _is_replay(survey: Survey, number: int | None) -> bool:
    # Who replays a run notes it as its own last one.
    return any(run.revision > 0 for run in survey.committed.get(number or 0, ()))


def _numbers(survey: Survey) -> Iterator[Finding]:
    head = survey.head
    if head is None:
        return
    for number, runs in survey.committed.items():
        if len(runs) > 1:
            keys = ", ".join(str(run.key) for run in runs)
            what = f"run number {number} was committed {len(runs)} times ({keys}): rows may be in the target twice"
            yield Finding("run-doubled", survey.job, Severity.ERROR, what, f"RUN {number}", RESTORE)
    missing = [n for n in range(survey.collected + 1, head.run_number) if n not in survey.committed]
    if missing:
        what = (
            f"{len(missing)} committed run(s) are missing, the first: {missing[0]}. Runs up to {survey.collected} were "
            f"collected, and every later one up to {head.run_number} has to be there"
        )
        yield Finding("run-missing", survey.job, Severity.ERROR, what, f"RUN {missing[0]}", RESTORE)
    for run in survey.runs.values():
        if run.state.is_open and run.key.number <= head.run_number:
            what = (
                f"run {run.key} is {run.state.value}, and run {head.run_number} was committed since: nobody settles it"
            )
            mend = "It is harmless as long as nothing was written under its token; 'gc' removes it with its number."
            yield Finding("open-run-below-head", survey.job, Severity.WARNING, what, f"RUN {run.key}", mend)


def _plan(survey: Survey, run: Run, ctx: str, entry: PlanEntry) -> Iterator[Finding]:
    where = f"RUN {run.key}, plan of {ctx!r}"
    try:
        plan = survey.plan_of(run, ctx)
    except StateCorruptError as error:
        yield Finding("plan-differs", survey.job, Severity.ERROR, f"{where}: {error}", where, RESTORE)
        return
    if plan is None:
        return
    said = (entry.facts.get("files"), entry.facts.get("bytes"))
    found = (len(plan.files), plan.files.total_bytes)
    if said != found:
        what = f"{where} lists {found[0]} files of {found[1]} bytes, and its facts say {said[0]} of {said[1]}"
        yield Finding("plan-differs", survey.job, Severity.ERROR, what, where, RESTORE)
