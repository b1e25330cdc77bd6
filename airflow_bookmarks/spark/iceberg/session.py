"""Iceberg tables as a Spark session reaches them: by SQL alone, so on Spark Connect as well."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from airflow_bookmarks.core.errors import OptionError, SourceError
from airflow_bookmarks.core.text.catalog_name import parts_of, quoted
from airflow_bookmarks.core.text.cause import cause_of
from airflow_bookmarks.core.text.escaping import in_lines
from airflow_bookmarks.sinks.iceberg.tables import IcebergSnapshot, PickRefusedError, TableHistory
from airflow_bookmarks.sinks.iceberg.target import IcebergTarget
from airflow_bookmarks.sources.iceberg.snapshots import SnapshotLog, TableSnapshotInfo
from airflow_bookmarks.sources.iceberg.written import SnapshotFiles
from airflow_bookmarks.spark.features import SPARK_ERRORS
from airflow_bookmarks.spark.tables.described import DescribedTable

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import Row, SparkSession

IDENTIFIER_FIELDS = "identifier-fields"  # the columns by which a row is known again, as "[id]"
WAP_ENABLED = "write.wap.enabled"  # the property of a table in which a snapshot can be staged

_MISSING = ("TABLE_OR_VIEW_NOT_FOUND", "NoSuchTableException")
_NO_TABLE_FORMAT = (
    *("REQUIRES_SINGLE_PART_NAMESPACE", "Cannot find catalog plugin class", "CATALOG_NOT_FOUND"),
    *("ClassNotFoundException", "Failed to find data source", "DATA_SOURCE_NOT_FOUND", "SCHEMA_NOT_FOUND"),
)
_OTHER_SPARK = ("IncompatibleClassChangeError", "NoSuchMethodError", "NoClassDefFoundError")
_IS_THERE = ("DuplicateWAPCommitException", "CherrypickAncestorCommitException", "already an ancestor")
_REFUSED = ("Cannot cherry-pick", "Cannot fast-forward")
_CATALOG = "spark.sql.catalog"
_SESSION_EXTENSIONS = "spark.sql.extensions"
_EXTENSIONS = "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"
_DATA, _ADDED, _DELETED = 0, 1, 2  # content and status of an entry, as the specification of Iceberg has them
_NO_TAG = "airflow_bookmarks"  # the name of no tag: those of runs have slashes


@dataclass(frozen=True, slots=True)
class IcebergDetail:
    """What a table says of itself; `partitions` are columns and transforms, as SQL writes them."""

    target: IcebergTarget
    location: str
    properties: Mapping[str, str]
    partitions: tuple[str, ...] = ()


class IcebergSession:
    """The Iceberg tables that a session reaches; see `sinks.iceberg.tables`."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark

    # ---- looking

    def detail(self, name: str) -> IcebergDetail | None:
        """Return what a table says of itself; None if it is not there.

        Args:
            name: as the script names it; without catalog and namespace it is one of the present ones.

        Raises:
            OptionError: this Spark has no Iceberg for it, or what is there is no Iceberg table.
        """
        parts = parts_of(name)
        self._check_cached(name, parts)
        try:
            told = DescribedTable.of(self._spark, quoted(*parts))
        except SPARK_ERRORS as error:
            if any(said in str(error) for said in _MISSING):
                return None
            raise self.unusable(name, error) from error
        if told.provider != "iceberg":
            raise OptionError(f"the table {name} is of format {told.provider or 'unknown'}, and not Iceberg")
        return IcebergDetail(_full(told.name, parts), told.location, told.properties, told.partitions)

    def _check_cached(self, name: str, parts: Sequence[str]) -> None:
        """Make sure that Spark tells how a table is now.

        Iceberg's cache of tables splits names at each dot: of one that has a dot within a part it forgets the table
        where it is told to, and not its snapshots.
        """
        if not any("." in part for part in parts):
            return
        catalog = next((each for each in parts if self._spark.conf.get(f"{_CATALOG}.{each}", None)), "spark_catalog")
        if str(self._spark.conf.get(f"{_CATALOG}.{catalog}.cache-enabled", "true")).lower() != "false":
            raise OptionError(
                f"a part of the name {name} has a dot, and of such a table the cache of Iceberg's catalog tells its "
                f"snapshots as they were. Set {_CATALOG}.{catalog}.cache-enabled=false, or rename the table"
            )

    def unusable(self, name: str, error: BaseException) -> OptionError:
        """Return the error that says why a table can't be written."""
        said = str(error)
        if any(each in said for each in _OTHER_SPARK):
            return OptionError(
                f"the Iceberg that this Spark {self._spark.version} was started with is not made for it, so the table "
                f"{name} can't be written ({in_lines(cause_of(error))}). Take the iceberg-spark-runtime of this Spark; "
                "for Spark 4.2 there is none yet"
            )
        if any(each in said for each in _NO_TABLE_FORMAT):
            number = ".".join(self._spark.version.split(".")[:2])
            return OptionError(
                f"this Spark {self._spark.version} knows no Iceberg catalog for the table {name} "
                f"({in_lines(cause_of(error))}). Start it with --packages "
                f"org.apache.iceberg:iceberg-spark-runtime-{number}_2.13:<version> (for Spark 3.5: ..._2.12), with "
                f"{_SESSION_EXTENSIONS}={_EXTENSIONS}, and with the catalog: "
                "spark.sql.catalog.<name>=org.apache.iceberg.spark.SparkCatalog and its type"
            )
        return OptionError(
            f"{name} is no Iceberg table that can be written: {in_lines(cause_of(error))}. If it lies in another "
            "catalog than the session's own, name that too, as in lake.shop.orders"
        )

    def has_extensions(self, target: IcebergTarget) -> bool:
        """Whether this Spark knows the statements of Iceberg, such as those about tags.

        Its conf says so as a rule, and else a statement that changes nothing: each looks at the table in its catalog.
        """
        named = self._spark.conf.get(_SESSION_EXTENSIONS, None) or ""
        if _EXTENSIONS in (each.strip() for each in named.split(",")):
            return True
        try:
            self._spark.sql(f"ALTER TABLE {target.sql} DROP TAG IF EXISTS {quoted(_NO_TAG)}")
        except SPARK_ERRORS as error:
            if "PARSE_SYNTAX_ERROR" not in str(error):
                raise self.unusable(str(target), error) from error
            return False
        return True

    def history(self, target: IcebergTarget) -> TableHistory | None:
        """See `IcebergTables.history`."""
        told = self._told(target, "parent_id, summary")
        if told is None:
            return None
        found, refs = told
        snapshots = {id: _snapshot(id, parent, dict(summary or {})) for id, (parent, summary) in found.items()}
        return TableHistory(snapshots, _current(refs), {row.name: row.snapshot_id for row in refs if row.type == "TAG"})

    def files(self, target: IcebergTarget, snapshot: int) -> SnapshotFiles:
        """Return the data files that a snapshot, which is kept, has added and removed.

        Raises:
            SourceError: the table is out of reach.
        """
        entries = quoted(target.catalog, *target.names, "entries")
        statement = (
            f"SELECT status, data_file.file_path FROM {entries} VERSION AS OF {snapshot} "  # noqa: S608 (quoted)
            f"WHERE snapshot_id = {snapshot} AND data_file.content = {_DATA}"
        )
        try:
            rows = self._spark.sql(statement).collect()
        except SPARK_ERRORS as error:
            raise _out_of_reach(target, error) from error
        return SnapshotFiles(*([row[1] for row in rows if row[0] == status] for status in (_ADDED, _DELETED)))

    def log(self, target: IcebergTarget) -> SnapshotLog | None:
        """Return the snapshots of a table as they are now; None if it is not there.

        Raises:
            SourceError: it is out of reach.
        """
        told = self._told(target, "parent_id, operation, unix_millis(committed_at), summary")
        if told is None:
            return None
        found, refs = told
        snapshots = {
            id: TableSnapshotInfo(id, parent, operation or "", time_ms, dict(summary or {}))
            for id, (parent, operation, time_ms, summary) in found.items()
        }
        return SnapshotLog(snapshots, _current(refs))

    def _told(self, target: IcebergTarget, columns: str) -> tuple[dict[int, Row], list[Row]] | None:
        """Return these columns of the snapshots of a table by id, and its refs.

        Spark keeps what it knows of a table for a while, unless it is told to look.
        """
        snapshots, refs = (quoted(target.catalog, *target.names, each) for each in ("snapshots", "refs"))
        statement = (
            f"SELECT snapshot_id, name, type, NULL AS told FROM {refs} "  # noqa: S608 (quoted)
            f"UNION ALL SELECT snapshot_id, NULL, NULL, struct({columns}) FROM {snapshots}"
        )
        try:
            self._spark.sql(f"REFRESH TABLE {target.sql}")
            rows = self._spark.sql(statement).collect()
        except SPARK_ERRORS as error:
            if any(said in str(error) for said in _MISSING):
                return None
            raise _out_of_reach(target, error) from error
        found = {row.snapshot_id: row.told for row in rows if row.told is not None}
        return found, [row for row in rows if row.told is None]

    # ---- changing

    def tag(self, target: IcebergTarget, name: str, snapshot: int) -> None:
        """See `IcebergTables.tag`."""
        try:
            self._spark.sql(f"ALTER TABLE {target.sql} CREATE TAG {quoted(name)} AS OF VERSION {snapshot}")
        except SPARK_ERRORS as error:
            raise _out_of_reach(target, error) from error

    def drop_tag(self, target: IcebergTarget, name: str) -> None:
        """See `IcebergTables.drop_tag`."""
        try:
            self._spark.sql(f"ALTER TABLE {target.sql} DROP TAG IF EXISTS {quoted(name)}")
        except SPARK_ERRORS as error:
            raise _out_of_reach(target, error) from error

    def pick(self, target: IcebergTarget, snapshot: int) -> None:
        """See `IcebergTables.pick`."""
        self._bring(target, "cherrypick_snapshot", f"snapshot_id => {snapshot}")

    def forward(self, target: IcebergTarget, tag: str) -> None:
        """See `IcebergTables.forward`."""
        self._bring(target, "fast_forward", f"branch => 'main', to => {text(tag)}")

    def _bring(self, target: IcebergTarget, procedure: str, arguments: str) -> None:
        try:
            self._call(target, procedure, arguments)
        except SPARK_ERRORS as error:
            said = str(error)
            if any(each in said for each in _IS_THERE):
                return
            if any(each in said for each in _REFUSED):
                raise PickRefusedError(in_lines(cause_of(error))) from error
            raise _out_of_reach(target, error) from error

    def expire(self, target: IcebergTarget, snapshots: Sequence[int]) -> None:
        """See `IcebergTables.expire`: these, and none for its age."""
        ids = ", ".join(map(str, snapshots))
        try:
            self._call(
                target,
                "expire_snapshots",
                f"older_than => TIMESTAMP '1970-01-01 00:00:00', snapshot_ids => ARRAY({ids})",
            )
        except SPARK_ERRORS as error:
            raise _out_of_reach(target, error) from error

    def _call(self, target: IcebergTarget, procedure: str, arguments: str) -> None:
        table = text(target.in_catalog)
        self._spark.sql(f"CALL {quoted(target.catalog)}.system.{procedure}(table => {table}, {arguments})").collect()


def _snapshot(id: int, parent: int | None, summary: Mapping[str, str]) -> IcebergSnapshot:
    rows, files = (int(summary.get(each, 0)) for each in ("added-records", "added-data-files"))
    return IcebergSnapshot(id, parent, summary.get("wap.id"), summary.get("published-wap-id"), rows, files)


def _current(refs: Sequence[Row]) -> int | None:
    return next((row.snapshot_id for row in refs if row.name == "main"), None)


def text(value: str) -> str:
    """Return a text as SQL writes it."""
    escaped = value.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def _full(told: str, parts: tuple[str, ...]) -> IcebergTarget:
    """Return a table by its full name, as the catalog tells it: that ends with the parts that the script names."""
    rest = told.removesuffix(".".join(parts)).rstrip(".")
    return IcebergTarget.parse(quoted(*(rest.split(".") if rest and rest != told else ()), *parts))


def _out_of_reach(target: IcebergTarget, error: BaseException) -> SourceError:
    return SourceError(f"the Iceberg table {target} is out of reach: {in_lines(cause_of(error))}")
