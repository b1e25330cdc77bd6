"""`unbox`: a field that holds text of a format, parsed where it stands."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F
from pyspark.sql import types as spark_types

from airflow_bookmarks.core.errors import OptionError
from airflow_bookmarks.glue.dynamic.choice import (
    CHOICES,
    column_of,
    glue_schema,
    marked,
    quoted,
    spark_schema,
    spark_type,
)
from airflow_bookmarks.glue.dynamic.error_records import ErrorRecords, ErrorStage, RecordFailure
from airflow_bookmarks.glue.dynamic.fields.path import steps_of
from airflow_bookmarks.glue.dynamic.json_records.json_frame import frame_of_json
from airflow_bookmarks.glue.dynamic.json_records.parsed_records import ANY_LENGTH
from airflow_bookmarks.glue.dynamic.types import DataType, Field, StringType, StructType
from airflow_bookmarks.glue.errors import GlueUnsupportedError
from airflow_bookmarks.glue.transforms.failure_count import FailureCount, FailuresByTask, note_failure
from airflow_bookmarks.glue.transforms.typed_column import TypedColumn, columns_in, nothing_if_empty, value_at

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark import RDD, Accumulator
    from pyspark.sql import Column, DataFrame

    from airflow_bookmarks.glue.dynamic.base import FrameBase
    from airflow_bookmarks.glue.dynamic.choice import Steps

_OPTIONS = {
    "json": {"withSchema"},
    "csv": {"separator", "escaper", "quoteChar", "skipFirst", "withHeader", "withSchema"},
}
_UNREAD = "glue_unread"
_PARSED = "parsed"  # the field of the JSON object around a text, since a text may be no object
_LINE_END = r"\r?\n"


def unboxed(
    frame: FrameBase, path: str, format: str, options: Mapping[str, Any], ctx: str, info: str = ""
) -> tuple[DataFrame, ErrorStage | None]:
    """Return the rows with one field parsed, and the records whose text can't be read.

    Args:
        frame: the frame.
        path: the field, a text.
        format: "json", or "csv", which reads one line and names its columns col0, col1 ...
        options: `withSchema`, the type as JSON; of csv also `separator` (","), `escaper`, `quoteChar` ('"'),
            `withHeader` and `skipFirst` (False): whether the text begins with a line of names, or one to be skipped.
        ctx: the transformation context, for errors.
        info: text that the script wants to read with errors.

    Raises:
        GlueUnsupportedError: another format; `withHeader` together with `skipFirst`.
        OptionError: an unknown option, a path that leads to no text, or texts whose lines of names differ.
    """
    kind = format.lower()
    if kind not in _OPTIONS:
        raise GlueUnsupportedError(
            f"unbox(format={format!r})", "this format", "Use json or csv, or parse the column by functions of Spark."
        )
    if unknown := sorted(set(options) - _OPTIONS[kind]):
        raise OptionError(
            f"unbox: unknown option {unknown[0]!r} of {kind}; there are {', '.join(sorted(_OPTIONS[kind]))}. "
            "Nothing was read or changed."
        )
    rows, steps = frame.typed(), steps_of(path)
    if value_at(rows.schema, steps, "unbox") is None and nothing_if_empty(frame) is not None:
        return rows, None
    text = _text_at(rows, steps, path)
    schema = _schema(options.get("withSchema"))
    if kind == "csv":
        return _with_value(rows, steps, _from_csv(rows, text, options, schema, path)), None
    if schema is None:
        made, errors = _of_json(frame, rows, steps, text, ctx)
        return made, next((replace(stage, info=info) for stage in errors.stages), None)
    readable, stage = _readable(frame, rows, text, ctx or frame.name, info)
    return _with_value(readable, steps, TypedColumn(F.from_json(text, spark_schema(schema), ANY_LENGTH), schema)), stage


def _text_at(rows: DataFrame, steps: Steps, path: str) -> Column:
    found = value_at(rows.schema, steps, "unbox")
    if found is None or not isinstance(found.type, StringType):
        what = "the frame lacks it" if found is None else f"it is of type {found.type}"
        raise OptionError(f"unbox: the field {path!r} is no text: {what}. Nothing was read or changed.")
    return found.column


def _schema(given: str | None) -> StructType | None:
    """Return the type that a script names by JSON, in Spark's form or that of `awsglue.gluetypes`."""
    if given is None:
        return None
    try:
        parsed = json.loads(given)
        if "dataType" not in parsed:
            return glue_schema(spark_types.StructType.fromJson(parsed))
        schema = DataType.fromJsonValue(parsed)
        if not isinstance(schema, StructType):
            raise TypeError(f"it is a {schema}, not a struct")
        return schema
    except (ValueError, KeyError, TypeError) as error:
        raise OptionError(
            f"unbox: withSchema can't be read: {error!r}. Nothing was read or changed. Make it by StructType.json()."
        ) from error


# ---- JSON


def _of_json(frame: FrameBase, rows: DataFrame, steps: Steps, text: Column, ctx: str) -> tuple[DataFrame, ErrorRecords]:
    """Let the types come from the texts: where they differ there is a choice."""
    inside = F.concat(F.lit(f'{{"{_PARSED}":'), F.coalesce(text, F.lit("null")), F.lit("}")).alias("value")
    kept = [
        column_of(field.name).alias(f"__{number}", metadata=field.metadata or {CHOICES: "[]"})
        for number, field in enumerate(rows.schema.fields)
    ]
    read = frame_of_json(rows.select(inside, *kept), run=frame.run, name=ctx or frame.name)
    back = [
        column_of(f"__{number}").alias(field.name, metadata=field.metadata or {CHOICES: "[]"})
        for number, field in enumerate(rows.schema.fields)
    ]
    held = dict(columns_in(read.frame.schema)).get(_PARSED)
    parsed = marked(F.lit(None), _PARSED, StringType()) if held is None else held.column
    whole = read.frame.select(parsed.alias(f"__{_PARSED}"), *back)
    kind = StringType() if held is None else held.type
    return _with_value(whole, steps, TypedColumn(column_of(f"__{_PARSED}"), kind)).drop(f"__{_PARSED}"), read.errors


def _readable(frame: FrameBase, rows: DataFrame, text: Column, name: str, info: str) -> tuple[DataFrame, ErrorStage]:
    """Return the rows whose text is an object of JSON, null or blank, and those with another, in one pass."""
    # Nothing but what is no object of JSON is kept by this schema: a value that doesn't fit the script's own is null.
    kept = {"columnNameOfCorruptRecord": _UNREAD, **ANY_LENGTH}
    unread = F.from_json(text, f"{_UNREAD} STRING", kept).getField(_UNREAD)
    unread = F.when(F.trim(unread) != "null", unread)
    counted = FailureCount(frame.run, name)
    noted = counted.noted  # alone goes to the executors
    is_readable = F.udf(lambda value: _is_readable(value, noted), spark_types.BooleanType())(unread)
    failed = rows.where(unread.isNotNull())

    def failures() -> RDD[RecordFailure]:
        return failed.select(unread).rdd.map(lambda row: RecordFailure("not a JSON object", source=row[0]))

    return rows.where(is_readable), ErrorStage(name, info, lambda: counted.of(failed), failures)


def _is_readable(unread: str | None, noted: Accumulator[FailuresByTask]) -> bool:
    if unread is not None:
        note_failure(noted)
    return unread is None


# ---- CSV


def _from_csv(
    rows: DataFrame, text: Column, options: Mapping[str, Any], schema: StructType | None, path: str
) -> TypedColumn:
    with_header, skips = bool(options.get("withHeader", False)), bool(options.get("skipFirst", False))
    if with_header and skips:
        raise GlueUnsupportedError(
            "unbox",
            "skipFirst together with withHeader",
            "Leave skipFirst out: withHeader takes the header for no row.",
        )
    reads = {"sep": str(options.get("separator", ","))}
    if "quoteChar" in options:
        reads["quote"] = "" if options["quoteChar"] in (-1, "-1") else str(options["quoteChar"])
    if "escaper" in options:
        reads["escape"] = str(options["escaper"])
    line = F.get(F.split(text, _LINE_END), F.lit(1)) if with_header or skips else text
    if schema is None:
        names = _header(rows, text, reads["sep"], path) if with_header else _numbered(rows, line, reads)
        schema = StructType([Field(name, StringType()) for name in names])
    fields = [f"{quoted(each.name)} {spark_type(each.dataType).simpleString()}" for each in schema]
    return TypedColumn(F.from_csv(line, ", ".join(fields), reads), schema)


def _header(rows: DataFrame, text: Column, separator: str, path: str) -> Sequence[str]:
    line = F.get(F.split(text, _LINE_END), F.lit(0))
    found = rows.where(text.isNotNull()).select(line).distinct().limit(2).collect()
    if len(found) > 1:
        raise OptionError(
            f"unbox: the texts of {path!r} begin with different lines of names, such as {found[0][0]!r} and "
            f"{found[1][0]!r}: their values would come under wrong names. Nothing was read or changed. Give withSchema "
            "where their columns stand in one order, or filter the frame by them before."
        )
    return [name.strip().strip('"') for name in found[0][0].split(separator)] if found else []


def _numbered(rows: DataFrame, line: Column, reads: Mapping[str, str]) -> Sequence[str]:
    """Return names for as many columns as the longest line has; separators within quotes separate nothing."""
    quote = reads.get("quote", '"')
    outside = F.regexp_replace(line, f"\\Q{quote}\\E.*?\\Q{quote}\\E", "") if quote else line
    widest = rows.agg(F.max(F.size(F.split(outside, f"\\Q{reads['sep']}\\E")))).first()
    return [f"col{number}" for number in range(max(widest[0] or 1, 1) if widest else 1)]


# ---- the field


def _with_value(rows: DataFrame, steps: Steps, parsed: TypedColumn) -> DataFrame:
    """Return the rows with another value at a path that there is."""
    columns = []
    for field, (name, value) in zip(rows.schema.fields, columns_in(rows.schema), strict=True):
        if name.lower() == str(steps[0]).lower():
            changed = _replaced(value, steps[1:], parsed)
            columns.append(marked(changed.column, name, changed.type))
        else:
            columns.append(column_of(field.name))
    return rows.select(columns)


def _replaced(value: TypedColumn, steps: Steps, parsed: TypedColumn) -> TypedColumn:
    if not steps:
        return parsed
    if not isinstance(value.type, StructType):
        raise OptionError(
            "unbox: the field lies within a choice. Nothing was read or changed. Resolve the choice first."
        )
    parts = {each.name: TypedColumn(value.column[each.name], each.dataType) for each in value.type}
    for name, part in parts.items():
        if name.lower() == str(steps[0]).lower():
            parts[name] = _replaced(part, steps[1:], parsed)
    struct = F.struct(*[part.column.alias(name) for name, part in parts.items()])
    kind = StructType([Field(name, part.type) for name, part in parts.items()])
    return TypedColumn(F.when(value.column.isNotNull(), struct), kind)
