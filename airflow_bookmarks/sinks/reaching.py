"""Open the database of an address, and raise what it says as an error of the sink."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from airflow_bookmarks.core.errors import DatabaseError, LookRefusedError, OptionError, SourceError
from airflow_bookmarks.databases.access import login_at
from airflow_bookmarks.databases.database import open_database

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from airflow_bookmarks.core.errors import BookmarkError
    from airflow_bookmarks.databases.access import DatabaseAccess
    from airflow_bookmarks.databases.address import DatabaseAddress
    from airflow_bookmarks.databases.database import Database
    from airflow_bookmarks.databases.login import DatabaseLogin


@contextmanager
def reached(
    databases: DatabaseAccess,
    address: DatabaseAddress,
    then: str,
    connect: Callable[[DatabaseLogin], Database] = open_database,
) -> Iterator[Database]:
    """Open the database of an address for the block; `then` says what stays as it is where that fails.

    `connect` opens the database of a login; default: by SQLAlchemy.

    Raises:
        LookRefusedError: this process may not look there.
        SourceError: no login is found, or the database fails within the block.
    """
    try:
        login = login_at(databases, address)
    except LookRefusedError:
        raise
    except (DatabaseError, OptionError) as error:
        raise SourceError(f"{error} {then}") from error
    with entered(login, then, connect=connect) as database:
        yield database


@contextmanager
def entered(
    login: DatabaseLogin,
    then: str,
    raised: type[BookmarkError] = SourceError,
    connect: Callable[[DatabaseLogin], Database] = open_database,
) -> Iterator[Database]:
    """Open the database of a login for the block; see `reached`.

    Raises:
        BookmarkError: one of the class `raised`: the database can't be opened, or fails within the block.
    """
    try:
        with connect(login) as database:
            yield database
    except DatabaseError as error:
        raise raised(f"{error} {then}") from error
