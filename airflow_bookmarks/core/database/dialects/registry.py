"""The dialects of this package by name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_bookmarks.core.database.dialects.mysql import MariaDB, MySQL
from airflow_bookmarks.core.database.dialects.oracle import Oracle
from airflow_bookmarks.core.database.dialects.postgresql import PostgreSQL
from airflow_bookmarks.core.database.dialects.redshift import Redshift
from airflow_bookmarks.core.database.dialects.sqlserver import SQLServer

if TYPE_CHECKING:
    from collections.abc import Mapping

    from airflow_bookmarks.core.database.dialect import Dialect, DialectName

DIALECTS: Mapping[DialectName, Dialect] = {
    each.name: each for each in (PostgreSQL(), MySQL(), MariaDB(), SQLServer(), Oracle(), Redshift())
}
