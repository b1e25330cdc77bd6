"""Stores that several processes share, a scene on them, and how much of it all is run."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path

import boto3.session
import pytest

from airflow_bookmarks.store.bookmark_store import open_store
from tests.chaos.real.order import Gate, open_gate
from tests.chaos.real.scene import Scene


@pytest.fixture(scope="session")
def dynamodb_table_uri(dynamodb_local_url: str, aws_session: boto3.session.Session) -> str:
    """Make one table in DynamoDB Local; each test has a namespace of its own in it."""
    uri = f"dynamodb://chaos-{uuid.uuid4().hex}?region=eu-west-1&endpoint={dynamodb_local_url}"
    store = open_store(uri, session=aws_session)
    store.init()
    store.table.close()
    return uri


@pytest.fixture(params=["sqlite", pytest.param("dynamodb", marks=pytest.mark.dynamodb_local)])
def backend(request: pytest.FixtureRequest) -> str:
    """Name what keeps the table of this test."""
    name: str = request.param
    return name


@pytest.fixture
def scene(backend: str, request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Scene]:
    """Set an empty scene."""
    if backend == "sqlite":
        uri = f"sqlite:///{tmp_path}/bookmarks.db?namespace=test"
        store = open_store(uri)
    else:
        uri = f"{request.getfixturevalue('dynamodb_table_uri')}&namespace=n{uuid.uuid4().hex}"
        store = open_store(uri, session=request.getfixturevalue("aws_session"))
    store.init()
    yield Scene(tmp_path, store, uri)
    store.table.close()


@pytest.fixture
def gate() -> Iterator[Gate]:
    """Open a gate at which drivers can be held."""
    with open_gate() as opened:
        yield opened
