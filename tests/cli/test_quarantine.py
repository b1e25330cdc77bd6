"""What a person sees of quarantined files, and how they are asked for again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from airflow_bookmarks.cli import main
from airflow_bookmarks.sources.files.planner import FileSource
from airflow_bookmarks.store.bookmark_store import open_store
from tests.lifecycle.shop import FILES, Shop

JOB = "copy"


@pytest.fixture
def shop(tmp_path: Path, uri: str) -> Shop:
    """Open a shop with one run, which could not parse one of its two files."""
    store = open_store(uri)
    store.init()
    shop = Shop(tmp_path, store)
    shop.put("a.txt", "a")
    broken = shop.put("b.txt", "b")
    run = shop.begin(JOB)
    run.plan("raw", FileSource(FILES, [str(shop.raw)]))
    run.quarantine("raw", {str(broken): "1 of 2 records do not fit the schema"})
    run.commit()
    return shop


def answer(uri: str, capsys: pytest.CaptureFixture[str], *words: str, code: int = 0) -> Any:
    assert main(["--store", uri, *words, "--output", "json"]) == code
    return json.loads(capsys.readouterr().out)


def test_quarantined_files_are_listed_with_their_errors(
    shop: Shop, uri: str, capsys: pytest.CaptureFixture[str]
) -> None:
    [row] = answer(uri, capsys, "files", JOB, "--quarantined")

    assert (row["ctx"], Path(row["path"]).name, row["run_number"]) == ("raw", "b.txt", 1)
    assert row["error"] == "1 of 2 records do not fit the schema"
    assert answer(uri, capsys, "files", JOB, "--quarantined", "--ctx", "other") == []
    assert [Path(row["path"]).name for row in answer(uri, capsys, "files", JOB, "--run", "1")] == ["a.txt"]


@pytest.mark.parametrize("words", [[], ["--run", "1", "--quarantined"]])
def test_files_are_those_of_a_run_or_those_in_quarantine(
    shop: Shop, uri: str, capsys: pytest.CaptureFixture[str], words: list[str]
) -> None:
    assert main(["--store", uri, "files", JOB, *words]) == 1
    assert "either --run RUN or --quarantined" in capsys.readouterr().err


def test_show_counts_them_for_each_context(shop: Shop, uri: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert answer(uri, capsys, "show", JOB)["contexts"]["raw"]["quarantined"] == 1


def test_job_with_such_files_is_paused_in_the_list_and_for_monitors(
    shop: Shop, uri: str, capsys: pytest.CaptureFixture[str]
) -> None:
    why = "1 file set aside because they can't be parsed"

    [row] = answer(uri, capsys, "list")
    [troubled] = answer(uri, capsys, "check", "--health", code=1)

    assert row["health"] == "PAUSED"
    assert (troubled["job"], troubled["health"], troubled["reason"]) == (JOB, "PAUSED", why)


def test_pending_names_them_under_their_reason(shop: Shop, uri: str, capsys: pytest.CaptureFixture[str]) -> None:
    [context] = answer(uri, capsys, "pending", JOB, "--skipped")["contexts"]

    assert context["skipped"] == {"quarantined": 1}
    assert [(row["reason"], Path(row["path"]).name) for row in context["skipped_files"]] == [("quarantined", "b.txt")]


def test_set_asks_for_one_again_by_name(shop: Shop, uri: str, capsys: pytest.CaptureFixture[str]) -> None:
    why = ("--reason", "mended", "--yes")
    assert main(["--store", uri, "set", JOB, "raw", "retry:/nowhere", *why]) == 1
    assert "no such file of this context is in quarantine" in capsys.readouterr().err

    answer(uri, capsys, "set", JOB, "raw", f"retry:{shop.raw / 'b.txt'}", *why)

    assert answer(uri, capsys, "files", JOB, "--quarantined") == []
    assert "quarantined" not in answer(uri, capsys, "show", JOB)["contexts"]["raw"]
    assert answer(uri, capsys, "pending", JOB)["files"] == 1
