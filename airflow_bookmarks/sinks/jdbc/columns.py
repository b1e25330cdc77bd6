"""The columns of a target beside those of a frame: what would refuse each row is refused before anything is staged."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from airflow_bookmarks.core.database import assignment, catalog
from airflow_bookmarks.core.database.dialects.quoting import is_mysql
from airflow_bookmarks.core.errors import DatabaseError, OptionError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from airflow_bookmarks.databases.database import Database
    from airflow_bookmarks.sinks.jdbc.place import TableTarget

_LEFT = "Nothing was written or committed."
_MOST_BYTES = 63  # of a name in PostgreSQL


@dataclass(frozen=True, slots=True)
class FrameColumns:
    """The columns of a frame, with their types as `DataType.simpleString` writes them; no types: they are not known."""

    what: str
    target: TableTarget
    names: tuple[str, ...]
    types: tuple[str, ...] = ()

    def matched(self, database: Database, *, is_case_sensitive: bool) -> Sequence[str] | None:
        """Return the columns as the target names them, in the order of the frame; None: there is no target yet.

        Raises:
            OptionError: a type has no place in a table, or the target lacks a column, needs another, or does not take
                one as it is.
        """
        self._check_any()
        self._check_kept(database)
        declared = {name: kind[0] if kind else "" for name, *kind in self._declared(database)}
        if not declared:
            self._check_length(database)
            return None
        found = [_matching(name, list(declared), is_case_sensitive=is_case_sensitive) for name in self.names]
        missing = [name for name, there in zip(self._shown(), found, strict=True) if there is None]
        if missing:
            raise self._refused(
                f"{self.target} has no column {', '.join(missing)}; it has {', '.join(map(repr, declared))}",
                "Add them to the table, or leave them out of the frame (select, drop).",
            )
        matched = [name for name in found if name is not None]
        if self.types:
            self._check_types(database, matched, declared)
        self._check_needed(database, matched)
        return matched

    def _check_any(self) -> None:
        if not self.names:
            raise self._refused("the frame has no columns, so there is nothing to write", "Give it a column.")

    def _check_length(self, database: Database) -> None:
        """Make sure that PostgreSQL cuts no name off: two would be one, and a later run would not find its columns."""
        long = [
            name
            for name in (self.target.table.name, *self.names)
            if database.dialect == "postgresql" and len(name.encode()) > _MOST_BYTES
        ]
        if long:
            raise self._refused(
                f"there is no {self.target} yet, and PostgreSQL keeps {_MOST_BYTES} bytes of a name: it would cut off "
                f"{', '.join(map(repr, long))}",
                "Choose shorter names.",
            )

    def _check_kept(self, database: Database) -> None:
        lost = [each for each, given in self._typed(self._shown()) if not assignment.is_kept(database.dialect, given)]
        if lost:
            raise self._refused(
                f"tables of {database.dialect} have no type for {', '.join(lost)}",
                "Take its fields as columns, make it text (to_json), or leave it out of the frame.",
            )

    def _check_types(self, database: Database, matched: Sequence[str], declared: Mapping[str, str]) -> None:
        columns = list(self._typed(matched))
        refused = [
            name for name, given in columns if not assignment.is_taken(database.dialect, given, declared[name])
        ] or self._refused_by(database, columns)
        if refused:
            given = dict(columns)
            told = "; ".join(f"{name!r} is {given[name]} there and {declared[name]} in the table" for name in refused)
            raise self._refused(
                f"the frame has other types than {self.target}: {told}",
                f"Cast {'it' if len(refused) == 1 else 'them'} in the frame (withColumn, cast), or change the table.",
            )

    def _refused_by(self, database: Database, columns: Sequence[tuple[str, str]]) -> list[str]:
        """Return the columns for whose types the database has no conversion."""
        if self._code_of(database, columns) != assignment.NO_CONVERSION:
            return []
        return [each[0] for each in columns if self._code_of(database, [each]) == assignment.NO_CONVERSION]

    def _check_needed(self, database: Database, matched: Sequence[str]) -> None:
        columns = [(name, "") for name in matched]
        if is_mysql(database.dialect) and self._code_of(database, columns) != assignment.NO_DEFAULT:
            return  # what has a default all the same, the server knows better than its catalog
        query = catalog.needed_query(database.dialect, self.target.table)
        needed = [(name, kind) for name, kind in ([] if query is None else database.rows(query)) if name not in matched]
        if needed:
            told = ", ".join(f"{name!r} ({kind})" for name, kind in needed)
            raise self._refused(
                f"{self.target} takes no NULL in {told}, has no default for it, and the frame has no such column",
                "Add it to the frame (withColumn), or give the column a default.",
            )

    def _code_of(self, database: Database, columns: Sequence[tuple[str, str]]) -> str | None:
        """Return the code with which the database refuses these columns of any row; None: it does not."""
        statement = assignment.no_rows(database.dialect, self.target.table, columns)
        try:
            if statement is not None:
                database.execute(statement)
        except DatabaseError as error:
            return error.code
        return None

    def _declared(self, database: Database) -> Sequence[tuple[str, ...]]:
        return database.rows(catalog.columns_query(database.dialect, self.target.table))

    def _shown(self) -> list[str]:
        """Return the names of the columns as errors name them, with their types."""
        if not self.types:
            return [repr(name) for name in self.names]
        return [f"{name!r} ({given})" for name, given in zip(self.names, self.types, strict=True)]

    def _typed(self, names: Iterable[str]) -> Iterable[tuple[str, str]]:
        return zip(names, self.types, strict=False) if self.types else ()

    def _refused(self, why: str, instead: str) -> OptionError:
        return OptionError(f"{self.what}: {why}. {_LEFT} {instead}")


def _matching(column: str, there: Sequence[str], *, is_case_sensitive: bool) -> str | None:
    """Return the column of a table that a column of a frame means; None if there is none, or no single one."""
    if column in there or is_case_sensitive:
        return column if column in there else None
    alike = [name for name in there if name.lower() == column.lower()]
    return alike[0] if len(alike) == 1 else None
