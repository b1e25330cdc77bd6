"""Tables as targets: of Delta Lake, of PostgreSQL and of Iceberg, in this order behind each other.

What is read again after a rewind replaces itself, because a line is the key. The same line may be in a raw file more
than once: a table has it in one row, with the number of `times`. All copies of a line are in one file, and so in one
run. `at` is the version of the Delta table that has brought a line: by it the stages behind know what is new.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow_bookmarks.lifecycle.protocol.failpoint import Failpoint
from tests.chaos.chain.target import CONTEXT, OUTPUT

if TYPE_CHECKING:
    from pyiceberg.table import StaticTable
    from pyspark.sql import DataFrame

    from airflow_bookmarks.sources.upstream.rewind import OnRewind
    from airflow_bookmarks.spark import BookmarkedJob

CATALOG = "lake"
CONNECTION, CONNECTION_VARIABLE = "conn:dw", "AIRFLOW_CONN_DW"
_METADATA = re.compile(r"v(\d+)\.metadata\.json")


@dataclass(frozen=True, slots=True)
class DeltaTable:
    """A table of Delta Lake behind the raw files, whose changes the next stage reads."""

    folder: Path

    @property
    def points(self) -> Sequence[Failpoint]:
        """All but one: its rows have landed when the run commits, so nothing is moved after that."""
        return tuple(point for point in Failpoint if point is not Failpoint.MOVED)

    def write(self, bookmarked: BookmarkedJob, lines: DataFrame) -> None:
        """Upsert the lines of raw files."""
        rows = lines.groupBy("value").count().selectExpr("value AS line", "CAST(count AS INT) AS times")
        out = bookmarked.write(rows, OUTPUT).option("delta.enableChangeDataFeed", "true")
        out.upsert("line").delta(str(self.folder))

    def read(self, bookmarked: BookmarkedJob, job: str, on_rewind: OnRewind) -> DataFrame:
        """Read the changes: `upstream()` of an upsert is refused, as its files hold rows of other runs as well."""
        feed = bookmarked.read(CONTEXT).delta(str(self.folder), changes=True)
        rows = feed.where("_change_type IN ('insert', 'update_postimage')")
        return rows.selectExpr("line", "times", "_commit_version AS at")

    def rows(self) -> Counter[str]:
        """Return the lines of its newest version."""
        import deltalake

        if not self.folder.exists():
            return Counter()
        return counted(deltalake.DeltaTable(self.folder).to_pyarrow_table(columns=["line", "times"]).to_pylist())

    def staged(self) -> list[str]:
        """Nothing ever is: the rows land when the block ends."""
        return []


@dataclass(frozen=True, slots=True)
class DatabaseTable:
    """A table of PostgreSQL, which the next stage reads by key."""

    name: str

    @property
    def points(self) -> Sequence[Failpoint]:
        """All."""
        return tuple(Failpoint)

    def make(self) -> None:
        """Make it, with a key by which the next stage can read."""
        self._run(f"CREATE TABLE {self.name} (line text PRIMARY KEY, times int NOT NULL, at bigint NOT NULL)")

    def write(self, bookmarked: BookmarkedJob, lines: DataFrame) -> None:
        """Upsert the lines, each as its newest version has it."""
        bookmarked.write(lines, OUTPUT).upsert("line", order_by="at").jdbc(CONNECTION, self.name)

    def read(self, bookmarked: BookmarkedJob, job: str, on_rewind: OnRewind) -> DataFrame:
        """Read the rows behind the last version that was read."""
        return bookmarked.read(CONTEXT).jdbc(CONNECTION, self.name, keys=["at", "line"])

    def rows(self) -> Counter[str]:
        """Return the lines that a transaction sees now."""
        return counted(self._run(f"SELECT line, times FROM {self.name}"))

    def staged(self) -> list[str]:
        """Return the stage tables."""
        found = self._run("SELECT tablename FROM pg_tables WHERE starts_with(tablename, '_bm_')")
        return [str(row["tablename"]) for row in found]

    def _run(self, statement: str) -> list[dict[str, Any]]:
        import psycopg
        from psycopg.rows import dict_row

        with psycopg.connect(os.environ[CONNECTION_VARIABLE], row_factory=dict_row) as connection:
            cursor = connection.execute(statement.encode())
            return cursor.fetchall() if cursor.description else []


@dataclass(frozen=True, slots=True)
class IcebergTable:
    """A table of Iceberg, in a catalog of folders."""

    warehouse: Path
    namespace: str
    name: str

    @property
    def points(self) -> Sequence[Failpoint]:
        """All."""
        return tuple(Failpoint)

    def write(self, bookmarked: BookmarkedJob, lines: DataFrame) -> None:
        """Upsert the lines, each as its newest version has it."""
        out = bookmarked.write(lines, OUTPUT).upsert("line", order_by="at")
        out.iceberg(f"{CATALOG}.{self.namespace}.{self.name}")

    def read(self, bookmarked: BookmarkedJob, job: str, on_rewind: OnRewind) -> DataFrame:
        """Read the changes: `upstream()` of an upsert is refused, as its files hold rows of other runs as well."""
        table = f"{CATALOG}.{self.namespace}.{self.name}"
        feed = bookmarked.read(CONTEXT).iceberg(table, changes=True)
        return feed.where("_change_type IN ('INSERT', 'UPDATE_AFTER')").select("line", "times", "at")

    def rows(self) -> Counter[str]:
        """Return the lines of the snapshot that its branch `main` names."""
        table = self._table()
        return (
            Counter()
            if table is None
            else counted(table.scan(selected_fields=("line", "times")).to_arrow().to_pylist())
        )

    def staged(self) -> list[str]:
        """Return the tags of runs, and the snapshots that are not in the history of its branch `main`."""
        table = self._table()
        if table is None:
            return []
        tags = [name for name in table.metadata.refs if name != "main"]
        return tags + [f"snapshot {number}" for number in sorted(_beside_main(table))]

    def _table(self) -> StaticTable | None:
        """Return the table by its newest metadata; None where it was not made yet."""
        from pyiceberg.table import StaticTable

        folder = self.warehouse / self.namespace / self.name / "metadata"
        found = {int(match[1]): path for path in folder.glob("*") if (match := _METADATA.fullmatch(path.name))}
        return StaticTable.from_metadata(str(found[max(found)])) if found else None


def counted(rows: Iterable[Mapping[str, Any]]) -> Counter[str]:
    """Return how often each line is there. A line with two rows is there as often as both say."""
    lines = Counter[str]()
    for row in rows:
        lines[row["line"]] += row["times"]
    return lines


def _beside_main(table: StaticTable) -> set[int]:
    parents = {each.snapshot_id: each.parent_snapshot_id for each in table.metadata.snapshots}
    current = table.metadata.current_snapshot_id
    beside = set(parents)
    while current is not None:
        beside.discard(current)
        current = parents.get(current)
    return beside
