"""Delta tables as a Spark session reaches them: by SQL and Spark's writers alone, so on Spark Connect as well."""

from __future__ import annotations

import re
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F

from airflow_bookmarks.core.errors import OptionError, SourceError
from airflow_bookmarks.core.text.cause import cause_of
from airflow_bookmarks.core.text.escaping import in_lines
from airflow_bookmarks.files.opener import open_filesystem
from airflow_bookmarks.sinks.delta.tables import TableCommit
from airflow_bookmarks.spark.features import SPARK_ERRORS, cores_of
from airflow_bookmarks.spark.tables.described import DescribedTable, properties_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pyspark.sql import DataFrame, SparkSession

    from airflow_bookmarks.sinks.delta.target import DeltaTarget
    from airflow_bookmarks.sinks.delta.token import DeltaToken

_STATE_PARTITIONS = "spark.databricks.delta.snapshotPartitions"
_DEFAULT_STATE_PARTITIONS = 50
_FILES_OF_A_PARTITION = 10_000  # a few MB of state, in less time than it takes to start a task
RETENTION = "delta.setTransactionRetentionDuration"  # a table with this property forgets which numbers it has seen
_PROPERTIES = "Table Properties"  # what a description tells of them, in one text

_TXN = "txn STRUCT<appId: STRING, version: BIGINT>"
_LOGS = (("json", "*.json"), ("parquet", "*.checkpoint*.parquet"))  # both kinds of checkpoint, and single commits
_MISSING = (
    "DELTA_MISSING_DELTA_TABLE",
    "DELTA_TABLE_NOT_FOUND",
    "TABLE_OR_VIEW_NOT_FOUND",
    "DELTA_PATH_DOES_NOT_EXIST",
    "PATH_NOT_FOUND",
)
_NO_DELTA = ("PARSE_SYNTAX_ERROR", "DATA_SOURCE_NOT_FOUND", "Failed to find data source", "ClassNotFoundException")
# Another commit came first: the burn has lost nothing, and is tried again on the version that is there now.
_TAKEN = ("ConcurrentTransactionException", "DELTA_CONCURRENT_TRANSACTION")
_OVERTAKEN = (*_TAKEN, "DELTA_CONCURRENT_", "DELTA_METADATA_CHANGED", "DELTA_PROTOCOL_CHANGED")
_TRIES = 20
_IDENTITY = re.compile(
    r"DELTA_IDENTITY_COLUMNS_EXPLICIT_INSERT_NOT_SUPPORTED.*?IDENTITY column (.+?) is not", re.DOTALL
)


class SessionTables:
    """The Delta tables that a session reaches; see `sinks.delta.tables`."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark

    # ---- looking

    def detail(self, target: DeltaTarget) -> DescribedTable | None:
        """Return what a table says of itself, its properties only if one is `RETENTION`; None if it is not there.

        Raises:
            OptionError: this Spark has no Delta Lake, or what is there is no table, such as a view.
        """
        try:
            told = DescribedTable.of(self._spark, sql_of(target), with_properties=False)
            if RETENTION in told.details.get(_PROPERTIES, RETENTION):
                told = replace(told, properties=properties_of(self._spark, sql_of(target)))
        except SPARK_ERRORS as error:
            if any(said in str(error) for said in _MISSING):
                self._check_has_delta(target)
                return None
            raise self._unusable(target, error) from error
        if not told.provider:
            raise OptionError(f"{target.name} is no Delta table that can be written: it is a view")
        return told

    def _check_has_delta(self, target: DeltaTarget) -> None:
        """Refuse a Spark without Delta Lake, which says of its tables what it says of one that is not there."""
        try:
            self._spark.sql(f"DESCRIBE DETAIL {sql_of(target)}")
        except SPARK_ERRORS as error:
            if _is_without_delta(target, error):
                raise self._unusable(target, error) from error

    def _unusable(self, target: DeltaTarget, error: BaseException) -> OptionError:
        if _is_without_delta(target, error):
            number = ".".join(self._spark.version.split(".")[:2])
            return OptionError(
                f"this Spark {self._spark.version} has no Delta Lake, so the table {target.name} can't be written. "
                f"Start it with --packages io.delta:delta-spark_{number}_2.13:<version> (for Spark 3.5: "
                "io.delta:delta-spark_2.12:3.3.2) and with spark.sql.extensions="
                "io.delta.sql.DeltaSparkSessionExtension, spark.sql.catalog.spark_catalog="
                "org.apache.spark.sql.delta.catalog.DeltaCatalog"
            )
        return OptionError(f"{target.name} is no Delta table that can be written: {in_lines(cause_of(error))}")

    def commits(self, target: DeltaTarget, limit: int | None = None) -> Sequence[TableCommit]:
        """See `DeltaTables.commits`."""
        newest = "" if limit is None else f" LIMIT {limit}"
        try:
            history = self._spark.sql(f"DESCRIBE HISTORY {sql_of(target)}{newest}")
            rows = history.select("version", "userMetadata", "operationMetrics").collect()
        except SPARK_ERRORS as error:
            raise _out_of_reach(target, error) from error
        return [TableCommit(int(row[0]), row[1], dict(row[2] or {})) for row in rows]

    def last_number(self, target: DeltaTarget, application: str) -> int | None:
        """See `DeltaTables.last_number`: no SQL tells it, but each file of the log may."""
        detail = self.detail(target)
        if detail is None:
            raise _missing(target)
        if RETENTION in detail.properties:
            raise SourceError(f"the Delta table {target.name} has {RETENTION}, so it forgets which runs have written")
        location = uri_of(target) if target.is_path else detail.location
        numbers: list[int] = []
        for kind, names in _LOGS:
            log = self._spark.read.format(kind).schema(_TXN).option("pathGlobFilter", names)
            try:
                rows = log.load(f"{location}/_delta_log").where(F.col("txn.appId") == application)
                numbers += [row[0] for row in rows.agg(F.max("txn.version")).collect() if row[0] is not None]
            except SPARK_ERRORS as error:
                raise _out_of_reach(target, error) from error
        return max(numbers, default=None)

    # ---- burning

    def burn(self, target: DeltaTarget, token: DeltaToken) -> None:
        """See `DeltaTables.burn`: an append of no rows, with all columns, since some may not be NULL."""
        left_out: list[str] = []
        for _ in range(_TRIES):
            try:
                with few_state_partitions(self._spark):
                    append(self._no_rows(target, left_out), target, options_of(token))
            except SPARK_ERRORS as error:
                said = str(error)
                if (identity := _IDENTITY.search(said)) is not None and identity[1] not in left_out:
                    left_out.append(identity[1])  # the table makes its values itself, and takes none
                elif not any(each in said for each in _OVERTAKEN):
                    raise _out_of_reach(target, error) from error
            else:
                return
        raise SourceError(
            f"the Delta table {target.name} took no commit of this run in {_TRIES} tries, because other writers came "
            "first each time. Run the job again when they have less to write"
        )

    def _no_rows(self, target: DeltaTarget, left_out: Sequence[str]) -> DataFrame:
        return frame_of(self._spark, target).where("false").drop(*left_out)


@contextmanager
def few_state_partitions(spark: SparkSession, files: int | None = None) -> Iterator[None]:
    """Let Delta take no more partitions for the state of a table than are of use, and no more than it would.

    A write under a number makes Delta look for the numbers that are there, so it computes the state, in 50 partitions
    unless the conf says otherwise. On two cores an append to a small table then takes 7 s, 1 s in two partitions, and
    0.2 s less in one.

    Args:
        files: how many the table has; None: not known.
    """
    partitions = None if spark.conf.get(_STATE_PARTITIONS, None) is not None else _state_partitions(spark, files)
    if partitions is None or partitions >= _DEFAULT_STATE_PARTITIONS:
        yield
        return
    spark.conf.set(_STATE_PARTITIONS, str(partitions))
    try:
        yield
    finally:
        spark.conf.unset(_STATE_PARTITIONS)


def _state_partitions(spark: SparkSession, files: int | None) -> int | None:
    """Return how many partitions are of use: one for each core at most; None where nothing tells."""
    known = [cores_of(spark), None if files is None else max(1, -(-files // _FILES_OF_A_PARTITION))]
    return min((each for each in known if each is not None), default=None)


def is_taken(error: BaseException) -> bool:
    """Whether a write has failed because another commit of its application came first."""
    return any(said in str(error) for said in _TAKEN)


def frame_of(spark: SparkSession, target: DeltaTarget) -> DataFrame:
    """Return the table as a frame."""
    return spark.read.format("delta").load(uri_of(target)) if target.is_path else spark.table(target.name)


def append(frame: DataFrame, target: DeltaTarget, options: Mapping[str, Any]) -> None:
    """Append a frame to a table that is there."""
    if target.is_path:
        frame.write.format("delta").mode("append").options(**options).save(uri_of(target))
    else:
        writer = frame.writeTo(target.name)
        for key, value in options.items():
            writer = writer.option(key, value)
        writer.append()


def options_of(token: DeltaToken) -> dict[str, str]:
    """Return the options by which a write lands under a token once, and shows it in the history of the table."""
    return {"txnAppId": token.application, "txnVersion": str(token.number), "userMetadata": str(token)}


def conf_of(token: DeltaToken) -> dict[str, str]:
    """Return the conf of a session by which its next statement commits under a token."""
    return {
        "spark.databricks.delta.write.txnAppId": token.application,
        "spark.databricks.delta.write.txnVersion": str(token.number),
        "spark.databricks.delta.commitInfo.userMetadata": str(token),
    }


def sql_of(target: DeltaTarget) -> str:
    """Return how SQL names a table."""
    if not target.is_path:
        return target.name
    doubled = uri_of(target).replace("`", "``")
    return f"delta.`{doubled}`"


def uri_of(target: DeltaTarget) -> str:
    """Return the folder of a table as Spark names it."""
    return open_filesystem(target.name).uri(target.name)


def _is_without_delta(target: DeltaTarget, error: BaseException) -> bool:
    """Whether this Spark knows no DESCRIBE DETAIL: it then takes the word for the name of a table."""
    said = str(error)
    is_taken_for_a_table = "TABLE_OR_VIEW_NOT_FOUND" in said and "`detail`" in said.lower()
    return any(each in said for each in _NO_DELTA) or (is_taken_for_a_table and "detail" not in target.name.lower())


def _out_of_reach(target: DeltaTarget, error: BaseException) -> SourceError:
    if any(said in str(error) for said in (*_MISSING, "DELTA_TABLE_ONLY_OPERATION")):  # so it is said of a path
        return _missing(target)
    return SourceError(f"the Delta table {target.name} is out of reach: {in_lines(cause_of(error))}")


def _missing(target: DeltaTarget) -> SourceError:
    return SourceError(
        f"the Delta table {target.name} is not there any more. Restore it, or make it again, empty, with the same "
        "columns"
    )
