"""Promise SINK-9 for scripts of Glue: tables of a catalog are made and widened by whoever publishes."""

from __future__ import annotations

import logging
import uuid
from pathlib import Path
from typing import Any

import boto3.session
import pytest

from airflow_bookmarks.core.errors import OptionError
from airflow_bookmarks.core.metadata.output import OutputMetadata
from airflow_bookmarks.glue.errors import EntityNotFoundError
from airflow_bookmarks.glue.run import forget_runs
from airflow_bookmarks.sinks.files.catalog import TableDefinition
from airflow_bookmarks.sinks.files.glue import GlueCatalog
from tests.conftest import REGION
from tests.glue.outputs.conftest import Script

SCHEMA = "id int, name string, day string"


class DataCatalog:
    """A database in a Data Catalog, and what it has of a table."""

    def __init__(self, client: Any, database: str) -> None:
        self.client, self.database = client, database

    def table(self, name: str = "orders") -> dict[str, Any]:
        found: dict[str, Any] = self.client.get_table(DatabaseName=self.database, Name=name)["Table"]
        return found

    def columns(self) -> list[tuple[str, str]]:
        return [(each["Name"], each["Type"]) for each in self.table()["StorageDescriptor"]["Columns"]]

    def partitions(self) -> list[list[str]]:
        found = self.client.get_partitions(DatabaseName=self.database, TableName="orders")["Partitions"]
        return sorted(each["Values"] for each in found)


@pytest.fixture
def catalog(moto_url: str, aws_session: boto3.session.Session, monkeypatch: pytest.MonkeyPatch) -> DataCatalog:
    monkeypatch.setenv("AWS_ENDPOINT_URL_GLUE", moto_url)
    monkeypatch.setenv("AWS_DEFAULT_REGION", REGION)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")
    client = aws_session.client("glue", region_name=REGION, endpoint_url=moto_url)
    database = f"db_{uuid.uuid4().hex}"
    client.create_database(DatabaseInput={"Name": database})
    return DataCatalog(client, database)


def sink(script: Script, catalog: DataCatalog, rows: list[Any], schema: str = SCHEMA, **options: Any) -> None:
    given = {"path": f"{script.root}/out", "enableUpdateCatalog": True, "partitionKeys": ["day"], **options}
    sink = script.context.getSink("s3", transformation_ctx="sink", **given)
    sink.setFormat("glueparquet")
    sink.setCatalogInfo(catalogDatabase=catalog.database, catalogTableName="orders")
    sink.writeFrame(script.frame(rows, schema))


@pytest.mark.seldom
@pytest.mark.parametrize("option", ["job-bookmark-enable", "job-bookmark-disable"])
def test_table_and_partitions_are_there_once_the_rows_are(script: Script, catalog: DataCatalog, option: str) -> None:
    script.begin(option)
    sink(script, catalog, [(1, "a", "1"), (2, "b", "2")])
    if option == "job-bookmark-enable":
        with pytest.raises(catalog.client.exceptions.EntityNotFoundException):
            catalog.table()
    script.commit()

    assert catalog.columns() == [("id", "int"), ("name", "string")]
    assert [key["Name"] for key in catalog.table()["PartitionKeys"]] == ["day"]
    assert catalog.table()["Parameters"]["classification"] == "parquet"
    assert catalog.partitions() == [["1"], ["2"]]


@pytest.mark.parametrize(
    ("behavior", "columns"), [("UPDATE_IN_DATABASE", ["id", "name", "price"]), ("LOG", ["id", "name"])]
)
def test_new_columns_are_added_where_the_script_says_so(
    script: Script, catalog: DataCatalog, behavior: str, columns: list[str]
) -> None:
    script.begin()
    sink(script, catalog, [(1, "a", "1")])
    script.commit()
    script.begin()
    sink(script, catalog, [(2, 0.5, "2")], "id int, price double, day string", updateBehavior=behavior)
    script.commit()

    assert [name for name, _ in catalog.columns()] == columns
    assert catalog.partitions() == [["1"], ["2"]]


def test_publish_that_is_repeated_leaves_the_table_as_it_is(catalog: DataCatalog, tmp_path: Path) -> None:
    definition = TableDefinition((("id", "int"),), (("day", "string"),))
    for _ in range(2):
        GlueCatalog().define(f"{catalog.database}.orders", str(tmp_path), definition)

    assert catalog.columns() == [("id", "int")]


@pytest.mark.seldom
def test_write_to_a_table_of_the_catalog_goes_to_its_folder_in_its_format(script: Script, catalog: DataCatalog) -> None:
    script.begin()
    sink(script, catalog, [(1, "a", "1")])
    script.commit()
    script.begin()
    script.context.write_dynamic_frame.from_catalog(
        script.frame([(2, "b", "2")], SCHEMA),
        catalog.database,
        "orders",
        transformation_ctx="other",
        additional_options={"enableUpdateCatalog": True, "partitionKeys": ["day"]},
    )
    script.commit()

    assert [row[0] for row in script.seen(script.root / "out")] == [1, 2]
    assert catalog.partitions() == [["1"], ["2"]]


@pytest.mark.seldom
def test_purge_of_a_table_takes_the_partitions_that_are_admitted(script: Script, catalog: DataCatalog) -> None:
    script.begin()
    sink(script, catalog, [(1, "a", "1"), (2, "b", "2")])
    script.commit()
    script.begin()
    script.context.purge_table(
        database=catalog.database,
        table_name="orders",
        options={"partitionPredicate": "int(day) % 2 = 0", "retentionPeriod": 0},
    )
    script.commit()

    assert [row[0] for row in script.seen(script.root / "out")] == [1]


@pytest.mark.seldom
@pytest.mark.parametrize("option", ["job-bookmark-enable", "job-bookmark-disable"])
def test_table_of_sparks_own_catalog_is_made_and_widened(script: Script, option: str) -> None:
    script.spark.conf.set("spark.bookmarks.glue.catalog", "hive")
    forget_runs()  # a run takes its settings when it is made
    database = f"db_{uuid.uuid4().hex}"
    script.spark.sql(f"CREATE DATABASE {database}")
    for rows, schema in (
        ([(1, "a", "1")], SCHEMA),
        ([(2, "b", 0.5, "2")], "id int, name string, price double, day string"),
    ):
        script.begin(option)
        options: dict[str, Any] = {"path": f"{script.root}/out", "enableUpdateCatalog": True, "partitionKeys": ["day"]}
        sink = script.context.getSink("s3", transformation_ctx="sink", **options)
        sink.setFormat("parquet")
        sink.setCatalogInfo(catalogDatabase=database, catalogTableName="orders")
        sink.writeFrame(script.frame(rows, schema))
        script.commit()

    found = script.spark.table(f"{database}.orders")
    assert found.columns == ["id", "name", "price", "day"]
    assert sorted(row["id"] for row in found.collect()) == [1, 2]


def test_unknown_table_names_catalog_and_region(script: Script, catalog: DataCatalog) -> None:
    with pytest.raises(EntityNotFoundError, match=REGION):
        script.context.write_dynamic_frame.from_catalog(script.frame([(1, "a", "1")], SCHEMA), catalog.database, "none")


def test_table_that_lies_elsewhere_is_an_error_before_anything_is_written(
    script: Script, catalog: DataCatalog, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.ERROR)
    GlueCatalog().define(
        f"{catalog.database}.orders", "/elsewhere", TableDefinition((("id", "int"),), (("day", "string"),))
    )
    script.begin()

    with pytest.raises(OptionError, match=r"lies in '/elsewhere/'.*: write to the folder of the table, or name"):
        sink(script, catalog, [(1, "a", "1")])


def test_update_without_a_table_is_an_error(script: Script) -> None:
    sink = script.context.getSink("s3", path=f"{script.root}/out", enableUpdateCatalog=True)
    sink.setFormat("parquet")
    with pytest.raises(OptionError, match="setCatalogInfo"):
        sink.writeFrame(script.frame([(1, "a", "1")], SCHEMA))


def test_definition_is_stored_and_read_back() -> None:
    definition = TableDefinition((("id", "int"),), (("day", "string"),), "csv", {"header": "true"}, adds_columns=False)
    stored = OutputMetadata.of_stats({"catalog_definition": definition.encode()}).catalog_definition

    assert stored is not None
    assert TableDefinition.decode(stored) == definition
