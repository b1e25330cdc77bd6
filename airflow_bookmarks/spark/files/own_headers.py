"""Read files of CSV each by its own header: `infer_schema="each"`. What a file lacks is null in its rows."""

from __future__ import annotations

import csv
from typing import TYPE_CHECKING

import numpy as np
from pyspark.sql.types import StringType, StructField, StructType

from airflow_bookmarks.spark.readers.head import by_head, first_line, heads_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from airflow_bookmarks.core.selection.listing import Listing
    from airflow_bookmarks.files.filesystem import FileSystem
    from airflow_bookmarks.spark.readers.format import Format


def parts_of_one_header(files: FileSystem, planned: Listing) -> list[Listing]:
    """Return the files with content in parts of one first line each; one part where none has any."""
    with_content = planned.take(np.flatnonzero(planned.sizes > 0))
    if not len(with_content):
        return [planned]
    row_of = {path: row for row, path in enumerate(with_content.paths)}
    groups = by_head(files, with_content.paths, first_line)
    return [with_content.take(np.array([row_of[path] for path in group], np.intp)) for group in groups]


def columns_of_longest(files: FileSystem, planned: Listing, fmt: Format) -> StructType | None:
    """Return as many columns of text as the longest first line of the files has values, by the names that Spark gives.

    None where the files are of one length, or compressed by what only Spark reads: then Spark finds the columns.
    """
    lines = heads_of(files, planned.paths, first_line)
    lengths = [_values_in(line.decode(errors="replace"), fmt) for line in lines if line]
    if not lengths or len(set(lengths)) == 1:
        return None
    return StructType([StructField(f"_c{at}", StringType()) for at in range(max(lengths))])


def _values_in(line: str, fmt: Format) -> int:
    separator, quote = fmt.option("sep") or ",", fmt.option("quote")
    if len(separator) > 1:
        return len(line.split(separator))
    if quote == "":
        return len(line.split(separator))
    rows: Sequence[Sequence[str]] = list(csv.reader([line], delimiter=separator, quotechar=(quote or '"')[0]))
    return max((len(row) for row in rows), default=0)
