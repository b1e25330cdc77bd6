"""A table in a real database as the target of a run, for tests of the sink `jdbc`."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import Any

from airflow_bookmarks.core.database import catalog
from airflow_bookmarks.core.database.dialects.quoting import text_literal
from airflow_bookmarks.core.database.publish_sql import names_of
from airflow_bookmarks.core.database.script import PublishScript
from airflow_bookmarks.core.database.sink_table import SinkTable
from airflow_bookmarks.core.database.stage_name import StageName, stage_prefix
from airflow_bookmarks.core.database.upsert import Upsert
from airflow_bookmarks.core.rules.mode import Mode
from airflow_bookmarks.core.run import OutputEntry, RunKey
from airflow_bookmarks.databases.address import DatabaseAddress
from airflow_bookmarks.databases.database import Database, open_database
from airflow_bookmarks.databases.login import DatabaseLogin
from airflow_bookmarks.sinks.jdbc.loading import TableLoad, resolved
from airflow_bookmarks.sinks.jdbc.place import StagePlace, TableTarget
from airflow_bookmarks.sinks.jdbc.sink import JdbcSink
from airflow_bookmarks.sinks.sink import StagedSink, StoredOutput
from airflow_bookmarks.sinks.staging import StagingRequest
from airflow_bookmarks.store.blobs import BlobStore
from airflow_bookmarks.testing.sink_ground import JOB, NAME, OTHER_JOB, stored_output

ADDRESS = DatabaseAddress.parse("conn:dw")

Row = tuple[object, ...]


@dataclass(frozen=True)
class OneLogin:
    """An access that leads every address to one database."""

    to: DatabaseLogin

    def login(self, address: DatabaseAddress) -> DatabaseLogin:
        return self.to


class TableGround:
    """A table whose first column is the row as the conformance suite sees it; `columns` are all of them, with types.

    `of_schema` is another schema for the target than that in which it is staged.
    """

    def __init__(
        self,
        login: DatabaseLogin,
        blobs: BlobStore,
        *,
        name: str = "dim",
        columns: Sequence[tuple[str, str]] = (("row", "varchar(100)"),),
        key: Sequence[str] = (),
        mode: Mode = Mode.APPEND,
        upsert: Upsert | None = None,
        is_there: bool = True,
        of_schema: str | None = None,
        script: PublishScript | None = None,
    ) -> None:
        self.login, self.blobs = login, blobs
        self.sink: StagedSink = JdbcSink(OneLogin(login))
        self.columns = [column for column, _ in columns]
        self.made_as = "varchar(100)"  # the type of the columns of a table that is not there
        with self.opened() as database:
            self.table = resolved(database, SinkTable(None, name))
            self.beside = self.table.beside(str(StageName.of(OTHER_JOB, RunKey(1, 1), NAME)))
            of_other = f"CREATE TABLE {self.sql(self.beside)} (id int)"
            for statement in (of_other, f"INSERT INTO {self.sql(self.beside)} VALUES (7)"):
                database.execute(statement)
            if is_there:
                self.create(columns, key)
        staging = None if of_schema is None else self.table.schema
        self.table = self.table if of_schema is None else SinkTable(of_schema, name)
        self.target = TableTarget(ADDRESS, self.table, mode, upsert, script or PublishScript())
        self.request = StagingRequest(JdbcSink.kind, str(self.target), staging, stats=self.target.stats())

    def opened(self) -> AbstractContextManager[Database]:
        return open_database(self.login)

    def create(self, columns: Sequence[tuple[str, str]], key: Sequence[str] = ()) -> None:
        parts = [f"{self.names([column])} {kind}" for column, kind in columns]
        parts += [f"PRIMARY KEY ({self.names(key)})"] if key else []
        self.execute(f"CREATE TABLE {self.sql(self.table)} ({', '.join(parts)})")

    def make_unique(self, column: str) -> None:
        """Give the table another unique key."""
        # SQLite takes the schema of an index from its name, and that of the table from that of the index.
        is_sqlite = self.login.dialect == "sqlite"
        index = "main.one_of_each" if is_sqlite else "one_of_each"
        table = self.names([self.table.name]) if is_sqlite else self.sql(self.table)
        self.execute(f"CREATE UNIQUE INDEX {index} ON {table} ({self.names([column])})")

    def sql(self, table: SinkTable) -> str:
        return table.sql(self.login.dialect)

    def names(self, columns: Sequence[str]) -> str:
        return names_of(self.login.dialect, columns)

    def execute(self, statement: str) -> int:
        with self.opened() as database:
            return database.execute(statement)

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        with self.opened() as database:
            return database.rows(query)

    # ---- what a driver does

    def placed(self, key: RunKey) -> StoredOutput:
        entry, _ = self.sink.stage(JOB, key, NAME, self.request)
        return stored_output(entry, key, self.blobs)

    def load(
        self, stored_place: str, rows: Sequence[Row], columns: Sequence[str] | None = None, gone: Sequence[Row] = ()
    ) -> None:
        """Write rows to a stage table, and those of a delete set, as Spark does, and seal it."""
        place = StagePlace.parse(stored_place)
        assert place is not None
        load = TableLoad("job 'job', output 'out'", self.target, tuple(columns or self.columns))
        with self.opened() as database:
            there = load.check(database)
            load.create(database, place, there, "test/job/out")
            if there is None:  # Spark makes it by the types of the frame
                kinds = [f"{self.names([column])} {self.made_as}" for column in load.columns]
                kinds += [] if self.target.flag is None else [f"{self.target.flag} int"]
                database.execute(f"CREATE TABLE {self.sql(place.loading)} ({', '.join(kinds)})")
            flags = [] if self.target.flag is None else [self.target.flag]
            into = f"{self.sql(place.loading)} ({self.names([*load.columns, *flags])})"
            for row in [*((*row, *(0 for _ in flags)) for row in rows), *((*row, 1) for row in gone)]:
                database.execute(f"INSERT INTO {into} VALUES ({', '.join(map(self.literal, row))})")
            load.seal(database, place, len(rows) + len(gone))

    def literal(self, value: object) -> str:
        if value is None:
            return "NULL"
        return str(value) if isinstance(value, int) else text_literal(self.login.dialect, str(value))

    def staged_output(
        self, key: RunKey, rows: Sequence[Row], columns: Sequence[str] | None = None, gone: Sequence[Row] = ()
    ) -> StoredOutput:
        """Return the output of a run that has staged these rows, and this delete set, and committed."""
        output = self.placed(key)
        self.load(output.entry.place, rows, columns, gone)
        return output

    # ---- what the conformance suite asks for

    def stage(self, output: StoredOutput, rows: Sequence[str], *, overwrites: bool = False) -> OutputEntry:
        self.load(output.entry.place, [(row, *["x"] * (len(self.columns) - 1)) for row in rows])
        stats = {**output.entry.stats, "mode": "overwrite"} if overwrites else output.entry.stats
        return replace(output.entry, stats=stats)

    def put(self, row: str) -> None:
        values = ", ".join(self.literal(value) for value in (row, *["x"] * (len(self.columns) - 1)))
        self.execute(f"INSERT INTO {self.sql(self.table)} VALUES ({values})")

    def visible(self) -> list[str]:
        return [str(row[0]) for row in self.all_rows()]

    def lose_target(self) -> None:
        self.execute(f"DROP TABLE {self.sql(self.table)}")

    def all_rows(self) -> list[tuple[Any, ...]]:
        with self.opened() as database:
            if not database.rows(catalog.columns_query(self.login.dialect, self.table)):
                return []
            rows = database.rows(f"SELECT {self.names(self.columns)} FROM {self.sql(self.table)}")
        return sorted(rows, key=repr)

    def staged(self) -> set[RunKey]:
        names = [StageName.parse(name) for name in self.stage_tables()]
        return {name.key for name in names if name is not None}

    def stage_tables(self) -> list[str]:
        """Return the names of the stage tables of the job."""
        query = catalog.tables_query(self.login.dialect, self.table.schema, stage_prefix(JOB))
        return [name for (name,) in self.rows(query)]

    def outside(self) -> object:
        others = self.rows(catalog.tables_query(self.login.dialect, self.table.schema, ""))
        ours = {*self.stage_tables(), self.table.name, "_bookmarks_tokens"}
        return [{name for (name,) in others} - ours, self.rows(f"SELECT * FROM {self.sql(self.beside)}")]
