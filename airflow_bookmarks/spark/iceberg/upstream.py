"""Read what runs of an upstream have written to an Iceberg table, each by Iceberg's own reader."""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from airflow_bookmarks.core.errors import OptionError, SourceMissingError
from airflow_bookmarks.files.opener import canonical_folder
from airflow_bookmarks.sinks.iceberg.target import IcebergTarget
from airflow_bookmarks.sources.iceberg.position import AppendedRows, WholeTable
from airflow_bookmarks.spark.iceberg.reader import CHANGE_ORDINAL, CHANGE_TYPE, COMMIT_SNAPSHOT, INSERT
from airflow_bookmarks.spark.iceberg.session import IcebergSession

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame, SparkSession

    from airflow_bookmarks.core.run import OutputEntry
    from airflow_bookmarks.sources.iceberg.position import TablePiece
    from airflow_bookmarks.sources.iceberg.snapshots import SnapshotLog
    from airflow_bookmarks.sources.iceberg.written import OpenTable, SnapshotFiles, WrittenRows

_LEFT = "Nothing was read or changed."


def opened_by(spark: SparkSession, label: str) -> OpenTable:
    """Return what opens the table of an output by a Spark session; errors begin with `label`."""
    return lambda entry: SessionTable(spark, entry.target, label)


class SessionTable:
    """A table as a Spark session tells it; see `LookedAtTable`."""

    def __init__(self, spark: SparkSession, name: str, label: str) -> None:
        self._session, self._name, self._label = IcebergSession(spark), name, label
        self._target = IcebergTarget.parse(name)

    @property
    def location(self) -> str:
        """Its folder.

        Raises:
            OptionError: this Spark has no Iceberg. SourceMissingError: there is no such table.
        """
        try:
            detail = self._session.detail(self._name)
        except OptionError as error:
            raise OptionError(f"{self._label}: {str(error).rstrip('.')}. {_LEFT}") from error
        if detail is None:
            raise self._missing()
        return canonical_folder(detail.location)

    def log(self) -> SnapshotLog:
        """Return its snapshots as they are now.

        Raises:
            OptionError, SourceMissingError: see `location`. SourceError: it is out of reach.
        """
        found = self._session.log(self._target)
        if found is None:
            raise self._missing()
        return found

    def files(self, snapshot: int) -> SnapshotFiles:
        """Return what a snapshot, which is kept, has added and removed.

        Raises:
            SourceError: the table is out of reach.
        """
        return self._session.files(self._target, snapshot)

    def _missing(self) -> SourceMissingError:
        return SourceMissingError(f"{self._label}: the Iceberg table {self._name} is not there. {_LEFT}")


def read_written(spark: SparkSession, entry: OutputEntry, written: Sequence[WrittenRows]) -> DataFrame:
    """Return the rows of some runs; of none there are the columns of the table now.

    Args:
        entry: an output that went to the table.
        written: what reads the rows of each run.
    """
    target = IcebergTarget.of_entry(entry)
    if not written:
        return spark.table(target.sql).where(F.lit(False))
    frames = [_rows(spark, target, each) for each in written]
    return reduce(lambda one, other: one.unionByName(other, allowMissingColumns=True), frames)


def _rows(spark: SparkSession, target: IcebergTarget, written: WrittenRows) -> DataFrame:
    rows = _piece(spark, target, written.piece)
    return rows if written.files is None else rows.where(F.col("_file").isin(*written.files))


def _piece(spark: SparkSession, target: IcebergTarget, piece: TablePiece) -> DataFrame:
    if isinstance(piece, WholeTable):
        return spark.sql(f"SELECT * FROM {target.sql} VERSION AS OF {piece.snapshot}")  # noqa: S608 (quoted)
    reader = spark.read.format("iceberg")
    reader = reader.option("start-snapshot-id", str(piece.start)).option("end-snapshot-id", str(piece.end))
    if isinstance(piece, AppendedRows):
        return reader.load(target.sql)
    # By a function: Iceberg looks for the column of a plain comparison among those of the table, and fails.
    changed = reader.load(f"{target.sql}.`changes`").where(F.upper(CHANGE_TYPE) == INSERT)
    return changed.drop(CHANGE_TYPE, CHANGE_ORDINAL, COMMIT_SNAPSHOT)
