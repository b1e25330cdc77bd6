"""Promises of the model of the commit protocol: it finds no violation, and one for each rule that is switched off.

The numbers of states hold the search itself: a rewritten step that reaches other states is another protocol.
`MODEL=big` counts the large configurations as well, for minutes.
"""

from __future__ import annotations

import os
from dataclasses import replace

import pytest

from model.__main__ import main
from model.configuration import Configuration
from model.consumer import search_consumer
from model.rules import RULES
from model.search import search
from model.searches import BIG, MAIN, PAIRS, PURGES, TABLES, result_without

# States and endings of each complete search.
MAIN_COUNTS = {
    "staged, attempts 1 and 2, late file, overwritten file": (4979, 906),
    "staged, kill, lost reply, exception": (7960, 698),
    "self-committing, two runs": (10082, 1704),
    "Delta-like sink, two runs": (10770, 1722),
    "Delta-like and staged sink, two runs, reset+clean": (3632, 425),
    "Delta-like sink, two runs, rewind to last, exception, lost reply": (6428, 443),
    "both sinks, attempts 1 and 2": (5495, 1087),
    "both sinks, two runs, reset+clean": (3468, 418),
    "both sinks, two runs, rewind to last": (2770, 372),
    "overwrite sink, two runs": (2186, 378),
    "REPLAY attempts 1 and 2, kill, lost reply, exception": (2431, 138),
    "REPLAY and a normal run, late file, overwritten file": (6297, 374),
    "REPLAY and a normal run, both sinks": (1031, 135),
    "REPLAY from the empty state: zombie of the first run": (1636, 128),
    "REPLAY twice by two people, late file": (2554, 122),
    "REPLAY and a normal run, reset": (3825, 388),
    "REPLAY and a normal run, reset+clean": (5252, 450),
    "REPLAY and a normal run, rewind": (4080, 386),
    "REPLAY and a normal run, rewind1": (4101, 408),
    "REPLAY and a normal run, rewind1+clean": (4189, 400),
    "REPLAY and a normal run, overwrite sink": (948, 116),
}
BIG_COUNTS = {
    "Delta-like sink and a staged one, 3 drivers": (161583, 5025),
    "Delta-like sink, 3 drivers, both file events, exception": (1404871, 24467),
    "both sinks, 3 drivers": (136270, 4354),
    "both sinks, 3 drivers, reset+clean": (1201829, 21314),
    "REPLAY x2 and a normal run, both file events, lost reply": (374327, 2332),
    "REPLAY x2 and a normal run, both sinks, exception, kill": (222084, 3004),
    "REPLAY, first run, normal run from the empty state": (87490, 1693),
    "REPLAY x2 by two people, reset+clean, late file, lost reply": (7796, 266),
    "REPLAY x2 by two people and a normal run, reset": (285585, 2424),
    "REPLAY x2 by two people and a normal run, rewind1+clean": (420363, 3545),
    "REPLAY and a normal run, both sinks, reset+clean": (5628, 546),
    "REPLAY x2, overwrite sink, normal run": (110464, 767),
    "stage table: 3 drivers, late file, lost reply": (488035, 8994),
    "stage table: with files and a self-committing sink, two runs, both file events, kill": (54263, 9181),
}
TABLE_COUNTS = {
    "stage table: late file, overwritten file, attempts 1 and 2": (6518, 1204),
    "stage table: kill, lost reply, exception, attempts 1 and 2": (12773, 1270),
    "stage table: two lost replies, two runs": (2631, 194),
    "stage table: upsert, two runs, overwritten file, lost reply": (6892, 578),
    "stage table: reset, two runs, lost reply": (7426, 569),
    "stage table: upsert, two runs, reset": (13082, 1602),
    "stage table: reset+clean, which is refused, two runs": (1876, 261),
    "stage table: rewind to last, two runs, late file": (11504, 1537),
    "stage table: REPLAY, which is refused, and a normal run": (258, 48),
    "stage table: REPLAY from the empty state, lost reply": (375, 49),
    "stage table: with staged files, two runs, late file": (4716, 831),
    "stage table: with a self-committing sink, two runs": (5310, 820),
    "stage table: with a Delta-like sink, two runs, reset": (6110, 862),
}
PAIR_COUNTS = {
    "two Delta-like sinks, two runs": (3158, 579),
    "two Delta-like sinks, attempts 1 and 2, kill, exception, lost reply": (2956, 364),
    "two Delta-like sinks and staged files, two runs": (859, 150),
    "two Delta-like sinks, two runs, reset": (3804, 558),
    "two Delta-like sinks, two runs, rewind to last": (3642, 490),
}
PURGE_COUNTS = {
    "purge: two runs, late file, overwritten file": (11324, 1411),
    "purge: attempts 1 and 2, late file, kill, lost reply, exception": (9307, 771),
    "purge: two runs, late file, reset": (12578, 1597),
    "purge: two runs, late file, reset+clean": (13776, 1395),
    "purge: two runs, late file, rewind": (11600, 1232),
    "purge: REPLAY and a normal run": (1952, 116),
}
CONSUMER_COUNTS = {"rewind": 3699, "ignore": 5285}

# Steps of the shortest trace that goes wrong without a rule, and the states seen until then.
WITHOUT_COUNTS = {
    "fence_check": (12, 825),
    "place_fence": (7, 164),
    "burn": (13, 259),
    "adopt_atomic": (13, 12400),
    "failed_open": (10, 16),
    "tombstone": (2, 8),
    "kill_condition": (2, 19),
    "sweep": (7, 43),
    "read_back": (14, 23),
    "versions": (10, 454),
    "staged_first": (8, 149),
    "one_request": (17, 2111),
    "own_list": (28, 2153),
    "cleaning_note": (11, 38),
    "clean_open": (14, 1293),
    "adopt_epoch": (10, 34),
    "by_state": (10, 35),
    "dl_double": (5, 33),
    "dl_look": (14, 898),
    "pa_ask": (9, 10),
    "pa_together": (9, 10),
    "pa_burn": (17, 488),
    "pa_carry": (9, 10),
    "rp_recover": (12, 179),
    "rp_publishing": (7, 8),
    "rp_fence": (14, 337),
    "rp_names": (7, 8),
    "rp_frozen": (23, 555),
    "rp_list": (21, 833),
    "rp_versions": (8, 23),
    "rp_published": (21, 833),
    "rp_undone": (9, 26),
    "rp_clean": (8, 32),
    "rp_fail": (7, 11),
    "rp_revfences": (20, 965),
    "rp_last": (22, 882),
    "st_named": (8, 93),
    "st_token_row": (0, 1),
    "st_count": (12, 24),
    "st_fence": (12, 203),
    "st_own_token": (12, 203),
    "st_one": (12, 13),
    "st_again": (12, 23),
    "st_older": (28, 2614),
    "st_later": (12, 13),
    "st_replay": (9, 10),
    "st_clean": (13, 44),
    "pu_list": (30, 2666),
    "pu_commit": (11, 495),
    "pu_last": (23, 946),
    "c_edge": (5, 99),
    "c_stop": (8, 586),
    "c_recheck": (5, 97),
    "c_count": (5, 90),
}


def test_each_configuration_and_each_rule_has_been_counted() -> None:
    assert [each.name for each in MAIN] == list(MAIN_COUNTS)
    assert [each.name for each in TABLES] == list(TABLE_COUNTS)
    assert [each.name for each in PAIRS] == list(PAIR_COUNTS)
    assert [each.name for each in PURGES] == list(PURGE_COUNTS)
    assert [each.name for each in BIG] == list(BIG_COUNTS)
    assert list(RULES) == list(WITHOUT_COUNTS)


@pytest.mark.parametrize("configuration", MAIN + TABLES + PAIRS + PURGES, ids=lambda each: each.name)
def test_protocol_holds_in_each_state_that_was_counted(configuration: Configuration) -> None:
    result = search(configuration)

    assert result.violation is None, str(result)
    counts = MAIN_COUNTS | TABLE_COUNTS | PAIR_COUNTS | PURGE_COUNTS
    assert (result.states, result.endings) == counts[configuration.name]


@pytest.mark.slow
@pytest.mark.skipif(os.environ.get("MODEL") != "big", reason="minutes and gigabytes: MODEL=big counts them")
@pytest.mark.parametrize("configuration", BIG, ids=lambda each: each.name)
def test_protocol_holds_in_each_state_of_a_large_mix(configuration: Configuration) -> None:
    result = search(configuration)

    assert result.violation is None, str(result)
    assert (result.states, result.endings) == BIG_COUNTS[configuration.name]


@pytest.mark.parametrize("policy", CONSUMER_COUNTS)
def test_consumer_holds_in_each_state_that_was_counted(policy: str) -> None:
    result = search_consumer(policy)

    assert result.violation is None, str(result)
    assert result.states == CONSUMER_COUNTS[policy]


@pytest.mark.parametrize("rule", RULES)
def test_rule_that_is_switched_off_gives_its_shortest_trace(rule: str) -> None:
    result = result_without(rule)

    assert result.violation is not None
    assert (len(result.trace), result.states) == WITHOUT_COUNTS[rule]


def test_stale_transaction_without_the_fence_check_brings_an_older_version_back() -> None:
    upserts = next(each for each in TABLES if each.upserts and each.change is None)

    result = search(replace(upserts, without=frozenset({"st_fence"})))

    assert result.violation == "row (0, 2) LOST in the table"


def test_rules_are_listed_with_what_they_say(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--list"]) == 0

    lines = capsys.readouterr().out.splitlines()
    assert [line.split(maxsplit=1) for line in lines] == [[rule, text] for rule, text in RULES.items()]


def test_trace_without_a_rule_is_shown_with_its_ending(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--without", "rp_names"]) == 0

    shown = capsys.readouterr().out
    assert shown.startswith(f'Without "{RULES["rp_names"]}":\nVIOLATION in "without rp_names" after 8 states: ')
    assert "   r.1: takes the lease, fence 2\n" in shown
    assert "      > fresh z0: takes the lease, fence 3" in shown


def test_unknown_rule_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["--without", "no_such_rule"])

    assert "no_such_rule" in capsys.readouterr().err
