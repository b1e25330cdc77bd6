"""All that is stored of a job as one document: for another store, or to keep."""

from collections.abc import Sequence
from typing import Any
from urllib.parse import quote

from fastapi import APIRouter, Response

from airflow_bookmarks.core.errors import ExportRefusedError
from airflow_bookmarks.hooks.bookmark import BookmarkHook
from airflow_bookmarks.plugin.auth import UserScope
from airflow_bookmarks.plugin.dependencies import ALL_SHARDS, JobName, PageRequestDep, TaskRunner
from airflow_bookmarks.plugin.redaction import names_hidden_in
from airflow_bookmarks.plugin.schemas.export import ExportedJobs

router = APIRouter(tags=["looking"])

_NOTHING = "Nothing was handed out or changed."


@router.get("/jobs/{job}/export")
async def export_of(request: PageRequestDep, job: JobName, response: Response) -> ExportedJobs:
    """Export a job: all that is stored of it. Takes the permission to change the job."""
    found = await request.changeable_job(job)
    scope = await request.scope()
    jobs, most = found.shards or (found.key,), request.backstage.limits.answer
    document = await request.in_child(
        lambda hook, do: _exported(hook, do, found.key, jobs, scope, most), times=ALL_SHARDS if found.shards else 1
    )
    name = quote(f"{found.key}.bookmark.json", safe="")  # a header has no letters but those of English
    response.headers["Content-Disposition"] = f"attachment; filename*=UTF-8''{name}"
    return ExportedJobs(**document)


def _exported(
    hook: BookmarkHook, do: TaskRunner, job: str, jobs: Sequence[str], scope: UserScope, most: int
) -> dict[str, Any]:
    if hook.hides_state:
        raise ExportRefusedError(
            f"job {job!r}: a document holds the values of job.state, and the connection hides them. {_NOTHING} "
            f"Whoever may read the store exports it: airflow-bookmarks export {job} --file PATH."
        )
    document: dict[str, Any] = do("export", job, jobs=list(jobs), most=most)
    if names_hidden_in(hook.get_conn(), scope, document, jobs):
        raise ExportRefusedError(
            f"job {job!r}: a document names its upstreams and consumers, and you may not look at one of them. "
            f"{_NOTHING} Ask somebody who may look at all of them."
        )
    return document
