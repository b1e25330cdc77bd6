"""Promises of RUN-27 about `job.state`: it is shown, set, previewed and undone like a position."""

from __future__ import annotations

from typing import Any

import pytest

from airflow_bookmarks.core.errors import ChangedMeanwhileError, JobBusyError, OptionError, ProtectedError
from airflow_bookmarks.core.job_state import HIDDEN, MAX_STATE_BYTES, hidden
from airflow_bookmarks.core.text.identity import Identity
from airflow_bookmarks.lifecycle.changes.approval import approve, protect, request
from airflow_bookmarks.lifecycle.changes.change import Change, reset, rewind, set_position, set_state, undo
from airflow_bookmarks.lifecycle.changes.preview import preview
from airflow_bookmarks.lifecycle.inspect.difference import diff, diff_stores
from airflow_bookmarks.lifecycle.inspect.status import bookmark, changes
from airflow_bookmarks.lifecycle.maintenance.doctor import examine
from airflow_bookmarks.lifecycle.maintenance.transfer.exporting import export
from airflow_bookmarks.lifecycle.maintenance.transfer.importing import import_
from airflow_bookmarks.lifecycle.run.replay import ReplayRun
from airflow_bookmarks.store.backends.sqlite import SqliteTable
from airflow_bookmarks.store.bookmark_store import BookmarkStore
from airflow_bookmarks.store.table import Update
from tests.lifecycle.shop import Shop, short_lease
from tests.lifecycle.state.test_state import passed, seen

REASON: dict[str, Any] = {"reason": "test", "who": "test"}


def cursor_of_three_runs(shop: Shop) -> None:
    for value in ("a", "b", "c"):
        passed(shop, value)


# ---- seen


def test_state_is_shown_with_its_values_as_json(shop: Shop) -> None:
    run = shop.begin()
    run.state("cursor").set("2013-01-31")
    run.state("pages").set({"last": 3, "text": "é"})
    run.commit()
    assert bookmark(shop.store, "copy")["state"] == {"cursor": '"2013-01-31"', "pages": '{"last": 3, "text": "é"}'}


def test_job_without_state_shows_none(shop: Shop) -> None:
    shop.put("a.txt", "a")
    shop.run()
    assert bookmark(shop.store, "copy")["state"] == {}


def test_long_value_is_shortened_and_told_from_another_one(shop: Shop) -> None:
    passed(shop, "x" * 5_000 + "1")
    first = bookmark(shop.store, "copy")["state"]["cursor"]
    passed(shop, "x" * 5_000 + "2")
    second = bookmark(shop.store, "copy")["state"]["cursor"]
    assert len(first) < 300
    assert "5,003 letters" in first
    assert first != second


def test_values_can_be_hidden_and_names_stay(shop: Shop) -> None:
    passed(shop, "secret")
    assert hidden({"state": {"cursor": '"secret"', "other": None}})["state"] == {"cursor": HIDDEN, "other": None}


def test_state_that_can_not_be_read_does_not_hide_the_rest_nor_stop_a_reset(shop: Shop) -> None:
    passed(shop, "a")
    keys = shop.store.keys("copy")
    run = shop.store.head("copy").contexts[".state"].run
    item = shop.store.table.get([keys.run(run)])[keys.run(run)]
    shop.store.table.transact([Update(keys.run(run), remove=[name for name in item if name.startswith("position")])])
    assert "can't be read" in bookmark(shop.store, "copy")["state"][".state"]
    assert "can't be read" in str(preview(shop.store, "copy", Change("reset")).state[".state"]["before"])
    reset(shop.store, "copy", **REASON)


def test_runs_and_stores_are_compared_by_their_state_too(shop: Shop) -> None:
    cursor_of_three_runs(shop)
    assert diff(shop.store, "copy", "1", "3")["state"] == {"cursor": {"a": '"a"', "b": '"c"'}}
    assert diff(shop.store, "copy", "2", "2")["state"] == {}

    other = BookmarkStore(SqliteTable(shop.root / "other.db"), "test")
    other.init()
    import_(other, export(shop.store), **REASON)
    assert diff_stores(shop.store, other, "copy")["state"] == {}
    set_state(other, "copy", "cursor", "z", **REASON)
    assert diff_stores(shop.store, other, "copy")["state"] == {"cursor": {"a": '"c"', "b": '"z"'}}


def test_export_shows_state_for_people_unless_it_is_hidden(shop: Shop) -> None:
    passed(shop, "a")
    assert export(shop.store)["states"] == {"copy": {"cursor": '"a"'}}
    assert export(shop.store, hide_state=True)["states"] == {"copy": {"cursor": HIDDEN}}


# ---- set


def test_state_is_set_and_the_next_run_reads_it(shop: Shop) -> None:
    cursor_of_three_runs(shop)
    changed = set_state(shop.store, "copy", "cursor", {"page": 7}, **REASON)
    assert (changed.kind, changed.undone, changed.after.epoch) == ("set-state", (), 2)
    assert seen(shop) == {"page": 7}
    run = shop.begin()
    assert run.state("cursor").get() == {"page": 7}
    run.state("cursor").set("d")
    run.commit()
    assert seen(shop) == "d"
    assert not examine(shop.store)


def test_state_that_no_run_has_set_can_be_set_before_one_does(shop: Shop) -> None:
    shop.put("a.txt", "a")
    shop.run()
    set_state(shop.store, "copy", "cursor", 1, **REASON)
    assert seen(shop) == 1
    assert not examine(shop.store)
    undo(shop.store, "copy", **REASON)
    assert seen(shop) == "absent"


def test_one_value_is_set_and_the_others_stay_and_none_removes_it(shop: Shop) -> None:
    run = shop.begin()
    run.state("cursor").set(1)
    run.state("other").set(2)
    run.commit()
    set_state(shop.store, "copy", "cursor", None, **REASON)
    assert bookmark(shop.store, "copy")["state"] == {"other": "2"}


def test_setting_state_undoes_no_run_and_moves_no_context(shop: Shop) -> None:
    shop.put("a.txt", "a")
    shop.run()
    before = shop.store.head("copy").contexts["raw"]
    set_state(shop.store, "copy", "cursor", 1, **REASON)
    assert shop.store.head("copy").contexts["raw"] == before
    lines, summary = shop.run()
    assert (lines, summary.is_empty) == ([], True)


def test_undo_takes_a_set_state_back(shop: Shop) -> None:
    passed(shop, "a")
    set_state(shop.store, "copy", "cursor", "z", **REASON)
    undo(shop.store, "copy", **REASON)
    assert seen(shop) == "a"


def test_set_state_is_in_the_history_by_name_and_without_its_value(shop: Shop) -> None:
    passed(shop, "a")
    set_state(shop.store, "copy", "cursor", "secret", **REASON)
    (event,) = changes(shop.store, "copy")
    assert (event["kind"], event["name"], event["who"], event["why"]) == ("set-state", "cursor", "test", "test")
    assert "secret" not in str(shop.store.events("copy"))


def test_replay_of_a_run_after_a_set_state_sees_what_the_run_saw(shop: Shop) -> None:
    passed(shop, "a")
    set_state(shop.store, "copy", "cursor", "z", **REASON)
    shop.put("a.txt", "a")
    run = shop.begin(run_id="task")
    assert run.state("cursor").get() == "z"
    shop.copy(run)
    run.state("cursor").set("later")
    run.commit()
    again = ReplayRun.begin_replay(shop.store, "copy", shop.identity("task", 2), shop.environment, 2)
    assert again.state("cursor").get() == "z"
    again.abort("a test")


# ---- refused


@pytest.mark.parametrize("value", [float("nan"), (1, 2), {1: "a"}, object(), "x" * MAX_STATE_BYTES])
def test_value_that_is_no_json_or_too_large_is_refused(shop: Shop, value: Any) -> None:
    passed(shop, "a")
    before = shop.store.head("copy")
    with pytest.raises(OptionError):
        set_state(shop.store, "copy", "cursor", value, **REASON)
    assert shop.store.head("copy") == before


def test_text_that_is_no_json_is_refused_with_how_to_write_it(shop: Shop) -> None:
    passed(shop, "a")
    with pytest.raises(OptionError, match=r"no JSON.*'\"2013-01-31\"'"):
        preview(shop.store, "copy", Change("set-state", state="cursor", value="2013-01-31"))


def test_set_of_the_state_as_a_context_names_the_verb_that_does_it(shop: Shop) -> None:
    passed(shop, "a")
    with pytest.raises(OptionError, match="set-state"):
        set_position(shop.store, "copy", ".state", "now", **REASON)


def test_set_state_is_refused_while_a_run_holds_the_job_and_where_it_moved(shop: Shop) -> None:
    passed(shop, "a")
    version = shop.store.head("copy").version
    run = shop.begin()
    with pytest.raises(JobBusyError):
        set_state(shop.store, "copy", "cursor", "z", **REASON)
    run.state("cursor").set("b")
    run.commit()
    with pytest.raises(ChangedMeanwhileError):
        set_state(shop.store, "copy", "cursor", "z", **REASON, expected_version=version)
    assert seen(shop) == "b"


def test_set_state_of_a_protected_job_takes_a_second_person(shop: Shop) -> None:
    passed(shop, "a")
    ada, bob = Identity("ada", True, "os"), Identity("bob", True, "os")
    protect(shop.store, "copy", reason="test", who=ada)
    with pytest.raises(ProtectedError):
        set_state(shop.store, "copy", "cursor", "z", **REASON)
    asked = request(shop.store, "copy", Change("set-state", state="cursor", value='"z"'), reason="test", who=ada)
    assert asked.preview["state"] == {"cursor": {"before": '"a"', "after": '"z"'}}
    approve(shop.store, "copy", asked.id, who=bob)
    assert seen(shop) == "z"


# ---- previews


def test_previews_show_state_before_and_after(shop: Shop) -> None:
    cursor_of_three_runs(shop)

    def moved(change: Change) -> Any:
        return preview(shop.store, "copy", change).as_dict()["state"]

    assert moved(Change("rewind", to_run="1")) == {"cursor": {"before": '"c"', "after": '"a"'}}
    assert moved(Change("reset")) == {"cursor": {"before": '"c"', "after": None}}
    assert moved(Change("delete")) == {"cursor": {"before": '"c"', "after": None}}
    assert moved(Change("set-state", state="cursor", value="[1]")) == {"cursor": {"before": '"c"', "after": "[1]"}}
    rewind(shop.store, "copy", 2, **REASON)
    assert moved(Change("undo")) == {"cursor": {"before": '"b"', "after": '"c"'}}
    assert moved(Change("rewind", to_run="2")) == {}


def test_preview_of_a_large_state_shows_it_too(shop: Shop) -> None:
    passed(shop, "a")
    seen_before = preview(shop.store, "copy", Change("set-state", state="cursor", value='"' + "x" * 9_000 + '"'))
    assert "9,002 letters" in str(seen_before.state["cursor"]["after"])
    set_state(shop.store, "copy", "cursor", "x" * 9_000, **REASON)
    assert seen(shop) == "x" * 9_000


def test_preview_of_a_change_under_a_lease_that_ran_out_is_made(shop: Shop) -> None:
    passed(shop, "a")
    shop.environment = short_lease()
    run = shop.begin()
    set_state(shop.store, "copy", "cursor", "z", **REASON)
    assert seen(shop) == "z"
    run.abort("a test")
