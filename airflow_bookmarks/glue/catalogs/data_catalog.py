"""The AWS Glue Data Catalog: tables, partitions and connections, by its API.

The region and the credentials are those that boto3 finds; AWS_ENDPOINT_URL_GLUE names another endpoint.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from airflow_bookmarks.core.text.redaction import redacted
from airflow_bookmarks.glue.catalogs.table import Column, GlueTable, Partition
from airflow_bookmarks.glue.errors import CatalogError, EntityNotFoundError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from airflow_bookmarks.glue.catalogs.table import Catalog

_ENDPOINT = "AWS_ENDPOINT_URL_GLUE"
_REFUSED = ("AccessDeniedException", "AccessDenied", "UnrecognizedClientException", "ExpiredTokenException")


class DataCatalog:
    """Tables and connections of the Data Catalog of one account and region.

    Args:
        client: a Glue client of boto3; None: one that boto3 makes from the environment.
        catalog_id: the account whose catalog it is; None: that of the credentials.

    Example:
        table = DataCatalog().table("shop", "orders")
        folders = [each.location for each in DataCatalog().partitions(table, "year = '2024'")]
    """

    def __init__(self, client: Any = None, catalog_id: str | None = None) -> None:
        self._client = client
        self._of_catalog: dict[str, str] = {} if not catalog_id else {"CatalogId": catalog_id}
        self.catalog_id = catalog_id

    @property
    def client(self) -> Any:
        """The client, made when it is asked for.

        Raises:
            CatalogError: there is no region.
        """
        if self._client is None:
            import boto3.session  # takes half a second
            from botocore.exceptions import BotoCoreError

            try:
                session = boto3.session.Session()
                self._client = session.client("glue", endpoint_url=os.environ.get(_ENDPOINT) or None)
            except (BotoCoreError, ValueError) as error:
                raise CatalogError(
                    f"the Data Catalog can't be opened: {redacted(str(error))}. Nothing was read or changed. Set "
                    "AWS_REGION for the driver, or read Spark's own catalog with spark.bookmarks.glue.catalog=hive."
                ) from error
        return self._client

    def _where(self) -> str:
        catalog = f"catalog {self.catalog_id}" if self.catalog_id else "the Data Catalog of this account"
        return f"{catalog} in region {self.client.meta.region_name}"

    @contextmanager
    def _telling(self, what: str, action: str) -> Iterator[None]:
        """Turn an error of the API into one that says what was asked for."""
        from botocore.exceptions import BotoCoreError, ClientError

        try:
            yield
        except ClientError as error:
            code = error.response.get("Error", {}).get("Code", "")
            if code == "EntityNotFoundException":
                raise EntityNotFoundError(
                    f"{what} does not exist in {self._where()}. Nothing was read or changed. Correct the name, "
                    "catalog_id= or AWS_REGION."
                ) from error
            if code in _REFUSED:
                raise CatalogError(
                    f"{what}: {self._where()} refuses: {redacted(str(error))}. Nothing was read or changed. Give this "
                    f"process the right {action}."
                ) from error
            raise CatalogError(
                f"{what}: {self._where()} does not give it: {redacted(str(error))}. Nothing was read or changed."
            ) from error
        except BotoCoreError as error:
            raise CatalogError(
                f"{what}: the Data Catalog does not answer: {redacted(str(error))}. Nothing was read or changed. Look "
                "at the credentials and the region of this process."
            ) from error

    def table(self, database: str, name: str) -> GlueTable:
        """Return a table; see `Catalog.table`."""
        with self._telling(f"table {database}.{name}", "glue:GetTable"):
            answer = self.client.get_table(DatabaseName=database, Name=name, **self._of_catalog)
        return _table_of(answer["Table"])

    def partitions(self, table: GlueTable, expression: str | None = None) -> Iterator[Partition]:
        """Yield the partitions of a table, page by page; see `Catalog.partitions`."""
        given = {**self._of_catalog, **({} if expression is None else {"Expression": expression})}
        what = f"the partitions of {table.label}" + ("" if expression is None else f" where {expression}")
        token: str | None = None
        while True:
            page = given if token is None else {**given, "NextToken": token}
            with self._telling(what, "glue:GetPartitions"):
                answer = self.client.get_partitions(
                    DatabaseName=table.database, TableName=table.name, ExcludeColumnSchema=True, **page
                )
            yield from map(_partition_of, answer.get("Partitions", ()))
            token = answer.get("NextToken")
            if not token:
                return

    def connection(self, name: str) -> Mapping[str, Any]:
        """Return a connection as the API tells it, with its password.

        Raises:
            EntityNotFoundError: there is none.
            CatalogError: the catalog refuses, or does not answer.
        """
        with self._telling(f"connection {name!r}", "glue:GetConnection"):
            answer = self.client.get_connection(Name=name, HidePassword=False, **self._of_catalog)
        found: Mapping[str, Any] = answer["Connection"]
        return found

    def table_names(self, database: str) -> Sequence[str]:
        """Return the names of the tables of a database, in their order."""
        names: list[str] = []
        token: str | None = None
        while True:
            page = self._of_catalog if token is None else {**self._of_catalog, "NextToken": token}
            with self._telling(f"database {database!r}", "glue:GetTables"):
                answer = self.client.get_tables(DatabaseName=database, **page)
            names += [each["Name"] for each in answer.get("TableList", ())]
            token = answer.get("NextToken")
            if not token:
                return names


def _table_of(told: Mapping[str, Any]) -> GlueTable:
    storage = told.get("StorageDescriptor") or {}
    serde = storage.get("SerdeInfo") or {}
    return GlueTable(
        database=told.get("DatabaseName", ""),
        name=told["Name"],
        columns=_columns_of(storage.get("Columns")),
        partition_columns=_columns_of(told.get("PartitionKeys")),
        location=storage.get("Location") or None,
        parameters={**(storage.get("Parameters") or {}), **(told.get("Parameters") or {})},
        serde=serde.get("SerializationLibrary") or None,
        serde_parameters=serde.get("Parameters") or {},
    )


def _columns_of(told: Sequence[Mapping[str, str]] | None) -> Sequence[Column]:
    return [Column(each["Name"], each.get("Type") or "string") for each in told or ()]


def _partition_of(told: Mapping[str, Any]) -> Partition:
    location = (told.get("StorageDescriptor") or {}).get("Location") or None
    created = told.get("CreationTime")
    return Partition(told.get("Values") or (), location, 0 if created is None else int(created.timestamp() * 1000))


def _is_a_catalog(catalog: DataCatalog) -> Catalog:
    return catalog
