"""Predicates on partition columns in Spark's SQL, evaluated on paths without Spark, before folders are listed.

    year = 2013 and (month >= 9 or month is null) and region not in ('xx', 'yy')

An evaluation tells all outcomes that are possible. A column may not be known yet (it lies deeper in the path), or its
type may not (no run has settled it): then there are several, and a folder is left out only where none of them is true.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal, InvalidOperation
from enum import Enum, IntFlag
from itertools import product
from operator import eq, ge, gt, le, lt, ne
from typing import Any, TypeAlias

from airflow_bookmarks.core.errors import OptionError
from airflow_bookmarks.core.selection.partition import NULL_VALUE
from airflow_bookmarks.core.selection.wildcard import Many, One, Token, Wildcards

GRAMMAR = (
    "partition columns; numbers, 'texts', DATE '2013-01-31'; = == <> != < <= > >= <=>, [NOT] IN (...), [NOT] BETWEEN, "
    "[NOT] LIKE, IS [NOT] NULL; AND, OR, NOT and parentheses"
)


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


@dataclass(frozen=True, slots=True)
class Predicate:
    """A condition on partition columns.

    Example:
        >>> late = Predicate.parse("year = 2013 and month >= 9")
        >>> late.outcome({"year": values_of("year", "2012", "int")}).name
        'FALSE'
        >>> late.outcome({"year": values_of("year", "2013", "int")}).name
        'ANY'
        >>> late.columns
        ('year', 'month')
    """

    text: str
    columns: tuple[str, ...]
    _node: _Node

    @classmethod
    def parse(cls, text: str) -> Predicate:
        """Read a predicate.

        Raises:
            OptionError: it is none, or more than this grammar knows.
        """
        parser = _Parser(text)
        node = parser.whole()
        return cls(text, tuple(dict.fromkeys(parser.columns)), node)

    def outcome(self, cells: Cells) -> Truth:
        """Return all values that the predicate may have.

        Raises:
            OptionError: a value can't be compared with what the predicate compares it with.
        """
        return self._node.outcome(cells)


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
    except _NotComparableError as error:
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
    except _NotComparableError:
        return None


# ---- comparing, as Spark does in ANSI mode


class _NotComparableError(Exception):
    """Raised when a text is not of the kind that it is compared with."""


_INTEGER = re.compile(r"-?\d{1,18}", re.ASCII)
_PLAIN_DATE = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)
_WHOLE_TEXT = re.compile(r"\s*[+-]?\d{1,4000}\s*", re.ASCII)  # int() refuses some more
_DATE_TEXT = re.compile(r"(\d{4})(?:-(\d{1,2})(?:-(\d{1,2})(?:[T ].*)?)?)?", re.ASCII)
_SPACE = " \t\n\r\f\v"


def _as(value: Value, kind: ValueKind, *, whole: bool) -> Value:
    """Return a value as another kind; `whole`: only as a number without a fraction."""
    if value.kind in (kind, ValueKind.NULL):
        return value
    if value.kind is ValueKind.STRING and kind is ValueKind.NUMBER:
        return Value(kind, _number(value.of, whole=whole))
    if value.kind is ValueKind.STRING and kind is ValueKind.DATE:
        return Value(kind, _date(value.of))
    raise _NotComparableError(f"a {value.kind.value} can't be compared with a {kind.value}")


def _number(text: str, *, whole: bool) -> int | Decimal:
    if _WHOLE_TEXT.fullmatch(text):
        return int(text)
    try:
        number = Decimal(text.strip())
    except InvalidOperation as error:
        raise _NotComparableError(f"{text!r} is no number") from error
    if whole or not number.is_finite():
        raise _NotComparableError(f"{text!r} is no whole number")
    return number


def _date(text: str) -> date:
    match = _DATE_TEXT.fullmatch(text.strip(_SPACE))
    try:
        if match is not None:
            return date(int(match[1]), int(match[2] or 1), int(match[3] or 1))
    except ValueError as error:
        raise _NotComparableError(f"{text!r} is no date") from error
    raise _NotComparableError(f"{text!r} is no date")


def _alike(values: Sequence[Value]) -> Sequence[Value]:
    """Return values of one kind: texts become what they are compared with."""
    kinds = {value.kind for value in values} - {ValueKind.NULL}
    if len(kinds) < 2:
        return values
    if kinds == {ValueKind.NUMBER, ValueKind.DATE} or len(kinds) > 2:
        raise _NotComparableError("a number can't be compared with a date")
    (kind,) = kinds - {ValueKind.STRING}
    whole = all(isinstance(value.of, int) for value in values if value.kind is ValueKind.NUMBER)
    return [_as(value, kind, whole=whole) for value in values]


def _compared(values: Sequence[Value], test: Callable[..., bool]) -> Truth:
    alike = _alike(values)
    if any(value.kind is ValueKind.NULL for value in alike):
        return Truth.NULL
    return Truth.TRUE if test(*(value.of for value in alike)) else Truth.FALSE


def _same(values: Sequence[Value]) -> Truth:
    one, other = _alike(values)
    return Truth.TRUE if one == other else Truth.FALSE


def _among(values: Sequence[Value]) -> Truth:
    one, *others = _alike(values)
    if one.kind is ValueKind.NULL:
        return Truth.NULL
    if one in others:
        return Truth.TRUE
    return Truth.NULL if NULL in others else Truth.FALSE


def _is_null(values: Sequence[Value]) -> Truth:
    return Truth.TRUE if values[0].kind is ValueKind.NULL else Truth.FALSE


@dataclass(frozen=True, slots=True)
class _Comparison:
    """`test(values)`, as a test of a function that takes them apart."""

    holds: Callable[..., bool]

    def __call__(self, values: Sequence[Value]) -> Truth:
        return _compared(values, self.holds)


@dataclass(frozen=True, slots=True)
class _Like:
    pattern: Wildcards

    def __call__(self, values: Sequence[Value]) -> Truth:
        (value,) = values
        if value.kind is ValueKind.NULL:
            return Truth.NULL
        return Truth.TRUE if self.pattern.matches(str(value.of)) else Truth.FALSE


# ---- the tree


class _Node:
    __slots__ = ()

    def outcome(self, cells: Cells) -> Truth:
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class _Test(_Node):
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
            except _NotComparableError as error:
                if is_sure:
                    raise OptionError(
                        f"partition_filter: {self.said!r} can't be evaluated: {error}. Nothing was read or changed. "
                        "Compare the column with values of its own type (a text in quotes), or move the folder away."
                    ) from error
                found = Truth.ANY  # once the types are settled it is known, and an error then if it is one
        return found


@dataclass(frozen=True, slots=True)
class _Not(_Node):
    inner: _Node

    def outcome(self, cells: Cells) -> Truth:
        return _NEGATED[self.inner.outcome(cells)]


@dataclass(frozen=True, slots=True)
class _Both(_Node):
    """`one AND other`, or with `decided_by` TRUE `one OR other`: the outcome that one of them alone decides."""

    one: _Node
    other: _Node
    decided_by: Truth

    def outcome(self, cells: Cells) -> Truth:
        first = self.one.outcome(cells)
        if first == self.decided_by:
            return first
        return _joined(first, self.other.outcome(cells), self.decided_by)


def _balanced(nodes: Sequence[_Node], decided_by: Truth) -> _Node:
    """Join nodes, at least one, in their order: a thousand of them are ten deep, and no recursion too many."""
    while len(nodes) > 1:
        pairs = [_Both(one, other, decided_by) for one, other in zip(nodes[::2], nodes[1::2], strict=False)]
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


# ---- reading

_TOKEN = re.compile(
    r"""\s*(?:
      (?P<number>\d+(?:\.\d*)?|\.\d+)(?![\w.])
    | (?P<date>[Dd][Aa][Tt][Ee]\s*(?=['"]))
    | (?P<word>[A-Za-z_]\w*)\b(?!['"])
    | `(?P<quoted>(?:[^`]|``)+)`
    | (?P<text>'(?:[^'\\]|\\.)*'(?!')|"(?:[^"\\]|\\.)*"(?!"))
    | (?P<sign><=>|<>|<=|>=|==|!=|[=<>(),!+-])
    )""",
    re.VERBOSE | re.ASCII | re.DOTALL,
)
_KEYWORDS = frozenset(["AND", "OR", "NOT", "IN", "BETWEEN", "LIKE", "ESCAPE", "IS", "NULL"])
_TESTS: Mapping[str, Callable[[Sequence[Value]], Truth]] = {
    "=": _Comparison(eq),
    "==": _Comparison(eq),
    "<>": _Comparison(ne),
    "!=": _Comparison(ne),
    "<": _Comparison(lt),
    "<=": _Comparison(le),
    ">": _Comparison(gt),
    ">=": _Comparison(ge),
    "<=>": _same,
}
# As in Spark's `unescapeSQLString`: \u00e3, \U0001F600, \101 (octal), and a backslash before any one character.
_ESCAPE = re.compile(r"\\(?:u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|([01][0-7]{2})|(.))", re.DOTALL)
_ESCAPED = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "0": "\0", "Z": "\x1a", "%": "\\%", "_": "\\_"}
_DEEPEST = 100
_LONGEST = 1_000_000  # characters


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str
    text: str
    at: int


class _Parser:
    """Reads a predicate from left to right, one token ahead."""

    def __init__(self, text: str) -> None:
        if not isinstance(text, str):
            raise OptionError(f"partition_filter={text!r}: expected text. Nothing was read or changed.")
        if len(text) > _LONGEST:
            raise OptionError(
                f"partition_filter has {len(text)} characters, and {_LONGEST} are the most. Nothing was read or "
                "changed. Say the same by a range (BETWEEN, <, >), or filter the frame: .where(...)."
            )
        self.columns: list[str] = []
        self._text, self._at, self._depth = text, 0, 0
        self._tokens = list(self._tokenised())

    def whole(self) -> _Node:
        node = self._either()
        if self._next.kind != "end":
            raise self._unexpected("the end")
        return node

    def _tokenised(self) -> Sequence[_Token]:
        tokens, at = [], 0
        end = len(self._text.rstrip())
        while at < end:
            match = _TOKEN.match(self._text, at)
            if match is None:
                begin = len(self._text) - len(self._text[at:].lstrip())
                raise self._broken(begin, f"{self._text[begin : begin + 20]!r} is unexpected")
            kind = str(match.lastgroup)
            text, begin = match[kind], match.start(kind)
            if kind == "word" and text.upper() in _KEYWORDS:
                kind, text = "key", text.upper()
            tokens.append(_Token(kind, text, begin))
            at = match.end()
        return [*tokens, _Token("end", "", len(self._text))]

    # ---- the grammar

    def _either(self) -> _Node:
        nodes = [self._all()]
        while self._took("OR"):
            nodes.append(self._all())
        return _balanced(nodes, Truth.TRUE)

    def _all(self) -> _Node:
        nodes = [self._negation()]
        while self._took("AND"):
            nodes.append(self._negation())
        return _balanced(nodes, Truth.FALSE)

    def _negation(self) -> _Node:
        self._depth += 1
        if self._depth > _DEEPEST:
            raise self._broken(self._next.at, "it is nested too deeply")
        node = _Not(self._negation()) if self._took("NOT") or self._took("!") else self._test()
        self._depth -= 1
        return node

    def _test(self) -> _Node:
        if self._took("("):
            node = self._either()
            self._expect(")")
            return node
        begin = self._next.at
        left = self._operand()
        if self._took("IS"):
            is_negated = self._took("NOT")
            self._expect("NULL")
            return self._built(begin, (left,), _is_null, is_negated)
        is_negated = self._took("NOT")
        if self._took("IN"):
            return self._built(begin, (left, *self._list()), _among, is_negated)
        if self._took("BETWEEN"):
            low = self._operand()
            self._expect("AND")
            high = self._operand()
            above, below = self._built(begin, (left, low), _TESTS[">="]), self._built(begin, (left, high), _TESTS["<="])
            both = _Both(above, below, Truth.FALSE)
            return _Not(both) if is_negated else both
        if self._took("LIKE"):
            return self._built(begin, (left,), _Like(self._pattern()), is_negated)
        if is_negated or self._next.text not in _TESTS:
            raise self._unexpected("IN, BETWEEN or LIKE" if is_negated else "a comparison")
        test = _TESTS[self._take().text]
        return self._built(begin, (left, self._operand()), test)

    def _built(
        self,
        begin: int,
        operands: tuple[str | Value, ...],
        test: Callable[[Sequence[Value]], Truth],
        is_negated: bool = False,
    ) -> _Node:
        node = _Test(self._text[begin : self._next.at].strip(), operands, test)
        return _Not(node) if is_negated else node

    def _list(self) -> Sequence[str | Value]:
        self._expect("(")
        found = [self._operand()]
        while self._took(","):
            found.append(self._operand())
        self._expect(")")
        return found

    def _operand(self) -> str | Value:
        token = self._take()
        if token.kind in ("word", "quoted"):
            if self._next.text == "(":
                raise self._broken(token.at, f"{token.text!r} is a function, and there are none here")
            name = token.text.replace("``", "`") if token.kind == "quoted" else token.text
            self.columns.append(name)
            return name.lower()
        if token.kind in ("number", "sign") and token.text != "(":
            return self._signed(token)
        if token.kind == "text":
            return Value(ValueKind.STRING, self._unquoted(token))
        if token.kind == "date":
            return self._date_literal()
        if token.text == "NULL" and token.kind == "key":
            return NULL
        raise self._unexpected("a column or a value", token)

    def _signed(self, token: _Token) -> Value:
        sign = 1
        if token.text in ("-", "+") and self._next.kind == "number":
            sign, token = (-1 if token.text == "-" else 1), self._take()
        if token.kind != "number":
            raise self._unexpected("a column or a value", token)
        return Value(
            ValueKind.NUMBER, sign * (int(token.text) if _WHOLE_TEXT.fullmatch(token.text) else Decimal(token.text))
        )

    def _date_literal(self) -> Value:
        token = self._take()
        try:
            return Value(ValueKind.DATE, _date(self._unquoted(token)))
        except _NotComparableError as error:
            raise self._broken(token.at, str(error)) from error

    def _pattern(self) -> Wildcards:
        token, escape = self._take(), "\\"
        if token.kind != "text":
            raise self._unexpected("a text in quotes", token)
        if self._took("ESCAPE"):
            escape = self._escape_sign()
        tokens: list[Token] = []
        at, text = 0, self._unquoted(token)
        while at < len(text):
            if text[at] == escape:
                at += 1
                if text[at : at + 1] not in ("%", "_", escape):
                    raise self._broken(token.at, "in its pattern the escape stands before neither % nor _")
                tokens.append(One(re.escape(text[at])))
            else:
                tokens.append(Many(".") if text[at] == "%" else One("." if text[at] == "_" else re.escape(text[at])))
            at += 1
        return Wildcards.of(tokens)

    def _escape_sign(self) -> str:
        token = self._take()
        sign = self._unquoted(token) if token.kind == "text" else ""
        if len(sign) != 1:
            raise self._unexpected("one character in quotes", token)
        return sign

    def _unquoted(self, token: _Token) -> str:
        """Return what a text in quotes stands for."""
        try:
            text = _ESCAPE.sub(_character, token.text[1:-1])
        except (ValueError, OverflowError) as error:  # chr's, beyond \U0010FFFF
            raise self._broken(token.at, "an escape in it names no character") from error
        # Two halves of a character beyond 16 bits are one, as in Java.
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")

    # ---- tokens

    @property
    def _next(self) -> _Token:
        return self._tokens[self._at]

    def _take(self) -> _Token:
        token = self._next
        self._at = min(self._at + 1, len(self._tokens) - 1)
        return token

    def _took(self, text: str) -> bool:
        is_there = self._next.kind in ("key", "sign") and self._next.text == text
        self._at += is_there
        return is_there

    def _expect(self, text: str) -> None:
        if not self._took(text):
            raise self._unexpected(text)

    def _unexpected(self, wanted: str, token: _Token | None = None) -> OptionError:
        token = token or self._next
        found = repr(token.text) if token.kind != "end" else "the end"
        return self._broken(token.at, f"expected {wanted}, found {found}")

    def _broken(self, at: int, why: str) -> OptionError:
        return OptionError(
            f"partition_filter={self._text!r} can't be read at character {at + 1}: {why}. Nothing was read or changed. "
            f"It may have {GRAMMAR}. Filter the frame by anything else: .where(...)."
        )


def _character(escape: re.Match[str]) -> str:
    if code := escape[1] or escape[2]:
        return chr(int(code, 16))
    return chr(int(escape[3], 8)) if escape[3] else _ESCAPED.get(escape[4], escape[4])
