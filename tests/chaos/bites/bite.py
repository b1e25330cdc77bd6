"""What a bite is, and the list that the others are put on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Bite:
    """One deliberate fault: a name, the rule that it breaks, and what applies it to this process, for good.

    `theme` is that of the worlds in which it can show (None: in any).
    """

    name: str
    rule: str
    apply: Callable[[], None] = field(repr=False)
    theme: str | None = None


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
    """Put something else in its place."""
    setattr(owner, name, value)
