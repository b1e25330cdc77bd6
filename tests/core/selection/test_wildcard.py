"""Wildcards match what a regular expression of them matches, by either way, and in a bounded number of steps."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from airflow_bookmarks.core.selection.glob import _excluding, _tokens
from airflow_bookmarks.core.selection.wildcard import (
    BAR,
    CLOSE,
    OPEN,
    Many,
    One,
    Token,
    Wildcards,
    WildcardsTooManyError,
    _Automaton,
    _regex_of,
)

signs = ["a", "b", "ab", ".", "*", "**", "**/", "/", "?", "[ab]", "[^a]", "[!b/]", "[.-b]", "\\*"]
pieces = st.sampled_from([*signs, "{a,b}", "{a*,b,}", "{**/,x}", "{a,{b,ab}*}"])
patterns = st.lists(pieces, min_size=1, max_size=7).map("".join)
texts = st.text("ab./*\n", max_size=12)


def regex(tokens: list[Token]) -> re.Pattern[str]:
    return re.compile("".join(map(_regex_of, tokens)), re.DOTALL)


@settings(max_examples=500, deadline=None)
@given(pattern=patterns, text=texts, crosses=st.booleans())
def test_automaton_takes_what_the_regular_expression_takes(pattern: str, text: str, crosses: bool) -> None:
    tokens = _tokens(pattern, pattern, crosses=crosses)

    assert _Automaton(tokens).takes(text) == (regex(tokens).fullmatch(text) is not None)


@settings(max_examples=100, deadline=None)
@given(several=st.lists(patterns.filter(lambda one: not one.startswith("/")), min_size=1, max_size=4), text=texts)
def test_one_of_several_takes_what_any_of_them_takes(several: list[str], text: str) -> None:
    each = [_excluding(pattern) for pattern in several]

    assert Wildcards.any_of(each).matches(text) == any(one.matches(text) for one in each)


def test_long_text_is_matched_by_the_automaton_and_a_short_one_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    made = Wildcards.of([Many("."), One("a"), Many("."), One("b"), Many("."), One("c")])
    taken: list[str] = []

    def noted(self: _Automaton, text: str) -> bool:
        taken.append(text)
        return True

    monkeypatch.setattr(_Automaton, "takes", noted)

    assert [made.matches("xaxbxc"), made.matches("x" * 500 + "abc"), made.matches("abd")] == [True, True, False]
    assert taken == ["x" * 500 + "abc"]


def test_each_character_is_one_step(monkeypatch: pytest.MonkeyPatch) -> None:
    automaton = _Automaton([token for _ in range(20) for token in (Many("."), One("a"))] + [One("b")])
    steps: list[str] = []
    step = _Automaton._step

    def noted(self: _Automaton, state: int, character: str) -> int:
        steps.append(character)
        return step(self, state, character)

    monkeypatch.setattr(_Automaton, "_step", noted)

    assert not automaton.takes("a" * 10_000)
    assert len(steps) <= 10_000


@pytest.mark.seldom
def test_alternatives_beyond_counting_are_refused() -> None:
    many = [OPEN, *[token for _ in range(500) for token in (One("a"), BAR)], One("a"), CLOSE]

    with pytest.raises(WildcardsTooManyError, match="too many alternatives"):
        Wildcards.of(many * 500)
