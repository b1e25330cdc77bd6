"""Decide how long, and in which rhythm, a table tries again."""

from __future__ import annotations

import random as _random
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

OUTAGE_LIMIT_S = 60.0


@dataclass(frozen=True, slots=True)
class Backoff:
    """Exponential backoff with full jitter, up to a limit.

    A pause is drawn between 0 and a ceiling that starts at `first_s` and doubles up to `longest_s`, so that writers
    that collided once spread out. `limit_s` bounds the whole; the last attempt begins when it is reached.
    """

    limit_s: float = OUTAGE_LIMIT_S
    first_s: float = 0.05
    longest_s: float = 5.0
    sleep: Callable[[float], None] = time.sleep
    monotonic: Callable[[], float] = time.monotonic
    random: Callable[[], float] = _random.random

    def attempts(self) -> Iterator[int]:
        """Yield 1, 2, 3 ..., once per attempt, pausing in between, until the limit is spent.

        Example:
            >>> list(Backoff(limit_s=0).attempts())
            [1]
        """
        start = self.monotonic()
        ceiling_s = self.first_s
        number = 1
        while True:
            yield number
            left_s = start + self.limit_s - self.monotonic()
            if left_s <= 0:
                return
            self.sleep(min(left_s, ceiling_s * self.random()))
            ceiling_s = min(2 * ceiling_s, self.longest_s)
            number += 1
