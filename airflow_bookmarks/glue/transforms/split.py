"""`split_rows`: rows for which comparisons hold, and all others."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from functools import reduce
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F

from airflow_bookmarks.core.errors import OptionError
from airflow_bookmarks.glue.dynamic.cast import cast_value
from airflow_bookmarks.glue.dynamic.fields.path import steps_of
from airflow_bookmarks.glue.dynamic.types import ChoiceType, StringType
from airflow_bookmarks.glue.transforms.typed_column import TypedColumn, nothing_if_empty, value_at

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from airflow_bookmarks.glue.dynamic.base import FrameBase

_COMPARATORS: Mapping[str, Callable[[Any, Any], Any]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "=": operator.eq,
    "==": operator.eq,
    "!=": operator.ne,
    "<>": operator.ne,
}


def divided(frame: FrameBase, comparison_dict: Mapping[str, Mapping[str, Any]]) -> tuple[DataFrame, DataFrame]:
    """Return the rows for which all comparisons hold, and the others: those with a null that is compared, too.

    Args:
        frame: the frame.
        comparison_dict: comparators and values by path: `{"age": {">": 10, "<": 20}}`.

    Raises:
        TypeError: it has another form.
        OptionError: no comparison, an unknown comparator, or a path that the frame lacks.
    """
    if not isinstance(comparison_dict, Mapping) or not all(isinstance(v, Mapping) for v in comparison_dict.values()):
        raise TypeError(
            f'split_rows: expected {{"column": {{">": value}}}} and got {comparison_dict!r}. '
            "Nothing was read or changed."
        )
    rows = frame.typed()
    conditions = [
        _condition(frame, rows, path, comparator, value)
        for path, comparisons in comparison_dict.items()
        for comparator, value in comparisons.items()
    ]
    if not conditions:
        raise OptionError("split_rows: there is no comparison. Nothing was read or changed.")
    holds = F.coalesce(reduce(operator.and_, conditions), F.lit(False))
    return rows.where(holds), rows.where(~holds)


def _condition(frame: FrameBase, rows: DataFrame, path: str, comparator: str, wanted: Any) -> Column:
    if comparator not in _COMPARATORS:
        raise OptionError(
            f"split_rows: unknown comparator {comparator!r}; there are {', '.join(_COMPARATORS)}. "
            "Nothing was read or changed."
        )
    found = value_at(rows.schema, steps_of(path), "split_rows") or nothing_if_empty(frame)
    if found is None:
        raise OptionError(
            f"split_rows: frame has no field {path!r}; it has {', '.join(rows.columns)}. Nothing was read or changed."
        )
    condition: Column = _COMPARATORS[comparator](_comparable(found, wanted), F.lit(wanted))
    return condition


def _comparable(value: TypedColumn, wanted: Any) -> Column:
    """Return a value as it compares with one of Python: numbers in text and in choices are numbers for a number."""
    if isinstance(value.type, (ChoiceType, StringType)):
        kind = "double" if isinstance(wanted, (int, float)) and not isinstance(wanted, bool) else "string"
        return cast_value(value.column, value.type, kind)
    return value.column
