"""Find planned files that can't be parsed, in one pass over all of them, before the script gets a frame.

csv, json, xml   read whole with a column for what does not fit, counted by file: one pass tells all files
any other        read whole and thrown away (`noop`): Spark stops at the first file that it can't read

Where Spark stops, the file that it names is read alone, and the rest by halves, until all that is left passes. A file
is quarantined only if reading it alone fails as well, its content is the reason, and it is still the planned version:
a store that refuses or does not answer, a lost executor and a file that changed stop the run, or its commit, as ever.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import unquote

from pyspark.sql import functions as F
from pyspark.sql.types import StringType, StructField, StructType

from airflow_bookmarks.core.errors import QuarantineFullError
from airflow_bookmarks.core.ledger.quarantine import MAX_BYTES, MAX_FILES
from airflow_bookmarks.spark.features import SPARK_ERRORS
from airflow_bookmarks.spark.readers.format import corrupt_column
from airflow_bookmarks.spark.session import LISTING_CONF, changed_conf

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pyspark.sql import DataFrame, DataFrameReader, SparkSession

    from airflow_bookmarks.core.files.file_plan import FilePlan
    from airflow_bookmarks.files.filesystem import FileSystem
    from airflow_bookmarks.spark.readers.format import Format

BY_RECORD = ("csv", "json", "xml")  # formats whose reader tells record by record what it can't parse

_CORRUPT = "_bookmark_corrupt_record"
_NOTHING = "_bookmark_no_column"
_FILES_AT_A_TIME = 10_000  # of one Spark job: their names go through the driver
_OVERRIDDEN = ("mode", "columnnameofcorruptrecord", "ignorecorruptfiles", "ignoremissingfiles")

# Not every Spark says so in words: then it is where the task that failed was.
_UNREADABLE = re.compile(
    r"Encountered error while reading file|CANNOT_READ_FILE_FOOTER|Could not read footer"
    r"|at org\.apache\.spark\.sql\.execution\.datasources\.FileScanRDD\b"
)
# The text of an error may quote a file, so each of these is linear in it: repetitions do not backtrack.
_NAMED = re.compile(r"(?:while reading file|footer for file:)\s++((?:(?!\sSQLSTATE).)++)")
_CAUSE = re.compile(r"^[^\S\n]*+Caused by: (?:[\w$]++\.)*+([\w$]++(?:: .*)?)$", re.MULTILINE)

_LOST = re.compile(r"Lost task [^\n:]*+: (?:[\w$]++\.)*+([\w$]++(?:: .*)?)$", re.MULTILINE)

_GONE = re.compile(r"FILE_NOT_EXIST|PATH_NOT_FOUND|FileNotFoundException|NoSuchKey|NoSuchFileException")

# Not the content but the way to it. What Hadoop's clients raise has no common ancestor, so it goes by name.
_WAY_TO_IT = re.compile(
    r"FILE_NOT_EXIST|PATH_NOT_FOUND|FileNotFoundException|NoSuchKey|NoSuchFileException|AccessDenied|AccessControlException|Forbidden"
    r"|UnknownHost|SocketTimeout|SocketException|ConnectException|ConnectTimeout|NoRouteToHost|SSLException"
    r"|SdkClientException|SdkException|S3Exception|AWS\w{0,80}Exception|SlowDown|ServiceUnavailable|NoHttpResponse"
    r"|BlockMissing|RemoteException|InterruptedIOException|ClosedByInterrupt|OutOfMemoryError|No space left"
)


@dataclass(frozen=True, slots=True)
class _CorruptParser:
    """Reads files of one format whole, and finds those that can't be parsed.

    `fields` are the columns that the files themselves have; None: Spark infers them, from the files that it is given.
    """

    spark: SparkSession
    files: FileSystem
    format: Format
    fields: tuple[StructField, ...] | None

    def parse(self, paths: Sequence[str]) -> dict[str, str]:
        """Return the error of each file in which a record does not fit.

        Raises:
            SPARK_ERRORS: Spark stopped at a file.
        """
        if self.format.name not in BY_RECORD:
            self._load(self._reader(), paths).write.format("noop").mode("overwrite").save()
            return {}
        fields = self._inferred(paths) if self.fields is None else self.fields
        columns = fields or (StructField(_NOTHING, StringType()),)
        frame = self._load(self._marking().schema(StructType([*columns, _corrupt_field()])), paths)
        all_columns = ", ".join(f"`{field.name.replace('`', '``')}`" for field in columns)
        # A column that is not requested is not parsed, so all are requested.
        found = (
            frame.groupBy(F.col("_metadata.file_path").alias("path"))
            .agg(F.count(_CORRUPT).alias("bad"), F.count(F.lit(1)).alias("rows"), F.expr(f"count({all_columns})"))
            .where("bad > 0")
            .limit(MAX_FILES + 1)
            .collect()
        )
        named = {_name_of(path): path for path in paths}
        return {named[_name_in_uri(row["path"])]: _misfits(row["bad"], row["rows"]) for row in found}

    def _inferred(self, paths: Sequence[str]) -> tuple[StructField, ...]:
        schema = self._load(self._marking(), paths).schema
        return tuple(field for field in schema if field.name != _CORRUPT)

    def _reader(self) -> DataFrameReader:
        options = {key: value for key, value in self.format.options.items() if key.lower() not in _OVERRIDDEN}
        reader = self.spark.read.format(self.format.name).options(
            **options, ignoreCorruptFiles="false", ignoreMissingFiles="false"
        )
        is_given = self.fields and self.format.name not in BY_RECORD
        return reader.schema(StructType(list(self.fields or ()))) if is_given else reader

    def _marking(self) -> DataFrameReader:
        return self._reader().options(mode="PERMISSIVE", columnNameOfCorruptRecord=_CORRUPT)

    def _load(self, reader: DataFrameReader, paths: Sequence[str]) -> DataFrame:
        return reader.load([self.files.pattern(path) for path in paths])


def find_corrupt(spark: SparkSession, files: FileSystem, plan: FilePlan, fmt: Format) -> dict[str, str]:
    """Return the planned files that can't be parsed as the format says, with the error of each.

    Raises:
        QuarantineFullError: they are more than a quarantine is meant for.
        SPARK_ERRORS: Spark can't read, for a reason that is not the content of a file.
    """
    parser = _CorruptParser(spark, files, fmt, _own_fields(plan, fmt, corrupt_column(spark, fmt)))
    paths, search = plan.files.paths, _Search(parser.parse, files)
    with changed_conf(spark, LISTING_CONF):
        for start in range(0, len(paths), _FILES_AT_A_TIME):
            search.among(paths[start : start + _FILES_AT_A_TIME])
    return _unchanged(files, plan, search.errors)


class _Search:
    """Finds which files can't be parsed, up to so many as a quarantine holds; `errors` has them by path."""

    def __init__(self, parse: Callable[[Sequence[str]], Mapping[str, str]], files: FileSystem) -> None:
        self._parse, self._files = parse, files
        self.errors: dict[str, str] = {}

    def among(self, paths: Sequence[str]) -> None:
        """Look at some files, one or more."""
        try:
            self._add(self._parse(paths))
            return
        except SPARK_ERRORS as error:
            text = str(error)
            there = self._left_of(paths, text)
            if there is None and not _is_of_content(text):
                raise
        if there is not None:
            self._in_parts(there, 1)
        elif len(paths) == 1:
            self._add({paths[0]: _cause(text)})
        else:
            named = _first_named(text, paths)
            self._in_parts([] if named is None else [named], 1)
            self._in_parts([path for path in paths if path != named], 2)

    def _in_parts(self, paths: Sequence[str], parts: int) -> None:
        size = -(-len(paths) // parts) or 1
        for start in range(0, len(paths), size):
            self.among(paths[start : start + size])

    def _left_of(self, paths: Sequence[str], text: str) -> list[str] | None:
        """Return the files that are still there, None if all are: the check before the commit reports missing ones."""
        if not _GONE.search(text):
            return None
        there = [path for path, info in zip(paths, self._files.stat(paths), strict=True) if info is not None]
        return there if len(there) < len(paths) else None

    def _add(self, errors: Mapping[str, str]) -> None:
        self.errors |= errors
        if len(self.errors) > MAX_FILES:
            size = sum(len(path) + len(error) for path, error in self.errors.items())
            raise QuarantineFullError(len(self.errors), size, MAX_FILES, MAX_BYTES)


def _unchanged(files: FileSystem, plan: FilePlan, errors: dict[str, str]) -> dict[str, str]:
    """Return the errors of files that are still the planned version: of others they say nothing."""
    suspects = [file for file in plan.files if file.path in errors]
    now = files.stat([file.path for file in suspects])
    return {
        file.path: errors[file.path]
        for file, info in zip(suspects, now, strict=True)
        if info is not None and info.version == file.version
    }


def _own_fields(plan: FilePlan, fmt: Format, corrupt: str) -> tuple[StructField, ...] | None:
    """Return the columns that the files themselves have, as the user gives them: without those of their folders.

    Without that for records that can't be parsed (`corrupt`) either: as a column of the data it would be missing in
    each record, and each would count as broken.
    """
    if fmt.schema is None:
        return None
    of_folders = {name.lower() for name in plan.partition_types}
    of_spark = corrupt if fmt.name in BY_RECORD else None
    return tuple(
        StructField(field.name, field.dataType, True, field.metadata)
        for field in fmt.schema.fields
        if field.name.lower() not in of_folders and field.name != of_spark
    )


def _corrupt_field() -> StructField:
    return StructField(_CORRUPT, StringType())


# ---- Spark's errors


def is_of_the_way(text: str) -> bool:
    """Whether an error of Spark's is not about the content of a file but about the way to it, or that it went."""
    return _WAY_TO_IT.search(text) is not None


def _is_of_content(text: str) -> bool:
    """Whether an error of Spark's is about the content of a file.

    Spark Connect of 3.5 cuts its errors: where that leaves only a wrapper, what is in it may be the way to the file.
    """
    if not _UNREADABLE.search(text) or is_of_the_way(text):
        return False
    lost = _LOST.search(text)
    is_cut = text.endswith("...") and not _CAUSE.search(text)
    return not is_cut or (lost is not None and not lost[1].startswith("SparkException"))


def _misfits(bad: int, rows: int) -> str:
    return f"{bad} of {rows} records do not fit the schema"


def _cause(text: str) -> str:
    """Return why Spark could not read a file: the innermost cause that it gives, else its first message."""
    causes = _CAUSE.findall(text)
    if causes:
        return str(causes[-1])
    lost = _LOST.search(text)
    if lost is not None:
        return str(lost[1])
    found = _UNREADABLE.search(text)
    start = 0 if found is None else text.rfind("\n", 0, found.start()) + 1
    return text[start:].partition("\n")[0].strip()


def _first_named(text: str, paths: Sequence[str]) -> str | None:
    """Return the file that a message names, if it is one of `paths`."""
    by_name = {_name_of(path): path for path in paths}
    for found in _NAMED.findall(text):
        uri = found.rstrip().removesuffix(".")
        for name in (_name_in_uri(uri), _name_of(uri)):
            if name in by_name:
                return by_name[name]
    return None


def _name_in_uri(uri: str) -> str:
    return _name_of(unquote(uri))


def _name_of(path: str) -> str:
    """Return a path without its scheme and the slashes after that, of which Spark writes one, two or three."""
    return re.sub(r"^[A-Za-z][A-Za-z0-9+.-]*:", "", path).lstrip("/")
