"""Making a failing world smaller: fewer actors, fewer faults, fewer switches, by leaving out what it fails without."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tests.chaos.sim.play import play
from tests.chaos.sim.scheduler import Decision, Fate
from tests.chaos.sim.world import Outcome, Settings

TRIES = 400


class Shrinker:
    """Greedy delta debugging over the roles of a world, and over the decisions that were recorded of it."""

    def __init__(self, settings: Settings, tries: int = TRIES) -> None:
        self._settings = settings
        self._left = tries
        self._decisions = list(play(settings).decisions)

    def shrink(self) -> Outcome:
        """Return the smallest failing world that was found, with its trace."""
        if self._fails(self._settings, self._decisions):
            self._leave_out_roles()
            self._leave_out_faults()
            self._leave_out_switches()
            return play(self._settings, self._decisions, is_traced=True)
        return play(self._settings, is_traced=True)  # it needs every step as drawn

    def _fails(self, settings: Settings, decisions: Sequence[Decision]) -> bool:
        self._left -= 1
        return self._left >= 0 and bool(play(settings, decisions).violations)

    def _leave_out_roles(self) -> None:
        for role in self._settings.roles:
            fewer = replace(self._settings, roles=tuple(r for r in self._settings.roles if r != role))
            if fewer.roles and self._fails(fewer, self._decisions):
                self._settings = fewer
                self._decisions = [d for d in self._decisions if not d.actor.startswith(role)]

    def _leave_out_faults(self) -> None:
        for index, decision in enumerate(list(self._decisions)):
            if decision.fate is not Fate.GO:
                calm = [*self._decisions]
                calm[index] = Decision(decision.actor)
                if self._fails(self._settings, calm):
                    self._decisions = calm

    def _leave_out_switches(self) -> None:
        size = max(1, len(self._decisions) // 2)
        while size and self._left > 0:
            start = 0
            while start < len(self._decisions):
                fewer = self._decisions[:start] + self._decisions[start + size :]
                if self._fails(self._settings, fewer):
                    self._decisions = fewer
                else:
                    start += size
            size //= 2
