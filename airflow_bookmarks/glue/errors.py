"""What scripts for AWS Glue may ask for and this layer does not have, and what to do instead."""

from __future__ import annotations

from typing import NoReturn

from airflow_bookmarks.core.errors import BookmarkError

# By which names a run counts the records that its frames lack. Executors import this module, and may have neither
# numpy nor boto3.
DROPPED_RECORDS, ERROR_RECORDS = "dropped records", "error records"


class GlueUnsupportedError(BookmarkError):
    """Raised when a script asks for a part of Glue that this layer does not have."""

    def __init__(self, call: str, what: str, instead: str) -> None:
        super().__init__(f"{call}: {what} is not part of this layer. Nothing was read or changed. {instead}")
        self.call, self.what, self.instead = call, what, instead


class GlueArgumentError(BookmarkError, ValueError):
    """Raised when the arguments of a script lack one that it asks for, or can't be read."""


class GlueParameterError(BookmarkError, ValueError):
    """Raised when a call lacks a parameter, or has it in two ways."""

    def __init__(self, message: str) -> None:
        super().__init__(f"{message}. Nothing was read or changed.")


class CatalogError(BookmarkError):
    """Raised when a catalog refuses a request, or does not answer."""


class EntityNotFoundError(BookmarkError, LookupError):
    """Raised when a table, database, connection or bookmark that a script names does not exist."""


STREAM = "A stream keeps its own position, in its checkpoint: use spark.readStream and writeStream for it."
CONNECTOR = "Read it with Spark's own connector (spark.read.format(...)), without a bookmark."
TABLE_FORMAT = (
    "Read it with Spark (spark.read.format(...), or spark.table), without a bookmark. A script that uses BookmarkedJob "
    "reads Delta and Iceberg with one: BookmarkedJob.read(ctx).delta(...) or .iceberg(...)."
)
GOVERNED = "Governed tables have ended: leave the call out, job.commit() makes the output of a run visible at once."
STORAGE_CLASS = "Let a lifecycle rule of the bucket move the objects."

# What `refuse` says of each call that is out of reach.
OUT_OF_REACH = {
    "getStreamingSource": ("a stream", STREAM),
    "getSampleStreamingDynamicFrame": ("a stream", STREAM),
    "forEachBatch": ("a stream", STREAM),
    "add_ingestion_time_columns": ("a stream", STREAM),
    "start_transaction": ("a transaction on governed tables", GOVERNED),
    "commit_transaction": ("a transaction on governed tables", GOVERNED),
    "cancel_transaction": ("a transaction on governed tables", GOVERNED),
    "transition_table": ("a change of the storage class", STORAGE_CLASS),
    "transition_s3_path": ("a change of the storage class", STORAGE_CLASS),
}


def refuse(call: str) -> NoReturn:
    """Raise the error about a call that is out of reach.

    Raises:
        GlueUnsupportedError: always.
    """
    raise GlueUnsupportedError(call, *OUT_OF_REACH[call])
