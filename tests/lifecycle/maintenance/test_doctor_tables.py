"""What `doctor` finds of outputs that are tables: each fault is planted, and named."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta

import pytest

from airflow_bookmarks.core.database.publish_sql import TOKEN_TABLE
from airflow_bookmarks.core.database.sink_table import SinkTable
from airflow_bookmarks.core.database.stage_name import StageName
from airflow_bookmarks.core.job import RunIdentity
from airflow_bookmarks.core.rules.territory import Territory
from airflow_bookmarks.core.run import RunKey
from airflow_bookmarks.core.text.instant import utc_now
from airflow_bookmarks.databases.address import DatabaseAddress
from airflow_bookmarks.databases.database import open_database
from airflow_bookmarks.databases.login import DatabaseLogin
from airflow_bookmarks.lifecycle.maintenance.doctor import Finding, Severity, examine, repair
from airflow_bookmarks.lifecycle.protocol.failpoint import Failpoint
from airflow_bookmarks.lifecycle.protocol.lease import RunEnvironment
from airflow_bookmarks.lifecycle.run.enabled import ActiveRun
from airflow_bookmarks.sinks.jdbc.loading import resolved
from airflow_bookmarks.sinks.jdbc.place import TableTarget
from airflow_bookmarks.store.bookmark_store import BookmarkStore
from airflow_bookmarks.testing.memory import memory_store
from tests.sinks.jdbc.table_ground import OneLogin
from tests.sinks.jdbc.table_writer import write_table

LATER = timedelta(minutes=10)  # after the end of a lease


class DeathError(BaseException):
    """The end of a driver."""


class Warehouse:
    """A job that writes to one table of a database."""

    def __init__(self, store: BookmarkStore, login: DatabaseLogin) -> None:
        self.store, self.login = store, login
        store.databases = OneLogin(login)
        with open_database(login) as database:
            self.table = resolved(database, SinkTable(None, "dim"))
        self.execute(f"CREATE TABLE {self.sql(self.table)} (id int)")

    def run(self, fault: Failpoint | None = None, attempt: int = 1, *, writes: bool = True) -> None:
        """Make a run; its driver dies at a point."""

        def at(point: Failpoint) -> None:
            if point is fault:
                raise DeathError

        run = ActiveRun.begin(self.store, "job", RunIdentity("task", attempt), RunEnvironment(at=at))
        if writes:
            target = TableTarget(DatabaseAddress.parse("conn:dw"), self.table)
            write_table(run, "dim", target, self.login, ["id"], [[1]])
        run.commit()

    def die(self, fault: Failpoint, attempt: int = 1) -> None:
        with pytest.raises(DeathError):
            self.run(fault, attempt)

    def execute(self, statement: str) -> None:
        with open_database(self.login) as database:
            database.execute(statement)

    def sql(self, table: SinkTable) -> str:
        return table.sql(self.login.dialect)

    def stage(self, number: int, fence: int, *, is_loading: bool = False) -> SinkTable:
        name = StageName.of(Territory("test", "job"), RunKey(number, fence), "dim")
        return self.table.beside(str(replace(name, is_loading=is_loading)))

    def found(self, after: timedelta = LATER) -> list[Finding]:
        return examine(self.store, clock=lambda: utc_now() + after)

    def codes(self, after: timedelta = LATER) -> list[str]:
        return [finding.code for finding in self.found(after)]


@pytest.fixture
def dw(database_login: DatabaseLogin) -> Iterator[Warehouse]:
    with memory_store() as store:
        yield Warehouse(store, database_login)


def test_sound_job_has_no_finding_and_its_tables_were_looked_at(dw: Warehouse) -> None:
    dw.run()
    dw.run()
    assert dw.found() == []


def test_output_that_is_committed_and_not_published_is_named_with_its_stage_table(dw: Warehouse) -> None:
    dw.die(Failpoint.PUBLISHING)
    (found,) = dw.found()
    assert (found.code, found.severity, found.where) == ("publish-waits", Severity.NOTICE, "RUN 1.1, output 'dim'")
    assert str(dw.stage(1, 1)) in found.what
    assert dw.codes(after=timedelta(0)) == []  # a driver is at work


def test_publish_that_was_done_and_not_marked_does_not_wait(dw: Warehouse) -> None:
    dw.die(Failpoint.PUBLISHED)
    assert dw.codes() == []


def test_stage_table_that_is_gone_before_its_publish_is_an_error(dw: Warehouse) -> None:
    dw.die(Failpoint.PUBLISHING)
    dw.execute(f"DROP TABLE {dw.sql(dw.stage(1, 1))}")
    (found,) = dw.found()
    assert (found.code, found.severity) == ("publish-impossible", Severity.ERROR)
    assert "rewind the job to before this run" in found.repair


@pytest.mark.parametrize("is_loading", [False, True])
def test_stage_table_of_no_living_run_is_found_and_repaired(dw: Warehouse, is_loading: bool) -> None:
    dw.run()
    left = dw.stage(1, 1, is_loading=is_loading)
    dw.execute(f"CREATE TABLE {dw.sql(left)} (id int)")
    (found,) = dw.found()
    assert (found.code, found.severity, found.is_repairable) == ("staged-orphaned", Severity.NOTICE, True)
    assert str(left) in found.what
    (done,) = repair(dw.store, [found], who="ada", clock=lambda: utc_now() + LATER)
    assert (done.is_done, dw.found()) == (True, [])


@pytest.mark.parametrize("fault", [Failpoint.STAGED, Failpoint.BEFORE_COMMIT])
def test_stage_table_of_a_run_that_is_open_is_left_alone(dw: Warehouse, fault: Failpoint) -> None:
    dw.run()
    dw.die(fault)
    assert dw.codes() == []
    dw.run(attempt=2)
    assert dw.codes() == []


def test_stage_table_of_another_job_is_left_alone(dw: Warehouse) -> None:
    dw.run()
    other = StageName.of(Territory("test", "another"), RunKey(1, 1), "dim")
    dw.execute(f"CREATE TABLE {dw.sql(dw.table.beside(str(other)))} (id int)")
    assert dw.found() == []


def test_stage_table_of_a_fence_that_the_job_has_not_come_to_is_named(dw: Warehouse) -> None:
    dw.run()
    dw.execute(f"CREATE TABLE {dw.sql(dw.stage(7, 9))} (id int)")
    (found,) = dw.found()
    assert (found.code, found.is_repairable) == ("staged-ahead", False)
    assert "the job has come to fence 1 only" in found.what


def test_target_that_is_gone_is_an_error(dw: Warehouse) -> None:
    dw.run()
    dw.execute(f"DROP TABLE {dw.sql(dw.table)}")
    (found,) = dw.found()
    assert (found.code, found.severity) == ("target-missing", Severity.ERROR)
    assert f"the table conn:dw#{dw.table} is gone" in found.what


@pytest.mark.parametrize("planted", ["UPDATE {} SET fence = 1", "DELETE FROM {}", "DROP TABLE {}"])
def test_database_that_was_restored_to_before_a_publish_is_noticed(dw: Warehouse, planted: str) -> None:
    dw.run()
    dw.run()
    dw.execute(planted.format(dw.sql(dw.table.beside(TOKEN_TABLE))))
    (found,) = dw.found()
    assert (found.code, found.severity) == ("published-rows-missing", Severity.ERROR)
    assert "it was published to" in found.what
    assert "RUN 2.2" in found.where


def test_sweep_of_a_later_run_is_no_sign_of_a_lost_publish(dw: Warehouse) -> None:
    dw.run()
    dw.run(writes=False)
    assert dw.found() == []


def test_database_out_of_reach_is_named_and_the_rest_is_examined(dw: Warehouse) -> None:
    dw.run()
    dw.store.databases = OneLogin(DatabaseLogin("postgresql", "127.0.0.1", 1, "dw", "etl", "hunter2"))
    found = dw.found()
    assert [each.code for each in found] == ["target-unreachable", "staging-unreachable"]
    assert all("hunter2" not in each.what for each in found)
    assert examine(dw.store, with_files=False) == []
