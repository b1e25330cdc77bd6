r"""Lines: which runs are history now.

Each reset, rewind, set or undo starts a line. Runs that the new line leaves out are undone without being touched:

    epoch 1   1---2---3---4            rewind to 2 starts epoch 2: parent 1, kept 2, start 4
                   \
    epoch 2         5---6              living now: 1, 2, 5, 6; undone: 3, 4
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from airflow_bookmarks.core.errors import StateCorruptError
from airflow_bookmarks.core.run import RunState

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from airflow_bookmarks.core.run import ContextState, Payload, Run, RunKey


@dataclass(frozen=True, slots=True)
class Timeline:
    """One line: its epoch, the epoch it branched off (None: the first), the last run kept of that, and the highest run
    number that was given out when it started (its own runs have higher ones).
    """

    epoch: int
    parent: int | None = None
    kept: int = 0
    start: int = 0


FIRST_LINE = Timeline(1)


@dataclass(frozen=True, slots=True)
class TimelineChange:
    """What began a line, and how the job stood just before: so that it can be undone.

    `kind` is the change (reset, rewind, set, undo); `fence` the fence that it gave the job. `contexts` and
    `data_run_number` are those of before. `dropped` names a run whose first publish was due and was dropped;
    `is_clean` says that what undone runs published was removed. `positions` holds what a set put in place.
    """

    line: Timeline
    kind: str
    fence: int
    contexts: Mapping[str, ContextState]
    data_run_number: int
    dropped: RunKey | None = None
    is_clean: bool = False
    positions: Mapping[str, Payload] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Ancestry:
    """The lines that make up the history of one epoch, with the last run number that counts of each (None: all)."""

    bounds: Mapping[int, int | None]

    @classmethod
    def of(cls, epoch: int, lines: Iterable[Timeline]) -> Ancestry:
        """Follow the parents of `epoch`. The first line (epoch 1) need not be among `lines`.

        Raises:
            StateCorruptError: a line is missing, or is among its own ancestors.
        """
        by_epoch = {1: FIRST_LINE} | {line.epoch: line for line in lines}
        bounds: dict[int, int | None] = {}
        bound: int | None = None
        at: int | None = epoch
        while at is not None:
            if at in bounds:
                raise _damaged(f"the line of epoch {at} is among its own ancestors")
            bounds[at] = bound
            line = _line(by_epoch, at)
            bound = line.kept if bound is None else min(bound, line.kept)
            at = line.parent
        return cls(bounds)

    def is_living(self, number: int, epoch: int) -> bool:
        """Whether the run with this number, made in this epoch, is part of this history."""
        if epoch not in self.bounds:
            return False
        bound = self.bounds[epoch]
        return bound is None or number <= bound

    def has(self, run: Run) -> bool:
        """Whether a run is committed, and part of this history."""
        return run.state.is_committed and self.is_living(run.key.number, run.epoch)

    def is_undone(self, run: Run) -> bool:
        """Whether a run is committed, and this history leaves it out."""
        return run.state.is_committed and not self.is_living(run.key.number, run.epoch)


def ancestry_after(
    epoch: int, lines: Iterable[Timeline], highest: int, *, parent: int | None = None, kept: int
) -> Ancestry:
    """Return which runs are history after a change that starts a line.

    Args:
        epoch: that of the present line.
        lines: all lines of the job so far.
        highest: the highest run number that was given out.
        parent: the line that the new one branches off; None: the present one.
        kept: the last run that it keeps of that.

    Example:
        >>> after = ancestry_after(1, [], 4, kept=2)  # a rewind to run 2, of four
        >>> [number for number in (1, 2, 3, 4) if after.is_living(number, 1)]
        [1, 2]
    """
    line = Timeline(epoch + 1, parent or epoch, kept, highest)
    return Ancestry.of(line.epoch, [*lines, line])


def newest_living(newest_first: Iterable[Run], history: Ancestry) -> int:
    """Return the number of the newest run that is history; 0 where there is none. Reads no further than that."""
    return next((run.key.number for run in living_runs(newest_first, history)), 0)


def living_runs(runs: Iterable[Run], history: Ancestry) -> Iterator[Run]:
    """Yield those of `runs`, in their order, that are committed and part of a history."""
    return (run for run in runs if history.has(run))


def _line(lines: Mapping[int, Timeline], epoch: int) -> Timeline:
    line = lines.get(epoch)
    if line is None:
        raise _damaged(f"the line of epoch {epoch} is missing")
    return line


def _damaged(what: str) -> StateCorruptError:
    return StateCorruptError(
        f"the lines of a job can't be followed: {what}, so nobody can tell which runs are history. Nothing was read or "
        "changed. 'airflow-bookmarks doctor' names the item; restore the table from a backup."
    )


def has_living_number(epoch: int, lines: Iterable[Timeline], after: int, until: int) -> bool:
    """Whether the history of `epoch` gave out a run number in (after, until].

    Raises:
        StateCorruptError: as `Ancestry.of`.

    Example (the drawing above):
        >>> drawn = [Line(2, parent=1, kept=2, start=4)]
        >>> has_living_number(2, drawn, 2, 4), has_living_number(2, drawn, 1, 4)
        (False, True)
    """
    known = {1: FIRST_LINE} | {line.epoch: line for line in lines}
    for at, bound in Ancestry.of(epoch, known.values()).bounds.items():
        top = until if bound is None else min(bound, until)
        if max(known[at].start, after) < top:
            return True
    return False


def last_common_run(seen: int, now: int, consumed: int, lines: Iterable[Timeline]) -> int | None:
    """Return the last run that a reader of epoch `seen`, who consumed up to run `consumed`, still shares with epoch
    `now`.

    None means that nothing at or below `consumed` was undone in between.

    Raises:
        StateCorruptError: as `Ancestry.of`.

    Example (the drawing above; the consumer had read up to run 4 in epoch 1):
        >>> last_common_run(1, 2, 4, [Line(2, parent=1, kept=2, start=4)])
        2
        >>> last_common_run(1, 2, 2, [Line(2, parent=1, kept=2, start=4)]) is None
        True
    """
    if seen == now:
        return None
    known = {1: FIRST_LINE} | {line.epoch: line for line in lines}
    before, after = Ancestry.of(seen, known.values()), Ancestry.of(now, known.values())
    lost_after: list[int] = []
    for epoch, bound in before.bounds.items():
        top = consumed if bound is None else min(bound, consumed)
        start = known[epoch].start
        still = start
        if epoch in after.bounds:
            limit = after.bounds[epoch]
            still = top if limit is None else max(start, limit)
        if still < top:
            # Runs still+1 .. top of this line are gone; what came before them in this history is shared.
            lost_after.append(_last_before(before, known, epoch, still))
    return min(lost_after) if lost_after else None


def _last_before(history: Ancestry, known: Mapping[int, Timeline], epoch: int, number: int) -> int:
    """Return `number` if it is a run of `epoch`, else the last run that this history has from before that line."""
    line = known[epoch]
    return number if number > line.start or line.parent is None else line.kept


# ---- what a consumer reads of them


@dataclass(frozen=True, slots=True)
class SelectedRuns:
    """Runs of the upstream that a window covers, and those that have deleted, or delete now, what they replaced.

    A run that was undone before its publish was done, `dropped`, is not among these: what it meant to replace stays
    where it is, except for what it had deleted by then.
    """

    window: list[Run]
    deleting: list[Run]
    dropped: list[Run]

    def last_number(self, otherwise: int) -> int:
        """Return the number of the last run that the window covers; `otherwise` where it covers none."""
        return self.window[-1].key.number if self.window else otherwise


def choose_runs(
    committed: Sequence[Run], living: Ancestry, publishing: RunKey | None, until: int | None = None
) -> SelectedRuns:
    """Return what a consumer reads of the committed runs after the one that it has read last.

    Args:
        committed: all that are committed, oldest first, undone ones too.
        living: which of them are history.
        publishing: the one whose publish is under way, by the head; None: none is.
        until: the last one to read; None: all of them.
    """
    window: list[Run] = []
    for run in living_runs(committed, living):
        is_beyond = until is not None and run.key.number > until
        if run.state is RunState.COMMITTED or is_beyond:
            break
        window.append(run)
    deleting: list[Run] = []
    dropped: list[Run] = []
    for run in committed:
        is_dropped = run.state is RunState.COMMITTED and run.key != publishing
        (dropped if is_dropped else deleting).append(run)
    return SelectedRuns(window, deleting, dropped)
