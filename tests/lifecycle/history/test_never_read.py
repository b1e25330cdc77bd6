"""Promise RESET-5: a position that is set ahead names what no run will ever read."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from airflow_bookmarks.core.files.listed_partitions import ListedPartitions
from airflow_bookmarks.core.selection.bound import Bound
from airflow_bookmarks.lifecycle.changes.change import Change, set_position
from airflow_bookmarks.lifecycle.changes.preview import preview
from airflow_bookmarks.lifecycle.inspect.never_read import NeverReadInput
from airflow_bookmarks.sources.files.options import FileOptions
from airflow_bookmarks.sources.files.planner import FileSource
from tests.lifecycle.shop import FILES, Shop

WHY: dict[str, Any] = {"reason": "bad day", "who": "me"}
OLD, NEW = 1_700_000_000, 1_700_100_000


def behind(shop: Shop) -> None:
    """Let one file be read, and two more land."""
    shop.put("a.txt", "a", seconds=OLD)
    shop.run()
    shop.put("b.txt", "bb", seconds=OLD)
    shop.put("c.txt", "ccc", seconds=NEW)


def seen(shop: Shop, value: str, job: str = "copy") -> NeverReadInput | None:
    return preview(shop.store, job, Change("set", ctx="raw", value=value)).never_read


def test_set_to_now_names_the_files_that_no_run_will_read(shop: Shop) -> None:
    behind(shop)
    shop.run("down", upstream="copy")
    found = seen(shop, "now")
    assert found == NeverReadInput(files=2, bytes=7, consumers=("down",))
    told = preview(shop.store, "copy", Change("set", ctx="raw", value="now")).as_dict()["never_read"]
    amount: dict[str, Any] = {"files": 2, "bytes": 7, "rows": None, "amounts": {}, "unknown": None}
    assert told == {**amount, "runs": [], "consumers": ["down"]}
    set_position(shop.store, "copy", "raw", "now", **WHY)
    assert shop.run()[0] == []


def test_set_to_a_time_names_only_what_is_older_and_was_not_read(shop: Shop) -> None:
    behind(shop)
    assert seen(shop, "2023-11-15T00:00:00Z") == NeverReadInput(files=1, bytes=3)
    assert seen(shop, "2013-01-01T00:00:00Z") == NeverReadInput(files=0, bytes=0)


def test_set_of_a_table_whose_partitions_a_catalog_lists_does_not_guess(shop: Shop) -> None:
    shop.put("day-1/a.txt", "a")
    listed = ListedPartitions({"day": "string"}, {f"{shop.raw}/day-1": ("1",)})
    run = shop.begin()
    run.plan("raw", FileSource(FILES, [str(shop.raw)], listed=listed))
    run.commit()
    found = seen(shop, "now")
    assert found is not None
    assert (found.files, found.unknown) == (
        None,
        "can't be counted: a catalog lists its partitions, and only the script, in Spark, asks it for new ones",
    )


def test_set_of_a_job_that_is_up_to_date_names_nothing(shop: Shop) -> None:
    shop.put("a.txt", "a")
    shop.run()
    assert seen(shop, "now") == NeverReadInput(files=0, bytes=0)
    assert preview(shop.store, "copy", Change("reset")).never_read is None


def test_what_a_bound_or_settling_left_to_later_runs_is_never_read_either(shop: Shop) -> None:
    for name in "abcd":
        shop.put(f"{name}.txt", name)
    run = shop.begin()
    run.plan("raw", FileSource(FILES, [str(shop.raw)], replace(FileOptions(), bound=Bound.of(max_files=1))))
    run.commit()
    assert seen(shop, "now") == NeverReadInput(files=3, bytes=6)


def test_set_of_a_consumer_names_the_runs_of_its_upstream(shop: Shop) -> None:
    for name in "abc":
        shop.put(f"{name}.txt", name)
        shop.run("up")
        if name == "a":
            shop.run("down", upstream="up")
    assert seen(shop, "now", "down") == NeverReadInput(files=2, bytes=4, runs=(2, 3))
    assert seen(shop, "2", "down") == NeverReadInput(files=1, bytes=2, runs=(2,))
    assert seen(shop, "1", "down") == NeverReadInput(files=0, bytes=0)


def test_source_that_cannot_be_looked_at_is_not_known(shop: Shop) -> None:
    shop.put("a.txt", "a")
    shop.run("up")
    shop.run("down", upstream="up")
    shop.put("b.txt", "b")
    shop.run("up")
    for path in Path(shop.root / "up").rglob("run-2.*"):
        path.unlink() if path.is_file() else None
    found = seen(shop, "now", "down")
    assert found is not None
    assert (found.files, found.bytes) == (None, None)
    assert found.unknown is not None
    assert found.unknown.startswith("can't be counted: ")
    assert "are gone" in found.unknown
