"""What happens around the drivers: source files, an operator who kills, an administrator who resets and rewinds."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from model.second_sink import decisions
from model.state import DONE, INNOCENT, NO_ROWS, OPEN, Head, Rows, Run, RunKey, State, run_of, with_run

if TYPE_CHECKING:
    from model.configuration import Configuration

Happening = tuple[str, State]


def happenings(configuration: Configuration, state: State) -> Iterator[Happening]:
    """Return what may happen now."""
    for event in state.events:
        yield _event(state, event)
    if state.kill:
        yield _kill(configuration, state)
    yield from decisions(state)
    if state.change not in (None, DONE):
        yield from _change(configuration, state)


def _event(state: State, event: str) -> Happening:
    left = tuple(each for each in state.events if each != event)
    if event == "arrival":
        return "file 1 arrives", state._replace(source=(state.source[0], 1), events=left)
    return "file 0 is overwritten", state._replace(source=(2, state.source[1]), events=left)


def _kill(configuration: Configuration, state: State) -> Happening:
    """Kill an attempt and fence it: it, and no other."""
    head, named = state.head, state.kill
    if named is None:
        raise ValueError("nobody to kill")
    lease, is_conditional = head.lease, configuration.keeps("kill_condition")
    holds_lease = lease is not None and lease.run_id == named[0] and lease.attempt <= named[1]
    killed = head.killed | {named}
    if lease and not holds_lease and not is_conditional:
        killed |= {INNOCENT}
    if holds_lease or not is_conditional:
        head = head._replace(lease=None, fence=head.fence + 1)
    label = f"operator kills and fences {named}"
    return label, state._replace(head=head._replace(killed=killed), kill=None)


# ---- reset and rewind


def _change(configuration: Configuration, state: State) -> Iterator[Happening]:
    """Begin a new epoch, in one transaction. `rewind` goes to the last run, `rewind1` to run 1; both may also clean."""
    kind, head = state.change or "", state.head
    alive = [run for run in state.runs if run.state in ("COMMITTED", "PUBLISHED")]
    kept = 0 if "reset" in kind else 1 if "rewind1" in kind else head.run_number
    if kept == 1 and not any(run.number == 1 for run in alive):
        return
    undone = [run for run in alive if run.number > kept]
    to_clean = _to_clean(state, undone, kept) if "clean" in kind else ()
    if _refuses_clean(configuration, state, to_clean):
        return
    changed = state._replace(
        head=head._replace(
            version=head.version + 1,
            epoch=head.epoch + 1,
            fence=head.fence + 1,
            lease=None,
            position=_position(head, alive, kept),
            cleaning=to_clean if configuration.keeps("cleaning_note") else (),
            publishing=_still_due(configuration, state, undone, "clean" in kind),
        ),
        change=DONE,
    )
    for run in state.runs:
        if run in undone or (run.key in to_clean and configuration.keeps("clean_open")):
            changed = with_run(changed, run._replace(state="UNDONE"))
    yield f"ADMIN {kind}: epoch {head.epoch + 1}" + (f", to clean {to_clean}" if to_clean else ""), changed


def _to_clean(state: State, undone: list[Run], kept: int) -> tuple[RunKey, ...]:
    """Return the runs whose output is to go: those undone, and open ones unless all that is committed stays."""
    takes_open = kept < state.head.run_number or kept == 0
    return tuple(run.key for run in state.runs if run in undone or (takes_open and run.state in OPEN))


def _refuses_clean(configuration: Configuration, state: State, to_clean: tuple[RunKey, ...]) -> bool:
    """Say whether a run that is to be cleaned has an output in a table, whose rows can't be told from others."""
    if not configuration.has_table or not configuration.keeps("st_clean"):
        return False
    return any(run.is_placed for run in state.runs if run.key in to_clean)


def _position(head: Head, alive: list[Run], kept: int) -> Rows:
    if kept and kept == head.run_number:
        return head.position
    return next((run.after for run in alive if run.number == kept), NO_ROWS)


def _still_due(configuration: Configuration, state: State, undone: list[Run], cleans: bool) -> RunKey | None:
    """Return what stays due: a first publish of an undone run is dropped, a replay's is finished."""
    due = run_of(state, state.head.publishing) if state.head.publishing else None
    if due is None:
        return None
    is_dropped = due in undone and (cleans or due.revision == 0 or not configuration.keeps("rp_undone"))
    return None if is_dropped else due.key
