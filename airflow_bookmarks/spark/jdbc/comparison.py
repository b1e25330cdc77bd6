"""Take snapshots of a table by Spark's own JDBC source, and compare two of them.

A snapshot is Parquet whose columns go by position, so that any name of a column fits:

    the table   id bigint | "unit price" numeric(8,2) | sold_at timestamp
    Parquet     c0 bigint | c1 decimal(8,2)           | c2 bigint

Dates and times are stored as days and microseconds since 1970 UTC: then neither the zone of a session nor the calendar
of a writer changes them. Values are compared as they are stored, NULL equals NULL, and there are no hashes that two
rows could share.

Before a comparison the earlier snapshot is brought to the columns of the later one:

    the column is        the earlier value counts as         a row is an update where
    in both              itself                              it differs
    in the later alone   NULL                                it has a value now
    in the earlier one   not there                           never
    of another type      itself, cast there and back         it differs, or the cast there and back makes another value
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import reduce
from operator import and_, or_
from typing import TYPE_CHECKING

from pyspark.sql import functions as F
from pyspark.sql import types as T

from airflow_bookmarks.core.errors import OptionError, SourceError
from airflow_bookmarks.core.text.count import counted
from airflow_bookmarks.sources.snapshot.snapshot import (
    CHANGE_TYPE,
    DELETE,
    INSERT,
    UPDATE,
    ChangeCounts,
    TableSnapshot,
    listed,
)
from airflow_bookmarks.spark.session import RowCount

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import Column, DataFrame, SparkSession

    from airflow_bookmarks.files.filesystem import FileSystem

_COUNTED = (T.ByteType, T.ShortType, T.IntegerType, T.LongType, T.DecimalType, T.FloatType, T.DoubleType)
_TIMES = (T.DateType, T.TimestampType, T.TimestampNTZType, *([T.TimeType] if hasattr(T, "TimeType") else []))
_PLAIN = (*_COUNTED, T.BooleanType, T.StringType, T.BinaryType, *_TIMES)
_HELD, _LOSSY, _COUNT = "held", "lossy", "count"


def check_columns(columns: T.StructType, keys: Sequence[str], label: str) -> None:
    """Make sure that a table can be kept and compared.

    Raises:
        OptionError: a column has a type without an order, or the name of the one that tells the change.
        SourceError: a key is no column.
    """
    names = columns.fieldNames()
    absent = [key for key in keys if names.count(key) != 1]
    if absent:
        raise SourceError(
            f"{label}: key {absent[0]!r} is no column here; there are {', '.join(names)}. Nothing was read or changed. "
            "Was it dropped or renamed? Names are taken letter by letter."
        )
    taken = [name for name in names if name.lower() == CHANGE_TYPE]
    if taken:
        raise OptionError(
            f"{label}: the table has a column {taken[0]!r}, which is where the frame says what has changed. Nothing "
            "was read or changed. Give query=... with another name for it."
        )
    unfit = [f"{each.name} ({each.dataType.simpleString()})" for each in columns if not _is_fit(each.dataType)]
    if unfit:
        raise OptionError(
            f"{label}: columns whose values can't be kept or compared: {', '.join(unfit)}. Nothing was read or "
            "changed. Give query=... without them or with a cast to text, or a type by the property customSchema."
        )


def _is_fit(kind: T.DataType) -> bool:
    if isinstance(kind, T.ArrayType):
        return _is_fit(kind.elementType)
    if isinstance(kind, T.StructType):
        return all(_is_fit(each.dataType) for each in kind)
    return isinstance(kind, _PLAIN)


# ---- how values are stored


def as_stored(frame: DataFrame) -> DataFrame:
    """Return the rows of a table as a snapshot stores them."""
    fields = frame.schema.fields
    numbered = frame.toDF(*(f"c{place}" for place in range(len(fields))))
    return numbered.select(*(_stored(F.col(f"c{i}"), each.dataType).alias(f"c{i}") for i, each in enumerate(fields)))


def _stored_type(kind: T.DataType) -> T.DataType:
    if isinstance(kind, T.DateType):
        return T.IntegerType()
    return T.LongType() if isinstance(kind, T.TimestampType) else kind


def _stored(value: Column, kind: T.DataType) -> Column:
    if isinstance(kind, T.DateType):
        return F.unix_date(value)
    return F.unix_micros(value) if isinstance(kind, T.TimestampType) else value


def _restored(value: Column, kind: T.DataType) -> Column:
    if isinstance(kind, T.DateType):
        return F.date_from_unix_date(value)
    return F.timestamp_micros(value) if isinstance(kind, T.TimestampType) else value


def columns_of(snapshot: TableSnapshot) -> T.StructType:
    """Return the columns of the table that a snapshot is of."""
    return T.StructType.fromJson(json.loads(snapshot.columns))


def stored_rows(spark: SparkSession, files: FileSystem, snapshot: TableSnapshot) -> DataFrame:
    """Return the rows of a snapshot as they are stored, of exactly its files."""
    fields = [
        T.StructField(f"c{place}", _stored_type(each.dataType)) for place, each in enumerate(columns_of(snapshot))
    ]
    reader = spark.read.schema(T.StructType(fields)).options(ignoreMissingFiles="false", ignoreCorruptFiles="false")
    folder = files.canonical(snapshot.uri)
    return reader.parquet(*(files.pattern(f"{folder}/{name}") for name, _ in snapshot.files))


# ---- take


def write_snapshot(frame: DataFrame, files: FileSystem, uri: str, label: str) -> TableSnapshot:
    """Write all rows of a frame to a folder, and make sure that all of them are there to be read.

    Raises:
        SourceError: Spark has written them where this process does not find them.
    """
    folder, count = files.canonical(uri), RowCount()
    counted = count.of(as_stored(frame))
    counted.write.mode("append").parquet(files.uri(folder))  # a local folder is there already
    columns = T.StructType([T.StructField(each.name, each.dataType, True, each.metadata) for each in frame.schema])
    snapshot = TableSnapshot(uri, columns.json(), 0, listed(files, uri))
    written = count.rows()
    there = stored_rows(frame.sparkSession, files, snapshot).count() if snapshot.files else 0
    if not snapshot.files or written not in (None, there):
        raise SourceError(
            f"{label}: Spark has read {'the table' if written is None else f'{written:,} rows'}, and {there:,} rows "
            f"are in {uri}. Nothing was committed. If state_uri is a local folder, executors on other machines write "
            "to their own disks: let it be in an object store."
        )
    return TableSnapshot(uri, snapshot.columns, int(there), snapshot.files)


def check_keys(rows: DataFrame, columns: T.StructType, keys: Sequence[str], label: str) -> None:
    """Make sure that each row of a snapshot has keys, and no two have the same.

    Raises:
        SourceError: a key is NULL, or rows share one.
    """
    if not keys:
        return
    places = [F.col(f"c{columns.fieldNames().index(key)}") for key in keys]
    without = rows.where(reduce(or_, (place.isNull() for place in places))).count()
    if without:
        raise SourceError(
            f"{label}: {counted(without, 'row')} with NULL in a key ({', '.join(keys)}) can't be found again. "
            "Nothing was committed. Name other keys; or none, and all columns together are what a row is known by."
        )
    kinds = [columns[key].dataType for key in keys]
    said = [_restored(place, kind).cast("string") for place, kind in zip(places, kinds, strict=True)]
    shared = rows.groupBy(*places).count().where("count > 1").select(*said, "count").limit(1).collect()
    if shared:
        values = ", ".join(str(value) for value in shared[0][:-1])
        raise SourceError(
            f"{label}: {shared[0][-1]:,} rows have the keys {values} ({', '.join(keys)}). Nothing was committed. Name "
            "keys that are unique to the row, by their bytes; or none, and all columns together are what a row is "
            "known by."
        )


# ---- compare


@dataclass(frozen=True, slots=True)
class Comparison:
    """The changes from the snapshot `before`, None where there is none, to `after`, by `keys`."""

    spark: SparkSession
    files: FileSystem
    before: TableSnapshot | None
    after: TableSnapshot
    keys: Sequence[str]

    def frame(self) -> DataFrame:
        """Return the rows that have changed, with the columns of the later snapshot, and how they have changed."""
        fields = columns_of(self.after).fields
        values = [
            _restored(F.col(f"c{i}"), each.dataType).alias(each.name, metadata=each.metadata)
            for i, each in enumerate(fields)
        ]
        return self._changes().select(*values, F.col(CHANGE_TYPE))

    def counts(self) -> ChangeCounts:
        """Count them."""
        found = {row[0]: int(row[1]) for row in self._changes().groupBy(CHANGE_TYPE).count().collect()}
        return ChangeCounts(found.get(INSERT, 0), found.get(UPDATE, 0), found.get(DELETE, 0))

    def _changes(self) -> DataFrame:
        now = stored_rows(self.spark, self.files, self.after)
        if self.before is None:
            return now.withColumn(CHANGE_TYPE, F.lit(INSERT))
        if self.before.uri == self.after.uri:
            return now.where(F.lit(False)).withColumn(CHANGE_TYPE, F.lit(INSERT))
        return self._by_key(now) if self.keys else self._by_count(now)

    def _by_key(self, now: DataFrame) -> DataFrame:
        fields = columns_of(self.after).fields
        then = self._brought().withColumn(_HELD, F.lit(True))
        then = then.toDF(*(f"b_{name}" for name in then.columns))
        now = now.withColumn(_HELD, F.lit(True))
        names = [each.name for each in fields]
        same = [now[f"c{i}"] == then[f"b_c{i}"] for i in (names.index(key) for key in self.keys)]
        both = then.join(now, reduce(and_, same), "full_outer")
        alike = [F.col(f"c{i}").eqNullSafe(F.col(f"b_c{i}")) for i in range(len(fields))]
        is_same = reduce(and_, alike, ~F.col(f"b_{_LOSSY}"))
        is_gone = F.col(_HELD).isNull()
        change = (
            F.when(F.col(f"b_{_HELD}").isNull(), F.lit(INSERT))
            .when(is_gone, F.lit(DELETE))
            .when(~is_same, F.lit(UPDATE))
        )
        values = [
            F.when(is_gone, F.col(f"b_c{i}")).otherwise(F.col(f"c{i}")).alias(f"c{i}") for i in range(len(fields))
        ]
        return both.select(*values, change.alias(CHANGE_TYPE)).where(F.col(CHANGE_TYPE).isNotNull())

    def _by_count(self, now: DataFrame) -> DataFrame:
        """Compare how often each row is there: an update is a delete and an insert."""
        names = [f"c{i}" for i in range(len(now.columns))]
        then = self._brought().withColumn(_COUNT, F.lit(-1).cast("bigint"))
        now = now.withColumn(_LOSSY, F.lit(False)).withColumn(_COUNT, F.lit(1).cast("bigint"))
        sums = now.unionByName(then).groupBy(*names, _LOSSY).agg(F.sum(_COUNT).alias(_COUNT)).where(f"{_COUNT} <> 0")
        change = F.when(F.col(_COUNT) > 0, F.lit(INSERT)).otherwise(F.lit(DELETE)).alias(CHANGE_TYPE)
        each = F.explode(F.sequence(F.lit(1).cast("bigint"), F.abs(F.col(_COUNT))))
        return sums.select(*names, change, each.alias(_HELD)).drop(_HELD)

    def _brought(self) -> DataFrame:
        """Return the earlier rows with the columns of the later ones, and whether one of their values is lost."""
        before, after = self.before, self.after
        if before is None:
            raise ValueError("there is no earlier snapshot")
        then: dict[str, tuple[str | None, T.DataType]] = {
            each.name: (f"c{i}", each.dataType) for i, each in enumerate(columns_of(before))
        }
        values: list[Column] = []
        lossy: list[Column] = []
        for i, each in enumerate(columns_of(after)):
            column, kind = then.get(each.name, (None, each.dataType))
            value, is_lost = _brought_value(column, kind, each.dataType)
            values.append(value.alias(f"c{i}"))
            lossy += [] if is_lost is None else [is_lost]
        rows = stored_rows(self.spark, self.files, before)
        return rows.select(*values, reduce(or_, lossy, F.lit(False)).alias(_LOSSY))


def _brought_value(column: str | None, then: T.DataType, now: T.DataType) -> tuple[Column, Column | None]:
    """Return an earlier value as a column of another type holds it, and whether that is another value."""
    nothing = F.lit(None).cast(_stored_type(now))
    if column is None:
        return nothing, None
    if then == now:
        return F.col(column), None
    if not _are_castable(then, now):
        return nothing, F.col(column).isNotNull()
    # The names of columns and types are our own.
    there = f"try_cast({column} AS {now.simpleString()})"
    back = F.expr(f"try_cast({there} AS {then.simpleString()})")
    return F.expr(there), ~F.col(column).eqNullSafe(back)


def _are_castable(one: T.DataType, other: T.DataType) -> bool:
    """Whether values of one type have the same text and number in the other, whatever the zone of the session is."""
    kinds = (*_COUNTED, T.StringType, T.BooleanType)
    return isinstance(one, kinds) and isinstance(other, kinds)
