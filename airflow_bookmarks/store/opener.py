"""Open the table that a store's address names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_bookmarks.store.uri import StoreAddress

if TYPE_CHECKING:
    from boto3.session import Session

    from airflow_bookmarks.store.table import Table


def open_table(uri: str, *, session: Session | None = None) -> tuple[Table, str]:
    """Return the table that `uri` names, and the namespace in it. The store is not called yet.

    `session` is the boto3 session whose credentials and region DynamoDB gets; None takes those of the environment.

    Raises:
        OptionError: see `StoreAddress.parse`.
        StoreAccessError: no region, or a profile that does not exist.

    Example:
        >>> table, namespace = open_table("sqlite:///:memory:?namespace=prod")
        >>> table.describe()["kind"], namespace
        ('sqlite', 'prod')
    """
    address = StoreAddress.parse(uri)
    # Imported where it is needed: boto3 takes 0.2 s and is not there in every driver.
    if address.scheme == "dynamodb":
        from airflow_bookmarks.store.backends.dynamodb import DynamoTable

        table: Table = DynamoTable(
            name=address.table,
            region=address.region,
            endpoint=address.endpoint,
            insecure=address.insecure,
            session=session,
        )
    else:
        from airflow_bookmarks.store.backends.sqlite import SqliteTable

        table = SqliteTable(address.table, create=address.create)
    return table, address.namespace
