"""The SQL of a stage table and of its publish, by dialect: text in, text out.

    tokens                                    one row for each output of a job: the greatest fence that was published
    create_stage, seal_stage                  before the commit of the bookmark
    take_token, then insert or an upsert      one transaction after it
    burn_tokens, drop_table                   the sweep
    wait_at_most                              before a statement that needs a table for itself

The row of an output is locked by `take_token` until its transaction ends: a second publisher waits, and then finds that
the fence is taken.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from airflow_bookmarks.core.database.dialects.quoting import is_mysql, quoted, text_literal
from airflow_bookmarks.core.database.sink_table import SinkTable
from airflow_bookmarks.core.database.stage_name import StageName, job_id

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from airflow_bookmarks.core.database.dialect import DialectName
    from airflow_bookmarks.core.rules.territory import Territory


TOKEN_TABLE = "_bookmarks_tokens"  # noqa: S105 (a table of fences)

# Codes of a transaction that was rolled back only because another one was at work at the same time: a deadlock, and
# rows that have changed since its snapshot (under another isolation level than usual). PostgreSQL, MySQL, MariaDB.
ENDED_FOR_OTHERS = frozenset({"40P01", "40001", "1213", "1020"})

# Codes of a statement that has waited too long for a lock.
WAITED_IN_VAIN = frozenset({"55P03", "1205"})

# How long a publisher may be silent between two statements: it has nothing to do there.
_SILENT_S = 300


@dataclass(frozen=True, slots=True)
class TokenRow:
    """The row of an output in the token table that lies beside its stage tables."""

    dialect: DialectName
    table: SinkTable
    name: StageName

    @classmethod
    def of(cls, dialect: DialectName, stage: SinkTable, name: StageName) -> TokenRow:
        """Return the row for the output that is staged in a table, whose name tells `name`."""
        return cls(dialect, stage.beside(TOKEN_TABLE), name)

    def create_table(self) -> str:
        """Return the statement that makes the token table unless it is there."""
        engine = " ENGINE=InnoDB DEFAULT CHARSET=utf8mb4" if is_mysql(self.dialect) else ""
        return (
            f"CREATE TABLE IF NOT EXISTS {self._table} (output_id varchar(32) NOT NULL PRIMARY KEY, "
            "job_id varchar(16) NOT NULL, output_name text NOT NULL, fence bigint NOT NULL, "
            f"published_rows bigint NOT NULL){engine}"
        )

    def add(self, label: str) -> str:
        """Return the statement that makes the row unless it is there; `label` tells people what it is of."""
        # Not INSERT IGNORE, by which MySQL lets other errors pass as well.
        unless = (
            "ON DUPLICATE KEY UPDATE job_id = VALUES(job_id)"
            if is_mysql(self.dialect)
            else "ON CONFLICT (output_id) DO NOTHING"
        )
        values = ", ".join(text_literal(self.dialect, text) for text in (self.id, self.name.job, label))
        return (
            f"INSERT INTO {self._table} (output_id, job_id, output_name, fence, published_rows) "
            f"VALUES ({values}, 0, 0) {unless}"
        )

    def read(self) -> str:
        """Return the query for the fence of the row, and how many rows were published under it."""
        return f"SELECT fence, published_rows FROM {self._table} WHERE {self._is_it}"

    def read_at_rest(self) -> str:
        """Return the query of `read` in a transaction; it fails while a publish is under way."""
        return self.read() + ("" if self.dialect == "sqlite" else " FOR UPDATE NOWAIT")

    def take(self, fence: int) -> str:
        """Return the statement that takes the row for a fence; it changes no row if that or a higher one has it."""
        return f"UPDATE {self._table} SET fence = {fence}, published_rows = 0 WHERE {self._is_it} AND fence < {fence}"

    def note(self, rows: int) -> str:
        """Return the statement that notes how many rows were published under the fence that was taken."""
        return f"UPDATE {self._table} SET published_rows = {rows} WHERE {self._is_it}"

    @property
    def id(self) -> str:
        """What tells the output from any other."""
        return self.name.output_id

    @property
    def _table(self) -> str:
        return self.table.sql(self.dialect)

    @property
    def _is_it(self) -> str:
        return f"output_id = {text_literal(self.dialect, self.id)}"


def burn_tokens(dialect: DialectName, schema: str | None, territory: Territory, fence: int) -> str:
    """Return the statement after which nothing of a job is published under this fence or a lower one."""
    table = SinkTable(schema, TOKEN_TABLE).sql(dialect)
    job = text_literal(dialect, job_id(territory))
    return f"UPDATE {table} SET fence = {fence}, published_rows = 0 WHERE job_id = {job} AND fence < {fence}"


# ---- the stage table


def create_stage(
    dialect: DialectName, stage: SinkTable, target: SinkTable, columns: Sequence[str], flag: str | None = None
) -> str:
    """Return the statement that makes an empty stage table with some columns of the target, by their types there.

    With a `flag` it has a column of that name besides, an integer, and its rows may leave the others out.

    Example:
        >>> create_stage("postgresql", SinkTable("dw", "stage"), SinkTable("dw", "dim"), ["id", "Name"])
        'CREATE TABLE "dw"."stage" AS SELECT "id", "Name" FROM "dw"."dim" WHERE 1 = 0'
    """
    engine = " ENGINE=InnoDB" if is_mysql(dialect) else ""
    names, source = names_of(dialect, columns), target.sql(dialect)
    if flag is not None:
        names = f"{names}, 0 AS {quoted(dialect, flag)}"
    if flag is not None or is_mysql(dialect):
        # MySQL takes NOT NULL and defaults over from the target, which would make NULL the present time, but not
        # through an outer join.
        source = f"(SELECT 1 AS _bm_one) one LEFT JOIN {source} ON 1 = 0"
    return f"CREATE TABLE {stage.sql(dialect)}{engine} AS SELECT {names} FROM {source} WHERE 1 = 0"


def keep_fractions(table: SinkTable, columns: Mapping[str, str]) -> str:
    """Return the statement by which columns of times in MySQL keep microseconds: those that Spark makes keep seconds.

    Args:
        columns: the type of each, `timestamp` or `datetime`.

    Example:
        >>> keep_fractions(SinkTable("dw", "stage"), {"at": "timestamp"})
        'ALTER TABLE `dw`.`stage` MODIFY `at` timestamp(6) NULL'
    """
    modified = ", ".join(f"MODIFY {quoted('mysql', name)} {kind}(6) NULL" for name, kind in columns.items())
    return f"ALTER TABLE {table.sql('mysql')} {modified}"


def create_rehearsal(dialect: DialectName, rehearsal: SinkTable, stage: SinkTable) -> str:
    """Return the statement that makes an empty table like a stage table."""
    engine = " ENGINE=InnoDB" if is_mysql(dialect) else ""
    return f"CREATE TABLE {rehearsal.sql(dialect)}{engine} AS SELECT * FROM {stage.sql(dialect)} WHERE 1 = 0"


def seal_stage(dialect: DialectName, loading: SinkTable, stage: SinkTable) -> str:
    """Return the statement that gives a loaded table its final name.

    It waits for whoever still writes to it, and what comes later finds no table of the former name: so what is counted
    after it is what is published.
    """
    # PostgreSQL takes the new name without a schema; MySQL would move a table without one to that of the connection.
    name = stage.sql(dialect) if is_mysql(dialect) else quoted(dialect, stage.name)
    return f"ALTER TABLE {loading.sql(dialect)} RENAME TO {name}"


def wait_at_most(dialect: DialectName, seconds: int) -> list[str]:
    """Return the statements by which those after them, in one transaction, wait so long for others to leave a table.

    By default they wait for hours, or for ever: for as long as a server takes to notice that an executor of Spark is
    gone which had begun to load rows.
    """
    if is_mysql(dialect):
        return [f"SET SESSION lock_wait_timeout = {seconds}"]
    return [f"SET LOCAL lock_timeout = '{seconds}s'"] if dialect == "postgresql" else []


def drop_table(dialect: DialectName, table: SinkTable) -> str:
    """Return the statement that drops a table, if it is there; it waits for a publish that reads it."""
    return f"DROP TABLE IF EXISTS {table.sql(dialect)}"


def count_rows(dialect: DialectName, table: SinkTable) -> str:
    """Return the query for the number of rows of a table."""
    return f"SELECT count(*) FROM {table.sql(dialect)}"


# ---- the publish


def create_target(
    dialect: DialectName,
    target: SinkTable,
    stage: SinkTable,
    columns: Sequence[str],
    keys: Sequence[str] = (),
    flag: str | None = None,
) -> list[str]:
    """Return the statements that make the target unless it is there.

    It has `columns` of the stage table, which are all but `flag`, and `keys` as its key.
    """
    new, like, names = target.sql(dialect), stage.sql(dialect), names_of(dialect, columns)
    key = f"PRIMARY KEY ({names_of(dialect, keys)})" if keys else ""
    if dialect == "postgresql":
        made = f"CREATE TABLE IF NOT EXISTS {new} (LIKE {like}{', ' if key else ''}{key})"
        return [
            *wait_for_others(dialect, target),
            made,
            *([] if flag is None else [f"ALTER TABLE {new} DROP COLUMN IF EXISTS {quoted(dialect, flag)}"]),
        ]
    if is_mysql(dialect):
        made = f" ({key})" if key else ""
        return [f"CREATE TABLE IF NOT EXISTS {new}{made} ENGINE=InnoDB AS SELECT {names} FROM {like} WHERE 1 = 0"]
    made = f"CREATE TABLE IF NOT EXISTS {new} AS SELECT {names} FROM {like} WHERE 1 = 0"
    if not keys:
        return [made]
    index = target.beside(f"{target.name}_key").sql(dialect)
    on = f"{quoted(dialect, target.name)} ({names_of(dialect, keys)})"
    return [made, f"CREATE UNIQUE INDEX IF NOT EXISTS {index} ON {on}"]


def prepare_only(dialect: DialectName, statement: str) -> list[str]:
    """Return the statements by which MySQL reads another one, and refuses what it would refuse of it, but runs it not.

    Example:
        >>> prepare_only("mysql", "DROP TABLE dim")
        ["SET @_bm = 'DROP TABLE dim'", 'PREPARE _bm FROM @_bm', 'DEALLOCATE PREPARE _bm']
    """
    return [f"SET @_bm = {text_literal(dialect, statement)}", "PREPARE _bm FROM @_bm", "DEALLOCATE PREPARE _bm"]


def commits_ddl(dialect: DialectName) -> bool:
    """Whether a CREATE or DROP commits the transaction that it is in."""
    return is_mysql(dialect)


def prepare_session(dialect: DialectName) -> list[str]:
    """Return the statements before the transaction of a publish, for what MySQL keeps by session.

    How long the publisher may be silent. Its machine may be gone, or stand still; until its transaction ends nobody
    else can publish, and by default that takes hours, or for ever. And that rows which are deleted keep others from
    inserting between them: of two jobs that overwrite a table the second one deletes what the first has inserted.
    """
    if not is_mysql(dialect):
        return []
    return [f"SET SESSION wait_timeout = {_SILENT_S}", "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ"]


def prepare_transaction(dialect: DialectName) -> list[str]:
    """Return the first statements of that transaction, for what PostgreSQL keeps by transaction.

    Where a pooler lends the session to others afterwards, they don't get it.
    """
    if dialect != "postgresql":
        return []
    return [
        "SET TRANSACTION ISOLATION LEVEL READ COMMITTED",
        f"SET LOCAL idle_in_transaction_session_timeout = '{_SILENT_S}s'",
    ]


def wait_for_others(dialect: DialectName, target: SinkTable) -> list[str]:
    """Return the statements after which nobody else makes or overwrites a table, until the transaction ends.

    In PostgreSQL a DELETE does not see what others have inserted and not committed: of two that overwrite a table the
    rows of both would stay. Of two that make it one would fail. Elsewhere rows and tables are locked by that.
    """
    if dialect != "postgresql":
        return []
    return [f"SELECT pg_advisory_xact_lock(hashtext({text_literal(dialect, target.sql(dialect))}))"]


def empty_table(dialect: DialectName, target: SinkTable, *, rehearses: bool = False) -> str:
    """Return the statement that deletes all rows: no TRUNCATE, which MySQL can't roll back. To rehearse, it finds none.

    Example:
        >>> empty_table("sqlite", SinkTable("main", "dim"), rehearses=True)
        'DELETE FROM "main"."dim" WHERE 1 = 0'
    """
    return f"DELETE FROM {target.sql(dialect)}{' WHERE 1 = 0' if rehearses else ''}"


def insert(dialect: DialectName, target: SinkTable, stage: SinkTable, columns: Sequence[str]) -> str:
    """Return the statement that appends the rows of a stage table to the target.

    Example:
        >>> insert("mysql", SinkTable("dw", "dim"), SinkTable("dw", "stage"), ["id"])
        'INSERT INTO `dw`.`dim` (`id`) SELECT `id` FROM `dw`.`stage`'
    """
    names = names_of(dialect, columns)
    return f"INSERT INTO {target.sql(dialect)} ({names}) SELECT {names} FROM {stage.sql(dialect)}"


def names_of(dialect: DialectName, columns: Sequence[str]) -> str:
    """Return the names of columns, quoted, with commas between them."""
    return ", ".join(quoted(dialect, column) for column in columns)
