"""Promises DEP-4, DEP-5 and DEP-6: a consumer reads each published run once, and is told when history changed."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from airflow_bookmarks.core.errors import (
    MisuseError,
    OptionError,
    SourceError,
    SourceMissingError,
    UpstreamRewoundError,
)
from airflow_bookmarks.core.rules.schema import struct
from airflow_bookmarks.core.rules.until import until_of
from airflow_bookmarks.core.run import OutputEntry
from airflow_bookmarks.core.selection.bound import Bound
from airflow_bookmarks.core.selection.reason import OVER_BOUND
from airflow_bookmarks.core.text.instant import utc_now
from airflow_bookmarks.lifecycle.changes.change import reset, rewind, set_position
from airflow_bookmarks.lifecycle.maintenance.retention import collect
from airflow_bookmarks.lifecycle.protocol.failpoint import Failpoint
from airflow_bookmarks.lifecycle.run.replay import ReplayRun
from airflow_bookmarks.sinks.staging import Mode, StagingRequest, collect_staged
from airflow_bookmarks.sources.files.planner import FileSource
from airflow_bookmarks.sources.upstream.layout import GivenLayout
from airflow_bookmarks.sources.upstream.rewind import OnRewind
from airflow_bookmarks.sources.upstream.source import UpstreamSource
from airflow_bookmarks.sources.upstream.stored_plan import format_by_name
from tests.aborting import aborted_on_error
from tests.lifecycle.shop import FILES, Shop


class Stopped(BaseException):
    """Stands for a process that ended at a point."""


def stopping_at(shop: Shop, point: Failpoint) -> Shop:
    def stop(at: Failpoint) -> None:
        if at is point:
            raise Stopped

    return replace(shop, environment=replace(shop.environment, at=stop))


def test_consumer_reads_what_was_published_and_not_consumed(shop: Shop) -> None:
    shop.put("a.txt", "a")
    shop.run("up")
    assert shop.run("down", upstream="up")[0] == ["a"]
    shop.put("b.txt", "b")
    shop.run("up")
    shop.put("c.txt", "c")
    shop.run("up")
    assert sorted(shop.run("down", upstream="up")[0]) == ["b", "c"]
    assert shop.run("down", upstream="up")[0] == []
    assert shop.target_lines("down") == {"a": 1, "b": 1, "c": 1}


def test_edge_moves_with_the_commit_and_says_what_was_seen(shop: Shop) -> None:
    shop.put("a.txt", "a")
    shop.run("up")
    run = shop.begin("down")
    shop.copy(run, upstream="up")
    assert shop.store.edge("up", "down") is None
    run.commit()
    edge = shop.store.edge("up", "down")
    assert edge is not None
    assert (edge.run_number, edge.epoch, edge.changes, edge.contexts) == (1, 1, 0, {"raw": 1})


def test_consumer_set_to_now_while_its_upstream_goes_back_is_told_of_no_rewind(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop.put("a.txt", "a")
    shop.run("up")
    shop.run("down", upstream="up")
    shop.put("b.txt", "b")
    shop.run("up")
    head, races = shop.store.head, ["one"]

    def seen_just_before_a_rewind(job: str) -> Any:
        found = head(job)
        if job == "up" and races:
            races.clear()
            rewind(shop.store, "up", 1, reason="test", who="test")
            shop.run("up")
        return found

    monkeypatch.setattr(shop.store, "head", seen_just_before_a_rewind)
    set_position(shop.store, "down", "raw", "now", reason="test", who="test")

    assert not races
    assert shop.run("down", upstream="up")[0] == []
    edge = shop.store.edge("up", "down")
    assert edge is not None
    assert (edge.run_number, edge.epoch) == (3, 2)


def test_consumer_that_failed_reads_the_same_again(shop: Shop) -> None:
    shop.put("a.txt", "a")
    shop.run("up")
    run = shop.begin("down")
    assert shop.copy(run, upstream="up") == ["a"]
    run.abort("a test")
    assert shop.run("down", upstream="up")[0] == ["a"]


def test_consumer_stops_before_a_run_whose_publish_is_due(shop: Shop) -> None:
    shop.put("a.txt", "a")
    shop.run("up")
    shop.put("b.txt", "b")
    with pytest.raises(Stopped):
        stopping_at(shop, Failpoint.COMMITTED).run("up", run_id="dies", attempt=1)
    assert shop.run("down", upstream="up")[0] == ["a"]
    shop.put("c.txt", "c")
    shop.run("up", run_id="dies", attempt=2)
    assert sorted(shop.run("down", upstream="up")[0]) == ["b", "c"]


def test_file_that_a_later_run_replaced_is_not_part_of_the_window_and_is_counted(shop: Shop) -> None:
    shop.mode = Mode.OVERWRITE_PARTITIONS
    shop.put("a.txt", "a1")
    shop.put("b.txt", "b")
    shop.run("up")
    shop.put("a.txt", "a2", "x")
    shop.run("up")
    lines, summary = shop.run("down", upstream="up")
    assert sorted(lines) == ["a2", "b", "x"]
    assert summary.contexts["raw"]["skipped"] == {"replaced": 1}


def test_rewound_upstream_stops_the_consumer_with_its_name(shop: Shop) -> None:
    chain_of_three(shop)
    rewind(shop.store, "up", 1, reason="bad day", who="me")
    run = shop.begin("down")
    with pytest.raises(UpstreamRewoundError, match=r"REWOUND.*'up' went back to run 1") as caught:
        shop.copy(run, upstream="up")
    assert (caught.value.consumed, caught.value.target) == (3, 1)
    run.abort("a test")
    assert shop.store.head("down").version == 3


def chain_of_three(shop: Shop) -> None:
    shop.mode = Mode.OVERWRITE_PARTITIONS
    for name in "abc":
        shop.put(f"{name}.txt", name)
        shop.run("up")
        shop.run("down", upstream="up")


def test_consumer_can_rewind_along_and_reads_the_new_history(shop: Shop) -> None:
    chain_of_three(shop)
    rewind(shop.store, "up", 1, reason="bad day", who="me")
    shop.put("b.txt", "b2")
    shop.run("up")
    lines, summary = shop.run("down", upstream="up", on_rewind="rewind")
    assert sorted(lines) == ["b2", "c"]
    assert (summary.run_number, summary.epoch) == (4, 2)
    assert shop.target_lines("down") == {"a": 1, "b2": 1, "c": 1}
    edge = shop.store.edge("up", "down")
    assert edge is not None
    assert (edge.run_number, edge.epoch) == (4, 2)
    assert shop.store.events("down")[0]["kind"] == "rewind"


def test_consumer_can_ignore_a_rewind_and_takes_note(shop: Shop) -> None:
    chain_of_three(shop)
    rewind(shop.store, "up", 1, reason="bad day", who="me")
    assert shop.run("down", upstream="up", on_rewind="ignore")[0] == []
    shop.run("up")
    lines, _ = shop.run("down", upstream="up")
    assert sorted(lines) == ["b", "c"]


def test_rewind_above_what_was_consumed_only_changes_the_epoch(shop: Shop) -> None:
    shop.mode = Mode.OVERWRITE_PARTITIONS
    shop.put("a.txt", "a")
    shop.run("up")
    shop.run("down", upstream="up")
    shop.put("b.txt", "b")
    shop.run("up")
    rewind(shop.store, "up", 1, reason="bad day", who="me")
    shop.run("up")
    assert shop.run("down", upstream="up")[0] == ["b"]


def test_undone_run_is_never_read_by_a_consumer(shop: Shop) -> None:
    shop.put("a.txt", "a")
    shop.run("up")
    shop.put("b.txt", "undone")
    shop.run("up")
    rewind(shop.store, "up", 1, reason="bad day", who="me")
    (shop.raw / "b.txt").unlink()
    shop.put("c.txt", "c")
    shop.run("up")
    assert sorted(shop.run("down", upstream="up")[0]) == ["a", "c"]


def test_reset_of_a_consumer_moves_its_edge_back(shop: Shop) -> None:
    chain_of_three(shop)
    reset(shop.store, "down", reason="again", who="me")
    edge = shop.store.edge("up", "down")
    assert edge is not None
    assert (edge.run_number, edge.contexts) == (0, {"raw": 0})
    assert sorted(shop.run("down", upstream="up")[0]) == ["a", "b", "c"]


def test_rewind_along_has_to_come_before_other_reads(shop: Shop) -> None:
    chain_of_three(shop)
    rewind(shop.store, "up", 1, reason="bad day", who="me")
    run = shop.begin("down")
    run.plan("first", UpstreamSource(shop.store, "down", "up", on_rewind="ignore"))
    with pytest.raises(MisuseError, match="before anything else"):
        run.plan("raw", UpstreamSource(shop.store, "down", "up", on_rewind="rewind"))
    run.abort("a test")


def test_paused_consumer_cannot_rewind_along(shop: Shop) -> None:
    chain_of_three(shop)
    rewind(shop.store, "up", 1, reason="bad day", who="me")
    with pytest.raises(UpstreamRewoundError):
        shop.copy(shop.side("down"), upstream="up", on_rewind="rewind")


def test_upstream_that_does_not_exist_is_an_error(shop: Shop) -> None:
    run = shop.begin("down")
    with pytest.raises(SourceMissingError, match="'absent'"):
        shop.copy(run, upstream="absent")
    run.abort("a test")


def test_job_cannot_be_its_own_upstream(shop: Shop) -> None:
    with pytest.raises(OptionError, match="own upstream"):
        UpstreamSource(shop.store, "down", "down")


def test_chain_of_three_jobs_reads_each_row_once_at_each_stage(shop: Shop) -> None:
    for day in range(6):
        shop.put(f"{day}.txt", f"row {day}")
        shop.run("a")
        if day % 2:
            shop.run("b", upstream="a")
        if day % 3 == 2:
            shop.run("c", upstream="b")
    shop.run("b", upstream="a")
    shop.run("c", upstream="b")
    for job in "abc":
        assert shop.target_lines(job) == {f"row {day}": 1 for day in range(6)}


def consume_until(shop: Shop, until: object, on_rewind: OnRewind = "fail") -> int:
    """Make one run of the consumer that reads up to a given run; return how many files it read."""
    run = shop.begin("down")
    number = until_of(until, "up")  # type: ignore[arg-type]  # as wrong as a test wants it
    with aborted_on_error(run):
        plan = run.plan("raw", UpstreamSource(shop.store, "down", "up", on_rewind=on_rewind, until=number))
    run.commit()
    return len(plan)


def test_consumer_reads_up_to_the_given_run_and_no_further(shop: Shop) -> None:
    summaries = []
    for name in "abc":
        shop.put(f"{name}.txt", name)
        summaries.append(shop.run("up")[1].as_dict())

    assert consume_until(shop, summaries[1]) == 2
    assert consume_until(shop, summaries[0]) == 0
    assert consume_until(shop, "3") == 1


def test_run_that_is_not_published_yet_is_refused_as_the_last_one_to_read(shop: Shop) -> None:
    shop.put("a.txt", "a")
    shop.run("up")
    with pytest.raises(SourceMissingError, match="up to run 2"):
        consume_until(shop, 2)


def test_last_run_to_read_that_was_undone_follows_the_policy_on_rewinds(shop: Shop) -> None:
    chain_of_three(shop)
    shop.put("d.txt", "d")
    shop.run("up")
    rewind(shop.store, "up", 3, reason="a test", who="me")

    with pytest.raises(UpstreamRewoundError):
        consume_until(shop, 4)
    assert consume_until(shop, 4, "ignore") == 0


@pytest.mark.parametrize("until", ["soon", {"job": "other", "run_number": "1"}, {"job": "up"}, -1, None])
def test_last_run_to_read_has_to_be_one_of_that_upstream(shop: Shop, until: object) -> None:
    with pytest.raises(OptionError, match="until="):
        until_of(until, "up")  # type: ignore[arg-type]  # as wrong as a test wants it


# ---- runs that were not written alike


def written(
    shop: Shop,
    name: str,
    *columns: str,
    form: str = "text",
    by: tuple[str, ...] = (),
    path: str | None = None,
    **options: str,
) -> None:
    """Make one run of the upstream that writes one file in this format, with these columns."""
    shop.put(f"{name}.txt", name)
    run = shop.begin("up")
    run.plan("raw", FileSource(FILES, [str(shop.raw)]))
    figures = {"format": form, "partition_by": list(by), "options": options}
    folder = Path(run.place("out", StagingRequest("files", str(shop.root / "up"), stats=figures)))
    part = folder / (path or f"file={name}/part-0.txt")
    part.parent.mkdir(parents=True)
    part.write_text(name)
    schema = json.dumps(struct(**dict.fromkeys(columns, "string")))
    run.staged(
        "out",
        collect_staged(FILES, str(folder), str(shop.root / "up"), run.file_token, shop.mode, rows=1, schema=schema),
    )
    run.commit()


def consumed(shop: Shop, **options: Any) -> tuple[list[str], int]:
    """Make one run of the consumer; return what it read, and how many files it left to the next."""
    run = shop.begin("down")
    plan = run.plan("up", UpstreamSource(shop.store, "down", "up", **{"alike": "columns", **options}))
    run.commit()
    return sorted(Path(path).read_text() for path in plan.files.paths), plan.skipped.get(OVER_BOUND, 0)


@pytest.mark.parametrize(
    ("other", "said"),
    [
        ({"form": "csv"}, "format 'text', then 'csv'"),
        ({"by": ("month",)}, r"partitionBy \[\], then \['month'\]"),
        ({"sep": ";"}, "options {}, then {'sep': ';'}"),
    ],
)
def test_window_ends_before_a_run_that_was_written_in_another_layout(
    shop: Shop, other: dict[str, Any], said: str, caplog: pytest.LogCaptureFixture
) -> None:
    written(shop, "a", "x")
    written(shop, "b", "x")
    written(shop, "c", "x", **other)
    written(shop, "d", "x", **other)
    assert consumed(shop) == (["a", "b"], 2)
    assert re.search(f"run 3 of upstream 'up' was written otherwise than run 2: {said}", caplog.text)
    assert consumed(shop) == (["c", "d"], 0)
    assert consumed(shop) == ([], 0)


def test_window_ends_before_a_run_that_lacks_a_column_but_not_before_one_that_has_more(shop: Shop) -> None:
    written(shop, "a", "x")
    written(shop, "b", "x", "y")
    written(shop, "c", "X")
    assert consumed(shop) == (["a", "b"], 1)
    assert consumed(shop) == (["c"], 0)


def test_window_goes_on_where_the_columns_are_not_those_of_the_runs(shop: Shop) -> None:
    written(shop, "a", "x", "y")
    written(shop, "b", "x")
    assert consumed(shop, alike="layout") == (["a", "b"], 0)


def test_who_makes_no_frame_is_told_all_that_is_published(shop: Shop) -> None:
    written(shop, "a", "x")
    written(shop, "b", "x", form="csv")
    assert consumed(shop, alike="any") == (["a", "b"], 0)


def test_names_that_differ_in_case_alone_are_one_column_unless_case_means_something(shop: Shop) -> None:
    written(shop, "a", "x")
    written(shop, "b", "X")
    assert consumed(shop, fold=lambda name: name) == (["a"], 1)


def test_run_without_files_that_are_left_says_nothing_of_the_layout(shop: Shop) -> None:
    shop.mode = Mode.OVERWRITE
    written(shop, "a", "x")
    written(shop, "b", "x", by=("month",))
    assert consumed(shop) == (["b"], 0)


def test_bound_and_another_layout_are_both_left_over(shop: Shop) -> None:
    for name in "abcd":
        written(shop, name, "x", form="text" if name < "c" else "csv")
    assert consumed(shop, bound=Bound.of(max_files=3)) == (["a", "b"], 2)
    assert consumed(shop, bound=Bound.of(max_files=1)) == (["c"], 1)


def test_loop_of_batches_reads_on_behind_another_layout(shop: Shop) -> None:
    written(shop, "a", "x")
    written(shop, "b", "x", form="csv")
    run = shop.begin("down", in_batches=True)
    run.plan("up", UpstreamSource(shop.store, "down", "up", alike="columns"))
    run.commit()
    assert run.goes_on
    following = run.following()
    plan = following.plan("up", UpstreamSource(shop.store, "down", "up", alike="columns"))
    following.commit()
    assert [Path(path).read_text() for path in plan.files.paths] == ["b"]


def test_stored_plans_that_were_not_written_alike_are_not_read_together_again(shop: Shop) -> None:
    for name, form in (("a", "text"), ("b", "csv")):
        written(shop, name, "x", form=form)
        consumed(shop)
    source = UpstreamSource(shop.store, "down", "up", alike="columns")
    with pytest.raises(SourceError, match=r"run 2 of upstream 'up' was written otherwise.*a pause between"):
        source.entry_of(shop.side("down", "pause", "0", "2").plan("up", source))
    entry = source.entry_of(shop.side("down", "pause", "0", "1").plan("up", source))
    assert entry is not None
    assert entry.stats["format"] == "text"


# ---- what is read again after the runs that wrote it were collected


def collected(shop: Shop, until: int) -> None:
    """Collect the runs of the upstream up to a number; younger ones stay."""
    collect(shop.store, jobs=["up"], clock=lambda: utc_now() + timedelta(days=100))
    assert [run.key.number for run in shop.store.runs("up")] == [until + 1]


def read_again(shop: Shop, number: int, given: GivenLayout | None = None) -> tuple[OutputEntry | None, str]:
    """Return how a replay of a run of the consumer reads what that run has read: as stored, and the format by name."""
    run = ReplayRun.begin_replay(shop.store, "down", shop.identity(), shop.environment, number)
    source = UpstreamSource(shop.store, "down", "up", alike="columns")
    try:
        plan = run.plan("up", source)
        return source.entry_of(plan, given), format_by_name(plan)
    finally:
        run.abort("it was only to be looked at")


def test_pause_window_does_not_read_with_the_options_of_another_run_than_wrote_the_files(shop: Shop) -> None:
    for name, sep in (("a", ";"), ("b", ";"), ("c", ",")):
        written(shop, name, "x", form="csv", path=f"{name}.csv", sep=sep)
        consumed(shop)
    collected(shop, 2)
    source = UpstreamSource(shop.store, "down", "up", alike="columns")
    with pytest.raises(SourceError, match=r"wrote 2 of these files were collected, and with them how they were wri"):
        source.entry_of(shop.side("down", "pause", "0", "3").plan("up", source))


@pytest.mark.parametrize(
    ("form", "path"), [("csv", "{}.csv"), ("json", "{}.json"), ("text", "{}.txt"), ("parquet", "month={}/0.parquet")]
)
def test_replay_refuses_files_of_which_nobody_can_tell_how_they_were_written(shop: Shop, form: str, path: str) -> None:
    for name in "ab":
        written(shop, name, "x", form=form, path=path.format(name))
        consumed(shop)
    collected(shop, 1)
    with pytest.raises(SourceError, match=r"Nothing was read or changed.*ead these files with spark\.read, with the"):
        read_again(shop, 1)


@pytest.mark.parametrize("form", ["parquet", "orc"])
def test_replay_reads_files_that_say_themselves_how_they_were_written(shop: Shop, form: str) -> None:
    for name in "ab":
        written(shop, name, "x", form=form, path=f"{name}.{form}")
        consumed(shop)
    collected(shop, 1)
    assert read_again(shop, 1) == (None, form)


def test_pause_window_finds_the_runs_of_all_files_also_where_a_set_led_back_meanwhile(shop: Shop) -> None:
    for name in "ab":
        written(shop, name, "x", form="csv", path=f"{name}.csv")
        consumed(shop)
    set_position(shop.store, "down", "up", "0", reason="a test", who="ada")
    assert consumed(shop, until=1) == (["a"], 0)
    source = UpstreamSource(shop.store, "down", "up", alike="columns")
    entry = source.entry_of(shop.side("down", "pause", "0", "3").plan("up", source))
    assert entry is not None
    assert entry.stats["format"] == "csv"


@pytest.mark.parametrize(
    ("given", "is_enough"),
    [
        (GivenLayout("csv", has_schema=True, options={"SEP": ";"}), True),
        (GivenLayout("csv", has_schema=True), False),
        (GivenLayout("csv", has_schema=False, options={"sep": ";"}), False),
        (GivenLayout(None, has_schema=True, options={"sep": ";"}), False),
    ],
)
def test_replay_reads_files_of_which_the_script_says_all_that_is_not_known(
    shop: Shop, given: GivenLayout, is_enough: bool
) -> None:
    for name in "ab":
        written(shop, name, "x", form="csv", path=f"{name}.csv", sep=";")
        consumed(shop)
    collected(shop, 1)
    if is_enough:
        assert read_again(shop, 1, given)[0] is None
        return
    with pytest.raises(SourceError, match=r"collected.*Give \.format\(...\), \.schema\(...\) and each \.option"):
        read_again(shop, 1, given)


@pytest.mark.parametrize(
    "first",
    [{"form": "text", "path": "a.txt", "lineSep": ";"}, {"form": "csv", "path": "a.csv", "sep": ";"}],
)
def test_pause_window_over_a_collected_run_does_not_take_the_options_of_the_next_for_its_own(
    shop: Shop, first: dict[str, Any]
) -> None:
    written(shop, "a", "x", **first)
    consumed(shop)
    written(shop, "b", "x", form="text", path="b.txt")
    consumed(shop)
    collected(shop, 1)
    source = UpstreamSource(shop.store, "down", "up", alike="columns")
    plan = shop.side("down", "pause", "0", "2").plan("up", source)
    with pytest.raises(SourceError, match="collected"):
        source.entry_of(plan, GivenLayout("text", has_schema=True))


@pytest.mark.parametrize(
    ("left", "is_read"),
    [
        ({"form": "csv", "sep": ";"}, True),
        ({"form": "csv", "Sep": ";", "locale": "de"}, False),
        ({"form": "csv", "sep": ","}, False),
        ({"form": "csv"}, False),
        ({"form": "csv", "sep": ";", "by": ("day",)}, False),
        ({"form": "parquet", "sep": ";"}, False),
    ],
)
def test_pause_window_reads_with_what_the_script_says_only_runs_that_stored_the_same(
    shop: Shop, left: dict[str, Any], is_read: bool
) -> None:
    written(shop, "a", "x", form="csv", path="a.csv", sep=";")
    consumed(shop)
    written(shop, "b", "x", **left)
    consumed(shop)
    collected(shop, 1)
    given = GivenLayout("csv", has_schema=True, options={"sep": ";", "mode": "FAILFAST"}, recorded=("sep", "locale"))
    source = UpstreamSource(shop.store, "down", "up", alike="columns")
    plan = shop.side("down", "pause", "0", "2").plan("up", source)
    if is_read:
        assert source.entry_of(plan, given) is not None
        return
    with pytest.raises(SourceError, match=r"collected.*Give \.format\(...\), \.schema\(...\) and each \.option"):
        source.entry_of(plan, given)
