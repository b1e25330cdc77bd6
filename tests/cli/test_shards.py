"""The command line and sharded jobs: one name, one question, one line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from airflow_bookmarks.cli import main
from airflow_bookmarks.store.bookmark_store import open_store
from airflow_bookmarks.store.table import Update
from tests.lifecycle.run.test_shards import Task, numbers_of, put
from tests.lifecycle.shop import Shop

BEGUN = 6


@pytest.fixture
def shop(tmp_path: Path, uri: str) -> Shop:
    """Return a shop with a sharded job, `copy`, of which six shards have begun, and one that is whole."""
    store = open_store(uri)
    store.init()
    shop = Shop(tmp_path, store)
    put(shop, names_in_shards(shop))
    Task(shop).run(f"0:{BEGUN}")
    shop.run("whole")
    return shop


def names_in_shards(shop: Shop) -> list[str]:
    """Return 40 names of files: shard 0 has two of them, each other one that begins has one.

    Which shard a file belongs to depends on the folder of the test.
    """
    names = [f"f{i}" for i in range(4000)]
    by_shard: dict[int, list[str]] = {}
    for name, number in zip(names, numbers_of(shop, names), strict=True):
        by_shard.setdefault(number, []).append(name)
    begun = [name for number in range(BEGUN) for name in by_shard[number][: 2 if number == 0 else 1]]
    others = [name for number in range(BEGUN, 64) for name in by_shard[number]]
    return [*begun, *others[: 40 - len(begun)]]


def answer(capsys: pytest.CaptureFixture[str], *arguments: str) -> Any:
    """Run a verb that succeeds; return what it printed as JSON."""
    assert main([*arguments, "--output", "json"]) == 0
    return json.loads(capsys.readouterr().out)


# ---- list


def test_list_shows_a_sharded_job_as_one_line(shop: Shop, uri: str, capsys: pytest.CaptureFixture[str]) -> None:
    sharded, whole = answer(capsys, "--store", uri, "list")

    each = [row for row in answer(capsys, "--store", uri, "list", "--shards") if row["job"] != "whole"]
    assert [row["job"] for row in each] == [f"copy~{number:02}" for number in range(BEGUN)]
    assert (sharded["job"], sharded["shards"], sharded["run_number"]) == ("copy", BEGUN, 1)
    assert sharded["last_commit_at"] == max(row["last_commit_at"] for row in each)
    assert sharded["watermark"] == max((row["watermark"] for row in each), key=len)
    assert sharded["version"] == sum(row["version"] for row in each)
    assert (whole["job"], whole["shards"]) == ("whole", None)
    assert set(each[0]) <= set(sharded)


def test_list_counts_the_shards_that_are_held_due_or_damaged(
    shop: Shop, uri: str, capsys: pytest.CaptureFixture[str]
) -> None:
    shop.begin("copy~03").commit()
    shop.begin("copy~03")
    head = shop.store.keys("copy~02").head
    shop.store.table.transact([Update(head, set={"epoch": "not a number"})])

    (sharded, _) = answer(capsys, "--store", uri, "list")

    assert (sharded["held_shards"], sharded["due_shards"], sharded["damaged_shards"]) == (1, 0, 1)
    assert sharded["run_number"] is None  # they differ
    assert sharded["lease"]["run_id"]
    assert "copy~02" in sharded["damaged"]


def test_table_of_jobs_has_columns_of_shards_only_where_one_is_sharded(
    shop: Shop, uri: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--store", uri, "list"]) == 0
    heading, *lines = capsys.readouterr().out.splitlines()
    assert "HELD SHARDS" in heading
    assert [line.split()[0] for line in lines] == ["copy", "whole"]

    assert main(["--store", uri, "list", "--shards"]) == 0
    heading, *lines = capsys.readouterr().out.splitlines()
    assert "SHARDS" not in heading
    assert len(lines) == BEGUN + 1


def test_job_that_has_a_bookmark_as_a_whole_is_not_taken_for_its_shards(
    shop: Shop, uri: str, capsys: pytest.CaptureFixture[str]
) -> None:
    shop.run("copy")

    assert len(answer(capsys, "--store", uri, "list")) == 1 + BEGUN + 1


# ---- reset


def test_reset_of_a_sharded_job_asks_once_and_changes_each_shard(
    shop: Shop, uri: str, capsys: pytest.CaptureFixture[str]
) -> None:
    reset = ["--store", uri, "reset", "copy", "--reason", "wrong delivery", "--yes", "--output", "json"]

    assert main(reset) == 0

    printed = capsys.readouterr()
    done = json.loads(printed.out)
    assert (done["job"], done["shards"], done["undone_run_count"]) == ("copy", BEGUN, BEGUN)
    assert "sharded job 'copy'" in printed.err
    assert f"before its first run, in {BEGUN} virtual shards: {BEGUN} runs are undone" in printed.err
    assert "    copy~0" in printed.err  # shards that differ
    assert [event["why"] for event in shop.store.events("copy~00")] == ["wrong delivery"]

    assert main(reset) == 0
    printed = capsys.readouterr()
    assert f"stands there already, in each of its {BEGUN} virtual shards" in printed.err
    assert json.loads(printed.out)["shards"] == 0


def test_dry_run_of_a_sharded_job_prints_the_sentences_of_the_change_itself(
    shop: Shop, uri: str, capsys: pytest.CaptureFixture[str]
) -> None:
    reset = ["--store", uri, "reset", "copy", "--reason", "why"]
    assert main([*reset, "--dry-run"]) == 0

    preview = capsys.readouterr().out
    assert f"before its first run, in {BEGUN} virtual shards: {BEGUN} runs are undone" in preview
    assert sum(line.count("copy~0") for line in preview.splitlines()[1:] if "1 run is undone" in line) == BEGUN
    assert shop.store.events("copy~00") == []

    assert main([*reset, "--yes"]) == 0
    assert capsys.readouterr().err.startswith(preview)


def test_shard_that_is_held_ends_with_1_and_nothing_changed(
    shop: Shop, uri: str, capsys: pytest.CaptureFixture[str]
) -> None:
    shop.begin("copy~03")

    assert main(["--store", uri, "reset", "copy", "--reason", "why", "--yes"]) == 1

    assert "Nothing was changed in any shard" in capsys.readouterr().err
    assert shop.store.events("copy~00") == []


def test_request_for_a_sharded_job_is_refused(shop: Shop, uri: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--store", uri, "reset", "copy", "--reason", "why", "--request"]) == 1

    assert "a request is of one virtual shard" in capsys.readouterr().err


def test_change_that_takes_one_bookmark_says_that_the_job_is_sharded(
    shop: Shop, uri: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--store", uri, "undo", "copy", "--reason", "why", "--yes"]) == 1

    assert "'copy' is sharded" in capsys.readouterr().err


def test_rewind_of_a_sharded_job_takes_a_time_and_no_run_number(
    shop: Shop, uri: str, capsys: pytest.CaptureFixture[str]
) -> None:
    at = max(answer(capsys, "--store", uri, "history", f"copy~{n:02}")[0]["committed_at"] for n in range(BEGUN))
    put(shop, ["later1", "later2"])
    Task(shop).run(f"0:{BEGUN}")
    rewind = ["--store", uri, "rewind", "copy", "--reason", "why", "--yes", "--output", "json", "--to"]

    assert main([*rewind, "1"]) == 1
    assert "is another one in each of its virtual shards" in capsys.readouterr().err
    assert main([*rewind, at]) == 0

    printed = capsys.readouterr()
    assert f"goes back to {at!r}, in {BEGUN} virtual shards: {BEGUN} runs are undone" in printed.err
    assert {each["to_run"] for each in json.loads(printed.out)["by_shard"].values()} == {1}
