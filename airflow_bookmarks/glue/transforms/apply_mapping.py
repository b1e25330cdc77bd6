"""`apply_mapping`: fields chosen, renamed, nested and cast, as a list of tuples says."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from airflow_bookmarks.core.errors import OptionError
from airflow_bookmarks.glue.dynamic.cast import cast_value, spark_named, type_named
from airflow_bookmarks.glue.dynamic.choice import marked
from airflow_bookmarks.glue.dynamic.declared import cast_declared, declared_type
from airflow_bookmarks.glue.dynamic.fields.path import path_of, steps_of
from airflow_bookmarks.glue.dynamic.types import (
    ArrayType,
    ChoiceType,
    DataType,
    DecimalType,
    Field,
    MapType,
    StringType,
    StructType,
    atom_of,
)
from airflow_bookmarks.glue.transforms.typed_column import TypedColumn, nothing_if_empty, value_at

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pyspark.sql import Column, DataFrame

    from airflow_bookmarks.glue.dynamic.base import FrameBase
    from airflow_bookmarks.glue.dynamic.choice import Steps

log = logging.getLogger(__name__)

_CALL = "apply_mapping"
# What scripts call types that have parts, beside Hive's form of them, such as array<string>.
_WITH_PARTS: dict[str, tuple[type[DataType], ...]] = {
    "struct": (StructType, MapType),
    "object": (StructType, MapType),
    "map": (MapType, StructType),
    "array": (ArrayType,),
    "list": (ArrayType,),
    "set": (ArrayType,),
}


@dataclass(frozen=True, slots=True)
class FieldMapping:
    """Where a field of the new frame comes from, and its type.

    Args:
        source: the path in the frame there is.
        target: the path in the new frame.
        kind: the type that the script names for it; None: that which it has.
        source_kind: the type that the script names for the source.
    """

    source: Steps
    target: Steps
    kind: str | None = None
    source_kind: str | None = None


def mapped(frame: FrameBase, mappings: Iterable[tuple[str, ...]], *, case_sensitive: bool) -> DataFrame:
    """Return the rows with the fields that a list of mappings names, in its order.

    A source that the frame lacks is left out, as in Glue, and the log names it. A value that doesn't fit its new type
    becomes null; of a choice, each type is cast.

    Args:
        frame: the frame.
        mappings: tuples of (source, type, target, type), (source, type, target) or (source, target).
        case_sensitive: whether names must agree in case; default False.

    Raises:
        TypeError: a mapping is no tuple of text.
        ValueError: a tuple is shorter or longer, or two of them contradict each other.
        OptionError: a path can't be read, or no type is called so.
    """
    wanted = list(dict.fromkeys(_mapping(each) for each in _listed(mappings)))
    is_cast = all(each.kind is not None and not _has_parts(each.kind) for each in wanted)
    rows = frame.df if is_cast else frame.typed()
    tree, absent = _Branch(), []
    for each in wanted:
        value = _source(rows, each, case_sensitive)
        if value is None:
            absent.append(path_of(each.source))
        else:
            tree.put(each.target, value, each.target)
    if absent and nothing_if_empty(frame) is None:
        log.warning(
            "%s of frame %r: left out %s, which the frame lacks", _CALL, frame.name, ", ".join(map(repr, absent))
        )
    return rows.select([marked(value.column, name, value.type) for name, value in tree.values()])


# ---- what the script says


def _listed(mappings: object) -> Sequence[object]:
    if isinstance(mappings, (list, tuple)):
        return mappings
    raise TypeError(
        f"{_CALL}: expected a list of tuples and got {type(mappings).__name__}. Nothing was read or changed."
    )


def _mapping(given: object) -> FieldMapping:
    if not isinstance(given, tuple) or not all(isinstance(part, str) for part in given):
        raise TypeError(
            f"{_CALL}: a mapping is a tuple of text, and {given!r} is none. Nothing was read or changed. "
            "Write (source, source type, target, target type)."
        )
    match given:
        case (source, target):
            return FieldMapping(steps_of(source), steps_of(target))
        case (source, second, third):
            kind, target = (second, third) if _is_type(second) else (third, second)
            return FieldMapping(steps_of(source), steps_of(target), kind, kind)
        case (source, source_kind, target, kind):
            return FieldMapping(steps_of(source), steps_of(target), kind, source_kind)
    raise ValueError(
        f"{_CALL}: a mapping has two to four parts, and {given!r} has {len(given)}. Nothing was read or changed."
    )


def _is_type(text: str) -> bool:
    try:
        return _has_parts(text) or bool(type_named(text, _CALL))
    except OptionError:
        return False


def _has_parts(kind: str) -> bool:
    return kind.strip().lower().partition("<")[0].strip() in _WITH_PARTS


# ---- values


def _source(rows: DataFrame, wanted: FieldMapping, case_sensitive: bool) -> TypedColumn | None:
    """Return the value of a mapping, cast; None if the frame lacks it."""
    found = value_at(rows.schema, wanted.source, _CALL, case_sensitive=case_sensitive)
    if found is None or wanted.kind is None:
        return found
    if _has_parts(wanted.kind):
        return _of_kind(found, wanted.kind, path_of(wanted.source))
    is_same = wanted.source_kind is not None and wanted.source_kind.lower() == wanted.kind.lower()
    if is_same and isinstance(found.type, DecimalType) and wanted.kind.strip().lower() == "decimal":
        return found  # "decimal" alone says nothing of digits
    target = type_named(wanted.kind, _CALL, _WITH_PARTS)
    return TypedColumn(_cast(found, target), atom_of(spark_named(target)))


def _cast(value: TypedColumn, target: str) -> Column:
    declared = None if value.field is None else declared_type(value.field)
    if declared is not None and declared != target:
        return cast_declared(value.column, declared, target)
    if atom_of(spark_named(target)) == value.type and not isinstance(value.type, StringType):
        return value.column
    return cast_value(value.column, value.type, target)


def _of_kind(value: TypedColumn, kind: str, path: str) -> TypedColumn:
    """Return a value with parts as it is; of a choice, that of its types which the mapping names.

    Raises:
        OptionError: it has no parts, or others.
    """
    wanted = _WITH_PARTS[kind.strip().lower().partition("<")[0].strip()]
    if isinstance(value.type, wanted):
        return value
    if isinstance(value.type, ChoiceType):
        for alternative in value.type.choices:
            if isinstance(alternative, wanted):
                return TypedColumn(value.column[alternative.typeName()], alternative)
    raise OptionError(
        f"{_CALL}: {path!r} is mapped as {kind!r} and is of type {value.type}. Nothing was read or changed. "
        "Map it with the type it has; a text of JSON becomes a struct by unbox."
    )


# ---- targets


@dataclass(slots=True)
class _Branch:
    """The fields of the new frame, or of a struct in it, by name."""

    fields: dict[str, _Branch | TypedColumn] = field(default_factory=dict)

    def put(self, steps: Steps, value: TypedColumn, target: Steps) -> None:
        """Add a value at a path.

        Raises:
            ValueError: something else is there.
        """
        name, rest = steps[0], steps[1:]
        if name is None or None in rest:
            raise ValueError(f"{_CALL}: {path_of(target)!r} leads into an array. Nothing was read or changed.")
        there = self.fields.get(name)
        if rest and there is None:
            there = self.fields[name] = _Branch()
        if rest and isinstance(there, _Branch):
            there.put(rest, value, target)
        elif not rest and there is None:
            self.fields[name] = value
        else:
            raise ValueError(
                f"{_CALL}: two mappings lead to {path_of(target)!r}, or one into the other. Nothing was read or "
                "changed. Give them different targets."
            )

    def values(self) -> Iterator[tuple[str, TypedColumn]]:
        """Return names and values; a branch is a struct."""
        for name, held in self.fields.items():
            yield name, held if isinstance(held, TypedColumn) else held.struct()

    def struct(self) -> TypedColumn:
        """Return the struct of its fields."""
        fields = list(self.values())
        column = F.struct(*[value.column.alias(name) for name, value in fields])
        return TypedColumn(column, StructType([Field(name, value.type) for name, value in fields]))
