"""Read files whole, without a job: the same files as a first run under a bookmark would read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from airflow_bookmarks.core.text.instant import utc_now
from airflow_bookmarks.files.access import reached_by
from airflow_bookmarks.files.filesystem import paths_and_patterns
from airflow_bookmarks.files.opener import open_one_filesystem
from airflow_bookmarks.sources.files.planner import FileSource
from airflow_bookmarks.sources.source import PlanInput
from airflow_bookmarks.spark.features import check_format, session_conf
from airflow_bookmarks.spark.readers.files import read_plan
from airflow_bookmarks.spark.readers.format import Format
from airflow_bookmarks.spark.session import session_access

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from airflow_bookmarks.core.files.file_plan import FilePlan
    from airflow_bookmarks.core.files.listed_partitions import ListedPartitions
    from airflow_bookmarks.core.rules.schema import InferSchema
    from airflow_bookmarks.sources.files.options import FileOptions


@dataclass(frozen=True, slots=True, kw_only=True)
class WholeRead:
    """What is read whole, and how.

    Args:
        label: who reads, for messages.
        paths: folders, files and patterns.
        format: as `BookmarkedReader.format` takes it.
        selection: which of the files are read.
        schema: the columns; None: they are found.
        settings: options of the format.
        listed: the partitions that a catalog lists of the one folder; see `FileSource`.
        infer_schema: which files are looked at for columns.
    """

    label: str
    paths: Sequence[str]
    format: str
    selection: FileOptions
    schema: StructType | None = None
    settings: Mapping[str, str]
    listed: ListedPartitions | None = None
    infer_schema: InferSchema = "all"

    def name(self, spark: SparkSession) -> str:
        """Return the name under which a bookmark would know what is read."""
        with reached_by(session_access(spark, session_conf(spark))):
            return str(self._source().ref())

    def plan(self, spark: SparkSession) -> FilePlan:
        """Return what there is to read.

        Raises:
            OptionError: options that contradict each other. SourceMissingError: nothing is there.
        """
        with reached_by(session_access(spark, session_conf(spark))):
            return self._source().plan(PlanInput())

    def _source(self) -> FileSource:
        files = open_one_filesystem(self.paths)
        roots, globs = paths_and_patterns(files, self.paths)
        named = {field.name: field.dataType.simpleString() for field in self.schema or ()}
        return FileSource(files, roots, self.selection, named=named, clock=utc_now, globs=globs, listed=self.listed)

    def frame(self, spark: SparkSession, plan: FilePlan) -> DataFrame:
        """Return the rows of a plan.

        Raises:
            OptionError: this Spark has not the format.
            SchemaUnknownError: no file tells the columns, and none were given.
        """
        check_format(spark, self.format, self.label)
        fmt = Format(
            self.label, self.format, self.settings, self.schema, self.selection.recursive, infer=self.infer_schema
        )
        with reached_by(session_access(spark, session_conf(spark))):
            return read_plan(spark, open_one_filesystem(self.paths), plan, fmt, lambda: None)
