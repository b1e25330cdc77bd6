"""Promises of RUN-25 and RUN-27 about a context that has another name now: a warning, and a verb that moves it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from airflow_bookmarks.core.errors import ChangeRefusedError, JobBusyError, NameInvalidError, OptionError
from airflow_bookmarks.lifecycle.changes.change import (
    Change,
    relocate,
    rename_context,
    reset,
    rewind,
    set_position,
    set_state,
    undo,
)
from airflow_bookmarks.lifecycle.changes.preview import preview
from airflow_bookmarks.lifecycle.inspect.lag import lag
from airflow_bookmarks.lifecycle.inspect.pending import pending
from airflow_bookmarks.lifecycle.maintenance.doctor import examine
from airflow_bookmarks.lifecycle.run.enabled import ActiveRun
from airflow_bookmarks.sources.files.planner import FileSource
from airflow_bookmarks.sources.upstream.source import UpstreamSource
from tests.lifecycle.shop import FILES, Shop

REASON: dict[str, Any] = {"reason": "test", "who": "test"}
LIST: Any = ["raw"]
NUMBER: Any = 5
NOTHING: Any = None


def files(shop: Shop) -> FileSource:
    return FileSource(FILES, [str(shop.raw)])


def read(shop: Shop, *contexts: str) -> list[int]:
    """Make a run that reads the raw folder under some contexts; return how many files each gives."""
    run = shop.begin()
    counts = [len(run.plan(ctx, files(shop))) for ctx in contexts]
    run.commit()
    return counts


def two_files(shop: Shop) -> None:
    shop.put("a.txt", "a")
    shop.put("b.txt", "b")
    assert read(shop, "raw") == [2]


# ---- the warning


def test_new_context_over_the_source_of_one_that_is_not_read_any_more_is_warned_of(
    shop: Shop, caplog: pytest.LogCaptureFixture
) -> None:
    two_files(shop)
    assert read(shop, "flights") == [2]
    (warning,) = [r.getMessage() for r in caplog.records if r.levelname == "WARNING"]
    assert "context flights" in warning
    assert "'raw'" in warning
    assert "rename-context copy raw flights" in warning


def test_two_contexts_over_one_source_are_no_reason_to_warn(shop: Shop, caplog: pytest.LogCaptureFixture) -> None:
    two_files(shop)
    assert read(shop, "flights", "raw") == [2, 0]
    assert read(shop, "flights") == [0]
    assert not [r for r in caplog.records if r.levelname == "WARNING"]


# ---- the verb


def test_position_moves_to_another_name_and_nothing_is_read_again(shop: Shop, caplog: pytest.LogCaptureFixture) -> None:
    two_files(shop)
    change = Change("rename-context", ctx="raw", to_ctx="flights")
    seen = preview(shop.store, "copy", change)
    assert (seen.undone, set(seen.watermarks)) == ((), {"flights", "raw"})
    rename_context(shop.store, "copy", "raw", "flights", **REASON)
    assert list(shop.store.head("copy").contexts) == ["flights"]
    assert not examine(shop.store)
    assert read(shop, "flights") == [0]
    shop.put("c.txt", "c")
    assert read(shop, "flights") == [1]
    assert not examine(shop.store)
    assert not [r for r in caplog.records if r.levelname == "WARNING"]


def test_rename_of_a_context_is_undone_and_stays_in_the_history(shop: Shop) -> None:
    two_files(shop)
    rename_context(shop.store, "copy", "raw", "flights", **REASON)
    event: Any = shop.store.events("copy")[-1]
    assert (event["kind"], event["ctx"], event["name"]) == ("rename-context", "raw", "flights")
    undo(shop.store, "copy", **REASON)
    assert list(shop.store.head("copy").contexts) == ["raw"]
    assert read(shop, "raw") == [0]


def test_what_looks_at_the_context_without_the_script_finds_it_under_its_new_name(shop: Shop) -> None:
    two_files(shop)
    shop.put("c.txt", "c")
    rename_context(shop.store, "copy", "raw", "flights", **REASON)
    (context,) = pending(shop.store, "copy").as_dict()["contexts"]
    assert (context["ctx"], context["files"], context["unknown"]) == ("flights", 1, None)
    assert [each.as_dict()["contexts"] for each in lag(shop.store, "copy")] == [["flights"]]
    set_position(shop.store, "copy", "flights", "now", **REASON)
    assert read(shop, "flights") == [0]


def test_context_is_renamed_twice_and_back_and_after_other_changes(shop: Shop) -> None:
    two_files(shop)
    rename_context(shop.store, "copy", "raw", "one", **REASON)
    set_position(shop.store, "copy", "one", "now", **REASON)
    rename_context(shop.store, "copy", "one", "two", **REASON)
    moved = shop.root / "moved"
    shop.raw.rename(moved)
    relocate(shop.store, "copy", "two", str(shop.raw), str(moved), **REASON)
    moved.rename(shop.raw)
    relocate(shop.store, "copy", "two", str(moved), str(shop.raw), **REASON)
    rename_context(shop.store, "copy", "two", "raw", **REASON)
    assert read(shop, "raw") == [0]
    assert not examine(shop.store)


def test_consumer_goes_on_under_the_new_name_and_its_upstream_knows_how_far_it_is(shop: Shop) -> None:
    shop.put("a.txt", "a")
    shop.run("up")
    shop.run("down", upstream="up")
    rename_context(shop.store, "down", "raw", "flights", **REASON)
    (edge,) = shop.store.edges("up")
    assert (edge.run_number, dict(edge.contexts)) == (1, {"flights": 1})
    run = shop.begin("down")
    assert run.plan("flights", UpstreamSource(shop.store, "down", "up")).is_empty
    run.commit()


def test_schema_and_partition_types_go_along(shop: Shop) -> None:
    shop.put("day=1/a.txt", "a")
    run: ActiveRun = shop.begin()
    run.plan("raw", files(shop))
    run.set_schema("raw", '{"fields": []}')
    run.commit()
    rename_context(shop.store, "copy", "raw", "flights", **REASON)
    run = shop.begin()
    shop.put("day=2/b.txt", "b")
    plan = run.plan("flights", files(shop))
    assert (run.known_schema("flights"), plan.stats()["partition_types"]) == ('{"fields": []}', {"day": "int"})
    run.abort("a test")


# ---- refused


@pytest.mark.parametrize("is_read_since", [False, True])
def test_preview_counts_what_was_read_under_the_former_name(shop: Shop, *, is_read_since: bool) -> None:
    two_files(shop)
    rename_context(shop.store, "copy", "raw", "orders", **REASON)
    if is_read_since:
        shop.put("c.txt", "c")
        assert read(shop, "orders") == [1]
    seen = preview(shop.store, "copy", Change("reset", contexts=("orders",)))
    reset(shop.store, "copy", contexts=["orders"], **REASON)
    assert read(shop, "orders") == [seen.files]


def test_name_that_has_a_position_or_can_not_be_one_is_refused(shop: Shop) -> None:
    two_files(shop)
    read(shop, "flights", "raw")
    set_state(shop.store, "copy", "cursor", 1, **REASON)
    before = shop.store.head("copy")
    with pytest.raises(
        ChangeRefusedError, match=r"'flights' has a position of its own.*airflow-bookmarks reset copy --ctx flights"
    ):
        rename_context(shop.store, "copy", "raw", "flights", **REASON)
    with pytest.raises(NameInvalidError):
        rename_context(shop.store, "copy", "raw", ".x", **REASON)
    with pytest.raises(OptionError, match="no context"):
        rename_context(shop.store, "copy", "rwa", "other", **REASON)
    with pytest.raises(OptionError, match=r"job\.state"):
        rename_context(shop.store, "copy", ".state", "other", **REASON)
    assert shop.store.head("copy") == before
    reset(shop.store, "copy", contexts=["flights"], **REASON)
    rename_context(shop.store, "copy", "raw", "flights", **REASON)
    assert read(shop, "flights") == [0]


def test_rename_to_the_same_name_says_so_and_gives_no_advice_to_lose_the_position(shop: Shop) -> None:
    two_files(shop)
    with pytest.raises(OptionError, match=r"'raw' has this name already\. Nothing was changed") as refused:
        rename_context(shop.store, "copy", "raw", "raw", **REASON)
    assert "reset" not in str(refused.value)
    assert read(shop, "raw") == [0]


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda s: rename_context(s, "copy", LIST, "x", **REASON), r"no context \['raw'\]"),
        (lambda s: rename_context(s, "copy", "raw", NUMBER, **REASON), "5 can't be the name"),
        (lambda s: set_state(s, "copy", NUMBER, 1, **REASON), "5 can't be the name"),
        (
            lambda s: set_state(s, "copy", "cursor", 1, reason=NOTHING, who="me"),
            "must be text, and is None",
        ),
        (
            lambda s: set_state(s, "copy", "cursor", 1, reason=NUMBER, who="me"),
            "must be text, and is 5",
        ),
        (
            lambda s: set_state(s, "copy", "cursor", 1, reason="a test", who=NUMBER),
            "who asks for a change must be text, and is 5",
        ),
    ],
)
def test_argument_that_is_no_text_is_refused(shop: Shop, change: Callable[[Any], Any], why: str) -> None:
    two_files(shop)
    before = shop.store.head("copy")
    with pytest.raises((OptionError, NameInvalidError), match=why):
        change(shop.store)
    assert shop.store.head("copy") == before


def test_rename_is_refused_while_a_run_holds_the_job(shop: Shop) -> None:
    two_files(shop)
    run = shop.begin()
    with pytest.raises(JobBusyError):
        rename_context(shop.store, "copy", "raw", "flights", **REASON)
    run.abort("a test")


def test_context_is_not_taken_back_to_a_run_that_knew_it_by_another_name(shop: Shop) -> None:
    two_files(shop)
    rename_context(shop.store, "copy", "raw", "flights", **REASON)
    shop.put("c.txt", "c")
    assert read(shop, "flights") == [1]
    before = shop.store.head("copy").epoch

    with pytest.raises(ChangeRefusedError, match="'raw' over the same source"):
        rewind(shop.store, "copy", 1, contexts=["flights"], **REASON)

    assert shop.store.head("copy").epoch == before
    rewind(shop.store, "copy", 2, contexts=["flights"], **REASON)
    assert read(shop, "flights") == [0]
