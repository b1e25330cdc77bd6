"""Take rows that are flagged as deleted out of an increment: `job.read(ctx, deleted_when="is_deleted")`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.errors import AnalysisException, ParseException
from pyspark.sql.functions import coalesce, expr, lit

from airflow_bookmarks.core.errors import OptionError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


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
        _analysed(live)
    except (AnalysisException, ParseException) as error:
        raise OptionError(
            f"{label}: deleted_when={deleted_when!r} is no condition on the columns {', '.join(frame.columns)} "
            f"({_first_line(error)}). Nothing is committed. Write it as Spark's SQL: 'is_deleted', \"status = 'gone'\"."
        ) from error
    live.deletes = deletes  # type: ignore[attr-defined]  # a second result, which a frame has no place for
    return live


def _analysed(frame: DataFrame) -> None:
    """Let Spark look at a frame now: on Spark Connect it would otherwise do so at the first action alone."""
    _ = frame.schema


def _first_line(error: Exception) -> str:
    return str(error).strip().splitlines()[0]
