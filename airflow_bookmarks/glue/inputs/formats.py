"""Format options of Glue as options of Spark's formats, and what of the rows is made by this layer itself."""

from __future__ import annotations

import csv
import io
import json
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pyspark.sql.types import StructType

from airflow_bookmarks.core.errors import OptionError
from airflow_bookmarks.glue.errors import GlueUnsupportedError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from airflow_bookmarks.glue.inputs.options import Words

FORMATS = ("avro", "csv", "json", "orc", "parquet", "xml")
_SAME = {"glueparquet": "parquet"}
_TABLES = ("delta", "hudi", "iceberg")
_OUT = ("grokLog", "ion")
# Words of writes, which scripts give to reads as well, and of speed.
_WITHOUT_EFFECT = (
    "writeHeader", "optimizePerformance", "useGlueParquetWriter", "compression", "blockSize", "pageSize", "version",
    "strictCheckForQuoting", "strictCheckForUnescapedCharacter", "useNewFlatternedXmlParser", "useNewXmlParser",
)  # fmt: skip
_WRITTEN = {r"\t": "\t", r"\\": "\\"}  # separators that Spark takes by their escapes
_JSON_PATH = re.compile(r"\$(?:((?:\.[A-Za-z_][A-Za-z0-9_]*)+))?(\[\*\])?(\.\*)?")


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadFormat:
    """How files are read.

    Args:
        name: the format, as scripts name it.
        spark_name: what Spark reads them as: JSON is read as text, and parsed by this layer.
        settings: the options of Spark's format.
        has_header: whether the first line of a file of CSV names its columns.
        skips_first: whether the first line is left out, and names nothing.
        json_path: the fields down to the array whose elements are the records; empty: the documents are.
        is_whole: whether a file is one document.
        schema: the columns, where the script gives them.
    """

    name: str
    spark_name: str
    settings: Mapping[str, str] = field(default_factory=dict)
    has_header: bool = False
    skips_first: bool = False
    json_path: Sequence[str] = ()
    is_whole: bool = False
    schema: StructType | None = None


def format_of(name: str | None, words: Words, *, is_fail_fast: bool = False) -> ReadFormat:
    """Take the format options of a read.

    Raises:
        OptionError: no format, an unknown one, or an option with a value that is none of its own.
        GlueUnsupportedError: the format, the JSON path, or a pair of options is out of reach.
    """
    if not name:
        raise OptionError(f"{words.call}: no format. Nothing was read or changed. Give one of {', '.join(FORMATS)}.")
    known = _SAME.get(name.lower(), name.lower())
    words.leave(*_WITHOUT_EFFECT)
    if known in _TABLES:
        raise GlueUnsupportedError(
            words.call, f"format {name!r}", "Read it with Spark, or with BookmarkedJob.read(ctx).delta or .iceberg."
        )
    if name in _OUT or known == "groklog":
        raise GlueUnsupportedError(words.call, f"format {name!r}", "Read it as text with Spark, and parse it there.")
    if known not in FORMATS:
        raise OptionError(
            f"{words.call}: format {name!r} is not known; known are {', '.join(FORMATS)} and glueparquet. Nothing was "
            "read or changed."
        )
    strict = {"mode": "FAILFAST"} if is_fail_fast and known in ("csv", "xml") else {}
    if known == "csv":
        return _csv(words, strict)
    if known == "json":
        path = _path_of(words)
        is_whole = words.flag("multiline")
        words.leave("withSchema")
        settings = {"wholetext": "true"} if is_whole or path else {}
        return ReadFormat(
            name="json", spark_name="text", settings=settings, json_path=path, is_whole=is_whole or bool(path)
        )
    if known == "xml":
        return _xml(words, strict)
    return ReadFormat(name=known, spark_name=known)


def _csv(words: Words, strict: Mapping[str, str]) -> ReadFormat:
    quote = words.take("quoteChar")
    is_unquoted = str(quote) == "-1"
    quote_sign = '"' if quote is None else str(quote)
    settings = {
        "sep": words.text("separator") or ",",
        "quote": "" if is_unquoted else quote_sign,
        # Without an escaper a quote within quotes is written twice.
        "escape": words.text("escaper") or ("\\" if is_unquoted else quote_sign),
        "inferSchema": "false",
        **strict,
    }
    encoding = words.text("encoding")
    if encoding:
        settings["encoding"] = encoding
    if words.flag("multiLine"):
        settings["multiLine"] = "true"
    has_header, skips_first = words.flag("withHeader"), words.flag("skipFirst")
    if has_header and skips_first:
        raise GlueUnsupportedError(
            words.call,
            "skipFirst together with withHeader, which leaves out the first row below the header as well,",
            "Leave skipFirst out: withHeader alone takes the header for no row. Leave out one more by filter.",
        )
    settings["header"] = "true" if has_header or skips_first else "false"
    return ReadFormat(
        name="csv",
        spark_name="csv",
        settings=settings,
        has_header=has_header,
        skips_first=skips_first,
        schema=_schema_of(words),
    )


def widest_row(settings: Mapping[str, str], text: str) -> int:
    """Return how many values the longest row of a text of CSV has.

    Args:
        settings: the options of Spark's format.
        text: whole lines.
    """
    separator, quote, escape = _WRITTEN.get(settings["sep"], settings["sep"]), settings["quote"], settings["escape"]
    if len(separator) > 1:
        return max((len(line.split(separator)) for line in text.splitlines()), default=0)
    rows = csv.reader(
        io.StringIO(text, newline=""),
        delimiter=separator,
        quotechar=quote[:1] or None,
        quoting=csv.QUOTE_MINIMAL if quote else csv.QUOTE_NONE,
        escapechar=None if escape == quote else escape[0],
    )
    return max((len(row) for row in rows), default=0)


def _xml(words: Words, strict: Mapping[str, str]) -> ReadFormat:
    row_tag = words.text("rowTag")
    if row_tag is None:
        raise OptionError(
            f"{words.call}: format 'xml' without rowTag. Nothing was read or changed. Give the tag of a row in "
            "format_options, or in the parameters of the table."
        )
    settings = {"rowTag": row_tag, **strict}
    names = {"attributePrefix": "attributePrefix", "encoding": "encoding", "valueTag": "valueTag"}
    flags = {"excludeAttribute": "excludeAttribute", "ignoreSurroundingSpaces": "ignoreSurroundingSpaces"}
    for name, of_spark in names.items():
        if (value := words.text(name)) is not None:
            settings[of_spark] = value
    for name, of_spark in flags.items():
        settings[of_spark] = str(words.flag(name)).lower()
    if words.flag("treatEmptyValuesAsNulls"):
        settings["nullValue"] = ""
    return ReadFormat(name="xml", spark_name="xml", settings=settings, schema=_schema_of(words))


def _schema_of(words: Words) -> StructType | None:
    """Return the columns of `withSchema`: `json.dumps(schema.jsonValue())`, of Glue's types or Spark's."""
    given = words.take("withSchema")
    if given is None or given == "":
        return None
    try:
        found = json.loads(given) if isinstance(given, str) else given
        if isinstance(found, StructType):
            return found
        return StructType.fromJson(found if "type" in found else found["dataType"])
    except (KeyError, TypeError, ValueError) as error:
        raise words.wrong("withSchema", given, "the JSON of a schema of Spark") from error


def _path_of(words: Words) -> tuple[str, ...]:
    path = words.text("jsonPath")
    if path is None or path in ("$", "$[*]"):
        return () if path != "$[*]" else ("",)
    found = _JSON_PATH.fullmatch(path)
    if found is None or found[1] is None or not found[2] or found[3]:
        raise GlueUnsupportedError(
            words.call,
            f"jsonPath={path!r}",
            "Known are '$' and paths to an array, '$.a.b[*]'. Read the documents whole, and take it from there with "
            "select_fields or relationalize.",
        )
    return tuple(found[1].strip(".").split("."))
