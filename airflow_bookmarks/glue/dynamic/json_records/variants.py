"""JSON by Spark's variants: what reads records whose shapes leave the types open.

    text --parse--> variants, kept on disk --looked at until nothing is open--> types
                            `------- taken apart by these types -------> columns

What the shapes of records leave open is told in `shapes`. PySpark 3.5 has no variants.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F

from airflow_bookmarks.glue.dynamic.choice import column_of, marked
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
    shape_of,
)
from airflow_bookmarks.glue.dynamic.json_records.texts import (
    BAD,
    BEFORE,
    BEHIND,
    FIELD,
    PARSED,
    Looked,
    record_in,
    rows_of,
    with_variants,
)
from airflow_bookmarks.glue.dynamic.json_records.texts import LONG as MAY_BE_LONG
from airflow_bookmarks.glue.dynamic.json_records.variant_columns import (
    chosen_variant,
    ddl,
    free_name,
    got,
    is_beyond_four_bytes,
    taken,
)
from airflow_bookmarks.glue.dynamic.types import ArrayType, StructType

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import Column, DataFrame

    from airflow_bookmarks.glue.dynamic.choice import Steps

# A whole number that needs more than eight bytes.
_HUGE = r"^DECIMAL\((?:19|[23][0-9]),0\)$"


def variants_in(texts: DataFrame, others: Sequence[Column]) -> DataFrame:
    """Return the variants of records, with what is bad and the columns that go along.

    Args:
        texts: rows of `shaped_texts`.
        others: the columns that go along.
    """
    return with_variants(texts, column_of(BAD), column_of(MAY_BE_LONG), *others)


def looked_at_variants(parsed: DataFrame) -> Looked:
    """Return what the records hold by Spark's own aggregate, whatever number of shapes they have."""
    variant = column_of(PARSED)
    asked = [F.schema_of_variant_agg(variant), F.max(MAY_BE_LONG), F.count(BAD)]
    [(shape, has_long, bad)] = rows_of(parsed.agg(*asked))
    record, others = record_in(shape), 0
    if record is None:
        is_record = _is_record(variant)
        asked = [F.schema_of_variant_agg(F.when(is_record, variant)), F.count_if(~is_record)]
        [(shape, others)] = rows_of(parsed.agg(*asked))
        record = record_in(shape)
    return Looked(record or StructType(), {}, bool(has_long), bad, others)


def _is_record(variant: Column) -> Column:
    """Whether what was parsed is one object, and nothing else."""
    shape = F.schema_of_variant(got(variant, (FIELD,), "variant"))
    is_all = F.schema_of_variant(variant) == F.concat(F.lit(f"{OBJECT}<{FIELD}: "), shape, F.lit(">"))
    return is_all & shape.startswith(OBJECT)


def objects_alone(parsed: DataFrame) -> DataFrame:
    """Return the rows where what is no object counts as bad."""
    variant = column_of(PARSED)
    text = F.to_json(variant)
    inside = F.substring(text, F.lit(len(BEFORE) + 1), F.length(text) - len(BEFORE) - len(BEHIND))
    bad = F.when(variant.isNull(), column_of(BAD)).when(~_is_record(variant), inside)
    return parsed.withColumn(BAD, bad).withColumn(PARSED, F.when(column_of(BAD).isNull(), variant))


def frame_of_variants(rows: DataFrame, types: StructType, others: Sequence[Column]) -> DataFrame:
    """Return the fields of the records as columns, with their choices."""
    # In two steps, since Spark takes a field from the variant again for each mention of it.
    names = [free_name(f"glue_{number}", types.field_map, rows.columns) for number, _ in enumerate(types)]
    fields = [got(column_of(PARSED), (FIELD, f.name), ddl(f.dataType)) for f in types]
    records = rows.where(column_of(PARSED).isNotNull())
    values = records.select(*[field.alias(name) for field, name in zip(fields, names, strict=True)], *others)
    columns = [taken(column_of(name), f.dataType, chosen_variant) for name, f in zip(names, types, strict=True)]
    return values.select(*[marked(c, f.name, f.dataType) for c, f in zip(columns, types, strict=True)], *others)


# ---- what the types are


def types_of(rows: DataFrame, looked: Looked) -> StructType:
    """Return the types of the records, asking for what is open until nothing is.

    Args:
        rows: variants of records.
        looked: what a look at them, or at their shapes, has shown.
    """
    # Whether whole numbers need eight bytes is asked together with what else the values there are.
    is_open = {place for place, each in looked.answers.items() if looked.has_long and INT in each.kinds}
    answers = {place: each for place, each in looked.answers.items() if place not in is_open}
    while True:
        settling = ChoiceSettling(looked.has_long, answers)
        types = settling.settled(looked.shape)
        if not settling.open:
            return types if isinstance(types, StructType) else StructType()
        answers |= _asked(rows, settling.open, has_long=looked.has_long)


def _asked(rows: DataFrame, places: Sequence[Steps], *, has_long: bool) -> dict[Steps, Answer]:
    """Ask what the values at places are: in one aggregate, and in one more if there are objects or arrays."""
    values = {place: _values_at(column_of(PARSED), (FIELD, *place)) for place in places}
    kinds = _aggregated(rows, {place: held.kinds() for place, held in values.items()})
    longs = _aggregated(rows, {place: held.is_long() for place, held in values.items()} if has_long else {})
    shapes = {
        kind: _aggregated(rows, {place: values[place].shape(kind) for place in places if kind in kinds[place]})
        for kind in (OBJECT, ARRAY)
    }
    answers = {}
    for place in places:
        known = frozenset(kinds[place]) | ({LONG} if longs.get(place) and INT in kinds[place] else frozenset())
        held = {kind: shape_of(found[place]) for kind, found in shapes.items() if place in found}
        if None in place:  # those are shapes of arrays of what was asked for
            held = {kind: each.elementType if isinstance(each, ArrayType) else each for kind, each in held.items()}
        answers[place] = Answer(known, held.get(OBJECT), held.get(ARRAY))
    return answers


def _aggregated(rows: DataFrame, asked: Mapping[Steps, Column]) -> dict[Steps, Any]:
    """Return what aggregates come to, by place."""
    if not asked:
        return {}
    [found] = rows_of(rows.agg(*[column.alias(str(number)) for number, column in enumerate(asked.values())]))
    return dict(zip(asked, found, strict=True))


@dataclass(frozen=True)
class _Single:
    """A variant, and the aggregates that tell what it is."""

    column: Column

    def kinds(self) -> Column:
        return F.collect_set(_kind(F.schema_of_variant(self.column)))

    def shape(self, kind: str) -> Column:
        is_of = F.schema_of_variant(self.column).startswith(kind)
        return F.schema_of_variant_agg(F.when(is_of, self.column))

    def is_long(self) -> Column:
        return F.max(_is_long(self.column))


@dataclass(frozen=True)
class _Several:
    """An array of variants, and the aggregates that tell what they are."""

    column: Column

    def kinds(self) -> Column:
        # The names are made first: of a lambda Spark evaluates each mention of an expression.
        kinds = F.transform(F.array_distinct(F.transform(self.column, F.schema_of_variant)), _kind)
        return F.array_distinct(F.flatten(F.collect_set(F.array_sort(F.array_distinct(kinds)))))

    def shape(self, kind: str) -> Column:
        return F.schema_of_variant_agg(_those(self.column, kind))

    def is_long(self) -> Column:
        return F.max(F.exists(self.column, _is_long))


def _values_at(root: Column, place: Steps) -> _Single | _Several:
    """Return the values at a place, as a variant, or as an array of variants where the place is within arrays."""
    if None not in place:
        return _Single(got(root, place, "variant"))
    at = place.index(None)
    elements = got(root, place[:at], "array<variant>")
    rest = place[at + 1 :]
    if not rest:
        return _Several(elements)
    if None in rest:
        return _Several(F.flatten(F.transform(elements, lambda each: _several(each, rest))))
    return _Several(F.transform(elements, lambda each: got(each, rest, "variant")))


def _several(root: Column, place: Steps) -> Column:
    # An element without the array adds nothing; null would make all null.
    return F.coalesce(_values_at(root, place).column, F.array().cast("array<variant>"))


def _kind(name: Column) -> Column:
    """Return what values of a schema are; null if they are null, or absent."""
    return (
        F.when(name == "BIGINT", INT)
        .when(name.startswith("OBJECT"), OBJECT)
        .when(name.startswith("ARRAY"), ARRAY)
        .when(name.isin(TEXT, BOOLEAN, DOUBLE), name)
        .when(name.startswith("DECIMAL"), F.when(name.rlike(_HUGE), HUGE).otherwise(DOUBLE))
    )


def _is_long(variant: Column) -> Column:
    whole = F.try_variant_get(variant, "$", "bigint")
    return is_beyond_four_bytes(whole) & (F.schema_of_variant(variant) == "BIGINT")


def _those(variants: Column, shape: str) -> Column:
    return F.to_variant_object(F.filter(variants, lambda each: F.schema_of_variant(each).startswith(shape)))
