"""The requests of all jobs that wait for approval."""

from typing import Annotated

from fastapi import APIRouter, Query

from airflow_bookmarks.core.text.instant import to_text
from airflow_bookmarks.plugin.dependencies import PageRequestDep
from airflow_bookmarks.plugin.presenters.waiting_requests import request_page
from airflow_bookmarks.plugin.schemas.waiting_requests import WaitingRequests

router = APIRouter(tags=["looking"])

Limit = Annotated[int, Query(ge=1, le=50, description="how many jobs at most")]
Offset = Annotated[int, Query(ge=0, le=10**9, description="how many jobs to leave out")]


@router.get("/requests")
async def waiting_requests(request: PageRequestDep, limit: Limit = 25, offset: Offset = 0) -> WaitingRequests:
    """List the changes of protected jobs that wait for a second person, of all jobs that the user may look at."""
    scope = await request.scope()
    page = await request.all_jobs(
        lambda hook: (request_page(hook.get_conn(), scope, request.backstage.jobs, limit, offset), hook.hides_state)
    )
    found, hides_state = page
    person, owners = request.person, {each.owners for each in found.jobs}
    may_change = await request.airflow(lambda: {each: person.may_change(each) for each in owners})
    rows = [
        row
        for each in found.jobs
        for row in each.rows(person, may_change=may_change[each.owners], hides_state=hides_state)
    ]
    return WaitingRequests(
        requests=sorted(rows, key=lambda row: (row.made_at, row.id)),
        damaged=[each.job for each in found.jobs if each.is_damaged],
        total=found.total,
        limit=limit,
        offset=offset,
        unjudged=found.unjudged,
        as_of=None if found.as_of is None else to_text(found.as_of),
    )
