"""Limit how much stored JSON one parser call gets where other threads wait for the interpreter.

Python's parser holds the interpreter from the first byte to the last. So the API server parses at a time only what
takes a fraction of a second; larger documents go to a process of their own. Elsewhere the only limit is that of
decompression.

The cost is estimated by counting bytes and values, where a list or an object counts as several; it is not timed.
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
    # Those within a text count too: the result is an upper limit.
    values = raw.count(b",") + _OF_A_LIST * (raw.count(b"[") + raw.count(b"{"))
    if values > bound.values:
        raise TooLargeHereError(what, f"some {values:,} values", f"{bound.values:,}")
