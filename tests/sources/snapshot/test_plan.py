"""Plans over snapshots: how they are stored, what several of them cover, and when they are refused."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from airflow_bookmarks.core.database.dialect import SharedSnapshot
from airflow_bookmarks.core.database.dialects.postgresql import PostgreSQL
from airflow_bookmarks.core.errors import DatabaseError, OptionError, SourceError, StateCorruptError
from airflow_bookmarks.core.rules.start import Start
from airflow_bookmarks.files.opener import open_any_filesystem
from airflow_bookmarks.sources.jdbc.recipe import Relation
from airflow_bookmarks.sources.snapshot.kind import SnapshotKind
from airflow_bookmarks.sources.snapshot.position import SnapshotPlan, SnapshotPosition
from airflow_bookmarks.sources.snapshot.snapshot import ChangeCounts, TableSnapshot
from airflow_bookmarks.sources.snapshot.source import ComparedTable, SnapshotSource
from airflow_bookmarks.sources.source import PlanInput
from tests.sources.snapshot.copies import JsonSnapshots, Rows, changed

# As version 1 stores them: these bytes must stay readable.
POSITION = (
    b'{"version": 1, "keys": ["id"], "snapshot": {"uri": "/state/01B", "columns": "{}", "rows": 2, '
    b'"files": [["part-0.parquet", 7]], "taken_at": "2013-01-31T00:00:00.000000Z"}, "identity": "7"}'
)
PLAN = (
    b'{"version": 1, "before": {"uri": "/state/01A", "columns": "{}", "rows": 2, "files": [], "taken_at": null}, '
    b'"leads_to": "{\\"version\\": 1, \\"keys\\": [], \\"snapshot\\": {\\"uri\\": \\"/state/01B\\", '
    b'\\"columns\\": \\"{}\\", \\"rows\\": 3, \\"files\\": [], \\"taken_at\\": null}, \\"identity\\": null}", '
    b'"counts": [1, 2, 0], "skipped": {}}'
)


def copy(name: str, rows: int = 1) -> TableSnapshot:
    return TableSnapshot(f"/state/{name}", "{}", rows, (("part-0.parquet", 7),), "2013-01-31T00:00:00.000000Z")


def plan(before: TableSnapshot | None, after: TableSnapshot, *counts: int) -> SnapshotPlan:
    return SnapshotPlan(before, SnapshotPosition(("id",), after), ChangeCounts(*counts))


A, B, C = copy("01A"), copy("01B"), copy("01C")


def test_stored_position_and_plan_of_the_first_version_are_read() -> None:
    position, found = SnapshotPosition.decode(POSITION), SnapshotPlan.decode(PLAN)

    assert (position.keys, position.snapshot.files, position.identity) == (("id",), (("part-0.parquet", 7),), "7")
    assert position.encode() == POSITION
    assert (found.before, found.keys, found.counts) == (
        TableSnapshot("/state/01A", "{}", 2, ()),
        (),
        ChangeCounts(1, 2),
    )
    assert found.encode() == PLAN


@pytest.mark.parametrize("body", [b"", b"[]", b"{}", b'{"version": 1}', b'{"version": 2}', b'{"version": "x"}'])
def test_bytes_that_are_no_plan_are_said_to_be_none(body: bytes) -> None:
    with pytest.raises(StateCorruptError, match="compared table"):
        SnapshotPlan.decode(body)


def test_position_names_both_snapshots_that_a_replay_of_its_plan_reads() -> None:
    kind = SnapshotKind()
    first, second = kind.advance(plan(None, A, 1), PlanInput()), kind.advance(plan(A, B, 1), PlanInput())

    assert first is not None
    assert second is not None
    assert (first.artifacts, second.artifacts) == ((A.uri,), (B.uri, A.uri))
    assert kind.advance(plan(A, B, 1), PlanInput(position=second.body)) is None


def test_union_goes_from_the_first_snapshot_to_the_last() -> None:
    kind = SnapshotKind()
    nothing = plan(B, B)

    whole = kind.union([plan(None, A, 1), nothing, plan(A, B, 0, 1), plan(B, C, 1)])
    assert (whole.before, whole.after, whole.counts, whole.is_empty) == (None, C, None, False)
    assert whole.amount.in_words() == "not known how many rows"
    assert SnapshotPlan.decode(whole.encode()) == whole
    one = kind.union([nothing, plan(B, C, 1)])
    assert (one.before, one.after, one.counts) == (B, C, ChangeCounts(1))
    assert kind.union([nothing]).is_empty


def test_union_over_a_reset_is_refused() -> None:
    with pytest.raises(OptionError, match="between these runs the context was reset"):
        SnapshotKind().union([plan(A, B, 1), plan(None, C, 1)])


def test_plan_tells_how_many_rows_of_which_change() -> None:
    found = plan(A, B, 1, 2, 3)

    assert found.summary() == ("processing 6 changes (1 inserted, 2 updated, 3 deleted) in a table of 1 rows")
    assert found.stats() == {
        "unit": "rows", "count": 6, "inserted": 1, "updated": 2, "deleted": 3, "skipped": {}, "keys": ["id"],
        "table_rows": 1, "compared_with": "2013-01-31T00:00:00.000000Z",
    }  # fmt: skip


# ---- the planner, over a database that only tells its clock and who it is


class Clock:
    """A database that answers what a planner asks."""

    holds_session = True

    def __init__(self, identity: str | None = "7/1") -> None:
        self.identity = identity
        self.asked: list[str] = []
        self.is_open = False

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        self.asked.append(sql)
        if "pg_control_system" not in sql:
            return [("2013-01-31 00:00:00.000000",)]
        if self.identity is None:
            raise DatabaseError("permission denied")
        return [(self.identity,)]

    @contextmanager
    def connect(self) -> Iterator[Clock]:
        self.is_open = True
        yield self
        self.is_open = False


class World:
    """A table whose rows a test sets, and folders below `root`."""

    def __init__(self, root: Path) -> None:
        self.root, self.rows, self.clock, self.position = root, dict[int, Any](), Clock(), b""
        self.columns = {"id": "integer"}
        self.reads = 0
        self.is_open_during_read: list[bool] = []
        self.shares: SharedSnapshot | None = None

    def _read(self) -> Rows:
        self.reads += 1
        self.is_open_during_read.append(self.clock.is_open)
        return self.rows

    def source(self, *keys: str, **how: Any) -> SnapshotSource:
        table = ComparedTable(
            address="conn:shop", dialect="postgresql", relation=Relation(("t",)), keys=keys or ("id",), **how
        )
        snapshots = JsonSnapshots(self._read, **self.columns)
        snapshots.shares = self.shares
        return SnapshotSource(table, self.clock.connect, snapshots, open_any_filesystem, "context 'orders'")

    def found(self, **how: Any) -> PlanInput:
        return PlanInput(
            position=self.position or None,
            new_artifact=lambda: str(self.root / f"{len(self.folders)}"),
            drop_artifact=self._drop,
            **how,
        )

    def _drop(self, uri: str) -> None:
        for file in Path(uri).glob("*"):
            file.unlink()
        if Path(uri).exists():
            Path(uri).rmdir()

    @property
    def folders(self) -> list[str]:
        return sorted(path.name for path in self.root.iterdir())

    def run(self, source: SnapshotSource | None = None, **how: Any) -> SnapshotPlan:
        """Make one run: plan, and commit."""
        source = source or self.source()
        planned = source.plan(self.found(**how))
        position = source.advance(planned)
        self.position = self.position if position is None else position.body
        return planned


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def test_folder_of_a_snapshot_without_a_change_goes_at_once(world: World) -> None:
    world.rows = {1: "a"}
    assert [list(changed(world.run())), list(changed(world.run()))] == [[1], []]
    assert (world.folders, world.reads) == (["0"], 2)


def test_snapshot_with_other_columns_stays_although_no_row_has_changed(world: World) -> None:
    world.rows = {1: "a"}
    world.run()
    world.columns = {"id": "integer", "more": "string"}
    moved = world.run()
    assert (moved.is_empty, world.folders) == (True, ["0", "1"])
    assert SnapshotPosition.decode(world.position).snapshot == moved.after


def test_folder_goes_where_the_plan_fails(world: World) -> None:
    world.rows = {1: "a"}
    world.run()
    world.rows = {}
    with pytest.raises(SourceError, match="so all 1 would count as deleted"):
        world.run()
    assert world.folders == ["0"]
    assert changed(world.run(world.source(on_emptied="accept"))) == [1]


def test_source_that_starts_over_reads_the_table_once(world: World) -> None:
    world.rows = {1: "a"}
    world.run()
    world.rows = {1: "a", 2: "b"}
    source = world.source()
    assert changed(source.plan(world.found())) == [2]
    world.position = b""
    assert changed(source.plan(world.found())) == [1, 2]
    assert (world.reads, world.folders) == (2, ["0", "1"])


def test_another_server_is_refused_where_it_can_be_told(world: World) -> None:
    world.rows = {1: "a"}
    world.run()
    world.clock.identity = None
    world.run()
    world.clock.identity = "8/1"
    with pytest.raises(SourceError, match="another server than the one that was read before"):
        world.run()
    assert world.folders == ["0"]


def test_plan_over_files_that_are_gone_is_refused(world: World) -> None:
    world.rows = {1: "a"}
    world.run()
    (world.root / "0" / "rows.json").write_text("")
    with pytest.raises(SourceError, match="are gone or cut short"):
        world.run()
    assert world.reads == 1


@pytest.mark.parametrize(("before", "now", "is_kept"), [("integer", "long", True), ("long", "integer", False)])
def test_key_may_get_a_wider_type_and_no_other(world: World, before: str, now: str, is_kept: bool) -> None:
    world.rows, world.columns = {1: "a"}, {"id": before}
    world.run()
    world.columns = {"id": now}
    if is_kept:
        assert world.run().is_empty
        return
    with pytest.raises(SourceError, match="key 'id' was bigint in the last snapshot, and is int now"):
        world.run()


def test_start_now_takes_what_is_there_as_read_and_a_time_is_refused(world: World) -> None:
    world.rows = {1: "a"}
    with pytest.raises(OptionError, match="whose rows have no time"):
        world.run(start=Start.of("2013-01-31T00:00:00Z"))
    begun = world.run(start=Start.of("now"))
    assert (begun.is_empty, dict(begun.skipped)) == (True, {"before_start": 1})
    world.rows = {1: "a", 2: "b"}
    assert changed(world.run()) == [2]


def test_session_stays_open_during_the_read_as_long_as_others_share_its_snapshot_alone(world: World) -> None:
    world.run()
    world.shares = PostgreSQL().shared_snapshot
    world.run()
    assert world.is_open_during_read == [False, True]
    assert [asked for asked in world.clock.asked if "snapshot" in asked] == ["SELECT pg_export_snapshot()"]


def test_look_that_may_keep_nothing_reads_nothing(world: World) -> None:
    with pytest.raises(OptionError, match="may keep no files"):
        world.source().plan(PlanInput())
    assert world.reads == 0
