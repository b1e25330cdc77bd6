"""Records read from their texts by the types that their shapes tell, without a variant for each value.

    record, shape --Spark's parser, by types--> values, those of choices as text --the shape tells which--> columns

Of a record the shape is exact but for what arrays hold, so it says of each choice what the value of this record is.
Where it does not, `variants` read the records. Spark's parser is told to fail at what doesn't fit its type, so that no
value is lost should a shape and a text ever disagree.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pyspark.sql import functions as F
from pyspark.sql import types as spark_types

from airflow_bookmarks.glue.dynamic.choice import choices_in, column_of, marked, spark_type
from airflow_bookmarks.glue.dynamic.json_records.parsed_records import without_taken
from airflow_bookmarks.glue.dynamic.json_records.shapes import (
    ARRAY,
    BOOLEAN,
    DOUBLE,
    HUGE,
    INT,
    LONG,
    OBJECT,
    TEXT,
    Answer,
    ChoiceSettling,
    kind_at,
    shape_at,
)
from airflow_bookmarks.glue.dynamic.json_records.texts import RECORD, SHAPE, others_of, rows_of
from airflow_bookmarks.glue.dynamic.json_records.variant_columns import free_name, is_beyond_four_bytes, taken
from airflow_bookmarks.glue.dynamic.records import check_cases
from airflow_bookmarks.glue.dynamic.types import ArrayType, ChoiceType, DataType, LongType, NullType, StructType

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from pyspark.sql import Column, DataFrame

    from airflow_bookmarks.glue.dynamic.choice import Steps
    from airflow_bookmarks.glue.dynamic.json_records.texts import Looked
    from airflow_bookmarks.glue.run import GlueRun

# What the value of a record is, by the name of the type that it has in a choice. Whole numbers of more than eight bytes
# may have a point behind them, which a text of digits can't be read back from: variants read those.
_KINDS: Mapping[str, Collection[str]] = {
    "int": (INT,),
    "long": (INT,),
    "double": (DOUBLE, HUGE),
    "string": (TEXT,),
    "boolean": (BOOLEAN,),
}
# Each choice asks which of the cases a record is of: with more of them a plan grows too large.
_MOST_CASES = 50


def told_types(texts: DataFrame, looked: Looked, run: GlueRun, name: str) -> StructType | None:
    """Return the types of records if their shapes tell them, with one more look where a whole number may be long.

    Args:
        texts: rows of `shaped_texts`; fields with the names of their other columns are left out.
        looked: what their shapes have shown.
        run: the current run.
        name: the transformation context, for errors.

    Returns:
        The types; None if shapes leave something open, a choice is of more than plain values, or records differ in too
        many ways.

    Raises:
        FieldCaseError: two fields differ only in case.
    """
    answers = dict(looked.answers)
    if any(answer.kinds & {OBJECT, ARRAY} for answer in answers.values()):  # an empty one is beside numbers, too
        return None
    _, left = _settled(looked, answers)
    if looked.has_long and all(isinstance(shape_at(looked.shape, place), LongType) for place in left):
        answers |= {place: Answer(frozenset({INT})) for place in left}
    whole = [place for place, answer in answers.items() if INT in answer.kinds] if looked.has_long else []
    types, left = _settled(looked, _with_long(answers, whole))
    if left or not _is_readable(types) or not _are_plain(types) or len(_Cases(types, looked, "")) > _MOST_CASES:
        return None
    others = others_of(texts)
    kept = without_taken(types, others, run, name)
    check_cases(kept, texts.sparkSession, name)
    asked = [place for place in whole if place[0] in kept.field_map]
    longs = _long_places(frame_of_texts(texts, kept, looked, ()), kept, asked) if asked else ()
    return without_taken(_settled(looked, _with_long(answers, longs))[0], others, run, name)


def _settled(looked: Looked, answers: Mapping[Steps, Answer]) -> tuple[StructType, list[Steps]]:
    """Return the types of records, and the places that are left open."""
    settling = ChoiceSettling(looked.has_long, answers)
    types = settling.settled(looked.shape)
    return types if isinstance(types, StructType) else StructType(), settling.open


def _with_long(answers: Mapping[Steps, Answer], places: Collection[Steps]) -> dict[Steps, Answer]:
    """Return answers by which whole numbers need eight bytes at these places."""
    return {
        place: replace(answer, kinds=answer.kinds | {LONG}) if place in places else answer
        for place, answer in answers.items()
    }


def _are_plain(types: StructType) -> bool:
    """Whether each choice is of values whose text tells all."""
    return all(kind.typeName() in _KINDS for place in choices_in(types) for kind in _choice_at(types, place).choices)


def _is_readable(held: DataType) -> bool:
    """Whether each struct has a field with values: of one without, Spark's parser can't read that it is there."""
    if isinstance(held, StructType):
        parts = [part.dataType for part in held if not isinstance(part.dataType, NullType)]
        return bool(parts) and all(_is_readable(part) for part in parts)
    return _is_readable(held.elementType) if isinstance(held, ArrayType) else True


def _choice_at(types: DataType, place: Steps) -> ChoiceType:
    held = shape_at(types, place)
    if not isinstance(held, ChoiceType):
        raise TypeError(f"no choice is at {place} of {types}")
    return held


def _long_places(frame: DataFrame, types: StructType, places: Sequence[Steps]) -> list[Steps]:
    """Return at which of these places a number is too large for four bytes."""
    asked = [
        F.max(_is_long(column_of(str(first)), shape_at(types, (first,)), rest)).alias(str(number))
        for number, (first, *rest) in enumerate(places)
    ]
    [found] = rows_of(frame.agg(*asked))
    return [place for place, is_long in zip(places, found, strict=True) if is_long]


def _is_long(value: Column, held: DataType | None, place: Sequence[str | None]) -> Column:
    if not place:
        whole = value.getField(LongType.typeName()) if isinstance(held, ChoiceType) else value
        return is_beyond_four_bytes(whole)
    step, *rest = place
    below = None if held is None else shape_at(held, (step,))
    if step is None:
        return F.exists(value, lambda each: _is_long(each, below, rest))
    return _is_long(value.getField(step), below, rest)


def frame_of_texts(texts: DataFrame, types: StructType, looked: Looked, others: Sequence[Column]) -> DataFrame:
    """Return the fields of records as columns, with their choices, and the columns that go along.

    Args:
        texts: rows of `shaped_texts`.
        types: the types that `told_types` has told.
        looked: what the shapes of the records have shown.
        others: the columns that go along.
    """
    cases = _Cases(types, looked, free_name("glue_case", types.field_map, texts.columns))
    # A field with the name that Spark has for what it can't read would come back as null.
    options = {"mode": "FAILFAST", "columnNameOfCorruptRecord": free_name("glue_corrupt", types.field_map)}
    whole = free_name("glue_read", types.field_map, texts.columns)
    records = texts.where(column_of(RECORD).isNotNull())
    read = F.from_json(column_of(RECORD).cast("string"), _read_struct(types), options)
    values = records.select(read.alias(whole), cases.column().alias(cases.name), *others)
    columns = [
        marked(taken(column_of(whole).getField(f.name), f.dataType, cases.chosen, (f.name,)), f.name, f.dataType)
        for f in types
    ]
    return values.select(*columns, *others)


def _read_type(wanted: DataType) -> spark_types.DataType:
    """Return what Spark's parser reads a value as: what its record's shape is asked for is text, or a fraction."""
    if isinstance(wanted, ChoiceType):
        names = {kind.typeName() for kind in wanted.choices}
        return spark_types.DoubleType() if names == {"int", "double"} else spark_types.StringType()
    if isinstance(wanted, StructType):
        return _read_struct(wanted)
    if isinstance(wanted, ArrayType):
        return spark_types.ArrayType(_read_type(wanted.elementType))
    return spark_type(wanted)


def _read_struct(wanted: StructType) -> spark_types.StructType:
    held = [part for part in wanted if not isinstance(part.dataType, NullType)]
    return spark_types.StructType([spark_types.StructField(part.name, _read_type(part.dataType)) for part in held])


class _Cases:
    """What the values at the places of choices are, as a number for each case that the shapes of records make.

    Attributes:
        name: The column that the case has.
    """

    def __init__(self, types: StructType, looked: Looked, name: str) -> None:
        self.name = name
        self._places = choices_in(types)
        self._shapes: dict[tuple[str | None, ...], list[str]] = {}
        for text, shape in looked.shapes.items():
            kinds = tuple(kind_at(shape, place) for place in self._places)
            self._shapes.setdefault(kinds, []).append(text)

    def __len__(self) -> int:
        return len(self._shapes)

    def column(self) -> Column:
        """Return the case of a record; an error where its shape was not seen before."""
        if not self._places:
            return F.lit(0)
        [first, *others] = [column_of(SHAPE).isin(shapes) for shapes in self._shapes.values()]
        number = F.when(first, F.lit(0))
        for case, is_case in enumerate(others, 1):
            number = number.when(is_case, F.lit(case))
        failure = F.concat(F.lit("a record of JSON has another shape than before: "), column_of(SHAPE))
        return number.otherwise(F.raise_error(failure))

    def chosen(self, value: Column, choice: ChoiceType, place: Steps) -> Column:
        """Return a value that was read at a place as a choice; null if it is null, or absent."""
        at = self._places.index(place)
        chosen = F.when(value.isNull(), F.lit(None))
        for part in choice.choices:
            cases = [case for case, kinds in enumerate(self._shapes) if kinds[at] in _KINDS[part.typeName()]]
            held = [
                (_as(value, part, choice) if each is part else F.lit(None))
                .cast(spark_type(each))
                .alias(each.typeName())
                for each in choice.choices
            ]
            chosen = chosen.when(column_of(self.name).isin(cases), F.struct(*held))
        return chosen.otherwise(F.raise_error(F.lit(f"a record of JSON has a value of another type at {place}")))


def _as(value: Column, part: DataType, choice: ChoiceType) -> Column:
    """Return a value of a choice as the type that it is of; an error where its text is of another."""
    if part.typeName() == "string" or isinstance(_read_type(choice), spark_types.DoubleType):
        return value
    # Of a fraction beyond all doubles Spark's parser makes "Infinity", with its quotes.
    text = F.btrim(value, F.lit('"')) if part.typeName() == "double" else value
    failure = F.raise_error(F.concat(F.lit(f"in a record of JSON, no {part.typeName()}: "), value))
    return F.coalesce(text.try_cast(spark_type(part)), failure)
