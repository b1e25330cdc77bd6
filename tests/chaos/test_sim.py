"""Many worlds with faults, each from a seed, in which every promise of the protocol holds; and the simulator itself."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from typing import get_args

import pytest

from airflow_bookmarks.core.option import Settlement
from airflow_bookmarks.core.selection.reason import LATE, MISSING, OVER_BOUND
from tests.chaos.sim.play import play
from tests.chaos.sim.table import SimTable
from tests.chaos.sim.tally import run_worlds, told
from tests.chaos.sim.world import Outcome, Settings
from tests.store.conformance import TableConformance

# Of 56 bites (`make chaos-bites`) 50 show within the first 600 worlds, and two more within the next 1,400.
WORLDS = int(os.environ.get("CHAOS_WORLDS", "600"))
MOST_WORLDS = max(WORLDS, 2000)
PARTS = 8


class TestSimTable(TableConformance):
    """The simulated table keeps the promises of every table."""

    @pytest.fixture
    def backend(self) -> str:
        return "simulated"

    @pytest.fixture
    def empty_table(self) -> Iterator[SimTable]:
        """Open a table that was not created yet."""
        table = SimTable(page_items=7)
        yield table
        table.close()

    def test_description_names_the_kind(self, table: SimTable, backend: str) -> None:  # type: ignore[override]
        assert table.describe()["kind"] == backend


@pytest.mark.chaos
@pytest.mark.parametrize(
    "worlds",
    [
        *(range(part, WORLDS, PARTS) for part in range(PARTS)),
        *(
            pytest.param(range(part, MOST_WORLDS, PARTS), marks=pytest.mark.thorough)
            for part in range(WORLDS, min(WORLDS + PARTS, MOST_WORLDS))
        ),
    ],
    ids=lambda worlds: f"{worlds.start}-{worlds.stop}",
)
def test_in_every_world_no_row_is_lost_or_doubled_and_nothing_is_left(worlds: range) -> None:
    tally = run_worlds(worlds)
    assert not tally.violations, told(tally.violations)
    assert tally.worlds == len(worlds)


@pytest.mark.chaos
@pytest.mark.parametrize(
    "worlds",
    [
        range(WORLDS // 2),  # each bite of such worlds shows within the first two of them
        pytest.param(range(WORLDS // 2, WORLDS), marks=pytest.mark.thorough),
        pytest.param(range(WORLDS, MOST_WORLDS), marks=pytest.mark.thorough),
    ],
    ids=lambda worlds: f"{worlds.start}-{worlds.stop}",
)
@pytest.mark.seldom  # lifecycle/protocol/test_partial.py has it in one world
def test_run_that_landed_in_one_table_of_two_becomes_what_a_person_says(worlds: range) -> None:
    tally = run_worlds(worlds, Settings.of_two_sinks)
    assert not tally.violations, told(tally.violations)
    assert min(tally.judged[answer] for answer in get_args(Settlement)) > 3


@pytest.mark.parametrize(
    "settings",
    [
        # An overwriting run was replayed beside the output of an undone run.
        Settings.plain(7005926),
        # A consumer was set to "now" while its upstream published; the simulator took that run for read.
        Settings.plain(7011046),
        # A dropped publish had deleted files, and the run that overwrote their place did not list them.
        Settings.plain(31000272),
        # A run had overwritten by a file that it then skipped, and was replayed; the simulator wanted the rows before.
        Settings.of(40005691),
        # A run was replayed when the one that had overwritten it was cleaned away; the simulator wanted nothing there.
        Settings.of(50018607),
        # A change looked at its upstream twice, and went by the first look; the simulator knew the second.
        Settings.of(50023745),
        # Rows were taken over and then given up behind a set; the simulator asked the item that had written them.
        Settings.of(53002047),
        # An upstream went back once more while its consumer went back along; that run ended in an internal exception.
        Settings.of(53025243),
        # A pause over runs of which the first was collected between its check and its look read the others alone.
        Settings.of(56060792),
    ],
    ids=lambda settings: str(settings.seed),
)
def test_world_in_which_something_was_violated_once_holds(settings: Settings) -> None:
    assert play(settings).violations == ()


@pytest.mark.parametrize("seed", [3, 14, 206])
def test_same_seed_makes_the_same_world(seed: int) -> None:
    first, second = (play(Settings.of(seed), is_traced=True) for _ in range(2))
    assert first == second
    assert first.trace


def test_recorded_decisions_make_the_same_world() -> None:
    first = play(Settings.of(14), is_traced=True)
    again = play(Settings.of(14), first.decisions, is_traced=True)
    assert again.trace == first.trace


@pytest.fixture(scope="module")
def outcomes() -> list[Outcome]:
    """Play two hundred worlds, for the tests of what worlds have."""
    return [play(Settings.of(seed)) for seed in range(200)]


@pytest.mark.seldom
def test_worlds_have_every_kind_of_fault(outcomes: list[Outcome]) -> None:
    faults = set().union(*(outcome.faults for outcome in outcomes))
    assert faults == {"CRASH_BEFORE", "CRASH_AFTER", "LOST", "AGAIN", "OUTAGE", "LATE", "STALL", "CLOCK"}


@pytest.mark.seldom
def test_worlds_have_every_habit_of_reading(outcomes: list[Outcome]) -> None:
    judged = set().union(*(outcome.judged for outcome in outcomes))
    assert judged >= {OVER_BOUND, LATE, MISSING, "batches", "pauses", "windows"}


def test_world_without_faults_ends_as_well() -> None:
    settings = Settings.of(1)
    outcome = play(replace(settings, mix=replace(settings.mix, budget=0)))
    assert (outcome.violations, outcome.faults) == ((), {})
