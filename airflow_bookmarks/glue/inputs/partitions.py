"""Choose partitions of a table: Spark evaluates a predicate over a small frame of their values, with their types."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F
from pyspark.sql.types import IntegerType, StringType, StructField, StructType

from airflow_bookmarks.core.errors import OptionError
from airflow_bookmarks.core.text.cause import cause_of
from airflow_bookmarks.spark.features import SPARK_ERRORS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import Column, DataFrame, SparkSession

    from airflow_bookmarks.core.files.listed_partitions import Values

_ROW = "__bookmark_row"


def chosen(
    spark: SparkSession, call: str, types: Mapping[str, str], values: Sequence[Values], predicate: str | None
) -> list[int]:
    """Return which partitions a predicate admits, as indices.

    Args:
        call: the call of the script, for messages.
        types: of the partition columns, in their order.
        values: of each partition.
        predicate: in Spark's SQL, with any of its functions; None or empty: all are.

    Raises:
        OptionError: a value does not fit the type of its column; the predicate is no condition on these columns.
    """
    for each in values:
        if len(each) != len(types):
            raise OptionError(
                f"{call}: a partition has the values {list(each)}, and the partition columns are {list(types)}. "
                "Nothing was read or changed. Correct the partition in its catalog."
            )
    if not values:
        return []
    has_types = any(ddl != "string" for ddl in types.values())
    if not has_types and not (predicate or "").strip():
        return list(range(len(values)))
    typed = _typed(spark, call, types, values)
    if not (predicate or "").strip():
        return list(range(len(values)))
    try:
        rows = typed.where(str(predicate)).select(_ROW).collect()
    except SPARK_ERRORS as error:
        raise OptionError(
            f"{call}: push_down_predicate={predicate!r} can't be evaluated over the partition columns "
            f"{dict(types)}: {cause_of(error)} Nothing was read or changed. Write a condition on these columns, in the "
            "SQL of Spark; filter by others with .filter(...) on the frame."
        ) from error
    return sorted(row[0] for row in rows)


def _typed(spark: SparkSession, call: str, types: Mapping[str, str], values: Sequence[Values]) -> DataFrame:
    """Return the values with their types, and the number of their partition.

    Raises:
        OptionError: one does not fit.
    """
    names = [f"v{at}" for at in range(len(types))]
    schema = StructType([StructField(_ROW, IntegerType()), *(StructField(name, StringType()) for name in names)])
    texts = spark.createDataFrame([(row, *each) for row, each in enumerate(values)], schema)
    cast = {name: F.expr(f"try_cast({name} AS {ddl})") for name, ddl in zip(names, types.values(), strict=True)}
    misfit = F.greatest(F.lit(-1), *[_at(at, name, cast[name]) for at, name in enumerate(names)])
    wrong = texts.select(_ROW, misfit.alias("at")).where("at >= 0").orderBy(_ROW).first()
    if wrong is not None:
        column, ddl = list(types.items())[wrong["at"]]
        raise OptionError(
            f"{call}: partition {dict(zip(types, values[wrong[_ROW]], strict=True))} has the value "
            f"{values[wrong[_ROW]][wrong['at']]!r} for {column!r}, which is no {ddl}, as the catalog types it. Nothing "
            "was read or changed. Correct the partition, or the type of the column, in the catalog."
        )
    return texts.select(_ROW, *[cast[name].alias(column) for name, column in zip(names, types, strict=True)])


def _at(number: int, name: str, cast: Column) -> Column:
    """Return the number of a column where its value does not fit, else -1."""
    return F.when(F.col(name).isNotNull() & F.isnull(cast), F.lit(number)).otherwise(F.lit(-1))
