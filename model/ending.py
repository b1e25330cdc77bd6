"""What must hold at each moment, and what must hold in the end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from model.driver import moves_of
from model.second_sink import decisions, expected, rows_to_judge
from model.state import (
    DONE,
    FIRST_LEFT_OUT,
    GIVEN_UP,
    INNOCENT,
    SECOND_LEFT_OUT,
    Driver,
    FileName,
    Row,
    Rows,
    Run,
    State,
)

if TYPE_CHECKING:
    from model.configuration import Configuration

_FRESH_DRIVERS = 5
_ENDLESS = 300


class Ending(NamedTuple):
    """What is wrong after fresh drivers ran to the end, if anything is, and what they did."""

    violation: str | None
    trace: tuple[str, ...]


# ---- at each moment


def violation_in(configuration: Configuration, state: State) -> str | None:
    """Say what is wrong in a state, or return None."""
    return _doubled(configuration, state) or _misled_driver(state) or _misnoted_publish(state)


def _doubled(configuration: Configuration, state: State) -> str | None:
    """Find a row that one epoch has twice. A run whose publish or clean is under way may be there in part."""
    head = state.head
    unfinished = {key[0] for key in (head.publishing, *head.cleaning) if key}
    if configuration.overwrites and unfinished:
        return None
    finished = [(file.epoch, file.rows) for file in state.target if file.run_number not in unfinished]
    given_up = {(run.epoch, *run.key) for run in state.runs if run.settled == GIVEN_UP}
    written = [(e.token.epoch, e.rows) for e in state.own_sink if e.rows is not None and tuple(e.token) not in given_up]
    inserted = [(epoch, (row,)) for epoch, row in state.database.target]
    return _twice("the target", finished) or _twice("the own sink", written) or _twice("the table", inserted)


def _twice(where: str, held: Iterable[tuple[int, Iterable[Row]]]) -> str | None:
    seen = set()
    for epoch, rows in held:
        for row in rows:
            if (epoch, row) in seen:
                return f"{where} holds row {row} twice, epoch {epoch}"
            seen.add((epoch, row))
    return None


def _misled_driver(state: State) -> str | None:
    head = state.head
    if INNOCENT in head.killed:
        return "a late kill fences an innocent attempt"
    for driver in state.drivers:
        if driver.outcome == "false failure":
            return "a driver reports failure of what it committed"
        if head.killed and (driver.run_id, driver.attempt) in head.killed and _works(driver, state):
            return "a killed attempt holds the lease"
    return None


def _works(driver: Driver, state: State) -> bool:
    lease = state.head.lease
    return driver.step != DONE and lease is not None and lease.fence == driver.fence


def _misnoted_publish(state: State) -> str | None:
    for run in reversed(state.runs):
        if run.state == "PUBLISHED" and run.number > state.head.published:
            return f"HEAD.published is {state.head.published}, but run {run.number} was published"
    return None


# ---- in the end


def ending_of(configuration: Configuration, state: State) -> Ending:
    """Freeze the rest of the world, let fresh drivers run alone, one after the other, and judge where that ends."""
    return _ending_of(configuration, state, (), _FRESH_DRIVERS)


def _ending_of(configuration: Configuration, state: State, before: tuple[str, ...], drivers: int) -> Ending:
    trace: list[str] = list(before)
    for number in range(drivers):
        driver = Driver(f"z{_FRESH_DRIVERS - drivers + number}", 1)
        while driver.step != DONE:
            moves = moves_of(configuration, state, driver, is_fresh=True)
            if not moves or len(trace) > _ENDLESS:
                return Ending(f"a fresh driver is stuck at {driver.step}", tuple(trace))
            label, state, driver = moves[0]
            trace.append(f"fresh {driver.run_id}: {label}")
        violation = violation_in(configuration, state)
        if violation:
            return Ending(violation, tuple(trace))
        if driver.outcome == "asks":
            # Whoever is asked may say either: both have to end well.
            ends = [
                _ending_of(configuration, after, (*trace, label), drivers - number - 1)
                for label, after in decisions(state)
            ]
            return next((end for end in ends if end.violation), ends[0])
    return Ending(_judged(configuration, state), tuple(trace))


def _judged(configuration: Configuration, state: State) -> str | None:
    unfinished = _unfinished(state)
    if unfinished or configuration.overwrites:
        return unfinished or _wrong_overwrite(state)
    if configuration.purges:
        return _wrong_purge(configuration, state) or _wrong_file(state)
    return _wrong_rows(configuration, state) or _wrong_file(state)


def _unfinished(state: State) -> str | None:
    head = state.head
    there = {(file, version) for file, version in enumerate(state.source) if version}
    if not there <= head.position:
        return f"no progress: {there - head.position} is never read"
    if state.staged:
        return f"staged for ever: {sorted(map(tuple, state.staged))}"
    if state.database.tables:
        return f"stage tables for ever: {[table.name for table in state.database.tables]}"
    if head.publishing or head.cleaning:
        return "publish or clean due for ever"
    return None


def _wrong_overwrite(state: State) -> str | None:
    last = max((run for run in state.runs if run.state == "PUBLISHED"), key=lambda run: run.number)
    held = {row for file in state.target for row in file.rows}
    if held == last.plan:
        return None
    return f"the overwritten target holds {sorted(held)}, the last run wrote {sorted(last.plan)}"


def _wrong_purge(configuration: Configuration, state: State) -> str | None:
    """Look for rows that are gone and were not purged, and for rows that were purged and are there.

    What an undone run has purged may be gone or not: its publish may have been dropped half-way.
    """
    published = [run for run in state.runs if run.state == "PUBLISHED"]
    gone = frozenset(name for run in published for name in run.purged)
    maybe_gone = frozenset(name for run in state.runs if run.state == "UNDONE" for name in run.purged)
    held = Counter(row for file in state.target for row in file.rows)
    for row in state.head.position:
        run = max((run for run in published if row in run.plan), key=lambda run: run.key)
        names = _names_ever(configuration, run, row)
        if not held[row] and names.isdisjoint(gone | maybe_gone):
            return f"row {row} LOST: nobody has purged it"
        if held[row] and not names.isdisjoint(gone):
            return f"row {row} is in the target, and was purged"
        if held[row] > 1 and not _may_be_doubled(configuration, state):
            return f"row {row} {held[row]} times in the target"
    return None


def _names_ever(configuration: Configuration, run: Run, row: Row) -> set[FileName]:
    """Return every name under which a run may have published a row, in any revision."""
    places = {configuration.place(run.epoch, run.number, fence) for fence in run.fences} | {run.place}
    return {name for place in places for name in configuration.file_names(run, place) if name[1] == min(row[0], 1)}


def _wrong_rows(configuration: Configuration, state: State) -> str | None:
    """Look for rows that are lost, doubled, or of no run."""
    may_be_doubled = _may_be_doubled(configuration, state)
    for where, held, wanted in _sinks(configuration, state):
        for row in wanted:
            if row not in held:
                return f"row {row} LOST in {where}"
        for row, count in held.items():
            if not may_be_doubled and (count > 1 or row not in wanted):
                nowhere = "" if row in wanted else ", in no position"
                return f"row {row} {count} times in {where}{nowhere}"
    return None


def _may_be_doubled(configuration: Configuration, state: State) -> bool:
    """Say whether rows of undone runs may lie beside those of the new epoch: after a change that cleans nothing."""
    change = configuration.change or ""
    return state.change == DONE and "clean" not in change and change != "rewind"


def _sinks(configuration: Configuration, state: State) -> Iterator[tuple[str, Counter[Row], Rows]]:
    """Return for each sink its name, what it holds, and what it should hold."""
    position = state.head.position
    if configuration.judges_files:
        yield "the target", Counter(row for file in state.target for row in file.rows), position
    if configuration.has_own_sink:
        yield "the own sink", rows_to_judge(state, state.own_sink), expected(state, FIRST_LEFT_OUT)
    if configuration.has_second:
        yield "the second sink", rows_to_judge(state, state.second_sink), expected(state, SECOND_LEFT_OUT)
    if configuration.has_table:
        inserted = Counter(row for _, row in state.database.target)
        yield "the table", inserted, _newest(position) if configuration.upserts else position


def _newest(position: Rows) -> Rows:
    """Return of each file the newest version that was read."""
    return frozenset(dict(sorted(position)).items())


def _wrong_file(state: State) -> str | None:
    """Look for a file that is not of the present revision of a published run."""
    for file in state.target:
        of_number = [run for run in state.runs if run.number == file.run_number]
        run = next((run for run in of_number if run.state == "PUBLISHED"), None)
        if run and file.place != run.place:
            return (
                f"the target holds a file of place {file.place};"
                f" run {run.key} is at revision {run.revision}, place {run.place}"
            )
        if run is None and not any(run.state == "UNDONE" for run in of_number):
            return f"the target holds a file of run {file.run_number}, which is not published"
    return None
