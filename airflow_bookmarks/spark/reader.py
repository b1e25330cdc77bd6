"""`job.read(ctx)`: an interface like Spark's DataFrameReader, which reads only what is new."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from pyspark.errors import ParseException
from pyspark.sql.types import StructType

from airflow_bookmarks.core.errors import OptionError, SchemaUnknownError, SourceError, SourceMissingError
from airflow_bookmarks.core.metadata.output import OutputMetadata
from airflow_bookmarks.core.option import check_choice
from airflow_bookmarks.core.plan import FilePlan
from airflow_bookmarks.core.rules.schema import with_unseen
from airflow_bookmarks.core.rules.until import until_of
from airflow_bookmarks.core.selection.listing import Listing
from airflow_bookmarks.core.selection.partition import placed, roots_above
from airflow_bookmarks.core.selection.reason import OTHER_SHARDS, OVER_BOUND
from airflow_bookmarks.core.text.cause import cause_of
from airflow_bookmarks.files.access import by_own_access
from airflow_bookmarks.files.filesystem import FileSystem, paths_and_patterns
from airflow_bookmarks.files.opener import open_one_filesystem
from airflow_bookmarks.lifecycle.changes.naming import key_of
from airflow_bookmarks.lifecycle.history.shards import is_sharded, upstream_of_shard
from airflow_bookmarks.lifecycle.protocol.source_cleanup import Disposal, danger_of
from airflow_bookmarks.sources.contract import check_source
from airflow_bookmarks.sources.files.planner import FileSource, left_out
from airflow_bookmarks.sources.registry import find_kind, why_unknown
from airflow_bookmarks.sources.shard import ShardedUpstream
from airflow_bookmarks.sources.upstream.layout import GivenLayout
from airflow_bookmarks.sources.upstream.source import UpstreamSource
from airflow_bookmarks.sources.upstream.stored_plan import format_by_name
from airflow_bookmarks.spark.features import check_format, check_observations, lists_once
from airflow_bookmarks.spark.readers.avro import as_read, as_written
from airflow_bookmarks.spark.readers.by_format import ByFormat, set_option
from airflow_bookmarks.spark.readers.change import ColumnRule
from airflow_bookmarks.spark.readers.corrupt import find_corrupt
from airflow_bookmarks.spark.readers.files import Way, read_plan
from airflow_bookmarks.spark.readers.format import FORMATS, Format, case_rule, corrupt_column
from airflow_bookmarks.spark.sinks.round_trip import READING_OPTIONS
from airflow_bookmarks.spark.spark_names import WITHOUT_EFFECT
from airflow_bookmarks.spark.use import RunningJob, UsageRequest
from airflow_bookmarks.spark.watermark import WatermarkColumn

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from pyspark.sql import DataFrame

    from airflow_bookmarks.core.plan import Plan
    from airflow_bookmarks.core.rules.schema import SchemaDifference
    from airflow_bookmarks.core.run import OutputEntry
    from airflow_bookmarks.files.access import FileAccess
    from airflow_bookmarks.sources.source import Source
    from airflow_bookmarks.spark.read_options import ReadOptions, ReadShare
    from airflow_bookmarks.spark.readers.frame_reader import FrameReader
    from airflow_bookmarks.store.bookmark_store import BookmarkStore

# What Spark would silently leave out, or look for elsewhere, is not in the plan: refuse it instead of half obeying it.
_REFUSED = {
    "basepath": "it is set to the folder that you load",
    "path": "give the path to .load(path)",
    "paths": "give the paths to .load([...])",
    "modifiedbefore": "the bookmark decides what is new",
    "modifiedafter": "the bookmark decides what is new",
    "ignoremissingfiles": "use job.read(ctx, on_missing='skip'), which counts them",
    "ignorecorruptfiles": "it would drop files without a word",
    "ignoreextension": "it would drop files without a word; use pathGlobFilter or exclusions, which count them",
}


class ReadingJob(RunningJob, Protocol):
    """What a reader needs besides of the job that it reads for."""

    store: BookmarkStore


class BookmarkedReader(ByFormat):
    """Reads what one context has not read yet. Made by `BookmarkedJob.read`."""

    def __init__(
        self,
        job: ReadingJob,
        ctx: str,
        options: ReadOptions,
        share: ReadShare,
    ) -> None:
        self._job, self._ctx = job, ctx
        self._wanted, self._files = options, options.files
        self._share = share
        self._format: str | None = None
        self._schema: StructType | None = None
        self._unseen: Sequence[str] = ()
        self._options: dict[str, str] = {}
        self._label = f"job {job.name!r}, context {ctx!r}"
        self._check_way(options.read_by)
        check_observations(job.spark, self._label, [*options.observed, *job.uses.observed])

    @property
    def access(self) -> FileAccess:
        """How the files are reached: as the job does."""
        return self._job.access

    def _check_way(self, way: Way | None) -> None:
        if way is not None:
            check_choice("read_by", way, Way)
        if way == "directory" and not lists_once(self._job.spark):
            raise self._refused(
                "read_by='directory' on Spark Connect, which lists a folder anew at each action and would read what "
                "came later. Leave read_by out"
            )

    def format(self, source: str) -> BookmarkedReader:
        """Set the format: avro, csv, json, orc, parquet, text or xml.

        Raises:
            OptionError: another format.
        """
        if source.lower() not in FORMATS:
            raise OptionError(
                f"{self._label}: format {source!r} has no bookmark here; known are {', '.join(FORMATS)}. Nothing was "
                "read or changed. For a source that needs no bookmark use spark.read."
            )
        self._format = source.lower()
        return self

    def schema(self, schema: StructType | str) -> BookmarkedReader:
        """Set the schema, as a StructType or in DDL (`"a INT, b STRING"`).

        Raises:
            OptionError: it is no list of columns.
        """
        self._schema = schema if isinstance(schema, StructType) else self._parsed(schema)
        return self

    def _parsed(self, ddl: str) -> StructType:
        try:
            return self._job.spark.createDataFrame([], ddl).schema
        except ParseException as error:
            raise self._refused(f"the schema {ddl!r} is no list of columns; write it as 'a INT, b STRING'") from error

    def option(self, key: str, value: Any) -> BookmarkedReader:
        """Set an option of the format.

        Raises:
            OptionError: an option that would change which files are read, or that has no effect on files.
        """
        name = key.lower()
        if name in WITHOUT_EFFECT and value is not None:
            raise self._refused(f"option {key!r}: {WITHOUT_EFFECT[name]}")
        if name in _REFUSED and value is not None:
            raise self._refused(f"option {key!r} can't be used under a bookmark; {_REFUSED[name]}")
        if name == "recursivefilelookup" and value is not None:
            self._files = replace(self._files, recursive=str(value).lower() == "true")
        elif name == "pathglobfilter" and value is not None:
            self._files = replace(self._files, name_pattern=str(value))
        else:
            set_option(self._options, key, value)
        return self

    @by_own_access
    def load(
        self,
        path: str | Sequence[str],
        format: str | None = None,
        schema: StructType | str | None = None,
        **options: Any,
    ) -> DataFrame:
        """Plan what is new at `path` (one or several folders or files), store the plan, and return a frame over it.

        A path may be a pattern, as in Spark: `/lake/raw/2013-*/*.csv` (`*`, `?`, `[a-c]`, `[^a]`, `{a,b}`, and a
        backslash before what is none). One that is there by that very name is none.

        Raises:
            OptionError: no format, or one that this Spark has not; a path that is empty or relative.
            SourceMissingError: nothing is there. SourceChangedError: a planned file went before it was read.
            SchemaUnknownError: nothing is new, and no schema was given or is known from an earlier run.
            SchemaChangedError: columns went or have another type than before, and on_schema_change is "fail".
        """
        if format is not None:
            self.format(format)
        if schema is not None:
            self.schema(schema)
        self.options(**options)
        if self._format is None:
            raise self._refused("no format; use .format(...) or .csv/.json/.parquet(...)")
        check_format(self._job.spark, self._format, self._label)
        files, roots, globs = self._roots([path] if isinstance(path, str) else path)
        named = {field.name: field.dataType.simpleString() for field in self._schema or ()}
        source = FileSource(
            files,
            roots,
            self._files,
            named=named,
            clock=self._share.clock,
            shard=self._share.shard,
            looks=self._share.looks,
            globs=globs,
            backlog=self._share.backlog,
            format=self._format,
        )
        run = self._job.active_run
        fmt = Format(self._label, self._format, self._options, self._schema, self._files.recursive)
        if self._wanted.on_corrupt == "quarantine":
            self._check_can_judge(fmt)
        self._job.inputs.check_manifests(run.manifests, self._ctx, source.places, self._files)
        self._job.inputs.note_source(source.places, self._files)
        if not self._wanted.disposal.is_kept:
            run.dispose(self._ctx, self._checked_disposal(source.folders))
        plan = run.plan(
            self._ctx,
            source,
            on_missing=self._wanted.on_missing,
            on_source_change=self._wanted.on_source_change,
            moved_from=self._wanted.moved_from,
        )
        judged = partial(self._parsable, files, fmt, source)
        return self._settled(plan, partial(self._frame_of_files, files, self._format), judged)

    def _settled(
        self,
        plan: FilePlan,
        read: Callable[[FilePlan, str | None, StructType | None], DataFrame],
        judged: Callable[[FilePlan], FilePlan] = lambda plan: plan,
    ) -> DataFrame:
        """Return the frame over a plan if its columns may be what they are; else fail, or read all from the beginning.

        `read` takes a plan, the schema (JSON) of the run before, and a schema to read it with; `judged` leaves out of a
        plan what can't be parsed.
        """
        run, starts_over = self._job.active_run, False
        try:
            rule = self._column_rule(plan)
            plan = judged(plan)
            before = run.schema_before(self._ctx)
            frame = read(plan, before, None)
            change = rule.judge(before if run.compares_columns else None, frame.schema.json())
            starts_over = not change.is_compatible and rule.on_change == "reset"
            if starts_over:
                plan = run.start_over(self._ctx)
                self._check_starts_over_whole(plan)
                plan = judged(plan)
                frame = read(plan, None, frame.schema)
            return self._finish(plan, frame, change, self._watermark_of(frame))
        except BaseException as error:
            # What was planned would count as read, where the script goes on.
            if starts_over or not plan.is_empty:
                run.set_failed(self._ctx, cause_of(error).rstrip("."))
            raise

    def _check_starts_over_whole(self, plan: FilePlan) -> None:
        """Make sure that a plan from the beginning goes to the end.

        Raises:
            SourceError: it does not: the next run would find other columns again, and start over without end.
        """
        if plan.skipped.get(OVER_BOUND):
            raise SourceError(
                f"{self._label}: the columns have changed, on_schema_change='reset' reads all from the beginning, and "
                "that can't be done in one run: the upstream has changed the format, its options or the partitions of "
                "its output on the way (the log says with which run). Nothing was committed. Read on with "
                "on_schema_change='accept'; or let the upstream make its output anew, and reset this job."
            )

    def _watermark_of(self, frame: DataFrame) -> WatermarkColumn | None:
        name = self._wanted.watermark_column
        return None if name is None else WatermarkColumn.of(frame, name, self._label)

    def _column_rule(self, plan: Plan) -> ColumnRule:
        fold = case_rule(self._job.spark)
        given = {fold(name) for name in (self._schema.fieldNames() if self._schema is not None else ())}
        partitions: Iterable[str] = plan.partition_types if isinstance(plan, FilePlan) else ()
        own = [name for name in partitions if fold(name) in given]
        corrupt = corrupt_column(self._job.spark, Format(self._label, self._format or "", self._options, self._schema))
        return ColumnRule(self._label, self._files.on_schema_change, fold, own, [corrupt])

    def _frame_of_files(
        self, files: FileSystem, name: str, plan: FilePlan, recorded: str | None, schema: StructType | None
    ) -> DataFrame:
        if self._schema is not None:
            schema = self._schema
        elif schema is not None:  # the types of partition columns are those of this plan
            schema = StructType([field for field in schema.fields if field.name not in plan.partition_types])
        skips_missing = self._wanted.on_missing == "skip"
        fmt = Format(
            self._label, name, self._options, schema, self._files.recursive, skips_missing, self._wanted.infer_schema
        )
        known = partial(self._known_schema, plan, files, fmt)
        return read_plan(self._job.spark, files, plan, fmt, known, self._wanted.read_by, recorded, self._note)

    def _note(self, unseen: Sequence[str]) -> None:
        """Keep which columns have no type yet, because no value of theirs was seen."""
        self._unseen = unseen

    def _check_can_judge(self, fmt: Format) -> None:
        """Make sure that each file can be checked for whether it can be parsed.

        Raises:
            OptionError: Spark would take the columns from whichever file comes first, or drop what does not fit.
        """
        if fmt.name == "csv" and fmt.schema is None:
            raise self._refused(
                "on_corrupt='quarantine' of csv needs .schema(...): without it the first file would say what the "
                "others have to look like"
            )
        modes = [value for key, value in fmt.options.items() if key.lower() == "mode"]
        if "DROPMALFORMED" in (mode.upper() for mode in modes):
            raise self._refused(
                "on_corrupt='quarantine' leaves out files that have malformed records, and the option "
                "mode='DROPMALFORMED' drops these records; choose one of them"
            )

    def _parsable(self, files: FileSystem, fmt: Format, source: FileSource, plan: FilePlan) -> FilePlan:
        """Return the plan without files that can't be parsed, if they are to be left out."""
        self._job.inputs.note_links(source.links, self._files)  # which are known once it is planned
        run = self._job.active_run
        if self._wanted.on_corrupt == "error" or plan.is_empty or not run.may_quarantine:
            return plan
        corrupt = find_corrupt(self._job.spark, files, plan, fmt)
        return run.quarantine(self._ctx, corrupt) if corrupt else plan

    def _checked_disposal(self, roots: Sequence[str]) -> Disposal:
        """Return what becomes of read files, with its folder in the one spelling that paths have.

        Raises:
            OptionError: the archive lies on another file system, in or above what is read; the job is sharded.
        """
        if self._share.shard is not None:
            raise self._refused(
                f"on_published={self._wanted.disposal.on_published!r} in a sharded job, whose shards look at the same "
                "folders, and may need a file of another shard to know their columns. Let a task after all shards do it"
            )
        if self._wanted.disposal.archive_to is None:
            return self._wanted.disposal
        archive = open_one_filesystem([*roots, self._wanted.disposal.archive_to]).canonical(
            self._wanted.disposal.archive_to
        )
        for root in roots:
            danger = danger_of(archive, root)
            if danger is not None:
                raise self._refused(f"archive_to={archive!r} {danger}")
        self._job.inputs.note_archive(archive)
        return Disposal(self._wanted.disposal.on_published, archive)

    def _known_schema(self, plan: FilePlan, files: FileSystem, fmt: Format) -> str | None:
        """Return the schema of the run before. A shard that has never had a file takes that of the others' newest."""
        known = self._job.active_run.known_schema(self._ctx)
        if known is not None or self._schema is not None:
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
        frame: DataFrame = read_plan(self._job.spark, files, sample, fmt, lambda: None, "paths")
        return frame.schema.json()

    def _roots(self, paths: Sequence[str]) -> tuple[FileSystem, list[str], list[str]]:
        if not isinstance(paths, (list, tuple)) or not all(isinstance(path, str) for path in paths):
            raise self._refused(f"path {paths!r} is neither text nor a list of it")
        if not paths:
            raise self._refused("no path")
        files = open_one_filesystem(paths)
        return files, *paths_and_patterns(files, paths)

    @by_own_access
    def upstream(
        self, job: str, *, output: str | None = None, until: int | str | Mapping[str, Any] | None = None
    ) -> DataFrame:
        """Return what `job` has published and this job has not consumed.

        Args:
            output: which output of that job; needed where it has several.
            until: read up to and including this run and no further: a run number, or what an operator or sensor of
                that job returned. Default: what the operator says (`bookmark_upstream_until`), else no bound.

        Raises:
            UpstreamReplayedError: a run that was read has another output since, and on_upstream_rewind is "fail".
            UpstreamRewoundError: it was reset or rewound, and on_upstream_rewind is "fail".
            SourceMissingError: there is no such job.
            OptionError: it has several outputs and none is named, or `late_after` or `settle` is given; or it is
                sharded and this job is not.

        In a sharded job: of a sharded upstream each virtual shard reads the one of its own number; of another one, the
        published files that belong to it by their path.
        """
        given = self._given_beside_columns()
        if given:
            named = ", ".join(given)
            raise self._refused(f"{named}: an option of files; what an upstream publishes is whole and in order")
        self._job.inputs.check_upstream(job)
        source, part = self._of_upstream(job, output, until)
        plan = self._plan_upstream(job, part)
        if self._share.backlog is not None and self._share.backlog.last_run is None:
            self._share.backlog.last_run = source.last_published
        return self._settled(plan, partial(self._frame_of_upstream, job, source))

    def _frame_of_upstream(
        self, job: str, source: UpstreamSource, plan: FilePlan, recorded: str | None, _schema: StructType | None
    ) -> DataFrame:
        given = GivenLayout(self._format, self._schema is not None, self._options, READING_OPTIONS)
        entry = source.entry_of(plan, given)
        self._job.inputs.note_upstream([*plan.roots, *([entry.target] if entry else [])])
        written = self._written_schema(entry)
        known = None if written is not None else self._job.active_run.known_schema(self._ctx)
        made = entry.metadata if entry else OutputMetadata()
        partitions = made.partition_by
        schema = written if self._schema is None else _with_missing(self._schema, written, partitions)
        if plan.is_empty and schema is None and known is None:
            raise SchemaUnknownError(
                f"{self._label}: upstream {job!r} has published no output yet, so the columns are not known. Nothing "
                "was read or changed. Wait for it with a BookmarkSensor, or give .schema(...)."
            )
        options = dict(made.options)
        for key, value in self._options.items():
            set_option(options, key, value)
        name = self._format or (source.format_of(entry) if entry else format_by_name(plan))
        check_format(self._job.spark, name, self._label)
        # The types are in the schema; names alone only say that the paths carry partitions.
        plan_of_names = plan.with_partition_types(dict.fromkeys(partitions, "string"))
        fmt = Format(self._label, name, options, as_read(schema) if name == "avro" and schema is not None else schema)
        frame = read_plan(
            self._job.spark,
            open_one_filesystem(plan.roots or ["/"]),
            plan_of_names,
            fmt,
            lambda: known,
            "paths",
            recorded,
        )
        return as_written(frame, schema) if name == "avro" and schema is not None else frame

    def source(self, source: Any, reader: FrameReader[Any]) -> DataFrame:
        """Return what is new in a source of a kind of your own, which `sources.registry.register` has made known.

        Args:
            source: the planner (`sources.source.Source`).
            reader: makes a frame of a plan of it.

        Raises:
            OptionError: the kind is not known; an option that means nothing for it; or the job is sharded.
            SourceError: it can't be planned.
            SchemaChangedError: columns went or have another type than before, and on_schema_change is "fail".

        Example:
            register(KeyKind())
            with BookmarkedJob(spark) as job:
                people = job.read("people").source(KeySource("/data/crm.db"), KeyReader())
        """
        self._check_own(source)
        plan = self._job.active_run.plan(self._ctx, source, on_source_change=self._wanted.on_source_change)
        return self._settled(plan, partial(self._frame_of_own, reader))

    def _frame_of_own(
        self, reader: FrameReader[Any], plan: Plan, recorded: str | None, schema: StructType | None
    ) -> DataFrame:
        schema = self._schema or schema
        if schema is None and recorded is not None and plan.is_empty:
            schema = StructType.fromJson(json.loads(recorded))
        return reader.frame(self._job.spark, plan, schema)

    def _check_own(self, source: Any) -> None:
        if find_kind(source.kind) is None:
            raise self._refused(
                f"kind {source.kind!r} is not known in this process. Call register(...) of "
                "airflow_bookmarks.sources.registry with the kind before the job begins, or let an installed package "
                + f"name it by an entry point.{why_unknown(source.kind)}".rstrip(".")
            )
        check_source(source)
        if self._share.shard is not None:
            raise self._refused(
                f"a source of kind {source.kind!r} in a sharded job, each of whose shards would read all of it"
            )
        wanted, bound = self._wanted, [name.removesuffix("_ms") for name in self._files.bound.facts()]
        others = {
            "format": self._format is not None,
            "option": bool(self._options),
            "on_missing": wanted.on_missing != "error",
            "on_upstream_rewind": wanted.on_upstream_rewind != "fail",
            "moved_from": wanted.moved_from is not None,
            "infer_schema": wanted.infer_schema != "sample",
            "read_by": wanted.read_by is not None,
        }
        given = [*self._given_beside_columns(), *bound, *(name for name, is_given in others.items() if is_given)]
        if given:
            raise self._refused(f"{', '.join(given)}: no option of kind {source.kind!r}, whose source has its own")

    def _given_beside_columns(self) -> list[str]:
        """Return the names of the given options of files, but for bounds and what is about columns."""
        given = [name for name in self._files.given() if name not in ("bound", "on_schema_change", "empties")]
        return given + self._given_of_files()

    def _given_of_files(self) -> list[str]:
        """Return the names of the given options that mean something for files alone."""
        given = {
            "on_corrupt": self._wanted.on_corrupt != "error",
            "watermark_column": self._wanted.watermark_column
            is not None,  # the watermark of an upstream is its run number
            "on_published": not self._wanted.disposal.is_kept,
        }
        return [name for name, is_given in given.items() if is_given]

    def _of_upstream(
        self, job: str, output: str | None, until: int | str | Mapping[str, Any] | None
    ) -> tuple[UpstreamSource, Source[FilePlan]]:
        """Return what `job` publishes, and the part of it that this run reads."""
        store, shard, key = self._job.store, self._share.shard, key_of(self._job.store, job)
        own = None if shard is None else upstream_of_shard(store, key, shard.number)
        bound = self._job.inputs.until(key, None if until is None else until_of(until, key))
        if own is not None and bound is not None:
            raise self._refused(f"until= of the sharded upstream {job!r}, whose shards have run numbers of their own")
        last = (
            None if self._share.backlog is None else self._share.backlog.last_run
        )  # what came since is for the next execution
        if last is not None:
            bound = last if bound is None else min(last, bound)
        source = UpstreamSource(
            store,
            self._job.name,
            own or key,
            output=output,
            on_rewind=self._wanted.on_upstream_rewind,
            until=bound,
            bound=self._files.bound,
            # A reset reads everything with the newest columns; a user-given schema fixes the columns.
            alike="columns" if self._schema is None and self._files.on_schema_change != "reset" else "layout",
            fold=case_rule(self._job.spark),
        )
        if shard is None or own is not None:
            return source, source
        if shard.by != "path":
            raise self._refused(f"shard_by={shard.by!r} of upstream {job!r}: what it published is shared out by path")
        return source, ShardedUpstream(source, shard)

    def _plan_upstream(self, job: str, source: Source[FilePlan]) -> FilePlan:
        try:
            return self._job.active_run.plan(
                self._ctx,
                source,
                on_source_change=self._wanted.on_source_change,
                moved_from=self._wanted.moved_from,
            )
        except SourceMissingError as error:
            if self._share.shard is None and is_sharded(self._job.store, job):
                raise self._refused(
                    f"upstream {job!r} is sharded, and this job is not. Shard this job as well, or read each of "
                    f"core.shard.shard_names({job!r}) under a context of its own"
                ) from error
            raise

    def _written_schema(self, entry: OutputEntry | None) -> StructType | None:
        if entry is None or entry.schema is None:
            return None
        return StructType.fromJson(json.loads(self._job.store.blobs.get(entry.schema)))

    def _has_no(self, method: str) -> OptionError:
        return self._refused(
            f"{method}(...) has no bookmark here, which files and the output of other jobs (.upstream(job)) have. Read "
            f"it whole with spark.read.{method}(...), or once for a loop with job.reference(name)"
        )

    def _refused(self, what: str) -> OptionError:
        return OptionError(f"{self._label}: {what}. Nothing was read or changed.")

    def _finish(
        self, plan: FilePlan, frame: DataFrame, change: SchemaDifference, column: WatermarkColumn | None
    ) -> DataFrame:
        run = self._job.active_run
        schema = frame.schema.json()
        if self._unseen:
            fold = case_rule(self._job.spark)
            schema = json.dumps(with_unseen(json.loads(schema), self._unseen, fold))
        run.set_schema(self._ctx, schema, change.facts())
        if plan.is_empty:
            run.set_rows(self._ctx, 0)
            return self._job.uses.frame_of_empty(self._ctx, frame)
        wanted = UsageRequest(self._wanted.count_rows, column, not self._wanted.disposal.is_kept)
        return self._job.uses.frame_of(self._ctx, frame, wanted)


def _with_missing(given: StructType, written: StructType | None, partitions: Sequence[str]) -> StructType:
    """Return the user's schema with the partition columns that it does not name, typed as they were written."""
    wanted = {name.lower() for name in partitions} - {name.lower() for name in given.fieldNames()}
    missing = [field for field in written or () if field.name.lower() in wanted]
    return StructType([*given.fields, *missing])
