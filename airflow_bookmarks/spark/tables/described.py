"""What the catalog of Spark tells of a table, by DESCRIBE TABLE EXTENDED, which looks at no data."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import dropwhile, takewhile
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import SparkSession

_DETAILS = "# Detailed Table Information"


@dataclass(frozen=True, slots=True)
class DescribedTable:
    """A table as Spark describes it.

    Attributes:
        provider: The format, in lower case, such as "delta"; "" for a view.
        name: The full name, "catalog.namespace.table"; "" where nothing is told of it.
        location: The folder; "" for a view.
        partitions: Columns and transforms, as SQL writes them.
        properties: Those of the table; none where they were not asked for.
        columns: Names and types of all columns, those of partitions last, as Spark orders them.
        details: What else Spark tells, by its own names, such as "Serde Library".
    """

    provider: str
    name: str
    location: str
    partitions: tuple[str, ...]
    properties: Mapping[str, str]
    columns: tuple[tuple[str, str], ...] = ()
    details: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, spark: SparkSession, sql: str, *, with_properties: bool = True) -> DescribedTable:
        """Ask for the table of a name as SQL writes it; what Spark raises where there is none is raised.

        Args:
            with_properties: they take a statement of their own.
        """
        rows = spark.sql(f"DESCRIBE TABLE EXTENDED {sql}").collect()
        properties = properties_of(spark, sql) if with_properties else {}
        told = [(row[0], row[1] or "") for row in rows]
        columns = tuple(takewhile(lambda each: each[0] and not each[0].startswith("# "), told))
        after = list(dropwhile(lambda each: each[0] != _DETAILS, told))
        details = dict(after)
        provider, location = (details.get(each, "") for each in ("Provider", "Location"))
        return cls(provider.lower(), name_of(details), location, partitions_of(told), properties, columns, details)


def properties_of(spark: SparkSession, sql: str) -> dict[str, str]:
    """Return the properties of a table: what its description tells of them in one text can't be taken apart."""
    return {row[0]: row[1] for row in spark.sql(f"SHOW TBLPROPERTIES {sql}").collect()}


def name_of(details: Mapping[str, str]) -> str:
    """Return the full name of a table by its details: before Spark 4.2 tables of some formats tell it as one.

    Example:
        >>> name_of({"Catalog": "spark_catalog", "Database": "sales", "Table": "orders"})
        'spark_catalog.sales.orders'
    """
    if "Name" in details:
        return details["Name"]
    parts = (details.get(each, "") for each in ("Catalog", "Database", "Table"))
    return ".".join(part for part in parts if part)


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
