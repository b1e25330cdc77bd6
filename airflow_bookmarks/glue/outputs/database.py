"""Write tables of a database: staged for the commit of a run with enable, at once in any other."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from airflow_bookmarks.core.database.script import split_statements
from airflow_bookmarks.core.errors import OptionError
from airflow_bookmarks.databases.client import why_no_client
from airflow_bookmarks.databases.database import open_database
from airflow_bookmarks.glue.dynamic.base import FrameBase
from airflow_bookmarks.glue.outputs.rows import check_no_choices, rows_of, without_null_columns
from airflow_bookmarks.spark.jdbc.reader import driver_needed, spark_url

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from airflow_bookmarks.glue.catalogs.connections import Connection
    from airflow_bookmarks.glue.outputs.options import GivenOptions
    from airflow_bookmarks.glue.run import GlueRun

log = logging.getLogger(__name__)

# Drivers lie on Spark's class path, and how rows are read is no matter of a write.
_WITHOUT_EFFECT = (
    "customJdbcDriverS3Path", "customJdbcDriverClassName", "useConnectionProperties", "bulkSize", "hashfield",
    "hashexpression", "hashpartitions",
)  # fmt: skip
_OF_COPY = ("aws_iam_role", "aws_iam_user", "extracopyoptions")


@dataclass(frozen=True, slots=True)
class TableOutput:
    """An output of a table as a script asks for it.

    Args:
        call: the call, for messages.
        table: the table: "public.orders".
        before: statements that run before the rows, `preactions`; and `after`, `postactions`.
        ctx: the transformation_ctx; empty where there is none.
        batch_size: how many rows Spark sends at once; None: its default.
    """

    call: str
    table: str
    before: str = ""
    after: str = ""
    ctx: str = ""
    batch_size: int | None = None

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
        folder = redshift_tmp_dir or given.text("redshiftTmpDir", default="")
        of_copy = [name for name in _OF_COPY if given.take(name) is not None]
        given.ignore(*_WITHOUT_EFFECT)
        given.warn_of_rest(run)
        if folder or of_copy:
            unused = ", ".join([*(["redshift_tmp_dir"] if folder else []), *of_copy])
            log.info("%s: %s not used: rows go to the table by JDBC", given.call, unused)
        return cls(given.call, name, before or "", after or "", ctx, None if size is None else int(size))

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
    elif run.is_managed:
        _stage(run, rows, connection, output)
    else:
        _write_now(run, rows, connection, output)


def _stage(run: GlueRun, rows: DataFrame, connection: Connection, output: TableOutput) -> None:
    job = run.job
    if job is None:  # a managed run has one
        raise RuntimeError(f"{output.call}: the run has no job")
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
