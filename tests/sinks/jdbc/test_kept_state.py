"""What earlier versions have committed and not published is published by this one."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from airflow_bookmarks.core.job import RunIdentity
from airflow_bookmarks.lifecycle.changes.change import Change
from airflow_bookmarks.lifecycle.changes.preview import preview
from airflow_bookmarks.lifecycle.protocol.lease import RunEnvironment
from airflow_bookmarks.lifecycle.run.enabled import ActiveRun
from tests.sinks.jdbc.kept_state import JOBS, ROWS, restore

STATES = sorted((Path(__file__).parent / "states").glob("*.json"))


@pytest.mark.parametrize("kept", STATES, ids=lambda path: path.stem)
@pytest.mark.parametrize("job", JOBS)
def test_publish_that_is_due_since_an_earlier_version_is_made(
    kept: Path, job: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, tables = restore(kept, tmp_path)
    monkeypatch.setenv("AIRFLOW_CONN_DW", f"sqlite:///{tables}")
    ActiveRun.begin(store, job, RunIdentity(f"{job}/1", 2), RunEnvironment()).commit()
    with closing(sqlite3.connect(tables)) as connection:
        found = sorted(connection.execute(f"SELECT id, name, version FROM {job}"))
        left = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE name LIKE '_bm_%'")]
    assert found == [*ROWS, *([(9, "old", 0)] if job == "append" else [])]
    assert len(left) == len(JOBS) - 1  # those of the other jobs
    store.table.close()


@pytest.mark.parametrize("kept", STATES, ids=lambda path: path.stem)
@pytest.mark.parametrize("job", JOBS)
def test_output_of_an_earlier_version_tells_whether_it_would_hold_rows_twice(
    kept: Path, job: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, tables = restore(kept, tmp_path)
    monkeypatch.setenv("AIRFLOW_CONN_DW", f"sqlite:///{tables}")
    assert preview(store, job, Change("reset")).twice == ()  # nothing is published yet
    ActiveRun.begin(store, job, RunIdentity(f"{job}/1", 2), RunEnvironment()).commit()
    assert preview(store, job, Change("reset")).twice == (("conn:dw#main.append",) if job == "append" else ())
    store.table.close()
