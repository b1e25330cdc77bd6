"""A staged sink of one's own that is no folder goes the way of files, or is refused with what to do instead."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from airflow_bookmarks.core.errors import ChangeRefusedError, OptionError, SourceError
from airflow_bookmarks.core.rules.territory import Territory
from airflow_bookmarks.core.run import OutputEntry, RunKey
from airflow_bookmarks.lifecycle.maintenance.doctor import Finding, examine
from airflow_bookmarks.lifecycle.protocol.failpoint import Failpoint
from airflow_bookmarks.lifecycle.run.enabled import ActiveRun
from airflow_bookmarks.lifecycle.run.replay import ReplayRun
from airflow_bookmarks.lifecycle.run.session import RunSession
from airflow_bookmarks.lifecycle.state.summary import Summary
from airflow_bookmarks.sinks.registry import SINKS
from airflow_bookmarks.sinks.sink import StagedSink, StoredOutput
from airflow_bookmarks.sinks.staging import Staged, StagingRequest
from airflow_bookmarks.sources.files.planner import FileSource
from airflow_bookmarks.store.codec.item import output_attribute
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


def dying_at(wanted: Failpoint) -> Callable[[Failpoint], None]:
    def at(point: Failpoint) -> None:
        if point is wanted:
            raise KeyboardInterrupt

    return at


def die(shop: Shop, parcels: Parcels, point: Failpoint, run_id: str = "task") -> None:
    """Let a driver die, and its lease run out."""
    run = begin(shop, parcels, run_id)
    run._leased.machine = shop.machine.__class__(at=dying_at(point))
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
    assert shop.store.look("copy").head is None
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
    replay = ReplayRun.begin_replay(shop.store, "copy", shop.caller("again"), shop.machine, 1)
    if point is not None:
        replay._leased.machine = shop.machine.__class__(at=dying_at(point))
        with pytest.raises(KeyboardInterrupt):
            make(shop, installed, replay)
        replay._leased.give_back()
        begin(shop, installed).abort("it only had to settle")
    else:
        make(shop, installed, replay)
    assert (installed.visible(), installed.staged()) == (["a", "b"], [])


def test_replay_of_a_sink_that_replaces_nothing_is_refused(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(SINKS.sinks, Plain.kind, Plain())
    shop.put("a.txt", "a")
    run = shop.begin()
    run.plan("raw", FileSource(FILES, [str(shop.raw)]))
    run.place("out", StagingRequest(Plain.kind, TARGET))
    run.staged("out", Staged((), rows=1))
    run.commit()
    with pytest.raises(ChangeRefusedError, match=r"run 1 can't be replayed: it wrote to a sink \(plain\) that can't"):
        ReplayRun.begin_replay(shop.store, "copy", shop.caller(), shop.machine, 1)


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
