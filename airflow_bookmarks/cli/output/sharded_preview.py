"""Words for sharded jobs: what a change of one would do, as lines for people."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

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
    if seen["unreadable_runs"]:
        lines.append(f"  can't be read, and is not counted: runs {', '.join(seen['unreadable_runs'])}")
    removed = removed_in_words(seen)
    if removed:
        lines.append(f"  removed by the next run of each shard: {removed}; there is no undo after that")
    lines += left_in_lines(seen, change)
    lines += twice_in_lines(seen, change)
    lines += [f"  consumer {name} has read up to run {number}" for name, number in seen["consumers"].items()]
    lines += [f"  {shard} is held by {holder!r}" for shard, holder in seen["holders"].items()]
    return lines


def left_in_lines(seen: Mapping[str, Any], change: Change) -> list[str]:
    """Say what runs that were undone before left in their targets."""
    left = seen.get("files_left_by_undone_runs", 0)
    if left == 0:
        return []
    if left is None:
        return ["  not known: what runs that were undone earlier have left in their targets"]
    also = "removed with them" if change.clean else "a reset or rewind with clean removes them too"
    return [f"  still in a target, from runs that were undone earlier: {counted(left, 'file')}; {also}"]


def twice_in_lines(seen: Mapping[str, Any], change: Change) -> list[str]:
    """Say which targets would hold rows twice, and of which that is not known (a request of an older version: none).

    Of which contexts an output was made is not stored: where some are read again, outputs of others are named as well.
    """
    if change.contexts is not None:
        made = f"if it is made from {' or '.join(change.contexts)}"
        return [f"  may hold rows twice, {made}: {t}" for t in seen["written_twice"]]
    unknown = seen.get("written_twice_unknown", ())
    unless = ", if anything of the undone runs was published there, which is not known here"
    return [f"  would hold rows twice{unless if t in unknown else ''}: {t}" for t in seen["written_twice"]]


def removed_in_words(seen: Mapping[str, Any]) -> str:
    """Say what a clean removes; empty where it removes nothing. A request of an older version counts files alone."""
    files, outputs = seen["files_to_clean"], seen.get("outputs_to_clean", 0)
    elsewhere = f"what {counted(outputs, 'output')} in other sinks {'holds' if outputs == 1 else 'hold'}"
    told = [counted(files, "published file")] if files else []
    return " and ".join([*told, *([elsewhere] if outputs else [])])


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
