"""Read the window of a plan from a table by Spark's own JDBC source, in parts side by side."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from airflow_bookmarks.core.database.dialects import dialect_named
from airflow_bookmarks.core.database.key import KeyType
from airflow_bookmarks.core.database.partitions import PartitionOptions, hashed, ranges
from airflow_bookmarks.core.errors import OptionError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from airflow_bookmarks.core.database.dialect import Dialect
    from airflow_bookmarks.sources.jdbc.position import TablePlan
    from airflow_bookmarks.sources.jdbc.queries import Connect


@dataclass(frozen=True, slots=True)
class TableReader:
    """Makes frames over windows of one relation.

    Args:
        url: of JDBC, without a secret.
        source: what is read, as SQL.
        properties: those of Spark's JDBC source, user and password among them; they stay in the driver.
        connect: opens a session for the planner; here for the ends of a column to split by.
    """

    url: str
    source: str
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
        return spark.read.jdbc(self.url, self.source, predicates=parts, properties=dict(self.properties))

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
        return self._ranges(dialect, wanted.column or key.name, condition)

    def _ranges(self, dialect: Dialect, name: str, condition: str) -> Sequence[str]:
        column = dialect.quote(name)
        with self.connect() as queries:
            rows = queries.rows(f"SELECT min({column}), max({column}) FROM {self.source} WHERE {condition}")
        low, high = rows[0]
        if low is None or high is None:
            return ["1 = 1"]
        ends = _integer(name, low), _integer(name, high)
        return ranges(column, *ends, self.partitions.partitions, is_nullable=True)


def _integer(name: str, value: Any) -> int:
    text = str(value)
    if not text.removeprefix("-").isdigit():
        raise OptionError(
            f"partition_column={name!r}: its values are no integers ({text[:40]!r}). Nothing was read or changed. "
            f"Split by hash_field={name!r}."
        )
    return int(text)
