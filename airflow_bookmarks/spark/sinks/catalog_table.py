"""Outputs in tables of a catalog: what an output needs to know of the table, before its first byte is written."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from airflow_bookmarks.core.errors import OptionError, SourceError
from airflow_bookmarks.core.text.catalog_name import parts_of, quoted
from airflow_bookmarks.core.text.cause import cause_of
from airflow_bookmarks.core.text.escaping import in_lines
from airflow_bookmarks.sinks.files.catalog import SPARK, CatalogTable
from airflow_bookmarks.sinks.files.registration import reached
from airflow_bookmarks.spark.features import SPARK_ERRORS
from airflow_bookmarks.spark.sinks.widening import is_wider, length_of
from airflow_bookmarks.spark.tables.catalog import FORMATS, SparkCatalog

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pyspark.sql import Column, DataFrame, SparkSession

    from airflow_bookmarks.sinks.files.catalog import PartitionCatalog
    from airflow_bookmarks.spark.tables.catalog import HiveStyleTable

_LEFT = "Nothing was written or committed."
_WRITTEN_BY = {"delta": ".delta(name)", "iceberg": ".iceberg(name)"}


def checked(
    what: str,
    spark: SparkSession,
    table: CatalogTable,
    folder: str,
    partition_by: Sequence[str],
    *,
    may_be_made: bool = False,
    replaces_all: bool = False,
) -> CatalogTable:
    """Return a table of a catalog by its full name, if it lies in the folder of an output and has its partitions.

    Args:
        what: job and output, for errors.
        may_be_made: whether the publish makes it if it is not there.
        replaces_all: whether the output replaces the whole table, which the files in its folder have to be.

    Raises:
        OptionError: it does not, or there is no such table; it is to be replaced, and a partition lies elsewhere.
        SourceError: the catalog is out of reach.
    """
    try:
        catalog = reached(table, {SPARK: SparkCatalog(spark)})
        name = (catalog.fits if may_be_made else catalog.check)(table.name, folder, partition_by)
        if replaces_all:
            _check_inside(catalog, name, folder)
    except OptionError as error:
        raise OptionError(f"{what}: {str(error).rstrip('.')}. {_LEFT}") from error
    except SourceError as error:
        raise SourceError(f"{what}: {str(error).rstrip('.')}. {_LEFT} Run it again when it answers.") from error
    return CatalogTable(table.catalog, name)


def _check_inside(catalog: PartitionCatalog, name: str, folder: str) -> None:
    outside = catalog.outside(name, folder)
    if outside is not None:
        partition, location = outside
        raise OptionError(
            f"the table {name} has a partition {partition!r} that lies in {location!r}, outside of its folder, and an "
            "overwrite of the whole table would leave its rows. Drop it from the table, or replace those partitions "
            "alone that are written, with partitionOverwriteMode='dynamic'"
        )


def existing(what: str, spark: SparkSession, name: str) -> HiveStyleTable | None:
    """Return a table of Spark's catalog over a folder of files; None if it is not there.

    Raises:
        OptionError: what is there is none. SourceError: the catalog is out of reach.
    """
    try:
        return SparkCatalog(spark).find(name)
    except OptionError as error:
        advice = next((f" Write to it with {verb}." for kind, verb in _WRITTEN_BY.items() if kind in str(error)), "")
        raise OptionError(f"{what}: {str(error).rstrip('.')}. {_LEFT}{advice}") from error


def made(what: str, frame: DataFrame, name: str, written_as: str, partition_by: Sequence[str]) -> HiveStyleTable:
    """Make an empty table with the columns of a frame, where Spark puts it.

    Raises:
        OptionError: its format is none of such a table, or Spark does not make it.
    """
    if written_as not in FORMATS:
        raise OptionError(
            f"{what}: a table of format {written_as} can't be made, because its reading options would not be kept; "
            f"make one of {', '.join(FORMATS)}, or save to a folder with .save(path). {_LEFT}"
        )
    columns = ", ".join(f"{quoted(field.name)} {field.dataType.simpleString()}" for field in frame.schema)
    by = f" PARTITIONED BY ({', '.join(map(quoted, partition_by))})" if partition_by else ""
    statement = f"CREATE TABLE IF NOT EXISTS {quoted(*parts_of(name))} ({columns}) USING {written_as}{by}"
    try:
        frame.sparkSession.sql(statement)
    except SPARK_ERRORS as error:
        raise OptionError(f"{what}: the table {name} can't be made: {in_lines(cause_of(error))}. {_LEFT}") from error
    found = existing(what, frame.sparkSession, name)
    if found is None:
        raise OptionError(f"{what}: the table {name} was made, and is not there. {_LEFT}")
    return found


def columns_by_name(what: str, frame: DataFrame, table: HiveStyleTable) -> DataFrame:
    """Return a frame with the columns of a table, taken by their names, as `saveAsTable` takes them.

    Raises:
        OptionError: it has others, or of types that the table does not take.
    """
    given, wanted = _folded(frame.columns), _folded(name for name, _ in table.columns)
    missing, more = [name for name in wanted if name not in given], [name for name in given if name not in wanted]
    if missing or more or len(given) != len(frame.columns):
        raise OptionError(
            f"{what}: the columns of the frame {frame.columns} are not those of the table {table.name}: "
            f"{missing or 'none'} missing, {more or 'none'} too many. {_LEFT}"
        )
    return _taken(what, frame.select(*(quoted(given[name.lower()]) for name, _ in table.columns)), table)


def columns_by_place(what: str, frame: DataFrame, table: HiveStyleTable) -> DataFrame:
    """Return a frame with the columns of a table, taken by their places, as `insertInto` takes them.

    Raises:
        OptionError: it has more or fewer, or of types that the table does not take.
    """
    if len(frame.columns) != len(table.columns):
        raise OptionError(
            f"{what}: the frame has {len(frame.columns)} columns, and the table {table.name} {len(table.columns)}. "
            f"{_LEFT} insertInto takes them by their places, those of partitions last."
        )
    return _taken(what, frame, table)


def _taken(what: str, frame: DataFrame, table: HiveStyleTable) -> DataFrame:
    """Return a frame in the names and types of a table, whose columns it has by their places."""
    types = [field.dataType.simpleString() for field in frame.schema]
    for given, (name, kind) in zip(types, table.columns, strict=True):
        if not is_wider(given, kind):
            raise OptionError(
                f"{what}: the column {name!r} of the table {table.name} is {kind}, and that of the frame {given}, "
                f"whose values it may not hold. {_LEFT} Cast it in the script."
            )
    places = frame.toDF(*(f"c{number}" for number in range(len(types))))
    return places.select(*(_column(f"c{number}", name, kind) for number, (name, kind) in enumerate(table.columns)))


def _column(place: str, name: str, kind: str) -> Column:
    value, most = F.col(place), length_of(kind)
    if most is None:
        return value.cast(kind).alias(name)
    message = F.concat(F.lit(f"the column {name} takes {most} characters at most, and not: "), value)
    return F.when(F.length(value) > most, F.raise_error(message)).otherwise(value).alias(name)


def _folded(names: Iterable[str]) -> dict[str, str]:
    return {name.lower(): name for name in names}
