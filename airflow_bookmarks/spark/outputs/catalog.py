"""Stage an output of files for a Hive-style table of Spark's catalog."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_bookmarks.sinks.files.catalog import SPARK, CatalogTable
from airflow_bookmarks.spark.outputs.files import stage_files
from airflow_bookmarks.spark.sinks.catalog_table import columns_by_name, columns_by_place, existing, made

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pyspark.sql import DataFrame

    from airflow_bookmarks.spark.outputs.draft import OutputDraft
    from airflow_bookmarks.spark.tables.catalog import HiveStyleTable


def stage_by_name(draft: OutputDraft, name: str) -> None:
    """Stage the frame for a table whose columns it has by name; make the table if need be.

    Raises:
        OptionError: what is asked can't be done with such a table.
    """
    table = existing(draft.what, draft.job.spark, name)
    if table is None:
        table = made(draft.what, draft.frame, name, draft.format, draft.partition_by)
    _check_format(draft, name, table)
    if _folded(draft.partition_by) in ((), _folded(table.partitions)):
        draft.partition_by = table.partitions  # in its case: a folder M=1 would lie beside m=1, and not replace it
    _stage_into(draft, table, columns_by_name)


def stage_by_place(draft: OutputDraft, name: str) -> None:
    """Stage the frame for a table that is there, whose columns it has by place.

    Raises:
        OptionError: there is none, or what is asked can't be done with it.
    """
    if draft.partition_by:
        raise draft.refused("insertInto has the partitions of its table, and partitionBy has no effect")
    table = existing(draft.what, draft.job.spark, name)
    if table is None:
        raise draft.refused(f"there is no table {name}; make it, or use saveAsTable")
    _check_format(draft, name, table)
    draft.partition_by = table.partitions
    _stage_into(draft, table, columns_by_place)


def _folded(names: Sequence[str]) -> tuple[str, ...]:
    return tuple(name.lower() for name in names)


def _check_format(draft: OutputDraft, name: str, table: HiveStyleTable) -> None:
    if draft.is_format_given and draft.format != table.format:
        raise draft.refused(f"format {draft.format!r}, and the table {name} is of {table.format}")


def _stage_into(
    draft: OutputDraft, table: HiveStyleTable, aligned: Callable[[str, DataFrame, HiveStyleTable], DataFrame]
) -> None:
    if draft.catalog_table is not None:
        raise draft.refused("in_catalog(...) is for .save(path); saveAsTable and insertInto name their table")
    draft.frame = aligned(draft.what, draft.frame, table)
    draft.format = table.format
    draft.catalog_table = CatalogTable(SPARK, table.name)
    stage_files(draft, table.folder)
