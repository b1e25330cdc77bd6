"""Relocate a context: move its bookmark along with a folder, by a person's change or within a run."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from airflow_bookmarks.core.errors import OptionError
from airflow_bookmarks.core.ledger.segment import bare_name
from airflow_bookmarks.core.timeline import living_runs
from airflow_bookmarks.files.opener import open_filesystem
from airflow_bookmarks.lifecycle.history.timeline_switch import switch_set
from airflow_bookmarks.lifecycle.state.positions import (
    ContextReader,
    is_of_another_format,
    moved_entry,
    switched_format,
)
from airflow_bookmarks.sources.files.planner import FileSource
from airflow_bookmarks.sources.registry import files_in, has_ledger, recorded_source
from airflow_bookmarks.sources.relocation import check_moved, moved_path, relocated, with_relocation

if TYPE_CHECKING:
    from airflow_bookmarks.core.head import Head
    from airflow_bookmarks.core.rules.audit import AuditEvent
    from airflow_bookmarks.lifecycle.history.snapshot import HistorySnapshot
    from airflow_bookmarks.sources.relocation import Unverified
    from airflow_bookmarks.sources.source import PlanInput, Source
    from airflow_bookmarks.store.bookmark_store import BookmarkStore
    from airflow_bookmarks.store.transitions.timeline import TimelineSwitch

MOVED_FROM = "moved_from"  # name of a fact of a plan: what the keyword of that name made of the position

log = logging.getLogger(__name__)


def switch_relocated(
    history: HistorySnapshot,
    ctx: str,
    roots: tuple[str, str],
    unverified: Unverified | None,
    event: AuditEvent,
) -> TimelineSwitch:
    """Return the switch after which the files of a context lie below another root; it undoes no run.

    Args:
        roots: the old and the new one.
        unverified: what files count as that can't be compared; see `sources.relocation`.

    Raises:
        OptionError: the context reads no files, or none there, or files can't be compared and `unverified` is None.
        SourceError: the new root can't be listed.
    """
    store, job, head = history.store, history.job, history.head
    state = head.contexts[ctx]
    _check_kind(job, ctx, state.kind)
    old, new = (open_filesystem(root).canonical(root) for root in roots)
    reader = ContextReader(store, job, head)
    entry = reader.planned_entry(ctx)
    if entry is None:
        raise OptionError(
            f"job {job!r}, context {ctx!r}: the run that says how it is read is gone. Nothing was changed. Give the "
            "script moved_from= instead."
        )
    before = recorded_source(store, job, entry)
    if not isinstance(before, FileSource) or str(before.ref()) != state.fingerprint:
        raise OptionError(
            f"job {job!r}, context {ctx!r}: its last run does not say how it is read ({state.fingerprint!r}). Nothing "
            "was changed. Give the script moved_from= instead."
        )
    check_moved(job, ctx, before.folders, old, new)
    _check_whole(job, ctx, before)
    after = recorded_source(store, job, moved_entry(entry, ((old, new),)))
    moved = [now for was in before.folders if (now := moved_path(was, ((old, new),))) != was]
    relocation = relocated(reader.found(ctx), moved, old, new, lambda: _sizes(store, job, head, ctx), unverified)
    state = replace(state, fingerprint=str(after.ref()), moves=(*state.moves, (old, new)))
    told: AuditEvent = {**event, "ctx": ctx, "moved": dict(relocation.stats)}
    return switch_set(history, ctx, state, relocation.position, told, kind="relocate")


def found_moved(
    store: BookmarkStore, job: str, reader: ContextReader, ctx: str, source: Source[Any], moved_from: str | None
) -> PlanInput | None:
    """Return what to plan a source from whose files lay below `moved_from` when they were read.

    The run then commits the position with these files under their new paths. None where `moved_from` is None, and where
    there is nothing to do: no position yet, or one of this source already.

    Raises:
        OptionError: the context read no files there, or files can't be compared. SourceError: it can't be listed.
    """
    state = reader.state(ctx)
    if moved_from is None or state is None or state.fingerprint == str(source.ref()):
        return None
    if not isinstance(source, FileSource):
        raise OptionError(
            f"job {job!r}, context {ctx!r}: moved_from={moved_from!r} is for files, and this is a source of kind "
            f"{source.kind!r}. Nothing was read or changed. Leave it out."
        )
    _check_kind(job, ctx, state.kind)
    found = reader.found(ctx)
    if is_of_another_format(source, found):
        raise switched_format(job, ctx, source, found)
    _check_whole(job, ctx, source)
    old = open_filesystem(moved_from).canonical(moved_from)
    before: tuple[str, ...] = reader.stored_plan(ctx).roots
    check_moved(job, ctx, before, old, "")
    new = _new_root(job, ctx, before, source.folders, old)
    moved = [root for root in source.folders if root not in before]
    relocation = relocated(found, moved, old, new, lambda: _sizes(store, job, reader.head, ctx), None)
    log.warning(
        "bookmark %s, context %s: the files of %s lie below %s now: %d are the same and count as read, %d changed, %d "
        "are new",
        job,
        ctx,
        old,
        new,
        relocation.counts["same"],
        relocation.counts["changed"],
        relocation.counts["new"],
    )
    return with_relocation(found, relocation)


def _new_root(job: str, ctx: str, before: tuple[str, ...], now: tuple[str, ...], old: str) -> str:
    """Return where the old root lies now, derived from the folders that were read and those that are read."""
    for was in before:
        rest = bare_name(was).removeprefix(bare_name(old)) if moved_path(was, ((old, ""),)) != was else None
        for root in now:
            new = root if not rest else root.removesuffix(rest)
            if rest is not None and root.endswith(rest) and {moved_path(r, ((old, new),)) for r in before} == set(now):
                return new
    raise OptionError(
        f"job {job!r}, context {ctx!r}: with moved_from={old!r} what was read ({', '.join(before)}) does not become "
        f"what is read ({', '.join(now)}). Nothing was read or changed. Name the root that moved, and load the same "
        "folders below the new one."
    )


def _check_kind(job: str, ctx: str, kind: str) -> None:
    if not has_ledger(kind):
        raise OptionError(
            f"job {job!r}, context {ctx!r} is of kind {kind!r}: only files move with their folder. Nothing was changed."
        )


def _check_whole(job: str, ctx: str, source: FileSource) -> None:
    if source.shard is not None:
        raise OptionError(
            f"job {job!r}, context {ctx!r} reads a shard, and by another path a file may belong to another one. "
            "Nothing was changed. Read the new folder under a context of its own, from start='now' or a time."
        )


def _sizes(store: BookmarkStore, job: str, head: Head, ctx: str) -> dict[str, int]:
    """Return the sizes of the files that living runs have read in a context, for the runs that are still kept."""
    living = store.ancestry(job, head.epoch)
    sizes: dict[str, int] = {}
    named = head.contexts[ctx].planned_as(ctx)
    for run in living_runs(store.runs(job, until=head.run_number), living):
        entry = run.plans.get(ctx) or run.plans.get(named)
        if entry is None or not has_ledger(entry.kind):
            continue
        files = files_in(entry.kind, store.blobs.get(entry.body))
        sizes |= {bare_name(file.path): file.size_bytes for file in files or ()}
    return sizes
