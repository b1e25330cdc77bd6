"""The doctor on requests for approval: it names what `requests` would, and what nobody can decide any more."""

from __future__ import annotations

from datetime import timedelta

import pytest

from airflow_bookmarks.core.errors import JobBusyError
from airflow_bookmarks.core.text.identity import Identity
from airflow_bookmarks.lifecycle.changes.approval import Request, approve, protect, reject, request, requests_or_damage
from airflow_bookmarks.lifecycle.changes.change import Change
from airflow_bookmarks.lifecycle.maintenance.doctor import Severity, examine
from airflow_bookmarks.store.table import Delete, Update
from tests.lifecycle.shop import Shop

ANN, BOB = Identity("ann", True, "os"), Identity("bob", True, "os")


@pytest.fixture
def asked(shop: Shop) -> Request:
    """Return a request for a reset of a protected job."""
    shop.put("a.txt", "a")
    shop.run()
    protect(shop.store, "copy", reason="money", who=ANN)
    return request(shop.store, "copy", Change("reset"), reason="wrong rows", who=ANN)


def test_requests_that_can_be_decided_or_were_decided_are_sound(shop: Shop, asked: Request) -> None:
    assert examine(shop.store) == []
    reject(shop.store, "copy", asked.id, reason="no", who=BOB)
    other = request(shop.store, "copy", Change("unprotect"), reason="wrong rows", who=ANN)
    assert examine(shop.store) == []

    approve(shop.store, "copy", other.id, who=BOB)

    assert [found.code for found in examine(shop.store) if found.code.startswith("request")] == []


def test_damaged_request_is_named_with_what_to_do(shop: Shop, asked: Request) -> None:
    shop.store.table.transact([Update(shop.store.keys("copy").event(asked.id), set={"preview": "x"})])

    (found,) = examine(shop.store)

    assert (found.code, found.severity, found.where) == ("request-damaged", Severity.WARNING, f"EVENT#{asked.id}")
    assert str(requests_or_damage(shop.store, "copy")[1][asked.id]) in found.what
    assert "Ask for the change anew" in found.repair
    assert not found.is_repairable


def test_damaged_request_is_gone_once_its_item_is_deleted(shop: Shop, asked: Request) -> None:
    event = shop.store.keys("copy").event(asked.id)
    shop.store.table.transact([Update(event, set={"preview": "x"})])

    shop.store.table.transact([Delete(event)])

    assert examine(shop.store) == []


def test_approved_request_whose_change_was_not_made_is_a_notice(
    shop: Shop, asked: Request, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as lost:
        lost.setattr("airflow_bookmarks.lifecycle.changes.approval.check_free", lambda *_: None)
        shop.begin("copy")
        with pytest.raises(JobBusyError):
            approve(shop.store, "copy", asked.id, who=BOB)

    (found,) = [found for found in examine(shop.store) if found.code.startswith("request")]

    assert (found.code, found.severity) == ("request-not-made", Severity.NOTICE)
    assert "asked for by 'ann'" in found.what
    later = asked.valid_until + timedelta(seconds=1)
    assert "request-not-made" not in {found.code for found in examine(shop.store, clock=lambda: later)}


def test_requests_of_a_bookmark_that_is_lost_are_named(shop: Shop, asked: Request) -> None:
    keys = shop.store.keys("copy")
    runs = [key for key, _ in shop.store.partition(keys.partition) if key.sk.startswith("RUN#")]
    shop.store.table.transact([Delete(key) for key in (keys.head, *runs)])

    (found,) = [found for found in examine(shop.store) if found.code.startswith("request")]

    assert (found.code, found.severity) == ("request-orphaned", Severity.ERROR)
    assert "1 request(s) for approval and no head" in found.what
