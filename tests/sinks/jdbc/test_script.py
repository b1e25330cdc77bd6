"""Statements of a script run in the transaction of the publish, once, and only those that a driver has staged."""

from __future__ import annotations

from dataclasses import replace

import pytest

from airflow_bookmarks.core.database.script import PublishScript
from airflow_bookmarks.core.errors import SourceError
from airflow_bookmarks.core.run import RunKey
from airflow_bookmarks.databases.login import DatabaseLogin
from airflow_bookmarks.sinks.sink import PublishSteps
from airflow_bookmarks.store.blobs import BlobStore
from airflow_bookmarks.testing.sink_ground import JOB, NAME
from tests.sinks.jdbc.table_ground import TableGround

_STEPS = PublishSteps(lambda: None, lambda: 0.0)
DELETE = PublishScript(("DELETE FROM dim WHERE id = 1",), ("UPDATE dim SET name = 'seen' WHERE id = 2",))


@pytest.fixture
def ground(database_login: DatabaseLogin, blobs: BlobStore) -> TableGround:
    return TableGround(database_login, blobs, columns=(("id", "int"), ("name", "varchar(20)")), script=DELETE)


def test_statements_run_around_the_rows_and_once(ground: TableGround) -> None:
    ground.execute(f"INSERT INTO {ground.sql(ground.table)} VALUES (1, 'old')")
    output = ground.staged_output(RunKey(1, 1), [(2, "new")])
    assert ground.all_rows() == [(1, "old")]

    for _ in range(2):
        publication = ground.sink.prepare(output)
        assert publication is not None
        assert publication.publish(lambda what: None, _STEPS) == 1

    assert ground.all_rows() == [(2, "seen")]


def test_statement_that_fails_leaves_the_target_as_it_was(ground: TableGround) -> None:
    ground.execute(f"INSERT INTO {ground.sql(ground.table)} VALUES (1, 'old')")
    broken = replace(ground.target, script=PublishScript(DELETE.before, ("UPDATE nowhere SET a = 1",)))
    ground.target, ground.request = broken, replace(ground.request, stats=broken.stats())
    publication = ground.sink.prepare(ground.staged_output(RunKey(1, 1), [(2, "new")]))
    assert publication is not None

    with pytest.raises(SourceError):
        publication.publish(lambda what: None, _STEPS)

    assert ground.all_rows() == [(1, "old")]


def test_statements_that_somebody_put_into_the_state_are_not_run(ground: TableGround) -> None:
    ground.execute(f"INSERT INTO {ground.sql(ground.table)} VALUES (1, 'old')")
    output = ground.staged_output(RunKey(1, 1), [(2, "new")])
    entry = replace(output.entry, stats={**output.entry.stats, "run_before": ["DELETE FROM dim"]})
    run = replace(output.run, outputs={NAME: entry})
    publication = ground.sink.prepare(replace(output, run=run))
    assert publication is not None

    with pytest.raises(SourceError, match="are not those that the run has staged"):
        publication.publish(lambda what: None, _STEPS)

    assert ground.all_rows() == [(1, "old")]


def test_sweep_removes_the_digest_with_the_stage_table(ground: TableGround) -> None:
    ground.staged_output(RunKey(1, 1), [(2, "new")])
    _, root = ground.sink.stage(JOB, RunKey(1, 1), NAME, ground.request)
    assert root is not None

    ground.sink.sweep(JOB, root, 1)

    assert ground.rows(f"SELECT * FROM {ground.sql(ground.table.beside('_bookmarks_statements'))}") == []
