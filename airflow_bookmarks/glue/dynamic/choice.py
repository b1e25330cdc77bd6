r"""Choices in a DataFrame: structs of one field for each type, marked in the metadata of their column.

A column of whole numbers and texts is `struct<int: int, string: string>`, of which at most one field holds a value. Its
metadata says at which paths inside the column such structs are choices, and so tells them from structs of the data:

    {"glue.choices": "[[], [\"items\", null, \"price\"]]"}    # the column itself; price in each element of items

Spark keeps the metadata of a column through select, where, union, withColumnRenamed and repartition. A column of text
whose type a catalog declares says so in the same way, see `declared`.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F
from pyspark.sql import types as spark_types

from airflow_bookmarks.glue.dynamic.types import (
    ArrayType,
    ChoiceType,
    DataType,
    Field,
    MapType,
    NullType,
    StructType,
    atom_of,
    spark_atom,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pyspark.sql import Column, DataFrame

CHOICES = "glue.choices"
DECLARED = "glue.declared"

# A step into a struct is the name of its field, a step into the elements of an array or the values of a map is None.
Steps = tuple[str | None, ...]


def spark_type(glue_type: DataType) -> spark_types.DataType:
    """Return the type that values of a type have in a DataFrame: choices are structs of one field for each type."""
    if isinstance(glue_type, ChoiceType):
        alternatives = [spark_types.StructField(kind.typeName(), spark_type(kind)) for kind in glue_type.choices]
        return spark_types.StructType(alternatives)
    if isinstance(glue_type, StructType):
        return spark_types.StructType([spark_types.StructField(f.name, spark_type(f.dataType)) for f in glue_type])
    if isinstance(glue_type, ArrayType):
        return spark_types.ArrayType(spark_type(glue_type.elementType))
    if isinstance(glue_type, MapType):
        return spark_types.MapType(spark_types.StringType(), spark_type(glue_type.valueType))
    return spark_atom(glue_type)


def spark_schema(schema: StructType) -> spark_types.StructType:
    """Return the schema of a DataFrame of a frame, with the marks of its choices."""
    fields = [
        spark_types.StructField(f.name, spark_type(f.dataType), metadata=marks_of(f.dataType)) for f in schema.fields
    ]
    return spark_types.StructType(fields)


def glue_schema(schema: spark_types.StructType) -> StructType:
    """Return the schema of a frame that a DataFrame of this schema holds: its marks say what is a choice.

    Columns of text whose type is declared are text here: whether all values fit is not known from a schema.
    """
    return StructType([Field(field.name, glue_type(field)) for field in schema.fields])


def glue_type(field: spark_types.StructField) -> DataType:
    """Return the type of a column, with its choices."""
    return _glue_type(field.dataType, (), _marked(field.metadata))


def _glue_type(of_spark: spark_types.DataType, here: Steps, choices: frozenset[Steps]) -> DataType:
    if isinstance(of_spark, spark_types.StructType):
        fields = [Field(f.name, _glue_type(f.dataType, (*here, f.name), choices)) for f in of_spark.fields]
        return ChoiceType([f.dataType for f in fields]) if here in choices else StructType(fields)
    if isinstance(of_spark, spark_types.ArrayType):
        return ArrayType(_glue_type(of_spark.elementType, (*here, None), choices))
    if isinstance(of_spark, spark_types.MapType):
        return MapType(_glue_type(of_spark.valueType, (*here, None), choices))
    return atom_of(of_spark)


def choices_in(glue_type: DataType, here: Steps = ()) -> list[Steps]:
    """Return where a type holds choices, in the order in which a schema shows them; those within choices as well."""
    if isinstance(glue_type, ChoiceType):
        return [here, *(path for kind in glue_type.choices for path in choices_in(kind, (*here, kind.typeName())))]
    if isinstance(glue_type, StructType):
        return [path for field in glue_type for path in choices_in(field.dataType, (*here, field.name))]
    if isinstance(glue_type, ArrayType):
        return choices_in(glue_type.elementType, (*here, None))
    return choices_in(glue_type.valueType, (*here, None)) if isinstance(glue_type, MapType) else []


def marks_of(glue_type: DataType) -> dict[str, Any]:
    """Return the metadata of a column of this type."""
    choices = choices_in(glue_type)
    return {CHOICES: json.dumps(choices)} if choices else {}


def _marked(metadata: Mapping[str, Any] | None) -> frozenset[Steps]:
    return frozenset(tuple(path) for path in json.loads((metadata or {}).get(CHOICES, "[]")))


def marked(column: Column, name: str, glue_type: DataType) -> Column:
    """Name a column that holds values of a type, and mark its choices."""
    # Metadata that is empty would leave that of the column as it was.
    return column.alias(name, metadata=marks_of(glue_type) or {CHOICES: "[]"})


def without_marks(frame: DataFrame) -> DataFrame:
    """Return a DataFrame whose columns are plain ones: choices are structs, as `toDF` of Glue gives them."""
    if not any(_is_marked(field) for field in frame.schema.fields):
        return frame
    return frame.select(*[_without_mark(field) for field in frame.schema.fields])


def _is_marked(field: spark_types.StructField) -> bool:
    return any(key in (field.metadata or {}) for key in (CHOICES, DECLARED))


def _without_mark(field: spark_types.StructField) -> Column:
    column = column_of(field.name)
    if not _is_marked(field):
        return column
    kept = {key: value for key, value in (field.metadata or {}).items() if key not in (CHOICES, DECLARED)}
    # A column that is named anew keeps its metadata, and what an expression makes has none: this one is optimized away.
    return column.alias(field.name, metadata=kept) if kept else F.coalesce(column).alias(field.name)


def has_choices(frame: DataFrame) -> bool:
    """Whether a DataFrame holds a choice anywhere."""
    return any(_marked(field.metadata) for field in frame.schema.fields)


def quoted(name: str) -> str:
    """Return the name of a column as Spark's paths take it, whatever it holds."""
    return "`" + name.replace("`", "``") + "`"


def column_of(name: str) -> Column:
    """Return a column of a DataFrame by its whole name, dots and all."""
    return F.col(quoted(name))


def one_type(types: Iterable[DataType]) -> DataType:
    """Return one type for values of several: itself where there is but one, else a choice."""
    found = list(types)
    if not found:
        return NullType()
    return found[0] if len(found) == 1 else ChoiceType(found)
