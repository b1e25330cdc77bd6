"""Promises of `reread="partition"` under any history: a dynamic overwrite leaves exactly what is there (FILE-23).

A history is a sequence of listings: files that come, come late, are written anew, or go. Each is read by runs that
replace the partitions they wrote, as Spark's dynamic overwrite does; the target is a plain dictionary.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, TypeAlias

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from airflow_bookmarks.core.files.file_plan import FilePlan
from airflow_bookmarks.core.ledger.file_ledger import Known, Ledger
from airflow_bookmarks.core.selection.bound import Bound
from airflow_bookmarks.core.selection.listing import FileInfo, Listing
from airflow_bookmarks.files.filesystem import Listed
from airflow_bookmarks.files.local import LocalFileSystem
from airflow_bookmarks.sources.files.backlog import Backlog
from airflow_bookmarks.sources.files.options import FileOptions
from airflow_bookmarks.sources.files.planner import FileSource
from airflow_bookmarks.sources.registry import kind_of
from airflow_bookmarks.sources.source import PlanInput

ROOT = "/raw"
Name: TypeAlias = tuple[int, int]  # partition, number of the file
There: TypeAlias = Mapping[Name, tuple[int, int]]  # content, minute of its time

_FILES = st.tuples(st.integers(0, 2), st.integers(0, 3))
HISTORIES = st.lists(
    st.dictionaries(_FILES, st.tuples(st.integers(1, 3), st.integers(0, 9)), max_size=8), min_size=1, max_size=6
)
BOUNDS = st.sampled_from(
    [Bound(), Bound(max_files=1), Bound(max_files=3), Bound(max_bytes=4), Bound(window=timedelta(minutes=3))]
)


class Store(LocalFileSystem):
    """Lists what it is told to."""

    def __init__(self) -> None:
        super().__init__()
        self.there: There = {}

    def list(self, root: str, **_: Any) -> Listed:
        files = (FileInfo(path_of(name), size, 60_000 * at) for name, (size, at) in self.there.items())
        return Listed(Listing.of(files), {})


def path_of(name: Name) -> str:
    return f"{ROOT}/month={name[0]}/f{name[1]}"


def month_of(path: str) -> int:
    return int(path.split("month=")[1].split("/")[0])


@dataclass
class Job:
    """A job whose runs replace what they wrote; its target has versions of files by partition."""

    options: FileOptions
    store: Store = field(default_factory=Store)
    found: PlanInput = field(default_factory=PlanInput)
    target: dict[int, dict[str, str]] = field(default_factory=dict)
    blobs: dict[str, bytes] = field(default_factory=dict)

    def run(self, backlog: Backlog | None = None) -> FilePlan:
        """Make one run of what is there."""
        now = lambda: datetime(2013, 1, 1, tzinfo=UTC)  # noqa: E731
        source = FileSource(self.store, [ROOT], self.options, clock=now, backlog=backlog)
        plan = source.plan(self.found)
        written: dict[int, dict[str, str]] = {}
        for file in plan.files:
            written.setdefault(month_of(file.path), {})[file.path] = file.version
        self.target |= written
        stored = FilePlan.decode(plan.encode())
        position, adopted = source.advance(plan), kind_of("files").advance(stored, self.found)
        if position is not None:
            assert adopted is not None
            self.blobs |= position.blobs
            figures = {"partition_types": plan.partition_types, **plan.stats()}
            self.found = PlanInput(position.body, self.load, plan.partition_types, stats=figures)
        return plan

    def drain(self) -> list[FilePlan]:
        """Run until nothing is left over."""
        plans = [self.run()]
        while plans[-1].skipped.get("over_bound"):
            plans.append(self.run())
        return plans

    def drain_in_batches(self) -> list[FilePlan]:
        backlog = Backlog()
        plans = [self.run(backlog)]
        while plans[-1].skipped.get("over_bound"):
            plans.append(self.run(backlog))
        return plans

    def load(self, names: Iterable[str]) -> Mapping[str, bytes]:
        return {name: self.blobs[name] for name in names}

    def present(self) -> dict[int, dict[str, str]]:
        """Return what is there now, by partition."""
        found: dict[int, dict[str, str]] = {}
        for file in self.store.list(ROOT).files:
            found.setdefault(month_of(file.path), {})[file.path] = file.version
        return found

    def entries(self) -> int:
        return 0 if self.found.position is None else len(Ledger.from_root(self.found.position, self.load))


def touched(before: Mapping[int, dict[str, str]], job: Job, seen: dict[str, str]) -> set[int]:
    """Return the partitions of which a file is new, or another than when it was read."""
    return {month for month, files in job.present().items() for path in files if seen.get(path) != files[path]}


@pytest.mark.seldom
@pytest.mark.parametrize("in_batches", [False, True])
@given(history=HISTORIES, bound=BOUNDS)
@settings(deadline=None, max_examples=150)
def test_target_has_what_is_there_of_each_partition_that_anything_came_to(
    history: list[There], bound: Bound, in_batches: bool
) -> None:
    job, seen = Job(FileOptions(reread="partition", bound=bound)), dict[str, str]()
    for there in history:
        job.store.there = there
        changed, before = touched(job.target, job, seen), dict(job.target)
        plans = job.drain_in_batches() if in_batches else job.drain()
        months = [{month_of(path) for path in plan.files.paths} for plan in plans]
        assert sum(map(len, months)) == len(set.union(*months))  # no partition is split
        assert set.union(*months) == changed
        for month in changed:
            assert job.target[month] == job.present()[month]
        for month in before.keys() - changed:
            assert job.target[month] == before[month]
        seen |= {path: version for files in job.present().values() for path, version in files.items()}


@pytest.mark.seldom
@given(history=HISTORIES)
@settings(deadline=None, max_examples=100)
def test_file_that_is_read_with_its_partition_is_no_new_entry_of_the_ledger(history: list[There]) -> None:
    job, alone = Job(FileOptions(reread="partition")), Job(FileOptions())
    for there in history:
        job.store.there = alone.store.there = there
        plan, only = job.run(), alone.run()
        assert set(only.files.paths) == set(plan.files.paths) - plan.companions
        assert job.entries() == alone.entries()
        assert plan.read_again - len(plan.companions) == only.read_again
        assert plan.listed == plan.known + len(plan) + sum(plan.skipped.values())
        if job.found.position is not None:
            verdicts = Ledger.from_root(job.found.position, job.load).classify(job.store.list(ROOT).files)
            assert set(verdicts) <= {Known.KNOWN}


@given(history=HISTORIES)
@settings(deadline=None, max_examples=100)
def test_late_file_alone_triggers_nothing_and_is_read_once_its_partition_is(history: list[There]) -> None:
    job = Job(FileOptions(reread="partition", late_after=timedelta(minutes=4)))
    for there in history:
        job.store.there = there
        plan = job.run()
        planned = {month_of(path) for path in plan.files.paths}
        for month in planned:
            assert job.target[month] == job.present()[month]
        late = [file.path for file in plan.unread.get("late", ())]
        assert not planned & set(map(month_of, late))
        assert plan.listed == plan.known + len(plan) + sum(plan.skipped.values())
