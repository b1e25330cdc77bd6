"""Read a predicate from text, in Spark's SQL."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from operator import eq, ge, gt, le, lt, ne

from airflow_bookmarks.core.errors import OptionError
from airflow_bookmarks.core.selection.predicate.condition import Condition, ConditionTest, Junction, Negation, balanced
from airflow_bookmarks.core.selection.predicate.value import (
    NULL,
    WHOLE_TEXT,
    ComparedBy,
    LikePattern,
    NotComparableError,
    Truth,
    Value,
    ValueKind,
    among,
    date_of,
    is_null,
    same,
)
from airflow_bookmarks.core.selection.wildcard import Many, One, Token, Wildcards

GRAMMAR = (
    "partition columns; numbers, 'texts', DATE '2013-01-31'; = == <> != < <= > >= <=>, [NOT] IN (...), [NOT] BETWEEN, "
    "[NOT] LIKE, IS [NOT] NULL; AND, OR, NOT and parentheses"
)


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
    "=": ComparedBy(eq),
    "==": ComparedBy(eq),
    "<>": ComparedBy(ne),
    "!=": ComparedBy(ne),
    "<": ComparedBy(lt),
    "<=": ComparedBy(le),
    ">": ComparedBy(gt),
    ">=": ComparedBy(ge),
    "<=>": same,
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


class PredicateParser:
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

    def whole(self) -> Condition:
        """Return the condition that the text is.

        Raises:
            OptionError: it is none, or more than this grammar knows.
        """
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

    def _either(self) -> Condition:
        nodes = [self._all()]
        while self._took("OR"):
            nodes.append(self._all())
        return balanced(nodes, Truth.TRUE)

    def _all(self) -> Condition:
        nodes = [self._negation()]
        while self._took("AND"):
            nodes.append(self._negation())
        return balanced(nodes, Truth.FALSE)

    def _negation(self) -> Condition:
        self._depth += 1
        if self._depth > _DEEPEST:
            raise self._broken(self._next.at, "it is nested too deeply")
        node = Negation(self._negation()) if self._took("NOT") or self._took("!") else self._test()
        self._depth -= 1
        return node

    def _test(self) -> Condition:
        if self._took("("):
            node = self._either()
            self._expect(")")
            return node
        begin = self._next.at
        left = self._operand()
        if self._took("IS"):
            is_negated = self._took("NOT")
            self._expect("NULL")
            return self._built(begin, (left,), is_null, is_negated)
        is_negated = self._took("NOT")
        if self._took("IN"):
            return self._built(begin, (left, *self._list()), among, is_negated)
        if self._took("BETWEEN"):
            low = self._operand()
            self._expect("AND")
            high = self._operand()
            above, below = self._built(begin, (left, low), _TESTS[">="]), self._built(begin, (left, high), _TESTS["<="])
            both = Junction(above, below, Truth.FALSE)
            return Negation(both) if is_negated else both
        if self._took("LIKE"):
            return self._built(begin, (left,), LikePattern(self._pattern()), is_negated)
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
    ) -> Condition:
        node = ConditionTest(self._text[begin : self._next.at].strip(), operands, test)
        return Negation(node) if is_negated else node

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
            ValueKind.NUMBER, sign * (int(token.text) if WHOLE_TEXT.fullmatch(token.text) else Decimal(token.text))
        )

    def _date_literal(self) -> Value:
        token = self._take()
        try:
            return Value(ValueKind.DATE, date_of(self._unquoted(token)))
        except NotComparableError as error:
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
