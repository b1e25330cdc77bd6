"""Outputs of tables kept from earlier versions: committed and not published, with their stage tables.

    $ python -m tests.sinks.jdbc.kept_state tests/sinks/jdbc/states/0.1.0-tables.json     # with the code to be kept

The tables are in SQLite, so that they can be kept as SQL; what state says of an output is the same for each database.
"""

from __future__ import annotations

import json
import sqlite3
import sys
import tempfile
from contextlib import closing
from pathlib import Path
from typing import Any

from airflow_bookmarks.core.database.sink_table import SinkTable
from airflow_bookmarks.core.database.upsert import Upsert
from airflow_bookmarks.core.job import RunIdentity
from airflow_bookmarks.core.rules.mode import Mode
from airflow_bookmarks.databases.address import DatabaseAddress
from airflow_bookmarks.databases.login import DatabaseLogin
from airflow_bookmarks.lifecycle.protocol.failpoint import Failpoint
from airflow_bookmarks.lifecycle.protocol.lease import RunEnvironment
from airflow_bookmarks.lifecycle.run.enabled import ActiveRun
from airflow_bookmarks.sinks.jdbc.place import TableTarget
from airflow_bookmarks.store.bookmark_store import BookmarkStore, open_store
from tests.sinks.jdbc.table_writer import write_table

COLUMNS = ("id", "name", "version")
JOBS = ("append", "overwrite", "upsert", "upsert_by_order")
ROWS = [(1, "new", 2), (2, "b", 1)]


class DeathError(BaseException):
    """The end of a driver."""


def make(store: BookmarkStore, warehouse: DatabaseLogin) -> None:
    """Let a driver of each job commit, and die before it publishes."""

    def die(point: Failpoint) -> None:
        if point is Failpoint.PUBLISHING:
            raise DeathError

    for job in JOBS:
        with closing(sqlite3.connect(warehouse.database)) as connection, connection:
            connection.execute(f"CREATE TABLE {job} (id int PRIMARY KEY, name text, version int)")
            connection.execute(f"INSERT INTO {job} VALUES ({9 if job == 'append' else 1}, 'old', 0)")
        upsert = Upsert(("id",), ("version",) if job == "upsert_by_order" else ()) if "upsert" in job else None
        mode = Mode.OVERWRITE if job == "overwrite" else Mode.APPEND
        target = TableTarget(DatabaseAddress.parse("conn:dw"), SinkTable("main", job), mode, upsert)
        run = ActiveRun.begin(store, job, RunIdentity(f"{job}/1", 1), RunEnvironment(at=die))
        more = [(1, "less", 1)] if job == "upsert_by_order" else []
        write_table(run, "out", target, warehouse, COLUMNS, [*ROWS, *more])
        try:
            run.commit()
        except DeathError:
            continue


def restore(kept: Path, folder: Path) -> tuple[BookmarkStore, Path]:
    """Put a kept state into a folder; return its store, and the file of its tables."""
    state: dict[str, Any] = json.loads(kept.read_text())
    open_store(f"sqlite:///{folder}/bookmarks.db?create=true&namespace=test").table.close()
    with closing(sqlite3.connect(folder / "bookmarks.db")) as connection, connection:
        connection.executemany("INSERT OR REPLACE INTO items VALUES (?, ?, ?)", state["items"])
    with closing(sqlite3.connect(folder / "dw.db")) as connection:
        connection.executescript(state["tables"])
    return open_store(f"sqlite:///{folder}/bookmarks.db?namespace=test"), folder / "dw.db"


def main(kept: Path) -> None:
    """Make the state with the code that runs this, and write it."""
    with tempfile.TemporaryDirectory() as folder:
        dw = Path(folder) / "dw.db"
        with closing(sqlite3.connect(dw)) as connection:
            connection.execute("VACUUM")
        store = open_store(f"sqlite:///{folder}/bookmarks.db?create=true&namespace=test")
        store.init()
        make(store, DatabaseLogin("sqlite", None, None, str(dw)))
        store.table.close()
        with closing(sqlite3.connect(f"{folder}/bookmarks.db")) as connection:
            items = [list(row) for row in connection.execute("SELECT pk, sk, attributes FROM items ORDER BY pk, sk")]
        with closing(sqlite3.connect(dw)) as connection:
            tables = "\n".join(connection.iterdump())
    kept.write_text(json.dumps({"items": items, "tables": tables}, indent=1) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
