"""`job.write(df, name)`: an interface like Spark's DataFrameWriter, which writes into a managed sink."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

from pyspark.sql import DataFrameWriter
from pyspark.sql import functions as F

from airflow_bookmarks.core.errors import OptionError
from airflow_bookmarks.files.access import by_own_access
from airflow_bookmarks.sinks.delta.target import DeltaTarget
from airflow_bookmarks.sinks.failure import DELTA_SINK, ICEBERG_SINK
from airflow_bookmarks.sinks.files.catalog import CatalogTable
from airflow_bookmarks.sinks.staging import Mode
from airflow_bookmarks.spark.outputs.catalog import stage_by_name, stage_by_place
from airflow_bookmarks.spark.outputs.database import stage_table
from airflow_bookmarks.spark.outputs.delta import land_in_delta
from airflow_bookmarks.spark.outputs.draft import OutputDraft
from airflow_bookmarks.spark.outputs.files import stage_files
from airflow_bookmarks.spark.outputs.iceberg import stage_iceberg
from airflow_bookmarks.spark.outputs.redshift import stage_copy
from airflow_bookmarks.spark.readers.by_format import set_option
from airflow_bookmarks.spark.readers.format import FORMATS
from airflow_bookmarks.spark.sinks.jdbc import upsert_of
from airflow_bookmarks.spark.sinks.redshift import CopyRequest
from airflow_bookmarks.spark.spark_names import OF_DELTA_WRITES, WITHOUT_EFFECT, by_name, is_of_writer

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pyspark.sql import DataFrame

    from airflow_bookmarks.core.rules.emptiness import WhenEmpty
    from airflow_bookmarks.files.access import FileAccess
    from airflow_bookmarks.sinks.files.catalog import TableDefinition
    from airflow_bookmarks.sinks.staging import OnUnknownRuns
    from airflow_bookmarks.spark.outputs.draft import WritingJob

_MODES = {"append": Mode.APPEND, "overwrite": Mode.OVERWRITE}
RUN_NUMBER, EPOCH = "_run_number", "_epoch"  # the columns that `stamped` adds


def stamped(job: WritingJob, frame: DataFrame, output: str) -> DataFrame:
    """Return the frame with the number and the epoch of the run that writes it in each row.

    Raises:
        OptionError: the frame has such a column, or the run has no number. MisuseError: not begun.
    """
    run = job.active_run
    label = f"job {job.name!r}, output {output!r}: stamp_rows=True"
    if run.run_number is None or run.epoch is None:
        raise OptionError(
            f"{label}, and a run of option {job.option} has no number to stamp. Nothing was written or committed. "
            "Leave stamp_rows out for it."
        )
    taken = [name for name in frame.columns if name.lower() in (RUN_NUMBER, EPOCH)]
    if taken:
        raise OptionError(
            f"{label} adds the columns {RUN_NUMBER} and {EPOCH}, and the frame has {taken} already. Nothing was "
            "written or committed. Rename or drop them."
        )
    numbers = {RUN_NUMBER: run.run_number, EPOCH: run.epoch}
    return frame.withColumns({name: F.lit(number).cast("bigint") for name, number in numbers.items()})


class BookmarkedWriter:
    """Writes one output of the run: staged now, visible after the commit. Made by `BookmarkedJob.write`."""

    def __init__(
        self,
        job: WritingJob,
        frame: DataFrame,
        name: str,
        *,
        staging: str | None,
        count_rows: bool,
        when_empty: WhenEmpty | None,
        on_unknown_runs: OnUnknownRuns,
        overwrite_published: bool,
    ) -> None:
        self._draft = OutputDraft(
            job=job,
            frame=frame,
            name=name,
            staging=staging,
            count_rows=count_rows,
            when_empty=when_empty,
            on_unknown_runs=on_unknown_runs,
            overwrite_published=overwrite_published,
        )

    @property
    def access(self) -> FileAccess:
        """How the files are reached: as the job does."""
        return self._draft.job.access

    def format(self, source: str) -> BookmarkedWriter:
        """Set the format: avro, csv, delta, iceberg, json, orc, parquet (default), text or xml.

        Raises:
            OptionError: another format.
        """
        if source.lower() not in (*FORMATS, DELTA_SINK, ICEBERG_SINK):
            raise self._draft.refused(
                f"format {source!r} is no managed sink; known are {', '.join(FORMATS)}, delta, iceberg, and tables of "
                "a database by .jdbc(url, table)"
            )
        self._draft.format, self._draft.is_format_given = source.lower(), True
        return self

    def mode(self, save_mode: str) -> BookmarkedWriter:
        """Set the mode: "append" (default) or "overwrite".

        With "overwrite" the publish replaces the whole target, or, with the option `partitionOverwriteMode=dynamic`,
        the partitions that this run wrote. What becomes of it in a run without new input, `when_empty` says
        (`BookmarkedJob.write`).

        Raises:
            OptionError: another mode.
        """
        if save_mode.lower() not in _MODES:
            raise self._draft.refused(
                f"mode {save_mode!r} has no meaning for a bookmarked job; use 'append' or 'overwrite'"
            )
        self._draft.mode = _MODES[save_mode.lower()]
        return self

    def option(self, key: str, value: Any) -> BookmarkedWriter:
        """Set an option of the format; `partitionOverwriteMode` is obeyed at the publish.

        Raises:
            OptionError: `path`, which `save` takes, an unknown `partitionOverwriteMode`, or one that has no effect.
        """
        if key.lower() in WITHOUT_EFFECT and key.lower() not in OF_DELTA_WRITES and value is not None:
            raise self._draft.refused(f"option {key!r}: {WITHOUT_EFFECT[key.lower()]}")
        if key.lower() == "path":
            raise self._draft.refused("option 'path' can't be used with a managed sink; give the path to .save(path)")
        if key.lower() == "partitionoverwritemode":
            if str(value).lower() not in ("static", "dynamic"):
                raise self._draft.refused(f"partitionOverwriteMode={value!r}: expected 'static' or 'dynamic'")
            self._draft.overwrite_mode = str(value).lower()
        else:
            set_option(self._draft.options, key, value)
        return self

    def options(self, **options: Any) -> BookmarkedWriter:
        """Set several options of the format."""
        for key, value in options.items():
            self.option(key, value)
        return self

    def partitionBy(self, *columns: str | list[str]) -> BookmarkedWriter:
        """Partition the output by these columns."""
        self._draft.partition_by = tuple(
            c for column in columns for c in ([column] if isinstance(column, str) else column)
        )
        return self

    def upsert(
        self,
        keys: str | Iterable[str],
        order_by: str | Iterable[str] | None = None,
        deletes: DataFrame | None = None,
    ) -> BookmarkedWriter:
        """Let rows replace those of the table that have the same key; for `jdbc`, `delta`, `iceberg`, mode "append".

        Args:
            keys: the columns of a primary key or a unique index; of a Delta or Iceberg table, any. A row with NULL in
                one of them is an error, in the delete set as well.
            order_by: of several rows for a key the one with the greatest values in these columns counts, as the
                database (for the others, Spark) compares them; NULL is lower than any. Without it several rows for a
                key are an error.
            deletes: rows with the keys to delete, such as `frame.deletes`; of their columns only `keys` and `order_by`
                are used. A key that is both written and deleted: the greatest `order_by` decides, and of a tie the
                row counts; without `order_by` it is an error. A key that is not there is no error.

        Raises:
            OptionError: no key is named, or one twice, or `deletes` is no frame.

        Example:
            job.write(customers, "dim").upsert("id", order_by="updated_at").jdbc("conn:dw", "public.customers")
        """
        if deletes is not None and not isinstance(deletes, type(self._draft.frame)):  # a column has every attribute
            raise self._draft.refused(
                f"upsert(deletes={type(deletes).__name__}): expected a DataFrame, as frame.deletes is"
            )
        self._draft.upsert, self._draft.deletes = upsert_of(keys, order_by, has_deletes=deletes is not None), deletes
        return self

    @by_own_access
    def save(
        self,
        path: str,
        format: str | None = None,
        mode: str | None = None,
        partitionBy: str | list[str] | None = None,
        **options: Any,
    ) -> None:
        """Stage the frame for `path`; the commit makes it visible.

        Raises:
            OptionError: a path that is empty, relative or a pattern; a target where this run reads, or where another
                output of it is overwritten; a staging folder that readers see; a format that this Spark has not.
            MisuseError: an output of that name exists already.
            UnknownRunsError: a first run finds files of runs that the store does not know.
        """
        with self._draft.writing():
            self._take(mode, partitionBy, options, format)
            if self._draft.format == DELTA_SINK:
                land_in_delta(self._draft, DeltaTarget(path, is_path=True))
                return
            if self._draft.format == ICEBERG_SINK:
                raise self._draft.refused("an Iceberg table has a name in a catalog: .iceberg(table)")
            stage_files(self._draft, path)

    def _take(
        self,
        mode: str | None,
        partition_by: str | list[str] | None,
        options: Mapping[str, Any],
        format: str | None = None,
    ) -> None:
        """Take what the last call of a chain gives, as the calls before it do."""
        if format is not None:
            self.format(format)
        if mode is not None:
            self.mode(mode)
        if partition_by is not None:
            self.partitionBy(partition_by)
        self.options(**options)

    @by_own_access
    def jdbc(
        self,
        url: str,
        table: str,
        mode: str | None = None,
        properties: Mapping[str, str] | None = None,
        *,
        before: str | Iterable[str] | None = None,
        after: str | Iterable[str] | None = None,
    ) -> None:
        """Stage the frame for a table of a database; the commit makes it visible, in one transaction.

        Spark writes to a stage table of its own first, with the types that the table has. It lies in the schema of the
        table, or in that of `job.write(..., staging="<schema>")`, beside a small table `_bookmarks_tokens`; the login
        needs the right to create tables there. A table that is not there is made with the first publish. Columns go by
        their names. With mode "overwrite" the publish deletes all rows that the table then has.

        Args:
            url: "conn:<id>", or a JDBC URL without user and password: "jdbc:postgresql://host:5432/db".
            table: "dim", "public.dim" or 'public."Order Lines"'; its case counts.
            mode: "append" (default) or "overwrite".
            properties: options of Spark's writer and of the driver, such as batchsize.
            before, after: statements that the publish runs before and after the rows, in its transaction; MySQL takes
                none there that would commit, such as TRUNCATE. The table `_bookmarks_statements` keeps their digest.

        Raises:
            OptionError: the address, the table or an option can't be used; the table lacks a column or needs another,
                has it by a type that does not take its values, or lacks the key of an upsert; a pause or disable run,
                which has no commit.
            PublishError: the database can't be reached, or what is staged is not what was written.
            MisuseError: an output of that name exists already.
        """
        with self._draft.writing():
            if mode is not None:
                self.mode(mode)
            self.options(**(properties or {}))
            stage_table(self._draft, url, table, before, after)

    @by_own_access
    def redshift(
        self,
        url: str,
        table: str,
        tmp_dir: str,
        *,
        iam_role: str | None = None,
        copy_options: str | None = None,
        before: str | Iterable[str] | None = None,
        after: str | Iterable[str] | None = None,
    ) -> None:
        """Stage the frame in files for a table of Redshift; after the commit one COPY loads them, in one transaction.

        Untried: no Redshift server has run the statements of this sink yet. Rows are appended. A table that is not
        there is made by the first publish, and the small table `_bookmarks_copies` beside it by the first write.

        Args:
            url: "conn:<id>", or a JDBC URL without user and password: "jdbc:redshift://host:5439/dw".
            table: "orders" or "public.orders".
            tmp_dir: a folder in S3 that is the job's to write to and Redshift's to read: "s3://bucket/tmp".
            iam_role: the ARN of the role under which Redshift reads it; several with commas are a chain. Default: the
                default role of the cluster or namespace.
            copy_options: `ACCEPTINVCHARS [AS '<letter>']`.
            before, after: statements that the publish runs before and after the rows, in its transaction: no TRUNCATE,
                which would commit it.

        Raises:
            OptionError: the address, the table or an option can't be used; the table lacks a column; a column has a
                type that can't be loaded; a pause or disable run, which has no commit.
            PublishError: Redshift can't be reached, or a later run was there.
            MisuseError: an output of that name exists already.

        Example:
            job.write(orders, "orders").redshift("conn:dw", "public.orders", "s3://acme-tmp/redshift")
        """
        with self._draft.writing():
            stage_copy(self._draft, CopyRequest(url, table, iam_role, copy_options, before, after), tmp_dir)

    @by_own_access
    def delta(
        self,
        path_or_table: str,
        mode: str | None = None,
        partitionBy: str | list[str] | None = None,
        **options: Any,
    ) -> None:
        """Write the frame to a Delta table at the commit of the run, in one commit of the table.

        A Delta table commits by itself, so it comes last: when the block ends, and everything else is staged and
        checked. A run has one such output. A table that is not there is made now, empty, with the columns of the frame.
        If the driver dies in between, the next run looks in the history of the table, and takes over what has landed.

        Args:
            path_or_table: a path ("/lake/orders", "s3a://lake/orders"), or the name of a table ("sales.orders").
            mode: "append" (default) or "overwrite": the whole table; with the option `replaceWhere` the rows of that
                condition, with `partitionOverwriteMode=dynamic` the partitions that the frame has rows of.
            partitionBy: the partition columns of a table that is made; of one that is there, the same.
            options: those of Delta's writer, such as mergeSchema; not txnAppId, txnVersion and userMetadata.

        Raises:
            OptionError: this Spark has no Delta Lake; the table is none of Delta, or forgets which runs have written
                (`delta.setTransactionRetentionDuration`); an option can't be used; a pause or disable run would
                overwrite, without `overwrite_published=True`.
            MisuseError: another output of the run commits by itself; an output of that name exists already.

        Example:
            job.write(orders, "orders").partitionBy("day").delta("s3a://lake/orders")
        """
        with self._draft.writing():
            self._take(mode, partitionBy, options)
            land_in_delta(self._draft, DeltaTarget.parse(path_or_table))

    @by_own_access
    def iceberg(
        self, table: str, mode: str | None = None, partitionBy: str | list[str] | None = None, **options: Any
    ) -> None:
        """Stage the frame in a snapshot of an Iceberg table, which the publish brings in after the commit.

        The table needs the property `write.wap.enabled` = true. Until the publish nobody reads the rows; a tag with the
        name of the run keeps them from expiring. A table that is not there is made now, empty, with the columns of the
        frame. A run may have any number of such outputs.

        Args:
            table: its name in a catalog of Spark: "lake.sales.orders".
            mode: "append" (default) or "overwrite": the whole table; with `partitionOverwriteMode=dynamic` the
                partitions that the frame has rows of. Iceberg takes an append whatever others have committed since it
                was staged; an overwrite of partitions, where they have not touched these; an overwrite of the whole
                table or an upsert, where they have committed nothing.
            partitionBy: the partition columns of a table that is made; one that is there has to have these.
            options: those of Iceberg's writer, such as mergeSchema; not branch and wap-id.

        Raises:
            OptionError: this Spark has no Iceberg, or not its statements; the table is none of Iceberg, or a run can't
                stage in it; an option can't be used; a pause or disable run, which has no commit.
            PublishError: what was written is not staged.
            MisuseError: an output of that name exists already.

        Example:
            job.write(orders, "orders").iceberg("lake.sales.orders")
        """
        with self._draft.writing():
            self._take(mode, partitionBy, options)
            stage_iceberg(self._draft, table)

    def csv(self, path: str, *values: Any, **options: Any) -> None:
        """Stage as CSV; arguments as of Spark's writer, see `save`."""
        self._save_as("csv", path, values, options)

    def json(self, path: str, *values: Any, **options: Any) -> None:
        """Stage as JSON lines; arguments as of Spark's writer, see `save`."""
        self._save_as("json", path, values, options)

    def text(self, path: str, *values: Any, **options: Any) -> None:
        """Stage as text; arguments as of Spark's writer, see `save`."""
        self._save_as("text", path, values, options)

    def parquet(self, path: str, *values: Any, **options: Any) -> None:
        """Stage as Parquet; arguments as of Spark's writer, see `save`."""
        self._save_as("parquet", path, values, options)

    def orc(self, path: str, *values: Any, **options: Any) -> None:
        """Stage as ORC; arguments as of Spark's writer, see `save`."""
        self._save_as("orc", path, values, options)

    def xml(self, path: str, *values: Any, **options: Any) -> None:
        """Stage as XML, one element for each row, named by `rowTag`.

        Arguments are as of Spark's writer; see `save`.
        """
        self._save_as("xml", path, values, options)

    def _save_as(self, name: str, path: str, values: Sequence[Any], options: Mapping[str, Any]) -> None:
        named = by_name(DataFrameWriter, name, values, options)
        self.save(path, name, named.pop("mode", None), named.pop("partitionBy", None), **named)

    def __getattr__(self, name: str) -> NoReturn:
        if not is_of_writer(name):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        raise self._draft.refused(
            f"{name}(...) can't be staged; write files with .save(path), a table of a database with .jdbc(url, table), "
            f"or what is to be no part of the commit with frame.write.{name}(...)"
        )

    @by_own_access
    def saveAsTable(
        self,
        name: str,
        format: str | None = None,
        mode: str | None = None,
        partitionBy: str | list[str] | None = None,
        **options: Any,
    ) -> None:
        """Stage the frame for a table of Spark's catalog, whose columns it has by name; make the table if need be.

        A table over a folder of files gets them as by `save`, and its new partitions at the publish, whoever finishes
        it. With mode "overwrite" the definition of the table stays. A Delta or Iceberg table is written as by
        `delta(name)` or `iceberg(name)`, with that format.

        Args:
            name: "orders", "sales.orders".
            format: parquet (default), orc, avro or json for a table that is made; one that is there has its own.
            mode: "append" (default) or "overwrite".
            partitionBy: the partition columns; those of a table that is there may be left out.
            options: those of Spark's writer.

        Raises:
            OptionError: the table is a view, has buckets, or is of another format; it has other columns or partitions;
                and as `save`. SourceError: the catalog is out of reach.

        Example:
            job.write(orders, "orders").partitionBy("day").saveAsTable("sales.orders")
        """
        wanted = (format or self._draft.format).lower()
        if wanted in (DELTA_SINK, ICEBERG_SINK):
            (self.delta if wanted == DELTA_SINK else self.iceberg)(name, mode, partitionBy, **options)
            return
        with self._draft.writing():
            self._take(mode, partitionBy, options, format)
            stage_by_name(self._draft, name)

    @by_own_access
    def insertInto(self, tableName: str, overwrite: bool | None = None) -> None:
        """Stage the frame for a table of Spark's catalog that is there, whose columns it has by place.

        Args:
            tableName: "orders", "sales.orders".
            overwrite: whether what is there goes, as with mode "overwrite"; None: as the mode says.

        Raises:
            OptionError: there is no such table; `partitionBy` was called; and as `saveAsTable`.

        Example:
            job.write(orders.select("id", "amount", "day"), "orders").insertInto("sales.orders")
        """
        with self._draft.writing():
            if overwrite is not None:
                self.mode("overwrite" if overwrite else "append")
            stage_by_place(self._draft, tableName)

    def in_catalog(self, table: str, definition: TableDefinition | None = None) -> BookmarkedWriter:
        """Let the publish add the partitions of what it makes visible to a table of a catalog; for `save`.

        The table is there, lies in the folder that is saved to, and has the partition columns of `partitionBy`. A
        publish that was killed adds them when it is finished, by whoever finishes it. A partition that the table has
        already is left as it is.

        Args:
            table: "glue:sales.orders" for the Glue Data Catalog, "spark:sales.orders" for Spark's own, such as a Hive
                metastore.
            definition: how the publish makes the table if it is not there, and which columns it adds to one that is;
                None: it has to be there, and its columns stay.

        Raises:
            OptionError: it names no such table.

        Example:
            job.write(orders, "orders").partitionBy("day").in_catalog("glue:sales.orders").parquet("s3a://lake/orders")
        """
        try:
            self._draft.catalog_table, self._draft.catalog_definition = CatalogTable.parse(table), definition
        except OptionError as error:
            raise self._draft.refused(str(error)) from error
        return self
