"""`job.read(ctx)`: an interface like Spark's DataFrameReader, which reads only what is new."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

from pyspark.errors import ParseException
from pyspark.sql.types import StructType

from airflow_bookmarks.core.database.windows.partitions import PartitionOptions
from airflow_bookmarks.core.errors import OptionError
from airflow_bookmarks.core.option import check_choice
from airflow_bookmarks.core.selection.bound import Bound, whole_number
from airflow_bookmarks.files.access import by_own_access
from airflow_bookmarks.lifecycle.protocol.source_cleanup import Disposal
from airflow_bookmarks.sources.files.options import FileOptions
from airflow_bookmarks.sources.jdbc.options import SETTLE_FOR, TableOptions
from airflow_bookmarks.sources.tables.versioned import VersionOptions
from airflow_bookmarks.spark.contexts.files import read_files
from airflow_bookmarks.spark.contexts.options import FileReadOptions, UpstreamReadOptions
from airflow_bookmarks.spark.contexts.own import read_own
from airflow_bookmarks.spark.contexts.scope import ReadScope
from airflow_bookmarks.spark.contexts.upstream import read_upstream
from airflow_bookmarks.spark.delta.context import read_delta
from airflow_bookmarks.spark.features import check_observations, lists_once
from airflow_bookmarks.spark.iceberg.context import read_iceberg
from airflow_bookmarks.spark.jdbc.context import TableReadOptions, read_table
from airflow_bookmarks.spark.jdbc.snapshot import Compare, read_snapshot
from airflow_bookmarks.spark.readers.by_format import ByFormat, set_option
from airflow_bookmarks.spark.readers.files import Way
from airflow_bookmarks.spark.readers.format import FORMATS
from airflow_bookmarks.spark.spark_names import WITHOUT_EFFECT, takes_options_of_one_kind

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import timedelta

    from pyspark.sql import DataFrame

    from airflow_bookmarks.core.files.listed_partitions import ListedPartitions
    from airflow_bookmarks.core.rules.schema import InferSchema
    from airflow_bookmarks.core.rules.shard import ShardBy
    from airflow_bookmarks.files.access import FileAccess
    from airflow_bookmarks.lifecycle.protocol.source_cleanup import OnPublished
    from airflow_bookmarks.lifecycle.state.quarantine import OnCorrupt
    from airflow_bookmarks.lifecycle.state.verification import OnMissing
    from airflow_bookmarks.sources.files.options import OnOverwrite, OnTouch, OnUnmatched
    from airflow_bookmarks.sources.jdbc.options import KeyOrder, OnNull
    from airflow_bookmarks.sources.snapshot.source import OnEmptied
    from airflow_bookmarks.sources.tables.versioned import OnChange
    from airflow_bookmarks.sources.upstream.rewind import OnRewind
    from airflow_bookmarks.spark.contexts.options import ReadOptions, ReadShare
    from airflow_bookmarks.spark.contexts.scope import ReadingJob
    from airflow_bookmarks.spark.readers.frame_reader import FrameReader

# What Spark would silently leave out, or look for elsewhere, is not in the plan: refuse it instead of half obeying it.
_REFUSED = {
    "basepath": "it is set to the folder that you load",
    "path": "give the path to .load(path)",
    "paths": "give the paths to .load([...])",
    "modifiedbefore": "the bookmark decides what is new",
    "modifiedafter": "the bookmark decides what is new",
    "ignoremissingfiles": "use job.read(ctx).files(on_missing='skip'), which counts them",
    "ignorecorruptfiles": "it would drop files without a word",
    "ignoreextension": "it would drop files without a word; use pathGlobFilter or exclusions, which count them",
}


class BookmarkedReader(ByFormat):
    """Reads what one context has not read yet. Made by `BookmarkedJob.read`.

    Example:
        job.read("flights").schema(FLIGHTS).csv("/lake/raw/flights", header=True)
        job.read("flights").files(max_files=500, late_after=timedelta(days=2)).parquet("/lake/raw/flights")
        job.read("flights").upstream("flights.clean", on_rewind="rewind")
        job.read("orders").delta("s3a://lake/orders", on_change="ignore")
    """

    def __init__(self, job: ReadingJob, ctx: str, options: ReadOptions, share: ReadShare) -> None:
        self._job, self._ctx, self._wanted, self._share = job, ctx, options, share
        self._files = FileReadOptions(selection=FileOptions(on_schema_change=options.on_schema_change))
        self._are_files_given = False
        self._format: str | None = None
        self._schema: StructType | None = None
        self._options: dict[str, str] = {}
        check_observations(job.spark, self._scope.label, [*options.observed, *job.uses.observed])

    @property
    def access(self) -> FileAccess:
        """How the files are reached: as the job does."""
        return self._job.access

    @property
    def _scope(self) -> ReadScope:
        return ReadScope(
            self._job, self._ctx, self._wanted, self._share, self._format, self._schema, dict(self._options)
        )

    # ---- as Spark's reader

    def format(self, source: str) -> BookmarkedReader:
        """Set the format: avro, csv, json, orc, parquet, text or xml.

        Raises:
            OptionError: another format.
        """
        if source.lower() == "delta":
            raise self._refused("format 'delta': read a Delta table by .delta(<its folder or name>)")
        if source.lower() == "iceberg":
            raise self._refused("format 'iceberg': read an Iceberg table by .iceberg(<its name>)")
        if source.lower() not in FORMATS:
            raise OptionError(
                f"{self._scope.label}: format {source!r} has no bookmark here; known are {', '.join(FORMATS)}. Nothing "
                "was read or changed. For a source that needs no bookmark use spark.read."
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
            self._select(recursive=str(value).lower() == "true")
        elif name == "pathglobfilter" and value is not None:
            self._select(name_pattern=str(value))
        else:
            set_option(self._options, key, value)
        return self

    def _select(self, **chosen: Any) -> None:
        self._files = replace(self._files, selection=replace(self._files.selection, **chosen))

    # ---- files

    @takes_options_of_one_kind
    def files(
        self,
        *,
        on_overwrite: OnOverwrite = "reprocess",
        on_missing: OnMissing = "error",
        moved_from: str | None = None,
        late_after: timedelta | None = None,
        settle: timedelta | None = None,
        max_files: int | str | None = None,
        max_bytes: int | str | None = None,
        window: timedelta | None = None,
        on_touch: OnTouch | None = None,
        sequence: str | None = None,
        on_unmatched: OnUnmatched = "error",
        gaps: bool | None = None,
        on_corrupt: OnCorrupt = "error",
        on_published: OnPublished = "keep",
        archive_to: str | None = None,
        exclusions: Sequence[str] = (),
        partition_filter: str | None = None,
        partition_time: str | None = None,
        reread: str | None = None,
        shard_by: ShardBy = "path",
        per_partition: bool = False,
        infer_schema: InferSchema = "sample",
        read_by: Way | None = None,
        listed_partitions: ListedPartitions | None = None,
        text_partitions: bool = False,
        max_band: timedelta | None = None,
        max_files_in_band: int | None = None,
        exclude_storage_classes: Sequence[str] = (),
    ) -> BookmarkedReader:
        """Set how files are selected and read. Without this call, each option has its default.

        Args:
            on_overwrite: what to do with a file that changed since it was read: "reprocess" (default) reads all of it
                again, "ignore" leaves it out and counts it, "error" stops the run.
            on_missing: what to do if a planned file changes or disappears before the commit: "error" (default) stops
                the run, "skip" leaves it to the next run and counts it. With "skip", rows that were read of it earlier
                may be in this run's output, so an append may hold rows of both versions, as with every overwritten
                file.
            moved_from: the folder or prefix where the files were when they were read. Files with the same path below it
                and the same etag (the same size, if one of the stores has no etags) count as read; all others are new.
                It has no effect once a run with it has committed; a rewind to before that run reverts it.
            late_after: a file that is older than the newest file of earlier runs by more than this is not read but
                counted ("late"), and the bookmark forgets files older by more than twice this, so that it stays small.
                Newer files are backlog and never late, and nothing is late in a first run; a file dated in the future
                does not count as the newest.
            settle: a file younger than this is left to a later run and counted ("settling"), because it may still be
                being written.
            max_files, max_bytes: the most files or bytes that one run reads, in reading order; the rest is counted
                ("over_bound") and left to the next run. A first file larger than `max_bytes` is still read. Text is
                accepted, as in Glue ("500").
            window: read only the oldest window of this length, aligned to the clock in UTC, that has anything new by
                file time. If several bounds are given, all of them apply.
            on_touch: what to do with a file whose time changed and whose etag did not (copied onto itself, restored):
                "ignore" (default) leaves it alone and counts it as "touched", "reprocess" reads it again, which is the
                default where `on_published` puts files away. Without etags this can't be told from an overwrite: then
                `on_overwrite` decides, and "ignore" is an error.
            sequence: the order in which files are read, and the watermark: a regular expression with one named group,
                such as "part-(?P<seq>[0-9]+)", searched in the path below the loaded one; or "path". Digits are
                compared as a number, so 9 comes before 10. A file that arrives later is read even if its number is
                lower.
            on_unmatched: what to do with a new file that does not match the sequence: "error" (default) stops the run,
                "skip" leaves it out and counts it as "unmatched" until the expression matches it.
            gaps: report what is missing between the first and the last: the numbers of a sequence (default), or with
                True and no sequence the days of the only partition column of dates. False: report nothing.
            on_corrupt: what to do with files that can't be parsed: "error" (default) leaves them to Spark, which stops,
                or for CSV and JSON reads NULLs unless their mode is FAILFAST; "quarantine" leaves them out, counts and
                records them until the context is set to "retry:<path>", and costs one more pass over new input. What is
                quarantined stays so, whatever this option is later.
            on_published: what to do with files that were read, once the run is published: "keep" (default), "delete",
                or "archive", which moves them to the same path below `archive_to`. Only files that are unchanged, and
                whose frame an action of the script has read completely, are taken. A rewind, reset or replay can't read
                them again. The next run finishes what a dead driver left.
            archive_to: a folder on the same file system, outside of what is read.
            exclusions: patterns of paths below the loaded folder to leave out: "*.bak", "**/tmp/**" (`**` crosses
                folders). They are counted as "excluded", as are files that Spark's option `pathGlobFilter` leaves out,
                are not part of the bookmark, and are read once the patterns allow it.
            partition_filter: a predicate on partition columns in Spark SQL, such as "year = 2013 and month in (9, 10)".
                Folders in which it can't be true are not listed. It may change: all unread files of a partition that it
                admits later are then read.
            partition_time: for partitioned files, with `late_after`: the columns that hold a partition's time, the
                longest unit first ("year,month,day,hour", or a date: "dt"). Folders that lie wholly before the newest
                partition read so far, minus `late_after`, are not listed; `doctor` finds files that land there.
            reread: if one file of a group is new or changed, read all existing files of the group, so that a dynamic
                overwrite leaves exactly what is there now, including late and corrected files. A group is a
                "partition", or what a regular expression with one named group, such as "(?P<day>[0-9]{8})", finds in
                the path below the loaded one. A bound never splits a group (docs/getting-started/choosing_a_sink.md).
            shard_by: for a sharded job: what assigns a file to a virtual shard: its "path" (default), or its
                "partition", so that one shard reads all files of a partition. It can't be changed later.
            per_partition: in `job.partitions`: read one partition (`name=value` folders) at a time, each with a commit
                of its own.
            infer_schema: without .schema(...): which files to inspect for columns: "sample" (default), a sample if
                there are more than 100 (1,000 for formats that carry their schema); "all"; "last", none of them: the
                columns of the last run are used, and new ones are not read; or "each", for CSV: all, each read by its
                own header, or without headers with as many columns as the longest row in the first 64 KB of a file.
            read_by: how to pass the files to Spark: "paths" or "directory"; default: chosen by their number.
            listed_partitions: the partitions of a table as a catalog lists them; `.load` takes the folder of the table.
                Only these are read, wherever they lie, and their values become columns, whatever their folders are
                called. One whose folder is missing or empty is counted ("empty_partitions").
            text_partitions: let partition columns be text, as their folders spell them, and no numbers or dates.
            max_band, max_files_in_band: as in Glue, of the files younger than `max_band` read at most so many, the
                oldest first; the others are left to a later run, and counted ("settling").
            exclude_storage_classes: leave out objects of S3 in these classes ("GLACIER"): counted ("excluded"), and
                read once they are in another class.

        Raises:
            OptionError: a choice is unknown, a bound is not positive, options contradict each other, or the method is
                called a second time.

        Example:
            job.read("raw").files(max_files=500, late_after=timedelta(days=2)).schema(S).json("s3a://lake/raw")
        """
        if self._are_files_given:
            raise self._refused("files(...) is called twice; give all options of files in one call")
        if read_by is not None:
            check_choice("read_by", read_by, Way)
        if read_by == "directory" and not lists_once(self._job.spark):
            raise self._refused(
                "read_by='directory' on Spark Connect, which lists a folder anew at each action and would read what "
                "came later. Leave read_by out"
            )
        disposal = Disposal(on_published, archive_to)
        if not disposal.is_kept:
            check_observations(self._job.spark, self._scope.label, [f"on_published={on_published!r}"])
        selection = replace(
            self._files.selection,
            on_overwrite=on_overwrite,
            late_after=late_after,
            settle=settle,
            bound=Bound.of(max_files=max_files, max_bytes=max_bytes, window=window),
            on_touch=on_touch,
            sequence=sequence,
            on_unmatched=on_unmatched,
            gaps=gaps,
            exclusions=exclusions,
            partition_filter=partition_filter,
            partition_time=partition_time,
            reread=reread,
            empties=not disposal.is_kept,
            text_partitions=text_partitions,
            max_band=max_band,
            max_files_in_band=max_files_in_band,
            exclude_storage_classes=exclude_storage_classes,
        )
        self._files = FileReadOptions(
            selection=selection,
            disposal=disposal,
            on_missing=on_missing,
            moved_from=moved_from,
            on_corrupt=on_corrupt,
            shard_by=shard_by,
            per_partition=per_partition,
            infer_schema=infer_schema,
            read_by=read_by,
            listed_partitions=listed_partitions,
        )
        self._files.check_source_change(self._wanted.on_source_change)
        self._wanted.check_ends(selection.bound)
        self._are_files_given = True
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
        return read_files(self._scope, path, self._files)

    # ---- other kinds

    @takes_options_of_one_kind
    @by_own_access
    def upstream(
        self,
        job: str,
        *,
        output: str | None = None,
        until: int | str | Mapping[str, Any] | None = None,
        on_rewind: OnRewind = "fail",
        max_files: int | str | None = None,
        max_bytes: int | str | None = None,
        max_rows: int | str | None = None,
        window: timedelta | None = None,
    ) -> DataFrame:
        """Return what `job` has published and this job has not consumed.

        Args:
            output: which output of that job; needed where it has several.
            until: read up to and including this run and no further: a run number, or what an operator or sensor of
                that job returned. Default: what the operator says (`bookmark_upstream_until`), else no bound.
            on_rewind: what to do if runs that this job has read were undone or replayed: "fail" (default); "rewind"
                rewinds this job too and first removes what its undone runs published, and fails where that is
                impossible (a sink that can't be cleaned, files that were touched, consumers that have read them, input
                that was deleted or archived); "rewind_keep" rewinds and leaves those rows, so an append target has them
                twice; or "ignore".
            max_files, max_bytes, max_rows: the most that one run reads: whole published runs, and at least one that has
                data; the rest is counted and left to the next run. `max_rows` needs an upstream that counts its rows.
            window: read only the oldest window of this length, aligned to the clock in UTC, by the commit time of the
                upstream's runs. If several bounds are given, all of them apply.

        Raises:
            UpstreamReplayedError: a run that was read has another output since, and `on_rewind` is "fail".
            UpstreamRewoundError: it was reset or rewound, and `on_rewind` is "fail".
            SourceMissingError: there is no such job.
            OptionError: it has several outputs and none is named; an option of files is given; or it is sharded and
                this job is not.

        In a sharded job: of a sharded upstream each virtual shard reads the one of its own number; of another one, the
        published files that belong to it by their path.
        """
        self._check_no_files(
            "what an upstream publishes is whole and in order; its bounds are given by .upstream(job, max_files=...)"
        )
        bound = Bound.of(max_files=max_files, max_bytes=max_bytes, max_rows=max_rows, window=window)
        wanted = UpstreamReadOptions(output=output, until=until, on_rewind=on_rewind, bound=bound)
        return read_upstream(self._scope, job, wanted)

    @takes_options_of_one_kind
    def jdbc(
        self,
        url: str,
        table: str | None = None,
        *,
        query: str | None = None,
        keys: Sequence[str] = (),
        order: KeyOrder = "asc",
        settle: timedelta | Literal["auto"] = "auto",
        settle_for: timedelta = SETTLE_FOR,
        lookback: timedelta | None = None,
        zone: str | None = None,
        on_null: OnNull = "error",
        compare: Compare | None = None,
        on_emptied: OnEmptied = "error",
        partitions: int = 1,
        partition_column: str | None = None,
        hash_field: str | None = None,
        hash_expression: str | None = None,
        shard_by: str | None = None,
        per: str | None = None,
        max_rows: int | str | None = None,
        window: timedelta | None = None,
        properties: Mapping[str, str] | None = None,
    ) -> DataFrame:
        """Return the rows of a table or query that have a later key than those that were read.

        The end of what is read is fixed before the first row is: all parts and all actions read the same rows.

        Args:
            url: "conn:<id>", a connection of Airflow's by its name; or a JDBC URL without user and password.
            table: its name, letter by letter: "orders", "public.orders", 'public."Order Lines"'.
            query: a SELECT in place of a table, whose rows the keys tell apart; by key on PostgreSQL and MariaDB alone.
            keys: the columns that order the rows, compared as a tuple: ["updated_at", "id"]. If two rows can have the
                same keys, the primary key tells them apart. Default: the primary key, if it is one integer without
                gaps, as in Glue.
            order: "asc" (default), or "desc" where later rows have lower keys.
            settle: when rows count as final. "auto" (default): once all transactions have ended that were open when
                the end of the window was taken; for times also not before their unit is over. A timedelta: so long
                after they could first be seen.
            settle_for: how long "auto" waits for open transactions (60 s); then the window ends before what they may
                still write, and the rest is the next run's.
            lookback: look again, in each run, at so much of the table behind the last row, and read rows that turn up
                there late: those whose time, or the time when their number was taken, is no longer ago than this when
                they are committed. Rows that were read are dropped by their keys, unless their content has changed. The
                bookmark names the rows of that window, 10,000 at most. Default: None, no row is late.
            zone: of a first key that is a time without a zone: "UTC", "Europe/Berlin".
            on_null: what to do with rows that have no key: "error" (default), "skip", which counts them, or
                "include_once", which reads them in the first run and counts them later.
            compare: "snapshot": read all rows, and return those that differ from what the last run has read, with a
                column `_change_type` ("insert", "update", "delete") and the deletes as `frame.deletes` as well. `keys`
                are then the columns by which a row is the same one; without them an update is a delete and an insert.
                It needs a `state_uri`. Default: rows with a later key are read.
            on_emptied: with `compare`, what to do if a table that had rows has none: "error" (default), or "accept".
            partitions: how many parts are read side by side.
            partition_column: a column of integers whose range is split into the parts; default: the first key.
            hash_field, hash_expression: a column, or an expression of the database, by whose hash the parts are made.
                Each part is read at another time: like `partition_column`, it has to be of the keys, or may change only
                together with the keys of its row.
            shard_by: for a sharded job: the column whose hash assigns a row to a virtual shard; its value may change
                only together with the keys of its row. Default: the last key, or the primary key if rows can have the
                same keys. It can't be changed later.
            per: in `job.partitions`: the column whose values are read one by one, each with a commit of its own.
            max_rows: the most rows that one run reads; rows with the same keys stay together.
            window: read only the oldest window of this length, aligned to the clock in UTC, of a first key that is a
                time. If both bounds are given, both apply.
            properties: of Spark's JDBC source, and of the driver. What would change which rows are read is refused.

        Raises:
            OptionError: a choice is unknown, a key can't be used, or an option would change which rows are read.
            SourceMissingError: there is no such table. DatabaseError: the database is out of reach.
            SourceError: the table is not what it was: its keys, its server, or its last row; or more rows than can be
                named lie within the lookback.
            SchemaChangedError: columns went or have another type than before, and on_schema_change is "fail".

        Example:
            job.read("orders").jdbc("conn:shop", "public.orders", keys=["id"])
            job.read("customers").jdbc("conn:crm", "customers", keys=["updated_at", "id"], partitions=8)
            job.read("prices").jdbc("conn:crm", "prices", keys=["article"], compare="snapshot")
        """
        self._check_no_files("a table has options of its own, given by .jdbc(...)")
        if compare is not None:
            check_choice("compare", compare, Compare)
        elif on_emptied != "error":
            raise self._refused(f"on_emptied={on_emptied!r} without compare='snapshot'")
        wanted = TableReadOptions(
            table=table,
            query=query,
            options=TableOptions(
                keys=tuple([keys] if isinstance(keys, str) else keys),
                order=order,
                settle=settle,
                settle_for=settle_for,
                lookback=lookback,
                zone=zone,
                on_null=on_null,
                per=per,
                bound=Bound.of(max_rows=max_rows, window=window),
            ),
            partitions=PartitionOptions(
                partitions=partitions,
                column=partition_column,
                hash_field=hash_field,
                hash_expression=hash_expression,
            ),
            shard_by=shard_by,
            properties={**self._options, **(properties or {})},
        )
        if compare is not None:
            return read_snapshot(self._scope, url, wanted, on_emptied)
        return read_table(self._scope, url, wanted)

    @takes_options_of_one_kind
    @by_own_access
    def delta(
        self,
        table: str,
        *,
        changes: bool = False,
        on_change: OnChange = "error",
        max_versions: int | str | None = None,
        max_files: int | str | None = None,
        max_bytes: int | str | None = None,
        per: str | None = None,
    ) -> DataFrame:
        """Return what commits have added to a Delta table since the version that was read; at first the whole table.

        The versions are fixed before the first row is read: all actions, a retry and a replay read the same rows.
        Commits that change no row (OPTIMIZE, VACUUM, columns, properties) are no news.

        Args:
            table: its folder ("/lake/orders", "s3a://lake/orders"), or its name in Spark's catalog ("shop.orders").
            changes: read the change feed: rows with `_change_type` ("insert", "update_preimage", "update_postimage",
                "delete"), `_commit_version`, by which they are in order, and `_commit_timestamp`; the deletes as
                `frame.deletes` as well. The table needs `delta.enableChangeDataFeed`.
            on_change: without `changes`, what to do if rows were updated, deleted, merged, overwritten or restored
                since: "error" (default) names the version and stops the run; "ignore" reads only what was appended, and
                counts the files that it leaves out ("rewritten", "removed"); "reload" reads the whole table anew.
            max_versions: the most versions with anything new that one run reads; the first read is of one version.
            max_files, max_bytes: the most files or bytes that one run reads: whole versions, and at least one; a first
                read is split by files. The rest is counted ("over_bound") and left to the next run.
            per: in `job.partitions(ctx)`: the partition column whose values are read one by one, each with a commit of
                its own.

        Raises:
            OptionError: a choice is unknown, the table has no change feed, or the store no `state_uri`, which a table
                that is not on a local disk needs.
            SourceMissingError: there is no such table. SourceSwitchedError: it was dropped and made again.
            SourceError: rows were changed (`RowsChangedError`), or versions went from its log (`VersionGoneError`).
            SchemaChangedError: columns went or have another type than before, and on_schema_change is "fail".

        Example:
            job.read("orders").delta("s3a://lake/orders")
            job.read("orders").delta("shop.orders", changes=True)
        """
        self._check_no_files("a Delta table has options of its own, given by .delta(...)")
        options = self._versions(changes, on_change, max_versions, max_files, max_bytes, per)
        return read_delta(self._scope, table, options)

    @takes_options_of_one_kind
    @by_own_access
    def iceberg(
        self,
        table: str,
        *,
        changes: bool = False,
        on_change: OnChange = "error",
        max_versions: int | str | None = None,
        max_files: int | str | None = None,
        max_bytes: int | str | None = None,
        per: str | None = None,
    ) -> DataFrame:
        """Return what was appended to an Iceberg table since the snapshot that was read; at first the whole table.

        The snapshots are fixed before the first row is read: all actions, a retry and a replay read the same rows.
        Snapshots that change no row (compactions, rewritten manifests) are no news.

        Args:
            table: its name in a catalog of Spark: "lake.sales.orders".
            changes: read the changes: rows with `_change_type` ("INSERT", "DELETE", and for a table with identifier
                fields "UPDATE_BEFORE" and "UPDATE_AFTER"), `_change_ordinal`, by which they are in order, and
                `_commit_snapshot_id`; the deletes as `frame.deletes` as well.
            on_change: without `changes`, what to do if rows were updated, deleted, merged or overwritten since, or the
                table was rolled back: "error" (default) names the snapshot and stops the run; "ignore" reads only what
                was appended, and counts the files that it leaves out ("rewritten", "removed"); "reload" reads the whole
                table anew.
            max_versions: the most snapshots with anything new that one run reads.
            max_files, max_bytes: the most files or bytes that one run reads: whole snapshots, and at least one. The
                rest is counted ("over_bound") and left to the next run. A first read is whole where snapshots have
                expired or have changed rows.
            per: in `job.partitions(ctx)`: the partition column whose values are read one by one, each with a commit of
                its own.

        Raises:
            OptionError: a choice is unknown, or this Spark has no Iceberg.
            SourceMissingError: there is no such table. SourceSwitchedError: it was dropped and made again.
            SourceError: rows were changed (`RowsChangedError`), or snapshots have expired (`VersionGoneError`).
            SchemaChangedError: columns went or have another type than before, and on_schema_change is "fail".

        Example:
            job.read("orders").iceberg("lake.sales.orders")
            job.read("orders").iceberg("lake.sales.orders", changes=True)
        """
        self._check_no_files("an Iceberg table has options of its own, given by .iceberg(...)")
        options = self._versions(changes, on_change, max_versions, max_files, max_bytes, per)
        return read_iceberg(self._scope, table, options)

    def _versions(
        self,
        changes: bool,
        on_change: OnChange,
        max_versions: int | str | None,
        max_files: int | str | None,
        max_bytes: int | str | None,
        per: str | None = None,
    ) -> VersionOptions:
        return VersionOptions(
            changes=changes,
            on_change=on_change,
            max_versions=whole_number("max_versions", max_versions),
            bound=Bound.of(max_files=max_files, max_bytes=max_bytes),
            per=per,
        )

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
        self._check_no_files("a source of your own has options of its own")
        return read_own(self._scope, source, reader)

    def _check_no_files(self, why: str) -> None:
        given = self._files.given()
        if given:
            raise self._refused(f"{', '.join(given)}: an option of files; {why}")

    def _has_no(self, method: str) -> OptionError:
        return self._refused(
            f"{method}(...) has no bookmark here, which files and the output of other jobs (.upstream(job)) have. Read "
            f"it whole with spark.read.{method}(...), or once for a loop with job.reference(name)"
        )

    def _refused(self, what: str) -> OptionError:
        return self._scope.refused(what)
