"""A sink of one's own that raises what it likes: the error names it, and says what stays to be done and what to do."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from airflow_bookmarks.core.errors import CleanRefusedError, OptionError, PublishError, SourceError
from airflow_bookmarks.core.rules.territory import Territory
from airflow_bookmarks.core.run import OutputEntry, RunKey, RunState
from airflow_bookmarks.lifecycle.changes.change import reset
from airflow_bookmarks.lifecycle.protocol.failpoint import Failpoint
from airflow_bookmarks.lifecycle.run.replay import ReplayRun
from airflow_bookmarks.sinks.registry import SINKS
from airflow_bookmarks.sinks.staging import StagingRequest
from tests.lifecycle.parcels import Delivery, Parcels
from tests.lifecycle.protocol.test_adopt import begin as begin_rows
from tests.lifecycle.protocol.test_adopt import fence_of, plan_and_place
from tests.lifecycle.protocol.test_adopt import finish as finish_rows
from tests.lifecycle.protocol.test_own_staged_sink import begin, copy, die, make
from tests.lifecycle.rows import ErasableRows
from tests.lifecycle.shop import Shop

LOCKED = "OperationalError: database is locked"
PARCELS = f"the kind of sink 'parcels' failed: {LOCKED}"
ROWS = f"the kind of sink 'rows' failed: {LOCKED}"

Lock = Callable[[object, str], None]


@pytest.fixture
def parcels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Parcels:
    """Open an empty sink that stages, and make it known to each process, as an installed package does."""
    opened = Parcels(tmp_path / "parcels.db")
    monkeypatch.setitem(SINKS.sinks, opened.kind, opened)
    return opened


@pytest.fixture
def rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ErasableRows:
    """Open an empty sink that commits by itself, and make it known to each process."""
    opened = ErasableRows(tmp_path / "rows.db")
    monkeypatch.setitem(SINKS.sinks, opened.kind, opened)
    return opened


@pytest.fixture
def lock(monkeypatch: pytest.MonkeyPatch) -> Lock:
    """Let a call of a sink fail as its database does, until `monkeypatch.undo`."""

    def fail(*_: object) -> None:
        raise sqlite3.OperationalError("database is locked")

    return lambda sink, call: monkeypatch.setattr(sink, call, fail)


def unlock(sink: object, call: str) -> None:
    """Let the calls of an object be those of its class again."""
    delattr(sink, call)


# ---- settling an open run


@pytest.mark.parametrize("call", ["burn", "landed"])
def test_open_run_stays_open_where_its_sink_fails(shop: Shop, rows: ErasableRows, lock: Lock, call: str) -> None:
    shop.put("a.txt", "a")
    dead = begin_rows(shop, rows, 1)
    rows.write(fence_of(dead), plan_and_place(shop, dead))
    lock(rows, call)
    with pytest.raises(SourceError) as error:
        begin_rows(shop, rows, 2)
    assert f"job 'copy', run 1.1, output 'out': {ROWS}. The run is neither committed nor given up" in str(error.value)
    assert "the next run of the job" in str(error.value)
    assert [run.state for run in shop.store.runs("copy")] == [RunState.PLANNED]

    unlock(rows, call)
    finish_rows(shop, rows, begin_rows(shop, rows, 3))
    assert rows.lines() == ["a"]


# ---- sweeps


def test_sweep_that_fails_leaves_a_published_run_published(
    shop: Shop, parcels: Parcels, lock: Lock, caplog: pytest.LogCaptureFixture
) -> None:
    shop.put("a.txt", "a")
    die(shop, parcels, Failpoint.BEFORE_COMMIT)
    lock(parcels, "sweep")
    assert make(shop, parcels).is_published
    assert f"'parcels:test/copy' is left, and the next run sweeps it: {PARCELS}" in caplog.text
    assert (parcels.visible(), parcels.staged()) == (["a"], ["a"])

    unlock(parcels, "sweep")
    begin(shop, parcels)
    assert parcels.staged() == []


@pytest.mark.parametrize("error", [PublishError("not now"), OptionError("not here")])
def test_sweep_that_fails_with_any_error_of_the_package_leaves_a_published_run_published(
    shop: Shop, parcels: Parcels, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, error: Exception
) -> None:
    def fail(*_: object) -> None:
        raise error

    shop.put("a.txt", "a")
    run = begin(shop, parcels)
    monkeypatch.setattr(parcels, "sweep", fail)
    assert make(shop, parcels, run).is_published
    assert f"the next run sweeps it: {error}" in caplog.text


def test_sweep_that_fails_does_not_stop_a_run_whose_leftovers_nobody_can_publish(
    shop: Shop, parcels: Parcels, lock: Lock, caplog: pytest.LogCaptureFixture
) -> None:
    shop.put("a.txt", "a")
    die(shop, parcels, Failpoint.BEFORE_COMMIT)
    lock(parcels, "sweep")
    make(shop, parcels)
    assert parcels.visible() == ["a"]
    assert f"what earlier runs left there stays, and no run needs it: {PARCELS}" in caplog.text


def test_sweep_that_fails_stops_a_run_over_which_a_dropped_publish_could_still_publish(
    shop: Shop, parcels: Parcels, lock: Lock
) -> None:
    shop.put("a.txt", "a")
    die(shop, parcels, Failpoint.COMMITTED)
    reset(shop.store, "copy", reason="a test", who="me", force=True)
    lock(parcels, "sweep")
    with pytest.raises(SourceError) as error:
        begin(shop, parcels)
    assert f"job 'copy', staging root 'test/copy': {PARCELS}. A publish that was dropped has staged there" in str(
        error.value
    )
    assert "Nothing was planned, read or written" in str(error.value)


class Labelled(Parcels):
    """A sink that names its places as it likes: not below its staging root."""

    def stage(
        self, territory: Territory, key: RunKey, output: str, request: StagingRequest
    ) -> tuple[OutputEntry, str | None]:
        entry, root = super().stage(territory, key, output, request)
        return replace(entry, place=f"label of {entry.place}"), root


def test_sweep_that_fails_stops_a_run_however_the_sink_names_its_places(
    shop: Shop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lock: Lock
) -> None:
    labelled = Labelled(tmp_path / "labelled.db")
    monkeypatch.setitem(SINKS.sinks, labelled.kind, labelled)
    shop.put("a.txt", "a")
    die(shop, labelled, Failpoint.COMMITTED)
    reset(shop.store, "copy", reason="a test", who="me", force=True)
    lock(labelled, "sweep")
    with pytest.raises(SourceError, match="A publish that was dropped has staged there"):
        begin(shop, labelled)


def test_staging_root_that_a_sink_fails_to_check_stops_the_run_and_is_named(
    shop: Shop, parcels: Parcels, lock: Lock
) -> None:
    shop.put("a.txt", "a")
    make(shop, parcels)
    lock(parcels, "check_root")
    with pytest.raises(SourceError) as error:
        begin(shop, parcels)
    assert f"job 'copy', staging root 'test/copy': {PARCELS}. Nothing was swept, read or written" in str(error.value)


# ---- cleans


@pytest.mark.parametrize("call", ["why_not_clean", "list_clean", "check_visible"])
def test_clean_is_refused_where_a_sink_fails_to_say_what_goes(
    shop: Shop, parcels: Parcels, lock: Lock, call: str
) -> None:
    shop.put("a.txt", "a")
    make(shop, parcels)
    lock(parcels, call)
    with pytest.raises(CleanRefusedError) as error:
        reset(shop.store, "copy", reason="a test", who="me", clean=True)
    what = f"job 'copy': output 'out' of run 1 can't be cleaned: {PARCELS}. Nothing was changed. Mend the sink, or"
    assert what in str(error.value)
    assert shop.store.head("copy").cleaning is None


def test_clean_that_fails_to_burn_a_token_removes_nothing_and_stays_to_be_done(
    shop: Shop, rows: ErasableRows, lock: Lock
) -> None:
    shop.put("a.txt", "a")
    dead = begin_rows(shop, rows, 1)
    rows.write(fence_of(dead), plan_and_place(shop, dead))
    reset(shop.store, "copy", reason="a test", who="me", force=True, clean=True)
    lock(rows, "burn")
    with pytest.raises(SourceError) as error:
        begin_rows(shop, rows, 2)
    assert f"job 'copy', run 1.1, output 'out': {ROWS}. Nothing was removed: the clean stays to be done" in str(
        error.value
    )
    assert rows.lines() == ["a"]

    unlock(rows, "burn")
    begin_rows(shop, rows, 3)
    assert (rows.lines(), shop.store.head("copy").cleaning) == ([], None)


def test_clean_that_a_sink_fails_to_check_removes_nothing_and_stays_to_be_done(
    shop: Shop, parcels: Parcels, lock: Lock
) -> None:
    shop.put("a.txt", "a")
    make(shop, parcels)
    reset(shop.store, "copy", reason="a test", who="me", clean=True)
    lock(parcels, "prepare_clean")
    with pytest.raises(SourceError) as error:
        begin(shop, parcels)
    assert f"job 'copy', clean of output 'out': {PARCELS}. Nothing was removed: the clean stays to be done" in str(
        error.value
    )
    assert parcels.visible() == ["a"]


@pytest.mark.parametrize("call", ["remove_staged", "remove_visible"])
def test_clean_that_fails_on_its_way_stays_to_be_done(shop: Shop, parcels: Parcels, lock: Lock, call: str) -> None:
    shop.put("a.txt", "a")
    make(shop, parcels)
    reset(shop.store, "copy", reason="a test", who="me", clean=True)
    lock(parcels, call)
    with pytest.raises(PublishError) as error:
        begin(shop, parcels)
    assert f"job 'copy', clean of output 'out': {PARCELS}. What was removed stays" in str(error.value)

    unlock(parcels, call)
    begin(shop, parcels)
    assert (parcels.visible(), shop.store.head("copy").cleaning) == ([], None)


# ---- stages and replays


@pytest.mark.parametrize("call", ["stage", "stage_aside"])
def test_output_that_a_sink_fails_to_stage_is_named(shop: Shop, parcels: Parcels, lock: Lock, call: str) -> None:
    shop.put("a.txt", "a")
    run = begin(shop, parcels) if call == "stage" else shop.side()
    lock(parcels, call)
    with pytest.raises(SourceError) as error:
        copy(shop, parcels, run)
    assert f"job 'copy', output 'out': {PARCELS}. Nothing of it was written" in str(error.value)


def test_replay_that_a_sink_fails_to_allow_is_refused_by_name(shop: Shop, parcels: Parcels, lock: Lock) -> None:
    shop.put("a.txt", "a")
    make(shop, parcels)
    lock(parcels, "why_not_replay")
    with pytest.raises(SourceError) as error:
        ReplayRun.begin_replay(shop.store, "copy", shop.identity(), shop.environment, 1)
    assert f"{PARCELS}. Nothing was planned or read" in str(error.value)


# ---- publishes


@pytest.mark.parametrize(("owner", "call"), [(Parcels, "prepare"), (Delivery, "publish")])
def test_publish_that_fails_stays_due(
    shop: Shop, parcels: Parcels, monkeypatch: pytest.MonkeyPatch, owner: object, call: str
) -> None:
    shop.put("a.txt", "a")
    run = begin(shop, parcels)
    with monkeypatch.context() as broken:
        broken.setattr(owner, call, _deny)
        with pytest.raises(PublishError) as error:
            make(shop, parcels, run)
    assert "job 'copy', run 1.1, output 'out': the kind of sink 'parcels' failed: LookupError: denied" in str(
        error.value
    )
    assert "its publish stays due" in str(error.value)
    run._leased.give_back()
    begin(shop, parcels)
    assert parcels.visible() == ["a"]


@pytest.mark.parametrize(("owner", "call"), [(Parcels, "prepare_aside"), (Delivery, "publish")])
def test_publish_of_a_pause_run_that_fails_is_named_and_its_staging_removed(
    shop: Shop, parcels: Parcels, monkeypatch: pytest.MonkeyPatch, owner: object, call: str
) -> None:
    shop.put("a.txt", "a")
    run = shop.side()
    copy(shop, parcels, run)
    with monkeypatch.context() as broken:
        broken.setattr(owner, call, _deny)
        with pytest.raises(PublishError) as error:
            run.commit()
    assert "job 'copy', pause run, output 'out': the kind of sink 'parcels' failed: LookupError: denied" in str(
        error.value
    )
    run.abort("it failed")
    assert (parcels.visible(), parcels.staged()) == ([], [])


def test_sweep_of_a_pause_run_that_fails_is_logged_and_does_not_hide_how_it_ended(
    shop: Shop, parcels: Parcels, lock: Lock, caplog: pytest.LogCaptureFixture
) -> None:
    shop.put("a.txt", "a")
    run = shop.side()
    copy(shop, parcels, run)
    lock(parcels, "sweep_aside")
    assert run.commit().is_published
    assert f"what the pause run staged could not be removed: {PARCELS}" in caplog.text


def _deny(*_: object) -> None:
    raise LookupError("denied")
