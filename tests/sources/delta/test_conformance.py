"""The conformance suite of sources over Delta tables: of what was appended, and of the change feed."""

from __future__ import annotations

from collections.abc import Iterable

from airflow_bookmarks.sources.delta.checkpoint import arrow
from airflow_bookmarks.sources.delta.kind import DeltaKind
from airflow_bookmarks.sources.delta.position import DeltaPlan, DeltaRecipe
from airflow_bookmarks.sources.delta.source import DeltaSource
from airflow_bookmarks.sources.tables.versioned import VersionOptions
from airflow_bookmarks.testing.source_conformance import CTX, SourceConformance
from tests.sources.delta.tables import FEED, Table, ids_of


class TestAppends(SourceConformance):
    """An item is a commit with one row: item 1 makes version 1."""

    options = VersionOptions()

    def prepare(self) -> None:
        self.table = Table(self.folder / "orders", FEED)

    def kind(self) -> DeltaKind:
        return DeltaKind()

    def source(self) -> DeltaSource:
        recipe = DeltaRecipe(self.table.path, "shop.orders", self.options)
        return DeltaSource(recipe, f"job {self.job!r}, context {CTX!r}", arrow(), job=self.job, ctx=CTX)

    def arrive(self, number: int) -> None:
        self.table.append(number)

    def items(self, plan: DeltaPlan) -> Iterable[int]:
        return ids_of(plan)

    def value_after(self, number: int) -> str:
        return str(number)

    def change(self, number: int) -> None:
        """Let another commit have made the version: the table is another one."""
        log = self.table.log(number)
        log.write_bytes(log.read_bytes() + b"\n")


class TestChangeFeed(TestAppends):
    """The same by the change feed."""

    options = VersionOptions(changes=True)


class TestAfterCompactions(TestAppends):
    """The same, and each item is compacted at once with all that was there."""

    def arrive(self, number: int) -> None:
        before = self.table.now.version()
        self.table.append(number)
        self.table.now.optimize.compact()
        assert self.table.now.version() >= before + 1

    def value_after(self, number: int) -> str:
        """Return the version of the compaction of an item; the first one has nothing to be compacted with."""
        return str(2 * number - 1)

    def one_at_a_time(self) -> None:
        """Return nothing: all items are in one file, which no bound splits."""

    def change(self, number: int) -> None:
        super().change(2 * number - 1)
