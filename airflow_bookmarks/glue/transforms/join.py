"""`join` and `mergeDynamicFrame`: two frames brought together where keys are equal."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import and_
from typing import TYPE_CHECKING

from airflow_bookmarks.core.errors import OptionError
from airflow_bookmarks.glue.dynamic.base import check_frame
from airflow_bookmarks.glue.dynamic.cast import cast_value
from airflow_bookmarks.glue.dynamic.choice import CHOICES, column_of
from airflow_bookmarks.glue.dynamic.fields.path import path_of, steps_of
from airflow_bookmarks.glue.dynamic.types import ChoiceType, DataType, StringType
from airflow_bookmarks.glue.transforms.typed_column import TypedColumn, nothing_if_empty, value_at

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql import types as spark_types

    from airflow_bookmarks.glue.dynamic.base import FrameBase


def joined(left: FrameBase, right: FrameBase, keys1: Sequence[str] | str, keys2: Sequence[str] | str) -> DataFrame:
    """Return the inner join of two frames: the first key of one frame equals the first of the other, and so on.

    All columns stay, keys too; a column of `right` whose name `left` has is called `.name`. Null equals nothing.

    Args:
        left: the frame.
        right: the other frame.
        keys1: paths of the keys of `left`; a text is one path.
        keys2: as many of `right`.

    Raises:
        OptionError: no key, more keys on one side, or a key that a frame lacks.
        TypeError: `right` is no DynamicFrame.
    """
    check_frame(right, "join")
    first, second = _Side(left, keys1, "join", "l"), _Side(right, keys2, "join", "r")
    condition = _equal(first, second, "join")
    taken = {field.name.lower() for field in first.fields}
    columns = [
        *[first.column(number, field.name) for number, field in enumerate(first.fields)],
        *[second.column(number, _free(field.name, taken)) for number, field in enumerate(second.fields)],
    ]
    return first.frame.join(second.frame, condition, "inner").select(columns)


def not_in(source: FrameBase, stage: FrameBase, keys: Sequence[str] | str) -> DataFrame:
    """Return the rows of a frame for which another has no row with equal keys. Null equals nothing.

    Args:
        source: the frame.
        stage: the other frame.
        keys: paths of the keys, in both; a text is one path.

    Raises:
        OptionError: no key, or a key that a frame lacks.
        TypeError: `stage` is no DynamicFrame.
    """
    check_frame(stage, "mergeDynamicFrame")
    call = "mergeDynamicFrame"
    first, second = _Side(source, keys, call, "l"), _Side(stage, keys, call, "r")
    kept = first.frame.join(second.frame, _equal(first, second, call), "left_anti")
    return kept.select([first.column(number, field.name) for number, field in enumerate(first.fields)])


class _Side:
    """One side of a join: its columns under names that the other side doesn't have, so that a frame joins itself."""

    def __init__(self, frame: FrameBase, keys: Sequence[str] | str, call: str, prefix: str) -> None:
        rows = frame.typed()
        self.fields: list[spark_types.StructField] = rows.schema.fields
        self._prefix = prefix
        self.names = [keys] if isinstance(keys, str) else list(keys)
        self.keys = [_key(frame, rows, key, call) for key in self.names]
        own = [column_of(field.name).alias(f"{prefix}{number}") for number, field in enumerate(self.fields)]
        aliased = [key.column.alias(f"{prefix}key{number}") for number, key in enumerate(self.keys)]
        self.frame = rows.select(*own, *aliased)

    def column(self, number: int, name: str) -> Column:
        metadata = self.fields[number].metadata or {CHOICES: "[]"}  # empty metadata would leave what was there
        return column_of(f"{self._prefix}{number}").alias(name, metadata=metadata)

    def key(self, number: int) -> TypedColumn:
        return TypedColumn(column_of(f"{self._prefix}key{number}"), self.keys[number].type)


def _key(frame: FrameBase, rows: DataFrame, key: str, call: str) -> TypedColumn:
    found = value_at(rows.schema, steps_of(key), call) or nothing_if_empty(frame)
    if found is None:
        raise OptionError(
            f"{call}: frame {frame.name!r} has no key {path_of(steps_of(key))!r}; it has {', '.join(rows.columns)}. "
            "Nothing was read or changed."
        )
    return found


def _equal(left: _Side, right: _Side, call: str) -> Column:
    if not left.keys or len(left.keys) != len(right.keys):
        raise OptionError(
            f"{call}: {len(left.keys)} keys ({', '.join(left.names)}) against {len(right.keys)} "
            f"({', '.join(right.names)}). Nothing was read or changed. Name as many of each frame, at least one."
        )
    pairs = [(left.key(number), right.key(number)) for number in range(len(left.keys))]
    return reduce(and_, [_same(*pair) for pair in pairs])


def _same(left: TypedColumn, right: TypedColumn) -> Column:
    """Compare as Spark does where it can; text with another type, and choices, by their text."""
    if _by_text(left.type, right.type):
        return cast_value(left.column, left.type, "string") == cast_value(right.column, right.type, "string")
    return left.column == right.column


def _by_text(left: DataType, right: DataType) -> bool:
    if isinstance(left, ChoiceType) or isinstance(right, ChoiceType):
        return True
    return isinstance(left, StringType) != isinstance(right, StringType)


def _free(name: str, taken: set[str]) -> str:
    """Return a name for a column of the other frame, with as many dots before it as it takes to be a new one."""
    while name.lower() in taken:
        name = f".{name}"
    taken.add(name.lower())
    return name
