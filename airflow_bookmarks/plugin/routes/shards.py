"""Shards: the routes that take a sharded job back as a whole, by the rules of the command line.

They take the permission to change each of its virtual shards, and otherwise what every change takes (see `change`).
"""

from dataclasses import asdict
from typing import Annotated, Any

from fastapi import APIRouter, Depends

from airflow_bookmarks.core.errors import ChangeRefusedError
from airflow_bookmarks.core.job_state import hidden
from airflow_bookmarks.hooks.bookmark import BookmarkHook
from airflow_bookmarks.lifecycle.changes.change import Change
from airflow_bookmarks.plugin.auth import Person, UserScope
from airflow_bookmarks.plugin.csrf import same_origin
from airflow_bookmarks.plugin.dependencies import JobName, Owned, PageRequest, PageRequestDep, TaskRunner
from airflow_bookmarks.plugin.redaction import with_names_hidden
from airflow_bookmarks.plugin.routes.change import answer_of, check_confirmed, noted_in_part, times_of
from airflow_bookmarks.plugin.schemas import requests
from airflow_bookmarks.plugin.schemas.preview import ShardedPreview, ShardPreview
from airflow_bookmarks.plugin.schemas.responses import Changed

router = APIRouter(tags=["shards"], dependencies=[Depends(same_origin)])

_SAME = (
    "job", "change", "version", "shards", "unchanged_shards", "undone_run_count", "unreadable_runs", "read_again",
    "written_twice", "written_twice_unknown", "files_to_clean", "outputs_to_clean", "files_left_by_undone_runs",
    "holders",
)  # fmt: skip


@router.post("/jobs/{job}/shards/preview")
async def preview(
    request: PageRequestDep, job: JobName, spec: Annotated[requests.ShardedSpec, requests.BY_KIND]
) -> ShardedPreview:
    """Say what a reset or rewind of a sharded job would do in each of its virtual shards, without making it."""
    found = await _sharded(request, job)
    scope = await request.scope()
    change = spec.change()
    return await request.with_files(lambda hook, do: _preview(hook, do, found, change, scope), times=times_of(found))


@router.post("/jobs/{job}/shards/changes")
async def change(
    request: PageRequestDep, job: JobName, body: Annotated[requests.ShardedBody, requests.BY_KIND]
) -> Changed:
    """Reset or rewind a sharded job: one virtual shard after the other, each with its own event."""
    found = await _sharded(request, job)
    check_confirmed(job, body.confirm)
    return await request.with_files(
        lambda hook, do: _change(do, found, body, request.person), is_change=True, times=times_of(found)
    )


async def _sharded(request: PageRequest, job: str) -> Owned:
    found = await request.changeable_job(job)
    if not found.shards:
        raise ChangeRefusedError(
            f"job {job!r} is not sharded. Nothing was read or changed. It is changed as any job: ask for it without "
            "'/shards'."
        )
    return found


def _preview(hook: BookmarkHook, do: TaskRunner, found: Owned, change: Change, scope: UserScope) -> ShardedPreview:
    seen = do("preview_shards", found.key, shards=list(found.shards), change=asdict(change))
    seen = hidden(seen) if hook.hides_state else seen
    by_shard: dict[str, dict[str, Any]] = seen["by_shard"]
    consumers: dict[str, int] = {}
    for each in by_shard.values():
        for consumer, number in each["consumers"].items():
            consumers[consumer] = max(number, consumers.get(consumer, number))
    result = ShardedPreview(
        **{name: seen[name] for name in _SAME},
        consumers=consumers,
        hidden_consumers=0,
        by_shard={
            shard: ShardPreview(
                version=each["version"],
                to_run=each["to_run"],
                undone_run_count=each["undone_run_count"],
                read_again=each["read_again"],
                state=each["state"],
            )
            for shard, each in by_shard.items()
        },
    )
    return with_names_hidden(hook.get_conn(), scope, result)


def _change(do: TaskRunner, found: Owned, body: requests.ShardedBody, person: Person) -> Changed:
    wanted = body.change()
    terms = {"reason": body.reason, "force": body.force, "expected_version": body.expected_version}
    terms["who"] = asdict(person.identity)
    details: dict[str, Any] = {"change": wanted.kind, "reason": body.reason, "force": body.force}
    given = {"to_run": wanted.to_run, "contexts": wanted.contexts, "clean": wanted.clean or None}
    details |= {name: value for name, value in given.items() if value is not None}
    with noted_in_part(found, person, f"bookmark.{wanted.kind}", details):
        result = do("change_shards", found.key, shards=list(found.shards), change=asdict(wanted), terms=terms)
    return answer_of(found, person, result, details)
