"""Search every interleaving, breadth first: the first violation that is found has the shortest trace."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from model.driver import moves_of
from model.ending import Ending, ending_of, violation_in
from model.environment import happenings
from model.state import DONE, State

if TYPE_CHECKING:
    from model.configuration import Configuration

S = TypeVar("S")


@dataclass(frozen=True)
class Result:
    """What a search found; no violation: the search is complete, and nothing went wrong.

    `trace` leads to the state that is wrong, `ending` says what fresh drivers did from there.
    """

    name: str
    states: int
    endings: int
    seconds: float
    violation: str | None = None
    trace: tuple[str, ...] = ()
    ending: tuple[str, ...] = ()

    def __str__(self) -> str:
        if self.violation is None:
            return f"PASS  {self.name}: {self.states} states, {self.endings} endings, {self.seconds:.1f} s"
        head = f'VIOLATION in "{self.name}" after {self.states} states: {self.violation}'
        return "\n".join(
            [head, *(f"   {label}" for label in self.trace), *(f"      > {label}" for label in self.ending)]
        )


def explore(
    name: str,
    first: S,
    successors: Callable[[S], Iterator[tuple[str, S]]],
    judge: Callable[[S], Ending],
    endings: Callable[[], int],
) -> Result:
    """Visit every state that can be reached, nearest first, until one is judged wrong."""
    began = time.monotonic()
    parents: dict[S, tuple[S, str] | None] = {first: None}
    waiting = deque([first])
    while waiting:
        state = waiting.popleft()
        violation, ending = judge(state)
        if violation:
            seconds = time.monotonic() - began
            return Result(name, len(parents), endings(), seconds, violation, _trace(parents, state), ending)
        for label, successor in successors(state):
            if successor not in parents:
                parents[successor] = (state, label)
                waiting.append(successor)
    return Result(name, len(parents), endings(), time.monotonic() - began)


def _trace(parents: dict[S, tuple[S, str] | None], state: S) -> tuple[str, ...]:
    labels = []
    while (step := parents[state]) is not None:
        state, label = step
        labels.append(label)
    return tuple(reversed(labels))


def search(configuration: Configuration) -> Result:
    """Search one configuration of the protocol."""
    judge = _Judge(configuration)

    def successors(state: State) -> Iterator[tuple[str, State]]:
        return successors_of(configuration, state)

    return explore(configuration.name, configuration.first_state(), successors, judge, lambda: len(judge.endings))


class _Judge:
    """Judges states. Endings are kept: what fresh drivers do depends neither on others nor on what is yet to happen."""

    def __init__(self, configuration: Configuration) -> None:
        self._configuration = configuration
        self.endings: dict[State, Ending] = {}

    def __call__(self, state: State) -> Ending:
        violation = violation_in(self._configuration, state)
        if violation:
            return Ending(violation, ())
        frozen = state._replace(drivers=(), kill=None, events=(), losable_replies=0)
        ending = self.endings.get(frozen)
        if ending is None:
            ending = self.endings[frozen] = ending_of(self._configuration, state)
        return ending


def successors_of(configuration: Configuration, state: State) -> Iterator[tuple[str, State]]:
    """Return what may happen next, each with the state that it leads to."""
    drivers = state.drivers
    for at, driver in enumerate(drivers):
        if driver.step != DONE:
            for label, after, moved in moves_of(configuration, state, driver):
                now = (*drivers[:at], moved, *drivers[at + 1 :])
                yield f"{driver.run_id}.{driver.attempt}: {label}", after._replace(drivers=now)
    yield from happenings(configuration, state)
