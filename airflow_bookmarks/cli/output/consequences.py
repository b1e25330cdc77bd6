"""What a change of a position brings besides: what is removed, what is left, what would be there twice, and to whom."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow_bookmarks.core.text.count import counted

if TYPE_CHECKING:
    from collections.abc import Mapping

    from airflow_bookmarks.lifecycle.changes.change import Change


def consequences(seen: Mapping[str, Any], change: Change, removed_by: str) -> list[str]:
    """Return the consequences that a preview tells, as lines for people.

    Args:
        seen: the preview, as plain values. One that an older version stored as a request may lack some.
        change: the change.
        removed_by: what removes published files: "the next run".
    """
    lines = []
    if seen.get("unreadable_runs"):
        lines.append(f"  can't be read, and is not counted: runs {', '.join(seen['unreadable_runs'])}")
    removed = removed_in_words(seen)
    if removed:
        lines.append(f"  removed by {removed_by}: {removed}; there is no undo after that")
    lines += [*_left(seen, change), *_twice(seen, change)]
    return lines + [f"  consumer {name} has read up to run {number}" for name, number in seen["consumers"].items()]


def removed_in_words(seen: Mapping[str, Any]) -> str:
    """Say what a clean removes; empty where it removes nothing. A request of an older version counts files alone."""
    files, outputs = seen["files_to_clean"], seen.get("outputs_to_clean", 0)
    elsewhere = f"what {counted(outputs, 'output')} in other sinks {'holds' if outputs == 1 else 'hold'}"
    told = [counted(files, "published file")] if files else []
    return " and ".join([*told, *([elsewhere] if outputs else [])])


def _left(seen: Mapping[str, Any], change: Change) -> list[str]:
    """Say what runs that were undone before left in their targets."""
    left = seen.get("files_left_by_undone_runs", 0)
    if left == 0:
        return []
    if left is None:
        return ["  not known: what runs that were undone earlier have left in their targets"]
    also = "removed with them" if change.clean else "a reset or rewind with clean removes them too"
    return [f"  still in a target, from runs that were undone earlier: {counted(left, 'file')}; {also}"]


def _twice(seen: Mapping[str, Any], change: Change) -> list[str]:
    """Say which targets would hold rows twice, and of which that is not known (a request of an older version: none).

    Of which contexts an output was made is not stored: where some are read again, outputs of others are named as well.
    """
    if change.contexts is not None:
        made = f"if it is made from {' or '.join(change.contexts)}"
        return [f"  may hold rows twice, {made}: {t}" for t in seen["written_twice"]]
    unknown = seen.get("written_twice_unknown", ())
    unless = ", if anything of the undone runs was published there, which is not known here"
    return [f"  would hold rows twice{unless if t in unknown else ''}: {t}" for t in seen["written_twice"]]
