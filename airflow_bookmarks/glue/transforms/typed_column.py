"""Values in a frame: a column, or a part of one, with the type that the frame gives it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from airflow_bookmarks.core.errors import BookmarkError, OptionError
from airflow_bookmarks.glue.dynamic.choice import column_of, glue_type
from airflow_bookmarks.glue.dynamic.fields.path import path_of
from airflow_bookmarks.glue.dynamic.types import (
    ArrayType,
    ChoiceType,
    DataType,
    MapType,
    NullType,
    StringType,
    StructType,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pyspark.sql import Column, SparkSession
    from pyspark.sql import types as spark_types

    from airflow_bookmarks.glue.dynamic.base import FrameBase
    from airflow_bookmarks.glue.dynamic.choice import Steps


class FieldPathError(BookmarkError):
    """Raised when the path to one field is the name of another, and both would become one column."""


@dataclass(frozen=True, slots=True)
class TypedColumn:
    """A column, or a part of one.

    Args:
        column: the expression.
        type: the type; choices are structs of one field for each type in the expression.
        field: of a whole column, its field in the schema, whose metadata says more.
    """

    column: Column
    type: DataType
    field: spark_types.StructField | None = None


def nothing_if_empty(frame: FrameBase) -> TypedColumn | None:
    """Return what stands for a field that an increment with nothing new lacks: no record was read, so no type is known.

    None for a frame that holds records, where the field is missing.
    """
    is_empty = frame.is_nothing_new or not frame.df.columns
    return TypedColumn(F.lit(None).cast("string"), StringType()) if is_empty else None


def columns_in(schema: spark_types.StructType) -> list[tuple[str, TypedColumn]]:
    """Return the columns of a DataFrame with marks, by name."""
    return [(field.name, TypedColumn(column_of(field.name), glue_type(field), field)) for field in schema.fields]


def value_at(
    schema: spark_types.StructType, steps: Steps, call: str, *, case_sensitive: bool = False
) -> TypedColumn | None:
    """Return what is at a path; None if nothing is.

    A path through a choice goes on in its struct.

    Args:
        schema: that of a DataFrame with marks.
        steps: the path.
        call: what the script calls, for the message.
        case_sensitive: whether names must agree in case; one that agrees is taken first in any case.

    Raises:
        OptionError: the path leads into an array.
    """
    name = _named(steps[0], schema.names, case_sensitive)
    if name is None:
        return None
    found: TypedColumn | None = dict(columns_in(schema))[name]
    for step in steps[1:]:
        if found is None:
            return None
        found = _part(found, step, path_of(steps), call, case_sensitive)
    return found


def _part(value: TypedColumn, step: str | None, path: str, call: str, case_sensitive: bool) -> TypedColumn | None:
    if isinstance(value.type, ChoiceType):
        struct = next((each for each in value.type.choices if isinstance(each, StructType)), None)
        value = value if struct is None else TypedColumn(value.column[struct.typeName()], struct)
    if isinstance(value.type, ArrayType):
        raise OptionError(
            f"{call}: the path {path!r} leads into an array, which has many values. Nothing was read or changed. "
            "Take the array whole, or make rows of its elements by relationalize."
        )
    if isinstance(value.type, MapType):
        return None if step is None else TypedColumn(value.column[step], value.type.valueType)
    if not isinstance(value.type, StructType):
        return None
    fields = value.type.field_map
    name = _named(step, list(fields), case_sensitive)
    return None if name is None else TypedColumn(value.column[name], fields[name].dataType)


def _named(name: str | None, names: Sequence[str], case_sensitive: bool) -> str | None:
    if name is None or name in names or case_sensitive:
        return name if name in names else None
    return next((each for each in names if each.lower() == name.lower()), None)


def flattened(name: str, value: TypedColumn) -> list[tuple[str, TypedColumn]]:
    """Return the parts of a value that are no structs, by their path; arrays and maps stay whole.

    Of a choice with a struct, the fields of the struct are parts of their own, and what else it may be stays.
    """
    if isinstance(value.type, StructType):
        return _fields(name, value.column, value.type)
    if isinstance(value.type, NullType):
        return [(name, TypedColumn(F.lit(None), value.type))]
    if not isinstance(value.type, ChoiceType):
        return [(name, value)]
    structs = [each for each in value.type.choices if isinstance(each, StructType)]
    others = [each for each in value.type.choices if not isinstance(each, StructType)]
    if not structs:
        return [(name, value)]
    parts = [(name, only(value, others))] if others else []
    return parts + [part for each in structs for part in _fields(name, value.column[each.typeName()], each)]


def _fields(name: str, column: Column, struct: StructType) -> list[tuple[str, TypedColumn]]:
    return [
        part
        for each in struct
        for part in flattened(f"{name}.{each.name}", TypedColumn(column[each.name], each.dataType))
    ]


def check_columns(columns: Iterable[tuple[str, str]], spark: SparkSession, call: str) -> None:
    """Make sure that no two fields become one column.

    Args:
        columns: for each the field that it is made of, and its name.
        spark: the session, which may tell columns by case: `spark.sql.caseSensitive`.
        call: what the script calls, for the message.

    Raises:
        FieldPathError: two do.
    """
    tells_case = spark.conf.get("spark.sql.caseSensitive") == "true"
    seen: dict[str, str] = {}
    for field, name in columns:
        known = name if tells_case else name.lower()
        if known in seen:
            both = f"the fields {seen[known]!r} and {field!r} both" if field != seen[known] else f"parts of {field!r}"
            raise FieldPathError(
                f"{call}: {both} become a column {name!r}. Nothing was read or changed. Rename one of them first, a "
                f"name with dots in backquotes: rename_field('`{name}`', 'other')."
            )
        seen[known] = field


def only(value: TypedColumn, types: Sequence[DataType]) -> TypedColumn:
    """Return a choice without what is of none of these types, which it has."""
    if len(types) == 1:
        return TypedColumn(value.column[types[0].typeName()], types[0])
    held = [value.column[each.typeName()] for each in types]
    struct = F.struct(*[column.alias(each.typeName()) for column, each in zip(held, types, strict=True)])
    return TypedColumn(F.when(any_of(held), struct), ChoiceType(types))


def any_of(columns: Sequence[Column]) -> Column:
    """Return whether any of several columns holds a value."""
    return reduce(or_, [column.isNotNull() for column in columns])
