"""Changes besides reset and rewind of all: clean, single contexts, set, undo, unlock, and their preview."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from airflow_bookmarks.core.errors import (
    ApprovalError,
    ChangedMeanwhileError,
    ChangeRefusedError,
    FencedError,
    JobBusyError,
    OptionError,
    ProtectedError,
    PublishError,
    RunUnknownError,
    UpstreamRewoundError,
)
from airflow_bookmarks.core.rules.start import Start
from airflow_bookmarks.core.run import RunState
from airflow_bookmarks.lifecycle.changes.change import Change, reset, rewind, set_position, undo, unlock
from airflow_bookmarks.lifecycle.changes.preview import preview
from airflow_bookmarks.lifecycle.inspect.status import changes
from airflow_bookmarks.lifecycle.maintenance.doctor import examine
from airflow_bookmarks.sinks.staging import Mode
from airflow_bookmarks.sources.files.planner import FileSource
from airflow_bookmarks.store.table import Update
from tests.lifecycle.shop import FILES, Shop, short_lease

REASON: dict[str, Any] = {"reason": "test", "who": "test"}


def three_runs(shop: Shop) -> None:
    for number, name in enumerate(("a", "b", "c"), 1):
        shop.put(f"{name}.txt", f"{name}1", seconds=1_700_000_000 + number)
        shop.run()


def lines_of_next_run(shop: Shop, **kwargs: Any) -> list[str]:
    lines, _ = shop.run(**kwargs)
    return sorted(lines)


# ---- clean


def test_clean_removes_exactly_what_the_undone_runs_published(shop: Shop) -> None:
    three_runs(shop)
    foreign = shop.root / "copy" / "file=b" / "foreign.txt"
    foreign.write_text("foreign\n")

    changed = rewind(shop.store, "copy", 1, clean=True, **REASON)
    assert (changed.undone, changed.to_clean) == ((2, 3), 2)
    assert shop.target_lines() == Counter(["a1", "b1", "c1", "foreign"])  # whoever begins next does it

    assert lines_of_next_run(shop) == ["b1", "c1"]
    assert shop.target_lines() == Counter(["a1", "b1", "c1", "foreign"])
    assert shop.store.head("copy").cleaning is None


def test_reset_with_clean_leaves_each_row_once_after_the_next_run(shop: Shop) -> None:
    three_runs(shop)
    reset(shop.store, "copy", clean=True, **REASON)

    assert lines_of_next_run(shop) == ["a1", "b1", "c1"]
    assert shop.target_lines() == Counter(["a1", "b1", "c1"])


def test_clean_is_refused_when_somebody_else_touched_a_published_file(shop: Shop) -> None:
    three_runs(shop)
    touched = next(path for path in (shop.root / "copy").rglob("run-3.*") if path.is_file())
    touched.write_text("c1\nmore\n")
    before = shop.store.head("copy")

    with pytest.raises(ChangeRefusedError, match="another content"):
        rewind(shop.store, "copy", 2, clean=True, **REASON)
    touched.unlink()
    with pytest.raises(ChangeRefusedError, match="is gone"):
        rewind(shop.store, "copy", 2, clean=True, **REASON)
    assert shop.store.head("copy") == before


def test_clean_does_not_mind_files_that_an_undone_overwrite_had_replaced(shop: Shop) -> None:
    shop.mode = Mode.OVERWRITE
    three_runs(shop)
    rewind(shop.store, "copy", 1, clean=True, **REASON)
    shop.begin().abort("only to recover")

    assert shop.target_lines() == Counter()


def test_clean_takes_a_due_publish_and_open_runs_with_it(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    three_runs(shop)
    leave_publish_due(shop, "d", monkeypatch)

    reset(shop.store, "copy", clean=True, **REASON)
    assert shop.store.head("copy").publishing is None
    assert lines_of_next_run(shop) == ["a1", "b1", "c1", "d1"]
    assert shop.target_lines() == Counter(["a1", "b1", "c1", "d1"])
    assert not shop.staged_files()


def test_clean_abandons_an_open_run(shop: Shop) -> None:
    three_runs(shop)
    shop.put("d.txt", "d1")
    run = shop.begin()
    shop.copy(run)
    run.abort("failed")

    rewind(shop.store, "copy", 2, clean=True, **REASON)

    assert [r.state for r in shop.store.runs("copy", after=3)] == [RunState.ABANDONED]


def test_forced_clean_fences_the_holder_before_it_lists(shop: Shop) -> None:
    three_runs(shop)
    shop.put("d.txt", "d1")
    run = shop.begin()
    shop.copy(run)

    reset(shop.store, "copy", clean=True, force=True, **REASON)
    with pytest.raises(FencedError):
        run.commit()
    assert lines_of_next_run(shop) == ["a1", "b1", "c1", "d1"]
    assert shop.target_lines() == Counter(["a1", "b1", "c1", "d1"])


def test_forced_clean_that_is_refused_fences_nobody(shop: Shop) -> None:
    three_runs(shop)
    shop.put("d.txt", "d1")
    run = shop.begin()
    shop.copy(run)

    with pytest.raises(RunUnknownError):
        rewind(shop.store, "copy", 77, clean=True, force=True, **REASON)

    run.commit()
    assert shop.target_lines() == Counter(["a1", "b1", "c1", "d1"])


def test_clean_leaves_a_file_that_somebody_has_replaced_since(shop: Shop, caplog: pytest.LogCaptureFixture) -> None:
    three_runs(shop)
    reset(shop.store, "copy", clean=True, **REASON)
    (replaced, *_) = sorted(path for path in (shop.root / "copy").rglob("*.txt") if "_bookmarks" not in path.parts)
    replaced.write_text("by hand\n")

    shop.begin().abort("only to recover")

    assert shop.target_lines() == Counter(["by hand"])
    assert "has another content than was published" in caplog.text


def test_second_clean_keeps_what_the_first_has_still_to_do(shop: Shop) -> None:
    three_runs(shop)
    rewind(shop.store, "copy", 2, clean=True, **REASON)
    reset(shop.store, "copy", clean=True, **REASON)
    shop.begin().abort("only to recover")

    assert shop.target_lines() == Counter()


def test_plain_reset_keeps_a_clean_that_is_still_to_be_done(shop: Shop) -> None:
    three_runs(shop)
    rewind(shop.store, "copy", 2, clean=True, **REASON)
    rewind(shop.store, "copy", 1, **REASON)
    shop.begin().abort("only to recover")

    assert shop.target_lines() == Counter(["a1", "b1"])


# ---- single contexts


def read_two(shop: Shop) -> tuple[int, int]:
    run = shop.begin()
    counts = [len(run.plan(ctx, FileSource(FILES, [str(shop.root / ctx)]))) for ctx in ("left", "right")]
    run.commit()
    return counts[0], counts[1]


def two_contexts(shop: Shop) -> None:
    for ctx in ("left", "right"):
        (shop.root / ctx).mkdir()
        (shop.root / ctx / "1.txt").write_text("1\n")
    assert read_two(shop) == (1, 1)
    for ctx in ("left", "right"):
        (shop.root / ctx / "2.txt").write_text("2\n")
    assert read_two(shop) == (1, 1)


def test_reset_of_one_context_leaves_the_other_and_undoes_no_run(shop: Shop) -> None:
    two_contexts(shop)
    changed = reset(shop.store, "copy", contexts=["left"], **REASON)

    assert changed.undone == ()
    assert read_two(shop) == (2, 0)


def test_rewind_of_one_context_takes_it_to_its_state_after_that_run(shop: Shop) -> None:
    two_contexts(shop)
    rewind(shop.store, "copy", 1, contexts=["right"], **REASON)

    assert read_two(shop) == (0, 1)


def test_unknown_context_is_an_error_that_names_those_there_are(shop: Shop) -> None:
    two_contexts(shop)
    with pytest.raises(OptionError, match="left"):
        reset(shop.store, "copy", contexts=["lft"], **REASON)
    with pytest.raises(OptionError, match="clean"):
        reset(shop.store, "copy", contexts=["left"], clean=True, **REASON)


def test_preview_of_one_context_counts_what_it_reads_again(shop: Shop) -> None:
    two_contexts(shop)
    seen = preview(shop.store, "copy", Change("reset", contexts=("left",)))

    assert (seen.files, seen.undone) == (2, ())


# ---- set


def test_set_to_now_takes_all_that_is_there_as_read(shop: Shop) -> None:
    three_runs(shop)
    shop.put("d.txt", "d1")
    set_position(shop.store, "copy", "raw", "now", **REASON)
    shop.put("e.txt", "e1")

    assert lines_of_next_run(shop) == ["e1"]
    assert lines_of_next_run(shop) == []


def test_set_to_a_time_reads_what_is_not_older(shop: Shop) -> None:
    three_runs(shop)
    set_position(shop.store, "copy", "raw", "2023-11-14T22:13:22.001Z", **REASON)

    assert lines_of_next_run(shop) == ["c1"]


def test_file_of_exactly_a_time_is_read_by_a_job_that_starts_then_and_by_one_that_is_set_to_it(shop: Shop) -> None:
    three_runs(shop)
    time = "2023-11-14T22:13:22Z"
    starting = shop.begin("starts", start=Start.of(time))
    started = shop.copy(starting)
    starting.commit()

    set_position(shop.store, "copy", "raw", time, **REASON)

    assert (started, lines_of_next_run(shop)) == (["b1", "c1"], ["b1", "c1"])


def test_set_to_something_else_is_an_error_that_changes_nothing(shop: Shop) -> None:
    three_runs(shop)
    before = shop.store.head("copy")
    for value in ("tomorrow", "17", "2013-01-01", "beginning"):
        with pytest.raises(OptionError, match="Nothing was changed"):
            set_position(shop.store, "copy", "raw", value, **REASON)
    with pytest.raises(OptionError, match="raw"):
        set_position(shop.store, "copy", "never", "now", **REASON)
    assert shop.store.head("copy") == before


def test_preview_of_a_set_does_not_guess_what_is_read_again(shop: Shop) -> None:
    three_runs(shop)
    back = preview(shop.store, "copy", Change("set", ctx="raw", value="2023-11-14T22:13:22Z"))
    assert (back.files, back.bytes, back.rows) == (None, None, None)
    assert back.twice == (str(shop.root / "copy"),)

    ahead = preview(shop.store, "copy", Change("set", ctx="raw", value="now"))
    assert (ahead.files, ahead.bytes, ahead.twice) == (0, 0, ())


def test_set_position_outlives_rewinds_to_runs_that_were_made_from_it(shop: Shop) -> None:
    three_runs(shop)
    set_position(shop.store, "copy", "raw", "2023-11-14T22:13:21.001Z", **REASON)
    shop.run()  # an empty context is not moved by it, b and c are read again
    shop.put("d.txt", "d1")
    shop.run()
    rewind(shop.store, "copy", 4, **REASON)

    assert lines_of_next_run(shop) == ["d1"]


def test_consumer_can_be_set_to_a_run_of_its_upstream(shop: Shop) -> None:
    three_runs(shop)
    shop.run("report", upstream="copy")
    set_position(shop.store, "report", "raw", 2, **REASON)
    edge = shop.store.edge("copy", "report")
    assert edge is not None
    assert edge.run_number == 2

    assert lines_of_next_run(shop, job="report", upstream="copy") == ["c1"]
    with pytest.raises(OptionError, match="published run"):
        set_position(shop.store, "report", "raw", 9, **REASON)


# ---- undo


def test_undo_brings_back_the_state_before_a_reset(shop: Shop) -> None:
    three_runs(shop)
    before = shop.store.head("copy")
    reset(shop.store, "copy", **REASON)
    undo(shop.store, "copy", **REASON)

    after = shop.store.head("copy")
    assert after.contexts == before.contexts
    assert (after.epoch, after.data_run_number) == (3, 3)
    assert lines_of_next_run(shop) == []
    assert [r.key.number for r in living(shop)] == [1, 2, 3, 4]


def test_undo_undoes_the_runs_made_since(shop: Shop) -> None:
    three_runs(shop)
    rewind(shop.store, "copy", 1, **REASON)
    shop.put("d.txt", "d1")
    shop.run()
    changed = undo(shop.store, "copy", **REASON)

    assert changed.undone == (4,)
    assert [r.key.number for r in living(shop)] == [1, 2, 3]
    assert lines_of_next_run(shop) == ["d1"]


def test_second_undo_takes_the_first_back(shop: Shop) -> None:
    three_runs(shop)
    rewind(shop.store, "copy", 1, **REASON)
    undo(shop.store, "copy", **REASON)
    undo(shop.store, "copy", **REASON)

    assert [r.key.number for r in living(shop)] == [1]
    assert lines_of_next_run(shop) == ["b1", "c1"]


def test_set_can_be_undone(shop: Shop) -> None:
    three_runs(shop)
    shop.put("d.txt", "d1")
    set_position(shop.store, "copy", "raw", "now", **REASON)
    undo(shop.store, "copy", **REASON)

    assert lines_of_next_run(shop) == ["d1"]


def test_nothing_to_undo_is_an_error(shop: Shop) -> None:
    three_runs(shop)
    with pytest.raises(ChangeRefusedError, match="no reset"):
        undo(shop.store, "copy", **REASON)


def test_there_is_no_undo_after_a_clean(shop: Shop) -> None:
    three_runs(shop)
    rewind(shop.store, "copy", 1, clean=True, **REASON)
    with pytest.raises(ChangeRefusedError, match="clean"):
        undo(shop.store, "copy", **REASON)


def test_undo_of_a_rewind_that_dropped_a_publish_makes_it_due_again(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    three_runs(shop)
    leave_publish_due(shop, "d", monkeypatch)
    rewind(shop.store, "copy", 3, **REASON)
    undo(shop.store, "copy", **REASON)

    assert lines_of_next_run(shop) == []
    assert shop.target_lines() == Counter(["a1", "b1", "c1", "d1"])


def test_undo_is_refused_once_the_dropped_publish_is_swept(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    three_runs(shop)
    leave_publish_due(shop, "d", monkeypatch)
    rewind(shop.store, "copy", 3, **REASON)
    shop.run()

    with pytest.raises(ChangeRefusedError, match="removed what was staged"):
        undo(shop.store, "copy", **REASON)
    assert shop.target_lines() == Counter(["a1", "b1", "c1", "d1"])


def test_consumer_that_read_before_a_reset_goes_on_after_its_undo(shop: Shop) -> None:
    three_runs(shop)
    shop.run("report", upstream="copy")
    reset(shop.store, "copy", **REASON)
    undo(shop.store, "copy", **REASON)
    shop.put("d.txt", "d1")
    shop.run()

    assert lines_of_next_run(shop, job="report", upstream="copy") == ["d1"]


def test_consumer_that_read_runs_which_an_undo_undoes_is_told(shop: Shop) -> None:
    three_runs(shop)
    rewind(shop.store, "copy", 1, **REASON)
    shop.run()
    shop.run("report", upstream="copy")
    undo(shop.store, "copy", **REASON)

    run = shop.begin("report")
    with pytest.raises(UpstreamRewoundError):
        shop.copy(run, upstream="copy")
    run.abort("told")


# ---- unlock, protected, expected version


def test_unlock_frees_a_dead_lease_and_fences_its_holder(shop: Shop) -> None:
    shop.put("a.txt", "a1")
    run = shop.begin(run_id="dead")
    shop.copy(run)
    with pytest.raises(JobBusyError, match="dead"):
        shop.begin(run_id="other")

    assert unlock(shop.store, "copy", **REASON)["held_by"] == "dead"
    assert lines_of_next_run(shop) == ["a1"]
    with pytest.raises(FencedError):
        run.commit()
    assert [event["kind"] for event in shop.store.events("copy")] == ["unlock"]
    with pytest.raises(ChangeRefusedError, match="nobody"):
        unlock(shop.store, "copy", **REASON)


def test_protected_job_is_changed_with_an_approval_only(shop: Shop) -> None:
    three_runs(shop)
    shop.store.table.transact([Update(shop.store.keys("copy").head, set={"protected": True})])
    for kind in ("reset", "rewind", "set"):
        with pytest.raises(ProtectedError, match="second person"):
            _do(shop, kind, None, force=True)
    with pytest.raises(ApprovalError, match="request nothing is not approved by now"):
        rewind(shop.store, "copy", 1, request_id="nothing", **REASON)
    assert shop.store.head("copy").epoch == 1


@pytest.mark.parametrize("kind", ["reset", "rewind", "set", "undo"])
def test_change_is_refused_once_the_version_moved(shop: Shop, kind: str) -> None:
    three_runs(shop)
    reset(shop.store, "copy", contexts=["raw"], **REASON)
    undo(shop.store, "copy", **REASON)
    seen = preview(shop.store, "copy", _change(kind))
    shop.run()

    with pytest.raises(ChangedMeanwhileError):
        _do(shop, kind, seen.version)


@pytest.mark.parametrize("kind", ["reset", "rewind", "set", "undo"])
def test_change_is_refused_under_a_lease_and_fences_when_forced(shop: Shop, kind: str) -> None:
    three_runs(shop)
    reset(shop.store, "copy", contexts=["raw"], **REASON)
    undo(shop.store, "copy", **REASON)
    run = shop.begin(run_id="holder")

    with pytest.raises(JobBusyError, match="holder"):
        _do(shop, kind, None)
    _do(shop, kind, None, force=True)
    with pytest.raises(FencedError):
        shop.copy(run)


def test_lease_that_has_run_out_does_not_hold_up_a_change(shop: Shop) -> None:
    three_runs(shop)
    shop.environment = short_lease()
    shop.begin()
    assert reset(shop.store, "copy", **REASON).undone == (1, 2, 3)


# ---- preview


def test_preview_says_what_a_change_would_do_and_writes_nothing(shop: Shop) -> None:
    three_runs(shop)
    shop.run("report", upstream="copy")
    before = list(shop.store.table.scan("test#"))
    seen = preview(shop.store, "copy", Change("rewind", to_run="1"))

    assert (seen.kept, seen.undone, seen.files, seen.bytes) == (1, (2, 3), 2, 6)
    assert seen.consumers == {"report": 3}
    assert seen.twice == (str(shop.root / "copy"),)
    assert seen.watermarks["raw"] == {"before": "2023-11-14T22:13:23.000000Z", "after": "2023-11-14T22:13:21.000000Z"}
    assert seen.to_clean == 0

    cleaned = preview(shop.store, "copy", Change("rewind", to_run="1", clean=True))
    assert (cleaned.to_clean, cleaned.twice) == (2, ())
    preview(shop.store, "copy", Change("set", ctx="raw", value="now"))
    assert list(shop.store.table.scan("test#")) == before


def test_preview_counts_a_file_once_that_two_runs_have_read(shop: Shop) -> None:
    three_runs(shop)
    shop.put("a.txt", "corrected")
    shop.run()
    seen = preview(shop.store, "copy", Change("reset"))
    assert (seen.files, seen.bytes, seen.rows) == (3, 16, None)


def test_preview_leaves_out_a_target_that_an_empty_run_wrote_nothing_to(shop: Shop) -> None:
    three_runs(shop)
    shop.run()
    assert preview(shop.store, "copy", Change("rewind", to_run="3")).twice == ()
    assert preview(shop.store, "copy", Change("rewind", to_run="2")).twice == (str(shop.root / "copy"),)


def test_reason_is_required(shop: Shop) -> None:
    three_runs(shop)
    for kind in ("reset", "rewind", "set", "undo"):
        with pytest.raises(OptionError, match="reason"):
            _do(shop, kind, None, reason=" ")
    with pytest.raises(OptionError, match="reason"):
        unlock(shop.store, "copy", reason="", who="test")


def test_each_change_leaves_an_event_with_before_and_after(shop: Shop) -> None:
    three_runs(shop)
    rewind(shop.store, "copy", 2, **REASON)
    undo(shop.store, "copy", **REASON)
    set_position(shop.store, "copy", "raw", "now", **REASON)

    events = shop.store.events("copy")
    assert [e["kind"] for e in events] == ["rewind", "undo", "set"]
    for event in events:
        assert {"who", "at", "why", "version_before", "watermarks_before", "watermarks_after"} <= set(event)


def _change(kind: str) -> Change:
    return {
        "reset": Change("reset"),
        "rewind": Change("rewind", to_run="1"),
        "set": Change("set", ctx="raw", value="now"),
        "undo": Change("undo"),
    }[kind]


def _do(shop: Shop, kind: str, version: int | None, **kwargs: Any) -> None:
    how = {**REASON, "expected_version": version, **kwargs}
    if kind == "reset":
        reset(shop.store, "copy", **how)
    elif kind == "rewind":
        rewind(shop.store, "copy", 1, **how)
    elif kind == "set":
        set_position(shop.store, "copy", "raw", "now", **how)
    else:
        undo(shop.store, "copy", **how)


def living(shop: Shop) -> list[Any]:
    head = shop.store.head("copy")
    lines = shop.store.ancestry("copy", head.epoch)
    return [r for r in shop.store.runs("copy") if r.state.is_committed and lines.is_living(r.key.number, r.epoch)]


def leave_publish_due(shop: Shop, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Commit a run that reads a new file, and does not publish."""
    shop.put(f"{name}.txt", f"{name}1")
    run = shop.begin()
    shop.copy(run)
    monkeypatch.setattr("airflow_bookmarks.lifecycle.run.leased.publish_run", _no_publish)
    with pytest.raises(PublishError):
        run.commit()
    monkeypatch.undo()
    run.abort("the disk is full")


def _no_publish(*args: object) -> int:
    raise PublishError("the disk is full")


def test_targets_stay_without_clean(shop: Shop) -> None:
    three_runs(shop)
    files = {p: p.read_bytes() for p in (shop.root / "copy").rglob("*") if p.is_file()}
    reset(shop.store, "copy", **REASON)
    assert {p: Path(p).read_bytes() for p in (shop.root / "copy").rglob("*") if p.is_file()} == files


def test_undo_says_which_change_was_made_with_clean(shop: Shop) -> None:
    shop.put("a.txt", "a")
    shop.run()
    reset(shop.store, "copy", clean=True, reason="r", who="ann")
    with pytest.raises(ChangeRefusedError, match=r"the last reset \(epoch 2\) was made with clean"):
        undo(shop.store, "copy", reason="r", who="ann")
    reset(shop.store, "copy", reason="r", who="ann")
    with pytest.raises(ChangeRefusedError, match=r"the last reset \(epoch 3\) came after one that was made with clean"):
        undo(shop.store, "copy", reason="r", who="ann")


def test_undo_of_an_undo_says_to_which_run_the_job_goes_back(shop: Shop) -> None:
    for name in "abc":
        shop.put(f"{name}.txt", name)
        shop.run()
    rewind(shop.store, "copy", 1, reason="r", who="ann")
    assert undo(shop.store, "copy", reason="r", who="ann").kept == 3
    assert preview(shop.store, "copy", Change("undo")).kept == 1
    assert undo(shop.store, "copy", reason="r", who="ann").kept == 1
    assert [one["to_run"] for one in changes(shop.store, "copy")] == [1, 3, 1]  # the record says it too
    assert [finding.code for finding in examine(shop.store)] == ["undone-files-left"]


def test_rewind_without_a_run_is_no_reset(shop: Shop) -> None:
    shop.put("a.txt", "a")
    shop.run()
    for change in (Change("rewind"), Change("reset", to_run="1")):
        with pytest.raises(OptionError, match="run"):
            preview(shop.store, "copy", change)


def test_reason_of_a_whole_book_is_refused(shop: Shop) -> None:
    shop.put("a.txt", "a")
    shop.run()
    with pytest.raises(OptionError, match="2,000 is the most"):
        reset(shop.store, "copy", reason="x" * 2001, who="ann")
