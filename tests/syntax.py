"""Source text as its syntax tree, whatever else the process of the tests still has to put away."""

from __future__ import annotations

import ast
import gc
from collections.abc import Iterator
from contextlib import contextmanager


def parsed(text: str) -> ast.Module:
    """Return the syntax tree of a module.

    Python before 3.11.8 and 3.12.2 counts the depth of a tree in one place for all: where garbage is collected while it
    builds one, and a finalizer parses too, it raises `SystemError` (python/cpython#106905). The finalizers of py4j do
    so: where the JVM of an earlier test is gone, they log an error, and to print a traceback is to parse its lines.
    """
    with _garbage_kept():
        return ast.parse(text)


@contextmanager
def _garbage_kept() -> Iterator[None]:
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
