"""Many worlds, and what they came to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from tests.chaos.sim.play import play
from tests.chaos.sim.world import Settings

COMMAND = "python -m tests.chaos.sim"


@dataclass
class Tally:
    """What many worlds came to."""

    worlds: int = 0
    steps: int = 0
    faults: Counter[str] = field(default_factory=Counter)
    judged: Counter[str] = field(default_factory=Counter)
    violations: dict[int, tuple[str, ...]] = field(default_factory=dict)

    def __iadd__(self, other: Tally) -> Tally:
        self.worlds += other.worlds
        self.steps += other.steps
        self.faults.update(other.faults)
        self.judged.update(other.judged)
        self.violations |= other.violations
        return self

    def __str__(self) -> str:
        faults = ", ".join(f"{name.lower()} {count}" for name, count in sorted(self.faults.items()))
        return f"{self.worlds} worlds, {self.steps} steps, faults: {faults or 'none'}; {len(self.violations)} violated"


def run_worlds(seeds: Sequence[int], draw: Callable[[int], Settings] = Settings.of) -> Tally:
    """Play the worlds of `seeds`, each as `draw` makes it."""
    tally = Tally()
    for seed in seeds:
        outcome = play(draw(seed))
        tally.judged.update(outcome.judged)
        tally.worlds += 1
        tally.steps += outcome.steps
        tally.faults.update(outcome.faults)
        if outcome.violations:
            tally.violations[seed] = outcome.violations
    return tally


def told(violations: Mapping[int, tuple[str, ...]]) -> str:
    """Return what was violated, each with the command that plays it again."""
    lines = [f"seed {seed}: {texts[0]}\n    {COMMAND} --seed {seed} --trace" for seed, texts in violations.items()]
    return "\n".join(lines)
