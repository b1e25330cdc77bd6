"""Write files: staged for the commit of a run with enable, at once in any other."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING

from airflow_bookmarks.core.errors import OptionError, OutOfBoundsError, SourceError
from airflow_bookmarks.core.rules.territory import PurgeBounds, Territory
from airflow_bookmarks.files.access import reached_by
from airflow_bookmarks.files.opener import open_filesystem
from airflow_bookmarks.glue.dynamic.base import FrameBase
from airflow_bookmarks.glue.dynamic.choice import has_choices, without_marks
from airflow_bookmarks.glue.outputs.csv_rows import csv_rows
from airflow_bookmarks.glue.outputs.empty_file import find_empty_file
from airflow_bookmarks.glue.outputs.formats import FileFormat
from airflow_bookmarks.glue.outputs.parquet import check_types
from airflow_bookmarks.glue.outputs.rows import (
    as_json_lines,
    check_no_choices,
    rows_of,
    with_empty_columns,
    with_values,
    without_null_columns,
)
from airflow_bookmarks.sinks.files.changes import FileChanges
from airflow_bookmarks.spark.features import has_variants, session_conf
from airflow_bookmarks.spark.session import RowCount, session_access
from airflow_bookmarks.spark.sinks.round_trip import RoundTrip

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import DataFrame

    from airflow_bookmarks.glue.outputs.registration import CatalogUpdate
    from airflow_bookmarks.glue.run import GlueRun

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class FileOutput:
    """An output of files as a script asks for it.

    Args:
        call: the call, for messages.
        path: the folder.
        format: the format, with its options.
        partition_by: the partition columns.
        ctx: the transformation_ctx; empty where there is none.
        update: the table of a catalog that gets new partitions and columns; None: none does.
    """

    call: str
    path: str
    format: FileFormat
    partition_by: tuple[str, ...] = ()
    ctx: str = ""
    update: CatalogUpdate | None = None


def write_files(run: GlueRun, frame: object, output: FileOutput) -> None:
    """Write a frame: visible after the commit of a run with enable, in any other run at once.

    Raises:
        TypeError: `frame` is no frame. OptionError: its columns can't be written like this.
    """
    run.check()
    run.note_use()
    with reached_by(session_access(run.spark, session_conf(run.spark))):
        _write(run, frame, output)


def _write(run: GlueRun, frame: object, output: FileOutput) -> None:
    if isinstance(frame, FrameBase) and frame.is_nothing_new and frame.to_sink().isEmpty():
        log.info("%s: nothing new, so nothing is written to %s", output.call, output.path)
        return
    given = rows_of(frame, output.call)
    if given.columns:
        _check_partitions(given, output)
    rows, fmt = _taken(run, given, output)
    if not rows.columns:
        log.info("%s: the frame has no columns, so nothing is written to %s", output.call, output.path)
        return
    _check_partitions(rows, output)  # a column of nulls may be left out
    if run.is_managed:
        _stage(run, rows, output, fmt)
    else:
        _write_now(run, rows, output, fmt)


def _check_partitions(rows: DataFrame, output: FileOutput) -> None:
    missing = [name for name in output.partition_by if name.lower() not in map(str.lower, rows.columns)]
    if missing:
        raise OptionError(
            f"{output.call}: partitionKeys name {missing}, and the frame has {rows.columns}. Nothing was written or "
            "changed."
        )


def _taken(run: GlueRun, rows: DataFrame, output: FileOutput) -> tuple[DataFrame, FileFormat]:
    """Return what the format takes of the rows, and the format in which that is written."""
    fmt = output.format
    if has_choices(rows):
        if fmt.is_flat:
            check_no_choices(rows, output.call, "a file of CSV")
        if fmt.name == "json" and not has_variants():
            lines = as_json_lines(rows, output.partition_by)
            return lines, FileFormat("text", {k: v for k, v in fmt.options.items() if k == "compression"})
        rows = with_values(rows) if fmt.name == "json" else without_marks(rows)
    if fmt.is_flat:
        return with_empty_columns(rows), fmt
    return (rows if fmt.keeps_nulls else without_null_columns(rows, run, output.ctx)), fmt


def _written(rows: DataFrame, output: FileOutput, fmt: FileFormat) -> tuple[DataFrame, Mapping[str, str]]:
    """Return the rows as they are written, and the options of Spark's writer; a table has those of the format alone."""
    return csv_rows(rows, fmt.options, output.partition_by, output.call) if fmt.is_flat else (rows, fmt.options)


def _stage(run: GlueRun, rows: DataFrame, output: FileOutput, fmt: FileFormat) -> None:
    job = run.job
    if job is None:  # a managed run has one
        raise RuntimeError(f"{output.call}: the run has no job")
    files = open_filesystem(output.path)
    name = run.take_output(output.ctx, files.canonical(output.path))
    if fmt.is_glue_parquet:
        check_types(job, name, rows, output.call)
    # Whether there are rows is known when they are written: nobody scans them before.
    written, options = _written(rows, output, fmt)
    writer = job.write(written, name, when_empty="rows").format(fmt.name).options(**options)
    if output.partition_by:
        writer = writer.partitionBy(*output.partition_by)
    if output.update is not None:
        definition = output.update.definition(rows, output.partition_by, fmt)
        writer = writer.in_catalog(str(output.update.table), definition)
    writer.save(output.path)


def _write_now(run: GlueRun, rows: DataFrame, output: FileOutput, fmt: FileFormat) -> None:
    if run.settings.writes == "direct" and run.is_begun:
        run.warn_once(
            "spark.bookmarks.glue.writes=direct: what is written is visible before job.commit(), and is written again "
            "by the next run if this one does not commit (at least once)"
        )
    files = open_filesystem(output.path)
    count = RowCount()
    written, given = _written(rows, output, fmt)
    # The values are those that a staged write writes.
    options = RoundTrip.of(fmt.name, rows.schema, output.partition_by, given).writing
    writer = count.of(written).write.mode("append").format(fmt.name).options(**options)
    if output.partition_by:
        writer = writer.partitionBy(*output.partition_by)
    folder = files.canonical(output.path)
    writer.save(files.uri(folder))
    if not count.rows():  # also where Spark tells no number, since it has proved that there is no row
        _remove_empty(run, rows, folder, output, fmt, options)
        return
    if output.update is not None:
        output.update.register_now(run, output.path, output.update.definition(rows, output.partition_by, fmt))


def _remove_empty(
    run: GlueRun, rows: DataFrame, folder: str, output: FileOutput, fmt: FileFormat, options: Mapping[str, str]
) -> None:
    """Remove the file without rows that Spark has written for a frame without rows: Glue writes none.

    Where it can't be told from other files, or not be removed, it stays: to a reader it is no row.
    """
    log.info("%s: the frame has no rows, so nothing is written to %s", output.call, output.path)
    if output.partition_by:  # then Spark writes no file
        return
    territory = Territory("-", "-" if run.job_name is None else run.job_name)
    try:
        empty = find_empty_file(run.spark, folder, fmt.name, options, rows.schema)
        if empty is None:
            log.info("%s: no file in %s is known to be without rows, so none is removed", output.call, output.path)
        else:
            FileChanges.of_purge(PurgeBounds(territory, output.call, folder), [empty]).delete()
    except (OSError, SourceError, OutOfBoundsError) as error:
        log.info("%s: a file without rows may stay in %s: %s", output.call, output.path, error)
