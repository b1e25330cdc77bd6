"""Read planned files of partitions that a catalog lists: their values are columns, whatever the folders are called."""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING

from pyspark.sql import functions as F
from pyspark.sql.types import DataType, DateType, IntegerType, LongType, StringType, StructField, StructType

from airflow_bookmarks.core.errors import SourceError
from airflow_bookmarks.spark.readers.format import case_rule, reader_of
from airflow_bookmarks.spark.readers.planned_files import is_spelled_as_planned, metadata_path

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import DataFrame, SparkSession

    from airflow_bookmarks.core.files.file_plan import FilePlan
    from airflow_bookmarks.core.files.listed_partitions import ListedPartitions, Values
    from airflow_bookmarks.files.filesystem import FileSystem
    from airflow_bookmarks.spark.readers.format import Format

_FOLDER = "__bookmark_folder"
_TYPES: Mapping[str, DataType] = {
    "int": IntegerType(),
    "bigint": LongType(),
    "date": DateType(),
    "string": StringType(),
}


def type_of(spark: SparkSession, ddl: str) -> DataType:
    """Return the type of a partition column."""
    known = _TYPES.get(ddl)
    return known if known is not None else spark.range(0).select(F.lit(None).cast(ddl)).schema[0].dataType


def read_listed(
    spark: SparkSession, files: FileSystem, plan: FilePlan, listed: ListedPartitions, fmt: Format
) -> DataFrame:
    """Return a frame over exactly the planned files, with the columns of their partitions last.

    The values come by a small table of folders that is sent to all tasks, so that filters and the choice of columns
    still reach the files.

    Raises:
        SourceError: a planned file lies in no partition that the plan knows.
    """
    names = {case_rule(spark)(name) for name in listed.types}
    data = StructType([field for field in fmt.schema or () if case_rule(spark)(field.name) not in names])
    paths_of: dict[Values, list[str]] = {}
    for path in plan.files.paths:
        values = listed.values_of(path)
        if values is None:
            raise SourceError(
                f"{fmt.reader}: the planned file {path!r} lies in no partition of the plan. Nothing was committed. Run "
                "the job again: it plans anew."
            )
        paths_of.setdefault(values, []).append(path)
    is_joined = len(paths_of) > 1 and "_metadata" not in data.fieldNames()
    if is_joined and is_spelled_as_planned(spark, files, plan.files.paths):
        return _joined(spark, files, data, paths_of, listed, fmt)
    parts = [_with_values(_loaded(spark, files, data, paths, fmt), v, listed) for v, paths in paths_of.items()]
    return reduce(lambda whole, part: whole.unionByName(part), parts)


def _loaded(spark: SparkSession, files: FileSystem, data: StructType, paths: Sequence[str], fmt: Format) -> DataFrame:
    return reader_of(spark, fmt).schema(data).load([files.pattern(path) for path in paths])


def _with_values(frame: DataFrame, values: Values, listed: ListedPartitions) -> DataFrame:
    return frame.withColumns(
        {name: F.lit(value).cast(ddl) for (name, ddl), value in zip(listed.types.items(), values, strict=True)}
    )


def _joined(
    spark: SparkSession,
    files: FileSystem,
    data: StructType,
    paths_of: Mapping[Values, Sequence[str]],
    listed: ListedPartitions,
    fmt: Format,
) -> DataFrame:
    values_of = {
        metadata_path(files, path).rpartition("/")[0]: values for values, paths in paths_of.items() for path in paths
    }
    schema = StructType([StructField(name, StringType()) for name in (_FOLDER, *listed.types)])
    table = spark.createDataFrame([(folder, *values) for folder, values in values_of.items()], schema)
    typed = table.select(_FOLDER, *[F.col(_quoted(name)).cast(ddl).alias(name) for name, ddl in listed.types.items()])
    whole = _loaded(spark, files, data, [path for paths in paths_of.values() for path in paths], fmt)
    folder = F.regexp_replace(F.col("_metadata.file_path"), "/[^/]*$", "")
    # By a column of its own: Spark 3.5 fails on a join whose condition names the hidden column of a file.
    placed = whole.withColumn(_FOLDER, folder)
    # Each planned folder has one row there, so this neither drops a row nor doubles one.
    return placed.join(F.broadcast(typed), _FOLDER, "left").drop(_FOLDER)


def _quoted(name: str) -> str:
    return f"`{name.replace('`', '``')}`"
