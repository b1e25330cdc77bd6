"""A run that has landed in one table of two: the next one stops until a person has said what it counts as."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from airflow_bookmarks.core.errors import (
    ChangedMeanwhileError,
    ChangeRefusedError,
    FencedError,
    JobBusyError,
    MisuseError,
    OptionError,
    PartlyLandedError,
)
from airflow_bookmarks.core.job import RunIdentity
from airflow_bookmarks.core.option import Settlement
from airflow_bookmarks.core.run import RunState
from airflow_bookmarks.lifecycle.changes.change import reset
from airflow_bookmarks.lifecycle.changes.settle import find_partly_landed, settle
from airflow_bookmarks.lifecycle.protocol.recover import recover
from airflow_bookmarks.lifecycle.run.enabled import ActiveRun
from airflow_bookmarks.sinks.registry import SINKS
from airflow_bookmarks.sinks.staging import Staged, StagingRequest
from airflow_bookmarks.sources.files.planner import FileSource
from airflow_bookmarks.store.bookmark_store import BookmarkStore, LeaseGrant
from tests.lifecycle.rows import RowTables
from tests.lifecycle.shop import FILES, Shop


@pytest.fixture
def tables(tmp_path: Path) -> RowTables:
    """Open two empty tables."""
    return RowTables(tmp_path)


def begin(shop: Shop, tables: RowTables, attempt: int) -> ActiveRun:
    return shop.begin(run_id="task", attempt=attempt, sinks=SINKS.extended(tables))


def fence_of(run: ActiveRun) -> int:
    return int(run.token.rsplit("/", 1)[1])


def placed(shop: Shop, run: ActiveRun) -> list[str]:
    """Plan, place both outputs, and return what is to be written."""
    plan = run.plan("raw", FileSource(FILES, [str(shop.raw)]))
    run.place_landings({name: StagingRequest(RowTables.kind, f"row-tables://{name}") for name in ("day", "region")})
    return [line for path in plan.files.paths for line in Path(path).read_text().splitlines()]


def write(tables: RowTables, run: ActiveRun, outputs: Iterable[str], lines: list[str]) -> None:
    for output in outputs:
        assert tables.table(output).write(fence_of(run), lines)
        run.staged(output, Staged((), rows=len(lines)))


def finish(shop: Shop, tables: RowTables, run: ActiveRun) -> list[str]:
    lines = placed(shop, run)
    write(tables, run, ("day", "region"), lines)
    run.commit()
    return lines


@pytest.mark.parametrize("is_gone", [True, False])
def test_input_that_changes_while_rows_land_is_told(
    shop: Shop, tables: RowTables, caplog: pytest.LogCaptureFixture, *, is_gone: bool
) -> None:
    shop.put("a.txt", "a")
    shop.put("b.txt", "b")
    run = begin(shop, tables, 1)
    lines = placed(shop, run)
    if is_gone:
        (shop.raw / "a.txt").unlink()
    else:
        shop.put("a.txt", "another a")
    write(tables, run, ("day", "region"), lines)

    run.commit()

    assert "1 file(s) changed or went" in caplog.text
    assert "/a.txt', while rows landed in an output that commits by itself" in caplog.text


def half_landed(shop: Shop, tables: RowTables) -> ActiveRun:
    """Leave run 1, whose driver wrote one table and then died."""
    shop.put("a.txt", "a")
    dead = begin(shop, tables, 1)
    write(tables, dead, ["day"], placed(shop, dead))
    return dead


def asked(shop: Shop, tables: RowTables, attempt: int = 2) -> PartlyLandedError:
    with pytest.raises(PartlyLandedError) as raised:
        begin(shop, tables, attempt)
    return raised.value


def decide(shop: Shop, settled_as: Settlement, number: int = 1) -> dict[str, Any]:
    return settle(shop.store, "copy", number, settled_as, reason="a test", who="me")


def test_next_run_stops_and_says_where_the_rows_are(shop: Shop, tables: RowTables) -> None:
    half_landed(shop, tables)

    error = asked(shop, tables)

    assert (error.number, error.landed, error.missing) == (
        1, ("output 'day' (row-tables://day)",), ("output 'region' (row-tables://region)",)
    )  # fmt: skip
    assert "airflow-bookmarks settle copy --run 1 --as committed" in str(error)
    head = shop.store.head("copy")
    assert (head.run_number, head.lease) == (0, None)
    assert asked(shop, tables, 3).number == 1  # and so does each one after it
    assert [run.state for run in shop.store.runs("copy")] == [RunState.PLANNED]


def test_what_has_landed_counts_and_the_rest_stays_missing(shop: Shop, tables: RowTables) -> None:
    half_landed(shop, tables)
    asked(shop, tables)
    shop.put("b.txt", "b")

    assert decide(shop, "committed") == {"job": "copy", "change": "settle", "run": 1, "settled_as": "committed"}

    assert finish(shop, tables, begin(shop, tables, 3)) == ["b"]
    assert (tables.table("day").lines(), tables.table("region").lines()) == (["a", "b"], ["b"])
    first = shop.store.committed_run("copy", 1)
    assert first is not None
    assert {name: entry.makes_visible for name, entry in first.outputs.items()} == {"day": True, "region": False}
    assert first.outputs["region"].stats["rows"] == 0
    assert first.outputs["region"].metadata.settled_as == "committed"


def test_input_is_read_again_where_the_run_is_given_up(
    shop: Shop, tables: RowTables, caplog: pytest.LogCaptureFixture
) -> None:
    half_landed(shop, tables)
    asked(shop, tables)
    decide(shop, "given-up")

    assert finish(shop, tables, begin(shop, tables, 3)) == ["a"]
    assert (tables.table("day").lines(), tables.table("region").lines()) == (["a", "a"], ["a"])
    assert "had landed in row-tables://day" in caplog.text
    assert [run.state for run in shop.store.runs("copy")] == [RunState.ABANDONED, RunState.PUBLISHED]


def test_decision_can_be_changed_until_the_next_run_begins(shop: Shop, tables: RowTables) -> None:
    half_landed(shop, tables)
    asked(shop, tables)
    decide(shop, "given-up")
    decide(shop, "committed")

    found = find_partly_landed(shop.store, "copy")
    assert found is not None
    assert (found.number, found.settled_as) == (1, "committed")
    assert finish(shop, tables, begin(shop, tables, 3)) == []
    assert find_partly_landed(shop.store, "copy") is None


def test_decision_is_in_the_history(shop: Shop, tables: RowTables) -> None:
    half_landed(shop, tables)
    asked(shop, tables)
    decide(shop, "committed")

    event = shop.store.events("copy")[-1]
    assert {name: event[name] for name in ("kind", "who", "why", "value")} == {
        "kind": "settle", "who": "me", "why": "a test", "value": "committed"
    }  # fmt: skip


@pytest.mark.parametrize("landed", [(), ("day", "region")])
def test_run_that_is_in_none_or_in_both_needs_nobody(shop: Shop, tables: RowTables, landed: tuple[str, ...]) -> None:
    shop.put("a.txt", "a")
    dead = begin(shop, tables, 1)
    write(tables, dead, landed, placed(shop, dead))

    assert finish(shop, tables, begin(shop, tables, 2)) == ([] if landed else ["a"])
    assert (tables.table("day").lines(), tables.table("region").lines()) == (["a"], ["a"])


def test_late_write_of_the_dead_driver_finds_its_token_burned(shop: Shop, tables: RowTables) -> None:
    dead = half_landed(shop, tables)
    asked(shop, tables)

    assert not tables.table("region").write(fence_of(dead), ["a"])
    dead.staged("region", Staged((), rows=1))
    with pytest.raises(FencedError):
        dead.commit()


def test_job_that_was_reset_since_reads_again_without_a_question(
    shop: Shop, tables: RowTables, caplog: pytest.LogCaptureFixture
) -> None:
    shop.put("0.txt", "0")
    finish(shop, tables, begin(shop, tables, 1))
    shop.put("a.txt", "a")
    dead = shop.begin(run_id="other", sinks=SINKS.extended(tables))
    write(tables, dead, ["day"], placed(shop, dead))
    reset(shop.store, "copy", reason="a test", who="me", force=True)

    heir = shop.begin(run_id="third", sinks=SINKS.extended(tables))
    assert sorted(finish(shop, tables, heir)) == ["0", "a"]
    assert "had landed in row-tables://day" in caplog.text


def test_heir_that_dies_before_its_commit_leaves_the_decision_to_the_next(shop: Shop, tables: RowTables) -> None:
    half_landed(shop, tables)
    asked(shop, tables)
    decide(shop, "committed")
    seen = shop.store.snapshot("copy", "task")
    heir = shop.store.take("copy", RunIdentity("task", 3), seen, shop.environment.lease_time)
    assert heir is not None
    _, adopted = recover(shop.store, heir, shop.environment, SINKS.extended(tables))
    assert adopted is not None

    assert finish(shop, tables, begin(shop, tables, 4)) == []
    assert (tables.table("day").lines(), tables.table("region").lines()) == (["a"], [])


def test_staged_output_is_published_with_a_run_that_counts(shop: Shop, tables: RowTables) -> None:
    shop.put("a.txt", "a")
    dead = begin(shop, tables, 1)
    lines = shop.copy(dead)
    dead.place_landings({name: StagingRequest(RowTables.kind, f"row-tables://{name}") for name in ("day", "region")})
    write(tables, dead, ["region"], lines)
    assert asked(shop, tables).missing == ("output 'day' (row-tables://day)",)
    assert shop.target_lines() == {}
    decide(shop, "committed")

    begin(shop, tables, 3).abort("only to recover")

    assert shop.target_lines() == {"a": 1}


@pytest.mark.parametrize("number", [1, 2])
def test_run_that_nobody_was_asked_about_is_not_settled(shop: Shop, tables: RowTables, number: int) -> None:
    half_landed(shop, tables)
    if number == 2:
        asked(shop, tables)

    with pytest.raises(ChangeRefusedError, match=f"run {number} is not known to have landed in some"):
        decide(shop, "committed", number)
    assert [event["kind"] for event in shop.store.events("copy")] == []


def test_decision_needs_a_reason_and_one_of_two_words(shop: Shop, tables: RowTables) -> None:
    half_landed(shop, tables)
    asked(shop, tables)
    with pytest.raises(OptionError, match="needs a reason"):
        settle(shop.store, "copy", 1, "committed", reason=" ", who="me")
    with pytest.raises(OptionError, match="settled_as='keep': expected one of 'committed', 'given-up'"):
        settle(shop.store, "copy", 1, "keep", reason="a test", who="me")  # type: ignore[arg-type]


def test_decision_that_comes_after_the_next_run_has_settled_it_changes_nothing(
    shop: Shop, tables: RowTables, monkeypatch: pytest.MonkeyPatch
) -> None:
    half_landed(shop, tables)
    asked(shop, tables)
    decide(shop, "committed")
    store_decision = BookmarkStore.settle

    def after_the_next_run(*given: Any) -> bool:
        begin(shop, tables, 3).abort("only to recover")
        return store_decision(*given)

    monkeypatch.setattr(BookmarkStore, "settle", after_the_next_run)
    with pytest.raises(ChangedMeanwhileError):
        decide(shop, "given-up")
    assert shop.store.head("copy").run_number == 1


def take(shop: Shop, attempt: int, lease_time: timedelta) -> LeaseGrant:
    grant = shop.store.take("copy", RunIdentity("task", attempt), shop.store.snapshot("copy", "task"), lease_time)
    assert grant is not None
    return grant


@pytest.mark.parametrize("step", ["note_outputs", "adopt"])
def test_decision_is_refused_while_a_run_that_has_begun_acts_on_what_was_said_before(
    shop: Shop, tables: RowTables, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    half_landed(shop, tables)
    asked(shop, tables)
    if step == "adopt":
        decide(shop, "committed")
    do = getattr(BookmarkStore, step)

    def after_a_word(*given: Any) -> Any:
        with pytest.raises(JobBusyError):
            decide(shop, "given-up")
        return do(*given)

    monkeypatch.setattr(BookmarkStore, step, after_a_word)
    if step == "adopt":
        assert finish(shop, tables, begin(shop, tables, 3)) == []
        return
    asked(shop, tables, 3)
    assert decide(shop, "given-up")["settled_as"] == "given-up"


def test_decision_that_comes_while_a_run_begins_changes_nothing(
    shop: Shop, tables: RowTables, monkeypatch: pytest.MonkeyPatch
) -> None:
    half_landed(shop, tables)
    asked(shop, tables)
    store_decision = BookmarkStore.settle

    def after_a_begin(*given: Any) -> bool:
        take(shop, 3, shop.environment.lease_time)
        return store_decision(*given)

    monkeypatch.setattr(BookmarkStore, "settle", after_a_begin)
    with pytest.raises(ChangedMeanwhileError, match="another run has begun"):
        decide(shop, "committed")
    found = find_partly_landed(shop.store, "copy")
    assert found is not None
    assert found.settled_as is None


def test_driver_whose_lease_has_expired_acts_on_no_decision_any_more(shop: Shop, tables: RowTables) -> None:
    half_landed(shop, tables)
    asked(shop, tables)
    decide(shop, "committed")
    slow = take(shop, 3, timedelta(0))
    (run,) = shop.store.open_runs("copy", shop.store.head("copy"))

    decide(shop, "given-up")

    with pytest.raises(FencedError):
        shop.store.adopt(slow, run)
    assert finish(shop, tables, begin(shop, tables, 4)) == ["a"]


def test_another_output_is_refused_once_outputs_that_commit_by_themselves_are_placed(
    shop: Shop, tables: RowTables
) -> None:
    shop.put("a.txt", "a")
    run = begin(shop, tables, 1)
    placed(shop, run)
    with pytest.raises(MisuseError, match="two of its kind are placed together"):
        run.place("third", StagingRequest(RowTables.kind, "row-tables://third"))
    run.abort("a test")
