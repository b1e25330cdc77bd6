"""The stage table of an output while a driver loads it: checked and made before, sealed and counted after.

    check    what the target has and takes, what its engine can do   nothing is written yet
    create   the token row, and the table by the target's types      after the place of the output is stored
    ...      Spark loads it, a transaction for each partition
    seal     rename it, then count it                                what is counted is what is published
    rehearse the publish, of no rows                                 what would refuse it refuses it now

Spark repeats a task whose reply was lost, and then rows are in the table twice: hence the count. A task that is
believed dead may write later still: after the rename it finds no table.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from airflow_bookmarks.core.database import catalog, publish_sql
from airflow_bookmarks.core.database.publish_sql import TokenRow, wait_at_most
from airflow_bookmarks.core.database.script import DigestRow
from airflow_bookmarks.core.database.sink_table import SinkTable
from airflow_bookmarks.core.errors import DatabaseError, OptionError, PublishError, SourceError
from airflow_bookmarks.core.text.count import counted
from airflow_bookmarks.sinks.jdbc.columns import FrameColumns
from airflow_bookmarks.sinks.jdbc.publish import check_keys

if TYPE_CHECKING:
    from airflow_bookmarks.databases.database import Database
    from airflow_bookmarks.sinks.jdbc.place import StagePlace, TableTarget

_LEFT = "Nothing was written or committed."
_LOADING_S = 60  # for the sessions of tasks that Spark has given up


@dataclass(frozen=True, slots=True)
class TableLoad:
    """The load of one output: `what` names job and output, `columns` are those of its frame.

    `types` are theirs, as `DataType.simpleString` writes them; none: they are not known.
    """

    what: str
    target: TableTarget
    columns: tuple[str, ...]
    types: tuple[str, ...] = ()

    def check(self, database: Database, *, is_case_sensitive: bool = False) -> Sequence[str] | None:
        """Return the columns as the target names them, in the order of the frame; None: there is no target yet.

        Args:
            database: that of the target.
            is_case_sensitive: whether columns of a frame may differ by case alone.

        Raises:
            OptionError: the target lacks a column or a key, takes a column not as it is, or can't roll back.
        """
        self._check_own_columns()
        frame = FrameColumns(self.what, self.target, self.columns, self.types)
        columns = frame.matched(database, is_case_sensitive=is_case_sensitive)
        if columns is None:
            return None
        self._check_engine(database)
        self._check_unique(database)
        return columns

    def create(self, database: Database, place: StagePlace, columns: Sequence[str] | None, label: str) -> None:
        """Make the token row and the empty stage table; without a target Spark makes the table itself.

        Args:
            database: that of the target.
            place: where the output is staged.
            columns: what `check` returned.
            label: what the token row tells people.

        Raises:
            PublishError: the token was taken by a later fence.
            DatabaseError: it can't be made.
        """
        dialect = database.dialect
        token = TokenRow.of(dialect, place.table, place.name)
        _create_beside(database, token.create_table(), token.table)
        database.execute(token.add(label))
        ((fence, _),) = database.rows(token.read())
        if int(fence) >= place.name.key.fence:
            raise PublishError(
                f"{self.what}: a run of fence {fence} has published to {self.target} already, and this one has fence "
                f"{place.name.key.fence}: its rows would not be published. {_LEFT} Another run of the job has taken "
                "over; or its bookmark was lost, and the store knows nothing of the runs that have published; or two "
                "stores have the same namespace and job. If its runs really begin anew, delete the row "
                f"output_id = {token.id!r} of the table {token.table}."
            )
        self._keep_digest(database, place)
        if columns is not None:
            stage = publish_sql.create_stage(dialect, place.loading, self.target.table, columns, self.target.flag)
            database.execute(stage)

    def _keep_digest(self, database: Database, place: StagePlace) -> None:
        """Keep the digest of the statements of the script, by which a publish knows them."""
        if not self.target.script:
            return
        row = DigestRow.of(database.dialect, place.table)
        _create_beside(database, row.create_table(), row.table)
        database.execute(row.remove())
        database.execute(row.add(self.target.script.digest))

    def seal(self, database: Database, place: StagePlace, rows: int | None) -> int:
        """Let nobody write to the stage table any more, and return how many rows it has.

        Args:
            database: that of the target.
            place: where the output is staged.
            rows: how many rows Spark has written; None: Spark does not tell.

        Raises:
            PublishError: a session that writes to the table does not end; or the table has other rows than were
                written, or rows that can't be told by their keys.
            DatabaseError: it can't be renamed or read.
        """
        try:
            alone(database, publish_sql.seal_stage(database.dialect, place.loading, place.table), _LOADING_S)
        except DatabaseError as error:
            if error.code not in publish_sql.WAITED_IN_VAIN:
                raise
            raise PublishError(
                f"{self.what}: Spark has written all rows to the stage table {place.loading}, and after {_LOADING_S} s "
                f"another session still holds that table ({error}). Nothing was committed or published. It may be of "
                "an executor that is gone, which the database has not noticed yet (tcp_keepalives_idle of PostgreSQL, "
                "wait_timeout of MariaDB). Run the job again: it writes to another table."
            ) from error
        count = int(database.rows(publish_sql.count_rows(database.dialect, place.table))[0][0])
        if rows is not None and count != rows:
            raise PublishError(
                f"{self.what}: Spark has written {counted(rows, 'row')} to the stage table {place.table}, and it has "
                f"{count}. Nothing was committed or published. Spark repeats a task whose answer is lost, and rows "
                "then come twice; run the job again."
            )
        try:
            check_keys(database, self.target, place.table)
        except SourceError as error:
            raise PublishError(f"{self.what}: {error}. Nothing was committed.") from error
        if self.target.upsert is not None:
            # Whether the database can order by these columns shows here, and not after the commit.
            database.rows(self.target.upsert.chosen_count(database.dialect, place.table))
        self._rehearse(database, place)
        return count

    def delete_count(self, database: Database, place: StagePlace) -> int | None:
        """Return how many rows the delete set has in a sealed stage table; None: there is no delete set."""
        upsert = self.target.upsert
        if upsert is None or not upsert.has_deletes:
            return None
        return int(database.rows(upsert.delete_count(database.dialect, place.table))[0][0])

    def _rehearse(self, database: Database, place: StagePlace) -> None:
        """Publish no rows: a right that is missing, or a column that takes no values, shows before the commit."""
        dialect, target, empty = database.dialect, self.target.table, place.loading
        database.execute(TokenRow.of(dialect, place.table, place.name).take(0))  # no fence is below it
        staged = [name for name, *_ in database.rows(catalog.columns_query(dialect, place.table))]
        if not database.rows(catalog.columns_query(dialect, target)):
            self._rehearse_creation(database, place, staged)
            return
        database.execute(publish_sql.create_rehearsal(dialect, empty, place.table))
        columns = self.target.columns_of(staged)
        for statement in self.target.statements(dialect, empty, columns, rehearses=True):
            database.execute(statement)
        database.execute(publish_sql.drop_table(dialect, empty))

    def _rehearse_creation(self, database: Database, place: StagePlace, staged: Sequence[str]) -> None:
        """Make a table like the target, and drop it.

        In its own schema, where that leaves no trace if this process dies: so a right that is missing there shows too.
        MySQL would keep it: there it is made beside the stage table, and the target itself is only prepared.
        """
        dialect, empty = database.dialect, place.loading
        if publish_sql.commits_ddl(dialect):
            for statement in self.target.creation(dialect, empty, place.table, staged):
                database.execute(statement)
            database.execute(publish_sql.drop_table(dialect, empty))
            self._prepare_creation(database, place, staged)
            return
        beside = self.target.table.beside(empty.name)
        with database.transaction():
            for statement in self.target.creation(dialect, beside, place.table, staged):
                database.execute(statement)
            database.execute(publish_sql.drop_table(dialect, beside))

    def _prepare_creation(self, database: Database, place: StagePlace, staged: Sequence[str]) -> None:
        """Let MySQL read the statement that makes the target: it refuses a name that no table has, and a right."""
        dialect, target = database.dialect, self.target.table
        for statement in self.target.creation(dialect, target, place.table, staged):
            for each in publish_sql.prepare_only(dialect, statement):
                database.execute(each)
        if target.schema is not None and not database.rows(catalog.schema_is_there(dialect, target.schema)):
            raise PublishError(
                f"{self.what}: there is no database {target.schema!r} for {self.target}, or the login has no right "
                f"there. {_LEFT} Make it, or name another one."
            )

    def _check_own_columns(self) -> None:
        upsert = self.target.upsert
        if self.target.flag in self.columns:
            raise self._refused(
                f"upsert(..., deletes=...) adds the column {self.target.flag!r} to the stage table, and the frame has "
                "one of that name",
                "Rename or drop it.",
            )
        for column in () if upsert is None else (*upsert.keys, *upsert.order_by):
            if column not in self.columns:
                raise self._refused(
                    f"upsert names the column {column!r}, and the frame has {', '.join(map(repr, self.columns))}",
                    "Name it as the frame has it.",
                )

    def _check_engine(self, database: Database) -> None:
        for table in _tables_below(database, self.target.table):
            query = catalog.engine_query(database.dialect, table)
            for engine, has_transactions in () if query is None else database.rows(query):
                if has_transactions != "YES":
                    which = "" if table == self.target.table else f" selects from {table}, which"
                    raise self._refused(
                        f"{self.target}{which} has the engine {engine}, which has no transactions: a publish could be "
                        "seen, and left, half done",
                        f"Give it another one (ALTER TABLE {table} ENGINE=InnoDB).",
                    )

    def _check_unique(self, database: Database) -> None:
        upsert = self.target.upsert
        if upsert is None:
            return
        keys = catalog.keys_of(database.rows(self._unique(database)))
        if not upsert.is_served_by(keys):
            known = "; ".join(sorted(", ".join(sorted(key)) for key in keys)) or "none"
            raise self._refused(
                f"upsert by {', '.join(upsert.keys)} into {self.target}, whose unique keys are: {known}. Without one "
                "for these very columns two writers could both insert a row for one key",
                "Add a primary key or a unique index on them.",
            )

    def _unique(self, database: Database) -> str:
        return catalog.unique_query(database.dialect, self.target.table)

    def _refused(self, why: str, instead: str) -> OptionError:
        return OptionError(f"{self.what}: {why}. {_LEFT} {instead}")


def _tables_below(database: Database, table: SinkTable) -> Iterator[SinkTable]:
    """Yield a table, and of a view of MySQL all that it may select from; its definition may be hidden from a login."""
    left, seen = [table], {table}
    while left:
        yield (each := left.pop())
        query = catalog.view_query(database.dialect, each)
        for (definition,) in () if query is None else database.rows(query):
            new = catalog.tables_of_view(definition or "") - seen
            left += sorted(new, key=str)
            seen |= new


def resolved(database: Database, table: SinkTable) -> SinkTable:
    """Return a table with its schema: what state names must not depend on who connects.

    Raises:
        OptionError: it is named without a schema, and the connection has none.
    """
    if table.schema is not None:
        return table
    ((schema,),) = database.rows(catalog.schema_query(database.dialect, table.name))
    if schema is None:
        raise OptionError(
            f"the table {table} is named without a schema, and the login leads to none. {_LEFT} Name it as "
            "'<schema>.<table>'."
        )
    return SinkTable(str(schema), table.name)


def _create_beside(database: Database, statement: str, table: SinkTable) -> None:
    """Make a table beside the stage; another driver may make it at the same time, which PostgreSQL refuses to one."""
    try:
        database.execute(statement)
    except DatabaseError:
        if not database.rows(catalog.columns_query(database.dialect, table)):
            raise


def alone(database: Database, statement: str, seconds: int) -> None:
    """Run a statement that needs a table for itself, and wait so many seconds at most for others to leave it.

    Raises:
        DatabaseError: the database refuses it; with a code of `publish_sql.WAITED_IN_VAIN`, others are still there.
    """
    with database.transaction():
        for before in wait_at_most(database.dialect, seconds):
            database.execute(before)
        database.execute(statement)
