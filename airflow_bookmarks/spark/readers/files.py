"""From a plan of files to a DataFrame that reads exactly these files.

Two ways, both exact and with the same column types:

by paths       the planned files are named; for few files, or few of many
by directory   the roots are read, and what is not in the plan is filtered out by `_metadata.file_path`, which prunes
               files before they are opened; for a plan that is most of its folder
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal
from urllib.parse import quote

from pyspark.sql import DataFrame, DataFrameReader, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import DataType, DateType, IntegerType, LongType, StringType, StructField, StructType

from airflow_bookmarks.core.errors import SchemaUnknownError
from airflow_bookmarks.spark.session import changed_conf, is_connect

if TYPE_CHECKING:
    from collections.abc import Mapping

    from airflow_bookmarks.core.plan import FilePlan
    from airflow_bookmarks.files.filesystem import FileSystem

Way = Literal["paths", "directory"]

_FEW_FILES = 500
_MAX_EXCLUDED = 200  # a longer list makes Spark's pruning dear
_TYPES: Mapping[str, DataType] = {
    "int": IntegerType(),
    "bigint": LongType(),
    "date": DateType(),
    "string": StringType(),
}

# Spark lists explicit paths by a job of its own above 32 of them; eight tasks do what 10,000 would (23 s against 1 s
# for 10,000 paths).
_LISTING_CONF = {"spark.sql.sources.parallelPartitionDiscovery.parallelism": "8"}


@dataclass(frozen=True, slots=True)
class Format:
    """How the files of a source are read: Spark's format name, options, the user's schema, and whether folders that are
    no partition are descended into.
    """

    name: str
    options: Mapping[str, str]
    schema: StructType | None
    recursive: bool = False


def choose_way(plan: FilePlan, connect: bool) -> Way:
    """Say how a plan is read.

    Spark Connect plans a frame anew at each action, so a folder would be listed anew too and show later files: by
    paths.
    """
    few = len(plan) <= _FEW_FILES or 2 * len(plan) < plan.listed
    return "paths" if connect or few else "directory"


def read_plan(
    spark: SparkSession,
    files: FileSystem,
    plan: FilePlan,
    fmt: Format,
    known_schema: str | None,
    way: Way | None = None,
) -> DataFrame:
    """Return a frame over exactly the planned files.

    Args:
        known_schema: the schema (JSON) of the run before, for an empty plan without a schema.
        way: how to read; default: `choose_way`.

    Raises:
        SchemaUnknownError: the plan is empty, and neither the user nor an earlier run gave a schema.
    """
    if plan.is_empty:
        return spark.createDataFrame([], _empty_schema(plan, fmt, known_schema))
    chosen = way or choose_way(plan, is_connect(spark))
    with changed_conf(spark, _LISTING_CONF):
        if chosen == "directory":
            return _by_directory(spark, files, plan, fmt)
        return _by_paths(spark, files, plan, fmt)


def _by_paths(spark: SparkSession, files: FileSystem, plan: FilePlan, fmt: Format) -> DataFrame:
    frames = []
    for root in plan.roots:
        paths = [files.pattern(p) for p in plan.files.paths if p == root or p.startswith(root.rstrip("/") + "/")]
        if paths:
            reader = _reader(spark, files, root, fmt, plan.partition_types)
            schema = _full_schema(reader, paths, plan, fmt)
            frames.append(reader.schema(schema).load(paths))
    return _union(frames)


def _by_directory(spark: SparkSession, files: FileSystem, plan: FilePlan, fmt: Format) -> DataFrame:
    planned = set(plan.files.paths)
    frames = []
    for root in plan.roots:
        reader = _reader(spark, files, root, fmt, plan.partition_types)
        sample = [files.pattern(p) for p in plan.files.paths if p.startswith(root.rstrip("/") + "/")]
        schema = _full_schema(reader, sample if fmt.schema is None else [], plan, fmt)
        frame = reader.schema(schema).load(files.pattern(root))
        # Spark has listed by now (classic sessions list when the frame is made): a listing taken after that holds
        # whatever else the frame could read.
        others = [p for p in files.list(root, recursive=fmt.recursive).files.paths if p not in planned]
        if len(others) > _MAX_EXCLUDED:
            return _by_paths(spark, files, plan, fmt)
        frames.append(
            frame.where(~F.col("_metadata.file_path").isin([_metadata_path(p) for p in others])) if others else frame
        )
    return _union(frames)


def _reader(
    spark: SparkSession, files: FileSystem, root: str, fmt: Format, types: Mapping[str, str]
) -> DataFrameReader:
    reader = spark.read.format(fmt.name).options(**fmt.options)
    if fmt.recursive:
        return reader.option("recursiveFileLookup", "true")
    return reader.option("basePath", files.uri(root)) if types else reader


def _full_schema(reader: DataFrameReader, paths: list[str], plan: FilePlan, fmt: Format) -> StructType:
    """Return the schema with the settled types of the partition columns, which Spark would infer from what it sees."""
    base = fmt.schema if fmt.schema is not None else reader.load(paths).schema
    given = set(base.fieldNames()) if fmt.schema is not None else set()
    columns = {f.name: f for f in base.fields if f.name in given or f.name not in plan.partition_types}
    fields = [columns[f.name] for f in base.fields if f.name in columns]
    fields += [StructField(n, _TYPES[t]) for n, t in plan.partition_types.items() if n not in columns]
    return StructType(fields)


def _empty_schema(plan: FilePlan, fmt: Format, known_schema: str | None) -> StructType:
    if fmt.schema is not None:
        names = set(fmt.schema.fieldNames())
        extra = [StructField(n, _TYPES[t]) for n, t in plan.partition_types.items() if n not in names]
        return StructType([*fmt.schema.fields, *extra])
    if known_schema is not None:
        return StructType.fromJson(json.loads(known_schema))
    if fmt.name == "text":
        return StructType([StructField("value", StringType())])
    raise SchemaUnknownError(
        f"nothing is there to read at {', '.join(plan.roots) or 'this source'}, and no schema is known: none was "
        "given, and no earlier run recorded one. Nothing was read or changed. Give one with .schema(...), so that an "
        "empty increment has columns."
    )


def _metadata_path(path: str) -> str:
    # As Spark shows it in _metadata.file_path: one slash after the scheme, percent-encoded.
    return "file:" + quote(path, safe="/!$&'()*+,;=:@~-._")


def _union(frames: list[DataFrame]) -> DataFrame:
    frame = frames[0]
    for other in frames[1:]:
        frame = frame.unionByName(other)
    return frame
