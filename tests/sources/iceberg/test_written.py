"""What a run of an upstream has written to an Iceberg table: rules, and tables that pyiceberg writes. Without Spark."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from airflow_bookmarks.core.errors import SourceError
from airflow_bookmarks.core.run import OutputEntry
from airflow_bookmarks.sources.iceberg.position import AppendedRows, ChangedRows, WholeTable
from airflow_bookmarks.sources.iceberg.snapshots import SnapshotLog, TableSnapshotInfo
from airflow_bookmarks.sources.iceberg.written import (
    IcebergRuns,
    SnapshotFiles,
    WrittenRows,
    rows_of,
    snapshot_of,
)

FOLDER = "/lake/orders"
ONE, TWO = f"{FOLDER}/data/1.parquet", f"{FOLDER}/data/2.parquet"


def snapshot(id: int, parent: int | None = None, operation: str = "append", **summary: str) -> TableSnapshotInfo:
    return TableSnapshotInfo(
        id, parent, operation, id, {key.replace("_", "-"): value for key, value in summary.items()}
    )


def staged(id: int, parent: int | None, wap_id: str, name: str = "wap.id") -> TableSnapshotInfo:
    return TableSnapshotInfo(id, parent, "append", id, {name: wap_id})


def log_of(current: int, *snapshots: TableSnapshotInfo) -> SnapshotLog:
    return SnapshotLog({each.id: each for each in snapshots}, current)


BROUGHT_IN = (snapshot(1), staged(2, 1, "run"), snapshot(3, 1), staged(4, 3, "run", "published-wap-id"))


@pytest.mark.parametrize(
    ("log", "found"),
    [
        (log_of(2, snapshot(1), staged(2, 1, "run")), 2),  # nobody came between: it is the current one itself
        (log_of(4, *BROUGHT_IN), 4),
        (log_of(5, *BROUGHT_IN, snapshot(5, 4)), 4),
        (log_of(3, *BROUGHT_IN), 2),  # rolled back since: what was staged has the same rows
        (log_of(3, *BROUGHT_IN[:3]), 2),  # that which brought it in has expired, and what was staged has not
        (log_of(1, snapshot(1), staged(2, 1, "another run")), None),
        (SnapshotLog({}, None), None),
    ],
)
def test_snapshot_of_a_run_is_found_by_the_id_under_which_it_was_staged(log: SnapshotLog, found: int | None) -> None:
    told = snapshot_of(log, "run")
    assert (None if told is None else told.id) == found


@pytest.mark.parametrize(
    ("of", "is_all", "is_whole", "rows"),
    [
        (snapshot(2, 1), True, False, WrittenRows(AppendedRows(1, 2))),
        (snapshot(2, 1), False, False, WrittenRows(AppendedRows(1, 2), (ONE,))),
        (snapshot(2, 1), True, True, WrittenRows(AppendedRows(1, 2))),  # an overwrite of a table without rows
        (snapshot(2, None, added_data_files="1", total_data_files="1"), True, False, WrittenRows(WholeTable(2))),
        (
            snapshot(2, None, added_data_files="1", total_data_files="1"),
            False,
            False,
            WrittenRows(WholeTable(2), (ONE,)),
        ),
        # Its parent has expired, and a writer has left none: the table had rows before.
        (
            snapshot(2, None, added_data_files="1", total_data_files="3"),
            True,
            False,
            WrittenRows(WholeTable(2), (ONE,)),
        ),
        (snapshot(2, 1, "overwrite"), True, True, WrittenRows(WholeTable(2))),
        (snapshot(2, 1, "overwrite"), False, True, WrittenRows(WholeTable(2), (ONE,))),
        (snapshot(2, 1, "overwrite"), True, False, WrittenRows(ChangedRows(1, 2))),
        (snapshot(2, 1, "overwrite"), False, False, WrittenRows(WholeTable(2), (ONE,))),
    ],
)
def test_rows_of_a_run_are_read_by_how_it_wrote_them(
    of: TableSnapshotInfo, is_all: bool, is_whole: bool, rows: WrittenRows
) -> None:
    assert rows_of(of, [ONE], is_all=is_all, is_whole=is_whole) == rows


class Told:
    """A table whose snapshots and files a test tells, and how often it was asked."""

    def __init__(self, log: SnapshotLog, files: dict[int, SnapshotFiles]) -> None:
        self._log, self._files = log, files
        self.location = FOLDER
        self.asked: list[Any] = []

    def log(self) -> SnapshotLog:
        self.asked.append("log")
        return self._log

    def files(self, snapshot: int) -> SnapshotFiles:
        self.asked.append(snapshot)
        return self._files[snapshot]


def entry(place: str, **stats: Any) -> OutputEntry:
    return OutputEntry("iceberg", "lake.shop.orders", place, {"format": "iceberg", "mode": "append", **stats})


def test_a_table_is_looked_at_once_for_all_its_runs() -> None:
    log = log_of(3, snapshot(1), staged(2, 1, "one"), staged(3, 2, "two"))
    table = Told(log, {2: SnapshotFiles([ONE]), 3: SnapshotFiles([f"file:{TWO}"], [ONE])})
    runs = IcebergRuns("a reads b", lambda entry: table)
    written = [(1, entry("one")), (2, entry("two", table_folder=FOLDER))]
    assert [dict(runs.files(*each)) for each in written] == [{ONE: ONE}, {TWO: f"file:{TWO}"}]
    assert set(runs.removed(*written[1])) == {ONE}
    assert runs.rows(written, {ONE, TWO}) == [WrittenRows(AppendedRows(1, 2)), WrittenRows(AppendedRows(2, 3))]
    assert runs.rows(written[1:], {ONE}) == [WrittenRows(AppendedRows(2, 3), ())]
    assert [runs.folder(each) for _, each in written] == [FOLDER, FOLDER]
    assert table.asked == ["log", 2, 3]


@pytest.mark.parametrize(
    ("place", "stats", "words"),
    [
        ("gone", {}, "run 7 wrote to the Iceberg table lake.shop.orders, and the table has no snapshot of it any more"),
        (
            "one",
            {"upsert_keys": ["id"]},
            r"by key, so its files hold rows of other runs.*\.iceberg\(..., changes=True\)",
        ),
        ("one", {}, "whose data files lie outside of its folder, such as '/elsewhere/1.parquet'"),
    ],
)
def test_run_whose_rows_can_not_be_told_is_refused(place: str, stats: dict[str, Any], words: str) -> None:
    table = Told(log_of(2, snapshot(1), staged(2, 1, "one")), {2: SnapshotFiles(["/elsewhere/1.parquet"])})
    with pytest.raises(SourceError, match=rf"a reads b: .*{words}") as told:
        IcebergRuns("a reads b", lambda entry: table).files(7, entry(place, **stats))
    assert "Nothing was read or changed." in str(told.value)


def test_files_of_a_snapshot_are_told_by_pyiceberg(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pyiceberg", reason="no pyiceberg, which is an extra")
    from airflow_bookmarks.sources.iceberg.look import PyIcebergTable
    from tests.sources.iceberg.tables import OwnTable

    own = OwnTable(tmp_path, monkeypatch)
    own.add(1)
    own.add(2)
    own.overwrite(3)  # which makes two snapshots: one that deletes, and one that appends
    table = PyIcebergTable.of_output(OutputEntry("iceberg", "lake.shop.orders", "x", {}))
    assert table.location == own.location.removeprefix("file://")
    first, second, deleted, last = (table.files(each) for each in own.ids)
    assert [len(each.added) for each in (first, second, deleted, last)] == [1, 1, 0, 1]
    assert sorted(deleted.removed) == sorted([*first.added, *second.added])
    assert {Path(each.added[0].removeprefix("file://")).is_file() for each in (first, second, last)} == {True}
    assert [each.id for each in table.log().line(own.ids[-1])] == own.ids[::-1]
