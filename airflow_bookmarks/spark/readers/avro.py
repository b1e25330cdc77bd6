"""Adapt schemas to Avro, which has no integers of one or two bytes: they are written as int, and read only as int."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyspark.sql.functions as F
from pyspark.sql.types import ArrayType, ByteType, DataType, IntegerType, MapType, ShortType, StructField, StructType

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def as_read(schema: StructType) -> StructType:
    """Return a schema with the types that Avro gives: int for tinyint and smallint, also within other types."""
    return StructType([_field_as_read(field) for field in schema.fields])


def as_written(frame: DataFrame, schema: StructType) -> DataFrame:
    """Return a frame that was read as `as_read(schema)` with the types of `schema`."""
    narrow = {field.name: field.dataType for field in schema.fields if _as_read(field.dataType) != field.dataType}
    casts = {name: F.col(f"`{name.replace('`', '``')}`").cast(kind) for name, kind in narrow.items()}
    return frame.withColumns(casts) if casts else frame


def _field_as_read(field: StructField) -> StructField:
    return StructField(field.name, _as_read(field.dataType), field.nullable, field.metadata)


def _as_read(kind: DataType) -> DataType:
    if isinstance(kind, ByteType | ShortType):
        return IntegerType()
    if isinstance(kind, ArrayType):
        return ArrayType(_as_read(kind.elementType), kind.containsNull)
    if isinstance(kind, MapType):
        return MapType(kind.keyType, _as_read(kind.valueType), kind.valueContainsNull)
    if isinstance(kind, StructType):
        return as_read(kind)
    return kind
