"""Log the progress of a long listing."""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

log = logging.getLogger(__name__)

EVERY_S = 10.0


class Progress:
    """Logs how many entries a listing has seen so far, each `EVERY_S` seconds; a quick listing logs nothing.

    Only when entries come: a store that does not answer has its own errors. Not safe between threads.

    Args:
        what: what is listed, as a person knows it.
        monotonic: returns seconds that never go back.

    Example:
        >>> moments = iter([0.0, 4.0, 11.0])
        >>> progress = Progress("/lake/raw", monotonic=lambda: next(moments))
        >>> for entries in (1000, 1000):  # the second is told in a line: bookmark: listing /lake/raw: 2000 ...
        ...     progress.saw(entries)
        >>> progress.entries
        2000
    """

    def __init__(self, what: str, *, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._what, self._monotonic = what, monotonic
        self._begun = self._said = monotonic()
        self.entries = 0

    def saw(self, entries: int) -> None:
        """Count so many more entries."""
        self.entries += entries
        now = self._monotonic()
        if now - self._said >= EVERY_S:
            self._said = now
            seconds = now - self._begun
            log.info("bookmark: listing %s: %d entries so far, after %.0f s", self._what, self.entries, seconds)
