"""Relocate a position: keep what a context has read after its folder has moved with its files.

The ledger knows paths by 64 bits, so it is asked by the old path of each file that lies below the new root now:

    new path   s3://b/y/day=1/c.csv     listed
    old path   s3://a/x/day=1/c.csv     known to the ledger?  with the same etag, or the same size?

Its quarantine and what was let out of it are kept by whole paths: these are spelled anew.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Literal

import numpy as np

from airflow_bookmarks.core.errors import OptionError
from airflow_bookmarks.core.ledger.file_ledger import Known, Ledger
from airflow_bookmarks.core.ledger.quarantine import Quarantine, QuarantinedFile
from airflow_bookmarks.core.ledger.segment import Segment, bare_name, scheme_of
from airflow_bookmarks.core.option import check_choice
from airflow_bookmarks.core.order import TIME
from airflow_bookmarks.core.position import Position
from airflow_bookmarks.core.selection.listing import Listing, instant
from airflow_bookmarks.core.selection.sequence import order_by
from airflow_bookmarks.core.text.instant import to_text
from airflow_bookmarks.files.opener import open_filesystem
from airflow_bookmarks.sources.source import Relocation

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import numpy.typing as npt

    from airflow_bookmarks.sources.source import PlanInput

Unverified = Literal["read", "new"]
Moves = tuple[tuple[str, str], ...]
"""Roots that moved, each from where to where, in the order in which they did."""

_ETAG_SCHEMES = ("s3://", "s3a://", "s3n://", "gs://", "abfs://", "abfss://", "wasb://", "wasbs://")


def moved_path(path: str, moves: Sequence[tuple[str, str]]) -> str:
    """Return a root or pattern after some moves.

    Example:
        >>> moved_path("s3a://a/x/raw", (("s3://a/x", "s3://b/y"),)), moved_path("/other", (("/x", "/y"),))
        ('s3://b/y/raw', '/other')
    """
    for old, new in moves:
        rest = bare_name(path).removeprefix(bare_name(old))
        if bare_name(path).startswith(bare_name(old)) and (not rest or rest.startswith("/")):
            path = new + rest
    return path


def check_moved(job: str, ctx: str, roots: Sequence[str], old: str, new: str) -> None:
    """Make sure that a context reads something at or below the old root.

    Raises:
        OptionError: it does not, or old and new are one.
    """
    if bare_name(old) == bare_name(new):
        raise OptionError(f"job {job!r}: {old!r} and {new!r} are one place. Nothing was changed.")
    if all(moved_path(root, ((old, new),)) == root for root in roots):
        raise OptionError(
            f"job {job!r}, context {ctx!r} reads no folder at or below {old!r}; it reads "
            f"{', '.join(map(repr, roots))}. Nothing was read or changed. Name the place as it was."
        )


def relocated(
    found: PlanInput,
    roots: Sequence[str],
    old: str,
    new: str,
    sizes: Callable[[], Mapping[str, int]],
    unverified: Unverified | None,
) -> Relocation:
    """Return the position with which files count as read that lay below `old` when they were read.

    Args:
        found: the present position.
        roots: what the context reads below `new`: these folders are listed.
        old, new: canonical paths.
        sizes: returns the sizes of files that were read, by path without scheme, as far as plans are kept.
        unverified: what files count as that can't be compared; None: such files are an error.

    Raises:
        OptionError: there are such files, and nobody said what they count as. SourceError: a root can't be listed.
        QuarantineFullError: the new paths of quarantined files have no room in the position.
    """
    if unverified is not None:
        check_choice("unverified", unverified, Unverified)
    ledger = Ledger.empty() if found.position is None else Ledger.from_root(found.position, found.load)
    parts = [open_filesystem(root).list(root, recursive=True).files for root in roots]
    listing = Listing.joined(parts) if parts else Listing.of([])
    rows = match_moved(ledger, listing, old, new, sizes)
    held = held_after_move(ledger, listing, old, new)
    is_held = np.zeros(len(listing), np.bool_)
    is_held[list(held)] = True
    unread = {name: which & ~is_held for name, which in rows.items() if name != "same"}
    counted = {"same": rows["same"] | is_held, **unread}
    counts = {name: int(np.count_nonzero(which)) for name, which in counted.items()}
    if counts["unverified"] and unverified is None:
        first = listing.paths[int(np.argmax(unread["unverified"]))]
        raise OptionError(
            f"{counts['unverified']} file(s) can't be compared with what was read below {old!r}, the first: {first!r} "
            "(one of the stores has no etags and the plans with the sizes are collected, or the bookmark forgets old "
            f"files). {counts['same']} are the same, {counts['changed']} changed, {counts['new']} new. Nothing was "
            "read or changed. Say what they count as, by the verb relocate: --unverified read (they are never read "
            "here) or --unverified new (those that were read come twice)."
        )
    is_read = rows["same"] | unread["unverified"] if unverified == "read" else rows["same"]
    after = ledger.add(listing.take(np.flatnonzero(is_read)), among=listing)
    changed = listing.take(np.flatnonzero(rows["changed"]))
    after = after.with_other_versions(changed, _as_before(changed, old, new))
    moves = ((old, new),)
    elsewhere = [file for file in ledger.quarantine if moved_path(file.path, moves) == file.path]
    let_out = frozenset(bare_name(moved_path(path, moves)) for path in ledger.let_out)
    after = replace(after, quarantine=Quarantine().add([*elsewhere, *held.values()]), let_out=let_out)
    newest = None if after.newest_ms is None else to_text(instant(after.newest_ms))
    sequence = found.file_metadata.sequence
    watermark = newest if sequence is None else found.watermark
    order = TIME if sequence is None else order_by(sequence, watermark)
    position = Position(after.root(), watermark, after.unsaved(), order=order, set_aside=len(after.quarantine))
    return Relocation(position, old, new, counts, unverified)


def with_relocation(found: PlanInput, relocation: Relocation) -> PlanInput:
    """Return what a source is planned from after a move that is not stored yet."""
    blobs = relocation.position.blobs

    def load(names: Sequence[str]) -> Mapping[str, bytes | Segment]:
        stored = [name for name in names if name not in blobs]
        own = {name: blobs[name] for name in names if name in blobs}
        return {**own, **(found.load(stored) if stored else {})}

    return replace(found, position=relocation.position.body, load=load, moved=relocation)


def match_moved(
    ledger: Ledger, listing: Listing, old: str, new: str, sizes: Callable[[], Mapping[str, int]]
) -> dict[str, npt.NDArray[np.bool_]]:
    """Say for each file below the new root what it is: `same`, `changed`, `new` or `unverified`; exactly one of them.

    By etag where both stores have one. Where the old one had none, the size is part of what the ledger kept; where only
    the new one has none, kept plans have it (`sizes`).
    """
    before = _as_before(listing, old, new)
    verdicts = ledger.classify(before)
    has_entry = ledger.has_entry(before)
    if scheme_of(old) not in _ETAG_SCHEMES:
        same, unverified = ledger.has_size_of(before), np.zeros(len(listing), np.bool_)
    elif listing.etags is not None:
        same, unverified = has_entry & (verdicts == Known.KNOWN), np.zeros(len(listing), np.bool_)
    else:
        same, unverified = _by_sizes(before, has_entry, sizes() if has_entry.any() else {})
    if ledger.forgotten_before_ms is not None:
        unverified = unverified | ~has_entry  # it may have been read, and be forgotten
    return {
        "same": same,
        "changed": has_entry & ~same & ~unverified,
        "new": ~has_entry & ~unverified,
        "unverified": unverified,
    }


def held_after_move(ledger: Ledger, listing: Listing, old: str, new: str) -> dict[int, QuarantinedFile]:
    """Return by row the quarantined files that lie below the new root as they were, with records of what is there.

    By etag where both stores have one, else by size. Of one that changed or went the record is left out: what comes in
    its place is read as any new file.
    """
    records = {bare_name(file.path): file for file in ledger.quarantine}
    has_etags = scheme_of(old) in _ETAG_SCHEMES and listing.etags is not None
    held: dict[int, QuarantinedFile] = {}
    for row, path in enumerate(_as_before(listing, old, new).paths if records else ()):
        record = records.get(bare_name(path))
        if record is None:
            continue
        file = listing.file(row)
        if record.version == file.version if has_etags else record.size_bytes == file.size_bytes:
            held[row] = replace(record, path=file.path, version=file.version, modified_ms=file.modified_ms)
    return held


def _as_before(listing: Listing, old: str, new: str) -> Listing:
    """Return files below the new root under the paths that they had below the old one."""
    start = len(bare_name(new).rstrip("/"))
    paths = [old.rstrip("/") + bare_name(path)[start:] for path in listing.paths]
    return replace(listing, paths=paths, folders=None, _taken=None)


def _by_sizes(
    before: Listing, has_entry: npt.NDArray[np.bool_], sizes: Mapping[str, int]
) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
    same, unverified = np.zeros(len(before), np.bool_), np.zeros(len(before), np.bool_)
    for row in np.flatnonzero(has_entry).tolist():
        size = sizes.get(bare_name(before.paths[row]))
        unverified[row] = size is None
        same[row] = size == int(before.sizes[row])
    return same, unverified
