"""Types that a catalog declares over columns of text, as those of CSV: applied when somebody asks.

The type of a column stands in its metadata (`{"glue.declared": "bigint"}`), so it goes where the column goes. Values
that don't fit it are found by one query over all such columns: a column with some is a choice of its type and text.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F
from pyspark.sql import types as spark_types

from airflow_bookmarks.glue.dynamic.cast import spark_named, try_cast
from airflow_bookmarks.glue.dynamic.choice import DECLARED, column_of, marked
from airflow_bookmarks.glue.dynamic.types import ChoiceType, StringType, atom_of

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


def with_declared(frame: DataFrame, declared: spark_types.StructType) -> DataFrame:
    """Mark columns of text with the types that a catalog gives them; a type that is text, or has parts, marks none."""
    types = {field.name.lower(): field.dataType for field in declared.fields}
    return frame.select(*[_declared(field, types.get(field.name.lower())) for field in frame.schema.fields])


def _declared(field: spark_types.StructField, wanted: spark_types.DataType | None) -> Column:
    if wanted is None or not isinstance(field.dataType, spark_types.StringType) or not _is_atom(wanted):
        return column_of(field.name)
    metadata = {**(field.metadata or {}), DECLARED: wanted.simpleString()}
    return column_of(field.name).alias(field.name, metadata=metadata)


def _is_atom(wanted: spark_types.DataType) -> bool:
    texts = (spark_types.StringType, spark_types.CharType, spark_types.VarcharType)
    parts = (spark_types.StructType, spark_types.ArrayType, spark_types.MapType)
    return not isinstance(wanted, (*texts, *parts))


def declared_type(field: spark_types.StructField) -> str | None:
    """Return the type that a catalog gives to a column of text, as SQL names it; None if it gives none."""
    return (field.metadata or {}).get(DECLARED)


def cast_declared(text: Column, declared: str, target: str) -> Column:
    """Return a column of text as another type: by its declared type where a value is of it, else from the text itself.

    A text such as 1.50 is no whole number to Spark, and the decimal that it stands for becomes one.
    """
    if declared == target:
        return try_cast(text, target)
    return F.coalesce(try_cast(try_cast(text, declared), target), try_cast(text, target))


def with_declared_types(frame: DataFrame) -> DataFrame:
    """Apply declared types: one query asks whether all values fit, if there is any such column."""
    wanted = {field.name: kind for field in frame.schema.fields if (kind := declared_type(field)) is not None}
    if not wanted:
        return frame
    names = list(wanted)
    misfits = [F.max(_misfits(name, wanted[name])).alias(str(number)) for number, name in enumerate(names)]
    found = frame.agg(*misfits).collect()[0]
    unfit = {name for number, name in enumerate(names) if found[number]}
    return frame.select(*[_typed(field, unfit) for field in frame.schema.fields])


def _misfits(name: str, kind: str) -> Column:
    text = column_of(name)
    return (F.trim(text) != "") & try_cast(text, kind).isNull()


def _typed(field: spark_types.StructField, unfit: set[str]) -> Column:
    kind, column = declared_type(field), column_of(field.name)
    if kind is None:
        return column
    typed = try_cast(column, kind)
    of_spark = spark_named(kind)
    if field.name not in unfit:
        return typed.alias(field.name)
    choice = ChoiceType([atom_of(of_spark), StringType()])
    name = choice.choices[0].typeName()
    held = F.struct(typed.alias(name), F.when(_misfits(field.name, kind), column).alias("string"))
    empty = typed.isNull() & ~F.coalesce(_misfits(field.name, kind), F.lit(False))
    return marked(F.when(~empty, held), field.name, choice)
