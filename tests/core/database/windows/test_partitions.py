"""By what rows are split, and whether that can change while their keys stay."""

from __future__ import annotations

from typing import Any

import pytest

from airflow_bookmarks.core.database.windows.partitions import PartitionOptions

KEYS = ["updated_at", "Id"]


@pytest.mark.parametrize(
    ("way", "by"),
    [
        ({}, None),
        ({"column": "Id"}, None),
        ({"column": "amount"}, "amount"),
        ({"hash_field": "Id"}, None),
        ({"hash_field": "id"}, "id"),  # another column: names are quoted
        ({"hash_field": "status"}, "status"),
        ({"hash_expression": "id"}, None),
        ({"hash_expression": '"Id" % 5'}, None),
        ({"hash_expression": "id + status"}, "id + status"),
        ({"hash_expression": "random()"}, "random()"),
    ],
    ids=str,
)
def test_what_can_change_while_the_keys_stay_is_told(way: dict[str, Any], by: str | None) -> None:
    assert PartitionOptions(partitions=8, **way).splits_beside(KEYS) == by


def test_one_part_is_split_by_nothing() -> None:
    assert PartitionOptions().splits_beside(KEYS) is None
