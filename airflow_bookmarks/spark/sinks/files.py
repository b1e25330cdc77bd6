"""Write a DataFrame to staged files, in any format that Spark writes as files."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from airflow_bookmarks.sinks.staging import Mode, Staged, StagingRequest, collect_staged
from airflow_bookmarks.spark.session import RowCount
from airflow_bookmarks.spark.sinks.round_trip import RoundTrip

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

    from airflow_bookmarks.core.rules.emptiness import WhenEmpty
    from airflow_bookmarks.files.filesystem import FileSystem
    from airflow_bookmarks.sinks.files.catalog import CatalogTable, TableDefinition
    from airflow_bookmarks.sinks.staging import OnUnknownRuns

KIND = "files"


@dataclass(frozen=True, slots=True)
class FileSink:
    """Files of one format below `target`, staged first.

    `partition_by` are the partition columns, `options` those of the user, for Spark's writer; `catalog_table` is the
    table that gets the new partitions.
    """

    format: str
    target: str
    mode: Mode
    partition_by: Sequence[str]
    options: Mapping[str, str]
    staging: str | None
    when_empty: WhenEmpty | None = None
    on_unknown_runs: OnUnknownRuns = "error"
    overwrites_published: bool = False
    catalog_table: CatalogTable | None = None
    catalog_definition: TableDefinition | None = None

    def place(self, schema: StructType) -> StagingRequest:
        """Return what is stored before the first byte of a frame with these columns is written."""
        stats: dict[str, Any] = {
            "format": self.format,
            "mode": self.mode.value,
            "partition_by": list(self.partition_by),
            "options": dict(self._trip(schema).reading),
            **({} if self.catalog_table is None else {"catalog_table": str(self.catalog_table)}),
            **({} if self.catalog_definition is None else {"catalog_definition": self.catalog_definition.encode()}),
        }
        # An overwrite from the beginning makes anew what lost runs have written.
        on_unknown_runs = self.on_unknown_runs if self.mode is Mode.APPEND else "keep"
        return StagingRequest(
            KIND, self.target, self.staging, stats, self.when_empty, on_unknown_runs, self.overwrites_published
        )

    def losses(self, schema: StructType) -> Sequence[str]:
        """Return what of a frame with these columns `upstream()` does not read as it was written."""
        return self._trip(schema).losses

    def _trip(self, schema: StructType) -> RoundTrip:
        return RoundTrip.of(self.format, schema, self.partition_by, self.options)

    def write(self, frame: DataFrame, files: FileSystem, folder: str, token: str, *, count_rows: bool) -> Staged:
        """Write the frame to `folder`, and list what publishing it moves and deletes."""
        count = RowCount() if count_rows else None
        counted = count.of(frame) if count is not None else frame
        writer = counted.write.format(self.format).options(**self._trip(frame.schema).writing)
        if self.partition_by:
            writer = writer.partitionBy(*self.partition_by)
        writer.save(files.uri(folder))
        rows = count.rows() if count is not None else None
        staged = collect_staged(
            files,
            folder,
            self.target,
            token,
            self.mode,
            rows=rows,
            schema=frame.schema.json(),
            partition_by=self.partition_by,
        )
        if count is None or rows is not None:
            return staged
        # Spark reported no count: its optimizer may drop it where it can prove that a frame has no rows.
        return replace(staged, rows=self._rows_in(frame, files.uri(folder)) if staged.moves else 0)

    def _rows_in(self, frame: DataFrame, folder: str) -> int:
        reading = self._trip(frame.schema).reading
        reader = frame.sparkSession.read.format(self.format).options(**reading).schema(frame.schema)
        return int(reader.load(folder).count())  # the Spark Connect of 3.5 returns a number of NumPy
