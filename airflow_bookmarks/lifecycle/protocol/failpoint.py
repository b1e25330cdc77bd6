"""The named points of the protocol. A test gives its run a hook to cause a fault at one; no other run has a hook."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum


class Failpoint(StrEnum):
    """Where a driver stands in the protocol; each name is the step that was just done (or is about to be)."""

    TAKEN = "taken"
    RECOVERED = "recovered"
    LISTED = "listed"
    PLANNED = "planned"
    PLACED = "placed"
    STAGED = "staged"
    BEFORE_COMMIT = "before_commit"
    COMMITTED = "committed"
    PUBLISHING = "publishing"
    MOVED = "moved"
    PUBLISHED = "published"
    MARKED = "marked"
    SWEPT = "swept"


FaultHook = Callable[[Failpoint], None]


def no_fault(point: Failpoint) -> None:
    """Do nothing: the hook of every real run."""
