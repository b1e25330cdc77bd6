"""Iceberg tables value by value of a partition column: planned over tables that pyiceberg writes, without Spark."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyiceberg", reason="no pyiceberg, which is an extra")

import pyarrow as pa
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import LongType, NestedField, StringType

from airflow_bookmarks.core.errors import SourceError, StateCorruptError
from airflow_bookmarks.core.plan import PlanPart
from airflow_bookmarks.core.rules.start import Start
from airflow_bookmarks.core.text.deflated import inflated
from airflow_bookmarks.sources.iceberg.kind import IcebergKind
from airflow_bookmarks.sources.iceberg.look import PyIcebergTable
from airflow_bookmarks.sources.iceberg.partitions import IcebergPartitionsSource, PartAmount
from airflow_bookmarks.sources.iceberg.position import AppendedRows, IcebergPlan, IcebergRecipe, WholeTable, united
from airflow_bookmarks.sources.iceberg.source import IcebergSource
from airflow_bookmarks.sources.part_loop import PartLoop
from airflow_bookmarks.sources.source import PlanInput
from airflow_bookmarks.sources.tables.stored_body import decoded
from airflow_bookmarks.sources.tables.versioned import RowsChangedError, VersionGoneError, VersionOptions
from tests.sources.iceberg.tables import OwnTable

NAME = "lake.shop.by_region"
ROWS = pa.schema([("id", pa.int64()), ("region", pa.string())])
COLUMNS = Schema(NestedField(1, "id", LongType()), NestedField(2, "region", StringType()))
BY_REGION = PartitionSpec(PartitionField(2, 1000, IdentityTransform(), "region"))


@dataclass
class Orders:
    """A table by region, and what a job has read of it."""

    own: OwnTable
    position: bytes | None = None
    options: dict[str, Any] = field(default_factory=dict)
    looks: list[Any] = field(default_factory=list)

    @property
    def table(self) -> Any:
        return self.own.catalog.load_table("shop.by_region")

    def put(self, *rows: tuple[int, str | None]) -> None:
        ids, regions = zip(*rows, strict=True)
        self.table.append(pa.table({"id": list(ids), "region": list(regions)}, ROWS))

    def source(self, loop: PartLoop | None, execution: str) -> IcebergPartitionsSource:
        seen = PyIcebergTable(NAME)

        def parts(piece: WholeTable | AppendedRows) -> Any:
            self.looks.append(piece)
            return seen.parts("region", piece)

        recipe = IcebergRecipe(NAME, "", VersionOptions(per="region", **self.options))
        return IcebergPartitionsSource(recipe, "job 'x'", seen.log, parts=parts, loop=loop, execution=execution)

    def read(self, *failing: str | None, execution: str = "one", start: str | None = None) -> dict[str | None, int]:
        """Run a loop; return of each value that was read how many rows it had. Values in `failing` commit nothing."""
        loop, seen = PartLoop("orders"), dict[str | None, int]()
        while not loop.is_over:
            loop.begin()
            source = self.source(loop, execution)
            given = PlanInput(self.position) if start is None else PlanInput(self.position, start=Start.of(start))
            plan = source.plan(given)
            assert IcebergPlan.decode(plan.encode()) == plan
            if loop.current is not None:
                assert plan.part == loop.current
                assert [piece.part for piece in plan.pieces] == [plan.part]  # type: ignore[union-attr]
                seen[loop.current.value] = plan.rows or 0
            after = source.advance(plan)
            if after is not None and (loop.current is None or loop.current.value not in failing):
                self.position = after.body
        return seen

    def pending(self) -> IcebergPlan:
        return self.source(None, "").plan(PlanInput(self.position))


@pytest.fixture
def orders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Orders:
    own = OwnTable(tmp_path, monkeypatch)
    own.catalog.create_table("shop.by_region", COLUMNS, partition_spec=BY_REGION)
    made = Orders(own)
    made.put((1, "eu"), (2, "us"), (3, None))
    return made


def test_each_value_is_read_once_and_then_what_is_new_in_it(orders: Orders) -> None:
    assert orders.read() == {"eu": 1, "us": 1, None: 1}
    assert orders.read(execution="two") == {}
    orders.put((4, "us"))
    orders.put((5, "asia"), (6, "us"), (7, "us"))
    assert (orders.pending().files, orders.pending().rows) == (3, 4)
    assert orders.read(execution="three") == {"asia": 1, "us": 3}
    assert orders.pending().is_empty


def test_what_lies_between_two_snapshots_is_looked_at_once_for_all_runs_of_a_loop(orders: Orders) -> None:
    orders.read()
    orders.put((4, "us"), (5, "eu"), (6, "asia"))
    orders.looks.clear()
    assert orders.read(execution="two") == {"asia": 1, "eu": 1, "us": 1}
    assert len(orders.looks) == 1


def test_value_that_failed_is_left_and_read_alone_by_its_retry(orders: Orders) -> None:
    assert orders.read("eu") == {"eu": 1, "us": 1, None: 1}
    orders.put((4, "eu"), (5, "us"))
    assert orders.pending().files == 3
    assert orders.read() == {"eu": 1}  # what its execution had found, and no more
    assert orders.read(execution="two") == {"eu": 1, "us": 1}


def test_value_that_failed_long_ago_is_read_from_where_it_was(orders: Orders) -> None:
    orders.read()
    orders.put((4, "eu"), (5, "us"))
    orders.read("eu", execution="two")
    orders.put((6, "eu"))
    orders.put((7, "us"))
    assert orders.read("eu", execution="three") == {"eu": 2, "us": 1}
    assert orders.read(execution="four") == {"eu": 2}
    assert orders.pending().is_empty


def test_all_values_fail_and_nothing_has_moved(orders: Orders) -> None:
    assert orders.read("eu", "us", None) == {"eu": 1, "us": 1, None: 1}
    assert orders.position is None
    assert orders.read(execution="two") == {"eu": 1, "us": 1, None: 1}


def test_start_now_reads_what_comes_since(orders: Orders) -> None:
    assert orders.read(start="now") == {}
    orders.put((4, "us"))
    assert orders.read(execution="two") == {"us": 1}


def test_watermark_is_the_time_that_all_values_have_reached(orders: Orders) -> None:
    def watermark() -> str | None:
        assert orders.position is not None
        return IcebergKind().watermark(orders.position, lambda names: {})

    orders.read("eu")
    assert watermark() is None
    orders.read()
    first = watermark()
    assert first is not None
    orders.put((4, "eu"), (5, "us"))
    orders.read("us", execution="two")
    assert watermark() == first
    orders.read(execution="two")
    assert (watermark() or "") > first


def test_kind_tells_the_part_and_what_an_execution_has_left(orders: Orders) -> None:
    kind, loop = IcebergKind(), PartLoop("orders")
    plan = orders.source(loop, "one").plan(PlanInput())
    assert kind.part_of(plan) == PlanPart("region", "eu")
    assert plan.stats()["part"] == "region='eu'"
    assert plan.summary().startswith("processing 1 file of region='eu' of the table as of snapshot ")
    after = plan.position_from(None)
    assert after is not None
    assert set(kind.parts_left(after.body, "one")) == {PlanPart("region", "us"), PlanPart("region", None)}
    assert kind.parts_left(after.body, "two") == ()
    assert kind.knows(PlanInput(after.body), plan)
    later = orders.source(loop, "one").plan(PlanInput(after.body))
    assert not kind.knows(PlanInput(after.body), later)


def test_plans_of_several_values_are_joined_value_by_value(orders: Orders) -> None:
    eu, us = PlanPart("region", "eu"), PlanPart("region", "us")
    recipe = IcebergRecipe(NAME, "", VersionOptions(per="region"))
    pieces = [AppendedRows(1, 2, eu), AppendedRows(2, 3, eu), AppendedRows(3, 4, us), AppendedRows(4, 5, us)]
    plan = united([IcebergPlan(recipe, (piece,), None) for piece in pieces])
    assert plan.pieces == (AppendedRows(1, 3, eu), AppendedRows(3, 5, us))


def test_position_with_parts_is_not_read_by_a_version_that_knows_none(orders: Orders) -> None:
    orders.read("eu")
    assert orders.position is not None
    with pytest.raises(StateCorruptError, match="has format 2, and this version reads up to 1"):
        decoded("position", 1, lambda: inflated(orders.position or b"", "x"), lambda values: values)
    orders.read()
    assert inflated(orders.position, "x")["version"] == 1


def test_rest_is_read_by_the_same_column_alone(orders: Orders) -> None:
    orders.read("eu")
    whole = IcebergSource(IcebergRecipe(NAME, ""), "job 'x'", PyIcebergTable(NAME).log)
    with pytest.raises(SourceError, match=r"region='eu' are not read as far as the rest, and this read has no per="):
        whole.plan(PlanInput(orders.position))
    other = IcebergRecipe(NAME, "", VersionOptions(per="id"))
    by_id = IcebergPartitionsSource(other, "job 'x'", PyIcebergTable(NAME).log, parts=lambda piece: {})
    with pytest.raises(SourceError, match="this read has per='id'"):
        by_id.plan(PlanInput(orders.position))
    orders.read()
    assert whole.plan(PlanInput(orders.position)).is_empty


def test_changed_rows_are_told_or_left_out(orders: Orders) -> None:
    orders.read("us")
    orders.table.delete("region = 'eu'")
    orders.put((4, "asia"))
    with pytest.raises(RowsChangedError, match="delete"):
        orders.read(execution="two")
    orders.options["on_change"] = "ignore"
    assert orders.read(execution="two") == {"asia": 1, "us": 1}


def test_snapshots_that_have_expired_are_told(orders: Orders) -> None:
    orders.read("eu")
    first = orders.table.metadata.current_snapshot_id
    orders.put((4, "us"))
    orders.table.maintenance.expire_snapshots().by_ids([first]).commit()
    with pytest.raises(VersionGoneError, match=f"behind snapshot {first}.* have expired"):
        orders.read()  # the retry reads the table as of a snapshot that is gone


def test_files_from_before_the_table_was_partitioned_are_told_without_spark(orders: Orders) -> None:
    orders.own.add(1)
    with orders.own.table.update_schema() as schema:
        schema.add_column("region", StringType())
    with orders.own.table.update_spec() as spec:
        spec.add_field("region", IdentityTransform(), "region")
    told = partial(PyIcebergTable("lake.shop.orders").parts, "region", WholeTable(orders.own.ids[-1]))
    with pytest.raises(SourceError, match="written before it was partitioned by region"):
        told()
    assert PyIcebergTable(NAME).parts("region", WholeTable(orders.table.metadata.current_snapshot_id)) == {
        "eu": PartAmount(1, 1),
        "us": PartAmount(1, 1),
        None: PartAmount(1, 1),
    }
