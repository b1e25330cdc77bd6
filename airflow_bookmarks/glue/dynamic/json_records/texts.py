"""Texts of JSON, each with the shape of its record: where both ways of reading them begin.

    text --parse--> record and shape, or what is bad; kept on disk --group--> shapes, and how many records have each

What a shape tells, and what it leaves open, is told in `shapes`.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from pyspark.sql import functions as F

from airflow_bookmarks.glue.dynamic.choice import column_of
from airflow_bookmarks.glue.dynamic.json_records.shapes import Answer, ShapeMerge, shape_of
from airflow_bookmarks.glue.dynamic.types import StructType

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pyspark.sql import Column, DataFrame, Row, SparkSession

    from airflow_bookmarks.glue.dynamic.choice import Steps
    from airflow_bookmarks.glue.dynamic.types import DataType

VALUE, PARSED = "value", "glue_parsed"
# What becomes of a text: it is a record of a shape, or it is no JSON, or more than one record; whether a number in it
# may be long.
COLUMNS = RECORD, SHAPE, BAD, LONG = "glue_record", "glue_shape", "glue_bad", "glue_long"
# Spark's parser ends where a value ends: what stands behind it, such as a second record, it passes over. So it is given
# the record as a field, behind which it takes the end or another field, and nothing else. Only what follows one closing
# brace too many is still passed over.
FIELD, BEFORE, BEHIND = "_", '{"_":', "}"
# Behind a record, where an array is written over lines; an error record shows it.
_COMMA = r"[,\s]+$"

# A number of ten digits or more: only then may a whole number need eight bytes. A text may hold one, too.
_TEN_DIGITS = r"[-:,\[ \t\r\n][0-9]{10}"
# Records of so many shapes at most are merged here, which tells more than Spark's aggregate; a shape is some hundred
# characters, and a sparse record has many.
_MOST_SHAPES = 1000
# A fraction, also one that is whole, such as 1.0, see `shapes`. Its digits make shapes of their own, and say nothing; a
# quoted name may look like one.
_FRACTION, _ANY_FRACTION = r"DECIMAL\((?:1?[0-9],[1-9][0-9]?|(?:[1-9]|1[0-8]),0)\)", "DECIMAL(1,1)"
_CASE = "spark.sql.caseSensitive"
_DUPLICATE_KEYS = "spark.sql.variant.allowDuplicateKeys"


class Split(Protocol):
    """How texts of several records are told, and split."""

    def may_be_one(self, value: Column) -> Column:
        """Whether a text may be one record: another is not parsed before it is split."""

    def records_of(self, text: DataFrame) -> DataFrame:
        """Return a row for each record in the texts of the column `value`; other columns go along."""


def shaped_texts(text: DataFrame, others: Sequence[Column], split: Split | None) -> DataFrame:
    """Return the text of each record, as bytes, and its shape; beside them what is no record, or more than one.

    Args:
        text: texts in the column `value`.
        others: columns that go along.
        split: tells which texts are not worth parsing; without it all are.
    """
    value, record, variant, shape = column_of(VALUE), column_of(RECORD), column_of(PARSED), column_of(SHAPE)
    is_written = value.startswith("{") | (F.trim(value) != "")
    may_be_one = is_written & split.may_be_one(value) if split else is_written
    whole = F.when(value.endswith("}"), value).otherwise(F.regexp_replace(value, _COMMA, ""))
    cut = text.select(F.when(may_be_one, whole).alias(RECORD), value, *others)
    parsed = with_variants(cut, record, value, *others)
    is_bad = variant.isNull() & (F.trim(value) != "")
    shaped = parsed.select(
        # As bytes: among texts that are kept, Spark looks for those that come twice, which takes longer than it saves.
        F.when(variant.isNotNull(), record).cast("binary").alias(RECORD),
        F.schema_of_variant(variant).alias(SHAPE),
        F.when(is_bad, value).alias(BAD),
        value.rlike(_TEN_DIGITS).alias(LONG),
        *others,
    )
    plain = F.when(shape.contains("`"), shape).otherwise(F.regexp_replace(shape, _FRACTION, _ANY_FRACTION))
    return shaped.select(record, plain.alias(SHAPE), column_of(BAD), column_of(LONG), *others)


def others_of(texts: DataFrame) -> list[str]:
    """Return the columns that go along with texts."""
    return [column for column in texts.columns if column not in COLUMNS]


def with_variants(rows: DataFrame, *others: Column) -> DataFrame:
    """Return a variant of each row that has its record as its one field, null for what is none, and other columns."""
    variant = F.try_parse_json(F.concat(F.lit(BEFORE), column_of(RECORD).cast("string"), F.lit(BEHIND)))
    # A key may come twice in an object: the expression that parses keeps what the conf says where it is made.
    with _conf(rows.sparkSession, _DUPLICATE_KEYS):
        return rows.select(variant.alias(PARSED), *others)


@contextmanager
def _conf(spark: SparkSession, key: str) -> Iterator[None]:
    """Let a setting be true for what is made, or asked, in the block."""
    before = spark.conf.get(key, None)
    spark.conf.set(key, "true")
    try:
        yield
    finally:
        if before is None:
            spark.conf.unset(key)
        else:
            spark.conf.set(key, before)


def rows_of(asked: DataFrame) -> list[Row]:
    """Return what Spark says of shapes; without regard to case it takes `Id` and `id` of two objects for one key."""
    with _conf(asked.sparkSession, _CASE):
        return asked.collect()


@dataclass(frozen=True)
class Looked:
    """What a look at all records has shown.

    Args:
        shape: the shape of those that are objects.
        answers: what is known already of places that the shape leaves open.
        has_long: whether a whole number may need eight bytes; of which places is open.
        bad: how many texts are no JSON, or more than one record.
        others: how many were no objects.
        shapes: the shape of each record that is an object, by its text.
    """

    shape: DataType
    answers: Mapping[Steps, Answer]
    has_long: bool
    bad: int
    others: int
    shapes: Mapping[str, StructType] = field(default_factory=dict)


def shape_groups(texts: DataFrame) -> list[Row] | None:
    """Return the shapes of texts, and how many have each: few as a rule; None if there are many.

    A row's shape is null for texts that are no record.
    """
    counts = [F.count(column_of(name)).alias(name) for name in (RECORD, BAD)]
    found = texts.groupBy(SHAPE).agg(F.max(LONG).alias(LONG), *counts)
    groups = rows_of(found.limit(_MOST_SHAPES + 1))
    return None if len(groups) > _MOST_SHAPES else groups


def looked_at(groups: Sequence[Row]) -> Looked:
    """Return what records hold by their shapes."""
    shapes, objects, merge = {}, [], ShapeMerge()
    for group in groups:
        record = record_in(group[SHAPE])
        if record is not None:
            objects.append(group)
            shapes[group[SHAPE]] = record
    shape = merge.merged(shapes.values())
    bad, read = (sum(group[name] for group in groups) for name in (BAD, RECORD))
    return Looked(
        shape=shape,
        answers=merge.answers,
        has_long=any(group[LONG] for group in objects),
        bad=bad,
        others=read - sum(group[RECORD] for group in objects),
        shapes=shapes,
    )


def record_in(shape: str | None) -> StructType | None:
    """Return the shape of the record in what was parsed; None if there is no object, or more than one value."""
    parsed = None if shape is None else shape_of(shape)
    held = [part.dataType for part in parsed] if isinstance(parsed, StructType) else []
    return held[0] if len(held) == 1 and isinstance(held[0], StructType) else None
