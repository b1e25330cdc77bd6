"""Backfill: the routes that take a job back with everything downstream of it, by the rules of the command line.

They take the permission to change each job that goes back, and to look at each that reads it, at any distance: a plan
names them all. Otherwise they take what every change takes (see `change`).
"""

from collections.abc import Collection, Mapping
from dataclasses import asdict
from typing import Annotated, Any

from fastapi import APIRouter, Body, Depends

from airflow_bookmarks.core.errors import BackfillStoppedError, ChangedMeanwhileError, ChangeRefusedError
from airflow_bookmarks.core.job_state import hidden
from airflow_bookmarks.hooks.bookmark import BookmarkHook
from airflow_bookmarks.plugin.auth import Person
from airflow_bookmarks.plugin.csrf import same_origin
from airflow_bookmarks.plugin.dependencies import JobName, Owned, PageRequest, PageRequestDep, TaskRunner
from airflow_bookmarks.plugin.exception_handlers import ForbiddenError
from airflow_bookmarks.plugin.redaction import hidden_from
from airflow_bookmarks.plugin.routes.change import answer_of, check_confirmed, note_change
from airflow_bookmarks.plugin.schemas.backfill import (
    BackfillBody,
    BackfillDag,
    BackfillPreview,
    BackfillSpec,
    BackfillStepRow,
)
from airflow_bookmarks.plugin.schemas.responses import Changed

router = APIRouter(tags=["backfill"], dependencies=[Depends(same_origin)])

_TIMES = 20  # as long as what is about one bookmark


@router.post("/jobs/{job}/backfill/preview")
async def preview(request: PageRequestDep, job: JobName, spec: Annotated[BackfillSpec, Body()]) -> BackfillPreview:
    """Say what would go back with a job, and what that takes, without changing anything."""
    found = await request.changeable_job(job)
    told = await _plan(request, found, spec)
    known = await _check_rights(request, told)
    dags = [BackfillDag(**each, is_here=each["dag_id"] in known) for each in told["dag_runs"]]
    return BackfillPreview(job=found.key, steps=[_row(step) for step in told["steps"]], dag_runs=dags, **_shown(told))


@router.post("/jobs/{job}/backfill")
async def backfill(request: PageRequestDep, job: JobName, body: Annotated[BackfillBody, Body()]) -> Changed:
    """Take a job back with everything downstream of it: one job after the other, each with its own event."""
    found = await request.changeable_job(job)
    check_confirmed(job, body.confirm)
    for name in (*body.leave, *body.keep):
        await request.readable_job(name)
    for name in body.expected_versions:
        await request.changeable_job(name)
    try:
        return await request.with_files(
            lambda _, do: _make(do, found, body, request.person), is_change=True, times=_TIMES
        )
    except (ChangedMeanwhileError, ChangeRefusedError):
        # It may name jobs at any distance, on which nobody has asked for rights yet: the present plan has them all.
        await _check_rights(request, await _plan(request, found, body))
        raise


async def _plan(request: PageRequest, found: Owned, spec: BackfillSpec) -> dict[str, Any]:
    how = _how(spec)
    for name in (*spec.leave, *spec.keep):  # whether a job reads another is told to nobody who may not look at it
        await request.readable_job(name)
    try:
        told: dict[str, Any] = await request.with_files(
            lambda hook, do: _with_state(hook, do("plan_backfill", found.key, **how)), times=_TIMES
        )
    except ChangeRefusedError as error:  # it names jobs on which nobody has asked for rights yet
        raise ChangeRefusedError(
            f"jobs downstream of {found.key!r} read each other in a circle, so none of them can go back first. Nothing "
            "was changed. 'airflow-bookmarks graph' shows them; rewind them one by one."
        ) from error
    return told


async def _check_rights(request: PageRequest, told: Mapping[str, Any]) -> Collection[str]:
    """Make sure that a plan may be looked at, and its jobs be changed; return the DAGs of this Airflow.

    Raises:
        ForbiddenError: one may not; what may not be looked at is counted, and not named.
    """
    going = [step["job"] for step in told["steps"]]
    scope = await request.scope()
    names = [*going, *told["unaffected"], *told["left_out"]]
    hidden = await request.store(lambda hook: hidden_from(hook.get_conn(), scope, names))
    if hidden:
        raise ForbiddenError(
            f"{len(hidden)} of the jobs that read it, directly or through others, may not be looked at by "
            f"{request.person.name!r}, so there is no plan. Nothing was changed. Somebody who may look at all of them "
            "can make it, here or on the command line."
        )
    for job in going:
        await request.changeable_job(job)
    return scope.known_dags


def _how(spec: BackfillSpec) -> dict[str, Any]:
    return {"to": spec.to, "clean": spec.clean, "leave": spec.leave, "keep": spec.keep, "force": spec.force}


def _make(do: TaskRunner, found: Owned, body: BackfillBody, person: Person) -> Changed:
    details = {name: value for name, value in _how(body).items() if value}
    details |= {"reason": body.reason, "jobs": list(body.expected_versions)}
    try:
        result = do(
            "backfill",
            found.key,
            how=_how(body),
            expected_versions=body.expected_versions,
            reason=body.reason,
            who=asdict(person.identity),
        )
    except BackfillStoppedError as error:
        # From the child comes the message alone.
        done: dict[str, Any] = {name: list(vars(error)[name]) for name in ("done", "left") if name in vars(error)}
        note_change("bookmark.backfill", found, person, {**details, "in_part": True, **done})
        raise
    told = {name: result[name] for name in ("undone_run_count", "files_to_clean", "outputs_to_clean", "dag_runs")}
    went = {"job": found.key, "change": "backfill", "went_back": list(result["by_job"]), **told}
    return answer_of(found, person, went, details)


def _with_state(hook: BookmarkHook, told: dict[str, Any]) -> dict[str, Any]:
    """Return a plan without the values of `job.state` where the connection hides them."""
    if not hook.hides_state:
        return told
    return {**told, "steps": [hidden(step) for step in told["steps"]]}


def _row(step: Mapping[str, Any]) -> BackfillStepRow:
    names = ("job", "dag_id", "task_id", "change", "to_run", "clean", "because", "refused", "stands", "is_root",
             "doubts", "seconds")  # fmt: skip
    seen = step["preview"]
    return BackfillStepRow(
        **{name: step[name] for name in names},
        undone_run_count=0 if seen is None else seen["undone_run_count"],
        files_to_clean=0 if seen is None else seen["files_to_clean"],
        outputs_to_clean=0 if seen is None else seen["outputs_to_clean"],
        read_again=None if seen is None else seen["read_again"],
        state={} if seen is None else seen["state"],
        written_twice=[] if seen is None else seen["written_twice"],
        holder=None if seen is None else seen["holder"],
    )


_SAME = (
    "refused_jobs", "undone_run_count", "read_again", "files_to_clean", "outputs_to_clean", "seconds", "unaffected",
    "left_out", "versions",
)  # fmt: skip


def _shown(told: Mapping[str, Any]) -> dict[str, Any]:
    return {name: told[name] for name in _SAME}
