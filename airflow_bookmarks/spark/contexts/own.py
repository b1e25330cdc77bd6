"""Plan and read a source of a kind of your own: `job.read(ctx).source(source, reader)`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from pyspark.sql.types import StructType

from airflow_bookmarks.sources.contract import bounded, bounds_of, check_source
from airflow_bookmarks.sources.registry import find_kind, why_unknown
from airflow_bookmarks.spark.contexts.columns import ContextFrames, settled

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from airflow_bookmarks.core.plan import Plan
    from airflow_bookmarks.sources.source import Source
    from airflow_bookmarks.spark.contexts.scope import ReadScope
    from airflow_bookmarks.spark.readers.frame_reader import FrameReader


def read_own(scope: ReadScope, source: Any, reader: FrameReader[Any]) -> DataFrame:
    """Plan what is new in a source, store the plan, and return a frame over it.

    Raises:
        OptionError: the kind is not known; an option that means nothing for it; or the job is sharded.
        SourceError: it can't be planned.
    """
    _check(scope, source)
    plan = scope.run.plan(scope.ctx, _bounded(scope, source), on_source_change=scope.options.on_source_change)
    return settled(scope, plan, _OwnFrames(scope, reader))


def _check(scope: ReadScope, source: Any) -> None:
    if find_kind(source.kind) is None:
        raise scope.refused(
            f"kind {source.kind!r} is not known in this process. Call register(...) of "
            "airflow_bookmarks.sources.registry with the kind before the job begins, or let an installed package "
            + f"name it by an entry point.{why_unknown(source.kind)}".rstrip(".")
        )
    check_source(source)
    scope.check_loop(None, f"a source of kind {source.kind!r}")
    if scope.share.is_shard:
        raise scope.refused(
            f"a source of kind {source.kind!r} in a sharded job, each of whose shards would read all of it"
        )
    others = {
        "format": scope.format is not None,
        "option": bool(scope.settings),
        "watermark_column": scope.options.watermark_column is not None,
    }
    if given := [name for name, is_given in others.items() if is_given]:
        raise scope.refused(f"{', '.join(given)}: no option of kind {source.kind!r}, whose source has its own")


def _bounded(scope: ReadScope, source: Source[Plan]) -> Source[Plan]:
    """Return the source within the bound of its loop."""
    given = scope.share.bound.given()
    scope.options.check_ends(scope.share.bound)
    if not given:
        return source
    takes = bounds_of(source)
    if not takes.issuperset(given):
        known = f"it takes {', '.join(sorted(takes))}" if takes else "it takes none"
        raise scope.refused(
            f"job.batches({', '.join(f'{name}=...' for name in given)}) with a source of kind {source.kind!r}: {known}"
        )
    return bounded(source, scope.share.bound)


class _OwnFrames(ContextFrames[Any]):
    """The frames of a context that `reader` reads."""

    def __init__(self, scope: ReadScope, reader: FrameReader[Any]) -> None:
        self._scope, self._reader = scope, reader

    def frame(self, plan: Plan, recorded: str | None, schema: StructType | None) -> DataFrame:
        """Return what the reader makes of a plan; see `ContextFrames.frame`."""
        schema = self._scope.schema or schema
        if schema is None and recorded is not None and plan.is_empty:
            schema = StructType.fromJson(json.loads(recorded))
        return self._reader.frame(self._scope.spark, plan, schema)
