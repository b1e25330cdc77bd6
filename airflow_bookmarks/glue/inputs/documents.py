"""Split text into JSON records, in Spark: documents behind each other, arrays, and arrays within documents."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from airflow_bookmarks.glue.dynamic.json_records.parsed_records import LONGEST_TEXT

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import Column, DataFrame

VALUE = "value"

# Between two documents, where a text may hold the same: then an odd number of quotes stands before it.
_BETWEEN = r"(?<=[}\]])(?=\s*[{\[])"
_LOOKS_LIKE_TWO = r"[}\]]\s*+[{\[]"

_BEGINNING = 1_000  # characters of a document that Spark does not read for its length: enough to know it by


@dataclass(frozen=True)
class Documents:
    """How texts hold records.

    A line, or a file read whole, may hold several documents, as Firehose writes them, and a document may be an array of
    records.

    Args:
        path: fields of each document down to an array whose elements are the records; empty: documents are records,
            and one that is an array holds records.
    """

    path: Sequence[str] = ()

    def may_be_one(self, value: Column) -> Column:
        """Whether a text may be one record: most are, and need no splitting."""
        return F.lit(not self.path) & (value.startswith("{") | ~F.ltrim(value).startswith("["))

    def records_of(self, text: DataFrame) -> DataFrame:
        """Return a row for each record in the texts of the column `value`; other columns go along."""
        others = [F.col(f"`{name.replace('`', '``')}`") for name in text.columns if name != VALUE]
        written, value = text.where(F.length(F.trim(F.col(VALUE))) > 0), F.col(VALUE)
        fields = [name for name in self.path if name]
        found = F.flatten(F.transform(_documents(value), lambda document: _elements(document, fields)))
        return written.select(F.explode(found).alias(VALUE), *others)


def _documents(value: Column) -> Column:
    """Return the documents that stand behind each other in a text."""
    joined = F.aggregate(
        F.split(value, _BETWEEN),
        F.struct(F.array().cast("array<string>").alias("done"), F.lit("").alias("open")),
        lambda state, piece: F.when(
            _is_closed(F.concat(state["open"], piece)),
            F.struct(
                F.concat(state["done"], F.array(F.concat(state["open"], piece))).alias("done"), F.lit("").alias("open")
            ),
        ).otherwise(F.struct(state["done"].alias("done"), F.concat(state["open"], piece).alias("open"))),
        lambda state: F.when(state["open"] == "", state["done"]).otherwise(
            F.concat(state["done"], F.array(state["open"]))
        ),
    )
    return F.when(value.rlike(_LOOKS_LIKE_TWO), joined).otherwise(F.array(value))


def _elements(document: Column, fields: Sequence[str]) -> Column:
    """Return what a document holds at some fields: the elements of an array, one record, or nothing.

    What is no JSON is returned as it is, for whoever parses it to count it as an error.
    """
    held = F.trim(F.get_json_object(document, "$." + ".".join(fields)) if fields else document)
    elements = F.coalesce(F.from_json(held, "array<string>"), F.array(held))
    is_json = F.get_json_object(document, "$").isNotNull()
    broken = F.when(F.length(document) > LONGEST_TEXT, F.left(document, F.lit(_BEGINNING))).otherwise(document)
    return (
        F.when(held.isNull() & is_json, F.array().cast("array<string>"))
        .when(held.isNull(), F.array(broken))
        .when(held.startswith("["), elements)
        .otherwise(F.array(held))
    )


def _is_closed(piece: Column) -> Column:
    """Whether an even number of quotes stands in a text, without those that are escaped."""
    plain = F.regexp_replace(piece, r"\\.", "")
    return (F.length(plain) - F.length(F.regexp_replace(plain, '"', ""))) % 2 == 0
