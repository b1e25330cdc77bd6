"""Promise: what a script calls as in Spark works as in Spark, or says what to call instead."""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Callable
from typing import Any

import pytest
from pyspark.sql import DataFrameReader, DataFrameWriter

from airflow_bookmarks.core.errors import MisuseError, OptionError
from airflow_bookmarks.spark.job import BookmarkedJob
from airflow_bookmarks.spark.reader import BookmarkedReader
from airflow_bookmarks.spark.spark_names import _OF_ONE_KIND
from tests.spark.lake import Lake, lines_of, rows_of

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]


@pytest.mark.seldom
def test_positional_arguments_of_writers_are_those_of_spark(lake: Lake) -> None:
    lake.put("a.txt", "x", "y")
    with lake.job() as job:
        frame = lake.read(job)
        frame = frame.selectExpr("value", "value AS p")
        job.write(frame, "csv").csv(lake.path("csv"), "overwrite", "gzip", ";", None, None, True)
        job.write(frame, "json").json(lake.path("json"), None, "bzip2")
        job.write(frame, "parquet").parquet(lake.path("parquet"), "overwrite", "p", "gzip")
        job.write(frame, "orc").orc(lake.path("orc"), "append", ["p"], "zlib")
        job.write(frame.select("value"), "text").text(lake.path("text"), "gzip")
        job.write(frame, "save").save(lake.path("save"), "json", "append", "p", compression="gzip")
    assert rows_of(lake.spark.read.csv(lake.path("csv"), sep=";", header=True)) == [("x", "x"), ("y", "y")]
    endings = {"csv": ".csv.gz", "json": ".json.bz2", "parquet": ".gz.parquet", "orc": ".zlib.orc"}
    for target, ending in {**endings, "text": ".txt.gz", "save": ".json.gz"}.items():
        assert {name.endswith(ending) for name in lake.visible(target)} == {True}
    assert {name.split("/")[0] for name in lake.visible("parquet")} == {"p=x", "p=y"}
    run = lake.store.committed_run("copy", 1)
    assert run is not None
    assert run.outputs["parquet"].stats["mode"] == "overwrite"


def test_positional_arguments_of_readers_are_those_of_spark(lake: Lake) -> None:
    lake.put("a.csv", "1;x")
    lake.put("whole/a.txt", "x", "y", folder="texts")
    with lake.job() as job:
        frame = job.read("csv").csv(lake.path("raw"), "n INT, t STRING", ";")
        assert rows_of(frame) == [(1, "x")]
        assert lines_of(job.read("text").text(lake.path("texts", "whole"), True)) == ["x\ny\n"]
        assert rows_of(job.reference("r").csv(lake.path("raw"), "n INT, t STRING", ";")) == [(1, "x")]


def test_argument_that_is_given_twice_or_too_often_is_an_error_as_in_spark(lake: Lake) -> None:
    with lake.job() as job:
        frame = lake.spark.range(1)
        with pytest.raises(TypeError, match="multiple values for argument 'mode'"):
            job.write(frame, "o").csv(lake.path("o"), "append", mode="append")
        with pytest.raises(TypeError, match=r"text\(\) takes at most 3 positional arguments"):
            job.write(frame, "o").text(lake.path("o"), None, None, "x")
        job.abort("enough")


@pytest.mark.parametrize("name", [n for n in dir(DataFrameReader) if not n.startswith("_")])
def test_reader_without_a_context_says_what_is_missing(lake: Lake, name: str) -> None:
    with pytest.raises(MisuseError, match=rf"job\.read\('flights'\)\.{name}\(.*spark\.read\.{name}"):
        getattr(lake.job().read, name)


@pytest.mark.parametrize("name", [n for n in dir(DataFrameWriter) if not n.startswith("_")])
def test_writer_without_an_output_says_what_is_missing(lake: Lake, name: str) -> None:
    with pytest.raises(MisuseError, match=rf"job\.write\(frame, 'clean'\)\.{name}\("):
        getattr(lake.job().write, name)


def test_what_spark_does_not_know_either_is_no_attribute(lake: Lake) -> None:
    with lake.job() as job:
        things: list[Any] = [job.read, job.write, job.read("a"), job.reference("b")]
        assert [hasattr(thing, "parket") for thing in things] == [False] * 4
        assert not hasattr(job.write(lake.spark.range(1), "o"), "parket")
        job.abort("enough")
    assert "ctx" in inspect.signature(job.read).parameters
    assert "self" not in inspect.signature(job.read).parameters


@pytest.mark.parametrize("name", ["table"])
def test_source_that_has_no_bookmark_is_refused_with_what_to_call(lake: Lake, name: str) -> None:
    with lake.job() as job:
        with pytest.raises(OptionError, match=rf"{name}\(\.\.\.\) has no bookmark here.*spark\.read\.{name}"):
            getattr(job.read("raw"), name)("x")
        with pytest.raises(OptionError, match=r"\.format\('jdbc'\)\.options"):
            job.reference("r").jdbc("x")


@pytest.mark.parametrize("name", ["bucketBy", "sortBy", "clusterBy"])
def test_sink_that_can_not_be_staged_is_refused_and_blocks_the_commit(lake: Lake, name: str) -> None:
    with pytest.raises(MisuseError, match=f"{name}.*can't be staged"):  # noqa: PT012, SIM117
        with lake.job() as job:
            with contextlib.suppress(OptionError):
                getattr(job.write(lake.spark.range(1), "o"), name)


def test_tables_and_streams_are_refused_with_what_to_call(lake: Lake) -> None:
    job = lake.job()
    with pytest.raises(MisuseError, match=r"writeTo\('t'\).*frame\.writeTo"):
        job.writeTo("t")
    with pytest.raises(MisuseError, match="stream"):
        _ = job.writeStream


@pytest.mark.parametrize(
    ("option", "why"),
    [("maxFilesPerTrigger", "max_files"), ("latestFirst", "stream"), ("versionAsOf", "table format")],
)
def test_options_without_an_effect_are_refused(lake: Lake, option: str, why: str) -> None:
    lake.put("a.txt", "a")
    with lake.job() as job:
        with pytest.raises(OptionError, match=f"{option}.*{why}"):
            job.read("raw").option(option, 1)
        with pytest.raises(OptionError, match=f"{option}.*{why}"):
            job.write(lake.spark.range(1), "o").json(lake.path("o"), **{option: 1})
        job.abort("enough")


@pytest.mark.parametrize(
    ("option", "place"),
    [
        ("max_files", r"job.read\(ctx\).files\(max_files=...\), or job.read\(ctx\).upstream\(job, max_files=...\)"),
        ("reread", r"job.read\(ctx\).files\(reread=...\)"),
        ("on_rewind", r"job.read\(ctx\).upstream\(job, on_rewind=...\)"),
    ],
)
def test_option_of_one_kind_says_where_it_is_given(lake: Lake, option: str, place: str) -> None:
    with (
        pytest.raises(OptionError, match=rf"has no option '{option}': it is .*: {place}. Nothing was"),
        lake.job() as job,
    ):
        job.read("raw", **{option: 1})  # type: ignore[arg-type]


CALLS: dict[str, Callable[[BookmarkedJob, dict[str, Any]], Any]] = {
    "read": lambda job, given: job.read("raw", **given),
    "files": lambda job, given: job.read("raw").files(**given),
    "upstream": lambda job, given: job.read("raw").upstream("up", **given),
}


@pytest.mark.parametrize(
    ("method", "option", "hint"),
    [
        ("files", "max_rows", r"it is an option of one kind .*job.read\(ctx\).upstream\(job, max_rows=...\)"),
        ("files", "max_file", "did you mean max_files?"),
        ("upstream", "late_after", r"it is an option of one kind .*job.read\(ctx\).files\(late_after=...\)"),
        ("upstream", "on_upstream_rewind", r"job.read\(ctx\).upstream\(job, on_rewind=...\)"),
        ("read", "on_schema_chang", "did you mean on_schema_change"),
        ("read", "zzz", "it takes ctx, on_source_change, "),
    ],
)
def test_unknown_option_says_what_it_may_mean(lake: Lake, method: str, option: str, hint: str) -> None:
    given: dict[str, Any] = {option: 1}
    with pytest.raises(OptionError, match=rf"{method}\(\) has no option '{option}': .*{hint}"), lake.job() as job:
        CALLS[method](job, given)
    assert lake.state()[1] == 0


def test_each_option_of_a_kind_says_where_it_is_given() -> None:
    found = {
        name
        for method in (BookmarkedReader.files, BookmarkedReader.upstream, BookmarkedReader.delta)
        for name, parameter in inspect.signature(method).parameters.items()
        if parameter.kind is inspect.Parameter.KEYWORD_ONLY
    }
    assert set(_OF_ONE_KIND) == {*found, "on_upstream_rewind"}
