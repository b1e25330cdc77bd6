"""Partitions that folders tell of (`year=2024/month=01`), where a script gives a predicate and no catalog lists any."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_bookmarks.core.errors import OptionError
from airflow_bookmarks.core.files.listed_partitions import ListedPartitions
from airflow_bookmarks.core.selection.partition import NULL_VALUE, partition_values
from airflow_bookmarks.files.opener import open_one_filesystem
from airflow_bookmarks.glue.inputs.partitions import chosen

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import SparkSession

    from airflow_bookmarks.core.files.listed_partitions import Values
    from airflow_bookmarks.glue.inputs.options import FileWords


def admitted_folders(
    spark: SparkSession, call: str, paths: Sequence[str], which: FileWords, predicate: str
) -> tuple[list[str], ListedPartitions]:
    """Return the folder that is loaded, and the partitions in it that a predicate admits; their values are text.

    Raises:
        OptionError: several paths; folders that are no partitions; the predicate can't be evaluated.
    """
    if len(paths) > 1:
        raise OptionError(
            f"{call}: push_down_predicate={predicate!r} with {len(paths)} paths. Nothing was read or changed. Give the "
            "one folder that has the partitions."
        )
    files = open_one_filesystem(paths)
    root = files.canonical(paths[0])
    folders = sorted(files.list(root, recursive=which.recursive).files.in_folders().in_use())
    values = {folder: partition_values(f"{folder}/file", root) for folder in folders}
    names = next(iter(values.values()), {}).keys()
    if any(found.keys() != names for found in values.values()) or (folders and not names):
        raise OptionError(
            f"{call}: push_down_predicate={predicate!r}, and the folders in {root!r} do not tell the same partition "
            "columns (name=value). Nothing was read or changed. Filter the frame, or read a table of the catalog."
        )
    types = dict.fromkeys(names, "string")
    texts: list[Values] = [
        tuple(None if value == NULL_VALUE else value for value in found.values()) for found in values.values()
    ]
    rows = chosen(spark, call, types, texts, predicate)
    return [root], ListedPartitions(types, {folders[row]: texts[row] for row in rows})
