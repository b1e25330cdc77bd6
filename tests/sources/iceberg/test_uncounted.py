"""Snapshots whose writers count nothing: what they did is not known, so it is read, and never passed over."""

from __future__ import annotations

from typing import Any

import pytest

from airflow_bookmarks.core.selection.bound import Bound
from airflow_bookmarks.sources.iceberg.position import AppendedRows, ChangedRows, IcebergPlan, IcebergRecipe, WholeTable
from airflow_bookmarks.sources.iceberg.snapshots import SnapshotLog, TableSnapshotInfo
from airflow_bookmarks.sources.iceberg.source import IcebergSource, position_at
from airflow_bookmarks.sources.iceberg.window import added_by, files_of
from airflow_bookmarks.sources.source import PlanInput
from airflow_bookmarks.sources.tables.versioned import RowsChangedError, VersionOptions

COUNTED = {"added-data-files": "1", "added-files-size": "10", "added-records": "2", "total-data-files": "1"}


def line(*told: tuple[str, dict[str, str]]) -> list[TableSnapshotInfo]:
    """Return a counted first snapshot, and behind it those with these operations and summaries, numbered from 2."""
    first = TableSnapshotInfo(1, None, "append", 1, COUNTED)
    return [first, *(TableSnapshotInfo(at, at - 1, *each[:1], at, each[1]) for at, each in enumerate(told, 2))]


def planned(snapshots: list[TableSnapshotInfo], *, first: bool = False, **options: Any) -> IcebergPlan:
    """Return the plan of a run that has read snapshot 1, or nothing yet."""
    table = SnapshotLog({each.id: each for each in snapshots}, snapshots[-1].id)
    recipe = IcebergRecipe("lake.shop.orders", "/lake/orders", VersionOptions(**options))
    before = None if first else position_at(snapshots[0]).encode()
    return IcebergSource(recipe, "job 'copy'", lambda: table).plan(PlanInput(before))


def test_append_is_read() -> None:
    plan = planned(line(("append", {})))
    assert plan.pieces == (AppendedRows(1, 2),)
    assert (plan.files, plan.size_bytes, plan.rows) == (None, None, None)
    assert plan.summary() == "processing an unknown number of files behind snapshot 1 up to snapshot 2"
    assert IcebergPlan.decode(plan.encode()) == plan
    assert "files" not in plan.stats()


@pytest.mark.parametrize("operation", ["overwrite", "delete", ""])
def test_change_stops_the_run(operation: str) -> None:
    with pytest.raises(RowsChangedError, match=r"snapshot 2 \((\w+|no operation named)\).*does not say.*set the cont"):
        planned(line((operation, {})))


def test_change_is_left_out_where_that_is_asked_for() -> None:
    plan = planned(line(("append", {}), ("overwrite", {})), on_change="ignore")
    assert plan.pieces == (AppendedRows(1, 3),)
    assert planned(line(("overwrite", {})), on_change="ignore").is_empty


def test_change_is_read_by_the_feed_and_makes_a_table_read_anew() -> None:
    assert planned(line(("overwrite", {})), changes=True).pieces == (ChangedRows(1, 2),)
    anew = planned(line(("overwrite", {})), on_change="reload")
    assert (anew.pieces, anew.read_again) == ((WholeTable(2),), 0)


@pytest.mark.parametrize("bound", [Bound(max_files=10), Bound(max_bytes=1_000)])
def test_bound_reads_it_by_itself(bound: Bound) -> None:
    snapshots = line(("append", COUNTED), ("append", {}), ("append", {}))
    ends: list[IcebergPlan] = []
    while not ends or ends[-1].has_more:
        ends.append(planned(snapshots[len(ends) :], bound=bound))
    assert [plan.pieces for plan in ends] == [(AppendedRows(1, 2),), (AppendedRows(2, 3),), (AppendedRows(3, 4),)]
    assert planned(snapshots, first=True, bound=bound).pieces == (WholeTable(2),)


def test_set_past_it_counts_it() -> None:
    behind = line(("append", {}), ("overwrite", {}), ("replace", {}))[1:]
    assert added_by(behind, VersionOptions()) == behind[:2]
    assert files_of(added_by(behind, VersionOptions())) is None


def test_deletes_of_whole_files_have_no_bytes() -> None:
    gone = {"deleted-data-files": "1", "total-data-files": "0"}
    plan = planned(line(("delete", gone), ("append", COUNTED)), changes=True, bound=Bound(max_bytes=15))
    assert (plan.pieces, plan.files, plan.size_bytes) == ((ChangedRows(1, 3),), 2, 10)
