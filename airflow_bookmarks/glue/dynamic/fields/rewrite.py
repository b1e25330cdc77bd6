"""The columns of a frame made anew where something in them changes, however deep: the rest is left as it is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, NamedTuple

from pyspark.sql import Column
from pyspark.sql import functions as F

from airflow_bookmarks.glue.dynamic.choice import Steps, column_of, glue_type, marked
from airflow_bookmarks.glue.dynamic.types import ArrayType, ChoiceType, DataType, Field, MapType, StructType

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class Part(NamedTuple):
    """A column, or a field of a struct."""

    name: str
    column: Column
    type: DataType
    is_kept: bool = False  # a column of the frame as it was, with what its metadata says


# What becomes of one part: none, itself changed, or several. None: it stays, and what is in it is looked at.
Change = Callable[[Part], list[Part]]
Decide = Callable[[Steps, DataType], Change | None]


def rewritten(frame: DataFrame, decide: Decide) -> DataFrame:
    """Return the frame with the changes that are decided for its columns and what is in them.

    Args:
        frame: in DataFrame form, with marks.
        decide: takes the place of a part and its type, and returns what becomes of it. A choice adds no step to the
            place of what is in it.
    """
    return frame_of(frame, parts_of(frame, decide))


def parts_of(frame: DataFrame, decide: Decide) -> list[Part]:
    """Return the columns that a frame has after the changes that are decided."""
    parts: list[Part] = []
    for field in frame.schema.fields:
        part = Part(field.name, column_of(field.name), glue_type(field), is_kept=True)
        parts += _rewritten(part, (part.name,), decide)
    return parts


def frame_of(frame: DataFrame, parts: Sequence[Part]) -> DataFrame:
    """Return the frame of columns that are made of those of another."""
    columns = [part.column if part.is_kept else marked(part.column, part.name, part.type) for part in parts]
    return frame.select(*columns)


def struct_of(name: str, parts: Sequence[Part], old: Column | None = None) -> Part:
    """Return the struct of parts; null where the struct that it was made of is null, or where all parts are."""
    made = F.struct(*[part.column.alias(part.name) for part in parts])
    is_there = reduce(or_, [part.column.isNotNull() for part in parts]) if old is None else old.isNotNull()
    of_type = StructType([Field(part.name, part.type) for part in parts])
    return Part(name, F.when(is_there, made), of_type)


def _is_touched(here: Steps, of_type: DataType, decide: Decide) -> bool:
    if decide(here, of_type) is not None:
        return True
    if isinstance(of_type, StructType):
        return any(_is_touched((*here, field.name), field.dataType, decide) for field in of_type)
    if isinstance(of_type, ChoiceType):
        return any(_is_touched(here, kind, _within(decide, here)) for kind in of_type.choices)
    element = _element_of(of_type)
    return element is not None and _is_touched((*here, None), element, decide)


def _within(decide: Decide, choice: Steps) -> Decide:
    """Return what decides within a choice: the types of a choice have its place, and what is decided there is done."""
    return lambda here, of_type: None if here == choice else decide(here, of_type)


def _element_of(of_type: DataType) -> DataType | None:
    if isinstance(of_type, ArrayType):
        return of_type.elementType
    return of_type.valueType if isinstance(of_type, MapType) else None


def _rewritten(part: Part, here: Steps, decide: Decide) -> list[Part]:
    change = decide(here, part.type)
    if change is not None:
        return change(part)
    if not _is_touched(here, part.type, decide):
        return [part]
    if isinstance(part.type, StructType):
        fields = [Part(f.name, part.column.getField(f.name), f.dataType) for f in part.type]
        made = [each for field in fields for each in _rewritten(field, (*here, field.name), decide)]
        if not made:  # no format holds a struct of no fields
            return []
        return [struct_of(part.name, made, part.column)]
    if isinstance(part.type, ChoiceType):
        within = _within(decide, here)
        kinds = [Part(kind.typeName(), part.column.getField(kind.typeName()), kind) for kind in part.type.choices]
        made = [each for kind in kinds for each in _rewritten(kind, here, within)]
        column = struct_of(part.name, made, part.column).column
        return [Part(part.name, column, ChoiceType([each.type for each in made]))] if made else []
    return _with_elements(part, here, decide)


def _with_elements(part: Part, here: Steps, decide: Decide) -> list[Part]:
    """Rewrite the elements of an array, or the values of a map; without any part left of them it goes as a whole."""
    element = _element_of(part.type)
    if element is None:
        return [part]
    made: list[Part] = []

    def rewrite(each: Column) -> Column:
        made[:] = _rewritten(Part("element", each, element), (*here, None), decide)
        return made[0].column if made else F.lit(None)

    if isinstance(part.type, MapType):
        column = F.transform_values(part.column, lambda _, value: rewrite(value))
        return [Part(part.name, column, MapType(made[0].type))] if made else []
    column = F.transform(part.column, rewrite)
    return [Part(part.name, column, ArrayType(made[0].type))] if made else []


# ---- finding a place


def place_of(schema: StructType, steps: Steps) -> Steps | None:
    """Return the place that steps lead to, with the names as the schema spells them; None if there is none.

    Args:
        schema: the schema of the frame.
        steps: of a path; names in any case, and arrays with or without their `[]`.
    """
    return _place_of(schema, tuple(step for step in steps if step is not None))


def _place_of(of_type: DataType, names: tuple[str, ...]) -> Steps | None:
    if not names:
        return ()
    if isinstance(of_type, ChoiceType):
        found = (_place_of(kind, names) for kind in of_type.choices)
        return next((place for place in found if place is not None), None)
    if isinstance(of_type, ArrayType):
        place = _place_of(of_type.elementType, names)
        return None if place is None else (None, *place)
    if not isinstance(of_type, StructType):
        return None
    fields = [field for field in of_type if field.name == names[0]]
    fields += [field for field in of_type if field.name.lower() == names[0].lower() and field not in fields]
    for field in fields:
        place = _place_of(field.dataType, names[1:])
        if place is not None:
            return (field.name, *place)
    return None
