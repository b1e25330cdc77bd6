"""Fields that are kept, left out, renamed, or given the types of a schema."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from airflow_bookmarks.core.errors import OptionError
from airflow_bookmarks.glue.dynamic.choice import Steps, column_of, glue_schema, marked
from airflow_bookmarks.glue.dynamic.fields.merge import cast_to
from airflow_bookmarks.glue.dynamic.fields.path import path_of, steps_of
from airflow_bookmarks.glue.dynamic.fields.rewrite import Part, frame_of, parts_of, place_of, rewritten, struct_of
from airflow_bookmarks.glue.dynamic.types import DataType, NullType, StructType

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pyspark.sql import Column, DataFrame

    from airflow_bookmarks.glue.dynamic.fields.rewrite import Change

log = logging.getLogger(__name__)


def paths_given(paths: str | Iterable[str], call: str) -> list[str]:
    """Return the paths that a script gives, one or several.

    Raises:
        TypeError: one is no text.
    """
    given = [paths] if isinstance(paths, str) else list(paths)
    for path in given:
        if not isinstance(path, str):
            raise TypeError(f"{call}: expected paths of fields as text and got {path!r}. Nothing was read or changed.")
    return given


def found_place(schema: StructType, path: str) -> Steps | None:
    """Return the place of a path; None if the frame has none such. A whole name with dots needs no backticks."""
    whole = [field.name for field in schema if field.name == path]
    return (whole[0],) if whole else place_of(schema, steps_of(path))


def selected(frame: DataFrame, paths: str | Iterable[str]) -> DataFrame:
    """Keep the fields named, in the order in which the paths name their columns; absent ones are left out."""
    schema = glue_schema(frame.schema)
    places = [place for path in paths_given(paths, "select_fields") if (place := found_place(schema, path))]

    def decide(here: Steps, _: DataType) -> Change | None:
        if any(here[: len(place)] == place for place in places):
            return _kept
        return None if any(place[: len(here)] == here for place in places) else _dropped

    return rewritten(frame.select(*_columns_of(places)), decide) if places else frame.select()


def _columns_of(places: Sequence[Steps]) -> list[Column]:
    return [column_of(name) for name in dict.fromkeys(str(place[0]) for place in places)]


def dropped(frame: DataFrame, paths: str | Iterable[str]) -> DataFrame:
    """Leave fields out, also those of structs in arrays; absent ones are none the less left out."""
    schema = glue_schema(frame.schema)
    places = {place for path in paths_given(paths, "drop_fields") if (place := found_place(schema, path))}
    return rewritten(frame, lambda here, _: _dropped if here in places else None)


def without_nulls(frame: DataFrame) -> DataFrame:
    """Leave out fields of which no value is known, in structs and in structs of arrays as well."""
    return rewritten(frame, lambda _, of_type: _dropped if isinstance(of_type, NullType) else None)


def _kept(part: Part) -> list[Part]:
    return [part]


def _dropped(_: Part) -> list[Part]:
    return []


# ---- renaming


def renamed(frame: DataFrame, old: str, new: str) -> DataFrame:
    """Rename a field, or move it to another path, whose structs are made where they are absent.

    Args:
        frame: in DataFrame form, with marks.
        old: the path of the field. Where it is absent, a warning says so, and nothing is renamed.
        new: the new path. Names without dots need no backticks.

    Raises:
        OptionError: there is such a field already, or the field lies in an array and is to leave it.
    """
    schema = glue_schema(frame.schema)
    place = found_place(schema, old)
    if place is None:
        log.warning("rename_field: the frame has no field %r; it has %s", old, [field.name for field in schema])
        return frame
    target = _target(schema, place, steps_of(new))
    if target == place:
        return frame
    if (taken := place_of(schema, target)) is not None and taken != place:
        raise OptionError(
            f"rename_field: there is a field {new!r} already. Nothing was read or changed. Drop it first."
        )
    if len(place) == len(target) == 1:  # a column takes along what its metadata says
        columns = [column_of(name).alias(new_name(name, place, target)) for name in frame.columns]
        return frame.select(*columns)
    if target[:-1] == place[:-1]:
        name = str(target[-1])

        def decide(here: Steps, _: DataType) -> Change | None:
            return (lambda part: [Part(name, part.column, part.type)]) if here == place else None

        return rewritten(frame, decide)
    return _moved(frame, place, target)


def new_name(name: str, place: Steps, target: Steps) -> str:
    """Return the name that a column has after one of them is renamed."""
    return str(target[0]) if (name,) == place else name


def _target(schema: StructType, place: Steps, steps: Steps) -> Steps:
    """Return where a field goes: names of structs that are there are spelled as the schema spells them."""
    for length in range(len(steps) - 1, 0, -1):
        parent = place_of(schema, steps[:length])
        if parent is not None:
            within_array = (None,) if (*parent, None) == place[: len(parent) + 1] else ()
            return (*parent, *within_array, *[step for step in steps[length:] if step is not None])
    return tuple(step for step in steps if step is not None)


def _moved(frame: DataFrame, place: Steps, target: Steps) -> DataFrame:
    if None in place or None in target:
        raise OptionError(
            f"rename_field: {path_of(place)!r} can't become {path_of(target)!r}: a field leaves no array and enters "
            "none. Nothing was read or changed."
        )
    taken: list[Part] = []

    def take(part: Part) -> list[Part]:
        taken.append(part)
        return []

    rest = parts_of(frame, lambda here, _: take if here == place else None)
    return frame_of(frame, _inserted(rest, taken[0], [str(step) for step in target]))


def _inserted(parts: Sequence[Part], moved: Part, names: Sequence[str]) -> list[Part]:
    """Return parts, and one more below names: in a struct that is there, or in a new one at the end."""
    if len(names) == 1:
        return [*parts, Part(names[0], moved.column, moved.type)]
    into = next((part for part in parts if part.name == names[0]), None)
    if into is None:
        return [*parts, struct_of(names[0], _inserted([], moved, names[1:]))]
    if not isinstance(into.type, StructType):
        raise OptionError(
            f"rename_field: {names[0]!r} holds {into.type} and no struct, so no field goes into it. Nothing was read "
            "or changed."
        )
    inner = [Part(field.name, into.column.getField(field.name), field.dataType) for field in into.type]
    made = struct_of(names[0], _inserted(inner, moved, names[1:]))
    return [made if part is into else part for part in parts]


def as_schema(frame: DataFrame, schema: StructType) -> DataFrame:
    """Return a DataFrame with the fields of a schema, cast to its types; those that are absent are null."""
    held = {field.name: field.dataType for field in glue_schema(frame.schema)}
    columns = []
    for field in schema:
        column = F.lit(None) if field.name not in held else column_of(field.name)
        made = cast_to(column, held.get(field.name, NullType()), field.dataType)
        columns.append(marked(made, field.name, field.dataType))
    return frame.select(*columns)
