"""Upsert a DataFrame into a Delta or Iceberg table by MERGE, in one commit under the token of the run.

MERGE takes its token from the conf of the session alone, and what else writes in a session with that conf would carry
it too. So a session of its own runs the statement: it has the conf of the script's session, and sees its rows by a view
that all sessions of the application share.

    rows + delete set -> kept as they are (once evaluated) -> the newest of each key -> MERGE
"""

from __future__ import annotations

import uuid
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, cast

from pyspark.sql import Window
from pyspark.sql import functions as F
from pyspark.sql.types import ByteType, DecimalType, IntegerType, LongType, ShortType

from airflow_bookmarks.core.database.upsert import DELETED
from airflow_bookmarks.core.errors import OptionError
from airflow_bookmarks.spark.features import has_own_sessions, is_connect, session_conf

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import DataType

    from airflow_bookmarks.core.database.upsert import Upsert

_LEFT = "Nothing was written or committed."
_RANK = "_bm_rank"
_GLOBAL = "global_temp"


def check_can_merge(what: str, spark: SparkSession, columns: Sequence[str], upsert: Upsert) -> None:
    """Make sure that this Spark can merge under a token, and that the frame has the columns of the upsert.

    Raises:
        OptionError: it can't, or it has not.
    """
    if not has_own_sessions(spark):
        raise OptionError(
            f"{what}: upsert(...) into such a table runs in a session of its own, and the Spark Connect client "
            f"{spark.version} can't make one. {_LEFT} Run the job on a classic session, or with PySpark 4.1 or later "
            "on Spark Connect; or write with mode 'overwrite'."
        )
    if is_connect(spark) and type(spark).active() is not spark:
        raise OptionError(
            f"{what}: upsert(...) keeps the rows for a moment, and the Spark Connect client keeps rows of its active "
            f"session alone, which the session of the job is not. {_LEFT} Open the session of the job first, or stop "
            "the one that is active (SparkSession.getActiveSession())."
        )
    missing = [name for name in (*upsert.keys, *upsert.order_by) if name not in columns]
    if missing:
        raise OptionError(
            f"{what}: upsert(...) names {', '.join(map(repr, missing))}, and the frame has the columns "
            f"{', '.join(map(repr, columns))}. {_LEFT} Mind the case."
        )


def kept(frame: DataFrame, *, is_observed: bool) -> DataFrame:
    """Evaluate the rows once, and return them: MERGE reads them twice, and has to find the same ones.

    Spark Connect does not tell an observation what a checkpoint has read. Where one waits for it (`is_observed`),
    another pass tells.
    """
    if is_observed and is_connect(frame.sparkSession):
        frame.write.format("noop").mode("overwrite").save()
    return frame.localCheckpoint()


def check_key_types(what: str, table: str, rows: DataFrame, upsert: Upsert) -> None:
    """Make sure that two keys of the rows are two keys of the table: as the table holds them, they must stay apart.

    Args:
        what: job and output, as errors name them.
        table: as SQL names it.
        rows: those that are written.
        upsert: its keys.

    Raises:
        OptionError: a key is no column of the table, or of another type there, to which not each value is carried over.
    """
    spark = rows.sparkSession
    there = {_folded(spark, field.name): field.dataType for field in spark.table(table).schema.fields}
    here = {_folded(spark, field.name): field.dataType for field in rows.schema.fields}
    for key in upsert.keys:
        own, kept_as = here[_folded(spark, key)], there.get(_folded(spark, key))
        if kept_as is None:
            raise OptionError(
                f"{what}: upsert({key!r}), and the table {table} has no such column. {_LEFT} Add it to the table, or "
                "name other keys."
            )
        if not _keeps_apart(own, kept_as):
            raise OptionError(
                f"{what}: the key {key!r} of the upsert is {own.simpleString()} in the frame and "
                f"{kept_as.simpleString()} in the table {table}: two keys of the frame could be one of the table. "
                f"{_LEFT} Cast it before: .withColumn({key!r}, F.col({key!r}).cast({kept_as.simpleString()!r}))."
            )


def _keeps_apart(own: DataType, kept_as: DataType) -> bool:
    """Whether each value of one type is carried over into another one as it is."""
    if own.simpleString() == kept_as.simpleString():
        return True
    if isinstance(own, DecimalType) and isinstance(kept_as, DecimalType):
        whole, kept_whole = own.precision - own.scale, kept_as.precision - kept_as.scale
        return own.scale <= kept_as.scale and whole <= kept_whole
    order = [kind().simpleString() for kind in (ByteType, ShortType, IntegerType, LongType)]
    names = [own.simpleString(), kept_as.simpleString()]
    return all(name in order for name in names) and order.index(names[0]) <= order.index(names[1])


def _folded(spark: SparkSession, name: str) -> str:
    is_case_sensitive = str(spark.conf.get("spark.sql.caseSensitive", "false")).lower() == "true"
    return name if is_case_sensitive else name.lower()


def check_columns(what: str, table: str, rows: DataFrame, described: Sequence[str] = ()) -> None:
    """Make sure that a table has each column of the rows: before anything lands.

    Args:
        what: names job and output.
        table: as SQL names it.
        rows: what is to be written.
        described: columns that the table is known to have; it is asked only where these are not enough.

    Raises:
        OptionError: it has not.
    """
    spark = rows.sparkSession
    written = [name for name in rows.columns if name != DELETED]
    missing = _missing(spark, written, described) and _missing(spark, written, spark.table(table).columns)
    if missing:
        raise OptionError(
            f"{what}: the table {table} has no column {', '.join(map(repr, missing))}. {_LEFT} Leave it out, or add "
            "it: by .option('mergeSchema', 'true') where the rows are appended, else by ALTER TABLE."
        )


def _missing(spark: SparkSession, names: Sequence[str], there: Sequence[str]) -> list[str]:
    found = {_folded(spark, name) for name in there}
    return [name for name in names if _folded(spark, name) not in found]


def check_keys(what: str, rows: DataFrame, upsert: Upsert) -> None:
    """Make sure that each row has its key, and that it is certain which row of a key counts.

    Raises:
        OptionError: a key is NULL; or there are several rows for one, or a row and a delete, and no `order_by`.
    """
    names = [_column(key) for key in upsert.keys]
    nulls = rows.where(" OR ".join(f"{name} IS NULL" for name in names)).count()
    if nulls:
        raise OptionError(
            f"{what}: in {nulls} row(s) a key of the upsert ({', '.join(upsert.keys)}) is NULL, which equals no row, "
            f"so they would pile up. {_LEFT} Leave them out, or name other keys."
        )
    if upsert.order_by:
        return
    several = rows.groupBy(*(F.col(_column(key)) for key in upsert.keys)).count().where("count > 1").count()
    if several:
        raise OptionError(
            f"{what}: {several} key(s) of the upsert come more than once, and nothing says which row counts. "
            f"{_LEFT} Give order_by, or bring one row for each key."
        )


def newest(rows: DataFrame, upsert: Upsert) -> DataFrame:
    """Return one row for each key: of several that with the greatest `order_by`; of a tie the row, not the delete."""
    if not upsert.order_by:
        return rows
    order = [F.col(_column(name)).desc_nulls_last() for name in upsert.order_by]
    if upsert.has_deletes:
        order.append(F.col(DELETED).asc())
    window = Window.partitionBy(*(F.col(_column(key)) for key in upsert.keys)).orderBy(*order)
    return rows.withColumn(_RANK, F.row_number().over(window)).where(F.col(_RANK) == 1).drop(_RANK)


def merge(rows: DataFrame, table: str, token: Mapping[str, str], upsert: Upsert) -> None:
    """Bring rows into a table by their keys, and delete those of the delete set, in one commit under a token.

    Args:
        rows: those of `kept`.
        table: as SQL names it.
        token: the conf by which the commit carries it.
        upsert: the keys, and which row of a key counts.
    """
    with _shared_view(newest(rows, upsert)) as view:
        session = _session_with(rows.sparkSession, token)
        session.sql(_statement(table, view, rows.columns, upsert)).collect()


def _statement(table: str, view: str, columns: Sequence[str], upsert: Upsert) -> str:
    names = [_column(name) for name in columns if name != DELETED]
    keys = [_column(name) for name in upsert.keys]
    changed = [name for name in names if name not in keys]
    source = f"source.{_column(DELETED)}"
    lines = [
        f"MERGE INTO {table} AS target USING {view} AS source",
        "ON " + " AND ".join(f"target.{key} = source.{key}" for key in keys),
        *([f"WHEN MATCHED AND {source} = 1 THEN DELETE"] if upsert.has_deletes else []),
    ]
    if changed:
        lines.append("WHEN MATCHED THEN UPDATE SET " + ", ".join(f"target.{name} = source.{name}" for name in changed))
    only_rows = f" AND {source} = 0" if upsert.has_deletes else ""
    values = ", ".join(f"source.{name}" for name in names)
    lines.append(f"WHEN NOT MATCHED{only_rows} THEN INSERT ({', '.join(names)}) VALUES ({values})")  # noqa: S608 (quoted)
    return "\n".join(lines)


@contextmanager
def _shared_view(frame: DataFrame) -> Iterator[str]:
    """Show a frame to all sessions of the application, for the block, and return its name."""
    name = f"bookmark_{uuid.uuid4().hex}"
    frame.createGlobalTempView(name)
    try:
        yield f"{_GLOBAL}.{name}"
    finally:
        frame.sparkSession.catalog.dropGlobalTempView(name)


def _session_with(spark: SparkSession, token: Mapping[str, str]) -> SparkSession:
    """Return a session with the conf of another one, whose next statement commits under a token."""
    if is_connect(spark):
        session: SparkSession = cast("Any", spark).cloneSession()
    else:
        session = spark.newSession()
        there = session_conf(session)
        for key, value in session_conf(spark).items():
            if there.get(key) != value and session.conf.isModifiable(key):
                session.conf.set(key, value)
    for key, value in token.items():
        session.conf.set(key, value)
    return session


def _column(name: str) -> str:
    doubled = name.replace("`", "``")
    return f"`{doubled}`"
