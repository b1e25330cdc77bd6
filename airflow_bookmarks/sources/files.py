"""What is new in a set of folders: a listing against the ledger of what was read."""

from __future__ import annotations

import hashlib
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import numpy as np

from airflow_bookmarks.core.errors import MisuseError, OverwrittenError, SourceMissingError
from airflow_bookmarks.core.instant import to_text, utc_now
from airflow_bookmarks.core.ledger import Known, Ledger
from airflow_bookmarks.core.listing import Listing, instant
from airflow_bookmarks.core.partition import settle_types
from airflow_bookmarks.core.plan import FilePlan, PartitionCounts
from airflow_bookmarks.core.position import Position
from airflow_bookmarks.core.reason import BEFORE_START, EXPIRED, LATE, OTHER_SHARDS, OVERWRITTEN, SETTLING
from airflow_bookmarks.core.shard import VirtualShard
from airflow_bookmarks.files.filesystem import open_filesystem
from airflow_bookmarks.sources.file_options import FileOptions
from airflow_bookmarks.sources.look import Look, Looks, look_at
from airflow_bookmarks.sources.selection import Selection
from airflow_bookmarks.sources.source import Found, Recheck

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import numpy.typing as npt

    from airflow_bookmarks.files.filesystem import FileSystem

_FINGERPRINT_LENGTH = 160
_CLOCKS_DIFFER_BY = timedelta(minutes=5)  # a file dated later than this from now has a wrong time
_MILLISECOND = timedelta(milliseconds=1)

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


class FileSource:
    """Files below some folders; each (path, version) is read once.

    Args:
        files: the file system that the roots lie on.
        roots: canonical paths of folders or files.
        options: which of the files below the roots are read.
        named: columns that the user's schema names: the types of such partition columns are the user's.
        clock: returns the present time, aware.
        shard: the virtual shard that is read; files of others are left out and counted ("other_shards"). The newest
            file and the types of partition columns are those of the whole.
        looks: where the listing is shared with other sources of this task; what changed since it was made is found
            when the run looks at its files again, before it commits.
    """

    kind = "files"

    def __init__(
        self,
        files: FileSystem,
        roots: Sequence[str],
        options: FileOptions = FileOptions(),  # noqa: B008 (a frozen value)
        *,
        named: Sequence[str] = (),
        clock: Callable[[], datetime] = utc_now,
        shard: VirtualShard | None = None,
        looks: Looks | None = None,
    ) -> None:
        self._files = files
        self._roots = tuple(dict.fromkeys(roots))
        self._options = options
        self._named = tuple(named)
        self._clock, self._shard, self._looks = clock, shard, looks
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
        mine = None if self._shard is None else np.flatnonzero(look.belongs_to(self._shard))
        listing = look.listing if mine is None else look.listing.take(mine)
        ledger = Ledger.empty() if found.position is None else Ledger.from_root(found.position, found.load)
        verdicts = ledger.classify(listing)
        chosen = self._select(found, ledger, look, listing, verdicts)
        files = chosen.files()
        types = {}
        if not self._options.recursive:
            types = settle_types(look.one_of_each_folder(), found.partition_types, self._named)
        self._ledger, self._listing = ledger, listing
        rows = _rows_of_whole(chosen, len(look.listing), mine)
        known = int(np.count_nonzero(verdicts == Known.KNOWN)) - chosen.counts.get(EXPIRED, 0)
        return _RecordedPlan(
            files,
            self._roots,
            len(look.listing),
            known,
            {**look.skipped, **chosen.counts, **{reason: len(at) for reason, at in rows.items() if len(at)}},
            types,
            partitions=_partitions(listing, files) if types else None,
            unread=chosen.stored,
            options=self._facts(types),
            listing=look.listing,
            rows=rows,
        )

    def _select(
        self, found: Found, ledger: Ledger, look: Look, listing: Listing, verdicts: npt.NDArray[np.int8]
    ) -> Selection:
        """Choose from what is new or changed; each rule leaves files out under a reason of its own."""
        is_changed = verdicts == Known.CHANGED
        is_read_again = self._read_again(listing, is_changed)
        chosen = Selection(listing, (verdicts == Known.NEW) | is_read_again)
        chosen.note(OVERWRITTEN, is_changed & ~is_read_again)
        if found.position is None:
            chosen.leave(BEFORE_START, found.start.before(listing.times_ms), is_stored=True)
        self._leave_by_age(chosen, ledger, look)
        chosen.note(EXPIRED, ledger.forgotten(listing))
        return chosen

    def _facts(self, types: Mapping[str, str]) -> dict[str, Any]:
        """Return as plain values what changes a plan; of the columns named, those that are partitions."""
        named = {name.lower() for name in self._named}
        facts: dict[str, Any] = {
            "named": [name for name in types if name.lower() in named] or None,
            "shard": None if self._shard is None else self._shard.number,
            "shard_by": None if self._shard is None else self._shard.by,
        }
        return self._options.facts() | {name: value for name, value in facts.items() if value is not None}

    def _read_again(self, listing: Listing, is_changed: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
        """Return which files are to be read again because they have another version now."""
        if self._options.on_overwrite == "error" and is_changed.any():
            raise OverwrittenError(
                f"{int(np.count_nonzero(is_changed))} file(s) that were read before have another version now, the "
                f"first: {listing.paths[int(np.argmax(is_changed))]!r}. Nothing was read or changed. Put them back, or "
                "use on_overwrite='reprocess' (read them again) or 'ignore'."
            )
        return is_changed if self._options.on_overwrite == "reprocess" else np.zeros(len(listing), np.bool_)

    def _leave_by_age(self, chosen: Selection, ledger: Ledger, look: Look) -> None:
        """Leave out what is too old or too young, and note what the ledger need not remember."""
        now = _milliseconds(look.listed_at)
        margin, settle = self._options.late_after_ms, self._options.settle_ms
        if margin is not None:
            newest = _newest(ledger, look.listing, now + _CLOCKS_DIFFER_BY // _MILLISECOND)
            if newest is not None:
                chosen.leave(LATE, chosen.listing.times_ms < newest - margin, is_stored=True)
                # Twice the bound, so that late files are told from those that were read for as long again.
                self._forget_before_ms = newest - 2 * margin
        if settle is not None:
            chosen.leave(SETTLING, chosen.listing.times_ms > now - settle, is_stored=True)

    def _look(self) -> Look:
        recursive = self._options.recursive
        return self._list() if self._looks is None else self._looks.at(self._roots, recursive, self._list)

    def _list(self) -> Look:
        return look_at(self._files, self._roots, recursive=self._options.recursive, listed_at=self._clock())

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


def _milliseconds(moment: datetime) -> int:
    return int(moment.timestamp() * 1000)


def _newest(ledger: Ledger, listing: Listing, limit_ms: int) -> int | None:
    """Return the latest time, up to a limit, of all that was read or is listed."""
    listed = listing.times_ms[listing.times_ms <= limit_ms]
    times = [ledger.newest_until(limit_ms), int(listed.max()) if len(listed) else None]
    return max((time for time in times if time is not None), default=None)


def _rows_of_whole(
    chosen: Selection, listed: int, mine: npt.NDArray[np.intp] | None
) -> dict[str, npt.NDArray[np.intp]]:
    """Return by reason the rows of the whole listing that are left out; without shards all rows are one's own."""
    if mine is None:
        return chosen.rows
    is_other = np.ones(listed, np.bool_)
    is_other[mine] = False
    return {reason: mine[own] for reason, own in chosen.rows.items()} | {OTHER_SHARDS: np.flatnonzero(is_other)}


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
    return FileSource(
        open_filesystem(roots[0]),
        roots,
        FileOptions.of_facts(options),
        named=options.get("named", ()),
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
