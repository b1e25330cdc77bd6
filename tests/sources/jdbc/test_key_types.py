"""The page on types of keys says what the servers do."""

from __future__ import annotations

import pytest

from tests.databases.servers import new_database
from tests.sources.jdbc.key_types import CASES, PAGE, look, page


@pytest.mark.slow
@pytest.mark.thorough  # a table for each type of both servers; test_keys.py has those that keys are made of
def test_page_says_what_becomes_of_each_type_on_both_servers(request: pytest.FixtureRequest) -> None:
    found = {}
    for dialect, cases in CASES.items():
        with new_database(request.getfixturevalue(f"{dialect}_server")) as login:
            found[dialect] = [look(login, case) for case in cases]

    written = PAGE.read_text(encoding="utf-8")
    assert written == page(found), "make database-types writes the page anew"


def test_each_type_of_both_servers_has_one_row() -> None:
    for cases in CASES.values():
        declared = [case.declared for case in cases]
        assert len(set(declared)) == len(declared)
