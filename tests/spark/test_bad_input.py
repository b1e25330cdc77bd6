"""What is wrong gets one error that says what happened, what was left untouched and what to do, and nothing moves."""

from __future__ import annotations

from datetime import timedelta
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from airflow_bookmarks.core.errors import (
    BookmarkError,
    MisuseError,
    NameInvalidError,
    OptionError,
    SourceMissingError,
    TableMissingError,
    VersionMismatchError,
)
from airflow_bookmarks.spark import BookmarkedJob
from tests.spark.lake import Lake, lines_of, reader_of

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]


def untouched(error: BaseException) -> bool:
    return any(words in str(error) for words in ("Nothing was read", "Nothing was written", "Nothing moved"))


@pytest.mark.seldom
@pytest.mark.parametrize(
    ("path", "kind", "says"),
    [
        ("{raw}/missing", SourceMissingError, "does not exist.*Check the path"),
        ("", OptionError, "path is empty.*Give the folder"),
        ("  ", OptionError, "path is empty.*Give the folder"),
        ("raw", OptionError, "not an absolute path.*relative path would name different data"),
        ("file:raw", OptionError, "not an absolute path"),
        ("file://host/raw", OptionError, "not an absolute path"),
        ("{raw}/*.nothing", SourceMissingError, "nothing matches"),
        ("{raw}/{{a,b", OptionError, "can't be read: a '{' is not closed"),
        ("ftp://bucket/raw", OptionError, "no file system for scheme 'ftp'"),
        ("s3://bucket--use1-az4--x-s3/raw", OptionError, "directory bucket.*general purpose bucket"),
        (["{raw}", "s3a://bucket/raw"], OptionError, "different file systems.*context of its own"),
        ([], OptionError, "no path"),
        (["{raw}", "{raw}/missing"], SourceMissingError, "missing' does not exist"),
        (["{raw}", ""], OptionError, "path is empty"),
        (None, OptionError, "path None is neither text nor a list"),
        (Path("/raw"), OptionError, "is neither text nor a list"),
        ([1], OptionError, "is neither text nor a list"),
    ],
)
def test_path_that_cannot_be_read_is_an_error(lake: Lake, path: Any, kind: type[BookmarkError], says: str) -> None:
    lake.put("a.txt", "a")
    with lake.job():
        pass
    before = lake.state()

    def filled(text: Any) -> Any:
        return text.format(raw=lake.path("raw")) if isinstance(text, str) else text

    wanted = [filled(p) for p in path] if isinstance(path, list) else filled(path)
    with pytest.raises(kind, match=says) as caught, lake.job() as job:
        job.read("raw").format("text").load(wanted)
    assert untouched(caught.value)
    assert lake.state() == before


@pytest.mark.seldom
@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        (lambda r, p: r.format("delta").load(p), r"'delta': read a Delta table by \.delta\("),
        (lambda r, p: r.format("hudi").load(p), "'hudi' has no bookmark here; known are avro, csv.*spark.read"),
        (lambda r, p: r.load(p, "avro"), "format 'avro'"),
        (lambda r, p: r.load(p), "no format; use"),
        (lambda r, p: r.option("pathGlobFilter", "x/*.csv").text(p), "expected a pattern of file names.*into the path"),
        (lambda r, p: r.text(p, PATHGLOBFILTER="[a"), "a '\\[' is not closed"),
        (lambda r, p: r.option("modifiedAfter", "2013-01-01").text(p), "the bookmark decides what is new"),
        (lambda r, p: r.options(modifiedBefore="2013-01-01").text(p), "the bookmark decides what is new"),
        (lambda r, p: r.option("basePath", p).text(p), "it is set to the folder"),
        (lambda r, p: r.option("ignoreMissingFiles", True).text(p), "on_missing='skip'"),
        (lambda r, p: r.option("ignoreCorruptFiles", True).text(p), "drop files without a word"),
        (lambda r, p: r.option("ignoreExtension", False).text(p), "drop files without a word; use pathGlobFilter"),
        (lambda r, p: r.option("path", p).text(p), r"\.load\(path\)"),
        (lambda r, p: r.schema("INT INT INT").csv(p), "no list of columns.*'a INT, b STRING'"),
        (lambda r, p: r.csv(p, "a INT b INT"), "no list of columns"),
    ],
)
def test_reader_that_is_told_something_wrong_is_an_error(lake: Lake, wrong: Any, says: str) -> None:
    lake.put("a.txt", "a")
    with pytest.raises(OptionError, match=says) as caught, lake.job() as job:
        wrong(job.read("raw"), lake.path("raw"))
    assert untouched(caught.value)
    assert lake.head().run_number == 0


@pytest.mark.parametrize(
    "choice",
    [{"on_overwrite": "again"}, {"on_missing": "Skip"}, {"on_source_change": "go"}, {"read_by": "folder"}],
)
def test_unknown_choice_is_an_error_that_lists_the_known_ones(lake: Lake, choice: dict[str, Any]) -> None:
    with pytest.raises(OptionError, match="expected one of '") as caught, lake.job() as job:
        reader_of(job, "raw", **choice)
    assert untouched(caught.value)


def test_unknown_choice_for_an_upstream_is_an_error_that_lists_the_known_ones(lake: Lake) -> None:
    with pytest.raises(OptionError, match="expected one of '") as caught, lake.job() as job:
        job.read("up").upstream("up", on_rewind="back")  # type: ignore[arg-type]
    assert untouched(caught.value)


@pytest.mark.parametrize(
    "choice",
    [{"watermark_column": 5}, {"count_rows": "no"}, {"moved_from": ""}, {"gaps": 0}],
    ids=lambda c: next(iter(c)),
)
def test_value_of_another_type_is_an_error_by_name(lake: Lake, choice: dict[str, Any]) -> None:
    with pytest.raises(OptionError, match=f"{next(iter(choice))}=.*expected") as caught, lake.job() as job:
        reader_of(job, "raw", **choice)
    assert untouched(caught.value)


def test_output_of_an_upstream_that_is_no_text_is_an_error(lake: Lake) -> None:
    with pytest.raises(OptionError, match=r"output=\[\]: expected text") as caught, lake.job() as job:
        job.read("up").upstream("up", output=[])  # type: ignore[arg-type]
    assert untouched(caught.value)


def test_options_of_files_in_two_calls_are_an_error(lake: Lake) -> None:
    with pytest.raises(OptionError, match=r"files\(...\) is called twice") as caught, lake.job() as job:
        job.read("raw").files(max_files=1).files(settle=timedelta(minutes=1))
    assert untouched(caught.value)


@pytest.mark.seldom
def test_options_of_files_hold_beside_those_of_spark_in_any_order(lake: Lake) -> None:
    for name in ("a.txt", "b.txt", "c.csv", "deep/d.txt"):
        lake.put(name, name)
    for first in ("spark", "files"):
        with lake.job(option="pause") as job:
            reader = job.read("raw")
            if first == "spark":
                reader.option("recursiveFileLookup", True).option("pathGlobFilter", "*.txt").files(exclusions=["b.*"])
            else:
                reader.files(exclusions=["b.*"]).option("pathGlobFilter", "*.txt").option("recursiveFileLookup", True)
            assert lines_of(reader.text(lake.path("raw"))) == ["a.txt", "deep/d.txt"]


@pytest.mark.parametrize("name", ["", "a/b", "a#b", ".hidden", "x" * 251, None, 7])
def test_name_that_cannot_be_in_a_key_is_an_error(lake: Lake, name: Any) -> None:
    with lake.job() as job, pytest.raises(NameInvalidError, match="can't be the name of a context"):
        job.read(name)
    with pytest.raises(NameInvalidError, match="can't be the name of an output"), lake.job() as job:
        job.write(lake.spark.range(1), name)
    with pytest.raises((NameInvalidError, OptionError)):
        lake.job(name)


def test_store_that_is_not_there_is_an_error_and_is_not_made_by_the_attempt(lake: Lake) -> None:
    absent = lake.root / "absent.db"
    with pytest.raises(TableMissingError, match=r"absent\.db") as caught:
        BookmarkedJob(lake.spark, "copy", store=f"sqlite:///{absent}").begin()
    assert "init" in str(caught.value)
    assert not absent.exists()


@pytest.mark.parametrize("uri", ["bookmarks.db", "mysql://x", "sqlite://relative.db", "dynamodb://b?regoin=x"])
def test_address_of_a_store_that_is_none_is_an_error(lake: Lake, uri: str) -> None:
    with pytest.raises(OptionError, match="Nothing was read or changed"):
        BookmarkedJob(lake.spark, "copy", store=uri)


def test_runtime_of_another_major_version_than_the_worker_is_an_error(lake: Lake) -> None:
    lake.spark.conf.set("spark.bookmarks.version", "7.1.0")
    with pytest.raises(VersionMismatchError, match=r"worker runs .* 7\.1\.0.*Nothing was read.*ship_runtime"):
        lake.job()


def test_unequal_pyspark_packages_are_an_error(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metadata, "version", {"pyspark": "4.1.3", "pyspark-client": "4.2.0"}.__getitem__)
    with pytest.raises(VersionMismatchError, match=r"pyspark 4\.1\.3 and pyspark-client 4\.2\.0.*Install one version"):
        lake.job()


def test_one_pyspark_package_alone_is_good(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    def version(name: str) -> str:
        if name == "pyspark":
            return "4.1.3"
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "version", version)
    assert lake.job().name == "copy"


def test_reading_without_a_session_is_an_error(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SparkSession, "getActiveSession", classmethod(lambda cls: None))
    with pytest.raises(MisuseError, match="was opened without a Spark session"):
        BookmarkedJob(name="copy", store=lake.store).begin().read("raw")
