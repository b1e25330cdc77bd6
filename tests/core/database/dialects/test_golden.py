"""Each statement of a dialect is the one of its golden file, is valid by its grammar, and can be asked by Spark."""

from __future__ import annotations

import pytest
import sqlglot
from sqlglot import exp

from airflow_bookmarks.core.database.dialects.quoting import quoted
from airflow_bookmarks.core.database.dialects.registry import DIALECTS
from tests.core.database.dialects.statements import FOLDER, PARTS, reading, statements, text_of

# What sqlglot calls the grammars; that of Oracle and Redshift has the name of the dialect.
GRAMMARS = {"postgresql": "postgres", "mariadb": "mysql", "sqlserver": "tsql"}


@pytest.mark.parametrize("name", DIALECTS)
def test_statements_are_those_of_the_golden_file(name: str) -> None:
    assert text_of(name) == (FOLDER / f"{name}.sql").read_text()


@pytest.mark.parametrize("name", DIALECTS)
def test_each_statement_is_one_by_the_grammar_of_its_database(name: str) -> None:
    for title, sql in statements(name):
        parsed = sqlglot.parse(sql, read=GRAMMARS.get(name, name))

        assert len(parsed) == 1, title
        assert not isinstance(parsed[0], exp.Command), title  # what sqlglot can't read, and leaves as it is


@pytest.mark.parametrize("name", DIALECTS)
def test_columns_of_each_query_have_names_of_their_own(name: str) -> None:
    for title, sql in reading(DIALECTS[name]):
        if sql is None:
            continue
        query = sqlglot.parse_one(sql, read=GRAMMARS.get(name, name))
        assert isinstance(query, exp.Query), title
        names = [each.alias_or_name for each in query.selects]

        assert all(names), title
        assert len({each.lower() for each in names}) == len(names), title


@pytest.mark.parametrize("name", DIALECTS)
def test_odd_name_is_quoted_to_what_it_was(name: str) -> None:
    dialect = DIALECTS[name]

    table = sqlglot.parse_one(f"SELECT 1 FROM {dialect.table(PARTS)}", read=GRAMMARS.get(name, name)).find(exp.Table)

    assert table is not None
    assert (table.db, table.name) == PARTS


@pytest.mark.parametrize("name", ["postgresql", "mysql", "mariadb"])
def test_names_are_quoted_alike_for_reading_and_for_writing(name: str) -> None:
    assert [quoted(name, part) for part in PARTS] == [DIALECTS[name].quote(part) for part in PARTS]
