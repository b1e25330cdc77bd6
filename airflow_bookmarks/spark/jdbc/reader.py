"""Read the window of a plan from a table by Spark's own JDBC source, in parts side by side."""

from __future__ import annotations

import re
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from airflow_bookmarks.core.database.key import KeyType
from airflow_bookmarks.core.database.windows.partitions import PartitionOptions, hashed, ranges
from airflow_bookmarks.core.errors import OptionError
from airflow_bookmarks.databases.database import reading_settings
from airflow_bookmarks.databases.dialects import dialect_named
from airflow_bookmarks.databases.login import WITHOUT_LOGIN
from airflow_bookmarks.spark.features import SPARK_ERRORS
from airflow_bookmarks.spark.session import whole_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from airflow_bookmarks.core.database.dialect import Dialect
    from airflow_bookmarks.databases.login import DatabaseLogin
    from airflow_bookmarks.sources.jdbc.position import TablePlan
    from airflow_bookmarks.sources.jdbc.queries import Connect

# TIMESTAMP is shown in the zone of a session, and a window is in UTC.
_IN_UTC = {"connectionTimeZone": "UTC", "forceConnectionTimeZoneToSession": "true"}

# The newest that are tried; see `tools/jars.py`.
_PACKAGES = {
    "org.postgresql.Driver": "org.postgresql:postgresql:42.7.14",
    "org.mariadb.jdbc.Driver": "org.mariadb.jdbc:mariadb-java-client:3.5.11",
}
# What the drivers of databases say to who is not let in.
NOT_LET_IN = re.compile(r"([^:\n]*\b(?:password|authentication|[Aa]ccess denied for user)\b[^\n]*)")
_FETCH_SIZE, _ROWS_AT_A_TIME = "fetchsize", "10000"


@dataclass(frozen=True, slots=True)
class TableReader:
    """Makes frames over windows of one relation.

    Args:
        url: of JDBC, without a secret.
        properties: those of Spark's JDBC source, user and password among them; they stay in the driver.
        connect: opens a session for the planner; here for the ends of a column to split by.
    """

    url: str
    dialect: str
    properties: Mapping[str, str] = field(repr=False)
    partitions: PartitionOptions
    connect: Connect

    def frame(self, spark: SparkSession, plan: TablePlan, schema: StructType | None) -> DataFrame:
        """Return a frame over exactly the window of a plan; see `FrameReader.frame`.

        The window stands in the query of each part, by value: each action reads the same one.
        """
        dialect = dialect_named(self.dialect)
        condition = plan.window.condition(dialect, plan.leads_to.table)
        parts = [condition] if plan.is_empty else [f"({condition}) AND {each}" for each in self._parts(plan, condition)]
        with driver_needed(spark, self.properties):
            frame = spark.read.jdbc(self.url, plan.source, predicates=parts, properties=dict(self.properties))
            _ = frame.schema  # Spark Connect looks for the driver now
        return frame

    def _parts(self, plan: TablePlan, condition: str) -> Sequence[str]:
        dialect, wanted = dialect_named(self.dialect), self.partitions
        if wanted.partitions == 1:
            return ["1 = 1"]
        if wanted.hash_expression is not None:
            return hashed(dialect, f"({wanted.hash_expression})", wanted.partitions)
        if wanted.hash_field is not None:
            return hashed(dialect, dialect.quote(wanted.hash_field), wanted.partitions)
        key = plan.leads_to.table.keys[0]
        if wanted.column is None and key.type is not KeyType.INTEGER:
            return hashed(dialect, ", ".join([dialect.as_text(key)]), wanted.partitions)
        return ranges_of(self.connect, dialect, plan.source, wanted.column or key.name, condition, wanted.partitions)


def ranges_of(connect: Connect, dialect: Dialect, source: str, name: str, condition: str, count: int) -> Sequence[str]:
    """Return a condition for each part of a relation by the range of an integer column, whose ends are asked for.

    Raises:
        OptionError: its values are no integers.
    """
    column = dialect.quote(name)
    with connect() as queries:
        rows = queries.rows(f"SELECT min({column}) AS low, max({column}) AS high FROM {source} WHERE {condition}")
    low, high = rows[0]
    if low is None or high is None:
        return ["1 = 1"]
    ends = _integer(name, low), _integer(name, high)
    return ranges(column, *ends, count, is_nullable=True)


@contextmanager
def driver_needed(spark: SparkSession, properties: Mapping[str, str]) -> Iterator[None]:
    """Say how Spark gets a driver of JDBC, if it has none, and how a login, if that finds none.

    Args:
        spark: the session that reads or writes in the block.
        properties: those of Spark's JDBC source.

    Raises:
        OptionError: there is no driver, or there are no user and password, which the database wants.
    """
    driver = properties["driver"]
    try:
        yield
    except SPARK_ERRORS as error:
        # "...Exception: org.x.Driver", and of Connect with Spark 3.5 "(...Exception) org.x.Driver".
        text = whole_text(spark, error)
        if re.search(rf"ClassNotFoundException\W+{re.escape(driver)}\b", text):
            package = _PACKAGES.get(driver, "<the Maven coordinates of the driver>")
            raise OptionError(
                f"Spark has no JDBC driver {driver}. Nothing was committed. Give packages={package!r} to the operator "
                "or to spark-submit (--packages), or set spark.jars.packages before the session is made."
            ) from error
        found = NOT_LET_IN.search(text)
        if found is None or {"user", "password"} & properties.keys():
            raise
        raise OptionError(
            f"Spark can't enter the database ({found[1].strip()}). Nothing was committed. {WITHOUT_LOGIN}"
        ) from error


def reading_properties(login: DatabaseLogin, properties: Mapping[str, str]) -> dict[str, str]:
    """Return the properties of a read: those given, with what a login needs, and all rows by portions."""
    settings = reading_settings(login.dialect)
    opening = {} if settings is None else {"sessionInitStatement": settings}
    return {**login.jdbc_properties(), **opening, **in_portions(properties)}


def in_portions(properties: Mapping[str, str]) -> dict[str, str]:
    """Return the properties of a read with a `fetchsize`: that given, or 10,000 rows.

    Spark's own default is none, with which the drivers of PostgreSQL and MariaDB keep all rows of a part in memory.

    Example:
        >>> in_portions({"queryTimeout": "60"}), in_portions({"fetchSize": "0"})
        ({'fetchsize': '10000', 'queryTimeout': '60'}, {'fetchSize': '0'})
    """
    is_given = any(name.lower() == _FETCH_SIZE for name in properties)
    return dict(properties) if is_given else {_FETCH_SIZE: _ROWS_AT_A_TIME, **properties}


def _integer(name: str, value: Any) -> int:
    # Of a column of bits PyMySQL returns the number as bytes.
    text = value.decode("ascii", "replace") if isinstance(value, bytes) else str(value)
    if not text.removeprefix("-").isdigit():
        raise OptionError(
            f"partition_column={name!r}: its values are no integers ({text[:40]!r}). Nothing was read or changed. "
            f"Split by hash_field={name!r}."
        )
    return int(text)


def spark_url(login: DatabaseLogin) -> str:
    """Return the URL that Spark reads and writes a database by, without secrets.

    Spark quotes the names of columns by the beginning of the URL. It does not know that of MariaDB, and would put them
    in double quotes, which MariaDB takes for text: each value would be the name of its column. The driver of MariaDB
    takes the URL of MySQL where that says so.

    Raises:
        OptionError: the driver can't do what a parameter says about TLS.
    """
    url = login.jdbc_url
    more = {}
    if login.dialect in ("mysql", "mariadb"):
        more = {name: value for name, value in _IN_UTC.items() if name not in login.parameters}
    if login.dialect == "mariadb":
        url = f"jdbc:mysql:{url.removeprefix('jdbc:mariadb:')}"
        more["permitMysqlScheme"] = "true"
    if not more:
        return url
    return f"{url}{'&' if '?' in url else '?'}{'&'.join(f'{name}={value}' for name, value in more.items())}"
