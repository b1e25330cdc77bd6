"""Run many worlds, or one with its whole interleaving: `python -m tests.chaos.sim --help`."""

from __future__ import annotations

import argparse
import multiprocessing
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TypeAlias

from tests.chaos.sim.play import play
from tests.chaos.sim.shrink import Shrinker
from tests.chaos.sim.tally import COMMAND, Tally, run_worlds, told
from tests.chaos.sim.world import Settings

Draw: TypeAlias = Callable[[int], Settings]


def _chunks(start: int, count: int, size: int = 50) -> Iterator[range]:
    for first in range(start, start + count, size):
        yield range(first, min(first + size, start + count))


def _run_many(start: int, count: int, jobs: int, draw: Draw) -> int:
    began, tally = time.monotonic(), Tally()
    with multiprocessing.get_context("spawn").Pool(jobs) as pool:
        for part in pool.imap_unordered(partial(run_worlds, draw=draw), _chunks(start, count)):
            tally += part
            if part.violations:
                print(told(part.violations), flush=True)
    print(f"{tally}; {time.monotonic() - began:.1f} s")
    if tally.violations:
        _shrink(draw(min(tally.violations)))
    return 1 if tally.violations else 0


def _run_one(settings: Settings, is_traced: bool, shrinks: bool) -> int:
    outcome = play(settings, is_traced=is_traced)
    print(outcome.settings)
    print(*outcome.trace, sep="\n")
    print(*(outcome.violations or ["nothing was violated"]), sep="\n")
    if outcome.violations and shrinks:
        _shrink(settings)
    return 1 if outcome.violations else 0


def _shrink(settings: Settings) -> None:
    smaller = Shrinker(settings).shrink()
    print(f"\nseed {settings.seed}, made smaller: roles {', '.join(smaller.settings.roles)}")
    print(*smaller.trace, sep="\n")
    print(*smaller.violations, sep="\n")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return 1 when something was violated."""
    parser = argparse.ArgumentParser(prog=COMMAND, description=__doc__)
    parser.add_argument("--seeds", type=int, default=2000, help="how many worlds (default: %(default)s)")
    parser.add_argument("--start", type=int, default=0, help="the first seed (default: %(default)s)")
    parser.add_argument("--jobs", type=int, default=2, help="processes (default: %(default)s)")
    parser.add_argument("--seed", type=int, help="this world alone")
    parser.add_argument("--trace", action="store_true", help="with --seed: print the whole interleaving")
    parser.add_argument("--shrink", action="store_true", help="with --seed: make a failing world smaller")
    parser.add_argument("--two-sinks", action="store_true", help="worlds with two tables that commit by themselves")
    given = parser.parse_args(arguments)
    draw = Settings.of_two_sinks if given.two_sinks else Settings.of
    if given.seed is not None:
        return _run_one(draw(given.seed), given.trace, given.shrink)
    return _run_many(given.start, given.seeds, given.jobs, draw)


if __name__ == "__main__":
    sys.exit(main())
