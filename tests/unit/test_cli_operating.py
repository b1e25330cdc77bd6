"""Verbs with which a person operates jobs: changes with their preview, files of a run, doctor and gc."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from airflow_bookmarks.cli import main
from airflow_bookmarks.store.bookmark_store import open_store
from airflow_bookmarks.store.table import Delete
from tests.lifecycle.shop import Shop

JOB = "copy"
WHY = ("--reason", "a test", "--yes")


@pytest.fixture
def uri(tmp_path: Path) -> str:
    """Name a store in a file."""
    return f"sqlite:///{tmp_path}/bookmarks.db"


@pytest.fixture
def shop(tmp_path: Path, uri: str) -> Shop:
    """Open a shop with three runs of one file each."""
    store = open_store(uri)
    store.init()
    shop = Shop(tmp_path, store)
    for second, name in enumerate("abc", 1):
        shop.put(f"{name}.txt", name, seconds=1_700_000_000 + second)
        shop.run(JOB)
    return shop


def call(uri: str, *words: str, code: int = 0) -> None:
    assert main(["--store", uri, *words]) == code


def answer(uri: str, capsys: pytest.CaptureFixture[str], *words: str, code: int = 0) -> Any:
    call(uri, *words, "--output", "json", code=code)
    return json.loads(capsys.readouterr().out)


def test_preview_is_shown_before_a_change(shop: Shop, uri: str, capsys: pytest.CaptureFixture[str]) -> None:
    shop.run("report", upstream=JOB)
    call(uri, "rewind", JOB, "--to", "1", "--clean", *WHY)

    said = capsys.readouterr().err
    assert "2 runs are undone (2, 3)" in said
    assert "read again: 2 files, 4 bytes, " not in said  # rows of a run without counts are not made up
    assert "read again: 2 files, 4 bytes" in said
    assert "removed by the next run: 2 published files" in said
    assert "consumer report has read up to run 3" in said


def test_rewind_takes_a_time_or_a_watermark(shop: Shop, uri: str, capsys: pytest.CaptureFixture[str]) -> None:
    done = answer(uri, capsys, "rewind", JOB, "--to", "watermark:2023-11-14T22:13:22Z", *WHY)
    assert done["to_run"] == 2
    committed = shop.store.committed_run(JOB, 1)
    assert committed is not None
    assert committed.committed_at is not None
    done = answer(uri, capsys, "rewind", JOB, "--to", committed.committed_at, *WHY)
    assert done["to_run"] == 1
    call(uri, "rewind", JOB, "--to", "2013-01-01T00:00:00Z", *WHY, code=1)
    assert "no living run" in capsys.readouterr().err
    call(uri, "rewind", JOB, "--to", "2013-01-01", *WHY, code=1)
    assert "without a zone" in capsys.readouterr().err


def test_single_context_is_reset(shop: Shop, uri: str, capsys: pytest.CaptureFixture[str]) -> None:
    done = answer(uri, capsys, "reset", JOB, "--ctx", "raw", *WHY)
    assert done["undone_runs"] == 0
    assert shop.store.head(JOB).contexts == {}
    call(uri, "reset", JOB, "--ctx", "rwa", *WHY, code=1)
    assert "has no context 'rwa'" in capsys.readouterr().err


def test_set_and_undo(shop: Shop, uri: str, capsys: pytest.CaptureFixture[str]) -> None:
    shop.put("d.txt", "d")
    call(uri, "set", JOB, "raw", "now", *WHY)
    call(uri, "undo", JOB, *WHY)
    assert shop.run(JOB)[0] == ["d"]
    call(uri, "set", JOB, "raw", "soon", *WHY, code=1)
    assert "neither 'now' nor a time" in capsys.readouterr().err


def test_unlock_frees_the_job(shop: Shop, uri: str, capsys: pytest.CaptureFixture[str]) -> None:
    shop.begin(JOB, run_id="dead")
    assert answer(uri, capsys, "unlock", JOB, "--reason", "it is dead")["held_by"] == "dead"
    call(uri, "unlock", JOB, "--reason", "again", code=1)
    assert "nobody holds it" in capsys.readouterr().err


def test_replay_says_what_to_submit(shop: Shop, uri: str, capsys: pytest.CaptureFixture[str]) -> None:
    told = answer(uri, capsys, "replay", JOB, "--run", "2")
    assert told["conf"] == {"spark.bookmarks.job": JOB, "spark.bookmarks.replay": "2"}
    call(uri, "replay", JOB, "--run", "9", code=1)


def test_files_of_a_run_are_listed(shop: Shop, uri: str, capsys: pytest.CaptureFixture[str]) -> None:
    rows = answer(uri, capsys, "files", JOB, "--run", "2")
    assert [(row["ctx"], Path(row["path"]).name, row["bytes"]) for row in rows] == [("raw", "b.txt", 2)]


def test_doctor_finds_nothing_in_a_healthy_state(shop: Shop, uri: str, capsys: pytest.CaptureFixture[str]) -> None:
    call(uri, "doctor")
    assert capsys.readouterr().out == "clean: nothing found\n"
    assert answer(uri, capsys, "doctor", JOB) == []


def test_doctor_names_damage_and_repairs_what_is_safe(shop: Shop, uri: str, capsys: pytest.CaptureFixture[str]) -> None:
    shop.store.table.transact([Delete(shop.store.keys(JOB).index)])
    found = answer(uri, capsys, "doctor", JOB, code=1)
    assert [finding["code"] for finding in found] == ["index-missing"]
    call(uri, "doctor", JOB, "--repair")
    call(uri, "doctor")


def test_gc_says_what_it_would_remove(shop: Shop, uri: str, capsys: pytest.CaptureFixture[str]) -> None:
    told = answer(uri, capsys, "gc", "--dry-run", "--retention-days", "30")
    assert (told["is_dry_run"], told["runs"]) == (True, 0)
    call(uri, "gc", "--retention-days", "0", code=2)
