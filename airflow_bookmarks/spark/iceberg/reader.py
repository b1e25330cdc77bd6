"""Read the pieces of a plan from an Iceberg table, each by Iceberg's own reader."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING

from pyspark.sql import functions as F
from pyspark.sql.types import BooleanType, DateType, DecimalType, IntegerType, LongType, StringType

from airflow_bookmarks.core.text.catalog_name import quoted
from airflow_bookmarks.sources.iceberg.partitions import PartAmount
from airflow_bookmarks.sources.iceberg.position import AppendedRows, WholeTable
from airflow_bookmarks.sources.iceberg.source import why_gone
from airflow_bookmarks.sources.tables.versioned import VersionGoneError
from airflow_bookmarks.spark.features import is_connect
from airflow_bookmarks.spark.iceberg.session import text

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pyspark.sql import Column, DataFrame, SparkSession

    from airflow_bookmarks.core.plan import PlanPart
    from airflow_bookmarks.sinks.iceberg.target import IcebergTarget
    from airflow_bookmarks.sources.iceberg.position import ChangedRows, IcebergPlan, TablePiece
    from airflow_bookmarks.sources.iceberg.snapshots import SnapshotLog

CHANGE_TYPE, CHANGE_ORDINAL, COMMIT_SNAPSHOT = "_change_type", "_change_ordinal", "_commit_snapshot_id"
INSERT, DELETE = "INSERT", "DELETE"
UPDATE_BEFORE = "UPDATE_BEFORE"  # a row as it was: an update of its key leaves it nowhere else
# Values that their text tells apart, whatever the time zone of a session.
PART_TYPES = (StringType, IntegerType, LongType, DecimalType, DateType, BooleanType)


@dataclass(frozen=True, slots=True)
class IcebergReader:
    """Makes frames of plans over one table.

    Args:
        spark: the session.
        target: the table.
        has_keys: whether the table says by which columns a row is known again, so that updates are told as such.
        changes: whether frames say what became of a row.
        look: returns the snapshots as they were looked at last.
    """

    spark: SparkSession
    target: IcebergTarget
    has_keys: bool
    changes: bool
    look: Callable[[], SnapshotLog]

    def frame(self, plan: IcebergPlan) -> DataFrame:
        """Return the rows that a plan reads; an empty one has the columns of the table now.

        Raises:
            VersionGoneError: snapshots of the plan, which an earlier attempt has made, have expired.
        """
        if plan.is_empty:
            rows = self.spark.table(self.target.sql)
            return (_as_inserts(rows, 0) if self.changes else rows).where(F.lit(False))
        gone = why_gone(self.look(), plan)
        if gone is not None:
            raise VersionGoneError(
                f"{gone}, and the plan of this run reads it. Nothing was read or changed. Rewind or reset the job, so "
                "that the next run plans anew."
            )
        return reduce(
            lambda one, other: one.unionByName(other, allowMissingColumns=True), map(self._piece, plan.pieces)
        )

    def parts(self, column: str, piece: WholeTable | AppendedRows) -> Mapping[str | None, PartAmount]:
        """Return what a piece has of each value of a column; see `LookAtParts`."""
        rows = self._piece(piece).groupBy(_column(column).cast("string").alias("value"))
        found = rows.agg(F.countDistinct("_file").alias("files"), F.count(F.lit(1)).alias("rows")).collect()
        return {row["value"]: PartAmount(row["files"], row["rows"]) for row in found}

    def _piece(self, piece: TablePiece) -> DataFrame:
        if isinstance(piece, WholeTable):
            rows = self.spark.sql(f"SELECT * FROM {self.target.sql} VERSION AS OF {piece.snapshot}")  # noqa: S608 (quoted)
            return _as_inserts(rows, piece.snapshot) if self.changes else _of_part(rows, piece.part)
        if isinstance(piece, AppendedRows):
            reader = self.spark.read.format("iceberg").option("start-snapshot-id", str(piece.start))
            return _of_part(reader.option("end-snapshot-id", str(piece.end)).load(self.target.sql), piece.part)
        return self._changed(piece)

    def _changed(self, piece: ChangedRows) -> DataFrame:
        """Return changes by the view that Iceberg makes of them.

        On Spark Connect each action looks for the view anew, so it stays until the session ends.
        """
        view = f"bookmark_changes_{uuid.uuid4().hex}"
        options = f"map('start-snapshot-id', '{piece.start}', 'end-snapshot-id', '{piece.end}')"
        self.spark.sql(
            f"CALL `{self.target.catalog}`.system.create_changelog_view(table => {text(self.target.in_catalog)}, "
            f"changelog_view => '{view}', options => {options}, compute_updates => {str(self.has_keys).lower()})"
        ).collect()
        frame = self.spark.table(view)
        if not is_connect(self.spark):
            self.spark.catalog.dropTempView(view)
        return frame


def _column(name: str) -> Column:
    return F.col(quoted(name))


def _of_part(rows: DataFrame, part: PlanPart | None) -> DataFrame:
    """Return the rows of one value of a column, compared in its own type, so that Iceberg opens no file of another."""
    if part is None:
        return rows
    column = _column(part.column)
    if part.value is None:
        return rows.where(column.isNull())
    return rows.where(column == F.lit(part.value).cast(rows.schema[part.column].dataType))


def _as_inserts(rows: DataFrame, snapshot: int) -> DataFrame:
    """Return rows with the columns of a change feed that has inserted them."""
    return rows.select(
        "*",
        F.lit(INSERT).alias(CHANGE_TYPE),
        F.lit(0).alias(CHANGE_ORDINAL),
        F.lit(snapshot).cast("bigint").alias(COMMIT_SNAPSHOT),
    )
