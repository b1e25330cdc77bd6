"""The items that hold records of the health of jobs, on every backend."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from airflow_bookmarks.core.head import Head
from airflow_bookmarks.core.health.record import (
    HEALTH_SHARDS,
    HealthRecord,
    IndexFacts,
    health_shard,
    record_of,
)
from airflow_bookmarks.core.health.verdict import HealthState, HealthVerdict
from airflow_bookmarks.store.backends.limits import check_item
from airflow_bookmarks.store.bookmark_store import BookmarkStore
from airflow_bookmarks.store.codec.health import health_attributes, health_key
from airflow_bookmarks.store.table import MAX_ITEM_BYTES, Table, Update
from airflow_bookmarks.store.transitions.health import HealthShard, health_shards, put_health_shard

NOON = datetime(2026, 11, 27, 12, tzinfo=UTC)
EVERYTHING = IndexFacts("flights", "clean", 41, "2026-11-27T02:04:11.000000Z", ("lake", "läke"), 7)
RECORDS = {
    "flights.clean": HealthRecord(NOON, "RUNNING", HealthState.TAKEN_BACK, 42, 3, EVERYTHING, NOON),
    "列車": HealthRecord(NOON, "IDLE", HealthState.OK, 1, 1),
    "damaged": record_of(None, IndexFacts("flights"), None, NOON),
    "new": record_of(Head(), IndexFacts(), HealthVerdict(HealthState.NEW, "it is new"), NOON),
}


@pytest.fixture
def store(table: Table) -> BookmarkStore:
    """Open an initialised store on this backend."""
    store = BookmarkStore(table, "test")
    store.init()
    return store


def test_records_are_read_as_they_were_written_in_one_request(store: BookmarkStore) -> None:
    assert health_shards(store) == [HealthShard()] * HEALTH_SHARDS

    written = put_health_shard(store, 5, HealthShard(), RECORDS)

    found = health_shards(store)
    assert found[5] == written == HealthShard(1, RECORDS)
    assert found[:5] + found[6:] == [HealthShard()] * (HEALTH_SHARDS - 1)


def test_of_two_writers_the_second_is_told_and_writes_nothing(store: BookmarkStore) -> None:
    first = put_health_shard(store, 5, HealthShard(), RECORDS)
    assert first is not None
    assert put_health_shard(store, 5, HealthShard(), {}) is None
    assert put_health_shard(store, 5, first, {}) == HealthShard(2)
    assert put_health_shard(store, 5, first, RECORDS) is None
    assert health_shards(store)[5] == HealthShard(2)


@pytest.mark.parametrize(
    "damage",
    [{"jobs": "{"}, {"jobs": '["a"]'}, {"jobs": '{"a": ["noon", "IDLE"]}'}, {"jobs": '{"a": []}'}, {"revision": "one"},
     {"jobs": '{"a": ["2026-11-27T02:04:11.000000Z", "GONE"]}'}, {"columns": ["jobs"]},
     {"jobs": '{"a": ["2026-11-27T02:04:11.000000Z", "IDLE", "OK", 1, 1, "", 1, "", "", 1, [], 7]}'},
     {"jobs": '{"a": ["2026-11-27T02:04:11.000000Z", "IDLE", "WELL"]}'},
     {"jobs": '{"a": ["2026-11-27T02:04:11.000000Z", "IDLE", "OK", "one"]}'},
     {"jobs": '{"a/b": ["2026-11-27T02:04:11.000000Z", "IDLE"]}'}],
    ids=["no-json", "no-object", "no-time", "no-value", "revision", "standing", "columns", "request", "health",
         "version", "name"],
)  # fmt: skip
def test_damaged_item_hides_no_other_and_is_written_over(store: BookmarkStore, damage: dict[str, object]) -> None:
    put_health_shard(store, 5, HealthShard(), RECORDS)
    put_health_shard(store, 6, HealthShard(), RECORDS)
    store.table.transact([Update(health_key("test", 5), set=damage)])  # type: ignore[arg-type]

    found = health_shards(store)

    assert found[5].damage is not None
    assert found[5].records == {}
    assert found[6].records == RECORDS
    put_health_shard(store, 5, found[5], RECORDS)
    assert health_shards(store)[5].records == RECORDS


def test_namespaces_have_records_of_their_own(store: BookmarkStore) -> None:
    put_health_shard(store, 5, HealthShard(), RECORDS)
    assert health_shards(BookmarkStore(store.table, "other")) == [HealthShard()] * HEALTH_SHARDS


def test_hundred_thousand_jobs_fit_into_the_items() -> None:
    names = [f"department-{n % 97:02}.pipeline-{n:06}.clean" for n in range(100_000)]
    shards: dict[int, list[str]] = {}
    for name in names:
        shards.setdefault(health_shard(name), []).append(name)
    facts = IndexFacts("department.pipeline", "clean", 41, "2026-11-27T02:04:11.000000Z")
    one = HealthRecord(NOON, "IDLE", HealthState.OK, 42, 1, facts)

    largest = max(shards.values(), key=len)
    item = health_attributes(dict.fromkeys(largest, one), 1, NOON)

    assert len(shards) == HEALTH_SHARDS
    key = health_key("production", 63)
    assert check_item(key, item) < MAX_ITEM_BYTES
