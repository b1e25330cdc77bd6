"""Protected jobs: a change needs a second person, who is known and looks at what it would do."""

from __future__ import annotations

from datetime import timedelta
from importlib import import_module
from itertools import count
from typing import Any

import pytest

from airflow_bookmarks.core.errors import (
    ApprovalError,
    ChangedMeanwhileError,
    ChangeRefusedError,
    JobBusyError,
    JobUnknownError,
    OptionError,
    ProtectedError,
    RequestUnknownError,
    StateCorruptError,
)
from airflow_bookmarks.core.text.identity import Identity
from airflow_bookmarks.core.text.instant import utc_now
from airflow_bookmarks.lifecycle.changes.approval import Request, approve, protect, reject, request, requests
from airflow_bookmarks.lifecycle.changes.change import Change, reset, rewind, set_position, undo
from airflow_bookmarks.lifecycle.changes.naming import delete
from airflow_bookmarks.lifecycle.changes.preview import preview
from airflow_bookmarks.lifecycle.history.snapshot import HistorySnapshot
from airflow_bookmarks.store.bookmark_store import BookmarkStore
from airflow_bookmarks.store.table import Attributes, Update
from airflow_bookmarks.store.transitions import approval as transition
from tests.lifecycle.shop import Shop

REWIND = Change("rewind", to_run="1")
ANN, BOB = Identity("ann", True, "os"), Identity("bob", True, "os")
NOBODY = Identity("bob", False, "os")


@pytest.fixture
def guarded(shop: Shop) -> Shop:
    """Return a shop with two runs of a protected job."""
    for name in "ab":
        shop.put(f"{name}.txt", name)
        shop.run()
    protect(shop.store, "copy", reason="money", who=ANN)
    return shop


def ask(shop: Shop, change: Change = REWIND, who: Identity = ANN) -> Request:
    return request(shop.store, "copy", change, reason="wrong rows", who=who)


def states(shop: Shop, *, with_closed: bool = True) -> list[str]:
    return [one.state for one in requests(shop.store, "copy", with_closed=with_closed)]


# ---- what protection refuses, and what not


def test_change_that_looked_before_the_protection_does_not_go_through(shop: Shop) -> None:
    shop.put("a.txt", "a")
    shop.run()
    seen = shop.store.head("copy")
    switch = Change("reset").switch(HistorySnapshot(shop.store, "copy", seen), {"who": "ann", "why": "r"})

    protect(shop.store, "copy", reason="money", who=BOB)

    assert shop.store.begin_timeline("copy", seen, switch) is None
    assert shop.store.head("copy").epoch == 1


def test_clean_that_looked_before_the_protection_fences_nobody(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    shop.put("a.txt", "a")
    shop.run()
    shop.put("b.txt", "b")
    run = shop.begin()
    lines = shop.copy(run)
    breaking = shop.store.break_lease

    def protected_meanwhile(*given: Any, **terms: Any) -> Any:
        monkeypatch.setattr(shop.store, "break_lease", breaking)
        protect(shop.store, "copy", reason="money", who=BOB)
        return breaking(*given, **terms)

    monkeypatch.setattr(shop.store, "break_lease", protected_meanwhile)
    with pytest.raises(ProtectedError):
        reset(shop.store, "copy", clean=True, force=True, reason="r", who="ann")
    assert run.commit().run_number == 2
    assert lines == ["b"]


def test_events_of_one_version_come_in_the_order_of_their_time(guarded: Shop) -> None:
    start = utc_now()
    ticks = (start + timedelta(microseconds=n) for n in count())  # many in a millisecond, which is what ids tell
    store = BookmarkStore(guarded.store.table, guarded.store.namespace, clock=lambda: next(ticks))
    for n in range(6):
        request(store, "copy", Change("reset"), reason=str(n), who=ANN)
    assert [event.get("why") for event in store.events("copy")] == ["money", *"012345"]


def test_approval_takes_only_the_protection_away_that_it_was_asked_for(guarded: Shop) -> None:
    first, second = (ask(guarded, Change("unprotect")) for _ in range(2))
    approve(guarded.store, "copy", first.id, who=BOB)

    with pytest.raises(ApprovalError, match="the protection was taken away since"):
        approve(guarded.store, "copy", second.id, who=BOB)
    protect(guarded.store, "copy", reason="money again", who=ANN)
    with pytest.raises(ApprovalError, match="is void"):
        approve(guarded.store, "copy", second.id, who=BOB)
    assert guarded.store.head("copy").protected


def test_one_person_under_two_kinds_of_login_is_one_person(guarded: Shop) -> None:
    asked = ask(guarded)
    for who in (Identity("ann", True, "airflow"), Identity("Ann", True, "aws")):
        with pytest.raises(ApprovalError, match="another person"):
            approve(guarded.store, "copy", asked.id, who=who)


def test_protected_job_is_not_changed_without_an_approval(guarded: Shop) -> None:
    before = guarded.store.head("copy")

    with pytest.raises(ProtectedError):
        reset(guarded.store, "copy", reason="r", who="ann")
    with pytest.raises(ProtectedError):
        rewind(guarded.store, "copy", 1, reason="r", who="ann", force=True)
    with pytest.raises(ProtectedError):
        set_position(guarded.store, "copy", "raw", "now", reason="r", who="ann")
    with pytest.raises(ProtectedError):
        undo(guarded.store, "copy", reason="r", who="ann")
    with pytest.raises(ProtectedError):
        delete(guarded.store, "copy", typed_name="copy", reason="r", who="ann")
    assert guarded.store.head("copy") == before


def test_protected_job_runs_on(guarded: Shop) -> None:
    guarded.put("c.txt", "c")
    assert guarded.run()[0] == ["c"]
    assert guarded.store.head("copy").protected


def test_what_is_not_protected_needs_no_request(shop: Shop) -> None:
    shop.run()
    with pytest.raises(ChangeRefusedError, match="not protected"):
        ask(shop)


def test_protecting_takes_a_reason_a_job_and_one_time(guarded: Shop) -> None:
    with pytest.raises(OptionError, match="reason"):
        protect(guarded.store, "copy", reason=" ", who=ANN)
    with pytest.raises(JobUnknownError):
        protect(guarded.store, "no.such", reason="r", who=ANN)
    with pytest.raises(ChangeRefusedError, match="already"):
        protect(guarded.store, "copy", reason="r", who=ANN)


# ---- approve


def test_change_is_made_once_another_person_approves(guarded: Shop) -> None:
    asked = ask(guarded)
    assert (asked.preview["undone_runs"], asked.state) == ([2], "open")

    done = approve(guarded.store, "copy", asked.id, who=BOB)

    assert (done["to_run"], done["requested_by"], done["approved_by"]) == (1, "ann", "bob")
    assert guarded.run()[0] == ["b"]
    kinds = [(event["kind"], event["who"]) for event in guarded.store.events("copy")]
    rewound = ("rewind", "ann, approved by bob")
    assert sorted(kinds) == sorted([("protect", "ann"), ("request", "ann"), rewound, ("approve", "bob")])


def test_request_shows_what_the_preview_showed(guarded: Shop) -> None:
    seen = preview(guarded.store, "copy", REWIND).as_dict()
    kept = ask(guarded).preview
    assert {name: kept[name] for name in seen} == seen


def test_approved_change_is_made_once(guarded: Shop) -> None:
    asked = ask(guarded)
    approve(guarded.store, "copy", asked.id, who=BOB)
    epoch = guarded.store.head("copy").epoch

    with pytest.raises(ApprovalError, match="done already"):
        approve(guarded.store, "copy", asked.id, who=BOB)
    assert guarded.store.head("copy").epoch == epoch
    assert (states(guarded), states(guarded, with_closed=False)) == (["done"], [])


def test_nobody_approves_a_request_of_his_own(guarded: Shop) -> None:
    asked = ask(guarded)
    with pytest.raises(ApprovalError, match="another person"):
        approve(guarded.store, "copy", asked.id, who=ANN)
    assert states(guarded) == ["open"]


def test_name_that_nobody_vouches_for_neither_asks_nor_decides(guarded: Shop) -> None:
    asked = ask(guarded)
    for act in (
        lambda: ask(guarded, who=NOBODY),
        lambda: approve(guarded.store, "copy", asked.id, who=NOBODY),
        lambda: reject(guarded.store, "copy", asked.id, reason="r", who=NOBODY),
    ):
        with pytest.raises(ApprovalError, match="not an authenticated identity"):
            act()
    assert states(guarded) == ["open"]


def test_request_is_void_once_the_version_moved(guarded: Shop) -> None:
    asked = ask(guarded)
    guarded.put("c.txt", "c")
    guarded.run()

    assert states(guarded) == ["void"]
    with pytest.raises(ApprovalError, match="void"):
        approve(guarded.store, "copy", asked.id, who=BOB)
    with pytest.raises(ApprovalError, match="void"):
        reject(guarded.store, "copy", asked.id, reason="r", who=BOB)


def test_request_expires(guarded: Shop) -> None:
    asked = ask(guarded)
    later = BookmarkStore(
        guarded.store.table, guarded.store.namespace, clock=lambda: guarded.store.now() + timedelta(days=8)
    )

    with pytest.raises(ApprovalError, match="expired"):
        approve(later, "copy", asked.id, who=BOB)
    assert approve(guarded.store, "copy", asked.id, who=BOB)["to_run"] == 1


def test_approval_waits_for_a_run_that_holds_the_job(guarded: Shop) -> None:
    asked = ask(guarded)
    run = guarded.begin()
    with pytest.raises(JobBusyError):
        approve(guarded.store, "copy", asked.id, who=BOB)
    assert states(guarded, with_closed=False) == ["open"]  # whoever has to wait has decided nothing
    run.abort("stopped")

    assert approve(guarded.store, "copy", asked.id, who=BOB)["to_run"] == 1


def test_approval_that_waited_is_void_when_the_run_commits(guarded: Shop) -> None:
    asked = ask(guarded)
    run = guarded.begin()
    with pytest.raises(JobBusyError):
        approve(guarded.store, "copy", asked.id, who=BOB)
    run.commit()

    with pytest.raises(ApprovalError, match="void"):
        approve(guarded.store, "copy", asked.id, who=BOB)


def test_approved_request_that_was_not_carried_out_can_be_rejected(
    guarded: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = ask(guarded)
    with monkeypatch.context() as patch:  # a run begins just after the look
        patch.setattr("airflow_bookmarks.lifecycle.changes.approval.check_free", lambda *_: guarded.begin())
        with pytest.raises(JobBusyError):
            approve(guarded.store, "copy", asked.id, who=BOB)
    assert states(guarded) == ["approved"]

    reject(guarded.store, "copy", asked.id, who=BOB, reason="not after all")
    assert states(guarded) == ["rejected"]
    with pytest.raises(ApprovalError, match="rejected"):
        approve(guarded.store, "copy", asked.id, who=BOB, force=True)


def test_approval_by_force_fences_the_run_that_holds_the_job(guarded: Shop) -> None:
    asked = ask(guarded)
    guarded.begin()
    assert approve(guarded.store, "copy", asked.id, who=BOB, force=True)["to_run"] == 1


def test_of_two_requests_the_one_approved_first_voids_the_other(guarded: Shop) -> None:
    first, second = ask(guarded), ask(guarded, Change("reset"))
    approve(guarded.store, "copy", second.id, who=BOB)
    with pytest.raises(ApprovalError, match="void"):
        approve(guarded.store, "copy", first.id, who=BOB)
    assert states(guarded) == ["void", "done"]


def test_request_is_decided_once_though_two_people_decide_at_once(guarded: Shop) -> None:
    asked, head = ask(guarded), guarded.store.head("copy")
    by: Attributes = {"decided_by": "bob", "decided_by_kind": "os"}
    assert transition.decide(guarded.store, "copy", head, asked.id, "rejected", by, {"kind": "reject"})
    assert not transition.decide(guarded.store, "copy", head, asked.id, "approved", by, {"kind": "approve"})
    assert states(guarded) == ["rejected"]


def test_decision_whose_reply_was_lost_counts_once(guarded: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = ask(guarded)
    table = guarded.store.table
    real = table.transact

    def repeated(operations: Any, *, token: str | None = None) -> None:
        real(operations, token=token)
        real(operations, token=None)  # as the store's client does that got no answer

    monkeypatch.setattr(table, "transact", repeated)
    assert reject(guarded.store, "copy", asked.id, reason="no", who=BOB).state == "rejected"
    monkeypatch.undo()
    assert sorted(str(event["kind"]) for event in guarded.store.events("copy")) == ["protect", "reject", "request"]


# ---- reject


def test_rejected_request_changes_nothing_and_stays_rejected(guarded: Shop) -> None:
    asked = ask(guarded)
    before = guarded.store.head("copy")
    assert reject(guarded.store, "copy", asked.id, reason="no", who=BOB).state == "rejected"

    with pytest.raises(ApprovalError, match="rejected"):
        approve(guarded.store, "copy", asked.id, who=BOB)
    assert guarded.store.head("copy") == before
    assert [e["why"] for e in guarded.store.events("copy") if e["kind"] == "reject"] == ["no"]


@pytest.mark.parametrize("change", [Change("reset"), REWIND, Change("reset", clean=True), Change("delete")])
@pytest.mark.parametrize("step", ["check_free", "begin_timeline"])
def test_request_that_is_rejected_while_its_change_is_made_is_not_carried_out(
    guarded: Shop, monkeypatch: pytest.MonkeyPatch, change: Change, step: str
) -> None:
    asked = ask(guarded, change)
    owner = "airflow_bookmarks.lifecycle.changes.change" if step == "check_free" else guarded.store
    rejected_first(monkeypatch, guarded, asked, owner, step)

    with pytest.raises(ApprovalError, match=f"request {asked.id} is rejected by now.*Nothing was changed"):
        approve(guarded.store, "copy", asked.id, who=BOB)
    head = guarded.store.head("copy")
    assert (head.epoch, states(guarded)) == (1, ["rejected"])
    assert head.contexts


def rejected_first(monkeypatch: pytest.MonkeyPatch, guarded: Shop, asked: Request, owner: object, step: str) -> None:
    """Let the request be turned down just before a step of its change."""
    module = import_module(owner) if isinstance(owner, str) else owner
    real = getattr(module, step)

    def late(*given: Any, **terms: Any) -> Any:
        monkeypatch.setattr(module, step, real)
        reject(guarded.store, "copy", asked.id, reason="not after all", who=BOB)
        return real(*given, **terms)

    monkeypatch.setattr(module, step, late)


def test_request_that_is_rejected_before_its_clean_fences_nobody(
    guarded: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = ask(guarded, Change("reset", clean=True))
    guarded.put("c.txt", "c")
    run = guarded.begin()
    guarded.copy(run)
    rejected_first(monkeypatch, guarded, asked, guarded.store, "break_lease")

    with pytest.raises(ApprovalError, match="is rejected by now"):
        approve(guarded.store, "copy", asked.id, who=BOB, force=True)
    assert run.commit().run_number == 3


def test_approved_change_whose_process_ends_at_once_is_done(guarded: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = ask(guarded)
    real = guarded.store.begin_timeline

    def killed(*given: Any, **terms: Any) -> Any:
        real(*given, **terms)
        raise KeyboardInterrupt

    monkeypatch.setattr(guarded.store, "begin_timeline", killed)
    with pytest.raises(KeyboardInterrupt):
        approve(guarded.store, "copy", asked.id, who=BOB)
    assert states(guarded) == ["done"]


def test_who_asked_may_take_it_back(guarded: Shop) -> None:
    assert reject(guarded.store, "copy", ask(guarded).id, reason="my mistake", who=ANN).state == "rejected"


# ---- what can be asked for


def test_protection_itself_goes_by_a_second_person(guarded: Shop) -> None:
    asked = ask(guarded, Change("unprotect"))
    approve(guarded.store, "copy", asked.id, who=BOB)

    assert not guarded.store.head("copy").protected
    assert states(guarded) == ["done"]
    assert reset(guarded.store, "copy", reason="free again", who="ann").undone == (1, 2)


def test_every_kind_of_change_comes_through_whole(guarded: Shop) -> None:
    changes = [
        Change("set", ctx="raw", value="now"),
        Change("undo"),
        Change("rewind", to_run="1", contexts=("raw",)),
        Change("rewind", to_run="1", clean=True),
        Change("delete"),
    ]
    for change in changes:
        asked = ask(guarded, change)
        assert asked.change == change
        assert approve(guarded.store, "copy", asked.id, who=BOB)["change"] == change.kind
    assert guarded.store.head("copy").contexts == {}


def test_change_that_can_not_be_done_can_not_be_asked_for(guarded: Shop) -> None:
    with pytest.raises(ChangeRefusedError, match="no reset"):
        ask(guarded, Change("undo"))
    with pytest.raises(OptionError, match="no change that needs"):
        ask(guarded, Change("replay"))
    with pytest.raises(ChangedMeanwhileError):
        request(guarded.store, "copy", REWIND, reason="r", who=ANN, expected_version=1)
    assert states(guarded) == []


def test_unknown_request_is_an_error(guarded: Shop) -> None:
    event = next(iter(guarded.store.table.query(guarded.store.keys("copy").partition, prefix="EVENT#")))[0]
    for request_id in ("01ARZ3NDEKTSV4RRFFQ69G5FAV", event.sk.removeprefix("EVENT#")):
        with pytest.raises(RequestUnknownError, match="no request"):
            approve(guarded.store, "copy", request_id, who=BOB)


def test_damaged_request_says_so(guarded: Shop) -> None:
    asked = ask(guarded)
    key = guarded.store.keys("copy").event(asked.id)
    guarded.store.table.transact([Update(key, set={"change": "rewind"})])
    with pytest.raises(StateCorruptError, match="can't be read"):
        approve(guarded.store, "copy", asked.id, who=BOB)
