"""What every kind of table stores of a position or plan: values with the number of their format."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from airflow_bookmarks.core.errors import StateCorruptError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

T = TypeVar("T")


def decoded(what: str, newest: int, load: Callable[[], Any], read: Callable[[Mapping[str, Any]], T]) -> T:
    """Return what stored values stand for.

    Args:
        what: what it is, for messages: "plan of a table".
        newest: the newest format that this version reads.
        load: returns the values, by name; their format is "version".
        read: makes the position or plan of them.

    Raises:
        StateCorruptError: it has a newer format, or can't be read.

    Example:
        >>> decoded("plan of a table", 1, lambda: {"version": 1, "end": 7}, lambda values: values["end"])
        7
    """
    try:
        values = load()
        if values["version"] > newest:
            raise StateCorruptError(
                f"a stored {what} has format {values['version']}, and this version reads up to {newest}. Nothing was "
                "changed. Upgrade airflow-bookmarks here."
            )
        return read(values)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise StateCorruptError(f"a stored {what} can't be read ({error}); nothing was changed") from error
