"""Runs over a source of a user's own that says what can't be stored: refused before any row is visible."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from airflow_bookmarks.core.errors import MisuseError
from airflow_bookmarks.core.job import RunIdentity
from airflow_bookmarks.core.option import Choice
from airflow_bookmarks.core.position import Position
from airflow_bookmarks.core.run import PlanEntry
from airflow_bookmarks.lifecycle.protocol.lease import RunEnvironment
from airflow_bookmarks.lifecycle.run.detached import DetachedRun
from airflow_bookmarks.lifecycle.run.enabled import ActiveRun
from airflow_bookmarks.sinks.registry import SINKS
from airflow_bookmarks.sinks.sink import CommittingSink, StoredOutput
from airflow_bookmarks.sinks.staging import Staged, StagingRequest
from airflow_bookmarks.sources.registry import registered
from airflow_bookmarks.sources.source import PlanInput
from airflow_bookmarks.store.bookmark_store import BookmarkStore, LeaseGrant
from airflow_bookmarks.testing.driver import DriverStore
from airflow_bookmarks.testing.memory import memory_store
from tests.lifecycle.parcels import Parcels
from tests.lifecycle.shop import short_lease
from tests.lifecycle.sqlite_keys import KeyKind, KeyPlan, KeySource, keys_of, make_table, put


@dataclass(frozen=True)
class ToldPlan(KeyPlan):
    """Keys with more stats."""

    more: dict[str, Any] = field(default_factory=dict)

    def stats(self) -> dict[str, Any]:
        return {**super().stats(), **self.more}


@dataclass
class ToldSource(KeySource):
    """Keys whose plans have more stats."""

    database: str
    more: dict[str, Any]

    def plan(self, found: PlanInput) -> KeyPlan:
        return ToldPlan(**vars(super().plan(found)), more=self.more)


@pytest.fixture
def database(tmp_path: Path) -> str:
    """Make a table with two keys."""
    database = str(tmp_path / "crm.db")
    make_table(database)
    put(database, 1, 2)
    return database


@pytest.fixture
def store() -> Iterator[BookmarkStore]:
    """Open an empty store in a process that knows the kind."""
    with memory_store() as store, registered(KeyKind()):
        yield store


@pytest.fixture
def parcels(tmp_path: Path) -> Parcels:
    """Open an empty sink that publishes."""
    return Parcels(tmp_path / "parcels.db")


def write(run: DetachedRun, source: KeySource, parcels: Parcels) -> None:
    """Read the keys, stage them, and commit."""
    keys = keys_of(run.plan("people", source))
    parcels.put(run.place("out", StagingRequest(Parcels.kind, "parcels")), [f"key {key}" for key in keys])
    run.staged("out", Staged((), rows=len(keys)))
    run.commit()


def run_aside(store: BookmarkStore, source: KeySource, parcels: Parcels, option: str, **how: Any) -> DetachedRun:
    identity, choice, sinks = RunIdentity(store.new_id(), 1), Choice.of(option), SINKS.extended(parcels)
    run = DetachedRun.begin(store, "copy", identity, choice, RunEnvironment(), sinks=sinks, **how)
    try:
        write(run, source, parcels)
    except MisuseError as error:
        run.abort(str(error))
        raise
    return run


@pytest.mark.parametrize("option", ["pause", "disable"])
@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"options": {"partition_time": "day"}}, "its stats name 'options'"),
        ({"partitions": {"new": 1}}, "its stats name 'partitions'"),
        ({"bytes": -5}, "the stat 'bytes' is no count"),
    ],
)
def test_fact_that_no_side_record_can_have_is_refused_before_rows_are_visible(
    store: BookmarkStore, database: str, parcels: Parcels, option: str, more: dict[str, Any], why: str
) -> None:
    with pytest.raises(MisuseError, match=f"{why}.*Nothing was read or changed"):
        run_aside(store, ToldSource(database, more), parcels, option)
    assert (parcels.visible(), parcels.staged()) == ([], [])

    run_aside(store, ToldSource(database, {"region": "eu"}), parcels, option)
    assert parcels.visible() == ["key 1", "key 2"]
    assert len(list(store.side_items("copy"))) == 1


# ---- loops of batches


class StuckSource(KeySource):
    """Keys of which more is always left, and whose position never moves."""

    def plan(self, found: PlanInput) -> KeyPlan:
        return replace(super().plan(found), has_more=True)

    def advance(self, plan: KeyPlan) -> Position | None:
        return None


class MisplacedSource(KeySource):
    """Keys whose position no reader could read."""

    def advance(self, plan: KeyPlan) -> Position | None:
        return Position(b"2", "NaN")


@dataclass
class CountingSource(KeySource):
    """Keys, and how often it was asked where a plan leads."""

    database: str
    asked: int = 0

    def advance(self, plan: KeyPlan) -> Position | None:
        self.asked += 1
        return super().advance(plan)


class Landed(CommittingSink):
    """Rows that are visible as soon as they are written."""

    kind = "landed"

    def __init__(self) -> None:
        self.rows: list[int] = []

    def burn(self, output: StoredOutput, fence: int) -> None:
        pass

    def landed(self, output: StoredOutput) -> bool:
        return bool(self.rows)


@pytest.mark.parametrize("option", ["pause", "disable"])
def test_batch_that_leads_nowhere_publishes_nothing_aside(
    store: BookmarkStore, database: str, parcels: Parcels, option: str
) -> None:
    with pytest.raises(MisuseError, match=r"each batch would read the same again.* Nothing was published\."):
        run_aside(store, StuckSource(database), parcels, option, in_batches=True)
    assert (parcels.visible(), parcels.staged()) == ([], [])

    assert not run_aside(store, KeySource(database), parcels, option, in_batches=True).goes_on
    assert parcels.visible() == ["key 1", "key 2"]


def test_batch_that_leads_nowhere_lets_no_rows_land_aside(store: BookmarkStore, database: str) -> None:
    identity, sinks = RunIdentity(store.new_id(), 1), SINKS.extended(Landed())
    run = DetachedRun.begin(store, "copy", identity, Choice.of("pause"), RunEnvironment(), in_batches=True, sinks=sinks)
    run.plan("people", StuckSource(database))
    with pytest.raises(MisuseError, match=r"each batch would read the same again.* Nothing was published\."):
        run.place("out", StagingRequest(Landed.kind, "landed"))


def land(store: BookmarkStore, source: KeySource, sink: Landed) -> None:
    """Read the keys in batches, and write them to a sink that commits by itself."""
    driver = DriverStore(store, None, lambda entry: None)
    identity, sinks = RunIdentity(store.new_id(), 1), SINKS.extended(sink)
    run = ActiveRun.begin(driver, "copy", identity, driver.environment, sinks=sinks, in_batches=True)
    try:
        keys = keys_of(run.plan("people", source))
        run.place("out", StagingRequest(Landed.kind, "landed"))
        sink.rows += keys
        run.staged("out", Staged((), rows=len(keys)))
        run.commit()
    except MisuseError as error:
        run.abort(str(error))
        raise


@pytest.mark.parametrize(
    ("source", "why"), [(StuckSource, "each batch would read the same again"), (MisplacedSource, "watermark 'NaN'")]
)
def test_no_rows_land_of_a_run_that_could_not_commit_them(
    store: BookmarkStore, database: str, source: type[KeySource], why: str
) -> None:
    sink = Landed()
    with pytest.raises(MisuseError, match=rf"{why}.* Nothing was committed"):
        land(store, source(database), sink)
    assert sink.rows == []

    land(store, KeySource(database), sink)
    assert (sink.rows, store.head("copy").contexts["people"].watermark) == ([1, 2], "2")


def test_source_is_asked_once_where_a_plan_leads_whose_rows_land_before_the_commit(
    store: BookmarkStore, database: str
) -> None:
    source = CountingSource(database)
    land(store, source, Landed())
    assert source.asked == 1


# ---- runs that a driver of an earlier version left open with landed rows


DEAD_SOON = replace(short_lease(), start_thread=lambda renew: None)


class EarlierStore(DriverStore):
    """The store of a driver that stores whatever a plan says."""

    told: Mapping[str, Any] = {}

    def plan(self, grant: LeaseGrant, ctx: str, entry: PlanEntry, *, option: str, is_last: bool) -> None:
        super().plan(grant, ctx, replace(entry, stats={**entry.stats, **self.told}), option=option, is_last=is_last)


class TellingKind(KeyKind):
    """Keys of a kind whose plans still say what is refused now."""

    def decode(self, body: bytes) -> KeyPlan:
        return ToldPlan(**vars(super().decode(body)), more={"partitions": {"new": 1}})


class MisplacingKind(KeyKind):
    """Keys of a kind that leads to a position which no reader could read."""

    def advance(self, plan: KeyPlan, found: PlanInput) -> Position | None:
        return Position(b"2", "NaN")


def leave_open(store: BookmarkStore, database: str, told: Mapping[str, Any]) -> Landed:
    """Let the driver of a run die after its rows have landed."""
    driver, sink = EarlierStore(store, None, lambda entry: None), Landed()
    driver.told = told
    dead = ActiveRun.begin(driver, "copy", RunIdentity("task", 1), DEAD_SOON, sinks=SINKS.extended(sink))
    dead.plan("people", KeySource(database))
    dead.place("out", StagingRequest(Landed.kind, "landed"))
    sink.rows += [1, 2]
    return sink


def test_run_with_landed_rows_is_taken_over_with_the_facts_that_were_stored(database: str) -> None:
    with memory_store() as store, registered(TellingKind()):
        sinks = SINKS.extended(leave_open(store, database, {"partitions": {"new": 1}, "region": "eu"}))
        ActiveRun.begin(store, "copy", RunIdentity("task", 2), DEAD_SOON, sinks=sinks).abort("only to recover")
        run = store.committed_run("copy", 1)
        assert store.head("copy").contexts["people"].watermark == "2"
    assert run is not None
    figures = run.metrics["contexts"]["people"]
    assert (figures["partitions"], figures["region"], figures["count"], "starts_from" in figures) == (
        {"new": 1},
        "eu",
        2,
        False,
    )


def test_run_with_landed_rows_that_leads_to_no_position_is_named(database: str) -> None:
    with memory_store() as store, registered(MisplacingKind()):
        sinks = SINKS.extended(leave_open(store, database, {}))
        with pytest.raises(MisuseError, match=r"job 'copy', context 'people': the rows of run 1 are there.*'NaN'"):
            ActiveRun.begin(store, "copy", RunIdentity("task", 2), DEAD_SOON, sinks=sinks)
