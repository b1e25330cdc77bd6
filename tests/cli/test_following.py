"""The verbs pending, lag and graph: tables for people, JSON for programs, exit codes."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from airflow_bookmarks.cli import main
from airflow_bookmarks.core.files.listed_partitions import ListedPartitions
from airflow_bookmarks.core.rules.lag import LagState
from airflow_bookmarks.lifecycle.changes.change import reset
from airflow_bookmarks.sources.files.options import FileOptions
from airflow_bookmarks.sources.files.planner import FileSource
from airflow_bookmarks.store.bookmark_store import open_store
from tests.lifecycle.shop import FILES, Shop

JOB = "copy"


@pytest.fixture
def shop(tmp_path: Path, uri: str) -> Shop:
    """Open a shop with one run of one file, and a consumer that has read it."""
    store = open_store(uri)
    store.init()
    shop = Shop(tmp_path, store)
    shop.put("a.txt", "a")
    shop.run(JOB)
    shop.run("report", upstream=JOB)
    return shop


def call(uri: str, *words: str, code: int = 0) -> None:
    assert main(["--store", uri, *words]) == code


def answer(uri: str, capsys: pytest.CaptureFixture[str], *words: str, code: int = 0) -> Any:
    call(uri, *words, "--output", "json", code=code)
    return json.loads(capsys.readouterr().out)


def test_pending_is_a_table_of_contexts(shop: Shop, uri: str, capsys: pytest.CaptureFixture[str]) -> None:
    shop.put("b.txt", "bb", seconds=1_700_000_100)
    call(uri, "pending", JOB)
    head, row = capsys.readouterr().out.splitlines()
    assert head.split()[:3] == ["CTX", "FILES", "BYTES"]
    assert row.split()[:4] == ["raw", "1", "3", "2023-11-14T22:15:00.000000Z"]
    assert answer(uri, capsys, "pending", JOB)["files"] == 1


def test_pending_says_that_nothing_is_new(shop: Shop, uri: str, capsys: pytest.CaptureFixture[str]) -> None:
    call(uri, "pending", JOB)
    assert capsys.readouterr().out.splitlines()[-1] == "nothing new"


def test_pending_says_what_is_not_known(shop: Shop, uri: str, capsys: pytest.CaptureFixture[str]) -> None:
    call(uri, "pending", "no.such")
    assert "unknown: no bookmark named 'no.such'" in capsys.readouterr().out
    (shop.raw / "a.txt").unlink()
    shop.raw.rmdir()
    call(uri, "pending", JOB)
    said = capsys.readouterr().out
    assert "unknown: context 'raw'" in said
    assert "nothing new" not in said
    assert answer(uri, capsys, "pending", JOB)["is_known"] is False


def test_pending_says_that_partitions_of_a_catalog_are_known_to_spark_alone(
    shop: Shop, uri: str, capsys: pytest.CaptureFixture[str]
) -> None:
    shop.put("clicks/a.txt", "a")
    run = shop.begin("clicks")
    listed = ListedPartitions({"day": "string"}, {f"{shop.raw}/clicks": ("1",)})
    run.plan("clicks", FileSource(FILES, [str(shop.raw)], listed=listed))
    run.commit()
    call(uri, "pending", "clicks")
    said = capsys.readouterr().out
    assert "unknown: context 'clicks': a catalog lists its partitions, and only the script" in said
    assert "nothing new" not in said


def test_pending_says_who_is_at_work(shop: Shop, uri: str, capsys: pytest.CaptureFixture[str]) -> None:
    run = shop.begin(JOB, run_id="at work")
    call(uri, "pending", JOB)
    assert "'at work' is at work" in capsys.readouterr().out
    run.abort("a test")


def test_skipped_files_are_listed_on_demand(shop: Shop, uri: str, capsys: pytest.CaptureFixture[str]) -> None:
    run = shop.begin(JOB)
    run.plan("raw", FileSource(FILES, [str(shop.raw)], FileOptions(late_after=timedelta(hours=1))))
    run.commit()
    shop.put("late.txt", "late", seconds=1_600_000_000)
    call(uri, "pending", JOB)
    assert "late.txt" not in capsys.readouterr().out
    call(uri, "pending", JOB, "--skipped")
    assert "late.txt" in capsys.readouterr().out
    (context,) = answer(uri, capsys, "pending", JOB, "--skipped")["contexts"]
    assert [file["reason"] for file in context["skipped_files"]] == ["late"]


def test_many_runs_of_an_upstream_fit_in_a_cell(shop: Shop, uri: str, capsys: pytest.CaptureFixture[str]) -> None:
    for number in range(7):
        shop.put(f"{number}.txt", "more")
        shop.run(JOB)
    call(uri, "pending", "report")
    assert "2 ... 8 (7)" in capsys.readouterr().out
    assert answer(uri, capsys, "pending", "report")["contexts"][0]["runs"] == list(range(2, 9))


def test_lag_of_all_jobs_and_of_one(shop: Shop, uri: str, capsys: pytest.CaptureFixture[str]) -> None:
    call(uri, "lag")
    head, row = capsys.readouterr().out.splitlines()
    assert head.split()[:3] == ["JOB", "SOURCE", "STATE"]
    assert row.split()[:6] == ["report", "copy", "OK", "1", "1", "0"]
    assert [each["kind"] for each in answer(uri, capsys, "lag", JOB)] == ["files"]
    call(uri, "lag", "no.such", code=1)
    assert "no bookmark named 'no.such'" in capsys.readouterr().err


def test_check_exits_with_1_where_something_is_not_ok(shop: Shop, uri: str, capsys: pytest.CaptureFixture[str]) -> None:
    call(uri, "lag", "--check")
    reset(shop.store, JOB, reason="a test", who="me")
    capsys.readouterr()
    assert answer(uri, capsys, "lag", "--check", code=1)[0]["state"] == LagState.REWOUND.value
    call(uri, "lag", "--check", "report", code=1)
    call(uri, "lag")


def test_graph_is_a_tree_a_diagram_or_data(shop: Shop, uri: str, capsys: pytest.CaptureFixture[str]) -> None:
    call(uri, "graph")
    assert capsys.readouterr().out.splitlines() == [
        "report",
        "└── copy  [OK]",
        f"    └── files:{shop.raw}",
    ]
    call(uri, "graph", JOB, "--format", "mermaid")
    assert capsys.readouterr().out.startswith("flowchart LR\n")
    assert [node["name"] for node in answer(uri, capsys, "graph", "report")["nodes"]][:2] == ["copy", "report"]
    call(uri, "graph", "no.such", code=1)
    call(uri, "graph", "--format", "mermaid", "--output", "json", code=1)
    call(uri, "graph", "--format", "picture", code=2)
