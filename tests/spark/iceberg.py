"""A Spark with Iceberg: its conf, and a table as somebody sees it who has nothing to do with the job."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tools.jars import fetch_for_spark

CATALOG = "lake"


def skip_without_iceberg() -> None:
    """Skip a test where there is no Iceberg for the Spark that is installed."""
    try:
        fetch_for_spark("iceberg")
    except KeyError:
        pytest.skip("no Iceberg: there is none for this Spark yet")


def iceberg_conf(warehouse: Path) -> dict[str, str]:
    """Return what a Spark with Iceberg is started with; the tables of the catalog `lake` lie in `warehouse`."""
    jars = sorted(map(str, fetch_for_spark("iceberg").glob("*.jar")))
    catalog = f"spark.sql.catalog.{CATALOG}"
    return {
        "spark.driver.extraClassPath": ":".join(jars),  # beside Spark's own, as --packages does
        "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
        catalog: "org.apache.iceberg.spark.SparkCatalog",
        f"{catalog}.type": "hadoop",
        f"{catalog}.warehouse": str(warehouse),
    }


@dataclass
class Table:
    """An Iceberg table with the column `value`, unless a test makes another."""

    spark: SparkSession
    name: str

    def make(self, columns: str = "value STRING", more: str = "", **properties: str) -> Table:
        """Make it, as one in which runs can stage."""
        given = {"write.wap.enabled": "true", **properties}
        told = ", ".join(f"'{key}' = '{value}'" for key, value in given.items())
        self.run(f"CREATE TABLE {{table}} ({columns}) USING iceberg {more} TBLPROPERTIES ({told})")
        return self

    def run(self, statement: str) -> list[Any]:
        """Run a statement in which {table} is its name."""
        return list(self.spark.sql(statement.format(table=self.name)).collect())

    def rows(self) -> list[tuple[Any, ...]]:
        """Return what readers see."""
        self.run("REFRESH TABLE {table}")
        return sorted(tuple(row) for row in self.spark.table(self.name).collect())

    def lines(self) -> list[str]:
        """Return the values that readers see."""
        return [row[0] for row in self.rows()]

    def put(self, *lines: str) -> None:
        """Append rows as another writer does."""
        self.spark.createDataFrame([(line,) for line in lines], "value STRING").writeTo(self.name).append()

    def snapshots(self) -> list[Mapping[str, Any]]:
        """Return all snapshots, oldest first."""
        self.run("REFRESH TABLE {table}")
        return [row.asDict() for row in self.run("SELECT * FROM {table}.snapshots ORDER BY committed_at")]

    def tags(self) -> list[str]:
        """Return the names of all tags."""
        self.run("REFRESH TABLE {table}")
        return [row[0] for row in self.run("SELECT name FROM {table}.refs WHERE type = 'TAG'")]
