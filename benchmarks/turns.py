"""Time two things in turns, so that what else the machine does meets both."""

from __future__ import annotations

import time
from collections.abc import Callable


def timed(play: Callable[[], object]) -> float:
    """Return how many seconds something takes."""
    begun = time.perf_counter()
    play()
    return time.perf_counter() - begun


def in_turns(rounds: int, one: Callable[[], object], other: Callable[[], object]) -> tuple[list[float], list[float]]:
    """Time two things in turns; each goes first every other time, and once before anything counts."""
    timed(one), timed(other)
    ones: list[float] = []
    others: list[float] = []
    for number in range(rounds):
        for play, times in ((one, ones), (other, others)) if number % 2 else ((other, others), (one, ones)):
            times.append(timed(play))
    return ones, others
