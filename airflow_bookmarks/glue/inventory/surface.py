"""What a script may use of Glue, by name: what is supported, what needs a word, what is out of reach."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum

from airflow_bookmarks.glue import errors


class Support(StrEnum):
    """Whether a part of a script runs here: as it is, with a word of a person, or not at all."""

    YES = "supported"
    WORD = "needs a word"
    NO = "out of reach"


@dataclass(frozen=True, slots=True)
class CallForm:
    """A call of Glue: its parameters in their order, and what it does with data ("read", "write", "purge" or "")."""

    parameters: tuple[str, ...]
    does: str = ""


_OPTIONS = ("connection_type", "connection_options", "format", "format_options", "transformation_ctx")
_CATALOG = ("database", "table_name", "redshift_tmp_dir", "transformation_ctx")
_READ_OPTIONS = CallForm((*_OPTIONS, "push_down_predicate"), "read")
_READ_CATALOG = CallForm((*_CATALOG, "push_down_predicate", "additional_options", "catalog_id"), "read")
_WRITE_OPTIONS = CallForm(("frame", *_OPTIONS), "write")
_WRITE_CATALOG = CallForm(("frame", *_CATALOG, "additional_options", "catalog_id"), "write")
_WRITE_JDBC = CallForm(
    ("frame", "catalog_connection", "connection_options", "redshift_tmp_dir", "transformation_ctx"), "write"
)

# By the end of the name that a script calls.
CALLS: dict[str, CallForm] = {
    "create_dynamic_frame.from_catalog": _READ_CATALOG,
    "create_dynamic_frame_from_catalog": _READ_CATALOG,
    "create_dynamic_frame.from_options": _READ_OPTIONS,
    "create_dynamic_frame_from_options": _READ_OPTIONS,
    "create_dynamic_frame.from_rdd": CallForm(("data", "name", "schema", "sample_ratio", "transformation_ctx")),
    "create_dynamic_frame_from_rdd": CallForm(("data", "name", "schema", "sample_ratio", "transformation_ctx")),
    "create_sample_dynamic_frame_from_catalog": CallForm((*_CATALOG[:2], "num", *_CATALOG[2:]), "read"),
    "create_sample_dynamic_frame_from_options": CallForm((*_OPTIONS[:2], "num"), "read"),
    "create_data_frame.from_catalog": CallForm(_READ_CATALOG.parameters, "whole"),
    "create_data_frame_from_catalog": CallForm(_READ_CATALOG.parameters, "whole"),
    "create_data_frame.from_options": CallForm(_READ_OPTIONS.parameters, "whole"),
    "create_data_frame_from_options": CallForm(_READ_OPTIONS.parameters, "whole"),
    "getSource": CallForm(("connection_type", "format", "transformation_ctx", "push_down_predicate"), "read"),
    "getSink": CallForm(("connection_type", "format", "transformation_ctx"), "write"),
    "write_dynamic_frame.from_options": _WRITE_OPTIONS,
    "write_dynamic_frame_from_options": _WRITE_OPTIONS,
    "write_data_frame.from_options": _WRITE_OPTIONS,
    "write_data_frame_from_options": _WRITE_OPTIONS,
    "write_from_options": CallForm(("frame_or_dfc", *_OPTIONS), "write"),
    "write_dynamic_frame.from_catalog": _WRITE_CATALOG,
    "write_dynamic_frame_from_catalog": _WRITE_CATALOG,
    "write_data_frame.from_catalog": _WRITE_CATALOG,
    "write_data_frame_from_catalog": _WRITE_CATALOG,
    "write_dynamic_frame.from_jdbc_conf": _WRITE_JDBC,
    "write_dynamic_frame_from_jdbc_conf": _WRITE_JDBC,
    "write_from_jdbc_conf": _WRITE_JDBC,
    "purge_s3_path": CallForm(("s3_path", "options", "transformation_ctx"), "purge"),
    "purge_table": CallForm(("catalog_id", "database", "table_name", "options", "transformation_ctx"), "purge"),
    "extract_jdbc_conf": CallForm(("connection_name", "catalog_id")),
}


def form_of(name: str) -> CallForm | None:
    """Return the form of a call by the dotted name that a script calls; None of a call that is not Glue's."""
    parts = name.split(".")
    return CALLS.get(".".join(parts[-2:])) or CALLS.get(parts[-1])


# Of a GlueContext; what it shares with a SQLContext is below.
CONTEXT_MEMBERS = frozenset(
    {name.partition(".")[0] for name in CALLS}
    | {"create_dynamic_frame", "create_data_frame", "write_dynamic_frame", "write_data_frame", "spark_session"}
    | {"get_logger", "currentTimeMillis", "getOrCreate", "get_catalog_schema_as_spark_schema"}
)
SQL_CONTEXT_MEMBERS = frozenset(
    {"sql", "table", "tables", "tableNames", "createDataFrame", "read", "range", "setConf", "getConf", "udf"}
    | {"readStream", "registerFunction", "sparkSession"}
    | {"registerDataFrameAsTable", "dropTempTable", "cacheTable", "uncacheTable", "clearCache", "newSession"}
)

# Of a DynamicFrame or a collection, as far as no DataFrame has a method of that name.
FRAME_METHODS = frozenset(
    {"apply_mapping", "applyMapping", "resolveChoice", "relationalize", "unnest", "unnest_ddb_json", "unbox"}
    | {"simplify_ddb_json", "drop_fields", "select_fields", "rename_field", "split_fields", "split_rows", "spigot"}
    | {"mergeDynamicFrame", "errorsAsDynamicFrame", "errorsCount", "stageErrorsCount", "assertErrorThreshold"}
    | {"with_frame_schema", "toDF", "fromDF"}
)

OUT_OF_REACH: dict[str, str] = {call: instead for call, (_, instead) in errors.OUT_OF_REACH.items()}
OUT_OF_REACH["begin_transaction"] = errors.GOVERNED  # the same as start_transaction

CONNECTOR = "use Spark's own connector, spark.read.format(...) or df.write.format(...), without a bookmark"
DATABASES = frozenset({"jdbc", "mysql", "postgresql", "oracle", "sqlserver", "redshift"})
FILE_CONNECTIONS = frozenset({"s3", "file", "hdfs", "parquet", "orc", "csv", "json", "avro", "xml"})
CONNECTIONS: dict[str, tuple[Support, str]] = {
    **dict.fromkeys(sorted(FILE_CONNECTIONS | DATABASES), (Support.YES, "")),
    "dynamodb": (Support.WORD, "a DynamoDB table is read whole in each run, as in Glue"),
    **dict.fromkeys(("kafka", "kinesis"), (Support.NO, errors.STREAM)),
    **dict.fromkeys(("delta", "hudi", "iceberg"), (Support.NO, errors.TABLE_FORMAT)),
    **dict.fromkeys(
        ("mongodb", "documentdb", "opensearch", "snowflake", "bigquery", "saphana", "teradata", "vertica"),
        (Support.NO, CONNECTOR),
    ),
}
# Databases whose tables are written outside of the commit.
WRITTEN_AT_ONCE = frozenset({"oracle", "sqlserver"})
AT_ONCE = (
    "rows can't be part of the commit, so with enable this is an error: spark.bookmarks.glue.writes=direct writes them "
    "at once by JDBC, and after a crash they may come twice"
)
WITHOUT_FOLDER = (
    "Redshift is loaded through files, so with enable this is an error without redshift_tmp_dir (redshiftTmpDir among "
    "the options): spark.bookmarks.glue.writes=direct writes at once by JDBC, and after a crash rows may come twice"
)
# Which of these can be read, and not written.
READ_ONLY = {
    "dynamodb": CONNECTOR,
    **dict.fromkeys(("avro", "csv", "json", "xml"), "name it as format, with the connection type s3"),
}
CONNECTION_PREFIXES = {"custom.": CONNECTOR, "marketplace.": CONNECTOR, "azure": CONNECTOR}
FORMATS = frozenset({"csv", "json", "avro", "xml", "parquet", "orc", "glueparquet"})

# Packages of which the import fails, and why.
ABSENT_PACKAGES = {
    "awsgluedq": "Glue Data Quality runs in Glue alone: take out the import and the calls of EvaluateDataQuality, "
    "which Glue Studio adds to each target by itself, and check rows in the script, or in a task of their own",
    "awsglueml": "Glue's machine learning transforms run in Glue alone",
    "awsgluedi": "Glue's data integration transforms run in Glue alone: Spark's functions do the same on DataFrames",
}
# The modules that scripts of Glue Studio import for its newer transforms begin like this: gs_now, gs_derived.
STUDIO_PREFIX = "gs_"
OF_STUDIO = (
    "this transform of Glue Studio runs in Glue alone: take out the import and do the same on frame.toDF(), and "
    "DynamicFrame.fromDF makes it a frame again"
)


def why_absent(module: str) -> str | None:
    """Return why a module that Glue alone has can't be imported, and what to do; None for any other module."""
    root = module.partition(".")[0]
    return OF_STUDIO if root.startswith(STUDIO_PREFIX) else ABSENT_PACKAGES.get(root)


# What a driver of ours has without further ado.
PRESENT_PACKAGES = frozenset({"awsglue", "airflow_bookmarks", "boto3", "botocore", "numpy", "py4j", "pyspark"})

# Of jsonPath: the whole document, or the elements of an array in it.
JSON_PATH = re.compile(r"\$(\.[A-Za-z_]\w*)*(\[\*\])?(\.\*)?", re.ASCII)

# What a script may call a type in a mapping, beside char, varchar and decimal with a size.
TYPE_NAMES = frozenset(
    {"tinyint", "byte", "smallint", "short", "int", "integer", "long", "bigint", "float", "double", "decimal"}
    | {"string", "binary", "boolean", "bool", "date", "timestamp", "timestamp_ntz"}
    | {"struct", "object", "map", "array", "list", "set"}
)
_SIZED_TYPE = re.compile(r"decimal\(\s*\d+\s*(,\s*\d+\s*)?\)|(var)?char\(\s*\d+\s*\)")


def is_type(name: str) -> bool:
    """Whether a mapping may name a type so.

    Example:
        >>> is_type("Long"), is_type("decimal(12, 3)"), is_type("array<string>"), is_type("number")
        (True, True, True, False)
    """
    lowered = name.strip().lower()
    return lowered.partition("<")[0].strip() in TYPE_NAMES or _SIZED_TYPE.fullmatch(lowered) is not None


# Keys of connection options and additional options that change which rows are read.
OPTION_NOTES = {
    "sampleQuery": "with a sampleQuery there is no bookmark, as in Glue: the query is read whole in each run",
    "excludeStorageClasses": "the class of each object has to be in the listing, which S3 gives and a copy may not",
    "customJdbcDriverS3Path": "put the driver's jar into the jars of the Spark application",
}
