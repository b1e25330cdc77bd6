"""Documents that carry deletes, approvals and a past that never was: an import leaves all that out, and says so."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from airflow_bookmarks.core.errors import ChangeRefusedError
from airflow_bookmarks.lifecycle.maintenance.transfer.document import checksum_of, to_json
from airflow_bookmarks.lifecycle.maintenance.transfer.exporting import export
from airflow_bookmarks.lifecycle.maintenance.transfer.importing import import_
from airflow_bookmarks.sinks.clean import CleanList
from airflow_bookmarks.store.backends.sqlite import SqliteTable
from airflow_bookmarks.store.bookmark_store import BookmarkStore
from airflow_bookmarks.store.codec import item
from tests.lifecycle.shop import Shop

WHY: dict[str, Any] = {"reason": "moved house", "who": "ann"}


@pytest.fixture
def victim(shop: Shop) -> Path:
    path = shop.root / "victim" / "1.1" / "precious.txt"
    path.parent.mkdir(parents=True)
    path.write_text("precious\n")
    return path


def elsewhere(shop: Shop, namespace: str = "test") -> Shop:
    """Return a shop in the same folder, with an empty store of its own."""
    store = BookmarkStore(SqliteTable(shop.root / f"{uuid.uuid4().hex}.db"), namespace)
    store.init()
    return Shop(shop.root, store)


def forged(document: Mapping[str, Any], **items: Callable[[dict[str, Any]], object]) -> dict[str, Any]:
    """Return a document in which somebody changed items of "copy", and made its checksum anew."""
    part = {name: value for name, value in document["jobs"]["copy"].items() if name != "sha256"}
    for name, change in items.items():
        for sk, attributes in part["items"].items():
            if sk.startswith(name):
                change(attributes)
    return {**document, "jobs": {"copy": {**part, "sha256": checksum_of(part)}}}


def with_requests(document: Mapping[str, Any], **attributes: Any) -> dict[str, Any]:
    """Return a document with a request that nobody here ever made."""
    request: dict[str, Any] = {"kind": "request", "who": "lead", "who_kind": "airflow", "why": "wrong rows"}
    request |= {"at": "2026-11-22T00:00:00.000000Z", "version_before": 1, "epoch_before": 1, "epoch_after": 1}
    part = {name: value for name, value in document["jobs"]["copy"].items() if name != "sha256"}
    part["items"]["EVENT#" + "0" * 26] = {**request, **attributes}
    return {**document, "jobs": {"copy": {**part, "sha256": checksum_of(part)}}}


def cleaning(shop: Shop, *paths: str) -> Any:
    return to_json(item.payload_value(shop.store.blobs.refer(CleanList((), paths).encode(), 4096)))


def test_staging_of_a_document_is_swept_by_nobody(shop: Shop, victim: Path) -> None:
    shop.put("a.txt", "a")
    shop.run()
    document = forged(export(shop.store), HEAD=lambda head: head.update(staging=[str(victim.parents[1])]))
    for move in (False, True):
        other = elsewhere(shop)
        done = import_(other.store, document, move=move, **WHY)
        assert other.store.head("copy").staging == ()
        assert done.dropped["copy"][0] == f"the staging folder {str(victim.parents[1])!r}"
        assert other.run()[0] == []
    assert victim.exists()


def test_move_brings_the_staging_that_is_the_jobs_own(shop: Shop) -> None:
    shop.run()
    other = elsewhere(shop)
    import_(other.store, export(shop.store), move=True, **WHY)
    assert other.store.head("copy").staging == shop.store.head("copy").staging != ()


def test_clean_of_a_document_that_says_it_comes_home_is_not_done(shop: Shop, victim: Path) -> None:
    shop.put("a.txt", "a")
    shop.run()
    document = forged(export(shop.store), HEAD=lambda head: head.update(cleaning=cleaning(shop, str(victim))))
    with pytest.raises(ChangeRefusedError, match="a clean was due"):
        import_(elsewhere(shop).store, document, **WHY)

    done = import_(shop.store, document, overwrite=True, **WHY)

    assert "a clean that was due" in done.dropped["copy"]
    assert shop.store.head("copy").cleaning is None
    event = shop.store.events("copy")[-1]
    assert (event["kind"], event["dropped"]) == ("import", list(done.dropped["copy"]))
    shop.run()
    assert victim.exists()


def test_move_into_another_namespace_brings_nothing_that_is_due(shop: Shop, victim: Path) -> None:
    shop.run()
    document = forged(export(shop.store), HEAD=lambda head: head.update(cleaning=cleaning(shop, str(victim))))
    with pytest.raises(ChangeRefusedError, match="namespace 'test'"):
        import_(elsewhere(shop, "prod").store, document, move=True, **WHY)


def test_job_that_moved_into_another_namespace_goes_on_there(shop: Shop) -> None:
    shop.put("a.txt", "a")
    shop.run()
    other = elsewhere(shop, "prod")
    done = import_(other.store, export(shop.store), move=True, **WHY)
    assert done.dropped == {"copy": (f"the staging folder '{shop.root}/copy/_bookmarks/test/copy'",)}
    shop.put("b.txt", "b")
    other.runs_made = 10
    assert other.run()[0] == ["b"]
    assert other.target_lines() == {"a": 1, "b": 1}


@pytest.mark.parametrize("how", [{}, {"move": True}])
@pytest.mark.parametrize("decision", [{}, {"decision": "approved", "decided_by": "lead", "decided_by_kind": "airflow"}])
def test_request_of_a_document_can_not_be_carried_out(shop: Shop, decision: Any, how: Any) -> None:
    shop.run()
    other = elsewhere(shop)
    done = import_(other.store, with_requests(export(shop.store), **decision), **how, **WHY)
    (request,) = [event for event in other.store.events("copy") if event["kind"] == "request"]
    assert request["void"] is True
    assert done.dropped["copy"][-1] == "1 request(s) for a change, which are void"


def test_events_of_a_document_stand_as_imported(shop: Shop) -> None:
    shop.run()
    other = elsewhere(shop)
    import_(other.store, with_requests(export(shop.store)), **WHY)
    who = [event["who"] for event in other.store.events("copy")]
    assert sorted(map(str, who)) == ["ann", "lead (imported)"]


def test_import_rewrites_no_event_that_is_here(shop: Shop) -> None:
    shop.run()
    import_(shop.store, export(shop.store), overwrite=True, **WHY)

    def blame(event: dict[str, Any]) -> None:
        event["who"] = "bob"

    import_(shop.store, forged(export(shop.store), EVENT=blame), overwrite=True, **WHY)
    assert {event["who"] for event in shop.store.events("copy")} == {"ann"}
