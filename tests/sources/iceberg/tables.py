"""Iceberg tables that pyiceberg writes, in a catalog that it keeps in SQLite."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.catalog import load_catalog
from pyiceberg.table import Table

IDS = pa.schema([("id", pa.int64())])


class OwnTable:
    """A table `lake.shop.orders` with an id; the catalog `lake` is known by the environment alone."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("PYICEBERG_HOME", str(folder))  # no file of the machine's
        monkeypatch.setenv("PYICEBERG_CATALOG__LAKE__TYPE", "sql")
        uri = f"sqlite:///{folder}/catalog.db"
        monkeypatch.setenv("PYICEBERG_CATALOG__LAKE__URI", uri)
        monkeypatch.setenv("PYICEBERG_CATALOG__LAKE__WAREHOUSE", f"file://{folder}")
        self.catalog = load_catalog("lake", type="sql", uri=uri, warehouse=f"file://{folder}")
        self.catalog.create_namespace("shop")
        self.make()

    def make(self) -> None:
        self.catalog.create_table("shop.orders", IDS)

    def drop(self) -> None:
        self.catalog.drop_table("shop.orders")

    @property
    def table(self) -> Table:
        return self.catalog.load_table("shop.orders")

    @property
    def location(self) -> str:
        return self.table.location()

    @property
    def ids(self) -> list[int]:
        """The ids of the snapshots, oldest first."""
        return [each.snapshot_id for each in self.table.metadata.snapshots]

    def rows_at(self, snapshot: int) -> set[int]:
        """The ids of the rows as of a snapshot."""
        return {int(each) for each in self.table.scan(snapshot_id=snapshot).to_arrow()["id"].to_pylist()}

    def add(self, *ids: int) -> None:
        self.table.append(rows(ids))

    def overwrite(self, *ids: int) -> None:
        self.table.overwrite(rows(ids))

    def delete(self, condition: str) -> None:
        self.table.delete(condition)

    def expire(self, *snapshots: int) -> None:
        self.table.maintenance.expire_snapshots().by_ids(list(snapshots)).commit()


def rows(ids: Sequence[int]) -> pa.Table:
    return pa.table({"id": list(ids)}, IDS)
