"""Ids for arrays: consecutive over all rows, the same in each action, and going on where the run before stopped."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql import Window
from pyspark.sql import functions as F
from pyspark.sql.types import IntegerType, LongType, StructField, StructType

from airflow_bookmarks.glue.dynamic.choice import column_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import DataFrame

# Where a row stood when the rows were fixed: the partition, and the place in it. Both are stored with the rows.
PART, PLACE = "__part", "__place"


@dataclass(frozen=True, slots=True)
class Numbered:
    """Rows whose arrays have ids.

    Args:
        rows: the rows, with one more column of each array: its id, null where the array is empty or missing.
        ids: the name of that column, by the name of the array.
        last: the last id given, by the name of the array.
    """

    rows: DataFrame
    ids: Mapping[str, str]
    last: Mapping[str, int]


def with_places(rows: DataFrame) -> DataFrame:
    """Add to each row where it stands; true only as long as the rows are not computed again, so they are written."""
    return rows.select("*", F.spark_partition_id().alias(PART), F.monotonically_increasing_id().alias(PLACE))


def with_ids(rows: DataFrame, arrays: Sequence[str], order: Sequence[str], last: Mapping[str, int]) -> Numbered:
    """Give each array that has elements the next id of its column.

    Ids follow the order of partitions and, in each, `order`. A first pass counts the arrays of each partition, so that
    no partition waits for another.

    Args:
        rows: rows with `PART`.
        arrays: names of columns that hold arrays.
        order: names of columns that order the rows of a partition, without ties.
        last: the last id given before, by array; 0 where an array has none.
    """
    ids = {array: f"__id_{number}" for number, array in enumerate(arrays)}
    flags = [F.coalesce(F.size(column_of(array)) > 0, F.lit(False)).cast(LongType()) for array in arrays]
    before = [f"__before_{number}" for number in range(len(arrays))]
    sums = [F.sum(flag).alias(name) for flag, name in zip(flags, before, strict=True)]
    counted = sorted(tuple(row) for row in rows.groupBy(PART).agg(*sums).collect())
    offsets, ends = _cumulated(counted, [last.get(array, 0) for array in arrays])
    schema = StructType([StructField(PART, IntegerType()), *(StructField(name, LongType()) for name in before)])
    joined = rows.join(F.broadcast(rows.sparkSession.createDataFrame(offsets, schema)), PART)
    window = Window.partitionBy(PART).orderBy(*order).rowsBetween(Window.unboundedPreceding, Window.currentRow)
    numbers = [
        F.when(flag == 1, F.sum(flag).over(window) + F.col(name)).alias(ids[array])
        for array, flag, name in zip(arrays, flags, before, strict=True)
    ]
    return Numbered(joined.select("*", *numbers).drop(*before), ids, dict(zip(arrays, ends, strict=True)))


def _cumulated(counted: Sequence[tuple[int, ...]], last: list[int]) -> tuple[list[tuple[int, ...]], list[int]]:
    """Return what was given before each partition, and at the end."""
    offsets = []
    for part, *counts in counted:
        offsets.append((part, *last))
        last = [so_far + more for so_far, more in zip(last, counts, strict=True)]
    return offsets, last
