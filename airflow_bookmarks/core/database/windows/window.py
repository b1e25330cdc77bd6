"""The window of a run in a table: which rows it reads, by key, as a condition that always means the same."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from airflow_bookmarks.core.database.key import KeyColumn, KeyType

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from airflow_bookmarks.core.database.dialect import Dialect
    from airflow_bookmarks.core.database.key import KeyValues


NEVER = "1 = 0"


@dataclass(frozen=True, slots=True)
class TableKeys:
    """By which columns a table is read.

    `keys` order the rows, up or down. `is_unique` tells that the database keeps two rows from having the same; where it
    does not, `ties` tell those apart: the columns of the primary key.
    """

    keys: tuple[KeyColumn, ...]
    ties: tuple[KeyColumn, ...] = ()
    is_ascending: bool = True
    is_unique: bool = False

    @property
    def identity(self) -> tuple[KeyColumn, ...]:
        """The columns that tell each row from each other, and where it lies."""
        return (*self.keys, *self.ties)

    @property
    def up(self) -> str:
        """The sign of what comes later."""
        return ">" if self.is_ascending else "<"

    @property
    def down(self) -> str:
        """The sign of what came before."""
        return "<" if self.is_ascending else ">"

    def order(self, dialect: Dialect, *, is_backwards: bool = False) -> str:
        """Return the terms to sort by."""
        way = "ASC" if self.is_ascending is not is_backwards else "DESC"
        # Each once: SQL Server takes no column twice.
        columns = dict.fromkeys(dialect.column(key) for key in (*self.keys, *self.ties))
        return ", ".join(f"{column} {way}" for column in columns)

    def select(self, dialect: Dialect) -> str:
        """Return the exact text of the keys, as terms of a query."""
        return selected(dialect, self.keys)

    def stored(self) -> dict[str, Any]:
        """Return it as plain values."""
        return {
            "keys": [_stored(key) for key in self.keys],
            "ties": [_stored(key) for key in self.ties],
            "is_ascending": self.is_ascending,
            "is_unique": self.is_unique,
        }

    @classmethod
    def of_stored(cls, values: Mapping[str, Any]) -> TableKeys:
        """Return what `stored` returned."""
        keys, ties = (tuple(_key(each) for each in values[name]) for name in ("keys", "ties"))
        return cls(keys, ties, values["is_ascending"], values["is_unique"])


def _stored(key: KeyColumn) -> list[Any]:
    return [key.name, key.type.value, key.is_nullable, key.digits, key.collation]


def _key(values: list[Any]) -> KeyColumn:
    name, key, is_nullable, digits, collation = values
    return KeyColumn(name, KeyType(key), is_nullable, digits, collation)


@dataclass(frozen=True, slots=True)
class Mark:
    """A place in a table: `values` of its keys, and which rows with exactly these count as read, by their `ties`.

    Fewer values than keys stand for all rows that begin with them.
    """

    values: KeyValues
    ties: tuple[KeyValues, ...] = ()

    def stored(self) -> list[Any]:
        """Return it as plain values."""
        return [list(self.values), [list(each) for each in self.ties]]

    @classmethod
    def of_stored(cls, values: list[Any] | None) -> Mark | None:
        """Return what `stored` returned; None for None."""
        if values is None:
            return None
        keys, ties = values
        return cls(tuple(keys), tuple(tuple(each) for each in ties))


@dataclass(frozen=True, slots=True)
class KeyWindow:
    """The rows after one mark, up to and including another one.

    `after` None: from the first row on. `until` None: nothing is read. `with_nulls`: rows without a key belong to it.

    With a lookback, rows are read one by one where late ones may join them: `named` has them by keys and ties, in their
    order, also those that came late before `after`. Only rows whose first key is before `since` are read as a range
    then; `since` None: none of them is. `named` None: there is no lookback, and all of it is a range.

    `earlier` are windows whose rows belong to it as well.
    """

    after: Mark | None = None
    until: Mark | None = None
    with_nulls: bool = False
    since: str | None = None
    named: tuple[KeyValues, ...] | None = None
    earlier: tuple[KeyWindow, ...] = ()

    @property
    def is_empty(self) -> bool:
        """Whether it holds no rows."""
        return self.until is None and not self.with_nulls and not self.named and all(e.is_empty for e in self.earlier)

    @property
    def is_plain(self) -> bool:
        """Whether it is a range between two marks, as all were before there was a lookback."""
        return self.named is None and not self.earlier

    def following(self, window: KeyWindow) -> KeyWindow:
        """Return one window over the rows of two, where this one begins where the other one ends."""
        if self.is_plain and window.is_plain:
            with_nulls = self.with_nulls or window.with_nulls
            return KeyWindow(window.after, self.until or window.until, with_nulls=with_nulls)
        whole = (*self.earlier, *window.earlier, replace(window, earlier=()))
        return replace(self, earlier=tuple(each for each in whole if not each.is_empty))

    def stored(self) -> dict[str, Any]:
        """Return it as plain values."""
        values: dict[str, Any] = {
            "after": None if self.after is None else self.after.stored(),
            "until": None if self.until is None else self.until.stored(),
            "with_nulls": self.with_nulls,
        }
        if self.named is not None:
            values |= {"since": self.since, "named": [list(each) for each in self.named]}
        if self.earlier:
            values["earlier"] = [each.stored() for each in self.earlier]
        return values

    @classmethod
    def of_stored(cls, values: Mapping[str, Any]) -> KeyWindow:
        """Return what `stored` returned."""
        named = values.get("named")
        return cls(
            Mark.of_stored(values["after"]),
            Mark.of_stored(values["until"]),
            with_nulls=values["with_nulls"],
            since=values.get("since"),
            named=None if named is None else tuple(map(tuple, named)),
            earlier=tuple(map(cls.of_stored, values.get("earlier", ()))),
        )

    def condition(self, dialect: Dialect, table: TableKeys) -> str:
        """Return which rows it holds, as a condition of SQL.

        Example:
            >>> from airflow_bookmarks.core.database.dialects.postgresql import PostgreSQL
            >>> window = KeyWindow(Mark(("5",)), Mark(("9",)))
            >>> window.condition(PostgreSQL(), TableKeys((KeyColumn("id", KeyType.INTEGER),)))
            '"id" > 5 AND "id" <= 9'
        """
        alternatives = [self.range_condition(dialect, table)]
        if self.named:
            alternatives.append(_one_by_one(self.named, dialect, table))
        if self.with_nulls:
            alternatives.append(has_no_key(dialect, table))
        alternatives += [each.condition(dialect, table) for each in self.earlier]
        needed = [each for each in alternatives if each != NEVER]
        if needed == alternatives[:1] or not needed:
            return alternatives[0]
        return f"({' OR '.join(f'({each})' for each in needed)})"

    def range_condition(self, dialect: Dialect, table: TableKeys) -> str:
        """Return which rows of it are read as a range: those that are neither named nor without a key."""
        if self.until is None or (self.named is not None and self.since is None):
            return NEVER
        return " AND ".join(self._ends(dialect, table))

    def _ends(self, dialect: Dialect, table: TableKeys) -> list[str]:
        # NULL in the first key meets no comparison, and no endless value lies between two marks.
        ends = has_keys(dialect, replace(table, keys=table.keys[1:]))
        if self.after is None and (ending := dialect.ending(table.keys[0])) is not None:
            ends.append(ending)
        if self.after is not None:
            ends.append(after(self.after, dialect, table))
        if self.until is not None:
            upper = dialect.beyond(table.keys, self.until.values, f"{table.down}=")
            if self.until.ties:
                below = dialect.beyond(table.keys, self.until.values, table.down)
                upper = f"({below} OR ({_among(self.until, dialect, table)}))"
            ends.append(upper)
        if self.since is not None:
            ends.append(dialect.beyond(table.keys[:1], (self.since,), table.down))
        return ends


def after(mark: Mark, dialect: Dialect, table: TableKeys) -> str:
    """Return the condition that a row comes after a mark, or ties with it and does not count as read."""
    beyond = dialect.beyond(table.keys, mark.values, table.up)
    if not mark.ties:
        return beyond
    at = dialect.equal(table.keys, mark.values)
    known = " OR ".join(f"({dialect.equal(table.ties, each)})" for each in mark.ties)
    # The first condition is for the index: the rest of it only sorts out rows at the mark.
    from_it = dialect.beyond(table.keys, mark.values, f"{table.up}=")
    return f"({from_it} AND ({beyond} OR ({at} AND NOT ({known}))))"


def _one_by_one(rows: Sequence[KeyValues], dialect: Dialect, table: TableKeys) -> str:
    """Return the condition that a row is one of these, which are in their order: between these ends for the index."""
    first, low, high = table.keys[:1], rows[0][:1], rows[-1][:1]
    ends = dialect.beyond(first, low, f"{table.up}="), dialect.beyond(first, high, f"{table.down}=")
    return " AND ".join([*ends, dialect.among(table.identity, rows)])


def _among(mark: Mark, dialect: Dialect, table: TableKeys) -> str:
    known = " OR ".join(f"({dialect.equal(table.ties, each)})" for each in mark.ties)
    return f"{dialect.equal(table.keys, mark.values)} AND ({known})"


def selected(dialect: Dialect, columns: Sequence[KeyColumn]) -> str:
    """Return the exact text of columns, as terms of a query.

    Each has a name that no column has: by its own name, ORDER BY would take the text in place of the column, and put 10
    before 9.
    """
    return ", ".join(f"{dialect.as_text(each)} AS bookmark_key_{at}" for at, each in enumerate(columns))


def has_no_key(dialect: Dialect, table: TableKeys) -> str:
    """Return the condition that a row has no place in the order: a key is NULL, or the first one is endless."""
    conditions = [f"{dialect.quote(key.name)} IS NULL" for key in table.keys if key.is_nullable]
    endless = dialect.endless(table.keys[0])
    return " OR ".join([*conditions, *([] if endless is None else [endless])]) or NEVER


def has_keys(dialect: Dialect, table: TableKeys) -> list[str]:
    """Return the conditions that no key of a row is NULL."""
    return [f"{dialect.quote(key.name)} IS NOT NULL" for key in table.keys if key.is_nullable]


def joined(one: Mark | None, other: Mark) -> Mark:
    """Return the later mark of two with the same values: what counts as read at either of them."""
    if one is None or one.values != other.values:
        return other
    return replace(other, ties=tuple(sorted({*one.ties, *other.ties})))
