"""A Delta table by region, and a loop over the regions in which some fail: without Spark."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
from deltalake import write_deltalake

from airflow_bookmarks.core.job import RunIdentity
from airflow_bookmarks.lifecycle.protocol.lease import RunEnvironment
from airflow_bookmarks.lifecycle.run.enabled import ActiveRun
from airflow_bookmarks.sources.delta.checkpoint import arrow
from airflow_bookmarks.sources.delta.partitions import DeltaPartitionsSource
from airflow_bookmarks.sources.delta.position import DeltaRecipe
from airflow_bookmarks.sources.part_loop import PartLoop
from airflow_bookmarks.sources.tables.versioned import VersionOptions
from airflow_bookmarks.store.bookmark_store import BookmarkStore

CTX = "orders"
_SCHEMA = pa.schema([("id", pa.int64()), ("region", pa.string())])


def put(path: str, *rows: tuple[int, str]) -> None:
    """Append rows, and make the table if need be."""
    ids, regions = zip(*rows, strict=True)
    data = pa.table({"id": list(ids), "region": list(regions)}, _SCHEMA)
    write_deltalake(path, data, mode="append", partition_by=["region"])


def read_by_region(
    store: BookmarkStore,
    job: str,
    path: str,
    *failing: str,
    identity: RunIdentity,
    environment: Callable[[], RunEnvironment] = RunEnvironment,
) -> None:
    """Let a job read the table region by region; those in `failing` fail."""
    parts = PartLoop(CTX)
    recipe = DeltaRecipe(path, path, VersionOptions(per="region"))
    while not parts.is_over:
        parts.begin()
        run = ActiveRun.begin(store, job, identity, environment())
        source = DeltaPartitionsSource(recipe, "here", arrow(), job=job, ctx=CTX, loop=parts, execution=identity.run_id)
        run.plan(CTX, source)
        if parts.current is not None and parts.current.value in failing:
            run.abort(f"{parts.current.value} is wrong")
        else:
            run.commit()
