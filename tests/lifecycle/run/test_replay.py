"""Replays: the output of a finished run made again, while position and later runs stay."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from airflow_bookmarks.core.errors import (
    ChangedMeanwhileError,
    ChangeRefusedError,
    FencedError,
    MisuseError,
    PublishError,
    RunUnknownError,
    SourceChangedError,
    UpstreamReplayedError,
)
from airflow_bookmarks.core.files.file_plan import FilePlan
from airflow_bookmarks.core.run import RunState
from airflow_bookmarks.core.text.instant import utc_now
from airflow_bookmarks.lifecycle.changes.change import Change, reset, rewind
from airflow_bookmarks.lifecycle.history.snapshot import HistorySnapshot
from airflow_bookmarks.lifecycle.maintenance.retention import collect
from airflow_bookmarks.lifecycle.protocol.failpoint import Failpoint
from airflow_bookmarks.lifecycle.protocol.finish import ExecutionOutcome, finish, outcome
from airflow_bookmarks.lifecycle.run.replay import ReplayRun
from airflow_bookmarks.lifecycle.state.summary import Summary
from airflow_bookmarks.sinks.staging import Mode
from airflow_bookmarks.sources.files.planner import FileSource
from airflow_bookmarks.sources.upstream.source import UpstreamSource
from tests.lifecycle.shop import FILES, Shop, short_lease, unsound

REASON: dict[str, Any] = {"reason": "test", "who": "test"}


def begin_replay(shop: Shop, number: int, run_id: str | None = None, attempt: int = 1, job: str = "copy") -> ReplayRun:
    return ReplayRun.begin_replay(shop.store, job, shop.identity(run_id, attempt), shop.environment, number)


def replay(shop: Shop, number: int, between: Callable[[], object] | None = None, **kwargs: Any) -> Summary:
    run = begin_replay(shop, number, **kwargs)
    shop.copy(run, between=between)
    return run.commit()


def two_runs(shop: Shop) -> None:
    shop.put("a.txt", "a1", "a2")
    shop.run(run_id="first")
    shop.put("b.txt", "b1")
    shop.run(run_id="second")


def files_of(shop: Shop, number: int) -> set[str]:
    return {path.name for path in (shop.root / "copy").rglob(f"run-{number}.*") if "_bookmarks" not in path.parts}


def test_replay_reads_the_stored_plan_and_replaces_the_runs_own_files(shop: Shop) -> None:
    two_runs(shop)
    shop.put("c.txt", "came later")
    before, others = files_of(shop, 1), files_of(shop, 2)

    replay(shop, 1)

    assert shop.target_lines() == Counter(["a1", "a2", "b1"])
    assert files_of(shop, 1).isdisjoint(before)
    assert files_of(shop, 2) == others
    assert not shop.staged_files()


def test_replay_moves_neither_position_nor_version_nor_run_number(shop: Shop) -> None:
    two_runs(shop)
    was = shop.store.head("copy")

    replay(shop, 1)

    now = shop.store.head("copy")
    assert (now.version, now.run_number, now.published, now.data_run_number) == (
        was.version,
        was.run_number,
        was.published,
        was.data_run_number,
    )
    assert now.contexts == was.contexts
    assert (now.changes, now.publishing, now.lease) == (was.changes + 1, None, None)
    run = shop.store.committed_run("copy", 1)
    assert run is not None
    assert (run.state, run.revision, run.changes) == (RunState.PUBLISHED, 1, 1)


def test_run_can_be_replayed_again_and_again(shop: Shop) -> None:
    two_runs(shop)
    for revision in (1, 2, 3):
        replay(shop, 1)
        run = shop.store.committed_run("copy", 1)
        assert run is not None
        assert run.revision == revision
        assert shop.target_lines() == Counter(["a1", "a2", "b1"])


def test_replay_is_kept_among_the_events(shop: Shop) -> None:
    two_runs(shop)
    replay(shop, 1, run_id="ops/replay")

    assert [(e["kind"], e["who"], e["run"]) for e in shop.store.events("copy")] == [("replay", "ops/replay", "1.1")]


def test_planned_file_that_changed_or_went_stops_the_replay_with_nothing_marked(shop: Shop) -> None:
    two_runs(shop)
    shop.put("a.txt", "other", seconds=1_800_000_000)

    run = begin_replay(shop, 1)
    with pytest.raises(SourceChangedError, match="exactly what the run read"):
        shop.copy(run)
    run.abort("changed")

    stored = shop.store.committed_run("copy", 1)
    assert stored is not None
    assert (stored.state, stored.revision) == (RunState.PUBLISHED, 0)
    assert shop.store.head("copy").lease is None
    assert shop.target_lines() == Counter(["a1", "a2", "b1"])


def test_file_that_changes_while_the_replay_runs_stops_it(shop: Shop) -> None:
    two_runs(shop)
    run = begin_replay(shop, 1)
    shop.copy(run, between=lambda: shop.put("a.txt", "other", seconds=1_800_000_000))

    with pytest.raises(SourceChangedError):
        run.commit()
    run.abort("changed")

    assert shop.target_lines() == Counter(["a1", "a2", "b1"])


def test_undone_run_can_not_be_replayed(shop: Shop) -> None:
    two_runs(shop)
    rewind(shop.store, "copy", 1, **REASON)

    with pytest.raises(ChangeRefusedError, match="undone"):
        begin_replay(shop, 2)
    assert shop.store.head("copy").lease is None


def test_run_that_is_not_there_can_not_be_replayed(shop: Shop) -> None:
    two_runs(shop)
    with pytest.raises(RunUnknownError):
        begin_replay(shop, 7)


def test_overwrite_can_be_replayed_for_the_last_run_with_data_only(shop: Shop) -> None:
    shop.mode = Mode.OVERWRITE
    two_runs(shop)
    shop.run()  # empty: changes nothing

    replay(shop, 2)
    assert shop.target_lines() == Counter(["b1"])
    with pytest.raises(ChangeRefusedError, match="overwritten"):
        begin_replay(shop, 1)
    assert shop.target_lines() == Counter(["b1"])


def test_overwritten_partitions_can_be_replayed_until_a_later_run_writes_them(shop: Shop) -> None:
    shop.mode = Mode.OVERWRITE_PARTITIONS
    shop.put("day=1/a.txt", "a1")
    shop.run()
    shop.put("day=2/b.txt", "b1")
    shop.run()
    replay(shop, 1)
    assert shop.target_lines() == Counter(["a1", "b1"])

    shop.put("day=1/c.txt", "c1")
    shop.run()
    with pytest.raises(ChangeRefusedError, match="run 3 has replaced"):
        begin_replay(shop, 1)


def test_overwrite_can_not_be_replayed_while_what_an_undone_run_wrote_lies_in_its_target(shop: Shop) -> None:
    shop.mode = Mode.OVERWRITE
    two_runs(shop)
    rewind(shop.store, "copy", 1, **REASON)

    with pytest.raises(ChangeRefusedError, match="run 2, which was undone, still lies in its target"):
        begin_replay(shop, 1)
    assert shop.target_lines() == Counter(["b1"])


def test_overwrite_can_be_replayed_once_what_later_runs_wrote_was_cleaned(shop: Shop) -> None:
    shop.mode = Mode.OVERWRITE
    two_runs(shop)
    rewind(shop.store, "copy", 1, clean=True, **REASON)

    replay(shop, 1)

    assert shop.target_lines() == Counter(["a1", "a2"])


def test_overwritten_partition_can_not_be_replayed_while_what_an_undone_run_wrote_lies_there(shop: Shop) -> None:
    shop.mode = Mode.OVERWRITE_PARTITIONS
    shop.put("day=1/a.txt", "a1")
    shop.run()
    shop.put("day=2/b.txt", "b1")
    shop.run()
    shop.put("day=1/c.txt", "c1")
    shop.run()
    rewind(shop.store, "copy", 1, **REASON)

    with pytest.raises(ChangeRefusedError, match="run 3, which was undone, still lies in its target"):
        begin_replay(shop, 1)
    assert shop.target_lines() == Counter(["c1", "b1"])


def test_overwrite_can_not_be_replayed_beside_what_a_collected_run_left_in_its_target(shop: Shop) -> None:
    shop.mode = Mode.OVERWRITE
    two_runs(shop)
    shop.raw.joinpath("b.txt").unlink()
    for _ in range(2):  # what the last one took back is kept, for its undo
        rewind(shop.store, "copy", 1, **REASON)
        shop.run()  # empty
    later = utc_now() + timedelta(days=91)
    assert collect(shop.store, retention=timedelta(days=90), clock=lambda: later).jobs[0].runs

    run = begin_replay(shop, 1)
    shop.copy(run)
    with pytest.raises(ChangeRefusedError, match="run 2, which was collected, still lies in its target"):
        run.commit()
    run.abort("refused")
    assert shop.target_lines() == Counter(["b1"])


def test_partition_beside_what_an_undone_run_wrote_can_be_replayed(shop: Shop) -> None:
    shop.mode = Mode.OVERWRITE_PARTITIONS
    shop.put("day=1/a.txt", "a1")
    shop.run()
    shop.put("day=2/b.txt", "b1")
    shop.run()
    rewind(shop.store, "copy", 1, **REASON)

    replay(shop, 1)

    assert shop.target_lines() == Counter(["a1", "b1"])


def test_replay_that_moves_into_the_partition_of_an_undone_run_commits_nothing(shop: Shop) -> None:
    shop.mode = Mode.OVERWRITE_PARTITIONS
    shop.put("day=1/a.txt", "a1")
    shop.run()
    shop.put("day=2/b.txt", "b1")
    shop.run()
    rewind(shop.store, "copy", 1, **REASON)
    run = begin_replay(shop, 1)
    shop.copy(run, between=lambda: _rename_staged(shop, "day=1", "day=2"))

    with pytest.raises(ChangeRefusedError, match="run 2, which was undone, still lies in its target"):
        run.commit()
    run.abort("refused")
    assert shop.target_lines() == Counter(["a1", "b1"])


def test_append_whose_files_a_later_run_replaced_can_not_be_replayed(shop: Shop) -> None:
    shop.put("a.txt", "a1")
    shop.run()
    shop.mode = Mode.OVERWRITE
    shop.put("b.txt", "b1")
    shop.run()
    shop.mode = Mode.APPEND

    with pytest.raises(ChangeRefusedError, match="replaced"):
        begin_replay(shop, 1)


def test_append_can_not_be_replayed_where_an_undone_run_and_then_a_later_one_overwrote_its_files(shop: Shop) -> None:
    shop.put("day=1/a.txt", "a1")
    shop.run()
    shop.mode = Mode.OVERWRITE_PARTITIONS
    shop.put("day=1/a.txt", "a2", "x")
    shop.run()
    rewind(shop.store, "copy", 1, **REASON)
    shop.run()
    shop.put("day=1/a.txt", "a1")  # as the first run has read it
    shop.mode = Mode.APPEND

    with pytest.raises(ChangeRefusedError, match="run 3 has replaced some of its files"):
        replay(shop, 1)
    assert shop.target_lines() == Counter(["a2", "x"])


def test_replay_of_an_empty_run_changes_nothing(shop: Shop) -> None:
    two_runs(shop)
    shop.run()

    replay(shop, 3)

    assert shop.store.head("copy").changes == 0
    assert shop.store.head("copy").lease is None
    assert shop.target_lines() == Counter(["a1", "a2", "b1"])


def test_worker_reports_the_replay_of_an_empty_run_by_another_execution(shop: Shop) -> None:
    shop.run()

    replay(shop, 1, run_id="another")

    assert finish(shop.store, "copy", shop.identity("another"), shop.environment).run_number == 1


def test_worker_reports_the_replay_of_a_run_whose_execution_was_collected(shop: Shop) -> None:
    shop.put("a.txt", "a1")
    shop.run(run_id="collected")
    shop.run()  # empty: the position is still that of the first
    collect(shop.store, retention=timedelta(days=90), clock=lambda: utc_now() + timedelta(days=91))
    assert shop.store.snapshot("copy", "collected").execution is None

    replay(shop, 1, run_id="collected")

    assert finish(shop.store, "copy", shop.identity("collected"), shop.environment).run_number == 1
    assert outcome(shop.store, "copy", "collected")[0] is ExecutionOutcome.FINISHED
    assert unsound(shop.store) == []


def test_replay_that_leaves_an_output_out_is_refused(shop: Shop) -> None:
    two_runs(shop)
    run = begin_replay(shop, 1)

    with pytest.raises(MisuseError, match="whole"):
        run.commit()
    run.abort("misuse")
    assert shop.target_lines() == Counter(["a1", "a2", "b1"])


def test_replay_of_which_a_read_failed_is_refused_also_where_the_error_was_caught(shop: Shop) -> None:
    two_runs(shop)
    run = begin_replay(shop, 1)
    shop.copy(run)
    run.set_failed("raw", "OSError: no answer")

    with pytest.raises(
        MisuseError, match=r"'raw' was planned and not read: OSError: no answer\. Nothing was committed"
    ):
        run.commit()
    run.abort("misuse")
    assert shop.target_lines() == Counter(["a1", "a2", "b1"])


def test_replay_knows_the_columns_of_the_run_that_it_makes_again_and_compares_none(shop: Shop) -> None:
    for name in "ab":
        shop.put(f"{name}.txt", name)
        run = shop.begin()
        shop.copy(run)
        run.set_schema("raw", f'{{"of": "{name}"}}')
        run.commit()
    again = begin_replay(shop, 1)
    again.plan("raw", FileSource(FILES, [str(shop.raw)]))

    assert again.known_schema("raw") == again.schema_before("raw") == '{"of": "a"}'
    assert not again.compares_columns
    again.abort("enough")


def test_replay_reads_neither_less_nor_more_than_its_run_and_is_one_run(shop: Shop) -> None:
    two_runs(shop)
    run = begin_replay(shop, 1)
    plan = run.plan("raw", FileSource(FILES, [str(shop.raw)]))
    stored = [each.plans for each in shop.store.runs("copy")]

    with pytest.raises(MisuseError, match=r"can't leave out 1 file\(s\) of 'raw'.*exactly what run 1 read"):
        run.quarantine("raw", {plan.files.paths[0]: "broken"})
    with pytest.raises(MisuseError, match=r"can't read 'raw' from the beginning.*exactly what run 1 read"):
        run.start_over("raw")
    with pytest.raises(MisuseError, match="no run follows this one"):
        run.following()
    assert not run.goes_on
    assert [each.plans for each in shop.store.runs("copy")] == stored
    run.abort("enough")


def test_replay_recovers_first(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    two_runs(shop)
    shop.put("c.txt", "c1")
    left = shop.begin()
    shop.copy(left)
    monkeypatch.setattr("airflow_bookmarks.lifecycle.run.leased.publish_run", _no_publish)
    with pytest.raises(PublishError):
        left.commit()
    monkeypatch.undo()
    left.abort("the disk is full")

    replay(shop, 1)

    assert shop.store.head("copy").published == 3
    assert shop.target_lines() == Counter(["a1", "a2", "b1", "c1"])


def test_due_replay_is_finished_by_the_next_run(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    two_runs(shop)
    _leave_replay_due(shop, 1, monkeypatch)

    shop.run()

    assert shop.store.head("copy").publishing is None
    assert len(files_of(shop, 1)) == 1
    assert shop.target_lines() == Counter(["a1", "a2", "b1"])
    assert not shop.staged_files()


def test_reset_keeps_a_due_replay_and_the_next_run_finishes_it(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    two_runs(shop)
    _leave_replay_due(shop, 1, monkeypatch)

    reset(shop.store, "copy", **REASON)
    assert str(shop.store.head("copy").publishing) == "1.1"
    shop.begin().abort("only to recover")

    assert shop.store.head("copy").publishing is None
    assert shop.target_lines() == Counter(["a1", "a2", "b1"])


def test_clean_removes_every_revision(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    two_runs(shop)
    replay(shop, 2)
    _leave_replay_due(shop, 2, monkeypatch)

    rewind(shop.store, "copy", 1, clean=True, **REASON)
    shop.begin().abort("only to recover")

    assert shop.target_lines() == Counter(["a1", "a2"])
    assert not shop.staged_files()


def test_overtaken_replay_commits_nothing(shop: Shop) -> None:
    two_runs(shop)
    shop.environment = short_lease()
    run = begin_replay(shop, 1)
    shop.copy(run)
    shop.run()

    with pytest.raises(FencedError):
        run.commit()
    assert shop.store.head("copy").changes == 0
    assert shop.target_lines() == Counter(["a1", "a2", "b1"])


def test_failed_replay_stays_to_be_done_for_its_execution(shop: Shop) -> None:
    two_runs(shop)
    run = begin_replay(shop, 1, run_id="first", attempt=2)
    run.abort("no memory")

    state, _ = outcome(shop.store, "copy", "first")
    execution = shop.store.execution("copy", "first")
    assert state is ExecutionOutcome.NOT_COMMITTED
    assert execution is not None
    assert execution.replaying == 1

    replay(shop, 1, run_id="first", attempt=3)
    state, _ = outcome(shop.store, "copy", "first")
    assert state is ExecutionOutcome.FINISHED


def test_worker_publishes_the_replay_of_a_driver_that_died(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    two_runs(shop)
    _leave_replay_due(shop, 1, monkeypatch, run_id="first", attempt=2)

    state, _ = outcome(shop.store, "copy", "first")
    assert state is ExecutionOutcome.DUE
    finish(shop.store, "copy", shop.identity("first", 2), shop.environment)

    assert shop.store.head("copy").publishing is None
    assert shop.target_lines() == Counter(["a1", "a2", "b1"])


# ---- consumers


def consume(shop: Shop, on_rewind: str = "fail") -> list[str]:
    lines, _ = shop.run("report", upstream="copy", on_rewind=on_rewind)
    return lines


def test_consumer_is_told_of_a_replay_with_the_run_number(shop: Shop) -> None:
    two_runs(shop)
    consume(shop)
    replay(shop, 1)

    run = shop.begin("report")
    with pytest.raises(UpstreamReplayedError, match="run 1") as caught:
        shop.copy(run, upstream="copy")
    run.abort("told")
    assert caught.value.replayed == 1


def test_consumer_goes_back_along_to_before_the_replayed_run(shop: Shop) -> None:
    shop.put("a.txt", "a1")
    shop.run()
    consume(shop)
    shop.put("b.txt", "b1")
    shop.run()
    consume(shop)
    replay(shop, 2)

    assert consume(shop, "rewind") == ["b1"]
    assert consume(shop) == []


def test_consumer_that_ignores_a_replay_takes_note_and_goes_on(shop: Shop) -> None:
    two_runs(shop)
    consume(shop)
    replay(shop, 1)

    assert consume(shop, "ignore") == []
    assert consume(shop) == []
    edge = shop.store.edge("copy", "report")
    assert edge is not None
    assert edge.changes == 1


def test_replay_of_a_run_not_consumed_yet_is_no_news(shop: Shop) -> None:
    shop.put("a.txt", "a1")
    shop.run()
    consume(shop)
    shop.put("b.txt", "b1")
    shop.run()
    replay(shop, 2)

    assert consume(shop) == ["b1"]
    assert consume(shop) == []


def test_replay_while_the_consumer_reads_stops_it(shop: Shop) -> None:
    two_runs(shop)
    run = shop.begin("report")
    shop.copy(run, upstream="copy", between=lambda: replay(shop, 1))

    with pytest.raises(SourceChangedError, match="was replayed"):
        run.commit()
    run.abort("torn")
    assert sorted(consume(shop)) == ["a1", "a2", "b1"]


def test_consumer_cannot_be_replayed_over_an_upstream_that_was_replayed(shop: Shop) -> None:
    two_runs(shop)
    consume(shop)
    replay(shop, 2)

    run = begin_replay(shop, 1, job="report")
    with pytest.raises(SourceChangedError, match=r"run 2 of upstream 'copy' was replayed since run 1 read it.*exactly"):
        shop.copy(run, upstream="copy")
    run.abort("told")
    assert shop.target_lines("report") == Counter(["a1", "a2", "b1"])
    assert shop.store.head("report").changes == 0


def test_upstream_that_is_replayed_under_the_replay_of_its_consumer_stops_that(shop: Shop) -> None:
    two_runs(shop)
    consume(shop)
    run = begin_replay(shop, 1, job="report")
    shop.copy(run, upstream="copy", between=lambda: replay(shop, 2))

    with pytest.raises(SourceChangedError, match="was replayed since run 1 read it"):
        run.commit()
    run.abort("torn")
    assert shop.store.head("report").changes == 0


def test_consumer_can_be_replayed_after_the_runs_that_it_has_read_were_collected(shop: Shop) -> None:
    two_runs(shop)
    consume(shop)
    later = utc_now() + timedelta(days=100)
    shop.put("c.txt", "c1")
    shop.run()
    consume(shop)
    collect(shop.store, jobs=["copy"], clock=lambda: later)
    assert shop.store.committed_run("copy", 1) is None

    run = begin_replay(shop, 1, job="report")
    assert sorted(shop.copy(run, upstream="copy")) == ["a1", "a2", "b1"]
    run.commit()


def test_pause_window_over_an_upstream_that_was_replayed_says_so_before_it_reads(shop: Shop) -> None:
    two_runs(shop)
    consume(shop)
    replay(shop, 1)

    side = shop.side("report", "pause", "0", "1")
    with pytest.raises(SourceChangedError, match=r"run 1 of upstream 'copy' was replayed since runs \[1\] read it"):
        shop.copy(side, upstream="copy")
    side.abort("told")


def test_pause_run_ends_without_a_context_whose_upstream_was_replayed(shop: Shop) -> None:
    two_runs(shop)
    consume(shop)
    replay(shop, 1)

    side = shop.side("report", "pause", "0", "1")
    with pytest.raises(SourceChangedError, match="was replayed since"):
        side.plan("raw", UpstreamSource(shop.store, "report", "copy"))
    assert side.commit().contexts == {}


def test_pause_window_sees_the_replay_of_each_upstream_run_that_it_reads(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop.put("a.txt", "a1", "a2")
    for name in ("b.txt", "c.txt"):
        shop.run()
        consume(shop)
        shop.put(name, name)
    before, meanwhile = shop.side("report", "pause", "0", "2"), shop.side("report", "pause", "0", "2")
    shop.copy(meanwhile, upstream="copy")
    _leave_replay_due(shop, 1, monkeypatch)  # its former files are there still

    with pytest.raises(SourceChangedError, match=r"replayed since runs \[1, 2\] read it. Nothing was read"):
        shop.copy(before, upstream="copy")
    with pytest.raises(SourceChangedError, match=r"replayed since runs \[1, 2\] read it. Nothing was published"):
        meanwhile.commit()
    for side in (before, meanwhile):
        side.abort("told")


def test_consumer_stops_before_a_run_whose_replay_is_due(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    two_runs(shop)
    _leave_replay_due(shop, 1, monkeypatch)

    assert consume(shop) == []
    shop.run()
    assert sorted(consume(shop)) == ["a1", "a2", "b1"]


def test_replay_whose_version_moved_is_refused(shop: Shop) -> None:
    two_runs(shop)
    run = begin_replay(shop, 1)
    shop.copy(run)
    rewind(shop.store, "copy", 1, force=True, **REASON)

    with pytest.raises((FencedError, ChangedMeanwhileError)):
        run.commit()
    assert shop.target_lines() == Counter(["a1", "a2", "b1"])


def _no_publish(*args: object) -> int:
    raise PublishError("the disk is full")


def _leave_replay_due(shop: Shop, number: int, monkeypatch: pytest.MonkeyPatch, **kwargs: Any) -> None:
    """Commit a replay whose publish is not done."""
    run = begin_replay(shop, number, **kwargs)
    shop.copy(run)
    monkeypatch.setattr("airflow_bookmarks.lifecycle.run.leased.publish_run", _no_publish)
    with pytest.raises(PublishError):
        run.commit()
    monkeypatch.undo()
    run.abort("the disk is full")


def test_published_names_of_a_revision_are_new(shop: Shop) -> None:
    two_runs(shop)
    replay(shop, 1)
    names = [Path(name).name for name in files_of(shop, 1)]
    assert all(name.startswith("run-1.3-") for name in names)


def test_consumer_still_knows_what_a_replayed_overwrite_had_replaced(shop: Shop) -> None:
    shop.mode = Mode.OVERWRITE
    two_runs(shop)
    replay(shop, 2)
    shop.mode = Mode.APPEND

    assert consume(shop) == ["b1"]
    run = shop.store.committed_run("report", 1)
    assert run is not None
    assert run.plans["raw"].stats["skipped"] == {"replaced": 1}


def test_change_that_looked_before_a_replay_committed_does_not_drop_its_publish(shop: Shop) -> None:
    two_runs(shop)
    run = begin_replay(shop, 1)
    shop.copy(run)
    seen = shop.store.head("copy")
    switch = Change("rewind", to_run="1").switch(
        HistorySnapshot(shop.store, "copy", seen), {"who": "test", "why": "test"}
    )
    run._leased.environment = replace(run._leased.environment, at=_die_when_committed)
    with pytest.raises(KeyboardInterrupt):
        run.commit()

    assert shop.store.begin_timeline("copy", seen, switch) is None
    assert str(rewind(shop.store, "copy", 1, force=True, **REASON).after.publishing) == "1.1"


def _rename_staged(shop: Shop, partition: str, name: str) -> None:
    (folder,) = (shop.root / "copy" / "_bookmarks").rglob(partition)
    folder.rename(folder.with_name(name))


def _die_when_committed(point: Failpoint) -> None:
    if point is Failpoint.COMMITTED:
        raise KeyboardInterrupt


def test_replay_reads_no_file_that_was_left_to_a_later_run(shop: Shop) -> None:
    shop.put("a.txt", "a")
    gone = shop.put("b.txt", "b")
    first = shop.begin(run_id="one")
    assert len(first.plan("raw", FileSource(FILES, [str(shop.raw)]), on_missing="skip")) == 2
    gone.unlink()
    first.commit()
    stored = shop.store.committed_run("copy", 1)
    assert stored is not None
    plan = FilePlan.decode(shop.store.blobs.get(stored.plans["raw"].body))
    assert [path.rpartition("/")[2] for path in plan.files.paths] == ["a.txt"]
    assert stored.plans["raw"].stats["skipped"] == {"missing": 1}


def test_time_on_the_record_of_a_replayed_run_is_that_of_its_replay(shop: Shop) -> None:
    slow, fast = count(0.0, 100.0), count(0.0, 1.0)
    shop.put("a.txt", "a")
    first = replace(shop, environment=replace(shop.environment, monotonic=lambda: next(slow)))
    run = first.begin()
    first.copy(run)
    run.commit()
    seen = shop.store.committed_run("copy", 1)
    assert seen is not None
    assert float(seen.metrics["seconds"]["plan"]) >= 100

    summary = replay(replace(shop, environment=replace(shop.environment, monotonic=lambda: next(fast))), 1)

    again = shop.store.committed_run("copy", 1)
    assert again is not None
    assert again.metrics["seconds"] == summary.seconds
    assert float(summary.seconds["plan"]) < 100
