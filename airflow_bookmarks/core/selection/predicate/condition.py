"""The tree of a predicate: tests of columns, and what joins them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product

from airflow_bookmarks.core.errors import OptionError
from airflow_bookmarks.core.selection.predicate.value import Cells, NotComparableError, Truth, Value


class Condition:
    """What a predicate, or a part of it, comes to."""

    __slots__ = ()

    def outcome(self, cells: Cells) -> Truth:
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class ConditionTest(Condition):
    """A test of columns and literals; `said` is its text, for messages."""

    said: str
    operands: tuple[str | Value, ...]
    test: Callable[[Sequence[Value]], Truth]

    def outcome(self, cells: Cells) -> Truth:
        choices: list[Sequence[Value]] = []
        for operand in self.operands:
            if isinstance(operand, Value):
                choices.append((operand,))
            elif operand in cells:
                choices.append(cells[operand])
            else:
                return Truth.ANY
        found = Truth(0)
        is_sure = all(len(choice) == 1 for choice in choices)
        for values in product(*choices):
            try:
                found |= self.test(values)
            except NotComparableError as error:
                if is_sure:
                    raise OptionError(
                        f"partition_filter: {self.said!r} can't be evaluated: {error}. Nothing was read or changed. "
                        "Compare the column with values of its own type (a text in quotes), or move the folder away."
                    ) from error
                found = Truth.ANY  # once the types are settled it is known, and an error then if it is one
        return found


@dataclass(frozen=True, slots=True)
class Negation(Condition):
    """`NOT inner`."""

    inner: Condition

    def outcome(self, cells: Cells) -> Truth:
        return _NEGATED[self.inner.outcome(cells)]


@dataclass(frozen=True, slots=True)
class Junction(Condition):
    """`one AND other`, or with `decided_by` TRUE `one OR other`: the outcome that one of them alone decides."""

    one: Condition
    other: Condition
    decided_by: Truth

    def outcome(self, cells: Cells) -> Truth:
        first = self.one.outcome(cells)
        if first == self.decided_by:
            return first
        return _joined(first, self.other.outcome(cells), self.decided_by)


def balanced(nodes: Sequence[Condition], decided_by: Truth) -> Condition:
    """Join nodes, at least one, in their order: a thousand of them are ten deep, and no recursion too many."""
    while len(nodes) > 1:
        pairs = [Junction(one, other, decided_by) for one, other in zip(nodes[::2], nodes[1::2], strict=False)]
        nodes = [*pairs, *nodes[len(pairs) * 2 :]]
    return nodes[0]


def _joined(one: Truth, other: Truth, decided_by: Truth) -> Truth:
    found = Truth(0)
    for a, b in product(_each(one), _each(other)):
        if decided_by in (a, b):
            found |= decided_by
        else:
            found |= Truth.NULL if Truth.NULL in (a, b) else a
    return found


def _each(outcome: Truth) -> list[Truth]:
    return [single for single in (Truth.TRUE, Truth.FALSE, Truth.NULL) if single & outcome]


def _negated(outcome: Truth) -> Truth:
    swapped = {Truth.TRUE: Truth.FALSE, Truth.FALSE: Truth.TRUE, Truth.NULL: Truth.NULL}
    found = Truth(0)
    for single in _each(outcome):
        found |= swapped[single]
    return found


_NEGATED = {Truth(bits): _negated(Truth(bits)) for bits in range(8)}
