"""Changes of whose a job is: what is said before they are made, two of them at once, and imports beside them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from airflow_bookmarks.cli import main
from airflow_bookmarks.core.errors import (
    ChangedMeanwhileError,
    ChangeRefusedError,
    JobBusyError,
    OptionError,
    OwnerError,
    ShardsLeftError,
)
from airflow_bookmarks.core.rules.owner import owners_in
from airflow_bookmarks.core.rules.shard import shard_name
from airflow_bookmarks.lifecycle.changes import sharing
from airflow_bookmarks.lifecycle.changes.change import Change
from airflow_bookmarks.lifecycle.changes.sharing import change_seen_owner, hand_over, preview_owner, share, unshare
from airflow_bookmarks.lifecycle.maintenance.transfer.exporting import export
from airflow_bookmarks.lifecycle.maintenance.transfer.importing import import_
from airflow_bookmarks.lifecycle.protocol.acquire import begin
from airflow_bookmarks.lifecycle.run.enabled import ActiveRun
from airflow_bookmarks.store.backends.sqlite import SqliteTable
from airflow_bookmarks.store.bookmark_store import BookmarkStore
from tests.hostile.test_owners import WHY, as_before_owners, identity, run
from tests.lifecycle.shop import Shop

SHARDS = [shard_name("copy", number) for number in range(3)]


@pytest.fixture
def sharded(shop: Shop) -> Shop:
    """Return a shop with a job of DAG finance in three virtual shards."""
    shop.put("a.txt", "a")
    for number, shard in enumerate(SHARDS):
        run(shop, "finance", number, job=shard)
    return shop


def elsewhere(shop: Shop) -> Shop:
    """Return a shop over the same files, with an empty store of its own."""
    store = BookmarkStore(SqliteTable(shop.root / "elsewhere.db"), "test")
    store.init()
    return replace(shop, store=store)


def owners(store: BookmarkStore) -> list[str | None]:
    return [store.head(shard).owner for shard in SHARDS]


# ---- what is said before


@pytest.mark.parametrize(
    "words",
    [
        ["share", "nobody", "--with", "marketing"],
        ["hand-over", "nobody", "--to", "marketing"],
        ["hand-over", "copy", "--to", "finance"],
        ["share", "copy", "--with", "finance"],
        ["rename", "nobody", "other"],
        ["rename", "copy", "copy"],
    ],
    ids=" ".join,
)
def test_nothing_is_announced_of_what_can_not_be_done(
    shop: Shop, capsys: pytest.CaptureFixture[str], words: list[str]
) -> None:
    shop.put("a.txt", "a")
    run(shop, "finance")

    done = main(["--store", f"sqlite:///{shop.root}/bookmarks.db?namespace=test", *words, "--reason", "why", "--yes"])

    assert done == 1
    said = capsys.readouterr().err
    assert not any(announced in said for announced in ("may be run by DAG", "from now on", "gets the name"))


@pytest.mark.parametrize("dag", ["sales\x1b[2J", "sales\u202egnp", "sales\nfinance"])
@pytest.mark.parametrize("change", [share, hand_over])
def test_id_of_a_dag_with_what_a_terminal_obeys_is_refused(shop: Shop, change: Callable[..., Any], dag: str) -> None:
    shop.put("a.txt", "a")
    run(shop, "finance")

    with pytest.raises(OptionError, match="not shown"):
        change(shop.store, "copy", dag, **WHY)


@pytest.mark.parametrize("change", [share, unshare, hand_over])
def test_name_of_who_asks_with_what_a_terminal_obeys_is_refused(shop: Shop, change: Callable[..., Any]) -> None:
    shop.put("a.txt", "a")
    run(shop, "finance")

    with pytest.raises(OptionError, match="not shown"):
        change(shop.store, "copy", "sales", reason="a test", who="ann\x1b[1A")


# ---- shards, and two at once


def amid(monkeypatch: pytest.MonkeyPatch, at: str, act: Callable[[], object]) -> None:
    """Do something once, right before the owner of the job `at` changes."""
    real, acts = sharing.change_owner, [act]

    def changing(store: BookmarkStore, job: str, *given: Any, **more: Any) -> Any:
        if job == at and acts:
            acts.pop()()
        return real(store, job, *given, **more)

    monkeypatch.setattr(sharing, "change_owner", changing)


def test_hand_over_that_a_run_stops_half_way_says_what_was_made(sharded: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    held = SHARDS[1]
    amid(monkeypatch, held, lambda: begin(sharded.store, held, identity("finance", 9), sharded.environment))

    with pytest.raises(ShardsLeftError, match="made in 1 of its virtual shards, and not in 2") as left:
        hand_over(sharded.store, "copy", "marketing", **WHY)

    assert left.value.done == (SHARDS[0],)
    assert isinstance(left.value.refused[held], JobBusyError)
    assert owners(sharded.store) == ["marketing", "finance", "finance"]


def test_shard_that_begins_while_its_job_is_handed_over_goes_along(
    sharded: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    late = shard_name("copy", 40)
    amid(monkeypatch, SHARDS[0], lambda: run(sharded, "finance", 9, job=late))

    done = hand_over(sharded.store, "copy", "marketing", **WHY)

    assert done["shards"] == 4
    assert sharded.store.head(late).owner == "marketing"


def test_two_hand_overs_at_once_do_not_both_say_that_they_were_made(
    sharded: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = sharded.store
    amid(monkeypatch, SHARDS[2], lambda: hand_over(store, "copy", "sales", **WHY))

    with pytest.raises(ShardsLeftError, match="the same time"):
        hand_over(store, "copy", "marketing", **WHY)

    assert owners(store) == ["sales", "sales", "marketing"]
    hand_over(store, "copy", "marketing", **WHY)
    assert owners(store) == ["marketing"] * 3


@pytest.mark.parametrize(("at", "refusal"), [(0, ChangedMeanwhileError), (2, ShardsLeftError)])
def test_change_of_shards_that_were_looked_at_takes_none_from_whom_they_were_given_to_since(
    sharded: Shop, monkeypatch: pytest.MonkeyPatch, at: int, refusal: type[Exception]
) -> None:
    store, change = sharded.store, Change("hand-over", dag="marketing")
    seen = preview_owner(store, "copy", SHARDS, change).seen
    amid(monkeypatch, SHARDS[at], lambda: hand_over(store, "copy", "sales", **WHY))

    with pytest.raises(refusal, match="not as it was looked at"):
        change_seen_owner(store, "copy", SHARDS, change, seen, **WHY)

    assert owners(store) == ["sales"] * 3


def test_change_of_shards_that_were_looked_at_takes_along_one_that_has_run_since(
    sharded: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, change = sharded.store, Change("share", dag="marketing")
    seen = preview_owner(store, "copy", SHARDS, change).seen
    amid(monkeypatch, SHARDS[1], lambda: run(sharded, "finance", 9, job=SHARDS[1]))

    assert change_seen_owner(store, "copy", SHARDS, change, seen, **WHY)["shards"] == 3

    assert [store.head(shard).shared_with for shard in SHARDS] == [("marketing",)] * 3


def test_change_that_somebody_else_has_just_made_is_said_to_be_made(
    sharded: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, acts = sharing.check_change, [lambda: share(sharded.store, "copy", "sales", **WHY)]

    def checked(*given: Any, **more: Any) -> list[str]:
        shards = real(*given, **more)
        if acts:
            acts.pop()()
        return shards

    monkeypatch.setattr(sharing, "check_change", checked)

    with pytest.raises(ChangeRefusedError, match="may run it already"):
        share(sharded.store, "copy", "sales", **WHY)


def test_shard_does_not_begin_beside_shards_of_an_earlier_version_of_another_dag(sharded: Shop) -> None:
    for shard in SHARDS:
        as_before_owners(sharded.store, shard)

    with pytest.raises(OwnerError, match="belongs to DAG 'finance'"):
        begin(sharded.store, shard_name("copy", 9), identity("marketing"), sharded.environment)


# ---- imports


@pytest.mark.parametrize("is_of_earlier_version", [False, True])
@pytest.mark.parametrize("job", [shard_name("copy", 7), "copy"])
def test_imported_shard_belongs_to_the_owner_of_the_others(
    sharded: Shop, job: str, is_of_earlier_version: bool
) -> None:
    there = elsewhere(sharded)
    run(there, "marketing", job=job)
    share(there.store, job, "press", **WHY)
    if is_of_earlier_version:
        for shard in SHARDS:
            as_before_owners(sharded.store, shard)

    import_(sharded.store, export(there.store), **WHY)

    head = sharded.store.head(job)
    assert (head.owner, head.shared_with) == ("finance", ())
    assert owners_in(sharded.store.index_entry(job)) == ("finance", "marketing")
    with pytest.raises(OwnerError):
        ActiveRun.begin(sharded.store, job, identity("marketing", 2), sharded.environment)


def test_shards_of_one_document_belong_to_one_owner(shop: Shop) -> None:
    there = elsewhere(shop)
    shop.put("a.txt", "a")
    for number, shard in enumerate(SHARDS):
        run(there, "finance", number, job=shard)
    hand_over(there.store, SHARDS[1], "marketing", **WHY)

    import_(shop.store, export(there.store), **WHY)

    assert owners(shop.store) == ["finance"] * 3
