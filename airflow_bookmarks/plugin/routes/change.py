"""Changing: the routes that change something, by the rules of the hook and so of the command line.

Each takes the permission to change the job, JSON from the page itself, a reason, the version that was looked at, and
the job's name once more. What is changed is noted with the name of the logged-in user.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from typing import Annotated, Any, TypeVar

from fastapi import APIRouter, Body, Depends, Path

from airflow_bookmarks.core.errors import ChangedMeanwhileError, OptionError, ShardsLeftError
from airflow_bookmarks.core.job_state import SET_STATE, hidden
from airflow_bookmarks.hooks.bookmark import BookmarkHook
from airflow_bookmarks.lifecycle.changes.approval import find_request, protect, reject
from airflow_bookmarks.lifecycle.changes.change import Change, unlock
from airflow_bookmarks.lifecycle.changes.sharing import check_seen_owner
from airflow_bookmarks.plugin.airflow_database.audit import note
from airflow_bookmarks.plugin.auth import Person, UserScope
from airflow_bookmarks.plugin.csrf import same_origin
from airflow_bookmarks.plugin.dependencies import ALL_SHARDS, JobName, Owned, PageRequestDep, TaskRunner
from airflow_bookmarks.plugin.exception_handlers import MovedError
from airflow_bookmarks.plugin.presenters.bookmark import request_row
from airflow_bookmarks.plugin.presenters.conflict import difference
from airflow_bookmarks.plugin.redaction import with_names_hidden
from airflow_bookmarks.plugin.schemas import requests
from airflow_bookmarks.plugin.schemas.preview import Preview
from airflow_bookmarks.plugin.schemas.responses import Changed, Requested

router = APIRouter(tags=["changing"], dependencies=[Depends(same_origin)])

_T = TypeVar("_T")

# Of a result, what an answer has in its words alone.
_SAID = ("by_shard", "held_by", "attempt", "went_back", "dag_runs")

RequestId = Annotated[str, Path(max_length=100, pattern=r"^[0-9A-Za-z]+$")]


@router.post("/jobs/{job}/preview")
async def preview(
    request: PageRequestDep, job: JobName, spec: Annotated[requests.ChangeSpec, requests.BY_KIND]
) -> Preview:
    """Say what a change would do, without making it."""
    found = await request.changeable(job)
    scope = await request.scope()
    return await request.with_files(lambda hook, do: _preview(hook, do, found.key, spec.change(), scope))


@router.post("/jobs/{job}/changes")
async def change(
    request: PageRequestDep, job: JobName, body: Annotated[requests.ChangeBody, requests.BY_KIND]
) -> Changed:
    """Reset a job, rewind it, set a context or state of it, delete its bookmark, or undo the last of these."""
    found = await request.changeable(job)
    check_confirmed(job, body.confirm)
    return await request.with_files(lambda hook, do: _change(hook, do, found, body, request.person), is_change=True)


@router.post("/jobs/{job}/protection")
async def protection(request: PageRequestDep, job: JobName, body: Annotated[requests.Reason, Body()]) -> Changed:
    """Protect a job: changes of it need the approval of a second person from then on."""
    found = await request.changeable(job)
    return await request.store(lambda hook: _protect(hook, found, body.reason, request.person))


@router.post("/jobs/{job}/unlock")
async def unlock_job(request: PageRequestDep, job: JobName, body: Annotated[requests.Unlock, Body()]) -> Changed:
    """Take a job from a run whose driver is known to be dead: that run can't commit any more."""
    found = await request.changeable(job)
    check_confirmed(job, body.confirm)
    return await request.store(lambda hook: _unlock(hook, found, body, request.person))


@router.post("/jobs/{job}/requests", status_code=201)
async def request_change(
    request: PageRequestDep, job: JobName, body: Annotated[requests.RequestBody, requests.BY_KIND]
) -> Requested:
    """Ask for a change of a protected job, which somebody else approves."""
    found = await request.changeable(job)
    check_confirmed(job, body.confirm)
    scope = await request.scope()
    return await request.with_files(
        lambda hook, do: _request(hook, do, found, body, request.person, scope), is_change=True
    )


@router.post("/jobs/{job}/requests/{id}/approve")
async def approve_request(
    request: PageRequestDep, job: JobName, id: RequestId, body: Annotated[requests.Approval, Body()]
) -> Changed:
    """Approve a change that somebody else asked for, and make it."""
    found = await request.changeable(job)
    return await request.with_files(
        lambda hook, do: _approve(hook, do, found, id, body.force, request.person), is_change=True
    )


@router.post("/jobs/{job}/requests/{id}/reject")
async def reject_request(
    request: PageRequestDep, job: JobName, id: RequestId, body: Annotated[requests.Reason, Body()]
) -> Requested:
    """Turn down a change that somebody asked for."""
    found = await request.changeable(job)
    scope = await request.scope()
    return await request.store(lambda hook: _reject(hook, found, id, body.reason, request.person, scope))


# ---- within the store's threads. The row in Airflow's log is written there as well: nobody may wait for it any more


def _preview(hook: BookmarkHook, do: TaskRunner, job: str, spec: Change, scope: UserScope) -> Preview:
    store = hook.get_conn()
    result = do("preview", job, change=asdict(spec))
    result = hidden(result) if hook.hides_state else result
    head = store.head(job)
    answer = Preview(**result, hidden_consumers=0, needs_approval=head.protected)
    return with_names_hidden(store, scope, answer, head.contexts)


def _change(hook: BookmarkHook, do: TaskRunner, found: Owned, body: requests.ChangeBody, person: Person) -> Changed:
    version, who = body.expected_version, asdict(person.identity)
    terms = {"reason": body.reason, "force": body.force, "expected_version": version, "who": who}

    def make() -> dict[str, Any]:
        change = asdict(body.change())
        made: dict[str, Any] = do("change", found.key, change=change, terms=terms, typed_name=body.confirm)
        return made

    result = or_conflict(hook, found, version, make, person.scope)
    details = {**_details_of(body.change()), "reason": body.reason, "force": body.force}
    return answer_of(found, person, result, details)


def _protect(hook: BookmarkHook, found: Owned, reason: str, person: Person) -> Changed:
    result = protect(hook.get_conn(), found.key, reason=reason, who=person.identity)
    return answer_of(found, person, result, {"reason": reason})


def _unlock(hook: BookmarkHook, found: Owned, body: requests.Unlock, person: Person) -> Changed:
    who = person.identity.signature
    result = unlock(hook.get_conn(), found.key, reason=body.reason, who=who, held_by=body.held_by)
    return answer_of(found, person, result, {"reason": body.reason, "held_by": body.held_by})


def _request(
    hook: BookmarkHook,
    do: TaskRunner,
    found: Owned,
    body: requests.RequestBody,
    person: Person,
    scope: UserScope,
) -> Requested:
    store, spec, version = hook.get_conn(), body.change(), body.expected_version

    def make() -> Requested:
        if isinstance(body, requests.OwnerSeen):
            check_seen_owner(store, found.key, found.shards, spec, body.seen, is_request=True)
        arguments = {"change": asdict(spec), "reason": body.reason, "who": asdict(person.identity)}
        request_id = do("request", found.key, **arguments, expected_version=version)
        made = find_request(store, found.key, request_id)
        details = {**_details_of(spec), "reason": body.reason, "request": made.id}
        is_noted = _note("bookmark.request", found, person, details)
        until = f"{made.valid_until:%Y-%m-%d %H:%M} UTC"
        said = f"a {spec.kind} of job {found.key!r} is requested; someone else must approve it by {until}"
        result = Requested(
            request=request_row(made, person, may_change=True, hides_state=hook.hides_state),
            said=said,
            audited=is_noted,
        )
        return with_names_hidden(store, scope, result)

    return or_conflict(hook, found, version, make, lambda: scope)


def _approve(hook: BookmarkHook, do: TaskRunner, found: Owned, request_id: str, force: bool, person: Person) -> Changed:
    result = do("approve", found.key, request_id=request_id, who=asdict(person.identity), force=force)
    details = {"request": request_id, "requested_by": result["requested_by"], "force": force}
    return answer_of(found, person, result, details, event="bookmark.approve")


def _reject(
    hook: BookmarkHook, found: Owned, request_id: str, reason: str, person: Person, scope: UserScope
) -> Requested:
    store = hook.get_conn()
    turned_down = reject(store, found.key, request_id, reason=reason, who=person.identity)
    is_noted = _note("bookmark.reject", found, person, {"request": request_id, "reason": reason})
    said = f"request {request_id} of job {found.key!r} is rejected; nothing else was changed"
    result = Requested(
        request=request_row(turned_down, person, may_change=True, hides_state=hook.hides_state),
        said=said,
        audited=is_noted,
    )
    return with_names_hidden(store, scope, result)


def or_conflict(
    hook: BookmarkHook, found: Owned, seen: int, make: Callable[[], _T], scope: Callable[[], UserScope]
) -> _T:
    """Make a change; if the job moved since it was looked at, say what happened meanwhile (of shards: that it did)."""
    try:
        return make()
    except ChangedMeanwhileError as error:
        if found.shards:
            raise
        store, job = hook.get_conn(), found.key
        result = with_names_hidden(store, scope(), difference(store, job, seen), store.head(job).contexts)
        raise MovedError(str(error), result) from error


def times_of(found: Owned) -> int:
    """Return how many times as long something may take as what is about one bookmark."""
    return ALL_SHARDS if found.shards else 1


@contextmanager
def noted_in_part(found: Owned, person: Person, event: str, details: dict[str, Any]) -> Iterator[None]:
    """Note in Airflow's log what was changed of a sharded job before the rest of it was refused."""
    try:
        yield
    except ShardsLeftError as error:
        # From the child comes the message alone.
        done: dict[str, Any] = {name: list(vars(error)[name]) for name in ("done", "left") if name in vars(error)}
        _note(event, found, person, {**details, "in_part": True, **done})
        raise


def check_confirmed(job: str, confirm: str) -> None:
    """Make sure that the name of the job was typed out.

    Raises:
        OptionError: it was not.
    """
    if confirm != job:
        raise OptionError(
            f"to change job {job!r}, its name has to be typed out as 'confirm', and {confirm!r} is not it. Nothing was "
            "changed."
        )


# ---- what is told, and noted


def answer_of(
    found: Owned, person: Person, result: dict[str, Any], details: dict[str, Any], *, event: str | None = None
) -> Changed:
    """Note a change that was made in Airflow's log, and return what is told of it."""
    kept: dict[str, Any] = {
        name: result[name]
        for name in (
            "epoch",
            "version",
            "undone_run_count",
            "files_to_clean",
            "outputs_to_clean",
            "shards",
            "unchanged_shards",
        )
        if name in result
    }
    is_noted = _note(event or f"bookmark.{result['change']}", found, person, {**details, **kept})
    shown = {name: value for name, value in result.items() if name not in _SAID}
    return Changed(**shown, said=_in_words(result), audited=is_noted)


def note_change(event: str, found: Owned, person: Person, details: dict[str, Any]) -> bool:
    """Note a change in Airflow's log; say whether that was possible."""
    return _note(event, found, person, details)


def _note(event: str, found: Owned, person: Person, details: dict[str, Any]) -> bool:
    return note(event, owner=person.name, job=found.key, dag_id=found.dag_id, task_id=found.task_id, details=details)


def _backfill_in_words(result: dict[str, Any]) -> str:
    went, dags = result["went_back"], [each["dag_id"] for each in result["dag_runs"] if each["dag_id"] is not None]
    said = f"backfill of job {result['job']!r} is done: {', '.join(went) or 'no job'} went back"
    return f"{said}; then trigger, in this order: {', '.join(dags)}" if dags else said


def _details_of(spec: Change) -> dict[str, Any]:
    details: dict[str, Any] = {"change": spec.kind, "to_run": spec.to_run, "contexts": spec.contexts, "ctx": spec.ctx}
    # The value of a state may be a secret.
    value = None if spec.kind == SET_STATE else spec.value
    details |= {"value": value, "state": spec.state, "clean": spec.clean or None}
    details |= {"dag": spec.dag, "renamed": spec.renamed or None}
    return {name: value for name, value in details.items() if value is not None}


def _in_words(result: dict[str, Any]) -> str:
    job, kind = result["job"], result["change"]
    if "protected" in result:
        how = "protected: a change needs a second person's approval" if result["protected"] else "no longer protected"
        return f"job {job!r} is {how}"
    if "owner" in result:
        shared = ", ".join(map(repr, result["shared_with"]))
        which = f" in {result['shards']} of its virtual shards" if result.get("shards") else ""
        also = f", and may be run by {shared} too" if shared else ""
        return f"job {job!r} belongs to DAG {result['owner']!r}{which}{also}"
    if kind == "backfill":
        return _backfill_in_words(result)
    if kind == "unlock":
        return f"job {job!r} is no longer held by {result['held_by']!r}, whose run can't commit; the next run may begin"
    undone, clean, sinks = result["undone_run_count"], result["files_to_clean"], result["outputs_to_clean"]
    runs = f"{undone} run{'' if undone == 1 else 's'} undone" if undone else "no run undone"
    told_files = [f"{clean} file{'' if clean == 1 else 's'}"] if clean else []
    elsewhere = f"rows of {sinks} output{'' if sinks == 1 else 's'} in other sinks"
    removed = " and ".join([*told_files, *([elsewhere] if sinks else [])])
    files = f", {removed} to be removed by the next run" if removed else ""
    if "by_shard" in result:
        shards, same = result["shards"], result["unchanged_shards"]
        left = f"; {same} stood there already" if same else ""
        return f"{kind} of sharded job {job!r} is done in {shards} of its virtual shards{left}: {runs}{files}"
    epoch = result["epoch"]["after"]
    return f"{kind} of job {job!r} is done: {runs}{files}; it stands after run {result['to_run']}, in epoch {epoch}"
