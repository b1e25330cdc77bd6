"""The kinds of source pass the conformance suite, and so does one that the package does not know."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from airflow_bookmarks.core.errors import OptionError
from airflow_bookmarks.core.files.file_plan import FilePlan
from airflow_bookmarks.core.job import RunIdentity
from airflow_bookmarks.core.position import Position
from airflow_bookmarks.core.run import SourceRef
from airflow_bookmarks.core.selection.bound import Bound
from airflow_bookmarks.core.selection.listing import instant
from airflow_bookmarks.core.text.instant import to_text
from airflow_bookmarks.files.local import LocalFileSystem
from airflow_bookmarks.lifecycle.protocol.lease import RunEnvironment
from airflow_bookmarks.lifecycle.run.enabled import ActiveRun
from airflow_bookmarks.sinks.staging import Mode, StagingRequest, collect_staged
from airflow_bookmarks.sources.files.kind import FileKind
from airflow_bookmarks.sources.files.options import FileOptions
from airflow_bookmarks.sources.files.planner import FileSource
from airflow_bookmarks.sources.registry import find_kind, register, registered
from airflow_bookmarks.sources.source import PlanInput, Recheck
from airflow_bookmarks.sources.upstream.kind import UpstreamKind
from airflow_bookmarks.sources.upstream.source import UpstreamSource
from airflow_bookmarks.testing.source_conformance import SourceConformance
from tests.lifecycle.bounded_keys import BoundedKeys
from tests.lifecycle.sqlite_keys import KeyKind, KeyPlan, KeySource, keys_of, make_table, put, remove

FILES = LocalFileSystem()
FIRST_SECOND = 1_700_000_000


def numbers_in(plan: FilePlan) -> list[int]:
    return [int(line) for path in plan.files.paths for line in Path(path).read_text().splitlines()]


class TestFiles(SourceConformance):
    """An item is a file, each a second younger than the one before."""

    def kind(self) -> FileKind:
        return FileKind()

    def source(self) -> FileSource:
        return FileSource(FILES, [str(self.folder)], FileOptions())

    def arrive(self, number: int) -> None:
        path = self.folder / f"{number}.txt"
        path.write_text(f"{number}\n")
        os.utime(path, (FIRST_SECOND + number, FIRST_SECOND + number))

    def items(self, plan: FilePlan) -> list[int]:
        return numbers_in(plan)

    def change(self, number: int) -> None:
        (self.folder / f"{number}.txt").unlink()

    def value_after(self, number: int) -> str:
        return to_text(instant((FIRST_SECOND + number + 1) * 1000))

    def one_at_a_time(self) -> FileSource:
        return FileSource(FILES, [str(self.folder)], FileOptions(bound=Bound(max_files=1)))


class TestUpstream(SourceConformance):
    """An item is a run of another job, which publishes a file."""

    upstream = "raw"

    def kind(self) -> UpstreamKind:
        return UpstreamKind()

    def source(self) -> UpstreamSource:
        return UpstreamSource(self.store, self.job, self.upstream)

    def arrive(self, number: int) -> None:
        environment = RunEnvironment(start_thread=lambda renew: None)
        run = ActiveRun.begin(self.store, self.upstream, RunIdentity(f"upstream-{number}", 1), environment)
        figures = {"format": "text", "mode": Mode.APPEND.value}
        staging = Path(run.place("out", StagingRequest("files", str(self.folder), stats=figures)))
        staging.mkdir(parents=True)
        (staging / "part.txt").write_text(f"{number}\n")
        run.staged(
            "out",
            collect_staged(FILES, str(staging), str(self.folder), run.file_token, Mode.APPEND, rows=1, schema="{}"),
        )
        run.commit()

    def items(self, plan: FilePlan) -> list[int]:
        return numbers_in(plan)

    def change(self, number: int) -> None:
        (published,) = self.folder.glob(f"run-{number}.*")
        published.unlink()

    def value_after(self, number: int) -> str:
        return str(number)

    def one_at_a_time(self) -> UpstreamSource:
        return UpstreamSource(self.store, self.job, self.upstream, bound=Bound(max_rows=1))


class TestKeys(SourceConformance):
    """An item is a row of a table in SQLite."""

    @property
    def database(self) -> str:
        return str(self.folder / "crm.db")

    def prepare(self) -> None:
        make_table(self.database)

    def kind(self) -> KeyKind:
        return KeyKind()

    def source(self) -> KeySource:
        return KeySource(self.database)

    def arrive(self, number: int) -> None:
        put(self.database, number)

    def items(self, plan: KeyPlan) -> Iterable[int]:
        return keys_of(plan)

    def change(self, number: int) -> None:
        remove(self.database, number)

    def value_after(self, number: int) -> str:
        return str(number)


class TestBoundedKeys(TestKeys):
    """A source that is bounded by its loop."""

    def source(self) -> KeySource:
        return BoundedKeys(self.database)


class ReadOnceKind(KeyKind):
    """Keys that are gone once they are read, as in a queue."""

    def why_not_again(self, plan: KeyPlan) -> str:
        return "what was taken from the queue is not there any more"


class TestReadOnce(TestKeys):
    """A kind whose plans can't be read a second time."""

    def kind(self) -> ReadOnceKind:
        return ReadOnceKind()


# ---- the suite finds what is wrong


class PlansAreOpen(TestKeys):
    """What a plan reads grows with the table."""

    def items(self, plan: KeyPlan) -> Iterable[int]:
        return keys_of(replace(plan, until=10**9))


class RecoveryStaysBehind(TestKeys):
    """A stored plan does not lead where the source has led."""

    class Kind(KeyKind):
        def advance(self, plan: KeyPlan, found: PlanInput) -> Position:
            return Position(str(plan.until - 1).encode(), str(plan.until - 1))

    def kind(self) -> KeyKind:
        return self.Kind()


class ForgetsWhereItBegan(TestKeys):
    """What lay there at the start is not stored as read."""

    class Source(KeySource):
        def advance(self, plan: KeyPlan) -> Position | None:
            return super().advance(replace(plan, skipped={}))

    def source(self) -> KeySource:
        return self.Source(self.database)


class LooksOnce(TestKeys):
    """A row that goes after it was planned is not noticed."""

    class Source(KeySource):
        def recheck(self, plan: KeyPlan) -> Recheck:
            return Recheck()

    def source(self) -> KeySource:
        return self.Source(self.database)


class CountsAgain(TestKeys):
    """What is new counts as read before."""

    class Source(KeySource):
        def plan(self, found: PlanInput) -> KeyPlan:
            return replace(super().plan(found), read_again=7)

    def source(self) -> KeySource:
        return self.Source(self.database)


class ForgetsWhatItLeftOut(TestKeys):
    """What a plan leaves out is not stored with it."""

    class Source(KeySource):
        def plan(self, found: PlanInput) -> KeyPlan:
            return replace(super().plan(found), skipped={"late": 3})

    class Kind(KeyKind):
        def decode(self, body: bytes) -> KeyPlan:
            return replace(super().decode(body), skipped={})

    def kind(self) -> KeyKind:
        return self.Kind()

    def source(self) -> KeySource:
        return self.Source(self.database)


class ReadsNowhere(TestKeys):
    """The places that a plan reads are no text."""

    class Kind(KeyKind):
        def locations(self, plan: KeyPlan, source: SourceRef) -> Any:
            return (None,)

    def kind(self) -> KeyKind:
        return self.Kind()


class SetsElsewhere(TestKeys):
    """A set gives another watermark than its position has."""

    class Kind(KeyKind):
        def seek(self, store: object, found: PlanInput, plan: KeyPlan, value: str) -> Position:
            return replace(super().seek(store, found, plan, value), watermark="999")

    def kind(self) -> KeyKind:
        return self.Kind()


class EndsTooEarly(TestBoundedKeys):
    """A plan within a bound does not say that it leaves anything."""

    class Source(BoundedKeys):
        def plan(self, found: PlanInput) -> KeyPlan:
            return replace(super().plan(found), has_more=False)

    def one_at_a_time(self) -> KeySource:
        return self.Source(self.database, 1)


class CountsNothingLeft(TestBoundedKeys):
    """A plan within a bound does not count what it leaves."""

    class Source(BoundedKeys):
        def plan(self, found: PlanInput) -> KeyPlan:
            return replace(super().plan(found), skipped={})

    def one_at_a_time(self) -> KeySource:
        return self.Source(self.database, 1)


@pytest.mark.parametrize(
    ("broken", "test"),
    [
        (PlansAreOpen, TestKeys.test_plan_is_fixed_before_the_first_item_is_read),
        (RecoveryStaysBehind, TestKeys.test_stored_plan_leads_where_the_source_has_led),
        (ForgetsWhereItBegan, TestKeys.test_job_that_begins_now_reads_what_arrives_later),
        (LooksOnce, TestKeys.test_planned_input_that_changes_stops_the_commit),
        (LooksOnce, TestKeys.test_replay_of_input_that_has_changed_is_refused),
        (CountsAgain, TestKeys.test_plan_that_is_read_back_is_the_same_plan),
        (ForgetsWhatItLeftOut, TestKeys.test_plan_that_is_read_back_is_the_same_plan),
        (ReadsNowhere, TestKeys.test_locations_of_a_plan_are_text),
        (SetsElsewhere, TestKeys.test_set_goes_to_a_value_or_is_refused),
        (EndsTooEarly, TestKeys.test_bounded_runs_read_each_item_once_and_say_when_nothing_is_left),
        (CountsNothingLeft, TestKeys.test_bounded_runs_read_each_item_once_and_say_when_nothing_is_left),
    ],
)
def test_suite_finds_it(broken: type[TestKeys], test: Callable[[TestKeys], None], tmp_path: Path) -> None:
    suite = broken()
    with suite.world(tmp_path), pytest.raises((AssertionError, pytest.fail.Exception)):
        test(suite)


# ---- registration


def test_kind_is_known_within_the_block_alone() -> None:
    with registered(KeyKind()):
        assert isinstance(find_kind("sqlite_keys"), KeyKind)
        register(KeyKind())
    assert find_kind("sqlite_keys") is None


def test_kind_that_is_known_before_the_block_is_known_after_it() -> None:
    with registered(FileKind()):
        assert find_kind("files") is not None
    assert find_kind("files") is not None


def test_second_kind_of_a_name_is_refused() -> None:
    with registered(KeyKind()), pytest.raises(OptionError, match=r"'sqlite_keys' of the kind ReadOnceKind is that of"):
        register(ReadOnceKind())
