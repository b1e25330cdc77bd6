"""The values that predicates compare, and how: as Spark does in ANSI mode."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal, InvalidOperation
from enum import Enum, IntFlag
from typing import TYPE_CHECKING, Any, TypeAlias

from airflow_bookmarks.core.errors import OptionError
from airflow_bookmarks.core.selection.partition import NULL_VALUE

if TYPE_CHECKING:
    from airflow_bookmarks.core.selection.wildcard import Wildcards


class Truth(IntFlag):
    """What a predicate may come to: a set of these."""

    TRUE = 1
    FALSE = 2
    NULL = 4
    ANY = 7


class ValueKind(Enum):
    """As what a value compares."""

    NUMBER = "number"
    STRING = "text"
    DATE = "date"
    NULL = "null"


@dataclass(frozen=True, slots=True)
class Value:
    """A literal, or what a column is in one partition."""

    kind: ValueKind
    of: Any = None


NULL = Value(ValueKind.NULL)

# By name in lower case the values that a column may have; a column that is not there is not known yet.
Cells: TypeAlias = Mapping[str, Sequence[Value]]


def values_of(column: str, text: str, type_name: str | None) -> Sequence[Value]:
    """Return the possible values of a column whose folder has `text` (decoded): several if its type is not known.

    Args:
        type_name: the Spark type; None: it is not settled yet, so that "09" may be a number or a text.

    Raises:
        OptionError: the text is no value of the type, or partitions of this type can't be compared here.

    Example:
        >>> [value.of for value in values_of("month", "09", None)], values_of("month", "09", "int")[0].of
        ([9, '09'], 9)
    """
    if text == NULL_VALUE:
        return (NULL,)
    if type_name is None:
        guesses = (_guess(text, ValueKind.NUMBER), _guess(text, ValueKind.DATE), Value(ValueKind.STRING, text))
        return [guess for guess in guesses if guess is not None]
    kind = _kind_of_type(column, type_name)
    if kind is ValueKind.STRING:
        return (Value(kind, text),)
    try:
        return (_as(Value(ValueKind.STRING, text), kind, whole=type_name in _WHOLE),)
    except NotComparableError as error:
        raise OptionError(
            f"partition_filter: the folder {column}={text} is no {type_name}, which the column is. Nothing was read or "
            "changed. Move the folder away, or name the column in the schema as string."
        ) from error


_WHOLE = ("tinyint", "smallint", "int", "bigint")
_FRACTIONS = ("float", "double", "decimal")


def _kind_of_type(column: str, type_name: str) -> ValueKind:
    base = type_name.partition("(")[0].strip().lower()
    if base in _WHOLE or base in _FRACTIONS:
        return ValueKind.NUMBER
    if base in ("string", "char", "varchar"):
        return ValueKind.STRING
    if base == "date":
        return ValueKind.DATE
    raise OptionError(
        f"partition_filter: column {column!r} is a {type_name}, and only numbers, strings and dates are compared "
        "before listing. Nothing was read or changed. Filter the frame by it: .where(...)."
    )


def _guess(text: str, kind: ValueKind) -> Value | None:
    # What a column may settle to: see core/selection/partition.py.
    pattern = _INTEGER if kind is ValueKind.NUMBER else _PLAIN_DATE
    if not pattern.fullmatch(text):
        return None
    try:
        return _as(Value(ValueKind.STRING, text), kind, whole=True)
    except NotComparableError:
        return None


# ---- comparing, as Spark does in ANSI mode


class NotComparableError(Exception):
    """Raised when a text is not of the kind that it is compared with."""


_INTEGER = re.compile(r"-?\d{1,18}", re.ASCII)
_PLAIN_DATE = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)
WHOLE_TEXT = re.compile(r"\s*[+-]?\d{1,4000}\s*", re.ASCII)  # int() refuses some more
_DATE_TEXT = re.compile(r"(\d{4})(?:-(\d{1,2})(?:-(\d{1,2})(?:[T ].*)?)?)?", re.ASCII)
_SPACE = " \t\n\r\f\v"


def _as(value: Value, kind: ValueKind, *, whole: bool) -> Value:
    """Return a value as another kind; `whole`: only as a number without a fraction."""
    if value.kind in (kind, ValueKind.NULL):
        return value
    if value.kind is ValueKind.STRING and kind is ValueKind.NUMBER:
        return Value(kind, _number(value.of, whole=whole))
    if value.kind is ValueKind.STRING and kind is ValueKind.DATE:
        return Value(kind, date_of(value.of))
    raise NotComparableError(f"a {value.kind.value} can't be compared with a {kind.value}")


def _number(text: str, *, whole: bool) -> int | Decimal:
    if WHOLE_TEXT.fullmatch(text):
        return int(text)
    try:
        number = Decimal(text.strip())
    except InvalidOperation as error:
        raise NotComparableError(f"{text!r} is no number") from error
    if whole or not number.is_finite():
        raise NotComparableError(f"{text!r} is no whole number")
    return number


def date_of(text: str) -> date:
    """Return the day that a text stands for, as Spark casts it.

    Raises:
        NotComparableError: it is no date.
    """
    match = _DATE_TEXT.fullmatch(text.strip(_SPACE))
    try:
        if match is not None:
            return date(int(match[1]), int(match[2] or 1), int(match[3] or 1))
    except ValueError as error:
        raise NotComparableError(f"{text!r} is no date") from error
    raise NotComparableError(f"{text!r} is no date")


def _alike(values: Sequence[Value]) -> Sequence[Value]:
    """Return values of one kind: texts become what they are compared with."""
    kinds = {value.kind for value in values} - {ValueKind.NULL}
    if len(kinds) < 2:
        return values
    if kinds == {ValueKind.NUMBER, ValueKind.DATE} or len(kinds) > 2:
        raise NotComparableError("a number can't be compared with a date")
    (kind,) = kinds - {ValueKind.STRING}
    whole = all(isinstance(value.of, int) for value in values if value.kind is ValueKind.NUMBER)
    return [_as(value, kind, whole=whole) for value in values]


def _compared(values: Sequence[Value], test: Callable[..., bool]) -> Truth:
    alike = _alike(values)
    if any(value.kind is ValueKind.NULL for value in alike):
        return Truth.NULL
    return Truth.TRUE if test(*(value.of for value in alike)) else Truth.FALSE


def same(values: Sequence[Value]) -> Truth:
    """Whether two values are the same: null is the same as null (`<=>`)."""
    one, other = _alike(values)
    return Truth.TRUE if one == other else Truth.FALSE


def among(values: Sequence[Value]) -> Truth:
    """Whether the first value is one of the others (IN)."""
    one, *others = _alike(values)
    if one.kind is ValueKind.NULL:
        return Truth.NULL
    if one in others:
        return Truth.TRUE
    return Truth.NULL if NULL in others else Truth.FALSE


def is_null(values: Sequence[Value]) -> Truth:
    """Whether a value is null."""
    return Truth.TRUE if values[0].kind is ValueKind.NULL else Truth.FALSE


@dataclass(frozen=True, slots=True)
class ComparedBy:
    """`test(values)`, as a test of a function that takes them apart."""

    holds: Callable[..., bool]

    def __call__(self, values: Sequence[Value]) -> Truth:
        return _compared(values, self.holds)


@dataclass(frozen=True, slots=True)
class LikePattern:
    """Whether a value is LIKE a pattern."""

    pattern: Wildcards

    def __call__(self, values: Sequence[Value]) -> Truth:
        (value,) = values
        if value.kind is ValueKind.NULL:
            return Truth.NULL
        return Truth.TRUE if self.pattern.matches(str(value.of)) else Truth.FALSE
