"""What `glueparquet` holds to besides: a column keeps the type that the run before has written it with."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from pyspark.sql import types as spark_types

from airflow_bookmarks.core.errors import OptionError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from airflow_bookmarks.spark.job import BookmarkedJob


def check_types(job: BookmarkedJob, output: str, rows: DataFrame, call: str) -> None:
    """Make sure that no column has another type than the last run of the job has written it with.

    Raises:
        OptionError: one has. Nothing of the run is committed, as its files would not be readable with the others.
    """
    before = _written_before(job, output)
    if before is None:
        return
    known = {field.name.lower(): field.dataType for field in before.fields}
    changed = [
        f"{field.name!r} was {known[field.name.lower()].simpleString()} and is {field.dataType.simpleString()}"
        for field in rows.schema.fields
        if field.name.lower() in known and not _is_same(known[field.name.lower()], field.dataType)
    ]
    if changed:
        raise OptionError(
            f"{call}, output {output!r}: {'; '.join(changed)}. Files of both types have no common schema. Nothing was "
            "written or committed. Cast the column to its former type (resolveChoice, ApplyMapping), or write to "
            "another path."
        )


def _is_same(one: spark_types.DataType, other: spark_types.DataType) -> bool:
    """Whether two types are the same but for what may be null, and for what is said of their fields."""
    return one.simpleString().lower() == other.simpleString().lower()


def _written_before(job: BookmarkedJob, output: str) -> spark_types.StructType | None:
    """Return the columns that the last living run of the job has written an output with; None if none has."""
    store = job.store
    living = store.ancestry(job.name, store.head(job.name).epoch)
    for run in store.runs(job.name, reverse=True):
        entry = run.outputs.get(output)
        if entry is None or entry.schema is None or not run.state.is_committed or not living.has(run):
            continue
        text = store.blobs.get(entry.schema).decode()
        return spark_types.StructType.fromJson(json.loads(text)) if text else None
    return None
