"""The step of the demo with databases: it counts for itself, and says so where no database is there."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from airflow_bookmarks.store.bookmark_store import open_store
from demo import orders
from demo.orders import play_orders
from demo.report import Report
from tests.quick_spark import with_java_options
from tools import servers
from tools.servers import DatabaseServer, has_databases


@pytest.mark.seldom
@pytest.mark.spark
@pytest.mark.slow
def test_orders_are_each_once_in_the_report_and_the_greatest_id_would_have_lost_one(
    postgresql_server: DatabaseServer, tmp_path: Path
) -> None:
    uri = f"sqlite:///{tmp_path}/bookmarks.db"
    store = open_store(uri)
    store.init()
    settings = {**os.environ, **with_java_options("-Dspark.ui.enabled=false -Dspark.sql.shuffle.partitions=2")}
    said: list[str] = []

    shown = play_orders(uri, store, settings, str(tmp_path / "orders"), tmp_path / "log", said.append)

    assert "5 orders, each once in the report" in shown
    assert "would have lost order 4" in shown
    assert [line.strip().split(":")[0] for line in said] == [
        "step 7",
        "order 4 is written, and not committed; order 5 is committed",
        "3 orders in the report",
        "order 4 is committed, order 1 is changed, order 2 is deleted",
        said[-1].strip(),
    ]


def test_step_is_left_out_where_there_is_no_database_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(orders, "has_databases", lambda *_: False)
    store = open_store("sqlite:///:memory:")
    report, said = Report(), list[str]()

    report.notes.append(play_orders("", store, {}, "", tmp_path / "log", said.append))

    assert said == report.notes
    assert report.table().endswith("left out: PostgreSQL is not installed here; 'make databases' installs it")


def test_databases_are_looked_for_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    def program(name: str) -> str:
        if name.startswith("mariadb"):
            raise FileNotFoundError(name)
        return name

    monkeypatch.setattr(servers, "_database_program", program)

    assert has_databases("postgresql")
    assert not has_databases("mariadb")
    assert not has_databases()
