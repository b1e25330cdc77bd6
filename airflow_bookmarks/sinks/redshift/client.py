"""How Redshift is reached, and how it loads a manifest: what no test without a server can show, and nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from airflow_bookmarks.databases.redshift import open_redshift
from airflow_bookmarks.files.filesystem import store_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from airflow_bookmarks.core.database.copy.load import CopyLoad
    from airflow_bookmarks.databases.database import Database
    from airflow_bookmarks.databases.login import DatabaseLogin


class CopyClient(Protocol):
    """Opens the database that tables are loaded into, and says how it loads files."""

    def open(self, login: DatabaseLogin) -> Database:
        """Connect to the database of a login.

        Raises:
            DatabaseError, OptionError: it can't be done.
        """
        ...

    def why_not_from(self, folder: str) -> str | None:
        """Say why it can't load files of a folder, by its canonical path; None: it can."""
        ...

    def loading(self, load: CopyLoad, name: str) -> Sequence[str]:
        """Return the statements that bring the rows of the files into the temporary table of this name.

        Raises:
            OptionError: it can't be done. OSError: the files are out of reach.
        """
        ...


class RedshiftClient:
    """Redshift itself: one COPY, which reads the manifest and the files of exactly that."""

    def open(self, login: DatabaseLogin) -> Database:
        """See `CopyClient.open`."""
        return open_redshift(login)

    def why_not_from(self, folder: str) -> str | None:
        """See `CopyClient.why_not_from`: other stores than S3 are out of its reach."""
        return None if store_of(folder) == "s3a" else f"{folder!r} does not lie in S3, and Redshift reads nothing else"

    def loading(self, load: CopyLoad, name: str) -> Sequence[str]:
        """See `CopyClient.loading`."""
        return [load.copy(name)]
