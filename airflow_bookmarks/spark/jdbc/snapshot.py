"""Compare a whole table with what it was: `job.read(ctx).jdbc(..., compare="snapshot")`."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from pyspark.sql.functions import col, lit

from airflow_bookmarks.core.database.sink_table import SinkTable
from airflow_bookmarks.core.database.windows.partitions import hashed
from airflow_bookmarks.core.errors import SourceError
from airflow_bookmarks.databases.address import DatabaseAddress
from airflow_bookmarks.databases.client import why_no_client
from airflow_bookmarks.databases.dialects import dialect_named
from airflow_bookmarks.files.opener import open_state_files
from airflow_bookmarks.sources.jdbc.options import TableOptions
from airflow_bookmarks.sources.snapshot.snapshot import CHANGE_TYPE, DELETE, INSERT, TableSnapshot
from airflow_bookmarks.sources.snapshot.source import ComparedTable, SnapshotSource
from airflow_bookmarks.spark.contexts.columns import ContextFrames, settled
from airflow_bookmarks.spark.features import SPARK_ERRORS
from airflow_bookmarks.spark.jdbc.comparison import (
    Comparison,
    check_columns,
    check_keys,
    columns_of,
    stored_rows,
    write_snapshot,
)
from airflow_bookmarks.spark.jdbc.context import check_table_read, connecting
from airflow_bookmarks.spark.jdbc.numbers import misfit
from airflow_bookmarks.spark.jdbc.reader import driver_needed, ranges_of, reading_properties, spark_url

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

    from airflow_bookmarks.core.database.dialect import Dialect, SharedSnapshot
    from airflow_bookmarks.core.database.windows.partitions import PartitionOptions
    from airflow_bookmarks.files.filesystem import FileSystem
    from airflow_bookmarks.sources.jdbc.queries import Connect
    from airflow_bookmarks.sources.snapshot.position import SnapshotPlan
    from airflow_bookmarks.sources.snapshot.snapshot import ChangeCounts
    from airflow_bookmarks.sources.snapshot.source import OnEmptied
    from airflow_bookmarks.spark.contexts.scope import ReadScope
    from airflow_bookmarks.spark.jdbc.context import TableReadOptions

Compare = Literal["snapshot"]


def read_snapshot(scope: ReadScope, url: str, wanted: TableReadOptions, on_emptied: OnEmptied) -> DataFrame:
    """Take a snapshot of a table, store the plan, and return a frame over what differs from the last one.

    Raises:
        OptionError: an option that means nothing here, a column that can't be compared, no `state_uri`; or the job is
            sharded.
        SourceError: it can't be planned.
    """
    _check(scope, wanted)
    address = DatabaseAddress.parse(url)
    login = scope.job.store.databases.login(address)
    relation = wanted.relation
    table = ComparedTable(
        address=str(address),
        dialect=login.dialect,
        relation=relation,
        keys=wanted.options.keys,
        on_emptied=on_emptied,
    )
    if relation.parts is not None:  # what a query reads is not known
        scope.inputs.note_table(table.address, SinkTable.of_parts(relation.parts))
    properties = reading_properties(login, wanted.properties)
    connect = connecting(scope, login)
    snapshots = _SparkSnapshots(scope, table, spark_url(login), properties, wanted.partitions, connect)
    snapshots.check_parts()
    source = SnapshotSource(table, connect, snapshots, snapshots.open_files, scope.label)
    plan = scope.run.plan(scope.ctx, source, on_source_change=scope.options.on_source_change)
    return settled(scope, plan, _SnapshotFrames(snapshots))


def _check(scope: ReadScope, wanted: TableReadOptions) -> None:
    check_table_read(scope, wanted)
    if wanted.shard_by is not None:
        raise scope.refused("shard_by with compare='snapshot', which reads and compares all rows")
    if scope.share.is_shard:
        raise scope.refused("compare='snapshot' in a sharded job, each of whose shards would read all of the table")
    default, given = TableOptions(), wanted.options
    names = [each.name for each in fields(default) if each.name not in ("keys", "bound")]
    others = [name for name in names if getattr(given, name) != getattr(default, name)]
    others += [*given.bound.given(), *(f"job.batches({name}=...)" for name in scope.share.bound.given())]
    if others:
        raise scope.refused(f"{', '.join(others)} with compare='snapshot', which reads and compares all rows")
    scope.options.check_ends(given.bound)


@dataclass(frozen=True, slots=True)
class _SparkSnapshots:
    """Takes and compares snapshots by Spark; implements `SnapshotMaker`."""

    scope: ReadScope
    table: ComparedTable
    url: str
    properties: Mapping[str, str] = field(repr=False)
    partitions: PartitionOptions
    connect: Connect

    def open_files(self, uri: str) -> FileSystem:
        """Return the file system of the state."""
        return open_state_files(uri, self.scope.job.access)

    # ---- several parts are several queries

    @property
    def _dialect(self) -> Dialect:
        return dialect_named(self.table.dialect)

    @property
    def shares(self) -> SharedSnapshot | None:
        """How several parts read the table as it was at one time; None where one query reads all, or they can't.

        Spark asks each query in a session of its own, so without a client of Python nothing holds a snapshot open.
        """
        is_held = why_no_client(self.table.dialect) is None
        return self._dialect.shared_snapshot if is_held and self.partitions.partitions > 1 else None

    def check_parts(self) -> None:
        """Make sure that no row is missed or met twice which moves from part to part while they are read.

        Where all parts see the table as it was at one time, none moves. Elsewhere it stays if its part follows from its
        keys alone: a row with other keys is another row.

        Raises:
            OptionError: it could be.
        """
        wanted = self.partitions
        if wanted.partitions == 1:
            return
        by = wanted.column or wanted.hash_field
        if self.shares is None and (
            wanted.hash_expression is not None or (by is not None and by not in self.table.keys)
        ):
            raise self.scope.refused(
                f"parts by {wanted.hash_expression or by!r}: in {self._dialect.name} each part is read at another "
                "time, and a row that moves meanwhile from one to another would be missed, or met twice. Split by a "
                "key, or read in one part"
            )
        if not self.table.keys and by is None and wanted.hash_expression is None:
            raise self.scope.refused(
                f"partitions={wanted.partitions} without keys, by which the rows would be split. Give keys, or read in "
                "one part; in PostgreSQL hash_field=... as well"
            )

    def _parts(self, source: str) -> Sequence[str]:
        dialect, wanted = self._dialect, self.partitions
        if wanted.partitions == 1:
            return ["1 = 1"]
        if wanted.column is not None:
            return ranges_of(self.connect, dialect, source, wanted.column, "1 = 1", wanted.partitions)
        if wanted.hash_expression is not None:
            return hashed(dialect, f"({wanted.hash_expression})", wanted.partitions)
        names = self.table.keys if wanted.hash_field is None else (wanted.hash_field,)
        joined = f"concat_ws(',', {', '.join(map(dialect.quote, names))})"
        return hashed(dialect, joined, wanted.partitions)

    # ---- see `SnapshotMaker`

    def take(self, uri: str, opening: str | None) -> TableSnapshot:
        """Copy the table to a new folder; see `SnapshotMaker.take`."""
        label, spark, files = self.scope.label, self.scope.spark, self.open_files(uri)
        source = self.table.relation.sql(self._dialect)
        properties = dict(self.properties) if opening is None else {**self.properties, "sessionInitStatement": opening}
        with driver_needed(spark, properties):
            frame = spark.read.jdbc(self.url, source, predicates=list(self._parts(source)), properties=properties)
        check_columns(frame.schema, self.table.keys, label)
        folder = files.canonical(uri)
        if folder.startswith("/"):
            # It holds rows of a database: for its owner alone, as other state in local files.
            Path(folder).mkdir(mode=0o700, parents=True, exist_ok=True)
        try:
            snapshot = write_snapshot(frame, files, uri, label)
        except SPARK_ERRORS as error:
            said = misfit(error, frame.schema, label)
            if said is None:
                raise
            raise SourceError(said) from error
        check_keys(stored_rows(spark, files, snapshot), columns_of(snapshot), self.table.keys, label)
        return snapshot

    def compare(self, before: TableSnapshot, after: TableSnapshot) -> ChangeCounts:
        """Count the changes; see `SnapshotMaker.compare`."""
        return self.changes(before, after, self.table.keys).counts()

    def nothing(self) -> DataFrame:
        """Return a frame without rows, with the columns of the table as it is now."""
        source = self.table.relation.sql(self._dialect)
        rows = self.scope.spark.read.jdbc(self.url, source, predicates=["1 = 0"], properties=dict(self.properties))
        return rows.withColumn(CHANGE_TYPE, lit(INSERT))

    def changes(self, before: TableSnapshot | None, after: TableSnapshot, keys: Sequence[str]) -> Comparison:
        """Return the comparison of two snapshots."""
        return Comparison(self.scope.spark, self.open_files(after.uri), before, after, keys)


class _SnapshotFrames(ContextFrames["SnapshotPlan"]):
    """The frames of a context that compares snapshots."""

    def __init__(self, snapshots: _SparkSnapshots) -> None:
        self._snapshots = snapshots

    def frame(self, plan: SnapshotPlan, recorded: str | None, schema: StructType | None) -> DataFrame:
        """Return the rows that have changed; see `ContextFrames.frame`. An empty one has the columns of the table."""
        if plan.after is None:  # a pause over runs that did not read it
            return self._snapshots.nothing()
        before = plan.after if plan.is_empty else plan.before
        return self._snapshots.changes(before, plan.after, plan.keys).frame()

    def handed(self, frame: DataFrame) -> DataFrame:
        """Return the frame with its deletes in the attribute `deletes` as well; see `ContextFrames.handed`."""
        frame.deletes = frame.where(col(CHANGE_TYPE) == lit(DELETE))  # type: ignore[attr-defined]  # see `deletes.py`
        return frame
