"""A second sink that commits by itself, a Delta-like one. Nothing takes back what lies in one of both, so a person
decides what the run counts as.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from model.state import (
    ASKED,
    COMMITTED,
    FIRST_LEFT_OUT,
    GIVEN_UP,
    OPEN,
    SECOND_LANDED,
    SECOND_LEFT_OUT,
    Driver,
    Row,
    Rows,
    Run,
    State,
    Token,
    Written,
    with_run,
)

if TYPE_CHECKING:
    from model.turn import Turn


def write(turn: Turn) -> None:
    """Write under the own token; what is burned is skipped, without a word."""
    driver, state = turn.driver, turn.state
    token = Token(driver.epoch, driver.run_number, driver.fence)
    if any(each.token.fence >= driver.fence for each in state.second_sink):
        turn.go("the second sink skips the write, without a word", driver._replace(step="commit"))
        return
    landed = state._replace(second_sink=state.second_sink | {Written(token, driver.rows)})
    label = f"the second sink commits {sorted(driver.rows)} under {tuple(token)}"
    turn.go(label, driver._replace(step="commit"), landed)
    if turn.may_raise:
        turn.go(f"{label}, then an EXCEPTION", driver._replace(step="fail"), landed)


# ---- recover


def is_looked_at(turn: Turn) -> bool:
    """Say whether the recovery of an open run knows of the second sink."""
    return turn.configuration.has_second and turn.keeps("pa_together")


def burn(turn: Turn) -> None:
    """Burn every older fence."""
    driver, state = turn.driver, turn.state
    if any(written.token.fence > driver.fence for written in state.second_sink):
        turn.end("the second sink has seen a newer fence")
        return
    token = Token(driver.epoch, driver.run_number, driver.fence - 0.5)
    burned = state._replace(second_sink=state.second_sink | {Written(token, None)}) if turn.keeps("pa_burn") else state
    turn.go("burns every older fence in the second sink", driver._replace(step="look for rows in second"), burned)


def look_for_rows(turn: Turn) -> None:
    """See, after the burn, whether the older token had landed."""
    run = turn.open_run
    token = Token(run.epoch, run.number, run.fence)
    has_rows = any(each.token == token and each.rows is not None for each in turn.state.second_sink)
    label = f"looks in the second sink for rows under {tuple(token)}: {'found' if has_rows else 'none'}"
    turn.go(label, turn.driver._replace(step="settle", found_second=token if has_rows else None))


def is_in_doubt(turn: Turn) -> bool:
    """Say whether the open run that is to be taken over is in one of both sinks."""
    driver, is_new = turn.driver, not turn.open_run.second
    return is_looked_at(turn) and is_new and (driver.found is None) != (driver.found_second is None)


def ask(turn: Turn) -> None:
    """Stop until a person has decided; what was seen is stored."""
    asked = with_run(turn.state, turn.open_run._replace(settled=ASKED))
    turn.end(
        "the run is in one sink of two: asks", outcome="asks", state=asked._replace(head=turn.head._replace(lease=None))
    )


def left_out(driver: Driver) -> str:
    """Return what the heir of a run stores of both sinks."""
    if driver.found is None:
        return FIRST_LEFT_OUT
    return SECOND_LEFT_OUT if driver.found_second is None else SECOND_LANDED


def decisions(state: State) -> Iterator[tuple[str, State]]:
    """Return what a person may decide now."""
    for run in state.runs:
        if run.state in OPEN and run.settled == ASKED:
            for decision in (COMMITTED, GIVEN_UP):
                yield (
                    f"a person decides: run {run.key} counts as {decision}",
                    with_run(state, run._replace(settled=decision)),
                )


# ---- in the end


def rows_to_judge(state: State, written: frozenset[Written]) -> Counter[Row]:
    """Return the rows of a sink, without those that a person has left there and has read again."""
    given_up = {(run.epoch, *run.key) for run in state.runs if run.settled == GIVEN_UP}
    return Counter(row for each in written if each.rows and tuple(each.token) not in given_up for row in each.rows)


def expected(state: State, missing: str) -> Rows:
    """Return the rows that a sink should hold, without those of runs that a person let count without it."""
    without = [
        run.plan for run in state.runs if run.second == missing and run.settled == COMMITTED and _is_committed(run)
    ]
    return state.head.position - frozenset(row for plan in without for row in plan)


def _is_committed(run: Run) -> bool:
    return run.state in ("COMMITTED", "PUBLISHED")


STEPS: dict[str, Callable[[Turn], None]] = {
    "write second sink": write,
    "burn second": burn,
    "look for rows in second": look_for_rows,
}
