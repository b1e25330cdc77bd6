"""Plan and read files: `job.read(ctx).load(path)` and the methods of the formats."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from pyspark.sql.types import StructType

from airflow_bookmarks.core.files.file_plan import FilePlan
from airflow_bookmarks.core.selection.listing import Listing
from airflow_bookmarks.core.selection.partition import placed, roots_above
from airflow_bookmarks.core.selection.reason import OTHER_SHARDS
from airflow_bookmarks.files.filesystem import FileSystem, paths_and_patterns
from airflow_bookmarks.files.opener import open_one_filesystem
from airflow_bookmarks.lifecycle.protocol.source_cleanup import Disposal, danger_of
from airflow_bookmarks.sources.file_partitions import PartitionedFileSource
from airflow_bookmarks.sources.files.planner import FileSource
from airflow_bookmarks.sources.files.recorded_plan import left_out
from airflow_bookmarks.spark.contexts.columns import ContextFrames, settled
from airflow_bookmarks.spark.features import check_format
from airflow_bookmarks.spark.readers.corrupt import find_corrupt
from airflow_bookmarks.spark.readers.files import read_plan
from airflow_bookmarks.spark.readers.format import Format

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pyspark.sql import DataFrame

    from airflow_bookmarks.spark.contexts.options import FileReadOptions
    from airflow_bookmarks.spark.contexts.scope import ReadScope


def read_files(scope: ReadScope, paths: str | Sequence[str], wanted: FileReadOptions) -> DataFrame:
    """Plan what is new at some paths, store the plan, and return a frame over it.

    Raises:
        OptionError: no format, or one that this Spark has not; a path that is empty or relative; options that
            contradict each other.
        SourceMissingError: nothing is there.
    """
    if scope.format is None:
        raise scope.refused("no format; use .format(...) or .csv/.json/.parquet(...)")
    scope.check_loop("per_partition=True" if wanted.per_partition else None, "files without per_partition=True")
    check_format(scope.spark, scope.format, scope.label)
    wanted.check_source_change(scope.options.on_source_change)
    selection = replace(wanted.selection, bound=scope.share.bounded(wanted.selection.bound))
    scope.options.check_ends(selection.bound)
    files, roots, globs = _roots(scope, [paths] if isinstance(paths, str) else paths)
    source = _source_class(scope)(
        files,
        roots,
        selection,
        named={field.name: field.dataType.simpleString() for field in scope.schema or ()},
        clock=scope.share.clock,
        shard=scope.share.shard(scope.ctx, wanted.shard_by),
        scans=scope.share.scans,
        globs=globs,
        backlog=scope.share.backlog,
        format=scope.format,
        listed=wanted.listed_partitions,
    )
    frames = _FileFrames(scope, replace(wanted, selection=selection), files, source, scope.format)
    frames.check()
    plan = scope.run.plan(
        scope.ctx,
        source,
        on_missing=wanted.on_missing,
        on_source_change=scope.options.on_source_change,
        moved_from=wanted.moved_from,
    )
    return settled(scope, plan, frames)


def _source_class(scope: ReadScope) -> Callable[..., FileSource]:
    loop = scope.share.loop
    return FileSource if loop is None else partial(PartitionedFileSource, loop=loop)


def _roots(scope: ReadScope, paths: Sequence[str]) -> tuple[FileSystem, list[str], list[str]]:
    if not isinstance(paths, (list, tuple)) or not all(isinstance(path, str) for path in paths):
        raise scope.refused(f"path {paths!r} is neither text nor a list of it")
    if not paths:
        raise scope.refused("no path")
    files = open_one_filesystem(paths)
    return files, *paths_and_patterns(files, paths)


class _FileFrames(ContextFrames[FilePlan]):
    """The frames of a context of files, which `source` has planned."""

    def __init__(
        self, scope: ReadScope, wanted: FileReadOptions, files: FileSystem, source: FileSource, format: str
    ) -> None:
        self._scope, self._wanted, self._files, self._source, self._format = scope, wanted, files, source, format
        self.disposes = not wanted.disposal.is_kept

    # ---- before the plan

    def check(self) -> None:
        """Check options against what the run reads and writes elsewhere, and record where this context reads.

        Raises:
            OptionError: they contradict each other, or the job would read its own output, manifests or archive.
        """
        scope, selection = self._scope, self._wanted.selection
        if self._wanted.on_corrupt == "quarantine":
            self._check_can_judge()
        scope.inputs.check_manifests(scope.run.manifests, scope.ctx, self._source.places, selection)
        scope.inputs.note_source(self._source.places, selection)
        if self.disposes:
            scope.run.dispose(scope.ctx, self._checked_disposal())

    def _check_can_judge(self) -> None:
        """Make sure that each file can be checked for whether it can be parsed.

        Raises:
            OptionError: Spark would take the columns from whichever file comes first, or drop what does not fit.
        """
        if self._format == "csv" and self._scope.schema is None:
            raise self._scope.refused(
                "on_corrupt='quarantine' of csv needs .schema(...): without it the first file would say what the "
                "others have to look like"
            )
        modes = [value for key, value in self._scope.settings.items() if key.lower() == "mode"]
        if "DROPMALFORMED" in (mode.upper() for mode in modes):
            raise self._scope.refused(
                "on_corrupt='quarantine' leaves out files that have malformed records, and the option "
                "mode='DROPMALFORMED' drops these records; choose one of them"
            )

    def _checked_disposal(self) -> Disposal:
        """Return what becomes of read files, with its folder in the one spelling that paths have.

        Raises:
            OptionError: the archive lies on another file system, in or above what is read; the job is sharded.
        """
        disposal, roots = self._wanted.disposal, self._source.folders
        if self._scope.share.is_shard:
            raise self._scope.refused(
                f"on_published={disposal.on_published!r} in a sharded job, whose shards look at the same folders, and "
                "may need a file of another shard to know their columns. Let a task after all shards do it"
            )
        if disposal.archive_to is None:
            return disposal
        archive = open_one_filesystem([*roots, disposal.archive_to]).canonical(disposal.archive_to)
        for root in roots:
            danger = danger_of(archive, root)
            if danger is not None:
                raise self._scope.refused(f"archive_to={archive!r} {danger}")
        self._scope.inputs.note_archive(archive)
        return Disposal(disposal.on_published, archive)

    # ---- from the plan to a frame

    def judged(self, plan: FilePlan) -> FilePlan:
        """Return the plan without files that can't be parsed, if they are to be left out."""
        scope, run = self._scope, self._scope.run
        scope.inputs.note_links(self._source.links, self._wanted.selection)  # which are known once it is planned
        if self._wanted.on_corrupt == "error" or plan.is_empty or not run.may_quarantine:
            return plan
        corrupt = find_corrupt(scope.spark, self._files, plan, self._as_given(scope.schema))
        return run.quarantine(scope.ctx, corrupt) if corrupt else plan

    def frame(self, plan: FilePlan, recorded: str | None, schema: StructType | None) -> DataFrame:
        """Return a frame over a plan of files; see `ContextFrames.frame`."""
        given = self._scope.schema
        if given is not None:
            schema = given
        elif schema is not None:  # the types of partition columns are those of this plan
            schema = StructType([field for field in schema.fields if field.name not in plan.partition_types])
        skips_missing = self._wanted.on_missing == "skip"
        fmt = replace(self._as_given(schema), skips_missing=skips_missing, infer=self._wanted.infer_schema)
        known = partial(self._known_schema, plan, fmt)
        return read_plan(self._scope.spark, self._files, plan, fmt, known, self._wanted.read_by, recorded, self._note)

    def _as_given(self, schema: StructType | None) -> Format:
        recursive = self._wanted.selection.recursive
        return Format(self._scope.label, self._format, self._scope.settings, schema, recursive)

    def _note(self, unseen: Sequence[str]) -> None:
        self.unseen = unseen

    def _known_schema(self, plan: FilePlan, fmt: Format) -> str | None:
        """Return the schema of the run before. A shard that has never had a file takes that of the others' newest."""
        known = self._scope.run.known_schema(self._scope.ctx)
        if known is not None or self._scope.schema is not None:
            return known
        # Of a pattern, what other shards read below folders of their own: which Spark would take as roots is not known.
        place_of = placed(plan.read_below)
        others = [
            file
            for file in left_out(plan).get(OTHER_SHARDS, ())
            if file.size_bytes and roots_above(file.path, place_of)
        ]
        if not others:
            return None
        newest = max(others, key=lambda file: file.modified_ms)
        sample = replace(plan, files=Listing.of([newest]), unread={})
        frame: DataFrame = read_plan(self._scope.spark, self._files, sample, fmt, lambda: None, "paths")
        return frame.schema.json()
