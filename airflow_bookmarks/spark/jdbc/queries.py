"""Ask a database by Spark, where this Python has no client for it: each query is a job, in a session of its own."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from airflow_bookmarks.core.errors import DatabaseError
from airflow_bookmarks.core.text.redaction import MARK, redacted
from airflow_bookmarks.databases.database import session_settings
from airflow_bookmarks.databases.dialects import dialect_named
from airflow_bookmarks.spark.features import SPARK_ERRORS
from airflow_bookmarks.spark.jdbc.reader import NOT_LET_IN, spark_url
from airflow_bookmarks.spark.session import whole_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import SparkSession

    from airflow_bookmarks.databases.login import DatabaseLogin

# What Java says of an error: the class, and the first line of its text. That of the database comes before Spark's own,
# which may say no more than that it failed.
_ERROR = r"(?:\w+\.)+\w*(?:Exception|Error): ([^\n]+)"
_CAUSE = re.compile(rf"Caused by: (?!org\.apache\.spark\.){_ERROR}")
_FIRST = re.compile(rf"(?:^|[\s:]){_ERROR}")
# JDBC tells no codes in a text; these are what databases say to who may not see something.
_DENIED = re.compile(r"permission (?:was )?denied|ORA-0*942\b|you need \(at least one of\)", re.IGNORECASE)


class SparkQueries:
    """Runs queries by Spark's JDBC source; see `Queries`. Columns of a query need distinct names."""

    holds_session = False

    def __init__(self, spark: SparkSession, login: DatabaseLogin) -> None:
        self._spark, self._login = spark, login

    def rows(self, sql: str) -> Sequence[Sequence[Any]]:
        """Return the rows of a query; see `Queries.rows`."""
        properties = self._login.jdbc_properties()
        if (settings := session_settings(self._login.dialect)) is not None:
            properties["sessionInitStatement"] = settings
        try:
            frame = self._spark.read.jdbc(spark_url(self._login), f"({sql.strip()}) asked", properties=properties)
            return [tuple(row) for row in frame.collect()]
        except SPARK_ERRORS as error:
            # Not with its cause: the text of that holds the properties of the connection.
            raise self._refused(whole_text(self._spark, error)) from None

    def _refused(self, text: str) -> DatabaseError:
        found = _CAUSE.search(text) or _FIRST.search(text)
        said = found[1] if found is not None else text.strip().partition("\n")[0]
        if self._login.password:
            said = said.replace(self._login.password, MARK)
        remedy = self._login.remedy if NOT_LET_IN.search(said) else ""
        return DatabaseError(
            f"{self._login.name} refused a query, or can't be entered by Spark: {redacted(said).rstrip('.')}. Nothing "
            f"was changed.{remedy}",
            dialect_named(self._login.dialect).denied if _DENIED.search(said) else None,
        )
