"""The kind `redshift`: a run stages files below a folder in S3, and one transaction loads them into the target.

Untried: no Redshift server has run its statements yet.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_bookmarks.core.database import catalog
from airflow_bookmarks.core.database.copy.token import CopyRow, burn_copies, copy_table, lock_copies
from airflow_bookmarks.core.database.sink_table import SinkTable
from airflow_bookmarks.core.errors import OptionError
from airflow_bookmarks.core.rules.territory import StagingBounds, staged_key, staging_root
from airflow_bookmarks.core.run import OutputEntry
from airflow_bookmarks.databases.access import EnvironmentAccess
from airflow_bookmarks.databases.address import DatabaseAddress
from airflow_bookmarks.sinks.failure import REDSHIFT_SINK
from airflow_bookmarks.sinks.files.changes import HEAD_STAGING, staged_folders
from airflow_bookmarks.sinks.reaching import reached
from airflow_bookmarks.sinks.redshift.client import RedshiftClient
from airflow_bookmarks.sinks.redshift.place import CopyRoot, StagedCopy
from airflow_bookmarks.sinks.redshift.publish import CopyPublication
from airflow_bookmarks.sinks.sink import StagedSink
from airflow_bookmarks.sinks.staging import stats_of

if TYPE_CHECKING:
    from airflow_bookmarks.core.rules.territory import Territory
    from airflow_bookmarks.core.run import RunKey
    from airflow_bookmarks.databases.access import DatabaseAccess
    from airflow_bookmarks.databases.database import Database
    from airflow_bookmarks.sinks.redshift.client import CopyClient
    from airflow_bookmarks.sinks.sink import StoredOutput
    from airflow_bookmarks.sinks.staging import StagingRequest

_ENVIRONMENT = EnvironmentAccess()
_CLIENT = RedshiftClient()


class RedshiftSink(StagedSink):
    """Tables of Redshift; see `sinks.redshift.place` for what state keeps of them.

    `databases` finds the logins, and `client` reaches the database.
    """

    kind = REDSHIFT_SINK

    def __init__(self, databases: DatabaseAccess = _ENVIRONMENT, client: CopyClient = _CLIENT) -> None:
        self._databases = databases
        self.client = client

    def reaching(self, databases: DatabaseAccess) -> RedshiftSink:
        """See `Sink.reaching`."""
        return RedshiftSink(databases, self.client)

    def stage(
        self, territory: Territory, key: RunKey, output: str, request: StagingRequest
    ) -> tuple[OutputEntry, str | None]:
        """See `StagedSink.stage`: a folder for each run item and output, below the folder that the request names.

        Raises:
            OptionError: it names none, or the table has no schema.
        """
        address, _, table = request.target.partition("#")
        schema = SinkTable.parse(table).schema
        if request.staging is None or schema is None:
            raise OptionError(f"output {output!r}: {request.target} takes a folder in S3, and a table with its schema")
        folder = staging_root(request.target, request.staging, territory.namespace, territory.job)
        root = CopyRoot(DatabaseAddress.parse(address), schema, folder)
        return OutputEntry(self.kind, request.target, f"{folder}/{key}/{output}", stats_of(request)), str(root)

    def prepare(self, output: StoredOutput) -> CopyPublication | None:
        """See `StagedSink.prepare`: neither the database nor the files are asked before the publish."""
        if output.entry.is_left_out:
            return None
        return CopyPublication(output, StagedCopy.of(output), self._databases, self.client)

    def is_unpublished(self, output: StoredOutput) -> bool:
        """See `StagedSink.is_unpublished`: by the token row, once a publish that is under way has ended."""
        if output.entry.is_left_out:
            return True
        staged = StagedCopy.of(output)
        schema = staged.target.schema
        with reached(self._databases, staged.target.address, "Nothing was changed.", self.client.open) as database:
            if not _is_there(database, schema):
                return False
            with database.transaction():
                database.execute(lock_copies(schema))
                row = CopyRow.of(database.rows(staged.token.read()))
        return row is not None and row.fence < staged.token.fence

    def check_root(self, territory: Territory, root: str) -> None:
        """See `StagedSink.check_root`."""
        CopyRoot.of_root(territory, root)

    def sweep(self, territory: Territory, root: str, fence: int) -> None:
        """See `StagedSink.sweep`: burn the tokens up to this fence, then remove the folders of such runs.

        A publish that is under way is waited for. One that comes later finds its token burned, and no manifest.
        """
        place = CopyRoot.of_root(territory, root)
        stays = f"What runs of job {territory.job!r} have staged there stays, and the next run sweeps it."
        with reached(self._databases, place.address, stays, self.client.open) as database:
            if _is_there(database, place.schema):
                with database.transaction():
                    database.execute(lock_copies(place.schema))
                    database.execute(burn_copies(place.schema, territory, fence))
        bounds = StagingBounds(territory, HEAD_STAGING)
        staged_folders(bounds, place.folder, lambda name: _is_up_to(name, fence)).remove()

    def why_not_clean(self, entry: OutputEntry) -> str | None:
        """Return why: rows of a table don't tell which run has written them."""
        return f"went to a table of Redshift ({entry.target}), whose rows don't tell which run has written them"

    def why_not_replay(self, entry: OutputEntry) -> str | None:
        """Return why: see `why_not_clean`."""
        return f"it wrote to a table of Redshift ({entry.target}), whose rows don't tell which run has written them"


def _is_there(database: Database, schema: str) -> bool:
    return bool(database.rows(catalog.columns_query("redshift", copy_table(schema))))


def _is_up_to(name: str, fence: int) -> bool:
    key = staged_key(name)
    return key is not None and key[1] <= fence
