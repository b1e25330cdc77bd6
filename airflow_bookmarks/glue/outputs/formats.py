"""Glue's formats of files and their options, as Spark's writer has them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from airflow_bookmarks.glue.errors import GlueUnsupportedError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from airflow_bookmarks.glue.outputs.options import GivenOptions

PARQUET = "parquet"
GLUE_PARQUET = "glueparquet"
FORMATS = ("avro", "csv", GLUE_PARQUET, "json", "orc", PARQUET, "xml")

_ROW_GROUP_BYTES, _PAGE_BYTES = 134_217_728, 1_048_576
_PARQUET_CODECS = ("gzip", "lzo", "snappy", "uncompressed", "zstd", "none")
_CODECS = {"gzip": "gzip", "bzip2": "bzip2", "snappy": "snappy", "uncompressed": "none", "none": "none"}
_READ_ONLY = ("withHeader", "skipFirst", "optimizePerformance", "multiLine", "multiline", "jsonPath", "attachFilename")


@dataclass(frozen=True, slots=True)
class FileFormat:
    """The format of an output of files.

    Args:
        name: its name for Spark.
        options: those of Spark's writer.
        is_glue_parquet: whether it is written as Glue's own Parquet writer does.
    """

    name: str
    options: Mapping[str, str] = field(default_factory=dict)
    is_glue_parquet: bool = False

    @property
    def keeps_nulls(self) -> bool:
        """Whether columns that hold nothing but null have a place in it."""
        return self.name in ("json", "xml")

    @property
    def is_flat(self) -> bool:
        """Whether it takes no structs, and so no choices."""
        return self.name == "csv"


def format_of(name: str | None, given: GivenOptions) -> FileFormat:
    """Return the format that a script asks for, with the options of it that were given.

    Raises:
        OptionError: there is none of that name, or an option has a value that it does not know.
        GlueUnsupportedError: it is one of Glue's that this layer does not write.
    """
    wanted = (name or "").lower()
    if not wanted:
        raise given.refused(f"format is missing; known are {', '.join(FORMATS)}")
    if wanted in ("ion", "groklog", "hudi", "delta", "iceberg"):
        instead = "Write it with job.write(...) of airflow_bookmarks.spark, or with Spark."
        raise GlueUnsupportedError(given.call, f"the format {name}", instead)
    if wanted not in FORMATS:
        raise given.refused(f"format={name!r} is none of Glue's; known are {', '.join(FORMATS)}")
    given.ignore(*_READ_ONLY)
    compression = given.text("compression", "compressionType")
    if wanted in (PARQUET, GLUE_PARQUET):
        uses_glue = given.flag("useGlueParquetWriter", default=False)
        return _parquet(compression, given, is_glue_parquet=uses_glue or wanted == GLUE_PARQUET)
    options = {} if compression is None else {"compression": _codec(compression, given)}
    if wanted == "csv":
        options |= _csv(given)
    if wanted == "xml":
        options["rowTag"] = given.text("rowTag", default="ROW") or "ROW"
    if wanted == "json":
        given.ignore("writeHeader")
    return FileFormat(wanted, options)


def _csv(given: GivenOptions) -> dict[str, str]:
    sign = str(given.take("quoteChar", default='"'))
    quote = "" if sign == "-1" else sign
    escape = given.text("escaper", default="")
    options = {
        "header": str(given.flag("writeHeader", default=True)).lower(),
        "sep": given.text("separator", default=",") or ",",
        # An escape character of its own is for readers that know it; without one a quote is doubled.
        "escape": escape or quote or '"',
        "quote": quote,
    }
    if not given.flag("strictCheckForQuoting", default=False):
        options["escapeQuotes"] = "true"
    return options


def _parquet(compression: str | None, given: GivenOptions, *, is_glue_parquet: bool) -> FileFormat:
    if compression is not None and compression.lower() not in _PARQUET_CODECS:
        raise given.refused(f"compression={compression!r}: Parquet has {', '.join(_PARQUET_CODECS)}")
    options = {"compression": (compression or "snappy").lower()}
    block, page = given.number("blockSize", least=1), given.number("pageSize", least=1)
    if is_glue_parquet or block is not None or page is not None:
        options["parquet.block.size"] = str(int(block or _ROW_GROUP_BYTES))
        options["parquet.page.size"] = str(int(page or _PAGE_BYTES))
    return FileFormat(PARQUET, options, is_glue_parquet)


def _codec(compression: str, given: GivenOptions) -> str:
    codec = _CODECS.get(compression.lower())
    if codec is None:
        raise given.refused(f"compression={compression!r}: expected one of {', '.join(_CODECS)}")
    return codec
