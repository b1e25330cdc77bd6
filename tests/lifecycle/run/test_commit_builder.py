"""What a commit writes, decided from plain values: no store, no source, no files."""

from __future__ import annotations

from typing import Any

import pytest

from airflow_bookmarks.core.files.file_plan import FilePlan, UpstreamPlan
from airflow_bookmarks.core.job_state import STATE_CONTEXT, STATE_KIND
from airflow_bookmarks.core.plan import UpstreamWindow
from airflow_bookmarks.core.position import Edge, Greatest, Position
from airflow_bookmarks.core.run import ContextState, OutputEntry, Payload, RunKey
from airflow_bookmarks.core.selection.listing import FileInfo, Listing
from airflow_bookmarks.core.selection.reason import OVER_BOUND
from airflow_bookmarks.lifecycle.protocol.source_cleanup import IS_READ_WHOLE
from airflow_bookmarks.lifecycle.run.commit_builder import (
    ContextOutcome,
    RunOutcome,
    StoredBodies,
    build_commit,
    edges_of,
    is_over_bound,
)

KEY, BEFORE = RunKey(3, 7), RunKey(2, 5)
STOOD = ContextState("files", "files:/raw", BEFORE, watermark="2013-01-01T00:00:00Z")
BODY = Payload("0" * 64, 2, inline=b"{}")


def files(count: int) -> FilePlan:
    found = Listing.of([FileInfo(f"/raw/{number}.csv", 10, 1_000 + number) for number in range(count)])
    return FilePlan(found, ("/raw",), listed=5, known=5 - count)


def upstream(job: str, after: int, until: int, *, epoch: int = 1, changes: int = 0) -> UpstreamPlan:
    window = UpstreamWindow(job, "out", after, until, epoch, changes)
    return UpstreamPlan(Listing.of([]), (), listed=0, known=0, window=window)


def outcome(**contexts: ContextOutcome) -> RunOutcome:
    return RunOutcome("clean", KEY, {"raw": STOOD}, contexts)


def read(plan: FilePlan, position: Position | None, before: ContextState | None = None) -> ContextOutcome:
    return ContextOutcome("files", "files:/raw", plan, position, before)


def recorded(context: ContextOutcome) -> dict[str, Any]:
    """Return what the run record says of the context."""
    metrics: Any = build_commit(outcome(raw=context), StoredBodies()).metrics
    figures: dict[str, Any] = metrics["contexts"]["raw"]
    return figures


def output(*, is_published: bool) -> OutputEntry:
    return OutputEntry("files", "/clean", "/clean/_staging", publish=BODY if is_published else None)


# ---- contexts


def test_context_that_moved_is_held_by_this_run_with_the_watermark_of_its_position() -> None:
    commit = build_commit(outcome(raw=read(files(2), Position(b"p", "2013-02-01T00:00:00Z"), STOOD)), StoredBodies())

    assert commit.contexts == {"raw": ContextState("files", "files:/raw", KEY, watermark="2013-02-01T00:00:00Z")}


def test_context_without_a_new_position_stays_where_it_was() -> None:
    commit = build_commit(outcome(raw=read(files(0), None, STOOD)), StoredBodies())

    assert commit.contexts == {"raw": STOOD}


def test_context_that_the_run_did_not_read_stays_where_it_was() -> None:
    commit = build_commit(outcome(other=read(files(1), Position(b"p"))), StoredBodies())

    assert commit.contexts["raw"] == STOOD
    assert commit.contexts["other"].run == KEY


def test_watermark_of_a_column_does_not_go_back() -> None:
    stood = ContextState("files", "files:/raw", BEFORE, watermark="9", watermark_column="id")
    context = ContextOutcome("files", "files:/raw", files(1), Position(b"p"), stood, Greatest("id", "7"))

    assert build_commit(outcome(raw=context), StoredBodies()).contexts["raw"].watermark == "9"


def test_run_whose_rows_are_not_known_leaves_the_watermark_of_a_column() -> None:
    stood = ContextState("files", "files:/raw", BEFORE, watermark="9", watermark_column="id")
    context = ContextOutcome("files", "files:/raw", files(1), Position(b"p", "time"), stood, keeps_column=True)
    commit = build_commit(outcome(raw=context), StoredBodies())

    assert commit.contexts["raw"] == ContextState("files", "files:/raw", KEY, watermark="9", watermark_column="id")
    assert "watermark_column" not in recorded(context)


def test_run_whose_rows_are_not_known_takes_the_watermark_that_its_source_tells() -> None:
    context = ContextOutcome("files", "files:/raw", files(1), Position(b"p", "time"), STOOD, keeps_column=True)

    assert build_commit(outcome(raw=context), StoredBodies()).contexts["raw"].watermark == "time"


@pytest.mark.parametrize("has_moved", [True, False])
def test_state_of_the_job_is_a_context_only_if_it_is_stored(has_moved: bool) -> None:
    stored = StoredBodies(positions={STATE_CONTEXT: BODY} if has_moved else {})
    commit = build_commit(outcome(raw=read(files(0), None, STOOD)), stored)

    assert commit.contexts.get(STATE_CONTEXT) == (ContextState(STATE_KIND, STATE_KIND, KEY) if has_moved else None)


# ---- what the record says


def test_record_has_the_plan_rows_and_the_watermark_from_before() -> None:
    context = ContextOutcome("files", "files:/raw", files(2), Position(b"p", "later"), STOOD, rows=40)
    figures = recorded(context)

    assert (figures["files"], figures["rows"], figures["watermark_before"]) == (2, 40, "2013-01-01T00:00:00Z")
    assert not figures.keys() & {IS_READ_WHOLE, "schema_change", "greatest"}


def test_record_says_what_changed_of_the_columns_what_was_read_in_part_and_the_greatest_value() -> None:
    change = {"added": ["tail"]}
    context = ContextOutcome(
        "files",
        "files:/raw",
        files(1),
        None,
        greatest=Greatest("id", "7"),
        schema_change=change,
        is_read_whole=False,
    )
    figures = recorded(context)

    assert figures["schema_change"] == change
    assert figures[IS_READ_WHOLE] is False
    assert (figures["watermark_column"], figures["greatest"]) == ("id", "7")


def test_record_has_the_time_of_each_part_and_what_is_said_of_the_state_of_the_job() -> None:
    run = RunOutcome("clean", KEY, {}, {}, state_stats={STATE_KIND: {"from": None}}, seconds={"plan": "0.100"})

    assert build_commit(run, StoredBodies()).metrics == {
        "contexts": {},
        "seconds": {"plan": "0.100"},
        STATE_KIND: {"from": None},
    }


# ---- whether it is empty


@pytest.mark.parametrize(
    ("planned", "state_changed", "is_published", "is_empty"),
    [
        (0, None, False, True),
        (1, None, False, False),
        (0, True, False, False),
        (0, False, False, True),
        (0, None, True, False),
    ],
)
def test_run_is_empty_if_nothing_moved_and_nothing_becomes_visible(
    planned: int, state_changed: bool | None, is_published: bool, is_empty: bool
) -> None:
    run = RunOutcome("clean", KEY, {}, {"raw": read(files(planned), None)}, state_changed=state_changed)
    commit = build_commit(run, StoredBodies(outputs={"out": output(is_published=is_published)}))

    assert commit.is_empty is is_empty


def test_run_that_asked_for_nothing_is_not_empty() -> None:
    assert not build_commit(RunOutcome("clean", KEY, {}, {}), StoredBodies()).is_empty


def test_rows_in_a_sink_that_commits_by_itself_are_visible() -> None:
    landed = OutputEntry("table", "db.clean", "", commits_by_itself=True)
    run = outcome(raw=read(files(0), None, STOOD))

    assert not build_commit(run, StoredBodies(outputs={"out": landed})).is_empty


# ---- batches


def test_something_is_over_the_bound_if_one_context_has_more() -> None:
    more = FilePlan(Listing.of([]), (), listed=1, known=0, skipped={OVER_BOUND: 1})

    assert is_over_bound({"a": files(1), "b": more})
    assert not is_over_bound({"a": files(1)})


# ---- edges


def test_source_without_an_upstream_has_no_edge() -> None:
    assert edges_of("clean", {"raw": files(1)}, {}) == {}


def test_edge_of_two_contexts_is_at_the_lower_one_as_seen_by_the_older_view() -> None:
    plans = {"a": upstream("raw", 0, 5, epoch=2, changes=4), "b": upstream("raw", 0, 3, epoch=1, changes=6)}

    assert edges_of("clean", plans, {}) == {"raw": Edge("clean", 3, 1, 4, {"a": 5, "b": 3})}


def test_edge_counts_a_context_of_the_upstream_that_this_run_did_not_read() -> None:
    resting = ContextState("upstream", "upstream:raw", BEFORE, watermark="2")
    edges = edges_of("clean", {"a": upstream("raw", 4, 5)}, {"b": resting})

    assert edges["raw"].contexts == {"a": 5, "b": 2}
    assert edges["raw"].run_number == 2
