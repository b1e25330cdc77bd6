"""Delta tables value by value of a partition column: planned over tables that delta-rs writes, without Spark."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from airflow_bookmarks.core.errors import OptionError, SourceError, StateCorruptError
from airflow_bookmarks.core.plan import PlanPart
from airflow_bookmarks.core.rules.start import Start
from airflow_bookmarks.core.text.deflated import inflated
from airflow_bookmarks.sources.delta.checkpoint import arrow
from airflow_bookmarks.sources.delta.kind import DeltaKind
from airflow_bookmarks.sources.delta.partitions import DeltaPartitionsSource
from airflow_bookmarks.sources.delta.position import Added, DeltaPlan, DeltaRecipe
from airflow_bookmarks.sources.delta.source import DeltaSource
from airflow_bookmarks.sources.part_loop import PartLoop
from airflow_bookmarks.sources.source import PlanInput
from airflow_bookmarks.sources.tables.stored_body import decoded
from airflow_bookmarks.sources.tables.versioned import RowsChangedError, VersionGoneError, VersionOptions

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

    def read(self, *failing: str | None, execution: str = "one", start: str | None = None) -> dict[str | None, int]:
        """Run a loop; return of each value that was read how many files it had. Values in `failing` commit nothing."""
        loop, seen = PartLoop("orders"), dict[str | None, int]()
        while not loop.is_over:
            loop.begin()
            source = self.source(loop, execution)
            given = PlanInput(self.position) if start is None else PlanInput(self.position, start=Start.of(start))
            plan = source.plan(given)
            assert DeltaPlan.decode(plan.encode()) == plan
            assert len({file["partitionValues"]["region"] for file in files_of(plan)}) <= 1
            if loop.current is not None:
                assert plan.part == loop.current
                seen[loop.current.value] = plan.files
            after = source.advance(plan)
            if after is not None and (loop.current is None or loop.current.value not in failing):
                self.position = after.body
        return seen

    def pending(self) -> DeltaPlan:
        return self.source(None, "").plan(PlanInput(self.position))


def files_of(plan: DeltaPlan) -> list[dict[str, Any]]:
    return [file for piece in plan.pieces if isinstance(piece, Added) for file in piece.files]


@pytest.fixture
def orders(tmp_path: Path) -> Orders:
    made = Orders(str(tmp_path / "orders"))
    made.put((1, "eu"), (2, "us"), (3, None))
    return made


def test_each_value_is_read_once_and_then_what_is_new_in_it(orders: Orders) -> None:
    assert orders.read() == {"eu": 1, "us": 1, None: 1}
    assert orders.read(execution="two") == {}
    orders.put((4, "us"))
    orders.put((5, "asia"), (6, "us"))
    assert orders.pending().files == 3
    assert orders.read(execution="three") == {"asia": 1, "us": 2}
    assert orders.pending().is_empty


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


def test_watermark_is_the_version_that_all_values_have_reached(orders: Orders) -> None:
    def watermark() -> str | None:
        assert orders.position is not None
        return DeltaKind().watermark(orders.position, lambda names: {})

    orders.read("eu")
    assert watermark() is None
    orders.read()
    assert watermark() == "0"
    orders.put((4, "eu"), (5, "us"))
    orders.read("us", execution="two")
    assert watermark() == "0"
    orders.read(execution="two")
    assert watermark() == "1"


def test_kind_tells_the_part_and_what_an_execution_has_left(orders: Orders) -> None:
    kind, loop = DeltaKind(), PartLoop("orders")
    plan = orders.source(loop, "one").plan(PlanInput())
    assert kind.part_of(plan) == PlanPart("region", "eu")
    assert plan.stats()["part"] == "region='eu'"
    assert plan.summary() == "processing 1 file of region='eu' of the table as of version 0"
    after = plan.position_from(None)
    assert after is not None
    assert set(kind.parts_left(after.body, "one")) == {PlanPart("region", "us"), PlanPart("region", None)}
    assert kind.parts_left(after.body, "two") == ()
    assert kind.knows(PlanInput(after.body), plan)
    later = orders.source(loop, "one").plan(PlanInput(after.body))
    assert not kind.knows(PlanInput(after.body), later)


def test_position_with_parts_is_not_read_by_a_version_that_knows_none(orders: Orders) -> None:
    orders.read("eu")
    assert orders.position is not None
    with pytest.raises(StateCorruptError, match="has format 2, and this version reads up to 1"):
        decoded("position", 1, lambda: inflated(orders.position or b"", "x"), lambda values: values)
    orders.read()
    assert inflated(orders.position, "x")["version"] == 1


def test_rest_is_read_by_the_same_column_alone(orders: Orders) -> None:
    orders.read("eu")
    whole = DeltaSource(DeltaRecipe(orders.path, orders.path), "job 'x'", arrow())
    with pytest.raises(SourceError, match=r"region='eu' are not read as far as the rest, and this read has no per="):
        whole.plan(PlanInput(orders.position))
    orders.read()
    assert whole.plan(PlanInput(orders.position)).is_empty


def test_changed_rows_are_told_or_left_out(orders: Orders) -> None:
    orders.read("us")
    DeltaTable(orders.path).delete("region = 'eu'")
    orders.put((4, "asia"))
    with pytest.raises(RowsChangedError, match="DELETE"):
        orders.read(execution="two")
    orders.options["on_change"] = "ignore"
    assert orders.read(execution="two") == {"asia": 1, "us": 1}


def test_files_of_a_value_that_are_gone_are_told(orders: Orders) -> None:
    orders.read("eu")
    table = DeltaTable(orders.path)
    table.delete("region = 'eu'")
    table.vacuum(retention_hours=0, enforce_retention_duration=False, dry_run=False)
    with pytest.raises(VersionGoneError, match=r"1 file\(s\) of the Delta table .* are gone"):
        orders.read()


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
