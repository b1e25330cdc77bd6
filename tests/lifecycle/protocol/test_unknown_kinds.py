"""Promises of sinks and sources of a kind that this version does not know: refused, never guessed or given up."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from airflow_bookmarks.core.errors import (
    CleanRefusedError,
    OptionError,
    SinkUnknownError,
    SourceError,
    SourceUnknownError,
)
from airflow_bookmarks.core.rules.lag import LagState
from airflow_bookmarks.core.run import RunState
from airflow_bookmarks.lifecycle.changes.change import Change, reset
from airflow_bookmarks.lifecycle.changes.preview import preview
from airflow_bookmarks.lifecycle.inspect.lag import lag
from airflow_bookmarks.lifecycle.inspect.lineage import lineage
from airflow_bookmarks.lifecycle.inspect.pending import pending
from airflow_bookmarks.lifecycle.inspect.runs import files_of, history
from airflow_bookmarks.lifecycle.maintenance.doctor import examine
from airflow_bookmarks.lifecycle.maintenance.retention import collect
from airflow_bookmarks.lifecycle.protocol.failpoint import Failpoint
from airflow_bookmarks.lifecycle.protocol.finish import finish as finish_execution
from airflow_bookmarks.lifecycle.protocol.publish import publish_run
from airflow_bookmarks.lifecycle.run.empty import commit_empty
from airflow_bookmarks.lifecycle.run.enabled import ActiveRun
from airflow_bookmarks.lifecycle.run.replay import ReplayRun
from airflow_bookmarks.lifecycle.state.summary import Summary
from airflow_bookmarks.sinks.delta.target import DeltaOutput, DeltaTarget
from airflow_bookmarks.sinks.staging import Mode, Staged, StagingRequest
from airflow_bookmarks.sources.files.planner import FileSource
from airflow_bookmarks.store.codec.item import contexts_value, output_attribute, plan_attribute, position_attribute
from airflow_bookmarks.store.table import Update
from tests.lifecycle.protocol.test_adopt import begin, fence_of, plan_and_place
from tests.lifecycle.rows import Rows
from tests.lifecycle.shop import FILES, Shop

TABLE = "vault://dw/flights#public.clean"


def to_table(shop: Shop, run: ActiveRun) -> Summary:
    """Write a row to a table, by a sink that commits by itself and is no folder."""
    run.plan("raw", FileSource(FILES, [str(shop.raw)]))
    run.place("out", StagingRequest("vault", TABLE))
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

    assert commit_empty(shop.store, "copy", shop.identity(), shop.environment) is None

    states = [run.state for run in shop.store.runs("copy")]
    assert states == [RunState.PUBLISHED, RunState.FAILED]
    assert shop.store.head("copy").lease is None


def test_worker_that_meets_an_open_run_with_a_delta_table_leaves_the_job_to_spark(shop: Shop) -> None:
    shop.put("a.txt", "a")
    target = DeltaTarget("/lake/orders", is_path=True)
    dead = shop.begin()
    dead.plan("raw", FileSource(FILES, [str(shop.raw)]))
    dead.place("out", StagingRequest("delta", target.name, stats=DeltaOutput(Mode.APPEND, 3).stats(target)))
    dead.abort("the driver died")

    assert commit_empty(shop.store, "copy", shop.identity(), shop.environment) is None
    with pytest.raises(SinkUnknownError, match=r"/lake/orders.*no Spark session.*neither given up nor done again"):
        shop.begin()

    assert [run.state for run in shop.store.runs("copy")] == [RunState.FAILED]
    assert shop.store.head("copy").lease is None


def test_publish_that_is_due_to_an_unknown_sink_stays_due(shop: Shop) -> None:
    shop.put("a.txt", "a")
    run = shop.begin(run_id="task")
    run._leased.environment = shop.environment.__class__(at=_die_after_commit)
    with pytest.raises(KeyboardInterrupt):
        to_table(shop, run)
    _of_another_version(shop)

    with pytest.raises(SinkUnknownError, match=r"'out'.*kind 'vault'.*stays due"):
        finish_execution(shop.store, "copy", shop.identity("task"), shop.environment)
    with pytest.raises(SinkUnknownError, match=r"'out'.*kind 'vault'.*stays due"):
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
        assert run.outputs["out"].stats["rows"] == 1
    assert {each.code for each in examine(shop.store)} == {"kind-unknown"}


def test_doctor_looks_at_a_job_that_has_staged_in_an_unknown_sink(shop: Shop) -> None:
    shop.put("a.txt", "a")
    shop.run()
    head = shop.store.keys("copy").head
    shop.store.table.transact([Update(head, set={"staging": ["vault:dw/copy"]})])
    (found,) = (each for each in examine(shop.store) if each.code == "kind-unknown")
    assert (found.severity.value, "'vault'" in found.what) == ("warning", True)


def test_paused_run_leaves_what_is_no_folder_to_its_sink(shop: Shop) -> None:
    run = shop.side()
    run.plan("raw", FileSource(FILES, [str(shop.raw)]))
    assert run.place("out", StagingRequest("vault", TABLE)) == ""
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

    with pytest.raises(SourceError, match=r"run 2 of upstream 'copy'.*'out'.*kind 'vault'.*Nothing was read"):
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
        stats={"records": 5},
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


# ---- an open run that reads a source of an unknown kind


def leave_open(shop: Shop) -> None:
    """Let a driver of another version die, in a run that reads topics and has staged what it read."""
    shop.put("a.txt", "a")
    dead = shop.begin(run_id="task")
    shop.copy(dead)
    dead._leased.give_back()
    *_, run = shop.store.runs("copy")
    body = shop.store.payloads({"raw": b"offsets"})["raw"]
    plan = replace(run.plans["raw"], kind="kafka", fingerprint="kafka:clicks", body=body, stats={"records": 5})
    key = shop.store.keys("copy").run(run.key)
    shop.store.table.transact([Update(key, set=plan_attribute("raw", plan) | {"runtime_version": "99.0"})])


@pytest.fixture(params=[0, 1])
def left_open(shop: Shop, request: pytest.FixtureRequest) -> Shop:
    """Let such a run be the first one, or come after one of this version."""
    for _ in range(request.param):
        shop.put("z.txt", "z")
        shop.run()
    leave_open(shop)
    return shop


def open_runs(shop: Shop) -> list[RunState]:
    return [run.state for run in shop.store.runs("copy") if run.key.number > shop.store.head("copy").run_number]


def test_open_run_of_an_unknown_source_is_neither_given_up_nor_committed(left_open: Shop) -> None:
    refused = r"run \d\.\d was left open.*'raw'.*kind 'kafka'.*Nothing was.*version.*\(99\.0\)"
    with pytest.raises(SourceUnknownError, match=refused):
        left_open.begin(run_id="task", attempt=2)
    with pytest.raises(SourceUnknownError, match=refused):
        left_open.begin()

    assert open_runs(left_open) == [RunState.PLANNED]
    assert left_open.store.head("copy").lease is None
    assert len(left_open.staged_files()) == 1


def test_replay_does_not_give_up_an_open_run_of_an_unknown_source(shop: Shop) -> None:
    shop.put("z.txt", "z")
    shop.run()
    leave_open(shop)
    with pytest.raises(SourceUnknownError):
        ReplayRun.begin_replay(shop.store, "copy", shop.identity(), shop.environment, 1)
    assert open_runs(shop) == [RunState.PLANNED]


def test_open_run_of_an_unknown_source_is_refused_before_an_older_one_is_settled(shop: Shop) -> None:
    shop.put("z.txt", "z")
    first = shop.begin(run_id="first")
    shop.copy(first)
    first._leased.give_back()
    second = shop.begin(run_id="second")
    shop.copy(second)
    second._leased.give_back()
    *_, run = shop.store.runs("copy")
    plan = replace(run.plans["raw"], kind="kafka")
    opened = {"state": RunState.PLANNED.value}
    table, keys = shop.store.table, shop.store.keys("copy")
    states = [each.key for each in shop.store.runs("copy")]
    table.transact(
        [Update(keys.run(states[0]), set=opened), Update(keys.run(run.key), set=plan_attribute("raw", plan))]
    )

    with pytest.raises(SourceUnknownError):
        shop.begin()
    assert open_runs(shop) == [RunState.PLANNED, RunState.PLANNED]


def test_worker_that_meets_an_unknown_source_leaves_the_job_to_spark(left_open: Shop) -> None:
    assert commit_empty(left_open.store, "copy", left_open.identity(), left_open.environment) is None

    assert open_runs(left_open) == [RunState.PLANNED]
    assert left_open.store.head("copy").lease is None


def test_clean_does_not_give_up_an_open_run_of_an_unknown_source(left_open: Shop) -> None:
    before = left_open.store.head("copy")
    with pytest.raises(CleanRefusedError, match=r"open run.*'raw'.*kind 'kafka'.*Nothing was changed.*\(99\.0\)"):
        reset(left_open.store, "copy", reason="a test", who="me", clean=True)
    assert left_open.store.head("copy") == before

    reset(left_open.store, "copy", reason="a test", who="me")
    with pytest.raises(SourceUnknownError):
        left_open.begin()
    assert RunState.PLANNED in {run.state for run in left_open.store.runs("copy")}


def test_publish_that_is_due_needs_no_source(shop: Shop) -> None:
    shop.put("a.txt", "a")
    run = shop.begin(run_id="task")
    run._leased.environment = shop.environment.__class__(at=_die_after_commit)
    shop.copy(run)
    with pytest.raises(KeyboardInterrupt):
        run.commit()
    (due,) = shop.store.runs("copy")
    changed = plan_attribute("raw", replace(due.plans["raw"], kind="kafka"))
    shop.store.table.transact([Update(shop.store.keys("copy").run(due.key), set=changed)])

    assert finish_execution(shop.store, "copy", shop.identity("task"), shop.environment).is_published
    assert shop.target_lines() == {"a": 1}


def test_people_are_told_of_an_open_run_of_an_unknown_source(left_open: Shop) -> None:
    store = left_open.store
    (found,) = (each for each in examine(store) if each.code == "kind-unknown")
    assert (found.severity.value, "'kafka'" in found.what, "(99.0)" in found.repair) == ("warning", True, True)
    seen = pending(store, "copy")
    assert (seen.is_known, seen.is_empty, len(seen.left_open)) == (False, False, 1)
    assert (seen.as_dict()["files"], seen.as_dict()["bytes"]) == (None, None)
    assert {each.state for each in lag(store, "copy")} == {LagState.UNKNOWN}
    *_, row = history(store, "copy", with_open=True)
    assert (row["state"], row["files"], row["bytes"]) == ("PLANNED", None, None)
    with pytest.raises(OptionError, match=r"'raw'.*kind 'kafka'.*no files"):
        files_of(store, "copy", str(row["number"]))


def test_collection_leaves_an_open_run_of_an_unknown_source_and_its_plan(shop: Shop) -> None:
    leave_open(shop)
    (run,) = shop.store.runs("copy")
    plan = run.plans["raw"]
    body = shop.store.blobs.refer(b"offsets" * 10_000, 0)
    shop.store.blobs.put(b"offsets" * 10_000)
    key = shop.store.keys("copy").run(run.key)
    shop.store.table.transact([Update(key, set=plan_attribute("raw", replace(plan, body=body)))])
    later = shop.store.now() + timedelta(days=400)

    collect(shop.store, clock=lambda: later)
    assert open_runs(shop) == [RunState.PLANNED]
    assert shop.store.blobs.get(body) == b"offsets" * 10_000


def test_staged_output_of_an_unknown_sink_is_never_left_out_of_a_publish(shop: Shop) -> None:
    shop.put("a.txt", "a")
    shop.run()
    run = shop.store.committed_run("copy", 1)
    assert run is not None
    staged = replace(run, outputs={"out": replace(run.outputs["out"], sink="parcels")})

    with pytest.raises(SinkUnknownError, match=r"run 1\.1 has staged output 'out' in a sink of kind 'parcels'"):
        publish_run(shop.store, shop.begin()._grant, staged, shop.environment)
