"""A staged sink of one's own that is no folder goes the way of files, or is refused with what to do instead."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from airflow_bookmarks.lifecycle.maintenance.doctor import Finding, examine
from airflow_bookmarks.lifecycle.protocol.failpoint import Failpoint
from airflow_bookmarks.lifecycle.run.enabled import ActiveRun
from airflow_bookmarks.lifecycle.state.summary import Summary
from airflow_bookmarks.sinks.registry import SINKS
from airflow_bookmarks.sinks.staging import Staged, StagingRequest
from airflow_bookmarks.sources.files.planner import FileSource
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


def begin(shop: Shop, parcels: Parcels, run_id: str | None = None, attempt: int = 1) -> ActiveRun:
    return shop.begin(run_id=run_id, attempt=attempt, sinks=SINKS.extended(parcels))


def copy(shop: Shop, parcels: Parcels, run: ActiveRun) -> list[str]:
    """Stage the lines of the planned files in the sink."""
    plan = run.plan("raw", FileSource(FILES, [str(shop.raw)]))
    rows = [line for path in plan.files.paths for line in Path(path).read_text().splitlines()]
    parcels.put(run.place("out", StagingRequest(Parcels.kind, TARGET)), rows)
    run.staged("out", Staged((), rows=len(rows)))
    return rows


def make(shop: Shop, parcels: Parcels, run: ActiveRun | None = None) -> Summary:
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
    run._machine = shop.machine.__class__(at=dying_at(point))
    with pytest.raises(KeyboardInterrupt):
        make(shop, parcels, run)
    run._give_back()


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
