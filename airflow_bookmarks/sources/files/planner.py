"""Plan what is new in a set of folders: a listing compared with the ledger of files that were read."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import numpy as np

from airflow_bookmarks.core.errors import MisuseError, OptionError, OverwrittenError, SourceMissingError
from airflow_bookmarks.core.files.file_plan import FilePlan, PartitionCounts
from airflow_bookmarks.core.ledger.file_ledger import Known, Ledger
from airflow_bookmarks.core.run import SourceRef
from airflow_bookmarks.core.selection.bound import beyond_band
from airflow_bookmarks.core.selection.listing import Listing
from airflow_bookmarks.core.selection.partition import settle_types
from airflow_bookmarks.core.selection.reason import (
    BEFORE_START,
    EXPIRED,
    LATE,
    MISSING,
    OTHER_SHARDS,
    OVER_BOUND,
    OVERWRITTEN,
    QUARANTINED,
    SETTLING,
    TOUCHED,
)
from airflow_bookmarks.core.selection.sequence import SequenceRule
from airflow_bookmarks.core.text.instant import utc_now
from airflow_bookmarks.files.filesystem import without_classes
from airflow_bookmarks.files.opener import open_filesystem
from airflow_bookmarks.sources.files.backlog import Backlog, Rest
from airflow_bookmarks.sources.files.commit import advance, folders_of, recheck_by_listing, recheck_files
from airflow_bookmarks.sources.files.grouping import grouped
from airflow_bookmarks.sources.files.options import FileOptions
from airflow_bookmarks.sources.files.recorded_plan import RecordedPlan
from airflow_bookmarks.sources.files.scan import FolderScan, ScanSpec, SharedScans, scan_folders, scan_partitions
from airflow_bookmarks.sources.files.selection import Selection
from airflow_bookmarks.sources.files.sequence import Sequenced, continued, seen_days, seen_numbers

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy.typing as npt

    from airflow_bookmarks.core.files.listed_partitions import ListedPartitions
    from airflow_bookmarks.core.ledger.seen import SeenRanges
    from airflow_bookmarks.core.metadata.file_plan import RecordedRead
    from airflow_bookmarks.core.position import Position
    from airflow_bookmarks.core.rules.shard import VirtualShard
    from airflow_bookmarks.files.filesystem import FileSystem
    from airflow_bookmarks.sources.files.scan_filter import ScanRoot
    from airflow_bookmarks.sources.source import PlanInput, Recheck

_FINGERPRINT_LENGTH = 160
_CUT_OFF = "...#"  # what comes next is the hash of the whole
_SHARD = re.compile(r" shard \d\d/\d\d by .*\Z", re.ASCII | re.DOTALL)
_CLOCKS_DIFFER_BY = timedelta(minutes=5)  # a file dated later than this from now has a wrong time
_MILLISECOND = timedelta(milliseconds=1)

FORMAT = "format"  # of these: what the files are read as


class FileSource:
    """Files below some folders; each (path, version) is read once.

    Args:
        files: the file system that the roots lie on.
        roots: canonical paths of folders or files.
        options: which of the files below the roots are read.
        named: columns that the user's schema names: the types of such partition columns are the user's. By name, the
            types, for a `partition_filter` to compare by.
        clock: returns the present time, aware.
        shard: the virtual shard that is read; files of others are left out and counted ("other_shards"). The types
            of partition columns are those of the whole.
        looks: where the listing is shared with other sources of this task; what changed since it was made is found
            when the run looks at its files again, before it commits.
        globs: canonical patterns, of what is read besides the roots.
        backlog: what the batches of a loop share of this source, so that it is listed once for all of them.
        format: what the files are read as: the position is of files of this format. None: not said.
        listed: the partitions that a catalog lists of the table whose folder is the only root: no other folder is read,
            and their values are what it says. A folder that is missing, or empty, has no files, and is counted.

    Raises:
        OptionError: a bound of rows; options that go by the names of folders, which tell nothing of listed partitions.
    """

    kind = "files"

    def __init__(
        self,
        files: FileSystem,
        roots: Sequence[str],
        options: FileOptions = FileOptions(),  # noqa: B008 (a frozen value)
        *,
        named: Sequence[str] | Mapping[str, str] = (),
        clock: Callable[[], datetime] = utc_now,
        shard: VirtualShard | None = None,
        scans: SharedScans | None = None,
        globs: Sequence[str] = (),
        backlog: Backlog | None = None,
        format: str | None = None,
        listed: ListedPartitions | None = None,
    ) -> None:
        if listed is not None:
            _check_listed(options, shard, globs)
            listed = listed.spelled(files.canonical)
        if options.bound.max_rows is not None:
            raise OptionError(
                f"max_rows={options.bound.max_rows}: files don't know their rows before they are read. Nothing was "
                "read or changed. Bound a source of files by max_files, max_bytes or window; in a loop of batches that "
                "reads an upstream by rows, give this context one of its own."
            )
        if shard is not None:
            options.check_shard_by(shard.by)
        self._files = without_classes(files, options.exclude_storage_classes)
        types = named if isinstance(named, Mapping) else {}
        self._scan_spec = ScanSpec(tuple(dict.fromkeys(roots)), tuple(dict.fromkeys(globs)), options, types, listed)
        self._roots = self._scan_spec.folders
        self._options = options
        self._named = tuple(named)
        self._clock, self._shard, self._scans = clock, shard, scans
        self._backlog = backlog
        self.format = format
        self._forget_before_ms: int | None = None
        self._ledger: Ledger | None = None
        self._listing: Listing | None = None
        self._links: Sequence[str] = ()

    @property
    def folders(self) -> tuple[str, ...]:
        """What is listed: the roots, and of each pattern the part without one."""
        return self._roots

    @property
    def options(self) -> FileOptions:
        """Which of the files there are read."""
        return self._options

    @property
    def listed(self) -> ListedPartitions | None:
        """The partitions that a catalog listed when it was made: it reads no others; None if it looks for them."""
        return self._scan_spec.listed

    @property
    def shard(self) -> VirtualShard | None:
        """The virtual shard that is read; None if the source is read whole."""
        return self._shard

    @property
    def places(self) -> Sequence[ScanRoot]:
        """What is loaded: the roots, and the patterns below theirs."""
        return self._scan_spec.places()

    @property
    def links(self) -> Sequence[str]:
        """Files and folders below these that lie elsewhere, as found by the last listing."""
        return self._links

    def ref(self) -> SourceRef:
        """Return the roots and the patterns, in one order; what is long ends in a hash: the head is small.

        A virtual shard is another source than the whole, and than itself by another rule: the ledger of the one does
        not tell what the other has read.
        """
        text = str(SourceRef(self.kind, ",".join(sorted([*self._scan_spec.roots, *self._scan_spec.globs]))))
        part = "" if self._shard is None else f" {self._shard}"
        if len(text) <= _FINGERPRINT_LENGTH:
            return SourceRef.of(self.kind, f"{text}{part}")
        digest = hashlib.blake2b(text.encode(), digest_size=8).hexdigest()
        return SourceRef.of(self.kind, f"{text[:_FINGERPRINT_LENGTH]}{_CUT_OFF}{digest}{part}")

    def plan(self, found: PlanInput) -> FilePlan:
        """List, and keep what the ledger does not know, up to the bound; see `Source.plan`."""
        return self._planned(found)

    def _planned(self, found: PlanInput) -> RecordedPlan:
        asked = self.ref(), self._options, self._named
        rest = None if self._backlog is None else self._backlog.rest_at(asked, found.position)
        if rest is not None:
            return self._next_part(rest, found)
        whole = self._plan_all(found)
        rest = Rest(whole, whole.listing or Listing.of([]), np.arange(len(whole)))
        if self._backlog is not None:
            self._backlog.begin(asked, found.position, rest)
        return self._part(replace(whole, listed_at=None), rest)

    def _part(self, plan: RecordedPlan, rest: Rest) -> RecordedPlan:
        """Return what the bound takes of the rest, with all else as `plan` has it."""
        files = rest.whole.files
        bound, grouping = self._options.bound, plan.grouping
        if grouping is None:
            is_taken = bound.takes(files, rest.rows)
        else:
            is_taken = bound.takes_whole(files, rest.rows, grouping.numbers[rest.rows], grouping.is_cause[rest.rows])
        earlier = np.delete(np.arange(len(files)), rest.rows)
        taken, rest.rows = rest.rows[is_taken], rest.rows[~is_taken]
        skipped = {**plan.skipped, OVER_BOUND: len(rest.rows)} if len(rest.rows) else plan.skipped
        part = files.take(taken)
        bases = rest.bases_of(part) if plan.bases else ()
        return replace(
            plan, files=part, skipped=skipped, over=(files, rest.rows), earlier=(files, earlier), bases=bases
        )

    def _next_part(self, rest: Rest, found: PlanInput) -> RecordedPlan:
        """Return the plan of a later batch: what was left out stays left out, and what batches have read is known.

        What it stores is in proportion to what it reads, however much is left, and however much is left out.
        """
        whole = rest.whole
        if not isinstance(whole, RecordedPlan) or self._backlog is None:
            raise MisuseError("the backlog of a file source holds the plan of another source")
        passed = whole.skipped.get(BEFORE_START, 0)
        now = replace(
            whole,
            known=whole.known + passed + rest.read,
            skipped={reason: count for reason, count in whole.skipped.items() if reason != BEFORE_START},
            unread={},
            told_before={
                **{reason: files for reason, files in whole.unread.items() if reason != BEFORE_START},
                MISSING: Listing.of(rest.missing),
            },
            partitions=None,  # the first batch has reported them, and has put away what earlier runs had left
            known_rows=None,
            sequence=None if whole.sequence is None else continued(whole.sequence, found),
        )
        plan = self._part(now, rest)
        self._ledger, self._listing = self._backlog.ledger_at(found), rest.among(plan.files)
        return plan

    def _plan_all(self, found: PlanInput) -> RecordedPlan:
        scan = self._scan(found)
        mine = None if self._shard is None else np.flatnonzero(scan.belongs_to(self._shard))
        listing = scan.listing if mine is None else scan.listing.take(mine)
        ledger = (Backlog() if self._backlog is None else self._backlog).ledger_at(found)
        verdicts = ledger.classify(listing)
        is_touched = self._touched(ledger, listing)
        chosen = self._select(found, ledger, listing, verdicts, is_touched)
        sequenced = self._follow_sequence(found, chosen, verdicts != Known.NEW)
        self._leave_by_age(chosen, ledger, scan, found)
        chosen.note(EXPIRED, ledger.forgotten(listing))
        is_read = (verdicts == Known.KNOWN) & ~is_touched
        is_changed = (verdicts == Known.CHANGED) | is_touched
        files, grouping = grouped(self._options.reread, chosen, scan, mine, is_changed)
        types: Mapping[str, str] = {}
        listed = self._scan_spec.listed
        if listed is not None:
            types = listed.types
        elif not self._options.recursive:
            types = settle_types(
                scan.one_of_each_folder(),
                found.partition_types,
                self._named,
                on_schema_change=self._options.on_schema_change,
                pruned=scan.partition_values,
            )
            types = dict.fromkeys(types, "string") if self._options.text_partitions else types
        self._ledger, self._listing = ledger, listing
        rows = _rows_of_whole(chosen, len(scan.listing), mine)
        known_rows = np.flatnonzero(is_read & ~chosen.wanted & ~chosen.is_left(QUARANTINED))
        known = len(known_rows) - chosen.counts.get(EXPIRED, 0)
        return RecordedPlan(
            files,
            self._roots,
            len(scan.listing),
            known,
            {**scan.skipped, **chosen.counts, **{reason: len(at) for reason, at in rows.items() if len(at)}},
            types,
            partitions=_partitions(listing, files, scan.pruned) if types or scan.pruned else None,
            unread=chosen.stored,
            sequence=None if sequenced is None else sequenced.start,
            seen=self._seen(found, scan, sequenced, types),
            options=self._figures(types),
            listing=scan.listing,
            rows=rows,
            known_rows=known_rows if mine is None else mine[known_rows],
            read_rows=known_rows if mine is None else mine[known_rows],
            bases=_bases(files, scan) if self._scan_spec.globs else (),
            scan_spec=self._scan_spec,
            newest_partition=self._scan_spec.newest_partition(scan.one_of_each_folder(), found, scan.listed_at),
            read_before=self._scan_spec.read_until(found, scan.listed_at),
            listed_at=scan.listed_at,
            again=_paths_of(listing, chosen.wanted & (is_changed | is_read)),
            companions=_paths_of(listing, chosen.wanted & is_read),
            grouping=grouping,
            in_groups=self._options.reread is not None,
            listed_partitions=listed,
        )

    def _select(
        self,
        found: PlanInput,
        ledger: Ledger,
        listing: Listing,
        verdicts: npt.NDArray[np.int8],
        is_touched: npt.NDArray[np.bool_],
    ) -> Selection:
        """Choose from what is new or changed; each rule leaves files out under a reason of its own."""
        is_new, is_changed = verdicts == Known.NEW, verdicts == Known.CHANGED
        is_again = is_touched if self._options.reads_touched else np.zeros(len(listing), np.bool_)
        is_asked = is_new | is_changed | is_again
        # One of a group may be read again though it is known, unless it was found since that it can't be parsed.
        is_held = _held(ledger, listing, is_asked if self._options.reread is None else np.ones_like(is_asked))
        # An overwrite that can't be parsed is in quarantine, and no overwrite to decide on.
        is_read_again = self._read_again(listing, is_changed & ~is_held)
        chosen = Selection(listing, is_new | is_read_again | is_again | is_held)
        chosen.note(OVERWRITTEN, is_changed & ~is_held & ~is_read_again)
        chosen.note(TOUCHED, is_touched & ~is_again)
        if found.position is None:
            chosen.leave(BEFORE_START, found.start.before(listing.times_ms), is_stored=True)
        chosen.leave(QUARANTINED, is_held)
        return chosen

    def _touched(self, ledger: Ledger, listing: Listing) -> npt.NDArray[np.bool_]:
        """Return which files have the etag with which they were read, and another time."""
        if listing.etags is not None:
            return ledger.touched(listing)
        if self._options.on_touch == "ignore" and len(listing):
            raise OptionError(
                "on_touch='ignore': this file system has no etags, so a file whose time alone is another can't be told "
                f"from one that was overwritten (the first listed: {listing.paths[0]!r}). Nothing was read or changed. "
                "Leave on_touch out: on_overwrite decides on both."
            )
        return np.zeros(len(listing), np.bool_)

    def _follow_sequence(self, found: PlanInput, chosen: Selection, is_read: npt.NDArray[np.bool_]) -> Sequenced | None:
        if self._options.sequence is None:
            return None
        sequenced = Sequenced.of(self._options.sequence, self._roots, found, chosen, is_read)
        sequenced.arrange(chosen, self._options.on_unmatched)
        return sequenced

    def _seen(
        self, found: PlanInput, scan: FolderScan, sequenced: Sequenced | None, types: Mapping[str, str]
    ) -> SeenRanges | None:
        """Return the numbers or days that were ever seen, where gaps are looked for; else None."""
        if self._options.gaps is False:
            return None
        if sequenced is not None and not sequenced.rule.is_by_path:
            return seen_numbers(found, sequenced, scan, self._roots, is_part=self._shard is not None)
        return seen_days(found, scan, types) if self._options.gaps else None

    def _figures(self, types: Mapping[str, str]) -> dict[str, Any]:
        """Return as plain values what changes a plan; of the columns named, those that are partitions."""
        named = {name.lower() for name in self._named}
        stats: dict[str, Any] = {
            "named": [name for name in types if name.lower() in named] or None,
            "shard": None if self._shard is None else self._shard.number,
            "shard_by": None if self._shard is None else self._shard.by,
            "named_types": self._named_types(types) or None,
            FORMAT: self.format,
            **self._scan_spec.stats(),
        }
        return self._options.stats() | {name: value for name, value in stats.items() if value is not None}

    def _named_types(self, types: Mapping[str, str]) -> Mapping[str, str]:
        """Return the user's types of partition columns, where a predicate compares by them."""
        if self._options.partition_filter is None:
            return {}
        partitions = {name.lower() for name in types}
        return {name: text for name, text in self._scan_spec.named.items() if name.lower() in partitions}

    def _read_again(self, listing: Listing, is_changed: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
        """Return which files are to be read again because they have another version now."""
        if self._options.on_overwrite == "error" and is_changed.any():
            raise OverwrittenError(
                f"{int(np.count_nonzero(is_changed))} file(s) that were read before have another version now, the "
                f"first: {listing.paths[int(np.argmax(is_changed))]!r}. Nothing was read or changed. Put them back, or "
                "use on_overwrite='reprocess' (read them again) or 'ignore'."
            )
        return is_changed if self._options.on_overwrite == "reprocess" else np.zeros(len(listing), np.bool_)

    def _leave_by_age(self, chosen: Selection, ledger: Ledger, scan: FolderScan, found: PlanInput) -> None:
        """Leave out what is too old or too young, and note what the ledger need not remember.

        The limits follow from what earlier runs have read: anything newer is backlog, however long it waits, and a
        first run has no limits. What a bound has left over in the run before, or is as young, is not late; neither is
        what was released from quarantine.
        """
        now = _milliseconds(scan.listed_at)
        margin, settle = self._options.late_after_ms, self._options.settle_ms
        newest = None if margin is None else ledger.newest_until(_latest_credible(now, found))
        if margin is not None and newest is not None:
            left_by_bound, times_ms = found.file_metadata.waiting_from_ms, chosen.listing.times_ms
            waiting = newest if left_by_bound is None else left_by_bound
            is_let_out = ledger.lets_out(chosen.listing)
            chosen.leave(LATE, (times_ms < min(newest - margin, waiting)) & ~is_let_out, is_stored=True)
            # Twice the bound, so that late files can be told from read ones for that long.
            asked_for = times_ms[is_let_out & chosen.wanted].tolist()
            self._forget_before_ms = min(newest - 2 * margin, waiting, *asked_for)
        if settle is not None:
            chosen.leave(SETTLING, chosen.listing.times_ms > now - settle, is_stored=True)
        band, most = self._options.max_band, self._options.max_files_in_band
        if band is not None and most is not None:
            is_beyond = beyond_band(chosen.listing, chosen.wanted, now - band // _MILLISECOND, most)
            chosen.leave(SETTLING, is_beyond, is_stored=True)

    def _scan(self, found: PlanInput) -> FolderScan:
        if self._scans is None:
            scan = self._list(found)
        else:
            scan = self._scans.at(self._scan_spec.key(found), lambda: self._list(found))
        if scan.unmatched and found.position is None:
            raise SourceMissingError(
                f"nothing matches {', '.join(map(repr, scan.unmatched))}. Nothing was read or changed. Check the "
                "pattern; names that begin with '_' or '.' are never matched."
            )
        self._links = scan.links
        return scan

    def _list(self, found: PlanInput) -> FolderScan:
        listed_at = self._clock()
        if self._scan_spec.listed is not None:
            return scan_partitions(self._files, self._scan_spec, self._scan_spec.listed, listed_at=listed_at)
        scan_filter = self._scan_spec.scan_filter(found, self._scan_spec.read_until(found, listed_at))
        return scan_folders(self._files, self._scan_spec.places(), scan_filter, listed_at=listed_at)

    def overlooked(self, found: PlanInput) -> Listing:
        """Return files that no run has read, and that came into their partition when it was too old to be listed.

        Lists all partitions. What was there before is not among them: it was left out as `late_after` has it.
        """
        line = self._scan_spec.line(self._scan_spec.read_until(found, self._clock()))
        if line is None:
            return Listing.of([])
        whole = self._scan_spec.without_time()
        scan = scan_folders(self._files, whole.places(), whole.scan_filter(found, None), listed_at=self._clock())
        ledger = Ledger.empty() if found.position is None else Ledger.from_root(found.position, found.load)
        is_unread = ledger.classify(scan.listing) != Known.KNOWN
        is_behind = np.zeros(len(scan.listing), np.bool_)
        for row in np.flatnonzero(is_unread).tolist():
            file = scan.listing.file(row)
            is_behind[row] = line.is_passed(file.path, scan.root_of[row], file.modified)
        return scan.listing.take(np.flatnonzero(is_behind))

    def advance(self, plan: FilePlan) -> Position | None:
        """Return the ledger with the planned files in it; see `Source.advance`."""
        if self._ledger is None:
            raise MisuseError("advance() before plan(): a file source knows its ledger only after planning")
        position = advance(self._ledger, plan, self._listing, self._forget_before_ms)
        if self._backlog is not None:
            self._backlog.advanced(plan, position)
        return position

    def recheck(self, plan: FilePlan) -> Recheck:
        """Look at the planned files again; see `Source.recheck`."""
        # Where only some folders were listed, only those of planned files are again, each by a request.
        folders = folders_of(plan) if self._scan_spec.narrows else None
        asked = len(plan.roots) if folders is None else len(folders)
        if self._files.concurrency.is_listing_cheaper(len(plan), asked, plan.listed):
            return recheck_by_listing(self._files, plan, folders)
        return recheck_files(self._files, plan)


def _check_listed(options: FileOptions, shard: VirtualShard | None, globs: Sequence[str]) -> None:
    has_numbers = options.sequence is not None and not SequenceRule.of(options.sequence).is_by_path
    given = {
        "a pattern": bool(globs),
        "partition_filter, which goes by the names of folders": options.partition_filter is not None,
        "partition_time, which goes by the names of folders": options.partition_time is not None,
        "gaps=True, which takes days from the names of folders": options.gaps is True and not has_numbers,
        "reread": options.reread is not None,
        "a sharded job": shard is not None,
    }
    for what in (what for what, is_given in given.items() if is_given):
        raise OptionError(
            f"partitions that a catalog lists, with {what}. Nothing was read or changed. Leave it out; choose the "
            "partitions in the catalog."
        )


def _milliseconds(moment: datetime) -> int:
    return int(moment.timestamp() * 1000)


def _latest_credible(now_ms: int, found: PlanInput) -> int:
    """Return the latest time that a file which was read may have, to draw a line from; a later one is a wrong time.

    This compares two clocks, of this run and of the one that read: a single one that is ahead lets nothing in.
    """
    clocks = [now_ms] if found.read_at is None else [now_ms, _milliseconds(found.read_at)]
    return min(clocks) + _CLOCKS_DIFFER_BY // _MILLISECOND


def _held(ledger: Ledger, listing: Listing, is_asked: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    """Return which of the files that are asked for are in quarantine, in the version that is listed."""
    is_held = np.zeros(len(listing), np.bool_)
    if len(ledger.quarantine):
        rows = np.flatnonzero(is_asked)
        is_held[rows] = ledger.quarantine.holds(listing.take(rows))
    return is_held


def _rows_of_whole(
    chosen: Selection, listed: int, mine: npt.NDArray[np.intp] | None
) -> dict[str, npt.NDArray[np.intp]]:
    """Return by reason the rows of the whole listing that are left out; without shards all rows are one's own."""
    if mine is None:
        return chosen.rows
    is_other = np.ones(listed, np.bool_)
    is_other[mine] = False
    return {reason: mine[own] for reason, own in chosen.rows.items()} | {OTHER_SHARDS: np.flatnonzero(is_other)}


def _paths_of(listing: Listing, is_meant: npt.NDArray[np.bool_]) -> frozenset[str]:
    return frozenset(listing.paths[row] for row in np.flatnonzero(is_meant).tolist())


def _partitions(listing: Listing, planned: Listing, pruned: int) -> PartitionCounts:
    folders, wanted = listing.in_folders().in_use(), planned.in_folders().in_use()
    return PartitionCounts(len(folders), tuple(sorted(folders - wanted)), pruned)


def _bases(files: Listing, scan: FolderScan) -> tuple[str, ...]:
    """Return the folders below which Spark is to look for partitions; the roots themselves may be above a pattern."""
    rows = files.rows_in(scan.listing)
    return tuple(dict.fromkeys(scan.root_of if rows is None else (scan.root_of[row] for row in rows.tolist())))


def roots_in(source: SourceRef) -> list[str] | None:
    """Return what may be a root or pattern in the name of a source, as `FileSource.ref` wrote it; None if cut off.

    The name of a folder may hold what separates roots, so each part, and parts behind each other, may be one root.

    Example:
        >>> roots_in(SourceRef("files", "/lake/a,/lake/b shard 07/64 by path"))
        ['/lake/a', '/lake/a,/lake/b', '/lake/b']
    """
    if _CUT_OFF in source.name:
        return None
    parts = _SHARD.sub("", source.name).split(",")
    ends = range(1, len(parts) + 1)
    return [",".join(parts[first:end]) for first in range(len(parts)) for end in ends if first < end]


def recorded_files(
    roots: Sequence[str],
    read: RecordedRead,
    clock: Callable[[], datetime],
    listed: ListedPartitions | None = None,
) -> FileSource:
    """Return the source that a plan was made by: its roots, and how it says that its files were chosen.

    Of a table in a catalog the partitions are those that were listed then.

    Raises:
        OptionError: its file system can't be opened here.
    """
    return FileSource(
        open_filesystem(roots[0]),
        roots if read.roots is None else read.roots,
        FileOptions.of_stats(read.options),
        named=read.named,
        globs=read.globs,
        clock=clock,
        shard=read.shard,
        format=read.format,
        listed=listed,
    )
