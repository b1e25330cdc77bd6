"""`unnest`, and the two transforms that take the types of DynamoDB out of an export of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from airflow_bookmarks.glue.dynamic.choice import marked
from airflow_bookmarks.glue.dynamic.types import ArrayType, ChoiceType, DataType, Field, NullType, StructType
from airflow_bookmarks.glue.transforms.typed_column import TypedColumn, any_of, check_columns, columns_in, flattened

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame

    from airflow_bookmarks.glue.dynamic.base import FrameBase

# The names of types in DynamoDB's JSON: {"S": "text"}, {"N": "1"}, {"L": [{"S": "a"}]}, {"M": {"name": {"S": "x"}}}.
_TYPES = frozenset({"S", "N", "B", "BOOL", "NULL", "SS", "NS", "BS", "L", "M"})
_ITEM = "Item"


def unnested(frame: FrameBase) -> DataFrame:
    """Return the rows with a column for each field of a struct, named by its path: `address.city`. Arrays stay.

    Raises:
        FieldPathError: another field has such a path as its name.
    """
    rows = frame.typed()
    parts = [(field, *part) for field, whole in columns_in(rows.schema) for part in flattened(field, whole)]
    check_columns([(field, name) for field, name, _ in parts], frame.spark, "unnest")
    return rows.select([marked(value.column, name, value.type) for _, name, value in parts])


def without_ddb_types(frame: FrameBase, *, in_lists: bool) -> DataFrame:
    """Return rows of an export of DynamoDB with plain values: `Item.name.S` becomes `name`.

    Numbers are text, as in the export. Values of several types are a choice.

    Args:
        frame: its column `Item` holds the items; without one, its columns do.
        in_lists: whether elements of lists become plain as well, where all are of one type that is no map
            (`simplify_ddb_json`), or stay as they are (`unnest_ddb_json`).
    """
    columns: list[tuple[str, TypedColumn]] = []
    for name, value in columns_in(frame.typed().schema):
        if name == _ITEM and isinstance(value.type, StructType) and not _is_typed(value.type):
            columns += [(each.name, TypedColumn(value.column[each.name], each.dataType)) for each in value.type]
        else:
            columns.append((name, value))
    plain = [(name, _plain(value, in_lists)) for name, value in columns]
    return frame.typed().select([marked(value.column, name, value.type) for name, value in plain])


def _is_typed(kind: DataType) -> bool:
    return isinstance(kind, StructType) and bool(kind.fields) and all(each.name in _TYPES for each in kind)


def _plain(value: TypedColumn, in_lists: bool) -> TypedColumn:
    if not isinstance(value.type, StructType) or not _is_typed(value.type):
        return value
    held = [_held(TypedColumn(value.column[each.name], each.dataType), each.name, in_lists) for each in value.type]
    return _one_of([each for each in held if not isinstance(each.type, NullType)])


def _held(value: TypedColumn, name: str, in_lists: bool) -> TypedColumn:
    """Return what stands beside one name of a type."""
    if name == "NULL":
        return TypedColumn(F.lit(None), NullType())
    if name == "M" and isinstance(value.type, StructType):
        fields = [
            (each.name, _plain(TypedColumn(value.column[each.name], each.dataType), in_lists)) for each in value.type
        ]
        struct = F.struct(*[part.column.alias(field) for field, part in fields])
        kind = StructType([Field(field, part.type) for field, part in fields])
        return TypedColumn(F.when(value.column.isNotNull(), struct), kind)
    if name == "L" and isinstance(value.type, ArrayType) and in_lists:
        return _plain_list(value, value.type.elementType)
    return value


def _plain_list(value: TypedColumn, element: DataType) -> TypedColumn:
    if not isinstance(element, StructType) or not _is_typed(element) or len(element) > 1 or element.hasField("M"):
        return value
    name = element.fields[0].name
    kind = _held(TypedColumn(F.lit(None), element.fields[0].dataType), name, True).type
    return TypedColumn(
        F.transform(
            value.column, lambda each: _held(TypedColumn(each[name], element.fields[0].dataType), name, True).column
        ),
        ArrayType(kind),
    )


def _one_of(values: Sequence[TypedColumn]) -> TypedColumn:
    """Return one value of several, of which a record has at most one; a choice where their types differ."""
    if not values:
        return TypedColumn(F.lit(None), NullType())
    by_name: dict[str, list[TypedColumn]] = {}
    for value in values:
        by_name.setdefault(value.type.typeName(), []).append(value)
    merged = [TypedColumn(F.coalesce(*[each.column for each in same]), same[0].type) for same in by_name.values()]
    if len(merged) == 1:
        return merged[0]
    struct = F.struct(*[value.column.alias(name) for name, value in zip(by_name, merged, strict=True)])
    is_there = any_of([value.column for value in merged])
    return TypedColumn(F.when(is_there, struct), ChoiceType([value.type for value in merged]))
