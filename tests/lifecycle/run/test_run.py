"""Promises of the life of a run: RUN-1 to RUN-8, RUN-10, RUN-14, RUN-17, RUN-24, FILE-2 to FILE-8, FILE-14, SINK-3."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from airflow_bookmarks.core.errors import (
    AttemptRefusedError,
    ConditionFailedError,
    FencedError,
    JobBusyError,
    MisuseError,
    OverwrittenError,
    PublishError,
    SourceChangedError,
    SourceError,
    SourceMissingError,
)
from airflow_bookmarks.core.files.file_plan import FilePlan
from airflow_bookmarks.core.head import Head
from airflow_bookmarks.core.run import RunState
from airflow_bookmarks.core.selection.listing import FileInfo, Listing
from airflow_bookmarks.files.local import LocalFileSystem
from airflow_bookmarks.lifecycle.inspect.runs import history
from airflow_bookmarks.lifecycle.protocol.finish import ExecutionOutcome, outcome
from airflow_bookmarks.lifecycle.protocol.lease import RunEnvironment
from airflow_bookmarks.sinks.staging import Mode, collect_staged
from airflow_bookmarks.sources.files.options import FileOptions
from airflow_bookmarks.sources.files.planner import FileSource
from airflow_bookmarks.store.bookmark_store import BookmarkStore
from airflow_bookmarks.store.table import Operation, Table
from tests.lifecycle.shop import FILES, Shop


def source(shop: Shop, **kwargs: Any) -> FileSource:
    return FileSource(FILES, [str(shop.raw)], FileOptions(**kwargs))


# ---- plan and commit


def test_file_added_after_the_plan_is_read_by_the_next_run(shop: Shop) -> None:
    shop.put("a.txt", "a")
    lines, _ = shop.run(between=lambda: shop.put("b.txt", "b"))
    assert lines == ["a"]
    assert shop.run()[0] == ["b"]


def test_staging_that_can_not_be_removed_does_not_fail_a_run_that_is_published(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def deny(*_: object) -> None:
        raise PermissionError("denied")

    shop.put("a.txt", "a")
    run = shop.begin()
    shop.copy(run)
    with monkeypatch.context() as patch:
        patch.setattr(LocalFileSystem, "remove", deny)
        assert run.commit().is_published
    head = shop.store.head("copy")
    assert (head.published, head.publishing, head.lease) == (1, None, None)
    assert "denied" in caplog.text
    shop.run()
    assert shop.staged_files() == []


def test_without_a_commit_nothing_moved(shop: Shop) -> None:
    shop.put("a.txt", "a")
    run = shop.begin()
    shop.copy(run)
    run.abort("an exception in the block")
    head = shop.store.head("copy")
    assert (head.version, head.run_number, head.contexts, head.lease) == (0, 0, {}, None)
    assert shop.target_lines() == {}
    shop.put("b.txt", "b")
    assert sorted(shop.run()[0]) == ["a", "b"]
    assert shop.target_lines() == {"a": 1, "b": 1}


def test_failed_run_keeps_its_error_in_the_history(shop: Shop) -> None:
    shop.put("a.txt", "a")
    run = shop.begin()
    shop.copy(run)
    run.abort("ValueError: bad row")
    (row,) = history(shop.store, "copy", with_open=True)
    assert (row["state"], row["error"]) == ("FAILED", "ValueError: bad row")
    shop.run()
    states = [row["state"] for row in history(shop.store, "copy", with_open=True)]
    assert states == ["ABANDONED", "PUBLISHED"]


def test_empty_run_takes_a_number_and_writes_no_ledger(shop: Shop) -> None:
    shop.put("a.txt", "a")
    shop.run()
    _, summary = shop.run()
    assert (summary.run_number, summary.is_empty) == (2, True)
    head = shop.store.head("copy")
    assert (head.run_number, head.published, head.data_run_number) == (2, 2, 1)
    assert head.contexts["raw"].run.number == 1
    run = next(r for r in shop.store.runs("copy", after=1))
    assert run.positions == {}


def test_empty_run_does_not_wipe_an_overwritten_target(shop: Shop) -> None:
    shop.mode = Mode.OVERWRITE
    shop.put("a.txt", "a")
    shop.run()
    shop.run()
    assert shop.target_lines() == {"a": 1}


def test_context_that_a_run_does_not_use_keeps_its_position(shop: Shop) -> None:
    shop.put("a.txt", "a")
    run = shop.begin()
    run.plan("one", source(shop))
    run.plan("two", source(shop))
    run.commit()
    shop.put("b.txt", "b")
    run = shop.begin()
    run.plan("one", source(shop))
    run.commit()
    run = shop.begin()
    assert len(run.plan("one", source(shop))) == 0
    assert run.plan("two", source(shop)).files.paths == [str(shop.raw / "b.txt")]
    run.abort("done looking")


def test_run_without_any_source_commits(shop: Shop) -> None:
    run = shop.begin()
    assert run.commit().run_number == 1
    (row,) = history(shop.store, "copy")
    assert (row["state"], row["is_empty"]) == ("PUBLISHED", False)


def test_one_context_read_twice_is_an_error(shop: Shop) -> None:
    run = shop.begin()
    run.plan("raw", source(shop))
    with pytest.raises(MisuseError, match="twice"):
        run.plan("raw", source(shop))
    run.abort("a test")


def test_commit_twice_and_read_after_commit_are_errors(shop: Shop) -> None:
    run = shop.begin()
    run.commit()
    with pytest.raises(MisuseError, match="over"):
        run.commit()
    with pytest.raises(MisuseError, match="over"):
        run.plan("raw", source(shop))
    assert shop.store.head("copy").run_number == 1


def test_output_that_was_placed_and_not_written_blocks_the_commit(shop: Shop) -> None:
    from airflow_bookmarks.sinks.staging import StagingRequest

    run = shop.begin()
    run.place("out", StagingRequest("files", str(shop.root / "copy")))
    with pytest.raises(MisuseError, match="placed and not written"):
        run.commit()
    run.abort("a test")


def test_run_sees_its_own_bookmark_before_and_after(shop: Shop) -> None:
    shop.put("a.txt", "a", seconds=1_700_000_000)
    shop.run()
    shop.put("b.txt", "b", seconds=1_700_000_100)
    run = shop.begin()
    assert run.watermark("raw") == "2023-11-14T22:13:20.000000Z"
    shop.copy(run)
    run.commit()
    assert run.watermark("raw") == "2023-11-14T22:15:00.000000Z"
    assert run.context_state("raw").run.number == 2  # type: ignore[union-attr]


def test_run_records_counts_watermarks_and_durations(shop: Shop) -> None:
    shop.put("a.txt", "a", "b")
    shop.put("_hidden.txt", "x")
    shop.run()
    (row,) = history(shop.store, "copy")
    figures = row["contexts"]["raw"]
    assert (figures["files"], figures["bytes"], figures["listed"], figures["skipped"]) == (1, 4, 1, {"hidden": 1})
    assert (figures["watermark_before"], row["watermark"]["raw"]) == (None, "2023-11-14T22:13:20.000000Z")
    assert row["outputs"]["out"]["rows"] == 2
    assert set(row["seconds"]) == {"begin", "plan", "read_write", "commit", "publish"}


# ---- which files


def test_renamed_or_copied_file_is_a_new_file(shop: Shop) -> None:
    path = shop.put("a.txt", "a")
    shop.run()
    path.rename(shop.raw / "b.txt")
    assert shop.run()[0] == ["a"]


def test_overwritten_file_is_read_again_whole(shop: Shop) -> None:
    shop.put("a.txt", "a")
    shop.run()
    shop.put("a.txt", "a", "b")
    assert shop.run()[0] == ["a", "b"]
    assert shop.run()[0] == []


def test_overwritten_file_can_be_ignored_and_is_counted(shop: Shop) -> None:
    shop.put("a.txt", "a")
    shop.run()
    shop.put("a.txt", "a", "b")
    run = shop.begin()
    plan = run.plan("raw", source(shop, on_overwrite="ignore"))
    assert (len(plan), plan.skipped) == (0, {"overwritten": 1})
    run.abort("a test")


def test_overwritten_file_can_stop_the_run(shop: Shop) -> None:
    shop.put("a.txt", "a")
    shop.run()
    shop.put("a.txt", "a", "b")
    run = shop.begin()
    with pytest.raises(OverwrittenError, match=r"a\.txt"):
        run.plan("raw", source(shop, on_overwrite="error"))
    run.abort("a test")


def test_deleted_file_is_ignored(shop: Shop) -> None:
    path = shop.put("a.txt", "a")
    shop.run()
    path.unlink()
    assert shop.run()[0] == []
    assert shop.target_lines() == {"a": 1}


def test_files_of_one_timestamp_are_each_read_once(shop: Shop) -> None:
    for i in range(30):
        shop.put(f"{i}.txt", str(i))
        if i % 7 == 0:
            shop.run()
    shop.run()
    assert shop.target_lines() == {str(i): 1 for i in range(30)}


def test_file_with_an_older_time_than_the_watermark_is_still_read(shop: Shop) -> None:
    shop.put("a.txt", "a", seconds=1_700_000_000)
    shop.run()
    shop.put("late.txt", "late", seconds=1_600_000_000)
    lines, summary = shop.run()
    assert lines == ["late"]
    assert summary.contexts["raw"]["watermark_to"] == "2023-11-14T22:13:20.000000Z"


def test_hidden_and_temporary_names_are_not_input(shop: Shop) -> None:
    for name in ("_SUCCESS", ".x.crc", "_temporary/0/part.txt", "a.txt._COPYING_"):
        shop.put(name, "no")
    shop.put("_day=1/a.txt", "yes")
    lines, summary = shop.run()
    assert lines == ["yes"]
    assert summary.contexts["raw"]["skipped"] == {"hidden": 4}


def test_path_that_does_not_exist_is_an_error_and_nothing_moved(shop: Shop) -> None:
    run = shop.begin()
    with pytest.raises(SourceMissingError, match="does not exist"):
        run.plan("raw", FileSource(FILES, [str(shop.root / "absent")]))
    run.abort("a test")
    assert shop.store.head("copy").version == 0


# ---- planned files that change


def test_planned_file_that_changed_stops_the_run_before_the_commit(shop: Shop) -> None:
    shop.put("a.txt", "a")
    run = shop.begin()
    shop.copy(run, between=lambda: shop.put("a.txt", "a", "b"))
    with pytest.raises(SourceChangedError, match=r"a\.txt"):
        run.commit()
    run.abort("a test")
    assert shop.target_lines() == {}
    assert shop.run()[0] == ["a", "b"]
    assert shop.target_lines() == {"a": 1, "b": 1}


def test_planned_file_that_went_can_be_left_to_the_next_run(shop: Shop) -> None:
    shop.put("a.txt", "a")
    path = shop.put("b.txt", "b")
    run = shop.begin()
    shop.copy(run, on_missing="skip", between=path.unlink)
    summary = run.commit()
    assert summary.contexts["raw"]["skipped"] == {"missing": 1}
    shop.put("b.txt", "b")
    assert shop.run()[0] == ["b"]


# ---- overwrite


def test_overwrite_replaces_the_target_in_the_publish(shop: Shop) -> None:
    shop.put("a.txt", "a")
    shop.run()
    shop.mode = Mode.OVERWRITE
    shop.put("b.txt", "b")
    shop.run()
    assert shop.target_lines() == {"b": 1}


def test_overwrite_of_partitions_replaces_only_those_written(shop: Shop) -> None:
    shop.mode = Mode.OVERWRITE_PARTITIONS
    shop.put("a.txt", "a")
    shop.put("b.txt", "b")
    shop.run()
    shop.put("a.txt", "a2")
    shop.run()
    assert shop.target_lines() == {"a2": 1, "b": 1}


# ---- two at once


def test_second_run_fails_before_it_reads_and_names_the_holder(shop: Shop) -> None:
    run = shop.begin(run_id="first")
    with pytest.raises(JobBusyError, match="first") as caught:
        shop.begin(run_id="second")
    assert caught.value.holder == "first"
    assert caught.value.until > caught.value.since
    run.commit()
    shop.run(run_id="second")


def test_second_run_can_wait_for_the_first(shop: Shop) -> None:
    run = shop.begin(run_id="first")
    slept: list[float] = []

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        run.commit()

    waiting = replace(shop, environment=replace(shop.environment, sleep=sleep))
    waiting.begin(run_id="second", on_conflict="wait").commit()
    assert len(slept) == 1
    assert shop.store.head("copy").run_number == 2


def test_wait_has_an_end(shop: Shop) -> None:
    shop.begin(run_id="first")
    now = [0.0]

    def sleep(seconds: float) -> None:
        now[0] += seconds

    environment = replace(shop.environment, sleep=sleep, monotonic=lambda: now[0])
    waiting = replace(shop, environment=environment)
    with pytest.raises(JobBusyError, match="first"):
        waiting.begin(run_id="second", on_conflict="wait", wait_for=timedelta(minutes=10))
    assert now[0] >= 600


def test_run_that_lost_its_lease_cannot_plan_commit_or_mark(shop: Shop) -> None:
    shop.put("a.txt", "a")
    shop.environment = RunEnvironment(lease_time=timedelta(seconds=0), start_thread=lambda target: None)
    stale = shop.begin(run_id="stale")
    shop.copy(stale)
    shop.run(run_id="fresh")
    with pytest.raises(FencedError, match="fence"):
        stale.commit()
    with pytest.raises(FencedError):
        stale.plan("other", source(shop))
    stale.abort("a test")
    assert shop.target_lines() == {"a": 1}
    assert shop.staged_files() == []


def test_fenced_run_is_told_who_has_taken_over(shop: Shop) -> None:
    shop.environment = RunEnvironment(lease_time=timedelta(seconds=0), start_thread=lambda target: None)
    stale = shop.begin(run_id="stale")
    shop.begin(run_id="fresh")
    with pytest.raises(FencedError, match="'fresh'"):
        stale.commit()


def test_higher_attempt_takes_the_lease_of_a_dead_one_at_once(shop: Shop) -> None:
    shop.put("a.txt", "a")
    shop.copy(shop.begin(run_id="task", attempt=1))
    lines, _ = shop.run(run_id="task", attempt=2)
    assert lines == ["a"]
    assert shop.target_lines() == {"a": 1}
    assert shop.staged_files() == []


def test_lower_attempt_than_one_seen_is_refused(shop: Shop) -> None:
    shop.run(run_id="task", attempt=2)
    with pytest.raises(AttemptRefusedError, match="lower"):
        shop.begin(run_id="task", attempt=1)


def test_killed_attempt_is_fenced_and_cannot_begin_again(shop: Shop) -> None:
    shop.put("a.txt", "a")
    run = shop.begin(run_id="task", attempt=1)
    shop.copy(run)
    assert shop.store.fence("copy", "task", 1)
    with pytest.raises(FencedError, match="killed"):
        run.commit()
    with pytest.raises(AttemptRefusedError, match="killed"):
        shop.begin(run_id="task", attempt=1)
    assert shop.run(run_id="task", attempt=2)[0] == ["a"]


def test_kill_of_an_attempt_that_never_began_keeps_it_out(shop: Shop) -> None:
    assert not shop.store.fence("copy", "task", 1)
    with pytest.raises(AttemptRefusedError):
        shop.begin(run_id="task", attempt=1)
    shop.run(run_id="task", attempt=2)


def test_late_kill_does_not_fence_an_innocent_attempt(shop: Shop) -> None:
    run = shop.begin(run_id="task", attempt=2)
    assert not shop.store.fence("copy", "task", 1)
    run.commit()


def test_lease_is_renewed_while_the_run_lasts(shop: Shop) -> None:
    threads: list[Any] = []
    shop.environment = replace(shop.environment, start_thread=threads.append)
    run = shop.begin()
    before = head_of(shop).lease
    run._leased.renewer.renew_once()  # what the thread does each quarter of the lease
    after = head_of(shop).lease
    assert before is not None
    assert after is not None
    assert after.expires_at > before.expires_at
    assert len(threads) == 1
    run.commit()


def head_of(shop: Shop) -> Head:
    return shop.store.head("copy")


# ---- replies that got lost


class Echo:
    """A table that carries each transaction out twice, as a client does that lost the first reply: the second fails."""

    def __init__(self, table: Table) -> None:
        self._table = table
        self.doubled = 0

    def transact(self, operations: Sequence[Operation], *, token: str | None = None) -> None:
        self._table.transact(operations)
        try:
            self._table.transact(operations)
        except ConditionFailedError:
            self.doubled += 1
            raise

    def __getattr__(self, name: str) -> Any:
        return getattr(self._table, name)


def test_lost_reply_is_recognised_as_an_own_success(shop: Shop) -> None:
    echo = Echo(shop.store.table)
    echoing = replace(shop, store=BookmarkStore(echo, "test"))
    shop.put("a.txt", "a")
    lines, summary = echoing.run()
    assert (lines, summary.run_number) == (["a"], 1)
    shop.put("b.txt", "b")
    assert echoing.run()[0] == ["b"]
    assert echo.doubled >= 4  # take, commit and mark of the two runs
    assert shop.target_lines() == {"a": 1, "b": 1}


# ---- one committer per number


def test_run_numbers_are_never_reused(shop: Shop) -> None:
    numbers = []
    for i in range(5):
        shop.put(f"{i}.txt", str(i))
        failing = shop.begin()
        shop.copy(failing)
        failing.abort("a test")
        numbers.append(shop.run()[1].run_number)
    assert numbers == [1, 2, 3, 4, 5]
    committed = [r for r in shop.store.runs("copy") if r.state is RunState.PUBLISHED]
    assert [r.key.number for r in committed] == numbers


# ---- what a steady run costs


class Counting:
    """A table that counts its requests."""

    def __init__(self, table: Table) -> None:
        self._table = table
        self.requests: dict[str, int] = {}

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._table, name)
        if name not in ("get", "query", "transact"):
            return method

        def counted(*args: Any, **kwargs: Any) -> Any:
            self.requests[name] = self.requests.get(name, 0) + 1
            return method(*args, **kwargs)

        return counted


def test_requests_of_a_steady_run_do_not_grow_with_history(shop: Shop) -> None:
    costs: list[Mapping[str, int]] = []
    for i in range(40):
        shop.put(f"{i}.txt", str(i))
        counting = Counting(shop.store.table)
        replace(shop, store=BookmarkStore(counting, "test"), runs_made=i).run()
        costs.append(counting.requests)
    # take, plan, place, commit, mark; head with execution, open runs, position
    assert costs[-1] == {"get": 2, "query": 1, "transact": 5}
    assert costs[-1] == costs[2]
    head = shop.store.table.get([shop.store.keys("copy").head])
    assert len(str(head)) < 4096


def test_directory_times_do_not_matter(shop: Shop) -> None:
    shop.put("a.txt", "a")
    shop.run()
    os.utime(shop.raw, (0, 0))
    assert shop.run()[0] == []


# ---- a publish that fails


def test_failed_publish_stays_due_and_the_next_run_finishes_it(shop: Shop) -> None:
    shop.put("a.txt", "a")
    run = shop.begin()
    shop.copy(run)
    (shop.root / "copy" / "file=a").write_text("in the way of the folder")
    with pytest.raises(PublishError, match="stays due"):
        run.commit()
    run.abort("a test")
    head = shop.store.head("copy")
    assert (head.run_number, head.published, head.lease) == (1, 0, None)
    assert head.publishing is not None
    (shop.root / "copy" / "file=a").unlink()
    assert shop.run()[0] == []
    assert shop.target_lines() == {"a": 1}
    assert shop.store.head("copy").publishing is None


def test_staged_file_that_somebody_removed_is_never_taken_for_published(shop: Shop) -> None:
    shop.put("a.txt", "a")
    run = shop.begin()
    shop.copy(run)
    for path in shop.staged_files():
        path.unlink()
    with pytest.raises(PublishError, match="are gone and were not published"):
        run.commit()
    run.abort("a test")
    with pytest.raises(PublishError):
        shop.begin()
    assert shop.store.head("copy").lease is None


def test_driver_that_still_stages_while_it_is_swept_does_not_hinder_the_one_that_has_the_job(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop.put("a.txt", "a")
    run = shop.begin()
    shop.copy(run)
    (staged,) = shop.staged_files()
    rmdir = os.rmdir

    def stages_once_more(*given: Any, **named: Any) -> None:
        monkeypatch.setattr(os, "rmdir", rmdir)
        staged.parent.mkdir(parents=True, exist_ok=True)
        staged.write_text("late\n")
        rmdir(*given, **named)

    run.abort("taken for dead")
    monkeypatch.setattr(os, "rmdir", stages_once_more)

    assert shop.run()[0] == ["a"]
    assert shop.target_lines() == {"a": 1}
    shop.run()
    assert shop.staged_files() == []


def test_run_of_many_contexts_fits_into_one_item(shop: Shop) -> None:
    for i in range(900):
        shop.put(f"{i:04d}-{hash(str(i)) % 10**12:012d}.txt", str(i))
    run = shop.begin()
    for i in range(40):
        run.plan(f"context-{i}", source(shop))
    run.commit()
    run = shop.begin()
    assert all(run.plan(f"context-{i}", source(shop)).is_empty for i in range(40))
    run.abort("a test")


def test_rows_whose_staged_files_are_gone_are_not_committed(shop: Shop) -> None:
    folder = shop.root / "copy" / "_bookmarks" / "test" / "copy" / "1.1" / "out"
    with pytest.raises(PublishError, match="2 rows were written"):
        collect_staged(FILES, str(folder), str(shop.root / "copy"), "run-1.1", Mode.APPEND, rows=2, schema=None)


def test_paused_overwrite_whose_staging_went_deletes_nothing(shop: Shop) -> None:
    shop.mode = Mode.OVERWRITE
    shop.put("a.txt", "a")
    shop.run()
    shop.put("b.txt", "b")
    run = shop.side()
    shop.copy(run)
    for path in (shop.root / "copy" / "_bookmarks").rglob("part-0.txt"):
        path.unlink()
    with pytest.raises(PublishError, match="pause run"):
        run.commit()
    assert shop.target_lines() == {"a": 1}


def test_link_that_leads_to_itself_is_an_error_with_its_name(shop: Shop) -> None:
    (shop.raw / "loop").symlink_to(shop.raw / "loop")
    run = shop.begin()
    with pytest.raises(SourceError, match="loop"):
        run.plan("raw", source(shop))
    run.abort("a test")


def test_pipes_and_dead_links_are_not_input_and_counted(shop: Shop) -> None:
    shop.put("a.txt", "a")
    (shop.raw / "dead").symlink_to(shop.root / "absent")
    os.mkfifo(shop.raw / "pipe")
    _, summary = shop.run()
    assert summary.contexts["raw"]["skipped"] == {"special": 2}


def test_name_that_is_not_utf8_is_an_error_with_its_name(shop: Shop) -> None:
    (shop.root / os.fsdecode(b"raw/caf\xe9.txt")).write_text("x")
    run = shop.begin()
    with pytest.raises(SourceError, match="not UTF-8"):
        run.plan("raw", source(shop))
    run.abort("a test")


def test_file_times_that_no_calendar_has_are_only_a_hint(shop: Shop) -> None:
    shop.put("a.txt", "a", seconds=-100)
    assert shop.run()[0] == ["a"]
    plan = FilePlan(Listing.of([FileInfo("/x", 1, 10**15)]), ("/",), 1, 0)
    assert plan.files.file(0).modified.year == 9999


def test_renewal_on_its_way_while_the_fence_moves_is_no_lost_lease(shop: Shop) -> None:
    run = shop.begin()
    run._leased.renewer.rest()
    run._leased.renewer.renew_once()
    assert run._leased.renewer.fenced is None
    run.commit()


def test_partitions_are_counted_and_those_with_nothing_new_are_logged(
    shop: Shop, caplog: pytest.LogCaptureFixture
) -> None:
    shop.put("day=1/a.txt", "a")
    shop.put("day=2/b.txt", "b")
    shop.run()
    shop.put("day=2/c.txt", "c")
    with caplog.at_level("INFO", logger="airflow_bookmarks"):
        shop.run()
    row = history(shop.store, "copy")[-1]
    assert row["contexts"]["raw"]["partitions"] == {"listed": 2, "pruned": 0, "skipped": 1}
    (line,) = [text for text in caplog.messages if "nothing new" in text]
    assert line == f"bookmark copy, context raw: partition {shop.raw}/day=1 has nothing new"


@pytest.mark.parametrize("partition", [".k=1", "k=a._COPYING_"])
def test_partition_that_readers_would_not_see_stops_the_run(shop: Shop, partition: str) -> None:
    folder = shop.root / "staged"
    for name in ("k=1", f"k=2/{partition}"):
        (folder / name).mkdir(parents=True)
        (folder / name / "part.txt").write_text("x")
    with pytest.raises(PublishError, match="hidden"):
        collect_staged(FILES, str(folder), str(shop.root / "copy"), "run-1.1", Mode.APPEND, rows=2, schema=None)


def test_execution_is_not_finished_by_the_publish_of_an_earlier_attempts_run(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    for attempt, name in ((1, "a"), (2, "b")):
        shop.put(f"{name}.txt", name)
        run = shop.begin(run_id="task", attempt=attempt)
        shop.copy(run)
        monkeypatch.setattr("airflow_bookmarks.lifecycle.run.leased.publish_run", _killed)
        with pytest.raises(KeyboardInterrupt):
            run.commit()
        monkeypatch.undo()

    state, _ = outcome(shop.store, "copy", "task")
    assert state is ExecutionOutcome.DUE


def _killed(*args: object) -> int:
    raise KeyboardInterrupt


def test_job_that_is_busy_says_how_to_wait_and_a_command_that_is_complete(shop: Shop) -> None:
    run = shop.begin(run_id="first")
    with pytest.raises(JobBusyError) as caught:
        shop.begin(run_id="second")
    said = str(caught.value)
    for way in ("(..., on_conflict='wait')", "bookmark_on_conflict='wait'", 'unlock copy --reason "..."\''):
        assert way in said
    run.abort("stopped")
