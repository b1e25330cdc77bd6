"""The SQL of one kind of database, as far as reading by key needs it. Each dialect is a subclass with five methods."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, ClassVar, TypeAlias

from airflow_bookmarks.core.database.dialects.quoting import double_quoted
from airflow_bookmarks.core.database.key import KeyColumn, KeyType
from airflow_bookmarks.core.errors import OptionError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from airflow_bookmarks.core.database.key import KeyValues

DialectName: TypeAlias = str  # a kind of database, as a JDBC URL names it


@dataclass(frozen=True, slots=True)
class TableColumn:
    """A column as the catalog of a database has it. `is_generated` tells that the database counts its values up.

    `cached` is how many values each session takes ahead: a later transaction may then use a lower one.
    """

    name: str
    declared: str
    is_nullable: bool
    collation: str | None = None
    is_generated: bool = False
    cached: int = 1


@dataclass(frozen=True, slots=True)
class Witness:
    """A transaction of one's own. A list of open transactions that has it was made after it began.

    `begin` and `end` are the statements for it, `owner` the query for its owner in the list.
    """

    begin: str
    end: str
    owner: str


@dataclass(frozen=True, slots=True)
class SharedSnapshot:
    """How several sessions read a database as it was at one time.

    `begin` and `export` are statements of the session that keeps it: the second one returns its name. `enter` is the
    statement of the others, with `{}` for that name.
    """

    begin: str
    export: str
    enter: str


@dataclass(frozen=True, slots=True)
class TypesByTable:
    """How a session finds the types of the columns of a query: by a temporary table that it makes of no rows.

    `make` and `drop` are statements, and `ask` is the query for name, type and collation of each column, and more.
    `denied` is the code of the error for who may not make it, and `right` what is missing then.
    """

    make: str
    ask: str
    drop: str
    denied: str
    right: str


class Dialect(ABC):
    """The SQL of one kind of database."""

    name: ClassVar[str]
    driver: ClassVar[str]  # the class of its JDBC driver
    is_tried: ClassVar[bool] = True  # whether a database of this kind has run its queries in tests
    looks_back: ClassVar[bool] = False  # whether `among` and `row_hash` are known to work
    compares_rows: ClassVar[bool] = True  # whether `(a, b) > (1, 2)` uses an index over (a, b)
    denied: ClassVar[str] = ""  # the code of the error for who may not see open transactions
    grant: ClassVar[str] = ""  # the statement that lets a user see them
    head_start: ClassVar[timedelta] = timedelta(0)  # how long before its transaction a statement may fix the time

    # ---- what a dialect of one's own has to bring

    @abstractmethod
    def columns_query(self, parts: Sequence[str]) -> str:
        """Return the query for the columns of a table: name, type, nullable, collation, generated, cached.

        They come in the order of the table; no rows: there is none of that name. Its parts are schema and table.
        """

    @abstractmethod
    def now_query(self) -> str:
        """Return the query for the present time in UTC, with microseconds."""

    @abstractmethod
    def key_column(self, column: TableColumn) -> KeyColumn | None:
        """Return a column as a key; None where its values have no order that is the same everywhere, or no text."""

    @abstractmethod
    def literal(self, text: str, key: KeyColumn) -> str:
        """Return the value of a key as a literal of its type."""

    @abstractmethod
    def as_text(self, key: KeyColumn) -> str:
        """Return an expression for the exact text of a key, which `literal` takes."""

    # ---- what follows from it

    def quote(self, identifier: str) -> str:
        """Return the name of a column, table or schema, quoted as the standard does: its case and its blanks stay."""
        return double_quoted(identifier)

    def part(self, expression: str, count: int) -> str:
        """Return an expression for the number from 0 to `count` - 1 that any value of `expression` always falls to.

        Raises:
            OptionError: this dialect has none.
        """
        raise OptionError(
            f"rows of {self.name} can't be split by a hash. Nothing was read or changed. Give partition_column=<a "
            "column of integers>; or partitions=1."
        )

    def table(self, parts: Sequence[str]) -> str:
        """Return the name of a table, quoted."""
        return ".".join(map(self.quote, parts))

    def column(self, key: KeyColumn) -> str:
        """Return a key as it is compared: by bytes, if it is text."""
        name = self.quote(key.name)
        return name if key.collation is None else f"{name} COLLATE {self.quote(key.collation)}"

    def beyond(self, keys: Sequence[KeyColumn], values: KeyValues, sign: str) -> str:
        """Return the condition that the keys lie beyond `values`: `sign` is >, >=, < or <=.

        Fewer values than keys compare with the first of these.

        Example:
            >>> from airflow_bookmarks.core.database.dialects.postgresql import PostgreSQL
            >>> from airflow_bookmarks.core.database.key import KeyColumn, KeyType
            >>> a, b = KeyColumn("a", KeyType.INTEGER), KeyColumn("b", KeyType.INTEGER)
            >>> PostgreSQL().beyond([a, b], ("1", "2"), ">")
            '("a", "b") > (1, 2)'
        """
        keys = keys[: len(values)]
        columns = [self.column(key) for key in keys]
        literals = [self.literal(text, key) for text, key in zip(values, keys, strict=True)]
        if len(keys) == 1:
            return f"{columns[0]} {sign} {literals[0]}"
        if self.compares_rows:
            return f"({', '.join(columns)}) {sign} ({', '.join(literals)})"
        return _expanded(columns, literals, sign)

    def endless(self, key: KeyColumn) -> str | None:
        """Return the condition that a value stands for none, or has no place among others; None: it has no such values.

        A bookmark at one would lie behind all rows that come (`NaN`, `infinity`), or before all that there were.
        """
        return None

    def ending(self, key: KeyColumn) -> str | None:
        """Return the opposite of `endless`, in a form that an index serves; it holds for no NULL."""
        return None

    def number_of_hash(self, columns: Sequence[TableColumn], count: int) -> str | None:
        """Return an expression for a number from 0 to `count` - 1 that a row has for ever, by the text of its columns.

        It is the same in each session, version and copy of the database. `count` is a power of two, at most 256. None:
        one of the columns has no such text.
        """
        return None

    # ---- the values of one column, of which each is read by itself

    def has_values(self, column: TableColumn) -> bool:
        """Whether the values of a column are told apart exactly: by `values_query` and `has_value`."""
        return False

    def values_query(self, column: TableColumn, source: str, where: str, most: int) -> str:
        """Return the query for the exact text of at most so many values that a column has; NULL is one."""
        text = self.as_text(KeyColumn(column.name, KeyType.TEXT))
        return f"SELECT DISTINCT {text} FROM {source} WHERE {where} LIMIT {most}"

    def has_value(self, column: TableColumn, text: str | None) -> str:
        """Return the condition that a column has a value; None: it is NULL."""
        return f"{self.quote(column.name)} IS NULL"

    def equal(self, keys: Sequence[KeyColumn], values: KeyValues) -> str:
        """Return the condition that the keys have these values."""
        pairs = zip(keys, values, strict=False)
        return " AND ".join(f"{self.column(key)} = {self.literal(text, key)}" for key, text in pairs)

    def among(self, columns: Sequence[KeyColumn], rows: Sequence[KeyValues]) -> str:
        """Return the condition that columns have the values of one of some rows.

        Example:
            >>> from airflow_bookmarks.core.database.dialects.mysql import MySQL
            >>> from airflow_bookmarks.core.database.key import KeyColumn, KeyType
            >>> a, b = KeyColumn("a", KeyType.INTEGER), KeyColumn("b", KeyType.INTEGER)
            >>> MySQL().among([a, b], [("1", "2"), ("3", "4")])
            '(`a`, `b`) IN ((1, 2), (3, 4))'
        """
        return f"{self._tuple(map(self.column, columns))} IN ({self._tuples(columns, rows)})"

    def _tuples(self, columns: Sequence[KeyColumn], rows: Sequence[KeyValues]) -> str:
        return ", ".join(self._tuple(map(self.literal, each, columns)) for each in rows)

    @staticmethod
    def _tuple(terms: Iterable[str]) -> str:
        first, *more = terms
        return f"({', '.join([first, *more])})" if more else first

    def row_hash(self, columns: Sequence[TableColumn]) -> str | None:
        """Return an expression for a hash of the exact content of a row, text of 16 digits; None: there is none.

        It is the same in each session of this package as long as none of these columns has changed.
        """
        return None

    def first(self, select: str, source: str, where: str, order: str, count: int, skip: int = 0) -> str:
        """Return the query for some rows in an order."""
        offset = f" OFFSET {skip}" if skip else ""
        return f"SELECT {select} FROM {source} WHERE {where} ORDER BY {order} LIMIT {count}{offset}"

    def some(self, select: str, source: str, where: str, most: int) -> str:
        """Return the query for rows in no order, up to `most` of them."""
        return f"SELECT {select} FROM {source} WHERE {where} LIMIT {most}"

    def capped_count(self, source: str, where: str, most: int) -> str:
        """Return the query that counts rows up to `most`, and looks at no more of them."""
        return f"SELECT count(*) AS counted_rows FROM ({self.some('1 AS one', source, where, most)}) counted"

    def time_limit(self, limit: timedelta) -> str | None:
        """Return the statement after which each query of the session is ended when it has run for so long.

        Args:
            limit: the longest that a query may run, in whole milliseconds. None is returned where the session of this
                kind of database takes no such limit.
        """
        return None

    # ---- what a database tells of itself; None where it tells nothing. Each column of a query has a name of its own,
    # because Spark may ask it, as a table of which it selects the columns

    def unique_query(self, parts: Sequence[str]) -> str | None:
        """Return the query for the columns of whole unique indexes: index, is_primary, column, is_deferred.

        A deferred one may be broken within a transaction, so that no upsert can go by it.
        """
        return None

    def types_query(self, query: str, columns: Sequence[str]) -> str | None:
        """Return the query for the declared types of columns of a query, which may have no rows."""
        return None

    def types_by_table(self, query: str, columns: Sequence[str]) -> TypesByTable | None:
        """Return how the same is found where no query tells it."""
        return None

    def open_queries(self) -> tuple[str, ...]:
        """Return the queries for who may still write: id, owner, stage, since (UTC), who; see `OpenTransaction`.

        They are run in this order, that of the stages, so that one that comes to a later stage meanwhile is not missed.
        The last one is the one that `witness` is for.
        """
        return ()

    def unseen_query(self, parts: Sequence[str] | None) -> str | None:
        """Return the query for what hides from `open_queries` who writes into a table; no rows: nothing does.

        `parts` None: what is read is a query, and of its tables nothing is known.
        """
        return None

    @property
    def witness(self) -> Witness | None:
        """What shows that a list of open transactions is not an old one; None where it never is."""
        return None

    @property
    def shared_snapshot(self) -> SharedSnapshot | None:
        """How several sessions read it as it was at one time; None where they can't."""
        return None

    def identity_query(self) -> str | None:
        """Return the query for what tells this server from another one with the same address."""
        return None


def _expanded(columns: Sequence[str], literals: Sequence[str], sign: str) -> str:
    """Return the comparison of rows in terms of single columns, with a first condition that an index serves."""
    strict = sign[0]
    condition = f"{columns[-1]} {sign} {literals[-1]}"
    for column, literal in zip(reversed(columns[:-1]), reversed(literals[:-1]), strict=True):
        condition = f"({column} {strict}= {literal} AND ({column} {strict} {literal} OR {condition}))"
    return condition
