"""Tables of Spark's own catalog (`spark.bookmarks.glue.catalog=hive`), by the same calls."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import Any

import pytest

from airflow_bookmarks.core.errors import OptionError
from airflow_bookmarks.glue.errors import EntityNotFoundError
from tests.glue.running import Script

pytestmark = pytest.mark.spark


@pytest.fixture
def database(script: Script) -> Iterator[str]:
    """Make a database of Spark's with a table of three partitions, one of which lies elsewhere."""
    name = f"db_{uuid.uuid4().hex}"
    script.spark.conf.set("spark.bookmarks.glue.catalog", "hive")
    script.spark.sql(f"CREATE DATABASE {name}")
    script.spark.sql(
        f"CREATE TABLE {name}.orders (n INT, year INT, `what is` STRING) USING csv PARTITIONED BY (year, `what is`) "
        f"LOCATION '{script.path('orders')}'"
    )
    script.put("orders/year=2023/what is=a%2Fb/a.csv", "1")
    script.put("elsewhere/b.csv", "2")
    script.spark.sql(f"ALTER TABLE {name}.orders ADD PARTITION (year=2023, `what is`='a/b')")
    quoted = r"'it\'s'"  # Spark 3.5 takes a quote that is written twice for none
    script.spark.sql(
        f"ALTER TABLE {name}.orders ADD PARTITION (year=2024, `what is`={quoted}) LOCATION '{script.path('elsewhere')}'"
    )
    yield name
    script.spark.sql(f"DROP DATABASE {name} CASCADE")


def of(database: str, **more: Any) -> dict[str, Any]:
    return {"database": database, "table_name": "orders", "transformation_ctx": "orders", **more}


def test_partitions_are_read_where_they_lie_and_once(script: Script, database: str) -> None:
    assert script.table_rows(**of(database)) == [(1, 2023, "a/b"), (2, 2024, "it's")]
    assert script.table_rows(**of(database)) == []


def test_predicate_works_as_on_the_data_catalog(script: Script, database: str) -> None:
    assert script.table_rows(**of(database), push_down_predicate="year = 2020 + 4") == [(2, 2024, "it's")]


def test_predicate_for_the_data_catalog_is_refused(script: Script, database: str) -> None:
    options = {"catalogPartitionPredicate": "year = 2024"}
    with pytest.raises(OptionError, match="is for the Data Catalog"):
        script.table_rows(**of(database), additional_options=options)


def test_unknown_table_and_database_are_named(script: Script, database: str) -> None:
    for name in (database, "no_such_database"):
        with pytest.raises(EntityNotFoundError, match="does not exist in Spark's catalog"):
            script.table_rows(database=name, table_name="gone", transformation_ctx="gone")
