"""All dialects by name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_bookmarks.core.database.dialects.mysql import MariaDB, MySQL
from airflow_bookmarks.core.database.dialects.postgresql import PostgreSQL
from airflow_bookmarks.core.errors import OptionError

if TYPE_CHECKING:
    from airflow_bookmarks.core.database.dialect import Dialect

DIALECTS: dict[str, Dialect] = {each.name: each for each in (PostgreSQL(), MySQL(), MariaDB())}


def dialect_named(name: str) -> Dialect:
    """Return the dialect of that name.

    Raises:
        OptionError: there is none.
    """
    if name not in DIALECTS:
        raise OptionError(
            f"tables of {name!r} can't be read by key here; those of {', '.join(DIALECTS)} can. Nothing was read or "
            "changed."
        )
    return DIALECTS[name]
