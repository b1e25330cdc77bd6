"""Names of jobs: aliases by rename and adopt, and bookmarks that are deleted."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from airflow_bookmarks.core.errors import (
    ChangedMeanwhileError,
    ChangeRefusedError,
    JobBusyError,
    JobUnknownError,
    NameInvalidError,
    NameTakenError,
    OptionError,
    StateCorruptError,
    UpstreamRewoundError,
)
from airflow_bookmarks.core.position import Edge
from airflow_bookmarks.lifecycle.changes.change import Change, reset, undo, unlock
from airflow_bookmarks.lifecycle.changes.naming import adopt, delete, key_of, names_of, rename
from airflow_bookmarks.lifecycle.changes.preview import preview
from airflow_bookmarks.lifecycle.inspect.status import bookmarks
from airflow_bookmarks.sinks.registry import SINKS
from airflow_bookmarks.sinks.staging import StagingRequest
from airflow_bookmarks.sources.files.planner import FileSource
from airflow_bookmarks.store.codec.item import edge_attributes
from airflow_bookmarks.store.table import Delete, Put, Update
from airflow_bookmarks.store.transitions.naming import EmptyJob, add_alias
from tests.lifecycle.rows import Rows
from tests.lifecycle.shop import FILES, Shop
from tests.lifecycle.shop import unsound as examine

WHY: dict[str, Any] = {"reason": "the DAG was renamed", "who": "ann"}


@pytest.fixture
def copied(shop: Shop) -> Shop:
    """Return a shop with one run of the job "copy"."""
    shop.put("a.txt", "a")
    shop.run()
    return shop


def listed(shop: Shop) -> list[str]:
    return [row["job"] for row in bookmarks(shop.store)]


# ---- rename


def test_renamed_job_goes_by_both_names(copied: Shop) -> None:
    rename(copied.store, "copy", "lake.copy", **WHY)

    assert (key_of(copied.store, "lake.copy"), key_of(copied.store, "copy")) == ("copy", "copy")
    assert names_of(copied.store, "lake.copy") == ["copy", "lake.copy"]
    assert listed(copied) == ["copy"]
    (event,) = copied.store.events("copy")
    assert (event["kind"], event["name"], event["who"], event["why"]) == (
        "rename",
        "lake.copy",
        "ann",
        "the DAG was renamed",
    )


def test_rename_moves_nothing(copied: Shop) -> None:
    before = copied.store.head("copy")
    rename(copied.store, "copy", "lake.copy", **WHY)
    assert copied.store.head("copy") == before
    assert not examine(copied.store)


def test_job_is_renamed_again_by_any_of_its_names(copied: Shop) -> None:
    rename(copied.store, "copy", "lake.copy", **WHY)
    rename(copied.store, "lake.copy", "sea.copy", **WHY)
    assert key_of(copied.store, "sea.copy") == "copy"


def test_job_under_a_run_can_be_renamed(copied: Shop) -> None:
    copied.put("b.txt", "b")
    run = copied.begin()
    copied.copy(run)
    rename(copied.store, "copy", "lake.copy", **WHY)
    assert run.commit().run_number == 2


def test_name_that_a_job_has_is_refused(copied: Shop) -> None:
    copied.run("other")
    rename(copied.store, "other", "second", **WHY)
    for name in ("other", "second", "copy"):
        with pytest.raises(NameTakenError):
            rename(copied.store, "copy", name, **WHY)
    assert [event["kind"] for event in copied.store.events("copy")] == []


def test_rename_takes_a_job_a_name_and_a_reason(copied: Shop) -> None:
    with pytest.raises(JobUnknownError):
        rename(copied.store, "no.such", "x", **WHY)
    with pytest.raises(NameInvalidError):
        rename(copied.store, "copy", "a/b", **WHY)
    with pytest.raises(OptionError, match="reason"):
        rename(copied.store, "copy", "x", reason="", who="ann")


def test_name_that_a_first_run_takes_meanwhile_is_not_given_away(copied: Shop) -> None:
    head = copied.store.head("copy")
    copied.run("fast")

    assert not add_alias(copied.store, "copy", head, "fast", None, {"kind": "rename"})
    assert key_of(copied.store, "fast") == "fast"


# ---- adopt


def test_lost_index_entry_is_not_written_by_a_new_name(copied: Shop) -> None:
    store, index = copied.store, copied.store.keys("copy").index
    head = store.head("copy")
    store.table.transact([Delete(index)])

    with pytest.raises(StateCorruptError, match="index item of job 'copy'"):
        rename(store, "copy", "lake.copy", **WHY)
    with pytest.raises(StateCorruptError, match="index item of job 'copy'"):
        adopt(store, "lake.copy", "copy", **WHY)
    assert not add_alias(store, "copy", head, "lake.copy", None, {"kind": "rename"})
    assert store.table.get([index, store.keys("lake.copy").index]) == {}


def test_new_name_without_runs_takes_the_bookmark_over(copied: Shop) -> None:
    adopt(copied.store, "lake.copy", "copy", **WHY)
    assert key_of(copied.store, "lake.copy") == "copy"
    assert [event["kind"] for event in copied.store.events("copy")] == ["adopt"]


def test_new_name_that_began_and_failed_takes_the_bookmark_over(copied: Shop) -> None:
    run = copied.begin("lake.copy")
    copied.copy(run)
    run.abort("stopped by the person who saw the warning")

    adopt(copied.store, "lake.copy", "copy", **WHY)

    assert key_of(copied.store, "lake.copy") == "copy"
    assert listed(copied) == ["copy"]


def left_open(copied: Shop, rows: Rows, *, lands: bool) -> None:
    """Leave a first run of the new name, which was stopped before its commit, with or without its rows."""
    run = copied.begin("lake.copy", sinks=SINKS.extended(rows))
    run.plan("raw", FileSource(FILES, [str(copied.raw)]))
    run.place("out", StagingRequest(Rows.kind, "rows://out"))
    if lands:
        assert rows.write(int(run.token.rsplit("/", 1)[1]), ["a"])
    run.abort("stopped by the person who saw the warning")


@pytest.mark.parametrize("lands", [True, False])
def test_new_name_whose_open_run_may_have_landed_is_settled_first(copied: Shop, lands: bool) -> None:
    rows = Rows(copied.root / "rows.db")
    left_open(copied, rows, lands=lands)
    with pytest.raises(ChangeRefusedError, match="rows may be in rows://out already"):
        adopt(copied.store, "lake.copy", "copy", **WHY)
    assert key_of(copied.store, "lake.copy") == "lake.copy"

    copied.begin("lake.copy", sinks=SINKS.extended(rows)).abort("only to settle it")

    if lands:  # the run that was left open counts by now
        with pytest.raises(NameTakenError, match="remove those rows from its target"):
            adopt(copied.store, "lake.copy", "copy", **WHY)
        delete(copied.store, "lake.copy", typed_name="lake.copy", **WHY)
    adopt(copied.store, "lake.copy", "copy", **WHY)
    assert key_of(copied.store, "lake.copy") == "copy"


def test_new_name_with_a_bookmark_of_its_own_is_refused(copied: Shop) -> None:
    copied.run("lake.copy")
    with pytest.raises(NameTakenError, match="bookmark of its own"):
        adopt(copied.store, "lake.copy", "copy", **WHY)
    assert key_of(copied.store, "lake.copy") == "lake.copy"


def test_new_name_whose_bookmark_was_deleted_takes_over(copied: Shop) -> None:
    copied.run("lake.copy")
    delete(copied.store, "lake.copy", typed_name="lake.copy", **WHY)
    adopt(copied.store, "lake.copy", "copy", **WHY)
    assert key_of(copied.store, "lake.copy") == "copy"


def test_new_name_under_a_run_is_refused(copied: Shop) -> None:
    copied.begin("lake.copy")
    with pytest.raises(ChangeRefusedError, match="held by"):
        adopt(copied.store, "lake.copy", "copy", **WHY)


def test_run_that_was_about_to_begin_under_the_new_name_finds_it_moved(copied: Shop) -> None:
    run = copied.begin("lake.copy")
    run.abort("stopped")
    seen = copied.store.snapshot("lake.copy", "late")
    adopt(copied.store, "lake.copy", "copy", **WHY)

    identity, lease = copied.identity("late"), copied.environment.lease_time
    assert copied.store.take("lake.copy", identity, seen, lease) is None


def test_adopt_names_what_is_wrong(copied: Shop) -> None:
    copied.run("other")
    rename(copied.store, "other", "second", **WHY)
    with pytest.raises(JobUnknownError):
        adopt(copied.store, "lake.copy", "no.such", **WHY)
    with pytest.raises(NameTakenError, match="already"):
        adopt(copied.store, "copy", "copy", **WHY)
    with pytest.raises(NameTakenError, match="name of job 'other'"):
        adopt(copied.store, "second", "copy", **WHY)


def test_run_that_looked_before_its_name_became_an_alias_does_not_begin(copied: Shop) -> None:
    seen = copied.store.snapshot("lake.copy", "late")
    rename(copied.store, "copy", "lake.copy", **WHY)

    identity, lease = copied.identity("late"), copied.environment.lease_time
    assert copied.store.take("lake.copy", identity, seen, lease) is None
    assert key_of(copied.store, "lake.copy") == "copy"


def test_rename_that_looked_before_the_first_take_of_that_name_gives_no_alias(copied: Shop) -> None:
    event: dict[str, Any] = {"kind": "rename", "who": "ann", "why": "r"}
    head = copied.store.head("copy")
    run = copied.begin("lake.copy")

    assert not add_alias(copied.store, "copy", head, "lake.copy", None, event)
    assert key_of(copied.store, "lake.copy") == "lake.copy"
    run.commit()


def test_run_that_resolved_its_name_before_it_became_an_alias_is_told_to_run_again(copied: Shop) -> None:
    copied.begin("begun").abort("nothing was read")
    rename(copied.store, "copy", "lake.copy", **WHY)
    adopt(copied.store, "begun", "copy", **WHY)

    for name in ("lake.copy", "begun"):
        with pytest.raises(ChangedMeanwhileError, match="another name of job 'copy'"):
            copied.begin(name)


def test_names_of_a_deleted_job_follow_it_when_it_adopts_another(copied: Shop) -> None:
    copied.run("other")
    rename(copied.store, "copy", "lake.copy", **WHY)
    delete(copied.store, "copy", typed_name="copy", **WHY)

    adopt(copied.store, "copy", "other", **WHY)

    assert [key_of(copied.store, name) for name in ("copy", "lake.copy")] == ["other", "other"]
    assert names_of(copied.store, "other") == ["other", "copy", "lake.copy"]
    assert not examine(copied.store)


def test_name_that_a_job_was_given_meanwhile_stops_its_adoption(copied: Shop) -> None:
    copied.run("other")
    delete(copied.store, "copy", typed_name="copy", **WHY)
    store, empty = copied.store, EmptyJob(copied.store.head("copy"))
    rename(store, "copy", "lake.copy", **WHY)

    event: dict[str, Any] = {"kind": "adopt", "who": "ann", "why": "r"}
    assert not add_alias(store, "other", store.head("other"), "copy", empty, event)
    assert key_of(store, "lake.copy") == "copy"


def test_job_is_changed_by_any_of_its_names(copied: Shop) -> None:
    rename(copied.store, "copy", "lake.copy", **WHY)
    assert preview(copied.store, "lake.copy", Change("reset")).undone == (1,)
    assert reset(copied.store, "lake.copy", **WHY).job == "copy"
    assert undo(copied.store, "lake.copy", **WHY).after.epoch == 3
    with pytest.raises(ChangeRefusedError, match="'copy': nobody holds it"):
        unlock(copied.store, "lake.copy", **WHY)


def test_rename_to_the_name_of_another_job_says_whose_it_is(copied: Shop) -> None:
    copied.run("other")
    rename(copied.store, "other", "second", **WHY)
    with pytest.raises(NameTakenError, match="'second' is a name of job 'other' already"):
        rename(copied.store, "copy", "second", **WHY)


# ---- delete


def test_deleted_job_reads_everything_again_with_numbers_that_go_on(copied: Shop) -> None:
    copied.run("report", upstream="copy")

    delete(copied.store, "copy", typed_name="copy", **WHY)
    assert listed(copied) == ["report"]
    assert [event["kind"] for event in copied.store.events("copy")] == ["delete"]

    lines, summary = copied.run()
    assert (lines, summary.run_number, summary.epoch) == (["a"], 2, 2)
    assert listed(copied) == ["copy", "report"]
    run = copied.begin("report")
    with pytest.raises(UpstreamRewoundError):
        copied.copy(run, upstream="copy")
    run.abort("told")


def test_name_has_to_be_typed_out(copied: Shop) -> None:
    with pytest.raises(OptionError, match="typed out"):
        delete(copied.store, "copy", typed_name="cpoy", **WHY)
    assert copied.store.head("copy").epoch == 1


def test_job_under_a_run_is_deleted_by_force_only(copied: Shop) -> None:
    copied.begin()
    with pytest.raises(JobBusyError):
        delete(copied.store, "copy", typed_name="copy", **WHY)
    delete(copied.store, "copy", typed_name="copy", force=True, **WHY)
    assert listed(copied) == []


def test_deletion_with_clean_removes_what_was_published(copied: Shop) -> None:
    assert delete(copied.store, "copy", typed_name="copy", clean=True, **WHY).to_clean == 1
    copied.begin().abort("only to clean")
    assert copied.target_lines() == Counter()


def test_deletion_is_undone_like_a_reset(copied: Shop) -> None:
    delete(copied.store, "copy", typed_name="copy", **WHY)
    undo(copied.store, "copy", reason="wrong job", who="ann")
    assert listed(copied) == ["copy"]
    assert copied.run()[0] == []


def test_deleted_consumer_holds_no_history_of_its_upstream(copied: Shop) -> None:
    copied.run("report", upstream="copy")
    delete(copied.store, "report", typed_name="report", **WHY)
    assert copied.store.edges("copy") == []

    undo(copied.store, "report", reason="it is needed", who="ann")
    assert [edge.run_number for edge in copied.store.edges("copy")] == [1]


def test_consumer_that_was_reset_before_its_deletion_holds_none_either(copied: Shop) -> None:
    copied.run("report", upstream="copy")
    reset(copied.store, "report", **WHY)

    delete(copied.store, "report", typed_name="report", **WHY)

    assert copied.store.edges("copy") == []
    assert "report" not in listed(copied)


def test_deletion_that_died_half_way_is_finished_by_another(copied: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    copied.run("report", upstream="copy")
    with monkeypatch.context() as patch:
        patch.setattr("airflow_bookmarks.store.transitions.naming.hide", lambda *_: False)
        delete(copied.store, "report", typed_name="report", **WHY)
    assert len(copied.store.edges("copy")) == 1

    delete(copied.store, "report", typed_name="report", **WHY)

    assert copied.store.edges("copy") == []


def test_consumer_of_more_jobs_than_a_transaction_holds_leaves_none_of_its_edges(copied: Shop) -> None:
    store = copied.store
    copied.run("report", upstream="copy")
    upstreams = [f"u{number}" for number in range(120)]
    edge = edge_attributes(Edge("report", 1, 1, 0, {"c": 1}))
    for upstream in upstreams:
        index = Put(store.keys(upstream).index, {"first_seen_at": "2026-11-30T00:00:00.000000Z"})
        store.table.transact([index, Put(store.keys(upstream).edge("report"), edge)])

    delete(store, "report", typed_name="report", **WHY)

    assert store.edges_of(("report", upstream) for upstream in ["copy", *upstreams]) == {}
    assert "report" not in listed(copied)


def test_consumer_that_runs_again_after_its_deletion_reads_all(copied: Shop) -> None:
    copied.run("report", upstream="copy")
    delete(copied.store, "report", typed_name="report", **WHY)
    assert copied.run("report", upstream="copy")[0] == ["a"]
    assert [edge.run_number for edge in copied.store.edges("copy")] == [1]


def test_job_that_was_changed_after_its_deletion_is_listed(copied: Shop) -> None:
    delete(copied.store, "copy", typed_name="copy", **WHY)
    reset(copied.store, "copy", reason="again", who="ann")
    assert listed(copied) == ["copy"]


def test_deleted_job_is_found_by_its_other_name(copied: Shop) -> None:
    rename(copied.store, "copy", "lake.copy", **WHY)
    delete(copied.store, "lake.copy", typed_name="lake.copy", **WHY)
    assert copied.store.head("copy").contexts == {}


def test_damaged_alias_says_so(copied: Shop) -> None:
    copied.store.table.transact([Update(copied.store.keys("copy").index, set={"alias_of": 7})])
    with pytest.raises(StateCorruptError, match="is no name"):
        key_of(copied.store, "copy")
