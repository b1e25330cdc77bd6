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

from airflow_bookmarks.core.errors import SourceError
from airflow_bookmarks.core.plan import PlanPart
from airflow_bookmarks.sources.iceberg.kind import IcebergKind
from airflow_bookmarks.sources.iceberg.look import PyIcebergTable
from airflow_bookmarks.sources.iceberg.partitions import IcebergPartitionsSource, PartAmount
from airflow_bookmarks.sources.iceberg.position import AppendedRows, IcebergPlan, IcebergRecipe, WholeTable, united
from airflow_bookmarks.sources.iceberg.source import IcebergSource
from airflow_bookmarks.sources.part_loop import PartLoop
from airflow_bookmarks.sources.source import PlanInput
from airflow_bookmarks.sources.tables.versioned import RowsChangedError, VersionGoneError, VersionOptions
from tests.sources.iceberg.tables import OwnTable
from tests.sources.part_promises import PartPromises, read

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

    def whole(self) -> IcebergSource:
        return IcebergSource(IcebergRecipe(NAME, ""), "job 'x'", PyIcebergTable(NAME).log)

    @property
    def kind(self) -> IcebergKind:
        return IcebergKind()


@pytest.fixture
def orders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Orders:
    own = OwnTable(tmp_path, monkeypatch)
    own.catalog.create_table("shop.by_region", COLUMNS, partition_spec=BY_REGION)
    made = Orders(own)
    made.put((1, "eu"), (2, "us"), (3, None))
    return made


class TestPartsOfIceberg(PartPromises):
    """See `PartPromises`."""


def test_plan_reads_the_rows_of_one_value_alone(orders: Orders) -> None:
    loop = PartLoop("orders")
    plan = orders.source(loop, "one").plan(PlanInput())
    assert plan.pieces == (WholeTable(orders.table.metadata.current_snapshot_id, PlanPart("region", "eu")),)


def test_rest_is_read_by_the_same_column_alone(orders: Orders) -> None:
    read(orders, "eu")
    other = IcebergRecipe(NAME, "", VersionOptions(per="id"))
    by_id = IcebergPartitionsSource(other, "job 'x'", PyIcebergTable(NAME).log, parts=lambda piece: {})
    with pytest.raises(SourceError, match="this read has per='id'"):
        by_id.plan(PlanInput(orders.position))


def test_what_lies_between_two_snapshots_is_looked_at_once_for_all_runs_of_a_loop(orders: Orders) -> None:
    read(orders)
    orders.put((4, "us"), (5, "eu"), (6, "asia"))
    orders.looks.clear()
    assert read(orders, execution="two") == {"asia": 1, "eu": 1, "us": 1}
    assert len(orders.looks) == 1


def test_plans_of_several_values_are_joined_value_by_value(orders: Orders) -> None:
    eu, us = PlanPart("region", "eu"), PlanPart("region", "us")
    recipe = IcebergRecipe(NAME, "", VersionOptions(per="region"))
    pieces = [AppendedRows(1, 2, eu), AppendedRows(2, 3, eu), AppendedRows(3, 4, us), AppendedRows(4, 5, us)]
    plan = united([IcebergPlan(recipe, (piece,), None) for piece in pieces])
    assert plan.pieces == (AppendedRows(1, 3, eu), AppendedRows(3, 5, us))


def test_changed_rows_are_told_or_left_out(orders: Orders) -> None:
    read(orders, "us")
    orders.table.delete("region = 'eu'")
    orders.put((4, "asia"))
    with pytest.raises(RowsChangedError, match="delete"):
        read(orders, execution="two")
    orders.options["on_change"] = "ignore"
    assert read(orders, execution="two") == {"asia": 1, "us": 1}


def test_snapshots_that_have_expired_are_told(orders: Orders) -> None:
    read(orders, "eu")
    first = orders.table.metadata.current_snapshot_id
    orders.put((4, "us"))
    orders.table.maintenance.expire_snapshots().by_ids([first]).commit()
    with pytest.raises(VersionGoneError, match=f"behind snapshot {first}.* have expired"):
        read(orders)  # the retry reads the table as of a snapshot that is gone


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
