"""Find the columns of planned files if the user gives none, and merge them with those of the last run.

Who says it   formats          looked at            how
the files     parquet, orc     1,000 at most        Spark merges their footers, in one job
the files     avro             1,000 at most        one file of each schema that the heads name
the values    csv, json, xml   100 at most          Spark guesses; the headers of csv are compared, of all files
the format    text             none

If there are more files, a sample is inspected: the oldest, the newest, and between them evenly by time.
"""

from __future__ import annotations

import json
import logging
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StringType, StructField, StructType

from airflow_bookmarks.core.errors import SchemaChangedError, SourceError
from airflow_bookmarks.core.rules.schema import (
    Merge,
    Type,
    add_missing,
    by_position,
    compare,
    resolved,
    struct,
    typed_as,
    unseen_in,
    widest,
    without,
)
from airflow_bookmarks.spark.features import SPARK_ERRORS, reads_as
from airflow_bookmarks.spark.readers.format import Format, case_rule, corrupt_column, reader_of
from airflow_bookmarks.spark.readers.head import avro_schema, by_head, first_line

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from airflow_bookmarks.core.files.file_plan import FilePlan
    from airflow_bookmarks.core.selection.listing import Listing
    from airflow_bookmarks.files.filesystem import FileSystem

log = logging.getLogger(__name__)

MOST_FOOTERS = 1000
MOST_CONTENTS = 100
_CARRIES_SCHEMA = ("avro", "orc", "parquet")
_FIELDS_MAY_BE_UNSET = ("json", "xml")
_SHOWN = 20
_TEXT = StructType([StructField("value", StringType())])


@dataclass(frozen=True, slots=True)
class Columns:
    """The format with the columns of the data, without those of partitions.

    `frame` reads all the planned files with these columns, where finding them has made one. `unseen` are those, by
    dotted names, of which neither this look nor an earlier one has seen a value: their type is Spark's stopgap.
    """

    fmt: Format
    frame: DataFrame | None = None
    unseen: Sequence[str] = ()


def columns_of(
    spark: SparkSession, files: FileSystem, plan: FilePlan, fmt: Format, recorded: str | None = None
) -> Columns:
    """Return the format with a schema: the user's, or what the planned files show merged with what was recorded.

    Args:
        recorded: the schema (JSON) with which the last run read this source; None: there was none.

    Raises:
        SchemaChangedError: the planned files can't be read together.
        SourceError: files of CSV have a column that the names of their folders give as well.
        AnalysisException: Spark finds no columns, or a file is not there.
    """
    if fmt.schema is not None:
        return Columns(fmt)
    if fmt.name == "text":
        return Columns(replace(fmt, schema=_TEXT))
    fold = case_rule(spark)
    before = None if recorded is None else without(json.loads(recorded), list(plan.partition_types), fold)
    if fmt.infer == "last" and before is not None:
        log.info("bookmark, %s: columns are those of the last run; no file is looked at for others", fmt.reader)
        return Columns(replace(_held_by_header(spark, files, plan, fmt, before), schema=_struct(before)))
    scan = _SchemaScan(spark, files, fmt, fold, _looked_at(plan.files, fmt), plan.files)
    try:
        seen = scan.columns()
    except SchemaChangedError as error:
        raise SchemaChangedError(f"{fmt.reader}: {error}") from error
    now, fmt = seen.columns, _by_header(fmt) if seen.is_held else fmt
    unseen = scan.unseen(before, now)
    merged = now if before is None else scan.merged(resolved(before, now, fold), now)
    _log_sample(fmt, len(scan.listing), len(plan))
    data = without(merged, list(plan.partition_types), fold)
    if fmt.name == "csv" and data != merged:
        raise _doubled(fmt, plan)
    is_whole = data == now and scan.is_at_all
    return Columns(replace(fmt, schema=_struct(data)), seen.frame if is_whole else None, unseen)


def _held_by_header(spark: SparkSession, files: FileSystem, plan: FilePlan, fmt: Format, before: Type) -> Format:
    """Return the format for CSV files whose headers have to be those of the last run.

    Spark holds each header against the columns; not where it has made up a name for one, which no header has. There the
    first line of each file is read here.

    Raises:
        SchemaChangedError: a header is another one.
    """
    held, fold = _by_header(fmt), case_rule(spark)
    if held is fmt or _is_one_header([before], fold):
        return held
    groups = by_head(files, plan.files.paths, first_line)
    scan = _SchemaScan(spark, files, fmt, fold, plan.files, plan.files)
    try:
        _by_position([("the last run", before), *((paths[0], scan.names_of(paths[0])) for paths in groups)], fold)
    except SchemaChangedError as error:
        raise SchemaChangedError(f"{fmt.reader}: {error}") from error
    return fmt


def _doubled(fmt: Format, plan: FilePlan) -> SourceError:
    # Without that column all values after it would land one column too far left: Spark applies a schema by position.
    return SourceError(
        f"{fmt.reader}: the files have a column that the names of their folders give as well, of "
        f"{list(plan.partition_types)}. Nothing was read or committed. Read the folders as data: give .schema(...) "
        "with the columns of the files in their order, that one under another name."
    )


def _by_header(fmt: Format) -> Format:
    """Let Spark hold the header of each CSV file against the columns that are known, which it applies by position."""
    if fmt.name != "csv" or not fmt.is_set("header") or fmt.option("enforceSchema") is not None:
        return fmt
    return replace(fmt, options={**fmt.options, "enforceSchema": "false"})


def _looked_at(files: Listing, fmt: Format) -> Listing:
    most = MOST_FOOTERS if fmt.name in _CARRIES_SCHEMA else MOST_CONTENTS
    return files if fmt.infer == "all" or len(files) <= most else sample(files, most)


def sample(files: Listing, most: int) -> Listing:
    """Return `most` files with content (2 or more): the oldest, the newest, and between them evenly by time."""
    rows = np.flatnonzero(files.sizes > 0)
    if len(rows) > most:
        by_time = rows[np.argsort(files.times_ms[rows], kind="stable")]
        rows = np.sort(by_time[np.linspace(0, len(by_time) - 1, most).astype(np.intp)])
    return files.take(rows) if len(rows) else files


def _log_sample(fmt: Format, looked_at: int, planned: int) -> None:
    if looked_at < planned:
        log.info(
            "bookmark, %s: columns found in %d of %d files, the oldest, the newest and some between; a column that "
            "only others have is not read. infer_schema='all' looks at all, .schema(...) at none",
            fmt.reader,
            looked_at,
            planned,
        )


@dataclass(frozen=True, slots=True)
class _SeenColumns:
    """The columns of some files, and a frame over all of them that has these, if one was made to find them.

    `is_held`: for CSV files that were not inspected, Spark has to compare the headers with these columns.
    """

    columns: Type
    frame: DataFrame | None = None
    is_held: bool = False


@dataclass(frozen=True, slots=True)
class _SchemaScan:
    """One inspection of some of the `planned` files of one format, those of `listing`, for their columns."""

    spark: SparkSession
    files: FileSystem
    fmt: Format
    fold: Callable[[str], str]
    listing: Listing
    planned: Listing

    @property
    def is_at_all(self) -> bool:
        """Whether all planned files are inspected."""
        return len(self.listing) == len(self.planned)

    def columns(self) -> _SeenColumns:
        """Return the columns of the files."""
        if self.fmt.name == "avro" and self.fmt.option("avroSchema") is None:
            return self._by_schema()
        # Only Spark knows where a header that spans lines ends.
        if self.fmt.name == "csv" and self.fmt.is_set("header") and not self.fmt.is_set("multiLine"):
            return self._by_headers()
        if self.fmt.name in ("orc", "parquet") and self.fmt.option("mergeSchema") is None:
            return self._merged_by_spark()
        return _SeenColumns(*self._seen(self.listing.paths))

    def _seen(self, paths: Sequence[str], **options: str) -> tuple[Type, DataFrame]:
        frame = reader_of(self.spark, self.fmt).options(**options).load([self.files.pattern(path) for path in paths])
        return json.loads(frame.schema.json()), frame

    def _by_schema(self) -> _SeenColumns:
        groups = by_head(self.files, self.listing.paths, avro_schema)
        if len(groups) == 1:
            return _SeenColumns(*self._seen(groups[0]))
        return _SeenColumns(self._widest([(paths[0], self._seen(paths[:1])[0]) for paths in groups]))

    def _by_headers(self) -> _SeenColumns:
        """Return the columns of CSV files, one by one for each header; the values count, so all of a group are read.

        Spark reads by position whatever a header says. Where not all files are looked at, it has to compare the headers
        of the others, which costs nothing; or, where it can't, their first lines are read here.
        """
        groups = by_head(self.files, self.listing.paths, first_line)
        seen = [(paths[0], *self._seen(paths)) for paths in groups]
        schemas = [(path, columns) for path, columns, _ in seen]
        is_held = False
        if not self.is_at_all and self.fmt.option("enforceSchema") is None:
            is_held = _is_one_header([columns for _, columns in schemas], self.fold)
            schemas += [] if is_held else [(path, self._seen([path])[0]) for path in self._of_other_headers()]
        if len(schemas) == 1:
            return _SeenColumns(schemas[0][1], seen[0][2], is_held)
        return _SeenColumns(_by_position(schemas, self.fold), is_held=is_held)

    def _of_other_headers(self) -> list[str]:
        """Return the first file of each header that no inspected file has."""
        with_content = self.planned.take(np.flatnonzero(self.planned.sizes > 0))
        looked_at = set(self.listing.paths)
        groups = by_head(self.files, list(dict.fromkeys([*looked_at, *with_content.paths])), first_line)
        return [paths[0] for paths in groups if looked_at.isdisjoint(paths)]

    def _merged_by_spark(self) -> _SeenColumns:
        try:
            return _SeenColumns(*self._seen(self.listing.paths, mergeSchema="true"))
        except SPARK_ERRORS as error:
            if not _is_conflict(error):
                raise
        return _SeenColumns(self._widest(self._in_parts(self.listing.paths)))

    def _widest(self, parts: Sequence[tuple[str, Type]]) -> Type:
        """Return one schema for files that each have one, those of one kind by the path of their first.

        Raises:
            SchemaChangedError: no schema reads them all; or Spark does not read one of them as wider than it is.
        """
        columns = widest(parts, self.fold)
        for path, part in parts:
            widened = compare(part, columns, self.fold).widened
            if widened and not self._reads_as(path, columns):
                raise SchemaChangedError(
                    f"files of one run have columns of several widths: {'; '.join(map(str, widened))}, the narrower in "
                    f"{path!r} or others; and this Spark {self.spark.version} does not read a type of {self.fmt.name} "
                    "as a wider one. Nothing was committed. Run the job with Spark 4.0 or later; or put the files of "
                    "each kind into a folder and context of its own."
                )
        return columns

    def _reads_as(self, path: str, columns: Type) -> bool:
        return reads_as(reader_of(self.spark, self.fmt), self.files.pattern(path), _struct(columns))

    def _in_parts(self, paths: Sequence[str]) -> list[tuple[str, Type]]:
        """Return schemas that together are those of all the files: Spark merges no widths, so halve where it fails."""
        try:
            return [(paths[0], self._seen(paths, mergeSchema="true")[0])]
        except SPARK_ERRORS as error:
            if len(paths) == 1 or not _is_conflict(error):
                raise
        middle = len(paths) // 2
        return [*self._in_parts(paths[:middle]), *self._in_parts(paths[middle:])]

    def names_of(self, path: str) -> Type:
        """Return the columns of one file, all as text: what matters is their names."""
        return self._seen([path], inferSchema="false")[0]

    # ---- with the last run's

    def unseen(self, before: Type | None, now: Type) -> list[str]:
        """Return the columns, by dotted names, for which neither these files nor earlier ones show a value.

        Only what was not there before, or not seen, is asked for, and only where Spark says text, as it does where it
        finds nothing: that is a second look in a first run, and as long as there is such a column.
        """
        known = struct() if before is None else before
        marked = unseen_in(known)
        new = [each.name for each in compare(known, now, self.fold).added if "string" in (each.now or "")]
        gone = [each.name for each in compare(known, now, self.fold).removed]
        if not new and not self._among(marked, gone, is_within=False):
            return marked
        valueless = self._valueless(now)
        still = {*self._among(marked, gone), *self._among(marked, valueless), *self._among(valueless, new)}
        return sorted(still)

    def _among(self, names: Sequence[str], others: Sequence[str], *, is_within: bool = True) -> list[str]:
        """Return those of some columns that are one of the others or lie within one; or those that don't."""
        folded = [self.fold(other) for other in others]
        return [
            name
            for name in names
            if any(f"{self.fold(name)}.".startswith(f"{other}.") for other in folded) == is_within
        ]

    def _valueless(self, now: Type) -> list[str]:
        """Return the columns for which these files show no value, if their types are guessed from values."""
        if self.fmt.name == "json" and not self.fmt.is_set("primitivesAsString"):
            seen = self._seen(self.listing.paths, dropFieldIfAllNull="true")[0]
            return [change.name for change in compare(seen, now, self.fold).added]
        is_guessed = (self.fmt.name == "csv" and self.fmt.is_set("inferSchema")) or self.fmt.name == "xml"
        texts = [each["name"] for each in _struct_fields(now) if each["type"] == "string"] if is_guessed else []
        return self._without_values(now, texts)

    def _without_values(self, now: Type, names: Sequence[str]) -> list[str]:
        """Return which of these top columns are null in all rows of these files."""
        paths = [self.files.pattern(path) for path in self.listing.paths]
        if not names:
            return []
        frame = reader_of(self.spark, self.fmt).schema(_struct(now)).load(paths)
        counts = frame.agg(*[F.count(F.col(f"`{name.replace('`', '``')}`")) for name in names]).first()
        return [name for name, n in zip(names, counts or (), strict=True) if n == 0]

    def merged(self, before: Type, now: Type) -> Type:
        """Return what the files show, merged with what was recorded."""
        name = self.fmt.name
        is_text, keeps_absent = name not in _CARRIES_SCHEMA, name in _FIELDS_MAY_BE_UNSET
        rule = Merge(is_text, keeps_absent, fold=self.fold)
        if keeps_absent:
            before = without(before, [corrupt_column(self.spark, self.fmt)], self.fold)
        seen = self._without_nulls(before, now) if is_text else now
        merged = rule.of(before, seen)
        if name in _CARRIES_SCHEMA and compare(now, merged, self.fold).widened:
            reads = self._reads_as(self.listing.paths[0], merged)
            merged = merged if reads else replace(rule, keeps_wider=False).of(before, seen)
        if seen != now:
            merged = add_missing(merged, now, self.fold)
        absent = [change.name for change in compare(seen, merged, self.fold).added]
        if absent:
            shown = ", ".join(absent[:_SHOWN])
            are = "1 column is" if len(absent) == 1 else f"{len(absent)} columns are"
            log.info("bookmark, %s: %s null in all files: %s", self.fmt.reader, are, shown)
        return merged

    def _without_nulls(self, before: Type, now: Type) -> Type:
        """Return the columns of now, where those without any value don't count as text, which Spark takes them for."""
        clashes = [change.name for change in compare(before, now, self.fold).changed if "string" in (change.now or "")]
        if not clashes:
            return now
        if self.fmt.name == "json":
            return self._seen(self.listing.paths, dropFieldIfAllNull="true")[0]
        top = [each["name"] for each in _struct_fields(now) if each["name"] in clashes]
        return typed_as(now, before, self._without_values(now, top), self.fold)


def _struct_fields(schema: Type) -> Sequence[Mapping[str, Any]]:
    return [] if isinstance(schema, str) else list(schema["fields"])


def _is_one_header(schemas: Sequence[Type], fold: Callable[[str], str]) -> bool:
    """Whether text files have one header, and columns named like it.

    Spark calls a column without a name `_c3`, and one whose name is there twice `delay3`, by its place from 0. These
    are not what stands in the header, so Spark would refuse each file if it had to compare. A real name may look like
    one of them: that costs a look, no more.
    """
    headers = {tuple(fold(name) for name in _struct(schema).names) for schema in schemas}
    return len(headers) == 1 and not any(name.endswith(str(place)) for place, name in enumerate(headers.pop()))


def _by_position(schemas: Sequence[tuple[str, Type]], fold: Callable[[str], str]) -> Type:
    """Return one schema for CSV files; the first file of each header is given with its path.

    Raises:
        SchemaChangedError: two headers differ; it names a file of each.
    """
    try:
        return by_position([schema for _, schema in schemas], fold)
    except SchemaChangedError as error:
        some, others = _first_of_each(schemas, fold)
        named = f"The first of some is {some!r}, the first of the others {others!r}."
        raise SchemaChangedError(f"{error} {named}") from error


def _first_of_each(schemas: Sequence[tuple[str, Type]], fold: Callable[[str], str]) -> tuple[str, str]:
    """Return the file with the longest of headers that differ, and the first whose header does not begin it."""
    longest = max(schemas, key=lambda each: len(_struct(each[1])))
    for path, schema in schemas:
        try:
            by_position([longest[1], schema], fold)
        except SchemaChangedError:
            return longest[0], path
    raise ValueError("the headers do not differ")


def _is_conflict(error: Exception) -> bool:
    return "CANNOT_MERGE_SCHEMA" in str(error)


def _struct(schema: Type) -> StructType:
    return StructType.fromJson(dict(schema) if not isinstance(schema, str) else json.loads(schema))
