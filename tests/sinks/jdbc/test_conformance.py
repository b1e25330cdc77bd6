"""Tables keep the promises of every sink that stages, on PostgreSQL, MariaDB and SQLite (SINK-4, SINK-8)."""

from __future__ import annotations

import pytest

from airflow_bookmarks.core.database.upsert import Upsert
from airflow_bookmarks.databases.login import DatabaseLogin
from airflow_bookmarks.store.blobs import BlobStore
from airflow_bookmarks.testing.sink_conformance import StagedSinkConformance
from tests.sinks.jdbc.table_ground import TableGround


class TestAppend(StagedSinkConformance):
    @pytest.fixture
    def ground(self, database_login: DatabaseLogin, blobs: BlobStore) -> TableGround:
        return TableGround(database_login, blobs)


class TestUpsert(StagedSinkConformance):
    @pytest.fixture
    def ground(self, database_login: DatabaseLogin, blobs: BlobStore) -> TableGround:
        columns = [("row", "varchar(100)"), ("seen", "varchar(100)")]
        return TableGround(database_login, blobs, columns=columns, key=["row"], upsert=Upsert(("row",), ("seen",)))


class TestUpsertWithDeletes(StagedSinkConformance):
    @pytest.fixture
    def ground(self, database_login: DatabaseLogin, blobs: BlobStore) -> TableGround:
        columns = [("row", "varchar(100)"), ("seen", "varchar(100)")]
        upsert = Upsert(("row",), ("seen",), has_deletes=True)
        return TableGround(database_login, blobs, columns=columns, key=["row"], upsert=upsert)


class TestNamesWithEveryCharacter(StagedSinkConformance):
    @pytest.fixture
    def ground(self, database_login: DatabaseLogin, blobs: BlobStore) -> TableGround:
        columns = [("Größe in \"cm\" `x` 'y' \\ %s %", "varchar(100)"), ("select", "varchar(100)")]
        name = "Dim \"2013\" `é` 'x' \\ %d; #1"
        keys = (columns[0][0],)
        return TableGround(
            database_login,
            blobs,
            name=name,
            columns=columns,
            key=keys,
            upsert=Upsert(keys, ("select",), has_deletes=True),
        )
