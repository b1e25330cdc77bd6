"""The conformance suite of sources over Iceberg tables: of what was appended, and of the changes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

pytest.importorskip("pyiceberg", reason="no pyiceberg, which is an extra")

from airflow_bookmarks.sources.iceberg.kind import IcebergKind
from airflow_bookmarks.sources.iceberg.look import look
from airflow_bookmarks.sources.iceberg.position import IcebergPlan, IcebergRecipe, WholeTable
from airflow_bookmarks.sources.iceberg.source import IcebergSource
from airflow_bookmarks.sources.tables.versioned import VersionOptions
from airflow_bookmarks.testing.source_conformance import CTX, SourceConformance
from tests.sources.iceberg.tables import OwnTable


class TestAppends(SourceConformance):
    """An item is a snapshot with one row."""

    options = VersionOptions()

    @pytest.fixture(autouse=True)
    def _world(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
        self._patch = monkeypatch
        with self.world(tmp_path):
            yield

    def prepare(self) -> None:
        self.table = OwnTable(self.folder, self._patch)

    def kind(self) -> IcebergKind:
        return IcebergKind()

    def source(self) -> IcebergSource:
        recipe = IcebergRecipe("lake.shop.orders", self.table.location, self.options)
        return IcebergSource(recipe, f"job {self.job!r}, context {CTX!r}", lambda: look(recipe), job=self.job, ctx=CTX)

    def arrive(self, number: int) -> None:
        self.table.add(number)

    def items(self, plan: IcebergPlan) -> Iterable[int]:
        """Read the rows as of two snapshots, where nothing but appends has come between them."""
        for piece in plan.pieces:
            before = set() if isinstance(piece, WholeTable) else self.table.rows_at(piece.start)
            yield from sorted(self.table.rows_at(piece.needed) - before)

    def value_after(self, number: int) -> str:
        return str(self.table.ids[number - 1])

    def change(self, number: int) -> None:
        """Let the table be made again with the same rows."""
        rows = sorted(self.table.rows_at(self.table.ids[-1]))
        self.table.drop()
        self.table.make()
        for row in rows:
            self.table.add(row)


class TestChanges(TestAppends):
    """The same by the changes."""

    options = VersionOptions(changes=True)
