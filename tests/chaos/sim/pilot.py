"""Pilots: one that draws from a seed, and one that follows recorded decisions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random

from tests.chaos.sim.scheduler import Actor, Decision, Fate

LEASE_S = 120
_FOCUSES = (
    "",
    "",
    "",
    "sink takes",
    "move",
    "folders of",
    "write update",
    "write check",
    "get",
    "stat",
    "put",
    "delete",
)


@dataclass(frozen=True)
class Mix:
    """How a world goes: how readily it switches, how many faults it has, and their share by kind.

    `focus` is how the calls begin that are befallen ten times as often.
    """

    switch: float = 0.3
    budget: int = 3
    rate: float = 0.02
    weights: dict[Fate, float] = field(default_factory=dict)
    focus: str = ""

    @classmethod
    def of(cls, random: Random) -> Mix:
        """Draw one: each world has some kinds of faults and not others."""
        faults = [fate for fate in Fate if fate is not Fate.GO]
        weights: dict[Fate, float] = {fate: random.choice([0.0, 1.0, 1.0, 3.0]) for fate in faults}
        if not any(weights.values()):
            weights[Fate.CRASH_AFTER] = 1.0
        switch = random.choice([0.02, 0.1, 0.3, 0.6])
        return cls(
            switch,
            random.choice([0, 1, 2, 3, 4, 6, 8]),
            random.choice([0.01, 0.03, 0.06, 0.1]),
            weights,
            random.choice(_FOCUSES),
        )


class SeededPilot:
    """Draws each decision."""

    def __init__(self, seed: int, mix: Mix) -> None:
        self._random = Random(f"{seed}/pilot")
        self._mix = mix
        self._left = mix.budget

    def decide(self, runnable: Sequence[Actor], last: Actor | None) -> Decision:
        """See `Pilot.decide`."""
        actor = self._pick(runnable, last)
        rate = self._mix.rate
        if self._mix.focus and actor.point.startswith(self._mix.focus):
            rate *= 10
        if self._left > 0 and actor.kinds and not actor.process.is_exempt and self._random.random() < rate:
            fates = [fate for fate in Fate if fate in actor.kinds]
            weights = [self._mix.weights.get(fate, 0.0) for fate in fates]
            if any(weights):
                self._left -= 1
                return self._fault(actor, self._random.choices(fates, weights)[0])
        return Decision(actor.name)

    def _pick(self, runnable: Sequence[Actor], last: Actor | None) -> Actor:
        if last in runnable and self._random.random() >= self._mix.switch:
            return last  # type: ignore[return-value]
        return self._random.choice(runnable)

    def _fault(self, actor: Actor, fate: Fate) -> Decision:
        match fate:
            case Fate.STALL:
                return Decision(actor.name, fate, self._random.choice([0, 20, 60, 150]))
            case Fate.CLOCK:
                return Decision(actor.name, fate, self._random.choice([-3, -1, 1, 3, 10]) * LEASE_S)
            case _:
                return Decision(actor.name, fate)


class ReplayPilot:
    """Follows decisions as far as they can be followed, then lets everybody go on without faults."""

    def __init__(self, decisions: Sequence[Decision]) -> None:
        self._decisions = list(decisions)
        self._next = 0

    def decide(self, runnable: Sequence[Actor], last: Actor | None) -> Decision:
        """See `Pilot.decide`."""
        names = {actor.name: actor for actor in runnable}
        while self._next < len(self._decisions):
            decision = self._decisions[self._next]
            self._next += 1
            actor = names.get(decision.actor)
            if actor is not None:
                return decision if decision.fate in actor.kinds else Decision(actor.name)
        return Decision(last.name if last in runnable and last is not None else runnable[0].name)
