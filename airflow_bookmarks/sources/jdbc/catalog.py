"""What the catalog of a database says of a table: its columns, and by which of them its rows can be read."""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from airflow_bookmarks.core.database.dialect import Dialect, TableColumn
from airflow_bookmarks.core.database.key import KeyColumn, KeyType
from airflow_bookmarks.core.database.windows.window import TableKeys
from airflow_bookmarks.core.errors import DatabaseError, OptionError, SourceError, SourceMissingError
from airflow_bookmarks.core.rules.shard import VIRTUAL_SHARDS
from airflow_bookmarks.sources.jdbc.options import AUTO

if TYPE_CHECKING:
    from collections.abc import Sequence

    from airflow_bookmarks.core.rules.shard import TableShard
    from airflow_bookmarks.sources.jdbc.options import TableOptions
    from airflow_bookmarks.sources.jdbc.queries import Queries
    from airflow_bookmarks.sources.jdbc.recipe import Relation

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Description:
    """The keys of a relation, and its columns as the catalog has them; of a query only those that are keys."""

    table: TableKeys
    columns: tuple[TableColumn, ...]
    is_gapless_wanted: bool = False  # no keys were given: the primary key stands for them as long as it has no gap
    told_by: tuple[str, ...] = ()  # the fewest of its keys that no two rows share, where these are not all

    def ordered_as(self, before: TableKeys) -> Description:
        """Return it with its keys in the order of values that an earlier run has read them in."""
        pairs = zip(self.table.keys, before.keys, strict=True)
        keys = tuple(replace(key, collation=earlier.collation) for key, earlier in pairs)
        return replace(self, table=replace(self.table, keys=keys))


def describe(queries: Queries, dialect: Dialect, relation: Relation, options: TableOptions) -> Description:
    """Return by which columns a relation is read.

    Raises:
        SourceMissingError: there is no such table.
        OptionError: no keys are given and none can be taken, or one that is given can't be used.
    """
    if relation.parts is None:
        return _of_query(queries, dialect, relation.query or "", options)
    columns = _columns(queries, dialect, relation.parts)
    unique = _unique(queries, dialect, relation.parts)
    is_ascending = options.order == "asc"
    if not options.keys:
        primary = TableKeys((_primary(dialect, columns, unique),), is_unique=True)
        return Description(primary, columns, is_gapless_wanted=True)
    keys = tuple(_key(dialect, columns, name) for name in options.keys)
    within = [names for names in unique.values() if names <= set(options.keys)]
    if within:
        fewest = min(within, key=len)
        told_by = () if len(fewest) == len(keys) else tuple(name for name in options.keys if name in fewest)
        return Description(TableKeys(keys, is_ascending=is_ascending, is_unique=True), columns, told_by=told_by)
    ties = tuple(_key(dialect, columns, name) for name in _primary_names(unique))
    return Description(TableKeys(keys, ties, is_ascending), columns)


def _of_query(queries: Queries, dialect: Dialect, query: str, options: TableOptions) -> Description:
    if not options.keys:
        raise OptionError("keys=[...] is needed with query=..., which has no primary key. Nothing was read or changed.")
    columns = _columns_of_query(queries, dialect, query, options.keys)
    keys = tuple(_key(dialect, columns, name) for name in options.keys)
    # A query may show more digits of a time than the clock of its column keeps.
    keys = tuple(replace(key, digits=0) if key.type.is_time else key for key in keys)
    return Description(TableKeys(keys, is_ascending=options.order == "asc"), columns)


def _columns_of_query(queries: Queries, dialect: Dialect, query: str, names: Sequence[str]) -> tuple[TableColumn, ...]:
    """Return columns of a query, any of which may be NULL.

    Raises:
        OptionError: the database does not tell their types, or not to this user.
        DatabaseError: it does not take the query, or has no such column in it.
    """
    asked = dialect.types_query(query, names)
    if asked is not None:
        (types,) = queries.rows(asked)
        return tuple(TableColumn(name, str(each), True) for name, each in zip(names, types, strict=True))
    by_table = dialect.types_by_table(query, names)
    remedy = "Nothing was read or changed. Make a view of the query, and give that as table=..."
    if by_table is None:
        raise OptionError(
            f"a query can't be read by key from {dialect.name}, which does not tell the types of its columns. {remedy}"
        )
    if not queries.holds_session:
        raise OptionError(
            f"a query can't be read by key from {dialect.name} where Spark asks the database: the types of its columns "
            f"are found in a session that stays. {remedy[:-1]}; or install a client of Python here."
        )
    try:
        queries.rows(by_table.make)
    except DatabaseError as error:
        if error.code != by_table.denied:
            raise
        raise OptionError(
            f"a query can't be read by key from {dialect.name} by this user, who lacks the right {by_table.right}: the "
            f"types of its columns are found by a temporary table without rows ({error}). {remedy[:-1]}; or grant it."
        ) from error
    found = queries.rows(by_table.ask)
    queries.rows(by_table.drop)
    return tuple(
        TableColumn(name, str(declared), True, None if collation is None else str(collation))
        for name, (_, declared, collation, *_) in zip(names, found, strict=True)
    )


def _columns(queries: Queries, dialect: Dialect, parts: Sequence[str]) -> tuple[TableColumn, ...]:
    columns = tuple(
        TableColumn(str(name), str(declared), bool(nullable), str(collation or ""), bool(generated), int(cached))
        for name, declared, nullable, collation, generated, cached in queries.rows(dialect.columns_query(parts))
    )
    if not columns:
        raise SourceMissingError(
            f"there is no table {dialect.table(parts)} that this user can see. Nothing was read or changed. Names are "
            "taken letter by letter: give the schema, and the case as the database has it."
        )
    return columns


class _Unique(dict[str, frozenset[str]]):
    """The columns of unique indexes by the name of the index; that of the primary key is in `primary`."""

    primary: str | None = None


def _unique(queries: Queries, dialect: Dialect, parts: Sequence[str]) -> _Unique:
    asked, unique = dialect.unique_query(parts), _Unique()
    for index, is_primary, column, _ in queries.rows(asked) if asked is not None else ():
        unique[str(index)] = unique.get(str(index), frozenset()) | {str(column)}
        unique.primary = str(index) if is_primary else unique.primary
    return unique


def _primary_names(unique: _Unique) -> tuple[str, ...]:
    return () if unique.primary is None else tuple(sorted(unique[unique.primary]))


def _primary(dialect: Dialect, columns: Sequence[TableColumn], unique: _Unique) -> KeyColumn:
    """Return the primary key, where it is one integer, as Glue takes it when it gets no keys."""
    names = _primary_names(unique)
    if len(names) == 1:
        key = _key(dialect, columns, names[0])
        if key.type is KeyType.INTEGER:
            return key
    fit = [column.name for column in columns if dialect.key_column(column) is not None]
    raise OptionError(
        "keys=[...] is needed: the table has no primary key of one integer column to take instead. Nothing was read or "
        f"changed. Columns that can be keys: {', '.join(fit) or 'none'}."
    )


def _key(dialect: Dialect, columns: Sequence[TableColumn], name: str) -> KeyColumn:
    column = next((each for each in columns if each.name == name), None)
    if column is None:
        raise SourceError(
            f"key {name!r} is no column here; there are {', '.join(each.name for each in columns)}. Nothing was read "
            "or changed. Was it dropped or renamed? Names are taken letter by letter."
        )
    key = dialect.key_column(column)
    if key is None:
        collation = f" with the collation {column.collation}" if column.collation else ""
        raise OptionError(
            f"key {name!r} has the type {column.declared}{collation}, whose values have no exact order here. Nothing "
            "was read or changed. Keys are integers, decimals, dates, timestamps, UUIDs, and text with a binary "
            "collation."
        )
    return key


def server_identity(
    label: str, queries: Queries, dialect: Dialect, address: str, known: str | None, remedy: str
) -> str | None:
    """Return what tells this server from others, where the user may know it.

    Args:
        known: that of the server which the position is of.
        remedy: what another one means, and what to do then.

    Raises:
        SourceError: the position is of another one.
    """
    asked = dialect.identity_query()
    try:
        found = None if asked is None else str(queries.rows(asked)[0][0])
    except DatabaseError:  # this user may not ask
        found = None
    if None not in (known, found) and known != found:
        raise SourceError(
            f"{label}: {address} is another server than the one that was read before ({found}, and not {known}): "
            f"restored, or failed over to a copy. Nothing was read or changed. {remedy}"
        )
    return found or known


def check_same(before: TableKeys, now: TableKeys) -> None:
    """Make sure that a table is read by the columns that its position is of.

    Raises:
        SourceError: a key has another name, type, order or place.
    """
    if _order_of(before) == _order_of(now):
        return
    said, names = map(_said, (before, now))
    raise SourceError(
        f"the bookmark is of rows by {said}, and the keys are {names} now. Nothing was read or changed. Give the keys "
        "of before; or reset the context, and read the table anew."
    )


def _order_of(table: TableKeys) -> object:
    named = [[(key.name, key.type) for key in keys] for keys in (table.keys, table.ties)]
    return named, table.is_ascending


def _said(table: TableKeys) -> str:
    keys, ties = (", ".join(f"{key.name} ({key.type.value})" for key in each) for each in (table.keys, table.ties))
    way, beside = "" if table.is_ascending else ", descending", f", told apart by {ties}" if ties else ""
    return f"{keys}{way}{beside}"


def column_named(
    queries: Queries, dialect: Dialect, relation: Relation, described: Description, name: str, option: str
) -> TableColumn:
    """Return a column of a relation that an option names.

    Raises:
        OptionError: there is none of that name.
    """
    columns = described.columns
    if relation.parts is None and all(each.name != name for each in columns):
        columns = _columns_of_query(queries, dialect, relation.query or "", [name])
    for column in columns:
        if column.name == name:
            return column
    raise OptionError(
        f"{option}={name!r} is no column here; there are {', '.join(each.name for each in columns)}. Nothing was read "
        "or changed. Names are taken letter by letter."
    )


def shard_condition(
    queries: Queries, dialect: Dialect, relation: Relation, described: Description, shard: TableShard
) -> str:
    """Return the condition that a row belongs to a virtual shard.

    Without a column the last key is hashed; if several rows may have one, the primary key.

    Raises:
        OptionError: what is to be hashed has no text that is the same for ever.
    """
    table = described.table
    names = [shard.column] if shard.column is not None else [key.name for key in table.ties or table.keys[-1:]]
    columns = [column_named(queries, dialect, relation, described, name, "shard_by") for name in names]
    number = dialect.number_of_hash(columns, VIRTUAL_SHARDS)
    if number is None:
        raise OptionError(
            f"rows can't be assigned to virtual shards by {', '.join(f'{c.name} ({c.declared})' for c in columns)}. "
            "Nothing was read or changed. Give shard_by=<a column of integers, text, dates or UUIDs>, whose value does "
            "not change unless the keys of its row do."
        )
    return f"{number} = {shard.number}"


def warn_of_keys(label: str, description: Description, options: TableOptions) -> None:
    """Say once, in the log of a first run, what a read by these keys can't see, and what may come late."""
    by_name = {column.name: column for column in description.columns}
    first = description.table.keys[0]
    if not first.type.is_time:
        log.info("%s: rows are read by %s: updated and deleted rows are not seen.", label, first.name)
    else:
        log.info("%s: an updated row is read again if %s is set anew; deleted rows are not seen.", label, first.name)
    column = by_name.get(first.name)
    if options.lookback is not None or column is None:
        return
    if first.type is KeyType.INTEGER and not column.is_generated and options.settle == AUTO:
        log.warning(
            "%s: the database does not generate %s. A row that is committed with a lower number than one that was read "
            "is not seen. Remedy: lookback=timedelta(...), longer than from its number to its commit.",
            label,
            first.name,
        )
    if column.cached > 1:
        log.warning(
            "%s: the sequence of %s hands out %s values to each session at a time, so a later row may have a lower "
            "one, and is not seen then. Remedy: ALTER SEQUENCE ... CACHE 1; or lookback=timedelta(...), longer than a "
            "session keeps its numbers.",
            label,
            first.name,
            column.cached,
        )
