"""Read a table of a database by its bookmark keys, in the words of scripts."""

from __future__ import annotations

import logging
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from airflow_bookmarks.core.database.windows.partitions import hashed
from airflow_bookmarks.core.errors import OptionError, SourceError
from airflow_bookmarks.databases.dialects import dialect_named
from airflow_bookmarks.glue.catalogs.connections import connection_of_options
from airflow_bookmarks.glue.dynamic.frame import DynamicFrame
from airflow_bookmarks.glue.inputs.options import BookmarkKeys, Words, keys_of
from airflow_bookmarks.spark.jdbc.reader import driver_needed, reading_properties, spark_url

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import DataFrame

    from airflow_bookmarks.glue.catalogs.connections import Connection
    from airflow_bookmarks.glue.catalogs.table import GlueTable
    from airflow_bookmarks.glue.run import GlueRun
    from airflow_bookmarks.sources.jdbc.options import KeyOrder
    from airflow_bookmarks.spark.job import BookmarkedJob

log = logging.getLogger(__name__)

VENDORS = ("mysql", "postgresql", "oracle", "sqlserver", "redshift", "jdbc")
_HASH_PARTITIONS = 7  # Glue's default
_OF_CONNECTION = ("url", "user", "username", "password", "connectionName", "database", "catalogId")
# Glue brings drivers and stages tables of Redshift; Spark has its drivers on its class path, and reads by JDBC.
_WITHOUT_EFFECT = (
    "customJdbcDriverS3Path", "customJdbcDriverClassName", "useConnectionProperties", "redshiftTmpDir", "aws_iam_role",
    "aws_iam_user", "enablePartitioningForSampleQuery", "enablesamplepath", "minPartitions", "groupFiles", "groupSize",
    "useS3ListImplementation",
)  # fmt: skip
_LOCATION_PART = re.compile(r"[^.]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class DatabaseRead:
    """One read of a table of a database.

    Args:
        call: the call of the script, for messages.
        ctx: the transformation_ctx; may be empty.
        glue_ctx: the `GlueContext` of the script.
    """

    call: str
    ctx: str
    glue_ctx: object

    def read(self, run: GlueRun, options: Mapping[str, Any], table: GlueTable | None = None) -> DynamicFrame:
        """Return the rows of a table; under a bookmark those with later keys.

        Args:
            run: the current run.
            options: of the script.
            table: of the catalog, which names the connection and the table; its parameters count as options.

        Raises:
            OptionError: there is no URL or no table; an option has a value that is none of its own.
            SourceError, DatabaseError: the table can't be planned, or its database is out of reach.
        """
        parameters = {} if table is None else _options_of(table)
        words = Words(self.call, parameters, options)
        keys = keys_of(words)
        split = self._split(words)
        query, name = words.text("sampleQuery"), words.text("dbtable")
        words.leave(*_WITHOUT_EFFECT)
        given = {key: value for key in _OF_CONNECTION if (value := words.take(key)) not in (None, "")}
        properties = {"fetchsize": size} if (size := words.text("fetchsize")) is not None else {}
        words.tell_left(run, self.ctx)
        connection = connection_of_options(run, given, self.call)
        if name is None and table is not None:
            name = table_at(table, connection)
        if name is None and query is None:
            raise OptionError(f"{self.call}: connection_options have no 'dbtable'. Nothing was read or changed.")
        job = run.job_for(self.ctx, self.call)
        run.note_use()
        if query is not None:
            run.warn_once(f"{self.call}: with sampleQuery the bookmark is ignored, as in Glue: the query is read whole")
            rows, is_nothing_new = _read_query(run, connection, query, properties), False
        elif job is None:
            rows, is_nothing_new = _read_table(run, connection, str(name), split, properties), False
        else:
            rows, is_nothing_new = self._under(run, job, connection, str(name), keys, split, properties)
        return DynamicFrame.of(rows, self.glue_ctx, self.ctx or str(name or "query"), is_nothing_new=is_nothing_new)

    def _under(
        self,
        run: GlueRun,
        job: BookmarkedJob,
        connection: Connection,
        name: str,
        keys: BookmarkKeys,
        split: Mapping[str, Any],
        properties: Mapping[str, str],
    ) -> tuple[DataFrame, bool]:
        source = run.source_name(self.ctx)

        def read(columns: Sequence[str]) -> DataFrame:
            order: KeyOrder = "desc" if keys.order == "desc" else "asc"
            reader = job.read(source, on_schema_change="accept", count_rows=run.counts_rows)
            return reader.jdbc(
                connection.address, name, keys=list(columns), order=order, properties=properties, **split
            )

        try:
            rows = read(keys.columns)
        except SourceError:
            # Catalogs have names in small letters, whatever the database calls its columns.
            respelled = _respelled(run, connection, name, keys.columns)
            if respelled == keys.columns:
                raise
            rows = read(respelled)
        plan = job.active_run.plan_of(source)
        return rows, plan is not None and plan.is_empty

    def _split(self, words: Words) -> Mapping[str, Any]:
        """Return into how many parts the rows are read, and by what.

        Raises:
            OptionError: both `hashfield` and `hashexpression` are given.
        """
        hash_field, expression = words.text("hashfield"), words.text("hashexpression")
        parts = words.number("hashpartitions", least=1)
        if hash_field is not None and expression is not None:
            raise OptionError(
                f"{self.call}: hashfield={hash_field!r} and hashexpression={expression!r}: rows are split by one of "
                "them. Nothing was read or changed. Leave one out."
            )
        parts = _HASH_PARTITIONS if parts is None else parts
        if (hash_field is None and expression is None) or parts == 1:
            return {}
        return {"partitions": parts, "hash_field": hash_field, "hash_expression": expression}


def _options_of(table: GlueTable) -> dict[str, str]:
    """Return the parameters of a table that are options of a read."""
    names = ("hashfield", "hashexpression", "hashpartitions", "connectionName")
    return {name: table.parameters[name] for name in names if table.parameters.get(name)}


def table_at(table: GlueTable, connection: Connection) -> str:
    """Return the name of a table in its database: the catalog has it as "database.schema.table"."""
    parts = _LOCATION_PART.findall(table.location or table.name)
    login = connection.login
    if len(parts) > 1 and parts[0].lower() == login.database.lower():
        parts = parts[1:]
    if login.dialect in ("mysql", "mariadb") and len(parts) > 2:
        parts = parts[-2:]
    return ".".join(parts)


def _respelled(run: GlueRun, connection: Connection, name: str, keys: tuple[str, ...]) -> tuple[str, ...]:
    """Return bookmark keys as the columns of a table are spelled, where one has that name in another case."""
    columns = _read_table(run, connection, name, {}, {}).columns
    own = {column.lower(): column for column in columns}
    return tuple(key if key in columns else own.get(key.lower(), key) for key in keys)


# ---- whole


def _read_table(
    run: GlueRun, connection: Connection, name: str, split: Mapping[str, Any], properties: Mapping[str, str]
) -> DataFrame:
    login = connection.login
    dialect = dialect_named(login.dialect)
    given = reading_properties(login, properties)
    with driver_needed(run.spark, given):
        if not split:
            return run.spark.read.jdbc(spark_url(login), name, properties=given)
        by = split["hash_expression"]
        by = dialect.quote(str(split["hash_field"])) if by is None else f"({by})"
        parts = hashed(dialect, by, split["partitions"])
        return run.spark.read.jdbc(spark_url(login), name, predicates=parts, properties=given)


def _read_query(run: GlueRun, connection: Connection, query: str, properties: Mapping[str, str]) -> DataFrame:
    given = reading_properties(connection.login, properties)
    with driver_needed(run.spark, given):
        text = f"({query.strip().rstrip(';')}) sampled"
        return run.spark.read.jdbc(spark_url(connection.login), text, properties=given)
