"""The conformance suite of sources: a subclass with a few hooks tests a kind of source of your own.

The tests make whole runs over the source, without Spark, in a store in memory. Items arrive by number. A plan is
checked by reading it, which reveals a plan that is not fixed. Import this module in test modules only: it needs pytest.

Example, in a test module:
    class TestKeys(SourceConformance):
        def kind(self):
            return KeyKind()

        def source(self):
            return KeySource(self.folder / "crm.db")

        def arrive(self, number): ...  # insert a row with the key `number`

        def items(self, plan): ...  # the keys of the rows that the plan reads
"""

from __future__ import annotations

import json
import re
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar

import pytest

from airflow_bookmarks.core.errors import ChangeRefusedError, JobUnknownError, OptionError, SourceChangedError
from airflow_bookmarks.core.job import RunIdentity
from airflow_bookmarks.core.option import Choice
from airflow_bookmarks.core.rules.start import BEGINNING, Start
from airflow_bookmarks.core.selection.bound import Bound
from airflow_bookmarks.core.selection.reason import OVER_BOUND
from airflow_bookmarks.files.local import LocalFileSystem
from airflow_bookmarks.lifecycle.changes.change import Change, rewind, set_position, undo
from airflow_bookmarks.lifecycle.changes.preview import preview
from airflow_bookmarks.lifecycle.inspect.never_read import NeverReadInput
from airflow_bookmarks.lifecycle.inspect.pending import pending
from airflow_bookmarks.lifecycle.maintenance.doctor import examine
from airflow_bookmarks.lifecycle.protocol.failpoint import Failpoint
from airflow_bookmarks.lifecycle.run.detached import DetachedRun
from airflow_bookmarks.lifecycle.run.enabled import ActiveRun
from airflow_bookmarks.lifecycle.run.replay import ReplayRun
from airflow_bookmarks.lifecycle.run.session import RunSession
from airflow_bookmarks.lifecycle.state.positions import ContextReader
from airflow_bookmarks.sinks.staging import Mode, StagingRequest, collect_staged
from airflow_bookmarks.sources.contract import bounded, bounds_of
from airflow_bookmarks.sources.kind import SourceKind
from airflow_bookmarks.sources.registry import registered
from airflow_bookmarks.sources.source import PlanInput
from airflow_bookmarks.store.bookmark_store import BookmarkStore
from airflow_bookmarks.testing.crash import SimulatedCrash
from airflow_bookmarks.testing.driver import DriverStore
from airflow_bookmarks.testing.memory import memory_store

CTX, OUTPUT = "input", "items"


class SourceConformance(ABC):
    """Test what the lifecycle expects of a kind of source. Subclass it under a name that begins with Test.

    The hooks can use `store` (empty at the start of each test), `folder` (an empty folder for this test) and `job` (the
    name of the job that reads the source).
    """

    job: ClassVar[str] = "conformance"
    store: BookmarkStore
    folder: Path

    # ---- hooks

    @abstractmethod
    def kind(self) -> SourceKind[Any]:
        """Return the kind, which is registered for the test if it is not registered yet."""

    @abstractmethod
    def source(self) -> Any:
        """Return the source as a script makes it; called anew for each run."""

    @abstractmethod
    def arrive(self, number: int) -> None:
        """Make an item arrive where the source reads. Tests number items 1, 2, 3 ... in the order of their arrival."""

    @abstractmethod
    def items(self, plan: Any) -> Iterable[int]:
        """Read a plan as its reader does, and return the numbers of the items found."""

    def prepare(self) -> None:  # noqa: B027 (most need nothing)
        """Create the empty input of a test, such as a table. By default, do nothing: the folder is enough."""

    def change(self, number: int) -> None:
        """Change or remove an item that has arrived. Override it if the source notices (`Source.recheck`)."""
        pytest.skip("change() is not overridden: nothing shows that the source notices changes of planned input")

    def value_after(self, number: int) -> str | None:
        """Return the value that makes `set` continue right after an item; None if the kind can't be set."""
        return None

    def one_at_a_time(self) -> Any:
        """Return the source bounded to one item a run; None if it has no bounds. By default, ask a `BoundedSource`."""
        source = self.source()
        one = {"max_rows": Bound(max_rows=1), "max_files": Bound(max_files=1)}
        bound = next((one[name] for name in one if name in bounds_of(source)), None)
        return None if bound is None else bounded(source, bound)

    # ---- what a plan is

    def test_plan_is_fixed_before_the_first_item_is_read(self) -> None:
        self.arrive(1)
        run = self._begin()
        plan = run.plan(CTX, self.source())
        self.arrive(2)
        _check("what a plan reads", sorted(self.items(plan)), [1])
        _check("what it reads the second time", sorted(self.items(plan)), [1])
        run.commit()
        _check("what the next run reads", self._run(), [2])

    def test_each_item_is_read_once(self) -> None:
        self.arrive(1)
        self.arrive(2)
        _check("what the first run reads", self._run(), [1, 2])
        self.arrive(3)
        _check("what the second run reads", self._run(), [3])
        _check("what is read with nothing new", self._run(), [])
        self._check_target(1, 2, 3)

    def test_plan_that_is_read_back_is_the_same_plan(self) -> None:
        for number in (1, 2):
            self.arrive(number)
            plan = self._planned()
            stored = self.kind().decode(plan.encode())
            _check("what the stored plan reads", sorted(self.items(stored)), sorted(self.items(plan)))
            _check("its amount", stored.amount, plan.amount)
            _check("whether it is empty", (stored.is_empty, plan.is_empty), (False, False))
            _check("whether more is left", stored.has_more, plan.has_more)
            _check("what it leaves out", dict(stored.skipped), dict(plan.skipped))
            _check("how much of it was read before", (stored.read_again, plan.read_again), (0, 0))
            self._run()

    def test_plan_with_nothing_new_is_empty(self) -> None:
        self.arrive(1)
        self._run()
        plan = self._planned()
        _check("whether it is empty", plan.is_empty, True)
        _check("whether it is empty when read back", self.kind().decode(plan.encode()).is_empty, True)
        _check("what it reads", list(self.items(plan)), [])

    def test_stats_of_a_plan_are_plain_json(self) -> None:
        self.arrive(1)
        stats = self._planned().stats()
        _check("the stats, read back from JSON", json.loads(json.dumps(stats)), stats)

    def test_locations_of_a_plan_are_text(self) -> None:
        self.arrive(1)
        locations = self.kind().locations(self._planned(), self.source().ref())
        _check("whether each place is text", [isinstance(place, str) for place in locations], [True] * len(locations))

    def test_source_is_of_its_kind_and_has_one_name(self) -> None:
        one, other = self.source(), self.source()
        _check("the kind of the source", one.kind, self.kind().name)
        _check("the reference of the same source made again", one.ref(), other.ref())
        _check("the kind in it", one.ref().kind, self.kind().name)

    def test_bounded_runs_read_each_item_once_and_say_when_nothing_is_left(self) -> None:
        if self.one_at_a_time() is None:
            pytest.skip("one_at_a_time() returns None: nothing shows what a run within a bound leaves for the next")
        for number in (1, 2, 3):
            self.arrive(number)
        plans = []
        for number in (1, 2, 3):
            run = self._begin()
            plans.append(run.plan(CTX, self.one_at_a_time()))
            _check(f"what run {number} reads within the bound", self._whole(run, plans[-1]), [number])
        _check("whether more is left after each run", [plan.has_more for plan in plans], [True, True, False])
        left = [OVER_BOUND in plan.skipped for plan in plans]
        _check(f"whether {OVER_BOUND!r} counts what is left", left, [True, True, False])
        _check("what a run without a bound reads then", self._run(), [])
        self._check_target(1, 2, 3)

    # ---- where it leads

    def test_stored_plan_leads_where_the_source_has_led(self) -> None:
        self.arrive(1)
        self._run()
        before = self._found()
        self.arrive(2)
        plan = self._planned()
        self._run()
        kind, after = self.kind(), self._found()
        stored = kind.decode(plan.encode())

        position = kind.advance(stored, before)

        assert position is not None, "a stored plan that is not empty has to move the position"
        _check("the position after a stored plan", position.body, after.position)
        _check("its watermark", position.watermark, self.store.head(self.job).contexts[CTX].watermark)
        _check("whether the position after it knows the plan", kind.knows(after, stored), True)
        _check("whether the position before it knows the plan", kind.knows(before, stored), False)

    def test_job_that_begins_now_reads_what_arrives_later(self) -> None:
        self.arrive(1)
        try:
            found = self._run(start=Start.of("now"))
        except OptionError:  # which says that the kind can't
            with pytest.raises(JobUnknownError):
                self.store.head(self.job)
            return
        _check("what a run reads that begins now", found, [])
        self.arrive(2)
        _check("what the next run reads", self._run(), [2])

    # ---- runs that fail

    def test_failed_run_leaves_the_position_where_it_was(self) -> None:
        self.arrive(1)
        run = self._begin()
        self._copy(run)
        run.abort("the test ends this run")
        self.arrive(2)
        _check("what the next run reads", self._run(), [1, 2])
        self._check_target(1, 2)

    @pytest.mark.parametrize("point", Failpoint)
    def test_killed_at_any_step_and_run_again_each_item_is_there_once(self, point: Failpoint) -> None:
        self.arrive(1)
        self._run()
        self.arrive(2)
        self.arrive(3)
        with pytest.raises(SimulatedCrash):
            self._run("execution", crash_at=point)
        self.arrive(4)
        self._run("execution", attempt=2)
        self._run()
        self._check_target(1, 2, 3, 4)
        _check("what the doctor finds", examine(self.store), [])

    def test_planned_input_that_changes_stops_the_commit(self) -> None:
        self.arrive(1)
        run = self._begin()
        self._copy(run)
        self.change(1)
        with pytest.raises(SourceChangedError):
            run.commit()
        run.abort("its input has changed")
        self._check_target()

    # ---- pause, disable

    def test_pause_reads_what_is_new_and_moves_nothing(self) -> None:
        self.arrive(1)
        self._run()
        self.arrive(2)
        _check("what a pause run reads", self._detached("pause"), [2])
        _check("what it reads again", self._detached("pause"), [2])
        _check("what the next run reads", self._run(), [2])

    def test_disable_reads_everything_and_moves_nothing(self) -> None:
        self.arrive(1)
        self._run()
        self.arrive(2)
        _check("what a disable run reads", self._detached("disable"), [1, 2])
        _check("what the next run reads", self._run(), [2])

    def test_pause_over_runs_reads_what_they_have_read_or_is_refused(self) -> None:
        plans = self._three_runs()
        why = next(filter(None, map(self.kind().why_not_again, plans[1:])), None)
        if why is None:
            _check("what a pause over runs (1, 3] reads", self._detached("pause", "1", "3"), [2, 3])
        else:
            with pytest.raises(OptionError, match=re.escape(why)):
                self._detached("pause", "1", "3")
        self.arrive(4)
        _check("what the next run reads", self._run(), [4])

    def test_pause_over_runs_with_a_set_between_reads_nothing_that_they_have_not_read(self) -> None:
        for number in (1, 2):
            self.arrive(number)
            self._run()
        self.arrive(3)
        value = self.value_after(3)
        if value is None:
            pytest.skip("value_after() returns None: nothing shows what runs over a set position read")
        set_position(self.store, self.job, CTX, value, reason="conformance", who="test")
        self.arrive(4)
        _check("what the run after the set reads", self._run(), [4])
        last = str(self.store.head(self.job).run_number)
        try:
            found = self._detached("pause", "1", last)
        except OptionError:  # no one plan covers what they have read
            return
        _check(f"what a pause over runs (1, {last}] reads", found, [2, 4])

    def test_window_of_no_runs_is_empty(self) -> None:
        _check("whether the union of no plans is empty", self.kind().union([]).is_empty, True)

    # ---- history

    def test_rewind_reads_again_what_the_undone_runs_have_read(self) -> None:
        self._three_runs()
        rewind(self.store, self.job, 1, reason="conformance", who="test")
        _check("what the next run reads", self._run(), [2, 3])

    def test_undo_of_a_rewind_leads_back(self) -> None:
        self._three_runs()
        before = self.store.head(self.job).contexts[CTX].watermark
        rewind(self.store, self.job, 1, reason="conformance", who="test")
        undo(self.store, self.job, reason="conformance", who="test")
        _check("the watermark", self.store.head(self.job).contexts[CTX].watermark, before)
        _check("what the next run reads", self._run(), [])

    def test_set_goes_to_a_value_or_is_refused(self) -> None:
        self._three_runs()
        value = self.value_after(1)
        if value is None:
            with pytest.raises(OptionError):
                set_position(self.store, self.job, CTX, "now", reason="conformance", who="test")
            _check("what the next run reads", self._run(), [])
        else:
            set_position(self.store, self.job, CTX, value, reason="conformance", who="test")
            _check("what the doctor finds", examine(self.store), [])
            _check("what the next run reads", self._run(), [2, 3])

    def test_preview_of_a_set_says_how_much_is_never_read_or_why_that_is_not_known(self) -> None:
        self.arrive(1)
        self._run()
        if self.value_after(1) is None:
            pytest.skip("value_after() returns None: the kind can't be set")
        stays = self._never_read(1)
        _check("whether a set to where it stands skips nothing", stays.files == 0 or bool(stays.unknown), True)
        self.arrive(2)
        self.arrive(3)
        never = self._never_read(2)
        is_counted = any((never.files, never.rows, *never.amounts.values()))
        _check("whether it says how much it skips, or why not", is_counted, never.unknown is None)
        set_position(self.store, self.job, CTX, str(self.value_after(2)), reason="conformance", who="test")
        _check("what the next run reads", self._run(), [3])

    def test_set_to_what_is_no_value_changes_nothing(self) -> None:
        self._three_runs()
        with pytest.raises(OptionError):
            set_position(self.store, self.job, CTX, "no such place", reason="conformance", who="test")
        _check("what the next run reads", self._run(), [])

    def test_replay_reads_what_its_run_has_read_or_is_refused(self) -> None:
        why = self.kind().why_not_again(self._three_runs()[1])
        self.arrive(4)
        if why is None:
            _check("what the replay of run 2 reads", self._replay(2), [2])
        else:
            with pytest.raises(ChangeRefusedError, match=re.escape(why)):
                self._replay(2)
        self._check_target(1, 2, 3)
        _check("what the next run reads", self._run(), [4])
        _check("what the doctor finds", examine(self.store), [])

    def test_replay_of_input_that_has_changed_is_refused(self) -> None:
        plans = self._three_runs()
        self.change(2)
        if self.kind().why_not_again(plans[1]) is None:
            with pytest.raises(SourceChangedError):
                self._replay(2)
        self._check_target(1, 2, 3)

    # ---- without the script

    def test_pending_is_what_the_next_run_would_read(self) -> None:
        self.arrive(1)
        self._run()
        is_known = type(self.kind()).source_of is not SourceKind.source_of
        _check("whether it is known that nothing is new", pending(self.store, self.job).is_empty, is_known)
        self.arrive(2)
        (context,) = pending(self.store, self.job).contexts
        _check("whether it is known what is new", context.unknown is None, is_known)
        if is_known:
            _check("the amount that is new", context.amount, self._planned().amount)

    def test_doctor_finds_nothing(self) -> None:
        self._three_runs()
        _check("what the doctor finds", examine(self.store), [])

    # ---- the runs of a test

    @contextmanager
    def world(self, folder: Path) -> Iterator[None]:
        """Give the hooks an empty store and an empty folder below `folder`; pytest does it before each test."""
        with memory_store() as store, registered(self.kind()):
            self.store, self.folder = store, folder / "input"
            self._target, self._executions = folder / "target", 0
            self.folder.mkdir()
            self.prepare()
            yield

    @pytest.fixture(autouse=True)
    def _world(self, tmp_path: Path) -> Iterator[None]:
        with self.world(tmp_path):
            yield

    def _identity(self, run_id: str | None = None, attempt: int = 1) -> RunIdentity:
        self._executions += 1
        return RunIdentity(run_id or f"execution-{self._executions}", attempt)

    def _driver(self, crash_at: Failpoint | None = None) -> DriverStore:
        return DriverStore(self.store, crash_at, lambda entry: None)

    def _never_read(self, number: int) -> NeverReadInput:
        """Return what a set to right after an item skips."""
        seen = preview(self.store, self.job, Change("set", ctx=CTX, value=self.value_after(number))).never_read
        assert seen is not None, "the preview of a set has to say what it skips"
        return seen

    def _begin(
        self,
        run_id: str | None = None,
        *,
        attempt: int = 1,
        crash_at: Failpoint | None = None,
        start: Start = BEGINNING,
    ) -> ActiveRun:
        driver = self._driver(crash_at)
        return ActiveRun.begin(driver, self.job, self._identity(run_id, attempt), driver.environment, start=start)

    def _run(self, run_id: str | None = None, **how: Any) -> list[int]:
        return self._whole(self._begin(run_id, **how))

    def _replay(self, number: int) -> list[int]:
        driver = self._driver()
        return self._whole(ReplayRun.begin_replay(driver, self.job, self._identity(), driver.environment, number))

    def _detached(self, option: str, *window: str) -> list[int]:
        driver = self._driver()
        choice = Choice.of(option, *window)
        run = DetachedRun.begin(driver, self.job, self._identity(), choice, driver.environment)
        return sorted(self.items(run.plan(CTX, self.source())))

    def _whole(self, run: RunSession, plan: Any = None) -> list[int]:
        """Read, write, commit and publish; return what was read."""
        try:
            found = self._copy(run, plan)
            run.commit()
        except Exception as error:  # not a SimulatedCrash: a dead driver aborts nothing
            run.abort(str(error))
            raise
        return found

    def _copy(self, run: RunSession, plan: Any = None) -> list[int]:
        """Read what is planned and stage it: one file for each item."""
        found = sorted(self.items(run.plan(CTX, self.source()) if plan is None else plan))
        stats = {"format": "text", "mode": Mode.APPEND.value}
        staging = run.place(OUTPUT, StagingRequest("files", str(self._target), stats=stats))
        Path(staging).mkdir(parents=True, exist_ok=True)
        for number in found:
            (Path(staging) / f"{number}.txt").write_text(f"{number}\n")
        run.staged(
            OUTPUT,
            collect_staged(
                LocalFileSystem(),
                staging,
                str(self._target),
                run.file_token,
                Mode.APPEND,
                rows=len(found),
                schema='{"fields":[]}',
            ),
        )
        return found

    def _planned(self) -> Any:
        """Return the plan that the next run would make."""
        run = self._begin()
        plan = run.plan(CTX, self.source())
        run.abort("the test only looks at the plan")
        return plan

    def _three_runs(self) -> list[Any]:
        """Let three items arrive, each read by a run of its own; return the plans of these runs as stored."""
        for number in (1, 2, 3):
            self.arrive(number)
            _check(f"what run {number} reads", self._run(), [number])
        entries = [run.plans[CTX] for run in self.store.runs(self.job) if run.state.is_committed]
        return [self.kind().decode(self.store.blobs.get(entry.body)) for entry in entries]

    def _found(self) -> PlanInput:
        return ContextReader(self.store, self.job, self.store.head(self.job)).found(CTX)

    def _check_target(self, *numbers: int) -> None:
        files = [path for path in self._target.rglob("*.txt") if "_bookmarks" not in path.parts]
        visible = Counter(int(path.read_text()) for path in files)
        _check("how often each item is in the target", dict(sorted(visible.items())), dict.fromkeys(numbers, 1))


def _check(what: str, found: object, expected: object) -> None:
    assert found == expected, f"{what}: {found!r}, and not {expected!r}"
