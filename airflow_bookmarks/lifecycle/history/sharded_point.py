"""Resolve points in the history of a sharded job: the run of each virtual shard that a run id or a time names."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from airflow_bookmarks.core.errors import OptionError, RunUnknownError
from airflow_bookmarks.lifecycle.history.point import WATERMARK, is_time, resolve_point
from airflow_bookmarks.lifecycle.history.rewind import is_number, resolve_run
from airflow_bookmarks.store.transitions.collection import collected_until

if TYPE_CHECKING:
    from collections.abc import Mapping

    from airflow_bookmarks.core.head import Head
    from airflow_bookmarks.core.run import Run
    from airflow_bookmarks.lifecycle.changes.change import Change
    from airflow_bookmarks.store.bookmark_store import BookmarkStore


def changes_of_shards(store: BookmarkStore, job: str, heads: Mapping[str, Head], change: Change) -> dict[str, Change]:
    """Return the change of each shard that a change of the sharded job stands for.

    A rewind goes to another run number in each shard. A run id names the last run that this execution made there; the
    id of a mapped task without its map index stands for all mapped tasks. A time names the last run that had committed
    by then; a shard whose first run came later goes back to before it.

    Raises:
        OptionError: a rewind to a run number or a watermark. RunUnknownError: no such execution or time, or not in
            each shard.
    """
    if change.kind != "rewind" or change.to_run is None:
        return dict.fromkeys(heads, change)
    point = _checked(job, change.to_run)
    executions = {shard: _by_execution(store, shard, head, point) for shard, head in heads.items()}
    missing = [shard for shard, run in executions.items() if run is None]
    if len(missing) < len(heads):
        _check_complete(job, point, missing, len(heads))
        return {shard: _to(change, run) for shard, run in executions.items()}
    found = {shard: _by_time(store, shard, head, point) for shard, head in heads.items()}
    if not any(found.values()):
        raise RunUnknownError(
            f"sharded job {job!r}: no virtual shard has a run at or before {point!r}. Nothing was read or changed. "
            "Back to the beginning is a reset."
        )
    return {shard: _to(change, run) for shard, run in found.items()}


def _checked(job: str, point: str) -> str:
    if is_number(point):
        raise OptionError(
            f"job {job!r} is sharded, and run {point} is another one in each of its virtual shards. Nothing was read "
            "or changed. Say a run id (in Airflow '<dag>/<dag run>/<task>', of all mapped tasks) or a time with a "
            "zone; or name a virtual shard."
        )
    if point.startswith(WATERMARK):
        raise OptionError(
            f"job {job!r} is sharded, and its virtual shards have a watermark each. Nothing was read or changed. Say a "
            "run id or a time with a zone; or name a virtual shard."
        )
    return point


def _to(change: Change, run: Run | None) -> Change:
    return replace(change, kind="reset", to_run=None) if run is None else replace(change, to_run=str(run.key.number))


# ---- by an execution


def _by_execution(store: BookmarkStore, shard: str, head: Head, run_id: str) -> Run | None:
    """Return the last committed run of a shard that an execution, or a mapped task of it, made; None: no such run.

    Raises:
        RunUnknownError: it was undone.
    """
    for run in store.runs(shard, after=collected_until(store, shard), until=head.run_number, reverse=True):
        if run.state.is_committed and _is_of(run.run_id, run_id):
            return resolve_run(store, shard, head, str(run.key.number))
    return None


def _is_of(made_by: str, run_id: str) -> bool:
    task, _, map_index = made_by.rpartition("/")
    return made_by == run_id or (task == run_id and map_index.isdecimal())


def _check_complete(job: str, run_id: str, missing: list[str], shards: int) -> None:
    if missing:
        more = f" and {len(missing) - 3} more" if len(missing) > 3 else ""
        raise RunUnknownError(
            f"sharded job {job!r}: {run_id!r} has committed no run in {len(missing)} of {shards} virtual shards: "
            f"{', '.join(missing[:3])}{more}. Nothing was read or changed. Say a time with a zone, which means the "
            "last run of each shard by then; in Airflow, the id without a map index means all tasks that were mapped."
        )


# ---- by a time


def _by_time(store: BookmarkStore, shard: str, head: Head, point: str) -> Run | None:
    """Return the last run of a shard that had committed by a time; None where its first run came later.

    Raises:
        RunUnknownError: it is no time; or what there was by then was collected. OptionError: a time without a zone.
    """
    try:
        return resolve_point(store, shard, head, point)
    except RunUnknownError:
        if not is_time(point) or collected_until(store, shard):
            raise
        return None
