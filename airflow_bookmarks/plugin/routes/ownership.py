"""Ownership: the routes that share a job with another DAG, take that back, and hand a job over.

They take what every change takes (see `change`), and besides whose the job was when it was looked at: a share moves no
version. A protected job is shared and handed over by a request (`POST /jobs/{job}/requests`).
"""

from typing import Annotated, Any

from fastapi import APIRouter, Depends

from airflow_bookmarks.hooks.bookmark import BookmarkHook
from airflow_bookmarks.lifecycle.changes.sharing import OwnerChangePreview as Seen
from airflow_bookmarks.lifecycle.changes.sharing import change_seen_owner, preview_owner
from airflow_bookmarks.plugin.auth import Person
from airflow_bookmarks.plugin.csrf import same_origin
from airflow_bookmarks.plugin.dependencies import JobName, Owned, PageRequestDep
from airflow_bookmarks.plugin.routes.change import answer_of, check_confirmed, noted_in_part, or_conflict, times_of
from airflow_bookmarks.plugin.schemas import requests
from airflow_bookmarks.plugin.schemas.preview import OwnershipPreview
from airflow_bookmarks.plugin.schemas.responses import Changed

router = APIRouter(tags=["ownership"], dependencies=[Depends(same_origin)])


@router.post("/jobs/{job}/ownership/preview")
async def preview(
    request: PageRequestDep, job: JobName, spec: Annotated[requests.OwnerSpec, requests.BY_KIND]
) -> OwnershipPreview:
    """Say what a share, unshare or hand-over would do, without making it."""
    found = await request.changeable_job(job)
    seen = await request.store(
        lambda hook: preview_owner(hook.get_conn(), found.key, found.shards, spec.change()), times=times_of(found)
    )
    return await request.airflow(lambda: _preview(seen, spec.dag, request.person))


@router.post("/jobs/{job}/ownership")
async def change(
    request: PageRequestDep, job: JobName, body: Annotated[requests.OwnerBody, requests.BY_KIND]
) -> Changed:
    """Share a job with another DAG, take that back, or hand the job over."""
    found = await request.changeable_job(job)
    check_confirmed(job, body.confirm)
    return await request.store(lambda hook: _change(hook, found, body, request.person), times=times_of(found))


def _preview(seen: Seen, dag: str, person: Person) -> OwnershipPreview:
    result = seen.as_dict()
    is_same = {*seen.asked_of} == {*seen.asked_of_after}  # who asks may change it now
    return OwnershipPreview(
        **{name: value for name, value in result.items() if name not in ("kind", "is_protected")},
        change=seen.kind,
        dag=dag,
        is_seen=person.sees_dag(dag),
        may_change_after=is_same or person.may_change_then(seen.asked_of_after, dag),
        needs_approval=seen.is_protected,
    )


def _change(hook: BookmarkHook, found: Owned, body: requests.OwnerBody, person: Person) -> Changed:
    store, wanted = hook.get_conn(), body.change()

    def make() -> dict[str, Any]:
        who = person.identity.signature
        return change_seen_owner(store, found.key, found.shards, wanted, body.seen, reason=body.reason, who=who)

    details: dict[str, Any] = {"dag": wanted.dag, "owner_before": body.expected_owner, "reason": body.reason}
    details |= {"renamed": True} if wanted.renamed else {}
    with noted_in_part(found, person, f"bookmark.{wanted.kind}", details):
        result = or_conflict(hook, found, body.expected_version, make, person.scope)
    return answer_of(found, person, result, details)
