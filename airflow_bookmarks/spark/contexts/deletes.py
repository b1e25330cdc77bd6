"""Take rows that are flagged as deleted out of an increment: `job.read(ctx, deleted_when="is_deleted")`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pyspark.errors import AnalysisException, ParseException
from pyspark.sql.functions import coalesce, expr, lit

from airflow_bookmarks.core.errors import OptionError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

# What PySpark says of a frame without this attribute, from version 4 on and before.
_NO_DELETES = re.compile(r"Attribute `deletes` is not supported|'DataFrame' object has no attribute 'deletes'")


def without_deletes(frame: DataFrame, deleted_when: str, label: str) -> DataFrame:
    """Return the rows of an increment that are not flagged; those that are lie in its attribute `deletes`.

    A row for which the condition is NULL is not flagged. Each row is in one of the two.

    Args:
        deleted_when: a condition in Spark's SQL.

    Raises:
        OptionError: it is no condition on the columns of the frame.
    """
    try:
        flag = coalesce(expr(deleted_when), lit(False))
        deletes = frame.where(flag)
        live = frame.where(~flag)
        _analysed(frame.select(~flag))
    except (AnalysisException, ParseException) as error:
        raise OptionError(
            f"{label}: deleted_when={deleted_when!r} is no condition on the columns {', '.join(frame.columns)} "
            f"({_first_line(error)}). Nothing is committed. Write it as Spark's SQL: 'is_deleted', \"status = 'gone'\"."
        ) from error
    live.deletes = deletes  # type: ignore[attr-defined]  # a second result, which a frame has no place for
    return live


def missing_deletes(error: BaseException) -> str | None:
    """Return which frames have the attribute `deletes`, if an error says that one has not; None: it is another."""
    if not isinstance(error, AttributeError) or _NO_DELETES.search(str(error)) is None:
        return None
    return (
        "A frame has .deletes as job.read(ctx, deleted_when=...) or .jdbc(..., compare='snapshot') returns it. What is "
        "made of it by .where(...) or others has none: take gone = frame.deletes before. Nothing was committed."
    )


def _analysed(frame: DataFrame) -> None:
    """Let Spark look at a frame now: on Spark Connect it would otherwise do so at the first action alone.

    It has to be one whose columns Spark does not know: to a `where` the client gives those of its parent, unasked.
    """
    _ = frame.schema


def _first_line(error: Exception) -> str:
    return str(error).strip().splitlines()[0]
