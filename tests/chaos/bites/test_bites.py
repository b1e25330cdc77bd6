"""A sample of the bites, those that are found fast: the simulator sees what it is there to see."""

from __future__ import annotations

import pytest

from tests.chaos.bites.__main__ import hunt
from tests.chaos.bites.bite import BITES

QUICK = [
    "plan_stored_after_read",
    "failed_not_settled",
    "writes_not_fenced",
    "commit_not_fenced",
    "discarded_instead_of_swept",
    "landed_rows_not_taken_over",
    "clean_not_finished",
]


@pytest.mark.chaos
@pytest.mark.parametrize("name", QUICK)
def test_deliberate_fault_is_found(name: str) -> None:
    caught = hunt(BITES[name], seeds=600)
    assert caught.seed is not None, caught.bite.rule
