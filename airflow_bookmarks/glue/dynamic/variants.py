"""JSON whose records differ in types: read once, as a DataFrame with choices.

    text --parse--> variants, kept on disk --one aggregate--> shape --one more, if something is open--> types
                            `------------------------ taken apart by these types ------------------------> columns

What is open after the first aggregate is told in `shapes`. PySpark 3.5 has no variants: there Python finds the types.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from airflow_bookmarks.glue.dynamic.choice import choices_in, column_of, marked, spark_type
from airflow_bookmarks.glue.dynamic.error_records import ErrorRecords, ErrorStage, RecordFailure
from airflow_bookmarks.glue.dynamic.parsed_records import json_by_records
from airflow_bookmarks.glue.dynamic.records import check_cases, keep
from airflow_bookmarks.glue.dynamic.shapes import (
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
from airflow_bookmarks.glue.dynamic.types import (
    ArrayType,
    ChoiceType,
    DataType,
    NullType,
    StructType,
)
from airflow_bookmarks.glue.errors import ERROR_RECORDS
from airflow_bookmarks.spark.features import has_variants

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from pyspark import RDD
    from pyspark.sql import Column, DataFrame, Row, SparkSession

    from airflow_bookmarks.glue.dynamic.choice import Steps
    from airflow_bookmarks.glue.run import GlueRun

_VALUE, _PARSED, _BAD = "value", "glue_parsed", "glue_bad"

# A number of ten digits or more, outside of texts: only then may a whole number need eight bytes.
_TEN_DIGITS = r"[:,\[]\s*-?[0-9]{10}"
_INT = 2**31
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


def frame_of_json(text: DataFrame, *, run: GlueRun, name: str = "json") -> JsonRows:
    """Return the records that a text of JSON holds; the text is read once, and its parsed form kept until the run ends.

    Whole numbers are `int`, or `long` where one needs it, and fractions `double`; a column that holds both, or values
    of other types side by side, is a choice, also in structs and arrays. A key that comes twice has its last value.

    Args:
        text: rows of one JSON object each, in the column `value`; other columns go along, after those of the records.
            A row that holds something else counts as an error; an empty one is skipped.
        run: the current run.
        name: the transformation context, for errors.

    Raises:
        FieldCaseError: two fields differ only in case.
    """
    if not has_variants():
        frame, errors = json_by_records(text, run=run, name=name)
        return JsonRows(frame, errors)
    parsed = _parsed(text)
    keep(parsed, run)
    found = _found(
        parsed.agg(
            F.schema_of_variant_agg(_PARSED).alias("shape"),
            F.max("glue_long").alias("long"),
            F.count(_BAD).alias("bad"),
        )
    )
    rows, shape, bad = parsed, shape_of(found["shape"]), found["bad"]
    if not isinstance(shape, StructType | NullType):
        rows, bad = _objects_alone(parsed)
        shape = shape_of(_found(rows.agg(F.schema_of_variant_agg(_PARSED)))[0])
    types = _types(rows, shape, has_long=bool(found["long"]))
    check_cases(types, text.sparkSession, name)
    others = [column for column in text.columns if column != _VALUE]
    columns = [marked(_extracted(column_of(_PARSED), (f.name,), f.dataType), f.name, f.dataType) for f in types]
    kept = rows.where(column_of(_PARSED).isNotNull())
    frame = kept.select(*columns, *[column_of(other) for other in others])
    return JsonRows(frame, _errors(rows, run, name, bad))


def _parsed(text: DataFrame) -> DataFrame:
    value = column_of(_VALUE)
    others = [column_of(column) for column in text.columns if column != _VALUE]
    given = text.where(F.trim(value) != "")
    # A key may come twice in an object: the expression that parses keeps what the conf says where it is made.
    with _conf(text.sparkSession, _DUPLICATE_KEYS):
        parsed = given.select(F.try_parse_json(value).alias(_PARSED), value, *others)
    bad = F.when(column_of(_PARSED).isNull(), value).alias(_BAD)
    is_long = value.rlike(_TEN_DIGITS).alias("glue_long")
    return parsed.select(_PARSED, bad, is_long, *others)


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


def _found(asked: DataFrame) -> Row:
    """Return the one row of an aggregate; without regard to case it takes `Id` and `id` of two records for one key."""
    with _conf(asked.sparkSession, _CASE):
        row: Row = asked.collect()[0]
    return row


def _objects_alone(parsed: DataFrame) -> tuple[DataFrame, int]:
    """Return the rows where what is no object counts as bad, and how many are bad."""
    variant = column_of(_PARSED)
    is_object = F.schema_of_variant(variant).startswith("OBJECT")
    bad = F.when(~F.coalesce(is_object, F.lit(False)), F.coalesce(column_of(_BAD), F.to_json(variant)))
    rows = parsed.withColumn(_BAD, bad).withColumn(_PARSED, F.when(column_of(_BAD).isNull(), variant))
    return rows, rows.agg(F.count(_BAD)).collect()[0][0]


def _errors(rows: DataFrame, run: GlueRun, name: str, bad: int) -> ErrorRecords:
    if not bad:
        return ErrorRecords()
    run.count(ERROR_RECORDS, bad, ctx=name)

    def failures() -> RDD[RecordFailure]:
        texts = rows.where(column_of(_BAD).isNotNull()).select(_BAD)
        return texts.rdd.map(lambda row: RecordFailure("not a JSON object", source=row[0]))

    return ErrorRecords((ErrorStage(name, "", lambda: bad, failures),))


# ---- what the types are


def _types(rows: DataFrame, shape: DataType, *, has_long: bool) -> StructType:
    """Return the types of the records, asking for what is open until nothing is."""
    answers: dict[Steps, Answer] = {}
    while True:
        settling = ChoiceSettling(has_long, answers)
        types = settling.settled(shape)
        if not settling.open:
            return types if isinstance(types, StructType) else StructType()
        answers |= _asked(rows, settling.open, has_long=has_long)


def _asked(rows: DataFrame, places: Sequence[Steps], *, has_long: bool) -> dict[Steps, Answer]:
    """Ask what the values at places are, in one aggregate."""
    aggregates: list[Column] = []
    for number, place in enumerate(places):
        values = _values_at(column_of(_PARSED), place)
        asked = _of_one(values.column) if isinstance(values, _Single) else _of_several(values.column)
        if not has_long:
            asked = (*asked[:3], F.lit(None))
        aggregates += [each.alias(f"{what}{number}") for what, each in zip(_ASKED, asked, strict=True)]
    found = _found(rows.agg(*aggregates))
    answers = {}
    for number, place in enumerate(places):
        kinds, struct, array, is_long = (found[f"{what}{number}"] for what in _ASKED)
        shapes = [shape_of(struct), shape_of(array)]
        if None in place:  # those are shapes of arrays of what was asked for
            shapes = [shape.elementType if isinstance(shape, ArrayType) else shape for shape in shapes]
        known = frozenset(kinds) | ({LONG} if is_long and INT in kinds else frozenset())
        answers[place] = Answer(known, shapes[0], shapes[1])
    return answers


# What is asked of each place: the kinds, the shapes of objects and of arrays, whether a whole number needs eight bytes.
_ASKED = ("kinds", "struct", "array", "long")


def _of_one(value: Column) -> tuple[Column, ...]:
    name = F.schema_of_variant(value)
    return (
        F.collect_set(_kind(name)),
        F.schema_of_variant_agg(F.when(name.startswith("OBJECT"), value)),
        F.schema_of_variant_agg(F.when(name.startswith("ARRAY"), value)),
        F.max(_is_long(value)),
    )


def _of_several(values: Column) -> tuple[Column, ...]:
    # The names are made first: of a lambda Spark evaluates each mention of an expression.
    kinds = F.array_sort(F.array_distinct(F.transform(F.transform(values, F.schema_of_variant), _kind)))
    return (
        F.array_distinct(F.flatten(F.collect_set(kinds))),
        F.schema_of_variant_agg(_those(values, "OBJECT")),
        F.schema_of_variant_agg(_those(values, "ARRAY")),
        F.max(F.exists(values, _is_long)),
    )


@dataclass(frozen=True)
class _Single:
    column: Column


@dataclass(frozen=True)
class _Several:
    column: Column


def _values_at(root: Column, place: Steps) -> _Single | _Several:
    """Return the values at a place, as a variant, or as an array of variants where the place is within arrays."""
    if None not in place:
        return _Single(_got(root, place, "variant"))
    at = place.index(None)
    elements = _got(root, place[:at], "array<variant>")
    rest = place[at + 1 :]
    if not rest:
        return _Several(elements)
    if None in rest:
        return _Several(F.flatten(F.transform(elements, lambda each: _several(each, rest))))
    return _Several(F.transform(elements, lambda each: _got(each, rest, "variant")))


def _several(root: Column, place: Steps) -> Column:
    # An element without the array adds nothing; null would make all null.
    return F.coalesce(_values_at(root, place).column, F.array().cast("array<variant>"))


def _kind(name: Column) -> Column:
    """Return what values of a schema are; null if they are null, or absent."""
    return (
        F.when(name == "BIGINT", INT)
        .when(name.startswith("OBJECT"), OBJECT)
        .when(name.startswith("ARRAY"), ARRAY)
        .when(name.rlike(r"^DECIMAL\([23]\d,0\)$"), HUGE)
        .when(name.startswith("DECIMAL"), DOUBLE)
        .when(name.isin(TEXT, BOOLEAN, DOUBLE), name)
    )


def _is_long(variant: Column) -> Column:
    whole = F.try_variant_get(variant, "$", "bigint")
    return ~whole.between(-_INT, _INT - 1) & (F.schema_of_variant(variant) == "BIGINT")


def _those(variants: Column, shape: str) -> Column:
    return F.to_variant_object(F.filter(variants, lambda each: F.schema_of_variant(each).startswith(shape)))


# ---- taking variants apart


def _extracted(root: Column, place: Steps, wanted: DataType) -> Column:
    """Return the value at a place of a variant as a type, with its choices."""
    if isinstance(wanted, NullType):
        return F.lit(None)
    if not choices_in(wanted) and not _has_null(wanted):  # Spark takes a variant apart itself, but into no null type
        return _got(root, place, _ddl(wanted))
    name = F.schema_of_variant(_got(root, place, "variant"))
    if isinstance(wanted, StructType):
        fields = [_extracted(root, (*place, f.name), f.dataType).alias(f.name) for f in wanted]
        return F.when(name.startswith("OBJECT"), F.struct(*fields))
    if isinstance(wanted, ArrayType):
        element = wanted.elementType
        return F.transform(_got(root, place, "array<variant>"), lambda each: _extracted(each, (), element))
    if not isinstance(wanted, ChoiceType):
        raise TypeError(f"no JSON is read as {wanted}")
    held = [
        F.when(_IS[part.typeName()](name), _extracted(root, place, part)).alias(part.typeName())
        for part in wanted.choices
    ]
    return F.when(name != "VOID", F.struct(*held))


# Whether a value whose schema has a name is one of a type of a choice. No choice has whole numbers of two types.
_IS: Mapping[str, Callable[[Column], Column]] = {
    "int": lambda name: name == "BIGINT",
    "long": lambda name: name == "BIGINT",
    "decimal": lambda name: (name == "BIGINT") | name.startswith("DECIMAL"),
    "double": lambda name: (name == "DOUBLE") | name.startswith("DECIMAL"),
    "string": lambda name: name == "STRING",
    "boolean": lambda name: name == "BOOLEAN",
    "struct": lambda name: name.startswith("OBJECT"),
    "array": lambda name: name.startswith("ARRAY"),
}


def _has_null(wanted: DataType) -> bool:
    if isinstance(wanted, StructType):
        return any(_has_null(part.dataType) for part in wanted)
    return isinstance(wanted, NullType) or (isinstance(wanted, ArrayType) and _has_null(wanted.elementType))


def _ddl(wanted: DataType) -> str:
    """Return a type with parts as Spark's SQL writes it, whatever its names hold."""
    if isinstance(wanted, StructType):
        parts = [f"`{part.name.replace('`', '``')}`: {_ddl(part.dataType)}" for part in wanted]
        return f"struct<{', '.join(parts)}>"
    if isinstance(wanted, ArrayType):
        return f"array<{_ddl(wanted.elementType)}>"
    return spark_type(wanted).simpleString()


def _got(root: Column, place: Sequence[str | None], target: str) -> Column:
    """Return what a variant holds below names, as a type of Spark's SQL; null if it is absent or doesn't fit."""
    path = "$"
    for number, name in enumerate(place):
        if name is None:
            raise TypeError(f"no value is at {place}: it leads into an array")
        if '"' in name and "'" in name:  # no path can name it
            entries = F.try_variant_get(root, path, "map<string, variant>")
            return _got(entries[F.lit(name)], place[number + 1 :], target)
        quote = "'" if '"' in name else '"'
        path += f"[{quote}{name}{quote}]"
    return root if path == "$" and target == "variant" else F.try_variant_get(root, path, target)
