"""The metadata of plans: typed, and read without a change of what is stored."""

from __future__ import annotations

from typing import Any

import pytest

from airflow_bookmarks.core.amount import Amount
from airflow_bookmarks.core.errors import StateCorruptError
from airflow_bookmarks.core.ledger.seen import SeenRanges
from airflow_bookmarks.core.metadata.file_plan import FilePlanMetadata, RecordedRead, with_moves
from airflow_bookmarks.core.metadata.plan import MeasuredRead, PlanMetadata, WindowMetadata
from airflow_bookmarks.core.rules.shard import VirtualShard
from airflow_bookmarks.core.run import Payload, PlanEntry
from airflow_bookmarks.sources.source import PlanInput
from airflow_bookmarks.store.codec import item
from airflow_bookmarks.store.codec.attribute import Fields

GAPS: dict[str, Any] = {
    "unit": "number", "of": "part-(?P<seq>...)", "missing": 4, "first": "1", "last": "10", "ranges": ["4..6", "8"],
    "more_ranges": 0, "lost": 0, "seen": "1..3,7,9..10",
}  # fmt: skip
OPTIONS: dict[str, Any] = {
    "late_after_ms": 3_600_000, "sequence": "part-(?P<seq>...)", "partition_filter": "day > '2013-01-01'",
    "partition_time": "{day}", "reread": "partition", "named": ["day"], "named_types": {"day": "date"}, "shard": 7,
    "shard_by": "path", "format": "csv", "roots": ["/lake/raw"], "globs": ["/lake/2013*"],
}  # fmt: skip
WINDOW: dict[str, Any] = {
    "job": "clean", "output": "", "after": 3, "until": 5, "epoch": 1, "changes": 2, "runs": [4, 5], "replaced": 0,
}  # fmt: skip
# As a run stores it, with a name that no version of this package knows. No plan has all of it.
STORED: dict[str, Any] = {
    "files": 2,
    "bytes": 10,
    "listed": 9,
    "known": 4,
    "skipped": {"over_bound": 3},
    "read_again": 0,
    "partition_types": {"day": "date"},
    "gaps": GAPS,
    "quarantined": 1,
    "newest_partition": "2013-01-31T00:00:00",
    "waiting_from_ms": 1_359_590_400_000,
    "looked_at": "2013-01-31T00:00:00.000000Z",
    "waiting_bytes": 30,
    "waiting_oldest_ms": 1_359_590_400_000,
    "options": OPTIONS,
    "upstream": WINDOW,
    "starts_from": "4.7",
    "starts_over": True,
    "on_published": "archive",
    "moved_from": {"from": "/old", "to": "/lake", "same": 1, "changed": 0, "new": 0, "unverified": 0},
    "of_another_version": [1],
}


def test_metadata_of_any_plan_is_typed() -> None:
    metadata = PlanMetadata.of_stats(STORED)

    assert (metadata.starts_from, metadata.starts_over, metadata.is_relocated) == ("4.7", True, True)
    assert (metadata.on_published, metadata.quarantined, metadata.skipped) == ("archive", 1, {"over_bound": 3})
    assert (metadata.amount, metadata.files) == (Amount("files", 2, 10), 2)
    assert (metadata.waiting_bytes, metadata.waiting_oldest_ms) == (30, 1_359_590_400_000)
    assert metadata.looked_at == "2013-01-31T00:00:00.000000Z"
    assert metadata.upstream == WindowMetadata("clean", "", 3, 5, 1, 2, (4, 5))


def test_metadata_of_a_plan_of_files_is_typed() -> None:
    metadata = FilePlanMetadata.of_stats(STORED)

    assert (metadata.partition_types, metadata.newest_partition) == ({"day": "date"}, "2013-01-31T00:00:00")
    assert metadata.waiting_from_ms == 1_359_590_400_000
    assert (metadata.sequence, metadata.format, metadata.moves) == ("part-(?P<seq>...)", "csv", ())
    assert metadata.gaps is not None
    assert (metadata.gaps.unit, metadata.gaps.of, metadata.gaps.missing) == ("number", "part-(?P<seq>...)", 4)
    assert SeenRanges.of_stats(metadata.gaps.recorded).stats() == GAPS


def test_how_the_files_of_a_plan_were_chosen_is_typed() -> None:
    assert FilePlanMetadata.of_stats(STORED).read == RecordedRead(
        OPTIONS,
        roots=["/lake/raw"],
        globs=["/lake/2013*"],
        named={"day": "date"},
        shard=VirtualShard(7, "path"),
        format="csv",
        sequence="part-(?P<seq>...)",
        partition_filter="day > '2013-01-01'",
        partition_time="{day}",
    )


def test_what_a_run_has_measured_is_typed() -> None:
    counted = {"rows": 20, "watermark_before": "2013-01-30T00:00:00Z", "is_read_whole": False}

    assert MeasuredRead.of_stats(STORED | counted) == MeasuredRead(
        PlanMetadata.of_stats(STORED | counted), 20, is_read_whole=False, watermark_before="2013-01-30T00:00:00Z"
    )


def test_plan_that_says_nothing_starts_from_nothing_and_its_input_stays() -> None:
    assert PlanMetadata.of_stats({}) == PlanMetadata()
    assert FilePlanMetadata.of_stats({}) == FilePlanMetadata()
    assert FilePlanMetadata().read is None
    assert MeasuredRead.of_stats({}).is_read_whole


def test_files_of_a_plan_in_another_unit_are_not_known() -> None:
    metadata = PlanMetadata.of_stats({"unit": "keys", "count": 3})

    assert (metadata.amount, metadata.files) == (Amount("keys", 3), None)


def test_moves_are_added_to_those_before() -> None:
    once = with_moves(STORED, [("/lake", "/sea")])

    assert FilePlanMetadata.of_stats(with_moves(once, [("/sea", "/pond")])).moves == (
        ("/lake", "/sea"),
        ("/sea", "/pond"),
    )


def test_partition_of_a_position_that_was_set_is_not_old() -> None:
    assert PlanInput(stats=STORED).file_metadata.newest_partition == "2013-01-31T00:00:00"
    assert PlanInput(stats=STORED, is_set=True).file_metadata.newest_partition is None


@pytest.mark.parametrize(
    ("name", "value"),
    [("files", -1), ("starts_from", 4), ("starts_over", "yes"), ("skipped", []), ("upstream", {"job": "clean"})],
)
def test_another_type_of_a_known_name_is_damage(name: str, value: object) -> None:
    with pytest.raises(StateCorruptError):
        PlanMetadata.of_stats(STORED | {name: value})


@pytest.mark.parametrize(("name", "value"), [("gaps", {}), ("options", []), ("newest_partition", 1)])
def test_another_type_of_a_name_of_files_is_damage(name: str, value: object) -> None:
    with pytest.raises(StateCorruptError):
        FilePlanMetadata.of_stats(STORED | {name: value})


def test_moves_that_are_none_are_damage_to_who_asks_for_them_alone() -> None:
    metadata = FilePlanMetadata.of_stats(STORED | {"moves": [1]})

    with pytest.raises(StateCorruptError):
        _ = metadata.moves


@pytest.mark.parametrize(
    ("name", "value"), [("roots", "/lake"), ("shard", "7"), ("format", 1), ("named_types", ["day"])]
)
def test_another_type_of_an_option_is_damage(name: str, value: object) -> None:
    metadata = FilePlanMetadata.of_stats(STORED | {"options": OPTIONS | {name: value}})

    with pytest.raises(StateCorruptError, match=f"'{name}'"):
        _ = metadata.read


def test_stats_of_a_plan_are_stored_as_they_were_in_their_order() -> None:
    entry = PlanEntry("files", Payload("a" * 64, 1, inline=b"x"), STORED, "files:/lake/raw")
    stored: Any = item.plan_attribute("raw", entry)["plan:raw"]
    read = item._plan_of(Fields.of("RUN 1.1", "", stored))

    assert read == entry
    assert list(stored["facts"].items()) == list(read.stats.items()) == list(STORED.items())
    assert stored == {
        "kind": "files",
        "body": {"sha256": "a" * 64, "bytes": 1, "inline": b"x"},
        "facts": STORED,
        "fingerprint": "files:/lake/raw",
    }
