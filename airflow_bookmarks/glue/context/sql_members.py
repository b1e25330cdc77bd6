"""What `GlueContext` has of Spark's old `SQLContext`, by delegation to the session."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, DataFrameReader, SparkSession
    from pyspark.sql.streaming.readwriter import DataStreamReader


class SqlMembers:
    """The members of `SQLContext`; those that list tables are in `GlueContext`, which knows the catalog."""

    spark_session: SparkSession

    @property
    def sparkSession(self) -> SparkSession:
        """The session."""
        return self.spark_session

    @property
    def read(self) -> DataFrameReader:
        """Spark's own reader, which has no bookmark."""
        return self.spark_session.read

    @property
    def readStream(self) -> DataStreamReader:
        """Spark's own reader of streams, which keep their position in a checkpoint."""
        return self.spark_session.readStream

    @property
    def udf(self) -> Any:
        """Where functions for SQL are registered."""
        return self.spark_session.udf

    def sql(self, sqlQuery: str, *args: Any, **kwargs: Any) -> DataFrame:
        """Return the rows of a query, by Spark's own catalog."""
        return self.spark_session.sql(sqlQuery, *args, **kwargs)

    def table(self, tableName: str) -> DataFrame:
        """Return the rows of a table of Spark's own catalog."""
        return self.spark_session.table(tableName)

    def range(self, start: int, end: int | None = None, step: int = 1, numPartitions: int | None = None) -> DataFrame:
        """Return numbers as rows."""
        return self.spark_session.range(start, end, step, numPartitions)

    def createDataFrame(self, data: Any, *args: Any, **kwargs: Any) -> DataFrame:
        """Return rows made of data, as `SparkSession.createDataFrame`."""
        return self.spark_session.createDataFrame(data, *args, **kwargs)

    def setConf(self, key: str, value: str) -> None:
        """Set a value of the session's conf."""
        self.spark_session.conf.set(key, value)

    def getConf(self, key: str, *default: str | None) -> str | None:
        """Return a value of the session's conf."""
        return self.spark_session.conf.get(key, *default)

    def registerDataFrameAsTable(self, df: DataFrame, tableName: str) -> None:
        """Let queries name rows."""
        df.createOrReplaceTempView(tableName)

    def dropTempTable(self, tableName: str) -> None:
        """Forget the name of rows."""
        self.spark_session.catalog.dropTempView(tableName)

    def registerFunction(self, name: str, f: Any, returnType: Any = None) -> Any:
        """Let queries call a function."""
        return self.spark_session.udf.register(name, f, returnType)

    def cacheTable(self, tableName: str) -> None:
        """Keep the rows of a table in memory."""
        self.spark_session.catalog.cacheTable(tableName)

    def uncacheTable(self, tableName: str) -> None:
        """Let go of the rows of a table."""
        self.spark_session.catalog.uncacheTable(tableName)

    def clearCache(self) -> None:
        """Let go of all rows that are kept."""
        self.spark_session.catalog.clearCache()
