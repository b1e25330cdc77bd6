"""Recover: finish a clean, publish what is due, settle open runs. Each driver does so before it plans."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from model import second_sink, stage_table
from model.state import (
    ASKED,
    COMMITTED,
    GIVEN_UP,
    OPEN,
    Cleaning,
    Driver,
    FileName,
    Place,
    Run,
    RunKey,
    State,
    Token,
    Written,
    publication_of,
    stored_run,
    with_run,
)

if TYPE_CHECKING:
    from model.configuration import Configuration
    from model.turn import Turn


def recover(turn: Turn) -> None:
    """Find the next thing to finish."""
    head, driver, state = turn.head, turn.driver, turn.state
    due, open_runs = _due(turn), _open_runs(turn)
    if head.cleaning:
        cleaning = driver._replace(step="clean staging", task=Cleaning(head.cleaning))
        turn.go("recover: finds a clean to finish", cleaning)
    elif due:
        carrying = driver._replace(
            step=turn.configuration.first_step_of_publish, task=publication_of(stored_run(state, due))
        )
        turn.go(f"recover: run {due} is committed, its publish is due", carrying)
    elif any(run.fence > driver.fence for run in open_runs):
        turn.end("recover: sees a newer fence, stops")
    elif open_runs:
        _recover_open(turn, open_runs[0])
    else:
        step = "look up" if driver.kind == "replay" else "place" if driver.has_adopted else "plan"
        turn.go("recover: nothing open", driver._replace(step=step))


def _due(turn: Turn) -> RunKey | None:
    key = turn.head.publishing
    if key is None or turn.keeps("by_state") or stored_run(turn.state, key).epoch == turn.head.epoch:
        return key
    return None


def _open_runs(turn: Turn) -> list[Run]:
    states = OPEN if turn.keeps("failed_open") else OPEN[:1]
    return [run for run in turn.state.runs if run.state in states]


def _recover_open(turn: Turn, run: Run) -> None:
    must_burn = turn.configuration.has_own_sink and run.is_placed and not run.landed
    label = f"recover: open run {run.key}"
    if must_burn:
        turn.go(label, turn.driver._replace(step="burn", task=run.key))
    else:
        turn.go(label, turn.driver._replace(step="settle", task=run.key, found=run.landed))


# ---- settle


def settle(turn: Turn) -> None:
    """Take an open run over if its rows had landed from the present position, else give it up."""
    run, driver = turn.open_run, turn.driver
    if not turn.is_mine:
        turn.end("settle refused (fence)")
    elif (
        _may_adopt(turn, run) and second_sink.is_in_doubt(turn) and run.settled in ("", ASKED) and turn.keeps("pa_ask")
    ):
        second_sink.ask(turn)
    elif _may_adopt(turn, run) and run.settled != GIVEN_UP:
        _adopt(turn, run, driver.found or driver.found_second)
    else:
        given_up = with_run(turn.state, run._replace(state="ABANDONED"))
        settled = driver._replace(step="recover", found=None, found_second=None)
        turn.go(f"settle: {run.key} ABANDONED", settled, given_up)


def _may_adopt(turn: Turn, run: Run) -> bool:
    driver = turn.driver
    has_landed = bool(driver.found or driver.found_second)
    return has_landed and _fits(run, driver) and (turn.keeps("adopt_epoch") or run.epoch == turn.head.epoch)


def _fits(run: Run, driver: Driver) -> bool:
    """Say whether an open run started from the driver's own position."""
    return (
        run.number == driver.run_number
        and not (run.plan & driver.position)
        and (run.plan | driver.position) == run.after
    )


def _adopt(turn: Turn, run: Run, landed: Token | None) -> None:
    driver = turn.driver
    second = run.second or (second_sink.left_out(driver) if turn.configuration.has_second else "")
    heir = run._replace(
        key=(driver.run_number, driver.fence),
        state="PLANNED",
        fence=driver.fence,
        epoch=driver.epoch,
        number=driver.run_number,
        is_placed=True,
        landed=landed,
        after=driver.position | run.plan,
        revision=0,
        fences=(*run.fences, driver.fence),
        deletions=frozenset(),
        second=second if turn.keeps("pa_carry") else "",
        settled=run.settled if run.settled == COMMITTED else "",
    )
    gone = with_run(turn.state, run._replace(state="ABANDONED"))
    adopting = driver._replace(plan=run.plan, has_adopted=True, landed=landed, found=None, found_second=None)
    if not turn.keeps("adopt_atomic"):
        turn.go("settle: marks the old item, plan kept in memory", adopting._replace(step="place"), gone)
    elif not turn.keeps("staged_first"):
        own_place = turn.configuration.place(driver.epoch, driver.run_number, driver.fence)
        again = with_run(gone, heir._replace(place=own_place))
        turn.go("settle: takes the plan over, reads it again", adopting._replace(step="read"), again)
    else:
        turn.go("settle: takes plan and staged output over", adopting._replace(step="commit"), with_run(gone, heir))


# ---- clean


def clean_staging(turn: Turn) -> None:
    """Remove what undone runs staged; first, so that no stale publisher can move it any more."""
    places = {place for run in _undone(turn) for place in _places(turn.configuration, run)}
    staged = frozenset(file for file in turn.state.staged if file.place not in places)
    turn.go(
        "clean: removes staged files",
        turn.driver._replace(step="clean target"),
        turn.state._replace(staged=staged, database=stage_table.without_tables(turn, places)),
    )


def clean_target(turn: Turn) -> None:
    """Remove the published rows of undone runs."""
    names = {name for run in _undone(turn) for name in _names(turn.configuration, run)}
    target = frozenset(file for file in turn.state.target if file.name not in names)
    cleaned = turn.state._replace(target=target, own_sink=_cleaned_own_sink(turn))
    turn.go("clean: removes published rows", turn.driver._replace(step="note clean"), cleaned)


def note_clean(turn: Turn) -> None:
    """Note on HEAD that the clean is done."""
    if turn.is_mine:
        noted: State = turn.state._replace(head=turn.head._replace(cleaning=()))
        turn.go("clean: noted as done", turn.driver._replace(step="recover"), noted)
    else:
        turn.end("clean: note refused")


def _undone(turn: Turn) -> list[Run]:
    return [stored_run(turn.state, key) for key in turn.cleaning.keys]


def _places(configuration: Configuration, run: Run) -> set[Place]:
    """Return every place in which a run may have staged."""
    if not configuration.keeps("rp_clean"):
        return {run.place}
    return {configuration.place(run.epoch, run.number, fence) for fence in run.fences} | {run.place}


def _names(configuration: Configuration, run: Run) -> set[FileName]:
    """Return every name that a run may have in the target."""
    return {name for place in _places(configuration, run) for name in configuration.file_names(run, place)}


def _cleaned_own_sink(turn: Turn) -> frozenset[Written]:
    """Return the sink that commits by itself without the rows of undone runs, their tokens burned."""
    written, driver = turn.state.own_sink, turn.driver
    if turn.configuration.has_own_sink:
        tokens = {run.landed or Token(run.epoch, run.number, run.fence) for run in _undone(turn)}
        written = frozenset(each for each in written if each.token not in tokens)
        written |= {Written(token, None) for token in tokens}
    if turn.configuration.is_delta:
        written |= {Written(Token(driver.epoch, driver.run_number, driver.fence - 0.5), None)}
    return written


STEPS: dict[str, Callable[[Turn], None]] = {
    "recover": recover,
    "settle": settle,
    "clean staging": clean_staging,
    "clean target": clean_target,
    "note clean": note_clean,
}
