"""Make a frame of planned files: under a bookmark for a context, else whole; the same files and columns either way."""

from __future__ import annotations

import json
import logging
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F
from pyspark.sql.types import StringType, StructField, StructType

from airflow_bookmarks.core.errors import SchemaUnknownError, SourceMissingError
from airflow_bookmarks.core.files.file_plan import FilePlan
from airflow_bookmarks.core.selection.bound import Bound
from airflow_bookmarks.core.selection.listing import Listing
from airflow_bookmarks.files.access import reached_by
from airflow_bookmarks.files.opener import open_one_filesystem
from airflow_bookmarks.glue.dynamic.frame import DynamicFrame
from airflow_bookmarks.glue.dynamic.json_records.json_frame import frame_of_json
from airflow_bookmarks.glue.errors import GlueUnsupportedError
from airflow_bookmarks.glue.inputs.documents import VALUE, Documents
from airflow_bookmarks.glue.inputs.formats import widest_row
from airflow_bookmarks.sources.files.options import FileOptions
from airflow_bookmarks.spark.features import session_conf
from airflow_bookmarks.spark.files.whole import WholeRead
from airflow_bookmarks.spark.readers.head import HEADS_AT_ONCE, first_lines, heads_of
from airflow_bookmarks.spark.session import session_access

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pyspark.sql import DataFrame

    from airflow_bookmarks.core.files.listed_partitions import ListedPartitions
    from airflow_bookmarks.glue.inputs.formats import ReadFormat
    from airflow_bookmarks.glue.inputs.options import FileWords
    from airflow_bookmarks.glue.run import GlueRun
    from airflow_bookmarks.spark.job import BookmarkedJob

log = logging.getLogger(__name__)

_MOST_HEADS = 1000  # each is a request, in every run
_KEPT_SCHEMA_BYTES = 50_000  # a longer one is not kept for empty increments


@dataclass(frozen=True, slots=True, kw_only=True)
class FileRead:
    """One read of files.

    Args:
        call: the call of the script, for messages and as the name of what reads without a job.
        ctx: the transformation_ctx; may be empty.
        glue_ctx: the `GlueContext` of the script.
        paths: what is loaded.
        format: of the files.
        words: which of them are read.
        listed: the partitions that a catalog lists of the one folder.
        columns: of a table whose files name none: those of CSV, in their order.
        declared: the types that a catalog gives to columns of text.
        tell: is given the plan, for the log.
    """

    call: str
    ctx: str
    glue_ctx: object
    paths: Sequence[str]
    format: ReadFormat
    words: FileWords
    listed: ListedPartitions | None = None
    columns: Sequence[str] = ()
    declared: StructType | None = None
    tell: Callable[[FilePlan], None] = lambda plan: None

    def read(self, run: GlueRun) -> DynamicFrame:
        """Return the rows; under a bookmark those that are new.

        Raises:
            MisuseError: another source of this run has the same context.
            GlueUnsupportedError: JSON lies in folders of a partition `value`.
        """
        job = run.job_for(self.ctx, self.call)
        run.note_use()
        if self.words.keys:
            run.warn_once(
                f"{self.call}: files are tracked by their paths and versions, and the bookmark keys "
                f"{list(self.words.keys)} are not used"
            )
        rows, plan = self._whole(run) if job is None else self._under(run, job)
        self.tell(plan)
        self._check_partitions(plan)
        is_nothing_new = job is not None and plan.is_empty
        name = self.ctx or self.format.name
        if self.format.name == "json":
            return self._of_json(run, rows, is_nothing_new)
        return DynamicFrame.of(
            self._named(rows), self.glue_ctx, name, is_nothing_new=is_nothing_new, declared=self.declared
        )

    # ---- planned files

    def _under(self, run: GlueRun, job: BookmarkedJob) -> tuple[DataFrame, FilePlan]:
        name = run.source_name(self.ctx)
        self._tell_other_path(run, job, name)
        # Scripts name the folder of a day under one context: what was read is known by its path, and all else is new.
        reader = job.read(name, on_schema_change="accept", on_source_change="keep", count_rows=run.counts_rows).files(
            # S3 always has etags; elsewhere a new time can't be told from an overwrite, which is read again as well.
            on_touch="reprocess",
            # What was written at once stays: a commit that fails would only have it written again.
            on_missing="error" if run.is_managed else "skip",
            infer_schema="each",
            max_files=self.words.max_files,
            max_bytes=self.words.max_bytes,
            exclusions=self.words.exclusions,
            listed_partitions=self.listed,
            text_partitions=True,
            max_band=self.words.max_band,
            max_files_in_band=self.words.max_files_in_band,
            exclude_storage_classes=self.words.exclude_storage_classes,
        )
        if self.words.recursive and self.listed is None:
            reader.option("recursiveFileLookup", "true")
        schema = self._schema(run)
        if schema is not None:
            reader.schema(schema)
        try:
            frame = reader.format(self.format.spark_name).options(**self.format.settings).load(list(self.paths))
        except SourceMissingError as error:
            return self._gone(run, job, name, error)
        except SchemaUnknownError:
            plan = job.active_run.plan_of(name)
            if not isinstance(plan, FilePlan) or not plan.is_empty:
                raise
            return run.spark.range(0).select(), plan  # nothing was ever there: a frame without columns, as in Glue
        plan = job.active_run.plan_of(name)
        if not isinstance(plan, FilePlan):
            raise TypeError(f"{self.call}: the plan of files is a {type(plan).__name__}")
        return self._with_name(frame), plan

    def _tell_other_path(self, run: GlueRun, job: BookmarkedJob, name: str) -> None:
        """Warn where the position of a context is of another path."""
        state = job.active_run.context_state(name)
        if state is None or state.fingerprint == (now := self._whole_read(run).name(run.spark)):
            return
        run.warn_once(
            f"{self.call}: context {self.ctx!r} has read {state.fingerprint} before and reads {now} now: its bookmark "
            "goes on, files that it knows by their paths are not read again, and all others are"
        )

    def _gone(
        self, run: GlueRun, job: BookmarkedJob, name: str, error: SourceMissingError
    ) -> tuple[DataFrame, FilePlan]:
        """Return nothing, where a folder went that a context has read before: in S3 an empty one is not there.

        Raises:
            SourceMissingError: it was never read, or is one of several.
        """
        state = job.active_run.context_state(name)
        if state is None or len(self.paths) > 1 or state.fingerprint != self._whole_read(run).name(run.spark):
            raise error
        run.count("missing folders", 1, ctx=self.ctx)
        run.warn_once(f"{self.call}: {self.paths[0]!r} is not there any more, and counts as empty")
        known = job.active_run.known_schema(name)
        schema = StructType() if known is None else StructType.fromJson(json.loads(known))
        return run.spark.createDataFrame([], schema), FilePlan(Listing.of([]), tuple(self.paths), 0, 0)

    def _whole(self, run: GlueRun) -> tuple[DataFrame, FilePlan]:
        if self.words.max_files is not None or self.words.max_bytes is not None:
            run.warn_once(
                f"{self.call}: boundedFiles and boundedSize need a bookmark, which remembers what is left: all is read"
            )
        whole = self._whole_read(run)
        whole = replace(whole, schema=self._schema(run))
        plan = whole.plan(run.spark)
        try:
            return self._with_name(whole.frame(run.spark, plan)), plan
        except SchemaUnknownError:
            if not plan.is_empty:
                raise
            return run.spark.range(0).select(), plan

    def _whole_read(self, run: GlueRun) -> WholeRead:
        selection = FileOptions(
            recursive=self.words.recursive,
            exclusions=tuple(self.words.exclusions),
            bound=Bound(),
            text_partitions=True,
            exclude_storage_classes=tuple(self.words.exclude_storage_classes),
        )
        return WholeRead(
            label=self.call,
            paths=list(self.paths),
            format=self.format.spark_name,
            selection=selection,
            settings=self.format.settings,
            listed=self.listed,
            infer_schema="each",
        )

    # ---- columns

    def _schema(self, run: GlueRun) -> StructType | None:
        """Return the columns, where not the files tell them."""
        if self.format.schema is not None:
            return self.format.schema
        if self.columns:
            return StructType([StructField(name, StringType()) for name in self.columns])
        return self._counted(run) if self.format.skips_first else None

    def _counted(self, run: GlueRun) -> StructType | None:
        """Return as many columns as the longest row at the heads of the files has: their first line names none."""
        whole = self._whole_read(run)
        files = [file for file in whole.plan(run.spark).files if file.size_bytes]
        if not files:
            return None
        if len(files) > _MOST_HEADS:
            run.warn_once(
                f"{self.call}: the columns are counted in the newest {_MOST_HEADS:,} of {len(files):,} files, since "
                "skipFirst leaves out the line that could name them: give withSchema if rows of others have more"
            )
            files = sorted(files, key=lambda file: file.modified_ms, reverse=True)[:_MOST_HEADS]
        paths = [file.path for file in files]
        widths = self._widths(run, paths)
        if None in widths:  # compressed by what only Spark reads, which tells of the first line alone
            run.warn_once(
                f"{self.call}: of files that are neither plain nor compressed by gzip, the columns are counted in the "
                "line that skipFirst leaves out: give withSchema if rows have more"
            )
            unread = [path for path, width in zip(paths, widths, strict=True) if width is None]
            one = replace(whole, paths=unread[:1], listed=None, selection=FileOptions())
            widths.append(len(one.frame(run.spark, one.plan(run.spark)).columns))
        widest = max(width for width in widths if width is not None)
        return StructType([StructField(f"col{at}", StringType()) for at in range(widest)])

    def _widths(self, run: GlueRun, paths: Sequence[str]) -> list[int | None]:
        """Return the length of the longest row at the head of each file; None where only Spark can read it."""
        widths: list[int | None] = []
        with reached_by(session_access(run.spark, session_conf(run.spark))):
            files = open_one_filesystem(self.paths)
            for start in range(0, len(paths), HEADS_AT_ONCE):
                heads = heads_of(files, paths[start : start + HEADS_AT_ONCE], first_lines)
                widths += [
                    None if head is None else widest_row(self.format.settings, head.decode(errors="replace"))
                    for head in heads
                ]
        return widths

    def _named(self, rows: DataFrame) -> DataFrame:
        """Name the columns of CSV without a header as Glue does: col0, col1, ..."""
        if self.format.name != "csv" or self.format.has_header or self.columns or self.format.schema is not None:
            return rows
        return rows.withColumnsRenamed({f"_c{at}": f"col{at}" for at in range(len(rows.columns))})

    def _with_name(self, frame: DataFrame) -> DataFrame:
        name = self.words.attach_filename
        if name is None:
            return frame
        # Of a URI, whose plus is no blank.
        return frame.withColumn(name, F.url_decode(F.replace(F.input_file_name(), F.lit("+"), F.lit("%2B"))))

    # ---- JSON

    def _check_partitions(self, plan: FilePlan) -> None:
        """Make sure that no partition takes the place of the text that is parsed: Spark gives its value there."""
        taken = next((column for column in plan.partition_types if column.lower() == VALUE), None)
        if self.format.name == "json" and taken is not None:
            raise GlueUnsupportedError(
                self.call,
                f"JSON in partitions of a column {taken!r}",
                "Read it with spark.read.json, or name the partitions otherwise.",
            )

    def _of_json(self, run: GlueRun, text: DataFrame, is_nothing_new: bool) -> DynamicFrame:
        kept = run.state(f"glue.columns.{run.source_name(self.ctx)}") if self.ctx else None
        if is_nothing_new or VALUE not in text.columns:
            known = None if kept is None else kept.get()
            schema = StructType() if known is None else StructType.fromJson(known)
            empty = run.spark.createDataFrame([], schema)
            return DynamicFrame.of(empty, self.glue_ctx, self.ctx, is_nothing_new=is_nothing_new)
        split = Documents(self.format.json_path)
        rows = frame_of_json(text, run=run, name=self.ctx or self.call, split=split)
        if kept is not None and run.job is not None:
            found: Any = json.loads(rows.frame.schema.json())
            if len(json.dumps(found)) <= _KEPT_SCHEMA_BYTES and kept.get() != found:
                kept.set(found)
        return DynamicFrame.of(rows.frame, self.glue_ctx, self.ctx or "json", errors=rows.errors)
