"""Whether a sink refuses what state names and its job may not touch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_bookmarks.core.errors import OutOfBoundsError

if TYPE_CHECKING:
    from collections.abc import Callable


def is_refused(change: Callable[[], object]) -> bool:
    """Return whether a call ends with `OutOfBoundsError`."""
    try:
        change()
    except OutOfBoundsError:
        return True
    return False
