"""Delta tables that delta-rs writes, so that what reads their logs is held against another writer than Spark."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake
from pyarrow import parquet

from airflow_bookmarks.sources.delta.excerpt import path_of
from airflow_bookmarks.sources.delta.position import Added, DeltaPlan, Feed, Piece, Whole

IDS = pa.schema([("id", pa.int64())])
FEED = {"delta.enableChangeDataFeed": "true"}


class Table:
    """A table of ids in a folder."""

    def __init__(self, folder: Path, properties: dict[str, str] | None = None) -> None:
        self.path = str(folder)
        DeltaTable.create(self.path, IDS, configuration=dict(properties or {}))

    @property
    def now(self) -> DeltaTable:
        """The table as it is."""
        return DeltaTable(self.path)

    def append(self, *ids: int, **how: Any) -> None:
        write_deltalake(self.path, pa.table({"id": list(ids)}, IDS), mode="append", **how)

    def overwrite(self, *ids: int) -> None:
        write_deltalake(self.path, pa.table({"id": list(ids)}, IDS), mode="overwrite")

    def log(self, version: int) -> Path:
        """Return the file of a commit."""
        return Path(self.path, "_delta_log", f"{version:020}.json")

    def commit(self, version: int, *actions: dict[str, Any], operation: str = "WRITE", **details: Any) -> None:
        """Write a commit by hand, for what delta-rs does not do."""
        info = {"commitInfo": {"operation": operation, "operationParameters": details}}
        self.log(version).write_text("".join(json.dumps(action) + "\n" for action in (info, *actions)))

    def actions(self, version: int) -> list[dict[str, Any]]:
        """Return the actions of a commit."""
        return [json.loads(line) for line in self.log(version).read_text().splitlines()]

    def add_of(self, version: int) -> dict[str, Any]:
        """Return the file that a commit has added."""
        return next(dict(action["add"]) for action in self.actions(version) if "add" in action)

    def checkpoint(self) -> None:
        self.now.create_checkpoint()

    def clean_before(self, version: int) -> None:
        """Remove the commits before a version, as the retention of the log does."""
        for number in range(version):
            self.log(number).unlink(missing_ok=True)


def ids_of(plan: DeltaPlan) -> list[int]:
    """Read what a plan reads, by delta-rs and pyarrow."""
    return sorted(number for piece in plan.pieces for number in _ids(plan.recipe.path, piece))


def _ids(path: str, piece: Piece) -> Iterable[int]:
    if isinstance(piece, Whole):
        return _column(DeltaTable(path, version=piece.version).to_pyarrow_table())
    if isinstance(piece, Feed):
        feed = DeltaTable(path).load_cdf(starting_version=piece.first, ending_version=piece.last)
        return _column(pa.table(feed.read_all()))
    assert isinstance(piece, Added)
    paths = [path_of(file, path)[0].removeprefix("file://") for file in piece.files]
    return [number for each in paths for number in _column(parquet.read_table(each))]


def _column(rows: pa.Table) -> list[int]:
    return [int(value) for value in rows.column("id").to_pylist()]
