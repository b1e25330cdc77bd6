"""Check history: lines against each other and their audit events, and runs, one committed run for each number."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_bookmarks.core.amount import Amount, is_as_much
from airflow_bookmarks.core.errors import SourceError, StateCorruptError
from airflow_bookmarks.lifecycle.maintenance.doctor.finding import RESTORE, RESTORE_LINE, Finding, Severity

if TYPE_CHECKING:
    from collections.abc import Iterator

    from airflow_bookmarks.core.head import Head
    from airflow_bookmarks.core.rules.audit import AuditEvent
    from airflow_bookmarks.core.run import PlanEntry, Run
    from airflow_bookmarks.core.timeline import Timeline
    from airflow_bookmarks.lifecycle.maintenance.doctor.survey import Survey


_AUDIT = "Restore the table from a backup if the audit trail matters: nothing else depends on the event."


def examine_lines(survey: Survey) -> Iterator[Finding]:
    """Find lines that are gone, that no change can have left, or that have no event; and runs of no line."""
    head = survey.head
    if head is None:
        return
    missing = [epoch for epoch in range(2, head.epoch + 1) if epoch not in survey.lines]
    for epoch in missing:
        what = f"the line of epoch {epoch} is missing, so nobody can tell which runs are history"
        yield _line_missing(survey, epoch, what)
    for epoch, line in survey.lines.items():
        if line.parent not in (1, *survey.lines):
            what = f"the line of epoch {epoch} branches off epoch {line.parent}, and there is no such line"
            yield _line_missing(survey, epoch, what)
        if epoch <= head.epoch:
            yield from _line(survey, head, line)
            yield from _event(survey, line)
    if not missing:
        for runs in survey.committed.values():
            for run in runs:
                yield from _run(survey, head, run)


def _line_missing(survey: Survey, epoch: int, what: str) -> Finding:
    return Finding("line-missing", survey.job, Severity.ERROR, what, _where(epoch), RESTORE_LINE)


def _where(epoch: int) -> str:
    return f"LINE#{epoch:010d}"


def _end(survey: Survey, head: Head, epoch: int) -> int:
    """Return the last run number that was assigned while a line was the living one."""
    following = survey.lines.get(epoch + 1)
    return head.run_number if following is None else following.start


def _line(survey: Survey, head: Head, line: Timeline) -> Iterator[Finding]:
    wrong: list[str] = []
    if line.parent is not None and line.parent >= line.epoch:
        wrong.append(f"it branches off epoch {line.parent}, which is not before it")
    if line.kept > line.start:
        wrong.append(f"it keeps runs up to {line.kept}, and began when run {line.start} was the last one")
    end = _end(survey, head, line.epoch)
    if line.start > end:
        wrong.append(f"it began when run {line.start} was the last one, and later only {end} was")
    for part in wrong:
        what = f"the line of epoch {line.epoch} is not as a change leaves it: {part}"
        yield Finding("line-implausible", survey.job, Severity.ERROR, what, _where(line.epoch), RESTORE_LINE)


def _event(survey: Survey, line: Timeline) -> Iterator[Finding]:
    # Events of other kinds note the epoch too; only those of changes also say what they met.
    events = [e for e in survey.events if e.get("epoch_after") == line.epoch and "run_number_before" in e]
    if not events:
        what = f"no event tells who began the line of epoch {line.epoch}, when and why: the audit trail has a gap"
        yield Finding("event-missing", survey.job, Severity.WARNING, what, _where(line.epoch), _AUDIT)
    elif not any(_fits(line, event) for event in events):
        what = (
            f"the line of epoch {line.epoch} (parent {line.parent}, kept {line.kept}, start {line.start}) is not what "
            f"the event of its change says (kept {events[0].get('to_run')!r}, start {events[0]['run_number_before']!r})"
        )
        yield Finding("line-differs", survey.job, Severity.ERROR, what, _where(line.epoch), RESTORE_LINE)


def _fits(line: Timeline, event: AuditEvent) -> bool:
    before = event.get("epoch_before")
    if not isinstance(before, int) or (event.get("to_run"), event["run_number_before"]) != (line.kept, line.start):
        return False
    # An undo goes back to the epoch before the one that it undoes.
    return line.parent == (before - 1 if event.get("kind") == "undo" else before)


def _run(survey: Survey, head: Head, run: Run) -> Iterator[Finding]:
    where = f"RUN {run.key}"
    start = survey.lines[run.epoch].start if run.epoch in survey.lines else 0
    if 1 <= run.epoch <= head.epoch and start < run.key.number <= _end(survey, head, run.epoch):
        return
    what = (
        f"run {run.key} says that it was made in epoch {run.epoch}, and that epoch can't have given out its number: "
        "whether it is history is a guess, and consumers may leave it out"
    )
    yield Finding("run-of-no-line", survey.job, Severity.ERROR, what, where, RESTORE_LINE)


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
    """Compare each execution with the runs that it made, which may have been collected."""
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
    # A replay notes the run that it makes again as its own last run.
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
                f"run {run.key} is {run.state.value}, and run {head.run_number} has committed since: "
                "no run will settle it"
            )
            mend = "It is harmless as long as nothing was written under its token; 'gc' removes it with its number."
            yield Finding("open-run-below-head", survey.job, Severity.WARNING, what, f"RUN {run.key}", mend)


def _plan(survey: Survey, run: Run, ctx: str, entry: PlanEntry) -> Iterator[Finding]:
    where = f"RUN {run.key}, plan of {ctx!r}"
    try:
        plan = survey.plan_of(run, ctx)
    except (StateCorruptError, SourceError) as error:
        yield Finding("plan-differs", survey.job, Severity.ERROR, f"{where}: {error}", where, RESTORE)
        return
    if plan is not None and not is_as_much(plan.amount, entry.metadata.amount):
        what = f"{where} lists {_shown(plan.amount)}, and its facts say {_shown(entry.metadata.amount)}"
        yield Finding("plan-differs", survey.job, Severity.ERROR, what, where, RESTORE)


def _shown(amount: Amount) -> str:
    return amount.in_words() if amount.bytes is None else f"{amount.in_words()} of {amount.bytes} bytes"
