"""Plan and read an Iceberg table: `job.read(ctx).iceberg(...)`."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from pyspark.sql.functions import col

from airflow_bookmarks.core.errors import OptionError, SourceMissingError
from airflow_bookmarks.core.text.catalog_name import quoted
from airflow_bookmarks.files.opener import canonical_folder
from airflow_bookmarks.sources.files.options import FileOptions
from airflow_bookmarks.sources.files.scan_filter import ScanRoot
from airflow_bookmarks.sources.iceberg.partitions import IcebergPartitionsSource
from airflow_bookmarks.sources.iceberg.position import IcebergRecipe
from airflow_bookmarks.sources.iceberg.source import IcebergSource
from airflow_bookmarks.spark.contexts.columns import ContextFrames, settled
from airflow_bookmarks.spark.iceberg.reader import CHANGE_TYPE, DELETE, PART_TYPES, UPDATE_BEFORE, IcebergReader
from airflow_bookmarks.spark.iceberg.session import IDENTIFIER_FIELDS, IcebergSession

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

    from airflow_bookmarks.sinks.iceberg.target import IcebergTarget
    from airflow_bookmarks.sources.iceberg.position import IcebergPlan
    from airflow_bookmarks.sources.iceberg.snapshots import SnapshotLog
    from airflow_bookmarks.sources.tables.versioned import VersionOptions
    from airflow_bookmarks.spark.contexts.scope import ReadScope
    from airflow_bookmarks.spark.iceberg.session import IcebergDetail


def read_iceberg(scope: ReadScope, table: str, options: VersionOptions) -> DataFrame:
    """Plan what is new in an Iceberg table, store the plan, and return a frame over it.

    Raises:
        OptionError: an option that means nothing here, or no Iceberg in the session.
        SourceError: it can't be planned.
    """
    options = scope.bounded_versions(table, options, "an Iceberg table", "its full name, as lake.shop.orders")
    session = IcebergSession(scope.spark)
    detail = _detail(scope, session, table)
    folder = canonical_folder(detail.location)
    scope.inputs.note_source([ScanRoot(folder)], FileOptions())
    looks = _Looks(session, detail.target, scope.label)
    common = (
        IcebergRecipe(str(detail.target), folder, options),
        scope.label,
        looks.now,
        scope.options.on_source_change,
        scope.job.name,
        scope.ctx,
    )
    has_keys = detail.properties.get(IDENTIFIER_FIELDS, "[]").strip("[] ") != ""
    reader = IcebergReader(scope.spark, detail.target, has_keys, options.changes, looks.last)
    source = (
        IcebergSource(*common)
        if options.per is None
        else IcebergPartitionsSource(
            *common,
            parts=partial(reader.parts, _part_column(scope, detail, options.per)),
            loop=scope.share.loop,
            execution=scope.run.execution_id,
        )
    )
    plan = scope.run.plan(scope.ctx, source, on_source_change=scope.options.on_source_change)
    return settled(scope, plan, _IcebergFrames(reader))


def _detail(scope: ReadScope, session: IcebergSession, table: str) -> IcebergDetail:
    try:
        detail = session.detail(table)
    except OptionError as error:
        raise OptionError(f"{scope.label}: {str(error).rstrip('.')}. Nothing was read or changed.") from error
    if detail is None:
        raise SourceMissingError(
            f"{scope.label}: there is no Iceberg table {table!r}. Nothing was read or changed. Give its full name, "
            "with the catalog, or make it."
        )
    return detail


def _part_column(scope: ReadScope, detail: IcebergDetail, column: str) -> str:
    """Return a column whose values are read one by one.

    Raises:
        OptionError: the table is not partitioned by it, or its values are not told apart by their text.
    """
    if not {column, quoted(column)} & {*detail.partitions}:
        raise scope.refused(
            f"per={column!r}, and the Iceberg table {detail.target} is partitioned by "
            f"{', '.join(detail.partitions) or 'nothing'}: name one of its partition columns"
        )
    type = scope.spark.table(detail.target.sql).schema[column].dataType
    if not isinstance(type, PART_TYPES):
        raise scope.refused(
            f"per={column!r} has the type {type.simpleString()}, whose values are not told apart here. Integers, "
            "decimals, text, dates and booleans are"
        )
    return column


class _Looks:
    """Looks at the snapshots of a table: the planner looks anew, and a reader that has a plan need not again."""

    def __init__(self, session: IcebergSession, target: IcebergTarget, label: str) -> None:
        self._session, self._target, self._label = session, target, label
        self._last: SnapshotLog | None = None

    def now(self) -> SnapshotLog:
        """Return the snapshots as they are now."""
        found = self._session.log(self._target)
        if found is None:
            raise SourceMissingError(
                f"{self._label}: the Iceberg table {self._target} is not there any more. Nothing was read or changed."
            )
        self._last = found
        return found

    def last(self) -> SnapshotLog:
        """Return the snapshots as they were at the last look; look where there was none: the plan is an older one."""
        return self.now() if self._last is None else self._last


class _IcebergFrames(ContextFrames["IcebergPlan"]):
    """The frames of a context that reads an Iceberg table."""

    def __init__(self, reader: IcebergReader) -> None:
        self._reader = reader

    def frame(self, plan: IcebergPlan, recorded: str | None, schema: StructType | None) -> DataFrame:
        """Return the rows of a plan; see `ContextFrames.frame`."""
        return self._reader.frame(plan)

    def handed(self, frame: DataFrame) -> DataFrame:
        """Return a frame over changes with its deletes in the attribute `deletes`; see `ContextFrames.handed`."""
        if self._reader.changes:
            frame.deletes = frame.where(col(CHANGE_TYPE).isin(DELETE, UPDATE_BEFORE))  # type: ignore[attr-defined]  # see `deletes.py`
        return frame
