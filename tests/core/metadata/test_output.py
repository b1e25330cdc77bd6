"""The metadata of an output: typed, and read without a change of what is stored."""

from __future__ import annotations

from typing import Any

import pytest

from airflow_bookmarks.core.errors import StateCorruptError
from airflow_bookmarks.core.metadata.output import OutputMetadata
from airflow_bookmarks.core.run import OutputEntry, Payload
from airflow_bookmarks.store.codec import item
from airflow_bookmarks.store.codec.attribute import Fields

# As a run stores it, with a name that no version of this package knows.
STORED: dict[str, Any] = {
    "format": "csv",
    "mode": "overwrite_partitions",
    "partition_by": ["day"],
    "options": {"header": "true"},
    "when_empty": "discard",
    "rows": None,
    "files": 2,
    "bytes": 10,
    "deleted_files": 1,
    "partly_read": ["day=2013-01-31"],
    "of_another_version": [1],
}


def test_metadata_is_typed() -> None:
    metadata = OutputMetadata.of_stats(STORED)

    assert (metadata.format, metadata.mode, metadata.when_empty) == ("csv", "overwrite_partitions", "discard")
    assert (metadata.partition_by, metadata.options) == (("day",), {"header": "true"})
    assert (metadata.rows, metadata.files, metadata.bytes) == (None, 2, 10)
    assert (metadata.partly_read, metadata.maybe_partly_read) == (("day=2013-01-31",), False)
    assert not metadata.is_append


@pytest.mark.parametrize(("stats", "is_append"), [({}, True), ({"mode": "append"}, True), ({"mode": "upsert"}, False)])
def test_only_an_output_that_replaces_something_is_no_append(stats: dict[str, Any], is_append: bool) -> None:
    assert OutputMetadata.of_stats(stats).is_append is is_append


def test_metadata_of_an_output_that_is_not_stored_yet_may_hold_tuples() -> None:
    assert OutputMetadata.of_stats({"partition_by": ("day",)}).partition_by == ("day",)


@pytest.mark.parametrize(
    ("name", "value"),
    [("mode", 1), ("partition_by", "day"), ("options", []), ("when_empty", True), ("files", -1), ("rows", "3")],
)
def test_another_type_of_a_known_name_is_damage(name: str, value: object) -> None:
    with pytest.raises(StateCorruptError, match=f"'{name}'"):
        OutputMetadata.of_stats(STORED | {name: value})


def test_stats_are_stored_as_they_were_in_their_order() -> None:
    entry = OutputEntry("files", "/out", "/out/_bookmarks/1.1/out", STORED, Payload("a" * 64, 1, inline=b"x"))
    stored: Any = item.output_attribute("out", entry)["output:out"]
    read = item._output_of(Fields.of("RUN 1.1", "", stored))

    assert read == entry
    assert list(stored["facts"].items()) == list(read.stats.items()) == list(STORED.items())
