"""Of what format the files of a table are: its SerDe says it, else its classification."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from airflow_bookmarks.core.errors import OptionError
from airflow_bookmarks.glue.errors import GlueUnsupportedError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from airflow_bookmarks.glue.catalogs.table import GlueTable

_BY_SERDE = {
    "LazySimpleSerDe": "csv",
    "OpenCSVSerde": "csv",
    "ParquetHiveSerDe": "parquet",
    "OrcSerde": "orc",
    "AvroSerDe": "avro",
    "JsonSerDe": "json",
}
_FORMATS = ("avro", "csv", "json", "orc", "parquet", "xml")
_TABLE_FORMATS = ("delta", "hudi", "iceberg")
_HIVE_SEPARATOR = "\x01"
_OPTION_PARAMETERS = ("jsonPath", "rowTag")


@dataclass(frozen=True, slots=True)
class TableFormat:
    """How the files of a table are read: a format, and format options as scripts write them."""

    name: str
    options: Mapping[str, Any] = field(default_factory=dict)


def format_of(table: GlueTable, call: str) -> TableFormat:
    """Return the format of a table of files.

    Raises:
        OptionError: the table says no format that is known.
        GlueUnsupportedError: it is read in another way.
    """
    kind = table.parameters.get("table_type", "").lower()
    if kind in _TABLE_FORMATS or table.classification in _TABLE_FORMATS:
        raise GlueUnsupportedError(
            call,
            f"a table of {kind if kind in _TABLE_FORMATS else table.classification}",
            "Read it with Spark, or by the bookmark of its own versions: BookmarkedJob.read(ctx).delta(...) or "
            ".iceberg(...).",
        )
    found = _BY_SERDE.get((table.serde or "").rpartition(".")[2])
    # A table of text whose classification is xml, or json in a column of text, is what its classification says.
    if found is None or (found == "csv" and table.classification in ("json", "xml")):
        found = table.classification if table.classification in _FORMATS else found
    if found is None:
        raise OptionError(
            f"{call}: {table.label} has the SerDe {table.serde!r} and the classification {table.classification!r}, and "
            f"neither is a known format ({', '.join(_FORMATS)}); its location is {table.location!r}. Nothing was read "
            "or changed. Set the table's parameter 'classification'."
        )
    given = {key: table.parameters[key] for key in _OPTION_PARAMETERS if key in table.parameters}
    given |= {key: table.serde_parameters[key] for key in _OPTION_PARAMETERS if key in table.serde_parameters}
    return TableFormat(found, {**given, **(_csv_options(table) if found == "csv" else {})})


def _csv_options(table: GlueTable) -> dict[str, Any]:
    told, parameters = table.serde_parameters, table.parameters
    is_open = (table.serde or "").endswith("OpenCSVSerde")
    default: str | None = "," if is_open or table.serde is None or table.classification == "csv" else _HIVE_SEPARATOR
    if table.classification == "csv" and not is_open and "delimiter" in parameters:
        default = parameters["delimiter"]
    written = told.get("serialization.format")
    # "1" is what Hive writes there for its own separator, and for a SerDe that has another word for it.
    default = written if written not in (None, "", "1") and not is_open else default
    separator = told.get("separatorChar") or told.get("field.delim") or default
    quoted = is_open or table.classification == "csv" or parameters.get("areColumnsQuoted") == "true"
    options: dict[str, Any] = {
        "separator": separator,
        "quoteChar": told.get("quoteChar") or ('"' if quoted else -1),
    }
    if escaper := told.get("escapeChar") or told.get("escape.delim"):
        options["escaper"] = escaper
    skipped = parameters.get("skip.header.line.count") or told.get("skip.header.line.count") or "0"
    options["withHeader"] = skipped not in ("", "0") or str(parameters.get("header", "")).lower() == "true"
    return options


def listed(text: str, what: str) -> list[str]:
    """Return a list of texts that JSON in a text holds, as parameters and options of Glue are written.

    Raises:
        OptionError: it is none.
    """
    try:
        found = json.loads(text)
    except ValueError:
        found = None
    if not isinstance(found, list) or not all(isinstance(each, str) for each in found):
        raise OptionError(
            f"{what}={text!r}: expected a list of texts in JSON, such as '[\"**.pdf\"]'. Nothing was read or changed."
        )
    return found
