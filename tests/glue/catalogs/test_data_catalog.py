"""The Data Catalog by its API: pages, what is refused, and what does not answer."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from botocore.stub import Stubber

from airflow_bookmarks.glue.catalogs.data_catalog import DataCatalog
from airflow_bookmarks.glue.catalogs.table import Column, GlueTable
from airflow_bookmarks.glue.errors import CatalogError, EntityNotFoundError
from tests.glue.inputs.conftest import tables
from tests.glue.running import Tables

__all__ = ["tables"]


@pytest.mark.parametrize(
    ("method", "action"),
    [
        pytest.param("get_table", "glue:GetTable", id="table"),
        pytest.param("get_partitions", "glue:GetPartitions", id="partitions"),
        pytest.param("get_connection", "glue:GetConnection", id="connection"),
    ],
)
def test_refusal_names_the_right_that_is_missing(tables: Tables, method: str, action: str) -> None:
    catalog = DataCatalog(tables.client)
    asking: dict[str, Callable[[], object]] = {
        "get_table": lambda: catalog.table("shop", "orders"),
        "get_partitions": lambda: list(catalog.partitions(GlueTable("shop", "orders"))),
        "get_connection": lambda: catalog.connection("crm"),
    }
    with Stubber(tables.client) as stub:  # moto refuses nobody
        stub.add_client_error(method, "AccessDeniedException", "not you", 400)
        with pytest.raises(CatalogError, match=f"refuses: .*not you.*Give this process the right {action}"):
            asking[method]()


def test_partitions_come_page_by_page(tables: Tables) -> None:
    with Stubber(tables.client) as stub:  # moto gives all of them at once
        for values, token in ((["a"], "more"), (["b"], None)):
            page = {"Partitions": [{"Values": values, "StorageDescriptor": {"Location": f"/t/{values[0]}"}}]}
            stub.add_response("get_partitions", page if token is None else {**page, "NextToken": token})
        found = list(DataCatalog(tables.client).partitions(GlueTable("shop", "orders"), "p > 'a'"))
    assert [(each.texts, each.location) for each in found] == [(("a",), "/t/a"), (("b",), "/t/b")]


def test_table_has_columns_partitions_and_parameters(tables: Tables) -> None:
    tables.add("orders", "/t", {"n": "bigint"}, keys={"day": "varchar(8)"}, parameters={"classification": "CSV"})
    table = DataCatalog(tables.client).table(tables.database, "orders")
    assert table.columns == [Column("n", "bigint")]
    assert (table.partition_types, table.classification, table.location) == ({"day": "string"}, "csv", "/t")
    assert DataCatalog(tables.client).table_names(tables.database) == ["orders"]


def test_unknown_table_is_named_with_the_account(tables: Tables) -> None:
    with pytest.raises(EntityNotFoundError, match=r"table shop\.gone does not exist in catalog 42 in region"):
        DataCatalog(tables.client, "42").table("shop", "gone")
