"""Apply each bite alone in a process of its own, and see that the simulator finds it; exit 1 when it does not."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
import traceback
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from threading import Lock

from tests.chaos.bites import data, reading, state
from tests.chaos.bites.bite import BITES, TWO_SINKS, Bite
from tests.chaos.sim.play import play
from tests.chaos.sim.world import Settings

COMMAND = "python -m tests.chaos.bites"
MODULES = (data, state, reading)
THEMES = 7  # so many worlds have one of a given theme

_PLAYING = Lock()  # a process has one world at a time


@dataclass(frozen=True)
class Caught:
    """Which world showed a bite, and how; None: none did."""

    bite: Bite
    seed: int | None
    violation: str
    seconds: float

    def __str__(self) -> str:
        where = "NOT CAUGHT" if self.seed is None else f"seed {self.seed}"
        return f"{self.bite.name:38} {where:12} {self.seconds:5.1f} s  {self.violation[:110]}"


def hunt(bite: Bite, seeds: int) -> Caught:
    """Apply a bite in a fresh process, and return the first world that shows it and is sound without it."""
    began, start = time.monotonic(), 0
    while True:
        command = [sys.executable, "-m", "tests.chaos.bites", "--apply", bite.name, "--start", str(start)]
        done = subprocess.run([*command, "--seeds", str(seeds)], check=True, stdout=subprocess.PIPE, text=True)
        found = json.loads(done.stdout)
        if found is None:
            break
        with _PLAYING:
            is_sound = not _violations(bite, found["seed"])
        if is_sound:
            return Caught(bite, found["seed"], found["violation"], time.monotonic() - began)
        start = found["seed"] + 1
    return Caught(bite, None, bite.rule, time.monotonic() - began)


def _apply(bite: Bite, start: int, seeds: int) -> None:
    """Print the first violated world of a process with the bite in it, as JSON."""
    bite.apply()
    found = None
    for seed in _seeds(bite, start, seeds):
        violations = _violations(bite, seed)
        if violations:
            found = {"seed": seed, "violation": violations[0]}
            break
    print(json.dumps(found))


def _seeds(bite: Bite, start: int, seeds: int) -> Iterator[int]:
    """Yield the seeds of `seeds` worlds of the bite's theme, from `start` on."""
    anywhere = bite.theme in (None, TWO_SINKS)
    last = seeds if anywhere else seeds * THEMES
    yield from (seed for seed in range(start, last) if anywhere or bite.theme == Settings.of(seed).theme)


def _violations(bite: Bite, seed: int) -> Sequence[str]:
    draw = Settings.of_two_sinks if bite.theme == TWO_SINKS else Settings.of
    try:
        return play(draw(seed)).violations
    except Exception as error:  # a bite may break anything, and that is a way to be found
        if is_of_the_bite(error):
            raise
        return [f"{type(error).__name__}: {error}"]


def is_of_the_bite(error: BaseException) -> bool:
    """Whether an error came up in the code of a bite: then the bite is broken, and shows nothing of the protocol."""
    last = traceback.extract_tb(error.__traceback__)[-1]
    return Path(last.filename).parent == Path(__file__).parent


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(prog=COMMAND, description=__doc__)
    parser.add_argument("names", nargs="*", help="these bites alone")
    parser.add_argument("--seeds", type=int, default=10_000, help="the most worlds for a bite (default: %(default)s)")
    parser.add_argument("--start", type=int, default=0, help=argparse.SUPPRESS)
    parser.add_argument("--jobs", type=int, default=2, help="processes (default: %(default)s)")
    parser.add_argument("--apply", choices=BITES, help=argparse.SUPPRESS)
    given = parser.parse_args(arguments)
    if given.apply:
        _apply(BITES[given.apply], given.start, given.seeds)
        return 0
    chosen = [BITES[name] for name in given.names or BITES]
    with ThreadPoolExecutor(given.jobs) as pool:
        results = []
        for caught in pool.map(lambda bite: hunt(bite, given.seeds), chosen):
            print(caught, flush=True)
            results.append(caught)
    missed = [caught.bite for caught in results if caught.seed is None]
    print(f"\n{len(results) - len(missed)} of {len(results)} bites caught")
    for bite in missed:
        print(f"not caught in {given.seeds} worlds: {bite.name}: {bite.rule}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
