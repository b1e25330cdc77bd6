"""Functions of a script over records: `map`, `mapPartitions` and `filter`."""

from __future__ import annotations

import datetime
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F
from pyspark.sql.types import BooleanType

from airflow_bookmarks.glue.dynamic.choice import column_of, glue_schema
from airflow_bookmarks.glue.dynamic.error_records import ErrorStage, RecordFailure
from airflow_bookmarks.glue.dynamic.records import DynamicRecord, from_value, records_of
from airflow_bookmarks.glue.transforms.failure_count import FailureCount, note_failure

if TYPE_CHECKING:
    from pyspark import RDD, Accumulator
    from pyspark.sql import DataFrame

    from airflow_bookmarks.glue.dynamic.base import FrameBase
    from airflow_bookmarks.glue.dynamic.records import Outcome
    from airflow_bookmarks.glue.transforms.failure_count import FailuresByTask

Record = dict[str, Any]

# What says of a filter that a record has not what it asks for: such a record is left out, as in Glue.
_FALSE = (KeyError, ValueError, TypeError)

_ATOMS = (bool, int, float, str, bytes, bytearray, Decimal, datetime.date)  # a datetime is a date


def check_function(f: object, call: str) -> None:
    """Make sure that what a script gives can be called.

    Raises:
        TypeError: it can't.
    """
    if not callable(f):
        raise TypeError(
            f"{call}: expected a function of a record and got {type(f).__name__}. Nothing was read or changed."
        )


def mapped_records(frame: FrameBase, f: Callable[[DynamicRecord], Any]) -> RDD[Outcome]:
    """Return what a function makes of each record.

    Args:
        frame: the frame.
        f: gets a record, a dict whose fields are attributes as well, and may change it; returns a dict, or None to
            drop the record. An exception, or another value, makes an error record.
    """
    check_function(f, "Map")
    return frame.records().map(lambda record: _made(f, record))


def _made(f: Callable[[DynamicRecord], Any], record: Record) -> Outcome:
    try:
        return _plain_record(f(DynamicRecord(record)))
    except Exception as error:  # noqa: BLE001  # of the script's own function: it is an error record, and counted
        return _failure(error, record)


def _plain_record(found: Any) -> Record | None:
    if found is None:
        return None
    if not isinstance(found, Mapping):
        raise TypeError(f"the function returned {type(found).__name__}; expected a dict, or None to drop the record")
    record: Record = plain(found)
    return record


def mapped_partitions(frame: FrameBase, f: Callable[[int, Iterable[DynamicRecord]], Iterable[Any]]) -> RDD[Outcome]:
    """Return what a function makes of the records of each partition.

    A function that fails has lost its place among the records, so the whole query fails.

    Args:
        frame: the frame.
        f: gets the number of the partition and its records; returns dicts.
    """

    def made(number: int, records: Iterable[Record]) -> Iterator[Outcome]:
        for found in f(number, map(DynamicRecord, records)):
            try:
                yield _plain_record(found)
            except TypeError as error:
                yield _failure(error, None)

    return frame.records().mapPartitionsWithIndex(made)


def plain(value: Any) -> Any:
    """Return a value of a script's function in plain dicts and lists, and numbers of numpy as those of Python.

    Raises:
        TypeError: it holds a value of a type that no column has.
    """
    if isinstance(value, Mapping):
        return {str(name): plain(held) for name, held in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [plain(each) for each in value]
    numpy = sys.modules.get(
        "numpy"
    )  # executors may lack it; where a function has returned one of its numbers, it is there
    if numpy is not None and isinstance(value, numpy.generic):
        return value.item()
    if value is None or isinstance(value, _ATOMS):
        return value
    raise TypeError(f"the function returned a record with a {type(value).__name__}, and no column has that type")


def kept_records(
    frame: FrameBase, f: Callable[[DynamicRecord], Any], ctx: str, info: str
) -> tuple[DataFrame, ErrorStage | None]:
    """Return the rows for which a function is true, with the types they have, and those on which it failed.

    A frame without columns, of which no record was read, stays as it is.

    Args:
        frame: the frame.
        f: gets a record. KeyError, ValueError and TypeError count as false; another exception makes an error record.
        ctx: the transformation context.
        info: text that the script wants to read with errors.
    """
    check_function(f, "Filter")
    rows = frame.typed()
    schema = glue_schema(rows.schema)

    counted = FailureCount(frame.run, ctx or frame.name)
    noted = counted.noted  # alone goes to the executors
    is_kept = F.udf(lambda row: _is_kept(f, from_value(row, schema), noted), BooleanType())
    verdict = is_kept(F.struct(*[column_of(name) for name in rows.columns]))
    failed = rows.where(verdict.isNull())

    def failure(record: Record) -> Iterator[RecordFailure]:
        found = _verdict(f, record)
        if isinstance(found, RecordFailure):
            yield found

    stage = ErrorStage(ctx or frame.name, info, lambda: counted.of(failed), lambda: records_of(failed).flatMap(failure))
    return rows.where(verdict), stage


def _is_kept(f: Callable[[DynamicRecord], Any], record: Record, noted: Accumulator[FailuresByTask]) -> bool | None:
    """Return whether a record is kept; None where the function fails, which is noted."""
    found = _verdict(f, record)
    if isinstance(found, bool):
        return found
    note_failure(noted)
    return None


def _verdict(f: Callable[[DynamicRecord], Any], record: Record) -> bool | RecordFailure:
    try:
        return bool(f(DynamicRecord(record)))
    except _FALSE:
        return False
    except Exception as error:  # noqa: BLE001  # of the script's own function: it is an error record, and counted
        return _failure(error, record)


def _failure(error: Exception, record: Record | None) -> RecordFailure:
    return RecordFailure(f"{type(error).__name__}: {error}", "".join(traceback.format_exception(error)), record)
