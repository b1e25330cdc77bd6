"""The lists of searches. Each of the main and the big ones must be complete without a violation, and each of those
that leave a rule out must find one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any

from model.configuration import FILES, OWN, SECOND, TABLE, Configuration
from model.consumer import search_consumer
from model.rules import RULES
from model.search import Result, search
from model.state import Driver


def _replay(run_id: str, attempt: int = 1) -> Driver:
    return Driver(run_id, attempt, "replay")


_A = (Driver("a", 1),)
_B = (Driver("b", 1),)
_TWO_RUNS = _A + _B
_TWO_ATTEMPTS = (*_A, Driver("a", 2))
_REPLAY = (_replay("r"),)
_REPLAY_AND_RUN = _REPLAY + _B
_TWO_REPLAY_ATTEMPTS = (*_REPLAY, _replay("r", 2))
_TWO_REPLAYS = (*_REPLAY, _replay("q"))
_OWN = (OWN,)
_BOTH = (OWN, FILES)
_TABLE = (TABLE,)
_PAIR = (OWN, SECOND)

_replays = partial(Configuration, has_published_run=True)


def _stages_table(
    name: str, drivers: tuple[Driver, ...], sinks: tuple[str, ...] = (TABLE,), **rest: Any
) -> Configuration:
    return Configuration(f"stage table: {name}", drivers, sinks, **rest)


MAIN = (
    Configuration(
        "staged, attempts 1 and 2, late file, overwritten file", _TWO_ATTEMPTS, events=("arrival", "overwrite")
    ),
    Configuration(
        "staged, kill, lost reply, exception",
        _TWO_ATTEMPTS,
        events=("overwrite",),
        kill=("a", 1),
        losable_replies=1,
        has_exceptions=True,
    ),
    Configuration("self-committing, two runs", _TWO_RUNS, _OWN, events=("arrival", "overwrite")),
    Configuration("Delta-like sink, two runs", _TWO_RUNS, _OWN, events=("arrival", "overwrite"), is_delta=True),
    Configuration(
        "Delta-like and staged sink, two runs, reset+clean", _TWO_RUNS, _BOTH, change="reset+clean", is_delta=True
    ),
    Configuration(
        "Delta-like sink, two runs, rewind to last, exception, lost reply",
        _TWO_RUNS,
        _OWN,
        change="rewind",
        has_exceptions=True,
        losable_replies=1,
        is_delta=True,
    ),
    Configuration("both sinks, attempts 1 and 2", _TWO_ATTEMPTS, _BOTH, events=("arrival", "overwrite")),
    Configuration("both sinks, two runs, reset+clean", _TWO_RUNS, _BOTH, change="reset+clean"),
    Configuration("both sinks, two runs, rewind to last", _TWO_RUNS, _BOTH, change="rewind"),
    Configuration("overwrite sink, two runs", _TWO_RUNS, events=("arrival",), overwrites=True),
    _replays(
        "REPLAY attempts 1 and 2, kill, lost reply, exception",
        _TWO_REPLAY_ATTEMPTS,
        kill=("r", 1),
        losable_replies=1,
        has_exceptions=True,
    ),
    _replays(
        "REPLAY and a normal run, late file, overwritten file",
        _REPLAY_AND_RUN,
        events=("arrival", "overwrite"),
        losable_replies=1,
    ),
    _replays("REPLAY and a normal run, both sinks", _REPLAY_AND_RUN, _BOTH, events=("arrival",)),
    Configuration(
        "REPLAY from the empty state: zombie of the first run", _A + _REPLAY, events=("arrival",), losable_replies=1
    ),
    _replays("REPLAY twice by two people, late file", _TWO_REPLAYS, events=("arrival",), losable_replies=1),
    *(
        _replays(f"REPLAY and a normal run, {change}", _REPLAY_AND_RUN, events=("arrival",), change=change)
        for change in ("reset", "reset+clean", "rewind", "rewind1", "rewind1+clean")
    ),
    _replays("REPLAY and a normal run, overwrite sink", _REPLAY_AND_RUN, events=("arrival",), overwrites=True),
)
TABLES = (
    _stages_table("late file, overwritten file, attempts 1 and 2", _TWO_ATTEMPTS, events=("arrival", "overwrite")),
    _stages_table(
        "kill, lost reply, exception, attempts 1 and 2",
        _TWO_ATTEMPTS,
        events=("overwrite",),
        kill=("a", 1),
        losable_replies=1,
        has_exceptions=True,
    ),
    _stages_table("two lost replies, two runs", _TWO_RUNS, losable_replies=2),
    _stages_table(
        "upsert, two runs, overwritten file, lost reply",
        _TWO_RUNS,
        events=("overwrite",),
        losable_replies=1,
        upserts=True,
    ),
    _stages_table("reset, two runs, lost reply", _TWO_RUNS, change="reset", losable_replies=1),
    _stages_table("upsert, two runs, reset", _TWO_RUNS, events=("overwrite",), change="reset", upserts=True),
    _stages_table("reset+clean, which is refused, two runs", _TWO_RUNS, change="reset+clean"),
    _stages_table("rewind to last, two runs, late file", _TWO_RUNS, events=("arrival",), change="rewind"),
    _stages_table(
        "REPLAY, which is refused, and a normal run", _REPLAY_AND_RUN, events=("arrival",), has_published_run=True
    ),
    _stages_table("REPLAY from the empty state, lost reply", _A + _REPLAY, losable_replies=1),
    _stages_table("with staged files, two runs, late file", _TWO_RUNS, (TABLE, FILES), events=("arrival",)),
    _stages_table("with a self-committing sink, two runs", _TWO_RUNS, (TABLE, OWN), events=("overwrite",)),
    _stages_table("with a Delta-like sink, two runs, reset", _TWO_RUNS, (TABLE, OWN), change="reset", is_delta=True),
)

BIG = (
    Configuration(
        "Delta-like sink and a staged one, 3 drivers", _TWO_ATTEMPTS + _B, _BOTH, events=("arrival",), is_delta=True
    ),
    Configuration(
        "Delta-like sink, 3 drivers, both file events, exception",
        _TWO_ATTEMPTS + _B,
        _OWN,
        events=("arrival", "overwrite"),
        has_exceptions=True,
        is_delta=True,
    ),
    Configuration("both sinks, 3 drivers", _TWO_ATTEMPTS + _B, _BOTH, events=("arrival",)),
    Configuration(
        "both sinks, 3 drivers, reset+clean", _TWO_ATTEMPTS + _B, _BOTH, events=("arrival",), change="reset+clean"
    ),
    _replays(
        "REPLAY x2 and a normal run, both file events, lost reply",
        _TWO_REPLAY_ATTEMPTS + _B,
        events=("arrival", "overwrite"),
        losable_replies=1,
    ),
    _replays(
        "REPLAY x2 and a normal run, both sinks, exception, kill",
        _TWO_REPLAY_ATTEMPTS + _B,
        _BOTH,
        events=("arrival",),
        has_exceptions=True,
        kill=("r", 1),
    ),
    Configuration("REPLAY, first run, normal run from the empty state", _A + _REPLAY + _B, events=("arrival",)),
    _replays(
        "REPLAY x2 by two people, reset+clean, late file, lost reply",
        _TWO_REPLAYS,
        events=("arrival",),
        change="reset+clean",
        losable_replies=1,
    ),
    _replays("REPLAY x2 by two people and a normal run, reset", _TWO_REPLAYS + _B, events=("arrival",), change="reset"),
    _replays(
        "REPLAY x2 by two people and a normal run, rewind1+clean",
        _TWO_REPLAYS + _B,
        events=("arrival",),
        change="rewind1+clean",
    ),
    _replays(
        "REPLAY and a normal run, both sinks, reset+clean",
        _REPLAY_AND_RUN,
        _BOTH,
        events=("arrival",),
        change="reset+clean",
    ),
    _replays(
        "REPLAY x2, overwrite sink, normal run",
        _TWO_REPLAY_ATTEMPTS + _B,
        events=("arrival",),
        overwrites=True,
        losable_replies=1,
    ),
    _stages_table("3 drivers, late file, lost reply", _TWO_ATTEMPTS + _B, events=("arrival",), losable_replies=1),
    _stages_table(
        "with files and a self-committing sink, two runs, both file events, kill",
        _TWO_RUNS,
        (TABLE, FILES, OWN),
        events=("arrival", "overwrite"),
        kill=("a", 1),
    ),
)

_arrives = partial(Configuration, "", events=("arrival",))
_replays_of = partial(_replays, "")
_table = partial(Configuration, "", sinks=_TABLE)
_pair = partial(Configuration, "", sinks=_PAIR, is_delta=True)

PAIRS = (
    Configuration("two Delta-like sinks, two runs", _TWO_RUNS, _PAIR, events=("arrival",), is_delta=True),
    Configuration(
        "two Delta-like sinks, attempts 1 and 2, kill, exception, lost reply",
        _TWO_ATTEMPTS,
        _PAIR,
        kill=("a", 1),
        losable_replies=1,
        has_exceptions=True,
        is_delta=True,
    ),
    Configuration("two Delta-like sinks and staged files, two runs", _TWO_RUNS, (*_PAIR, FILES), is_delta=True),
    Configuration("two Delta-like sinks, two runs, reset", _TWO_RUNS, _PAIR, change="reset", is_delta=True),
    Configuration("two Delta-like sinks, two runs, rewind to last", _TWO_RUNS, _PAIR, change="rewind", is_delta=True),
)

PURGES = (
    Configuration(
        "purge: two runs, late file, overwritten file", _TWO_RUNS, events=("arrival", "overwrite"), purges=True
    ),
    Configuration(
        "purge: attempts 1 and 2, late file, kill, lost reply, exception",
        _TWO_ATTEMPTS,
        events=("arrival",),
        kill=("a", 1),
        losable_replies=1,
        has_exceptions=True,
        purges=True,
    ),
    *(
        Configuration(
            f"purge: two runs, late file, {change}", _TWO_RUNS, events=("arrival",), change=change, purges=True
        )
        for change in ("reset", "reset+clean", "rewind")
    ),
    _replays("purge: REPLAY and a normal run", _REPLAY_AND_RUN, events=("arrival",), purges=True, losable_replies=1),
)

# For each rule the smallest search that shows what it is for.
_WITHOUT = {
    "fence_check": _arrives(_TWO_RUNS, _OWN),
    "place_fence": _arrives(_TWO_RUNS),
    "burn": Configuration("", _TWO_RUNS, _OWN),
    "adopt_atomic": _arrives((*_TWO_RUNS, Driver("c", 1)), _OWN),
    "failed_open": Configuration("", _A, _BOTH, has_exceptions=True),
    "tombstone": Configuration("", _A, kill=("a", 1)),
    "kill_condition": Configuration("", _TWO_ATTEMPTS, kill=("a", 1)),
    "sweep": Configuration("", _TWO_ATTEMPTS),
    "read_back": Configuration("", _A, losable_replies=1),
    "versions": Configuration("", _TWO_RUNS, events=("overwrite",)),
    "staged_first": Configuration("", _TWO_ATTEMPTS, _BOTH, events=("overwrite",)),
    "one_request": Configuration("", _TWO_RUNS, change="reset+clean"),
    "own_list": _arrives(_TWO_RUNS, overwrites=True),
    "cleaning_note": Configuration("", _A, change="reset+clean"),
    "clean_open": Configuration("", _TWO_RUNS, _BOTH, change="reset+clean"),
    "adopt_epoch": Configuration("", _A, _OWN, change="rewind"),
    "by_state": Configuration("", _A, change="rewind"),
    "dl_double": Configuration("", _TWO_RUNS, _OWN, is_delta=True),
    "dl_look": _arrives(_TWO_RUNS, _OWN, is_delta=True),
    "pa_ask": _pair(_A),
    "pa_together": _pair(_A),
    "pa_burn": _pair(_TWO_RUNS),
    "pa_carry": _pair(_A),
    "rp_recover": _replays_of(_TWO_REPLAYS),
    "rp_publishing": _replays_of(_REPLAY),
    "rp_fence": _replays_of(_TWO_REPLAYS),
    "rp_names": _replays_of(_REPLAY),
    "rp_frozen": _replays_of(_TWO_REPLAYS),
    "rp_list": _replays_of(_REPLAY_AND_RUN, events=("arrival",)),
    "rp_versions": _replays_of(_REPLAY, events=("overwrite",)),
    "rp_published": _replays_of(_REPLAY_AND_RUN, events=("arrival",)),
    "rp_undone": _replays_of(_REPLAY, change="reset"),
    "rp_clean": _replays_of(_REPLAY, change="reset+clean"),
    "rp_fail": _replays_of(_REPLAY, has_exceptions=True),
    "rp_revfences": _replays_of(_TWO_REPLAYS, losable_replies=1),
    "rp_last": _replays_of(_REPLAY_AND_RUN, events=("arrival",), overwrites=True),
    "st_named": _table(_TWO_RUNS),
    "st_token_row": _table(_A),
    "st_count": _table(_A, losable_replies=1),
    "st_fence": _table(_TWO_RUNS),
    "st_own_token": _table(_TWO_RUNS),
    "st_one": _table(_A),
    "st_again": _table(_A, losable_replies=1),
    "st_older": _table(_TWO_RUNS, events=("arrival",)),
    "st_later": _table(_A),
    "st_replay": _table(_REPLAY, has_published_run=True),
    "st_clean": _table(_A, change="reset+clean"),
    "pu_list": _arrives(_TWO_RUNS, purges=True),
    "pu_commit": _arrives(_TWO_RUNS, purges=True),
    "pu_last": _replays_of(_REPLAY_AND_RUN, events=("arrival",), purges=True),
}
_WITHOUT_IN_CONSUMER = {"c_edge": "rewind", "c_stop": "ignore", "c_recheck": "ignore", "c_count": "rewind"}

POLICIES = ("rewind", "ignore")


def results(is_big: bool = False) -> Iterator[Result]:
    """Search all configurations, the big ones if asked for, and the consumer."""
    yield from map(search, MAIN + TABLES + PAIRS + PURGES + (BIG if is_big else ()))
    yield from map(search_consumer, POLICIES)


def result_without(rule: str) -> Result:
    """Search for what goes wrong without a rule. Raises KeyError for a rule that is not known."""
    name = f"without {rule}"
    without = frozenset({rule})
    if rule in _WITHOUT_IN_CONSUMER:
        return search_consumer(_WITHOUT_IN_CONSUMER[rule], without, name)
    return search(replace(_WITHOUT[rule], name=name, without=without))


def results_without_each() -> Iterator[tuple[str, Result]]:
    """Leave each rule out in turn."""
    for rule in RULES:
        yield rule, result_without(rule)
