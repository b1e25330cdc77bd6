"""Casts without errors: null where a value doesn't fit, whatever `spark.sql.ansi.enabled` says."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pyspark.sql import functions as F
from pyspark.sql import types as spark_types

from airflow_bookmarks.core.errors import OptionError
from airflow_bookmarks.glue.dynamic.choice import choices_in
from airflow_bookmarks.glue.dynamic.types import (
    ArrayType,
    BooleanType,
    ChoiceType,
    DataType,
    MapType,
    NullType,
    StructType,
    atom_of,
)
from airflow_bookmarks.spark.features import has_try_cast

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from pyspark.sql import Column

# What scripts call types, beside the names of Spark's SQL.
_NAMES: Mapping[str, str] = {
    "tinyint": "tinyint",
    "byte": "tinyint",
    "smallint": "smallint",
    "short": "smallint",
    "int": "int",
    "integer": "int",
    "long": "bigint",
    "bigint": "bigint",
    "float": "float",
    "double": "double",
    "decimal": "decimal(10,2)",
    "string": "string",
    "binary": "binary",
    "boolean": "boolean",
    "bool": "boolean",
    "date": "date",
    "timestamp": "timestamp",
    "timestamp_ntz": "timestamp_ntz",
}
_SPARK: Mapping[str, spark_types.DataType] = {
    of_spark.simpleString(): of_spark
    for of_spark in (
        spark_types.ByteType(),
        spark_types.ShortType(),
        spark_types.IntegerType(),
        spark_types.LongType(),
        spark_types.FloatType(),
        spark_types.DoubleType(),
        spark_types.StringType(),
        spark_types.BinaryType(),
        spark_types.BooleanType(),
        spark_types.DateType(),
        spark_types.TimestampType(),
        spark_types.TimestampNTZType(),
    )
}
_SIZED = re.compile(r"decimal\(\s*(\d+)\s*(?:,\s*(\d+)\s*)?\)")
_TEXT = re.compile(r"(?:var)?char\(\s*\d+\s*\)")


def type_named(name: str, call: str, beside: Iterable[str] = ()) -> str:
    """Return the type that a script names, as Spark's SQL names it.

    Args:
        name: such as "long", "bigint", "Decimal(10,2)", "string", in any case.
        call: what the script calls, for the message.
        beside: what else the call takes, which is no type of a single value, for the message.

    Raises:
        OptionError: no type is called so.

    Example:
        >>> type_named("Long", "resolveChoice"), type_named("DECIMAL(12, 3)", "resolveChoice")
        ('bigint', 'decimal(12,3)')
    """
    lowered = name.strip().lower()
    if lowered in _NAMES:
        return _NAMES[lowered]
    if sized := _SIZED.fullmatch(lowered):
        return f"decimal({sized[1]},{sized[2] or 0})"
    if _TEXT.fullmatch(lowered):
        return "string"
    others = "".join(f", {each}" for each in beside)
    raise OptionError(
        f"{call}: no type is called {name!r}. Nothing was read or changed. Use one of {', '.join(_NAMES)}{others}, or "
        "decimal(precision,scale)."
    )


def spark_named(target: str) -> spark_types.DataType:
    """Return the type without parts that Spark's SQL names."""
    if sized := _SIZED.fullmatch(target):
        return spark_types.DecimalType(int(sized[1]), int(sized[2] or 0))
    return _SPARK[target]


def glue_named(target: str) -> DataType:
    """Return the type of a frame that Spark's SQL names."""
    return atom_of(spark_named(target))


def try_cast(column: Column, target: str) -> Column:
    """Cast a column whose values have no parts.

    Args:
        column: the values.
        target: the type, as Spark's SQL names it.
    """
    # Before Spark 4 a cast is a lenient one, unless a session wants errors.
    return column.try_cast(target) if has_try_cast() else column.cast(target)


def cast_value(column: Column, held: DataType, target: str) -> Column:
    """Cast values of any type of a frame: null where one doesn't fit; as text, what has parts is JSON.

    Args:
        column: the values.
        held: their type.
        target: a type without parts, as Spark's SQL names it.
    """
    if isinstance(held, ChoiceType):
        return F.coalesce(*[cast_value(column.getField(kind.typeName()), kind, target) for kind in held.choices])
    if isinstance(held, StructType | ArrayType | MapType):
        return F.to_json(plain_value(column, held)) if target == "string" else F.lit(None).cast(target)
    if isinstance(held, NullType):
        return F.lit(None).cast(target)
    if isinstance(held, BooleanType) and target in ("date", "timestamp", "timestamp_ntz", "binary"):
        return F.lit(None).cast(target)
    return try_cast(column, target)


def plain_value(column: Column, held: DataType) -> Column:
    """Return values for JSON: what a choice in them holds stands for it, as text where its types differ."""
    return with_choices(column, held, lambda each, choice: cast_value(each, choice, "string"))


def with_choices(column: Column, held: DataType, of_choice: Callable[[Column, ChoiceType], Column]) -> Column:
    """Return values in which another value stands for each choice, at any depth.

    Args:
        column: the values.
        held: their type.
        of_choice: gives what stands for a choice.
    """
    if isinstance(held, ChoiceType):
        return of_choice(column, held)
    if not choices_in(held):
        return column
    if isinstance(held, StructType):
        fields = [with_choices(column.getField(f.name), f.dataType, of_choice).alias(f.name) for f in held]
        return F.when(column.isNotNull(), F.struct(*fields))
    if isinstance(held, ArrayType):
        element = held.elementType
        return F.transform(column, lambda each: with_choices(each, element, of_choice))
    if isinstance(held, MapType):
        value_type = held.valueType
        return F.transform_values(column, lambda _, value: with_choices(value, value_type, of_choice))
    return column
