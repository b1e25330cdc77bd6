"""The verb that takes jobs back with everything downstream of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from airflow_bookmarks.cli import main
from airflow_bookmarks.store.bookmark_store import open_store
from airflow_bookmarks.store.table import Update
from tests.lifecycle.shop import Shop

WHY = ("--reason", "a test", "--yes")


@pytest.fixture
def shop(tmp_path: Path, uri: str) -> Shop:
    """Open a shop in which `report` reads `clean`, and `mail` reads `report`: three runs each."""
    store = open_store(uri)
    store.init()
    shop = Shop(tmp_path, store)
    for name in "abc":
        shop.put(f"{name}.txt", name)
        shop.run("clean")
        shop.run("report", upstream="clean")
        shop.run("mail", upstream="report")
    return shop


def call(uri: str, *words: str, code: int = 0) -> None:
    assert main(["--store", uri, "backfill", *words]) == code


def answer(uri: str, capsys: pytest.CaptureFixture[str], *words: str) -> Any:
    capsys.readouterr()
    call(uri, *words, "--output", "json")
    return json.loads(capsys.readouterr().out)


def epochs(shop: Shop) -> list[int]:
    return [shop.store.head(job).epoch for job in ("clean", "report", "mail")]


def test_plan_is_shown_before_anything_is_changed(shop: Shop, uri: str, capsys: pytest.CaptureFixture[str]) -> None:
    call(uri, "clean", "--to", "1", "--clean", "--dry-run", *WHY)
    said = capsys.readouterr().out.splitlines()
    assert [line.split()[:4] for line in said[1:4]] == [
        ["clean", "run", "1", "2"], ["report", "run", "1", "2"], ["mail", "run", "1", "2"]
    ]  # fmt: skip
    assert "in all: 6 runs undone, read again: 6 files, 12 bytes" in said
    assert "removed by the next runs: 6 published files; there is no undo after that" in said
    assert said[-1] == "then trigger, in this order: by hand (clean, report, mail)"
    assert epochs(shop) == [1, 1, 1]


@pytest.mark.parametrize("hide", [(), ("--hide-state",)], ids=["shown", "hidden"])
def test_plan_says_which_values_of_job_state_change(
    shop: Shop, uri: str, capsys: pytest.CaptureFixture[str], hide: tuple[str, ...]
) -> None:
    for value in (4, 5):
        shop.put(f"{value}.txt", "d")
        run = shop.begin("clean")
        shop.copy(run)
        run.state("cursor").set(value)
        run.commit()
    call(uri, "clean", "--to", "4", "--dry-run", *hide, *WHY)
    before, after = ("(hidden)", "(hidden)") if hide else (5, 4)
    assert f"job.state cursor of clean: {before} -> {after}" in capsys.readouterr().out.splitlines()


def test_jobs_go_back_together(shop: Shop, uri: str, capsys: pytest.CaptureFixture[str]) -> None:
    told = answer(uri, capsys, "clean", "--from-start", *WHY)
    assert (told["jobs"], told["undo_in_order"]) == (3, ["mail", "report", "clean"])
    assert epochs(shop) == [2, 2, 2]
    again = answer(uri, capsys, "clean", "--from-start", *WHY)
    assert (again["jobs"], again["unchanged"]) == (0, ["clean"])


def test_several_jobs_go_back_to_one_time_by_themselves(
    shop: Shop, uri: str, capsys: pytest.CaptureFixture[str]
) -> None:
    second = shop.store.committed_run("mail", 2)
    assert second is not None
    assert second.committed_at is not None
    told = answer(uri, capsys, "clean", "mail", "--only", "--to", second.committed_at, *WHY)
    assert {job: each["to_run"] for job, each in told["by_job"].items()} == {"clean": 2, "mail": 2}
    assert epochs(shop) == [2, 1, 2]


def test_refusal_names_each_job_with_the_reason_and_changes_nothing(
    shop: Shop, uri: str, capsys: pytest.CaptureFixture[str]
) -> None:
    shop.begin("report")
    call(uri, "clean", "--to", "1", *WHY, code=1)
    said = capsys.readouterr().err
    assert "CAN'T GO BACK: report: " in said
    assert "1 of 3 jobs can't go back, so none did. Nothing was changed" in said
    assert epochs(shop) == [1, 1, 1]
    call(uri, "clean", "--to", "1", "--leave", "report", *WHY)
    assert "left out, and keep what they have read of it: report" in capsys.readouterr().err
    assert epochs(shop) == [2, 1, 1]


@pytest.mark.parametrize("words", [["clean"], ["clean", "--to", "1", "--from-start"]])
def test_point_is_said_once(shop: Shop, uri: str, words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    call(uri, *words, *WHY, code=1)
    assert "say either --to POINT or --from-start. Nothing was changed" in capsys.readouterr().err


@pytest.mark.parametrize("price", ["free", "-1", "nan", "inf"])
def test_price_is_a_number(shop: Shop, uri: str, price: str, capsys: pytest.CaptureFixture[str]) -> None:
    call(uri, "clean", "--from-start", f"--cost-per-hour={price}", *WHY, code=2)
    assert "is no price of an hour" in capsys.readouterr().err


def test_cost_is_that_of_runs_as_they_were(shop: Shop, uri: str, capsys: pytest.CaptureFixture[str]) -> None:
    for job in ("clean", "report", "mail"):
        for run in shop.store.runs(job):
            at = {"planned_at": "2026-01-01T00:00:00.000000Z", "published_at": "2026-01-01T01:00:00.000000Z"}
            shop.store.table.transact([Update(shop.store.keys(job).run(run.key), set=at)])
    call(uri, "clean", "--to", "2", "--dry-run", "--cost-per-hour", "1.5", *WHY)
    said = capsys.readouterr().out
    assert "expected time: 3 h, with jobs that don't wait for each other side by side, at a cost of 4.50" in said


def test_nothing_is_done_without_a_yes(shop: Shop, uri: str, capsys: pytest.CaptureFixture[str]) -> None:
    call(uri, "clean", "--to", "1", "--reason", "a test", code=1)
    assert "there is no terminal. Nothing was changed" in capsys.readouterr().err
    assert epochs(shop) == [1, 1, 1]
