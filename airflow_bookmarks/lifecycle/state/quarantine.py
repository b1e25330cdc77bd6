"""Quarantine: remove planned files that can't be parsed from the plan before anything is read, and record them.

They are not in the ledger: their record is part of the position that the run leaves, and later plans leave them out.
"""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

from airflow_bookmarks.core.errors import StateCorruptError
from airflow_bookmarks.core.ledger.file_ledger import Ledger
from airflow_bookmarks.core.ledger.quarantine import Quarantine, QuarantinedFile
from airflow_bookmarks.core.selection.listing import instant
from airflow_bookmarks.core.selection.reason import QUARANTINED
from airflow_bookmarks.core.text.escaping import escaped, in_lines
from airflow_bookmarks.core.text.instant import to_text
from airflow_bookmarks.lifecycle.state.positions import ContextReader
from airflow_bookmarks.lifecycle.state.verification import without
from airflow_bookmarks.sources.registry import has_ledger

if TYPE_CHECKING:
    from collections.abc import Mapping

    from airflow_bookmarks.core.files.file_plan import FilePlan
    from airflow_bookmarks.core.head import Head
    from airflow_bookmarks.sources.source import PlanInput
    from airflow_bookmarks.store.bookmark_store import BookmarkStore

log = logging.getLogger(__name__)

OnCorrupt = Literal["error", "quarantine"]

_NAMED = 20  # files that the log names


def quarantine_of(found: PlanInput) -> Quarantine:
    """Return what is in quarantine at a position of files."""
    return Quarantine() if found.position is None else Ledger.from_root(found.position, found.load).quarantine


def without_corrupt(plan: FilePlan, found: PlanInput, corrupt: Mapping[str, str], run_number: int) -> FilePlan:
    """Return the plan without files that can't be parsed, which it records.

    Args:
        found: what the plan was made from.
        corrupt: the error of each of these files, by its path.

    Raises:
        QuarantineFullError: with what is in quarantine already they are too many.
    """
    records = [QuarantinedFile.of(file, corrupt[file.path], run_number) for file in plan.files if file.path in corrupt]
    quarantine_of(found).add(records)
    return replace(without(plan, corrupt, QUARANTINED), quarantined=(*plan.quarantined, *records))


def log_corrupt(job: str, ctx: str, corrupt: Mapping[str, str], *, is_kept: bool) -> None:
    """Log which planned files can't be parsed, and what becomes of them."""
    fate = "recorded, and left out from now on" if is_kept else "left out; nothing is recorded by a run of this option"
    files = "1 file" if len(corrupt) == 1 else f"{len(corrupt)} files"
    log.warning("bookmark %s, context %s: %s can't be parsed: %s", job, ctx, files, fate)
    for path in sorted(corrupt)[:_NAMED]:
        log.warning("bookmark %s, context %s: quarantined %s: %s", job, ctx, escaped(path), in_lines(corrupt[path]))
    if len(corrupt) > _NAMED:
        log.warning("bookmark %s, context %s: and %d more quarantined", job, ctx, len(corrupt) - _NAMED)


def quarantined_files(store: BookmarkStore, job: str) -> list[dict[str, Any]]:
    """Return what is in quarantine now, of each context of files, as plain values.

    Raises:
        JobUnknownError: no such bookmark. StateCorruptError: a position is damaged or gone.
    """
    head = store.head(job)
    reader = ContextReader(store, job, head)
    return [_row(ctx, file) for ctx in _contexts_of_files(head) for file in quarantine_of(reader.found(ctx))]


def quarantined_counts(store: BookmarkStore, job: str, head: Head) -> dict[str, int | None]:
    """Return the number of files that each context has in quarantine, if any; None where it can't be told.

    The head says it; where an earlier version wrote that, the position does, unless it is damaged.
    """
    reader = ContextReader(store, job, head)
    counts: dict[str, int | None] = {}
    for ctx in _contexts_of_files(head):
        counts[ctx] = head.contexts[ctx].set_aside
        if counts[ctx] is not None:
            continue
        try:
            counts[ctx] = len(quarantine_of(reader.found(ctx)))
        except StateCorruptError:  # which the doctor says more of
            counts[ctx] = None
    return {ctx: count for ctx, count in counts.items() if count != 0}


def _contexts_of_files(head: Head) -> list[str]:
    return sorted(ctx for ctx, state in head.contexts.items() if has_ledger(state.kind))


def _row(ctx: str, file: QuarantinedFile) -> dict[str, Any]:
    return {
        "ctx": ctx,
        "path": file.path,
        "bytes": file.size_bytes,
        "modified_at": to_text(instant(file.modified_ms)),
        "run_number": file.run_number,
        "error": file.error,
    }
