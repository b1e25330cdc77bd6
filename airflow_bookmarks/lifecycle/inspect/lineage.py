"""Lineage of one run: what it read, of which window, and what it wrote; for data catalogs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from airflow_bookmarks.sources.registry import find_kind

if TYPE_CHECKING:
    from airflow_bookmarks.core.run import PlanEntry, Run
    from airflow_bookmarks.store.bookmark_store import BookmarkStore


@dataclass(frozen=True, slots=True)
class ReadDataset:
    """What a run read from one context: from where (URIs or paths), how much, and the window.

    `watermark_from` is the one before the run. For an upstream it covers the runs after `after` up to and including
    `until`.
    """

    ctx: str
    locations: tuple[str, ...]
    files: int | None
    bytes: int | None
    rows: int | None
    watermark_from: str | None
    watermark_to: str | None
    upstream: str | None = None
    after: int | None = None
    until: int | None = None


@dataclass(frozen=True, slots=True)
class Written:
    """What a run wrote to one output: where to (URI or path), and how much (None: not known)."""

    output: str
    location: str
    files: int | None
    bytes: int | None
    rows: int | None


@dataclass(frozen=True, slots=True)
class Lineage:
    """What run `run_number` of a job read and wrote."""

    job: str
    run_number: int
    reads: tuple[ReadDataset, ...]
    writes: tuple[Written, ...]


def lineage(store: BookmarkStore, job: str, number: int) -> Lineage | None:
    """Return what a run read and wrote; None where no run of that number has committed.

    Raises:
        StoreError: the state can't be read, or is damaged.
    """
    run = store.committed_run(job, number)
    if run is None:
        return None
    reads = tuple(_read(store, run, ctx, entry) for ctx, entry in sorted(run.plans.items()))
    writes = tuple(
        Written(name, o.metadata.table_folder or o.target, o.metadata.files, o.metadata.bytes, o.metadata.rows)
        for name, o in sorted(run.outputs.items())
    )
    return Lineage(job, number, reads, writes)


def _read(store: BookmarkStore, run: Run, ctx: str, entry: PlanEntry) -> ReadDataset:
    plan, read, state = entry.metadata, run.measured(ctx), run.contexts.get(ctx)
    window = plan.upstream
    return ReadDataset(
        ctx=ctx,
        locations=_locations(store, entry),
        files=plan.files,
        bytes=plan.amount.bytes,
        rows=None if read is None else read.rows,
        watermark_from=None if read is None else read.watermark_before,
        watermark_to=None if state is None else state.watermark,
        upstream=None if window is None else window.job,
        after=None if window is None else window.after,
        until=None if window is None else window.until,
    )


def _locations(store: BookmarkStore, entry: PlanEntry) -> tuple[str, ...]:
    kind = find_kind(entry.kind)
    return () if kind is None else tuple(kind.locations(kind.decode(store.blobs.get(entry.body)), entry.source))
