"""Match the wildcards of path patterns and LIKE in time linear in the text.

A short text is matched by Python's regular expressions, which are faster. They try the ways in which several wildcards
can share a text one after the other, so a text with many such ways goes through an automaton: it is in all reachable
states at once, and reads each character once.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Sequence

MOST_WAYS = 2**16  # by regular expression: some 0.1 ms

_MOST_FOLLOWERS = 200_000
_MOST_STEPS_KEPT = 10_000


@dataclass(frozen=True, slots=True)
class One:
    """One character, which the regular expression `text` takes."""

    text: str


@dataclass(frozen=True, slots=True)
class Many:
    """Any number of characters, each matched by the regular expression `text`."""

    text: str


OPEN, BAR, CLOSE = "(?:", "|", ")"  # alternatives

Token: TypeAlias = One | Many | str


class WildcardsTooManyError(ValueError):
    """Raised for a pattern with so many alternatives that to follow them all is too much."""


@dataclass(frozen=True, slots=True)
class Wildcards:
    """A pattern of characters, wildcards and alternatives that a whole text matches or does not.

    Example:
        >>> [Wildcards.of([One("a"), Many("."), One("b")]).matches(text) for text in ("ab", "axxb", "ba")]
        [True, True, False]
    """

    tokens: tuple[Token, ...]
    _regex: re.Pattern[str] = field(repr=False, compare=False)
    _short: int = field(repr=False, compare=False)

    @classmethod
    def of(cls, tokens: Sequence[Token]) -> Wildcards:
        """Return the pattern of these tokens; each `OPEN` has a `CLOSE`.

        Raises:
            re.error: a token has no regular expression. WildcardsTooManyError: to follow all alternatives is too much.
        """
        regex = re.compile("".join(map(_regex_of, tokens)), re.DOTALL)
        short = _short(tokens)
        made = cls(tuple(tokens), regex, short)
        _automaton(made.tokens)  # too large a one is refused here, and not when the first long name comes
        return made

    @classmethod
    def any_of(cls, several: Sequence[Wildcards]) -> Wildcards:
        """Return the pattern that matches what one of several, at least one, matches."""
        tokens: list[Token] = [OPEN]
        for each in several:
            tokens += [*each.tokens, BAR]
        return cls.of([*tokens[:-1], CLOSE])

    def matches(self, text: str) -> bool:
        """Whether the whole text matches."""
        if len(text) <= self._short:
            return self._regex.fullmatch(text) is not None
        return _automaton(self.tokens).takes(text)


def _regex_of(token: Token) -> str:
    if isinstance(token, str):
        return token
    return token.text if isinstance(token, One) else f"{token.text}*"


def _short(tokens: Sequence[Token]) -> int:
    """Return up to how many characters the ways through a text are no more than `MOST_WAYS`."""
    loops = sum(isinstance(token, Many) for token in tokens)
    ways = MOST_WAYS
    alternatives: list[int] = []
    for token in tokens:
        if token == OPEN:
            alternatives.append(1)
        elif token == BAR:
            alternatives[-1] += 1
        elif token == CLOSE:
            ways //= alternatives.pop()
    return max(0, int(ways ** (1 / max(1, loops))) - 1)


# ---- the automaton


@dataclass(frozen=True, slots=True)
class _Part:
    """A part of a pattern: with which tokens it begins and ends, as bits, and whether it may match nothing."""

    first: int = 0
    last: int = 0
    is_nullable: bool = True


class _Automaton:
    """Decides whether a text matches, one step for each character; repeated steps are cached."""

    def __init__(self, tokens: Sequence[Token]) -> None:
        self._texts: list[str] = []
        # Which tokens may follow each, counted from itself: from the first token on each would take as many bits as
        # there are tokens, which is a gigabyte of a hundred thousand.
        self._follow: list[int] = []
        self._followers = 0
        self._seen: dict[str, int] = {}
        self._steps: dict[tuple[int, str], int] = {}
        whole = self._built(tokens)
        self._end = whole.last << 1 | whole.is_nullable
        self._first = whole.first

    def takes(self, text: str) -> bool:
        """Whether the whole text matches."""
        steps, state = self._steps, 1  # the lowest bit: nothing was taken yet
        for character in text:
            after = steps.get((state, character))
            if after is None:
                if len(steps) >= _MOST_STEPS_KEPT:
                    steps.clear()
                after = steps[state, character] = self._step(state, character)
            if not after:
                return False
            state = after
        return bool(state & self._end)

    def _step(self, state: int, character: str) -> int:
        may_follow = self._first if state & 1 else 0
        left = state >> 1
        while left:
            lowest = left & -left
            at = lowest.bit_length() - 1
            may_follow |= self._follow[at] << at
            left ^= lowest
        return (may_follow & self._fitting(character)) << 1

    def _fitting(self, character: str) -> int:
        """Return the tokens that take a character."""
        if character not in self._seen:
            if len(self._seen) >= _MOST_STEPS_KEPT:
                self._seen.clear()
            fits = {text: _single(text).fullmatch(character) is not None for text in dict.fromkeys(self._texts)}
            self._seen[character] = sum(1 << at for at, text in enumerate(self._texts) if fits[text])
        return self._seen[character]

    def _built(self, tokens: Sequence[Token]) -> _Part:
        open_parts: list[tuple[_Part, list[_Part]]] = []  # what comes before alternatives, and those that are whole
        part = _Part()
        for token in tokens:
            if token == OPEN:
                open_parts.append((part, []))
                part = _Part()
            elif token == BAR:
                open_parts[-1][1].append(part)
                part = _Part()
            elif token == CLOSE:
                before, choices = open_parts.pop()
                part = self._joined(before, _either([*choices, part]))
            elif not isinstance(token, str):
                part = self._joined(part, self._leaf(token))
        return part

    def _leaf(self, token: One | Many) -> _Part:
        bit = 1 << len(self._texts)
        self._texts.append(token.text)
        self._follow.append(int(isinstance(token, Many)))
        return _Part(bit, bit, isinstance(token, Many))

    def _joined(self, one: _Part, other: _Part) -> _Part:
        self._followers += one.last.bit_count()
        if self._followers > _MOST_FOLLOWERS:
            raise WildcardsTooManyError("it has too many alternatives one behind the other")
        left = one.last
        while left:
            lowest = left & -left
            at = lowest.bit_length() - 1
            self._follow[at] |= other.first >> at  # what follows was added later
            left ^= lowest
        return _Part(
            one.first | other.first if one.is_nullable else one.first,
            one.last | other.last if other.is_nullable else other.last,
            one.is_nullable and other.is_nullable,
        )


def _either(parts: Sequence[_Part]) -> _Part:
    first = last = 0
    for part in parts:
        first, last = first | part.first, last | part.last
    return _Part(first, last, any(part.is_nullable for part in parts))


@lru_cache(maxsize=4096)
def _single(text: str) -> re.Pattern[str]:
    return re.compile(text, re.DOTALL)


@lru_cache(maxsize=256)
def _automaton(tokens: tuple[Token, ...]) -> _Automaton:
    return _Automaton(tokens)
