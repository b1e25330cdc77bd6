"""Rows of CSV that any reader takes for what they are: of one column, and without quotes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from airflow_bookmarks.core.errors import OptionError
from airflow_bookmarks.glue.dynamic.choice import column_of
from airflow_bookmarks.spark.sinks.round_trip import RoundTrip

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import Column, DataFrame

_QUOTE_OF_NONE = "\0"  # what Spark quotes with where nothing is to be quoted
# Spark quotes a first value that begins with the sign of a comment, "#" unless told. No value has this one in it.
_NO_SIGN = "\r"


def csv_rows(
    rows: DataFrame, given: Mapping[str, str], partition_by: Sequence[str], call: str
) -> tuple[DataFrame, Mapping[str, str]]:
    """Return rows as they are written to CSV, and the options of Spark's writer.

    In a file of one column NULL is written as empty text, a pair of quotes: Spark writes no row for an empty line, and
    most readers skip it. Without quotes a row that a reader would take for another one fails the write.

    Args:
        rows: what is to be written.
        given: the options that the script asks for.
        partition_by: the columns that are not in the files.
        call: the call, for messages.

    Raises:
        OptionError: the name of a column can't be written without quotes.
    """
    partitions = {name.lower() for name in partition_by}
    names = [name for name in rows.columns if name.lower() not in partitions]
    if given["quote"]:
        return rows, {**given, "nullValue": 2 * given["quote"]} if len(names) == 1 else given
    options = {**given, "emptyValue": "", "comment": _NO_SIGN}
    signs = (given["sep"], "\n", "\r", _QUOTE_OF_NONE)
    if given["header"] == "true" and (broken := [name for name in names if any(sign in name for sign in signs)]):
        raise OptionError(
            f"{call}: quoteChar=-1, and the name of the column {', '.join(map(repr, broken))} has a separator or a "
            "line break in it. Nothing was written or changed. Rename it, or leave quoteChar out."
        )
    if not names:
        return rows, options
    writing = RoundTrip.of("csv", rows.schema, partition_by, options).writing
    first = _checked(names, writing, call).alias(names[0])
    return rows.select(*[first if name == names[0] else column_of(name) for name in rows.columns]), options


def _checked(names: Sequence[str], writing: Mapping[str, str], call: str) -> Column:
    """Return the first column, which fails the write at a row that can't be written without quotes."""
    first = column_of(names[0])
    named = [F.when(_is_quoted([name], writing), F.lit(repr(name))) for name in names]
    broken = F.concat(
        F.lit(f"{call}: quoteChar=-1, and a row has a separator, a line break or a null character in the column "),
        F.concat_ws(", ", *named),
        F.lit(": without quotes it would be read as other rows. Leave quoteChar out, or replace the character."),
    )
    found = F.when(_is_quoted(names, writing), F.raise_error(broken))
    if len(names) == 1:
        nothing = f"{call}: quoteChar=-1, and the only column {names[0]!r} is null or empty in a row: without quotes "
        advice = "it is an empty line, which readers skip. Leave quoteChar out, or such rows."
        is_nothing = F.coalesce(first.cast("string"), F.lit("")) == ""
        found = found.when(is_nothing, F.raise_error(F.lit(nothing + advice)))
    return found.otherwise(first)


def _is_quoted(names: Sequence[str], writing: Mapping[str, str]) -> Column:
    """Return whether Spark's writer quotes any of these values, which it does where a reader would split them."""
    # The last value is there because Spark has no text for a line that is empty.
    line = F.to_csv(F.struct(*[column_of(name) for name in names], F.lit("end").alias("end")), dict(writing))
    return line.contains(_QUOTE_OF_NONE)
