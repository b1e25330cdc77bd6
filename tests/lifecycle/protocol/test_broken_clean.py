"""A sink of one's own that goes wrong where a clean asks it is named, and nothing of it is stored."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection
from dataclasses import replace
from pathlib import Path

import pytest

from airflow_bookmarks.core.errors import CleanRefusedError, SourceError
from airflow_bookmarks.core.run import RunKey
from airflow_bookmarks.lifecycle.changes.change import Change, reset
from airflow_bookmarks.lifecycle.changes.preview import preview
from airflow_bookmarks.lifecycle.maintenance.doctor import examine
from airflow_bookmarks.sinks.clean import CleanGround, CleanList, CleanPart
from airflow_bookmarks.sinks.registry import SINKS
from airflow_bookmarks.sinks.sink import StoredOutput
from airflow_bookmarks.sinks.staging import Staged, StagingRequest
from tests.lifecycle.parcels import Parcels, Return
from tests.lifecycle.protocol.test_adopt import begin as begin_rows
from tests.lifecycle.protocol.test_adopt import plan_and_place
from tests.lifecycle.protocol.test_own_staged_sink import make
from tests.lifecycle.rows import ErasableRows
from tests.lifecycle.shop import Shop


class LockedParcels(Parcels):
    """Its database does not answer where a clean asks."""

    def left(self, output: StoredOutput) -> CleanList | None:
        raise sqlite3.OperationalError("database is locked")

    def prepare_clean(self, ground: CleanGround, listed: CleanList) -> list[Return]:
        raise sqlite3.OperationalError("database is locked")


class Mislisting(Parcels):
    """It lists what it is told to."""

    wrong = CleanList()

    def list_clean(self, output: StoredOutput, replaced: Collection[str]) -> CleanList:
        return self.wrong

    def left(self, output: StoredOutput) -> CleanList | None:
        return self.wrong


class Unlisting(ErasableRows):
    """It lists nothing where nothing has landed."""

    def list_clean(self, output: StoredOutput, replaced: Collection[str]) -> CleanList:
        return CleanList()


PART = CleanPart(Parcels.kind, RunKey(1, 1), "out")
WRONG = {
    "files": CleanList(files=("/lake/clean/a",)),
    "folders": CleanList(folders=("/lake/clean",)),
    "sink": CleanList(parts=(replace(PART, sink="rows"),)),
    "run": CleanList(parts=(replace(PART, run=RunKey(2, 1)),)),
    "output": CleanList(parts=(PART, replace(PART, output="other"))),
}


def undone_in(shop: Shop, sink: Parcels, monkeypatch: pytest.MonkeyPatch, *, clean: bool = False) -> None:
    monkeypatch.setitem(SINKS.sinks, sink.kind, sink)
    shop.put("a.txt", "a")
    make(shop, sink)
    reset(shop.store, "copy", reason="a test", who="me", clean=clean)


def test_look_at_what_is_left_goes_on_where_a_sink_fails(
    shop: Shop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    undone_in(shop, LockedParcels(tmp_path / "parcels.db"), monkeypatch)
    assert preview(shop.store, "copy", Change("reset")).left_over is None
    assert "the kind of sink 'parcels' failed: OperationalError: database is locked" in caplog.text
    (finding,) = (each for each in examine(shop.store) if each.code == "not-examined")
    assert "'parcels' failed" in finding.what
    with pytest.raises(SourceError, match="'parcels' failed"):
        reset(shop.store, "copy", reason="a test", who="me", clean=True)


def test_doctor_goes_on_where_a_sink_can_not_check_its_part(
    shop: Shop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    undone_in(shop, LockedParcels(tmp_path / "parcels.db"), monkeypatch, clean=True)
    (finding,) = (each for each in examine(shop.store) if each.code == "not-examined")
    assert "'parcels' failed" in finding.what


@pytest.mark.parametrize("wrong", WRONG.values(), ids=WRONG)
def test_clean_that_lists_what_is_none_of_its_output_is_refused_and_not_stored(
    shop: Shop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wrong: CleanList
) -> None:
    sink = Mislisting(tmp_path / "parcels.db")
    monkeypatch.setitem(SINKS.sinks, sink.kind, sink)
    shop.put("a.txt", "a")
    make(shop, sink)
    sink.wrong = wrong
    with pytest.raises(CleanRefusedError, match=r"output 'out' of run 1 is listed by its sink, of kind 'parcels', as"):
        reset(shop.store, "copy", reason="a test", who="me", clean=True)
    assert shop.store.head("copy").cleaning is None

    reset(shop.store, "copy", reason="a test", who="me")
    assert preview(shop.store, "copy", Change("reset")).left_over is None
    with pytest.raises(SourceError, match=r"run 1\.1, output 'out' is listed by its sink, of kind 'parcels', as"):
        reset(shop.store, "copy", reason="a test", who="me", clean=True)
    assert shop.store.head("copy").cleaning is None


def test_clean_that_could_burn_no_token_of_an_open_run_is_refused(
    shop: Shop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sink = Unlisting(tmp_path / "rows.db")
    monkeypatch.setitem(SINKS.sinks, sink.kind, sink)
    shop.put("a.txt", "a")
    plan_and_place(shop, begin_rows(shop, sink, 1))
    with pytest.raises(CleanRefusedError, match=r"output 'out' of run 1 is not listed by its sink, of kind 'rows'"):
        reset(shop.store, "copy", reason="a test", who="me", force=True, clean=True)


def test_log_of_staging_that_stays_names_its_place(
    shop: Shop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    sink = Parcels(tmp_path / "parcels.db")
    monkeypatch.setitem(SINKS.sinks, sink.kind, sink)
    run = shop.side()
    place = run.place("out", StagingRequest(Parcels.kind, "dw.clean"))
    run.staged("out", Staged((), rows=0))
    monkeypatch.setattr(sink, "sweep_aside", _deny)
    run.abort("an error of the script")
    assert caplog.messages[-1].endswith(f"denied. Readers don't see it; remove {place}")


def _deny(*_: object) -> None:
    raise PermissionError("denied")
