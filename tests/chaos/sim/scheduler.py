"""Who goes on, and what befalls them: actors are greenlets, each call of table and files is a point to switch at.

A pilot decides at each step which actor goes on and what happens to the call that it is about to make. A pilot that
draws from a seed makes a world; one that follows recorded decisions makes the same world again, or a smaller one.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from random import Random
from threading import Event
from typing import Any, Protocol, TypeVar

from greenlet import getcurrent, greenlet  # type: ignore[import-untyped]

from airflow_bookmarks.core.errors import BookmarkError

Result = TypeVar("Result")

EPOCH = datetime(2026, 1, 5, tzinfo=UTC)
MAX_STEPS = 6000


class Killed(BaseException):
    """The process is gone, as by SIGKILL: whatever its handlers still call has no effect."""


class Stuck(Exception):
    """Raised when a world does not come to its end."""


class Fate(StrEnum):
    """What befalls a call."""

    GO = "goes"
    CRASH_BEFORE = "crashes before it"
    CRASH_AFTER = "crashes after it"
    LOST = "is done, the reply is lost"
    AGAIN = "is done, the reply is lost, and it is sent again"
    OUTAGE = "is not done, no answer"
    LATE = "is not answered, and done later"
    STALL = "stalls past the lease"
    CLOCK = "has its clock moved"


MENDS = {Fate.GO, Fate.STALL, Fate.CLOCK}  # the call is done once and answered


@dataclass(frozen=True, slots=True)
class Decision:
    """Who goes on, and what befalls the call; `amount` is the steps of a stall or the seconds of a moved clock."""

    actor: str
    fate: Fate = Fate.GO
    amount: int = 0


@dataclass
class Process:
    """What dies as one: a driver with its renewer, a worker, a person at the command line."""

    name: str
    start: int = 0
    is_dead: bool = False
    has_ended: bool = False
    is_exempt: bool = False  # from faults
    skew: timedelta = timedelta(0)
    stalled_until: int = 0
    faults: list[Fate] = field(default_factory=list)
    notes: dict[str, Any] = field(default_factory=dict)

    @property
    def is_gone(self) -> bool:
        return self.is_dead or self.has_ended


@dataclass(eq=False)
class Actor:
    """One thread of a process."""

    name: str
    process: Process
    body: Callable[[], object]
    is_main: bool
    greenlet: greenlet
    wake_at: datetime = EPOCH
    event: Event | None = None
    point: str = "begins"
    kinds: frozenset[Fate] = frozenset()
    ready: Callable[[], bool] | None = None


class Pilot(Protocol):
    """Who decides."""

    def decide(self, runnable: Sequence[Actor], last: Actor | None) -> Decision:
        """Say which of `runnable` goes on and what befalls it."""
        ...


class Scheduler:
    """Runs actors to their end, one step at a time."""

    def __init__(self, pilot: Pilot, seed: int, *, is_traced: bool = False) -> None:
        self._pilot = pilot
        self._ticks = Random(f"{seed}/ticks")
        self._actors: list[Actor] = []
        self._hub = getcurrent()
        self._current: Actor | None = None
        self._last: Actor | None = None
        self._is_traced = is_traced
        self._numbers: dict[str, int] = {}
        self.now = EPOCH
        self.steps = 0
        self.decisions: list[Decision] = []
        self.trace: list[str] = []
        self.faults: dict[Fate, int] = {}
        self.stop: Callable[[], bool] = lambda: False

    # ---- what actors use

    @property
    def process(self) -> Process | None:
        """The process whose actor runs now; None while the world itself looks."""
        return None if self._current is None else self._current.process

    def clock(self, process: Process) -> Callable[[], datetime]:
        """Return the clock of a process."""
        return lambda: self.now + process.skew

    def monotonic(self) -> float:
        """Return seconds since the world began: no clock that is moved moves this one."""
        return (self.now - EPOCH).total_seconds()

    def sleep(self, seconds: float) -> None:
        """Sleep in the actor that runs now."""
        self._wait(seconds, None)

    def wait(self, event: Event, seconds: float) -> bool:
        """Wait for an event in the actor that runs now; say whether it was set."""
        self._wait(seconds, event)
        return event.is_set()

    def await_(self, what: str, ready: Callable[[], bool]) -> None:
        """Go on only when `ready()` holds."""
        actor = self._living()
        actor.ready, actor.point, actor.kinds = ready, what, frozenset()
        self._to_hub(actor)
        actor.ready = None

    def _wait(self, seconds: float, event: Event | None) -> None:
        actor = self._living()
        actor.wake_at, actor.event = self.now + timedelta(seconds=seconds), event
        actor.point, actor.kinds = "wakes up", frozenset()
        self._to_hub(actor)
        actor.event = None

    def call(
        self,
        what: str,
        effect: Callable[[], Result],
        unavailable: Callable[[], Exception],
        *,
        changes: bool,
        again: Callable[[], Result] | None = None,
    ) -> Result:
        """Make one request of the actor that runs now: a point to switch at, with whatever befalls it.

        `again` is what a client that got no reply sends a second time; without it a lost reply is an error.
        """
        if self._current is None:
            return effect()
        actor = self._living()
        kinds = {Fate.CRASH_BEFORE, Fate.OUTAGE, Fate.STALL, Fate.CLOCK}
        if changes:
            kinds |= {Fate.CRASH_AFTER, Fate.LOST, Fate.LATE}
        if again is not None:
            kinds.add(Fate.AGAIN)
        actor.point, actor.kinds = what, frozenset(kinds)
        fate = self._to_hub(actor)
        if fate in MENDS:
            return effect()
        if fate is Fate.LATE:
            self._send_late(actor, what, effect)
        if fate in (Fate.OUTAGE, Fate.LATE):
            raise unavailable()
        if fate is Fate.CRASH_BEFORE:
            raise self._kill(actor.process)
        self._attempt(effect)
        if fate is Fate.CRASH_AFTER:
            raise self._kill(actor.process)
        if fate is Fate.AGAIN and again is not None:
            actor.point, actor.kinds = f"{what}, sent again", frozenset()
            self._to_hub(actor)
            return again()
        raise unavailable()

    @staticmethod
    def _attempt(effect: Callable[[], object]) -> None:
        # A refusal is a reply too, and lost; anything else is a fault of the code, and ends the world.
        with contextlib.suppress(BookmarkError, OSError):
            effect()

    def _send_late(self, actor: Actor, what: str, effect: Callable[[], object]) -> None:
        self.spawn(actor.process, lambda: self._attempt(effect), f"late {what}", is_request=True)

    def _kill(self, process: Process) -> Killed:
        process.is_dead = True
        return Killed()

    def _living(self) -> Actor:
        actor = self._current
        if actor is None:
            raise Stuck("the world itself can't wait")
        if actor.process.is_dead:
            raise Killed
        return actor

    def _to_hub(self, actor: Actor) -> Fate:
        fate: Fate = self._hub.switch()
        if actor.process.is_dead and not actor.name.startswith("late"):
            raise Killed
        return fate

    # ---- running

    def spawn(
        self,
        process: Process,
        body: Callable[[], object],
        name: str,
        *,
        is_main: bool = False,
        is_request: bool = False,
    ) -> None:
        """Add an actor to a process; with its main one the process ends."""
        number = self._numbers[name] = self._numbers.get(name, 0) + 1
        full = name if number == 1 else f"{name} {number}"
        owner = Process(process.name, notes=process.notes) if is_request else process
        self._actors.append(Actor(full, owner, body, is_main, greenlet(body, self._hub)))

    def run(self) -> None:
        """Run until all main actors have ended, or somebody says stop."""
        while not self.stop():
            runnable = self._runnable()
            if not runnable:
                return
            decision = self._pilot.decide(runnable, self._last)
            self._step(next(a for a in runnable if a.name == decision.actor), decision)
            if self.steps > MAX_STEPS:
                raise Stuck(f"{self.steps} steps and no end; at: {[(a.name, a.point) for a in runnable]}")

    def end(self) -> None:
        """End every process that is left, without effect."""
        for actor in self._actors:
            actor.process.is_dead = True
            self._end(actor)
        self._actors.clear()

    def _runnable(self) -> list[Actor]:
        self._actors = [a for a in self._actors if not self._is_over(a)]
        mains = [a for a in self._actors if a.is_main or a.name.startswith("late")]
        if not mains:
            return []
        while True:
            able = [a for a in self._actors if a.process.start <= self.steps and self._is_ready(a)]
            awake = [a for a in able if a.process.stalled_until <= self.steps]
            if awake:
                return awake
            if able:
                return able  # everybody else waits for one that stalls: it wakes up
            later = [a for a in self._actors if a.process.start > self.steps]
            if later:
                self.steps = min(a.process.start for a in later)
                continue
            asleep = [a.wake_at for a in self._actors if a.ready is None]
            if not asleep:
                return []
            self.now = max(self.now, min(asleep))

    def _is_ready(self, actor: Actor) -> bool:
        if actor.ready is not None:
            return actor.ready()
        return actor.wake_at <= self.now or (actor.event is not None and actor.event.is_set())

    def _is_over(self, actor: Actor) -> bool:
        if actor.greenlet.dead:
            return True
        if actor.process.is_gone and not actor.name.startswith("late"):
            actor.process.is_dead = True
            self._end(actor)
            return True
        return False

    def _end(self, actor: Actor) -> None:
        if not actor.greenlet:  # not begun, or ended
            return
        self._current = actor
        try:
            actor.greenlet.throw(Killed)
        except Killed:
            pass
        finally:
            self._current = None

    def _step(self, actor: Actor, decision: Decision) -> None:
        self.steps += 1
        self.now += timedelta(milliseconds=self._ticks.randrange(20, 900))
        self.decisions.append(decision)
        fate = decision.fate
        if fate is not Fate.GO:
            self.faults[fate] = self.faults.get(fate, 0) + 1
            actor.process.faults.append(fate)
        if self._is_traced:
            ending = "" if fate is Fate.GO else f"   !! {fate}"
            self.trace.append(f"{self.steps:5} {self.monotonic():9.2f} s  {actor.name:24} {actor.point}{ending}")
        if fate is Fate.STALL:
            actor.process.stalled_until = self.steps + decision.amount
            self.now += timedelta(seconds=200)
            if decision.amount:
                return
        if fate is Fate.CLOCK:
            actor.process.skew += timedelta(seconds=decision.amount)
        self._last = self._current = actor
        try:
            actor.greenlet.switch(fate) if actor.greenlet else actor.greenlet.switch()
        except Killed:
            actor.process.is_dead = True
        finally:
            self._current = None
        if actor.greenlet.dead and actor.is_main:
            actor.process.has_ended = True

    def note(self, text: str) -> None:
        """Add a line to the trace."""
        if self._is_traced:
            self.trace.append(f"{'':17} > {text}")
