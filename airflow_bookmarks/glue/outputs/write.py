"""`write_dynamic_frame` in all its forms: to which kind of output a call goes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow_bookmarks.core.errors import OptionError
from airflow_bookmarks.glue.catalogs.connections import connection_named, connection_of_options
from airflow_bookmarks.glue.catalogs.formats import format_of as format_of_table
from airflow_bookmarks.glue.catalogs.lookup import catalog_of
from airflow_bookmarks.glue.errors import GlueUnsupportedError
from airflow_bookmarks.glue.inputs.database import VENDORS, table_at
from airflow_bookmarks.glue.outputs.database import TableOutput, write_table
from airflow_bookmarks.glue.outputs.files import FileOutput, write_files
from airflow_bookmarks.glue.outputs.formats import format_of
from airflow_bookmarks.glue.outputs.options import GivenOptions
from airflow_bookmarks.glue.outputs.registration import CatalogUpdate

if TYPE_CHECKING:
    from collections.abc import Mapping

    from airflow_bookmarks.glue.run import GlueRun

_FILES = ("s3", "file", "hdfs")
_FORMAT_AS_TYPE = ("parquet", "orc")
_OF_CONNECTION = ("url", "user", "username", "password", "connectionName", "database", "catalogId")
_WITHOUT_EFFECT = ("groupFiles", "groupSize", "recurse", "isFailFast", "numPartitions", "bulkSize", "useFrameName")
_INSTEAD = "Write it with Spark's own connector (frame.toDF().write.format(...)), which is no part of the commit."


def write_options(
    run: GlueRun,
    frame: object,
    *,
    connection_type: str,
    connection_options: Mapping[str, Any] | None = None,
    format: str | None = None,
    format_options: Mapping[str, Any] | None = None,
    transformation_ctx: str = "",
    catalog_table: Mapping[str, str] | None = None,
    call: str = "write_dynamic_frame.from_options",
) -> Any:
    """Write a frame to files or a table of a database; return it.

    Args:
        run: the current run.
        frame: a DynamicFrame or a DataFrame.
        connection_type: s3, file, hdfs, parquet or orc; mysql, postgresql, oracle, sqlserver or redshift.
        connection_options: of files `path` and `partitionKeys`; of a database its connection and `dbtable`.
        format: csv, json, parquet, glueparquet, orc, avro or xml.
        format_options: those of the format.
        transformation_ctx: the name of the output.
        catalog_table: `database`, `table_name` and `catalog_id` of the table that `setCatalogInfo` named.
        call: the call, for messages.

    Raises:
        OptionError: an option is missing, or has a value that is none of its own.
        GlueUnsupportedError: the connection type or format is not part of this layer.
        TypeError: `frame` is none.
    """
    kind = str(connection_type).lower()
    if kind in _FILES or kind in _FORMAT_AS_TYPE:
        given = GivenOptions(call, connection_options, format_options)
        write_files(
            run,
            frame,
            file_output(run, given, kind if kind in _FORMAT_AS_TYPE else format, transformation_ctx, catalog_table),
        )
        return frame
    if kind in VENDORS:
        run.check()
        given = GivenOptions(call, connection_options)
        connection = connection_of_options(run, {name: given.take(name) for name in _OF_CONNECTION}, call)
        write_table(run, frame, connection, TableOutput.of(given, run, transformation_ctx))
        return frame
    raise GlueUnsupportedError(call, f"the connection type {connection_type!r}", _INSTEAD)


def write_catalog(
    run: GlueRun,
    frame: object,
    *,
    database: str,
    table_name: str,
    redshift_tmp_dir: str = "",
    transformation_ctx: str = "",
    additional_options: Mapping[str, Any] | None = None,
    catalog_id: str | None = None,
) -> Any:
    """Write a frame to a table of the catalog; return it.

    Files go to the folder of the table, in its format and by its partition columns. Its new partitions are added to
    the catalog where `enableUpdateCatalog` is among the options.

    Raises:
        EntityNotFoundError: there is no such table.
        OptionError: it has no folder, or an option has a value that is none of its own.
    """
    call = f"write_dynamic_frame.from_catalog({database=}, {table_name=})"
    run.check()
    table = catalog_of(run, catalog_id).table(database, table_name)
    if table.connection is not None and not (table.location or "").startswith(("s3:", "s3a:", "s3n:")):
        given = GivenOptions(call, additional_options)
        connection = connection_named(run, table.connection, database=given.text("database"), catalog_id=catalog_id)
        name = table_at(table, connection)
        write_table(run, frame, connection, TableOutput.of(given, run, transformation_ctx, redshift_tmp_dir, name))
        return frame
    if not table.location:
        raise OptionError(f"{call}: {table.label} has no location. Nothing was written or changed.")
    told = format_of_table(table, call)
    options = {"path": table.location, **(additional_options or {})}
    if table.partition_columns and "partitionKeys" not in options:
        options["partitionKeys"] = [column.name for column in table.partition_columns]
    # Of a table of CSV it is the SerDe that says whether its first line is a header.
    header = {"writeHeader": told.options.get("withHeader", False)} if told.name == "csv" else {}
    written = {name: value for name, value in told.options.items() if name in ("separator", "quoteChar", "escaper")}
    given = GivenOptions(call, {**written, **header}, options)
    named = {"database": database, "table_name": table_name, "catalog_id": catalog_id or ""}
    write_files(run, frame, file_output(run, given, told.name, transformation_ctx, named))
    return frame


def write_jdbc_conf(
    run: GlueRun,
    frame: object,
    *,
    catalog_connection: str,
    connection_options: Mapping[str, Any],
    redshift_tmp_dir: str = "",
    transformation_ctx: str = "",
    catalog_id: str | None = None,
) -> None:
    """Write a frame to the table `dbtable` of the database that a connection names.

    Args:
        run: the current run.
        frame: a DynamicFrame or a DataFrame.
        catalog_connection: the name of the connection, of this process or of the Data Catalog.
        connection_options: `dbtable`; `database`, in place of that of the connection; `preactions`, `postactions`.
        redshift_tmp_dir: has an effect on Redshift alone.
        transformation_ctx: the name of the output; default: the table.
        catalog_id: the account whose Data Catalog has the connection.

    Raises:
        EntityNotFoundError: there is no such connection.
        OptionError: `dbtable` is missing, or the table does not take the rows.
    """
    call = f"write_dynamic_frame.from_jdbc_conf({catalog_connection=})"
    run.check()
    given = GivenOptions(call, connection_options)
    connection = connection_named(run, catalog_connection, database=given.text("database"), catalog_id=catalog_id)
    write_table(run, frame, connection, TableOutput.of(given, run, transformation_ctx, redshift_tmp_dir))


def file_output(
    run: GlueRun, given: GivenOptions, format: str | None, ctx: str, table: Mapping[str, str] | None = None
) -> FileOutput:
    """Return the output of files that options ask for.

    Raises:
        OptionError: an option is missing, or has a value that is none of its own.
    """
    path, partition_by = given.needed("path"), given.names("partitionKeys")
    fmt = format_of(format, given)
    given.ignore(*_WITHOUT_EFFECT)
    update = CatalogUpdate.of(given, run, table)
    given.warn_of_rest(run)
    return FileOutput(given.call, path, fmt, partition_by, ctx, update)
