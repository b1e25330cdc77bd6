"""A state store, and PostgreSQL in the place of Redshift."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from airflow_bookmarks.databases.login import DatabaseLogin
from airflow_bookmarks.store.blobs import BlobStore
from airflow_bookmarks.testing.memory import memory_store
from tests.databases.servers import new_database
from tools.servers import DatabaseServer


@pytest.fixture
def blobs() -> Iterator[BlobStore]:
    with memory_store() as opened:
        yield opened.blobs


@pytest.fixture
def login(postgresql_server: DatabaseServer) -> Iterator[DatabaseLogin]:
    with new_database(postgresql_server) as found:
        yield found
