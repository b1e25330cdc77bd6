"""`on_published` in a script: what becomes of read files once their run is published."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from airflow_bookmarks.core.errors import MisuseError, OptionError
from tests.spark.lake import Lake, lines_of

pytestmark = pytest.mark.needs("observations")


def run(lake: Lake, **kwargs: Any) -> list[str]:
    with lake.job() as job:
        return lines_of(lake.read(job, **kwargs))


def names(folder: str) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in Path(folder).rglob("*") if path.is_file())


def test_read_files_are_deleted_once_their_run_is_published(lake: Lake) -> None:
    lake.put("a.txt", "a")

    assert run(lake, on_published="delete") == ["a"]

    assert names(lake.path("raw")) == []
    lake.put("b.txt", "b")
    assert run(lake, on_published="delete") == ["b"]


def test_read_files_are_archived(lake: Lake) -> None:
    lake.put("day=1/a.txt", "a")

    run(lake, on_published="archive", archive_to=lake.path("done"))

    assert names(lake.path("done")) == ["day=1/a.txt"]
    assert names(lake.path("raw")) == []


@pytest.mark.seldom
@pytest.mark.parametrize("verb", [{"on_published": "delete"}, {"on_published": "archive", "archive_to": "done"}])
def test_files_that_no_action_read_stay_for_good_with_a_warning(
    lake: Lake, caplog: pytest.LogCaptureFixture, verb: dict[str, str]
) -> None:
    if "archive_to" in verb:
        verb = {**verb, "archive_to": lake.path("done")}
    lake.put("a.txt", "a")

    with lake.job() as job:
        lake.read(job, **verb)

    assert names(lake.path("raw")) == ["a.txt"]
    assert "1 planned files stay, because no action has read the frame" in caplog.text
    lake.put("b.txt", "b")
    assert run(lake, **verb) == ["b"]
    assert names(lake.path("raw")) == ["a.txt"]  # as a leftover of the run before it would go unread


@pytest.mark.parametrize("is_used", [True, False], ids=["used", "unused"])
def test_files_stay_where_the_read_that_would_delete_them_was_refused(lake: Lake, is_used: bool) -> None:
    lake.put("a.txt", "a")
    with lake.job() as job:
        with pytest.raises(OptionError, match="gaps"):
            job.read("raw").files(on_published="delete", gaps=True).text(lake.path("raw"))
        frame = job.read("raw").text(lake.path("raw"))
        if is_used:
            job.write(frame, "out").text(lake.path("copy"))
    assert (lake.root / "raw" / "a.txt").exists()
    with lake.job(start="now") as job:  # a later run with it takes what it has read itself, and no more
        lake.put("b.txt", "b")
        job.write(job.read("raw").files(on_published="delete").text(lake.path("raw")), "out").text(lake.path("copy"))
    assert sorted(path.name for path in (lake.root / "raw").iterdir()) == ["a.txt"]


def test_files_stay_where_a_second_read_that_would_delete_them_is_refused(lake: Lake) -> None:
    lake.put("a.txt", "a")
    with lake.job() as job:
        reader = job.read("raw")
        reader.text(lake.path("raw"))
        with pytest.raises(MisuseError, match="read twice"):
            reader.files(on_published="delete").text(lake.path("raw"))
    assert (lake.root / "raw" / "a.txt").exists()


@pytest.mark.parametrize("partly", ["take", "isEmpty", "limit"])
def test_files_that_were_read_in_part_stay(lake: Lake, caplog: pytest.LogCaptureFixture, partly: str) -> None:
    for name in "abc":
        lake.put(f"{name}.txt", *[name] * 50)

    with lake.job() as job:
        raw = lake.read(job, on_published="delete")
        if partly == "limit":
            job.write(raw.limit(2), "out").text(lake.path("out"))
        else:
            getattr(raw, partly)(*([1] if partly == "take" else []))

    assert names(lake.path("raw")) == ["a.txt", "b.txt", "c.txt"]
    assert "3 planned files stay, because no action is known to have read it to its end" in caplog.text


def test_files_go_whose_frame_was_looked_at_first_and_written_then(lake: Lake) -> None:
    lake.put("a.txt", *["a"] * 50)
    lake.put("b.txt", *["b"] * 50)

    with lake.job() as job:
        raw = lake.read(job, on_published="delete")
        assert not raw.isEmpty()
        job.write(raw.where("value = 'a'").orderBy("value"), "out").text(lake.path("out"))

    assert names(lake.path("raw")) == []


def test_files_go_whose_cached_frame_was_filled_and_written(lake: Lake) -> None:
    lake.put("a.txt", *["a"] * 50)
    lake.put("b.txt", *["b"] * 50)

    with lake.job() as job:
        raw = lake.read(job, on_published="delete").cache()
        raw.count()
        job.write(raw.distinct(), "out").text(lake.path("out"))

    assert names(lake.path("raw")) == []


def test_files_whose_write_failed_and_was_caught_stay(lake: Lake) -> None:
    lake.put("a.txt", *["a"] * 50)
    lake.spark.conf.set("spark.sql.ansi.enabled", "true")

    with lake.job() as job:
        raw = lake.read(job, on_published="delete")
        with pytest.raises(Exception, match="DIVIDE_BY_ZERO"):
            raw.selectExpr("1 / cast(value <> 'a' as int)").collect()

    assert names(lake.path("raw")) == ["a.txt"]


@pytest.mark.seldom
def test_each_context_is_put_away_by_its_own_use(lake: Lake) -> None:
    lake.put("a.txt", "a", folder="left")
    lake.put("b.txt", "b", folder="right")

    with lake.job() as job:
        left = job.read("left").files(on_published="delete").text(lake.path("left"))
        job.read("right").files(on_published="delete").text(lake.path("right"))
        job.write(left, "out").text(lake.path("out"))

    assert (names(lake.path("left")), names(lake.path("right"))) == ([], ["b.txt"])


def test_run_that_fails_deletes_nothing(lake: Lake) -> None:
    lake.put("a.txt", "a")

    job = lake.job()
    job.begin()
    lake.read(job, on_published="delete").collect()
    job.abort("it failed")

    assert names(lake.path("raw")) == ["a.txt"]


def test_quarantined_file_is_neither_deleted_nor_archived(lake: Lake) -> None:
    lake.put("a.csv", "1")
    lake.put("b.csv", "x")

    with lake.job() as job:
        raw = (
            job.read("raw").files(on_published="delete", on_corrupt="quarantine").schema("id INT").csv(lake.path("raw"))
        )
        raw.collect()

    assert names(lake.path("raw")) == ["b.csv"]


def test_each_batch_puts_away_what_it_has_read(lake: Lake) -> None:
    for number in range(5):
        lake.put(f"{number}.txt", str(number))
    left = []

    for batch in lake.job().batches(max_files=2):
        with batch:
            lake.read(batch, on_published="delete").collect()
        left.append(len(names(lake.path("raw"))))

    assert left == [3, 1, 0]


def test_sharded_job_refuses(lake: Lake) -> None:
    lake.put("a.txt", "a")
    shard = next(iter(lake.job(shard=(0, 2)).shards()))

    with pytest.raises(OptionError, match="in a sharded job"), shard:
        lake.read(shard, on_published="delete")
    assert names(lake.path("raw")) == ["a.txt"]


@pytest.mark.parametrize("folder", ["raw", "raw/done", "raw/day=1/_x=1"])
def test_archive_may_not_lie_where_the_context_reads(lake: Lake, folder: str) -> None:
    lake.put("a.txt", "a")

    with pytest.raises(OptionError, match="would be new again"):
        run(lake, on_published="archive", archive_to=lake.path(folder))
    assert names(lake.path("raw")) == ["a.txt"]


def test_archive_may_lie_in_a_hidden_folder_of_the_root(lake: Lake) -> None:
    lake.put("a.txt", "a")

    run(lake, on_published="archive", archive_to=lake.path("raw", "_done"))

    assert names(lake.path("raw")) == ["_done/a.txt"]
    assert run(lake, on_published="archive", archive_to=lake.path("raw", "_done")) == []


def test_upstream_output_is_not_the_consumers_to_delete(lake: Lake) -> None:
    with pytest.raises(OptionError, match="on_published: an option of files"), lake.job() as job:
        job.read("raw").files(on_published="delete").upstream("other")


def test_archive_without_a_folder_is_refused(lake: Lake) -> None:
    with pytest.raises(OptionError, match="'archive' needs a folder"), lake.job() as job:
        job.read("raw").files(on_published="archive")
