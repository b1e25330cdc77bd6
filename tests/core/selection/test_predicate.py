"""Promise FILE-10: predicates on partition columns, evaluated level by level. (Against Spark itself: tests/spark.)"""

from __future__ import annotations

import pytest

from airflow_bookmarks.core.errors import OptionError
from airflow_bookmarks.core.selection.predicate.predicate import Predicate
from airflow_bookmarks.core.selection.predicate.value import Cells, Truth, values_of


def cells(**types_and_texts: tuple[str, str | None]) -> Cells:
    return {name: values_of(name, text, type_name) for name, (text, type_name) in types_and_texts.items()}


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("", "character 1: expected a column or a value, found the end"),
        ("year", "character 5: expected a comparison"),
        ("year =", "character 7: expected a column or a value"),
        ("year = 2013 and", "character 16: expected a column or a value, found the end"),
        ("year = 2013 month = 9", "character 13: expected the end, found 'month'"),
        ("(year = 2013", r"character 13: expected \)"),
        ("year in 2013", r"character 9: expected \("),
        ("year in ()", "character 10"),
        ("year not = 2013", "character 10: expected IN, BETWEEN or LIKE"),
        ("year between 1 or 2", "character 16: expected AND"),
        ("upper(region) = 'EU'", "character 1: 'upper' is a function"),
        ("year = 2013 + 1", "character 13"),
        ("region rlike 'e'", "character 8"),
        ("region like 7", "character 13: expected a text in quotes"),
        ("region like 'a\\\\b'", "the escape stands before neither"),
        ("region like 'a' escape '!!'", "character 24: expected one character in quotes, found \"'!!'\""),
        ("region like 'a' escape ''", "character 24: expected one character in quotes"),
        ("region like 'a' escape 7", "character 24: expected one character in quotes, found '7'"),
        ("region = '\\U00110000'", "character 10: an escape in it names no character"),
        ("region = '\\UFFFFFFFF'", "character 10: an escape in it names no character"),
        ("region = r'eu'", "character 10"),
        ("region = 'it''s'", "character 10"),
        ("region = 'eu", "character 10"),
        ("year = 1e3", "character 8"),
        ("day = date '2013-13-01'", "character 12: '2013-13-01' is no date"),
        ("year = 2013; drop table x", "character 12"),
        (f"{'(' * 200}year = 1{')' * 200}", "nested too deeply"),
        (f"{'not ' * 200}year = 1", "nested too deeply"),
    ],
)
def test_what_is_no_predicate_is_an_error_that_names_the_place_and_the_grammar(text: str, where: str) -> None:
    with pytest.raises(OptionError, match=rf"{where}.*(?s:.)*It may have partition columns; numbers"):
        Predicate.parse(text)


def test_column_that_is_not_known_yet_leaves_open_what_it_decides() -> None:
    predicate = Predicate.parse("year = 2013 and month >= 9 or region = 'eu'")
    year = cells(year=("2013", "int"))

    assert predicate.outcome(year) == Truth.ANY
    assert predicate.outcome({**year, **cells(month=("9", "int"))}) & Truth.TRUE
    assert predicate.outcome(cells(year=("2012", "int"), region=("us", "string"))) == Truth.FALSE
    assert predicate.outcome(cells(region=("eu", "string"))) == Truth.TRUE


def test_null_is_not_true_and_neither_is_its_opposite() -> None:
    null = cells(year=("__HIVE_DEFAULT_PARTITION__", "int"))

    assert Predicate.parse("year = 2013").outcome(null) == Truth.NULL
    assert Predicate.parse("not year = 2013").outcome(null) == Truth.NULL
    assert Predicate.parse("year = 2013 or 1 = 1").outcome(null) == Truth.TRUE
    assert Predicate.parse("year = 2013 and 1 = 2").outcome(null) == Truth.FALSE


@pytest.mark.parametrize(
    ("text", "outcome"),
    [
        ("month = 9", Truth.TRUE),  # a number or a text: '09' is cast, and is 9
        ("month = '9'", Truth.TRUE | Truth.FALSE),  # true of numbers, false of texts
        ("month = 10", Truth.FALSE),
        ("month > 'x'", Truth.ANY),  # of numbers it is an error, so nothing is left out yet
    ],
)
def test_type_that_is_not_settled_yet_leaves_open_what_depends_on_it(text: str, outcome: Truth) -> None:
    assert Predicate.parse(text).outcome(cells(month=("09", None))) == outcome


@pytest.mark.parametrize(
    ("text", "type_name", "value"),
    [("year > 2012", "string", "latest"), ("year = date '2013-01-01'", "int", "2013"), ("year > 'x'", "int", "2013")],
)
def test_what_spark_cannot_compare_is_an_error(text: str, type_name: str, value: str) -> None:
    with pytest.raises(OptionError, match=r"can't be evaluated.*Nothing was read or changed"):
        Predicate.parse(text).outcome(cells(year=(value, type_name)))


def test_folder_that_is_none_of_the_users_type_is_an_error() -> None:
    with pytest.raises(OptionError, match="year=latest is no int"):
        values_of("year", "latest", "int")
    with pytest.raises(OptionError, match=r"timestamp.*\.where"):
        values_of("year", "2013", "timestamp")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (r"\u00e3", "ã"),
        (r"\U0001F600", "😀"),
        (r"\ud83d\ude00", "😀"),  # as Java writes it
        (r"\101\0608", "A08"),  # octal: three digits, the first of them 0 or 1
        (r"\201\18", "20118"),
        (r"\u00g0\'\n", "u00g0'\n"),
    ],
)
def test_escapes_of_a_text_are_those_of_spark(text: str, value: str) -> None:
    assert Predicate.parse(f"region = '{text}'").outcome(cells(region=(value, "string"))) == Truth.TRUE


@pytest.mark.parametrize(("word", "outcome"), [("or", Truth.TRUE), ("and", Truth.FALSE)])
def test_thousands_of_conditions_are_one_predicate(word: str, outcome: Truth) -> None:
    text = f" {word} ".join(f"day = '{day}'" for day in range(5000))

    assert Predicate.parse(text).outcome(cells(day=("4999", "string"))) == outcome


def test_columns_are_those_that_are_asked_for_once_each() -> None:
    assert Predicate.parse("`a b` = 1 and A = 2 or (a = 3 and `x``y` is null)").columns == ("a b", "A", "a", "x`y")
