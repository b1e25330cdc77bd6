"""The file ledger: which files a context has read, path and version of each, exact and compact.

A ledger is a list of immutable segments (`core/ledger/segment.py`), newest first, and a root that names them. A run
that read files puts one segment of tier 0 in front. When `fan_out` segments of one tier stand side by side, they become
one of the next tier, as in a log-structured merge tree, so an entry is written once per tier, about log32(runs) times
in all:

    run   tiers, newest first (fan_out 3)
    1     0
    2     0 0
    3     1              three of tier 0 became one of tier 1
    4     0 1
    8     0 0 1 1
    9     2              a merge that fills the next tier takes it along

Tiers never fall from newest to oldest, so what is merged lies side by side, and newer stays in front of older. Nothing
that an older root names is changed: a rewind points at that root.

A ledger may be bounded (`forget`): segments in which every file is older than some time are left out, and from then on
any file that is not newer than what was left out counts as read, because the ledger can no longer tell.

What is exact and what is not
-----------------------------
A segment knows a path by 64 bits, so two paths may share their bits. Where a listing shows two such paths, the ledger
keeps them by full name and version in its root and from then on believes only names for these bits: that is exact.
Of paths that share their bits, these cases are left, and none of them for a path whose bits are its own:

- One is listed without the other (the other went, or lies under another directory): it is judged by the other's entry.
  Other version bits make it CHANGED: it is read, though called an overwrite where it is new, and read again when the
  two alternate. The same version bits make it KNOWN: it is **not read**. The bits of a new path are those of one of n
  entries with probability n / 2^64: at a million entries 5e-14 for each new file. Not to be read, its version bits must
  be the same as well: 2^-32 of that, or all of that where both files are copies of one (one etag).
- Both are listed together for the first time after one was read alone. Where only one of them fits the entry, that one
  is KNOWN, and the other is NEW, also where it was overwritten. (A new copy of what the other was before an overwrite
  in the same interval is not read.) Where both fit, both are NEW: one is read twice rather than the other never.
- One that was read alone and is not listed when others with its bits get their names: it is NEW when it comes back.

Apart from that, an overwrite whose new version has the same 32 bits is not seen: 2^-32 for each overwrite.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import IntEnum
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import numpy.typing as npt

from airflow_bookmarks.core.errors import OptionError
from airflow_bookmarks.core.ledger.quarantine import Quarantine
from airflow_bookmarks.core.ledger.root import LedgerRoot, ListedSegment, NamedEntry, text_of
from airflow_bookmarks.core.ledger.segment import (
    Bits64,
    Hashed,
    Hasher,
    PathHashes,
    Segment,
    bare_name,
    blake2b_64,
    version_bits,
    whole_seconds,
)

if TYPE_CHECKING:
    from airflow_bookmarks.core.selection.listing import FileInfo, Listing

FAN_OUT = 32
ROOT_BYTES = 12 * 1024  # up to here a root takes segments in
INLINE_BYTES = 2 * 1024  # a root is written by each run, so it takes in only segments of up to this size (125 files)

Load: TypeAlias = Callable[[Sequence[str]], Mapping[str, bytes | Segment]]

_NEVER = -1


class Known(IntEnum):
    """What a ledger knows of a listed file."""

    NEW = 0
    CHANGED = 1
    KNOWN = 2


@dataclass(frozen=True, eq=False)
class Ledger:
    """The files that a context has read; a value: `add` returns another one.

    Begin with `empty` or `from_root`. To keep a ledger, store the blobs of `unsaved()` first, then `root()`.

    `newest_ms` is the latest time of any file ever added (ms since 1970 UTC), also of one that was overwritten since;
    None as long as there was none. Of files older than `forgotten_before_ms` entries may be left out (None: of none).
    `quarantine` are files that were not read, because they can't be parsed. `let_out` are paths (without scheme) that
    somebody let out of it, to be read however old they are.

    Example:
        >>> from airflow_bookmarks.core.selection.listing import FileInfo, Listing
        >>> day1 = Listing.of([FileInfo("s3://lake/a.csv", 10, 1_000), FileInfo("s3://lake/b.csv", 10, 1_000)])
        >>> ledger = Ledger.empty().add(day1)
        >>> day2 = Listing.of([*day1, FileInfo("s3://lake/late.csv", 10, 500), FileInfo("s3a://lake/a.csv", 11, 2_000)])
        >>> [Known(k).name for k in ledger.classify(day2)]
        ['KNOWN', 'KNOWN', 'NEW', 'CHANGED']
    """

    newest_ms: int | None
    _listed: tuple[ListedSegment, ...] = field(repr=False)
    _names: Mapping[str, NamedEntry] = field(repr=False)
    _paths: PathHashes = field(repr=False)
    _shelf: _Shelf = field(repr=False)
    _fan_out: int = field(repr=False)
    _inline_bytes: int = field(repr=False)
    forgotten_before_ms: int | None = None
    quarantine: Quarantine = field(default_factory=Quarantine, repr=False)
    let_out: frozenset[str] = frozenset()

    # ---- begin

    @classmethod
    def empty(cls, *, hasher: Hasher = blake2b_64, fan_out: int = FAN_OUT, inline_bytes: int = INLINE_BYTES) -> Ledger:
        """Return the ledger of a context that has read nothing.

        `hasher` gives 64 bits for each path without its scheme; another than the default is for tests and belongs to
        the ledger for life. `fan_out` (2 or more) segments of a tier become one of the next. The root takes in segments
        of up to `inline_bytes`.
        """
        return cls(None, (), {}, PathHashes(hasher), _Shelf(_nothing_stored), _checked_fan_out(fan_out), inline_bytes)

    @classmethod
    def from_root(
        cls,
        root: bytes,
        load: Load,
        *,
        hasher: Hasher = blake2b_64,
        fan_out: int = FAN_OUT,
        inline_bytes: int = INLINE_BYTES,
    ) -> Ledger:
        """Return the ledger that `root()` described.

        `load` returns the named segments by their ids: their bytes, or already opened. It is called when segments are
        needed for the first time, once for all that are needed then, and never for an empty listing. The rest is as for
        `empty`.

        Raises:
            StateCorruptError: the root is damaged, or of a format that this version does not know. What `load` returns
                is checked when it is called, and raises the same.
        """
        found = LedgerRoot.parse(root)
        fan_out = _checked_fan_out(fan_out)
        return cls(
            found.newest_ms,
            found.listed,
            found.names,
            PathHashes(hasher),
            _Shelf(load),
            fan_out,
            inline_bytes,
            found.forgotten_before_ms,
            found.quarantine,
            found.let_out,
        )

    # ---- ask

    def __len__(self) -> int:
        """Return the number of entries: an upper bound, since a file that was read again counts twice until a merge."""
        return len(self._root)

    def classify(self, listing: Listing) -> npt.NDArray[np.int8]:
        """Return for each file of `listing` what the ledger knows of it, as values of `Known`.

        What is older than the ledger remembers is KNOWN; `forgotten` tells it from the rest.

        Raises:
            StateCorruptError: a segment is damaged or missing.
        """
        verdicts = self._judge(listing)[0]
        verdicts[self._is_beyond(listing)] = Known.KNOWN
        return verdicts

    def forgotten(self, listing: Listing) -> npt.NDArray[np.bool_]:
        """Return for each file whether it is older than the ledger remembers, so that it is unknown whether it was
        read.

        Raises:
            StateCorruptError: a segment is damaged or missing.
        """
        is_beyond = self._is_beyond(listing)
        return is_beyond & (self._judge(listing)[0] != Known.KNOWN) if is_beyond.any() else is_beyond

    def _is_beyond(self, listing: Listing) -> npt.NDArray[np.bool_]:
        before = self.forgotten_before_ms
        return np.zeros(len(listing), np.bool_) if before is None else listing.times_ms < before

    def newest_until(self, limit_ms: int) -> int | None:
        """Return the latest time of an entry that is not after `limit_ms`; None if there is none.

        In whole seconds where the newest file is after it: an entry has no more.
        """
        if self.newest_ms is None or self.newest_ms <= limit_ms:
            return self.newest_ms
        times = [entry.modified_ms for entry in self._names.values()]
        times += [] if self._entries is None else (np.unique(self._entries.seconds).astype(np.int64) * 1000).tolist()
        return max((time for time in times if time <= limit_ms), default=None)

    def touched(self, listing: Listing) -> npt.NDArray[np.bool_]:
        """Say for each file whether its version is known and its time (in seconds) is another than when it was read.

        Only where versions are etags: without them another time is another version.
        """
        verdicts, seconds = self._judge(listing)
        is_touched: npt.NDArray[np.bool_] = (verdicts == Known.KNOWN) & (seconds != whole_seconds(listing.times_ms))
        return is_touched

    def lets_out(self, listing: Listing) -> npt.NDArray[np.bool_]:
        """Say for each file whether it was let out of quarantine, and not read since."""
        if not self.let_out:
            return np.zeros(len(listing), np.bool_)
        return np.fromiter((bare_name(path) in self.let_out for path in listing.paths), np.bool_, len(listing))

    def has_entry(self, listing: Listing) -> npt.NDArray[np.bool_]:
        """Say for each file whether the ledger has an entry of its path, of whatever version."""
        has_entry: npt.NDArray[np.bool_] = self._judge(listing)[1] != _NEVER
        return has_entry

    def with_other_versions(self, listing: Listing, was: Listing) -> Ledger:
        """Return the ledger with files that were read under the paths `was`, in another version than they have now.

        So they are CHANGED in it: the reader decides what becomes of an overwrite.
        """
        # One byte more is another version, and no etag is another one than any.
        times_ms = self._judge(was)[1] * 1000
        return self.add(replace(listing, sizes=listing.sizes + 1, times_ms=times_ms, etags=None, _taken=None))

    def has_size_of(self, listing: Listing) -> npt.NDArray[np.bool_]:
        """Say for each file whether the entry of its path can be of its size: one without an etag.

        An entry has bits of size and time in ms, and the time in seconds: one of a thousand times has to fit. Another
        size fits by chance once in four million times.
        """
        fits, seconds = np.zeros(len(listing), np.bool_), self._judge(listing)[1]
        left = np.flatnonzero(seconds != _NEVER)
        for ms in range(1000):
            candidates = replace(listing.take(left), times_ms=seconds[left] * 1000 + ms, etags=None)
            is_fitting = self._judge(candidates)[0] == Known.KNOWN
            fits[left[is_fitting]] = True
            left = left[~is_fitting]
            if not len(left):
                break
        return fits

    def _judge(self, listing: Listing) -> tuple[npt.NDArray[np.int8], npt.NDArray[np.int64]]:
        """Return for each file the `Known` and the time of its entry in seconds, `_NEVER` if it has none."""
        verdicts = np.full(len(listing), Known.NEW, np.int8)
        seconds = np.full(len(listing), _NEVER, np.int64)
        if not len(listing) or not len(self):
            return verdicts, seconds
        hashed = self._paths.hashed(listing)
        versions = version_bits(listing)
        for segment in self._searched(len(listing)):
            # Oldest first: the entry of a path in a newer segment replaces that in an older one.
            found, at = segment.find(hashed.hashes[hashed.order])
            known, at = hashed.order[found], at[found]
            is_same = segment.versions[at] == versions[known]
            verdicts[known] = np.where(is_same, np.int8(Known.KNOWN), np.int8(Known.CHANGED))
            seconds[known] = segment.seconds[at]
        for rows in hashed.collisions:
            _judge_together(rows, [bare_name(listing.paths[row]) for row in rows], verdicts)
        for row in self._contested_rows(hashed.hashes):
            verdicts[row], seconds[row] = self._judge_by_name(listing.file(row))
        return verdicts, seconds

    def _judge_by_name(self, file: FileInfo) -> tuple[Known, int]:
        entry = self._names.get(bare_name(file.path))
        if entry is None:
            return Known.NEW, _NEVER
        is_same = entry.version == file.version
        return Known.KNOWN if is_same else Known.CHANGED, int(whole_seconds(np.array(entry.modified_ms)))

    def _searched(self, files: int) -> Sequence[Segment]:
        """Return what is searched for so many files, oldest first: the segments, or one table merged from them.

        Merging a ledger of a million costs 0.2 s, and then one search beats a search in each of 100 segments. A run
        with few files leaves the segments as they are, so that its time does not grow with the ledger by that.
        """
        if not self._listed:
            return ()
        if "_entries" in self.__dict__ or files * len(self._listed) >= len(self):
            return () if self._entries is None else (self._entries,)
        return self._shelf.take(self._listed)[::-1]

    @functools.cached_property
    def _entries(self) -> Segment | None:
        """The newest entry of each path, in one table."""
        return Segment.merged(self._shelf.take(self._listed)) if self._listed else None

    @functools.cached_property
    def _contested(self) -> Bits64:
        """The bits that named paths have; for these only names are believed."""
        return np.unique(self._paths.of(list(self._names)))

    def _contested_rows(self, hashes: Bits64) -> list[int]:
        return np.flatnonzero(np.isin(hashes, self._contested)).tolist() if self._names else []

    # ---- grow

    def add(self, listing: Listing, *, among: Listing | None = None) -> Ledger:
        """Return the ledger with the files of `listing` read; the same ledger if there are none.

        `among` is the whole listing that `listing` was taken from. Give it wherever a run reads a part of what is
        there: paths that share their bits are then told apart though only one of them is read now.

        Raises:
            StateCorruptError: a segment that has to be merged is damaged or missing.
        """
        if not len(listing):
            return self
        whole = listing if among is None else among
        shared = self._paths.hashed(whole)
        hashed = self._paths.hashed(listing)
        names = {**self._names_at_collision(whole, shared), **self._names}
        is_exact = np.isin(hashed.hashes, np.concatenate([self._contested, shared.collided_bits, hashed.collided_bits]))
        for row in np.flatnonzero(is_exact).tolist():
            file = listing.file(row)
            names[bare_name(file.path)] = NamedEntry(file.version, file.modified_ms)
        times = [int(listing.times_ms.max()), *([] if self.newest_ms is None else [self.newest_ms])]
        grown = replace(self, newest_ms=max(times), _names=names)
        if is_exact.all():
            return grown
        kept = ~is_exact
        return grown._with(Segment.of(hashed.hashes[kept], version_bits(listing)[kept], listing.times_ms[kept]))

    def _names_at_collision(self, whole: Listing, shared: Hashed) -> dict[str, NamedEntry]:
        """Return what is known by bits that only now turn out to be shared: from here on only names count for them."""
        if not shared.collisions:
            return {}
        colliding = whole.take(np.array([row for rows in shared.collisions for row in rows], np.intp))
        return {
            bare_name(file.path): NamedEntry(file.version, file.modified_ms)
            for file, verdict in zip(colliding, self._judge(colliding)[0], strict=True)
            if verdict == Known.KNOWN
        }

    def _with(self, newest: Segment) -> Ledger:
        listed = (_unsaved(newest, 0), *self._listed)
        count, tier = _due_merge([entry.tier for entry in listed], self._fan_out)
        if count:
            # Straight into the last tier of a cascade: what lies between is not written.
            listed = (_unsaved(Segment.merged(self._shelf.take(listed[:count])), tier), *listed[count:])
        return replace(self, _listed=listed)

    def forget(self, before_ms: int) -> Ledger:
        """Return the ledger without the segments in which all files are older than `before_ms`.

        What is as old as the newest file that was left out counts as read from now on, and nothing that is newer:
        however wrong the given time is, what comes later is read. What lies in one segment with newer files stays. The
        bound never goes back.

        Raises:
            StateCorruptError: a segment is damaged or missing.
        """
        segments = self._shelf.take(self._listed)
        ends = [segment.newest_ms for segment in segments]
        kept = [entry for entry, end in zip(self._listed, ends, strict=True) if end >= before_ms]
        if len(kept) == len(self._listed):
            return self
        bounds = [end + 1 for end in ends if end < before_ms]
        bounds += [] if self.forgotten_before_ms is None else [self.forgotten_before_ms]
        return replace(self, _listed=tuple(kept), forgotten_before_ms=max(bounds))

    # ---- keep

    def root(self) -> bytes:
        """Return the document that describes the ledger (`docs/reference/formats.md`), up to 12 KB and the exact names.

        The same ledger gives the same bytes.
        """
        return self._root.encode(self._inline)

    def unsaved(self) -> dict[str, bytes]:
        """Return the segments that are neither in `root()` nor stored already: store them before the root."""
        return {
            entry.id: entry.segment.data
            for index, entry in enumerate(self._listed)
            if index not in self._inline and not entry.is_stored and entry.segment is not None
        }

    def segment_ids(self) -> list[str]:
        """Return the ids of the segments that `root()` names and does not hold, newest first: what it keeps alive."""
        outside = (entry.id for index, entry in enumerate(self._listed) if index not in self._inline)
        return list(dict.fromkeys(outside))

    @functools.cached_property
    def _inline(self) -> frozenset[int]:
        """Which of the listed segments the root holds itself.

        The oldest first: what was inline stays inline until it is merged, so that a run with a full root stores its own
        segment and no older one.
        """
        size = len(self._root.encode(()))
        inline = set()
        for index, entry in reversed(list(enumerate(self._listed))):
            if entry.is_stored or entry.segment is None or len(entry.segment.data) > self._inline_bytes:
                continue
            grown = size + len(text_of(entry.segment)) + len(',""')
            if grown < ROOT_BYTES:
                inline.add(index)
                size = grown
        return frozenset(inline)

    @functools.cached_property
    def _root(self) -> LedgerRoot:
        return LedgerRoot(
            self.newest_ms, self._listed, self._names, self.forgotten_before_ms, self.quarantine, self.let_out
        )


def _checked_fan_out(fan_out: int) -> int:
    if fan_out < 2:
        raise OptionError(f"fan_out is {fan_out}; a ledger needs 2 or more. Nothing was read or changed.")
    return fan_out


def _due_merge(tiers: Sequence[int], fan_out: int) -> tuple[int, int]:
    """Return how many segments, from the newest on, are to become one (0: none yet), and the tier of that one."""
    count, tier = 0, 0
    while (count > 0) + tiers.count(tier) >= fan_out:
        count += tiers.count(tier)
        tier += 1
    return count, tier


def _unsaved(segment: Segment, tier: int) -> ListedSegment:
    return ListedSegment(segment.id, len(segment), tier, False, segment)


def _judge_together(rows: Sequence[int], names: Sequence[str], verdicts: npt.NDArray[np.int8]) -> None:
    """Judge files of one listing that share their bits: their one entry is of at most one of them.

    It is of the one whose version it has. Where it fits several it could be of any: all are NEW, so that none is lost.
    """
    fitting = {name for row, name in zip(rows, names, strict=True) if verdicts[row] == Known.KNOWN}
    for row in rows:
        if verdicts[row] != Known.KNOWN or len(fitting) > 1:
            verdicts[row] = Known.NEW


# ---- the segments


class _Shelf:
    """Fetches stored segments when they are needed, all of them at once, each once."""

    def __init__(self, load: Load) -> None:
        self._load = load
        self._loaded: dict[str, Segment] = {}

    def take(self, listed: Sequence[ListedSegment]) -> list[Segment]:
        """Return the segments of `listed`, in that order."""
        missing = {e.id: e for e in listed if e.segment is None and e.id not in self._loaded}
        if missing:
            found = self._load(list(missing))
            self._loaded.update(
                {segment_id: entry.opened(found.get(segment_id)) for segment_id, entry in missing.items()}
            )
        return [self._loaded[e.id] if e.segment is None else e.segment for e in listed]


def _nothing_stored(ids: Sequence[str]) -> Mapping[str, bytes | Segment]:
    return {}
