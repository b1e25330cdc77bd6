"""Words for sharded jobs: what a change of one would do, as lines for people."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow_bookmarks.cli.output.consequences import consequences
from airflow_bookmarks.cli.output.values import amount, in_words
from airflow_bookmarks.core.text.count import counted

if TYPE_CHECKING:
    from collections.abc import Mapping

    from airflow_bookmarks.lifecycle.changes.change import Change

_SHOWN = 8  # shards that a line names


def sharded_lines(namespace: str, seen: Mapping[str, Any], change: Change) -> list[str]:
    """Return the preview of a sharded job as lines for people: sums first, then shards that are alike on one line."""
    about = f"sharded job {seen['job']!r} in namespace {namespace!r} (version {seen['version']})"
    if not seen["shards"]:
        return [f"{about} stands there already, in each of its {seen['unchanged_shards']} virtual shards."]
    shards = counted(seen["shards"], "virtual shard")
    which = "" if change.contexts is None else f" with {', '.join(change.contexts)} alone"
    undone = "no run is undone" if change.contexts is not None else f"{_runs(seen['undone_run_count'])} undone"
    stays = "" if change.clean else " Written data stays."
    lines = [f"{about} goes back {_where(change)}{which}, in {shards}: {undone}.{stays}"]
    if seen["unchanged_shards"]:
        lines.append(f"  there already, and left alone: {counted(seen['unchanged_shards'], 'virtual shard')}")
    lines.append(f"  read again: {amount(seen['read_again'])}")
    lines += _by_shard(seen["by_shard"])
    lines += consequences(seen, change, "the next run of each shard")
    lines += [f"  {shard} is held by {holder!r}" for shard, holder in seen["holders"].items()]
    return lines


def _where(change: Change) -> str:
    return "before its first run" if change.to_run is None else f"to {change.to_run!r}"


def _runs(count: int) -> str:
    return f"{counted(count, 'run')} {'is' if count == 1 else 'are'}"


def _by_shard(seen: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Say of shards what differs between them; nothing where all are alike and keep no values of `job.state`."""
    alike: dict[str, list[str]] = {}
    for shard, each in seen.items():
        alike.setdefault(_told(each), []).append(shard)
    is_plain = len(alike) == 1 and not any(each.get("state") for each in seen.values())
    return [] if is_plain else [f"    {_named(shards)}: {told}" for told, shards in alike.items()]


def _told(each: Mapping[str, Any]) -> str:
    kept = f"run {each['to_run']} is kept" if each["to_run"] else "no run is kept"
    undone = each["undone_run_count"]
    # A preview that an older version stored has no state.
    state = [
        f", job.state {name}: {in_words(moved['before'])} -> {in_words(moved['after'])}"
        for name, moved in each.get("state", {}).items()
    ]
    return f"{kept}, {_runs(undone)} undone, read again: {amount(each['read_again'])}{''.join(state)}"


def _named(shards: list[str]) -> str:
    more = f" and {len(shards) - _SHOWN} more" if len(shards) > _SHOWN else ""
    return ", ".join(shards[:_SHOWN]) + more
