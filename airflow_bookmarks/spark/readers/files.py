"""Turn a plan of files into a DataFrame that reads exactly these files.

Two ways, both exact and with the same columns and types:

by paths       the planned files are named; for few files, or few of many
by directory   the roots are read, and what is in the plan is filtered by `_metadata.file_path`, which prunes files
               before they are opened and holds whatever Spark lists later; for a plan that is most of its folder
"""

from __future__ import annotations

import json
import logging
from dataclasses import replace
from functools import reduce
from typing import TYPE_CHECKING, Literal

import numpy as np
from pyspark.errors import AnalysisException
from pyspark.sql.types import (
    ArrayType,
    DataType,
    MapType,
    StringType,
    StructField,
    StructType,
)

from airflow_bookmarks.core.errors import SchemaUnknownError, SourceChangedError
from airflow_bookmarks.core.rules.schema import unseen_in
from airflow_bookmarks.core.selection.partition import placed, root_among, roots_above
from airflow_bookmarks.core.selection.reason import BEFORE_START, LATE, NESTED, OVER_BOUND, SPECIAL
from airflow_bookmarks.core.text.cause import cause_of
from airflow_bookmarks.core.text.escaping import in_lines
from airflow_bookmarks.sources.files.recorded_plan import left_out
from airflow_bookmarks.sources.files.scan_filter import Below
from airflow_bookmarks.spark.features import SPARK_ERRORS, lists_once
from airflow_bookmarks.spark.files.listed import read_listed, type_of
from airflow_bookmarks.spark.files.own_headers import columns_of_longest, parts_of_one_header
from airflow_bookmarks.spark.readers.corrupt import is_of_the_way
from airflow_bookmarks.spark.readers.format import Format, case_rule, corrupt_column, reader_of
from airflow_bookmarks.spark.readers.planned_files import is_planned, is_spelled_as_planned, metadata_path
from airflow_bookmarks.spark.readers.schema import MOST_CONTENTS, Columns, columns_of
from airflow_bookmarks.spark.session import LISTING_CONF, changed_conf

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from pyspark.sql import DataFrame, SparkSession

    from airflow_bookmarks.core.files.file_plan import FilePlan
    from airflow_bookmarks.files.filesystem import FileSystem

log = logging.getLogger(__name__)

Way = Literal["paths", "directory"]

_FEW_FILES = 500
_MOST_TRIED = 10  # files at either end, where columns come from what is left out


def choose_way(plan: FilePlan, lists_once: bool) -> Way:
    """Say how a plan is read.

    Where Spark lists a folder anew at each action, it would show later files: by paths.
    """
    few = len(plan) <= _FEW_FILES or 2 * len(plan) < plan.listed
    # A root that is a file has no folder to read, and Spark refuses a partitioned folder with other folders in it.
    odd = _is_only_by_paths(plan) or not set(plan.read_below).isdisjoint(plan.files.paths)
    return "directory" if lists_once and not few and not odd else "paths"


def read_plan(
    spark: SparkSession,
    files: FileSystem,
    plan: FilePlan,
    fmt: Format,
    known_schema: Callable[[], str | None],
    way: Way | None = None,
    recorded: str | None = None,
    note: Callable[[Sequence[str]], None] = lambda unseen: None,
) -> DataFrame:
    """Return a frame over exactly the planned files.

    Args:
        known_schema: returns the schema (JSON) of the run before: for an empty plan, and for files without content.
        way: how to read; default: `choose_way`.
        recorded: the schema (JSON) of the run that this one goes on from; columns that are found are made one with it.
        note: is given the columns of which no value was seen, of this run and of those before.

    Raises:
        SchemaUnknownError: there is nothing to take a schema from: not the user, no earlier run, no content.
        SchemaChangedError: the planned files can't be read together.
        SourceChangedError: a planned file went, and the format does not skip what is missing.
    """
    if plan.is_empty:
        return _empty(spark, fmt, _empty_schema(spark, files, plan, fmt, known_schema()))
    if fmt.infer == "each":
        return _by_own_headers(spark, files, plan, replace(fmt, infer="all"), known_schema, way, recorded, note)
    try:
        with changed_conf(spark, LISTING_CONF):
            found = columns_of(spark, files, plan, fmt, recorded)
            frame = _read(spark, files, plan, found, way or choose_way(plan, lists_once(spark)))
            if frame.columns:  # the first request for the columns is what makes Spark Connect analyse
                note(found.unseen)
                return frame
    except AnalysisException as error:
        left = _without_missing(files, plan, fmt, error)
        if left is not None:
            return read_plan(spark, files, left, fmt, known_schema, way, recorded, note)
        if fmt.schema is not None or "UNABLE_TO_INFER_SCHEMA" not in str(error):
            raise
    if fmt.schema is None and fmt.infer != "all" and len(plan) > MOST_CONTENTS:
        # The files that were inspected have no content, but others may.
        return read_plan(spark, files, plan, replace(fmt, infer="all"), known_schema, way, recorded, note)
    known = known_schema()
    schema = _schema_of_left_out(spark, files, plan, fmt) if known is None else StructType.fromJson(json.loads(known))
    if schema is None:
        raise SchemaUnknownError(
            f"{fmt.reader}: {len(plan)} file(s) at {', '.join(plan.roots)} have no content to take columns from, none "
            f"were given, and no earlier run recorded them{_in_vain(plan)}. Nothing was committed. Give them with "
            ".schema(...)."
        )
    frame = read_plan(spark, files, plan, replace(fmt, schema=schema), known_schema, way)
    note([] if known is None else unseen_in(json.loads(known)))
    return frame


def _by_own_headers(
    spark: SparkSession,
    files: FileSystem,
    plan: FilePlan,
    fmt: Format,
    known_schema: Callable[[], str | None],
    way: Way | None,
    recorded: str | None,
    note: Callable[[Sequence[str]], None],
) -> DataFrame:
    """Return a frame over the planned files with the columns that they have now, each file by its own header."""
    if fmt.name != "csv" or fmt.schema is not None:
        return read_plan(spark, files, plan, fmt, known_schema, way, recorded, note)
    if not fmt.is_set("header"):
        longest = replace(fmt, schema=columns_of_longest(files, plan.files, fmt))
        return read_plan(spark, files, plan, longest, known_schema, way, None, note)
    parts = [replace(plan, files=part) for part in parts_of_one_header(files, plan.files)]
    frames = [read_plan(spark, files, part, fmt, known_schema, way, None, note) for part in parts]
    return reduce(lambda whole, part: whole.unionByName(part, allowMissingColumns=True), frames)


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


def _read(spark: SparkSession, files: FileSystem, plan: FilePlan, found: Columns, way: Way) -> DataFrame:
    if plan.listed_partitions is not None:
        log.info(
            "bookmark, %s: reading listed partitions, %d files of %d listed", found.fmt.reader, len(plan), plan.listed
        )
        return read_listed(spark, files, plan, plan.listed_partitions, found.fmt)
    fmt, paths_of = found.fmt, paths_by_root(plan, found.fmt)
    schema = _with_partitions(spark, fmt.schema or StructType(), plan, keep_given=True)
    if way == "directory" and not _is_only_by_paths(plan):
        frame = _by_directory(spark, files, plan, fmt, schema, paths_of)
        if frame is not None:
            return frame
    log.info("bookmark, %s: reading by paths, %d files of %d listed", fmt.reader, len(plan), plan.listed)
    # Where each action lists anew, it would infer anew too: from what lies there then.
    if found.frame is not None and not plan.partition_types and lists_once(spark):
        return found.frame
    return _by_paths(spark, files, plan, fmt, schema, paths_of)


def _is_only_by_paths(plan: FilePlan) -> bool:
    """Whether the folders hold what Spark would read, or stumble over, and the plan leaves out."""
    is_odd = bool(plan.skipped.get(NESTED) or plan.skipped.get(SPECIAL))
    is_pruned = plan.partitions is not None and plan.partitions.pruned > 0  # Spark would list what was not
    return is_odd or is_pruned


def paths_by_root(plan: FilePlan, fmt: Format) -> dict[str, list[str]]:
    """Return the planned files of each root that has some; one that lies below several belongs to the first."""
    paths_of: dict[str, list[str]] = {}
    place_of = placed(plan.read_below)
    for path in plan.files.paths:
        paths_of.setdefault(root_among(path, place_of, recursive=fmt.recursive), []).append(path)
    return paths_of


def _by_paths(
    spark: SparkSession,
    files: FileSystem,
    plan: FilePlan,
    fmt: Format,
    schema: StructType,
    paths_of: Mapping[str, Sequence[str]],
) -> DataFrame:
    if not plan.partition_types:
        return reader_of(spark, fmt).schema(schema).load([files.pattern(p) for p in plan.files.paths])
    frames = [
        reader_of(spark, fmt, files.uri(root)).schema(schema).load([files.pattern(p) for p in paths])
        for root, paths in paths_of.items()
    ]
    return _union(frames, fmt)


def _by_directory(
    spark: SparkSession,
    files: FileSystem,
    plan: FilePlan,
    fmt: Format,
    schema: StructType,
    paths_of: Mapping[str, Sequence[str]],
) -> DataFrame | None:
    """Return the frame, None where the folders hold something that only naming the files keeps out."""
    if any(list(paths) == [root] for root, paths in paths_of.items()):  # a file, which has no folder to read
        return None
    if "_metadata" in schema.fieldNames():  # a column of the user's hides Spark's
        return None
    frames = []
    for roots in _read_together(plan, paths_of):
        planned = [path for root in roots for path in paths_of[root]]
        if not is_spelled_as_planned(spark, files, planned):
            log.info("bookmark, %s: Spark spells names below %s in another way, by paths", fmt.reader, roots[0])
            return None
        frame = reader_of(spark, fmt, files.uri(roots[0]) if plan.partition_types else None).schema(schema)
        try:
            loaded = frame.load([files.pattern(root) for root in roots])
        except SPARK_ERRORS as error:  # of PySpark 3.5 some have no name in Python; what else is wrong, paths tell
            log.info(
                "bookmark, %s: %s is no folder of one layout, reading by paths: %s",
                fmt.reader,
                roots[0],
                in_lines(cause_of(error)),
            )
            return None
        # Spark has listed by now: a listing taken after that holds whatever else the frame could stumble over.
        if not (plan.partition_types or fmt.recursive or _lie_directly(_all_below(files, plan, roots), roots)):
            # Spark may take a folder in there for a partition, and silently drops what lies beside it.
            log.info("bookmark, %s: folders lie within %s, reading by paths", fmt.reader, roots[0])
            return None
        frames.append(loaded.where(is_planned([metadata_path(files, path) for path in planned])))
    log.info("bookmark, %s: reading by directory, %d files of %d listed", fmt.reader, len(plan), plan.listed)
    return _union(frames, fmt)


def _read_together(plan: FilePlan, paths_of: Mapping[str, Sequence[str]]) -> Sequence[Sequence[str]]:
    """Return which roots one frame reads: all of them, but each its own where partitions begin below it."""
    return [[root] for root in paths_of] if plan.partition_types else [list(paths_of)]


def _all_below(files: FileSystem, plan: FilePlan, roots: Sequence[str]) -> Sequence[str]:
    """Return all files below some roots, once each; those that a pattern found are listed together."""
    if len(roots) == 1:
        return files.list(roots[0], recursive=True).files.paths
    # A root that no planned file lies below may be missing: one of several alternatives of a pattern.
    place_of = placed(plan.roots)
    above = dict.fromkeys(root for each in roots for root in roots_above(each, place_of))
    listed = [files.list(root, recursive=True, enters=Below(root, roots)).files.paths for root in above]
    return list(dict.fromkeys(path for paths in listed for path in paths))


def _lie_directly(paths: Sequence[str], roots: Collection[str]) -> bool:
    folders = {path.rpartition("/")[0] or "/" for path in paths}
    return folders <= set(roots)


# ---- columns


def _with_partitions(spark: SparkSession, base: StructType, plan: FilePlan, *, keep_given: bool) -> StructType:
    """Put partition columns last, in the order of the path, as Spark does; a type that the user gives wins."""
    fold = case_rule(spark)
    given = {fold(field.name): field for field in base.fields}
    names = {fold(name) for name in plan.partition_types}
    fields = [field for field in base.fields if fold(field.name) not in names]
    for name, type_name in plan.partition_types.items():
        found = given.get(fold(name)) if keep_given else None
        fields.append(found if found is not None else StructField(name, type_of(spark, type_name)))
    return StructType(fields)


def _empty(spark: SparkSession, fmt: Format, schema: StructType) -> DataFrame:
    """Return a frame without rows over no files: what resolves with files, such as `_metadata`, resolves with none."""
    if fmt.name == "text":  # which takes a single column; those of partitions are as simple as CSV has them
        return spark.read.format("csv").schema(schema).load([])
    return reader_of(spark, fmt).schema(schema).load([])


def _empty_schema(
    spark: SparkSession, files: FileSystem, plan: FilePlan, fmt: Format, known_schema: str | None
) -> StructType:
    if fmt.schema is not None:
        return _nullable(_with_partitions(spark, fmt.schema, plan, keep_given=True))
    if known_schema is not None:
        return StructType.fromJson(json.loads(known_schema))
    if fmt.name == "text":
        return _with_partitions(spark, StructType([StructField("value", StringType())]), plan, keep_given=False)
    found = _schema_of_left_out(spark, files, plan, fmt)
    if found is not None:
        return found
    left = ", ".join(f"{count} {reason}" for reason, count in plan.skipped.items() if count)
    but = f" ({left})" if left else ""
    raise SchemaUnknownError(
        f"{fmt.reader}: no file is left to read at {', '.join(plan.roots) or 'this source'}{but}, and no schema is "
        f"known: none was given, and no earlier run recorded one{_in_vain(plan)}. Nothing was committed. Give one with "
        ".schema(...), so that an empty increment has columns."
    )


def _schema_of_left_out(spark: SparkSession, files: FileSystem, plan: FilePlan, fmt: Format) -> StructType | None:
    """Return the columns of the first file that tells any, of those that a first run leaves out; None where none does.

    Raises:
        SPARK_ERRORS: the store refuses, or does not answer.
    """
    corrupt = corrupt_column(spark, fmt)
    for path in _left_to_ask(plan):
        try:
            fields = reader_of(spark, fmt).load(files.pattern(path)).schema.fields
        except SPARK_ERRORS as error:
            if is_of_the_way(str(error)) and files.stat([path]) != [None]:
                raise
            log.info("bookmark, %s: %s tells no columns", fmt.reader, path)
            continue
        told = [field for field in fields if field.name != corrupt]
        if told:
            log.info("bookmark, %s: columns are those of %s, which this run does not read", fmt.reader, path)
            return _with_partitions(spark, StructType(told), plan, keep_given=False)
    return None


def _left_to_ask(plan: FilePlan) -> list[str]:
    """Return which files with content tell the columns, where the plan has none that does.

    First those that wait over the bound, in the order in which the next runs read them: columns that only later files
    have would be missing from the next. Then, from the newest on, the last of these, and what is not read at all.
    """
    named, first, last = left_out(plan), [], []
    for reason in (OVER_BOUND, LATE, BEFORE_START):
        listing = named.get(reason)
        rows = [] if listing is None else np.flatnonzero(listing.sizes > 0).tolist()
        if listing is not None and reason == OVER_BOUND:
            first, rows = [listing.paths[row] for row in rows[:_MOST_TRIED]], rows[_MOST_TRIED:]
        last += [] if listing is None else [listing.paths[row] for row in reversed(rows[-_MOST_TRIED:])]
    return [*first, *last]


def _in_vain(plan: FilePlan) -> str:
    """Log that files which are left out were inspected too, if there were any."""
    asked = len(_left_to_ask(plan))
    return f"; of the files that are left out for now {asked} tell none either" if asked else ""


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


def _union(frames: list[DataFrame], fmt: Format) -> DataFrame:
    if len(frames) > 1:
        log.info(
            "bookmark, %s: %d partitioned folders are united, and Spark has no hidden column _metadata in a union; a "
            "script that needs it reads each folder under a context of its own",
            fmt.reader,
            len(frames),
        )
    frame = frames[0]
    for other in frames[1:]:
        frame = frame.unionByName(other)
    return frame
