"""The format of the files of one source: Spark's format, its options, and where the columns come from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pyspark.sql import DataFrameReader, SparkSession
    from pyspark.sql.types import StructType

    from airflow_bookmarks.core.rules.schema import InferSchema

FORMATS = ("avro", "csv", "json", "orc", "parquet", "text", "xml")


@dataclass(frozen=True, slots=True)
class Format:
    """How the files of a source are read.

    `reader` says who reads, for messages: the job and its context. `name` and `options` are Spark's, `schema` is the
    user's (None: it is found as `infer` says), `recursive` says whether folders that are no partition are descended
    into, `skips_missing` whether a planned file that went is left out.
    """

    reader: str
    name: str
    options: Mapping[str, str]
    schema: StructType | None
    recursive: bool = False
    skips_missing: bool = False
    infer: InferSchema = "sample"

    def option(self, name: str) -> str | None:
        """Return an option of the format, by its name in any case; None if it is not given."""
        return next((value for key, value in self.options.items() if key.lower() == name.lower()), None)

    def is_set(self, name: str) -> bool:
        """Whether an option of the format is given as true."""
        return (self.option(name) or "").lower() == "true"


def reader_of(spark: SparkSession, fmt: Format, base_path: str | None = None) -> DataFrameReader:
    """Return Spark's reader with the options of the format. The schema is the caller's to set."""
    options = {
        **fmt.options,
        # The session may say otherwise (spark.sql.files.*): files would be dropped without a word.
        "ignoreCorruptFiles": "false",
        "ignoreMissingFiles": "true" if fmt.skips_missing else "false",  # the check before the commit counts them
    }
    if fmt.name == "avro":
        options["ignoreExtension"] = "true"  # Hadoop's avro.mapred.ignore.inputs.without.extension would drop files too
    if fmt.recursive:
        options["recursiveFileLookup"] = "true"
    elif base_path is not None:
        options["basePath"] = base_path
    return spark.read.format(fmt.name).options(**options)


def case_rule(spark: SparkSession) -> Callable[[str], str]:
    """Return what makes two spellings of a column's name one."""
    exact = (spark.conf.get("spark.sql.caseSensitive", "false") or "false").lower() == "true"
    return (lambda name: name) if exact else str.lower


def corrupt_column(spark: SparkSession, fmt: Format) -> str:
    """Return the name of the column that holds records which can't be parsed, where a format has any."""
    default = spark.conf.get("spark.sql.columnNameOfCorruptRecord", "_corrupt_record")
    return fmt.option("columnNameOfCorruptRecord") or default or "_corrupt_record"
