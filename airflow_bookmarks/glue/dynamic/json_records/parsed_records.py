"""JSON without variants: Python finds the types, and parses records whose types differ.

So it is on PySpark 3.5, and where a text within a record is longer than Spark's parser takes.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F
from pyspark.sql import types as spark_types

from airflow_bookmarks.glue.dynamic.choice import column_of, has_choices, spark_schema
from airflow_bookmarks.glue.dynamic.error_records import ErrorRecords, ErrorStage, RecordFailure
from airflow_bookmarks.glue.dynamic.json_records.shapes import MOST_LEVELS, NestingError, sort_key
from airflow_bookmarks.glue.dynamic.records import SeenTypes, as_value, check_cases, keep
from airflow_bookmarks.glue.dynamic.types import ArrayType, ChoiceType, DataType, Field, StructType
from airflow_bookmarks.glue.errors import ERROR_RECORDS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pyspark import RDD
    from pyspark.sql import DataFrame, Row

    from airflow_bookmarks.glue.run import GlueRun

_VALUE, _PARSED = "value", "glue_parsed"
# Behind a record, where an array is written over lines.
_COMMA = ", \t\r\n"
# The most characters that Spark's parser takes of a text within JSON if nothing is said; of variants nothing can be.
LONGEST_TEXT = 20_000_000
ANY_LENGTH = {"maxStringLen": str(2**31 - 1)}


def json_by_records(text: DataFrame, *, run: GlueRun, name: str) -> tuple[DataFrame, ErrorRecords]:
    """Return the records that a text of JSON holds, and what could not be read. See `variants.frame_of_json`.

    Raises:
        NestingError: a record nests too deep.
        FieldCaseError: two fields differ only in case.
    """
    given = text.where(F.trim(column_of(_VALUE)) != "")
    keep(given, run)
    seen, bad = SeenTypes(), 0
    for types, failed, has_deep in given.select(_VALUE).rdd.mapPartitions(_seen_in).collect():
        if has_deep:
            raise NestingError
        seen, bad = seen.merge(types), bad + failed
    others = [field for field in text.schema.fields if field.name != _VALUE]
    schema = without_taken(_sorted_fields(seen.schema()), [other.name for other in others], run, name)
    check_cases(schema, text.sparkSession, name)
    wanted = spark_schema(schema)
    plain = text.sparkSession.createDataFrame([], wanted)
    if not has_choices(plain) and not bad:
        parsed = F.from_json(column_of(_VALUE), spark_types.StructType(wanted.fields), ANY_LENGTH).alias(_PARSED)
        rows = given.select(parsed, *[column_of(other.name) for other in others])
        columns = [column_of(_PARSED).getField(field.name).alias(field.name) for field in wanted.fields]
        return rows.select(*columns, *[column_of(other.name) for other in others]), ErrorRecords()

    def row_of(row: Row) -> Iterator[tuple[Any, ...]]:
        record = _record(row[_VALUE])
        if record is not None:
            yield (*as_value(record, schema), *[row[other.name] for other in others])

    made = given.rdd.flatMap(row_of)
    whole = spark_types.StructType([*wanted.fields, *others])
    frame = text.sparkSession.createDataFrame(made, whole, verifySchema=False)

    def failures() -> RDD[RecordFailure]:
        texts = given.select(_VALUE).rdd.map(lambda row: row[0]).filter(lambda value: _record(value) is None)
        return texts.map(lambda value: RecordFailure("not a JSON object", source=value))

    if not bad:
        return frame, ErrorRecords()
    run.count(ERROR_RECORDS, bad, ctx=name)
    return frame, ErrorRecords((ErrorStage(name, "", lambda: bad, failures),))


def without_taken(schema: StructType, others: Iterable[str], run: GlueRun, name: str) -> StructType:
    """Return a schema without the fields that have the name of another column, and warn of them.

    The value of that column is taken, as Spark takes that of a partition in place of a field of a file.

    Args:
        schema: the types of the records.
        others: the columns that go along with the records.
        run: the current run.
        name: the transformation context, for the warning.
    """
    tells_case = run.spark.conf.get("spark.sql.caseSensitive") == "true"
    columns = {other if tells_case else other.lower() for other in others}
    taken = [field.name for field in schema if (field.name if tells_case else field.name.lower()) in columns]
    if taken:
        run.warn_once(
            f"{name}: the records have fields with the names of partitions, or of the column of file names: "
            f"{', '.join(taken)}. Those of the records are left out"
        )
    return StructType([field for field in schema if field.name not in taken])


def _sorted_fields(schema: StructType) -> StructType:
    """Return a schema whose structs have their fields sorted by name, as those of variants have."""
    return StructType([Field(f.name, _with_sorted_fields(f.dataType)) for f in sorted(schema, key=_by_name)])


def _by_name(field: Field) -> bytes:
    return sort_key(field.name)


def _with_sorted_fields(kind: DataType) -> DataType:
    if isinstance(kind, StructType):
        return _sorted_fields(kind)
    if isinstance(kind, ChoiceType):
        return ChoiceType([_with_sorted_fields(each) for each in kind.choices])
    return ArrayType(_with_sorted_fields(kind.elementType)) if isinstance(kind, ArrayType) else kind


def _seen_in(rows: Iterable[Row]) -> Iterator[tuple[SeenTypes, int, bool]]:
    """Return the types of records, how many texts are none, and whether one is too deep to be looked at."""
    seen, bad, has_deep = SeenTypes(), 0, False
    for row in rows:
        record = _record(row[0])
        if record is None:
            bad += 1
        elif _is_deep(row[0], record):
            has_deep = True
        else:
            seen.add(record)
    yield seen, bad, has_deep


def _is_deep(text: str, record: dict[str, Any]) -> bool:
    if text.count("{") + text.count("[") <= MOST_LEVELS:  # of nearly all records, without a look into them
        return False
    level: list[Any] = [record]
    for _ in range(MOST_LEVELS):
        parts = [part for each in level for part in (each.values() if isinstance(each, dict) else each)]
        level = [part for part in parts if isinstance(part, dict | list)]
    return bool(level)


def _record(text: str) -> dict[str, Any] | None:
    """Return the object that a text is; None if it is none, or so deep that no parser follows."""
    try:
        value = json.loads(text.rstrip(_COMMA))
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None
