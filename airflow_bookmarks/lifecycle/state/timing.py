"""Measure how long each part of a run took."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


class Stopwatch:
    """Adds up seconds by the name of a part."""

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._seconds: dict[str, float] = {}
        self._ended: dict[str, float] = {}
        self._adding = threading.Lock()

    @contextmanager
    def measure(self, part: str) -> Iterator[None]:
        """Add the time of the block to `part`."""
        started = self._monotonic()
        try:
            yield
        finally:
            with self._adding:
                self._ended[part] = self._monotonic()
                self._seconds[part] = self._seconds.get(part, 0.0) + self._ended[part] - started

    def measure_since(self, part: str, after: str) -> None:
        """Set `part` to the time since `after` last ended (since nothing: zero)."""
        now = self._monotonic()
        self._seconds[part] = now - self._ended.get(after, now)

    def seconds(self) -> dict[str, str]:
        """Return the seconds by part, as text with three decimals."""
        return {part: f"{seconds:.3f}" for part, seconds in self._seconds.items()}
