"""Set the options with which `upstream()` reads exactly the rows that were written.

Spark's own defaults lose some on the way: CSV trims spaces, reads an empty text as NULL, and a line break in a value as
the end of a row; CSV, JSON and XML cut microseconds off. These options are set unless the user sets them; what a reader
needs is recorded with the output. What no option can carry is reported at the write: `docs/reference/round_trips.md`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql.types import ArrayType, BinaryType, DataType, MapType, StringType, StructType

from airflow_bookmarks.spark.readers.by_format import set_option

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

# In a CSV file NULL is nothing, and an empty text is "". A reader gets this in place of nothing, and makes it NULL: so
# it has to be what no text says (private use, and no white space). In a file it stands only where one column is all,
# since an empty line is no row.
NULL_MARK = "\ue000NULL\ue000"
_NO_COLUMN = "\ue000corrupt\ue000"

_TIMES = {
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXXXX",  # offsets had seconds before there were time zones
    "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS",
}
_WRITTEN: Mapping[str, Mapping[str, str]] = {
    "csv": {
        **_TIMES,
        "ignoreLeadingWhiteSpace": "false",
        "ignoreTrailingWhiteSpace": "false",
        "lineSep": "\n",
    },
    "json": _TIMES,
    "xml": {**_TIMES, "rowTag": "ROW"},
}
_READ: Mapping[str, Mapping[str, str]] = {
    "csv": {"multiLine": "true", "nullValue": NULL_MARK},
    "xml": {"ignoreSurroundingSpaces": "false"},
}
_CORRUPT_RECORD = "_corrupt_record"  # a column in which these formats would put what they can't parse

# What a later reader of the output needs. Only these are kept with the run: an option may hold a secret.
READING_OPTIONS = frozenset(
    [
        "header",
        "sep",
        "delimiter",
        "quote",
        "escape",
        "encoding",
        "charset",
        "nullvalue",
        "emptyvalue",
        "dateformat",
        "timestampformat",
        "timestampntzformat",
        "linesep",
        "multiline",
        "comment",
        "chartoescapequoteescaping",
        "locale",
        "timezone",
        "rowtag",
        "attributeprefix",
        "valuetag",
        "ignoresurroundingspaces",
        "columnnameofcorruptrecord",
    ]
)


@dataclass(frozen=True, slots=True)
class RoundTrip:
    """How an output is written, with which options it is to be read, and what of it does not come back."""

    writing: Mapping[str, str]
    reading: Mapping[str, str]
    losses: Sequence[str] = ()

    @classmethod
    def of(cls, name: str, schema: StructType, partition_by: Sequence[str], given: Mapping[str, str]) -> RoundTrip:
        """Return that of a frame with these columns in a format, with the options that the user has set."""
        partitions = {column.lower() for column in partition_by}
        inside = [field for field in schema.fields if field.name.lower() not in partitions]
        writing = _unless_given(_writing(name, len(inside), given), given)
        read = dict(_READ.get(name, {}))
        if name in ("csv", "json", "xml") and any(field.name.lower() == _CORRUPT_RECORD for field in inside):
            read["columnNameOfCorruptRecord"] = _NO_COLUMN
        reading = {key: value for key, value in writing.items() if key.lower() in READING_OPTIONS}
        if _value(given, "emptyValue") is None:
            reading = _without(reading, "emptyValue")
            if (null := _value(writing, "nullValue")) is not None and null == _value(writing, "emptyValue"):
                # NULL is written as empty text. Told so, a reader would make NULL of two quotes that a value has.
                reading = _without(reading, "nullValue")
        losses = [f"column {field.name!r}: {loss}" for field in inside for loss in _losses(name, field.dataType)]
        losses += [] if name != "csv" else _losses_by_options(given)
        return cls(writing, _unless_given(read, reading), losses)


def _writing(name: str, columns: int, given: Mapping[str, str]) -> dict[str, str]:
    options = dict(_WRITTEN.get(name, {}))
    if name == "csv":
        # Doubled, as RFC 4180 has it: by Spark's default a backslash before a quote escapes more than was meant.
        quote = '"' if (own := _value(given, "quote")) is None else own
        # By Spark's default empty text is two double quotes, whatever quotes a value.
        options |= {} if _is_off(quote) else {"escape": quote, "emptyValue": 2 * quote}
        options |= {"nullValue": NULL_MARK} if columns == 1 else {}
    return options


def _is_off(quote: str) -> bool:
    """Whether nothing is quoted by this option."""
    return quote in ("", "\x00")


def _value(options: Mapping[str, str], name: str) -> str | None:
    return next((value for key, value in options.items() if key.lower() == name.lower()), None)


def _without(options: Mapping[str, str], name: str) -> dict[str, str]:
    return {key: value for key, value in options.items() if key.lower() != name.lower()}


def _losses_by_options(given: Mapping[str, str]) -> Iterator[str]:
    """Yield what options of the user make of rows of CSV; those that change values alone are taken as meant."""
    quote, multi_line = _value(given, "quote"), _value(given, "multiLine")
    if quote is not None and _is_off(quote):
        yield "option quote: nothing is quoted, so a separator or a line break in a value ends the value or the row"
    elif multi_line is not None and multi_line.lower() == "false":
        yield "option multiLine: a line break in a value ends the row"


def _unless_given(options: Mapping[str, str], given: Mapping[str, str]) -> dict[str, str]:
    merged = dict(options)
    for key, value in given.items():
        set_option(merged, key, value)
    return merged


def _losses(name: str, kind: DataType) -> Iterator[str]:
    """Yield what of a column does not come back as it was written."""
    if name == "text":
        yield "NULL is read as empty text, and a line break in a value ends the row"
    elif name == "csv" and isinstance(kind, BinaryType):
        yield "binary is written as text"
    elif name in ("json", "xml"):
        for each in _within(kind):
            if name == "json" and isinstance(each, MapType) and not isinstance(each.keyType, StringType):
                yield "a map is read only if its keys are text"
            elif name == "xml" and isinstance(each, ArrayType):
                yield "an array loses what is NULL in it, and is NULL where it is empty"


def _within(kind: DataType) -> Iterator[DataType]:
    """Yield a type and all types in it."""
    yield kind
    if isinstance(kind, ArrayType):
        yield from _within(kind.elementType)
    elif isinstance(kind, MapType):
        yield from _within(kind.keyType)
        yield from _within(kind.valueType)
    elif isinstance(kind, StructType):
        for field in kind.fields:
            yield from _within(field.dataType)
