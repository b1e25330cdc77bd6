"""JSON whose records differ in types: read once, as a DataFrame with choices.

    text --parse--> records with their shapes, kept on disk --group--> shapes
                            |-- their shapes tell all types: Spark's parser reads them --------------> columns
                            `-- something is open: variants, kept on disk, and taken apart ----------> columns

PySpark 3.5 has no variants: there Python finds the types.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from airflow_bookmarks.core.text.count import counted
from airflow_bookmarks.glue.dynamic.choice import column_of
from airflow_bookmarks.glue.dynamic.error_records import ErrorRecords, ErrorStage, RecordFailure
from airflow_bookmarks.glue.dynamic.json_records.parsed_records import LONGEST_TEXT, json_by_records, without_taken
from airflow_bookmarks.glue.dynamic.json_records.texts import (
    BAD,
    SHAPE,
    VALUE,
    looked_at,
    others_of,
    shape_groups,
    shaped_texts,
)
from airflow_bookmarks.glue.dynamic.json_records.typed_texts import frame_of_texts, told_types
from airflow_bookmarks.glue.dynamic.json_records.variants import (
    frame_of_variants,
    looked_at_variants,
    objects_alone,
    types_of,
    variants_in,
)
from airflow_bookmarks.glue.dynamic.records import check_cases, keep
from airflow_bookmarks.glue.errors import ERROR_RECORDS
from airflow_bookmarks.spark.features import has_variants

if TYPE_CHECKING:
    from pyspark import RDD
    from pyspark.sql import DataFrame, Row

    from airflow_bookmarks.glue.dynamic.json_records.texts import Looked, Split
    from airflow_bookmarks.glue.run import GlueRun


@dataclass(frozen=True)
class JsonRows:
    """What a text of JSON has held.

    Args:
        frame: its records in DataFrame form, with choices; pass it to `DynamicFrame.of`.
        errors: what could not be read; pass it on as well.
    """

    frame: DataFrame
    errors: ErrorRecords


def frame_of_json(text: DataFrame, *, run: GlueRun, name: str = "json", split: Split | None = None) -> JsonRows:
    """Return the records that a text of JSON holds; the text is read once, and its parsed form kept until the run ends.

    Whole numbers are `int`, or `long` where one needs it, and fractions `double`; a column that holds both, or values
    of other types side by side, is a choice, also in structs and arrays. A key that comes twice has its last value;
    where its values are of different types, Spark may fail at it when the frame is read.

    Args:
        text: rows of one JSON object each, in the column `value`; other columns go along, after those of the records,
            in place of fields with their names. A comma may end a row, as in an array over lines. A row that holds
            something else, or more, counts as an error; an empty one is skipped.
        run: the current run.
        name: the transformation context, for errors.
        split: splits rows that hold several records; without it none does.

    Raises:
        NestingError: a record nests too deep.
        FieldCaseError: two fields differ only in case.
    """
    if not has_variants():
        return _by_records(text, run, name, split)
    others = [column_of(column) for column in text.columns if column != VALUE]
    texts = shaped_texts(text, others, split)
    keep(texts, run)
    groups = shape_groups(texts)
    if split and _has_bad(texts, groups):
        bad = texts.where(column_of(BAD).isNotNull()).select(column_of(BAD).alias(VALUE), *others)
        rest = shaped_texts(split.records_of(bad), others, None)
        keep(rest, run)
        more = shape_groups(rest)
        texts = texts.where(column_of(BAD).isNull()).union(rest)
        groups = None if groups is None or more is None else [g for g in groups if g[SHAPE] is not None] + more
    if _has_bad(texts, groups) and _has_longer(texts, run, name):
        return _by_records(text, run, name, split)
    looked = None if groups is None else looked_at(groups)
    by_shapes = None if looked is None else _by_shapes(texts, looked, run, name)
    return by_shapes or _by_variants(texts, looked, run, name)


def _by_shapes(texts: DataFrame, looked: Looked, run: GlueRun, name: str) -> JsonRows | None:
    """Return the records by the types that their shapes tell; None if they don't tell all."""
    types = None if looked.others else told_types(texts, looked, run, name)
    if types is None:
        return None
    frame = frame_of_texts(texts, types, looked, [column_of(other) for other in others_of(texts)])
    return JsonRows(frame, _errors(texts, run, name, looked.bad))


def _by_variants(texts: DataFrame, looked: Looked | None, run: GlueRun, name: str) -> JsonRows:
    names = others_of(texts)
    others = [column_of(other) for other in names]
    parsed = variants_in(texts, others)
    keep(parsed, run)
    if looked is None:
        looked = looked_at_variants(parsed)
    rows = objects_alone(parsed) if looked.others else parsed
    types = without_taken(types_of(rows, looked), names, run, name)
    check_cases(types, texts.sparkSession, name)
    return JsonRows(frame_of_variants(rows, types, others), _errors(rows, run, name, looked.bad + looked.others))


def _has_bad(texts: DataFrame, groups: list[Row] | None) -> bool:
    """Whether a text is no record."""
    if groups is None:
        return not texts.where(column_of(BAD).isNotNull()).isEmpty()
    return any(group[BAD] for group in groups)


def _by_records(text: DataFrame, run: GlueRun, name: str, split: Split | None) -> JsonRows:
    frame, errors = json_by_records(split.records_of(text) if split else text, run=run, name=name)
    return JsonRows(frame, errors)


def _has_longer(texts: DataFrame, run: GlueRun, name: str) -> bool:
    """Whether texts may be no JSON for Spark's parser because of their length; a warning tells how many."""
    found = texts.where(F.length(column_of(BAD)) > LONGEST_TEXT).count()
    if found:
        run.warn_once(
            f"{name}: {counted(found, 'record')} of JSON may hold a text of more than {LONGEST_TEXT:,} characters, "
            "which Spark's parser doesn't take: Python reads all records of this frame, which takes longer"
        )
    return found > 0


def _errors(rows: DataFrame, run: GlueRun, name: str, bad: int) -> ErrorRecords:
    if not bad:
        return ErrorRecords()
    run.count(ERROR_RECORDS, bad, ctx=name)

    def failures() -> RDD[RecordFailure]:
        texts = rows.where(column_of(BAD).isNotNull()).select(BAD)
        return texts.rdd.map(lambda row: RecordFailure("not a JSON object", source=row[0]))

    return ErrorRecords((ErrorStage(name, "", lambda: bad, failures),))
