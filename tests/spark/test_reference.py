"""Promise RUN-23: a reference is read once for all batches of a loop, and is no part of the bookmark."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from airflow_bookmarks.core.errors import MisuseError, NameInvalidError
from airflow_bookmarks.spark import BookmarkedJob
from tests.spark.lake import Lake, lines_of

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]


@pytest.fixture
def names(lake: Lake) -> Path:
    """Write a lookup, and three files of one line."""
    path = lake.root / "reference" / "names.csv"
    path.parent.mkdir()
    path.write_text("id,name\n0,zero\n1,one\n2,two\n")
    for i in range(3):
        lake.put(f"f{i}.txt", str(i))
    return path


def joined(lake: Lake, job: BookmarkedJob, path: Path) -> list[str]:
    lookup = job.reference("names").csv(str(path), header=True)
    frame = lake.read(job)
    return sorted(row["name"] for row in frame.join(lookup, frame["value"] == lookup["id"]).collect())


@pytest.mark.seldom
@pytest.mark.needs("kept plans")
def test_lookup_is_opened_once_for_all_batches(lake: Lake, names: Path) -> None:
    found = []
    for batch in lake.job().batches(max_files=1):
        with batch:
            found.append(joined(lake, batch, names))
        names.unlink(missing_ok=True)  # a second read would fail
    assert found == [["zero"], ["one"], ["two"]]


@pytest.mark.needs("kept plans")
def test_lookup_is_opened_once_for_all_shards(lake: Lake, names: Path) -> None:
    for i in range(3, 600):  # so many that hardly a shard is empty: the path of the folder counts too
        lake.put(f"f{i}.txt", "1")
    found = []
    for job in lake.job(shard=range(3)).shards():
        with job:
            found.append(joined(lake, job, names))
        names.unlink(missing_ok=True)
    assert len(found) == 3
    assert any(found[1:])


def test_reference_is_no_part_of_the_bookmark(lake: Lake, names: Path) -> None:
    with lake.job() as job:
        joined(lake, job, names)
    assert set(lake.head().contexts) == {"raw"}


def test_next_loop_reads_the_lookup_again(lake: Lake, names: Path) -> None:
    for _ in range(2):
        for batch in lake.job().batches(max_files=1):
            with batch:
                if batch.run_number in (1, 4):
                    joined(lake, batch, names)
        names.write_text("id,name\n9,nine\n")
        lake.put("f9.txt", "9")
    with lake.job() as job:
        assert joined(lake, job, names) == ["nine"]


def test_what_was_kept_is_given_back_at_the_end_of_loop_or_block(lake: Lake, names: Path) -> None:
    kept = []
    with lake.job() as job:
        kept.append(job.reference("names").csv(str(names), header=True))
        assert kept[0].storageLevel.useMemory
    for batch in lake.job().batches(max_files=1):
        with batch:
            kept.append(batch.reference("names").csv(str(names), header=True))
    job = lake.job().begin()
    kept.append(job.reference("names").csv(str(names), header=True))
    job.abort("it failed")
    assert [frame.storageLevel.useMemory for frame in kept] == [False] * 3


def test_batches_share_one_frame_and_another_definition_is_refused(lake: Lake, names: Path) -> None:
    with lake.job() as job:
        first = job.reference("names").option("header", True).csv(str(names))
        assert job.reference("names").format("csv").options(HEADER="true").load(str(names)) is first
        with pytest.raises(MisuseError, match="Give each reference a name of its own"):
            job.reference("names").csv(str(names), header=False)
        with pytest.raises(NameInvalidError):
            job.reference("a/b")


@pytest.mark.seldom
def test_methods_are_those_of_a_spark_reader(lake: Lake, names: Path) -> None:
    frame = lake.spark.createDataFrame([("a",)], "value STRING")
    for kind in ("json", "parquet", "orc", "text"):
        frame.write.format(kind).save(lake.path("reference", kind))
    frame.createOrReplaceTempView("lookup")
    with lake.job() as job:
        read = [
            job.reference("json").json(lake.path("reference", "json")),
            job.reference("parquet").parquet(lake.path("reference", "parquet")),
            job.reference("orc").orc(lake.path("reference", "orc")),
            job.reference("text").text(lake.path("reference", "text")),
            job.reference("table").table("lookup"),
            job.reference("schema").schema("value STRING").load([lake.path("reference", "json")], "json"),
        ]
        assert [lines_of(each) for each in read] == [["a"]] * 6


@pytest.mark.needs("xml")
def test_xml_is_read_as_a_spark_reader_does(lake: Lake) -> None:
    frame = lake.spark.createDataFrame([("a",)], "value STRING")
    frame.write.format("xml").options(rowTag="row").save(lake.path("reference"))
    with lake.job() as job:
        assert lines_of(job.reference("xml").xml(lake.path("reference"), rowTag="row")) == ["a"]


def test_reference_outside_of_a_run_is_refused(lake: Lake, names: Path) -> None:
    with pytest.raises(MisuseError, match="has not begun"):
        lake.job().reference("names")


def test_lookup_that_went_before_its_first_use_is_an_error_of_spark(lake: Lake, names: Path) -> None:
    shutil.rmtree(names.parent)
    with pytest.raises(Exception, match="PATH_NOT_FOUND"), lake.job() as job:
        job.reference("names").csv(str(names))
    assert lake.head().lease is None
