"""The table of docs/operations/costs.md: what it claims is counted again, and the money follows from it."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path

import boto3.session
import pytest
from _pytest.mark import ParameterSet

from airflow_bookmarks.store.backends.dynamodb import DynamoTable
from airflow_bookmarks.store.table import Check, Delete, Exists, Key, Put, Update
from benchmarks.capacity import WriteUnits
from benchmarks.costs import CASES, HEADER, Case, Cost, Ground, Prices, ground, looking, row

DOCS = Path(__file__).parents[2] / "docs" / "operations" / "costs.md"

# Seldom: it counts what runs ask for over many contexts.
pytestmark = [pytest.mark.dynamodb_local, pytest.mark.seldom, pytest.mark.slow, pytest.mark.xdist_group("costs")]


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


def marked(case: Case) -> ParameterSet:
    """Return a case, to be counted by `make test-all` alone where it asks the same as others, but more often."""
    return pytest.param(case, id=case.name, marks=[pytest.mark.thorough] if case.keys * case.new > 1_000 else [])


@pytest.mark.parametrize("case", [marked(case) for case in CASES])
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


@pytest.mark.parametrize(("new", "most"), [(1, 19), (100, 23)])
def test_further_context_costs_what_its_plan_and_its_share_of_the_items_cost(here: Ground, new: int, most: int) -> None:
    here.count(Case("one", 1_000, new, 1))
    one = here.writes.total
    here.count(Case("ten", 1_000, new, 1, 10))
    ten, by_item = here.writes.total, here.writes.by_item()

    assert (ten - one) / 9 <= most  # as transactions, blobs alone would make 26 of 23
    assert by_item["HEAD"] <= 14 * 4  # 2 KB, checked or written by take, ten plans, place, commit and mark
    assert by_item["BLOB"] <= 10 * (2 + 3) * (new > 1)  # plans and positions that are large, once each


def test_units_follow_from_the_larger_size_and_count_twice_in_a_transaction(dynamodb_local_url: str) -> None:
    name, session = f"units-{uuid.uuid4().hex}", boto3.session.Session("testing", "testing")
    units = WriteUnits(looking(name, dynamodb_local_url))
    units.watch(session)
    table = DynamoTable(name=name, region="us-east-1", endpoint=dynamodb_local_url, session=session)
    table.create()
    head, run = Key("prod#JOB#a", "HEAD"), Key("prod#JOB#a", "RUN#0000000001#0000000001")

    table.transact([Put(head, {"data": bytes(1_500)})])
    table.transact([Put(run, {"data": bytes(10)}), Check(head, [Exists()])])
    table.transact([Update(run, {"more": bytes(4_000)})])
    table.transact([Put(run, {})])
    table.transact([Delete(run), Delete(head)])
    table.close()

    assert [one.units for one in units.requests] == [2, 2 + 4, 4, 4, 2 + 4]
    assert units.by_item() == {"HEAD": 2 + 4 + 4, "RUN": 2 + 4 + 4 + 2}
