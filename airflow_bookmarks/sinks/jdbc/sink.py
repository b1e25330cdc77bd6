"""The kind `jdbc`: a run stages in a table of the target's database, and one transaction brings its rows there."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import TYPE_CHECKING, cast

from airflow_bookmarks.core.database import catalog, publish_sql
from airflow_bookmarks.core.database.publish_sql import TOKEN_TABLE
from airflow_bookmarks.core.database.script import STATEMENT_TABLE, DigestRow
from airflow_bookmarks.core.database.sink_table import SinkTable
from airflow_bookmarks.core.database.stage_name import StageName, stage_prefix
from airflow_bookmarks.core.errors import DatabaseError, OptionError
from airflow_bookmarks.core.run import OutputEntry
from airflow_bookmarks.databases.access import EnvironmentAccess
from airflow_bookmarks.databases.address import DatabaseAddress
from airflow_bookmarks.sinks.examined import ExaminedSink, SinkDifference
from airflow_bookmarks.sinks.failure import JDBC_SINK
from airflow_bookmarks.sinks.jdbc.examination import differences, is_unpublished
from airflow_bookmarks.sinks.jdbc.loading import alone
from airflow_bookmarks.sinks.jdbc.place import StagePlace, StagingSchema, TableTarget
from airflow_bookmarks.sinks.jdbc.publish import StagedTable, TablePublication
from airflow_bookmarks.sinks.reaching import reached
from airflow_bookmarks.sinks.staging import stats_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from airflow_bookmarks.core.rules.territory import Territory
    from airflow_bookmarks.core.run import RunKey
    from airflow_bookmarks.databases.access import DatabaseAccess
    from airflow_bookmarks.databases.database import Database
    from airflow_bookmarks.sinks.sink import Publication, StoredOutput
    from airflow_bookmarks.sinks.staging import StagingRequest

log = logging.getLogger(__name__)

_ENVIRONMENT = EnvironmentAccess()
_LEAVING_S = 10  # for the sweep of a table, with which the next run is not in a hurry


class JdbcSink(ExaminedSink):
    """Tables of a database; see `sinks.jdbc.place` for what state keeps of them.

    `databases` finds the logins.
    """

    kind = JDBC_SINK

    def __init__(self, databases: DatabaseAccess = _ENVIRONMENT) -> None:
        self._databases = databases

    def reaching(self, databases: DatabaseAccess) -> JdbcSink:
        """See `Sink.reaching`."""
        return JdbcSink(databases)

    def stage(
        self, territory: Territory, key: RunKey, output: str, request: StagingRequest
    ) -> tuple[OutputEntry, str | None]:
        """See `StagedSink.stage`: a table for each run item and output, in one schema for each target."""
        address, _, table = request.target.partition("#")
        schema = SinkTable.parse(table).schema if request.staging is None else request.staging
        place = StagePlace.of(schema, StageName.of(territory, key, output))
        root = StagingSchema(DatabaseAddress.parse(address), schema).root(territory)
        return OutputEntry(self.kind, request.target, str(place.table), stats_of(request)), root

    def prepare(self, output: StoredOutput) -> TablePublication | None:
        """See `StagedSink.prepare`: the database is not asked before the publish."""
        if output.entry.is_left_out:
            return None
        table = StagedTable(output, StagePlace.of_output(output), _target_of(output))
        return TablePublication((table,), self._databases)

    def joined(self, publications: Mapping[str, Publication]) -> Mapping[tuple[str, ...], Publication]:
        """See `StagedSink.joined`: all outputs that go to one database are published by one transaction."""
        of_database: dict[str, dict[str, TablePublication]] = {}
        for name, each in cast("Mapping[str, TablePublication]", publications).items():  # made by `prepare`
            of_database.setdefault(str(each.address), {})[name] = each
        return {tuple(several): TablePublication.of_all(several.values()) for several in of_database.values()}

    def is_unpublished(self, output: StoredOutput) -> bool:
        """See `StagedSink.is_unpublished`: by the token row, which a publish that is under way has locked."""
        if output.entry.is_left_out:
            return True
        place, target = StagePlace.of_output(output), _target_of(output)
        with reached(self._databases, target.address, "Nothing was changed.") as database:
            return is_unpublished(database, place)

    def check_root(self, territory: Territory, root: str) -> None:
        """See `StagedSink.check_root`."""
        StagingSchema.of_root(territory, root)

    def sweep(self, territory: Territory, root: str, fence: int) -> None:
        """See `StagedSink.sweep`: burn the tokens up to this fence, then drop the tables that such runs have loaded.

        A publish that is under way is waited for. One that comes later finds its token burned, and no table. A table to
        which somebody still writes is left to the next sweep: nobody can publish it any more.
        """
        place = StagingSchema.of_root(territory, root)
        stays = f"What runs of job {territory.job!r} have staged there stays, and the next run sweeps it."
        with reached(self._databases, place.address, stays) as database:
            dialect, schema = database.dialect, place.schema
            if database.rows(catalog.columns_query(dialect, SinkTable(schema, TOKEN_TABLE))):
                database.execute(publish_sql.burn_tokens(dialect, schema, territory, fence))
            has_scripts = bool(database.rows(catalog.columns_query(dialect, SinkTable(schema, STATEMENT_TABLE))))
            for table, key in _staged_in(database, territory, schema).items():
                if key.fence <= fence:
                    _drop_or_leave(database, table)
                    if has_scripts:
                        _forget_script(database, _sealed(table))

    def staged_in(self, territory: Territory, root: str) -> Mapping[str, RunKey]:
        """See `ExaminedSink.staged_in`: the stage tables of the job, those that are still loaded as well."""
        place = StagingSchema.of_root(territory, root)
        with reached(self._databases, place.address, "Nothing was changed.") as database:
            return {str(table): key for table, key in _staged_in(database, territory, place.schema).items()}

    def drop_staged(self, territory: Territory, root: str, place: str) -> None:
        """See `ExaminedSink.drop_staged`."""
        schema = StagingSchema.of_root(territory, root)
        with reached(self._databases, schema.address, f"The table {place} stays.") as database:
            for table in _staged_in(database, territory, schema.schema):
                if str(table) == place:
                    database.execute(publish_sql.drop_table(database.dialect, table))

    def examine(self, output: StoredOutput) -> Sequence[SinkDifference]:
        """See `ExaminedSink.examine`."""
        if output.entry.is_left_out:
            return []
        place, target = StagePlace.of_output(output), _target_of(output)
        with reached(self._databases, target.address, "Nothing was changed.") as database:
            return differences(database, output, place, target)

    def holds_rows_once(self, entry: OutputEntry) -> bool:
        """See `Sink.holds_rows_once`: in a table that gets them by key, or all anew."""
        return TableTarget.of_entry(entry).replaces

    def why_not_clean(self, entry: OutputEntry) -> str | None:
        """Return why: rows of a table don't tell which run has written them."""
        return f"went to a table ({entry.target}), whose rows don't tell which run has written them"

    def why_not_replay(self, entry: OutputEntry) -> str | None:
        """Return why: see `why_not_clean`."""
        return f"it wrote to a table ({entry.target}), whose rows don't tell which run has written them"


def _target_of(output: StoredOutput) -> TableTarget:
    try:
        return TableTarget.of_entry(output.entry)
    except OptionError as error:
        item = f"RUN {output.run.key}, output {output.name!r}"
        raise output.territory.refuse(item, output.entry.target, "it is no table of a database") from error


def _forget_script(database: Database, table: SinkTable) -> None:
    """Remove the digest of the statements of a stage table; another login may have made the table of digests."""
    try:
        database.execute(DigestRow.of(database.dialect, table).remove())
    except DatabaseError as error:
        log.info("bookmark: the digest of the statements of %s stays, which is harmless: %s", table, error)


def _sealed(table: SinkTable) -> SinkTable:
    """Return a stage table by the name that it has once it is loaded."""
    name = StageName.parse(table.name)
    return table if name is None else table.beside(str(replace(name, is_loading=False)))


def _drop_or_leave(database: Database, table: SinkTable) -> None:
    try:
        alone(database, publish_sql.drop_table(database.dialect, table), _LEAVING_S)
    except DatabaseError as error:
        if error.code not in publish_sql.WAITED_IN_VAIN:
            raise
        log.warning("bookmark: a session still holds the stage table %s, so the next run drops it: %s", table, error)


def _staged_in(database: Database, territory: Territory, schema: str | None) -> dict[SinkTable, RunKey]:
    """Return the stage tables of a job in a schema, with the run item of each."""
    names = database.rows(catalog.tables_query(database.dialect, schema, stage_prefix(territory)))
    parsed = ((name, StageName.parse(name)) for (name,) in names)
    return {SinkTable(schema, name): staged.key for name, staged in parsed if staged is not None}
