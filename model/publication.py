"""Publish, mark, sweep. A publish can be repeated, and finished by anyone."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from model.state import DONE, Driver, Published, Staged, State, publication_of, stored_run, with_run
from model.turn import Turn, released

Step = Callable[[Turn], None]


def _from_own_list(step: Step) -> Step:
    """Let a publisher work from the list that it began with; without `rp_frozen` it reads the run anew each time."""

    def taken(turn: Turn) -> None:
        if not turn.keeps("rp_frozen"):
            run = stored_run(turn.state, turn.publication.key)
            turn.driver = turn.driver._replace(task=publication_of(run))
        step(turn)

    return taken


# ---- publish


def publish(turn: Turn, part: int) -> None:
    """Move one staged file: one request, which fails when the source is gone."""
    files = _staged(turn, part)
    if part == 0 and not turn.keeps("one_request") and not turn.is_fresh:
        opened = turn.publication._replace(opened=frozenset(files))
        copying = turn.driver._replace(step="copy 0", task=opened, rows=frozenset())
        turn.go("opens staged part 0 for a copy by itself", copying)
    else:
        _publish(turn, part, files)


def copy(turn: Turn) -> None:
    """Write what was opened, though its source may be gone by now (`one_request` switched off)."""
    _publish(turn, 0, list(turn.publication.opened))


def _staged(turn: Turn, part: int) -> list[Staged]:
    place = turn.publication.place
    return [file for file in turn.state.staged if file.place == place and file.part == part]


def _publish(turn: Turn, part: int, files: list[Staged]) -> None:
    publication, configuration = turn.publication, turn.configuration
    run = stored_run(turn.state, publication.key)
    moved = frozenset(
        Published(
            name=configuration.file_name(run.number, publication.place, part, file.fence),
            run_number=run.number,
            epoch=run.epoch,
            rows=file.rows,
            place=file.place,
        )
        for file in files
    )
    names = {file.name for file in moved}
    target = turn.state.target
    lists_anew = not turn.keeps("own_list") or not turn.keeps("pu_list")
    if lists_anew and part == 0 and (configuration.overwrites or configuration.purges):
        target = frozenset(file for file in target if file.place == publication.place)
    target = frozenset(file for file in target if file.name not in names) | moved
    label = f"publishes part {part} of run {run.key} rev {publication.revision}{'' if files else ' (nothing there)'}"
    step = "publish 1" if part == 0 else "remove sources"
    going_on = turn.driver._replace(step=step, task=publication._replace(opened=frozenset()), rows=frozenset())
    turn.go(label, going_on, turn.state._replace(target=target))


def remove_sources(turn: Turn) -> None:
    """Remove what was moved."""
    publication = turn.publication
    staged = frozenset(file for file in turn.state.staged if file.place != publication.place)
    step = "delete list" if publication.deletions else _step_after_files(turn)
    turn.go("removes the moved sources", turn.driver._replace(step=step), turn.state._replace(staged=staged))


def delete_list(turn: Turn) -> None:
    """Delete the files that the run lists, and nothing else."""
    publication = turn.publication
    target = frozenset(file for file in turn.state.target if file.name not in publication.deletions)
    label = f"deletes the list of run {publication.key} rev {publication.revision}"
    turn.go(label, turn.driver._replace(step=_step_after_files(turn)), turn.state._replace(target=target))


def _step_after_files(turn: Turn) -> str:
    return "transact" if turn.configuration.has_table else "mark"


# ---- mark


def mark(turn: Turn) -> None:
    """Record that the publish is done; a publisher of its own run releases the lease with it."""
    is_own = turn.driver.fence in stored_run(turn.state, turn.publication.key).fences
    if not turn.is_mine:
        step = "mark?" if is_own and turn.keeps("read_back") else DONE
        turn.go("mark refused", turn.driver._replace(step=step, outcome="stale"))
    else:
        _mark(turn, is_own)


def _mark(turn: Turn, is_own: bool) -> None:
    driver, state = turn.driver, _marked(turn, is_own)
    label = f"marks run {turn.publication.key} PUBLISHED"
    if not is_own:
        turn.go(label, driver._replace(step="recover", outcome=None), state)
        return
    turn.go(f"{label}, releases", _after_own_mark(driver), state)
    if turn.may_lose_reply:
        turn.lose_reply(label, driver._replace(step="mark?"), state)


def _marked(turn: Turn, is_own: bool) -> State:
    head, run = turn.head, stored_run(turn.state, turn.publication.key)
    marked_head = head._replace(
        published=max(head.published, run.number) if turn.keeps("rp_published") else run.number,
        publishing=None if head.publishing == run.key else head.publishing,
    )
    marked_run = run._replace(state="PUBLISHED") if run.state == "COMMITTED" else run
    marked = with_run(turn.state, marked_run)._replace(head=marked_head)
    return released(marked) if is_own else marked


def _after_own_mark(driver: Driver) -> Driver:
    """Go on to the sweep; a replay that has finished an adopted run first has its own work still to do."""
    if driver.kind == "replay" and driver.has_adopted:
        return driver._replace(step="begin", has_adopted=False, landed=None, outcome=None)
    return driver._replace(step="sweep", outcome="ok")


def read_back_mark(turn: Turn) -> None:
    """Find out what became of a mark whose reply was lost, or that was refused."""
    run = stored_run(turn.state, turn.publication.key)
    is_own = turn.driver.fence in run.fences if turn.keeps("read_back") else turn.is_mine
    if is_own:
        turn.end("reads back: own success", outcome="ok")
    else:
        turn.end("reads back: thinks it failed", outcome="false failure")


def sweep(turn: Turn) -> None:
    """Remove staging of lower fences."""
    driver, state = turn.driver, turn.state
    if turn.keeps("sweep"):
        state = state._replace(staged=frozenset(file for file in state.staged if file.fence > driver.fence))
    if turn.keeps("sweep") and turn.configuration.has_table:
        turn.go("sweeps lower fences", driver._replace(step="drop tables"), state)
    else:
        turn.end("sweeps lower fences", outcome=driver.outcome or "ok", state=state)


STEPS: dict[str, Step] = {
    "publish 0": _from_own_list(partial(publish, part=0)),
    "publish 1": _from_own_list(partial(publish, part=1)),
    "copy 0": _from_own_list(copy),
    "remove sources": _from_own_list(remove_sources),
    "delete list": _from_own_list(delete_list),
    "mark": mark,
    "mark?": read_back_mark,
    "sweep": sweep,
}
