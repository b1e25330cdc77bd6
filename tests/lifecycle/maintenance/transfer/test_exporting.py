"""Export: bookmarks out of a table."""

from __future__ import annotations

from typing import Any

import pytest

from airflow_bookmarks.core.errors import (
    JobUnknownError,
    StateCorruptError,
)
from airflow_bookmarks.lifecycle.changes.naming import adopt, names_of
from airflow_bookmarks.lifecycle.maintenance.transfer.exporting import export
from airflow_bookmarks.lifecycle.maintenance.transfer.importing import import_
from airflow_bookmarks.sources.upstream.source import UpstreamSource
from airflow_bookmarks.store.table import Delete, Key
from tests.lifecycle.maintenance.transfer.documents import WHY
from tests.lifecycle.shop import Shop


def test_only_the_named_jobs_are_exported(busy: Shop) -> None:
    document = export(busy.store, ["lake.copy"])
    assert list(document["jobs"]) == ["copy"]
    with pytest.raises(JobUnknownError):
        export(busy.store, ["no.such"])


def test_name_that_had_begun_before_its_adoption_is_exported_as_a_name(busy: Shop, other: Shop) -> None:
    busy.begin("begun").abort("nothing was read")
    adopt(busy.store, "begun", "copy", **WHY)

    document = export(busy.store)

    assert list(document["jobs"]) == ["copy", "report"]
    import_(other.store, document, **WHY)
    assert names_of(other.store, "copy") == ["copy", "begun", "lake.copy"]


def test_consumer_in_a_document_has_read_no_more_than_its_upstream_has_made_there(
    shop: Shop, other: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop.put("a.txt", "a")
    shop.run()
    shop.run("report", upstream="copy")
    partition = shop.store.partition
    exported: list[str] = []

    def beside_runs(key: str) -> Any:
        rows = list(partition(key))
        if not exported:
            shop.put("b.txt", "b")
            shop.run()
            shop.run("report", upstream="copy")
        exported.append(key)
        return rows

    monkeypatch.setattr(shop.store, "partition", beside_runs)
    document = export(shop.store)
    assert list(document["jobs"]) == ["copy", "report"]
    import_(other.store, document, move=True, **WHY)

    other.put("d.txt", "d")
    other.runs_made = 100
    other.run()
    assert "d" in other.run("report", upstream="copy")[0]
    assert len(exported) == 3  # one of them moved under the first look


def test_jobs_that_read_each_other_are_exported(shop: Shop) -> None:
    shop.put("a.txt", "a")
    shop.run("one")
    shop.run("two", upstream="one")
    run = shop.begin("one")
    run.plan("more", UpstreamSource(shop.store, "one", "two"))
    run.commit()
    assert list(export(shop.store)["jobs"]) == ["one", "two"]


def test_state_with_a_blob_gone_is_not_exported(shop: Shop) -> None:
    for number in range(900):
        shop.put(f"p={number}/f.txt", str(number))
    shop.run()
    sha256 = next(iter(export(shop.store)["blobs"]))
    shop.store.table.transact([Delete(Key(f"test#BLOB#{sha256}", f"{0:010d}"))])
    with pytest.raises(StateCorruptError):
        export(shop.store)
