"""Delta tables value by value of a partition column: planned over tables that delta-rs writes, without Spark."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from airflow_bookmarks.core.errors import OptionError
from airflow_bookmarks.sources.delta.checkpoint import arrow
from airflow_bookmarks.sources.delta.kind import DeltaKind
from airflow_bookmarks.sources.delta.partitions import DeltaPartitionsSource
from airflow_bookmarks.sources.delta.position import Added, DeltaRecipe
from airflow_bookmarks.sources.delta.source import DeltaSource
from airflow_bookmarks.sources.part_loop import PartLoop
from airflow_bookmarks.sources.source import PlanInput
from airflow_bookmarks.sources.tables.versioned import RowsChangedError, VersionGoneError, VersionOptions
from tests.sources.part_promises import PartPromises, read

SCHEMA = pa.schema([("id", pa.int64()), ("region", pa.string())])


@dataclass
class Orders:
    """A table by region, and what a job has read of it."""

    path: str
    position: bytes | None = None
    options: dict[str, Any] = field(default_factory=dict)

    def put(self, *rows: tuple[int, str | None]) -> None:
        ids, regions = zip(*rows, strict=True)
        data = pa.table({"id": list(ids), "region": list(regions)}, SCHEMA)
        write_deltalake(self.path, data, mode="append", partition_by=["region"])

    def source(self, loop: PartLoop | None, execution: str, **more: Any) -> DeltaPartitionsSource:
        options = VersionOptions(per="region", **{**self.options, **more})
        recipe = DeltaRecipe(self.path, self.path, options)
        return DeltaPartitionsSource(recipe, "job 'x'", arrow(), loop=loop, execution=execution)

    def whole(self) -> DeltaSource:
        return DeltaSource(DeltaRecipe(self.path, self.path), "job 'x'", arrow())

    @property
    def kind(self) -> DeltaKind:
        return DeltaKind()


@pytest.fixture
def orders(tmp_path: Path) -> Orders:
    made = Orders(str(tmp_path / "orders"))
    made.put((1, "eu"), (2, "us"), (3, None))
    return made


class TestPartsOfDelta(PartPromises):
    """See `PartPromises`."""


def test_plan_has_files_of_one_value_alone(orders: Orders) -> None:
    loop = PartLoop("orders")
    plan = orders.source(loop, "one").plan(PlanInput())
    files = [file for piece in plan.pieces if isinstance(piece, Added) for file in piece.files]
    assert {file["partitionValues"]["region"] for file in files} == {"eu"}


def test_changed_rows_are_told_or_left_out(orders: Orders) -> None:
    read(orders, "us")
    DeltaTable(orders.path).delete("region = 'eu'")
    orders.put((4, "asia"))
    with pytest.raises(RowsChangedError, match="DELETE"):
        read(orders, execution="two")
    orders.options["on_change"] = "ignore"
    assert read(orders, execution="two") == {"asia": 1, "us": 1}


def test_files_of_a_value_that_are_gone_are_told(orders: Orders) -> None:
    read(orders, "eu")
    table = DeltaTable(orders.path)
    table.delete("region = 'eu'")
    table.vacuum(retention_hours=0, enforce_retention_duration=False, dry_run=False)
    with pytest.raises(VersionGoneError, match=r"1 file\(s\) of the Delta table .* are gone"):
        read(orders)


@pytest.mark.parametrize("column", ["id", "nobody", "Region"])
def test_column_that_is_none_of_the_partitions_is_told(orders: Orders, column: str) -> None:
    recipe = DeltaRecipe(orders.path, orders.path, VersionOptions(per=column))
    source = DeltaPartitionsSource(recipe, "job 'x'", arrow(), loop=PartLoop("orders"))
    with pytest.raises(OptionError, match=r"is partitioned by \['region'\].*Name one of"):
        source.plan(PlanInput())


@pytest.mark.parametrize(
    "given", [{"changes": True}, {"on_change": "reload"}, {"max_versions": 1}, {"per": ""}, {"per": 1}]
)
def test_options_that_contradict_each_other_are_refused(given: dict[str, Any]) -> None:
    with pytest.raises(OptionError, match=r"per=.*Nothing was read or changed"):
        VersionOptions(**{"per": "region", **given})
