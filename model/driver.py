"""The steps of a driver, by name.

    begin - recover (clean; publish what is due; settle open runs) - plan - place - read - stage files
          - load a stage table - own sink - commit - publish - mark - sweep

A replay goes from recover to `look up`, reads the stored plan, stages, and ends in a commit of its own. A driver that
takes no further step has crashed, and one that takes its next step late is a zombie.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from model import own_sink, publication, recovery, stage_table
from model.state import (
    Driver,
    FileName,
    Head,
    Lease,
    Run,
    Staged,
    State,
    publication_of,
    run_of,
    stored_run,
    with_run,
)
from model.turn import Move, Turn, released

if TYPE_CHECKING:
    from model.configuration import Configuration

Step = Callable[[Turn], None]


def moves_of(configuration: Configuration, state: State, driver: Driver, is_fresh: bool = False) -> list[Move]:
    """Return where the next step of a driver may lead."""
    turn = Turn(configuration, state, driver, is_fresh)
    STEPS[driver.step](turn)
    return turn.moves


def begin(turn: Turn) -> None:
    """Take the lease. It may be judged dead at any time, and is by a fresh driver."""
    if turn.keeps("tombstone") and _was_killed(turn):
        turn.end("begin refused: killed attempt", outcome="fenced")
    elif turn.is_fresh or _may_take(turn.head.lease, turn.driver):
        _take(turn)


def _was_killed(turn: Turn) -> bool:
    driver = turn.driver
    return any(run_id == driver.run_id and attempt >= driver.attempt for run_id, attempt in turn.head.killed)


def _may_take(lease: Lease | None, driver: Driver) -> bool:
    return lease is None or lease.run_id != driver.run_id or lease.attempt < driver.attempt


def _take(turn: Turn) -> None:
    head, driver = turn.head, turn.driver
    fence = head.fence + 1
    skips_recovery = driver.kind == "replay" and not turn.keeps("rp_recover")
    taken = driver._replace(
        step="look up" if skips_recovery else "recover" if turn.keeps("st_later") else "drop early",
        fence=fence,
        version=head.version,
        epoch=head.epoch,
        position=head.position,
        run_number=head.run_number + 1,
    )
    lease = Lease(driver.run_id, driver.attempt, fence)
    turn.go(f"takes the lease, fence {fence}", taken, turn.state._replace(head=head._replace(lease=lease, fence=fence)))


def plan(turn: Turn) -> None:
    """See what is new."""
    driver, state = turn.driver, turn.state
    new = frozenset((file, version) for file, version in enumerate(state.source) if version) - driver.position
    if new:
        turn.go(f"plans {sorted(new)}", driver._replace(step="place", plan=new))
    elif turn.is_mine:
        turn.go("nothing new, releases", driver._replace(step="sweep", outcome="ok"), released(state))
    else:
        turn.end("release refused")


def place(turn: Turn) -> None:
    """Store the plan on the run's own item."""
    if _is_fenced_out(turn):
        return
    driver = turn.driver
    run = Run(
        key=(driver.run_number, driver.fence),
        state="PLANNED",
        fence=driver.fence,
        epoch=driver.epoch,
        number=driver.run_number,
        plan=driver.plan,
        is_placed=False,
        landed=None,
        after=driver.position | driver.plan,
        place=turn.place,
        revision=0,
        fences=(driver.fence,),
        deletions=frozenset(),
    )
    turn.go(f"stores its plan as RUN {run.key}", driver._replace(step="placed"), with_run(turn.state, run))


def placed(turn: Turn) -> None:
    """Store where the sinks are going to stage."""
    if _is_fenced_out(turn):
        return
    run = _own_run(turn)._replace(is_placed=True)
    turn.go("stores its places", turn.driver._replace(step="read"), with_run(turn.state, run))


def _is_fenced_out(turn: Turn) -> bool:
    if turn.is_mine or not turn.keeps("fence_check"):
        return False
    turn.end("plan or place refused (fence)")
    return True


def look_up(turn: Turn) -> None:
    """Find run 1, in the timeline that is alive, and replay it."""
    run = next((run for run in turn.state.runs if run.number == 1 and _may_be_replayed(turn, run)), None)
    if run is None or _refuses_replay(turn):
        label = "replay refused: run 1 is not (or no longer) one to replay"
        turn.end(label, outcome="refused", state=released(turn.state) if turn.is_mine else None)
    else:
        found = turn.driver._replace(step="read", plan=run.plan, task=run.key, run_number=run.number)
        turn.go(f"replay of run {run.key} revision {run.revision}", found)


def _refuses_replay(turn: Turn) -> bool:
    """Say whether a sink can't replace what run 1 wrote."""
    configuration = turn.configuration
    needs_last = (configuration.overwrites and turn.keeps("rp_last")) or (
        configuration.purges and turn.keeps("pu_last")
    )
    is_followed = needs_last and turn.head.run_number != 1
    return is_followed or (configuration.has_table and turn.keeps("st_replay"))


def _may_be_replayed(turn: Turn, run: Run) -> bool:
    return run.state == "PUBLISHED" or (run.state == "COMMITTED" and not turn.keeps("rp_recover"))


def read(turn: Turn) -> None:
    """Read exactly the plan, versions and all."""
    driver, source = turn.driver, turn.state.source
    checks = turn.keeps("versions") and (driver.kind != "replay" or turn.keeps("rp_versions"))
    if checks and any(source[file] != version for file, version in driver.plan):
        turn.go("read: a planned file changed", driver._replace(step="fail"))
        return
    rows = frozenset((file, source[file]) for file, _ in driver.plan)
    writes_own_sink_first = turn.writes_own_sink and driver.kind == "run" and not turn.keeps("staged_first")
    step = "write own sink" if writes_own_sink_first else turn.configuration.first_step_of_staging
    if turn.configuration.purges and driver.kind == "run":
        step = "purge"
    turn.go(f"reads {sorted(rows)}", driver._replace(step=step, rows=rows))


def purge(turn: Turn) -> None:
    """List what is to be purged: all that lies in the target now. A replay keeps what its run has purged."""
    listed, state = _target_names(turn), turn.state
    going_on = turn.driver._replace(step=turn.configuration.first_step_of_staging, purged=listed)
    if turn.keeps("pu_commit"):
        turn.go(f"lists {len(listed)} file(s) to purge", going_on)
    else:
        turn.go("purges the target at once", going_on._replace(purged=frozenset()), state._replace(target=frozenset()))


def stage(turn: Turn, part: int) -> None:
    """Stage one of two files."""
    driver, state = turn.driver, turn.state
    rows = driver.rows_of(part)
    step = "stage 1" if part == 0 else "create table" if turn.configuration.has_table else turn.step_after_staging
    file = Staged(turn.place, driver.fence, part, rows)
    turn.go(
        f"stages part {part}",
        driver._replace(step=step),
        state._replace(staged=state.staged | {file}) if rows else state,
    )
    if part == 1 and turn.may_raise:
        turn.go("EXCEPTION in the block", driver._replace(step="fail"))


def _own_run(turn: Turn) -> Run:
    return stored_run(turn.state, (turn.driver.run_number, turn.driver.fence))


def fail(turn: Turn) -> None:
    """Mark the run FAILED after an exception. A replay has no run of its own to mark."""
    if not turn.is_mine:
        turn.end("fail mark refused")
        return
    state, driver = turn.state, turn.driver
    run = run_of(state, (driver.run_number, driver.fence))
    if run is None and driver.kind == "replay" and not turn.keeps("rp_fail"):
        run = turn.open_run
    marked = state if run is None else with_run(state, run._replace(state="FAILED"))
    turn.end("marks FAILED, releases", outcome="failed", state=released(marked))


def commit(turn: Turn) -> None:
    """Make the plan part of the bookmark, in one transaction."""
    head, driver = turn.head, turn.driver
    if not turn.is_mine or head.version != driver.version:
        turn.end("commit refused")
        return
    is_overwrite = turn.configuration.overwrites and turn.keeps("own_list")
    run = _own_run(turn)._replace(
        state="COMMITTED",
        landed=driver.landed,
        deletions=_target_names(turn) if is_overwrite else driver.purged,
        purged=driver.purged,
    )
    moved = head._replace(
        version=head.version + 1,
        run_number=driver.run_number,
        position=driver.position | driver.plan,
        publishing=run.key,
    )
    _commit(turn, f"COMMITS run {driver.run_number}", run, moved)


def commit_replay(turn: Turn) -> None:
    """Add a revision to a run, in one transaction: version, position, last run and all other runs stay."""
    head, driver = turn.head, turn.driver
    if head.version != driver.version or not (turn.is_mine or not turn.keeps("rp_fence")):
        turn.end("replay commit refused")
        return
    former = turn.open_run
    deletions = turn.configuration.file_names(former, former.place) if turn.keeps("rp_list") else _target_names(turn)
    run = former._replace(
        state="COMMITTED",
        revision=former.revision + 1,
        fences=(*former.fences, driver.fence) if turn.keeps("rp_revfences") else (driver.fence,),
        place=turn.place,
        deletions=deletions,
    )
    due = head._replace(publishing=run.key) if turn.keeps("rp_publishing") else head
    _commit(turn, f"COMMITS revision {run.revision} of run {run.key}", run, due)


def _target_names(turn: Turn) -> frozenset[FileName]:
    return frozenset(file.name for file in turn.state.target)


def _commit(turn: Turn, label: str, run: Run, head: Head) -> None:
    state = with_run(turn.state, run)._replace(head=head)
    carrying = turn.driver._replace(step=turn.configuration.first_step_of_publish, task=publication_of(run))
    turn.go(label, carrying, state)
    if turn.may_lose_reply:
        turn.lose_reply(label, carrying._replace(step="commit?"), state)


def read_back_commit(turn: Turn) -> None:
    """Find out what became of a commit whose reply was lost."""
    driver = turn.driver
    if turn.keeps("read_back"):
        run = stored_run(turn.state, turn.publication.key)
        is_own = driver.fence in run.fences and run.state in ("COMMITTED", "PUBLISHED", "UNDONE")
    else:
        is_own = turn.is_mine
    if is_own:
        turn.go("reads back: own success", driver._replace(step=turn.configuration.first_step_of_publish))
    else:
        turn.end("reads back: thinks it lost", outcome="false failure")


STEPS: dict[str, Step] = {
    "begin": begin,
    **recovery.STEPS,
    "plan": plan,
    "place": place,
    "placed": placed,
    "look up": look_up,
    "read": read,
    "purge": purge,
    "stage 0": partial(stage, part=0),
    "stage 1": partial(stage, part=1),
    **stage_table.STEPS,
    **own_sink.STEPS,
    "fail": fail,
    "commit": commit,
    "commit replay": commit_replay,
    "commit?": read_back_commit,
    **publication.STEPS,
}
