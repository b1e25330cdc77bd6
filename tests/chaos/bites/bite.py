"""What a bite is, and the list that the others are put on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from inspect import Parameter, signature
from typing import Any

TWO_SINKS = "two sinks"


@dataclass(frozen=True)
class Bite:
    """One deliberate fault: a name, the rule that it breaks, and what applies it to this process, for good.

    `theme` is that of the worlds in which it can show (None: in any); `TWO_SINKS` are worlds drawn by themselves.
    """

    name: str
    rule: str
    apply: Callable[[], None] = field(repr=False)
    theme: str | None = None


class MisfitError(Exception):
    """Raised when a bite does not take the calls of what it replaces: it would be found by that, and show nothing."""


BITES: dict[str, Bite] = {}


def bite(rule: str, theme: str | None = None) -> Callable[[Callable[[], None]], Callable[[], None]]:
    """Put a function that breaks `rule` on the list, under its own name."""

    def listed(apply: Callable[[], None]) -> Callable[[], None]:
        BITES[apply.__name__] = Bite(apply.__name__, rule, apply, theme)
        return apply

    return listed


def take(owner: Any, name: str) -> Any:
    """Return what a module or class has under a name."""
    return getattr(owner, name)


def put(owner: Any, name: str, value: Any) -> None:
    """Put something else in its place.

    Raises:
        MisfitError: it does not take each call that what it replaces takes, or replaces nothing.
    """
    if not hasattr(owner, name):
        raise MisfitError(f"{owner.__name__} has no {name!r} that a bite could replace")
    _check_fits(f"{owner.__name__}.{name}", getattr(owner, name), value, owner)
    _REPLACED.append((owner, name, vars(owner).get(name, _INHERITED)))
    setattr(owner, name, value)


@contextmanager
def applied(bite: Bite) -> Iterator[None]:
    """Apply a bite for the time of the block alone."""
    before = len(_REPLACED)
    try:
        bite.apply()
        yield
    finally:
        while len(_REPLACED) > before:
            owner, name, value = _REPLACED.pop()
            if value is _INHERITED:
                delattr(owner, name)
            else:
                setattr(owner, name, value)


_REPLACED: list[tuple[Any, str, Any]] = []
_INHERITED = object()


def _check_fits(name: str, replaced: Any, value: Any, owner: Any) -> None:
    bound = value.__get__(None, owner) if isinstance(value, classmethod | staticmethod) else value
    if callable(replaced) != callable(bound):
        raise MisfitError(f"{name} is {replaced!r}, and a bite replaces it by {bound!r}")
    if not callable(replaced):
        return
    takes = signature(bound)
    for positions, names in _extreme_calls(list(signature(replaced).parameters.values())):
        try:
            takes.bind(*positions, **dict.fromkeys(names))
        except TypeError as error:
            raise MisfitError(f"{name}{signature(replaced)} is replaced by a bite with {takes}: {error}") from error


def _extreme_calls(parameters: list[Parameter]) -> Iterator[tuple[list[str], list[str]]]:
    """Yield the calls at the ends of what a signature takes: the least and the most, by position and by name."""
    for are_all in (False, True):
        given = [each for each in parameters if are_all or each.default is Parameter.empty]
        placed = [each.name for each in given if each.kind is Parameter.POSITIONAL_OR_KEYWORD]
        named = [each.name for each in given if each.kind is Parameter.KEYWORD_ONLY]
        is_method = placed[:1] == ["self"]
        yield placed, named
        yield placed[:is_method], [*placed[is_method:], *named]
