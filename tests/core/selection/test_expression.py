"""What matching a user's regular expression costs at most is known before it is matched, and small."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from airflow_bookmarks.core.selection import expression
from airflow_bookmarks.core.selection.expression import (
    LONGEST,
    LONGEST_EXPRESSION,
    MOST_STEPS,
    Expression,
    ExpressionError,
    _Cost,
    _is_anchored,
    _Signs,
)

USUAL = [
    r"part-(?P<seq>\d+)",
    r"part-(?P<seq>\w+)",
    r"part-(?P<seq>\d*)",
    r"part(?P<seq>.*)\.csv",
    r"x|part-(?P<seq>\d+)",
    r"(a|b)-(?P<seq>\d+)(\.gz)?",
    r"-(?P<year>\d{4})\.",
    r"(?P<month>\d{4}-\d\d)",
    r"(?P<day>\d{4}-\d\d-\d\d)/[^/]*\.csv$",
    r".*/(?P<name>[^/]+)\.json",
    r".*-(?P<seq>\d+).*",
    r"^.*?(?P<seq>\d+)\.csv",
    r"\w+(?P<seq>\d+)\.csv",
    r"[^/]+/[^/]+-(?P<seq>\d+)\.csv",
    r"part-(?P<seq>\d+)-.*-.*\.snappy",
    r"data/.*/part-.*-(?P<seq>\d+)\.snappy\.parquet",
    r"year=(?P<year>\d+)/month=\d+/day=\d+/.*\.parquet",
    r"(?i)part-(?P<seq>\d+)\.(csv|json|parquet)(\.gz)?$",
    r"(?<!\d)(?P<day>\d{8})(?!\d)",
    r"(?P<address>(?:\d{1,3}\.){3}\d{1,3})",
    r"export_(?P<at>\d{14})_[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\.json\.gz",
]


@pytest.mark.parametrize("text", USUAL)
def test_usual_expression_is_taken(text: str) -> None:
    assert Expression.of(text).longest >= LONGEST


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (r"part-(?P<seq>\d+)*", "repeats a group|there are too many ways|repeats what may match nothing"),
        (r"(?P<a>(\d+-)*)x", "repeats a group without bound"),
        (r"(?P<a>a)(?P=a)", "refers back"),
        (r"(?P<a>a)(?(a)b|c)", "refers back"),
        (r"(?P<a>(a?){3})", "may match nothing"),
        (r"(?P<a>(?:a?|b?)c)", "alternatives may match nothing"),
        (r"(?P<a>(?=a*)b)", "looks ahead or behind"),
        (r"(?P<a>[ab]{257})", "more than 256 characters"),
        (r"(?P<a>(?:ab){1,4000000000})", "more than 256 characters"),
        (r"(?P<a>(?:){4000000000})", "may match nothing"),
        ("(?P<a>" + "a" * LONGEST_EXPRESSION + ")", "512 are the most"),
        (r".*.*.*(?P<a>a)b", "End each repeat by a character"),
        ("part-(", "no regular expression"),
        (r"part-(\d+)", "0 named groups"),
        (b"(?P<a>.)", "no text but bytes"),
    ],
)
def test_what_may_cost_too_much_is_refused_and_says_why(text: object, said: str) -> None:
    with pytest.raises(ExpressionError, match=said):
        Expression.of(text)


def test_text_that_is_longer_than_bounded_does_not_match() -> None:
    rule = Expression.of(r"\w+(?P<seq>\d)\.csv")

    fits = "a" * (rule.longest - 5) + "7.csv"
    assert rule.value_of(fits) == "7"
    assert rule.value_of("a" + fits) is None


def test_cheap_expression_is_matched_against_any_path_there_may_be() -> None:
    assert Expression.of(r"part-(?P<seq>\d+)").value_of("x/" * 2000 + "part-1") == "1"


# ---- the bound holds


def steps_of(text: str, subject: str) -> int:
    """Count the characters that a search looks at which tries all ways, one after the other, with no shortcut."""
    parsed: Any = expression._parser.parse(text)
    op: Any = expression._op
    count = 0

    def one(items: Any, at: int, then: Callable[[int], Iterator[None]]) -> Iterator[None]:
        if not items:
            yield from then(at)
            return
        (kind, value), rest = items[0], items[1:]

        def go_on(end: int) -> Iterator[None]:
            return one(rest, end, then)

        nonlocal count
        if kind in (op.LITERAL, op.NOT_LITERAL, op.ANY, op.IN):
            count += 1
            if at < len(subject) and fits(kind, value, subject[at]):
                yield from go_on(at + 1)
        elif kind is op.SUBPATTERN:
            yield from one(list(value[3]), at, go_on)
        elif kind is op.BRANCH:
            for each in value[1]:
                yield from one(list(each), at, go_on)
        elif kind in (op.MAX_REPEAT, op.MIN_REPEAT):
            least, most, body = value
            yield from repeated(least, most, body, at, go_on, greedy=kind is op.MAX_REPEAT)
        else:
            raise AssertionError(kind)

    def repeated(
        least: int, most: Any, body: Any, at: int, then: Callable[[int], Iterator[None]], *, greedy: bool
    ) -> Iterator[None]:
        def more() -> Iterator[None]:
            if most is op.MAXREPEAT or most > 0:
                left = most if most is op.MAXREPEAT else most - 1
                yield from one(
                    list(body), at, lambda end: repeated(max(0, least - 1), left, body, end, then, greedy=greedy)
                )

        if greedy or least > 0:
            yield from more()
        if least == 0:
            yield from then(at)
        if not greedy and least == 0:
            yield from more()

    def fits(kind: Any, value: Any, character: str) -> bool:
        code = ord(character)
        if kind is op.ANY:
            return True
        if kind in (op.LITERAL, op.NOT_LITERAL):
            return bool((code == value) == (kind is op.LITERAL))
        return any(code == each for _, each in value)

    for start in range(len(subject) + 1):
        for _ in one(list(parsed), start, lambda end: iter([None])):
            return count
    return count


signs = st.sampled_from(["a", "b", "[ab]", ".", "c"])
repeats = st.sampled_from(["", "", "*", "+", "?", "*?", "+?", "{0,2}", "{1,3}", "{2}"])
atoms = st.builds(lambda sign, repeat: sign + repeat, signs, repeats)
sequences = st.lists(atoms, min_size=1, max_size=5).map("".join)
groups = st.builds(
    lambda parts, repeat: f"(?:{'|'.join(parts)}){repeat}",
    st.lists(sequences, min_size=1, max_size=3),
    st.sampled_from(["", "?", "{2}", "{1,3}"]),
)
expressions = st.lists(st.one_of(atoms, groups), min_size=1, max_size=6).map("".join)
subjects = st.one_of(
    st.text("abc", max_size=14),
    st.builds(lambda unit, times, end: unit * times + end, st.text("ab", min_size=1, max_size=3),
              st.integers(1, 6), st.text("abc", max_size=2)),
)  # fmt: skip


@pytest.mark.seldom
@settings(max_examples=400, deadline=None)
@given(text=expressions, subject=subjects)
def test_no_search_takes_more_steps_than_its_bound(text: str, subject: str) -> None:
    parsed = expression._parser.parse(text)
    found = _Signs(parsed.state.flags)
    try:
        whole = found.sequence(list(parsed), is_tail=True)
    except ExpressionError:
        assume(False)
    bound = _Cost(found, whole.first, is_anchored=_is_anchored(parsed)).steps(len(subject) + 1)
    assume(bound < 1e6)

    # At each character that a way has come to, all signs that may follow are tried, and those that end a match.
    assert steps_of(text, subject) <= bound * (len(expression._parser.parse(text)) + len(found.takes) + 2)


@pytest.mark.parametrize("text", [r".*b(?P<x>[ab]+)c", r"^a.*b.*(?P<x>a)c", r"[ab]+(?P<x>a+)c"])
@pytest.mark.parametrize("unit", ["a", "ab", "aab", "b", "abb"])
def test_expression_that_is_taken_ends_within_the_bound_on_what_was_made_to_exceed_it(text: str, unit: str) -> None:
    rule = Expression.of(text)
    parsed = expression._parser.parse(text)
    found = _Signs(parsed.state.flags)
    whole = found.sequence(list(parsed), is_tail=True)
    cost = _Cost(found, whole.first, is_anchored=_is_anchored(parsed))
    subject = (unit * 40)[:40]

    assert steps_of(text.removeprefix("^"), subject) <= cost.steps(len(subject) + 1) * (len(subject) + 1)
    assert cost.steps(rule.longest) <= MOST_STEPS


# ---- what is relied on of Python's own reading


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        (r"a", ["LITERAL"]),
        (r"[^a]", ["NOT_LITERAL"]),
        (r".", ["ANY"]),
        (r"\d", ["IN"]),
        (r"[a-c\s]", ["IN"]),
        (r"(a)", ["SUBPATTERN"]),
        (r"ab|cd", ["BRANCH"]),
        (r"a*", ["MAX_REPEAT"]),
        (r"a*?", ["MIN_REPEAT"]),
        (r"a*+", ["POSSESSIVE_REPEAT"]),
        (r"(?>ab)", ["ATOMIC_GROUP"]),
        (r"^a\b$", ["AT", "LITERAL", "AT", "AT"]),
        (r"(?=a)", ["ASSERT"]),
        (r"(?<!a)", ["ASSERT_NOT"]),
        (r"(a)\1", ["SUBPATTERN", "GROUPREF"]),
        (r"(a)?(?(1)b|c)", ["MAX_REPEAT", "GROUPREF_EXISTS"]),
    ],
)
def test_python_reads_an_expression_as_this_package_takes_it_to(text: str, kinds: list[str]) -> None:
    found = expression._parser.parse(text)

    assert [str(kind) for kind, _ in found] == kinds
    assert all(getattr(expression._op, kind) is item[0] for kind, item in zip(kinds, found, strict=True))


def test_python_names_the_parts_of_an_expression_where_they_are_looked_for() -> None:
    op: Any = expression._op
    found = expression._parser.parse(r"(?i:(?P<a>x))[^b\d]{2,}")

    assert found.state.groupdict == {"a": 1}
    (_, outer), (repeat, (least, most, body)) = found
    assert (outer[0], outer[1], outer[3][0][0]) == (None, re.IGNORECASE.value, op.SUBPATTERN)
    assert (repeat, least, most is op.MAXREPEAT) == (op.MAX_REPEAT, 2, True)
    assert [str(kind) for kind, _ in body[0][1]] == ["NEGATE", "LITERAL", "CATEGORY"]
    assert str(body[0][1][2][1]) == "CATEGORY_DIGIT"
    assert [kind for kind, _ in expression._parser.parse("(?s)^")] == [op.AT]
    assert (
        expression._parser.parse("(?mi)a").state.flags & (re.MULTILINE | re.IGNORECASE) == re.MULTILINE | re.IGNORECASE
    )
