"""What a commit asks of a plan of files: whether they are as they were planned, and the position after them."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from airflow_bookmarks.core.errors import FolderVanishedError, SourceMissingError
from airflow_bookmarks.core.ledger.file_ledger import Ledger
from airflow_bookmarks.core.ledger.segment import bare_name
from airflow_bookmarks.core.order import TIME
from airflow_bookmarks.core.position import Position
from airflow_bookmarks.core.selection.listing import Listing, instant
from airflow_bookmarks.core.selection.reason import (
    BEFORE_START,
)
from airflow_bookmarks.core.selection.sequence import order_by
from airflow_bookmarks.core.text.instant import to_text
from airflow_bookmarks.sources.source import PlanInput, Recheck

if TYPE_CHECKING:
    from collections.abc import Collection

    import numpy.typing as npt

    from airflow_bookmarks.core.files.file_plan import FilePlan
    from airflow_bookmarks.files.filesystem import FileSystem

_LOOKED_AT_ONCE = 65_536  # files at the second look, which are objects until they are compared


def advance_files(plan: FilePlan, found: PlanInput) -> Position | None:
    """Return the position after a stored plan that started from `found`."""
    ledger = Ledger.empty() if found.position is None else Ledger.from_root(found.position, found.load)
    return advance(ledger, plan, None, None)


def advance(ledger: Ledger, plan: FilePlan, listing: Listing | None, forget_before_ms: int | None) -> Position | None:
    passed = plan.unread.get(BEFORE_START)
    if plan.is_empty and passed is None and not plan.quarantined:
        return None  # an empty run writes no ledger
    after = ledger if passed is None else ledger.add(passed, among=listing)
    after = after.add(_first_read(plan), among=listing)
    # A group that was read without one of its files was replaced without its rows: as it was, it is read again.
    after = after.with_other_versions(plan.replaced_unread, plan.replaced_unread)
    held = after.quarantine.without(plan.files.paths) if len(after.quarantine) else after.quarantine
    held = held.add(plan.quarantined)
    if forget_before_ms is not None:
        after = after.forget(forget_before_ms)
    if after.forgotten_before_ms is not None:
        held = held.since(after.forgotten_before_ms)
    after = replace(after, quarantine=held, let_out=_still_let_out(after, plan))
    if plan.sequence is not None:
        watermark = plan.sequence_watermark
        order = order_by(plan.sequence.rule, watermark)
        return Position(after.root(), watermark, after.unsaved(), order=order, set_aside=len(held))
    watermark = None if after.newest_ms is None else to_text(instant(after.newest_ms))
    return Position(after.root(), watermark, after.unsaved(), order=TIME, set_aside=len(held))


def _still_let_out(ledger: Ledger, plan: FilePlan) -> frozenset[str]:
    if not ledger.let_out:
        return ledger.let_out
    looked_at = [*plan.files.paths, *(file.path for file in plan.quarantined)]
    return ledger.let_out - {bare_name(path) for path in looked_at}


def _first_read(plan: FilePlan) -> Listing:
    """Return the planned files whose version the ledger lacks, including companions."""
    if not plan.companions:
        return plan.files
    rows = [row for row, path in enumerate(plan.files.paths) if path not in plan.companions]
    return plan.files.take(np.array(rows, np.intp))


def recheck_files(files: FileSystem, plan: FilePlan) -> Recheck:
    """Say which planned files changed or went: a file overwritten under a DataFrame gives torn rows and no error."""
    return _other_than(_is_same(files, plan.files), plan)


def _is_same(files: FileSystem, planned: Listing) -> npt.NDArray[np.bool_]:
    """Say of each file, by a look at it, whether it is as it was planned."""
    is_same = np.zeros(len(planned), np.bool_)
    for start in range(0, len(planned), _LOOKED_AT_ONCE):
        now = files.stat(planned.paths[start : start + _LOOKED_AT_ONCE])
        there = np.array([start + i for i, info in enumerate(now) if info is not None], np.intp)
        seen = Listing.of(info for info in now if info is not None)
        is_same[there] = seen.has_versions_of(planned.take(there))
    return is_same


def folders_of(plan: FilePlan) -> set[str]:
    """Return the folders of planned files, with all folders above them."""
    folders: set[str] = set()
    for folder in plan.files.in_folders().in_use():
        above = folder
        while above and above not in folders:
            folders.add(above)
            above = above.rpartition("/")[0]
    return folders


def recheck_by_listing(files: FileSystem, plan: FilePlan, folders: Collection[str] | None) -> Recheck:
    """Say the same by a listing of each root, which takes fewer requests where many files are planned."""
    is_same = np.zeros(len(plan), np.bool_)
    row_of = {path: row for row, path in enumerate(plan.files.paths)}
    for root in plan.roots:
        inside = f"{root.rstrip('/')}/"
        enters = None if folders is None else partial(_is_among, folders, inside)
        try:
            listing = files.list(root, recursive=True, enters=enters).files
        except SourceMissingError:
            continue  # everything that was planned of it is gone
        except FolderVanishedError:
            # It may be one that was not planned, such as an old partition. The listing tells nothing of the others.
            below = np.array([row for path, row in row_of.items() if path.startswith(inside)], np.intp)
            is_same[below] = _is_same(files, plan.files.take(below))
            continue
        planned = np.fromiter((row_of.get(path, -1) for path in listing.paths), np.intp, len(listing))
        there = np.flatnonzero(planned >= 0)
        rows = planned[there]
        is_same[rows] = listing.take(there).has_versions_of(plan.files.take(rows))
    return _other_than(is_same, plan)


def _is_among(folders: Collection[str], inside: str, folder: str) -> bool:
    return f"{inside}{folder}" in folders


def _other_than(is_same: npt.NDArray[np.bool_], plan: FilePlan) -> Recheck:
    return Recheck(tuple(plan.files.paths[row] for row in np.flatnonzero(~is_same).tolist()))
