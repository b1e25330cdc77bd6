"""Positions and plans of Iceberg tables, as they are stored, and the way between snapshots."""

from __future__ import annotations

from dataclasses import replace

import pytest

from airflow_bookmarks.core.errors import StateCorruptError
from airflow_bookmarks.core.text.deflated import deflated
from airflow_bookmarks.sources.iceberg.kind import IcebergKind
from airflow_bookmarks.sources.iceberg.position import (
    AppendedRows,
    ChangedRows,
    IcebergPlan,
    IcebergPosition,
    IcebergRecipe,
    WholeTable,
    united,
)
from airflow_bookmarks.sources.iceberg.snapshots import SnapshotLog, TableSnapshotInfo
from airflow_bookmarks.sources.source import PlanInput
from airflow_bookmarks.sources.tables.versioned import VersionOptions

RECIPE = IcebergRecipe("lake.shop.orders", "/lake/orders", VersionOptions(max_versions=3))
MOST = 2**63 - 1


def plan(*pieces: WholeTable | AppendedRows | ChangedRows, at: int = 5, after: int | None = None) -> IcebergPlan:
    before = None if after is None else IcebergPosition(after, after)
    return IcebergPlan(RECIPE, pieces, IcebergPosition(at, at), before, files=1, size_bytes=10, rows=2)


@pytest.mark.parametrize("position", [IcebergPosition(None), IcebergPosition(MOST, 1)])
def test_position_is_stored_as_it_is(position: IcebergPosition) -> None:
    assert IcebergPosition.decode(position.encode()) == position


def test_plan_is_stored_as_it_is() -> None:
    whole = replace(plan(WholeTable(MOST), AppendedRows(1, 2), ChangedRows(2, 3), after=1), skipped={"removed": 1})
    assert IcebergPlan.decode(whole.encode()) == whole


@pytest.mark.parametrize(
    "body", [b"", b"x", deflated({"version": 9}), deflated({"version": 1, "at": [1]}), deflated([])]
)
def test_other_bytes_are_neither(body: bytes) -> None:
    for kind in (IcebergPosition, IcebergPlan):
        with pytest.raises(StateCorruptError):
            kind.decode(body)


def test_watermark_is_the_time_of_the_commit() -> None:
    assert IcebergPosition(7, 1_700_000_000_123).position().watermark == "2023-11-14T22:13:20.123000Z"
    assert IcebergPosition(None).position().watermark is None


def test_union_joins_windows_that_touch() -> None:
    one = united([plan(WholeTable(1)), plan(AppendedRows(1, 2)), plan(AppendedRows(2, 4)), plan(ChangedRows(4, 5))])
    assert one.pieces == (WholeTable(1), AppendedRows(1, 4), ChangedRows(4, 5))
    assert (one.files, one.size_bytes, one.rows) == (4, 40, 8)
    assert united([]).is_empty


@pytest.mark.parametrize(
    ("position", "later", "known"),
    [
        (None, plan(AppendedRows(1, 5), after=1), False),
        (IcebergPosition(None), plan(WholeTable(5)), False),
        (IcebergPosition(1, 1), plan(AppendedRows(1, 5), after=1), False),
        (IcebergPosition(5, 5), plan(AppendedRows(1, 5), after=1), True),
        (IcebergPosition(5, 5), plan(WholeTable(5)), True),
        (IcebergPosition(5, 5), plan(at=5), False),
    ],
)
def test_position_knows_what_it_has_read(position: IcebergPosition | None, later: IcebergPlan, known: bool) -> None:
    found = PlanInput(None if position is None else position.encode())
    assert IcebergKind().knows(found, later) is known


def line(*ids: int, first: int | None = None) -> list[TableSnapshotInfo]:
    """Return snapshots, each the parent of the next."""
    return [TableSnapshotInfo(each, ids[at - 1] if at else first, "append", each) for at, each in enumerate(ids)]


def log(*snapshots: TableSnapshotInfo, current: int | None) -> SnapshotLog:
    return SnapshotLog({each.id: each for each in snapshots}, current)


@pytest.mark.parametrize(
    ("table", "start", "found"),
    [
        (log(*line(1, 2, 3), current=3), 1, [2, 3]),
        (log(*line(1, 2, 3), current=3), 3, []),
        (log(*line(2, 3, first=1), current=3), 1, [2, 3]),  # the position itself has expired
        (log(*line(3, 4, first=2), current=4), 1, None),
        (log(*line(1, 2), *line(3, first=1), current=3), 2, None),  # rolled back
        (log(current=None), 1, None),
    ],
)
def test_snapshots_since_one(table: SnapshotLog, start: int, found: list[int] | None) -> None:
    told = table.since(start)
    assert (None if told is None else [each.id for each in told]) == found


def test_fork_is_the_newest_that_both_have() -> None:
    table = log(*line(1, 2, 3), *line(4, 5, first=2), current=5)
    assert (table.forked_at(3), table.forked_at(5), table.forked_at(9)) == (2, 5, None)


@pytest.mark.parametrize(
    ("operation", "summary", "changes", "news"),
    [
        ("append", {"added-data-files": "1"}, False, True),
        ("append", {"total-data-files": "1"}, False, False),
        ("append", {"added-data-files": "0"}, False, False),
        ("append", {"changed-partition-count": "0"}, False, False),
        ("append", {}, False, True),  # its writer counts nothing
        ("append", {"added-records": "5"}, False, True),
        ("replace", {"added-data-files": "1", "deleted-data-files": "3"}, False, False),
        ("replace", {}, False, False),
        ("delete", {"total-data-files": "1"}, False, False),
        ("delete", {}, True, True),
        ("overwrite", {"engine-name": "x"}, True, True),
        ("", {}, True, True),  # the first format of tables has snapshots without a summary
        ("delete", {"deleted-data-files": "1"}, True, True),
        ("overwrite", {"added-data-files": "1"}, True, True),
        ("overwrite", {"added-delete-files": "1"}, True, True),
    ],
)
def test_what_a_snapshot_is(operation: str, summary: dict[str, str], changes: bool, news: bool) -> None:
    one = TableSnapshotInfo(1, None, operation, 0, summary)
    assert (one.changes_rows, one.has_news) == (changes, news)
