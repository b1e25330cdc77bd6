"""A tree is built whatever finalizers do."""

from __future__ import annotations

import ast
import gc
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.syntax import parsed

_LONG = Path(ast.__file__).read_text()


class _ParsesAtTheEnd:
    ended = 0

    def __init__(self) -> None:
        self.itself = self  # a circle, which the collector alone ends

    def __del__(self) -> None:
        type(self).ended += 1
        ast.parse("x = [1, (2, 3)]")


@pytest.fixture
def eager_collector() -> Iterator[None]:
    thresholds = gc.get_threshold()
    gc.set_threshold(50)
    yield
    gc.set_threshold(*thresholds)


@pytest.mark.usefixtures("eager_collector")
def test_finalizer_that_parses_does_not_break_the_tree_that_is_being_built() -> None:
    # Without the collector being held, each of these fails on a Python that has the fault.
    for _ in range(20):
        litter = [_ParsesAtTheEnd() for _ in range(20)]
        del litter
        assert len(parsed(_LONG).body) > 20

    gc.collect()
    assert _ParsesAtTheEnd.ended == 400
    assert gc.isenabled()
