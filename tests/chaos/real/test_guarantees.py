"""docs/concepts/guarantees.md names a test for each guarantee, and each of them is there."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

from tests.chaos.real.matrix import PAGE
from tests.syntax import parsed

ROOT = Path(__file__).parents[3]
NAMES = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", PAGE.read_text())


@cache
def functions_of(path: str) -> frozenset[str]:
    """Return the names of the functions of a module."""
    tree = parsed((ROOT / path).read_text())
    return frozenset(node.name for node in tree.body if isinstance(node, ast.FunctionDef))


@pytest.mark.parametrize(("path", "name"), sorted(set(NAMES)), ids=lambda text: text)
def test_test_that_the_page_names_is_there(path: str, name: str) -> None:
    assert name in functions_of(path)


def test_each_guarantee_says_where_it_ends_and_what_shows_it() -> None:
    promises = PAGE.read_text().partition("## What none of it covers")[0]
    sections = [part for part in re.split(r"^##+ ", promises, flags=re.MULTILINE)[1:] if "\n\n" in part.rstrip()]
    assert len(sections) >= 12
    for section in sections:
        assert "- **Ends where** " in section, section.splitlines()[0]
        assert "- **Shown by** `tests/" in section, section.splitlines()[0]
