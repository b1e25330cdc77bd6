"""docs/guides/clusters.md: the tests that it names are there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

_HERE = Path(__file__).parent
_ROOT = _HERE.parents[1]
_PAGE = _ROOT / "docs" / "guides" / "clusters.md"
NAMED = re.findall(r"`([\w/]+\.py)::(\w+)`", _PAGE.read_text())


@pytest.mark.parametrize(("file", "test"), NAMED)
def test_test_that_the_page_names_is_there(file: str, test: str) -> None:
    path = _ROOT / file if "/" in file else _HERE / file
    assert f"def {test}(" in path.read_text()


def test_each_promise_of_these_tests_about_a_death_is_in_the_page() -> None:
    deaths = {"killed", "lost", "outlives", "exception", "again"}
    for path in _HERE.glob("test_*.py"):
        tests = re.findall(r"^def (test_\w+)\(", path.read_text(), flags=re.MULTILINE)
        dying = {test for test in tests if deaths & set(test.split("_"))}
        assert dying <= {test for _, test in NAMED}
