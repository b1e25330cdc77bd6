"""Promise RUN-4 in Spark: what a run without new input makes of something else is published, or named as discarded."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from airflow_bookmarks.core.errors import OptionError
from airflow_bookmarks.spark.session import RowCount
from tests.spark.lake import Lake, lines_of, rows_of

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]


@pytest.fixture
def known(lake: Lake) -> Lake:
    """Let a first run read all files, and write what an API gave it."""
    lake.put("a.txt", "a")
    fetch(lake, 3, cursor="1")
    return lake


def fetch(lake: Lake, rows: int, cursor: str | None = None, mode: str = "append", **kwargs: Any) -> dict[str, Any]:
    """Read the raw folder, write so many rows that come from elsewhere, and keep a cursor; return the summary."""
    with lake.job() as job:
        lake.read(job)
        job.write(lake.spark.range(rows), "api", **kwargs).mode(mode).parquet(lake.path("api"))
        if cursor is not None:
            job.state("cursor").set(cursor)
    assert job.summary is not None
    return job.summary


def count(lake: Lake) -> int:
    return lake.spark.read.schema("id BIGINT").parquet(lake.path("api")).count()


def test_rows_behind_a_cursor_that_moved_are_published_without_new_files(known: Lake) -> None:
    summary = fetch(known, 5, cursor="2")
    assert (count(known), summary["outputs"]["api"]["rows"], summary["is_empty"]) == (8, 5, False)


def test_rows_of_an_overwrite_that_are_left_out_are_named(known: Lake, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "airflow_bookmarks"):
        summary = fetch(known, 5, mode="overwrite", count_rows=False)
    assert count(known) == 3
    figures = summary["outputs"]["api"]
    assert (figures["rows"], figures["discarded"], figures["discarded_rows"]) == (0, True, 5)
    assert "5 rows written" not in caplog.text
    assert [r.levelname for r in caplog.records if "5 rows of output 'api'" in r.getMessage()] == ["WARNING", "INFO"]


@pytest.mark.parametrize("count_rows", [True, False])
@pytest.mark.parametrize("cursor", [None, "2"])
def test_increment_without_rows_wipes_no_target_though_the_cursor_moves(
    known: Lake, count_rows: bool, cursor: str | None, caplog: pytest.LogCaptureFixture
) -> None:
    with known.job() as job:
        job.write(known.read(job), "api", count_rows=count_rows).mode("overwrite").parquet(known.path("api"))
        if cursor is not None:
            job.state("cursor").set(cursor)
    assert count(known) == 3
    assert not [record for record in caplog.records if record.levelno >= logging.WARNING]


def test_overwrite_without_rows_that_comes_before_the_read_wipes_no_target(known: Lake) -> None:
    with known.job() as job:
        job.write(known.spark.range(0), "api", count_rows=False).mode("overwrite").parquet(known.path("api"))
        known.read(job)
        job.state("cursor").set("2")
    assert count(known) == 3


@pytest.mark.parametrize("rows", [0, 5])
def test_rows_are_counted_in_the_files_where_spark_tells_no_count(
    known: Lake, rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(RowCount, "rows", lambda count: None)  # as where the optimizer drops the observation
    summary = fetch(known, rows, cursor="2", mode="overwrite")
    assert (summary["outputs"]["api"]["rows"], count(known)) == (rows, rows or 3)


def test_choice_is_made_for_each_output(known: Lake) -> None:
    with known.job() as job:
        known.read(job)
        for name in ("publish", "discard"):
            frame = known.spark.range(2)
            job.write(frame, name, when_empty=name).mode("overwrite").parquet(known.path(name))
    assert (len(known.visible("publish")) > 0, known.visible("discard")) == (True, [])


def test_unknown_choice_is_refused(lake: Lake) -> None:
    with pytest.raises(OptionError, match=r"when_empty=.never.: expected one of .publish"), lake.job() as job:
        job.write(lake.spark.range(1), "out", when_empty="never")  # type: ignore[arg-type]


@pytest.mark.seldom
def test_consumer_reads_what_a_run_without_new_files_has_published(known: Lake) -> None:
    def consume() -> int:
        with known.job("report") as job:
            return job.read("api").upstream("copy").count()

    assert consume() == 3
    fetch(known, 5)
    assert consume() == 5
    assert consume() == 0
    assert rows_of(known.spark.read.schema("id BIGINT").parquet(known.path("api")).groupBy().count()) == [(8,)]
    assert lines_of(known.spark.read.text(known.path("raw"))) == ["a"]


def _two(lake: Lake, *, joined: bool = False, **kwargs: Any) -> tuple[list[str], list[str], dict[str, Any]]:
    """Overwrite a target from each of two contexts; return the lines that they hold then, and the first one's facts."""
    with lake.job() as job:
        one = job.read("one").text(lake.path("one"))
        two = job.read("two").text(lake.path("two"))
        made = one.join(two, "value") if joined else one
        job.write(made, "one", **kwargs).mode("overwrite").text(lake.path("out_one"))
        job.write(two, "two").mode("overwrite").text(lake.path("out_two"))
    assert job.summary is not None
    held = [lines_of(lake.spark.read.schema("value STRING").text(lake.path(name))) for name in ("out_one", "out_two")]
    return held[0], held[1], job.summary["outputs"]["one"]


@pytest.fixture
def pair(lake: Lake) -> Lake:
    """Let a first run overwrite two targets, and bring something new for the second context alone."""
    lake.put("a.txt", "a", folder="one")
    lake.put("a.txt", "a", folder="two")
    assert _two(lake)[:2] == (["a"], ["a"])
    lake.put("b.txt", "b", folder="two")
    return lake


@pytest.mark.seldom
@pytest.mark.needs("columns named once")
def test_target_of_a_context_without_news_stays_while_another_has_some(pair: Lake) -> None:
    one, two, figures = _two(pair)
    assert (one, two, figures["rows"]) == (["a"], ["b"], 0)
    assert "replaced_files" not in figures


@pytest.mark.seldom
@pytest.mark.needs("columns named once")
@pytest.mark.parametrize("count_rows", [True, False])
def test_target_of_a_context_without_news_stays_though_the_other_one_is_read_later(
    pair: Lake, count_rows: bool
) -> None:
    with pair.job() as job:
        for name in ("one", "two"):
            frame = job.read(name).text(pair.path(name))
            job.write(frame, name, count_rows=count_rows).mode("overwrite").text(pair.path(f"out_{name}"))
    assert lines_of(pair.spark.read.text(pair.path("out_one"))) == ["a"]
    assert lines_of(pair.spark.read.text(pair.path("out_two"))) == ["b"]


@pytest.mark.seldom
@pytest.mark.needs("columns named once")
def test_target_of_a_context_whose_news_went_stays(pair: Lake) -> None:
    gone = pair.put("b.txt", "b", folder="one")
    with pair.job() as job:
        one = job.read("one").files(on_missing="skip").text(pair.path("one"))
        two = job.read("two").text(pair.path("two"))
        gone.unlink()
        job.write(one, "one").mode("overwrite").text(pair.path("out_one"))
        job.write(two, "two").mode("overwrite").text(pair.path("out_two"))
    assert job.summary is not None
    assert job.summary["contexts"]["one"]["skipped"] == {"missing": 1}
    assert lines_of(pair.spark.read.text(pair.path("out_one"))) == ["a"]


@pytest.mark.seldom
def test_target_of_a_context_without_news_is_wiped_where_the_script_says_so(pair: Lake) -> None:
    assert _two(pair, when_empty="publish")[:2] == ([], ["b"])


@pytest.mark.seldom
def test_result_without_rows_that_is_made_of_news_too_replaces_its_target(pair: Lake) -> None:
    assert _two(pair, joined=True)[:2] == ([], ["b"])
