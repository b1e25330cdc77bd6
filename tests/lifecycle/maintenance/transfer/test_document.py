"""The document of an export: what is none, what is damaged, and what no table holds."""

from __future__ import annotations

from typing import Any

import pytest

from airflow_bookmarks.core.errors import (
    DocumentError,
)
from airflow_bookmarks.lifecycle.maintenance.transfer.document import checksum_of
from airflow_bookmarks.lifecycle.maintenance.transfer.exporting import export
from airflow_bookmarks.lifecycle.maintenance.transfer.importing import import_
from airflow_bookmarks.store.table import Attributes, Put
from tests.lifecycle.maintenance.transfer.documents import WHY, items, through_json
from tests.lifecycle.shop import Shop


def test_map_whose_names_begin_with_a_dollar_comes_through(shop: Shop, other: Shop) -> None:
    shop.run()
    odd: Attributes = {"a": {"$base64": "no bytes"}, "b": b"bytes", "c": {"$map": {"$x": [b"y", None, True, 3]}}}
    shop.store.table.transact([Put(shop.store.keys("copy").execution("odd"), odd)])
    import_(other.store, through_json(export(shop.store)), **WHY)
    assert items(other.store, "copy")["EXEC#odd"] == odd


@pytest.mark.parametrize("document", [[], "x", 5, None, {}, {"format": True, "jobs": {}, "blobs": {}}])
def test_what_is_no_export_is_refused(other: Shop, document: Any) -> None:
    with pytest.raises(DocumentError, match="Nothing was imported"):
        import_(other.store, document, **WHY)


@pytest.mark.parametrize(
    "value", [1.5, {"": 1}, {"$base64": "!"}, {"$map": 5}, 10**40, "\udcff", [[]] * 40, {"sha256": "x"}]
)
def test_value_that_no_table_holds_is_found_before_anything_is_written(busy: Shop, other: Shop, value: Any) -> None:
    document = export(busy.store, ["copy"])
    part = document["jobs"]["copy"]
    run = next(sk for sk in part["items"] if sk.startswith("RUN#"))
    part["items"][run]["odd"] = value if value != [[]] * 40 else _nested(40)
    part["sha256"] = checksum_of({name: part[name] for name in ("index", "aliases", "items")})
    with pytest.raises(DocumentError, match="Nothing was imported"):
        import_(other.store, document, **WHY)
    assert other.store.jobs() == []


def _nested(depth: int) -> list[Any]:
    inner: list[Any] = []
    for _ in range(depth):
        inner = [inner]
    return inner


def test_document_that_was_changed_is_refused(busy: Shop, other: Shop) -> None:
    document = through_json(export(busy.store))
    document["jobs"]["copy"]["items"]["HEAD"]["run_number"] = 3
    with pytest.raises(DocumentError, match="job 'copy' does not match"):
        import_(other.store, document, **WHY)
    assert other.store.jobs() == []


def test_blob_that_is_damaged_or_missing_is_refused(shop: Shop, other: Shop) -> None:
    for number in range(900):
        shop.put(f"p={number}/f.txt", str(number))
    shop.run()
    document = through_json(export(shop.store))
    for sha256 in list(document["blobs"]):
        less = {**document, "blobs": {name: body for name, body in document["blobs"].items() if name != sha256}}
        with pytest.raises(DocumentError, match="lacks it"):
            import_(other.store, less, **WHY)
        damaged = {**document, "blobs": {**document["blobs"], sha256: "AAAA"}}
        with pytest.raises(DocumentError, match="checksum"):
            import_(other.store, damaged, **WHY)
    assert other.store.jobs() == []


@pytest.mark.parametrize("document", [{}, {"format": 2}, {"format": 1}, {"format": 1, "jobs": {"a": {}}, "blobs": {}}])
def test_what_is_no_document_is_refused(other: Shop, document: dict[str, Any]) -> None:
    with pytest.raises(DocumentError, match="Nothing was imported"):
        import_(other.store, document, **WHY)
