"""What a change of a position would do, as lines for people: the command line and the log of an operator show them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow_bookmarks.cli.output.consequences import consequences
from airflow_bookmarks.cli.output.sharded_preview import sharded_lines
from airflow_bookmarks.cli.output.values import WARNING, amount, in_words, never_read_amount
from airflow_bookmarks.core.job_state import SET_STATE
from airflow_bookmarks.core.text.count import counted
from airflow_bookmarks.core.text.escaping import escaped

if TYPE_CHECKING:
    from collections.abc import Mapping

    from airflow_bookmarks.lifecycle.changes.change import Change

_SHOWN_RUNS = 20


def in_lines(namespace: str, seen: Mapping[str, Any], change: Change) -> list[str]:
    """Return a preview as lines for people, with nothing in them that a terminal, or the log of an operator, obeys."""
    lines = sharded_lines(namespace, seen, change) if "by_shard" in seen else _lines(namespace, seen, change)
    return [escaped(line) for line in lines]


def _lines(namespace: str, seen: Mapping[str, Any], change: Change) -> list[str]:
    about = f"job {seen['job']!r} in namespace {namespace!r} (version {seen['version']})"
    lines = [f"{about} {_what(seen, change)}." + ("" if change.clean else " Written data stays.")]
    lines += _never_read(seen.get("never_read"), change)  # a request that an older version stored has none
    if change.kind != SET_STATE:  # which moves none of them
        lines += [
            f"  {ctx}: watermark {in_words(m['before'])} -> {in_words(m['after'])}"
            for ctx, m in seen["watermarks"].items()
        ]
    lines += [
        f"  job.state {name}: {in_words(m['before'])} -> {in_words(m['after'])}"
        for name, m in seen.get("state", {}).items()  # a request that an older version stored has none
    ]
    if seen.get("moved"):
        lines.append(f"  below {seen['moved']['to']}: {_moved(seen['moved'])}")
    lines.append(f"  read again: {amount(seen['read_again'])}")
    lines += consequences(seen, change, "the next run")
    if seen["holder"] is not None:
        lines.append(f"  held by {seen['holder']!r}")
    return lines


def _never_read(never: Mapping[str, Any] | None, change: Change) -> list[str]:
    """Say what a set skips for good, first and in the strongest words."""
    if never is None or (never["files"] == 0 and not never["runs"]):
        return []
    unread = never_read_amount(never)
    if unread is None:
        lines = [
            f"  {WARNING}: NEVER READ, and how much is NOT KNOWN ({never['unknown']}): whatever context {change.ctx!r} "
            "has not read yet counts as read, and its rows are LOST to this job"
        ]
    else:
        lines = [
            f"  {WARNING}: NEVER READ: {unread} that context {change.ctx!r} has not read yet count as read, and no run "
            "will ever read them: their rows are LOST to this job"
        ]
    if never["runs"]:
        lines.append(f"  {WARNING}: NEVER READ: upstream runs {', '.join(map(str, never['runs'][:_SHOWN_RUNS]))}")
    lines += [f"  {WARNING}: consumer {name} will not see what would have come of it" for name in never["consumers"]]
    return lines


def _moved(moved: Mapping[str, Any]) -> str:
    counted_as = {"read": "counted as read", "new": "counted as new"}.get(moved["counted_as"], "none")
    unverified = f", {moved['unverified']:,} can't be compared ({counted_as})" if moved["unverified"] else ""
    same = counted(moved["same"], "file")
    return f"{same} count as read, {moved['changed']:,} changed and {moved['new']:,} new are to be read{unverified}"


def _what(seen: Mapping[str, Any], change: Change) -> str:
    from airflow_bookmarks.sources.seek import RETRY

    undone = seen["undone_runs"]
    count = seen.get("undone_run_count", len(undone))
    shown = ", ".join(map(str, undone[:_SHOWN_RUNS])) + (", ..." if count > _SHOWN_RUNS else "")
    are = "is" if count == 1 else "are"
    runs = f": {counted(count, 'run')} {are} undone" + (f" ({shown})" if undone else "")
    if change.kind == "set" and (change.value or "").startswith(RETRY):
        return f"reads quarantined files of {change.ctx!r} again ({change.value!r}), and nothing else changes"
    if change.kind == "set":
        return f"goes on reading {change.ctx!r} from {change.value!r}: no run is undone"
    if change.kind == SET_STATE:
        return f"gets another value of job.state {change.state!r}: no run is undone"
    if change.kind == "relocate":
        return f"reads the files of {change.ctx!r} below {change.to_root!r} instead of {change.from_root!r}"
    if change.kind == "rename-context":
        return f"goes on from the position of {change.ctx!r} under the name {change.to_ctx!r}: no run is undone"
    if change.kind == "undo":
        return f"stands as before its last change again{runs}"
    if change.kind == "delete":
        return f"loses its bookmark, and the next run reads everything{runs}"
    if change.contexts is not None:  # its last run stays what it is, and that is `to_run` of the preview
        where = "before its first run" if change.to_run is None else f"run {change.to_run}"
        return f"goes back to {where} with {', '.join(change.contexts)} alone: no run is undone"
    where = f"run {seen['to_run']}" if change.to_run is not None else "before its first run"
    return f"goes back to {where}{runs}"
