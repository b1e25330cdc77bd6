"""Regular expressions of users, with a limit on the cost of matching them.

Python matches by backtracking: where a text fits in several ways it tries one after the other, and an expression such
as `(a+)+b` has more ways than can ever be tried. So the ways are limited before anything is matched:

- No reference back to a group, no group repeated without bound, nothing repeated that may match nothing: what is left
  has single characters or sets as its only loops, and cannot take exponential time.
- The number of steps that is left is a product: of the characters of the text, for each loop that another one can take
  over from at any character (`.*` before `.*`), and of the choices between. `LONGEST` characters have to do within
  `MOST_STEPS`; a cheap expression is matched against longer texts too, and what is longer still does not match.

The bound is one of trial without any shortcut, and Python takes many: it is never exceeded, and seldom reached.
"""

from __future__ import annotations

import importlib
import re
from dataclasses import dataclass, field
from functools import lru_cache
from math import log2
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

LONGEST_EXPRESSION = 512  # characters of an expression
LONGEST = 256  # characters of a text, which any expression that is taken can be matched against
MOST_STEPS = 2**25

_LONGEST_EVER = 8192
_MOST_SIGNS = 256
# Python's own reading of an expression. It is private there; a test of this module holds what is relied on.
_parser: Any = importlib.import_module("re._parser")
_op: Any = importlib.import_module("re._constants")

_BEYOND = 128  # the bit of all characters that are not ASCII
_ALL = (1 << (_BEYOND + 1)) - 1
_START = -1  # where a match begins


class ExpressionError(ValueError):
    """Raised for a text that is not an expression, or one that may cost too much; says why."""


@dataclass(frozen=True, slots=True)
class Expression:
    r"""A regular expression with one named group, searched in texts.

    `longest` is how long a text may be; a longer one does not match.

    Example:
        >>> Expression.of(r"part-(?P<seq>\d+)").value_of("raw/part-0042.csv")
        '0042'
    """

    text: str
    longest: int
    _pattern: re.Pattern[str] = field(repr=False, compare=False)
    _group: int = field(repr=False, compare=False)

    @classmethod
    def of(cls, text: object) -> Expression:
        """Read an expression.

        Raises:
            ExpressionError: it is none, has not exactly one named group, or may cost too much.
        """
        if not isinstance(text, str):
            raise ExpressionError(f"it is no text but {type(text).__name__}")
        if len(text) > LONGEST_EXPRESSION:
            raise ExpressionError(f"it has {len(text)} characters, and {LONGEST_EXPRESSION} are the most")
        return _read(text)

    def value_of(self, text: str) -> str | None:
        """Return what the named group takes from a text; None where the expression, or the group, matches nothing."""
        if len(text) > self.longest:
            return None
        match = self._pattern.search(text)
        return None if match is None else match[self._group] or None


@lru_cache(maxsize=256)
def _read(text: str) -> Expression:
    try:
        parsed = _parser.parse(text)
        groups = parsed.state.groupdict
        if len(groups) != 1:
            raise ExpressionError(f"it has {len(groups)} named groups")
        longest = longest_text(parsed)
        return Expression(text, longest, re.compile(text), *groups.values())
    except (re.error, OverflowError) as error:
        raise ExpressionError(f"it is no regular expression ({error})") from error
    except RecursionError as error:
        raise ExpressionError("its groups are nested too deeply") from error


def longest_text(parsed: Any) -> int:
    """Return how many characters a text may have for a search to end within `MOST_STEPS`.

    Raises:
        ExpressionError: fewer than `LONGEST`, or the number of steps has no such bound.
    """
    signs = _Signs(parsed.state.flags)
    whole = signs.sequence(list(parsed), is_tail=True)
    cost = _Cost(signs, whole.first, is_anchored=_is_anchored(parsed))
    length = _LONGEST_EVER
    while cost.steps(length) > MOST_STEPS:
        length //= 2
        if length < LONGEST:
            raise ExpressionError(
                "there are too many ways to match it: repeats follow each other that can take the same characters. "
                "End each repeat by a character that it can't take itself ('[^/]*/' and '[^-]*-' in place of '.*'), "
                "leave '.*' at its begin out, or begin it with '^'"
            )
    return length


def _is_anchored(parsed: Any) -> bool:
    """Whether a match begins where the text does, and nowhere else."""
    if not len(parsed) or parsed[0][0] is not _op.AT:
        return False
    where = parsed[0][1]
    return where is _op.AT_BEGINNING_STRING or (
        where is _op.AT_BEGINNING and not parsed.state.flags & re.MULTILINE.value
    )


# ---- from an expression to its signs


@dataclass(frozen=True, slots=True)
class _ExpressionPart:
    """A part of an expression: with which signs it begins and ends, and whether it may match nothing."""

    first: frozenset[int] = frozenset()
    last: frozenset[int] = frozenset()
    is_nullable: bool = True


class _Signs:
    """The signs of an expression, each of which takes one character, and which may follow which.

    `takes` are the characters that each sign can take, as bits, rather too many than too few; `loops` are those that
    may follow themselves. All others follow only signs before them.
    """

    def __init__(self, flags: int, left: list[int] | None = None) -> None:
        self._left = [_MOST_SIGNS] if left is None else left  # of all signs, including those in lookaheads
        self.takes: list[int] = []
        self.follow: list[set[int]] = []
        self.loops: set[int] = set()
        self.looked = 1  # factor by which lookaheads and lookbehinds multiply the steps
        self._ignores_case = bool(flags & re.IGNORECASE.value)

    def sequence(self, items: Sequence[Any], *, is_tail: bool = False) -> _ExpressionPart:
        """Add what follows each other; `is_tail`: after it the expression matches, so that loops at its end end it."""
        if is_tail:
            items = _without_loops_at_end(items)
        part = _ExpressionPart()
        for number, item in enumerate(items):
            part = self._joined(part, self._item(*item, is_tail=is_tail and number == len(items) - 1))
        return part

    def _item(self, kind: Any, value: Any, *, is_tail: bool) -> _ExpressionPart:
        takes = self._single(kind, value)
        if takes is not None:
            return self._sign(takes)
        if kind is _op.SUBPATTERN:
            return self._scoped(value[1], value[3], is_tail=is_tail)
        if kind is _op.ATOMIC_GROUP:
            return self.sequence(value, is_tail=is_tail)
        if kind is _op.BRANCH:
            return self._either([self.sequence(each, is_tail=is_tail) for each in value[1]])
        if kind in (_op.MAX_REPEAT, _op.MIN_REPEAT, _op.POSSESSIVE_REPEAT):
            return self._repeated(*value, is_tail=is_tail)
        if kind is _op.AT:
            return _ExpressionPart()
        if kind in (_op.ASSERT, _op.ASSERT_NOT):
            return self._looked(value[1])
        if kind is _op.FAILURE:
            return self._sign(0)
        if kind in (_op.GROUPREF, _op.GROUPREF_EXISTS):
            raise ExpressionError("it refers back to a group, which can't be matched in bounded time; write it out")
        raise ExpressionError(f"it has {kind}, which is not known here")

    def _scoped(self, added_flags: int, items: Sequence[Any], *, is_tail: bool) -> _ExpressionPart:
        outer = self._ignores_case
        self._ignores_case = outer or bool(added_flags & re.IGNORECASE.value)
        part = self.sequence(items, is_tail=is_tail)
        self._ignores_case = outer
        return part

    def _sign(self, takes: int) -> _ExpressionPart:
        if not self._left[0]:
            raise ExpressionError(f"it stands for more than {_MOST_SIGNS} characters with its repeats written out")
        self._left[0] -= 1
        self.takes.append(takes)
        self.follow.append(set())
        only = frozenset([len(self.takes) - 1])
        return _ExpressionPart(only, only, is_nullable=False)

    def _joined(self, one: _ExpressionPart, other: _ExpressionPart) -> _ExpressionPart:
        for sign in one.last:
            self.follow[sign] |= other.first
        return _ExpressionPart(
            one.first | other.first if one.is_nullable else one.first,
            one.last | other.last if other.is_nullable else other.last,
            one.is_nullable and other.is_nullable,
        )

    def _either(self, parts: Sequence[_ExpressionPart]) -> _ExpressionPart:
        nullable = sum(part.is_nullable for part in parts)
        if nullable > 1:
            raise ExpressionError("several of its alternatives may match nothing; one is enough")
        return _ExpressionPart(
            frozenset().union(*(part.first for part in parts)),
            frozenset().union(*(part.last for part in parts)),
            nullable == 1,
        )

    def _repeated(self, least: int, most: int, items: Sequence[Any], *, is_tail: bool) -> _ExpressionPart:
        takes = self._single(*items[0]) if len(items) == 1 else None
        if takes is not None:
            return self._repeated_sign(takes, least, least if is_tail else most)
        if most is _op.MAXREPEAT:
            raise ExpressionError(
                "it repeats a group without bound, '(...)*' or '(...)+', which may take exponential time; repeat a "
                "single character or set ('[^/]*'), or give the group a bound ('(...){0,3}')"
            )
        part = _ExpressionPart()
        copies: list[_ExpressionPart] = []
        while len(copies) < most:  # each of them adds a sign, of which there are not too many
            copies.append(self.sequence(items))
            if copies[-1].is_nullable:
                raise ExpressionError("it repeats what may match nothing; make that match one character at least")
        for copy in copies[:least]:
            part = self._joined(part, copy)
        rest = _ExpressionPart()
        for copy in reversed(copies[least:]):  # each stands within the one before: x{0,2} is (x(x)?)?
            rest = self._joined(copy, rest)
            rest = _ExpressionPart(rest.first, rest.last, is_nullable=True)
        return self._joined(part, rest)

    def _repeated_sign(self, takes: int, least: int, most: int) -> _ExpressionPart:
        part = _ExpressionPart()
        for _ in range(least):
            part = self._joined(part, self._sign(takes))
        if most - least < 1:
            return part
        if most - least == 1 or not least:
            one = self._sign(takes)
            part = self._joined(part, _ExpressionPart(one.first, one.last, is_nullable=True))
        if most - least > 1:  # up to a bound of its own is no more than without any
            (loop,) = part.last if least else one.last
            self.loops.add(loop)
            self.follow[loop].add(loop)
        return part

    def _looked(self, items: Sequence[Any]) -> _ExpressionPart:
        within = _Signs(re.IGNORECASE.value if self._ignores_case else 0, self._left)
        part = within.sequence(list(items))
        if within.loops:
            raise ExpressionError("it looks ahead or behind for something with a repeat; give that a fixed length")
        self.looked *= 1 + int(_Cost(within, part.first, is_anchored=True).steps(len(within.takes) + 1))
        return _ExpressionPart()

    # ---- the characters that a sign takes

    def _single(self, kind: Any, value: Any) -> int | None:
        """Return a pattern of exactly one character as its bits; None for anything else."""
        if kind is _op.SUBPATTERN:
            is_one = len(value[3]) == 1 and not value[1] & re.IGNORECASE.value
            return self._single(*value[3][0]) if is_one else None
        if kind is _op.LITERAL:
            return self._character(value)
        if kind is _op.NOT_LITERAL:
            return _ALL if value >= _BEYOND or self._ignores_case else _ALL & ~(1 << value)
        if kind is _op.ANY:
            return _ALL
        return self._set(value) if kind is _op.IN else None

    def _character(self, code: int) -> int:
        if code >= _BEYOND:  # in any case it may be one of ASCII: the Kelvin sign is a K
            return _ALL if self._ignores_case else 1 << _BEYOND
        if not self._ignores_case:
            return 1 << code
        both = _bits(map(ord, {chr(code).lower(), chr(code).upper()}))
        return both | 1 << _BEYOND if chr(code) in "iIkKsS" else both

    def _set(self, members: Sequence[Any]) -> int:
        is_negated = bool(members) and members[0][0] is _op.NEGATE
        taken = surely = 0
        for kind, value in members[is_negated:]:
            if kind is _op.LITERAL:
                taken |= self._character(value)
                surely |= 1 << value if value < _BEYOND else 0
            elif kind is _op.RANGE:
                low, high = value
                codes = _bits(range(low, min(high + 1, _BEYOND)))
                surely |= codes
                taken |= codes | (1 << _BEYOND if high >= _BEYOND else 0)
                if self._ignores_case:
                    taken |= _ALL
            else:
                most, least = _category(value)
                taken |= most | 1 << _BEYOND
                surely |= least
        return _ALL & ~surely if is_negated else taken


def _without_loops_at_end(items: Sequence[Any]) -> Sequence[Any]:
    """Return items without those at the end that may match nothing and can't fail: once there, all has matched."""
    kept = list(items)
    while kept and kept[-1][0] in (_op.MAX_REPEAT, _op.MIN_REPEAT) and kept[-1][1][0] == 0:
        body = kept[-1][1][2]
        if len(body) != 1 or body[0][0] not in (_op.ANY, _op.IN, _op.LITERAL, _op.NOT_LITERAL):
            break
        kept.pop()
    return kept


def _bits(codes: Iterable[int]) -> int:
    found = 0
    for code in codes:
        found |= 1 << code if code < _BEYOND else 1 << _BEYOND
    return found


_CATEGORIES = {
    "DIGIT": r"\d", "NOT_DIGIT": r"\D", "SPACE": r"\s", "NOT_SPACE": r"\S", "WORD": r"\w", "NOT_WORD": r"\W",
}  # fmt: skip


@lru_cache(maxsize=32)
def _category(name: Any) -> tuple[int, int]:
    """Return the ASCII characters of a category, such as digits: those it may have, and those it has under any flag."""
    sign = _CATEGORIES.get(str(name).removeprefix("CATEGORY_"))
    if sign is None:
        return _ALL, 0
    wide, narrow = (
        _bits(code for code in range(_BEYOND) if re.match(sign, chr(code), flags)) for flags in (0, re.ASCII)
    )
    return wide | narrow, wide & narrow


# ---- from the signs to the steps


class _Cost:
    """What a search costs at most.

    The steps of a search are the ways to match any beginning of what is left of the text. A way is told from others by
    where it leaves each loop, and by its choices at all other signs:

    - A loop L is left at any character, where another loop M can be reached from it by characters that L and M take
      too: both then take the same text, and each way to share it between them is one. (Weber and Seidl, "On the degree
      of ambiguity of finite automata", 1991, of whose criterion that is the case of loops over one character.)
    - Where there is no such M, two ways that left L at different characters live on together only as long as the
      signs up to the end: fewer than twice their number.
    - What begins with the same signs can't begin again within them, unless they fit onto themselves.
    """

    def __init__(self, signs: _Signs, first: Iterable[int], *, is_anchored: bool) -> None:
        self._takes = {_START: _ALL, **dict(enumerate(signs.takes))}
        self._exits = {number: sorted(after - {number}) for number, after in enumerate(signs.follow)}
        self._exits[_START] = sorted(first)
        self._loops = sorted(signs.loops if is_anchored else {*signs.loops, _START})
        self._looked = signs.looked
        self._rest: dict[int, int] = {}
        for sign in sorted(self._exits, reverse=True):
            self._rest[sign] = max((1 + self._rest[after] for after in self._exits[sign]), default=0)
        self._ambiguous = {loop for loop in self._loops if self._is_ambiguous(loop)}

    def steps(self, length: int) -> float:
        """Return how many steps a search in a text of so many characters may take."""
        ways: dict[int, float] = {}
        for sign in sorted(self._exits, reverse=True):
            after = max((ways[each] for each in self._exits[sign]), default=0.0)
            ways[sign] = after + log2(self._choices(sign)) + log2(self._leavings(sign, length))
        return float(2.0 ** min(ways[_START], 1000.0) * length * self._looked)

    def _choices(self, sign: int) -> int:
        """Return how many signs may follow one (not itself) on one character."""
        options: dict[int, int] = {}
        for after in self._exits[sign]:
            # To pass a loop by is to leave it at once.
            passed = [loop for loop in options if loop in self._loops and after in self._exits[loop]]
            option = passed[0] if passed else after
            options[option] = options.get(option, 0) | self._takes[after]
        if len(options) < 2:
            return 1
        return max(1, max(sum(takes >> bit & 1 for takes in options.values()) for bit in range(_BEYOND + 1)))

    def _leavings(self, sign: int, length: int) -> float:
        """Return at how many characters ways that live on together may have left a loop."""
        if sign not in self._loops or not any(self._takes[sign] & self._takes[after] for after in self._exits[sign]):
            return 1.0
        apart = self._apart(sign)
        if sign in self._ambiguous:
            return length / apart + 2
        return 2 * (self._rest[sign] / apart + 1) + 1

    def _is_ambiguous(self, loop: int) -> bool:
        return any(self._reaches(loop, other) for other in self._loops if other > loop)

    def _reaches(self, loop: int, other: int) -> bool:
        """Whether the way from one loop to another leads over nothing but characters that both take."""
        shared = self._takes[loop] & self._takes[other]
        seen: set[int] = set()
        waiting = list(self._exits[loop])
        while waiting:
            sign = waiting.pop()
            if sign in seen or not self._takes[sign] & shared:
                continue
            if sign == other:
                return True
            seen.add(sign)
            waiting += self._exits[sign]
        return False

    def _apart(self, loop: int) -> int:
        """Return how many characters lie at least between two places where the signs after a loop begin."""
        chain: list[int] = []
        at = loop
        while len(self._exits[at]) == 1:
            at = self._exits[at][0]
            chain.append(self._takes[at])
            if at in self._loops:
                break
        for shift in range(1, len(chain)):
            if all(one & other for one, other in zip(chain[shift:], chain, strict=False)):
                return shift
        return max(1, len(chain))
