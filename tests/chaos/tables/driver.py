"""The driver of these tests, without Spark, and the worker after it: each in a process that can be killed."""

from __future__ import annotations

import os
import signal
from collections import Counter
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path

from airflow_bookmarks.core.database.sink_table import SinkTable
from airflow_bookmarks.core.database.upsert import Upsert
from airflow_bookmarks.core.errors import NotCommittedError
from airflow_bookmarks.databases.address import DatabaseAddress
from airflow_bookmarks.lifecycle.protocol.failpoint import Failpoint
from airflow_bookmarks.lifecycle.protocol.finish import finish
from airflow_bookmarks.lifecycle.protocol.lease import RunEnvironment
from airflow_bookmarks.lifecycle.run.enabled import ActiveRun
from airflow_bookmarks.sinks.jdbc.place import TableTarget
from airflow_bookmarks.store.bookmark_store import BookmarkStore, open_store
from tests.aborting import aborted_on_error
from tests.chaos.real.driver import plan, say_to_file, stage_files
from tests.chaos.real.order import JOB
from tests.chaos.tables.order import APPENDED, NOT_COMMITTED, UPSERTED, TablesOrder
from tests.sinks.jdbc.table_ground import OneLogin
from tests.sinks.jdbc.table_writer import write_table

ADDRESS = DatabaseAddress.parse("conn:dw")


def main(order: TablesOrder) -> None:
    """Do what the order says, in a process that was made for it."""
    say_to_file(order)
    store = open_store(order.store)
    store.databases = OneLogin(order.warehouse)
    if order.is_worker:
        work(order, store)
    else:
        drive(order, store)


def work(order: TablesOrder, store: BookmarkStore) -> None:
    """Publish what a dead driver has committed."""
    try:
        finish(store, JOB, order.identity, environment_of(order))
    except NotCommittedError:
        os._exit(NOT_COMMITTED)


def drive(order: TablesOrder, store: BookmarkStore) -> None:
    """Make the run, as a script with a `with` block does: an exception aborts it."""
    run = ActiveRun.begin(store, JOB, order.identity, environment_of(order))
    with aborted_on_error(run):
        planned = plan(order, run)
        if not planned.is_empty:
            stage_files(order, run, planned)
            lines = [line for path in planned.files.paths for line in Path(path).read_text().splitlines()]
            stage_tables(order, run, lines)
        run.commit()


def stage_tables(order: TablesOrder, run: ActiveRun, lines: Sequence[str]) -> None:
    """Stage all lines for one table, and the newest of each number for the other."""
    login, schema = order.warehouse, "public" if order.warehouse.dialect == "postgresql" else order.warehouse.database
    table = SinkTable(schema, APPENDED)
    write_table(run, APPENDED, TableTarget(ADDRESS, table), login, ["line"], [[line] for line in lines])
    rows = [line.split(",") for line in lines]
    write_table(
        run,
        UPSERTED,
        TableTarget(ADDRESS, table.beside(UPSERTED), upsert=Upsert(("id",), ("version",), has_deletes=True)),
        login,
        ["id", "version"],
        [(int(number), int(version)) for number, version, is_deleted in rows if is_deleted == "0"],
        gone=[(int(number), int(version)) for number, version, is_deleted in rows if is_deleted == "1"],
    )


def environment_of(order: TablesOrder) -> RunEnvironment:
    """Return an environment that kills or holds the process where the order says so."""
    passed: Counter[Failpoint] = Counter()

    def at(point: Failpoint) -> None:
        passed[point] += 1
        if passed[point] == order.nth:
            if point == order.fault:
                os.kill(os.getpid(), signal.SIGKILL)
            order.pass_gate(point)

    return RunEnvironment(at=at, lease_time=timedelta(seconds=order.lease_s))
