"""From a plan of files to a DataFrame that reads exactly these files.

Two ways, both exact and with the same columns and types:

by paths       the planned files are named; for few files, or few of many
by directory   the roots are read, and what is not in the plan is filtered out by `_metadata.file_path`, which prunes
               files before they are opened; for a plan that is most of its folder
"""

from __future__ import annotations

import json
import logging
import unicodedata
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal
from urllib.parse import quote

import numpy as np
from pyspark.errors import AnalysisException, SparkRuntimeException
from pyspark.sql import DataFrame, DataFrameReader, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import (
    ArrayType,
    DataType,
    DateType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
)

from airflow_bookmarks.core.errors import SchemaUnknownError, SourceChangedError
from airflow_bookmarks.core.partition import root_of
from airflow_bookmarks.core.reason import BEFORE_START, LATE, NESTED, SPECIAL
from airflow_bookmarks.spark.session import LISTING_CONF, changed_conf, is_connect

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from airflow_bookmarks.core.plan import FilePlan
    from airflow_bookmarks.files.filesystem import FileSystem

log = logging.getLogger(__name__)

Way = Literal["paths", "directory"]

_FEW_FILES = 500
_MAX_EXCLUDED = 200  # a longer list makes Spark's pruning dear
_TYPES: Mapping[str, DataType] = {
    "int": IntegerType(),
    "bigint": LongType(),
    "date": DateType(),
    "string": StringType(),
}


# What java.net.URI leaves as it is in a path, besides letters, digits and `_.-~`.
_LEGAL_IN_URI = "/!$&'()*+,;=:@"
_SPACES_AND_CONTROLS = frozenset(["Zs", "Zl", "Zp", "Cc"])


@dataclass(frozen=True, slots=True)
class Format:
    """How the files of a source are read.

    `reader` says who reads, for messages: the job and its context. `name` and `options` are Spark's, `schema` is the
    user's (None: Spark infers it), `recursive` says whether folders that are no partition are descended into,
    `skips_missing` whether a planned file that went is left out.
    """

    reader: str
    name: str
    options: Mapping[str, str]
    schema: StructType | None
    recursive: bool = False
    skips_missing: bool = False


def choose_way(plan: FilePlan, connect: bool) -> Way:
    """Say how a plan is read.

    Spark Connect plans a frame anew at each action, so a folder would be listed anew too and show later files: by
    paths.
    """
    few = len(plan) <= _FEW_FILES or 2 * len(plan) < plan.listed
    # A root that is a file has no folder to read, and Spark refuses a partitioned folder with other folders in it.
    odd = _is_only_by_paths(plan) or not set(plan.roots).isdisjoint(plan.files.paths)
    return "paths" if connect or few or odd else "directory"


def read_plan(
    spark: SparkSession,
    files: FileSystem,
    plan: FilePlan,
    fmt: Format,
    known_schema: Callable[[], str | None],
    way: Way | None = None,
) -> DataFrame:
    """Return a frame over exactly the planned files.

    Args:
        known_schema: returns the schema (JSON) of the run before: for an empty plan, and for files without content.
        way: how to read; default: `choose_way`.

    Raises:
        SchemaUnknownError: there is nothing to take a schema from: not the user, no earlier run, no content.
        SourceChangedError: a planned file went, and the format does not skip what is missing.
    """
    if plan.is_empty:
        return spark.createDataFrame([], _empty_schema(spark, files, plan, fmt, known_schema()))
    try:
        with changed_conf(spark, LISTING_CONF):
            frame = _read(spark, files, plan, fmt, way or choose_way(plan, is_connect(spark)))
            if frame.columns:  # the first look at the columns is what makes Spark Connect analyse
                return frame
    except AnalysisException as error:
        left = _without_missing(files, plan, fmt, error)
        if left is not None:
            return read_plan(spark, files, left, fmt, known_schema, way)
        if fmt.schema is not None or "UNABLE_TO_INFER_SCHEMA" not in str(error):
            raise
    known = known_schema()
    if known is None:
        raise SchemaUnknownError(
            f"{fmt.reader}: {len(plan)} file(s) at {', '.join(plan.roots)} have no content to take columns from, none "
            "were given, and no earlier run recorded them. Nothing was committed. Give them with .schema(...)."
        )
    return read_plan(spark, files, plan, replace(fmt, schema=StructType.fromJson(json.loads(known))), known_schema, way)


def _without_missing(files: FileSystem, plan: FilePlan, fmt: Format, error: AnalysisException) -> FilePlan | None:
    """Return the plan without files that went since it was made, None where all are there."""
    found = files.stat(plan.files.paths)
    there = np.array([i for i, info in enumerate(found) if info is not None], np.intp)
    gone = [path for path, info in zip(plan.files.paths, found, strict=True) if info is None]
    if not gone:
        return None
    if not fmt.skips_missing:
        raise SourceChangedError(
            f"{fmt.reader}: {len(gone)} planned file(s) went before they were read, the first: {gone[0]!r}. Nothing "
            "was read or committed. Run it again: it plans anew. With on_missing='skip' such files are left out and "
            "counted."
        ) from error
    log.warning("bookmark, %s: %d planned files went, the first: %s", fmt.reader, len(gone), gone[0])
    return replace(plan, files=plan.files.take(there))


def _read(spark: SparkSession, files: FileSystem, plan: FilePlan, fmt: Format, way: Way) -> DataFrame:
    paths_of = _paths_by_root(plan, fmt)
    if way == "directory" and not _is_only_by_paths(plan):
        frame = _by_directory(spark, files, plan, fmt, paths_of)
        if frame is not None:
            return frame
    return _by_paths(spark, files, plan, fmt, paths_of)


def _is_only_by_paths(plan: FilePlan) -> bool:
    """Whether the folders hold what Spark would read, or stumble over, and the plan leaves out."""
    return bool(plan.skipped.get(NESTED) or plan.skipped.get(SPECIAL))


def _paths_by_root(plan: FilePlan, fmt: Format) -> dict[str, list[str]]:
    """Return the planned files of each root that has some; one that lies below several belongs to the first."""
    paths_of: dict[str, list[str]] = {}
    for path in plan.files.paths:
        paths_of.setdefault(root_of(path, plan.roots, recursive=fmt.recursive), []).append(path)
    return paths_of


def _by_paths(
    spark: SparkSession, files: FileSystem, plan: FilePlan, fmt: Format, paths_of: Mapping[str, Sequence[str]]
) -> DataFrame:
    if not plan.partition_types:
        reader, paths = _reader(spark, fmt), [files.pattern(p) for p in plan.files.paths]
        if fmt.schema is not None:
            return reader.schema(fmt.schema).load(paths)
        frame = reader.load(paths)
        # Spark Connect would infer again at each action: from what lies there then.
        return _reader(spark, fmt).schema(frame.schema).load(paths) if is_connect(spark) else frame
    schema = _schema(spark, files, plan, fmt)
    frames = [
        _reader(spark, fmt, files.uri(root)).schema(schema).load([files.pattern(p) for p in paths])
        for root, paths in paths_of.items()
    ]
    return _union(frames)


def _by_directory(
    spark: SparkSession, files: FileSystem, plan: FilePlan, fmt: Format, paths_of: Mapping[str, Sequence[str]]
) -> DataFrame | None:
    """Return the frame, None where the folders hold something that only naming the files keeps out."""
    if any(list(paths) == [root] for root, paths in paths_of.items()):  # a file, which has no folder to read
        return None
    schema = _schema(spark, files, plan, fmt)
    if "_metadata" in schema.fieldNames():  # a column of the user's hides Spark's
        return None
    frames = []
    for root, paths in paths_of.items():
        planned = set(paths)
        frame = _reader(spark, fmt, files.uri(root) if plan.partition_types else None).schema(schema)
        try:
            loaded = frame.load(files.pattern(root))
        except (AnalysisException, SparkRuntimeException) as error:
            log.info("bookmark, %s: %s is no folder of one layout, reading by paths: %s", fmt.reader, root, error)
            return None
        # Spark has listed by now (classic sessions list when the frame is made): a listing taken after that holds
        # whatever else the frame could read.
        listed = files.list(root, recursive=True)
        others = [p for p in listed.files.paths if p not in planned]
        if len(others) > _MAX_EXCLUDED:
            return None
        names = [_metadata_path(files, p) for p in others]
        frames.append(loaded.where(~F.col("_metadata.file_path").isin(names)) if names else loaded)
    return _union(frames)


def _reader(spark: SparkSession, fmt: Format, base_path: str | None = None) -> DataFrameReader:
    options = {
        **fmt.options,
        # The session may say otherwise (spark.sql.files.*): files would be dropped without a word.
        "ignoreCorruptFiles": "false",
        "ignoreMissingFiles": "true" if fmt.skips_missing else "false",  # the look before the commit counts them
    }
    if fmt.recursive:
        options["recursiveFileLookup"] = "true"
    elif base_path is not None:
        options["basePath"] = base_path
    return spark.read.format(fmt.name).options(**options)


# ---- columns


def _schema(spark: SparkSession, files: FileSystem, plan: FilePlan, fmt: Format) -> StructType:
    """Return the columns of the data, then those of the partitions with their settled types.

    The data's own are inferred from all planned files at once, so that no way of reading and no root sees others.
    """
    if fmt.schema is not None:
        return _with_partitions(spark, fmt.schema, plan, keep_given=True)
    inferred = _reader(spark, fmt).load([files.pattern(p) for p in plan.files.paths]).schema
    return _with_partitions(spark, inferred, plan, keep_given=False)


def _with_partitions(spark: SparkSession, base: StructType, plan: FilePlan, *, keep_given: bool) -> StructType:
    """Put partition columns last, in the order of the path, as Spark does; a type that the user gives wins."""
    fold = _case_rule(spark)
    given = {fold(field.name): field for field in base.fields}
    names = {fold(name) for name in plan.partition_types}
    fields = [field for field in base.fields if fold(field.name) not in names]
    for name, type_name in plan.partition_types.items():
        found = given.get(fold(name)) if keep_given else None
        fields.append(found if found is not None else StructField(name, _TYPES[type_name]))
    return StructType(fields)


def _case_rule(spark: SparkSession) -> Callable[[str], str]:
    exact = (spark.conf.get("spark.sql.caseSensitive", "false") or "false").lower() == "true"
    return (lambda name: name) if exact else str.lower


def _empty_schema(
    spark: SparkSession, files: FileSystem, plan: FilePlan, fmt: Format, known_schema: str | None
) -> StructType:
    if fmt.schema is not None:
        return _nullable(_with_partitions(spark, fmt.schema, plan, keep_given=True))
    if known_schema is not None:
        return StructType.fromJson(json.loads(known_schema))
    if fmt.name == "text":
        return _with_partitions(spark, StructType([StructField("value", StringType())]), plan, keep_given=False)
    unread = [file for reason in (LATE, BEFORE_START) for file in plan.unread.get(reason, ()) if file.size_bytes]
    if unread:
        # A first run that reads nothing of what is there: the newest file tells the columns, as a first read would.
        newest = _reader(spark, fmt).load(files.pattern(unread[-1].path)).schema
        return _with_partitions(spark, newest, plan, keep_given=False)
    raise SchemaUnknownError(
        f"{fmt.reader}: nothing is there to read at {', '.join(plan.roots) or 'this source'}, and no schema is known: "
        "none was given, and no earlier run recorded one. Nothing was read or changed. Give one with .schema(...), so "
        "that an empty increment has columns."
    )


def _nullable(schema: StructType) -> StructType:
    """Return the schema as Spark gives it to what it reads from files: everything may be null."""
    return StructType([StructField(f.name, _nullable_type(f.dataType), True, f.metadata) for f in schema.fields])


def _nullable_type(kind: DataType) -> DataType:
    if isinstance(kind, StructType):
        return _nullable(kind)
    if isinstance(kind, ArrayType):
        return ArrayType(_nullable_type(kind.elementType), True)
    if isinstance(kind, MapType):
        return MapType(_nullable_type(kind.keyType), _nullable_type(kind.valueType), True)
    return kind


# ---- names


def _metadata_path(files: FileSystem, path: str) -> str:
    # As Spark shows it in _metadata.file_path, which is java.net.URI's spelling: one slash after a scheme without a
    # host, in percent what is not legal there, but letters of other scripts as they are.
    return "".join(map(_in_uri, files.uri(path).replace(":///", ":/", 1)))


def _in_uri(character: str) -> str:
    if character.isascii() or unicodedata.category(character) in _SPACES_AND_CONTROLS:
        return quote(character, safe=_LEGAL_IN_URI)
    return character


def _union(frames: list[DataFrame]) -> DataFrame:
    frame = frames[0]
    for other in frames[1:]:
        frame = frame.unionByName(other)
    return frame
