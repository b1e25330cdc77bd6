"""The table of docs/operations/costs.md: what it claims is counted again, and the money follows from it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.costs import CASES, HEADER, Case, Cost, Ground, Prices, ground, row

DOCS = Path(__file__).parents[2] / "docs" / "operations" / "costs.md"

pytestmark = [pytest.mark.dynamodb_local, pytest.mark.slow, pytest.mark.xdist_group("costs")]


def claimed() -> dict[str, Cost]:
    """Return what the page says of each case."""
    text = DOCS.read_text().partition("<!-- costs:")[2].partition("<!-- end")[0]
    assert HEADER in text
    lines = [line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("|")][2:]
    return {cells[0]: Cost(*(int(cell.replace(",", "")) for cell in cells[1:8])) for cells in lines}


@pytest.fixture(scope="module")
def here(dynamodb_local_url: str, moto_url: str) -> Iterator[Ground]:
    with ground(dynamodb_local_url, moto_url) as opened:
        yield opened


def test_page_has_each_case_with_the_money_that_follows_from_its_counts() -> None:
    found = claimed()

    assert list(found) == [case.name for case in CASES]
    for case in CASES:
        assert row(case, found[case.name], Prices()) in DOCS.read_text()


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_run_asks_for_what_the_page_says(here: Ground, case: Case) -> None:
    found, told = here.count(case), claimed()[case.name]

    assert (found.dynamodb, found.heads, found.copies, found.deletes) == (
        told.dynamodb,
        told.heads,
        told.copies,
        told.deletes,
    )
    # How a large folder is shared out depends on which answer comes first; names and clocks are of some length.
    assert found.lists == pytest.approx(told.lists, rel=0.15, abs=1)
    assert found.read_units == pytest.approx(told.read_units, rel=0.1, abs=4)
    assert found.write_units == pytest.approx(told.write_units, rel=0.1, abs=6)


def test_ten_contexts_cost_the_state_less_than_ten_jobs() -> None:
    found = claimed()
    one, ten = found["100 new among 100,000, 10 written"], found["10 contexts, each 100 new among 1,000, 1 written"]

    assert ten.write_units < 10 * one.write_units
