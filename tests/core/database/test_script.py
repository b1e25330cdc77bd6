"""Statements around the rows of an output: how they are split, and which have no place in a transaction (SINK-4)."""

from __future__ import annotations

import pytest

from airflow_bookmarks.core.database.script import PublishScript, split_statements
from airflow_bookmarks.core.errors import OptionError


@pytest.mark.parametrize(
    ("text", "statements"),
    [
        ("", []),
        (" ; ;", []),
        ("delete from a", ["delete from a"]),
        ("delete from a where b = ';''' ; commit", ["delete from a where b = ';'''", "commit"]),
        ('update "a;b" set c = 1 -- d; e\n; select 1', ['update "a;b" set c = 1', "select 1"]),
        ("do $x$ begin; end; $x$; select 1", ["do $x$ begin; end; $x$", "select 1"]),
        ("/* a; b */ select 5 - 3 / 2", ["select 5 - 3 / 2"]),
    ],
    ids=["none", "empty", "one", "quoted", "comment", "dollars", "block"],
)
def test_text_is_split_at_the_semicolons_between_statements(text: str, statements: list[str]) -> None:
    assert split_statements(text) == statements


def test_begin_and_end_of_a_transaction_are_left_out() -> None:
    script = PublishScript.of("postgresql", "begin; delete from a; END TRANSACTION;", ["commit", "select 1"])

    assert script == PublishScript(("delete from a",), ("select 1",))


@pytest.mark.parametrize(
    ("dialect", "statement"),
    [
        ("postgresql", "rollback"),
        ("postgresql", "VACUUM a"),
        ("mysql", "truncate a"),
        ("mariadb", "create table a (b int)"),
    ],
)
def test_statement_that_ends_the_transaction_is_refused(dialect: str, statement: str) -> None:
    with pytest.raises(OptionError, match="would end the transaction"):
        PublishScript.of(dialect, statement, None)


def test_digest_tells_before_from_after() -> None:
    assert PublishScript(("a",)).digest != PublishScript((), ("a",)).digest
    assert not PublishScript()
