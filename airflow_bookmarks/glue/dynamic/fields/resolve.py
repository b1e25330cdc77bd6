"""`resolveChoice`, and the options of `toDF`: what becomes of choices."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from airflow_bookmarks.core.errors import OptionError
from airflow_bookmarks.glue.dynamic.cast import cast_value, glue_named, type_named
from airflow_bookmarks.glue.dynamic.choice import Steps, choices_in, glue_schema, spark_type
from airflow_bookmarks.glue.dynamic.declared import cast_declared, declared_type
from airflow_bookmarks.glue.dynamic.fields.merge import cast_to
from airflow_bookmarks.glue.dynamic.fields.rewrite import Part, place_of, rewritten
from airflow_bookmarks.glue.dynamic.fields.shape import found_place
from airflow_bookmarks.glue.dynamic.types import ArrayType, ChoiceType, DataType, Field, StructType

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import DataFrame

    from airflow_bookmarks.glue.dynamic.fields.rewrite import Change

_ACTIONS = "cast:<type>, project:<type>, make_cols or make_struct"
MATCH_CATALOG = "match_catalog"


def checked_arguments(
    specs: Sequence[tuple[str, str]] | tuple[str, str] | None, choice: str
) -> list[tuple[str, str]] | None:
    """Return the specs that a script gives; None if it gives one action for all choices.

    Raises:
        OptionError: both or none of them, or a spec that is no pair of texts.
    """
    if (specs is None) == (not choice):
        given = "both" if choice else "none"
        raise OptionError(
            f"resolveChoice takes either specs or choice, and {given} was given. Nothing was read or changed."
        )
    if specs is None:
        return None
    pairs = [specs] if isinstance(specs, tuple) and specs and isinstance(specs[0], str) else list(specs)
    checked = []
    for pair in pairs:
        if not isinstance(pair, tuple | list) or len(pair) != 2 or not all(isinstance(text, str) for text in pair):
            raise OptionError(
                f"resolveChoice: a spec is a pair of a path and an action, such as ('price', 'cast:double'), and not "
                f"{pair!r}. Nothing was read or changed."
            )
        checked.append((str(pair[0]), str(pair[1])))
    return checked


def change_of(action: str, declared: str | None = None) -> Change:
    """Return what an action makes of a field.

    Args:
        action: as a script gives it.
        declared: the type that a catalog gives to the field, where that is text.

    Raises:
        OptionError: there is no such action, or no such type.
    """
    name, _, argument = action.partition(":")
    if name in ("cast", "project") and argument:
        target = type_named(argument, f"resolveChoice, {action!r}")
        if declared is not None:
            return lambda part: [Part(part.name, cast_declared(part.column, declared, target), glue_named(target))]
        return lambda part: [Part(part.name, cast_value(part.column, part.type, target), glue_named(target))]
    if action == "make_cols":
        return _cols
    if action == "make_struct":
        return _struct
    raise OptionError(f"resolveChoice has no action {action!r}: use {_ACTIONS}. Nothing was read or changed.")


def _cols(part: Part) -> list[Part]:
    if not isinstance(part.type, ChoiceType):
        return [part]
    kinds = part.type.choices
    return [Part(f"{part.name}_{kind.typeName()}", part.column.getField(kind.typeName()), kind) for kind in kinds]


def _struct(part: Part) -> list[Part]:
    return [Part(part.name, part.column, plain_type(part.type))] if isinstance(part.type, ChoiceType) else [part]


def plain_type(choice: ChoiceType) -> StructType:
    """Return a choice as the struct that it is in a DataFrame; choices in its types stay."""
    return StructType([Field(kind.typeName(), kind) for kind in choice.choices])


def settled(frame: DataFrame, specs: Sequence[tuple[str, str]], *, lenient: bool = False) -> DataFrame:
    """Return the frame with an action for each of some fields.

    A cast is taken of any field, a choice or not; the other actions leave what is no choice as it is.

    Args:
        frame: in DataFrame form, with marks. Columns of text whose type is declared are cast as text.
        specs: pairs of a path and an action.
        lenient: whether absent fields are left out, as in an increment with nothing new whose fields nobody knows.

    Raises:
        OptionError: no such field, action or type; or `make_cols` of what an array holds.
    """
    changes = [(path, change_of(action), action) for path, action in specs]
    for path, change, action in changes:
        schema = glue_schema(frame.schema)
        place = found_place(schema, path.removesuffix("[]"))
        if place is None:
            if lenient:
                continue
            raise OptionError(
                f"resolveChoice: the frame has no field {path!r}; it has {[field.name for field in schema]}. Nothing "
                "was read or changed."
            )
        if path.endswith("[]"):
            place = (*place, None)
            _check_element(path, action)
        declared = declared_type(frame.schema[str(place[0])]) if len(place) == 1 else None
        frame = _changed(frame, {place: change if declared is None else change_of(action, declared)})
    return frame


def _check_element(path: str, action: str) -> None:
    if action == "make_cols":
        raise OptionError(
            f"resolveChoice: {path!r} are the elements of an array, and make_cols makes columns. Nothing was read or "
            "changed. Use make_struct, or cast:<type>."
        )


def _changed(frame: DataFrame, changes: Mapping[Steps, Change]) -> DataFrame:
    return rewritten(frame, lambda here, _: changes.get(here))


def settled_everywhere(frame: DataFrame, action: str) -> DataFrame:
    """Return the frame with one action for all its choices, also those within others.

    The elements of an array can't become columns: with `make_cols` they become structs.

    Raises:
        OptionError: no such action or type.
    """
    change = change_of(action)

    def decide(here: Steps, of_type: DataType) -> Change | None:
        if not isinstance(of_type, ChoiceType):
            return None
        return _struct if action == "make_cols" and here[-1] is None else change

    while choices_in(glue_schema(frame.schema)):  # what was made of a choice may hold others
        frame = rewritten(frame, decide)
    return frame


def matched(frame: DataFrame, catalog: StructType) -> DataFrame:
    """Return the frame where each choice is cast to the type that a catalog gives it; those it doesn't know stay."""

    def decide(here: Steps, of_type: DataType) -> Change | None:
        place = place_of(catalog, here) if isinstance(of_type, ChoiceType) else None
        if place is None:
            return None
        wanted = _type_at(catalog, place)
        if here[-1] is None and isinstance(wanted, ArrayType):
            wanted = wanted.elementType
        return lambda part: [Part(part.name, cast_to(part.column, part.type, wanted), wanted)]

    return rewritten(frame, decide)


def _type_at(of_type: DataType, place: Steps) -> DataType:
    for step in place:
        if step is None and isinstance(of_type, ArrayType):
            of_type = of_type.elementType
        elif step is not None and isinstance(of_type, StructType):
            of_type = of_type.getField(step).dataType
    return of_type


@dataclass(frozen=True)
class ResolveOption:
    """What `toDF` makes of one choice.

    Args:
        path: where it is.
        action: "KeepAsStruct"; or "Project" or "Cast", which need a type.
        target: the type, one of `awsglue.gluetypes`.
    """

    path: str
    action: str
    target: DataType | None = None


def with_options(frame: DataFrame, options: Sequence[ResolveOption]) -> DataFrame:
    """Return a DataFrame whose choices are settled as options of `toDF` say.

    Raises:
        OptionError: an unknown action or path, or no type where the action needs one.
    """
    for option in options:
        action = option.action.lower()
        if action not in ("keepasstruct", "project", "cast"):
            raise OptionError(
                f"toDF has no action {option.action!r}: use KeepAsStruct, Project or Cast. Nothing was read or changed."
            )
        if action == "keepasstruct":
            continue
        if option.target is None:
            raise OptionError(f"toDF: {option.action} of {option.path!r} needs a type. Nothing was read or changed.")
        frame = settled(frame, [(option.path, f"cast:{spark_type(option.target).simpleString()}")])
    return frame
