"""Which cases of a matrix `make test` plays: enough to show each value once. `make test-all` plays the others, too.

A test keeps at least one case that is not thorough. What makes its cases up by itself tries few of them in `make test`.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterable
from typing import Any

import pytest


def mostly_thorough(values: Iterable[Any], *kept: Any) -> list[Any]:
    """Return the values of one argument, marked as thorough but for those that are kept: by default, the first.

    Example:
        @pytest.mark.parametrize("option", mostly_thorough(["pause", "disable"]))
    """
    listed = list(values)
    chosen = kept or tuple(listed[:1])
    if unknown := [value for value in chosen if value not in listed]:
        raise ValueError(f"{unknown} are to be kept, and are not among {listed}.")
    return [_case(value, is_kept=value in chosen) for value in listed]


def each_once(*axes: Iterable[Any]) -> list[Any]:
    """Return each combination of the values of several arguments, of which the kept ones have each value at least once.

    Example:
        @pytest.mark.parametrize(("point", "path"), each_once(Failpoint, CommitPath))
    """
    listed = [list(axis) for axis in axes]
    longest = max(len(axis) for axis in listed)
    kept = {tuple(at % len(axis) for axis in listed) for at in range(longest)}
    places = itertools.product(*(range(len(axis)) for axis in listed))
    return [_case(*values, is_kept=at in kept) for at, values in zip(places, itertools.product(*listed), strict=True)]


def examples(most: int, few: int) -> int:
    """Return how many examples are made up: `few` by `make test`, and `most` by `make test-all` (CHAOS=full)."""
    return most if os.environ.get("CHAOS") == "full" else few


def mark_seldom(item: pytest.Item) -> None:
    """Mark a test as one that `make test` leaves out, unless it is marked `often`.

    Unlike thorough tests it shows what no other one does, of something that few changes touch and that takes long.
    """
    if not item.get_closest_marker("often"):
        item.add_marker(pytest.mark.seldom)


def _case(*values: Any, is_kept: bool) -> Any:
    return pytest.param(*values, marks=() if is_kept else pytest.mark.thorough)
