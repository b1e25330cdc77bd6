"""Write a DataFrame to a stage table of a database, by Spark's own JDBC writer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark.sql.types import DataType, TimestampNTZType, TimestampType

from airflow_bookmarks.core.database.dialects.quoting import is_mysql
from airflow_bookmarks.core.database.publish_sql import keep_fractions
from airflow_bookmarks.core.database.script import PublishScript
from airflow_bookmarks.core.database.sink_table import SinkTable
from airflow_bookmarks.core.database.upsert import Upsert
from airflow_bookmarks.core.errors import OptionError, PublishError
from airflow_bookmarks.databases.address import DatabaseAddress
from airflow_bookmarks.sinks.failure import JDBC_SINK
from airflow_bookmarks.sinks.jdbc.loading import TableLoad, resolved
from airflow_bookmarks.sinks.jdbc.place import StagePlace, TableTarget
from airflow_bookmarks.sinks.reaching import entered
from airflow_bookmarks.sinks.staging import Mode, Staged, StagingRequest
from airflow_bookmarks.spark.features import tells_observations
from airflow_bookmarks.spark.jdbc.reader import driver_needed, spark_url
from airflow_bookmarks.spark.session import RowCount

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pyspark.sql import DataFrame

    from airflow_bookmarks.core.rules.emptiness import WhenEmpty
    from airflow_bookmarks.databases.access import DatabaseAccess
    from airflow_bookmarks.databases.login import DatabaseLogin

_LEFT = "Nothing was committed or published."
_TIMES: dict[type[DataType], str] = {TimestampType: "timestamp", TimestampNTZType: "datetime"}
_TYPES = "createtablecolumntypes"  # by which a user tells Spark the types of the table
_OF_CONNECTION = ("user", "password")
_OF_SINK = ("dbtable", "query", "truncate", "url")


@dataclass(frozen=True, slots=True)
class JdbcTable:
    """A table of a database, staged in another one beside it; `what` names job and output.

    `options` are those of the user, for Spark's writer and the driver. `schema` is where to stage (None: beside the
    target).
    """

    what: str
    target: TableTarget
    login: DatabaseLogin
    options: Mapping[str, str]
    schema: str | None

    @classmethod
    def open(
        cls,
        what: str,
        databases: DatabaseAccess,
        url: str,
        table: str,
        *,
        mode: Mode,
        upsert: Upsert | None,
        options: Mapping[str, str],
        schema: str | None,
        before: str | Iterable[str] | None = None,
        after: str | Iterable[str] | None = None,
    ) -> JdbcTable:
        """Find the login of a database, and the schema of a table that is named without one.

        Raises:
            OptionError: the address or the name can't be read, no login is found, or an option is not Spark's to take.
            PublishError: the database can't be reached.
        """
        _check_options(what, options)
        address = DatabaseAddress.parse(url)
        login = databases.login(address)
        with entered(login, _left(what), PublishError) as database:
            script = PublishScript.of(login.dialect, before, after)
            target = TableTarget(address, resolved(database, SinkTable.parse(table)), mode, upsert, script)
        return cls(what, target, login, options, schema)

    def place(self, when_empty: WhenEmpty | None) -> StagingRequest:
        """Return what is stored before the first byte is written."""
        stats = {"format": "jdbc", **self.target.stats()}
        return StagingRequest(JDBC_SINK, str(self.target), self.schema, stats, when_empty)

    def check(self, frame: DataFrame) -> Sequence[str] | None:
        """Return the columns of the frame as the target names them; None: there is no target yet.

        Raises:
            OptionError: the target lacks a column or a key, does not take one as it is, or can't roll back.
            PublishError: it can't be reached.
        """
        exact = (frame.sparkSession.conf.get("spark.sql.caseSensitive", "false") or "false").lower() == "true"
        with entered(self.login, _left(self.what), PublishError) as database:
            types = [field.dataType.simpleString() for field in frame.schema.fields]
            return self._load(frame.columns, types).check(database, is_case_sensitive=exact)

    def write(self, frame: DataFrame, place: str, columns: Sequence[str] | None, label: str) -> Staged:
        """Load the frame into its stage table, and count what lies there.

        Args:
            frame: the rows, with those of a delete set; see `spark.sinks.deletes`.
            place: the stage table, as the run has stored it.
            columns: what `check` returned.
            label: what the token table tells people.

        Raises:
            PublishError: another run has published, or the table has other rows than were written.
        """
        rest = frame if self.target.flag is None else frame.drop(self.target.flag)
        load, staged = self._load(rest.columns), StagePlace.parse(place)
        if staged is None:
            raise PublishError(f"{self.what}: {place!r} is no stage table. {_LEFT}")
        with entered(self.login, _left(self.what), PublishError) as database:
            load.create(database, staged, columns, label)
        if columns is None:
            self._make(frame, staged)
        rows = self._written(frame, staged)
        with entered(self.login, _left(self.what), PublishError) as database:
            rows = load.seal(database, staged, rows)
            removed = load.delete_count(database, staged)
        return Staged((), rows=rows, schema=rest.schema.json(), removed_keys=removed)

    def _make(self, frame: DataFrame, staged: StagePlace) -> None:
        """Let Spark make the stage table first where its types lose something: in MySQL it makes times of seconds."""
        kinds = {field.name: _TIMES.get(type(field.dataType)) for field in frame.schema.fields}
        times = {name: kind for name, kind in kinds.items() if kind is not None}
        if not (times and is_mysql(self.login.dialect)) or any(name.lower() == _TYPES for name in self.options):
            return
        self._append(frame.sparkSession.createDataFrame([], frame.schema), staged)
        with entered(self.login, _left(self.what), PublishError) as database:
            database.execute(keep_fractions(staged.loading, times))

    def _written(self, frame: DataFrame, staged: StagePlace) -> int | None:
        """Write the frame, and return how many rows that were; None: Spark has proved that it has none."""
        count = RowCount()
        self._append(count.of(frame), staged)
        return count.rows() if tells_observations(frame.sparkSession) else int(frame.count())

    def _append(self, frame: DataFrame, staged: StagePlace) -> None:
        properties = self._properties()
        with driver_needed(frame.sparkSession, properties):
            writer = frame.write.mode("append").options(**self.options)
            writer.jdbc(spark_url(self.login), staged.loading.sql(self.login.dialect), properties=properties)

    def _properties(self) -> dict[str, str]:
        properties = self.login.jdbc_properties()
        if self.login.dialect == "postgresql":
            # Text goes into columns of any type that has a form in text: uuid, json, inet, enums.
            properties["stringtype"] = "unspecified"
        return properties

    def _load(self, columns: Sequence[str], types: Sequence[str] = ()) -> TableLoad:
        return TableLoad(self.what, self.target, tuple(columns), tuple(types))


def upsert_of(keys: str | Iterable[str], order_by: str | Iterable[str] | None, *, has_deletes: bool = False) -> Upsert:
    """Return the upsert that a script asks for.

    Raises:
        OptionError: it names no key, or a column twice, or something that is no name.
    """
    upsert = Upsert(_names(keys), () if order_by is None else _names(order_by), has_deletes)
    if not upsert.keys or any(not isinstance(name, str) or not name for name in (*upsert.keys, *upsert.order_by)):
        raise OptionError(f"upsert(keys={keys!r}, order_by={order_by!r}): give the names of columns. {_LEFT}")
    if len(set(upsert.keys)) < len(upsert.keys):
        raise OptionError(f"upsert(keys={keys!r}): a key is named twice. {_LEFT}")
    return upsert


def _left(what: str) -> str:
    """Say after an error of the database what it was for, what is left, and what to do."""
    return f"That was for {what}. {_LEFT} Mend the cause, such as a right that is missing, and run the job again."


def _check_options(what: str, options: Mapping[str, Any]) -> None:
    for name in options:
        if name.lower() in _OF_CONNECTION:
            raise OptionError(
                f"{what}: {name!r} among the options of a table. Nothing was written or committed. Whoever finishes a "
                "publish, a worker too, has to find the login: write 'conn:<id>' and give it to an Airflow connection, "
                "the variable AIRFLOW_CONN_<ID>, or what spark.bookmarks.access.<id> names."
            )
        if name.lower() in _OF_SINK:
            raise OptionError(
                f"{what}: the option {name!r} can't be used with a managed table. Nothing was written or committed. "
                "Give address and table to .jdbc(url, table), and the mode to .mode(...)."
            )


def _names(names: str | Iterable[str]) -> tuple[str, ...]:
    return (names,) if isinstance(names, str) else tuple(names)
