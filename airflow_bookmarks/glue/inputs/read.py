"""Read what a script names, by options or by the catalog."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from airflow_bookmarks.core.errors import OptionError
from airflow_bookmarks.files.access import reached_by
from airflow_bookmarks.files.filesystem import paths_and_patterns
from airflow_bookmarks.files.opener import open_one_filesystem
from airflow_bookmarks.glue.catalogs.hive import SessionCatalog
from airflow_bookmarks.glue.catalogs.lookup import catalog_of
from airflow_bookmarks.glue.errors import CONNECTOR, STREAM, TABLE_FORMAT, GlueUnsupportedError
from airflow_bookmarks.glue.inputs.database import VENDORS, DatabaseRead
from airflow_bookmarks.glue.inputs.dynamodb import read_dynamodb
from airflow_bookmarks.glue.inputs.folders import admitted_folders
from airflow_bookmarks.glue.inputs.formats import FORMATS, format_of
from airflow_bookmarks.glue.inputs.frames import FileRead
from airflow_bookmarks.glue.inputs.listing_lines import log_partitions
from airflow_bookmarks.glue.inputs.options import FileWords, Words, below
from airflow_bookmarks.glue.inputs.tables import TableRead
from airflow_bookmarks.spark.features import session_conf
from airflow_bookmarks.spark.session import session_access

if TYPE_CHECKING:
    from collections.abc import Mapping

    from airflow_bookmarks.core.files.file_plan import FilePlan
    from airflow_bookmarks.core.files.listed_partitions import ListedPartitions
    from airflow_bookmarks.glue.dynamic.frame import DynamicFrame
    from airflow_bookmarks.glue.run import GlueRun

_FILES = ("s3", "file", "hdfs")
_STREAMS = ("kafka", "kinesis")
_TABLE_FORMATS = ("delta", "hudi", "iceberg")
_CONNECTORS = (
    "azurecosmos", "azuresql", "bigquery", "documentdb", "mongodb", "opensearch", "saphana", "snowflake", "teradata",
    "vertica",
)  # fmt: skip


def read_options(
    run: GlueRun,
    *,
    connection_type: str,
    connection_options: dict[str, Any],
    format: str | None,
    format_options: dict[str, Any],
    transformation_ctx: str,
    push_down_predicate: str,
    glue_ctx: object,
    **kwargs: Any,
) -> DynamicFrame:
    """Return files, or a table of a database; see `DynamicFrameReader.from_options`.

    Options of a read that stand among the arguments count as options.

    Raises:
        GlueUnsupportedError: the connection type or the format is out of reach.
        OptionError: an option has a value that is none of its own, or contradicts another.
        SourceError: it can't be planned.
    """
    kind, call = str(connection_type).lower(), f"create_dynamic_frame.from_options({connection_type=})"
    call = call.replace("connection_type=", "")
    extra = _options_among(kwargs, run, call)
    options = {**connection_options, **extra}
    if kind in FORMATS:  # as Glue routes Parquet and ORC
        kind, format = "s3", format or kind
    if kind in _FILES:
        return _read_files(
            run, call, options, format, format_options, transformation_ctx, push_down_predicate, glue_ctx
        )
    if kind in VENDORS:
        reader = DatabaseRead(call=call, ctx=transformation_ctx, glue_ctx=glue_ctx)
        return reader.read(run, options)
    if kind == "dynamodb":
        return read_dynamodb(run, Words(call, options), ctx=transformation_ctx, glue_ctx=glue_ctx)
    raise _out_of_reach(call, str(connection_type))


def read_catalog(
    run: GlueRun,
    *,
    database: str,
    table_name: str,
    redshift_tmp_dir: str,
    transformation_ctx: str,
    push_down_predicate: str,
    additional_options: dict[str, Any],
    catalog_id: str | None,
    glue_ctx: object,
    **kwargs: Any,
) -> DynamicFrame:
    """Return a table of the catalog; see `DynamicFrameReader.from_catalog`.

    Raises:
        EntityNotFoundError: there is no such table. CatalogError: the catalog refuses.
        GlueUnsupportedError: the table is out of reach.
        OptionError: an option, the predicate, a partition or the table itself is wrong.
        SourceError: it can't be planned.
    """
    call = f"create_dynamic_frame.from_catalog({database=}, {table_name=})"
    options = {**additional_options, **_options_among(kwargs, run, call)}
    catalog = catalog_of(run, catalog_id)
    if catalog_id and isinstance(catalog, SessionCatalog):
        run.warn_once(f"{call}: catalog_id={catalog_id!r} is ignored, Spark's own catalog is one")
    table = catalog.table(database, table_name)
    if table.connection is not None and not (table.location or "").startswith(("s3:", "s3a:", "s3n:")):
        if redshift_tmp_dir:
            run.warn_once(f"{call}: redshift_tmp_dir is ignored: the table is read by JDBC")
        if push_down_predicate:
            raise OptionError(
                f"{call}: push_down_predicate={push_down_predicate!r} is for partitions of files, and {table.label} "
                "lies in a database. Nothing was read or changed. Filter the frame, or use sampleQuery."
            )
        if catalog_id:
            options.setdefault("catalogId", catalog_id)
        return DatabaseRead(call=call, ctx=transformation_ctx, glue_ctx=glue_ctx).read(run, options, table)
    if table.classification == "dynamodb" or (table.location or "").startswith("arn:aws:dynamodb"):
        name = (table.location or table.name).rpartition("/")[2]
        return read_dynamodb(run, Words(call, options), ctx=transformation_ctx, glue_ctx=glue_ctx, name=name)
    if table.classification in _CONNECTORS:
        raise _out_of_reach(call, table.classification)
    return TableRead(
        call=call,
        ctx=transformation_ctx,
        glue_ctx=glue_ctx,
        catalog=catalog,
        table=table,
        predicate=push_down_predicate or "",
    ).read(run, options)


def _read_files(
    run: GlueRun,
    call: str,
    options: Mapping[str, Any],
    format: str | None,
    format_options: Mapping[str, Any],
    ctx: str,
    predicate: str,
    glue_ctx: object,
) -> DynamicFrame:
    words = Words(call, format_options, options)
    paths = _paths(words)
    which = FileWords.of(words, {})
    read_as = format_of(format or words.text("format"), words, is_fail_fast=which.is_fail_fast)
    if which.catalog_predicate is not None:
        run.warn_once(f"{call}: catalogPartitionPredicate is for tables of the Data Catalog, and is ignored")
    words.tell_left(run, ctx)
    listed: ListedPartitions | None = None
    with reached_by(session_access(run.spark, session_conf(run.spark))):
        if predicate:
            paths, listed = admitted_folders(run.spark, call, paths, which, predicate)
        files = open_one_filesystem(paths)
        roots, globs = paths_and_patterns(files, paths)

    def tell(plan: FilePlan) -> None:
        log_partitions(plan, roots=[*roots, *(plan.read_below if globs else ())], listed=listed, created_ms={})

    return FileRead(
        call=call,
        ctx=ctx,
        glue_ctx=glue_ctx,
        paths=paths,
        format=read_as,
        words=replace(which, recursive=which.recursive and listed is None, exclusions=below(which.exclusions, paths)),
        listed=listed,
        tell=tell,
    ).read(run)


def _paths(words: Words) -> list[str]:
    """Return the paths of a read of files: `paths`, or `path`.

    Raises:
        OptionError: there are none.
    """
    found = words.take("paths")
    one = words.take("path")
    if found is None:
        found = one
    if isinstance(found, str):
        found = words.__class__(words.call, {"paths": found}).texts("paths") if found.startswith("[") else [found]
    if not isinstance(found, (list, tuple)) or not found or not all(isinstance(each, str) and each for each in found):
        raise words.wrong("paths", found, "a list of folders or files that is not empty")
    return [str(each) for each in found]


def _options_among(kwargs: Mapping[str, Any], run: GlueRun, call: str) -> dict[str, Any]:
    """Return options of a read that a script gives as arguments of the call; of others a warning tells.

    Raises:
        OptionError: `additional_options` are no options.
    """
    found: dict[str, Any] = {}
    unknown: dict[str, Any] = {}
    for name, value in kwargs.items():
        if name == "additional_options":
            if value is not None and not isinstance(value, dict):
                raise OptionError(f"{call}: {name}={value!r}: expected a dict. Nothing was read or changed.")
            found.update(value or {})
        elif name in ("bookmark_key_fields", "jobBookmarkKeys", "jobBookmarkKeysSortOrder"):
            found[name] = value
        else:
            unknown[name] = value
    run.warn_of_unknown(call, unknown)
    return found


def _out_of_reach(call: str, kind: str) -> GlueUnsupportedError | OptionError:
    plain = kind.lower()
    if plain in _STREAMS:
        return GlueUnsupportedError(call, "a stream", STREAM)
    if plain in _TABLE_FORMATS:
        return GlueUnsupportedError(call, f"connection type {kind!r}", TABLE_FORMAT)
    if plain in _CONNECTORS or plain.startswith(("azure", "custom.", "marketplace.")):
        return GlueUnsupportedError(call, f"connection type {kind!r}", CONNECTOR)
    return OptionError(
        f"{call}: connection type {kind!r} is not known; known are {', '.join([*_FILES, *VENDORS])} and dynamodb. "
        "Nothing was read or changed."
    )
