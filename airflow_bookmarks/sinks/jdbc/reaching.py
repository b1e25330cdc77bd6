"""Open the database of an address, and raise what it says as an error of the sink."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from airflow_bookmarks.core.errors import DatabaseError, OptionError, SourceError
from airflow_bookmarks.databases.database import open_database

if TYPE_CHECKING:
    from collections.abc import Iterator

    from airflow_bookmarks.core.errors import BookmarkError
    from airflow_bookmarks.databases.access import DatabaseAccess
    from airflow_bookmarks.databases.address import DatabaseAddress
    from airflow_bookmarks.databases.database import Database


@contextmanager
def reached(
    databases: DatabaseAccess, address: DatabaseAddress, then: str = "", raised: type[BookmarkError] = SourceError
) -> Iterator[Database]:
    """Open a database for the block.

    Args:
        databases: finds the login.
        address: where it is.
        then: what was left untouched and what to do, to stand behind what the database says.
        raised: the class of error to raise.

    Raises:
        BookmarkError: one of the class `raised`: no login is found, or the database fails within the block.
    """
    try:
        with open_database(databases.login(address)) as database:
            yield database
    except (DatabaseError, OptionError) as error:
        raise raised(f"{error} {then}".rstrip()) from error
