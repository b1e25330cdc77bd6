"""A look from where a database is out of reach: the other contexts are told, and a run is left to Spark."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from airflow_bookmarks.databases.login import DatabaseLogin
from airflow_bookmarks.lifecycle.inspect.pending import pending
from airflow_bookmarks.lifecycle.run.empty import commit_empty
from airflow_bookmarks.testing.memory import memory_store
from tests.databases.servers import new_database
from tests.lifecycle.shop import Shop as Files
from tests.sources.jdbc.shop import Shop
from tests.sources.jdbc.test_conformance import KnownLogin
from tools.servers import DatabaseServer

NOWHERE = DatabaseLogin.of_uri("postgresql://ann:s3cret@127.0.0.1:1/shop")


@pytest.fixture
def files(tmp_path: Path, postgresql_server: DatabaseServer) -> Iterator[Files]:
    """Return a job that has read a file and a table, whose database is out of reach now."""
    with memory_store() as store, new_database(postgresql_server) as login:
        table, files = Shop(login), Files(tmp_path, store)
        table.run("CREATE TABLE orders (id int PRIMARY KEY)")
        table.run("INSERT INTO orders VALUES (1)")
        store.databases = KnownLogin(login)
        files.put("a.txt", "a")
        run = files.begin()
        run.plan("orders", table.source(keys=["id"]))
        files.copy(run)
        run.commit()
        store.databases = KnownLogin(NOWHERE)
        yield files


def test_other_contexts_are_told_and_why_one_is_not(files: Files) -> None:
    files.put("b.txt", "b")

    seen = {context.ctx: context for context in pending(files.store, "copy").contexts}

    assert seen["raw"].files == 1
    assert "can't be entered" in str(seen["orders"].unknown)
    assert "s3cret" not in str(seen["orders"].unknown)


def test_run_is_left_to_spark_which_may_reach_it(files: Files) -> None:
    assert commit_empty(files.store, "copy", files.identity(), files.environment) is None

    head = files.store.head("copy")
    assert (head.run_number, head.lease) == (1, None)
