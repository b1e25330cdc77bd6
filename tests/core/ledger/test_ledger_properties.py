"""Promises of the ledger under any history, against a plain dict that is kept apart from it.

A history is a sequence of changes to a data set (new files, overwrites, deletes, files created again, ties in time,
files dated back), of runs that read all or a part of what is unread and commit or do not, and of rewinds. After each
commit the ledger goes through its stored form, where only what the kept roots name is kept.

The same histories run with paths of few bits, so that many share them. What holds then is what
`core/ledger/file_ledger.py` says:

- exact where paths that share their bits are listed together;
- exact for a path whose bits no other has, whatever the others do;
- exact from the moment at which the paths that share bits were read while listed together;
- nothing is lost as long as no two paths have one version, nor while files are only added;
- what a run has read, the next one finds read.

The last promise (FILE-7) goes through whole runs on a store: with bounds on the age of files, a start, changes while a
run reads, and runs that abort, die, or die after their commit.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from enum import Enum, auto
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from airflow_bookmarks.core.errors import FencedError
from airflow_bookmarks.core.files.file_plan import FilePlan
from airflow_bookmarks.core.job import RunIdentity
from airflow_bookmarks.core.ledger.file_ledger import Known, Ledger
from airflow_bookmarks.core.ledger.segment import Bits64, Hasher, blake2b_64
from airflow_bookmarks.core.rules.start import BEGINNING, Start
from airflow_bookmarks.core.selection.bound import Bound
from airflow_bookmarks.core.selection.listing import FileInfo, Listing
from airflow_bookmarks.core.selection.reason import BEFORE_START, EXPIRED, LATE, OVER_BOUND
from airflow_bookmarks.files.filesystem import Listed
from airflow_bookmarks.files.local import LocalFileSystem
from airflow_bookmarks.lifecycle.protocol.failpoint import Failpoint
from airflow_bookmarks.lifecycle.protocol.lease import RunEnvironment
from airflow_bookmarks.lifecycle.run.enabled import ActiveRun
from airflow_bookmarks.sources.files.options import FileOptions
from airflow_bookmarks.sources.files.planner import FileSource
from airflow_bookmarks.sources.files.recorded_plan import left_out
from airflow_bookmarks.store.backends.sqlite import SqliteTable
from airflow_bookmarks.store.bookmark_store import BookmarkStore

PATHS = [f"s3://lake/raw/{name}.csv" for name in "abcdefghij"]


# ---- histories


@dataclass(frozen=True)
class Write:
    """A file appears under a path, or replaces the one that is there."""

    path: str
    size: int
    time_ms: int
    etag: str | None


@dataclass(frozen=True)
class Remove:
    """A file goes."""

    path: str


@dataclass(frozen=True)
class Run:
    """A run reads `bound` of the unread files (None: all), and commits or not. `order` is that of the listing."""

    bound: int | None
    commits: bool
    order: int


@dataclass(frozen=True)
class Rewind:
    """The position goes back to an older root."""

    steps: int


@dataclass(frozen=True)
class Shape:
    """How a ledger lays itself out."""

    fan_out: int
    inline_bytes: int


Step: TypeAlias = Write | Remove | Run | Rewind

paths = st.sampled_from(PATHS)
# Few values, so that ties, files dated back and returning versions are common.
writes = st.builds(
    Write, paths, st.integers(0, 2), st.sampled_from([-5, 0, 1_000, 1_001, 10**14]), st.sampled_from([None, "x", "y"])
)
runs = st.builds(Run, st.none() | st.integers(1, 4), st.sampled_from([True, True, True, False]), st.integers(0, 5))
rewinds = st.builds(Rewind, st.integers(1, 4))
# Hypothesis makes lists of about five where there is no least size; merges through tiers need more.
histories = st.lists(st.one_of(writes, writes, st.builds(Remove, paths), runs, runs, rewinds), min_size=15, max_size=60)
# Tiers that fill soon; roots that hold no segment, the smallest ones, or all.
shapes = st.builds(Shape, st.integers(2, 4), st.sampled_from([0, 80, 2048]))
few_bits = st.sampled_from([0, 3, 4, 5, 6, 8])


def truncated(bits: int) -> Hasher:
    """Return the usual hash, cut to its first `bits` bits."""

    def hasher(names: Sequence[str]) -> Bits64:
        return (blake2b_64(names) >> np.uint64(64 - bits)) if bits else np.zeros(len(names), np.uint64)

    return hasher


def sharers(hasher: Hasher) -> Mapping[str, frozenset[str]]:
    """Return for each path all paths that have its bits, itself included."""
    bits = dict(zip(PATHS, hasher([path.removeprefix("s3://") for path in PATHS]).tolist(), strict=True))
    return {path: frozenset(other for other in PATHS if bits[other] == bits[path]) for path in PATHS}


# ---- the ledger under test, with its store, and the model beside it


@dataclass
class Kept:
    """What a commit left: the root, and what the model knew then."""

    root: bytes
    blob_ids: list[str]
    read: dict[str, str]
    reads: dict[str, tuple[str, ...]]


@dataclass
class Job:
    """A job over one data set: the ledger, and a model that knows nothing of it."""

    hasher: Hasher
    shape: Shape
    files: dict[str, FileInfo] = field(default_factory=dict)
    blobs: dict[str, bytes] = field(default_factory=dict)
    kept: list[Kept] = field(default_factory=list)
    read: dict[str, str] = field(default_factory=dict)  # model: path -> the version that was read last
    reads: dict[str, tuple[str, ...]] = field(default_factory=dict)  # model: path -> versions read, in this line
    ledger: Ledger = field(init=False)

    def __post_init__(self) -> None:
        self.ledger = Ledger.empty(hasher=self.hasher, **vars(self.shape))
        self._keep()

    def listing(self, order: int = 0) -> Listing:
        present = sorted(self.files.values(), key=lambda file: blake2b_64([f"{order}{file.path}"])[0])
        return Listing.of(present)

    def expected(self, listing: Listing) -> npt.NDArray[np.int8]:
        """Return what the model says of each file."""
        return np.array([self._expected(file) for file in listing], np.int8)

    def _expected(self, file: FileInfo) -> Known:
        if file.path not in self.read:
            return Known.NEW
        return Known.KNOWN if self.read[file.path] == file.version else Known.CHANGED

    def run(self, run: Run) -> tuple[Listing, npt.NDArray[np.int8], npt.NDArray[np.int8]]:
        """Plan, and commit if the run does; return the listing with what ledger and model say of it."""
        listing = self.listing(run.order)
        verdicts, expected = self.ledger.classify(listing), self.expected(listing)
        unread = listing.take(np.flatnonzero(verdicts != Known.KNOWN)).in_reading_order()
        planned = unread.take(np.arange(len(unread))[: run.bound])
        if run.commits:
            self.ledger = self.ledger.add(planned, among=listing)
            for file in planned:
                self.read[file.path] = file.version
                self.reads[file.path] = (*self.reads.get(file.path, ()), file.version)
            self._keep()
        return listing, verdicts, expected

    def rewind(self, steps: int, oldest: int = 0) -> None:
        """Go back so many commits, at most to the `oldest`; what came later is forgotten and collected."""
        del self.kept[max(oldest + 1, len(self.kept) - steps) :]
        self._open()

    def _keep(self) -> None:
        self.blobs.update(self.ledger.unsaved())
        self.kept.append(Kept(self.ledger.root(), self.ledger.segment_ids(), dict(self.read), dict(self.reads)))
        self._open()

    def _open(self) -> None:
        named = {blob_id for kept in self.kept for blob_id in kept.blob_ids}
        self.blobs = {blob_id: data for blob_id, data in self.blobs.items() if blob_id in named}
        last = self.kept[-1]
        self.read, self.reads = dict(last.read), dict(last.reads)
        self.ledger = Ledger.from_root(last.root, self._load, hasher=self.hasher, **vars(self.shape))

    def _load(self, ids: Sequence[str]) -> Mapping[str, bytes]:
        return {blob_id: self.blobs[blob_id] for blob_id in ids}


def change(job: Job, step: Write | Remove) -> None:
    match step:
        case Write(path, size, time_ms, etag):
            job.files[path] = FileInfo(path, size, time_ms, etag)
        case Remove(path):
            job.files.pop(path, None)


def assert_each_read_once(job: Job) -> None:
    """No version of a file was read twice in a row in the living line: an occurrence is read once per epoch."""
    for path, versions in job.reads.items():
        assert all(a != b for a, b in itertools.pairwise(versions)), (path, versions)


def assert_drained(job: Job) -> None:
    """One unbounded run reads all that is left."""
    job.run(Run(None, commits=True, order=0))
    for file in job.files.values():
        assert job.reads[file.path][-1] == file.version
    assert (job.ledger.classify(job.listing()) == Known.KNOWN).all()


def assert_exact(job: Job, steps: Sequence[Step], oldest: int = 0) -> None:
    for step in steps:
        match step:
            case Write() | Remove():
                change(job, step)
            case Run():
                _, verdicts, expected = job.run(step)
                assert verdicts.tolist() == expected.tolist()
            case Rewind(back):
                job.rewind(back, oldest)
        assert_each_read_once(job)
    assert_drained(job)
    assert_each_read_once(job)


# ---- promises


@settings(max_examples=400, deadline=None)
@given(histories, shapes)
def test_each_version_of_each_file_is_read_exactly_once_per_epoch(steps: list[Step], shape: Shape) -> None:
    assert_exact(Job(blake2b_64, shape), steps)


@pytest.mark.seldom
@settings(max_examples=300, deadline=None)
@given(histories, shapes, few_bits)
def test_paths_that_share_bits_are_exact_where_they_are_listed_together(
    steps: list[Step], shape: Shape, bits: int
) -> None:
    hasher = truncated(bits)
    groups = sharers(hasher)
    # What shares its bits comes and goes together; any of it may be overwritten, read in part, or rewound.
    together: list[Step] = []
    present: set[str] = set()
    for step in steps:
        match step:
            case Write(path, size, time_ms, etag):
                absent = sorted(groups[path] - present - {path})
                together += [Write(other, size, time_ms, etag) for other in absent] + [step]
                present |= groups[path]
            case Remove(path):
                together += [Remove(other) for other in sorted(groups[path])]
                present -= groups[path]
            case _:
                together.append(step)

    assert_exact(Job(hasher, shape), together)


@pytest.mark.seldom
@settings(max_examples=300, deadline=None)
@given(histories, shapes, few_bits)
def test_paths_read_together_once_stay_exact_when_they_are_listed_alone(
    steps: list[Step], shape: Shape, bits: int
) -> None:
    job = Job(truncated(bits), shape)
    for path in PATHS:
        change(job, Write(path, 1, 1_000, None))
    job.run(Run(None, commits=True, order=0))

    assert_exact(job, steps, oldest=1)


@pytest.mark.seldom
@settings(max_examples=300, deadline=None)
@given(histories, shapes, st.sampled_from([3, 4, 5]))
def test_path_with_bits_of_its_own_is_exact_whatever_the_others_do(steps: list[Step], shape: Shape, bits: int) -> None:
    hasher = truncated(bits)
    groups = sharers(hasher)
    job = Job(hasher, shape)
    for step in steps:
        match step:
            case Write() | Remove():
                change(job, step)
            case Run():
                listing, verdicts, expected = job.run(step)
                alone = [len(groups[path]) == 1 for path in listing.paths]
                assert verdicts[alone].tolist() == expected[alone].tolist()
            case Rewind(back):
                job.rewind(back)


@pytest.mark.seldom
@settings(max_examples=300, deadline=None)
@given(histories, shapes, few_bits)
def test_nothing_is_lost_among_shared_bits_while_versions_differ_between_paths(
    steps: list[Step], shape: Shape, bits: int
) -> None:
    job = Job(truncated(bits), shape)
    for step in steps:
        match step:
            case Write(path, size, time_ms, etag):
                change(job, Write(path, size, time_ms, f"{path}-{size}-{time_ms}-{etag}"))
            case Remove():
                change(job, step)
            case Run():
                _, verdicts, expected = job.run(step)
                assert (expected[verdicts == Known.KNOWN] == Known.KNOWN).all()
            case Rewind(back):
                job.rewind(back)
    assert_drained(job)


@settings(max_examples=300, deadline=None)
@given(histories, shapes, few_bits)
def test_what_a_run_has_read_the_next_one_finds_read(steps: list[Step], shape: Shape, bits: int) -> None:
    job = Job(truncated(bits), shape)
    for step in steps:
        match step:
            case Write() | Remove():
                change(job, step)
            case Run(bound, commits, order):
                job.run(step)
                if bound is None and commits:
                    assert (job.ledger.classify(job.listing(order)) == Known.KNOWN).all()
            case Rewind(back):
                job.rewind(back)


@settings(max_examples=300, deadline=None)
@given(histories, shapes, few_bits)
def test_of_copies_with_shared_bits_none_is_lost_while_files_are_only_added(
    steps: list[Step], shape: Shape, bits: int
) -> None:
    """One version everywhere is hardest to tell apart: a copy that was read alone may be read twice, no oftener."""
    job = Job(truncated(bits), shape)
    for step in steps:
        match step:
            case Write(path):
                change(job, Write(path, 1, 1_000, "copy"))
            case Run():
                _, verdicts, expected = job.run(step)
                assert (expected[verdicts == Known.KNOWN] == Known.KNOWN).all()
            case Rewind(back):
                job.rewind(back)
            case Remove():
                pass
    assert_drained(job)
    assert all(len(versions) <= 2 for versions in job.reads.values())


# ---- whole runs, with bounds


class Ending(Enum):
    """What becomes of a run after it has planned."""

    COMMITS = auto()
    ABORTS = auto()
    DIES = auto()
    DIES_AFTER_COMMIT = auto()


class Died(Exception):
    """Stands for the end of a driver process."""


@dataclass(frozen=True)
class Arrive:
    """A file appears or is replaced, dated so many seconds from now; each content has a version of its own."""

    path: str
    seconds: int


@dataclass(frozen=True)
class Wait:
    """Time goes by."""

    seconds: int


@dataclass(frozen=True)
class Pass:
    """A run under bounds (seconds, files); `meanwhile` happens between its plan and its end.

    Its clock is `ahead` by so many seconds.
    """

    late_after: int | None
    settle: int | None
    ending: Ending
    meanwhile: tuple[Arrive | Remove, ...] = ()
    max_files: int | None = None
    ahead: int = 0


LATE_AFTER, SETTLE = 100, 10
EPOCH = datetime(2013, 1, 31, 12, tzinfo=UTC)

Event: TypeAlias = Arrive | Remove | Wait | Pass

few_paths = st.sampled_from(PATHS[:5])  # so that most of them are overwritten now and then
ages = st.sampled_from([-500, -201, -101, -100, -20, -10, -9, 0, 5, 301, 5_000])
arrivals = st.builds(Arrive, few_paths, ages)
removals = st.builds(Remove, few_paths)
endings = st.sampled_from([Ending.COMMITS] * 3 + list(Ending))
happenings = st.lists(arrivals | removals, max_size=2).map(tuple)
passes = st.builds(
    Pass,
    st.sampled_from([None, LATE_AFTER]),
    st.sampled_from([None, SETTLE]),
    endings,
    st.just(()) | happenings,
    st.sampled_from([None, None, 1, 2]),
    st.sampled_from([0] * 9 + [10_000]),
)
waits = st.builds(Wait, st.sampled_from([1, 10, 90, 250]))
events = st.lists(st.one_of(arrivals, arrivals, removals, waits, passes, passes), min_size=8, max_size=25)
starts = st.sampled_from([BEGINNING, BEGINNING, Start.of("now"), Start.of(EPOCH - timedelta(seconds=50))])


@dataclass
class Disk(LocalFileSystem):
    """Files in memory, as a listing sees them."""

    files: dict[str, FileInfo] = field(default_factory=dict)

    def list(
        self,
        root: str,
        *,
        recursive: bool = False,
        enters: Callable[[str], bool] | None = None,
        saw: Callable[[int], None] | None = None,
    ) -> Listed:
        return Listed(Listing.of(self.files.values()))

    def stat(self, paths: Sequence[str]) -> Sequence[FileInfo | None]:
        return [self.files.get(path) for path in paths]


@dataclass
class World:
    """A job on a store of its own, and beside it what a reader of the promises would note down."""

    start: Start
    disk: Disk = field(default_factory=Disk)
    now: datetime = EPOCH
    written: int = 0
    runs_made: int = 0
    done: set[tuple[str, str]] = field(default_factory=set)  # read, or passed over at the start, by committed runs
    newest_ms: int | None = None  # of these
    waiting: set[tuple[str, str]] = field(default_factory=set)  # left over by the bound of the last run that read
    store: BookmarkStore = field(init=False)

    def __post_init__(self) -> None:
        self.store = BookmarkStore(SqliteTable(":memory:"), "test", clock=lambda: self.now)
        self.store.init()

    def happen(self, event: Arrive | Remove | Wait) -> None:
        match event:
            case Arrive(path, seconds):
                self.written += 1
                time_ms = int((self.now + timedelta(seconds=seconds)).timestamp() * 1000)
                self.disk.files[path] = FileInfo(path, 1, time_ms, f"v{self.written}")
            case Remove(path):
                self.disk.files.pop(path, None)
            case Wait(seconds):
                self.now += timedelta(seconds=seconds)

    def run(self, step: Pass) -> None:
        """Make a run, and check what it plans against the notes."""

        def at(point: Failpoint) -> None:
            if point is Failpoint.COMMITTED and step.ending is Ending.DIES_AFTER_COMMIT:
                raise Died

        clock = self.clock(step)
        environment = RunEnvironment(
            clock=clock, start_thread=lambda renew: None, at=at, lease_time=timedelta(seconds=0)
        )
        self.runs_made += 1
        run = ActiveRun.begin(self.store, "copy", RunIdentity(f"run/{self.runs_made}"), environment, start=self.start)
        source = FileSource(
            self.disk,
            ["s3://lake/raw"],
            FileOptions(
                late_after=None if step.late_after is None else timedelta(seconds=step.late_after),
                settle=None if step.settle is None else timedelta(seconds=step.settle),
                bound=Bound(max_files=step.max_files),
            ),
            clock=clock,
        )
        present = {(file.path, file.version) for file in self.disk.files.values()}
        plan = run.plan("raw", source, on_missing="skip")
        self.check(present, plan)
        for event in step.meanwhile:
            self.happen(event)
        there = {(file.path, file.version) for file in self.disk.files.values()}
        self.end(run, step.ending)
        if step.ending in (Ending.COMMITS, Ending.DIES_AFTER_COMMIT):
            self.note(plan, there)

    def clock(self, step: Pass) -> Callable[[], datetime]:
        return lambda: self.now + timedelta(seconds=step.ahead)

    def note(self, plan: FilePlan, there: set[tuple[str, str]]) -> None:
        """Note what a committed run has read, or passed over at the start, and what its bound has left."""
        passed = plan.unread.get(BEFORE_START, Listing.of([]))
        read = [file for file in plan.files if (file.path, file.version) in there]
        if not read and not len(passed):
            return  # an empty run
        self.done |= {(file.path, file.version) for file in (*read, *passed)}
        newest = [file.modified_ms for file in (*read, *passed)]
        self.newest_ms = max([*newest, *([] if self.newest_ms is None else [self.newest_ms])])
        self.waiting = identities(left_out(plan).get(OVER_BOUND, Listing.of([])))

    def end(self, run: ActiveRun, ending: Ending) -> None:
        match ending:
            case Ending.COMMITS:
                run.commit()
            case Ending.ABORTS:
                run.abort("an exception in the block")
            case Ending.DIES_AFTER_COMMIT:
                with suppress(Died):
                    run.commit()
            case Ending.DIES:
                pass

    def check(self, present: set[tuple[str, str]], plan: FilePlan) -> None:
        planned = identities(plan.files)
        assert not planned & self.done, "read twice"
        named = left_out(plan)
        unread = [identities(named[reason]) for reason in named if reason != EXPIRED]
        left = set().union(*unread)
        assert not left & (self.done | planned), "skipped, though read"
        assert sum(map(len, unread)) == len(left), "skipped for two reasons"
        lost = present - planned - left - self.done
        expired = plan.skipped.get(EXPIRED, 0)
        assert len(lost) <= expired, "neither read nor counted"
        assert {reason: len(files) for reason, files in named.items()} == plan.skipped
        self.check_lines(named, [file for file in self.disk.files.values() if (file.path, file.version) in lost])
        assert plan.listed == len(present) == len(planned) + plan.known + len(left) + expired

    def check_lines(self, named: Mapping[str, Listing], lost: Sequence[FileInfo]) -> None:
        """Check that only what is older than something that was read is late or expired."""
        late = named.get(LATE, Listing.of([]))
        assert not identities(late) & self.waiting, "late by waiting"
        for file in (*late, *lost):
            assert self.newest_ms is not None, "late, though nothing was read"
            assert file.modified_ms < self.newest_ms - LATE_AFTER * 1000 * (file not in lost), "backlog taken for late"


def identities(listing: Listing) -> set[tuple[str, str]]:
    return {(file.path, file.version) for file in listing}


@pytest.mark.seldom
@settings(max_examples=250, deadline=None)
@given(events, starts)
def test_each_version_at_a_listing_is_read_once_or_its_run_did_not_commit_or_it_is_counted(
    history: list[Event], start: Start
) -> None:
    world = World(start)
    for event in history:
        if isinstance(event, Pass):
            world.run(event)
        else:
            world.happen(event)
    last = Pass(None, None, Ending.COMMITS)
    world.run(last)
    present = identities(Listing.of(world.disk.files.values()))
    if not any(isinstance(event, Pass) and event.late_after for event in history):
        assert present <= world.done, "an unbounded run leaves nothing"


@settings(max_examples=50, deadline=None)
@given(st.lists(st.one_of(arrivals, removals, waits), max_size=8), st.lists(arrivals, max_size=3))
def test_run_that_was_taken_over_commits_nothing_and_loses_nothing(
    before: list[Arrive | Remove | Wait], meanwhile: list[Arrive]
) -> None:
    world = World(BEGINNING)
    for event in before:
        world.happen(event)
    environment = RunEnvironment(
        clock=lambda: world.now, start_thread=lambda renew: None, lease_time=timedelta(seconds=0)
    )
    stale = ActiveRun.begin(world.store, "copy", RunIdentity("stale"), environment)
    stale.plan("raw", FileSource(world.disk, ["s3://lake/raw"]), on_missing="skip")
    for event in meanwhile:
        world.happen(event)
    world.run(Pass(None, None, Ending.COMMITS))
    with pytest.raises(FencedError):
        stale.commit()
    world.run(Pass(None, None, Ending.COMMITS))
    assert identities(Listing.of(world.disk.files.values())) <= world.done
