"""Publish stage tables: one transaction takes the token of each output and brings its rows into its target.

    UPDATE tokens SET fence = mine WHERE output_id = ... AND fence < mine     no row: somebody has published already
    INSERT INTO target SELECT ... FROM stage                                  or an upsert, or after a DELETE
    statements that the script has given, before the rows and after them      where a driver has staged their digest
    UPDATE tokens SET published_rows = ...                                    for whoever asks again

`mine` is the fence under which the run staged, whoever publishes it. So any process may repeat a publish, a second one
waits for the first and then does nothing, and one that comes after a later run has published does nothing either. The
sweep drops the stage tables. A transaction that the database rolls back in favour of another one is retried: two jobs
that write rows of the same keys in another order wait for each other, and only one of them can go on.

All outputs of a run that go to one database are published by one transaction, in the same order by whoever comes, so
that no two of them wait for each other:

    tokens            as the sweep meets them, which on MySQL locks those of all jobs one after the other
    rows that go      a table before those that it refers to
    rows that come    a table after those that it refers to, since a foreign key is checked at each statement
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from airflow_bookmarks.core.database import catalog, publish_sql
from airflow_bookmarks.core.database.publish_sql import TokenRow
from airflow_bookmarks.core.database.script import DigestRow
from airflow_bookmarks.core.database.sink_table import SinkTable
from airflow_bookmarks.core.errors import DatabaseError, SourceError
from airflow_bookmarks.core.text.count import counted
from airflow_bookmarks.sinks.reaching import reached

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

    from airflow_bookmarks.databases.access import DatabaseAccess
    from airflow_bookmarks.databases.address import DatabaseAddress
    from airflow_bookmarks.databases.database import Database
    from airflow_bookmarks.sinks.jdbc.place import StagePlace, TableTarget
    from airflow_bookmarks.sinks.sink import PublishSteps, StoredOutput

log = logging.getLogger(__name__)

_HELD_BY_OTHERS = (
    "Another session holds rows or tables that the publish needs, and it has waited as long as the database lets it. A "
    "publisher that is frozen loses its locks after five minutes. To find any other session, ask pg_blocking_pids() of "
    "PostgreSQL or information_schema.innodb_lock_waits of MariaDB; end its transaction, and run the job again."
)
# In each of them another transaction has got on: of so many jobs that write to one table the last one is through.
_ATTEMPTS = 10


@dataclass(frozen=True, slots=True)
class StagedTable:
    """The rows of one output in their stage table, and the table that they go to."""

    output: StoredOutput
    place: StagePlace
    target: TableTarget


@dataclass(frozen=True, slots=True)
class TablePublication:
    """The publish of outputs of a run into tables of one database: checked, and the database is not asked yet."""

    tables: tuple[StagedTable, ...]
    databases: DatabaseAccess

    @property
    def address(self) -> DatabaseAddress:
        """The database."""
        return self.tables[0].target.address

    @classmethod
    def of_all(cls, publications: Iterable[TablePublication]) -> Self:
        """Return the publish of all of these, which go to one database."""
        several = list(publications)
        return cls(tuple(each for one in several for each in one.tables), several[0].databases)

    def publish(self, check_held: Callable[[str], None], steps: PublishSteps) -> int:
        """Bring the rows into the targets; return how many were, also where an earlier publish has done so.

        Raises:
            SourceError: the database refuses it, or can't be reached; nothing of any output was published.
            FencedError: the job was taken from the publisher, and rows of others would be replaced.
        """
        for each in self.tables:
            if each.target.replaces or each.target.script:
                check_held(f"replace rows of {each.target.table} by those of run {each.output.run.key}")
        rows = self._published()
        steps.done()
        return rows

    def _places(self) -> str:
        """Return the stage tables in words; of several, also for which target each is."""
        if len(self.tables) == 1:
            return f"the table {self.tables[0].place.table}"
        return "the tables " + " and ".join(f"{each.place.table} (for {each.target.table})" for each in self.tables)

    def _published(self) -> int:
        targets = " and ".join(str(each.target) for each in self.tables)
        left = f"was published to {targets}, and its rows stay in {self._places()}, where they can be corrected."
        stays = f"Nothing of it {left}"
        try:
            with reached(self.databases, self.address, stays) as database:
                return _Transaction(self.tables, database).run()
        except SourceError as error:
            cause = error.__cause__
            if isinstance(cause, DatabaseError) and cause.code in publish_sql.WAITED_IN_VAIN:
                raise SourceError(f"{error} {_HELD_BY_OTHERS}") from cause
            if not (isinstance(cause, DatabaseError) and cause.is_lost):
                raise
            lost = cause
        # The reply may be lost of what was done.
        unknown = f"Whether it was published to {targets} is not known; the next publish finds out."
        with reached(self.databases, self.address, unknown) as database:
            rows = _Transaction(self.tables, database).rows_before()
        if rows is None:
            raise SourceError(f"{lost} It was asked again: nothing {left}") from lost
        return rows


@dataclass(frozen=True, slots=True)
class _Transaction:
    """The transaction of one publish, over one connection."""

    tables: Sequence[StagedTable]
    database: Database

    def run(self) -> int:
        if publish_sql.commits_ddl(self.database.dialect):
            for each in self._steps:
                each.create_target_before()
        for statement in publish_sql.prepare_session(self.database.dialect):
            self.database.execute(statement)
        done = self._committed()
        for output in done:
            output.log()
        return sum(output.rows for output in done)

    def _committed(self) -> Sequence[_Done]:
        """Run the transaction, and retry it where the database has rolled it back in favour of another one."""
        left = _ATTEMPTS
        while True:
            left -= 1
            try:
                with self.database.transaction():
                    for statement in publish_sql.prepare_transaction(self.database.dialect):
                        self.database.execute(statement)
                    return self._done()
            except DatabaseError as error:
                if error.code not in publish_sql.ENDED_FOR_OTHERS or not left:
                    raise
                log.info("bookmark: publish to %s: tried again, because %s", self.tables[0].target.address, error)

    def _done(self) -> Sequence[_Done]:
        taken = [(each, each.take()) for each in sorted(self._steps, key=lambda each: each.place)]
        before = [_Done(each.of, each.taken()) for each, is_mine in taken if not is_mine]
        brought = self._bring([each for each, is_mine in taken if is_mine])
        for each, done in brought:
            each.note(done.rows)
        return [*before, *(done for _, done in brought)]

    def _bring(self, due: Sequence[_Step]) -> Sequence[tuple[_Step, _Done]]:
        """Bring the rows of outputs whose tokens are taken, between the statements that their scripts have given."""
        for each in due:
            each.run_before()
        columns = {each.place: each.checked_columns() for each in due}
        parents = self._parents(due)
        removed = {
            each.place: each.remove(columns[each.place])
            for each in _in_order(due, lambda one, other: one.table in parents[other.table])
        }
        ordered = _in_order(due, lambda one, other: other.table in parents[one.table])
        brought = [(each, each.add(columns[each.place], removed[each.place])) for each in ordered]
        for each, _ in brought:
            each.run_after()
        return brought

    def _parents(self, due: Sequence[_Step]) -> Mapping[SinkTable, Collection[SinkTable]]:
        """Return the tables to which each target refers by a foreign key, without itself."""
        if len(due) < 2:
            return {each.table: () for each in due}
        found: dict[SinkTable, Collection[SinkTable]] = {}
        for each in due:
            rows = self.database.rows(catalog.parents_query(self.database.dialect, each.table))
            found[each.table] = {SinkTable.of_parts(parts) for parts in rows} - {each.table}
        return found

    def rows_before(self) -> int | None:
        """Return how many rows were published under the own fence; None: none were, as far as the tokens tell."""
        found = [each.rows_before() for each in self._steps]
        known = [rows for rows in found if rows is not None]
        return sum(known) if len(known) == len(found) else None

    @property
    def _steps(self) -> Sequence[_Step]:
        return [_Step(each, self.database) for each in self.tables]


@dataclass(frozen=True, slots=True)
class _Done:
    """What was done for one output: how many rows it has, and how many were deleted (None: there is no delete set)."""

    of: StagedTable
    rows: int
    deleted: int | None = None
    is_new: bool = False

    def log(self) -> None:
        """Say so, once it is committed; what an earlier publish has done was said by that."""
        if self.is_new:
            log.info("bookmark: %s: %s published to %s", self.of.output, counted(self.rows, "row"), self.of.target)
        if self.deleted is not None:
            log.info("bookmark: %s: %s deleted in %s", self.of.output, counted(self.deleted, "row"), self.of.target)


@dataclass(frozen=True, slots=True)
class _Step:
    """What a publish does for one output."""

    of: StagedTable
    database: Database

    @property
    def place(self) -> tuple[str, str]:
        """Where its token lies: the table, and the row in it."""
        return str(self._token.table), self._token.id

    @property
    def table(self) -> SinkTable:
        """The table that its rows go to."""
        return self.of.target.table

    def take(self) -> bool:
        """Take its token; False: it was taken under this fence, or a higher one."""
        return bool(self.database.execute(self._token.take(self._fence)))

    def note(self, rows: int) -> None:
        """Note how many rows were brought."""
        self.database.execute(self._token.note(rows))

    def rows_before(self) -> int | None:
        """Return how many rows were published under the own fence; None: none were, as far as the token tells."""
        found = self.database.rows(self._token.read())
        return int(found[0][1]) if found and int(found[0][0]) == self._fence else None

    @property
    def _token(self) -> TokenRow:
        return TokenRow.of(self.database.dialect, self.of.place.table, self.of.place.name)

    @property
    def _fence(self) -> int:
        return self.of.place.name.key.fence

    def taken(self) -> int:
        """Return how many rows were brought by who took the token before."""
        found = self.database.rows(self._token.read())
        if not found:
            raise SourceError(
                f"the row {self._token.id!r} of the table {self._token.table} is gone, which tells whether the rows of "
                f"{self.of.place.table} were published to {self.of.target}. Nothing was published now. Look for the "
                "rows in the target; then put the row back, with fence = 0 if they are missing, and with "
                f"fence = {self._fence} if they are there"
            )
        fence, rows = int(found[0][0]), int(found[0][1])
        if fence > self._fence:
            log.warning(
                "bookmark: %s: not published to %s, because a run of fence %d has published there since",
                self.of.output,
                self.of.target,
                fence,
            )
            return 0
        return rows

    def checked_columns(self) -> Sequence[str]:
        """Return the columns to bring, by rows that keys tell; the target is made if it is not there."""
        columns = self._columns()
        check_keys(self.database, self.of.target, self.of.place.table)
        return columns

    def _columns(self) -> Sequence[str]:
        of, database = self.of, self.database
        columns = self._columns_of_stage()
        there = [name for name, *_ in database.rows(catalog.columns_query(database.dialect, of.target.table))]
        if not there and not publish_sql.commits_ddl(database.dialect):
            self._create_target()
            return self.of.target.columns_of(columns)
        columns = of.target.columns_of(columns)
        missing = [column for column in columns if column not in there]
        if missing:
            raise SourceError(
                f"the table {of.target} has no column {', '.join(map(repr, missing))}, which the run has written. "
                f"Nothing of it was published, and its rows stay in the table {of.place.table}. Add the columns to the "
                "target, or drop them from that table"
            )
        return columns

    def _columns_of_stage(self) -> Sequence[str]:
        query = catalog.columns_query(self.database.dialect, self.of.place.table)
        columns = [name for name, *_ in self.database.rows(query)]
        if not columns:
            raise SourceError(
                f"the stage table {self.of.place.table} is gone, and its rows were not published to {self.of.target}. "
                "Nothing was published now. Somebody else has dropped it, unless the job was rewound or taken over "
                "meanwhile: put it back, or rewind the job to before this run so that it is done again"
            )
        return columns

    def _create_target(self) -> None:
        target, staged = self.of.target, self._columns_of_stage()
        for statement in target.creation(self.database.dialect, target.table, self.of.place.table, staged):
            self.database.execute(statement)

    def create_target_before(self) -> None:
        """Make the target where that would commit the transaction, unless the publish will do nothing."""
        found = self.database.rows(self._token.read())
        is_there = self.database.rows(catalog.columns_query(self.database.dialect, self.of.target.table))
        if found and int(found[0][0]) < self._fence and not is_there:
            self._create_target()

    def run_before(self) -> None:
        """Run what the script has given to run before, once it is certain that a driver with a login has staged it."""
        script = self.of.target.script
        if not script:
            return
        row = DigestRow.of(self.database.dialect, self.of.place.table)
        is_there = bool(self.database.rows(catalog.columns_query(self.database.dialect, row.table)))
        found = self.database.rows(row.read()) if is_there else []
        if not found or found[0][0] != script.digest:
            raise SourceError(
                f"the statements that are to run around the rows of {self.of.target} are not those that the run has "
                f"staged: the table {row.table} {'has another digest' if found else 'has no digest'} for "
                f"{self.of.place.table.name}. Nothing was run or published. Somebody has changed the state or that "
                "table: look who, and rewind the job to before this run so that it is done again"
            )
        for statement in script.before:
            self.database.execute(statement)

    def run_after(self) -> None:
        """Run what the script has given to run after."""
        for statement in self.of.target.script.after:
            self.database.execute(statement)

    def remove(self, columns: Sequence[str]) -> int:
        """Remove those rows of the target that go whatever comes; return how many."""
        if self.of.target.is_overwritten:
            for statement in publish_sql.wait_for_others(self.database.dialect, self.table):
                self.database.execute(statement)
        return sum([self.database.execute(each) for each in self._statements(columns)[: self.of.target.removals]])

    def add(self, columns: Sequence[str], removed: int) -> _Done:
        """Bring the rows into the target, after so many were removed there."""
        database, target = self.database, self.of.target
        counts = [database.execute(each) for each in self._statements(columns)[target.removals :]]
        if target.upsert is None:
            return _Done(self.of, counts[-1], is_new=True)
        # What the client counts of an upsert is not the same everywhere: MySQL leaves out rows that stay as they were.
        rows = int(database.rows(target.upsert.chosen_count(database.dialect, self.of.place.table))[0][0])
        return _Done(self.of, rows, removed if target.upsert.has_deletes else None, is_new=True)

    def _statements(self, columns: Sequence[str]) -> Sequence[str]:
        return self.of.target.statements(self.database.dialect, self.of.place.table, columns)


def _in_order(steps: Sequence[_Step], comes_after: Callable[[_Step, _Step], bool]) -> Sequence[_Step]:
    """Return steps in the order of their targets, each after those that it comes after; in a circle any may be first.

    So two jobs that write to the same tables meet them in the same order.
    """
    left = sorted(steps, key=lambda each: (each.table.parts, each.of.output.name))
    ordered: list[_Step] = []
    while left:
        free = (each for each in left if not any(comes_after(each, other) for other in left))
        ordered.append(next(free, left[0]))
        left.remove(ordered[-1])
    return ordered


def check_keys(database: Database, target: TableTarget, stage: SinkTable) -> None:
    """Make sure that each row of a stage table has a key, and that it is certain which one counts.

    Raises:
        SourceError: it is not.
    """
    upsert = target.upsert
    if upsert is None:
        return
    keys, of_deletes = ", ".join(upsert.keys), " or its delete set" if upsert.has_deletes else ""
    nulls = int(database.rows(upsert.null_keys(database.dialect, stage))[0][0])
    if nulls:
        has = "has" if nulls == 1 else "have"
        raise SourceError(
            f"{counted(nulls, 'row')} for {target}{of_deletes} {has} NULL in a key ({keys}): no later row would equal "
            "such a row, so they would pile up. Nothing of the output was published; its rows lie in the table "
            f"{stage}. Leave such rows out, or give them a key"
        )
    repeated = 0 if upsert.order_by else int(database.rows(upsert.repeated_keys(database.dialect, stage))[0][0])
    if repeated:
        several = "several rows, or a row and a delete," if upsert.has_deletes else "several rows"
        has = "has" if repeated == 1 else "have"
        raise SourceError(
            f"{counted(repeated, 'key')} ({keys}) {has} {several} for {target}, and nothing says which of them counts. "
            f"Nothing of the output was published; its rows lie in the table {stage}. Name the columns whose greatest "
            "values count (order_by=), or leave one row for each key"
        )
