"""One schema for rows of several: types that differ become a choice, and rows are given the types of the whole."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from airflow_bookmarks.glue.dynamic.cast import cast_value
from airflow_bookmarks.glue.dynamic.choice import column_of, glue_schema, marked, one_type, spark_type
from airflow_bookmarks.glue.dynamic.types import (
    ArrayType,
    ByteType,
    ChoiceType,
    DataType,
    Field,
    IntegerType,
    LongType,
    MapType,
    NullType,
    ShortType,
    StructType,
)

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_WHOLE: tuple[type[DataType], ...] = (ByteType, ShortType, IntegerType, LongType)


def united(first: DataFrame, second: DataFrame) -> DataFrame:
    """Return the rows of two frames in DataFrame form, columns by name; those that one lacks are null there."""
    whole = merged(glue_schema(first.schema), glue_schema(second.schema))
    if not isinstance(whole, StructType):
        raise TypeError(f"the schema of a union is {whole}")
    return fitted(first, whole).union(fitted(second, whole))


def fitted(frame: DataFrame, whole: StructType) -> DataFrame:
    """Return the rows with the columns and types of a schema that holds all that theirs does."""
    held = {field.name: field.dataType for field in glue_schema(frame.schema)}
    columns = []
    for field in whole:
        column = column_of(field.name) if field.name in held else F.lit(None)
        made = as_type(column, held.get(field.name, NullType()), field.dataType)
        columns.append(marked(made, field.name, field.dataType))
    return frame.select(*columns)


def merged(first: DataType, second: DataType) -> DataType:
    """Return the type of values of two types: fields and elements are merged, what differs is a choice."""
    if first == second or isinstance(second, NullType):
        return first
    if isinstance(first, NullType):
        return second
    if isinstance(first, StructType) and isinstance(second, StructType):
        more = [field for field in second if not first.hasField(field)]
        both = [_merged_field(field, second) for field in first]
        return StructType([*both, *more])
    if isinstance(first, ArrayType) and isinstance(second, ArrayType):
        return ArrayType(merged(first.elementType, second.elementType))
    if isinstance(first, MapType) and isinstance(second, MapType):
        return MapType(merged(first.valueType, second.valueType))
    if isinstance(first, _WHOLE) and isinstance(second, _WHOLE):
        return max(first, second, key=lambda kind: _WHOLE.index(type(kind)))
    return _choice([*_kinds(first), *_kinds(second)])


def _merged_field(field: Field, other: StructType) -> Field:
    return Field(field.name, merged(field.dataType, other.getField(field).dataType)) if other.hasField(field) else field


def _kinds(of_type: DataType) -> list[DataType]:
    return of_type.choices if isinstance(of_type, ChoiceType) else [of_type]


def _choice(kinds: list[DataType]) -> DataType:
    """Return the choice of types, of which those that go together are merged."""
    made: list[DataType] = []
    for kind in kinds:
        for number, known in enumerate(made):
            if _go_together(kind, known):
                made[number] = merged(known, kind)
                break
        else:
            made.append(kind)
    return one_type(made)


def _go_together(first: DataType, second: DataType) -> bool:
    both_whole = isinstance(first, _WHOLE) and isinstance(second, _WHOLE)
    return both_whole or first.typeName() == second.typeName()


def as_type(column: Column, held: DataType, wanted: DataType) -> Column:
    """Return values as a type that `merged` has made of theirs and others: none is lost."""
    if held == wanted:
        return column
    if isinstance(held, NullType):
        return F.lit(None).cast(spark_type(wanted))
    if isinstance(wanted, ChoiceType):
        return _as_choice(column, held, wanted)
    if isinstance(wanted, StructType) and isinstance(held, StructType):
        fields = [_field(column, held, field).alias(field.name) for field in wanted]
        return F.when(column.isNotNull(), F.struct(*fields))
    if isinstance(wanted, ArrayType) and isinstance(held, ArrayType):
        element = held.elementType
        return F.transform(column, lambda each: as_type(each, element, wanted.elementType))
    if isinstance(wanted, MapType) and isinstance(held, MapType):
        value_type = held.valueType
        return F.transform_values(column, lambda _, value: as_type(value, value_type, wanted.valueType))
    return column.cast(spark_type(wanted))  # whole numbers become wider ones


def _field(column: Column, held: StructType, wanted: Field) -> Column:
    if not held.hasField(wanted):
        return F.lit(None).cast(spark_type(wanted.dataType))
    return as_type(column.getField(wanted.name), held.getField(wanted).dataType, wanted.dataType)


def _as_choice(column: Column, held: DataType, wanted: ChoiceType) -> Column:
    kinds = _kinds(held)
    fields = []
    for alternative in wanted.choices:
        fitting = [kind for kind in kinds if _go_together(kind, alternative)]
        if not fitting:
            fields.append(F.lit(None).cast(spark_type(alternative)).alias(alternative.typeName()))
            continue
        value = column.getField(fitting[0].typeName()) if isinstance(held, ChoiceType) else column
        fields.append(as_type(value, fitting[0], alternative).alias(alternative.typeName()))
    return F.when(column.isNotNull(), F.struct(*fields))


def cast_to(column: Column, held: DataType, wanted: DataType) -> Column:
    """Return values as any type: cast where they fit, null where they don't."""
    if held == wanted or isinstance(held, NullType):
        return as_type(column, held, wanted)
    if isinstance(held, ChoiceType) and isinstance(wanted, StructType | ArrayType | MapType):
        for kind in held.choices:
            if kind.typeName() == wanted.typeName():
                return cast_to(column.getField(kind.typeName()), kind, wanted)
    if isinstance(wanted, StructType) and isinstance(held, StructType):
        fields = [
            cast_to(column.getField(field.name), held.getField(field).dataType, field.dataType).alias(field.name)
            if held.hasField(field)
            else F.lit(None).cast(spark_type(field.dataType)).alias(field.name)
            for field in wanted
        ]
        return F.when(column.isNotNull(), F.struct(*fields))
    if isinstance(wanted, ArrayType) and isinstance(held, ArrayType):
        element = held.elementType
        return F.transform(column, lambda each: cast_to(each, element, wanted.elementType))
    if isinstance(wanted, ChoiceType):
        return _as_choice(column, held, wanted)
    if isinstance(wanted, StructType | ArrayType | MapType):
        return F.lit(None).cast(spark_type(wanted))
    return cast_value(column, held, spark_type(wanted).simpleString())
