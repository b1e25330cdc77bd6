"""Plan and read what another job has published: `job.read(ctx).upstream(job)`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pyspark.sql.types import StructType

from airflow_bookmarks.core.errors import SchemaUnknownError, SourceMissingError
from airflow_bookmarks.core.files.file_plan import FilePlan
from airflow_bookmarks.core.job import check_name
from airflow_bookmarks.core.metadata.output import OutputMetadata
from airflow_bookmarks.core.rules.until import until_of
from airflow_bookmarks.files.opener import open_filesystem, open_one_filesystem
from airflow_bookmarks.lifecycle.changes.naming import key_of
from airflow_bookmarks.lifecycle.history.shards import is_sharded, upstream_of_shard
from airflow_bookmarks.sources.delta.checkpoint import arrow
from airflow_bookmarks.sources.shard import ShardedUpstream
from airflow_bookmarks.sources.tables.versioned import VersionOptions
from airflow_bookmarks.sources.upstream.layout import GivenLayout
from airflow_bookmarks.sources.upstream.source import UpstreamSource
from airflow_bookmarks.sources.upstream.stored_plan import format_by_name
from airflow_bookmarks.sources.upstream.table_outputs import table_format
from airflow_bookmarks.spark.contexts.columns import ContextFrames, settled
from airflow_bookmarks.spark.delta.context import check_place, new_folder
from airflow_bookmarks.spark.delta.reader import DeltaReader, by_spark, check_delta
from airflow_bookmarks.spark.features import check_format
from airflow_bookmarks.spark.iceberg.upstream import opened_by, read_written
from airflow_bookmarks.spark.readers.avro import as_read, as_written
from airflow_bookmarks.spark.readers.by_format import set_option
from airflow_bookmarks.spark.readers.files import read_plan
from airflow_bookmarks.spark.readers.format import Format, case_rule
from airflow_bookmarks.spark.sinks.round_trip import READING_OPTIONS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame

    from airflow_bookmarks.core.run import OutputEntry
    from airflow_bookmarks.core.selection.bound import Bound
    from airflow_bookmarks.sources.source import Source
    from airflow_bookmarks.spark.contexts.options import UpstreamReadOptions
    from airflow_bookmarks.spark.contexts.scope import ReadScope


def read_upstream(scope: ReadScope, job: str, wanted: UpstreamReadOptions) -> DataFrame:
    """Plan which published runs of `job` this run reads, store the plan, and return a frame over it.

    Raises:
        SourceMissingError: there is no such job.
        OptionError: it has several outputs and none is named, or what is asked can't be had of an upstream.
        UpstreamRewoundError, UpstreamReplayedError: see `BookmarkedReader.upstream`.
    """
    if scope.options.watermark_column is not None:
        raise scope.refused("watermark_column of an upstream, whose watermark is the number of its last run")
    scope.check_loop(None, "an upstream")
    bound = scope.share.bounded(wanted.bound)
    scope.options.check_ends(bound)
    key = key_of(scope.job.store, check_name("job", job))
    scope.inputs.check_upstream(job, key)
    source, part = _sources(scope, job, key, wanted, bound)
    plan = _planned(scope, job, part)
    backlog = scope.share.backlog
    if backlog is not None and backlog.last_run is None:
        backlog.last_run = source.last_published
    return settled(scope, plan, _UpstreamFrames(scope, job, source))


def _sources(
    scope: ReadScope, job: str, key: str, wanted: UpstreamReadOptions, bound: Bound
) -> tuple[UpstreamSource, Source[FilePlan]]:
    """Return what `job`, by its `key`, publishes, and the part of it that this run reads."""
    store, shard = scope.job.store, scope.share.shard(scope.ctx, "path")
    own = None if shard is None else upstream_of_shard(store, key, shard.number)
    until = scope.inputs.until(key, _until(scope, key, wanted.until))
    if own is not None and until is not None:
        raise scope.refused(f"until= of the sharded upstream {job!r}, whose shards have run numbers of their own")
    # What came since a loop began is for the next execution.
    last = None if scope.share.backlog is None else scope.share.backlog.last_run
    if last is not None:
        until = last if until is None else min(last, until)
    source = UpstreamSource(
        store,
        scope.job.name,
        own or key,
        output=wanted.output,
        on_rewind=wanted.on_rewind,
        until=until,
        bound=bound,
        # A reset reads everything with the newest columns; a user-given schema fixes the columns.
        alike="columns" if scope.schema is None and scope.options.on_schema_change != "reset" else "layout",
        fold=case_rule(scope.spark),
        open_iceberg=opened_by(scope.spark, scope.label),
    )
    return source, source if shard is None or own is not None else ShardedUpstream(source, shard)


def _until(scope: ReadScope, key: str, given: int | str | Mapping[str, Any] | None) -> int | None:
    """Return the run that the script says; what it gives as a dict may have any name of the job."""
    if isinstance(given, Mapping) and isinstance(given.get("job"), str):
        given = {**given, "job": key_of(scope.job.store, given["job"])}
    return None if given is None else until_of(given, key)


def _planned(scope: ReadScope, job: str, source: Source[FilePlan]) -> FilePlan:
    try:
        return scope.run.plan(scope.ctx, source, on_source_change=scope.options.on_source_change)
    except SourceMissingError as error:
        if not scope.share.is_shard and is_sharded(scope.job.store, job):
            raise scope.refused(
                f"upstream {job!r} is sharded, and this job is not. Shard this job as well, or read each of "
                f"core.shard.shard_names({job!r}) under a context of its own"
            ) from error
        raise


class _UpstreamFrames(ContextFrames[FilePlan]):
    """The frames of a context that reads `job`, which `source` has planned."""

    def __init__(self, scope: ReadScope, job: str, source: UpstreamSource) -> None:
        self._scope, self._job, self._source = scope, job, source

    def frame(self, plan: FilePlan, recorded: str | None, schema: StructType | None) -> DataFrame:
        """Return a frame over published files, with columns and options as they were written.

        Raises:
            SchemaUnknownError: nothing was published yet, and no columns are given.
        """
        scope = self._scope
        entry = self._source.entry_of(
            plan, GivenLayout(scope.format, scope.schema is not None, scope.settings, READING_OPTIONS)
        )
        scope.inputs.note_upstream([*plan.roots, *([self._source.folder_of(entry)] if entry else [])])
        table = None if entry is None else table_format(entry)
        if entry is not None and table is not None:
            scope.check_read_as_it_is(f"the table {entry.target!r} to which upstream {self._job!r} wrote")
            return {"delta": self._of_delta, "iceberg": self._of_iceberg}[table](plan, entry)
        written = self._written_schema(entry)
        known = None if written is not None else scope.run.known_schema(scope.ctx)
        made = entry.metadata if entry else OutputMetadata()
        partitions = made.partition_by
        schema = written if scope.schema is None else _with_missing(scope.schema, written, partitions)
        if plan.is_empty and schema is None and known is None:
            raise SchemaUnknownError(
                f"{scope.label}: upstream {self._job!r} has published no output yet, so the columns are not known. "
                "Nothing was read or changed. Wait for it with a BookmarkSensor, or give .schema(...)."
            )
        fmt = self._format(plan, entry, schema, made)
        # The types are in the schema; names alone only say that the paths carry partitions.
        plan_of_names = plan.with_partition_types(dict.fromkeys(partitions, "string"))
        files = open_one_filesystem(plan.roots or ["/"])
        frame = read_plan(scope.spark, files, plan_of_names, fmt, lambda: known, "paths", recorded)
        return as_written(frame, schema) if fmt.name == "avro" and schema is not None else frame

    def _of_delta(self, plan: FilePlan, entry: OutputEntry) -> DataFrame:
        """Return the rows that runs of the upstream wrote to a Delta table, read by Delta itself.

        Raises:
            OptionError: this Spark has no Delta.
        """
        scope, folder = self._scope, self._source.folder_of(entry)
        check_delta(scope.spark, scope.label)
        check_place(scope, folder, VersionOptions())
        reader = DeltaReader(scope.spark, folder, open_filesystem(folder), False, lambda: new_folder(scope))
        if plan.is_empty:
            return reader.read(())
        tables, runs = self._source.written_to_table(plan)
        read = arrow() or by_spark(scope.spark)
        return reader.read((tables.delta.added(runs, set(plan.files.paths), read),))

    def _of_iceberg(self, plan: FilePlan, entry: OutputEntry) -> DataFrame:
        """Return the rows that runs of the upstream wrote to an Iceberg table, read by Iceberg itself."""
        if plan.is_empty:
            return read_written(self._scope.spark, entry, ())
        tables, runs = self._source.written_to_table(plan)
        return read_written(self._scope.spark, entry, tables.iceberg.rows(runs, set(plan.files.paths)))

    def _format(
        self, plan: FilePlan, entry: OutputEntry | None, schema: StructType | None, made: OutputMetadata
    ) -> Format:
        """Return how to read the files: as they were written, but for what the script says."""
        options = dict(made.options)
        for key, value in self._scope.settings.items():
            set_option(options, key, value)
        name = self._scope.format or (self._source.format_of(entry) if entry else format_by_name(plan))
        check_format(self._scope.spark, name, self._scope.label)
        columns = as_read(schema) if name == "avro" and schema is not None else schema
        return Format(self._scope.label, name, options, columns)

    def _written_schema(self, entry: OutputEntry | None) -> StructType | None:
        if entry is None or entry.schema is None:
            return None
        return StructType.fromJson(json.loads(self._scope.job.store.blobs.get(entry.schema)))


def _with_missing(given: StructType, written: StructType | None, partitions: Sequence[str]) -> StructType:
    """Return the user's schema with the partition columns that it does not name, typed as they were written."""
    wanted = {name.lower() for name in partitions} - {name.lower() for name in given.fieldNames()}
    missing = [field for field in written or () if field.name.lower() in wanted]
    return StructType([*given.fields, *missing])
