"""A scene on each kind of database."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from airflow_bookmarks.databases.login import DatabaseLogin
from airflow_bookmarks.store.bookmark_store import open_store
from tests.chaos.real.order import Gate, open_gate
from tests.chaos.tables.scene import TablesScene
from tests.databases.servers import new_database


@pytest.fixture(params=["postgresql", "mariadb"])
def scene(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[TablesScene]:
    """Set a scene in which one run was made, and more has landed since."""
    with new_database(request.getfixturevalue(f"{request.param}_server")) as login:
        yield from scene_on(login, tmp_path)


def scene_on(login: DatabaseLogin, root: Path) -> Iterator[TablesScene]:
    """Set such a scene on a database."""
    uri = f"sqlite:///{root}/bookmarks.db?namespace=test"
    store = open_store(uri)
    store.init()
    scene = TablesScene(root, login, store, uri)
    scene.prepare()
    yield scene
    store.table.close()


@pytest.fixture
def gate() -> Iterator[Gate]:
    """Open a gate at which drivers can be held."""
    with open_gate() as opened:
        yield opened
