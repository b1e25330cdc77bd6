"""Read files of CSV each by its own header: `infer_schema="each"`. What a file lacks is null in its rows."""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING

import numpy as np
from pyspark.sql.types import StringType, StructField, StructType

from airflow_bookmarks.spark.readers.head import HEADS_AT_ONCE, by_head, first_line, first_lines, heads_of

if TYPE_CHECKING:
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
    """Return as many columns of text as the longest row at the heads of the files has, by the names that Spark gives.

    None where all rows there are of one length, or compressed by what only Spark reads: then Spark finds the columns.
    """
    paths, lengths = planned.paths, set[int]()
    for start in range(0, len(paths), HEADS_AT_ONCE):
        for head in heads_of(files, paths[start : start + HEADS_AT_ONCE], first_lines):
            lengths |= _lengths_in((head or b"").decode(errors="replace"), fmt)
    if len(lengths) < 2:
        return None
    return StructType([StructField(f"_c{at}", StringType()) for at in range(max(lengths))])


def _lengths_in(text: str, fmt: Format) -> set[int]:
    """Return how many values the rows of a text have."""
    separator, quote = fmt.option("sep") or ",", fmt.option("quote")
    if len(separator) > 1 or quote == "":
        return {len(line.split(separator)) for line in text.splitlines() if line.strip()}
    rows = csv.reader(io.StringIO(text, newline=""), delimiter=separator, quotechar=(quote or '"')[0])
    return {len(row) for row in rows if row}
