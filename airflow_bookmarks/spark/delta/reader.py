"""Read the pieces of a plan from a Delta table, each by Delta's own reader."""

from __future__ import annotations

import atexit
import io
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Any, TypeAlias

from pyspark.sql import functions as F

from airflow_bookmarks.core.errors import OptionError, SourceError
from airflow_bookmarks.core.text.catalog_name import parts_of, quoted
from airflow_bookmarks.sources.delta.checkpoint import PARSED, WANTED, plain_actions
from airflow_bookmarks.sources.delta.excerpt import LOG_FILE, excerpt_of
from airflow_bookmarks.sources.delta.log import DeltaLog
from airflow_bookmarks.sources.delta.position import Added, Feed, Whole
from airflow_bookmarks.spark.features import SPARK_ERRORS
from airflow_bookmarks.spark.sinks.delta_session import few_state_partitions
from airflow_bookmarks.spark.tables.described import DescribedTable

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pyspark.sql import DataFrame, SparkSession

    from airflow_bookmarks.files.filesystem import FileSystem
    from airflow_bookmarks.sources.delta.checkpoint import ReadParquet
    from airflow_bookmarks.sources.delta.commit import Action
    from airflow_bookmarks.sources.delta.position import DeltaPlan, Piece

CHANGE_TYPE, COMMIT_VERSION, COMMIT_TIMESTAMP = "_change_type", "_commit_version", "_commit_timestamp"
INSERT, DELETE = "insert", "delete"
UPDATE_PREIMAGE = "update_preimage"  # a row as it was: an update of its key leaves it nowhere else

_MOST_LISTED = 1000  # PySpark fetches each name by a call of its own

# A new folder that Spark reads, and the file system by which this process writes there.
NewFolder: TypeAlias = "Callable[[], tuple[str, FileSystem]]"


def check_delta(spark: SparkSession, label: str) -> None:
    """Make sure that a session has Delta.

    Raises:
        OptionError: it has not.
    """
    try:
        spark.read.format("delta").load().columns  # noqa: B018 - without a path, it says that it needs one
    except SPARK_ERRORS as error:
        if "DATA_SOURCE_NOT_FOUND" not in str(error) and "Failed to find" not in str(error):
            return
        raise OptionError(
            f"{label}: this Spark {spark.version} has no Delta. Nothing was read or changed. Start it with the package "
            "io.delta:delta-spark for its version, and with Delta's session extension and catalog: see 'Delta Lake "
            "tables'."
        ) from error


def location_of(spark: SparkSession, name: str, label: str) -> str:
    """Return the folder of a table of Spark's catalog.

    Raises:
        SourceError: there is no such table, or it is no Delta table.
    """
    try:
        told = DescribedTable.of(spark, quoted(*parts_of(name)))
    except OptionError as error:
        raise OptionError(f"{label}: {error}. Nothing was read or changed.") from error
    except SPARK_ERRORS as error:
        said = str(error).strip().partition("\n")[0]
        raise SourceError(
            f"{label}: Spark knows no Delta table {name!r}: {said} Nothing was read or changed. Give the name as in "
            "SQL, or the folder of the table."
        ) from error
    if told.provider != "delta":
        raise SourceError(
            f"{label}: the table {name!r} is of format {told.provider or 'unknown'!r}, and not of Delta. Nothing was "
            "read or changed. Read its files by .format(...).load(path)."
        )
    return told.location


def by_spark(spark: SparkSession) -> ReadParquet:
    """Return what reads checkpoints by Spark, where pyarrow is not installed."""

    def read(files: FileSystem, path: str) -> Iterator[Action]:
        frame = spark.read.parquet(files.pattern(path))
        wanted = [F.col(name) for name in WANTED if name in frame.columns]
        if "add" in frame.columns:
            wanted[0] = F.col("add").dropFields(*PARSED).alias("add")
        return plain_actions(row.asDict(recursive=True) for row in frame.select(*wanted).collect())

    return read


@dataclass(frozen=True, slots=True)
class DeltaReader:
    """Makes frames of plans over one table.

    Args:
        spark: the session.
        table: the folder of the table, by its one spelling.
        files: the file system it lies on.
        changes: whether frames say what became of a row, by the columns of the change feed.
        new_folder: makes a folder for an excerpt of the log.
    """

    spark: SparkSession
    table: str
    files: FileSystem
    changes: bool
    new_folder: NewFolder

    def frame(self, plan: DeltaPlan) -> DataFrame:
        """Return the rows that a plan reads; an empty one has the columns of the table now."""
        return self.read(plan.pieces)

    def read(self, pieces: Sequence[Piece]) -> DataFrame:
        """Return the rows of some pieces; of none there are the columns of the table now."""
        if not pieces:
            rows = self._read(self._uri)
            return (self._as_inserts(rows, 0, None) if self.changes else rows).where(F.lit(False))
        frames = [self._piece(piece) for piece in pieces]
        return reduce(lambda one, other: one.unionByName(other, allowMissingColumns=True), frames)

    @property
    def _uri(self) -> str:
        return self.files.uri(self.table)

    def _piece(self, piece: Piece) -> DataFrame:
        if isinstance(piece, Feed):
            return self._read(
                self._uri, readChangeFeed="true", startingVersion=str(piece.first), endingVersion=str(piece.last)
            )
        if isinstance(piece, Whole):
            rows = self._read(self._uri, versionAsOf=str(piece.version))
        else:
            rows = self._excerpt(piece)
        if not self.changes:
            return rows
        return self._as_inserts(rows, piece.version, DeltaLog.open(self.table).time_ms(piece.version))

    def _excerpt(self, piece: Added) -> DataFrame:
        uri, files = self.new_folder()
        folder = files.canonical(uri)
        body = excerpt_of(piece.state, piece.files, self._uri)
        files.write(f"{folder}/{LOG_FILE}", io.BytesIO(body))
        if len(piece.files) > _MOST_LISTED:
            return self._read(files.uri(folder))
        # Asking for the files computes the state of the excerpt, which Delta then keeps. The first action would do so
        # in 50 partitions, which takes two cores 2 s.
        with few_state_partitions(self.spark, len(piece.files)):
            frame = self._read(files.uri(folder))
            frame.inputFiles()
        return frame

    def _read(self, uri: str, **options: Any) -> DataFrame:
        return self.spark.read.format("delta").options(**options).load(uri)

    def _as_inserts(self, rows: DataFrame, version: int, time_ms: int | None) -> DataFrame:
        """Return rows with the columns of a change feed that has inserted them."""
        time = F.lit(None).cast("timestamp") if time_ms is None else F.timestamp_millis(F.lit(time_ms))
        return rows.select(
            "*",
            F.lit(INSERT).alias(CHANGE_TYPE),
            F.lit(version).cast("bigint").alias(COMMIT_VERSION),
            time.alias(COMMIT_TIMESTAMP),
        )


def temporary_folder() -> str:
    """Return a new folder of this machine, which goes when the process does."""
    folder = tempfile.TemporaryDirectory(prefix="airflow-bookmarks-delta-", ignore_cleanup_errors=True)
    atexit.register(folder.cleanup)
    return folder.name
