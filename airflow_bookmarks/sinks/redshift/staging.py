"""What a driver does around the write of the files that a COPY loads.

check     the target has the columns, and takes their types           nothing is written yet
create    the token row                                               after the place of the output is stored
...       Spark writes the files
seal      the manifest, then the digest of the load in the token row  what is listed there is what is published
"""

from __future__ import annotations

import io
from dataclasses import dataclass
from typing import TYPE_CHECKING

from airflow_bookmarks.core.database import catalog
from airflow_bookmarks.core.database.copy.manifest import manifest_of
from airflow_bookmarks.core.database.copy.token import COPY_TABLE, CopyRow, CopyToken, copy_table, lock_copies
from airflow_bookmarks.core.database.sink_table import SinkTable
from airflow_bookmarks.core.errors import DatabaseError, OptionError, PublishError
from airflow_bookmarks.sinks.redshift.place import manifest_path

if TYPE_CHECKING:
    from collections.abc import Iterable

    from airflow_bookmarks.databases.database import Database
    from airflow_bookmarks.files.filesystem import FileSystem
    from airflow_bookmarks.sinks.redshift.place import CopyTarget

_LEFT = "Nothing was committed or published."
_REHEARSAL = "_bm_rehearsal"  # a temporary table, which each session has for itself


def with_schema(database: Database, table: SinkTable) -> SinkTable:
    """Return a table with its schema: what state names must not depend on who connects.

    Raises:
        OptionError: it is named without one, and the connection has none.
    """
    if table.schema is not None:
        return table
    ((schema,),) = database.rows("SELECT current_schema()")
    if schema is None:
        raise OptionError(f"the table {table} is named without a schema, and the login leads to none. {_LEFT}")
    return SinkTable(str(schema), table.name)


@dataclass(frozen=True, slots=True)
class CopyStaging:
    """The load of one output while its driver makes it; `what` names job and output, for messages."""

    what: str
    target: CopyTarget

    def check(self, database: Database) -> None:
        """Make sure that the target takes the columns, if it is there and no statement of the script may change it.

        Redshift folds the case of names, quoted ones too, unless a user sets `enable_case_sensitive_identifier`.

        Raises:
            OptionError: it lacks one.
            DatabaseError: it does not take the type of one, or the login lacks a right.
        """
        if self.target.script.before:
            return
        there = [str(row[0]) for row in database.rows(catalog.columns_query("redshift", self.target.table))]
        known = {name.lower() for name in there}
        missing = [each.name for each in self.target.columns if each.name.lower() not in known]
        if there and missing:
            raise OptionError(
                f"{self.what}: {self.target} has no column {', '.join(map(repr, missing))}; it has "
                f"{', '.join(map(repr, there))}. {_LEFT} Add them to the table, or leave them out of the frame."
            )
        if there:
            with database.transaction():
                for statement in self.target.load("", 0).rehearsal(_REHEARSAL):
                    database.execute(statement)

    def create(self, database: Database, token: CopyToken, label: str) -> None:
        """Make the token row, unless it is there; `label` tells people what it is of.

        Raises:
            PublishError: a later fence has the row.
            DatabaseError: it can't be made.
        """
        try:
            database.execute(token.create_table())
        except DatabaseError:  # another driver may have made it at the same time
            if not database.rows(catalog.columns_query("redshift", copy_table(token.schema))):
                raise
        with database.transaction():
            database.execute(lock_copies(token.schema))
            row = CopyRow.of(database.rows(token.read()))
            if row is None:
                database.execute(token.add(label))
        if row is not None and not row.may_stage(token.fence):
            raise self._overtaken(token, row)

    def seal(
        self,
        database: Database,
        files: FileSystem,
        token: CopyToken,
        place: str,
        staged: Iterable[tuple[str, int]],
        rows: int,
    ) -> None:
        """Write the manifest of the staged files, and let the token row tell what a publish may load.

        Args:
            database: that of the target.
            files: the file system of the place.
            token: the row of the output.
            place: where the output is staged, as the run has stored it.
            staged: the files that Spark has written, by path and size in bytes.
            rows: how many rows they have.

        Raises:
            PublishError: a later fence has the row.
            OSError: the manifest can't be written.
        """
        if rows:
            files.write(manifest_path(place), io.BytesIO(manifest_of(staged)))
        with database.transaction():
            database.execute(lock_copies(token.schema))
            row = CopyRow.of(database.rows(token.read()))
            if row is None or not row.may_stage(token.fence):
                raise self._overtaken(token, row)
            database.execute(token.stage(self.target.load(place, rows).digest))

    def _overtaken(self, token: CopyToken, row: CopyRow | None) -> PublishError:
        fence = 0 if row is None else max(row.fence, row.staged_fence)
        return PublishError(
            f"{self.what}: a run of fence {fence} has been at {self.target} already, and this one has fence "
            f"{token.fence}: its rows would not be published. {_LEFT} Another run of the job has taken over; or its "
            "bookmark was lost, and the store knows nothing of the runs that have published; or two stores have the "
            f"same namespace and job. If its runs really begin anew, delete the row output_id = {token.id!r} of the "
            f"table {token.schema}.{COPY_TABLE}."
        )
