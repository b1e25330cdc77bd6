"""What is new in a set of folders: a listing against the ledger of what was read."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Literal

import numpy as np

from airflow_bookmarks.core.errors import MisuseError, OverwrittenError
from airflow_bookmarks.core.instant import to_text
from airflow_bookmarks.core.ledger import Known, Ledger
from airflow_bookmarks.core.listing import Listing, instant
from airflow_bookmarks.core.partition import settle_types
from airflow_bookmarks.core.plan import FilePlan, PartitionCounts
from airflow_bookmarks.core.position import Position
from airflow_bookmarks.sources.source import Found, Recheck

if TYPE_CHECKING:
    from collections.abc import Sequence

    from airflow_bookmarks.files.filesystem import FileSystem

_FINGERPRINT_LENGTH = 160

OnOverwrite = Literal["reprocess", "ignore", "error"]


class FileSource:
    """Files below some folders; each (path, version) is read once.

    Args:
        files: the file system that the roots lie on.
        roots: canonical paths of folders or files.
        recursive: whether folders that are no partition are descended into (Spark's `recursiveFileLookup`).
        on_overwrite: a known path with another version is read again whole ("reprocess", as Glue), left alone
            ("ignore", counted) or stops the run ("error").
        named: columns that the user's schema names: the types of such partition columns are the user's.
    """

    kind = "files"

    def __init__(
        self,
        files: FileSystem,
        roots: Sequence[str],
        *,
        recursive: bool = False,
        on_overwrite: OnOverwrite = "reprocess",
        named: Sequence[str] = (),
    ) -> None:
        self._files = files
        self._roots = tuple(dict.fromkeys(roots))
        self._recursive = recursive
        self._on_overwrite = on_overwrite
        self._named = tuple(named)
        self._ledger: Ledger | None = None
        self._listing: Listing | None = None

    def fingerprint(self) -> str:
        """Return the kind and the roots, in one order; what is long ends in a hash, to keep the head small."""
        text = f"{self.kind}:{','.join(sorted(self._roots))}"
        if len(text) <= _FINGERPRINT_LENGTH:
            return text
        digest = hashlib.blake2b(text.encode(), digest_size=8).hexdigest()
        return f"{text[:_FINGERPRINT_LENGTH]}...#{digest}"

    def plan(self, found: Found) -> FilePlan:
        """List, and keep what the ledger does not know; see `Source.plan`."""
        listing, root_of, skipped = self._list()
        ledger = Ledger.empty() if found.position is None else Ledger.from_root(found.position, found.load)
        verdicts = ledger.classify(listing)
        changed = np.flatnonzero(verdicts == Known.CHANGED)
        wanted = verdicts == Known.NEW
        if len(changed) and self._on_overwrite == "error":
            raise OverwrittenError(
                f"{len(changed)} file(s) that were read before have another version now, the first: "
                f"{listing.paths[changed[0]]!r}. Nothing was read or changed. Put them back, or use "
                "on_overwrite='reprocess' (read them again) or 'ignore'."
            )
        if self._on_overwrite == "reprocess":
            wanted |= verdicts == Known.CHANGED
        elif len(changed):
            skipped["overwritten"] = len(changed)
        files = listing.take(np.flatnonzero(wanted)).in_reading_order()
        types = {}
        if not self._recursive:
            types = settle_types(zip(listing.paths, root_of, strict=True), found.partition_types, self._named)
        self._ledger, self._listing = ledger, listing
        known = int(np.count_nonzero(verdicts == Known.KNOWN))
        partitions = _partitions(listing, files) if types else None
        return FilePlan(files, self._roots, len(listing), known, skipped, types, partitions=partitions)

    def _list(self) -> tuple[Listing, list[str], dict[str, int]]:
        parts: list[Listing] = []
        root_of: list[str] = []
        skipped: dict[str, int] = {}
        for root in self._roots:
            listed = self._files.list(root, recursive=self._recursive)
            parts.append(listed.files)
            root_of += [root] * len(listed.files)
            for reason, count in listed.skipped.items():
                skipped[reason] = skipped.get(reason, 0) + count
        listing = parts[0] if len(parts) == 1 else Listing.of(file for part in parts for file in part)
        if len(parts) > 1 and len(set(listing.paths)) < len(listing):
            # Roots that lie within each other: each file once, under the first root that names it.
            first = {path: i for i, path in reversed(list(enumerate(listing.paths)))}
            keep = np.array(sorted(first.values()), np.intp)
            listing, root_of = listing.take(keep), [root_of[i] for i in keep]
        return listing, root_of, skipped

    def advance(self, plan: FilePlan) -> Position | None:
        """Return the ledger with the planned files in it; see `Source.advance`."""
        if self._ledger is None:
            raise MisuseError("advance() before plan(): a file source knows its ledger only after planning")
        return _advance(self._ledger, plan, self._listing)

    def recheck(self, plan: FilePlan) -> Recheck:
        """Look at the planned files again; see `Source.recheck`."""
        return recheck_files(self._files, plan)


def _partitions(listing: Listing, planned: Listing) -> PartitionCounts:
    folders = {path.rpartition("/")[0] for path in listing.paths}
    wanted = {path.rpartition("/")[0] for path in planned.paths}
    return PartitionCounts(len(folders), tuple(sorted(folders - wanted)))


def advance_files(plan: FilePlan, found: Found) -> Position | None:
    """Return the position after a stored plan that started from `found`."""
    ledger = Ledger.empty() if found.position is None else Ledger.from_root(found.position, found.load)
    return _advance(ledger, plan, None)


def _advance(ledger: Ledger, plan: FilePlan, listing: Listing | None) -> Position | None:
    if plan.is_empty:
        return None  # an empty run writes no ledger
    after = ledger.add(plan.files, among=listing)
    newest = after.newest_ms
    watermark = None if newest is None else to_text(instant(newest))
    return Position(after.root(), watermark, after.unsaved())


def recheck_files(files: FileSystem, plan: FilePlan) -> Recheck:
    """Say which planned files changed or went: a file overwritten under a DataFrame gives torn rows and no error."""
    now = files.stat(plan.files.paths)
    pairs = zip(plan.files, now, strict=True)
    return Recheck(tuple(was.path for was, then in pairs if then is None or then.version != was.version))
