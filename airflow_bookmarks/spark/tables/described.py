"""What the catalog of Spark tells of a table, by DESCRIBE TABLE EXTENDED, which looks at no data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import SparkSession


@dataclass(frozen=True, slots=True)
class DescribedTable:
    """A table as Spark describes it.

    Attributes:
        provider: The format, in lower case, such as "delta"; "" for a view.
        name: The full name, "catalog.namespace.table", as formats with catalogs of their own tell it; "" for others.
        location: The folder; "" for a view.
        partitions: Columns and transforms, as SQL writes them.
        properties: Those of the table.
    """

    provider: str
    name: str
    location: str
    partitions: tuple[str, ...]
    properties: Mapping[str, str]

    @classmethod
    def of(cls, spark: SparkSession, sql: str) -> DescribedTable:
        """Ask for the table of a name as SQL writes it; what Spark raises where there is none is raised."""
        rows = spark.sql(f"DESCRIBE TABLE EXTENDED {sql}").collect()
        properties = {row[0]: row[1] for row in spark.sql(f"SHOW TBLPROPERTIES {sql}").collect()}
        told = {row[0]: row[1] or "" for row in rows}  # what follows the columns replaces a column of that name
        provider, name, location = (told.get(each, "") for each in ("Provider", "Name", "Location"))
        is_view = "# Detailed Table Information" not in told
        partitions = partitions_of([(row[0], row[1]) for row in rows])
        return cls("" if is_view else provider.lower(), name, "" if is_view else location, partitions, properties)


def partitions_of(described: Sequence[tuple[str, str]]) -> tuple[str, ...]:
    """Return the partitions that DESCRIBE TABLE EXTENDED tells: columns under one heading, transforms under another.

    Example:
        >>> partitions_of([("id", "int"), ("", ""), ("# Partitioning", ""), ("Part 0", "days(seen)"), ("", "")])
        ('days(seen)',)
    """
    found: list[str] = []
    heading = ""
    for name, value in described:
        if name.startswith("# ") or not name:
            heading = heading if name == "# col_name" else name
        elif heading == "# Partition Information":
            found.append(name)
        elif heading == "# Partitioning":
            found.append(value)
    return tuple(found)
