"""Write a DataFrame to a snapshot of an Iceberg table that nobody reads until the run is published."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from airflow_bookmarks.core.database.upsert import DELETED
from airflow_bookmarks.core.errors import OptionError, PublishError
from airflow_bookmarks.core.rules.mode import Mode
from airflow_bookmarks.core.text.catalog_name import parts_of, quoted
from airflow_bookmarks.files.opener import canonical_folder
from airflow_bookmarks.sinks.failure import ICEBERG_SINK
from airflow_bookmarks.sinks.iceberg.target import IcebergOutput, figures
from airflow_bookmarks.sinks.staging import Staged, StagingRequest
from airflow_bookmarks.spark.features import SPARK_ERRORS
from airflow_bookmarks.spark.iceberg.session import WAP_ENABLED, IcebergDetail, IcebergSession
from airflow_bookmarks.spark.tables.merge import check_can_merge, check_key_types, check_keys, kept, merge, newest

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pyspark.sql import DataFrame, SparkSession

    from airflow_bookmarks.core.database.upsert import Upsert
    from airflow_bookmarks.core.rules.emptiness import WhenEmpty
    from airflow_bookmarks.sinks.iceberg.tables import IcebergSnapshot
    from airflow_bookmarks.sinks.iceberg.target import IcebergTarget

_LEFT = "Nothing was written or committed."
_WAP_ID, _WAP_BRANCH = "spark.wap.id", "spark.wap.branch"
_OF_SINK = {
    "branch": "rows are staged beside the branch main, and published to it",
    "wap-id": "the job sets it, and Iceberg takes it from the conf of the session alone",
}


@dataclass(frozen=True, slots=True)
class IcebergTable:
    """An Iceberg table that an output goes to; `what` names job and output, `options` are those of Iceberg's writer."""

    what: str
    session: IcebergSession
    detail: IcebergDetail
    mode: Mode
    partition_by: tuple[str, ...]
    options: Mapping[str, str]
    upsert: Upsert | None = None

    @classmethod
    def open(
        cls,
        what: str,
        frame: DataFrame,
        name: str,
        *,
        mode: Mode,
        partition_by: tuple[str, ...],
        options: Mapping[str, str],
        upsert: Upsert | None = None,
    ) -> IcebergTable:
        """Find the table, and make it, empty, where it is not there: by the columns of the frame.

        Raises:
            OptionError: it is no Iceberg table, or none in which a run can stage; an option can't be used.
        """
        spark = frame.sparkSession
        _check_options(what, spark, options)
        if upsert is not None:
            _check_upsert(what, mode, options)
            check_can_merge(what, spark, frame.columns, upsert)
        session = IcebergSession(spark)
        detail = _asked(what, session, name)
        if detail is None:
            _make(what, session, frame, name, partition_by)
            detail = _asked(what, session, name)
        elif partition_by and partition_by != detail.partitions:
            raise OptionError(
                f"{what}: partitionBy names {', '.join(partition_by)}, and the Iceberg table {name} is there, "
                f"partitioned by {', '.join(detail.partitions) or 'nothing'}. {_LEFT} Leave partitionBy out, or change "
                "the table: ALTER TABLE ... ADD PARTITION FIELD."
            )
        if detail is None:
            raise OptionError(f"{what}: the Iceberg table {name} was made, and is not there. {_LEFT}")
        table = cls(what, session, detail, mode, partition_by, options, upsert)
        table._check()
        if upsert is not None:
            check_key_types(what, detail.target.sql, frame, upsert)
        return table

    @property
    def target(self) -> IcebergTarget:
        """The table by its full name."""
        return self.detail.target

    @property
    def location(self) -> str:
        """The folder of the table."""
        return canonical_folder(self.detail.location)

    @property
    def is_overwrite(self) -> bool:
        """Whether rows that are there go."""
        return self.mode is not Mode.APPEND

    def _check(self) -> None:
        if self.detail.properties.get(WAP_ENABLED, "false").lower() != "true":
            raise OptionError(
                f"{self.what}: the Iceberg table {self.target} does not let a run stage: what is written would be "
                f"visible before the commit of the run. {_LEFT} ALTER TABLE {self.target.sql} SET TBLPROPERTIES "
                f"('{WAP_ENABLED}' = 'true') changes that; writes of others are visible at once as before."
            )
        if not self.session.has_extensions(self.target):
            raise OptionError(
                f"{self.what}: this Spark knows the Iceberg table {self.target}, but not Iceberg's statements, by "
                f"which what is staged gets a tag. {_LEFT} Start it with spark.sql.extensions="
                "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions."
            )

    def request(self, when_empty: WhenEmpty | None) -> StagingRequest:
        """Return what is stored before the first byte is written."""
        keys = () if self.upsert is None else self.upsert.keys
        stats = IcebergOutput(self.mode, self.partition_by, keys, folder=self.location).stats()
        return StagingRequest(ICEBERG_SINK, str(self.target), None, stats, when_empty)

    def write(self, frame: DataFrame, place: str, *, is_observed: bool) -> Staged:
        """Write the frame to a snapshot under the id that `place` names, and tag it.

        Raises:
            OptionError: it is not certain what becomes of a key. PublishError: what was written is not staged.
        """
        counts: dict[str, int] = {}
        if self.upsert is None:
            with _staging(frame.sparkSession, place):
                self._write(frame)
        else:
            rows = kept(frame, is_observed=is_observed)
            check_keys(self.what, rows, self.upsert)
            merge(rows, self.target.sql, {_WAP_ID: place}, self.upsert)
            counts = _counts(newest(rows, self.upsert), has_deletes=self.upsert.has_deletes)
        columns = frame.drop(DELETED) if self.upsert is not None and self.upsert.has_deletes else frame
        snapshot = self._staged(place)
        if snapshot is None:
            self._check_unchanged(place, counts)
            return Staged((), rows=0, schema=columns.schema.json())
        self.session.tag(self.target, place, snapshot.id)
        return Staged(
            (),
            rows=counts.get("rows", snapshot.rows),
            schema=columns.schema.json(),
            removed_keys=counts.get("removed"),
            figures=figures(snapshot.id, snapshot.parent, snapshot.files),
        )

    def _write(self, frame: DataFrame) -> None:
        writer = frame.writeTo(self.target.sql)
        for key, value in self.options.items():
            writer = writer.option(key, value)
        if self.mode is Mode.APPEND:
            writer.append()
        elif self.mode is Mode.OVERWRITE_PARTITIONS:
            writer.overwritePartitions()
        else:
            writer.overwrite(F.lit(True))

    def _staged(self, wap_id: str) -> IcebergSnapshot | None:
        """Return the snapshot that was staged under an id; None where an upsert has changed nothing."""
        history = self.session.history(self.target)
        found = [] if history is None else history.staged_as(wap_id)
        if len(found) == 1 and history is not None and found[0].id not in {each.id for each in history.ancestry()}:
            return found[0]
        if not found and self.upsert is not None:
            return None  # MERGE commits nothing where it changes nothing
        raise PublishError(
            f"{self.what}: what was written to the Iceberg table {self.target} is not staged under {wap_id!r}, and may "
            f"be visible already: somebody took the property {WAP_ENABLED} away, or set another {_WAP_ID} in this "
            "session. Nothing was committed. Look at the newest snapshots of the table, roll back what this run has "
            "written, and run the job again."
        )

    def _check_unchanged(self, place: str, counts: Mapping[str, int]) -> None:
        """Make sure that an upsert has changed nothing: what Spark tells of a table may be as it was some time ago.

        A mark that is set now, and is seen, proves that the look is a fresh one.

        Raises:
            PublishError: it is not.
        """
        if not counts.get("rows", 0):
            return
        history = self.session.history(self.target)
        current = None if history is None else history.current
        if current is not None:
            self.session.tag(self.target, place, current)
            seen = self.session.history(self.target)
            is_fresh = seen is not None and place in seen.tags
            self.session.drop_tag(self.target, place)
            if is_fresh:
                return
        elif counts["rows"] == counts.get("removed", 0):
            return  # nothing to delete in an empty table
        raise PublishError(
            f"{self.what}: this Spark does not tell what is written to the Iceberg table {self.target}, but how it was "
            "some time before. Nothing was committed, and what was staged is removed by the next run. Take the cache "
            f"of the catalog away: spark.sql.catalog.{self.target.catalog}.cache-enabled=false."
        )


@contextmanager
def _staging(spark: SparkSession, wap_id: str) -> Iterator[None]:
    """Let what this session writes within the block be staged under an id."""
    spark.conf.set(_WAP_ID, wap_id)
    try:
        yield
    finally:
        spark.conf.unset(_WAP_ID)


def _counts(rows: DataFrame, *, has_deletes: bool) -> dict[str, int]:
    """Return how many rows an upsert brings, those of the delete set included, and how many of them delete."""
    if not has_deletes:
        return {"rows": rows.count()}
    return {"rows": rows.count(), "removed": rows.where(F.col(DELETED) == 1).count()}


def _asked(what: str, session: IcebergSession, name: str) -> IcebergDetail | None:
    try:
        return session.detail(name)
    except OptionError as error:
        raise OptionError(f"{what}: {str(error).rstrip('.')}. {_LEFT}") from error


def _make(what: str, session: IcebergSession, frame: DataFrame, name: str, partition_by: tuple[str, ...]) -> None:
    empty = frame.sparkSession.createDataFrame([], frame.schema)
    writer = empty.writeTo(quoted(*parts_of(name))).using("iceberg").tableProperty(WAP_ENABLED, "true")
    if partition_by:
        writer = writer.partitionedBy(*(F.col(quoted(column)) for column in partition_by))
    try:
        writer.create()
    except SPARK_ERRORS as error:
        unusable = str(session.unusable(name, error)).rstrip(".")
        raise OptionError(f"{what}: {unusable}. {_LEFT}") from error


def _check_options(what: str, spark: SparkSession, options: Mapping[str, str]) -> None:
    for key in options:
        if key.lower() in _OF_SINK:
            raise OptionError(
                f"{what}: the option {key!r} can't be used with a managed Iceberg table: {_OF_SINK[key.lower()]}. "
                f"{_LEFT} Leave it out."
            )
    for key in (_WAP_ID, _WAP_BRANCH):
        if spark.conf.get(key, None) is not None:
            raise OptionError(
                f"{what}: {key} is set in the conf of the session, and the job sets {_WAP_ID} by itself for each of "
                f"its outputs. {_LEFT} Take it out of the conf: spark.conf.unset({key!r})."
            )


def _check_upsert(what: str, mode: Mode, options: Mapping[str, str]) -> None:
    if mode is not Mode.APPEND:
        raise OptionError(
            f"{what}: upsert(...) keeps rows, and mode 'overwrite' deletes them. {_LEFT} Use one of them."
        )
    if options:
        raise OptionError(
            f"{what}: the option {next(iter(options))!r} has no effect on an upsert, which is a MERGE. {_LEFT} Leave "
            "it out; add columns to the table with ALTER TABLE."
        )
