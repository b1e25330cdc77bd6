"""Shards: the routes that take a sharded job back as a whole, by the rules of the command line.

They take the permission to change each of its virtual shards, and otherwise what every change takes (see `change`).
"""

from dataclasses import asdict
from typing import Annotated, Any

from fastapi import APIRouter, Depends

from airflow_bookmarks.core.errors import ChangeRefusedError
from airflow_bookmarks.hooks.bookmark import BookmarkHook
from airflow_bookmarks.lifecycle.changes.change import Change
from airflow_bookmarks.plugin.auth import Person, Sight
from airflow_bookmarks.plugin.csrf import same_origin
from airflow_bookmarks.plugin.dependencies import Ask, JobName, Owned, PageRequest, Visiting
from airflow_bookmarks.plugin.redaction import veiled
from airflow_bookmarks.plugin.routes.change import answer_of, check_confirmed, noted_in_part, times_of
from airflow_bookmarks.plugin.schemas import requests
from airflow_bookmarks.plugin.schemas.responses import Changed, ShardedPreview, ShardPreview

router = APIRouter(tags=["shards"], dependencies=[Depends(same_origin)])

_SAME = (
    "job", "change", "version", "shards", "unchanged_shards", "undone_run_count", "unreadable_runs", "read_again",
    "written_twice", "files_to_clean", "outputs_to_clean", "files_left_by_undone_runs", "holders",
)  # fmt: skip


@router.post("/jobs/{job}/shards/preview")
async def preview(
    visit: Visiting, job: JobName, spec: Annotated[requests.ShardedSpec, requests.BY_KIND]
) -> ShardedPreview:
    """Say what a reset or rewind of a sharded job would do in each of its virtual shards, without making it."""
    found = await _sharded(visit, job)
    sight = await visit.sight()
    change = spec.change()
    return await visit.looking(lambda hook, ask: _preview(hook, ask, found, change, sight), times=times_of(found))


@router.post("/jobs/{job}/shards/changes")
async def change(visit: Visiting, job: JobName, asked: Annotated[requests.ShardedBody, requests.BY_KIND]) -> Changed:
    """Reset or rewind a sharded job: one virtual shard after the other, each with its own event."""
    found = await _sharded(visit, job)
    check_confirmed(job, asked.confirm)
    return await visit.looking(
        lambda hook, ask: _change(ask, found, asked, visit.person), is_change=True, times=times_of(found)
    )


async def _sharded(visit: PageRequest, job: str) -> Owned:
    found = await visit.changeable_job(job)
    if not found.shards:
        raise ChangeRefusedError(
            f"job {job!r} is not sharded. Nothing was read or changed. It is changed as any job: ask for it without "
            "'/shards'."
        )
    return found


def _preview(hook: BookmarkHook, ask_for: Ask, found: Owned, change: Change, sight: Sight) -> ShardedPreview:
    seen = ask_for("preview_shards", found.key, shards=list(found.shards), change=asdict(change))
    by_shard: dict[str, dict[str, Any]] = seen["by_shard"]
    consumers: dict[str, int] = {}
    for each in by_shard.values():
        for consumer, number in each["consumers"].items():
            consumers[consumer] = max(number, consumers.get(consumer, number))
    told = ShardedPreview(
        **{name: seen[name] for name in _SAME},
        consumers=consumers,
        hidden_consumers=0,
        by_shard={
            shard: ShardPreview(
                version=each["version"],
                to_run=each["to_run"],
                undone_run_count=each["undone_run_count"],
                read_again=each["read_again"],
            )
            for shard, each in by_shard.items()
        },
    )
    return veiled(hook.get_conn(), sight, told)


def _change(ask_for: Ask, found: Owned, asked: requests.ShardedBody, person: Person) -> Changed:
    wanted = asked.change()
    terms = {"reason": asked.reason, "force": asked.force, "expected_version": asked.expected_version}
    terms["who"] = asdict(person.identity)
    details: dict[str, Any] = {"change": wanted.kind, "reason": asked.reason, "force": asked.force}
    given = {"to_run": wanted.to_run, "contexts": wanted.contexts, "clean": wanted.clean or None}
    details |= {name: value for name, value in given.items() if value is not None}
    with noted_in_part(found, person, f"bookmark.{wanted.kind}", details):
        told = ask_for("change_shards", found.key, shards=list(found.shards), change=asdict(wanted), terms=terms)
    return answer_of(found, person, told, details)
