"""Promises SINK-1, SINK-2, SINK-3, SINK-6: staged out of sight, visible after the commit, under the run's token."""

# ruff: noqa: PT012 - what raises here is often the end of a block

from __future__ import annotations

import contextlib
import re
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from airflow_bookmarks.core.errors import MisuseError, OptionError
from airflow_bookmarks.spark import BookmarkedJob
from tests.spark.lake import LISTING_KEY, Lake, lines_of, rows_of
from tests.thorough import each_once, mostly_thorough

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]


def days(lake: Lake, *days: int) -> None:
    """Add one raw file a day: `<day> <version>`, where the version grows with each call."""
    version = len(list((lake.root / "raw").glob("*")))
    for day in days:
        lake.put(f"{day}-{version}.txt", f"{day} {version}")


def write_days(lake: Lake, mode: str, **options: Any) -> None:
    with lake.job() as job:
        split = F.split("value", " ")
        frame = lake.read(job).select(split[1].cast("int").alias("version"), split[0].alias("day"))
        job.write(frame, "out").mode(mode).partitionBy("day").options(**options).save(lake.path("copy"))


def day_versions(lake: Lake) -> list[tuple[Any, ...]]:
    return rows_of(lake.spark.read.parquet(lake.path("copy")).select("day", "version"))


@pytest.mark.parametrize("target", mostly_thorough(["csv", "json", "text", "parquet", "orc"], "csv", "parquet"))
def test_append_is_seen_after_the_commit_and_not_before(lake: Lake, target: str) -> None:
    seen = []

    def run() -> None:
        with lake.job() as job:
            job.write(lake.read(job), "out").format(target).save(lake.path("copy"))
            seen.append(look())
            assert len(lake.staged("copy/_bookmarks")) >= 1

    def look() -> list[str]:
        frame = lake.spark.read.format(target).schema("value STRING").load(lake.path("copy"))
        below = lake.spark.read.format(target).schema("value STRING").option("recursiveFileLookup", True)
        assert lines_of(below.load(lake.path("copy"))) == lines_of(frame)
        return lines_of(frame)

    lake.put("a.txt", "a")
    run()
    lake.put("b.txt", "b")
    run()
    assert seen == [[], ["a"]]
    assert look() == ["a", "b"]
    assert lake.staged("copy/_bookmarks") == []


def test_names_carry_the_token_of_the_run(lake: Lake) -> None:
    lake.put("a.txt", "a")
    with lake.job() as job:
        job.write(lake.read(job), "out").text(lake.path("copy"))
        assert job.run_token == "test/copy/1/1/1"
    (name,) = lake.visible()
    assert re.fullmatch(r"run-1\.1-part-.*\.txt", name)


def test_compression_and_format_options_are_seen_in_the_files(lake: Lake) -> None:
    lake.put("a.txt", "a")
    with lake.job() as job:
        frame = lake.read(job)
        job.write(frame, "csv").csv(lake.path("csv"), header=True, compression="gzip", sep=None)
        job.write(frame, "parquet").option("compression", "zstd").parquet(lake.path("parquet"))
        job.write(frame, "orc").orc(lake.path("orc"), compression="zlib")
    endings = {"csv": ".csv.gz", "parquet": ".zstd.parquet", "orc": ".zlib.orc"}
    for target, ending in endings.items():
        assert [name.endswith(ending) for name in lake.visible(target)] == [True]
    assert rows_of(lake.spark.read.csv(lake.path("csv"), header=True)) == [("a",)]


def test_overwrite_replaces_the_target_in_the_publish(lake: Lake) -> None:
    days(lake, 1, 2)
    write_days(lake, "overwrite")
    days(lake, 3)
    write_days(lake, "OVERWRITE")
    assert day_versions(lake) == [(3, 2)]


@pytest.mark.parametrize("by", ["option", "conf"])
def test_dynamic_overwrite_replaces_the_partitions_that_were_written(lake: Lake, by: str) -> None:
    options = {"partitionOverwriteMode": "DYNAMIC"} if by == "option" else {}
    if by == "conf":
        lake.spark.conf.set("spark.sql.sources.partitionOverwriteMode", "dynamic")
    days(lake, 1, 2)
    write_days(lake, "overwrite", **options)
    days(lake, 2, 3)
    write_days(lake, "overwrite", **options)
    assert day_versions(lake) == [(1, 0), (2, 2), (3, 2)]


def test_overwrite_shows_the_old_until_the_commit(lake: Lake) -> None:
    days(lake, 1)
    write_days(lake, "overwrite")
    days(lake, 2)
    with lake.job() as job:
        job.write(lake.read(job), "out").mode("overwrite").parquet(lake.path("copy"))
        assert day_versions(lake) == [(1, 0)]
    assert lines_of(lake.spark.read.parquet(lake.path("copy"))) == ["2 1"]


@pytest.mark.parametrize("mode", ["append", "overwrite"])
def test_run_without_new_input_publishes_and_deletes_nothing(lake: Lake, mode: str) -> None:
    days(lake, 1)
    write_days(lake, mode)
    before = lake.visible()
    write_days(lake, mode)
    assert (lake.visible(), lake.head().run_number, lake.head().data_run_number) == (before, 2, 1)


def test_two_outputs_become_visible_together(lake: Lake) -> None:
    lake.put("a.txt", "a")
    with lake.job() as job:
        frame = lake.read(job)
        job.write(frame, "one").text(lake.path("one"))
        job.write(frame, "two").json(lake.path("two"))
        assert lake.visible("one") + lake.visible("two") == []
    assert (len(lake.visible("one")), len(lake.visible("two"))) == (1, 1)
    assert job.summary is not None
    assert {name: figures["rows"] for name, figures in job.summary["outputs"].items()} == {"one": 1, "two": 1}


@pytest.mark.parametrize("option", mostly_thorough(["enable", "pause", "disable"], "enable", "disable"))
@pytest.mark.parametrize(
    ("write", "why"),
    [
        (lambda lake, job, frame: job.write(frame, "o").format("csv").saveAsTable("t"), "OptionError.*can't be made"),
        (lambda lake, job, frame: job.write(frame, "o").insertInto("t"), "OptionError.*there is no table t"),
        (lambda lake, job, frame: job.write(frame, "o").mode("append"), r"neither \.save\(path\)"),
        (lambda lake, job, frame: job.write(frame, "o").mode("ignore"), "OptionError.*'ignore'"),
        (lambda lake, job, frame: job.write(frame, "o").format("hudi"), "OptionError.*'hudi'"),
        (lambda lake, job, frame: job.write(frame, "o").save("relative"), "OptionError"),
        (lambda lake, job, frame: job.write(frame, "o", when_empty="x").save(lake.path("o")), "OptionError"),
        (lambda lake, job, frame: job.write(frame, "done").save(lake.path("other")), "MisuseError.*written twice"),
        (
            lambda lake, job, frame: job.write(frame.selectExpr("raise_error('boom')"), "o").save(lake.path("o")),
            "boom",
        ),
    ],
)
def test_write_that_came_to_nothing_blocks_the_commit_though_its_error_is_caught(
    lake: Lake, write: Callable[[Lake, BookmarkedJob, DataFrame], object], why: str, option: str
) -> None:
    lake.put("a.txt", "a")
    with pytest.raises(MisuseError, match=r"output '(o|done)' was not written: .*Nothing was") as caught:  # noqa: SIM117
        with lake.job(option=option) as job:
            frame = lake.read(job)
            job.write(frame, "done").text(lake.path("done"))
            with contextlib.suppress(Exception):  # as a script does that handles all errors
                write(lake, job, frame)
    assert re.search(why, str(caught.value), re.DOTALL)
    assert lake.visible("done") == []
    assert lake.run() == ["a"]


def test_table_of_a_spark_without_a_metastore_is_seen_anew(lake: Lake) -> None:
    name = f"orders_{lake.root.name.replace('-', '_')}".lower()
    for number in (1, 2):
        lake.put(f"{number}.txt", f"line {number}")
        with lake.job() as job:
            frame = lake.read(job).withColumn("day", F.lit(f"d{number}"))
            job.write(frame, "out").partitionBy("day").saveAsTable(name)
        assert lake.spark.table(name).count() == number


def test_write_that_is_refused_and_then_done_commits(lake: Lake) -> None:
    lake.put("a.txt", "a")
    with lake.job() as job:
        writer = job.write(lake.read(job), "o")
        with pytest.raises(OptionError):
            writer.insertInto("t")
        writer.text(lake.path("o"))
    assert len(lake.visible("o")) == 1


def test_eight_threads_read_and_write_in_one_run_and_the_conf_is_as_before(lake: Lake) -> None:
    names = [f"n{number}" for number in range(8)]
    for name in names:
        lake.put(f"{name}/a.txt", name)
    lake.spark.conf.set(LISTING_KEY, "77")
    barrier = threading.Barrier(len(names))
    with lake.job() as job, ThreadPoolExecutor(len(names)) as pool:

        def copy(name: str) -> None:
            barrier.wait()
            frame = job.read(name).text(lake.path("raw", name))
            job.write(frame, name).text(lake.path(name))

        list(pool.map(copy, names))
    assert {name: lines_of(lake.spark.read.text(lake.path(name))) for name in names} == {n: [n] for n in names}
    assert not any(lake.staged(f"{name}/_bookmarks") for name in names)
    assert lake.spark.conf.get(LISTING_KEY) == "77"


def test_partition_values_with_odd_characters_come_back_as_they_were(lake: Lake) -> None:
    values = [
        "a/b",
        "a b",
        "é",
        "50%",
        "x=y",
        "c:d",
        "[e]",
        "{f}",
        "g#h",
        "i?j",
        "k*l",
        "_m",
        ".n",
        "back\\s",
        None,
        "",
    ]
    frame = lake.spark.createDataFrame([(str(i), v) for i, v in enumerate(values)], "value STRING, p STRING")
    with lake.job() as job:
        job.write(frame, "out").parquet(lake.path("copy"), partitionBy="p")
    read = lake.spark.read.schema("value STRING, p STRING").parquet(lake.path("copy"))
    expected = sorted(((str(i), v or None) for i, v in enumerate(values)), key=repr)
    assert rows_of(read) == expected
    with lake.job("next") as job:
        assert rows_of(job.read("copy").upstream("copy")) == expected
    with lake.job("beside") as job:
        assert rows_of(job.read("copy").files(read_by=lake.ways[-1]).parquet(lake.path("copy"))) == expected


def test_success_marker_and_checksums_of_the_staging_are_not_published(lake: Lake) -> None:
    lake.put("a.txt", "a")
    with lake.job() as job:
        job.write(lake.read(job), "out").text(lake.path("copy"))
        beside = {path.name for path in (lake.root / "copy").rglob("*") if path.is_file()}
        assert "_SUCCESS" in beside
    left = [path for path in (lake.root / "copy").rglob("*") if path.is_file()]
    assert len(left) == 1


def test_frame_without_rows_or_partitions_publishes_no_partition(lake: Lake) -> None:
    lake.put("a.txt", "a")
    with lake.job() as job:
        frame = lake.read(job).where("value = 'nothing'").withColumn("p", F.lit(1))
        job.write(frame, "out").parquet(lake.path("copy"), partitionBy=["p"])
    assert lake.visible() == []
    assert job.summary is not None
    assert job.summary["outputs"]["out"] == {"rows": 0, "files": 0, "bytes": 0}


# ---- staging elsewhere


def test_staging_elsewhere_leaves_nothing_in_the_target_before_the_commit(lake: Lake) -> None:
    lake.put("a.txt", "a")
    with lake.job() as job:
        job.write(lake.read(job), "out", staging=lake.path("staging")).text(lake.path("copy"))
        assert not (lake.root / "copy").exists()
        assert lake.staged("staging") != []
    assert len(lake.visible()) == 1
    assert lake.staged("staging") == []
    again = lake.copy("other")
    assert again["outputs"]["out"]["files"] == 1


@pytest.mark.parametrize("inside", ["", "staging", "day=_1"])
def test_staging_where_readers_of_the_target_see_it_is_refused(lake: Lake, inside: str) -> None:
    lake.put("a.txt", "a")
    with pytest.raises(OptionError, match=r"lies in the target.*Nothing was written"), lake.job() as job:
        job.write(lake.read(job), "out", staging=lake.path("copy", inside)).text(lake.path("copy"))
    assert lake.head().run_number == 0


def test_staging_in_a_hidden_folder_of_the_target_is_good(lake: Lake) -> None:
    lake.put("a.txt", "a")
    with lake.job() as job:
        job.write(lake.read(job), "out", staging=lake.path("copy", "_own")).text(lake.path("copy"))
        assert lake.staged("copy/_own") != []
    assert len(lake.visible()) == 1


# ---- refused


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        (lambda w, p: w.format("text").saveAsTable("t"), r"format text can't be made.*\.save\(path\)"),
        (lambda w, p: w.insertInto("t"), "there is no table t; make it, or use saveAsTable"),
        (lambda w, p: w.mode("ignore").save(p), "mode 'ignore'.*'append' or 'overwrite'"),
        (lambda w, p: w.save(p, mode="error"), "mode 'error'"),
        (lambda w, p: w.format("delta").save(p), "has no Delta Lake.*Nothing was written or committed"),
        (lambda w, p: w.delta("orders"), "has no Delta Lake.*Nothing was written or committed"),
        (lambda w, p: w.format("hudi").save(p), "format 'hudi' is no managed sink; known are avro, csv"),
        (lambda w, p: w.save(p, "jdbc"), "format 'jdbc'"),
        (lambda w, p: w.option("path", p).save(p), r"option 'path'.*\.save\(path\)"),
        (lambda w, p: w.option("partitionOverwriteMode", "some").save(p), "expected 'static' or 'dynamic'"),
        (lambda w, p: w.save("relative"), "not an absolute path"),
        (lambda w, p: w.save(""), "path is empty"),
        (lambda w, p: w.save(p + "/*"), "is a pattern"),
        (lambda w, p: w.save("ftp://host/x"), "no file system for scheme 'ftp'"),
    ],
)
def test_what_cannot_be_staged_is_refused_before_anything_is_written(lake: Lake, wrong: Any, says: str) -> None:
    lake.put("a.txt", "a")
    with pytest.raises(OptionError, match=says) as caught, lake.job() as job:
        wrong(job.write(lake.read(job), "out"), lake.path("copy"))
    assert "Nothing was" in str(caught.value)
    assert (lake.head().run_number, lake.head().staging, (lake.root / "copy").exists()) == (0, (), False)


def test_failed_write_leaves_target_and_bookmark_as_they_were(lake: Lake) -> None:
    lake.put("a.txt", "a")
    lake.copy()
    lake.put("b.txt", "b")
    before = (lake.state(), lake.visible())
    with pytest.raises(Exception, match="b is no number"), lake.job() as job:
        wrong = F.raise_error(F.concat("value", F.lit(" is no number"))).cast("string")
        job.write(lake.read(job).select(wrong.alias("value")), "out").text(lake.path("copy"))
    assert (lake.state(), lake.visible()) == before
    assert lake.copy()["outputs"]["out"]["rows"] == 1
    assert lines_of(lake.spark.read.text(lake.path("copy"))) == ["a", "b"]
    assert lake.staged("copy/_bookmarks") == []


def test_overwrite_leaves_what_is_hidden_in_the_target(lake: Lake) -> None:
    days(lake, 1)
    write_days(lake, "overwrite")
    Path(lake.path("copy", "_note")).write_text("keep")
    days(lake, 2)
    write_days(lake, "overwrite")
    assert Path(lake.path("copy", "_note")).read_text() == "keep"


# ---- outputs keep out of inputs


@pytest.mark.parametrize("mode", ["append", "overwrite"])
def test_output_in_a_partition_of_the_source_is_refused(lake: Lake, mode: str) -> None:
    days(lake, 1)
    with pytest.raises(OptionError, match="its own input"), lake.job() as job:
        job.write(lake.read(job), "out").mode(mode).text(lake.path("raw", "day=9"))
    with lake.job() as job:
        job.write(lake.read(job), "out").mode(mode).text(lake.path("raw", "nested"))
    assert len(lake.visible("raw")) == 2


def test_source_in_which_an_output_was_written_before_is_refused(lake: Lake) -> None:
    days(lake, 1)
    with pytest.raises(OptionError, match=r"its own input.*Nothing was published"), lake.job() as job:
        job.write(lake.read(job), "out").text(lake.path("copy"))
        job.read("copy").text(lake.path("copy"))
    assert lake.visible() == []


@pytest.mark.parametrize(("is_new", "target"), each_once([True, False], ["up", ".", "up/day=1"]))
def test_overwrite_of_what_an_upstream_publishes_is_refused_and_an_append_is_not(
    lake: Lake, target: str, is_new: bool
) -> None:
    days(lake, 1)
    lake.copy("up")
    path = str((lake.root / target).resolve())
    if not is_new:
        with lake.job("down") as job:
            job.read("up").upstream("up")
    with pytest.raises(OptionError, match="output of another job"), lake.job("down") as job:
        job.write(job.read("up").upstream("up"), "out").mode("overwrite").text(path)
    with pytest.raises(OptionError, match="output of another job"), lake.job("down") as job:
        job.write(lake.spark.createDataFrame([], "value STRING"), "out").mode("overwrite").text(path)
        job.read("up").upstream("up")
    before = lake.visible("up")
    with lake.job("down") as job:
        job.write(job.read("up").upstream("up"), "out").text(path)
    assert set(before) <= set(lake.visible("up"))
