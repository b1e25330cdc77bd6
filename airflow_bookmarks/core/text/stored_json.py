"""Stored JSON: what one call of the parser may be given, where others wait for the same interpreter.

Python's parser holds the interpreter from the first byte to the last. So the API server gives it no more at a time than
it is done with in a part of a second; what is more goes to a process of its own, where nobody else waits. Everywhere
else nothing is bounded but by what unpacks it.

What it takes is counted, and not timed: bytes, and values, of which a list or an object counts as several.
"""

from __future__ import annotations

import json
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from airflow_bookmarks.core.errors import TooLargeHereError

if TYPE_CHECKING:
    from collections.abc import Iterator

_OF_A_LIST = 4  # values that take as long as a list or an object does


@dataclass(frozen=True, slots=True)
class JsonBound:
    """How many bytes of JSON, and values, are parsed at a time. A plan has four values for each file."""

    size_bytes: int = 16 * 1024**2
    values: int = 1_000_000


JSON_BOUND = JsonBound()

_BOUND: ContextVar[JsonBound | None] = ContextVar("bookmarks_json_bound", default=None)


@contextmanager
def parsing_at_most(bound: JsonBound) -> Iterator[None]:
    """Refuse larger JSON in this thread or task; see `read_json`."""
    before = _BOUND.set(bound)
    try:
        yield
    finally:
        _BOUND.reset(before)


def read_json(raw: bytes, what: str) -> Any:
    """Return the value of a JSON text; `what` names it in errors.

    Raises:
        TooLargeHereError: it is more than is parsed here. ValueError, RecursionError: it is no JSON.
    """
    bound = _BOUND.get()
    if bound is not None:
        _check(raw, what, bound)
    return json.loads(raw)


def _check(raw: bytes, what: str, bound: JsonBound) -> None:
    if len(raw) > bound.size_bytes:
        raise TooLargeHereError(what, f"{len(raw):,} bytes of JSON", f"{bound.size_bytes:,}")
    # Those within a text count as well: it is the most that it can be.
    values = raw.count(b",") + _OF_A_LIST * (raw.count(b"[") + raw.count(b"{"))
    if values > bound.values:
        raise TooLargeHereError(what, f"some {values:,} values", f"{bound.values:,}")
