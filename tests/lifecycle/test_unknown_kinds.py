"""Promises of sinks and sources of a kind that this version does not know: refused, never guessed or given up."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from airflow_bookmarks.core.errors import OptionError, SinkUnknownError, SourceError
from airflow_bookmarks.core.rules.lag import LagState
from airflow_bookmarks.core.run import RunState
from airflow_bookmarks.lifecycle.changes.change import Change, preview
from airflow_bookmarks.lifecycle.inspect.lag import lag
from airflow_bookmarks.lifecycle.inspect.lineage import lineage
from airflow_bookmarks.lifecycle.inspect.pending import pending
from airflow_bookmarks.lifecycle.inspect.runs import files_of, history
from airflow_bookmarks.lifecycle.maintenance.doctor import examine
from airflow_bookmarks.lifecycle.protocol.failpoint import Failpoint
from airflow_bookmarks.lifecycle.protocol.finish import finish as finish_execution
from airflow_bookmarks.lifecycle.protocol.staging import Staged, StagingRequest
from airflow_bookmarks.lifecycle.run.empty import commit_empty
from airflow_bookmarks.lifecycle.run.enabled import ActiveRun
from airflow_bookmarks.lifecycle.state.summary import Summary
from airflow_bookmarks.sources.files.planner import FileSource
from airflow_bookmarks.store.codec.item import contexts_value, output_attribute, plan_attribute, position_attribute
from airflow_bookmarks.store.table import Update
from tests.lifecycle.shop import FILES, Shop
from tests.lifecycle.test_adopt import Rows, begin, fence_of, plan_and_place

TABLE = "jdbc:postgresql://dw/flights#public.clean"


def to_table(shop: Shop, run: ActiveRun) -> Summary:
    """Write a row to a table, by a sink that commits by itself and is no folder."""
    run.plan("raw", FileSource(FILES, [str(shop.raw)]))
    run.place("out", StagingRequest("jdbc", TABLE))
    run.staged("out", Staged((), rows=1))
    return run.commit()


def test_open_run_of_an_unknown_sink_is_refused_and_taken_over_by_who_knows_it(shop: Shop, tmp_path: Path) -> None:
    rows = Rows(tmp_path / "rows.db")
    shop.put("a.txt", "a")
    dead = begin(shop, rows, 1)
    rows.write(fence_of(dead), plan_and_place(shop, dead))
    dead.abort("the driver died")

    with pytest.raises(SinkUnknownError, match=r"run 1\.1.*'out'.*kind 'rows'.*Nothing was"):
        shop.begin()

    assert [run.state for run in shop.store.runs("copy")] == [RunState.FAILED]
    assert shop.store.head("copy").lease is None
    begin(shop, rows, 2).abort("it only had to take over")
    assert shop.store.head("copy").run_number == 1
    assert rows.lines() == ["a"]


def test_worker_that_meets_an_unknown_sink_leaves_the_job_to_spark(shop: Shop, tmp_path: Path) -> None:
    rows = Rows(tmp_path / "rows.db")
    shop.put("a.txt", "a")
    shop.run()
    dead = begin(shop, rows, 1)
    rows.write(fence_of(dead), plan_and_place(shop, dead))
    dead.abort("the driver died")

    assert commit_empty(shop.store, "copy", shop.caller(), shop.machine) is None

    states = [run.state for run in shop.store.runs("copy")]
    assert states == [RunState.PUBLISHED, RunState.FAILED]
    assert shop.store.head("copy").lease is None


def test_publish_that_is_due_to_an_unknown_sink_stays_due(shop: Shop) -> None:
    shop.put("a.txt", "a")
    run = shop.begin(run_id="task")
    run._machine = shop.machine.__class__(at=_die_after_commit)
    with pytest.raises(KeyboardInterrupt):
        to_table(shop, run)
    _of_another_version(shop)

    with pytest.raises(SinkUnknownError, match=r"'out'.*kind 'jdbc'.*stays due"):
        finish_execution(shop.store, "copy", shop.caller("task"), shop.machine)
    with pytest.raises(SinkUnknownError, match=r"'out'.*kind 'jdbc'.*stays due"):
        shop.begin(run_id="task", attempt=2)
    head = shop.store.head("copy")
    assert (head.published, head.publishing is None) == (0, False)


def _die_after_commit(point: Failpoint) -> None:
    if point is Failpoint.COMMITTED:
        raise KeyboardInterrupt


def _of_another_version(shop: Shop) -> None:
    """Store the output as one that its sink has still to publish."""
    (run,) = shop.store.runs("copy")
    output = replace(run.outputs["out"], commits_by_itself=False)
    shop.store.table.transact([Update(shop.store.keys("copy").run(run.key), set=output_attribute("out", output))])


def test_output_that_is_no_folder_is_neither_staged_nor_moved_nor_swept(shop: Shop) -> None:
    for number in range(3):
        shop.put(f"{number}.txt", "line")
        to_table(shop, shop.begin())
    head = shop.store.head("copy")
    assert (head.run_number, head.published, head.staging) == (3, 3, ())
    for run in shop.store.runs("copy"):
        assert (run.outputs["out"].publish, run.outputs["out"].place) == (None, "")
        assert run.outputs["out"].facts["rows"] == 1
    assert {each.code for each in examine(shop.store)} == {"kind-unknown"}


def test_paused_run_leaves_what_is_no_folder_to_its_sink(shop: Shop) -> None:
    run = shop.side()
    run.plan("raw", FileSource(FILES, [str(shop.raw)]))
    assert run.place("out", StagingRequest("jdbc", TABLE)) == ""
    run.staged("out", Staged((), rows=1))
    assert run.commit().outputs["out"]["rows"] == 1


def test_run_without_input_that_wrote_to_a_table_is_not_empty(shop: Shop) -> None:
    shop.put("a.txt", "a")
    to_table(shop, shop.begin())
    summary = to_table(shop, shop.begin())
    assert (summary.is_empty, dict(summary.outputs["out"])) == (False, {"rows": 1, "files": None, "bytes": None})


def test_consumer_never_passes_an_output_that_it_can_not_read(shop: Shop) -> None:
    shop.put("a.txt", "a")
    shop.run()
    assert shop.run("report", upstream="copy")[0] == ["a"]
    shop.put("b.txt", "b")
    to_table(shop, shop.begin())

    with pytest.raises(SourceError, match=r"run 2 of upstream 'copy'.*'out'.*kind 'jdbc'.*Nothing was read"):
        shop.run("report", upstream="copy")

    (edge,) = shop.store.edges("copy")
    assert edge.run_number == 1
    found = pending(shop.store, "report")
    assert (found.is_known, found.is_empty, found.as_dict()["files"]) == (False, False, None)
    (behind,) = (each for each in lag(shop.store, "report") if each.kind == "upstream")
    assert (behind.runs, behind.files, behind.bytes) == (1, None, None)


# ---- what people are told


@pytest.fixture
def other_kind(shop: Shop) -> Shop:
    """Let the context of a job be one that another version has read, from topics that hold records and no files."""
    shop.put("a.txt", "a")
    shop.run()
    keys = shop.store.keys("copy")
    (run,) = shop.store.runs("copy")
    plan = replace(
        run.plans["raw"],
        kind="kafka",
        fingerprint="kafka:clicks",
        body=shop.store.payloads({"raw": b"offsets"})["raw"],
        facts={"records": 5},
    )
    states = {"raw": replace(run.contexts["raw"], kind="kafka", fingerprint="kafka:clicks")}
    told = {**run.metrics, "contexts": {"raw": {"records": 5}}}
    changed = {**plan_attribute("raw", plan), "contexts": contexts_value(states), "metrics": told}
    position = position_attribute("raw", shop.store.payloads({"raw": b"offsets"})["raw"])
    shop.store.table.transact(
        [
            Update(keys.run(run.key), set={**changed, **position}),
            Update(keys.head, set={"contexts": contexts_value(states)}),
        ]
    )
    return shop


def test_history_and_lineage_count_no_files_of_a_kind_that_has_none(other_kind: Shop) -> None:
    (row,) = history(other_kind.store, "copy")
    assert (row["files"], row["bytes"], row["rows_written"]) == (None, None, 1)
    told = lineage(other_kind.store, "copy", 1)
    assert told is not None
    (read,) = told.reads
    assert (read.ctx, read.locations, read.files, read.bytes) == ("raw", (), None, None)


def test_files_of_a_kind_that_has_none_are_no_empty_list(other_kind: Shop) -> None:
    with pytest.raises(OptionError, match=r"'raw'.*kind 'kafka'.*no files"):
        files_of(other_kind.store, "copy", "1")


def test_pending_and_lag_of_an_unknown_kind_are_not_known(other_kind: Shop) -> None:
    found = pending(other_kind.store, "copy")
    assert (found.is_known, found.is_empty) == (False, False)
    assert (found.as_dict()["files"], found.as_dict()["bytes"]) == (None, None)
    assert [each.state for each in lag(other_kind.store, "copy")] == [LagState.UNKNOWN]


def test_preview_of_a_reset_counts_no_files_of_an_unknown_kind(other_kind: Shop) -> None:
    seen = preview(other_kind.store, "copy", Change("reset"))
    assert (seen.files, seen.bytes, seen.undone) == (None, None, (1,))


def test_doctor_says_what_it_can_not_look_at(other_kind: Shop) -> None:
    to_table_of = other_kind.begin("other")
    to_table(other_kind, to_table_of)
    found = {(each.job, each.code, each.severity.value) for each in examine(other_kind.store)}
    assert found == {("copy", "kind-unknown", "notice"), ("other", "kind-unknown", "notice")}


def test_summary_of_an_unknown_kind_names_no_count(other_kind: Shop) -> None:
    (run,) = other_kind.store.runs("copy")
    summary = Summary.of(run, "test", "copy")
    assert summary.in_words() == "run 1, raw: not known how much, out: 1 rows written"
    assert Summary.of(run, "test", "copy").contexts["raw"]["files"] is None
