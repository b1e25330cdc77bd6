"""Recovery with a sink that commits by itself: what has landed is taken over, what has not is burned and done again."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from airflow_bookmarks.core.errors import (
    FencedError,
    MisuseError,
    NotCommittedError,
    SinkUnknownError,
    SourceChangedError,
)
from airflow_bookmarks.core.job import RunIdentity
from airflow_bookmarks.core.run import RunState
from airflow_bookmarks.lifecycle.changes.change import reset, rewind, set_state
from airflow_bookmarks.lifecycle.protocol.failpoint import Failpoint, no_fault
from airflow_bookmarks.lifecycle.protocol.finish import finish as finish_execution
from airflow_bookmarks.lifecycle.protocol.recover import recover
from airflow_bookmarks.lifecycle.run.enabled import ActiveRun
from airflow_bookmarks.lifecycle.state.job_state import JobStates
from airflow_bookmarks.sinks.registry import SINKS, SinkRegistry
from airflow_bookmarks.sinks.sink import StoredOutput
from airflow_bookmarks.sinks.staging import Staged, StagingRequest
from airflow_bookmarks.sources.files.planner import FileSource
from airflow_bookmarks.store.table import Update
from tests.lifecycle.rows import Rows
from tests.lifecycle.shop import FILES, Shop


@pytest.fixture
def rows(tmp_path: Path) -> Rows:
    """Open an empty sink."""
    return Rows(tmp_path / "rows.db")


def begin(shop: Shop, rows: Rows, attempt: int, run_id: str = "task") -> ActiveRun:
    return shop.begin(run_id=run_id, attempt=attempt, sinks=SINKS.extended(rows))


def plan_and_place(shop: Shop, run: ActiveRun) -> list[str]:
    plan = run.plan("raw", FileSource(FILES, [str(shop.raw)]))
    run.place("out", StagingRequest(Rows.kind, str(shop.root / "rows")))
    return [line for path in plan.files.paths for line in Path(path).read_text().splitlines()]


def fence_of(run: ActiveRun) -> int:
    return int(run.token.rsplit("/", 1)[1])


def finish(shop: Shop, rows: Rows, run: ActiveRun) -> list[str]:
    lines = plan_and_place(shop, run)
    assert rows.write(fence_of(run), lines)
    run.staged("out", Staged((), rows=len(lines)))
    run.commit()
    return lines


def test_landed_rows_are_committed_as_planned_and_not_read_again(shop: Shop, rows: Rows) -> None:
    shop.put("a.txt", "a")
    dead = begin(shop, rows, 1)
    rows.write(fence_of(dead), plan_and_place(shop, dead))
    shop.put("b.txt", "b")
    heir = begin(shop, rows, 2)
    assert shop.store.head("copy").run_number == 1
    assert finish(shop, rows, heir) == ["b"]
    assert rows.lines() == ["a", "b"]
    states = [run.state for run in shop.store.runs("copy")]
    assert states == [RunState.ABANDONED, RunState.PUBLISHED, RunState.PUBLISHED]


def test_landed_rows_are_taken_over_again_from_an_heir_that_died_before_its_commit(shop: Shop, rows: Rows) -> None:
    shop.put("a.txt", "a")
    dead = begin(shop, rows, 1)
    rows.write(fence_of(dead), plan_and_place(shop, dead))
    seen = shop.store.snapshot("copy", "task")
    heir = shop.store.take("copy", RunIdentity("task", 2), seen, shop.environment.lease_time)
    assert heir is not None
    _, adopted = recover(shop.store, heir, shop.environment, SINKS.extended(rows))
    assert adopted is not None

    assert finish(shop, rows, begin(shop, rows, 3)) == []
    assert rows.lines() == ["a"]


def test_late_write_of_a_dead_driver_finds_its_token_burned(shop: Shop, rows: Rows) -> None:
    shop.put("a.txt", "a")
    late = begin(shop, rows, 1)
    lines = plan_and_place(shop, late)
    heir = begin(shop, rows, 2)
    assert not rows.write(fence_of(late), lines)
    assert finish(shop, rows, heir) == ["a"]
    late.staged("out", Staged(()))
    with pytest.raises(FencedError):
        late.commit()
    assert rows.lines() == ["a"]


def test_landed_rows_are_carried_over_a_rewind_that_moved_nothing(shop: Shop, rows: Rows) -> None:
    shop.put("a.txt", "a")
    finish(shop, rows, begin(shop, rows, 1, "first"))
    shop.put("b.txt", "b")
    dead = begin(shop, rows, 1)
    rows.write(fence_of(dead), plan_and_place(shop, dead))
    rewind(shop.store, "copy", 1, reason="a test", who="me", force=True)
    heir = begin(shop, rows, 2)
    assert finish(shop, rows, heir) == []
    assert rows.lines() == ["a", "b"]


def test_landed_rows_of_another_position_are_given_up(shop: Shop, rows: Rows, caplog: pytest.LogCaptureFixture) -> None:
    shop.put("a.txt", "a")
    finish(shop, rows, begin(shop, rows, 1, "first"))
    shop.put("b.txt", "b")
    dead = begin(shop, rows, 1)
    rows.write(fence_of(dead), plan_and_place(shop, dead))
    reset(shop.store, "copy", reason="a test", who="me", force=True)
    heir = begin(shop, rows, 2)
    assert "had landed in" in caplog.text
    assert sorted(finish(shop, rows, heir)) == ["a", "b"]


def test_staged_output_is_taken_over_with_the_rows_that_landed(shop: Shop, rows: Rows) -> None:
    shop.put("a.txt", "a")
    dead = begin(shop, rows, 1)
    lines = shop.copy(dead)
    dead.place("rows", StagingRequest(Rows.kind, str(shop.root / "rows")))
    rows.write(fence_of(dead), lines)

    begin(shop, rows, 2).abort("only to recover")

    assert rows.lines() == ["a"]
    assert shop.target_lines() == {"a": 1}
    assert shop.store.head("copy").published == 1


def test_run_that_is_taken_over_is_published_with_the_sinks_of_the_job(
    shop: Shop, rows: Rows, monkeypatch: pytest.MonkeyPatch
) -> None:
    published: list[SinkRegistry] = []

    def publish(*given: object) -> int:
        published.append(cast(SinkRegistry, given[4]))
        return 0

    shop.put("a.txt", "a")
    dead = begin(shop, rows, 1)
    rows.write(fence_of(dead), plan_and_place(shop, dead))
    monkeypatch.setattr("airflow_bookmarks.lifecycle.run.leased.publish_run", publish)

    begin(shop, rows, 2).abort("only to recover")

    assert [sinks.find(Rows.kind) for sinks in published] == [rows]


def test_sink_that_commits_by_itself_comes_last_and_alone(shop: Shop, rows: Rows) -> None:
    shop.put("a.txt", "a")
    run = begin(shop, rows, 1)
    shop.copy(run)
    run.place("rows", StagingRequest(Rows.kind, str(shop.root / "rows")))

    with pytest.raises(MisuseError, match="commits by itself"):
        run.place("more", StagingRequest(Rows.kind, str(shop.root / "more")))
    with pytest.raises(MisuseError, match="commits by itself"):
        run.place("files", StagingRequest("files", str(shop.root / "files")))


def test_sink_that_commits_by_itself_waits_until_all_else_is_staged(shop: Shop, rows: Rows) -> None:
    shop.put("a.txt", "a")
    run = begin(shop, rows, 1)
    run.plan("raw", FileSource(FILES, [str(shop.raw)]))
    run.place("out", StagingRequest("files", str(shop.root / "copy")))

    with pytest.raises(MisuseError, match="not written"):
        run.place("rows", StagingRequest(Rows.kind, str(shop.root / "rows")))


def test_input_is_looked_at_again_before_rows_land_that_cannot_be_taken_back(shop: Shop, rows: Rows) -> None:
    shop.put("a.txt", "a")
    run = begin(shop, rows, 1)
    lines = shop.copy(run)
    shop.put("a.txt", "another", seconds=1_800_000_000)

    with pytest.raises(SourceChangedError):
        run.place("rows", StagingRequest(Rows.kind, str(shop.root / "rows")))
    run.abort("changed")
    assert lines == ["a"]
    assert rows.lines() == []


def test_worker_does_not_take_a_run_that_was_taken_over_for_the_own_one(shop: Shop, rows: Rows) -> None:
    shop.put("a.txt", "a")
    dead = begin(shop, rows, 1)
    lines = shop.copy(dead)
    dead.place("rows", StagingRequest(Rows.kind, str(shop.root / "rows")))
    rows.write(fence_of(dead), lines)
    shop.environment = replace(shop.environment, at=_die_when_published)
    with pytest.raises(KeyboardInterrupt):
        begin(shop, rows, 2)
    shop.environment = replace(shop.environment, at=no_fault)

    with pytest.raises(NotCommittedError, match="Run the task again"):
        finish_execution(shop.store, "copy", RunIdentity("task", 2), shop.environment)
    assert shop.target_lines() == {"a": 1}
    assert shop.store.head("copy").published == 1


def _die_when_published(point: Failpoint) -> None:
    if point is Failpoint.PUBLISHED:
        raise KeyboardInterrupt


def test_columns_of_the_run_before_stay_known_behind_a_run_that_was_taken_over(shop: Shop, rows: Rows) -> None:
    shop.put("a.txt", "a")
    first = begin(shop, rows, 1, run_id="first")
    lines = plan_and_place(shop, first)
    first.set_schema("raw", '{"type": "struct", "fields": []}')
    assert rows.write(fence_of(first), lines)
    first.staged("out", Staged((), rows=1))
    first.commit()
    shop.put("b.txt", "b")
    dead = begin(shop, rows, 1)
    rows.write(fence_of(dead), plan_and_place(shop, dead))
    heir = begin(shop, rows, 2)
    assert shop.store.head("copy").run_number == 2
    assert heir.known_schema("raw") == '{"type": "struct", "fields": []}'


# ---- job.state


def write(shop: Shop, rows: Rows, run: ActiveRun, cursor: int | None = None) -> None:
    """Read, set the cursor (None: only read it), and let the rows land."""
    plan = run.plan("raw", FileSource(FILES, [str(shop.raw)]))
    if cursor is None:
        run.state("cursor").get()
    else:
        run.state("cursor").set(cursor)
    run.place("out", StagingRequest(Rows.kind, str(shop.root / "rows")))
    lines = [line for path in plan.files.paths for line in Path(path).read_text().splitlines()]
    assert rows.write(fence_of(run), lines)
    run.staged("out", Staged((), rows=len(lines)))


def test_state_that_a_dead_driver_set_is_committed_with_its_rows(shop: Shop, rows: Rows) -> None:
    shop.put("a.txt", "a")
    first = begin(shop, rows, 1, "first")
    write(shop, rows, first, cursor=1)
    first.commit()
    shop.put("b.txt", "b")
    write(shop, rows, begin(shop, rows, 1), cursor=2)

    heir = begin(shop, rows, 2)

    assert heir.state("cursor").get() == 2
    run = shop.store.committed_run("copy", 2)
    assert run is not None
    assert run.metrics["state"] == {"from": "1.1", "names": ["cursor"]}
    assert JobStates.seen_by(shop.store, "copy", run).get("cursor", None) == 1
    heir.abort("done looking")
    rewind(shop.store, "copy", 1, reason="a test", who="me")
    assert begin(shop, rows, 3).state("cursor").get() == 1


def test_state_without_a_source_is_committed_with_the_rows_that_it_brought(shop: Shop, rows: Rows) -> None:
    dead = begin(shop, rows, 1)
    dead.state("cursor").set("page 2")
    dead.place("out", StagingRequest(Rows.kind, str(shop.root / "rows")))
    rows.write(fence_of(dead), ["page 1"])

    heir = begin(shop, rows, 2)

    assert heir.state("cursor").get() == "page 2"
    run = shop.store.committed_run("copy", 1)
    assert (run is not None and not run.is_empty, shop.store.head("copy").data_run_number) == (True, 1)


def test_state_is_taken_over_again_from_an_heir_that_died_before_its_commit(shop: Shop, rows: Rows) -> None:
    shop.put("a.txt", "a")
    write(shop, rows, begin(shop, rows, 1), cursor=1)
    seen = shop.store.snapshot("copy", "task")
    heir = shop.store.take("copy", RunIdentity("task", 2), seen, shop.environment.lease_time)
    assert heir is not None
    recover(shop.store, heir, shop.environment, SINKS.extended(rows))

    assert begin(shop, rows, 3).state("cursor").get() == 1


def test_state_that_was_only_read_stays_and_is_on_the_record(shop: Shop, rows: Rows) -> None:
    shop.put("a.txt", "a")
    write(shop, rows, begin(shop, rows, 1))
    heir = begin(shop, rows, 2)
    assert heir.state("cursor").get("absent") == "absent"
    run = shop.store.committed_run("copy", 1)
    assert run is not None
    assert run.metrics["state"] == {"from": None, "names": []}
    assert list(shop.store.head("copy").contexts) == ["raw"]


def test_run_whose_rows_did_not_land_leaves_the_state_of_before_it(shop: Shop, rows: Rows) -> None:
    shop.put("a.txt", "a")
    first = begin(shop, rows, 1, "first")
    write(shop, rows, first, cursor=1)
    first.commit()
    shop.put("b.txt", "b")
    dead = begin(shop, rows, 1)
    dead.plan("raw", FileSource(FILES, [str(shop.raw)]))
    dead.state("cursor").set(2)
    dead.place("out", StagingRequest(Rows.kind, str(shop.root / "rows")))

    assert begin(shop, rows, 2).state("cursor").get() == 1


def test_rows_that_were_made_from_a_state_that_a_person_has_set_since_are_given_up(shop: Shop, rows: Rows) -> None:
    shop.put("a.txt", "a")
    write(shop, rows, begin(shop, rows, 1), cursor=1)
    set_state(shop.store, "copy", "cursor", "by hand", reason="a test", who="me", force=True)

    heir = begin(shop, rows, 2)

    assert heir.state("cursor").get() == "by hand"
    assert shop.store.head("copy").run_number == 0


def test_large_state_is_taken_over(shop: Shop, rows: Rows) -> None:
    shop.put("a.txt", "a")
    dead = begin(shop, rows, 1)
    dead.state("more").set("x" * 16_000)
    write(shop, rows, dead, cursor=1)
    heir = begin(shop, rows, 2)
    assert (len(heir.state("more").get()), heir.state("cursor").get()) == (16_000, 1)


def test_open_run_of_a_version_that_did_not_store_the_state_is_taken_over_without_it(shop: Shop, rows: Rows) -> None:
    shop.put("a.txt", "a")
    write(shop, rows, begin(shop, rows, 1), cursor=1)
    (run,) = shop.store.runs("copy")
    shop.store.table.transact([Update(shop.store.keys("copy").run(run.key), remove=["job_state"])])
    heir = begin(shop, rows, 2)
    assert (heir.state("cursor").get(), shop.store.head("copy").run_number) == (None, 1)


@pytest.mark.parametrize("what", ["read", "set state"])
def test_nothing_is_read_or_set_after_an_output_that_commits_by_itself(shop: Shop, rows: Rows, what: str) -> None:
    shop.put("a.txt", "a")
    shop.put("../more/b.txt", "b")
    run = begin(shop, rows, 1)
    write(shop, rows, run, cursor=1)
    late: dict[str, Callable[[], object]] = {
        "read": lambda: run.plan("more", FileSource(FILES, [str(shop.root / "more")])),
        "set state": lambda: run.state("cursor").set(2),
    }
    with pytest.raises(MisuseError, match=rf"{what} '\w+' after an output that commits by itself.*before that write"):
        late[what]()
    assert run.state("cursor").get() == 1
    run.commit()
    (stored,) = shop.store.runs("copy")
    assert (list(stored.plans), begin(shop, rows, 1, "next").state("cursor").get()) == (["raw"], 1)


def test_publish_that_another_run_finishes_has_the_state_of_its_run(shop: Shop, rows: Rows) -> None:
    shop.put("a.txt", "a")
    shop.environment = replace(shop.environment, at=_die_when_published)
    dead = begin(shop, rows, 1)
    shop.copy(dead)
    dead.state("cursor").set(1)
    with pytest.raises(KeyboardInterrupt):
        dead.commit()
    shop.environment = replace(shop.environment, at=no_fault)
    assert begin(shop, rows, 2).state("cursor").get() == 1
    assert shop.target_lines() == {"a": 1}


class OutOfReach(Rows):
    """Rows that another process reaches, and this one does not."""

    def why_not_here(self) -> str:
        return "only its own server tells"


def test_open_run_whose_sink_can_not_be_asked_from_here_is_refused_and_left(
    shop: Shop, rows: Rows, tmp_path: Path
) -> None:
    shop.put("a.txt", "a")
    dead = begin(shop, rows, 1)
    rows.write(fence_of(dead), plan_and_place(shop, dead))
    with pytest.raises(SinkUnknownError, match="only its own server tells"):
        begin(shop, OutOfReach(tmp_path / "rows.db"), 2)
    assert [run.state for run in shop.store.open_runs("copy", shop.store.head("copy"))] == [RunState.PLANNED]
    begin(shop, rows, 3).abort("only to recover")
    assert shop.store.head("copy").run_number == 1


class Counted(Rows):
    """Rows that are counted by the sink itself."""

    def figures(self, output: StoredOutput) -> Mapping[str, Any]:
        return {"rows": len(self.lines())}


def test_run_that_is_taken_over_is_recorded_with_what_its_sink_tells(shop: Shop, tmp_path: Path) -> None:
    rows = Counted(tmp_path / "rows.db")
    shop.put("a.txt", "a", "b")
    dead = begin(shop, rows, 1)
    rows.write(fence_of(dead), plan_and_place(shop, dead))
    begin(shop, rows, 2).abort("only to recover")
    (run,) = [each for each in shop.store.runs("copy") if each.state is RunState.PUBLISHED]
    assert run.outputs["out"].metadata.rows == 2


def test_unfinished_write_keeps_rows_from_landing(shop: Shop, rows: Rows) -> None:
    shop.put("a.txt", "a")
    run = begin(shop, rows, 1)
    run.plan("raw", FileSource(FILES, [str(shop.raw)]))
    run.begin_write("files")
    with pytest.raises(MisuseError, match="output 'files' was not written"):
        run.place("rows", StagingRequest(Rows.kind, str(shop.root / "rows")))


def test_failed_read_keeps_rows_from_landing(shop: Shop, rows: Rows) -> None:
    shop.put("a.txt", "a")
    run = begin(shop, rows, 1)
    run.plan("raw", FileSource(FILES, [str(shop.raw)]))
    run.set_failed("raw", "no such folder")
    with pytest.raises(MisuseError, match="'raw' was planned and not read"):
        run.place("rows", StagingRequest(Rows.kind, str(shop.root / "rows")))


@pytest.mark.parametrize(
    ("has_input", "stats", "has_rows", "lands"),
    [
        (True, {}, False, True),
        (False, {}, False, False),
        (False, {}, True, True),
        (False, {"mode": "overwrite"}, True, False),
        (False, {"when_empty": "publish", "mode": "overwrite"}, False, True),
        (False, {"when_empty": "discard"}, True, False),
    ],
)
def test_output_lands_as_it_would_be_published(
    shop: Shop, rows: Rows, has_input: bool, stats: Mapping[str, Any], has_rows: bool, lands: bool
) -> None:
    if has_input:
        shop.put("a.txt", "a")
    run = begin(shop, rows, 1)
    run.plan("raw", FileSource(FILES, [str(shop.raw)]))
    request = StagingRequest(Rows.kind, str(shop.root / "rows"), stats=stats)
    assert run.is_to_land(request, ["raw"], lambda: has_rows) is lands


def test_output_that_does_not_land_is_recorded_as_left_out(shop: Shop, rows: Rows) -> None:
    run = begin(shop, rows, 1)
    run.plan("raw", FileSource(FILES, [str(shop.raw)]))
    run.leave_out("out", StagingRequest(Rows.kind, str(shop.root / "rows")), Staged((), rows=None))
    assert run.commit().is_empty
    (left,) = shop.store.runs("copy")
    assert (left.outputs["out"].is_left_out, left.outputs["out"].stats["discarded"]) == (True, True)
    assert rows.lines() == []
