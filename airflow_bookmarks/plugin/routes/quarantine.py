"""The files that a job has set aside. To have them read again is a set of their context, by the routes of changes."""

from typing import Annotated

from fastapi import APIRouter, Query

from airflow_bookmarks.hooks.bookmark import BookmarkHook
from airflow_bookmarks.plugin.auth import UserScope
from airflow_bookmarks.plugin.dependencies import JobName, PageRequestDep, TaskRunner
from airflow_bookmarks.plugin.redaction import with_names_hidden
from airflow_bookmarks.plugin.schemas.quarantine import QuarantinedFileRow, QuarantinedFiles

router = APIRouter(tags=["looking"])

Limit = Annotated[int, Query(ge=1, le=200, description="how many files at most")]
Offset = Annotated[int, Query(ge=0, le=10**9, description="how many files to leave out")]


@router.get("/jobs/{job}/quarantined")
async def quarantined_of(
    request: PageRequestDep, job: JobName, limit: Limit = 50, offset: Offset = 0
) -> QuarantinedFiles:
    """List the files that a job has set aside because they can't be parsed, with the reasons."""
    found = await request.readable(job)
    scope = await request.scope()
    return await request.with_files(lambda hook, do: _quarantined(hook, do, found.key, scope, limit, offset))


def _quarantined(
    hook: BookmarkHook, do: TaskRunner, job: str, scope: UserScope, limit: int, offset: int
) -> QuarantinedFiles:
    result = do("quarantined", job, offset=offset, limit=limit)
    rows = [QuarantinedFileRow(**each) for each in result["files"]]
    answer = QuarantinedFiles(files=rows, total=result["total"], limit=limit, offset=offset)
    store = hook.get_conn()
    return with_names_hidden(store, scope, answer, store.head(job).contexts)
