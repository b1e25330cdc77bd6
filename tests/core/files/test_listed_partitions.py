"""Partitions as a catalog lists them, in a plan and in its stored form."""

from __future__ import annotations

import pytest

from airflow_bookmarks.core.errors import OptionError, StateCorruptError
from airflow_bookmarks.core.files.file_plan import FilePlan, union
from airflow_bookmarks.core.files.listed_partitions import ListedPartitions
from airflow_bookmarks.core.selection.listing import FileInfo, Listing
from airflow_bookmarks.core.text.deflated import deflated, inflated

LISTED = ListedPartitions({"day": "date", "hour": "int"}, {"/t/a": ("2024-01-01", "7"), "/elsewhere": (None, "8")})


def plan(listed: ListedPartitions | None, *paths: str) -> FilePlan:
    files = Listing.of(FileInfo(path, 1, 1) for path in paths)
    types = {} if listed is None else listed.types
    return FilePlan(files, ("/t",), len(files), 0, {}, types, listed_partitions=listed)


def test_stored_plan_has_its_partitions() -> None:
    read = FilePlan.decode(plan(LISTED, "/t/a/1").encode())
    assert read.listed_partitions == LISTED
    assert read.listed_partitions.values_of("/elsewhere/deep/x") == (None, "8")


def test_plan_that_was_stored_before_has_none() -> None:
    body = plan(None, "/t/a/1").encode()
    assert "listed_partitions" not in inflated(body, "plan")
    assert FilePlan.decode(body).listed_partitions is None


@pytest.mark.parametrize(
    "damage",
    [
        pytest.param({"values": [["x"]]}, id="a-column-is-missing"),
        pytest.param({"values": [["x"], ["y"]]}, id="a-value-is-missing"),
        pytest.param({"types": {"day": 1, "hour": "int"}}, id="no-type"),
        pytest.param({"folders": None}, id="no-folders"),
    ],
)
def test_damaged_partitions_are_told(damage: dict[str, object]) -> None:
    document = dict(inflated(plan(LISTED, "/t/a/1").encode(), "plan"))
    document["listed_partitions"] = {**LISTED.document(), **damage}
    with pytest.raises(StateCorruptError):
        FilePlan.decode(deflated(document))


def test_union_has_the_last_values_of_each_partition() -> None:
    later = ListedPartitions({"hour": "int", "day": "date"}, {"/t/a": ("9", "2024-02-02")})
    found = union([plan(LISTED, "/t/a/1"), plan(later, "/t/a/2")]).listed_partitions
    assert found is not None
    assert found.folders == {"/t/a": ("9", "2024-02-02"), "/elsewhere": ("8", None)}
    assert union([plan(None, "/t/a/1")]).listed_partitions is None


def test_innermost_folder_says_the_values() -> None:
    nested = ListedPartitions({"p": "string"}, {"/t": ("outer",), "/t/a": ("inner",)})
    assert [nested.values_of(path) for path in ("/t/x", "/t/a/x", "/t/ab/x", "/u/x")] == [
        ("outer",),
        ("inner",),
        ("outer",),
        None,
    ]


def test_other_spellings_of_one_folder_may_not_differ_in_their_values() -> None:
    two = ListedPartitions({"p": "string"}, {"/t/a": ("1",), "/t/a/": ("2",)})
    with pytest.raises(OptionError, match="two partitions have the location '/t/a'"):
        two.spelled(lambda folder: folder.rstrip("/"))
