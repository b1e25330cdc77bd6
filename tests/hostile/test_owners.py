"""Owners: a run of one DAG that begins under the name of another DAG's job."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from airflow_bookmarks.core.errors import (
    ApprovalError,
    ChangedMeanwhileError,
    ChangeRefusedError,
    JobBusyError,
    OptionError,
    OwnerError,
    ProtectedError,
)
from airflow_bookmarks.core.job import RunIdentity
from airflow_bookmarks.core.option import Choice
from airflow_bookmarks.core.rules.owner import FORMER_NAMES, former_in, owners_in
from airflow_bookmarks.core.rules.shard import shard_name
from airflow_bookmarks.core.text.identity import Identity
from airflow_bookmarks.lifecycle.changes.approval import approve, protect, request
from airflow_bookmarks.lifecycle.changes.change import Change, reset
from airflow_bookmarks.lifecycle.changes.sharing import hand_over, ownership_of, share, unshare
from airflow_bookmarks.lifecycle.inspect.status import bookmark
from airflow_bookmarks.lifecycle.maintenance.doctor import examine, repair
from airflow_bookmarks.lifecycle.maintenance.transfer.exporting import export
from airflow_bookmarks.lifecycle.maintenance.transfer.importing import import_
from airflow_bookmarks.lifecycle.protocol.acquire import begin
from airflow_bookmarks.lifecycle.protocol.lease import RunEnvironment
from airflow_bookmarks.lifecycle.protocol.owner import owner_to_bind
from airflow_bookmarks.lifecycle.run.detached import DetachedRun
from airflow_bookmarks.lifecycle.run.enabled import ActiveRun
from airflow_bookmarks.store.backends.sqlite import SqliteTable
from airflow_bookmarks.store.bookmark_store import BookmarkStore
from airflow_bookmarks.store.table import Delete, Put, Update
from airflow_bookmarks.store.transitions import importing as transition
from tests.lifecycle.shop import Shop

ANN, BOB = Identity("ann", True, "os"), Identity("bob", True, "os")
WHY: dict[str, Any] = {"reason": "agreed with both teams", "who": "ann"}


def identity(dag_id: str | None, number: int = 1, task_id: str = "clean") -> RunIdentity:
    return RunIdentity(f"{dag_id}/{number}/{task_id}", dag_id=dag_id, task_id=task_id)


def run(shop: Shop, dag_id: str | None, number: int = 1, *, job: str = "copy", task_id: str = "clean") -> None:
    """Let a DAG (None: a person) make one run of a job."""
    made = ActiveRun.begin(shop.store, job, identity(dag_id, number, task_id), shop.environment)
    shop.copy(made)
    made.commit()


def as_before_owners(store: BookmarkStore, job: str = "copy") -> None:
    """Take from a head what earlier versions did not write."""
    store.table.transact([Update(store.keys(job).head, remove=["owner", "shared_with"])])


def everything(store: BookmarkStore, job: str = "copy") -> Any:
    keys = store.keys(job)
    return dict(store.table.query(keys.partition)), store.index_entry(job)


# ---- a run of another DAG


def test_run_of_another_dag_is_refused_and_touches_nothing(shop: Shop, store: BookmarkStore) -> None:
    shop.put("a.txt", "a")
    run(shop, "finance")
    before = everything(store)
    shop.put("b.txt", "b")

    with pytest.raises(OwnerError, match=r"belongs to DAG 'finance'.*Nothing was read or written") as refused:
        run(shop, "marketing")

    assert everything(store) == before
    assert shop.target_lines() == {"a": 1}
    for way_out in ("share copy --with marketing", "hand-over copy --to marketing", "--renamed", "bookmark_job"):
        assert way_out in str(refused.value)


def test_run_by_hand_neither_binds_an_owner_nor_changes_one(shop: Shop, store: BookmarkStore) -> None:
    shop.put("a.txt", "a")
    run(shop, None)
    assert owners_in(store.index_entry("copy")) == ()

    run(shop, "finance", 2)
    run(shop, None, 3)

    assert owners_in(store.index_entry("copy")) == ("finance",)
    assert store.head("copy").owner == "finance"
    with pytest.raises(OwnerError):
        run(shop, "marketing", 4)


def test_job_of_an_earlier_version_belongs_to_the_dag_of_its_index_entry(shop: Shop, store: BookmarkStore) -> None:
    shop.put("a.txt", "a")
    run(shop, "finance")
    as_before_owners(store)

    with pytest.raises(OwnerError, match="finance"):
        run(shop, "marketing")
    run(shop, "finance", 2)

    assert store.head("copy").owner == "finance"


@pytest.mark.parametrize("begun_by_hand", [False, True])
def test_of_two_dags_that_take_a_job_at_once_one_becomes_the_owner(
    shop: Shop, store: BookmarkStore, begun_by_hand: bool
) -> None:
    if begun_by_hand:
        shop.put("a.txt", "a")
        run(shop, None)
    first, second = identity("finance"), identity("marketing")
    seen = [(each, store.snapshot("copy", each.run_id)) for each in (first, second)]
    bound = [owner_to_bind(store, "copy", look.head, each) for each, look in seen]

    taken = [
        store.take("copy", each, look, RunEnvironment().lease_time, owner=owner)
        for (each, look), owner in zip(seen, bound, strict=True)
    ]

    assert bound == ["finance", "marketing"]
    assert [grant is None for grant in taken] == [False, True]
    assert (store.head("copy").owner, owners_in(store.index_entry("copy"))) == ("finance", ("finance",))
    with pytest.raises(OwnerError):
        begin(store, "copy", second, shop.environment)


def test_take_that_looked_before_a_hand_over_is_refused(shop: Shop, store: BookmarkStore) -> None:
    shop.put("a.txt", "a")
    run(shop, "finance")
    late = identity("finance", 2)
    seen = store.snapshot("copy", late.run_id)
    hand_over(store, "copy", "marketing", **WHY)

    assert store.take("copy", late, seen, shop.environment.lease_time) is None
    with pytest.raises(OwnerError):
        begin(store, "copy", late, shop.environment)


@pytest.mark.parametrize("option", ["pause", "disable"])
def test_paused_or_disabled_run_of_another_dag_is_refused(shop: Shop, store: BookmarkStore, option: str) -> None:
    shop.put("a.txt", "a")
    run(shop, "finance")
    before = everything(store)

    with pytest.raises(OwnerError):
        DetachedRun.begin(store, "copy", identity("marketing"), Choice.of(option), shop.environment)

    assert everything(store) == before


def test_shard_of_a_sharded_job_belongs_to_the_owner_of_the_others(shop: Shop, store: BookmarkStore) -> None:
    shop.put("a.txt", "a")
    run(shop, "finance", job=shard_name("copy", 0))

    with pytest.raises(OwnerError, match="share copy --with marketing"):
        begin(store, shard_name("copy", 1), identity("marketing"), shop.environment)
    share(store, "copy", "marketing", **WHY)
    grant = begin(store, shard_name("copy", 1), identity("marketing"), shop.environment)

    assert grant.base.owner == "finance"
    assert owners_in(store.index_entry(shard_name("copy", 1))) == ("finance",)


# ---- share, unshare


def test_shared_job_is_run_by_both_and_stays_its_owners(shop: Shop, store: BookmarkStore) -> None:
    shop.put("a.txt", "a")
    run(shop, "finance", task_id="clean")
    done = share(store, "copy", "marketing", **WHY)

    shop.put("b.txt", "b")
    run(shop, "marketing", task_id="tidy")

    entry = store.index_entry("copy") or {}
    assert (done["owner"], done["shared_with"]) == ("finance", ["marketing"])
    assert (entry["dag_id"], entry["task_id"], owners_in(entry)) == ("finance", "clean", ("finance",))
    with pytest.raises(OwnerError):
        run(shop, "sales")
    unshare(store, "copy", "marketing", **WHY)
    with pytest.raises(OwnerError):
        run(shop, "marketing", 2)


def test_job_of_an_earlier_version_can_be_shared(shop: Shop, store: BookmarkStore) -> None:
    shop.put("a.txt", "a")
    run(shop, "finance")
    as_before_owners(store)

    share(store, "copy", "marketing", **WHY)
    run(shop, "marketing")

    assert store.head("copy").owner == "finance"


def test_each_change_of_an_owner_is_an_event_with_who_and_why(shop: Shop, store: BookmarkStore) -> None:
    shop.put("a.txt", "a")
    run(shop, "finance")

    share(store, "copy", "marketing", **WHY)
    unshare(store, "copy", "marketing", **WHY)
    hand_over(store, "copy", "sales", **WHY)

    events = [(each["kind"], each["dag"], each["who"], each["why"]) for each in store.events("copy")]
    assert events == [
        ("share", "marketing", "ann", "agreed with both teams"),
        ("unshare", "marketing", "ann", "agreed with both teams"),
        ("hand-over", "sales", "ann", "agreed with both teams"),
    ]
    last = list(store.events("copy"))[-1]
    assert (last["owner_before"], last["owner_after"]) == ("finance", "sales")


@pytest.mark.parametrize(
    ("change", "dag", "why"),
    [
        (share, "finance", "may run it already"),
        (unshare, "sales", "does not share it"),
        (hand_over, "finance", "owns it already"),
    ],
)
def test_change_that_changes_nothing_is_refused(
    shop: Shop, store: BookmarkStore, change: Any, dag: str, why: str
) -> None:
    shop.put("a.txt", "a")
    run(shop, "finance")

    with pytest.raises(ChangeRefusedError, match=why):
        change(store, "copy", dag, **WHY)


@pytest.mark.parametrize("dag", ["", " finance", "x" * 251])
def test_what_is_no_id_of_a_dag_is_refused(shop: Shop, store: BookmarkStore, dag: str) -> None:
    shop.put("a.txt", "a")
    run(shop, "finance")

    with pytest.raises(OptionError, match="names a DAG by its id"):
        share(store, "copy", dag, **WHY)


def test_job_without_an_owner_is_not_shared_and_can_be_handed_over(shop: Shop, store: BookmarkStore) -> None:
    shop.put("a.txt", "a")
    run(shop, None)

    with pytest.raises(ChangeRefusedError, match="belongs to no DAG"):
        share(store, "copy", "marketing", **WHY)
    hand_over(store, "copy", "finance", **WHY)

    with pytest.raises(OwnerError):
        run(shop, "marketing")


# ---- hand over


def test_everybody_who_ever_owned_a_job_is_kept(shop: Shop, store: BookmarkStore) -> None:
    shop.put("a.txt", "a")
    run(shop, "finance")

    hand_over(store, "copy", "marketing", **WHY)
    hand_over(store, "copy", "sales", **WHY)
    run(shop, "sales", 2)

    assert owners_in(store.index_entry("copy")) == ("sales", "finance", "marketing")
    with pytest.raises(OwnerError):
        run(shop, "finance", 3)


def test_owner_under_a_new_name_is_not_another_owner(shop: Shop, store: BookmarkStore) -> None:
    shop.put("a.txt", "a")
    run(shop, "finance")

    hand_over(store, "copy", "accounts", renamed=True, **WHY)

    entry = store.index_entry("copy") or {}
    assert owners_in(entry) == ("accounts",)
    assert entry["former_names"] == ["finance"]


def test_job_that_a_run_holds_is_not_handed_over(shop: Shop, store: BookmarkStore) -> None:
    begin(store, "copy", identity("finance"), shop.environment)

    with pytest.raises(JobBusyError):
        hand_over(store, "copy", "marketing", **WHY)


def test_late_commit_of_the_former_owner_does_not_take_the_job_back(shop: Shop, store: BookmarkStore) -> None:
    shop.put("a.txt", "a")
    late = replace(shop.environment, lease_time=type(shop.environment.lease_time)(0))
    begun = ActiveRun.begin(store, "copy", identity("finance"), late)
    hand_over(store, "copy", "marketing", **WHY)

    shop.copy(begun)
    begun.commit()

    assert owners_in(store.index_entry("copy")) == ("marketing", "finance")


# ---- sharded jobs


@pytest.mark.parametrize("begun_by_hand", [False, True])
def test_run_of_another_dag_does_not_begin_under_the_name_of_a_sharded_job(
    shop: Shop, store: BookmarkStore, begun_by_hand: bool
) -> None:
    shop.put("a.txt", "a")
    run(shop, "finance", job=shard_name("copy", 3))
    if begun_by_hand:
        ActiveRun.begin(store, "copy", identity(None), shop.environment).abort("nothing to do")
    before = everything(store)

    with pytest.raises(OwnerError, match=r"job 'copy' belongs to DAG 'finance'"):
        begin(store, "copy", identity("marketing"), shop.environment)

    assert everything(store) == before


def test_shard_of_another_dag_does_not_begin_beside_a_whole_job(shop: Shop, store: BookmarkStore) -> None:
    shop.put("a.txt", "a")
    run(shop, "finance")

    with pytest.raises(OwnerError, match=r"job 'copy' belongs to DAG 'finance'"):
        begin(store, shard_name("copy", 3), identity("marketing"), shop.environment)


def test_job_with_a_name_too_long_for_shards_is_taken(shop: Shop, store: BookmarkStore) -> None:
    begin(store, "c" * 250, identity("finance"), shop.environment)

    assert store.head("c" * 250).owner == "finance"


# ---- protected jobs


@pytest.mark.parametrize("kind", ["share", "hand-over"])
def test_owner_of_a_protected_job_changes_with_an_approval_alone(shop: Shop, store: BookmarkStore, kind: str) -> None:
    shop.put("a.txt", "a")
    run(shop, "finance")
    protect(store, "copy", reason="money", who=ANN)
    change = Change(kind, dag="marketing")

    with pytest.raises(ProtectedError, match="--request"):
        (share if kind == "share" else hand_over)(store, "copy", "marketing", **WHY)
    asked = request(store, "copy", change, reason="agreed", who=ANN)
    with pytest.raises(ApprovalError):
        approve(store, "copy", asked.id, who=ANN)
    approve(store, "copy", asked.id, who=BOB)

    run(shop, "marketing")
    with pytest.raises(ApprovalError, match="done already"):
        approve(store, "copy", asked.id, who=BOB)


@pytest.mark.parametrize("kind", ["share", "hand-over"])
def test_request_is_not_carried_out_for_a_job_that_was_handed_over_since(
    shop: Shop, store: BookmarkStore, kind: str
) -> None:
    shop.put("a.txt", "a")
    run(shop, "finance")
    protect(store, "copy", reason="money", who=ANN)
    asked = request(store, "copy", Change(kind, dag="marketing"), reason="agreed", who=ANN)
    between = request(store, "copy", Change("hand-over", dag="sales"), reason="agreed", who=ANN)
    approve(store, "copy", between.id, who=BOB)

    with pytest.raises(ChangedMeanwhileError, match=r"owned by 'sales'.*not as it was looked at.*owned by 'finance'"):
        approve(store, "copy", asked.id, who=BOB)

    seen = ownership_of(store, "copy", store.head("copy"))
    assert (seen.owner, seen.shared_with) == ("sales", ())


def test_protected_job_is_unshared_without_an_approval(shop: Shop, store: BookmarkStore) -> None:
    shop.put("a.txt", "a")
    run(shop, "finance")
    share(store, "copy", "marketing", **WHY)
    protect(store, "copy", reason="money", who=ANN)

    unshare(store, "copy", "marketing", **WHY)

    with pytest.raises(OwnerError):
        run(shop, "marketing")


# ---- how the name in an event is known


def test_event_says_how_the_name_in_it_is_known(shop: Shop, store: BookmarkStore) -> None:
    shop.put("a.txt", "a")
    run(shop, "finance")

    reset(store, "copy", reason="a test", who="ada")  # as `who=` of the hook, and of any program
    share(store, "copy", "sales", reason="a test", who=Identity("ada", True, "airflow").signature)
    unshare(store, "copy", "sales", reason="a test", who=Identity("ada", False, "os").signature)
    protect(store, "copy", reason="a test", who=Identity("arn:aws:iam::1:user/ada", True, "aws"))

    told = [(event["kind"], event["who_kind"]) for event in bookmark(store, "copy")["changes"]]
    assert told == [("reset", "told"), ("share", "airflow"), ("unshare", "told"), ("protect", "aws")]


def test_change_of_two_people_says_how_each_is_known(shop: Shop, store: BookmarkStore) -> None:
    shop.put("a.txt", "a")
    run(shop, "finance")
    protect(store, "copy", reason="money", who=ANN)
    asked = request(store, "copy", Change("reset"), reason="agreed", who=ANN)
    approve(store, "copy", asked.id, who=Identity("bob", True, "airflow"))

    kinds = {event["kind"]: event["who_kind"] for event in bookmark(store, "copy")["changes"]}
    assert kinds == {"protect": "os", "request": "os", "approve": "airflow", "reset": "os, airflow"}


def test_event_of_an_earlier_version_does_not_say_how_the_name_is_known(shop: Shop, store: BookmarkStore) -> None:
    shop.put("a.txt", "a")
    run(shop, "finance")
    reset(store, "copy", reason="a test", who="ada")
    ((key, event),) = store.table.query(store.keys("copy").partition, prefix="EVENT#")
    store.table.transact([Put(key, {name: value for name, value in event.items() if name != "who_kind"})])

    assert bookmark(store, "copy")["changes"][0]["who_kind"] is None


# ---- an import over a job


def elsewhere(shop: Shop) -> Shop:
    """Return a shop over the same files, with an empty store of its own."""
    store = BookmarkStore(SqliteTable(shop.root / "elsewhere.db"), "test")
    store.init()
    return replace(shop, store=store)


def test_import_over_a_job_leaves_it_to_its_owners_and_asks_those_of_the_document_too(
    shop: Shop, store: BookmarkStore
) -> None:
    shop.put("a.txt", "a")
    run(shop, "lake")
    hand_over(store, "copy", "finance", **WHY)
    share(store, "copy", "sales", **WHY)
    there = elsewhere(shop)
    run(there, "pond")
    hand_over(there.store, "copy", "marketing", **WHY)
    share(there.store, "copy", "press", **WHY)
    document = export(there.store)

    for _ in range(2):
        import_(store, document, overwrite=True, **WHY)

        head = store.head("copy")
        assert (head.owner, head.shared_with) == ("finance", ("sales",))
        assert owners_in(store.index_entry("copy")) == ("finance", "lake", "marketing", "pond")
    for dag_id in ("marketing", "press"):
        with pytest.raises(OwnerError):
            run(shop, dag_id)


def test_import_over_a_job_that_nobody_shares_shares_it_with_nobody(shop: Shop, store: BookmarkStore) -> None:
    shop.put("a.txt", "a")
    run(shop, "finance")
    there = elsewhere(shop)
    run(there, "marketing")
    share(there.store, "copy", "press", **WHY)

    import_(store, export(there.store), overwrite=True, **WHY)

    assert store.head("copy").shared_with == ()


def test_import_over_a_job_of_an_earlier_version_leaves_it_to_the_owner_of_its_index_entry(
    shop: Shop, store: BookmarkStore
) -> None:
    shop.put("a.txt", "a")
    run(shop, "finance")
    as_before_owners(store)
    there = elsewhere(shop)
    run(there, "marketing")

    import_(store, export(there.store), overwrite=True, **WHY)

    assert (store.head("copy").owner, owners_in(store.index_entry("copy"))) == ("finance", ("finance", "marketing"))


def test_import_over_a_job_of_a_renamed_dag_does_not_ask_the_old_name(shop: Shop, store: BookmarkStore) -> None:
    shop.put("a.txt", "a")
    run(shop, "lake")
    document = export(store)
    hand_over(store, "copy", "pond", renamed=True, **WHY)

    import_(store, document, overwrite=True, **WHY)

    entry = store.index_entry("copy")
    assert (owners_in(entry), former_in(entry, FORMER_NAMES)) == (("pond",), ["lake"])


def test_import_over_a_job_of_nobody_brings_the_owners_of_the_document(shop: Shop, store: BookmarkStore) -> None:
    shop.put("a.txt", "a")
    run(shop, None)
    there = elsewhere(shop)
    run(there, "pond")
    hand_over(there.store, "copy", "marketing", **WHY)
    share(there.store, "copy", "press", **WHY)

    import_(store, export(there.store), overwrite=True, **WHY)

    head = store.head("copy")
    assert (head.owner, head.shared_with) == ("marketing", ("press",))
    assert owners_in(store.index_entry("copy")) == ("marketing", "pond")


def test_import_that_looked_before_a_hand_over_is_refused(
    shop: Shop, store: BookmarkStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop.put("a.txt", "a")
    run(shop, "finance")
    document = export(store)
    write = transition.write_job

    def late(*arguments: Any) -> bool:
        hand_over(store, "copy", "sales", **WHY)
        return write(*arguments)

    monkeypatch.setattr(transition, "write_job", late)

    with pytest.raises(ChangedMeanwhileError, match="Import it again"):
        import_(store, document, overwrite=True, **WHY)

    assert (store.head("copy").owner, owners_in(store.index_entry("copy"))) == ("sales", ("sales", "finance"))


def test_repair_of_a_lost_index_entry_asks_all_that_owned_the_job_again(shop: Shop, store: BookmarkStore) -> None:
    shop.put("a.txt", "a")
    run(shop, "lake")
    hand_over(store, "copy", "pond", renamed=True, **WHY)
    hand_over(store, "copy", "finance", **WHY)
    before = store.index_entry("copy")
    store.table.transact([Delete(store.keys("copy").index)])

    repair(store, examine(store, jobs=["copy"]), who="ann")

    after = store.index_entry("copy")
    assert owners_in(after) == owners_in(before) == ("finance", "pond")
    assert former_in(after, FORMER_NAMES) == former_in(before, FORMER_NAMES) == ["lake"]
