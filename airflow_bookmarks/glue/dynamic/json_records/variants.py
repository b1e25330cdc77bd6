"""JSON whose records differ in types: read once, as a DataFrame with choices.

    text --parse--> variants, kept on disk --one look--> shapes --one more, if something is open--> types
                            `--------------------- taken apart by these types --------------------> columns

What the shapes of records leave open is told in `shapes`. PySpark 3.5 has no variants: there Python finds the types.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from pyspark.sql import functions as F

from airflow_bookmarks.core.text.count import counted
from airflow_bookmarks.glue.dynamic.choice import column_of, marked
from airflow_bookmarks.glue.dynamic.error_records import ErrorRecords, ErrorStage, RecordFailure
from airflow_bookmarks.glue.dynamic.json_records.parsed_records import LONGEST_TEXT, json_by_records, without_taken
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
    ShapeMerge,
    shape_of,
)
from airflow_bookmarks.glue.dynamic.json_records.variant_columns import ddl, got, taken
from airflow_bookmarks.glue.dynamic.records import check_cases, keep
from airflow_bookmarks.glue.dynamic.types import (
    ArrayType,
    DataType,
    StructType,
)
from airflow_bookmarks.glue.errors import ERROR_RECORDS
from airflow_bookmarks.spark.features import has_variants

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pyspark import RDD
    from pyspark.sql import Column, DataFrame, Row, SparkSession

    from airflow_bookmarks.glue.dynamic.choice import Steps
    from airflow_bookmarks.glue.run import GlueRun

_VALUE = "value"
# What becomes of a text: a variant, or it is no JSON, or more than one record; whether a number may be long.
_PARSED, _BAD, _LONG = "glue_parsed", "glue_bad", "glue_long"
# Spark's parser ends where a value ends: what stands behind it, such as a second record, it passes over. So it is given
# the record as a field, behind which it takes the end or another field, and nothing else. Only what follows one closing
# brace too many is still passed over.
_FIELD, _BEFORE, _BEHIND = "_", '{"_":', "}"
# Behind a record, where an array is written over lines; an error record shows it.
_COMMA = r"[,\s]+$"

# A number of ten digits or more, outside of texts: only then may a whole number need eight bytes. Most records have no
# ten digits at all but behind the point of a fraction, which costs less to see.
_ANY_TEN_DIGITS, _TEN_DIGITS = "[0-9](?<![0-9.][0-9])[0-9]{9}", r"[:,\[]\s*+-?+[0-9]{10}"
_INT = 2**31
# Records of so many shapes at most are merged here, which tells more than Spark's aggregate; a shape is some hundred
# characters, and a sparse record has many.
_MOST_SHAPES = 1000
# A fraction, also one that is whole, such as 1.0, see `shapes`. Its digits make shapes of their own, and say nothing; a
# quoted name may look like one.
_FRACTION, _ANY_FRACTION = r"DECIMAL\((?:1?[0-9],[1-9][0-9]?|(?:[1-9]|1[0-8]),0)\)", "DECIMAL(1,1)"
# A whole number that needs more than eight bytes.
_HUGE = r"^DECIMAL\((?:19|[23][0-9]),0\)$"
_CASE = "spark.sql.caseSensitive"
_DUPLICATE_KEYS = "spark.sql.variant.allowDuplicateKeys"


@dataclass(frozen=True)
class JsonRows:
    """What a text of JSON has held.

    Args:
        frame: its records in DataFrame form, with choices; pass it to `DynamicFrame.of`.
        errors: what could not be read; pass it on as well.
    """

    frame: DataFrame
    errors: ErrorRecords


class Split(Protocol):
    """How texts of several records are told, and split."""

    def may_be_one(self, value: Column) -> Column:
        """Whether a text may be one record: another is not parsed before it is split."""

    def records_of(self, text: DataFrame) -> DataFrame:
        """Return a row for each record in the texts of the column `value`; other columns go along."""


def frame_of_json(text: DataFrame, *, run: GlueRun, name: str = "json", split: Split | None = None) -> JsonRows:
    """Return the records that a text of JSON holds; the text is read once, and its parsed form kept until the run ends.

    Whole numbers are `int`, or `long` where one needs it, and fractions `double`; a column that holds both, or values
    of other types side by side, is a choice, also in structs and arrays. A key that comes twice has its last value.

    Args:
        text: rows of one JSON object each, in the column `value`; other columns go along, after those of the records,
            in place of fields with their names. A comma may end a row, as in an array over lines. A row that holds
            something else, or more, counts as an error; an empty one is skipped.
        run: the current run.
        name: the transformation context, for errors.
        split: splits rows that hold several records; without it none does.

    Raises:
        NestingError: a record nests too deep.
        FieldCaseError: two fields differ only in case.
    """
    if not has_variants():
        return _by_records(text, run, name, split)
    names = [column for column in text.columns if column != _VALUE]
    others = [column_of(column) for column in names]
    parsed = _parsed(text, others, split)
    keep(parsed, run)
    shapes = _shapes(parsed)
    looked = _looked(parsed, shapes)
    if split and looked.bad:
        texts = parsed.where(column_of(_BAD).isNotNull()).select(column_of(_BAD).alias(_VALUE), *others)
        rest = _parsed(split.records_of(texts), others, None)
        keep(rest, run)
        parsed = parsed.where(column_of(_BAD).isNull()).union(rest)
        records = None if shapes is None else [group for group in shapes if group["shape"] is not None]
        looked = _looked(parsed, records, _shapes(rest))
    if looked.bad and _has_longer(parsed, run, name):
        return _by_records(text, run, name, split)
    rows = _objects_alone(parsed) if looked.others else parsed
    types = without_taken(_types(rows, looked), names, run, name)
    check_cases(types, text.sparkSession, name)
    frame = _frame(rows.where(column_of(_PARSED).isNotNull()), types, others)
    return JsonRows(frame, _errors(rows, run, name, looked.bad + looked.others))


def _by_records(text: DataFrame, run: GlueRun, name: str, split: Split | None) -> JsonRows:
    frame, errors = json_by_records(split.records_of(text) if split else text, run=run, name=name)
    return JsonRows(frame, errors)


def _has_longer(parsed: DataFrame, run: GlueRun, name: str) -> bool:
    """Whether texts may be no JSON for Spark's parser because of their length; a warning tells how many."""
    found = parsed.where(F.length(column_of(_BAD)) > LONGEST_TEXT).count()
    if found:
        run.warn_once(
            f"{name}: {counted(found, 'record')} of JSON may hold a text of more than {LONGEST_TEXT:,} characters, "
            "which Spark's parser doesn't take: Python reads all records of this frame, which takes longer"
        )
    return found > 0


def _parsed(text: DataFrame, others: Sequence[Column], split: Split | None) -> DataFrame:
    """Return variants that have a record as their one field; beside them what is no record, or more than one."""
    value = column_of(_VALUE)
    is_written = value.startswith("{") | (F.trim(value) != "")
    may_be_one = is_written & split.may_be_one(value) if split else is_written
    record = F.when(value.endswith("}"), value).otherwise(F.regexp_replace(value, _COMMA, ""))
    # A key may come twice in an object: the expression that parses keeps what the conf says where it is made.
    with _conf(text.sparkSession, _DUPLICATE_KEYS):
        variant = F.when(may_be_one, F.try_parse_json(F.concat(F.lit(_BEFORE), record, F.lit(_BEHIND))))
        parsed = text.select(variant.alias(_PARSED), value, *others)
    is_bad = column_of(_PARSED).isNull() & (F.trim(value) != "")
    is_long = value.rlike(_ANY_TEN_DIGITS) & value.rlike(_TEN_DIGITS)
    return parsed.select(_PARSED, F.when(is_bad, value).alias(_BAD), is_long.alias(_LONG), *others)


def _frame(rows: DataFrame, types: StructType, others: Sequence[Column]) -> DataFrame:
    """Return the fields of the records as columns, with their choices."""
    # In two steps, since Spark takes a field from the variant again for each mention of it.
    names = [f"glue_{number}" for number, _ in enumerate(types)]
    fields = [got(column_of(_PARSED), (_FIELD, f.name), ddl(f.dataType)) for f in types]
    values = rows.select(*[field.alias(name) for field, name in zip(fields, names, strict=True)], *others)
    columns = [taken(column_of(name), f.dataType) for name, f in zip(names, types, strict=True)]
    return values.select(*[marked(c, f.name, f.dataType) for c, f in zip(columns, types, strict=True)], *others)


@contextmanager
def _conf(spark: SparkSession, key: str) -> Iterator[None]:
    """Let a setting be true for what is made, or asked, in the block."""
    before = spark.conf.get(key, None)
    spark.conf.set(key, "true")
    try:
        yield
    finally:
        if before is None:
            spark.conf.unset(key)
        else:
            spark.conf.set(key, before)


def _rows(asked: DataFrame) -> list[Row]:
    """Return what Spark says of shapes; without regard to case it takes `Id` and `id` of two objects for one key."""
    with _conf(asked.sparkSession, _CASE):
        return asked.collect()


@dataclass(frozen=True)
class _Looked:
    """What a look at all records has shown.

    Args:
        shape: the shape of those that are objects.
        answers: what is known already of places that the shape leaves open.
        has_long: whether a whole number may need eight bytes.
        bad: how many texts are no JSON, or more than one record.
        others: how many were no objects.
    """

    shape: DataType
    answers: Mapping[Steps, Answer]
    has_long: bool
    bad: int
    others: int


def _shapes(parsed: DataFrame) -> list[Row] | None:
    """Return the shapes of what was parsed, and how many have each: few as a rule; None if there are many.

    A row's `shape` is null for texts that are no record.
    """
    shape, names = column_of("shape"), F.schema_of_variant(_PARSED).alias("shape")
    counts = [F.count(column).alias(column) for column in (_PARSED, _BAD)]
    found = parsed.groupBy(names).agg(F.max(_LONG).alias(_LONG), *counts)
    plain = F.when(shape.contains("`"), shape).otherwise(F.regexp_replace(shape, _FRACTION, _ANY_FRACTION))
    sums = [F.sum(column).alias(column) for column in (_PARSED, _BAD)]
    merged = found.groupBy(plain.alias("shape")).agg(F.max(_LONG).alias(_LONG), *sums)
    groups = _rows(merged.limit(_MOST_SHAPES + 1))
    return None if len(groups) > _MOST_SHAPES else groups


def _looked(parsed: DataFrame, *shapes: list[Row] | None) -> _Looked:
    """Return what records hold by their shapes, or by one more look at them where there are too many shapes."""
    groups = [group for each in shapes if each is not None for group in each]
    return _by_aggregate(parsed) if None in shapes else _by_shape(groups)


def _by_shape(groups: Sequence[Row]) -> _Looked:
    """Return what the records hold by their shapes."""
    objects, records, merge = [], [], ShapeMerge()
    for group in groups:
        record = _record_in(group["shape"])
        if record is not None:
            objects.append(group)
            records.append(record)
    held = merge.merged(records)
    has_long = any(group[_LONG] for group in objects)
    bad, all_parsed = (sum(group[column] for group in groups) for column in (_BAD, _PARSED))
    return _Looked(
        shape=held,
        # Whether whole numbers need eight bytes is asked together with what else the values there are.
        answers={place: each for place, each in merge.answers.items() if not (has_long and INT in each.kinds)},
        has_long=has_long,
        bad=bad,
        others=all_parsed - sum(group[_PARSED] for group in objects),
    )


def _record_in(shape: str | None) -> StructType | None:
    """Return the shape of the record in what was parsed; None if there is no object, or more than one value."""
    parsed = None if shape is None else shape_of(shape)
    held = [part.dataType for part in parsed] if isinstance(parsed, StructType) else []
    return held[0] if len(held) == 1 and isinstance(held[0], StructType) else None


def _by_aggregate(parsed: DataFrame) -> _Looked:
    """Return what the records hold by Spark's own aggregate, whatever number of shapes they have."""
    variant = column_of(_PARSED)
    asked = [F.schema_of_variant_agg(variant), F.max(_LONG), F.count(_BAD)]
    [(shape, has_long, bad)] = _rows(parsed.agg(*asked))
    record, others = _record_in(shape), 0
    if record is None:
        is_record = _is_record(variant)
        asked = [F.schema_of_variant_agg(F.when(is_record, variant)), F.count_if(~is_record)]
        [(shape, others)] = _rows(parsed.agg(*asked))
        record = _record_in(shape)
    return _Looked(record or StructType(), {}, bool(has_long), bad, others)


def _is_record(variant: Column) -> Column:
    """Whether what was parsed is one object, and nothing else."""
    shape = F.schema_of_variant(got(variant, (_FIELD,), "variant"))
    is_all = F.schema_of_variant(variant) == F.concat(F.lit(f"{OBJECT}<{_FIELD}: "), shape, F.lit(">"))
    return is_all & shape.startswith(OBJECT)


def _objects_alone(parsed: DataFrame) -> DataFrame:
    """Return the rows where what is no object counts as bad."""
    variant = column_of(_PARSED)
    text = F.to_json(variant)
    inside = F.substring(text, F.lit(len(_BEFORE) + 1), F.length(text) - len(_BEFORE) - len(_BEHIND))
    bad = F.when(variant.isNull(), column_of(_BAD)).when(~_is_record(variant), inside)
    return parsed.withColumn(_BAD, bad).withColumn(_PARSED, F.when(column_of(_BAD).isNull(), variant))


def _errors(rows: DataFrame, run: GlueRun, name: str, bad: int) -> ErrorRecords:
    if not bad:
        return ErrorRecords()
    run.count(ERROR_RECORDS, bad, ctx=name)

    def failures() -> RDD[RecordFailure]:
        texts = rows.where(column_of(_BAD).isNotNull()).select(_BAD)
        return texts.rdd.map(lambda row: RecordFailure("not a JSON object", source=row[0]))

    return ErrorRecords((ErrorStage(name, "", lambda: bad, failures),))


# ---- what the types are


def _types(rows: DataFrame, looked: _Looked) -> StructType:
    """Return the types of the records, asking for what is open until nothing is."""
    answers = dict(looked.answers)
    while True:
        settling = ChoiceSettling(looked.has_long, answers)
        types = settling.settled(looked.shape)
        if not settling.open:
            return types if isinstance(types, StructType) else StructType()
        answers |= _asked(rows, settling.open, has_long=looked.has_long)


def _asked(rows: DataFrame, places: Sequence[Steps], *, has_long: bool) -> dict[Steps, Answer]:
    """Ask what the values at places are: in one aggregate, and in one more if there are objects or arrays."""
    values = {place: _values_at(column_of(_PARSED), (_FIELD, *place)) for place in places}
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
    [found] = _rows(rows.agg(*[column.alias(str(number)) for number, column in enumerate(asked.values())]))
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
    return ~whole.between(-_INT, _INT - 1) & (F.schema_of_variant(variant) == "BIGINT")


def _those(variants: Column, shape: str) -> Column:
    return F.to_variant_object(F.filter(variants, lambda each: F.schema_of_variant(each).startswith(shape)))
