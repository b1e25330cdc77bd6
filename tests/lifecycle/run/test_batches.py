"""Promises of batches (RUN-15, RUN-16): a backlog is drained in bounded runs, each committed by itself.

Their cost does not grow: one listing for all of them, the ledger is fetched once, and each batch asks the store the
same. What a crash leaves is as after any run.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from airflow_bookmarks.core.errors import FencedError, MisuseError, OptionError
from airflow_bookmarks.core.files.file_plan import FilePlan
from airflow_bookmarks.core.rules.start import Start
from airflow_bookmarks.core.selection.bound import Bound
from airflow_bookmarks.core.selection.reason import BEFORE_START, LATE, OVER_BOUND, QUARANTINED
from airflow_bookmarks.files.filesystem import Listed
from airflow_bookmarks.files.local import LocalFileSystem
from airflow_bookmarks.lifecycle.changes.change import rewind
from airflow_bookmarks.lifecycle.inspect.pending import pending
from airflow_bookmarks.lifecycle.maintenance.doctor import examine
from airflow_bookmarks.lifecycle.protocol.failpoint import Failpoint
from airflow_bookmarks.lifecycle.protocol.finish import ExecutionOutcome, last_summary, outcome
from airflow_bookmarks.lifecycle.run.replay import ReplayRun
from airflow_bookmarks.sources.files.backlog import Backlog
from airflow_bookmarks.sources.files.options import FileOptions
from airflow_bookmarks.sources.files.planner import FileSource
from airflow_bookmarks.sources.files.recorded_plan import left_out
from airflow_bookmarks.sources.source import PlanInput
from airflow_bookmarks.sources.upstream.source import UpstreamSource
from airflow_bookmarks.store.backends.sqlite import SqliteTable
from airflow_bookmarks.store.bookmark_store import BookmarkStore
from airflow_bookmarks.store.shelf import SegmentShelf
from tests.lifecycle.batch_driver import Batch, Loop
from tests.lifecycle.shop import FILES, Shop

ROOT = Path(__file__).parents[3]
MIDNIGHT = 1_357_000_200 - 1_357_000_200 % 86_400


class CountingFiles(LocalFileSystem):
    """A disk that counts its listings."""

    def __init__(self) -> None:
        super().__init__()
        self.listings = 0

    def list(self, *args: Any, **kwargs: Any) -> Listed:
        self.listings += 1
        return super().list(*args, **kwargs)


class CountingTable(SqliteTable):
    """A table that counts what it is asked, by name."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.asked: Counter[str] = Counter()

    def get(self, *args: Any, **kwargs: Any) -> Any:
        self.asked["get"] += 1
        return super().get(*args, **kwargs)

    def query(self, *args: Any, **kwargs: Any) -> Any:
        self.asked["query"] += 1
        return super().query(*args, **kwargs)

    def transact(self, *args: Any, **kwargs: Any) -> Any:
        self.asked["transact"] += 1
        return super().transact(*args, **kwargs)


def put_many(shop: Shop, count: int, seconds: int = 1_700_000_000) -> list[str]:
    """Write so many files of one line, all of one time; return the lines."""
    for i in range(count):
        shop.put(f"f{i:04}.txt", f"line {i}", seconds=seconds)
    return [f"line {i}" for i in range(count)]


def loop(shop: Shop, run_id: str = "task", attempt: int = 1, files: Any = FILES, **bounds: Any) -> Loop:
    run = shop.begin("copy", run_id, attempt, in_batches=True)
    return Loop(shop, run, FileOptions(bound=Bound.of(**bounds)), files)


def drain(shop: Shop, **kwargs: Any) -> list[Batch]:
    return list(loop(shop, **kwargs).batches())


def bounded(shop: Shop, **bounds: Any) -> tuple[list[str], Mapping[str, Any]]:
    """Make one run that is no loop; return the names of the files it read, and what it says of the context."""
    run = shop.begin()
    plan = run.plan("raw", FileSource(FILES, [str(shop.raw)], FileOptions(bound=Bound.of(**bounds))))
    return [path.rpartition("/")[2] for path in plan.files.paths], run.commit().contexts["raw"]


# ---- one bounded run


def test_bounded_run_reads_the_oldest_and_counts_what_is_over(shop: Shop) -> None:
    shop.put("new", "n", seconds=30)
    shop.put("old", "o", seconds=10)
    shop.put("middle", "m", seconds=20)
    names, figures = bounded(shop, max_files=2)
    assert names == ["old", "middle"]
    assert (figures["files"], figures["listed"], figures["skipped"]) == (2, 3, {OVER_BOUND: 1})
    assert shop.store.execution("copy", "manual/1").is_finished  # type: ignore[union-attr]


def test_what_is_over_the_bound_is_new_to_the_next_run(shop: Shop) -> None:
    lines = put_many(shop, 1000)
    first, _ = bounded(shop, max_files="500")
    second, _ = bounded(shop, max_files=500)
    third, figures = bounded(shop, max_files=500)
    assert len({*first, *second}) == len(first) + len(second) == len(lines)
    assert (third, figures["skipped"], figures["known"]) == ([], {}, 1000)


def test_files_of_one_time_are_read_once_over_any_bounds(shop: Shop) -> None:
    put_many(shop, 60)
    chance, read = random.Random(1), Counter[str]()
    while True:
        if chance.random() < 0.3:
            shop.put(f"late{chance.random()}.txt", "late", seconds=1_700_000_000)
        names, figures = bounded(shop, max_files=chance.randint(1, 9), max_bytes=chance.randint(1, 60))
        read.update(names)
        if not figures["skipped"] and not names:
            break
    assert set(read) == {path.name for path in shop.raw.iterdir()}
    assert set(read.values()) == {1}


def test_file_above_the_bound_of_bytes_is_still_read(shop: Shop) -> None:
    shop.put("a", "x" * 100, seconds=1)
    shop.put("b", "y", seconds=2)
    assert bounded(shop, max_bytes=10)[0] == ["a"]
    assert bounded(shop, max_bytes=10)[0] == ["b"]


def test_plan_does_not_name_what_is_over_and_pending_does(shop: Shop) -> None:
    put_many(shop, 3)
    bounded(shop, max_files=1)
    (context,) = pending(shop.store, "copy").contexts
    assert (context.files, context.plan.skipped) == (1, {OVER_BOUND: 1})  # type: ignore[union-attr]
    assert [(file["reason"], Path(file["path"]).name) for file in context.skipped_files()] == [
        (OVER_BOUND, "f0002.txt")
    ]
    run = shop.store.committed_run("copy", 1)
    assert run is not None
    assert run.plans["raw"].stats["skipped"] == {OVER_BOUND: 2}


def test_bound_of_rows_is_refused_for_files() -> None:
    with pytest.raises(OptionError, match="files don't know their rows"):
        FileSource(FILES, ["/raw"], FileOptions(bound=Bound(max_rows=5)))


# ---- batches


def test_backlog_is_drained_in_runs_of_their_own(shop: Shop) -> None:
    lines = put_many(shop, 10)
    batches = drain(shop, max_files=4)
    assert [len(batch.lines) for batch in batches] == [4, 4, 2]
    assert [line for batch in batches for line in batch.lines] == lines
    assert [batch.summary.run_number for batch in batches] == [1, 2, 3]
    assert shop.target_lines() == dict.fromkeys(lines, 1)
    head, execution = shop.store.head("copy"), shop.store.execution("copy", "task")
    assert (head.run_number, head.published, head.publishing, head.lease) == (3, 3, None, None)
    assert execution is not None
    assert (execution.first_run, execution.last_run, execution.is_finished) == (1, 3, True)
    assert shop.staged_files() == []


def test_each_batch_says_what_is_known_and_what_is_left(shop: Shop) -> None:
    put_many(shop, 5)
    (shop.raw / "_hidden").write_text("h")
    told = [batch.summary.contexts["raw"] for batch in drain(shop, max_files=2)]
    assert [(figures["listed"], figures["known"], figures["files"]) for figures in told] == [
        (5, 0, 2),
        (5, 2, 2),
        (5, 4, 1),
    ]
    assert [figures["skipped"] for figures in told] == [
        {"hidden": 1, OVER_BOUND: 3},
        {"hidden": 1, OVER_BOUND: 1},
        {"hidden": 1},
    ]


def test_execution_is_finished_by_its_last_batch_alone(shop: Shop) -> None:
    put_many(shop, 3)
    finished = []
    for _ in loop(shop, max_files=1).batches():
        execution = shop.store.execution("copy", "task")
        assert execution is not None
        finished.append(execution.is_finished)
    assert finished == [False, False, True]


def test_each_batch_has_a_fence_of_its_own_and_no_moment_without_one(shop: Shop) -> None:
    put_many(shop, 3)
    held = []
    for _ in loop(shop, max_files=1).batches():
        lease = shop.store.head("copy").lease
        held.append((shop.store.head("copy").fence, None if lease is None else lease.run_id))
    assert held == [(2, "task"), (3, "task"), (3, None)]
    assert [run.key.fence for run in shop.store.runs("copy")] == [1, 2, 3]


def test_nothing_new_is_one_empty_run(shop: Shop) -> None:
    batches = drain(shop, max_files=1)
    assert [batch.summary.is_empty for batch in batches] == [True]
    assert shop.store.head("copy").run_number == 1


def test_six_hours_by_a_quarter_make_24_commits(shop: Shop) -> None:
    for minute in range(0, 360, 5):
        shop.put(f"{minute:03}.txt", f"{minute}", seconds=MIDNIGHT + minute * 60)
    batches = drain(shop, window=timedelta(minutes=15))
    assert [len(batch.lines) for batch in batches] == [3] * 24
    assert shop.store.head("copy").run_number == 24


def test_file_that_comes_to_a_window_that_was_read_is_read_by_the_next_execution(shop: Shop) -> None:
    shop.put("a", "a", seconds=MIDNIGHT)
    shop.put("b", "b", seconds=MIDNIGHT + 3600)
    quarter = timedelta(minutes=15)
    assert [batch.lines for batch in drain(shop, window=quarter)] == [["a"], ["b"]]
    shop.put("a2", "a2", seconds=MIDNIGHT + 1)
    assert [batch.lines for batch in drain(shop, run_id="next", window=quarter)] == [["a2"]]


def test_loop_ends_with_what_was_there_when_it_began(shop: Shop) -> None:
    put_many(shop, 2)
    going = loop(shop, max_files=1)
    going.before = lambda number: shop.put(f"new{number}.txt", f"new {number}", seconds=1) if number > 1 else None
    assert [batch.lines for batch in going.batches()] == [["line 0"], ["line 1"]]
    assert [batch.lines for batch in drain(shop, run_id="next", max_files=5)] == [["new 2"]]


def test_file_that_went_before_its_batch_is_left_and_counted(shop: Shop) -> None:
    put_many(shop, 3)
    going = loop(shop, max_files=1)
    changed = shop.raw / "f0001.txt"
    read: list[list[str]] = []
    for batch in going.batches():
        read.append(batch.lines)
        if len(read) == 1:
            shop.put("f0001.txt", "another", seconds=1_700_000_009)
    assert changed.exists()
    assert read == [["line 0"], ["another"], ["line 2"]]
    assert shop.target_lines() == {"line 0": 1, "line 2": 1}  # of the second batch nothing was committed
    assert [batch.lines for batch in drain(shop, run_id="next", max_files=1)] == [["another"]]
    assert shop.target_lines() == {"line 0": 1, "another": 1, "line 2": 1}


def test_start_counts_as_read_over_all_batches(shop: Shop) -> None:
    put_many(shop, 2, seconds=100)
    for name in ("x", "y"):
        shop.put(name, name, seconds=200)
    run = shop.begin("copy", "task", in_batches=True, start=Start.of("1970-01-01T00:03:00Z"))
    going = Loop(shop, run, FileOptions(bound=Bound(max_files=1)))
    batches = list(going.batches())
    assert [batch.lines for batch in batches] == [["x"], ["y"]]
    assert [batch.summary.contexts["raw"]["skipped"] for batch in batches] == [{"before_start": 2, OVER_BOUND: 1}, {}]
    assert batches[1].summary.contexts["raw"]["known"] == 3
    assert drain(shop, run_id="next", max_files=1)[0].lines == []


def test_batches_follow_a_sequence_and_its_watermark(shop: Shop) -> None:
    for number in (10, 9, 2, 1):
        shop.put(f"part-{number}.txt", f"{number}", seconds=1_700_000_000 - number)
    options = FileOptions(bound=Bound(max_files=2), sequence=r"part-(?P<number>\d+)")
    batches = list(Loop(shop, shop.begin("copy", "task", in_batches=True), options).batches())
    assert [batch.lines for batch in batches] == [["1", "2"], ["9", "10"]]
    assert [batch.summary.contexts["raw"]["watermark_to"] for batch in batches] == ["2", "10"]


def test_doctor_finds_the_state_sound_after_batches_of_every_kind(shop: Shop) -> None:
    put_many(shop, 3, seconds=100)
    for number in range(3):
        shop.put(f"x{number}", "x", seconds=200)
    run = shop.begin("copy", "task", in_batches=True, start=Start.of("1970-01-01T00:03:00Z"))
    going = Loop(shop, run, FileOptions(bound=Bound(max_files=1), late_after=timedelta(hours=1)))
    list(going.batches())
    shop.put("new", "new", seconds=201)
    drain(shop, run_id="next", max_files=1)
    assert examine(shop.store) == []


# ---- what it costs


def test_folders_are_listed_once_for_all_batches(shop: Shop) -> None:
    put_many(shop, 12)
    files = CountingFiles()
    assert len(drain(shop, files=files, max_files=1)) == 12
    assert files.listings == 1


def test_stored_plan_of_a_batch_is_in_proportion_to_what_it_reads(shop: Shop) -> None:
    shop.put("0/before.txt", "b", seconds=1_700_000_000)
    first = FileSource(FILES, [str(shop.raw)], FileOptions(recursive=True))
    read = first.advance(first.plan(PlanInput()))
    assert read is not None
    for day in range(6):
        shop.put(f"{day}/a.txt", "a", seconds=1_700_000_000 + day)
        shop.put(f"{day}/late.txt", "late", seconds=1_600_000_000)
    shop.put("whole.txt", "w", seconds=1_700_000_006)
    options = FileOptions(bound=Bound(max_files=2), late_after=timedelta(days=1))
    backlog, found, bases, named = Backlog(), PlanInput(read.body), [], []
    for _ in range(4):
        globs = [f"{shop.root}/{{raw/[0-5],raw/whole.txt}}"]
        source = FileSource(FILES, [], options, globs=globs, backlog=backlog)
        plan = source.plan(found)
        position = source.advance(plan)
        assert position is not None
        found = PlanInput(position.body, found.load, watermark=position.watermark, stats=plan.stats())
        stored = FilePlan.decode(plan.encode())
        bases.append([base.removeprefix(f"{shop.raw}/") for base in stored.bases])
        named.append(len(stored.unread.get(LATE, ())))
        assert (plan.skipped[LATE], len(left_out(plan)[LATE])) == (6, 6)

    assert bases == [["0", "1"], ["2", "3"], ["4", "5"], ["whole.txt"]]
    assert named == [6, 0, 0, 0]  # once for all batches of the loop


def test_each_batch_asks_the_store_the_same_and_of_the_ledger_nothing_twice(tmp_path: Path) -> None:
    table = CountingTable(tmp_path / "counted.db")
    store = BookmarkStore(table, "test")
    store.init()
    shop = Shop(tmp_path, store)
    shop.raw.mkdir()
    for i in range(40):
        shop.put(f"old{i}.txt", "old")
        shop.run(run_id=f"before {i}")
    put_many(shop, 40)
    asked: list[Counter[str]] = []
    table.asked.clear()
    for _ in loop(shop, max_files=1).batches():
        asked.append(Counter(table.asked))
        table.asked.clear()
    assert len(asked) == 40
    assert all(each == asked[1] for each in asked[1:-1])
    assert sum(asked[0].values()) <= sum(asked[1].values()) + 6  # begin and recover


@pytest.mark.seldom
def test_segments_are_fetched_once_and_own_ones_never(shop: Shop) -> None:
    for i in range(5):
        for j in range(200):  # so many that a segment lies outside the root
            shop.put(f"old{i}-{j}.txt", "old")
        shop.run(run_id=f"before {i}")
    for j in range(200 * 35):
        shop.put(f"new{j}.txt", "new")
    fetched: Counter[str] = Counter()
    anew = BookmarkStore(shop.store.table, "test")  # as a new process has one

    def counted(names: Sequence[str]) -> Mapping[str, bytes]:
        fetched.update(names)
        return anew.blobs.get_named(names)

    anew.segments = SegmentShelf(counted, most_bytes=0)
    assert len(drain(replace(shop, store=anew), max_files=200)) == 35  # segments were merged on the way
    assert (len(fetched), set(fetched.values())) == (5, {1})


def test_batch_lists_anew_where_the_bookmark_is_not_where_it_left_it(shop: Shop) -> None:
    put_many(shop, 2)
    files = CountingFiles()
    going = loop(shop, files=files, max_files=1)
    next(going.batches())
    shop.put("new", "new", seconds=1)
    other = Loop(shop, going.run.following(), FileOptions(bound=Bound(max_files=5)), files, backlog=going.backlog)
    assert [batch.lines for batch in other.batches()] == [["new", "line 1"]]  # another bound is another question
    assert files.listings == 2


# ---- what ends a loop


def test_error_in_a_batch_keeps_the_batches_before_it(shop: Shop) -> None:
    put_many(shop, 3)
    going = loop(shop, max_files=1)
    next(going.batches())
    second = going.run.following()
    second.plan("raw", FileSource(FILES, [str(shop.raw)], going.options, backlog=going.backlog))
    second.abort("ValueError: no")
    head, execution = shop.store.head("copy"), shop.store.execution("copy", "task")
    assert (head.run_number, head.lease) == (1, None)
    assert execution is not None
    assert not execution.is_finished
    assert [batch.lines for batch in drain(shop, attempt=2, max_files=1)] == [["line 1"], ["line 2"]]
    execution = shop.store.execution("copy", "task")
    assert execution is not None
    assert execution.is_finished


def test_loop_that_is_left_gives_the_job_back(shop: Shop) -> None:
    put_many(shop, 2)
    going = loop(shop, max_files=1)
    next(going.batches())
    going.run.leave()
    assert shop.store.head("copy").lease is None
    going.run.leave()
    with pytest.raises(MisuseError, match="no run follows"):
        going.run.following()
    assert shop.run(run_id="next")[0] == ["line 1"]


def test_run_outside_a_loop_has_none_that_follows(shop: Shop) -> None:
    put_many(shop, 2)
    run = shop.begin()
    run.plan("raw", FileSource(FILES, [str(shop.raw)], FileOptions(bound=Bound(max_files=1))))
    run.commit()
    assert not run.goes_on
    run.leave()


def test_kill_between_two_batches_fences_the_next(shop: Shop) -> None:
    put_many(shop, 3)
    going = loop(shop, max_files=1)
    next(going.batches())
    assert shop.store.fence("copy", "task", 1)
    with pytest.raises(FencedError):
        list(Loop(shop, going.run.following(), going.options, backlog=going.backlog).batches())
    assert [batch.lines for batch in drain(shop, attempt=2, max_files=5)] == [["line 1", "line 2"]]


def drive(shop: Shop, attempt: int, point: str = "none", count: int = 0) -> int:
    command = [
        sys.executable,
        "-m",
        "tests.lifecycle.batch_driver",
        str(shop.root),
        str(attempt),
        "2",
        point,
        str(count),
    ]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(command, cwd=ROOT, env=environment, check=False, capture_output=True).returncode


@pytest.mark.parametrize("point", [p for p in Failpoint if p not in (Failpoint.TAKEN, Failpoint.RECOVERED)])
def test_killed_within_the_second_batch_and_retried_each_row_is_there_once(shop: Shop, point: Failpoint) -> None:
    lines = put_many(shop, 7)
    count = {Failpoint.LISTED: 2, Failpoint.MOVED: 4}.get(point, 2)
    assert drive(shop, 1, point, count) == -signal.SIGKILL
    kept = shop.store.head("copy").run_number
    assert kept >= 1
    assert outcome(shop.store, "copy", "task")[0] is not ExecutionOutcome.FINISHED
    assert drive(shop, 2) == 0
    assert shop.target_lines() == dict.fromkeys(lines, 1)
    assert shop.staged_files() == []
    head, execution = shop.store.head("copy"), shop.store.execution("copy", "task")
    assert (head.run_number, head.published, head.publishing, head.lease) == (4, 4, None, None)
    assert execution is not None
    assert (execution.first_run, execution.last_run, execution.is_finished) == (1, 4, True)


# ---- pause, disable, replay


@pytest.mark.parametrize("option", ["pause", "disable"])
def test_side_runs_walk_through_the_backlog_and_change_nothing(shop: Shop, option: str) -> None:
    shop.put("read.txt", "read", seconds=1)
    shop.run()
    put_many(shop, 3)
    before = shop.store.head("copy")
    files = CountingFiles()
    choice = {"pause": ["line 0", "line 1", "line 2"], "disable": ["read", "line 0", "line 1", "line 2"]}[option]
    run = side_in_batches(shop, option)
    batches = list(Loop(shop, run, FileOptions(bound=Bound(max_files=1)), files).batches())
    assert [batch.lines for batch in batches] == [[line] for line in choice]
    assert shop.store.head("copy") == before
    assert files.listings == 1
    assert len(shop.store.sides("copy")) == len(choice)


def side_in_batches(shop: Shop, option: str, from_run: str | None = None, to_run: str | None = None) -> Any:
    from airflow_bookmarks.core.option import Choice
    from airflow_bookmarks.lifecycle.run.detached import DetachedRun

    choice = Choice.of(option, from_run, to_run)
    return DetachedRun.begin(shop.store, "copy", shop.identity(), choice, shop.environment, in_batches=True)


def test_pause_over_a_window_is_one_batch(shop: Shop) -> None:
    put_many(shop, 3)
    drain(shop, max_files=1)
    run = side_in_batches(shop, "pause", "1", "3")
    batches = list(Loop(shop, run, FileOptions(bound=Bound(max_files=1))).batches())
    assert [batch.lines for batch in batches] == [["line 1", "line 2"]]


def test_replay_of_a_batch_is_one_run(shop: Shop) -> None:
    put_many(shop, 3)
    drain(shop, max_files=1)
    run = ReplayRun.begin_replay(shop.store, "copy", shop.identity(), shop.environment, 2)
    batches = list(Loop(shop, run, FileOptions(bound=Bound(max_files=1))).batches())
    assert [batch.lines for batch in batches] == [["line 1"]]
    assert shop.target_lines() == {"line 0": 1, "line 1": 1, "line 2": 1}
    assert shop.store.head("copy").lease is None


# ---- an upstream


def read_upstream(shop: Shop, bound: Bound, until: int | None = None) -> tuple[tuple[int, ...], Mapping[str, Any]]:
    """Make one run of a consumer; return which runs it read, and what it says of the context."""
    run = shop.begin("after")
    plan = run.plan("in", UpstreamSource(shop.store, "after", "copy", bound=bound, until=until))
    assert plan.edge is not None
    return tuple(number for number, _ in plan.edge.runs), run.commit().contexts["in"]


def produce(shop: Shop, *lots: int) -> None:
    """Let the upstream make a run of so many files, of two rows each, for each of `lots`."""
    for lot in lots:
        for _ in range(lot):
            shop.runs_made += 1
            shop.put(f"u{shop.runs_made}.txt", "one", "two")
        shop.run()


@pytest.mark.parametrize(
    ("bound", "read"),
    [
        (Bound(max_files=2), [(1, 2), (3,), (4,)]),
        (Bound(max_rows=4), [(1, 2), (3,), (4,)]),
        (Bound(max_rows=1), [(1,), (2,), (3,), (4,)]),
        (Bound(max_bytes=16), [(1, 2), (3,), (4,)]),
        (Bound(window=timedelta(days=9999)), [(1, 2, 3, 4)]),
    ],
)
def test_upstream_is_read_by_whole_runs(shop: Shop, bound: Bound, read: list[tuple[int, ...]]) -> None:
    produce(shop, 1, 1, 3, 1)
    assert [read_upstream(shop, bound)[0] for _ in read] == read
    assert read_upstream(shop, bound)[0] == ()


def test_runs_that_are_over_the_bound_are_counted_by_their_files(shop: Shop) -> None:
    produce(shop, 1, 0, 3, 2)
    read, figures = read_upstream(shop, Bound(max_files=2))
    assert (read, figures["skipped"], figures["listed"]) == ((1, 2), {OVER_BOUND: 5}, 6)
    assert shop.store.head("after").contexts["in"].watermark == "2"


def test_rows_that_were_not_counted_are_refused(shop: Shop) -> None:
    shop.put("a.txt", "a")
    run = shop.begin()
    uncounted: Callable[..., Any] = run.staged
    run.staged = lambda output, staged: uncounted(output, replace(staged, rows=None))  # type: ignore[method-assign]
    shop.copy(run)
    run.commit()
    with pytest.raises(OptionError, match="has not counted the rows"):
        read_upstream(shop, Bound(max_rows=5))


# ---- what is told of a whole loop


def told(shop: Shop, run_id: str = "task") -> Mapping[str, Any]:
    """Return what the summary of a loop says of the context."""
    return last_summary(shop.store, "copy", shop.store.snapshot("copy", run_id)).contexts["raw"]


def drain_odd(
    shop: Shop,
    options: FileOptions,
    attempt: int = 1,
    corrupt: Sequence[str] = (),
    changes: Mapping[int, Any] | None = None,
    limit: int = 99,
    start: Start | None = None,
) -> None:
    """Make batches, some files of which can't be parsed, and some of which see another schema: by their number."""
    run = shop.begin("copy", "task", attempt, in_batches=True, **({} if start is None else {"start": start}))
    backlog = Backlog()
    for number in range(1, limit + 1):
        plan = run.plan("raw", FileSource(FILES, [str(shop.raw)], options, backlog=backlog))
        bad = {path: "bad" for path in plan.files.paths if path.rpartition("/")[2] in corrupt}
        if bad:
            run.quarantine("raw", bad)
        run.set_schema("raw", "{}", (changes or {}).get(number))
        run.commit()
        if not run.goes_on:
            return
        if number < limit:
            run = run.following()
    run.leave()


BY_TWO = FileOptions(bound=Bound(max_files=2))


@pytest.mark.parametrize(
    "corrupt", [["f0000.txt"], ["f0000.txt", "f0002.txt"], ["f0000.txt", "f0001.txt", "f0005.txt"]]
)
def test_files_that_any_batch_has_quarantined_are_told(shop: Shop, corrupt: list[str]) -> None:
    put_many(shop, 6)
    drain_odd(shop, BY_TWO, corrupt=corrupt)
    figures = told(shop)
    assert (figures["files"], figures["skipped"]) == (6 - len(corrupt), {QUARANTINED: len(corrupt)})


def test_files_that_were_in_quarantine_before_are_told_once_over_batches_and_tries(shop: Shop) -> None:
    shop.put("before.txt", "b", seconds=1)
    run = shop.begin()
    plan = run.plan("raw", FileSource(FILES, [str(shop.raw)]))
    run.quarantine("raw", dict.fromkeys(plan.files.paths, "bad"))
    run.commit()
    put_many(shop, 6)
    drain_odd(shop, BY_TWO, corrupt=["f0000.txt"], limit=1)
    drain_odd(shop, BY_TWO, attempt=2, corrupt=["f0003.txt"])
    figures = told(shop)
    assert (figures["files"], figures["skipped"]) == (4, {QUARANTINED: 3})


def test_files_before_the_start_are_told(shop: Shop) -> None:
    put_many(shop, 2, seconds=100)
    for name in ("x", "y"):
        shop.put(name, name, seconds=200)
    drain_odd(shop, FileOptions(bound=Bound(max_files=1)), start=Start.of("1970-01-01T00:03:00Z"))
    assert told(shop)["skipped"] == {BEFORE_START: 2}


def test_partitions_are_told(shop: Shop) -> None:
    for day in range(4):
        shop.put(f"d={day}/a", "x")
    drain_odd(shop, FileOptions(bound=Bound(max_files=1), partition_filter="d > 1"))
    assert told(shop)["partitions"] == {"listed": 2, "pruned": 2, "skipped": 0}


def test_schema_changes_of_all_batches_are_told(shop: Shop) -> None:
    put_many(shop, 6)
    drain_odd(shop, BY_TWO, changes={1: {"added": ["a: int"]}, 2: {"added": ["b: int"], "widened": ["c: long"]}})
    assert told(shop)["schema_change"] == {"added": ["a: int", "b: int"], "widened": ["c: long"]}


def test_what_each_batch_leaves_out_again_is_counted_once(shop: Shop) -> None:
    shop.put("first", "f")
    shop.run(run_id="first")
    shop.put("old", "o", seconds=1)
    put_many(shop, 4)
    drain_odd(shop, FileOptions(bound=Bound(max_files=1), late_after=timedelta(days=1)))
    assert told(shop)["skipped"] == {"late": 1}


def test_summary_covers_the_tries_before_another_execution(shop: Shop) -> None:
    put_many(shop, 4)
    drain_odd(shop, BY_TWO, limit=1)
    shop.run(run_id="other")
    drain_odd(shop, BY_TWO, attempt=2)
    summary = last_summary(shop.store, "copy", shop.store.snapshot("copy", "task"))
    assert (summary.first_run_number, summary.run_number, summary.is_empty) == (1, 3, False)
    assert summary.contexts["raw"]["files"] == 2


def test_summary_leaves_out_batches_that_were_undone_between_two_tries(shop: Shop) -> None:
    put_many(shop, 6)
    drain_odd(shop, BY_TWO, limit=2)
    rewind(shop.store, "copy", 1, reason="a test", who="me")
    drain_odd(shop, BY_TWO, attempt=2)
    summary = last_summary(shop.store, "copy", shop.store.snapshot("copy", "task"))
    assert (summary.first_run_number, summary.run_number) == (1, 4)
    assert summary.contexts["raw"]["files"] == 6


class Leaving(LocalFileSystem):
    """A disk from which a file goes once it was listed."""

    def __init__(self, file: Path, aside: Path) -> None:
        super().__init__()
        self._file, self._aside, self._is_listed = file, aside, False

    def list(self, *args: Any, **kwargs: Any) -> Listed:
        self._leave()
        self._is_listed = True
        return super().list(*args, **kwargs)

    def stat(self, paths: Sequence[str]) -> Any:
        self._leave()
        return super().stat(paths)

    def _leave(self) -> None:
        if self._is_listed and self._file.exists():
            self._file.rename(self._aside)


def test_file_that_an_early_batch_left_is_not_late_after_the_last(shop: Shop) -> None:
    old, aside = shop.put("old.txt", "old", seconds=MIDNIGHT), shop.root / "old.txt"
    for day in (20, 21):
        shop.put(f"day{day}.txt", f"day {day}", seconds=MIDNIGHT + 86_400 * day)
    options = FileOptions(bound=Bound.of(max_files=1), late_after=timedelta(days=2))
    run = shop.begin("copy", "task", in_batches=True)
    batches = list(Loop(shop, run, options, Leaving(old, aside)).batches())
    assert [batch.summary.contexts["raw"]["skipped"].get("missing") for batch in batches] == [1, None, None]
    aside.rename(old)
    assert shop.run(options=FileOptions(late_after=timedelta(days=2)))[0] == ["old"]
