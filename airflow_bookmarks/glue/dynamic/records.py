"""The record form of a frame: dicts in Python, and how they become a DataFrame with choices."""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any, TypeVar

from pyspark import StorageLevel

from airflow_bookmarks.core.errors import BookmarkError
from airflow_bookmarks.glue.dynamic.choice import glue_schema, one_type, spark_schema
from airflow_bookmarks.glue.dynamic.error_records import RecordFailure
from airflow_bookmarks.glue.dynamic.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    ByteType,
    ChoiceType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    Field,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    NullType,
    ShortType,
    StringType,
    StructType,
    TimestampNTZType,
    TimestampType,
)
from airflow_bookmarks.glue.errors import DROPPED_RECORDS, ERROR_RECORDS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from pyspark import RDD
    from pyspark.sql import DataFrame, Row, SparkSession

    from airflow_bookmarks.glue.run import GlueRun

# What became of a record: itself, why it could not be made, or None where a function has dropped it.
Outcome = dict[str, Any] | RecordFailure | None

_INT, _LONG = 2**31, 2**63
_MOST_DIGITS = 38


class DynamicRecord(dict[str, Any]):
    """A record as functions of Map and Filter get it: a dict whose fields are attributes, too.

    Example:
        >>> record = DynamicRecord({"id": 1, "address": {"city": "Bonn"}})
        >>> record.id, record["address"].city
        (1, 'Bonn')
    """

    def __init__(self, fields: Mapping[str, Any] | None = None) -> None:
        super().__init__({name: _with_attributes(value) for name, value in (fields or {}).items()})

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(name) from None

    def __setattr__(self, name: str, value: Any) -> None:
        self[name] = value

    def __delattr__(self, name: str) -> None:
        try:
            del self[name]
        except KeyError:
            raise AttributeError(name) from None


def _with_attributes(value: Any) -> Any:
    if isinstance(value, dict) and not isinstance(value, DynamicRecord):
        return DynamicRecord(value)
    return [_with_attributes(each) for each in value] if isinstance(value, list) else value


def keep(data: RDD[Any] | DataFrame, run: GlueRun) -> None:
    """Keep what is computed of an RDD or a DataFrame on disk until the run ends, so that it is computed once."""
    data.persist(StorageLevel.DISK_ONLY)

    def release() -> None:
        data.unpersist()

    run.at_end(release)


# ---- which types records hold


class FieldCaseError(BookmarkError):
    """Raised when two fields of records differ in nothing but case, and Spark takes them for one column."""


def check_cases(schema: StructType, spark: SparkSession, name: str) -> None:
    """Make sure that Spark can tell the fields of records from each other, at any depth.

    Args:
        schema: the types of the records.
        spark: their session, which may tell columns by case: `spark.sql.caseSensitive`.
        name: the transformation context, for the message.

    Raises:
        FieldCaseError: it can't.
    """
    pair = None if spark.conf.get("spark.sql.caseSensitive") == "true" else _differing_in_case(schema)
    if pair is not None:
        raise FieldCaseError(
            f"{name}: the fields {pair[0]!r} and {pair[1]!r} of its records differ only in case, and Spark takes them "
            "for one column. Nothing was written or committed. Give them names that differ, or set "
            "spark.sql.caseSensitive=true for the whole job."
        )


def _differing_in_case(held: DataType) -> tuple[str, str] | None:
    """Return two names of one struct that differ only in case, the first at any depth; None if there are none."""
    if isinstance(held, StructType):
        seen: dict[str, str] = {}
        for each in held.fields:
            if (other := seen.setdefault(_folded(each.name), each.name)) != each.name:
                return other, each.name
    return next((pair for part in _parts_of(held) if (pair := _differing_in_case(part)) is not None), None)


def _folded(name: str) -> str:
    """Return a name as Java compares it without regard to case: each character in capitals, and back."""
    capitals = [upper if len(upper := character.upper()) == 1 else character for character in name]
    return "".join(capital.lower()[:1] for capital in capitals)


def _parts_of(held: DataType) -> Sequence[DataType]:
    if isinstance(held, StructType):
        return [each.dataType for each in held.fields]
    if isinstance(held, ChoiceType):
        return held.choices
    if isinstance(held, ArrayType):
        return [held.elementType]
    return [held.valueType] if isinstance(held, MapType) else []


class RecordTypeError(TypeError):
    """Raised when a record holds a value of a type of Python that no column can have."""


@dataclass
class SeenTypes:
    """The types that were seen at one place, and below it.

    Args:
        kinds: names of types: "int", "string", "struct".
        fields: what was seen in the fields of structs, in the order in which they came first.
        element: what was seen in arrays.
        digits: of decimal numbers, the most before and after the point.
    """

    kinds: set[str] = field(default_factory=set)
    fields: dict[str, SeenTypes] = field(default_factory=dict)
    element: SeenTypes | None = None
    digits: tuple[int, int] = (0, 0)

    def add(self, value: Any, name: str = "") -> None:
        """See one more value.

        Raises:
            RecordTypeError: of a type that no column has; the message names the field.
        """
        if value is None:
            return
        kind = _kind_of(value, name)
        self.kinds.add(kind)
        if kind == "struct":
            for key, part in value.items():
                self.fields.setdefault(str(key), SeenTypes()).add(part, f"{name}.{key}".removeprefix("."))
        elif kind == "array":
            self.element = self.element or SeenTypes()
            for part in value:
                self.element.add(part, f"{name}[]")
        elif kind == "decimal":
            whole, after = _digits_of(value)
            self.digits = (max(self.digits[0], whole), max(self.digits[1], after))

    def merge(self, other: SeenTypes) -> SeenTypes:
        """See what another has seen."""
        self.kinds |= other.kinds
        for name, part in other.fields.items():
            self.fields[name] = self.fields[name].merge(part) if name in self.fields else part
        if other.element is not None:
            self.element = self.element.merge(other.element) if self.element else other.element
        self.digits = (max(self.digits[0], other.digits[0]), max(self.digits[1], other.digits[1]))
        return self

    def schema(self, known: StructType | None = None) -> StructType:
        """Return the schema of records.

        Args:
            known: the types that fields had before a function made the records anew. A field keeps its type if its
                values still fit: else a column of longs that are small today would be one of ints.
        """
        before = {} if known is None else known.field_map
        names = [
            *(name for name in before if name in self.fields),
            *(name for name in self.fields if name not in before),
        ]
        return StructType([Field(n, self.fields[n].type(before[n].dataType if n in before else None)) for n in names])

    def type(self, known: DataType | None = None) -> DataType:
        """Return the type of values here: a choice where they are of several. See `schema` for `known`."""
        if not self.kinds or (self.kinds == {"struct"} and not self.fields):
            return _WIDER.get(type(known), known) or NullType()
        found = [kind() for kind in _ATOMS if kind.typeName() in self.kinds]
        if "long" in self.kinds or _among(known, LongType):
            found = [LongType() if isinstance(kind, IntegerType) else kind for kind in found]
        if self.kinds == {"timestamp"} and isinstance(known, TimestampNTZType):
            found = [known]
        types: list[DataType] = [*dict.fromkeys(found)]
        if "decimal" in self.kinds:
            types.append(self._decimal(_among(known, DecimalType)))
        if "struct" in self.kinds and self.fields:
            types.append(self._struct(known))
        if "array" in self.kinds:
            before = _among(known, ArrayType)
            element = (self.element or SeenTypes()).type(before.elementType if before else None)
            types.append(ArrayType(StringType() if isinstance(element, NullType) else element))
        return one_type(types)

    def _decimal(self, known: DecimalType | None) -> DecimalType:
        whole, after = self.digits[0], min(self.digits[1], _MOST_DIGITS)
        if known is not None and after <= known.scale and whole <= known.precision - known.scale:
            return known
        return DecimalType(min(max(whole + after, 1), _MOST_DIGITS), after)

    def _struct(self, known: DataType | None) -> DataType:
        """Return the type of dicts: what was a map before is one, if its values are still of one type."""
        if isinstance(known, MapType) and self.kinds == {"struct"}:
            values = {part.type(known.valueType) for part in self.fields.values()}
            if len(values) == 1:
                return MapType(values.pop())
        return self.schema(_among(known, StructType))


_Kind = TypeVar("_Kind", bound=DataType)


def _among(known: DataType | None, kind: type[_Kind]) -> _Kind | None:
    """Return a type that is of a kind, or that of its choices which is."""
    kinds = known.choices if isinstance(known, ChoiceType) else [known]
    return next((each for each in kinds if isinstance(each, kind)), None)


# What Python makes of a type, if it is another.
_WIDER: Mapping[type[Any], DataType] = {ByteType: IntegerType(), ShortType: IntegerType(), FloatType: DoubleType()}

_ATOMS: tuple[type[DataType], ...] = (
    IntegerType,
    LongType,
    DoubleType,
    StringType,
    BooleanType,
    BinaryType,
    DateType,
    TimestampType,
)
# bool is an int, and datetime a date, so they come first.
_KINDS: tuple[tuple[type | tuple[type, ...], str], ...] = (
    (bool, "boolean"),
    (float, "double"),
    (str, "string"),
    (dict, "struct"),
    ((list, tuple, set, frozenset), "array"),
    (Decimal, "decimal"),
    ((bytes, bytearray), "binary"),
    (datetime, "timestamp"),
    (date, "date"),
)


def _kind_of(value: Any, name: str) -> str:
    for kind, called in _KINDS:
        if isinstance(value, kind):
            return called
    if isinstance(value, int):
        return "int" if -_INT <= value < _INT else "long" if -_LONG <= value < _LONG else "decimal"
    raise RecordTypeError(
        f"the field {name!r} of a record holds a {type(value).__name__}, and no column has that type. Nothing was "
        "written. Return numbers, text, dates, lists and dicts."
    )


def _digits_of(value: Decimal | int) -> tuple[int, int]:
    _, digits, exponent = Decimal(value).as_tuple()
    if not isinstance(exponent, int):  # NaN and infinite
        return (0, 0)
    return max(len(digits) + exponent, 0), max(-exponent, 0)


# ---- records made of rows, and rows of records


def as_value(value: Any, wanted: DataType) -> Any:
    """Return a value in the form in which a DataFrame of this layer takes it: structs and choices are tuples."""
    if value is None:
        return None
    if isinstance(wanted, ChoiceType):
        kind = _kind_of(value, "")
        if kind == "int" and all(part.typeName() != "int" for part in wanted.choices):
            kind = "long"
        return tuple(as_value(value, part) if part.typeName() == kind else None for part in wanted.choices)
    if isinstance(wanted, StructType):
        return tuple(as_value(value.get(part.name), part.dataType) for part in wanted.fields)
    if isinstance(wanted, ArrayType):
        return [as_value(each, wanted.elementType) for each in value]
    if isinstance(wanted, MapType):
        return {key: as_value(each, wanted.valueType) for key, each in value.items()}
    if isinstance(wanted, DecimalType):
        return Decimal(value)
    return None if isinstance(wanted, NullType) else value


def from_value(value: Any, held: DataType) -> Any:
    """Return a value of a row in record form: structs are dicts, and a choice is the value that it holds."""
    if value is None:
        return None
    if isinstance(held, ChoiceType):
        found = ((part, each) for part, each in zip(held.choices, value, strict=True) if each is not None)
        return next((from_value(each, part) for part, each in found), None)
    if isinstance(held, StructType):
        return {part.name: from_value(each, part.dataType) for part, each in zip(held.fields, value, strict=True)}
    if isinstance(held, ArrayType):
        return [from_value(each, held.elementType) for each in value]
    if isinstance(held, MapType):
        return {key: from_value(each, held.valueType) for key, each in value.items()}
    return bytes(value) if isinstance(value, bytearray) else value


def records_of(frame: DataFrame) -> RDD[dict[str, Any]]:
    """Return the rows of a DataFrame form as dicts: a choice is the value that it holds."""
    schema = glue_schema(frame.schema)

    def record(row: Row) -> dict[str, Any]:
        made: dict[str, Any] = from_value(row, schema)
        return made

    return frame.rdd.map(record)


class Outcomes:
    """Records that a function has made, or failed to make, as an RDD whose function runs once.

    Args:
        outcomes: dicts, a `RecordFailure` for each record that could not be made, None for each that was dropped.
        run: the current run. It counts the dropped and the failed, and keeps the RDD until it ends.
        name: the transformation context, under which it counts.
        before: those that these were made of. They are counted with these, so that functions that follow each other
            run in one pass.
        known: returns the types that fields had before the first of these functions, see `SeenTypes.schema`.
    """

    def __init__(
        self,
        outcomes: RDD[Outcome],
        run: GlueRun,
        name: str,
        before: Outcomes | None = None,
        known: Callable[[], StructType] = StructType,
    ) -> None:
        self._outcomes, self._run, self._name, self._before = outcomes, run, name, before
        self.known = known
        self._is_kept = False
        self._tally: Tally | None = None
        self._frame: DataFrame | None = None

    def records(self) -> RDD[dict[str, Any]]:
        """Return the records that were made."""
        return self._kept().filter(_is_record)  # type: ignore[return-value]  # RDD.filter narrows no types

    def failures(self) -> RDD[RecordFailure]:
        """Return the failures."""
        return self._kept().filter(_is_failure)  # type: ignore[return-value]  # RDD.filter narrows no types

    def count(self) -> int:
        """Return how many records were made."""
        return self._counted().records

    def count_failures(self) -> int:
        """Return how many could not be made."""
        return self._counted().failures

    def dataframe(self) -> DataFrame:
        """Return the records in DataFrame form, with choices where their types differ.

        Raises:
            RecordTypeError: a record holds a value of a type that no column has.
            FieldCaseError: two fields differ only in case.
        """
        if self._frame is None:
            tallies = self._kept().mapPartitions(_seen_in).collect()
            seen = SeenTypes()
            for types, _ in tallies:
                seen = seen.merge(types)
            self._note(sum((tally for _, tally in tallies), Tally()))
            schema = seen.schema(self.known())
            check_cases(schema, self._run.spark, self._name)
            rows = self.records().map(lambda record: as_value(record, schema))
            # Without a check of each value: the schema was made of them.
            self._frame = self._run.spark.createDataFrame(rows, spark_schema(schema), verifySchema=False)
        return self._frame

    def _kept(self) -> RDD[Outcome]:
        if not self._is_kept:
            keep(self._outcomes, self._run)
            self._is_kept = True
        return self._outcomes

    def _counted(self) -> Tally:
        if self._tally is None:
            tallies = self._kept().mapPartitions(_tally_of).collect()
            return self._note(sum(tallies, Tally()))
        return self._tally

    def _note(self, tally: Tally) -> Tally:
        """Note the counts on the run, once, and those of what came before: their rows are kept by now."""
        if self._tally is None:
            self._tally = tally
            self._run.count(DROPPED_RECORDS, tally.dropped, ctx=self._name)
            self._run.count(ERROR_RECORDS, tally.failures, ctx=self._name)
            if self._before is not None:
                self._before._counted()
        return self._tally


@dataclass(frozen=True)
class Tally:
    """How many records were made, could not be made, and were dropped."""

    records: int = 0
    failures: int = 0
    dropped: int = 0

    def __add__(self, other: Tally) -> Tally:
        return Tally(self.records + other.records, self.failures + other.failures, self.dropped + other.dropped)


def _tally_of(outcomes: Iterable[Outcome]) -> Iterator[Tally]:
    records = failures = dropped = 0
    for outcome in outcomes:
        records += _is_record(outcome)
        failures += _is_failure(outcome)
        dropped += outcome is None
    yield Tally(records, failures, dropped)


def _seen_in(outcomes: Iterable[Outcome]) -> Iterator[tuple[SeenTypes, Tally]]:
    seen = SeenTypes()

    def looked_at() -> Iterator[Outcome]:
        for outcome in outcomes:
            if isinstance(outcome, dict):
                seen.add(outcome)
            yield outcome

    (tally,) = _tally_of(looked_at())
    yield seen, tally


def _is_record(outcome: Outcome) -> bool:
    return isinstance(outcome, dict)


def _is_failure(outcome: Outcome) -> bool:
    return isinstance(outcome, RecordFailure)


# ---- JSON


def json_text(record: Mapping[str, Any]) -> str:
    """Return a record as JSON, as `show` prints it."""
    return json.dumps(record, default=_as_json, ensure_ascii=False)


def _as_json(value: Any) -> Any:
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    if isinstance(value, bytes | bytearray):
        return base64.b64encode(value).decode()
    return list(value) if isinstance(value, set | frozenset) else str(value)
