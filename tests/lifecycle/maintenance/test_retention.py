"""Promise STORE-4: history, plans and blobs are collected after the retention, and nothing that is referred to."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

import pytest

from airflow_bookmarks.core.errors import (
    ChangeRefusedError,
    ConditionFailedError,
    OptionError,
    RunUnknownError,
    StateCorruptError,
)
from airflow_bookmarks.core.run import RunKey, RunState
from airflow_bookmarks.core.text.instant import utc_now
from airflow_bookmarks.core.timeline import Timeline
from airflow_bookmarks.files import opener
from airflow_bookmarks.files.filesystem import FileSystemError
from airflow_bookmarks.files.local import LocalFileSystem
from airflow_bookmarks.lifecycle.changes.change import reset, rewind, set_position, undo
from airflow_bookmarks.lifecycle.inspect.runs import history
from airflow_bookmarks.lifecycle.maintenance.blobs import BLOB_GRACE, position_hashes
from airflow_bookmarks.lifecycle.maintenance.retention import Collected, JobCollected, collect
from airflow_bookmarks.lifecycle.maintenance.transfer.exporting import export
from airflow_bookmarks.lifecycle.maintenance.transfer.importing import import_
from airflow_bookmarks.lifecycle.protocol.lease import RunEnvironment
from airflow_bookmarks.lifecycle.run.replay import ReplayRun
from airflow_bookmarks.sinks.staging import Mode
from airflow_bookmarks.sources.files.planner import FileSource
from airflow_bookmarks.store import blobs as blob
from airflow_bookmarks.store.bookmark_store import BookmarkStore
from airflow_bookmarks.store.table import Attributes, Delete, Key, Operation, Put, Table, Update, Value
from airflow_bookmarks.store.transitions import collection
from airflow_bookmarks.store.transitions.collection import collected_until, oldest_run
from tests.lifecycle.shop import FILES, Shop
from tests.lifecycle.shop import unsound as examine

DAYS_90 = timedelta(days=90)


def in_days(days: int) -> Callable[[], datetime]:
    """Return a clock so many days ahead: by it, what was made just now is that old."""
    at = utc_now() + timedelta(days=days)
    return lambda: at


def runs(shop: Shop, count: int, job: str = "copy") -> None:
    for _ in range(count):
        shop.put(f"{shop.runs_made}.txt", str(shop.runs_made))
        shop.run(job)


def age(store: BookmarkStore, job: str, number: int, days: int) -> None:
    """Make a run, and the execution that made it, so many days older than they are."""
    run = store.committed_run(job, number)
    assert run is not None
    then = (utc_now() - timedelta(days=days)).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    times: Attributes = {"planned_at": then, "committed_at": then, "published_at": then}
    keys = store.keys(job)
    store.table.transact(
        [Update(keys.run(run.key), set=times), Update(keys.execution(run.run_id), set={"taken_at": then})]
    )


def of(collected: Collected, job: str = "copy") -> JobCollected:
    (found,) = [each for each in collected.jobs if each.job == job]
    return found


def blobs(store: BookmarkStore) -> set[str]:
    return {found.sha256 for found in collection.stored_blobs(store)}


def items(store: BookmarkStore) -> dict[Key, Attributes]:
    """Return every item of the namespace, whole."""
    partitions = {key.pk for key, _ in store.table.scan(f"{store.namespace}#")}
    return {key: item for partition in partitions for key, item in store.table.query(partition)}


class AfterEachScan:
    """A table that does something each time it was scanned: what runs beside a collection."""

    def __init__(self, table: Table, act: Callable[[str], object]) -> None:
        self._table, self._act = table, act

    def __getattr__(self, name: str) -> Any:
        return getattr(self._table, name)

    def scan(self, prefix: str, **names: Any) -> Iterator[tuple[Key, Attributes]]:
        yield from list(self._table.scan(prefix, **names))
        self._act(prefix)


class BeforeEachWrite(AfterEachScan):
    """The same, before each transaction."""

    def scan(self, prefix: str, **names: Any) -> Iterator[tuple[Key, Attributes]]:
        return self._table.scan(prefix, **names)

    def transact(self, operations: Sequence[Operation], **kwargs: Any) -> None:
        self._act("transact")
        self._table.transact(operations, **kwargs)


def once(act: Callable[[], object], when: str) -> Callable[[str], None]:
    done: list[bool] = []

    def wrapped(what: str) -> None:
        if when in what and not done:
            done.append(True)
            act()

    return wrapped


# ---- what goes


def test_runs_older_than_the_retention_go_and_the_job_reads_on(shop: Shop) -> None:
    runs(shop, 4)
    age(shop.store, "copy", 1, 100)
    age(shop.store, "copy", 2, 91)
    done = of(collect(shop.store))
    assert (done.runs, done.collected_until, done.oldest_run, done.held_by) == (("1.1", "2.2"), 2, 3, "retention")
    assert done.executions == ("manual/1", "manual/2")
    assert [row["number"] for row in history(shop.store, "copy")] == [3, 4]
    assert (collected_until(shop.store, "copy"), oldest_run(shop.store, "copy")) == (2, 3)
    shop.put("new.txt", "new")
    assert shop.run()[0] == ["new"]


def test_nothing_goes_within_the_retention(shop: Shop) -> None:
    runs(shop, 3)
    before = items(shop.store)
    assert collect(shop.store, clock=in_days(89)).as_dict()["runs"] == 0
    assert items(shop.store) == before


def test_newest_run_stays_however_old(shop: Shop) -> None:
    runs(shop, 3)
    done = of(collect(shop.store, clock=in_days(1000)))
    assert (done.runs, done.oldest_run, done.held_by) == (("1.1", "2.2"), 3, "living line")
    assert rewind(shop.store, "copy", 3, reason="x", who="ada").kept == 3


def test_dry_run_says_what_would_go_and_touches_nothing(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    everything_in_blobs(monkeypatch)
    runs(shop, 3)
    before = items(shop.store)
    told = collect(shop.store, clock=in_days(100), dry_run=True)
    assert items(shop.store) == before
    done = collect(shop.store, clock=in_days(100))
    assert replace(told, is_dry_run=False) == done
    assert done.blobs


def test_runs_are_not_gone_through_once_for_each_execution(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    runs(shop, 12)
    looks: list[RunState] = []
    is_open = RunState.is_open.fget  # type: ignore[attr-defined]

    def looked_at(state: RunState) -> bool:
        looks.append(state)
        return bool(is_open(state))

    monkeypatch.setattr(RunState, "is_open", property(looked_at))

    gone = collect(shop.store, clock=in_days(400), dry_run=True)

    assert len(of(gone).executions) == 11
    assert len(looks) <= 3 * 12


def test_collecting_twice_finds_nothing_the_second_time(shop: Shop) -> None:
    runs(shop, 3)
    collect(shop.store, clock=in_days(100))
    before = items(shop.store)
    assert collect(shop.store, clock=in_days(100)).as_dict()["runs"] == 0
    assert items(shop.store) == before


def test_events_lines_and_edges_stay(shop: Shop) -> None:
    shop.mode = Mode.OVERWRITE_PARTITIONS
    runs(shop, 2)
    reset(shop.store, "copy", reason="x", who="ada")
    runs(shop, 2)
    rewind(shop.store, "copy", 3, reason="x", who="ada")
    runs(shop, 2)
    shop.run("down", upstream="copy")
    collect(shop.store, clock=in_days(100))
    assert [event["kind"] for event in shop.store.events("copy")] == ["reset", "rewind"]
    assert [line.epoch for line in shop.store.lines("copy")] == [2, 3]
    assert [edge.consumer for edge in shop.store.edges("copy")] == ["down"]


def test_failed_and_given_up_runs_go_with_their_number(shop: Shop) -> None:
    shop.put("a.txt", "a")
    run = shop.begin()
    shop.copy(run)
    run.abort("no luck")
    runs(shop, 2)
    done = of(collect(shop.store, clock=in_days(100)))
    assert done.runs == ("1.1", "1.2")
    assert done.executions == ("manual/1", "manual/2")


def test_retention_shorter_than_a_run_is_refused(shop: Shop) -> None:
    with pytest.raises(OptionError, match="shorter"):
        collect(shop.store, retention=BLOB_GRACE - timedelta(seconds=1))


def test_only_the_named_jobs_lose_history(shop: Shop) -> None:
    runs(shop, 2, "one")
    runs(shop, 2, "two")
    collect(shop.store, jobs=["two"], clock=in_days(100))
    assert [row["number"] for row in history(shop.store, "one")] == [1, 2]
    assert [row["number"] for row in history(shop.store, "two")] == [2]


def test_other_namespace_keeps_every_item(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    everything_in_blobs(monkeypatch)
    runs(shop, 3)
    other = BookmarkStore(shop.store.table, "test2")
    Shop(shop.root, other).run()
    Shop(shop.root, other).run()
    before = items(other)
    collect(shop.store, clock=in_days(100))
    assert items(other) == before


# ---- what stays, because something refers to it


def test_runs_that_a_consumer_has_not_read_stay(shop: Shop) -> None:
    runs(shop, 2, "up")
    shop.run("down", upstream="up")
    runs(shop, 3, "up")
    done = of(collect(shop.store, clock=in_days(100)), "up")
    assert (done.collected_until, done.oldest_run, done.held_by) == (2, 3, "consumer down")
    assert len(shop.run("down", upstream="up")[0]) == 3


def test_position_of_a_context_that_rests_stays(shop: Shop) -> None:
    shop.put("a.txt", "a")
    shop.run()
    for _ in range(5):
        shop.run()  # nothing new: the position stays in run 1
    done = of(collect(shop.store, clock=in_days(100)))
    assert done.runs == tuple(f"{n}.{n}" for n in (2, 3, 4, 5))
    assert shop.run()[0] == []
    assert [row["number"] for row in history(shop.store, "copy")] == [1, 6, 7]


def test_run_to_which_a_rewind_is_still_possible_has_its_positions(shop: Shop) -> None:
    shop.put("a.txt", "a")
    shop.run()
    shop.run()
    shop.put("b.txt", "b")
    shop.run()
    age(shop.store, "copy", 1, 100)
    assert of(collect(shop.store)).collected_until == 1
    rewind(shop.store, "copy", 2, reason="x", who="ada")
    shop.mode = Mode.OVERWRITE_PARTITIONS
    assert shop.run()[0] == ["b"]


def two_contexts(shop: Shop, *changed: str) -> dict[str, int]:
    """Make a run of two contexts, each with a folder of its own and a new file if it `changed`; count what was read."""
    run = shop.begin()
    read = {}
    for ctx in ("left", "right"):
        folder = shop.root / ctx
        folder.mkdir(exist_ok=True)
        if ctx in changed:
            (folder / f"{shop.runs_made}.txt").write_text(ctx)
        read[ctx] = len(run.plan(ctx, FileSource(FILES, [str(folder)])))
    run.commit()
    return read


def test_resting_position_of_one_of_two_contexts_stays_for_a_rewind(shop: Shop) -> None:
    two_contexts(shop, "left", "right")
    two_contexts(shop, "right")
    two_contexts(shop, "right")
    two_contexts(shop, "left", "right")
    for number in (1, 2):
        age(shop.store, "copy", number, 100)
    assert of(collect(shop.store)).runs == ("2.2",)
    rewind(shop.store, "copy", 3, reason="x", who="ada")
    assert two_contexts(shop) == {"left": 1, "right": 1}


def test_positions_of_before_a_reset_stay_for_its_undo_and_after_it(shop: Shop) -> None:
    two_contexts(shop, "left", "right")
    two_contexts(shop, "right")
    reset(shop.store, "copy", reason="x", who="ada")
    two_contexts(shop)
    two_contexts(shop, "left", "right")
    two_contexts(shop, "right")
    assert of(collect(shop.store, clock=in_days(100))).runs == ("3.4",)
    undo(shop.store, "copy", reason="x", who="ada")
    assert examine(shop.store) == []
    collect(shop.store, clock=in_days(100))
    assert two_contexts(shop) == {"left": 1, "right": 2}


def test_last_run_with_data_stays_though_no_position_lies_in_it(shop: Shop) -> None:
    two_contexts(shop, "left")
    for file in (shop.root / "left").iterdir():
        file.unlink()
    reset(shop.store, "copy", reason="x", who="ada", contexts=["left"])
    for _ in range(2):
        two_contexts(shop)
    rewind(shop.store, "copy", 3, reason="x", who="ada")  # from here on no undo goes back to before the reset
    assert of(collect(shop.store, clock=in_days(100))).runs == ("2.3",)
    assert shop.store.head("copy").contexts == {}
    assert shop.store.head("copy").data_run_number == 1
    assert examine(shop.store) == []


def test_newest_run_with_an_output_stays_though_later_ones_left_it_out(shop: Shop) -> None:
    shop.put("a.txt", "a")
    shop.run()
    for name in "bc":
        shop.put(f"{name}.txt", name)
        run = shop.begin()
        run.plan("raw", FileSource(FILES, [str(shop.raw)]))
        run.commit()
    assert of(collect(shop.store, clock=in_days(100))).runs == ("2.2",)
    kept = shop.store.committed_run("copy", 1)
    assert kept is not None
    assert kept.outputs["out"].schema is not None


def test_schema_of_an_output_is_there_for_an_empty_increment(shop: Shop) -> None:
    runs(shop, 1, "up")
    shop.run("down", upstream="up")
    for _ in range(3):
        shop.run("up")
    shop.run("down", upstream="up")
    collect(shop.store, clock=in_days(100))
    assert shop.store.committed_run("up", 1) is not None
    assert shop.run("down", upstream="up")[0] == []


def test_due_publish_stays_and_is_finished_later(shop: Shop) -> None:
    runs(shop, 2)
    run = shop.store.committed_run("copy", 1)
    assert run is not None
    keys = shop.store.keys("copy")
    shop.store.table.transact(
        [Update(keys.head, set={"publishing": "1.1"}), Update(keys.run(run.key), set={"state": "COMMITTED"})]
    )
    assert of(collect(shop.store, clock=in_days(100))).runs == ()
    shop.run()
    assert shop.store.head("copy").publishing is None


def test_open_run_and_its_execution_stay(shop: Shop) -> None:
    runs(shop, 2)
    run = shop.begin(run_id="long")
    shop.copy(run)
    done = of(collect(shop.store, clock=in_days(100)))
    assert done.runs == ("1.1",)
    assert "long" not in done.executions
    assert run.commit().run_number == 3


def test_undo_of_a_reset_finds_its_positions(shop: Shop) -> None:
    shop.put("a.txt", "a")
    shop.run()
    for _ in range(2):
        shop.run()
    reset(shop.store, "copy", reason="x", who="ada")
    assert of(collect(shop.store, clock=in_days(100))).runs == ("2.2",)
    undo(shop.store, "copy", reason="a mistake", who="ada")
    assert shop.run()[0] == []


def test_run_that_a_due_clean_needs_does_not_go_though_others_of_its_time_went(shop: Shop) -> None:
    runs(shop, 4)
    rewind(shop.store, "copy", 2, reason="a test", who="test")
    runs(shop, 2)
    for number in range(1, 7):
        age(shop.store, "copy", number, 100)
    runs(shop, 2)
    assert of(collect(shop.store)).collected_until > 4
    rewind(shop.store, "copy", 7, clean=True, reason="a test", who="test")

    collect(shop.store, clock=in_days(100))

    assert len(shop.run()[0]) == 1


def test_nothing_of_a_job_goes_while_a_clean_is_due(shop: Shop) -> None:
    runs(shop, 3)
    reset(shop.store, "copy", reason="x", who="ada", clean=True)
    done = of(collect(shop.store, clock=in_days(100)))
    assert (done.runs, done.executions, done.held_by) == ((), (), "clean")
    shop.run()
    assert shop.store.head("copy").cleaning is None


# ---- going where runs were collected


def test_going_back_past_it_names_the_oldest_run_left(shop: Shop) -> None:
    runs(shop, 4)
    age(shop.store, "copy", 1, 100)
    age(shop.store, "copy", 2, 100)
    collect(shop.store)
    for number in (1, 2):
        with pytest.raises(RunUnknownError, match="the oldest run left is 3"):
            collection.check_uncollected(shop.store, "copy", number)
    assert collection.check_uncollected(shop.store, "copy", 3) == 2


def test_rewind_and_replay_of_what_is_gone_are_refused(shop: Shop) -> None:
    runs(shop, 4)
    age(shop.store, "copy", 1, 100)
    age(shop.store, "copy", 2, 100)
    collect(shop.store)
    before = items(shop.store)
    with pytest.raises(RunUnknownError, match="the oldest run left is 3"):
        rewind(shop.store, "copy", 2, reason="x", who="ada")
    assert items(shop.store) == before
    with pytest.raises(RunUnknownError, match="the oldest run left is 3"):
        ReplayRun.begin_replay(shop.store, "copy", shop.identity(), shop.environment, 2)
    assert rewind(shop.store, "copy", "manual/3", reason="x", who="ada").kept == 3


def test_new_consumer_of_a_collected_job_gets_an_error(shop: Shop) -> None:
    runs(shop, 3)
    collect(shop.store, clock=in_days(100))
    with pytest.raises(RunUnknownError, match="were collected"):
        shop.run("down", upstream="copy")


def test_consumer_below_it_gets_an_error_and_not_silence(shop: Shop) -> None:
    runs(shop, 3)
    collection.check_readable(shop.store, "new", "copy", 0)
    collect(shop.store, clock=in_days(100))
    with pytest.raises(RunUnknownError, match="up to run 0, and runs up to 2 were collected"):
        collection.check_readable(shop.store, "new", "copy", 0)
    collection.check_readable(shop.store, "new", "copy", 2)


# ---- beside others


def test_rewind_between_look_and_removal_keeps_the_run_it_went_to(shop: Shop) -> None:
    runs(shop, 4)
    back = once(lambda: rewind(shop.store, "copy", 1, reason="x", who="ada"), when="transact")
    beside = BookmarkStore(BeforeEachWrite(shop.store.table, back), "test")
    done = of(collect(beside, clock=in_days(100)))
    assert "1.1" not in done.runs
    shop.mode = Mode.OVERWRITE_PARTITIONS
    assert len(shop.run()[0]) == 3


def test_change_that_looked_before_the_announcement_fails(shop: Shop) -> None:
    runs(shop, 3)
    seen = collection.check_uncollected(shop.store, "copy", 1)
    collect(shop.store, clock=in_days(100))
    with pytest.raises(ConditionFailedError):
        shop.store.table.transact([collection.collection_check(shop.store, "copy", seen)])


def test_rewind_beside_a_collection_is_refused(shop: Shop) -> None:
    runs(shop, 4)
    gone = once(lambda: collect(shop.store, clock=in_days(100)), when="transact")
    beside = BookmarkStore(BeforeEachWrite(shop.store.table, gone), "test")
    with pytest.raises(RunUnknownError, match="run 1 of job 'copy' was collected"):
        rewind(beside, "copy", 1, reason="x", who="ada")
    assert shop.store.head("copy").epoch == 1


def test_clean_beside_an_import_does_not_take_the_files_of_the_job_that_was_exported(shop: Shop) -> None:
    runs(shop, 4)
    document = export(shop.store)
    other = BookmarkStore(shop.store.table, "other")
    runs(replace(shop, store=other), 3)
    terms: Any = {"who": "ada", "reason": "x"}
    came = once(lambda: import_(other, document, overwrite=True, **terms), when="transact")
    beside = BookmarkStore(BeforeEachWrite(shop.store.table, came), "other")
    with pytest.raises(ChangeRefusedError, match="its runs up to 4 were imported"):
        rewind(beside, "copy", 2, clean=True, **terms)
    assert other.head("copy").cleaning is None


def test_commits_beside_a_collection_go_through(shop: Shop) -> None:
    runs(shop, 3)
    work = once(lambda: runs(shop, 1), when="transact")
    beside = BookmarkStore(BeforeEachWrite(shop.store.table, work), "test")
    done = of(collect(beside, clock=in_days(100)))
    assert done.runs == ("1.1", "2.2")
    assert shop.store.head("copy").run_number == 4


def test_replay_that_commits_between_look_and_removal_keeps_its_run(shop: Shop) -> None:
    runs(shop, 3)
    keys = shop.store.keys("copy")
    run = shop.store.committed_run("copy", 1)
    assert run is not None
    replayed: list[Operation] = [
        Update(keys.head, set={"publishing": "1.1", "changes": 1}),
        Update(keys.run(run.key), set={"state": "COMMITTED", "revision": 1}),
    ]
    commit = once(lambda: shop.store.table.transact(replayed), when="transact")
    beside = BookmarkStore(BeforeEachWrite(shop.store.table, commit), "test")
    assert of(collect(beside, clock=in_days(100))).runs == ("2.2",)
    shop.run()
    assert shop.store.head("copy").publishing is None


def test_two_collectors_at_once_do_no_more_than_one(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    everything_in_blobs(monkeypatch)
    runs(shop, 4)
    for number in (1, 2):
        age(shop.store, "copy", number, 100)
    for when in range(1, 4):
        writes = iter(range(when))

        def collect_at_last(what: str, writes: Iterator[int] = writes) -> None:
            if next(writes, None) is None:
                collect(shop.store, clock=in_days(10))

        collect(BookmarkStore(BeforeEachWrite(shop.store.table, collect_at_last), "test"), clock=in_days(10))
    assert [row["number"] for row in history(shop.store, "copy")] == [3, 4]
    assert examine(shop.store) == []
    assert shop.run()[0] == []


def test_attempt_that_begins_between_look_and_removal_keeps_its_execution(shop: Shop) -> None:
    runs(shop, 3)
    begun: list[Any] = []
    again = once(lambda: begun.append(shop.begin(run_id="manual/1", attempt=2)), when="transact")
    beside = BookmarkStore(BeforeEachWrite(shop.store.table, again), "test")
    collect(beside, clock=in_days(100))
    execution = shop.store.execution("copy", "manual/1")
    assert execution is not None
    assert execution.attempt == 2
    begun[0].abort("over")


# ---- blobs


def everything_in_blobs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make each plan, list and position a blob, and each segment too."""
    monkeypatch.setattr("airflow_bookmarks.store.bookmark_store.INLINE_BYTES", 0)
    monkeypatch.setattr("airflow_bookmarks.core.ledger.file_ledger.ROOT_BYTES", 0)


def test_blobs_of_collected_runs_go_and_those_of_others_stay(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    everything_in_blobs(monkeypatch)
    runs(shop, 4)
    age(shop.store, "copy", 1, 100)
    age(shop.store, "copy", 2, 100)
    before = blobs(shop.store)
    gone = set(collect(shop.store, clock=in_days(10)).blobs)
    assert gone
    assert blobs(shop.store) == before - gone
    assert shop.run()[0] == []  # segments of collected runs are a part of the ledger still
    for number in (3, 4):
        run = shop.store.committed_run("copy", number)
        assert run is not None
        for plan in run.plans.values():
            shop.store.blobs.get(plan.body)


def test_blob_that_a_crashed_driver_left_goes_after_the_grace(shop: Shop) -> None:
    shop.run()
    left = shop.store.blobs.put(b"never referred to").sha256
    assert collect(shop.store, clock=in_days(6)).blobs == ()
    assert collect(shop.store, clock=in_days(8)).blobs == (left,)
    assert left not in blobs(shop.store)


def test_blob_that_is_put_again_while_it_is_looked_at_stays(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    shop.run()
    left = shop.store.blobs.put(b"x" * (blob.CHUNK_BYTES + 1))
    later = in_days(8)

    def put_again() -> None:
        with monkeypatch.context() as patch:
            patch.setattr(blob, "utc_now", later)
            shop.store.blobs.put(b"x" * (blob.CHUNK_BYTES + 1))

    beside = BookmarkStore(
        AfterEachScan(shop.store.table, once(put_again, when="#BLOB#")),
        "test",
    )
    assert collect(beside, clock=later).blobs == ()
    assert len(shop.store.blobs.get(left)) == left.size_bytes


def test_collector_beside_a_commit_takes_no_blob_of_it_however_wrong_its_clock(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    everything_in_blobs(monkeypatch)
    runs(shop, 1)
    unguarded = shop.store.table
    commit = BookmarkStore._commit_operations

    def collect_first(*given: Any) -> list[Operation]:
        collect(BookmarkStore(unguarded, "test"), clock=in_days(3650))
        return commit(*given)

    monkeypatch.setattr(BookmarkStore, "_commit_operations", collect_first)
    runs(shop, 1)
    assert shop.run()[0] == []
    assert examine(shop.store) == []


def test_change_whose_blobs_are_collected_before_it_is_made_puts_them_again(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    everything_in_blobs(monkeypatch)
    runs(shop, 2)
    shop.put("more.txt", "more")
    far = once(lambda: collect(shop.store, clock=in_days(3650)), when="position:raw")

    class BeforeTheChange(BeforeEachWrite):
        def transact(self, operations: Sequence[Operation], **kwargs: Any) -> None:
            far(" ".join(name for each in operations for name in (each.attributes if isinstance(each, Put) else ())))
            self._table.transact(operations, **kwargs)

    beside = BookmarkStore(BeforeTheChange(shop.store.table, far), "test")
    set_position(beside, "copy", "raw", "now", reason="x", who="ada")
    assert examine(shop.store) == []
    assert shop.run()[0] == []


def test_blob_that_another_job_refers_to_stays(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    everything_in_blobs(monkeypatch)
    runs(shop, 1, "one")
    runs(shop, 1, "one")
    runs(shop, 1, "two")  # the plan of its one run is that of none of the others; the schema is shared
    collect(shop.store, jobs=["one"], clock=in_days(100))
    run = shop.store.committed_run("two", 1)
    assert run is not None
    schema = run.outputs["out"].schema
    assert schema is not None
    assert shop.store.blobs.get(schema) == b'{"fields":[]}'


def test_job_without_an_index_entry_keeps_its_blobs(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    everything_in_blobs(monkeypatch)
    runs(shop, 2)
    shop.store.table.transact([Delete(shop.store.keys("copy").index)])
    assert collect(shop.store, clock=in_days(100)).blobs == ()


def test_position_that_cannot_be_read_keeps_all_blobs(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    everything_in_blobs(monkeypatch)
    runs(shop, 3)
    head = shop.store.head("copy")
    run = shop.store.run("copy", head.contexts["raw"].run)
    assert run is not None
    position = run.positions["raw"].sha256
    shop.store.table.transact([Update(Key(f"test#BLOB#{position}", "0000000000"), set={"data": b"?"})])
    before = blobs(shop.store)
    with pytest.raises(StateCorruptError, match="No blob was removed"):
        collect(shop.store, clock=in_days(100))
    assert blobs(shop.store) == before


def test_positions_name_their_blobs_in_plain_text() -> None:
    body = b'{"segments":[["' + b"ab" * 32 + b'",5,0]],"x":"' + b"a" * 65 + b'"}'
    assert position_hashes(body) == ["ab" * 32]


# ---- side runs


def test_folder_that_a_killed_side_run_left_goes_after_the_retention(shop: Shop) -> None:
    runs(shop, 1)
    shop.put("b.txt", "b")
    side = shop.side(option="pause")
    shop.copy(side)  # killed here
    left = Path(next(p for p in shop.staged_files() if ".side" in str(p)))
    assert of(collect(shop.store, clock=in_days(89))).folders == ()
    (folder,) = of(collect(shop.store, clock=in_days(91))).folders
    assert left.is_relative_to(folder)
    assert not left.exists()


@pytest.mark.parametrize("is_of_an_earlier_version", [False, True])
def test_record_of_a_side_run_goes_a_month_after_it_was_made(shop: Shop, is_of_an_earlier_version: bool) -> None:
    runs(shop, 1)
    side_id = shop.store.put_side("copy", {"option": "pause"})
    if is_of_an_earlier_version:
        expires = int(in_days(30)().timestamp())
        shop.store.table.transact([Update(shop.store.keys("copy").side(side_id), set={"expires_at": expires})])
    else:
        assert "expires_at" not in shop.store.sides("copy")[0]

    assert of(collect(shop.store, clock=in_days(29))).sides == ()
    assert of(collect(shop.store, clock=in_days(31))).sides == (side_id,)
    assert shop.store.sides("copy") == []


@pytest.mark.parametrize("made_at", [None, 5, "yesterday"])
def test_record_of_a_side_run_stays_where_it_does_not_say_when_it_was_made(shop: Shop, made_at: Value) -> None:
    runs(shop, 1)
    side_id = shop.store.put_side("copy", {"option": "pause"})
    shop.store.table.transact([Update(shop.store.keys("copy").side(side_id), set={"made_at": made_at})])

    assert of(collect(shop.store, clock=in_days(100))).sides == ()


class OutOfReach(LocalFileSystem):
    """A store that is not there any more, or in which this process has no rights."""

    def folders(self, root: str) -> Sequence[str]:
        raise FileSystemError(f"{root!r} can't be listed")

    def remove(self, root: str) -> None:
        raise FileSystemError(f"{root!r} can't be removed")


def test_staging_root_that_can_not_be_reached_keeps_no_history(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setitem(opener._OPENERS, "far", lambda _: OutOfReach())
    runs(shop, 2)
    runs(shop, 2, "other")
    roots: list[Value] = ["far://old/test/copy", "gopher://old/test/copy"]
    shop.store.table.transact([Update(shop.store.keys("copy").head, set={"staging": roots})])

    done = collect(shop.store, clock=in_days(100))

    assert (of(done).runs, of(done, "other").runs) == (("1.1",), ("1.1",))
    assert "beside 'far://old/test/copy'" in caplog.text
    assert "beside 'gopher://old/test/copy'" in caplog.text


def test_folder_of_a_side_run_that_can_not_be_removed_is_not_counted(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    runs(shop, 1)
    shop.put("b.txt", "b")
    shop.copy(shop.side(option="pause"))  # killed here
    monkeypatch.setattr(LocalFileSystem, "remove", OutOfReach.remove)

    assert of(collect(shop.store, clock=in_days(91))).folders == ()

    assert "is not removed" in caplog.text


def test_pause_over_a_window_of_which_runs_were_collected_reads_nothing_and_says_so(shop: Shop) -> None:
    runs(shop, 3)
    collect(shop.store, retention=DAYS_90, clock=in_days(91))

    with pytest.raises(RunUnknownError, match="was collected: runs up to 2"):
        shop.side(option="pause", from_run="0", to_run="3")
    assert shop.side_lines("pause", "3", "3") == []


def test_side_records_go_when_they_expired(shop: Shop) -> None:
    runs(shop, 1)
    shop.side_lines("pause")
    assert of(collect(shop.store, clock=in_days(29))).sides == ()
    assert len(of(collect(shop.store, clock=in_days(31))).sides) == 1
    assert shop.store.sides("copy") == []


# ---- a year of work, with a collector at every moment of it


class Year:
    """A job with a consumer, and one alone: they run, fail and go back, three days a step, while a collector works
    between any two writes. The seed decides what happens.
    """

    def __init__(self, root: Path, store: BookmarkStore, seed: int) -> None:
        self.random, self.root = Random(seed), root
        self.now = datetime(2026, 1, 1, tzinfo=UTC)
        self.store = BookmarkStore(store.table, "test", clock=self.clock)
        self.is_collecting = False
        beside = BeforeEachWrite(store.table, self.perhaps_collect)
        environment = RunEnvironment(clock=self.clock, start_thread=lambda work: None)
        self.shop = Shop(root, BookmarkStore(beside, "test", clock=self.clock), environment, Mode.OVERWRITE_PARTITIONS)
        self.lines: set[str] = set()
        self.collected = 0

    def clock(self) -> datetime:
        return self.now

    def perhaps_collect(self, what: str) -> None:
        if not self.is_collecting and self.random.random() < 0.2:
            self.collect()

    def collect(self) -> None:
        self.is_collecting = True
        done = collect(self.store, retention=timedelta(days=15), clock=self.clock)
        self.collected += len(done.blobs) + sum(len(job.runs) for job in done.jobs)
        self.is_collecting = False

    def step(self) -> None:
        self.now += timedelta(days=3)
        self.collect()
        step = self.random.choice(
            [self.add, self.add, self.add, self.rest, self.fail, self.back, self.again, self.replay]
        )
        step()
        for job in ("copy", "alone"):
            self.shop.run(job)
        self.shop.run("down", upstream="copy", on_rewind="rewind")

    def add(self) -> None:
        name = f"{len(self.lines)}"
        self.shop.put(f"{name}.txt", name, seconds=1_700_000_000 + self.random.randrange(1000))
        self.lines.add(name)

    def rest(self) -> None:
        """Leave it at runs that find nothing."""

    def fail(self) -> None:
        self.add()
        for job in ("copy", "alone"):
            run = self.shop.begin(job)
            self.shop.copy(run)
            run.abort("no luck")

    def back(self) -> None:
        """Go back to a run that is left whole."""
        for job in ("copy", "alone"):
            living = self.store.ancestry(job, self.store.head(job).epoch)
            left = [
                run.key.number
                for run in self.store.runs(job, after=collected_until(self.store, job))
                if run.state.is_committed and living.is_living(run.key.number, run.epoch)
            ]
            rewind(self.shop.store, job, self.random.choice(left), reason="x", who="ada")

    def replay(self) -> None:
        """Make the newest run with data again."""
        number = self.store.head("alone").data_run_number
        if number:
            run = ReplayRun.begin_replay(self.shop.store, "alone", self.shop.identity(), self.shop.environment, number)
            self.shop.copy(run)
            run.commit()

    def again(self) -> None:
        """Start over, or take the last change back, where no consumer would have to go to what is collected."""
        if self.random.random() < 0.5 and self.store.head("alone").epoch > 1:
            with suppress(ChangeRefusedError):  # runs made since have overwritten what would count as made
                undo(self.shop.store, "alone", reason="x", who="ada")
        else:
            reset(self.shop.store, "alone", reason="x", who="ada")


@pytest.mark.seldom
@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.thorough) for seed in (1, 2))])
def test_collector_at_any_moment_of_a_year_takes_nothing_that_is_needed(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    everything_in_blobs(monkeypatch)
    year = Year(shop.root, shop.store, seed)
    monkeypatch.setattr(blob, "utc_now", year.clock)
    year.add()
    year.shop.run("copy")
    year.shop.run("alone")
    for _ in range(30):
        year.step()
        for job in ("copy", "alone", "down"):
            assert year.shop.target_lines(job) == dict.fromkeys(year.lines, 1), job
        assert [finding.what for finding in examine(year.store, clock=year.clock)] == []
    assert year.collected > 100


# ---- on every backend


@pytest.mark.seldom
def test_collection_on_this_backend(table: Table, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    everything_in_blobs(monkeypatch)
    store = BookmarkStore(table, "test")
    store.init()
    shop = Shop(tmp_path, store)
    runs(shop, 3)
    store.blobs.put(b"an orphan")
    done = collect(store, clock=in_days(100))
    assert of(done).runs == ("1.1", "2.2")
    assert collected_until(store, "copy") == 2
    assert shop.run()[0] == []
    assert RunKey(3, 3) in {run.key for run in store.runs("copy")}
    assert Timeline(1) not in store.lines("copy")


def test_clean_past_what_was_collected_is_refused(shop: Shop) -> None:
    runs(shop, 3)
    collect(shop.store, clock=in_days(100))
    before = shop.store.head("copy")

    with pytest.raises(ChangeRefusedError, match="collected"):
        reset(shop.store, "copy", clean=True, reason="r", who="w")
    assert shop.store.head("copy") == before


def test_consumer_of_a_reset_upstream_needs_no_collected_run_that_was_undone(shop: Shop) -> None:
    runs(shop, 3, "up")
    shop.run("down", upstream="up")
    collect(shop.store, clock=in_days(100))
    reset(shop.store, "up", reason="r", who="w")
    lines = sorted(shop.run("up")[0])

    assert sorted(shop.run("down", upstream="up", on_rewind="rewind")[0]) == lines


def test_consumer_of_runs_that_are_gone_is_told_also_where_nobody_noted_that_they_were_collected(shop: Shop) -> None:
    runs(shop, 3)
    assert any(one.runs for one in collect(shop.store, clock=in_days(200)).jobs)
    shop.store.table.transact([Delete(shop.store.keys("copy").index)])
    with pytest.raises(StateCorruptError, match="index item of job 'copy'"):
        shop.run("late", upstream="copy")
    shop.store.table.transact([Put(shop.store.keys("copy").index, {"first_seen_at": "2026-01-01T00:00:00.000000Z"})])
    with pytest.raises(StateCorruptError, match="run 1 of upstream 'copy' is gone"):
        shop.run("later", upstream="copy")


def test_run_does_not_write_the_index_item_anew(shop: Shop) -> None:
    runs(shop, 2)
    run = shop.begin()
    shop.store.table.transact([Delete(shop.store.keys("copy").index)])
    with pytest.raises(StateCorruptError, match=r"index item of job 'copy'.*Nothing was committed"):
        run.commit()
    assert shop.store.index_entry("copy") is None
    assert shop.store.head("copy").run_number == 2


def test_collection_that_looked_before_an_import_collects_nothing_of_it(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs(shop, 2)
    early = export(shop.store, ["copy"])
    runs(shop, 6)
    announce = collection.announce

    def after_an_import(*given: Any) -> Any:
        monkeypatch.setattr(collection, "announce", announce)
        import_(shop.store, early, who="ann", reason="an older state", overwrite=True)
        return announce(*given)

    monkeypatch.setattr(collection, "announce", after_an_import)
    collect(shop.store, clock=in_days(200))

    assert collected_until(shop.store, "copy") < shop.store.head("copy").run_number == 2
    assert not examine(shop.store, with_files=False)
