"""Patterns that run away: expressions of users are refused before they match anything, wildcards take bounded steps."""

from __future__ import annotations

import tracemalloc
from pathlib import Path
from typing import Any

import pytest

from airflow_bookmarks.cli import main
from airflow_bookmarks.core.errors import OptionError
from airflow_bookmarks.core.run import RunKey
from airflow_bookmarks.core.selection.expression import Expression
from airflow_bookmarks.core.selection.glob import Exclusions, Glob, NamePattern
from airflow_bookmarks.core.selection.group import GroupRule
from airflow_bookmarks.core.selection.predicate.predicate import Predicate
from airflow_bookmarks.core.selection.predicate.value import values_of
from airflow_bookmarks.core.selection.sequence import SequenceRule
from airflow_bookmarks.core.selection.wildcard import _Automaton
from airflow_bookmarks.lifecycle.inspect.pending import pending
from airflow_bookmarks.sources.files.options import FileOptions
from airflow_bookmarks.sources.files.planner import FileSource
from airflow_bookmarks.store.backends.sqlite import SqliteTable
from airflow_bookmarks.store.bookmark_store import BookmarkStore
from airflow_bookmarks.store.table import Update
from tests.lifecycle.shop import FILES, Shop

RUNAWAY = [
    r"(?P<s>(a+)+)b",
    r"(?P<s>(a*)*)b",
    r"(?P<s>(a|a)*)b",
    r"(?P<s>(a|aa)+)$",
    r"(?P<s>(a|b|ab)*)c",
    r"(?P<s>(.*)*)x",
    r"(?P<s>(.+)+)x",
    r"(?P<s>(x+x+)+)y",
    r"(?P<s>([a-zA-Z]+)*)\d",
    r"(?P<s>(\w+\s?)*)$",
    r"(?P<s>(?:\d+,?)+)$",
    r"(?P<s>(?:.*,){11}P)",
    r"(?P<s>(.*a){12})",
    r"(?P<s>(([a-z])+.)+[A-Z]([a-z])+)$",
    r"^(?P<s>([a-zA-Z0-9])(([\-.]|[_]+)?([a-zA-Z0-9]+))*(@){1}[a-z0-9]+[.]{1}(([a-z]{2,3})|([a-z]{2,3}[.]{1}[a-z]{2,3})))$",
    r"(?P<s>" + "a?" * 25 + "a" * 25 + r")$",
    r"(?P<s>(?:a?){25}a{25})$",
    r"(?P<s>" + "(?:aa?)" * 25 + r")b",
    r"(?P<s>(?:a|ab|abc){1,20})d",
    r"(?P<s>(?:(?:a{1,9}){1,9}){1,9})b",
    r"(?P<s>(?:a?|b?){25})c",
    r"(?P<s>" + "a*(?:b|ab)" * 20 + r")c",
    r"(?P<s>" + "a*(?:b|(?:ab))" * 20 + r")c",
    r".*.*.*.*(?P<s>a)b",
    r"\d*\d*\d*(?P<s>\d*)x",
    r"[\s\S]*?[\s\S]*?[\s\S]*?(?P<s>x)y",
    r"(?P<s>a)(?P=s)+",
    r"(a*)(?P<s>\1*)b",
    r"(?P<s>(?=(a+)+b)a)",
    r"(?P<s>(?:(?=a*b)a)+)",
    r"(?P<s>(?:é|é\u0301?)+)x",
    "(?P<s>" + "(" * 5000 + "a" + ")" * 5000 + ")",
    r"(?P<s>(?:(?:(?:a{0,99}){0,99}){0,99}){0,99})b",
    r"(?P<s>x)(?:a(?=(?:b(?=(?:cd){99})){99})){99}",
    r"(?P<s>x)(?:a(?!(?:b(?=(?:c(?!(?:d(?=e)){99})){99})){99})){99}",
    r"(?P<s>(?:){4000000000})",
]


@pytest.mark.parametrize("text", RUNAWAY, ids=range(len(RUNAWAY)))
@pytest.mark.parametrize("rule", [SequenceRule, GroupRule])
def test_expression_that_may_run_away_is_refused_before_it_matches_anything(rule: Any, text: str) -> None:
    with pytest.raises(OptionError, match="Nothing was read or changed"):
        rule.of(text)


@pytest.mark.parametrize("option", ["sequence", "reread"])
def test_option_that_may_run_away_is_refused_where_it_is_given(option: str) -> None:
    given: dict[str, Any] = {option: RUNAWAY[0]}
    with pytest.raises(OptionError, match="repeat a single character or set"):
        FileOptions(**given)


# ---- in a state that an earlier version, or somebody else, has written


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    store = BookmarkStore(SqliteTable(tmp_path / "state.db", create=True), "test")
    store.init()
    shop = Shop(tmp_path, store)
    shop.put("part-1.csv", "one")
    begun = shop.begin()
    begun.plan("raw", FileSource(FILES, [str(shop.raw)], FileOptions(sequence=r"part-(?P<seq>\d+)")))
    begun.commit()
    shop.put("part-" + "1" * 60 + "!", "two")
    return shop


def with_stored(shop: Shop, **options: Any) -> None:
    """Have the record of the run say that files were read under other options."""
    key = shop.store.keys("copy").run(RunKey(1, 1))
    entry: Any = shop.store.table.get([key])[key]["plan:raw"]
    entry["facts"]["options"] |= options
    shop.store.table.transact([Update(key, set={"plan:raw": entry})])


@pytest.mark.parametrize(
    "options", [{"sequence": r"part-(?P<seq>(1+)+)\.csv"}, {"reread": r"(?P<seq>(1+)+)\.csv", "sequence": None}]
)
def test_stored_expression_that_may_run_away_is_told_of_and_never_matched(
    shop: Shop, options: dict[str, Any], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    with_stored(shop, **options)

    (context,) = pending(shop.store, "copy").contexts

    assert context.plan is None
    assert "repeats a group without bound" in str(context.unknown)
    main(["pending", "copy", "--store", f"sqlite:///{tmp_path}/state.db?namespace=test"])
    assert "repeats a group without bound" in "".join(capsys.readouterr())


# ---- wildcards: matched, in steps that are counted


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Count what automata look at: each call takes a whole text, one character after the other."""
    seen: list[int] = []
    takes = _Automaton.takes

    def counted(self: _Automaton, text: str) -> bool:
        seen.append(len(text))
        return takes(self, text)

    monkeypatch.setattr(_Automaton, "takes", counted)
    return seen


LONG = "a" * 3000


def test_glob_of_many_stars_takes_one_step_for_each_character(steps: list[int]) -> None:
    pattern = "*a" * 40 + "b"

    (glob,) = Glob.expand(f"/lake/{pattern}")
    assert glob.matched(LONG) is None
    assert not NamePattern.of(pattern).matches(LONG)
    assert not Exclusions.of([pattern, f"**/{'**/a*' * 30}b"]).matches(LONG)
    assert glob.matched(LONG + "b") == LONG + "b"
    assert steps == [3000, 3000, 3000, 3001]


def test_like_of_many_signs_takes_one_step_for_each_character(steps: list[int]) -> None:
    predicate = Predicate.parse(f"name like '{'%a' * 40}b'")

    assert predicate.outcome({"name": values_of("name", LONG, "string")}).name == "FALSE"
    assert steps == [3000]


def test_braces_that_multiply_take_one_step_for_each_character(steps: list[int]) -> None:
    assert not NamePattern.of("{a,a,aa}" * 40 + "b").matches("a" * 60)
    assert steps == [60]


@pytest.mark.parametrize(
    "pattern",
    [
        "/lake/" + "{a/b,c/d}" * 20,
        "/lake/" + "{a/b,c/d}" * 800,
        "/lake/" + "{" * 3000 + "a" + "}" * 3000,
        "/lake/*" + "a" * 9000,
    ],
)
def test_pattern_that_stands_for_too_many_is_refused(pattern: str) -> None:
    with pytest.raises(OptionError, match="Nothing was read or changed"):
        Glob.expand(pattern)


def test_exclusions_that_are_nested_too_deeply_are_refused() -> None:
    with pytest.raises(OptionError, match="Nothing was read or changed"):
        Exclusions.of(["{" * 3000 + "a" + "}" * 3000])


def test_predicate_reads_long_texts_as_dates_and_numbers_in_one_pass() -> None:
    date = "2013-01-01T" + " " * 60_000 + "\n\x01"

    with pytest.raises(OptionError, match="can't be evaluated"):
        Predicate.parse(f"day = '{date}'").outcome({"day": values_of("day", "2013-01-01", "date")})
    with pytest.raises(OptionError):
        Predicate.parse("n = '" + "9" * 50_000 + ".5x'").outcome({"n": values_of("n", "1", "int")})
    assert Predicate.parse("n < " + "9" * 50_000).outcome({"n": values_of("n", "1", "int")}).name == "TRUE"


def test_longest_texts_that_an_accepted_expression_takes_are_as_long_as_a_name_may_be() -> None:
    assert Expression.of(r"\w+(?P<seq>\d+)\.csv").longest >= 255


@pytest.mark.seldom
def test_exclusions_as_many_as_an_item_holds_take_no_memory_by_their_square() -> None:
    many = [f"*{chr(ord('a') + number)}" + "*a" * 2000 + "b" for number in range(20)]
    Exclusions.of(["*x"])  # what is made once, for whichever pattern
    tracemalloc.start()
    try:
        excluded = Exclusions.of(many)
        assert not excluded.matches("a" * 50)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert most < 100 * 1024**2  # some 500 MiB, where each sign has a bit for each of all
