"""A finished task that is cleared and can't be replayed fails at once, without Spark and without retries."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from typing import Any

import pytest

from airflow_bookmarks.airflow_compat import AirflowFailException
from airflow_bookmarks.core.database.sink_table import SinkTable
from airflow_bookmarks.core.errors import ChangeRefusedError
from airflow_bookmarks.core.run import OutputEntry
from airflow_bookmarks.databases.address import DatabaseAddress
from airflow_bookmarks.databases.login import DatabaseLogin
from airflow_bookmarks.lifecycle.run.checks.replayable import check_worth_a_replay
from airflow_bookmarks.lifecycle.run.session import RunSession
from airflow_bookmarks.sinks.jdbc.place import TableTarget
from airflow_bookmarks.sinks.registry import SINKS
from airflow_bookmarks.sinks.staging import Mode, Staged, StagingRequest
from tests.airflow.conftest import World
from tests.airflow.operators.test_operator import (
    JOB,
    begin,
    begin_replay,
    cleared,
    commit_only,
    context,
    drive,
    operator,
    play,
    refuse,
    replay,
)
from tests.lifecycle.protocol.test_own_staged_sink import Plain
from tests.sinks.jdbc.table_ground import OneLogin
from tests.sinks.jdbc.table_writer import write_table

Write = Callable[[RunSession], None]


def driving(world: World, write: Write) -> Callable[[Any], None]:
    """Return a submit that makes one run, which writes to another place than files as well."""

    def submit(_: Any) -> None:
        run = begin(world)
        world.shop.copy(run)
        write(run)
        run.commit()

    return submit


@pytest.fixture
def into_a_table(world: World) -> Write:
    """Write to a table of a database, by the sink of the package."""
    login = DatabaseLogin.of_uri(f"sqlite:///{world.folder}/dw.db")
    with closing(sqlite3.connect(login.database)) as connection, connection:
        connection.execute("CREATE TABLE dim (id int PRIMARY KEY)")
    world.store.databases = OneLogin(login)
    target = TableTarget(DatabaseAddress.parse("conn:dw"), SinkTable("main", "dim"))
    return lambda run: write_table(run, "dim", target, login, ["id"], [[1]])


def into_a_sink_of_its_own(run: RunSession) -> None:
    run.place("own", StagingRequest(Plain.kind, "dw.clean"))
    run.staged("own", Staged((), rows=1))


def said_by_the_driver(world: World) -> str:
    """Return why the driver refuses to replay run 1."""
    task = operator()
    task.conf = {"spark.bookmarks.replay": "1"}
    with pytest.raises(ChangeRefusedError) as raised:
        begin_replay(world, task, 9)
    return str(raised.value)


def test_run_that_wrote_to_a_table_is_refused_as_the_driver_refuses_it(world: World, into_a_table: Write) -> None:
    world.shop.put("a.txt", "a")
    play(operator(retries=1), context(retries=1), driving(world, into_a_table))

    with pytest.raises(AirflowFailException, match="run 1 can't be replayed: it wrote to a table") as raised:
        play(operator(retries=1), cleared(), refuse)

    assert str(raised.value) == said_by_the_driver(world)
    assert world.store.head(JOB).run_number == 1


def test_sink_of_ones_own_is_asked_where_the_worker_knows_it(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(SINKS.sinks, Plain.kind, Plain())
    world.shop.put("a.txt", "a")
    play(operator(retries=1), context(retries=1), driving(world, into_a_sink_of_its_own))
    with pytest.raises(AirflowFailException, match=r"it wrote to a sink \(plain\) that can't replace"):
        play(operator(retries=1), cleared(), refuse)


def test_sink_that_the_worker_does_not_know_is_left_to_the_driver(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setitem(SINKS.sinks, Plain.kind, Plain())
        world.shop.put("a.txt", "a")
        play(operator(retries=1), context(retries=1), driving(world, into_a_sink_of_its_own))
    with pytest.raises(AssertionError, match="Spark was started"):
        play(operator(retries=1), cleared(), refuse)


def test_overwrite_that_a_later_run_has_overwritten_is_refused(world: World) -> None:
    world.shop.mode = Mode.OVERWRITE
    world.shop.put("a.txt", "a")
    play(operator(retries=1), context(retries=1), drive(world))
    world.shop.put("b.txt", "b")
    world.shop.run(JOB)
    with pytest.raises(AirflowFailException, match="a later run has overwritten its output"):
        play(operator(retries=1), cleared(), refuse)


def test_last_overwrite_is_replayed(world: World) -> None:
    world.shop.mode = Mode.OVERWRITE
    world.shop.put("a.txt", "a")
    play(operator(retries=1), context(retries=1), drive(world))
    task = operator(retries=1)
    assert play(task, cleared(), replay(world, task, attempt=2))["run_number"] == "1"


def test_run_whose_publish_is_due_is_left_to_the_driver(world: World) -> None:
    """It publishes before it looks whether the run can be replayed."""
    world.shop.put("a.txt", "a")
    commit_only(world)
    head = world.store.head(JOB)
    run = world.store.committed_run(JOB, 1)
    assert run is not None
    check_worth_a_replay(world.store, JOB, head, run)


def test_task_that_is_not_to_be_replayed_fails_without_retries_as_well(world: World) -> None:
    world.shop.put("a.txt", "a")
    play(operator(retries=1), context(retries=1), drive(world))
    with pytest.raises(AirflowFailException, match="bookmark_on_clear is 'fail'"):
        play(operator(retries=1, bookmark_on_clear="fail"), cleared(), refuse)


@pytest.mark.parametrize(
    ("entry", "why"),
    [
        (OutputEntry("jdbc", "dim", ""), "it wrote to a table (dim)"),
        (OutputEntry("redshift", "dim", ""), "it wrote to a table of Redshift (dim)"),
        (OutputEntry("iceberg", "lake.dim", ""), "it wrote to an Iceberg table (lake.dim)"),
        (OutputEntry("delta", "/lake/dim", "", commits_by_itself=True), "it wrote to a sink that commits by itself"),
        (OutputEntry("unknown", "dim", "", commits_by_itself=True), "it wrote to a sink that commits by itself"),
        (OutputEntry("unknown", "dim", ""), None),
        (OutputEntry("files", "/lake/clean", ""), None),
    ],
)
def test_each_kind_of_sink_says_what_it_says_to_the_driver(world: World, entry: OutputEntry, why: str | None) -> None:
    world.shop.run(JOB)
    run = world.store.committed_run(JOB, 1)
    assert run is not None
    run = replace(run, outputs={"out": entry})
    if why is None:
        check_worth_a_replay(world.store, JOB, world.store.head(JOB), run)
        return
    with pytest.raises(ChangeRefusedError) as raised:
        check_worth_a_replay(world.store, JOB, world.store.head(JOB), run)
    assert f"job {JOB!r}: run 1 can't be replayed: {why}" in str(raised.value)
