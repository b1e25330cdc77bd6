"""The delete set of an upsert: rows of a second frame, flagged, in one stage table with those of the first."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from airflow_bookmarks.core.database.upsert import DELETED
from airflow_bookmarks.core.errors import OptionError
from airflow_bookmarks.spark.features import is_connect

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from airflow_bookmarks.core.database.upsert import Upsert

_LEFT = "Nothing was written or committed."


def with_deletes(frame: DataFrame, deletes: DataFrame, upsert: Upsert, what: str) -> DataFrame:
    """Return the rows of both frames; 1 in the column `_bm_deleted` tells those of the delete set.

    Of the delete set keys and `order_by` are taken, by their names; its other columns don't matter.

    Args:
        frame: the rows to bring.
        deletes: rows with the keys to delete.
        upsert: which columns these are.
        what: names job and output.

    Raises:
        OptionError: `deletes` lacks one of these columns, or has it by another type.
    """
    needed = tuple(dict.fromkeys((*upsert.keys, *upsert.order_by)))
    missing = [name for name in needed if name not in deletes.columns]
    if missing:
        raise OptionError(
            f"{what}: upsert(..., deletes=...) needs the columns {', '.join(map(repr, needed))} in the delete set, and "
            f"it has no {', '.join(map(repr, missing))}; it has {', '.join(map(repr, deletes.columns))}. {_LEFT} Add "
            "them (withColumn), or leave out order_by if no key is both written and deleted."
        )
    types = {field.name: field.dataType for field in frame.schema.fields}
    given = {field.name: field.dataType for field in deletes.schema.fields}
    for name in needed:
        if name in types and types[name] != given[name]:
            raise OptionError(
                f"{what}: column {name!r} is {types[name].simpleString()} in the frame and "
                f"{given[name].simpleString()} in the delete set, so their values may not compare as meant. {_LEFT} "
                "Cast one of them."
            )

    def column_of(name: str) -> Column:
        return F.col(_quoted(name)) if name in needed else F.lit(None).cast(types[name]).alias(name)

    rows = frame.select(*(F.col(_quoted(name)) for name in frame.columns), F.lit(0).alias(DELETED))
    gone = deletes.select(*(column_of(name) for name in frame.columns), F.lit(1).alias(DELETED))
    return rows.union(_as_view(gone) if is_connect(frame.sparkSession) else gone)


def _as_view(frame: DataFrame) -> DataFrame:
    """Return a frame by a view of it, which the session keeps.

    Both sides of the union may stem from one frame that is observed, and the Spark Connect client of PySpark 4.1 fails
    where an observation comes twice: it knows nothing of one behind a view.
    """
    name = f"bookmark_deletes_{uuid.uuid4().hex}"
    frame.createTempView(name)
    return frame.sparkSession.table(name)


def _quoted(name: str) -> str:
    doubled = name.replace("`", "``")
    return f"`{doubled}`"
