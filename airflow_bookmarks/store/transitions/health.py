"""Read and write the records of the health of jobs: display-only, decided on by nothing, read by no run.

Whoever reads the heads of all jobs to show them may write what it found. A role without the right to do so still reads
heads.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from airflow_bookmarks.core.errors import ConditionFailedError, StateCorruptError
from airflow_bookmarks.core.health.record import HEALTH_SHARDS
from airflow_bookmarks.store.codec.health import health_attributes, health_key, health_records_of
from airflow_bookmarks.store.table import Equals, Missing, Put

if TYPE_CHECKING:
    from collections.abc import Mapping

    from airflow_bookmarks.core.health.record import HealthRecord
    from airflow_bookmarks.store.table import Condition
    from airflow_bookmarks.store.transitions.base import Transitions


@dataclass(frozen=True, slots=True)
class HealthShard:
    """One of the items: its records by job, its revision (0: there is none), and why it can't be read (None: it can).

    One that can't be read is written over.
    """

    revision: int = 0
    records: Mapping[str, HealthRecord] = field(default_factory=dict)
    damage: StateCorruptError | None = None


def health_shards(store: Transitions) -> list[HealthShard]:
    """Return all records of a namespace: one request.

    Raises:
        StoreAccessError: the role may not read them.
    """
    keys = [health_key(store.namespace, shard) for shard in range(HEALTH_SHARDS)]
    found = store.table.get(keys)
    shards: list[HealthShard] = []
    for key in keys:
        try:
            shards.append(HealthShard(*health_records_of(found[key])) if key in found else HealthShard())
        except StateCorruptError as damage:
            shards.append(HealthShard(damage=damage))
    return shards


def put_health_shard(
    store: Transitions, shard: int, before: HealthShard, records: Mapping[str, HealthRecord]
) -> HealthShard | None:
    """Write one of the items, if it is still as it was read; return it as it is then, None if another writer was first.

    Raises:
        StoreAccessError: the role may not write it. StoreError: no table takes it, because it is too large.
    """
    after = HealthShard(before.revision + 1, dict(records))
    expected: list[Condition] = [Equals("revision", before.revision) if before.revision else Missing()]
    operation = Put(
        health_key(store.namespace, shard),
        health_attributes(after.records, after.revision, store.now()),
        conditions=[] if before.damage is not None else expected,
    )
    try:
        store.table.transact([operation])
    except ConditionFailedError:
        return None
    return after
