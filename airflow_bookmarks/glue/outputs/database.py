"""Write tables of a database: staged for the commit of a run with enable, at once in any other."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from airflow_bookmarks.core.database.script import split_statements
from airflow_bookmarks.core.errors import OptionError
from airflow_bookmarks.databases.client import why_no_client
from airflow_bookmarks.databases.database import open_database
from airflow_bookmarks.databases.redshift import why_no_redshift
from airflow_bookmarks.glue.dynamic.base import FrameBase
from airflow_bookmarks.glue.outputs.rows import check_no_choices, rows_of, without_null_columns
from airflow_bookmarks.spark.jdbc.reader import driver_needed, spark_url

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from airflow_bookmarks.glue.catalogs.connections import Connection
    from airflow_bookmarks.glue.outputs.options import GivenOptions
    from airflow_bookmarks.glue.run import GlueRun
    from airflow_bookmarks.spark.job import BookmarkedJob

log = logging.getLogger(__name__)

# Drivers lie on Spark's class path, and how rows are read is no matter of a write.
_WITHOUT_EFFECT = (
    "customJdbcDriverS3Path", "customJdbcDriverClassName", "useConnectionProperties", "bulkSize", "hashfield",
    "hashexpression", "hashpartitions", "aws_iam_user",
)  # fmt: skip
_DIRECTLY = (
    "With spark.bookmarks.glue.writes=direct the script writes at once, by JDBC, and rows may come twice after a crash."
)


@dataclass(frozen=True, slots=True)
class CopyOptions:
    """What a script says of the COPY by which Redshift is loaded; other databases have no use for it.

    `folder` is `redshift_tmp_dir`, `role` is `aws_iam_role`, `more` are `extracopyoptions`; empty: not given.
    """

    folder: str = ""
    role: str = ""
    more: str = ""

    @classmethod
    def of(cls, given: GivenOptions, redshift_tmp_dir: str) -> Self:
        """Return what options say, beside the argument `redshift_tmp_dir`.

        Raises:
            OptionError: one is no text.
        """
        folder = given.text("redshiftTmpDir", default="")
        role, more = given.text("aws_iam_role", default=""), given.text("extracopyoptions", default="")
        return cls(redshift_tmp_dir or folder or "", role or "", more or "")

    @property
    def given(self) -> str:
        """The names of those that are given, for messages."""
        named = {"redshift_tmp_dir": self.folder, "aws_iam_role": self.role, "extracopyoptions": self.more}
        return ", ".join(name for name, value in named.items() if value)


@dataclass(frozen=True, slots=True)
class TableOutput:
    """An output of a table as a script asks for it.

    Args:
        call: the call, for messages.
        table: the table: "public.orders".
        before: statements that run before the rows, `preactions`; and `after`, `postactions`.
        ctx: the transformation_ctx; empty where there is none.
        batch_size: how many rows Spark sends at once; None: its default.
        copy: what it says of the COPY into Redshift.
    """

    call: str
    table: str
    before: str = ""
    after: str = ""
    ctx: str = ""
    batch_size: int | None = None
    copy: CopyOptions = CopyOptions()

    @classmethod
    def of(
        cls, given: GivenOptions, run: GlueRun, ctx: str, redshift_tmp_dir: str = "", table: str | None = None
    ) -> Self:
        """Return the output that options ask for; `table` is that of the catalog, where they name none.

        Raises:
            OptionError: no table is named, or an option has a value that is none of its own.
        """
        name = given.text("dbtable", default=table) or given.needed("dbtable")
        before, after = given.text("preactions", default=""), given.text("postactions", default="")
        size = given.number("batchsize", least=1)
        copy = CopyOptions.of(given, redshift_tmp_dir)
        given.ignore(*_WITHOUT_EFFECT)
        given.warn_of_rest(run)
        return cls(given.call, name, before or "", after or "", ctx, None if size is None else int(size), copy)

    @property
    def has_statements(self) -> bool:
        """Whether statements run before or after the rows."""
        return bool(split_statements(self.before) or split_statements(self.after))

    @property
    def properties(self) -> dict[str, str]:
        """The options of Spark's writer."""
        return {} if self.batch_size is None else {"batchsize": str(self.batch_size)}


def write_table(run: GlueRun, frame: object, connection: Connection, output: TableOutput) -> None:
    """Append a frame to a table: visible after the commit of a run with enable, in any other run at once.

    Raises:
        TypeError: `frame` is no frame.
        OptionError: a column holds values of several types, or the table does not take the rows.
        PublishError, DatabaseError: the database can't be reached.
    """
    run.check()
    run.note_use()
    if isinstance(frame, FrameBase) and frame.is_nothing_new and frame.to_sink().isEmpty():
        log.info("%s: nothing new, so nothing is written to %s", output.call, output.table)
        return
    rows = rows_of(frame, output.call)
    check_no_choices(rows, output.call, "a table of a database")
    rows = without_null_columns(rows, run, output.ctx)
    if not rows.columns:
        log.info("%s: the frame has no columns, so nothing is written to %s", output.call, output.table)
    elif run.is_managed and connection.login.dialect == "redshift":
        _stage_copy(run, rows, connection, output)
    elif run.is_managed:
        _tell_of_unused(output)
        _stage(run, rows, connection, output)
    else:
        _tell_of_unused(output)
        _write_now(run, rows, connection, output)


def _tell_of_unused(output: TableOutput) -> None:
    if output.copy.given:
        log.info("%s: %s not used: rows go to the table by JDBC", output.call, output.copy.given)


def _stage_copy(run: GlueRun, rows: DataFrame, connection: Connection, output: TableOutput) -> None:
    """Stage rows in files below redshift_tmp_dir, which one COPY loads after the commit."""
    job, what = _job_of(run, output), f"{output.call}: rows for {output.table} can't be part of the commit"
    if not output.copy.folder:
        raise OptionError(
            f"{what}: Redshift is loaded through files in S3, and no redshift_tmp_dir is given. Nothing was written or "
            f"committed. Give a folder of S3, such as args['TempDir']. {_DIRECTLY}"
        )
    why_not = why_no_redshift()
    if why_not is not None:
        raise OptionError(f"{what}: {why_not} Nothing was written or committed. {_DIRECTLY}")
    name = run.take_output(output.ctx or output.table, f"{connection.address}#{output.table}")
    writer = job.write(rows, name, when_empty=None if output.has_statements else "rows")
    writer.redshift(
        connection.address,
        output.table,
        output.copy.folder,
        iam_role=output.copy.role or None,
        copy_options=output.copy.more or None,
        before=output.before,
        after=output.after,
    )


def _job_of(run: GlueRun, output: TableOutput) -> BookmarkedJob:
    if run.job is None:  # a managed run has one
        raise RuntimeError(f"{output.call}: the run has no job")
    return run.job


def _stage(run: GlueRun, rows: DataFrame, connection: Connection, output: TableOutput) -> None:
    job = _job_of(run, output)
    why_not = why_no_client(connection.login.dialect)
    if why_not is not None:
        raise OptionError(
            f"{output.call}: rows for {output.table} can't be part of the commit: {why_not} With "
            "spark.bookmarks.glue.writes=direct the script writes at once, and rows may come twice after a crash."
        )
    name = run.take_output(output.ctx or output.table, f"{connection.address}#{output.table}")
    # Statements take effect without rows too, but in a run with nothing new, where rows alone count.
    writer = job.write(rows, name, when_empty=None if output.has_statements else "rows")
    writer.jdbc(
        connection.address, output.table, properties=output.properties, before=output.before, after=output.after
    )


def _write_now(run: GlueRun, rows: DataFrame, connection: Connection, output: TableOutput) -> None:
    if run.settings.writes == "direct" and run.is_begun:
        run.warn_once(
            "spark.bookmarks.glue.writes=direct: what is written is visible before job.commit(), and is written again "
            "by the next run if this one does not commit (at least once)"
        )
    login = connection.login
    properties = {**login.jdbc_properties(), **output.properties}
    _execute(connection, output.before)
    with driver_needed(run.spark, properties):
        rows.write.mode("append").jdbc(spark_url(login), output.table, properties=properties)
    _execute(connection, output.after)


def _execute(connection: Connection, text: str) -> None:
    statements = split_statements(text)
    if statements:
        with open_database(connection.login) as database:
            for statement in statements:
                database.execute(statement)
