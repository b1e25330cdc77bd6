"""List jobs so that a sharded job is one row, combined from its virtual shards."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

from airflow_bookmarks.core.order import NUMBER, ORDERS, order_like
from airflow_bookmarks.core.rules.shard import sharded_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_COMMON = ("run_number", "published", "data_run_number", "epoch", "dag_id", "task_id")


def groups_of(jobs: Iterable[str]) -> dict[str, list[str]]:
    """Return the names of the virtual shards among `jobs`, by sharded job.

    A job that has a row of its own beside its shards is left out: its name would be ambiguous.
    """
    known = list(jobs)
    found: dict[str, list[str]] = defaultdict(list)
    for job in known:
        whole = sharded_name(job)
        if whole is not None:
            found[whole].append(job)
    taken = set(known)
    return {whole: shards for whole, shards in found.items() if whole not in taken}


def grouped(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the rows of `lifecycle.inspect.status.bookmarks`, with one row for each sharded job.

    Each row has `shards` then, None for a job that is whole. The row of a sharded job has how many have begun, and
    besides `held_shards`, `due_shards` and `damaged_shards`, which count those that a run holds, that have something
    to publish or to remove, and that can't be read. A number or name that its shards do not share is None; `version` is
    the sum, `watermark` the highest by its order, `first_seen_at` the first, `last_commit_at` the last. `cleaning` and
    `protected` are true as soon as one shard's are; `lease` is one of those that there are, and `damaged` one of
    the reasons.
    """
    by_job = {row["job"]: row for row in rows}
    groups = groups_of(by_job)
    hidden = {shard for shards in groups.values() for shard in shards}
    result = [{**row, "shards": None} for job, row in by_job.items() if job not in hidden]
    result += [row_of_shards(job, [by_job[shard] for shard in shards]) for job, shards in groups.items()]
    return sorted(result, key=lambda row: str(row["job"]))


def row_of_shards(job: str, shards: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Combine the rows of the virtual shards of a sharded job into one; see `grouped`."""
    readable = [row for row in shards if row["damaged"] is None]
    damaged = [row for row in shards if row["damaged"] is not None]
    held = [row["lease"] for row in readable if row["lease"] is not None]
    orders = _common_orders([row["order"] for row in readable])
    due = [row for row in readable if row["due_run_number"] is not None or row["cleaning"]]
    return {
        **dict.fromkeys(shards[0]),
        "job": job,
        "namespace": shards[0]["namespace"],
        **{name: common(row[name] for row in readable) for name in _COMMON},
        "cleaning": any(row["cleaning"] for row in readable),
        "protected": any(row["protected"] for row in readable),
        "version": sum(row["version"] for row in readable),
        "watermark": highest_watermarks([row["watermark"] for row in readable], orders),
        "order": orders,
        "lease": held[0] if held else None,
        "first_seen_at": min((row["first_seen_at"] for row in readable if row["first_seen_at"]), default=None),
        "last_commit_at": max((row["last_commit_at"] for row in readable if row["last_commit_at"]), default=None),
        "damaged": f"{damaged[0]['job']}: {damaged[0]['damaged']}" if damaged else None,
        "shards": len(shards),
        "held_shards": len(held),
        "due_shards": len(due),
        "damaged_shards": len(damaged),
    }


def common(values: Iterable[Any]) -> Any:
    """Return the value that all have in common; None where they differ, or there is none."""
    different = set(values)
    return different.pop() if len(different) == 1 else None


def _common_orders(orders: Sequence[dict[str, str | None]]) -> dict[str, str | None]:
    """Return by which order the watermarks of a context compare in all shards that store one; None: not by one."""
    names = sorted({ctx for each in orders for ctx in each})
    return {ctx: common(name for each in orders if (name := each.get(ctx)) is not None) for ctx in names}


def highest_watermarks(
    watermarks: Iterable[dict[str, str | None]], orders: dict[str, str | None]
) -> dict[str, str | None]:
    """Return the highest watermark of several shards, by context, as its order says."""
    found: dict[str, str | None] = {}
    for each in watermarks:
        for ctx, mark in each.items():
            best = found.setdefault(ctx, mark)
            if mark is not None and (best is None or _is_above(mark, best, orders.get(ctx))):
                found[ctx] = mark
    return dict(sorted(found.items()))


def _is_above(mark: str, other: str, order: str | None) -> bool:
    """Whether a watermark is the higher one; without a known order by its looks, where text is above numbers."""
    known = None if order is None else ORDERS.get(order)
    compared = None if known is None else known.compare(mark, other)
    if compared is None:
        compared = order_like(mark).compare(mark, other)
    return NUMBER.parse(other) is not None if compared is None else compared > 0
