"""What every kind of table promises that is read value by value of a partition column, whoever writes the table."""

from __future__ import annotations

from typing import Any, Protocol

import pytest

from airflow_bookmarks.core.errors import SourceError, StateCorruptError
from airflow_bookmarks.core.plan import PlanPart
from airflow_bookmarks.core.rules.start import Start
from airflow_bookmarks.core.text.deflated import inflated
from airflow_bookmarks.sources.kind import SourceKind
from airflow_bookmarks.sources.part_loop import PartLoop
from airflow_bookmarks.sources.source import PlanInput, Source
from airflow_bookmarks.sources.tables.stored_body import decoded


class RegionTable(Protocol):
    """A table by region, in which one row of eu, one of us and one of no region lie, and what a job has read of it."""

    position: bytes | None

    def put(self, *rows: tuple[int, str | None]) -> None:
        """Append rows: one file for each region among them."""
        ...

    def source(self, loop: PartLoop | None, execution: str) -> Source[Any]:
        """Return the table as a source, by region."""
        ...

    def whole(self) -> Source[Any]:
        """Return the table as a source that reads all regions at once."""
        ...

    @property
    def kind(self) -> SourceKind[Any]:
        """The kind of source."""
        ...


def read(
    orders: RegionTable, *failing: str | None, execution: str = "one", start: str | None = None
) -> dict[str | None, int]:
    """Run a loop; return of each value that was read how many files it had. Values in `failing` commit nothing."""
    loop, seen = PartLoop("orders"), dict[str | None, int]()
    while not loop.is_over:
        loop.begin()
        source = orders.source(loop, execution)
        given = PlanInput(orders.position) if start is None else PlanInput(orders.position, start=Start.of(start))
        plan = source.plan(given)
        assert orders.kind.decode(plan.encode()) == plan
        if loop.current is not None:
            assert plan.part == loop.current
            seen[loop.current.value] = plan.files
        after = source.advance(plan)
        if after is not None and (loop.current is None or loop.current.value not in failing):
            orders.position = after.body
    return seen


def pending(orders: RegionTable) -> Any:
    """Return the plan of all that a loop would read."""
    return orders.source(None, "").plan(PlanInput(orders.position))


class PartPromises:
    """Tests of a table that the fixture `orders` makes."""

    def test_each_value_is_read_once_and_then_what_is_new_in_it(self, orders: RegionTable) -> None:
        assert read(orders) == {"eu": 1, "us": 1, None: 1}
        assert read(orders, execution="two") == {}
        orders.put((4, "us"))
        orders.put((5, "asia"), (6, "us"), (7, "us"))
        assert (pending(orders).files, pending(orders).rows) == (3, 4)
        assert read(orders, execution="three") == {"asia": 1, "us": 2}
        assert pending(orders).is_empty

    def test_value_that_failed_is_left_and_read_alone_by_its_retry(self, orders: RegionTable) -> None:
        assert read(orders, "eu") == {"eu": 1, "us": 1, None: 1}
        orders.put((4, "eu"), (5, "us"))
        assert pending(orders).files == 3
        assert read(orders) == {"eu": 1}  # what its execution had found, and no more
        assert read(orders, execution="two") == {"eu": 1, "us": 1}

    def test_value_that_failed_long_ago_is_read_from_where_it_was(self, orders: RegionTable) -> None:
        read(orders)
        orders.put((4, "eu"), (5, "us"))
        read(orders, "eu", execution="two")
        orders.put((6, "eu"))
        orders.put((7, "us"))
        assert read(orders, "eu", execution="three") == {"eu": 2, "us": 1}
        assert read(orders, execution="four") == {"eu": 2}
        assert pending(orders).is_empty

    def test_all_values_fail_and_nothing_has_moved(self, orders: RegionTable) -> None:
        assert read(orders, "eu", "us", None) == {"eu": 1, "us": 1, None: 1}
        assert orders.position is None
        assert read(orders, execution="two") == {"eu": 1, "us": 1, None: 1}

    def test_start_now_reads_what_comes_since(self, orders: RegionTable) -> None:
        assert read(orders, start="now") == {}
        orders.put((4, "us"))
        assert read(orders, execution="two") == {"us": 1}

    def test_watermark_is_what_all_values_have_reached(self, orders: RegionTable) -> None:
        def watermark() -> str | None:
            assert orders.position is not None
            return orders.kind.watermark(orders.position, lambda names: {})

        read(orders, "eu")
        assert watermark() is None
        read(orders)
        first = watermark()
        assert first is not None
        orders.put((4, "eu"), (5, "us"))
        read(orders, "us", execution="two")
        assert watermark() == first
        read(orders, execution="two")
        assert (watermark() or "") > first

    def test_kind_tells_the_part_and_what_an_execution_has_left(self, orders: RegionTable) -> None:
        loop, kind = PartLoop("orders"), orders.kind
        plan = orders.source(loop, "one").plan(PlanInput())
        assert kind.part_of(plan) == PlanPart("region", "eu")
        assert plan.stats()["part"] == "region='eu'"
        assert plan.summary().startswith("processing 1 file of region='eu' of the table as of ")
        after = plan.position_from(None)
        assert after is not None
        assert set(kind.parts_left(after.body, "one")) == {PlanPart("region", "us"), PlanPart("region", None)}
        assert kind.parts_left(after.body, "two") == ()
        assert kind.knows(PlanInput(after.body), plan)
        later = orders.source(loop, "one").plan(PlanInput(after.body))
        assert not kind.knows(PlanInput(after.body), later)

    def test_position_with_parts_is_not_read_by_a_version_that_knows_none(self, orders: RegionTable) -> None:
        read(orders, "eu")
        body = orders.position
        assert body is not None
        with pytest.raises(StateCorruptError, match="has format 2, and this version reads up to 1"):
            decoded("position", 1, lambda: inflated(body, "x"), lambda values: values)
        read(orders)
        assert inflated(orders.position or b"", "x")["version"] == 1

    def test_rest_is_not_read_without_the_column(self, orders: RegionTable) -> None:
        read(orders, "eu")
        with pytest.raises(SourceError, match=r"region='eu' are not read as far as the rest.* this read has no per="):
            orders.whole().plan(PlanInput(orders.position))
        read(orders)
        assert orders.whole().plan(PlanInput(orders.position)).is_empty
