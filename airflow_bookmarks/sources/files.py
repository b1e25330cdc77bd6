"""What is new in a set of folders: a listing against the ledger of what was read."""

from __future__ import annotations

import hashlib
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from airflow_bookmarks.core.errors import MisuseError, OptionError, OverwrittenError, SourceMissingError
from airflow_bookmarks.core.instant import to_text, utc_now
from airflow_bookmarks.core.ledger import Known, Ledger
from airflow_bookmarks.core.listing import Listing, instant
from airflow_bookmarks.core.partition import settle_types
from airflow_bookmarks.core.plan import FilePlan, PartitionCounts
from airflow_bookmarks.core.position import Position
from airflow_bookmarks.core.shard import OTHER_SHARDS, ShardBy, VirtualShard
from airflow_bookmarks.core.virtual_shard import virtual_shards
from airflow_bookmarks.files.filesystem import open_filesystem
from airflow_bookmarks.sources.source import Found, Recheck

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import numpy.typing as npt

    from airflow_bookmarks.files.filesystem import FileSystem

_FINGERPRINT_LENGTH = 160
_CLOCKS_DIFFER_BY = timedelta(minutes=5)  # a file dated later than this from now has a wrong time

# Reasons for which a listed file is not read.
BEFORE_START = "before_start"  # the job begins after it; it counts as read
LATE = "late"  # older than the newest file by more than `late_after`
EXPIRED = "expired"  # older than the ledger remembers under `late_after`: read long ago, or very late
SETTLING = "settling"  # too young; the next run looks again
OVERWRITTEN = "overwritten"  # read before, another version now, and on_overwrite="ignore"

OnOverwrite = Literal["reprocess", "ignore", "error"]

OPTIONS = "options"  # of a plan's facts: what the source was told, as far as it is not the default


@dataclass(frozen=True, slots=True, eq=False)
class _RecordedPlan(FilePlan):
    """A plan that says with which options it was made, so that the source can be asked again without the script.

    `rows` are those of `listing` that were left out for reasons of which the stored plan has but the count.
    """

    options: Mapping[str, Any] = field(default_factory=dict)
    listing: Listing | None = None
    rows: Mapping[str, npt.NDArray[np.intp]] = field(default_factory=dict)

    def facts(self) -> dict[str, Any]:
        return {**FilePlan.facts(self), OPTIONS: dict(self.options)}


@dataclass(frozen=True, slots=True, eq=False)
class Look:
    """One look at some folders: what was listed, under which root each file was found, what was left out, and when."""

    listing: Listing
    root_of: Sequence[str]
    skipped: Mapping[str, int]
    listed_at: datetime
    _numbers: dict[ShardBy, npt.NDArray[np.uint8]] = field(default_factory=dict)
    _samples: list[tuple[str, str]] = field(default_factory=list)

    def belongs_to(self, shard: VirtualShard) -> npt.NDArray[np.bool_]:
        """Say which files belong to a virtual shard. What is hashed is hashed once, for all 64 of them.

        Raises:
            OptionError: it goes by partition, and a file lies in none.
        """
        if shard.by not in self._numbers:
            self._numbers[shard.by] = virtual_shards(self.listing.paths, shard.by)
        is_own: npt.NDArray[np.bool_] = self._numbers[shard.by] == shard.number
        return is_own

    def one_of_each_folder(self) -> Sequence[tuple[str, str]]:
        """Return the path and root of one file of each folder: all files of a folder have the same partition."""
        if not self._samples and len(self.listing):
            first: dict[tuple[str, str], str] = {}
            for path, root in zip(self.listing.paths, self.root_of, strict=True):
                first.setdefault((path.rpartition("/")[0], root), path)
            self._samples.extend((path, root) for (_, root), path in first.items())
        return self._samples


class Looks:
    """The looks of one task: its virtual shards read the same folders, which are listed once for all of them."""

    def __init__(self) -> None:
        self._kept: dict[tuple[tuple[str, ...], bool], Look] = {}

    def at(self, roots: tuple[str, ...], recursive: bool, look: Callable[[], Look]) -> Look:
        """Return the look at these roots, which `look` takes if nobody did before."""
        key = roots, recursive
        if key not in self._kept:
            self._kept[key] = look()
        return self._kept[key]


class FileSource:
    """Files below some folders; each (path, version) is read once.

    Args:
        files: the file system that the roots lie on.
        roots: canonical paths of folders or files.
        recursive: whether folders that are no partition are descended into (Spark's `recursiveFileLookup`).
        on_overwrite: a known path with another version is read again whole ("reprocess", as Glue), left alone
            ("ignore", counted) or stops the run ("error").
        named: columns that the user's schema names: the types of such partition columns are the user's.
        late_after: files older than the newest by more than this are not read but counted, and the ledger forgets what
            is older by more than twice this. The newest is that of all that was read or is listed; a file dated in the
            future does not count. So make it longer than the longest time between two runs.
        settle: files younger than this when the listing begins are left to a later run.
        clock: returns the present time, aware.
        shard: the virtual shard that is read; files of others are left out and counted ("other_shards"). The newest
            file and the types of partition columns are those of the whole.
        looks: where the listing is shared with other sources of this task; what changed since it was made is found
            when the run looks at its files again, before it commits.

    Raises:
        OptionError: `late_after` or `settle` is not positive, or a file could be late before it has settled.
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
        late_after: timedelta | None = None,
        settle: timedelta | None = None,
        clock: Callable[[], datetime] = utc_now,
        shard: VirtualShard | None = None,
        looks: Looks | None = None,
    ) -> None:
        check_bounds(late_after, settle)
        self._shard, self._looks = shard, looks
        self._files = files
        self._roots = tuple(dict.fromkeys(roots))
        self._recursive = recursive
        self._on_overwrite = on_overwrite
        self._named = tuple(named)
        self._late_after, self._settle, self._clock = late_after, settle, clock
        self._forget_before_ms: int | None = None
        self._ledger: Ledger | None = None
        self._listing: Listing | None = None

    def fingerprint(self) -> str:
        """Return the kind and the roots, in one order; what is long ends in a hash, to keep the head small.

        A virtual shard is another source than the whole, and than itself by another rule: the ledger of the one does
        not tell what the other has read.
        """
        text = f"{self.kind}:{','.join(sorted(self._roots))}"
        part = "" if self._shard is None else f" {self._shard}"
        if len(text) <= _FINGERPRINT_LENGTH:
            return f"{text}{part}"
        digest = hashlib.blake2b(text.encode(), digest_size=8).hexdigest()
        return f"{text[:_FINGERPRINT_LENGTH]}...#{digest}{part}"

    def plan(self, found: Found) -> FilePlan:
        """List, and keep what the ledger does not know; see `Source.plan`."""
        look = self._look()
        skipped = dict(look.skipped)
        mine = self._own_rows(look, skipped)
        listing = look.listing if mine is None else look.listing.take(mine)
        ledger = Ledger.empty() if found.position is None else Ledger.from_root(found.position, found.load)
        verdicts = ledger.classify(listing)
        is_changed = self._overwritten(listing, verdicts, skipped)
        wanted = (verdicts == Known.NEW) | is_changed
        unread: dict[str, npt.NDArray[np.bool_]] = {}
        if found.position is None:
            unread[BEFORE_START] = wanted & found.start.before(listing.times_ms)
        unread |= self._out_of_bounds(ledger, look, listing)
        left: dict[str, Listing] = {}
        for reason, is_left in unread.items():
            rows = np.flatnonzero(wanted & is_left)
            wanted &= ~is_left
            if len(rows):
                left[reason] = listing.take(rows).in_reading_order()
                skipped[reason] = len(rows)
        is_expired = ledger.forgotten(listing)
        expired = int(np.count_nonzero(is_expired))
        if expired:
            skipped[EXPIRED] = expired
        is_ignored = (verdicts == Known.CHANGED) & ~is_changed
        files = listing.take(np.flatnonzero(wanted)).in_reading_order()
        types = {}
        if not self._recursive:
            types = settle_types(look.one_of_each_folder(), found.partition_types, self._named)
        self._ledger, self._listing = ledger, listing
        known = int(np.count_nonzero(verdicts == Known.KNOWN)) - expired
        partitions = _partitions(listing, files) if types else None
        return _RecordedPlan(
            files,
            self._roots,
            len(look.listing),
            known,
            skipped,
            types,
            partitions=partitions,
            unread=left,
            options=self._options(types),
            listing=look.listing,
            rows=_named_rows(look.listing, mine, {OVERWRITTEN: is_ignored, EXPIRED: is_expired}),
        )

    def _own_rows(self, look: Look, skipped: dict[str, int]) -> npt.NDArray[np.intp] | None:
        """Return which listed files this shard reads, None for all; count the others."""
        if self._shard is None:
            return None
        mine = np.flatnonzero(look.belongs_to(self._shard))
        others = len(look.listing) - len(mine)
        if others:
            skipped[OTHER_SHARDS] = others
        return mine

    def _options(self, types: Mapping[str, str]) -> dict[str, Any]:
        """Return as plain values what changes a plan; of the columns named, those that are partitions."""
        named = {name.lower() for name in self._named}
        options: dict[str, Any] = {
            "recursive": self._recursive or None,
            "on_overwrite": None if self._on_overwrite == "reprocess" else self._on_overwrite,
            "named": [name for name in types if name.lower() in named] or None,
            "late_after_ms": None if self._late_after is None else self._late_after // _MILLISECOND,
            "settle_ms": None if self._settle is None else self._settle // _MILLISECOND,
            "shard": None if self._shard is None else self._shard.number,
            "shard_by": None if self._shard is None else self._shard.by,
        }
        return {name: value for name, value in options.items() if value is not None}

    def _overwritten(
        self, listing: Listing, verdicts: npt.NDArray[np.int8], skipped: dict[str, int]
    ) -> npt.NDArray[np.bool_]:
        """Return which files are to be read again because they have another version now."""
        is_changed: npt.NDArray[np.bool_] = verdicts == Known.CHANGED
        count = int(np.count_nonzero(is_changed))
        if count and self._on_overwrite == "error":
            raise OverwrittenError(
                f"{count} file(s) that were read before have another version now, the first: "
                f"{listing.paths[int(np.argmax(is_changed))]!r}. Nothing was read or changed. Put them back, or use "
                "on_overwrite='reprocess' (read them again) or 'ignore'."
            )
        if count and self._on_overwrite == "ignore":
            skipped[OVERWRITTEN] = count
            return np.zeros(len(listing), np.bool_)
        return is_changed

    def _out_of_bounds(self, ledger: Ledger, look: Look, listing: Listing) -> dict[str, npt.NDArray[np.bool_]]:
        """Return which files are too old or too young to be read, and note what the ledger need not remember."""
        bounds: dict[str, npt.NDArray[np.bool_]] = {}
        now = _milliseconds(look.listed_at)
        if self._late_after is not None:
            margin = self._late_after // _MILLISECOND
            newest = _newest(ledger, look.listing, now + _CLOCKS_DIFFER_BY // _MILLISECOND)
            if newest is not None:
                bounds[LATE] = listing.times_ms < newest - margin
                # Twice the bound, so that late files are told from those that were read for as long again.
                self._forget_before_ms = newest - 2 * margin
        if self._settle is not None:
            bounds[SETTLING] = listing.times_ms > now - self._settle // _MILLISECOND
        return bounds

    def _look(self) -> Look:
        return self._list() if self._looks is None else self._looks.at(self._roots, self._recursive, self._list)

    def _list(self) -> Look:
        listed_at = self._clock()
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
        return Look(listing, root_of, skipped, listed_at)

    def advance(self, plan: FilePlan) -> Position | None:
        """Return the ledger with the planned files in it; see `Source.advance`."""
        if self._ledger is None:
            raise MisuseError("advance() before plan(): a file source knows its ledger only after planning")
        return _advance(self._ledger, plan, self._listing, self._forget_before_ms)

    def recheck(self, plan: FilePlan) -> Recheck:
        """Look at the planned files again; see `Source.recheck`."""
        if self._files.pace.is_listing_cheaper(len(plan), len(plan.roots), plan.listed):
            return _recheck_by_listing(self._files, plan)
        return recheck_files(self._files, plan)


_MILLISECOND = timedelta(milliseconds=1)


def check_bounds(late_after: timedelta | None, settle: timedelta | None) -> None:
    """Make sure that two bounds on the age of files are positive, and that a file settles before it is late.

    Raises:
        OptionError: otherwise.
    """
    for name, bound in (("late_after", late_after), ("settle", settle)):
        if bound is not None and (not isinstance(bound, timedelta) or bound < _MILLISECOND):
            raise OptionError(f"{name}={bound!r}: expected a positive timedelta. Nothing was read or changed.")
    if late_after is not None and settle is not None and settle >= late_after:
        raise OptionError(
            f"settle={settle!r} is not shorter than late_after={late_after!r}: a file would be late before it has "
            "settled, and never be read. Nothing was read or changed."
        )


def _milliseconds(moment: datetime) -> int:
    return int(moment.timestamp() * 1000)


def _newest(ledger: Ledger, listing: Listing, limit_ms: int) -> int | None:
    """Return the latest time, up to a limit, of all that was read or is listed."""
    listed = listing.times_ms[listing.times_ms <= limit_ms]
    times = [ledger.newest_until(limit_ms), int(listed.max()) if len(listed) else None]
    return max((time for time in times if time is not None), default=None)


def _named_rows(
    listing: Listing, mine: npt.NDArray[np.intp] | None, left: Mapping[str, npt.NDArray[np.bool_]]
) -> dict[str, npt.NDArray[np.intp]]:
    """Return by reason the rows of the whole listing that are left out; `left` says it of one's own."""
    rows = {reason: np.flatnonzero(is_left) for reason, is_left in left.items()}
    if mine is None:
        return rows
    is_other = np.ones(len(listing), np.bool_)
    is_other[mine] = False
    return {reason: mine[own] for reason, own in rows.items()} | {OTHER_SHARDS: np.flatnonzero(is_other)}


def _partitions(listing: Listing, planned: Listing) -> PartitionCounts:
    folders = {path.rpartition("/")[0] for path in listing.paths}
    wanted = {path.rpartition("/")[0] for path in planned.paths}
    return PartitionCounts(len(folders), tuple(sorted(folders - wanted)))


def left_out(plan: FilePlan) -> dict[str, Listing]:
    """Return by reason the listed files that a plan leaves out, as far as they have names.

    Hidden and nested ones are only counted. A plan that was stored names fewer than one that was just made.
    """
    named = dict(plan.unread)
    if isinstance(plan, _RecordedPlan) and plan.listing is not None:
        named |= {reason: plan.listing.take(rows) for reason, rows in plan.rows.items() if len(rows)}
    return named


def recorded_files(roots: Sequence[str], options: Mapping[str, Any], clock: Callable[[], datetime]) -> FileSource:
    """Return the source that a plan was made by: its roots, and the options among its facts.

    Raises:
        OptionError: its file system can't be opened here.
    """
    late_after, settle = options.get("late_after_ms"), options.get("settle_ms")
    return FileSource(
        open_filesystem(roots[0]),
        roots,
        recursive=options.get("recursive", False),
        on_overwrite=options.get("on_overwrite", "reprocess"),
        named=options.get("named", ()),
        late_after=None if late_after is None else late_after * _MILLISECOND,
        settle=None if settle is None else settle * _MILLISECOND,
        clock=clock,
        shard=VirtualShard(options["shard"], options["shard_by"]) if "shard" in options else None,
    )


def advance_files(plan: FilePlan, found: Found) -> Position | None:
    """Return the position after a stored plan that started from `found`."""
    ledger = Ledger.empty() if found.position is None else Ledger.from_root(found.position, found.load)
    return _advance(ledger, plan, None, None)


def _advance(ledger: Ledger, plan: FilePlan, listing: Listing | None, forget_before_ms: int | None) -> Position | None:
    passed = plan.unread.get(BEFORE_START)
    if plan.is_empty and passed is None:
        return None  # an empty run writes no ledger
    after = ledger if passed is None else ledger.add(passed, among=listing)
    after = after.add(plan.files, among=listing)
    if forget_before_ms is not None:
        after = after.forget(forget_before_ms)
    newest = after.newest_ms
    watermark = None if newest is None else to_text(instant(newest))
    return Position(after.root(), watermark, after.unsaved())


def recheck_files(files: FileSystem, plan: FilePlan) -> Recheck:
    """Say which planned files changed or went: a file overwritten under a DataFrame gives torn rows and no error."""
    now = files.stat(plan.files.paths)
    pairs = zip(plan.files, now, strict=True)
    return Recheck(tuple(was.path for was, then in pairs if then is None or then.version != was.version))


def _recheck_by_listing(files: FileSystem, plan: FilePlan) -> Recheck:
    now: dict[str, str] = {}
    for root in plan.roots:
        with suppress(SourceMissingError):  # then all that was planned of it went
            now |= {info.path: info.version for info in files.list(root, recursive=True).files}
    return Recheck(tuple(was.path for was in plan.files if now.get(was.path) != was.version))
