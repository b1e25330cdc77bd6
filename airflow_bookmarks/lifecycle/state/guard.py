"""A lock around the state of a run, because a script may read and write from several threads."""

from __future__ import annotations

import threading
from functools import wraps
from typing import TYPE_CHECKING, Concatenate, ParamSpec, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

_P = ParamSpec("_P")
_T = TypeVar("_T")
_G = TypeVar("_G", bound="Guarded")


class Guarded:
    """An object whose `guarded` methods run one at a time; such a method may call another."""

    def __init__(self) -> None:
        self._guard: AbstractContextManager[object] = threading.RLock()


def guarded(method: Callable[Concatenate[_G, _P], _T]) -> Callable[Concatenate[_G, _P], _T]:
    """Hold the lock: no other guarded method of the same object runs meanwhile."""

    @wraps(method)
    def alone(self: _G, /, *args: _P.args, **kwargs: _P.kwargs) -> _T:
        with self._guard:
            return method(self, *args, **kwargs)

    return alone
