"""Copies of a job under other names: a table with very many jobs, in seconds and not in hours of runs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from typing import TYPE_CHECKING, Any

from airflow_bookmarks.store.backends.dynamodb import DynamoTable

if TYPE_CHECKING:
    from airflow_bookmarks.store.bookmark_store import BookmarkStore

_AT_ONCE = 25  # items of one batch: DynamoDB takes no more
_THREADS = 2


def copy_job(store: BookmarkStore, job: str, names: Sequence[str]) -> None:
    """Write all items of a job once more for each name, past the store's own rules: nothing of theirs is checked.

    Raises:
        TypeError: the store is not in DynamoDB.
    """
    if not isinstance(store.table, DynamoTable):
        raise TypeError(
            f"copies are made in DynamoDB, and this is a {type(store.table).__name__}. Nothing was written."
        )
    client: Any = store.table._client
    table = store.table._name
    keys = store.keys(job)
    owned = _items(client, table, keys.head.pk)
    index = client.get_item(TableName=table, Key={"pk": {"S": keys.index.pk}, "sk": {"S": keys.index.sk}})["Item"]

    def copies() -> Iterator[dict[str, Any]]:
        for name in names:
            there = store.keys(name)
            yield from ({**item, "pk": {"S": there.head.pk}} for item in owned)
            yield {**index, "sk": {"S": there.index.sk}}

    def write(batch: Sequence[dict[str, Any]]) -> None:
        left: Any = {table: [{"PutRequest": {"Item": item}} for item in batch]}
        while left:
            left = client.batch_write_item(RequestItems=left).get("UnprocessedItems")

    with ThreadPoolExecutor(_THREADS) as pool:
        for _ in pool.map(write, _batches(copies())):
            pass


def _items(client: Any, table: str, pk: str) -> list[dict[str, Any]]:
    pages = client.get_paginator("query").paginate(
        TableName=table,
        KeyConditionExpression="pk = :pk",
        ExpressionAttributeValues={":pk": {"S": pk}},
        ConsistentRead=True,
    )
    return [item for page in pages for item in page["Items"]]


def _batches(items: Iterator[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    while batch := list(islice(items, _AT_ONCE)):
        yield batch
