"""Values in a form that Parquet can hold: it has no null type, before Spark 4.1, and no struct without fields."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from airflow_bookmarks.glue.dynamic.types import (
    ArrayType,
    ChoiceType,
    DataType,
    Field,
    MapType,
    NullType,
    StructType,
    UnknownType,
)
from airflow_bookmarks.glue.transforms.typed_column import TypedColumn

if TYPE_CHECKING:
    from pyspark.sql import Column


def storable(value: TypedColumn) -> Column:
    """Return a value whose parts that hold nothing are null texts; all else has its place and type."""
    return value.column if _is_storable(value.type) else _stored(value)


def _is_storable(kind: DataType) -> bool:
    match kind:
        case NullType() | UnknownType():
            return False
        case ArrayType():
            return _is_storable(kind.elementType)
        case MapType():
            return _is_storable(kind.valueType)
        case StructType() | ChoiceType():
            fields = _fields(kind)
            return bool(fields) and all(_is_storable(each.dataType) for each in fields)
    return True


def _stored(value: TypedColumn) -> Column:
    kind = value.type
    match kind:
        case ArrayType():
            return F.transform(value.column, lambda each: storable(TypedColumn(each, kind.elementType)))
        case MapType():
            return F.transform_values(value.column, lambda _, each: storable(TypedColumn(each, kind.valueType)))
        case StructType() | ChoiceType() if _fields(kind):
            parts = [storable(TypedColumn(value.column[f.name], f.dataType)).alias(f.name) for f in _fields(kind)]
            return F.when(value.column.isNotNull(), F.struct(*parts))
    return F.lit(None).cast("string")


def _fields(kind: StructType | ChoiceType) -> list[Field]:
    """Return the fields of the struct that holds a value of this type."""
    if isinstance(kind, StructType):
        return kind.fields
    return [Field(each.typeName(), each) for each in kind.choices]
