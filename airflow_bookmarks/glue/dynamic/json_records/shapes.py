"""The shape of JSON as Spark's aggregate over variants describes it, and what it leaves open.

    OBJECT<code: VARIANT, id: BIGINT, price: DECIMAL(22,2), tags: ARRAY<STRING>>

Of one record it is exact, but for what arrays hold: VARIANT is a place there with values of several types, and among
fractions there may be whole numbers, which are taken together. Of an aggregate over records this is so everywhere.
Whether whole numbers fit into four bytes is open in both.

Spark has no word for what was written with a point: 1.0 is a DECIMAL(1,0), and a whole number beyond eight bytes is a
DECIMAL(19,0) or longer. So what has fewer digits is a fraction. What has more counts as whole, also if a point was
written behind it: its value is the same.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from itertools import accumulate
from typing import TYPE_CHECKING

from airflow_bookmarks.core.errors import BookmarkError
from airflow_bookmarks.glue.dynamic.choice import one_type
from airflow_bookmarks.glue.dynamic.types import (
    ArrayType,
    BooleanType,
    DataType,
    DecimalType,
    DoubleType,
    Field,
    IntegerType,
    LongType,
    NullType,
    StringType,
    StructType,
    UnknownType,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from airflow_bookmarks.glue.dynamic.choice import Steps

# A whole number that is a decimal, since it needs more than eight bytes, has as many digits at least. Those of up to
# eight bytes take part in the aggregate as DECIMAL(20,0).
_DIGITS_OF_HUGE = 19
_MOST_DIGITS = 38

# How deep a record may nest: both recurse, and give up at some 200 levels.
MOST_LEVELS = 150

# What a value is, as `variants` asks for it.
INT, LONG, HUGE, DOUBLE = "INT", "LONG", "HUGE", "DOUBLE"
TEXT, BOOLEAN, OBJECT, ARRAY = "STRING", "BOOLEAN", "OBJECT", "ARRAY"

_TOKEN = re.compile(r"\s*(?:(?P<quoted>`(?:[^`]|``)*`)|(?P<word>[^\s`<>:,()]+)|(?P<sign>[<>:,()]))")
_ATOMS: Mapping[str, type[DataType]] = {
    "BIGINT": LongType,
    "BOOLEAN": BooleanType,
    "DOUBLE": DoubleType,
    "STRING": StringType,
    "VARIANT": UnknownType,
    "VOID": NullType,
}


class NestingError(BookmarkError):
    """Raised when a record of JSON nests deeper than Spark and Python can follow."""

    def __init__(self) -> None:
        super().__init__(
            f"a record of JSON has more than {MOST_LEVELS} levels of objects and arrays, and no frame can hold it. "
            "Nothing was written. Take it out of the files, or read them as text with Spark."
        )


def shape_of(text: str) -> DataType:
    """Return the shape that Spark's text describes: VARIANT is `UnknownType`.

    Raises:
        ValueError: it is no such text.
        NestingError: it has more levels than a record may have.
    """
    tokens = [match.group().strip() for match in _TOKEN.finditer(text)]
    levels = accumulate((sign == "<") - (sign == ">") for sign in tokens)
    if max(levels, default=0) > MOST_LEVELS + 1:  # with the object around a record
        raise NestingError
    shape, rest = _shape(tokens)
    if rest:
        raise ValueError(f"the schema of a variant ends before {' '.join(rest)!r}: {text}")
    return shape


def _shape(tokens: list[str]) -> tuple[DataType, list[str]]:
    name, rest = tokens[0], tokens[1:]
    if name == "ARRAY":
        element, rest = _shape(rest[1:])
        return ArrayType(element), rest[1:]
    if name == "DECIMAL":
        return DecimalType(int(rest[1]), int(rest[3])), rest[5:]
    if name != "OBJECT":
        return _ATOMS[name](), rest
    fields, rest = [], rest[1:]
    while rest[0] != ">":
        key = rest[0][1:-1].replace("``", "`") if rest[0].startswith("`") else rest[0]
        part, rest = _shape(rest[2:])
        fields.append(Field(key, part))
        rest = rest[1:] if rest[0] == "," else rest
    return StructType(fields), rest[1:]


@dataclass(frozen=True)
class Answer:
    """What the values at one place are.

    Args:
        kinds: INT, LONG and so on, all that were seen.
        struct: the shape of those that are objects.
        array: the shape of those that are arrays.
    """

    kinds: frozenset[str]
    struct: DataType | None = None
    array: DataType | None = None


@dataclass
class ShapeMerge:
    """Merges the shapes of single records, and says of each place with values of several types what they are.

    Args:
        answers: what is known for certain, by place; what else is open stays open.
    """

    answers: dict[Steps, Answer] = field(default_factory=dict)

    def merged(self, shapes: Iterable[DataType], here: Steps = ()) -> DataType:
        """Return the shape of a place: `UnknownType` where its values differ."""
        held = list(shapes)
        if None in here and any(_is_open(shape) for shape in held):
            return UnknownType()  # and what lies below is asked for as well
        structs = [shape for shape in held if isinstance(shape, StructType)]
        arrays = [shape.elementType for shape in held if isinstance(shape, ArrayType)]
        below = ShapeMerge()
        struct = below._struct(structs, here) if structs else None
        array = ArrayType(below.merged(arrays, (*here, None))) if arrays else None
        self.answers |= below.answers
        kinds = frozenset(kind for shape in held if (kind := _kind_of(shape)))
        if len(kinds) == 1 and not kinds & {DOUBLE, HUGE}:
            return struct or array or next(shape for shape in held if _kind_of(shape))
        if not kinds:
            return NullType()
        self.answers[here] = Answer(kinds, struct, array)
        return UnknownType()

    def _struct(self, structs: Iterable[StructType], here: Steps) -> StructType:
        found: dict[str, list[DataType]] = {}
        for part in (part for struct in structs for part in struct):
            found.setdefault(part.name, []).append(part.dataType)
        return StructType(
            [Field(name, self.merged(found[name], (*here, name))) for name in sorted(found, key=sort_key)]
        )


def sort_key(name: str) -> bytes:
    """Return by what Spark sorts the keys of an object."""
    return name.encode("utf-16-be")


def _kind_of(shape: DataType) -> str | None:
    """Return what the values of one record are at a place; None if they are null."""
    if isinstance(shape, DecimalType):
        return DOUBLE if shape.scale or _is_fraction(shape) else HUGE
    return _KINDS.get(type(shape))


def shape_at(shape: DataType, place: Steps) -> DataType | None:
    """Return what a shape, or a type, has at a place; None where there is no such place."""
    held: DataType | None = shape
    for step in place:
        if step is None:
            held = held.elementType if isinstance(held, ArrayType) else None
        else:
            part = held.field_map.get(step) if isinstance(held, StructType) else None
            held = part.dataType if part else None
    return held


def kind_at(shape: StructType, place: Steps) -> str | None:
    """Return what the values of one record are at a place; None if there are none, or all are null."""
    held = shape_at(shape, place)
    return None if held is None else _kind_of(held)


_KINDS: Mapping[type[DataType], str] = {
    LongType: INT,
    DoubleType: DOUBLE,
    StringType: TEXT,
    BooleanType: BOOLEAN,
    StructType: OBJECT,
    ArrayType: ARRAY,
}


def _is_open(shape: DataType) -> bool:
    """Whether values that Spark has taken together at a place may be of several types."""
    return isinstance(shape, UnknownType | DoubleType) or (isinstance(shape, DecimalType) and not _is_fraction(shape))


def _is_fraction(shape: DecimalType) -> bool:
    """Whether no whole number is among values that were taken together."""
    return shape.precision - shape.scale < _DIGITS_OF_HUGE


@dataclass
class ChoiceSettling:
    """Makes types of a shape and of answers, and collects the places that are open.

    Args:
        has_long: whether a whole number may need eight bytes; without, all are of four.
        answers: what is known, by place. A choice adds no step: fields of its struct and elements of its array differ.
        open: the places that are open; the types are final when there are none.
    """

    has_long: bool
    answers: Mapping[Steps, Answer]
    open: list[Steps] = field(default_factory=list)

    def settled(self, shape: DataType, here: Steps = ()) -> DataType:
        """Return the type of a place."""
        if isinstance(shape, StructType):
            fields = [Field(part.name, self.settled(part.dataType, (*here, part.name))) for part in shape]
            return StructType(fields) if fields or not here else NullType()  # no format holds a struct of no fields
        if isinstance(shape, ArrayType):
            element = self.settled(shape.elementType, (*here, None))
            return ArrayType(StringType() if isinstance(element, NullType) else element)
        if isinstance(shape, LongType) and not self.has_long:
            return IntegerType()
        if isinstance(shape, DecimalType) and _is_fraction(shape):
            return DoubleType()
        if isinstance(shape, LongType | DecimalType | DoubleType | UnknownType):
            return self._answered(here)
        return shape

    def _answered(self, here: Steps) -> DataType:
        answer = self.answers.get(here)
        if answer is None:
            self.open.append(here)
            return NullType()
        types: list[DataType] = list(_numbers(answer.kinds))
        if TEXT in answer.kinds:
            types.append(StringType())
        if BOOLEAN in answer.kinds:
            types.append(BooleanType())
        if OBJECT in answer.kinds and answer.struct is not None:
            types.append(self.settled(answer.struct, here))
        if ARRAY in answer.kinds and answer.array is not None:
            types.append(self.settled(answer.array, here))
        return one_type([known for known in types if not isinstance(known, NullType)])


def _numbers(kinds: frozenset[str]) -> list[DataType]:
    """Return the types of numbers: whole ones and fractions are apart, as in Glue."""
    types: list[DataType] = []
    if HUGE in kinds and DOUBLE not in kinds:
        return [DecimalType(_MOST_DIGITS, 0)]
    if LONG in kinds or INT in kinds:
        types.append(LongType() if LONG in kinds else IntegerType())
    if HUGE in kinds or DOUBLE in kinds:
        types.append(DoubleType())
    return types
