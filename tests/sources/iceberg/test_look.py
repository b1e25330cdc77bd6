"""Looks at tables that pyiceberg has written, and plans of what is new there: all without Spark."""

from __future__ import annotations

import builtins
import json
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyiceberg", reason="no pyiceberg, which is an extra")

from airflow_bookmarks.core.errors import OptionError, SourceError, SourceMissingError, SourceSwitchedError
from airflow_bookmarks.core.rules.start import BEGINNING, Start
from airflow_bookmarks.core.selection.bound import Bound
from airflow_bookmarks.sources.iceberg.kind import IcebergKind
from airflow_bookmarks.sources.iceberg.look import look
from airflow_bookmarks.sources.iceberg.position import AppendedRows, ChangedRows, IcebergPlan, IcebergRecipe, WholeTable
from airflow_bookmarks.sources.iceberg.source import IcebergSource
from airflow_bookmarks.sources.source import PlanInput
from airflow_bookmarks.sources.tables.versioned import RowsChangedError, VersionGoneError, VersionOptions
from airflow_bookmarks.testing.memory import memory_store
from tests.sources.iceberg.tables import OwnTable

NAME = "lake.shop.orders"


@pytest.fixture
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> OwnTable:
    return OwnTable(tmp_path, monkeypatch)


class Reading:
    """A context that reads the table: each plan goes on from the one before."""

    def __init__(self, table: OwnTable, name: str = NAME) -> None:
        self._table, self._name = table, name
        self.position: bytes | None = None

    def source(self, on_source_change: Any = "error", **options: Any) -> IcebergSource:
        recipe = IcebergRecipe(self._name, self._table.location, VersionOptions(**options))
        return IcebergSource(recipe, "a test", lambda: look(recipe), on_source_change, "job", "ctx")

    def plan(self, start: Start = BEGINNING, **options: Any) -> IcebergPlan:
        """Plan, commit, and return the plan as it is stored."""
        source = self.source(**options)
        plan = source.plan(PlanInput(self.position, start=start))
        after = source.advance(plan)
        self.position = self.position if after is None else after.body
        return IcebergPlan.decode(plan.encode())


def test_plans_go_from_the_whole_table_to_what_was_appended(table: OwnTable) -> None:
    reading = Reading(table)
    assert reading.plan().pieces == ()
    table.add(1, 2)
    first = reading.plan()
    assert (first.pieces, first.files, first.rows) == ((WholeTable(table.ids[0]),), 1, 2)
    table.add(3)
    table.add(4, 5)
    second = reading.plan()
    assert second.pieces == (AppendedRows(table.ids[0], table.ids[2]),)
    assert (second.files, second.rows, second.stats()["snapshot_until"]) == (2, 3, str(table.ids[2]))
    assert json.dumps(second.stats())
    assert reading.plan().is_empty


def test_change_of_rows_is_named_left_out_read_anew_or_read_as_such(table: OwnTable) -> None:
    reading = Reading(table)
    table.add(1, 2)
    reading.plan()
    position = reading.position
    table.delete("id == 1")
    table.add(3)
    with pytest.raises(RowsChangedError, match=rf"snapshot {table.ids[1]} \(overwrite\)"):
        reading.plan()
    assert reading.position == position
    left = reading.plan(on_change="ignore")
    assert (left.pieces, dict(left.skipped)) == (
        (AppendedRows(table.ids[0], table.ids[2]),),
        {"rewritten": 1, "removed": 1},
    )
    reading.position = position
    anew = reading.plan(on_change="reload")
    assert (anew.pieces, anew.is_anew, anew.read_again) == ((WholeTable(table.ids[2]),), True, 2)
    reading.position = position
    assert reading.plan(changes=True).pieces == (ChangedRows(table.ids[0], table.ids[2]),)


@pytest.mark.parametrize("bound", [{"max_versions": 2}, {"bound": Bound(max_files=2)}, {"bound": Bound(max_bytes=1)}])
def test_bound_takes_whole_snapshots_and_at_least_one(table: OwnTable, bound: dict[str, Any]) -> None:
    reading = Reading(table)
    table.add(0)
    reading.plan()
    for number in range(3):
        table.add(number)
    plans = [reading.plan(**bound) for _ in range(4)]
    taken = [plan.files or 0 for plan in plans]
    assert taken in ([2, 1, 0, 0], [1, 1, 1, 0])
    assert [plan.has_more for plan in plans] == [sum(taken[: at + 1]) < 3 for at in range(4)]
    assert [plan.skipped.get("over_bound", 0) for plan in plans] == [3 - sum(taken[: at + 1]) for at in range(4)]


def test_expired_snapshots_are_told_and_not_taken_for_another_table(table: OwnTable) -> None:
    """Though pyiceberg takes its parent from the oldest one that is left, which then looks like the first."""
    reading = Reading(table)
    for number in range(2):
        table.add(number)
    reading.plan()
    for number in range(3):
        table.add(number)
    ids = table.ids
    table.expire(*ids[:3])
    assert table.table.metadata.snapshots[0].parent_snapshot_id is None
    with pytest.raises(VersionGoneError, match="have expired"):
        reading.plan()
    assert reading.plan(on_change="reload").pieces == (WholeTable(ids[4]),)


def test_plan_whose_snapshots_expire_before_the_commit_is_not_committed(table: OwnTable) -> None:
    reading = Reading(table)
    for number in range(3):
        table.add(number)
    source = reading.source()
    plan = source.plan(PlanInput(None))
    assert source.recheck(plan).moved is None
    table.add(9)
    table.expire(table.ids[2])
    assert "has expired" in str(source.recheck(plan).moved)


def test_table_made_again_is_another_one(table: OwnTable) -> None:
    reading = Reading(table)
    table.add(1)
    reading.plan()
    source = reading.source()
    table.drop()
    with pytest.raises(SourceMissingError, match="is not there"):
        source.plan(PlanInput(reading.position))
    table.make()
    table.add(2)
    with pytest.raises(SourceSwitchedError, match="dropped and made again"):
        reading.plan()
    assert reading.plan(on_source_change="reset").pieces == (WholeTable(table.ids[0]),)


def test_start_leaves_out_what_was_there(table: OwnTable) -> None:
    table.add(1)
    now = Reading(table).plan(start=Start(is_now=True))
    assert (now.pieces, dict(now.skipped)) == ((), {"before_start": 1})


def test_table_that_no_catalog_knows_is_found_by_its_folder(table: OwnTable, tmp_path: Path) -> None:
    """As tables of a catalog of folders are, which write the number of their metadata beside it."""
    table.add(1)
    newest = Path(table.table.metadata_location.removeprefix("file://"))
    newest.with_name("v1.metadata.json").write_bytes(newest.read_bytes())
    newest.with_name("version-hint.text").write_text("1")
    assert Reading(table, "other.shop.orders").plan().pieces == (WholeTable(table.ids[0]),)


def test_catalog_out_of_reach_is_said(table: OwnTable, monkeypatch: pytest.MonkeyPatch) -> None:
    reading = Reading(table)
    source = reading.source()
    monkeypatch.setenv("PYICEBERG_CATALOG__LAKE__URI", "sqlite:////nowhere/at/all.db")
    with pytest.raises(SourceError, match=r"(?s)pyiceberg does not reach .*PYICEBERG_CATALOG__LAKE__URI"):
        source.plan(PlanInput(None))


def test_without_pyiceberg_a_look_says_what_to_install(table: OwnTable, monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without(name: str, *rest: Any, **more: Any) -> Any:
        if name.startswith("pyiceberg"):
            raise ImportError(name)
        return real(name, *rest, **more)

    source = Reading(table).source()
    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(SourceError, match=r"Install airflow-provider-bookmarks\[iceberg\]"):
        source.plan(PlanInput(None))


def test_set_names_snapshots_times_and_now(table: OwnTable) -> None:
    reading, kind = Reading(table), IcebergKind()
    table.add(1)
    plan = reading.plan()
    table.add(2)
    with memory_store() as store:
        for value, snapshot in (("now", table.ids[1]), (str(table.ids[0]), table.ids[0])):
            reading.position = kind.seek(store, PlanInput(None), plan, value).body
            assert reading.plan().is_empty is (snapshot == table.ids[1])
        for value, said in (("7", "no such snapshot"), ("soon", "neither 'now'"), ("2001-01-01T00:00:00Z", "keeps no")):
            with pytest.raises(OptionError, match=said):
                kind.seek(store, PlanInput(None), plan, value)
