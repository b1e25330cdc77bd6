"""Plan and read a Delta table: `job.read(ctx).delta(...)`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql.functions import col

from airflow_bookmarks.files.filesystem import store_of
from airflow_bookmarks.files.opener import open_filesystem, open_state_files
from airflow_bookmarks.sinks.delta.target import DeltaTarget
from airflow_bookmarks.sources.delta.checkpoint import arrow
from airflow_bookmarks.sources.delta.partitions import DeltaPartitionsSource
from airflow_bookmarks.sources.delta.position import DeltaRecipe
from airflow_bookmarks.sources.delta.source import DeltaSource
from airflow_bookmarks.sources.files.options import FileOptions
from airflow_bookmarks.sources.files.scan_filter import ScanRoot
from airflow_bookmarks.spark.contexts.columns import ContextFrames, settled
from airflow_bookmarks.spark.delta.reader import (
    CHANGE_TYPE,
    DELETE,
    UPDATE_PREIMAGE,
    DeltaReader,
    by_spark,
    check_delta,
    location_of,
    temporary_folder,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

    from airflow_bookmarks.files.filesystem import FileSystem
    from airflow_bookmarks.sources.delta.position import DeltaPlan
    from airflow_bookmarks.sources.tables.versioned import VersionOptions
    from airflow_bookmarks.spark.contexts.scope import ReadScope


def read_delta(scope: ReadScope, table: str, options: VersionOptions) -> DataFrame:
    """Plan what is new in a Delta table, store the plan, and return a frame over it.

    Raises:
        OptionError: an option that means nothing here, no Delta in the session, or no place for what it has to keep.
        SourceError: it can't be planned.
    """
    options = scope.bounded_versions(table, options, "a Delta table", "its folder, or its name in Spark's catalog")
    check_delta(scope.spark, scope.label)
    target = DeltaTarget.parse(table)
    where = target.name
    path = where if target.is_path else location_of(scope.spark, where, scope.label)
    files = open_filesystem(path)
    folder = files.canonical(path)
    check_place(scope, folder, options)
    scope.inputs.note_source([ScanRoot(folder)], FileOptions())
    common = (
        DeltaRecipe(folder, where, options),
        scope.label,
        arrow() or by_spark(scope.spark),
        scope.options.on_source_change,
        scope.job.name,
        scope.ctx,
        scope.share.delta,
    )
    source = (
        DeltaSource(*common)
        if options.per is None
        else DeltaPartitionsSource(*common, loop=scope.share.loop, execution=scope.run.execution_id)
    )
    reader = DeltaReader(scope.spark, folder, files, options.changes, lambda: new_folder(scope))
    plan = scope.run.plan(scope.ctx, source, on_source_change=scope.options.on_source_change)
    return settled(scope, plan, _DeltaFrames(scope, reader))


def check_place(scope: ReadScope, folder: str, options: VersionOptions) -> None:
    """Make sure that there is a place for excerpts of the log, which Spark has to reach.

    The change feed needs none, unless a bound splits the first read. A table on a local disk is read by processes that
    share the disk, so a temporary folder does.
    """
    needs_none = options.changes and not options.bound.is_given
    if needs_none or scope.job.store.blobs.state_uri is not None or store_of(folder) == "file":
        return
    raise scope.refused(
        "a Delta table that is not on a local disk, and the store has no state_uri: files that were appended are read "
        "by a small log of their own, which has to lie where Spark reaches it. Name one: see 'Store address and large "
        "state'; or read the change feed (changes=True), which needs none"
    )


def new_folder(scope: ReadScope) -> tuple[str, FileSystem]:
    """Return a new folder for an excerpt. Nothing names it: a collection removes it once no run can be reading it."""
    store = scope.job.store
    if store.blobs.state_uri is None:
        folder = temporary_folder()
        return folder, open_state_files(folder, None)
    uri = store.new_artifact(scope.job.name)
    return uri, open_state_files(uri, scope.job.access)


class _DeltaFrames(ContextFrames["DeltaPlan"]):
    """The frames of a context that reads a Delta table."""

    def __init__(self, scope: ReadScope, reader: DeltaReader) -> None:
        self._scope, self._reader = scope, reader

    def frame(self, plan: DeltaPlan, recorded: str | None, schema: StructType | None) -> DataFrame:
        """Return the rows of a plan; see `ContextFrames.frame`."""
        return self._reader.frame(plan)

    def handed(self, frame: DataFrame) -> DataFrame:
        """Return a frame over changes with its deletes in the attribute `deletes`; see `ContextFrames.handed`."""
        if self._reader.changes:
            frame.deletes = frame.where(col(CHANGE_TYPE).isin(DELETE, UPDATE_PREIMAGE))  # type: ignore[attr-defined]  # see `deletes.py`
        return frame
