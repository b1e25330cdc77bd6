"""A staged sink of one's own that is no folder goes the way of files, or is refused with what to do instead."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest

from airflow_bookmarks.cli.output.change_preview import in_lines
from airflow_bookmarks.core.errors import (
    ChangeRefusedError,
    CleanRefusedError,
    OptionError,
    OutOfBoundsError,
    PublishError,
    SinkUnknownError,
    SourceError,
    StateCorruptError,
)
from airflow_bookmarks.core.head import Head
from airflow_bookmarks.core.rules.territory import Territory
from airflow_bookmarks.core.run import OutputEntry, RunKey
from airflow_bookmarks.core.text.deflated import deflated
from airflow_bookmarks.core.text.identity import Identity
from airflow_bookmarks.lifecycle.changes.approval import approve, protect, request, requests
from airflow_bookmarks.lifecycle.changes.change import Change, reset, rewind
from airflow_bookmarks.lifecycle.changes.preview import preview
from airflow_bookmarks.lifecycle.maintenance.doctor import Finding, examine
from airflow_bookmarks.lifecycle.maintenance.doctor.repair import repair
from airflow_bookmarks.lifecycle.maintenance.retention import collect
from airflow_bookmarks.lifecycle.maintenance.transfer.landing import Origin
from airflow_bookmarks.lifecycle.protocol.failpoint import Failpoint
from airflow_bookmarks.lifecycle.run.enabled import ActiveRun
from airflow_bookmarks.lifecycle.run.replay import ReplayRun
from airflow_bookmarks.lifecycle.run.session import RunSession
from airflow_bookmarks.lifecycle.state.summary import Summary
from airflow_bookmarks.sinks.clean import CleanList, CleanPart
from airflow_bookmarks.sinks.registry import SINKS
from airflow_bookmarks.sinks.sink import StagedSink, StoredOutput
from airflow_bookmarks.sinks.staging import Staged, StagingRequest
from airflow_bookmarks.sources.files.planner import FileSource
from airflow_bookmarks.store.codec.item import output_attribute, payload_value
from airflow_bookmarks.store.table import Update, Value
from tests.lifecycle.parcels import Parcels
from tests.lifecycle.shop import FILES, Shop

TARGET = "dw.clean"


@pytest.fixture
def parcels(tmp_path: Path) -> Parcels:
    """Open an empty sink."""
    return Parcels(tmp_path / "parcels.db")


@pytest.fixture
def installed(parcels: Parcels, monkeypatch: pytest.MonkeyPatch) -> Parcels:
    """Make the sink known to each process, as an installed package does."""
    monkeypatch.setitem(SINKS.sinks, Parcels.kind, parcels)
    return parcels


class Plain(StagedSink):
    """One that stages, and does no more than it has to."""

    kind = "plain"

    def stage(
        self, territory: Territory, key: RunKey, output: str, request: StagingRequest
    ) -> tuple[OutputEntry, str | None]:
        return OutputEntry(self.kind, request.target, str(key)), None

    def prepare(self, output: StoredOutput) -> None:
        """Publish nothing."""

    def check_root(self, territory: Territory, root: str) -> None:
        """Take any."""

    def sweep(self, territory: Territory, root: str, fence: int) -> None:
        """Leave all."""


def begin(shop: Shop, parcels: Parcels, run_id: str | None = None, attempt: int = 1) -> ActiveRun:
    return shop.begin(run_id=run_id, attempt=attempt, sinks=SINKS.extended(parcels))


def copy(shop: Shop, parcels: Parcels, run: RunSession) -> list[str]:
    """Stage the lines of the planned files in the sink."""
    plan = run.plan("raw", FileSource(FILES, [str(shop.raw)]))
    rows = [line for path in plan.files.paths for line in Path(path).read_text().splitlines()]
    parcels.put(run.place("out", StagingRequest(Parcels.kind, TARGET)), rows)
    run.staged("out", Staged((), rows=len(rows)))
    return rows


def make(shop: Shop, parcels: Parcels, run: RunSession | None = None) -> Summary:
    run = run or begin(shop, parcels)
    copy(shop, parcels, run)
    return run.commit()


def plain_run(shop: Shop) -> None:
    """Let a run write to the plain sink."""
    shop.put("a.txt", "a")
    run = shop.begin()
    run.plan("raw", FileSource(FILES, [str(shop.raw)]))
    run.place("out", StagingRequest(Plain.kind, TARGET))
    run.staged("out", Staged((), rows=1))
    run.commit()


def dying_at(wanted: Failpoint) -> Callable[[Failpoint], None]:
    def at(point: Failpoint) -> None:
        if point is wanted:
            raise KeyboardInterrupt

    return at


def die(shop: Shop, parcels: Parcels, point: Failpoint, run_id: str = "task") -> None:
    """Let a driver die, and its lease run out."""
    run = begin(shop, parcels, run_id)
    run._leased.environment = shop.environment.__class__(at=dying_at(point))
    with pytest.raises(KeyboardInterrupt):
        make(shop, parcels, run)
    run._leased.give_back()


def found(shop: Shop, code: str) -> list[Finding]:
    return [finding for finding in examine(shop.store) if finding.code == code]


def test_rows_become_visible_with_the_publish_and_staging_is_swept(shop: Shop, parcels: Parcels) -> None:
    shop.put("a.txt", "a")
    run = begin(shop, parcels)
    copy(shop, parcels, run)
    assert (parcels.visible(), parcels.staged()) == ([], ["a"])
    run.commit()
    assert (parcels.visible(), parcels.staged()) == (["a"], [])


@pytest.mark.parametrize("point", [Failpoint.PLACED, Failpoint.BEFORE_COMMIT, Failpoint.COMMITTED, Failpoint.PUBLISHED])
@pytest.mark.parametrize("heir", ["task", "another"])
def test_each_row_is_visible_once_wherever_a_driver_dies(
    shop: Shop, parcels: Parcels, point: Failpoint, heir: str
) -> None:
    shop.put("a.txt", "a")
    die(shop, parcels, point)
    shop.put("b.txt", "b")
    make(shop, parcels, begin(shop, parcels, heir, 2))
    assert (parcels.visible(), parcels.staged()) == (["a", "b"], [])


# ---- runs that have nothing new


def test_rows_of_a_run_without_input_are_left_out_where_the_script_says_so(shop: Shop, parcels: Parcels) -> None:
    run = begin(shop, parcels)
    run.plan("raw", FileSource(FILES, [str(shop.raw)]))
    place = run.place("out", StagingRequest(Parcels.kind, TARGET, when_empty="discard"))
    parcels.put(place, ["made of nothing"])
    run.staged("out", Staged((), rows=1))
    summary = run.commit()

    assert (parcels.visible(), parcels.staged(), summary.is_empty) == ([], [], True)
    assert dict(summary.outputs["out"])["discarded_rows"] == 1
    stored = shop.store.committed_run("copy", 1)
    assert stored is not None
    assert stored.outputs["out"].is_left_out
    assert "'left_out': True" in str(output_attribute("out", stored.outputs["out"]))


def test_rows_that_were_not_counted_are_not_taken_for_none(shop: Shop, parcels: Parcels) -> None:
    shop.put("a.txt", "a")
    make(shop, parcels)
    run = begin(shop, parcels)
    run.plan("raw", FileSource(FILES, [str(shop.raw)]))
    parcels.put(run.place("out", StagingRequest(Parcels.kind, TARGET)), ["made of something else"])
    run.staged("out", Staged((), rows=None))
    run.commit()
    assert parcels.visible() == ["a", "made of something else"]


# ---- pause and disable


@pytest.mark.parametrize("option", ["pause", "disable"])
def test_side_run_makes_each_row_visible_once_and_moves_nothing(shop: Shop, installed: Parcels, option: str) -> None:
    shop.put("a.txt", "a")
    run = shop.side(option=option)
    copy(shop, installed, run)
    assert (installed.visible(), installed.staged()) == ([], ["a"])
    summary = run.commit()

    assert (installed.visible(), installed.staged()) == (["a"], [])
    assert dict(summary.outputs["out"]) == {"rows": 1, "files": None, "bytes": None}
    assert shop.store.snapshot("copy").head is None
    make(shop, installed)
    assert (installed.visible(), installed.staged()) == (["a", "a"], [])


def test_side_run_that_fails_leaves_nothing(shop: Shop, installed: Parcels) -> None:
    shop.put("a.txt", "a")
    run = shop.side()
    copy(shop, installed, run)
    run.abort("the script failed")
    assert (installed.visible(), installed.staged()) == ([], [])


def test_side_run_leaves_what_a_run_has_staged_and_reads_a_window_again(shop: Shop, installed: Parcels) -> None:
    shop.put("a.txt", "a")
    make(shop, installed)
    shop.put("b.txt", "b")
    at_work = begin(shop, installed)
    copy(shop, installed, at_work)
    side = shop.side(from_run="0", to_run="1")
    copy(shop, installed, side)
    side.commit()
    assert (installed.visible(), installed.staged()) == (["a", "a"], ["b"])
    at_work.commit()
    assert (installed.visible(), installed.staged()) == (["a", "a", "b"], [])


def test_side_run_without_input_leaves_its_rows_out(shop: Shop, installed: Parcels) -> None:
    run = shop.side()
    run.plan("raw", FileSource(FILES, [str(shop.raw)]))
    installed.put(run.place("out", StagingRequest(Parcels.kind, TARGET, when_empty="discard")), ["made of nothing"])
    run.staged("out", Staged((), rows=1))
    assert run.commit().is_empty
    assert (installed.visible(), installed.staged()) == ([], [])


def test_sink_that_publishes_after_a_commit_alone_is_refused_to_a_side_run(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(SINKS.sinks, Plain.kind, Plain())
    run = shop.side()
    with pytest.raises(OptionError, match=r"'out'.*kind 'plain'.*after a commit alone.*Nothing of it was written"):
        run.place("out", StagingRequest(Plain.kind, TARGET))


# ---- replay


@pytest.mark.parametrize("point", [None, Failpoint.BEFORE_COMMIT, Failpoint.COMMITTED, Failpoint.PUBLISHED])
def test_replay_replaces_what_its_run_made_visible(shop: Shop, installed: Parcels, point: Failpoint | None) -> None:
    shop.put("a.txt", "a")
    make(shop, installed)
    shop.put("b.txt", "b")
    make(shop, installed)
    replay = ReplayRun.begin_replay(shop.store, "copy", shop.identity("again"), shop.environment, 1)
    if point is not None:
        replay._leased.environment = shop.environment.__class__(at=dying_at(point))
        with pytest.raises(KeyboardInterrupt):
            make(shop, installed, replay)
        replay._leased.give_back()
        begin(shop, installed).abort("it only had to settle")
    else:
        make(shop, installed, replay)
    assert (installed.visible(), installed.staged()) == (["a", "b"], [])


def test_replay_of_a_sink_that_replaces_nothing_is_refused(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(SINKS.sinks, Plain.kind, Plain())
    plain_run(shop)
    with pytest.raises(ChangeRefusedError, match=r"run 1 can't be replayed: it wrote to a sink \(plain\) that can't"):
        ReplayRun.begin_replay(shop.store, "copy", shop.identity(), shop.environment, 1)


# ---- clean


def test_clean_removes_what_undone_runs_made_visible_of_all_revisions(shop: Shop, installed: Parcels) -> None:
    for name in "abc":
        shop.put(f"{name}.txt", name)
        make(shop, installed)
    make(shop, installed, ReplayRun.begin_replay(shop.store, "copy", shop.identity(), shop.environment, 2))
    rewind(shop.store, "copy", "1", reason="a test", who="me", clean=True)
    assert installed.visible() == ["a", "b", "c"]
    make(shop, installed)
    assert (installed.visible(), installed.staged()) == (["a", "b", "c"], [])
    assert shop.store.head("copy").cleaning is None


def test_preview_of_a_clean_tells_of_what_goes_from_other_sinks(shop: Shop, installed: Parcels) -> None:
    for name in "ab":
        shop.put(f"{name}.txt", name)
        make(shop, installed)
    change = Change("reset", clean=True)
    seen = preview(shop.store, "copy", change).as_dict()
    assert (seen["files_to_clean"], seen["outputs_to_clean"]) == (0, 1)
    said = "\n".join(in_lines("test", seen, change))
    assert "removed by the next run: what 1 output in other sinks holds; there is no undo after that" in said
    assert "Written data stays" not in said
    ann, bob = Identity("ann", True, "os"), Identity("bob", True, "os")
    protect(shop.store, "copy", reason="a test", who=ann)
    asked = request(shop.store, "copy", change, reason="a test", who=ann)
    (kept,) = requests(shop.store, "copy")
    assert kept.preview["outputs_to_clean"] == 1
    done = approve(shop.store, "copy", asked.id, who=bob)
    assert (done["files_to_clean"], done["outputs_to_clean"]) == (0, 1)


@pytest.mark.parametrize("point", [Failpoint.BEFORE_COMMIT, Failpoint.COMMITTED])
def test_clean_takes_what_a_dead_driver_has_staged(shop: Shop, installed: Parcels, point: Failpoint) -> None:
    shop.put("a.txt", "a")
    make(shop, installed)
    shop.put("b.txt", "b")
    die(shop, installed, point)
    reset(shop.store, "copy", reason="a test", who="me", clean=True)
    assert installed.staged() == ["b"]
    make(shop, installed)
    assert (installed.visible(), installed.staged()) == (["a", "b"], [])


def test_clean_takes_what_an_earlier_change_has_left(shop: Shop, installed: Parcels) -> None:
    shop.put("a.txt", "a")
    make(shop, installed)
    reset(shop.store, "copy", reason="a test", who="me")
    make(shop, installed)
    assert installed.visible() == ["a", "a"]
    assert preview(shop.store, "copy", Change("reset", clean=True)).left_over is None
    reset(shop.store, "copy", reason="a test", who="me", clean=True)
    make(shop, installed)
    assert installed.visible() == ["a"]


def test_nothing_is_said_to_be_left_where_the_sink_finds_nothing(shop: Shop, installed: Parcels) -> None:
    shop.put("a.txt", "a")
    make(shop, installed)
    reset(shop.store, "copy", reason="a test", who="me")
    with installed.db:
        installed.db.execute("DELETE FROM parcels")
    assert preview(shop.store, "copy", Change("reset")).left_over == 0


def test_what_is_left_in_a_sink_that_does_not_know_is_not_known(shop: Shop, parcels: Parcels) -> None:
    shop.put("a.txt", "a")
    make(shop, parcels)
    reset(shop.store, "copy", reason="a test", who="me")
    assert preview(shop.store, "copy", Change("reset")).left_over is None


def test_clean_is_left_to_whoever_knows_the_sink(shop: Shop, parcels: Parcels, monkeypatch: pytest.MonkeyPatch) -> None:
    shop.put("a.txt", "a")
    shop.put("b.txt", "b")
    make(shop, parcels)
    with monkeypatch.context() as patched:
        patched.setitem(SINKS.sinks, Parcels.kind, parcels)
        reset(shop.store, "copy", reason="a test", who="me", clean=True)
    with pytest.raises(SinkUnknownError, match=r"kind 'parcels'.*Nothing was"):
        shop.begin()
    assert parcels.visible() == ["a", "b"]
    (finding,) = (each for each in found(shop, "kind-unknown") if each.where == "HEAD, cleaning")
    assert "'parcels'" in finding.what
    assert "the clean stays to be done" in finding.what
    make(shop, parcels)
    assert parcels.visible() == ["a", "b"]


def test_clean_of_a_sink_that_has_none_is_refused(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(SINKS.sinks, Plain.kind, Plain())
    plain_run(shop)
    with pytest.raises(CleanRefusedError, match=r"output 'out' of run 1 went to a sink \(plain\) that can't take rows"):
        reset(shop.store, "copy", reason="a test", who="me", clean=True)
    assert shop.store.head("copy").cleaning is None


def test_stored_clean_that_names_a_run_of_living_history_removes_nothing(shop: Shop, installed: Parcels) -> None:
    shop.put("a.txt", "a")
    make(shop, installed)
    body = CleanList(parts=(CleanPart(Parcels.kind, RunKey(1, 1), "out"),)).encode()
    changed = {"cleaning": payload_value(shop.store.blobs.refer(body, 4096))}
    shop.store.table.transact([Update(shop.store.keys("copy").head, set=changed)])

    with pytest.raises(OutOfBoundsError, match=r"HEAD, cleaning names .parcels: run 1\.1, output 'out'"):
        begin(shop, installed)
    assert installed.visible() == ["a"]


NO_PARTS: list[object] = [
    {"sink": 1, "run": "1.1", "output": "out", "listed": {}},
    {"sink": "files", "run": "1.1", "output": "out", "listed": {}},
    {"sink": "x"},
]


@pytest.mark.parametrize("part", [{}, "text", *NO_PARTS])
def test_stored_clean_with_a_part_that_is_none_is_damage(part: object) -> None:
    body = deflated({"folders": [], "files": [], "parts": [part]})
    with pytest.raises(StateCorruptError, match="a stored clean list can't be read"):
        CleanList.decode(body)


def test_clean_list_of_files_is_stored_as_it_always_was() -> None:
    listed = CleanList(("/s/1.1",), ("/t/run-1.1-a",), {"/t/run-1.1-a": "v"})
    stored = deflated({"folders": ["/s/1.1"], "files": ["/t/run-1.1-a"], "versions": {"/t/run-1.1-a": "v"}})
    assert listed.encode() == stored
    assert CleanList.decode(stored) == listed


# ---- consumers


def test_consumer_never_passes_what_is_not_in_files(shop: Shop, installed: Parcels) -> None:
    shop.put("a.txt", "a")
    make(shop, installed)
    with pytest.raises(SourceError, match=r"run 1 of upstream 'copy'.*'out'.*kind 'parcels'.*Nothing was read"):
        shop.run("report", upstream="copy")


# ---- what the doctor says


def test_doctor_names_the_open_run_whose_sink_is_not_known_here(shop: Shop, parcels: Parcels) -> None:
    shop.put("a.txt", "a")
    die(shop, parcels, Failpoint.BEFORE_COMMIT)
    (finding,) = (each for each in found(shop, "kind-unknown") if each.where == "RUN 1.1")
    assert finding.severity.value == "warning"
    assert "open run 1.1" in finding.what
    assert "'out'" in finding.what
    assert "'parcels'" in finding.what
    assert "where the sink is known" in finding.repair


def test_doctor_names_the_due_run_whose_sink_is_not_known_here(shop: Shop, parcels: Parcels) -> None:
    shop.put("a.txt", "a")
    die(shop, parcels, Failpoint.COMMITTED)
    (finding,) = (each for each in found(shop, "kind-unknown") if each.where == "RUN 1.1")
    assert "publish is due of run 1.1" in finding.what


def test_doctor_does_not_name_a_run_at_work_nor_one_of_a_known_sink(
    shop: Shop, parcels: Parcels, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop.put("a.txt", "a")
    run = begin(shop, parcels)
    copy(shop, parcels, run)
    assert [each for each in found(shop, "kind-unknown") if each.where == "RUN 1.1"] == []
    run.abort("it was only looked at")

    monkeypatch.setitem(SINKS.sinks, Parcels.kind, parcels)
    assert [each for each in found(shop, "kind-unknown") if each.where == "RUN 1.1"] == []


def test_doctor_finds_what_undone_runs_left_in_the_sink(shop: Shop, installed: Parcels) -> None:
    shop.put("a.txt", "a")
    make(shop, installed)
    assert found(shop, "undone-files-left") == []
    reset(shop.store, "copy", reason="a test", who="me")
    (finding,) = found(shop, "undone-files-left")
    assert "output 'out' of runs that were undone (1) is still visible in its sink, of kind 'parcels'" in finding.what


def test_doctor_looks_at_no_staging_of_the_sink_as_a_folder(shop: Shop, installed: Parcels) -> None:
    shop.put("a.txt", "a")
    make(shop, installed)
    assert shop.store.head("copy").staging == ("parcels:test/copy",)
    assert {each.code for each in examine(shop.store)} == {"kind-unknown"}


def test_repair_takes_foreign_staging_off_the_list_and_leaves_that_of_other_sinks(
    shop: Shop, installed: Parcels
) -> None:
    shop.put("a.txt", "a")
    make(shop, installed)
    roots: list[Value] = ["parcels:test/copy", "unknown:dw/copy", "/tmp/elsewhere", "parcels:test/other"]
    shop.store.table.transact([Update(shop.store.keys("copy").head, set={"staging": roots})])
    (finding,) = found(shop, "path-foreign")
    repair(shop.store, [finding], who="me")
    assert shop.store.head("copy").staging == ("parcels:test/copy", "unknown:dw/copy")


def test_collection_removes_what_killed_side_runs_left_in_the_sink_after_the_retention(
    shop: Shop, installed: Parcels
) -> None:
    shop.put("a.txt", "a")
    make(shop, installed)
    shop.put("b.txt", "b")
    killed = shop.side()
    copy(shop, installed, killed)
    assert collect(shop.store).jobs[0].folders == ()
    assert installed.staged() == ["b"]

    later = shop.store.now() + timedelta(days=400)
    (would_go,) = collect(shop.store, clock=lambda: later, dry_run=True).jobs[0].folders
    assert would_go.startswith("parcels:aside/test/copy/")
    assert installed.staged() == ["b"]
    assert collect(shop.store, clock=lambda: later).jobs[0].folders == (would_go,)
    assert (installed.staged(), installed.visible()) == ([], ["a"])


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (LookupError("denied"), "the kind of sink 'parcels' failed: LookupError: denied"),
        (PublishError("not now"), "the next collection tries again: not now"),
    ],
)
@pytest.mark.parametrize("call", ["left_aside", "remove_aside"])
def test_collection_goes_on_where_the_sink_fails(
    shop: Shop,
    installed: Parcels,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    call: str,
    error: Exception,
    said: str,
) -> None:
    def fail(*_: object) -> None:
        raise error

    shop.put("a.txt", "a")
    make(shop, installed)
    shop.put("b.txt", "b")
    copy(shop, installed, shop.side())
    monkeypatch.setattr(installed, call, fail)
    later = shop.store.now() + timedelta(days=400)
    assert collect(shop.store, clock=lambda: later).jobs[0].folders == ()
    assert said in caplog.text


def test_collection_leaves_staging_of_other_sinks_alone_and_does_not_warn(
    shop: Shop, installed: Parcels, caplog: pytest.LogCaptureFixture
) -> None:
    shop.put("a.txt", "a")
    make(shop, installed)
    later = shop.store.now() + timedelta(days=400)
    collect(shop.store, clock=lambda: later)
    assert [text for text in caplog.messages if "is not looked into" in text] == []
    shop.put("b.txt", "b")
    make(shop, installed)
    assert installed.visible() == ["a", "b"]


def test_moved_job_keeps_its_own_staging_in_other_sinks(shop: Shop, installed: Parcels) -> None:
    landed = Origin("test", "test", is_copy=False, is_move=True)
    roots = ("parcels:test/copy", "unknown:dw/copy", "parcels:test/other", "/tmp/elsewhere")
    head = Head(staging=roots)
    done = landed.landing("copy", {"HEAD": {"staging": list(roots)}}, head, {})
    assert done.items["HEAD"]["staging"] == ["parcels:test/copy", "unknown:dw/copy"]


def test_job_moved_to_another_namespace_keeps_no_staging_there_of_sinks_that_are_not_known(
    installed: Parcels,
) -> None:
    landed = Origin("old", "test", is_copy=False, is_move=True)
    roots = ("parcels:test/copy", "unknown:old/copy", "parcels:old/copy")
    done = landed.landing("copy", {"HEAD": {"staging": list(roots)}}, Head(staging=roots), {})
    assert done.items["HEAD"]["staging"] == ["parcels:test/copy"]
    assert done.dropped == ("the staging folder 'unknown:old/copy'", "the staging folder 'parcels:old/copy'")
