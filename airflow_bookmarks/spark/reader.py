"""`job.read(ctx)`: Spark's DataFrameReader, by the same names, for what is new."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from pyspark.sql.types import StructType

from airflow_bookmarks.core.errors import OptionError, SchemaUnknownError
from airflow_bookmarks.files.filesystem import FileSystem, open_filesystem
from airflow_bookmarks.sources.files import FileSource, OnOverwrite
from airflow_bookmarks.sources.upstream import OnRewind, UpstreamSource
from airflow_bookmarks.spark.readers.files import Format, Way, read_plan

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame

    from airflow_bookmarks.core.plan import FilePlan
    from airflow_bookmarks.lifecycle.recheck import OnMissing
    from airflow_bookmarks.spark.job import BookmarkedJob

FORMATS = ("csv", "json", "orc", "parquet", "text")

# What Spark would silently leave out, or look for elsewhere, is not in the plan: refuse it instead of half obeying it.
_REFUSED = {
    "basepath": "it is set to the folder that you load",
    "pathglobfilter": "load the folders that hold what you want",
    "modifiedbefore": "the bookmark decides what is new",
    "modifiedafter": "the bookmark decides what is new",
    "ignoremissingfiles": "use job.read(ctx, on_missing='skip'), which counts them",
    "ignorecorruptfiles": "it would drop files without a word",
}


class BookmarkedReader:
    """Reads what one context has not read yet. Made by `BookmarkedJob.read`."""

    def __init__(
        self,
        job: BookmarkedJob,
        ctx: str,
        *,
        on_overwrite: OnOverwrite,
        on_missing: OnMissing,
        on_upstream_rewind: OnRewind,
        count_rows: bool,
        read_by: Way | None,
    ) -> None:
        self._job, self._ctx = job, ctx
        self._on_overwrite: OnOverwrite = on_overwrite
        self._on_missing: OnMissing = on_missing
        self._on_rewind: OnRewind = on_upstream_rewind
        self._count_rows, self._read_by = count_rows, read_by
        self._format: str | None = None
        self._schema: StructType | None = None
        self._options: dict[str, str] = {}
        self._recursive = False

    def format(self, source: str) -> BookmarkedReader:
        """Set the format: csv, json, orc, parquet or text.

        Raises:
            OptionError: another format.
        """
        if source.lower() not in FORMATS:
            raise OptionError(
                f"job {self._job.name!r}, context {self._ctx!r}: format {source!r} has no bookmark here; known are "
                f"{', '.join(FORMATS)}. Nothing was read or changed. For a source that needs no bookmark use "
                "spark.read."
            )
        self._format = source.lower()
        return self

    def schema(self, schema: StructType | str) -> BookmarkedReader:
        """Set the schema, as a StructType or in DDL (`"a INT, b STRING"`)."""
        self._schema = schema if isinstance(schema, StructType) else _parsed(schema)
        return self

    def option(self, key: str, value: Any) -> BookmarkedReader:
        """Set an option of the format.

        Raises:
            OptionError: an option that would change which files are read.
        """
        name = key.lower()
        if name in _REFUSED:
            raise OptionError(
                f"job {self._job.name!r}, context {self._ctx!r}: option {key!r} can't be used under a bookmark; "
                f"{_REFUSED[name]}. Nothing was read or changed."
            )
        text = str(value).lower() if isinstance(value, bool) else str(value)
        if name == "recursivefilelookup":
            self._recursive = text == "true"
        else:
            self._options[key] = text
        return self

    def options(self, **options: Any) -> BookmarkedReader:
        """Set several options of the format."""
        for key, value in options.items():
            self.option(key, value)
        return self

    def load(self, path: str | Sequence[str], format: str | None = None) -> DataFrame:
        """Plan what is new at `path` (one or several folders or files), store the plan, and return a frame over it.

        Raises:
            OptionError: no format, or a path that is empty, relative or a pattern. SourceMissingError: nothing is
            there.
        """
        if format is not None:
            self.format(format)
        if self._format is None:
            raise OptionError(
                f"job {self._job.name!r}, context {self._ctx!r}: no format; use .format(...) or "
                ".csv/.json/.parquet(...). Nothing was read or changed."
            )
        paths = [path] if isinstance(path, str) else list(path)
        if not paths:
            raise OptionError(f"job {self._job.name!r}, context {self._ctx!r}: no path. Nothing was read or changed.")
        files = open_filesystem(paths[0])
        roots = [files.canonical(p) for p in paths if open_filesystem(p) is not None]
        source = FileSource(files, roots, recursive=self._recursive, on_overwrite=self._on_overwrite)
        plan = self._job.active_run.plan(self._ctx, source, on_missing=self._on_missing)
        options = dict(self._options)
        if self._on_missing == "skip":
            options["ignoreMissingFiles"] = "true"  # the look before the commit counts them
        fmt = Format(self._format, options, self._schema, self._recursive)
        known = self._job.active_run.known_schema(self._ctx) if plan.is_empty and self._schema is None else None
        return self._finish(plan, read_plan(self._job.spark, files, plan, fmt, known, self._read_by))

    def upstream(self, job: str, *, output: str | None = None) -> DataFrame:
        """Return what `job` has published and this job has not consumed.

        Args:
            output: which output of that job; needed where it has several.

        Raises:
            UpstreamRewoundError: it was reset or rewound, and on_upstream_rewind is "fail".
            SourceMissingError: there is no such job.
        """
        self._job.check_upstream(job)
        source = UpstreamSource(self._job.store, self._job.name, job, output=output, on_rewind=self._on_rewind)
        plan = self._job.active_run.plan(self._ctx, source)
        entry = source.entry_of(plan)
        schema = self._schema
        if schema is None and entry is not None and entry.schema is not None:
            schema = StructType.fromJson(json.loads(self._job.store.blobs.get(entry.schema)))
        options = {**(entry.facts.get("options", {}) if entry else {}), **self._options}
        name = self._format or (entry.facts["format"] if entry else "parquet")
        known = self._job.active_run.known_schema(self._ctx) if schema is None else None
        if plan.is_empty and schema is None and known is None:
            raise SchemaUnknownError(
                f"job {self._job.name!r}, context {self._ctx!r}: upstream {job!r} has published nothing yet, so the "
                "columns are not known. Nothing was read or changed. Wait for it with a BookmarkSensor, or give "
                ".schema(...)."
            )
        types = _partition_placeholders(entry.facts.get("partition_by", []) if entry else [])
        fmt = Format(name, options, schema)
        frame = read_plan(self._job.spark, _files_of(plan.roots), plan.with_partition_types(types), fmt, known, "paths")
        return self._finish(plan, frame)

    def csv(self, path: str | Sequence[str], schema: StructType | str | None = None, **options: Any) -> DataFrame:
        """Read CSV files; see `load`."""
        return self._shortcut("csv", path, schema, options)

    def json(self, path: str | Sequence[str], schema: StructType | str | None = None, **options: Any) -> DataFrame:
        """Read JSON files; see `load`."""
        return self._shortcut("json", path, schema, options)

    def text(self, path: str | Sequence[str], **options: Any) -> DataFrame:
        """Read text files by line; see `load`."""
        return self._shortcut("text", path, None, options)

    def parquet(self, *paths: str, **options: Any) -> DataFrame:
        """Read Parquet files; see `load`."""
        return self._shortcut("parquet", paths, None, options)

    def orc(self, path: str | Sequence[str], **options: Any) -> DataFrame:
        """Read ORC files; see `load`."""
        return self._shortcut("orc", path, None, options)

    def _shortcut(
        self, name: str, path: str | Sequence[str], schema: StructType | str | None, options: dict[str, Any]
    ) -> DataFrame:
        if schema is not None:
            self.schema(schema)
        return self.options(**{k: v for k, v in options.items() if v is not None}).load(path, name)

    def _finish(self, plan: FilePlan, frame: DataFrame) -> DataFrame:
        run = self._job.active_run
        run.set_schema(self._ctx, frame.schema.json())
        if plan.is_empty:
            run.set_rows(self._ctx, 0)
            return frame
        return self._job.counted(self._ctx, frame) if self._count_rows else frame


def _files_of(roots: Sequence[str]) -> FileSystem:
    return open_filesystem(roots[0] if roots else "/")


def _parsed(ddl: str) -> StructType:
    schema = StructType.fromDDL(ddl)
    if not isinstance(schema, StructType):
        raise OptionError(f"{ddl!r} is no list of columns. Nothing was read or changed. Write it as 'a INT, b STRING'.")
    return schema


def _partition_placeholders(columns: Sequence[str]) -> dict[str, str]:
    # The types are in the written schema; the names only say that the paths carry partitions.
    return dict.fromkeys(columns, "string")
