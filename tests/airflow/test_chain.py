"""Three DAGs in a row in a real Airflow, with kills, a clear and a rewind: over text files, and over tables.

`make chain` and `make mixed-chain` play 20 rounds of it.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from airflow_bookmarks.lifecycle.protocol.failpoint import Failpoint
from tests.chaos.chain.lineup import LineupName, lineup_below
from tests.chaos.chain.scene import play
from tests.chaos.chain.stage import RAW, STAGES
from tests.chaos.chain.story import KILLS, Follow, Kind, tell
from tests.databases.servers import check_installed
from tests.spark.iceberg import skip_without_iceberg

pytestmark = [
    pytest.mark.airflow,
    pytest.mark.chaos,
    pytest.mark.dynamodb_local,
    pytest.mark.slow,
    pytest.mark.spark,
    pytest.mark.xdist_group("airflow-servers"),
]
SEED, ROUNDS = 78, 4


@pytest.mark.thorough  # minutes; the pairings play each kind of trouble alone
def test_each_row_is_once_at_each_stage_though_tasks_die_and_are_cleared_and_the_chain_is_rewound(
    tmp_path: Path,
) -> None:
    figures = play(tmp_path / "chain", ROUNDS, SEED)

    assert figures.faults == []
    assert figures.rounds == ROUNDS
    assert figures.rows[RAW] > 0
    assert {figures.rows[stage] for stage in STAGES} == {figures.rows[RAW]}


def test_story_of_four_rounds_has_a_kill_a_clear_and_the_rewind() -> None:
    kinds = {told.trouble.kind for told in tell(SEED, ROUNDS)}

    assert kinds & set(KILLS)
    assert {Kind.CLEARED, Kind.REWOUND} <= kinds


@pytest.mark.parametrize("seed", range(20))
def test_story_of_twenty_rounds_has_all_kinds_of_trouble_and_one_rewind(seed: int) -> None:
    story = tell(seed, 20)

    assert story == tell(seed, 20)
    kinds = [told.trouble.kind for told in story]
    assert set(kinds) == set(Kind)
    assert kinds.count(Kind.REWOUND) == 1
    assert kinds[0] is not Kind.CLEARED
    assert all(told.trouble.back < told.number for told in story[1:])


@pytest.mark.parametrize("seed", range(20))
def test_story_over_tables_replays_nothing_and_holds_drivers_where_they_come(seed: int) -> None:
    lineup = lineup_below(Path("/nowhere"), LineupName.MIXED)
    points = {stage: target.points for stage, target in lineup.targets.items()}
    plain, mixed = tell(seed, 20), tell(seed, 20, points, replays=lineup.takes_back)

    assert [told.trouble.kind for told in mixed] == [told.trouble.kind for told in plain]
    assert not any(told.trouble.is_killed_too for told in mixed)
    assert {told.trouble.follow for told in mixed} == {Follow.REFUSED}
    assert not any(told.trouble.stage == "a" and told.trouble.point is Failpoint.MOVED for told in mixed)


@pytest.mark.thorough  # the same over tables: `make mixed-chain` plays 20 rounds
def test_each_row_is_once_in_each_table_of_a_mixed_chain(tmp_path: Path) -> None:
    skip_without_iceberg()
    check_installed()
    figures = play(tmp_path / "chain", ROUNDS, SEED, lineup_name=LineupName.MIXED)

    assert figures.faults == []
    assert figures.rounds == ROUNDS
    assert {figures.rows[stage] for stage in STAGES} == {figures.rows[RAW]}
