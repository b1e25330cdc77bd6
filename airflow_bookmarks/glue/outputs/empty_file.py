"""Find the file without rows that Spark has written for a frame without rows.

Spark does not tell its name, and other programs may write into the folder at the same time. So a file counts only if it
has the name that Spark gives in this format, and is proved to hold nothing: of whomever it is, its removal is no loss.
"""

from __future__ import annotations

import logging
import re
from datetime import timedelta
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from airflow_bookmarks.core.errors import SourceMissingError
from airflow_bookmarks.core.text.instant import utc_now
from airflow_bookmarks.files.opener import open_filesystem
from airflow_bookmarks.spark.features import SPARK_ERRORS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import Column, SparkSession
    from pyspark.sql.types import StructType

    from airflow_bookmarks.core.selection.listing import FileInfo

log = logging.getLogger(__name__)

_JUST_WRITTEN = timedelta(hours=1)  # the clock of a store may be another one
_OF_ROWS = ("avro", "orc", "parquet")  # without rows they still hold the columns
_MOST_BYTES = 1 << 20  # of the columns alone
_MOST_TEXT = 1_024  # of nothing, a header without its names, or a root element; compressed as well
_WITHOUT_ROWS_IN_XML = r"^\s*(<\?xml[^<>]*\?>)?\s*(<ROWS>\s*</ROWS>|<ROWS\s*/>)?\s*$"
# Of a frame without rows the first task alone writes; Databricks puts a number before the id of the write.
_NAME = r"part-00000-(tid-\d+-)?[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}[\w.-]*"


def find_empty_file(
    spark: SparkSession, folder: str, format: str, options: Mapping[str, str], schema: StructType
) -> str | None:
    """Return the newest file directly in a folder that Spark has just written and that holds nothing.

    Args:
        spark: the session, which reads the files that may be it, all at once.
        folder: where the frame without rows was written, without partition columns.
        format: the format for Spark.
        options: those of the write.
        schema: the columns that were written.

    Returns:
        Its path; None where no file is proved to hold nothing.

    Raises:
        SourceError, OSError: the folder can't be listed.
    """
    candidates = _candidates(folder, format, schema)
    paths = [info.path for info in candidates if info.size_bytes > 0]
    empty = {info.path for info in candidates if info.size_bytes == 0 and format not in _OF_ROWS}
    try:
        if paths and format in _OF_ROWS:
            empty |= _without_rows(spark, paths, format, schema)
        elif paths:
            empty |= _without_text(spark, paths, _says_nothing(format, options, schema.names))
    except SPARK_ERRORS as error:  # one that is damaged, or gone meanwhile
        log.info("%s: the files of Spark there can't all be read: %s", folder, error)
    found = [info for info in candidates if info.path in empty]
    return max(found, key=lambda info: info.modified_ms).path if found else None


def _candidates(folder: str, format: str, schema: StructType) -> list[FileInfo]:
    name = re.compile(rf"{_NAME}\.{'txt' if format == 'text' else format}(\.\w+)?")
    since_ms = int((utc_now() - _JUST_WRITTEN).timestamp() * 1000)
    most = _MOST_BYTES if format in _OF_ROWS else _MOST_TEXT + 8 * sum(map(len, schema.names))
    try:
        listing = open_filesystem(folder).list(folder).files
    except SourceMissingError:
        return []
    return [
        info
        for info in listing
        if info.path.rpartition("/")[0] == folder
        and name.fullmatch(_name_of(info.path))
        and info.modified_ms >= since_ms
        and info.size_bytes <= most
    ]


def _name_of(path: str) -> str:
    return path.rpartition("/")[2]


def _without_rows(spark: SparkSession, paths: Sequence[str], format: str, schema: StructType) -> set[str]:
    files = open_filesystem(paths[0])
    # A damaged file is an error, whatever the session says: passed over, it would look like one without rows.
    reader = spark.read.format(format).option("ignoreCorruptFiles", "false").schema(schema)
    rows = reader.load([files.pattern(path) for path in paths])
    with_rows = {row[0] for row in rows.select("_metadata.file_name").distinct().collect()}
    return {path for path in paths if _name_of(path) not in with_rows}


def _without_text(spark: SparkSession, paths: Sequence[str], says_nothing: Column) -> set[str]:
    files = open_filesystem(paths[0])
    reader = spark.read.format("text").options(wholetext="true", ignoreCorruptFiles="false")
    texts = reader.load([files.pattern(path) for path in paths])
    found = {row[0] for row in texts.where(says_nothing).select("_metadata.file_name").collect()}
    return {path for path in paths if _name_of(path) in found}


def _says_nothing(format: str, options: Mapping[str, str], columns: Sequence[str]) -> Column:
    """Return whether the whole text of a file, `value`, is that of a file without rows."""
    text = F.col("value")
    if format == "xml":
        return text.rlike(_WITHOUT_ROWS_IN_XML)
    if format == "csv" and options.get("header") == "true":
        header = F.to_csv(F.struct(*[F.lit(name) for name in columns]), dict(options))
        return (text == "") | (text == F.concat(header, F.lit("\n")))
    return text == ""
