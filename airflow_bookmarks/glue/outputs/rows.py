"""What a sink takes of a frame: the rows as a DataFrame, with choices as its format has them, without null columns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as spark_types

from airflow_bookmarks.core.errors import OptionError
from airflow_bookmarks.glue.dynamic.base import FrameBase
from airflow_bookmarks.glue.dynamic.cast import with_choices
from airflow_bookmarks.glue.dynamic.choice import choices_in, column_of, glue_schema, has_choices, without_marks
from airflow_bookmarks.glue.dynamic.records import json_text, records_of
from airflow_bookmarks.glue.dynamic.types import AtomicType, ChoiceType, DataType

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import Column

    from airflow_bookmarks.glue.run import GlueRun


def rows_of(frame: object, call: str) -> DataFrame:
    """Return the rows of what a script writes, with the marks of its choices.

    Raises:
        TypeError: it is neither a DynamicFrame nor a DataFrame.
    """
    if isinstance(frame, FrameBase):
        return frame.to_sink()
    if isinstance(frame, DataFrame):
        return frame
    raise TypeError(
        f"{call}: expected a DynamicFrame or a DataFrame, got {type(frame).__name__}. Nothing was written or changed."
    )


def check_no_choices(rows: DataFrame, call: str, what: str) -> None:
    """Make sure that no column holds values of several types, where a sink has one type for each column.

    Raises:
        OptionError: one does.
    """
    several = [field.name for field in glue_schema(rows.schema).fields if choices_in(field.dataType)]
    if several:
        raise OptionError(
            f"{call}: the column {', '.join(map(repr, several))} holds values of several types, and {what} has one for "
            "each column. Nothing was written or changed. Make it one type before: "
            f"frame.resolveChoice(specs=[({several[0]!r}, 'cast:string')]), or choice='make_cols'."
        )


# ---- JSON: the value that a choice holds


def with_values(rows: DataFrame) -> DataFrame:
    """Return rows whose choices are the value that each holds, as JSON writes it; on PySpark 4."""
    if not has_choices(rows):
        return rows
    columns = [
        with_choices(column_of(each.name), each.dataType, _held).alias(each.name)
        for each in glue_schema(rows.schema).fields
    ]
    return without_marks(rows.select(*columns))


def as_json_lines(rows: DataFrame, partition_by: Sequence[str]) -> DataFrame:
    """Return rows as one column of JSON text, `value`, and the partition columns: where there are no variants."""
    names = list(partition_by)

    def line(record: dict[str, Any]) -> tuple[Any, ...]:
        rest = {name: value for name, value in record.items() if name not in names}
        return (json_text(rest), *(record.get(name) for name in names))

    fields = [rows.schema[name] for name in names]
    schema = spark_types.StructType([spark_types.StructField("value", spark_types.StringType()), *fields])
    return rows.sparkSession.createDataFrame(records_of(rows).map(line), schema)


def _held(column: Column, choice: ChoiceType) -> Column:
    held = [(with_choices(column.getField(each.typeName()), each, _held), each) for each in choice.choices]
    return F.coalesce(*[_variant(value, kind) for value, kind in held])


def _variant(column: Column, kind: DataType) -> Column:
    return column.cast("variant") if isinstance(kind, AtomicType) else F.to_variant_object(column)


# ---- columns of nothing but null


def with_empty_columns(rows: DataFrame) -> DataFrame:
    """Return rows whose columns of type null are empty text: in CSV the place of a value says of which column it is."""
    if not any(isinstance(field.dataType, spark_types.NullType) for field in rows.schema.fields):
        return rows
    columns = [
        column_of(field.name).cast("string").alias(field.name)
        if isinstance(field.dataType, spark_types.NullType)
        else column_of(field.name)
        for field in rows.schema.fields
    ]
    return rows.select(*columns)


def without_null_columns(rows: DataFrame, run: GlueRun, ctx: str) -> DataFrame:
    """Return rows without the columns and fields whose type is null, which most formats have no place for."""
    kept = {field.name: _without_nulls(field.dataType) for field in rows.schema.fields}
    if all(kept[field.name] == field.dataType for field in rows.schema.fields):
        return rows
    left_out = [name for name, kind in kept.items() if kind is None]
    if left_out:
        run.count("columns of nulls left out", len(left_out), ctx=ctx)
    columns = [
        column_of(field.name) if kind == field.dataType else _pruned(column_of(field.name), kind).alias(field.name)
        for field in rows.schema.fields
        if (kind := kept[field.name]) is not None
    ]
    return rows.select(*columns)


def _without_nulls(kind: spark_types.DataType) -> spark_types.DataType | None:
    """Return a type without what is of type null in it; None if nothing is left."""
    if isinstance(kind, spark_types.NullType):
        return None
    if isinstance(kind, spark_types.StructType):
        fields = [(field, _without_nulls(field.dataType)) for field in kind.fields]
        kept = [spark_types.StructField(f.name, t, f.nullable, f.metadata) for f, t in fields if t is not None]
        return spark_types.StructType(kept) if kept or not kind.fields else None
    if isinstance(kind, spark_types.ArrayType):
        element = _without_nulls(kind.elementType)
        return None if element is None else spark_types.ArrayType(element, kind.containsNull)
    if isinstance(kind, spark_types.MapType):
        value = _without_nulls(kind.valueType)
        return None if value is None else spark_types.MapType(kind.keyType, value, kind.valueContainsNull)
    return kind


def _pruned(column: Column, kind: spark_types.DataType) -> Column:
    if isinstance(kind, spark_types.StructType):
        fields = [_pruned(column.getField(field.name), field.dataType).alias(field.name) for field in kind.fields]
        return F.when(column.isNotNull(), F.struct(*fields))
    if isinstance(kind, spark_types.ArrayType):
        element = kind.elementType
        return F.transform(column, lambda each: _pruned(each, element))
    if isinstance(kind, spark_types.MapType):
        of_values = kind.valueType
        return F.transform_values(column, lambda _, each: _pruned(each, of_values))
    return column
