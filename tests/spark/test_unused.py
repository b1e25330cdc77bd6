"""`on_unused`: what becomes of a run that has planned a context, and used nothing of it."""

from __future__ import annotations

from typing import Any

import pytest

from airflow_bookmarks.core.errors import MisuseError, OptionError
from airflow_bookmarks.spark import BookmarkedJob
from tests.spark.lake import Lake, reader_of

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]


@pytest.fixture(autouse=True)
def two_folders(lake: Lake) -> None:
    lake.put("a.txt", "a", folder="left")
    lake.put("b.txt", "b", folder="right")


def read(lake: Lake, job: BookmarkedJob, side: str, **kwargs: Any) -> Any:
    return reader_of(job, side, **kwargs).text(lake.path(side))


def test_context_that_no_output_was_made_from_is_a_warning_by_name(
    lake: Lake, caplog: pytest.LogCaptureFixture
) -> None:
    with lake.job() as job:
        left = read(lake, job, "left")
        read(lake, job, "right")
        job.write(left, "out").text(lake.path("out"))

    assert "no output of this run is known to be made from context 'right'" in caplog.text
    assert "spark.bookmarks.on_unused=ignore" in caplog.text
    assert "'left'" not in "".join(record.getMessage() for record in caplog.records if record.levelname == "WARNING")


def test_contexts_that_were_used_through_a_cache_or_a_join_are_none_to_warn_of(
    lake: Lake, caplog: pytest.LogCaptureFixture
) -> None:
    with lake.job() as job:
        left, right = read(lake, job, "left").distinct().cache(), read(lake, job, "right")
        left.count()
        job.write(left.union(right.where("value < 'z'")), "out").text(lake.path("out"))

    assert "no output" not in caplog.text


@pytest.mark.seldom
@pytest.mark.needs("observations")
def test_context_that_is_observed_is_named_where_no_action_read_it(
    lake: Lake, caplog: pytest.LogCaptureFixture
) -> None:
    with lake.job() as job:
        read(lake, job, "left", count_rows=True).take(1)
        read(lake, job, "right", count_rows=True)

    assert "no action of this script has read context 'right'; what was planned" in caplog.text


@pytest.mark.needs("observations")
def test_unused_context_is_an_error_where_it_shall_be_one_and_nothing_is_committed(lake: Lake) -> None:
    job = lake.job(on_unused="error").begin()
    job.write(read(lake, job, "left"), "out").text(lake.path("out"))
    read(lake, job, "right").where("false").count()

    with pytest.raises(
        MisuseError, match=r"no action of this script has read context 'right', .*Nothing was committed"
    ):
        job.commit()
    job.abort("it was refused")

    assert lake.state()[:3] == (0, 0, 0)
    assert lake.visible("out") == []


@pytest.mark.needs("observations")
def test_context_that_any_action_used_is_no_error(lake: Lake) -> None:
    with lake.job(on_unused="error") as job:
        job.write(read(lake, job, "left"), "out").text(lake.path("out"))
        assert read(lake, job, "right").collect()

    assert lake.state()[0] == 1


@pytest.mark.needs("observations")
def test_context_without_anything_new_need_not_be_used(lake: Lake) -> None:
    for _ in range(2):
        with lake.job(on_unused="error") as job:
            frame = read(lake, job, "left")
            if job.position("left") is None:
                frame.count()

    assert lake.state()[1] == 2


def test_setting_may_come_by_conf_and_silence_the_warning(lake: Lake, caplog: pytest.LogCaptureFixture) -> None:
    lake.spark.conf.set("spark.bookmarks.on_unused", "ignore")
    try:
        with lake.job() as job:
            read(lake, job, "left")
            job.write(read(lake, job, "right"), "out").text(lake.path("out"))
    finally:
        lake.spark.conf.unset("spark.bookmarks.on_unused")

    assert "no output" not in caplog.text


def test_unknown_choice_is_an_error(lake: Lake) -> None:
    with pytest.raises(OptionError, match="on_unused"):
        lake.job(on_unused="fail")


@pytest.mark.seldom
@pytest.mark.needs("observations")
def test_frame_that_need_not_be_known_is_not_observed(lake: Lake) -> None:
    with lake.job() as job:
        assert "CollectMetrics" not in explained(read(lake, job, "left"))
        assert "CollectMetrics" in explained(read(lake, job, "right", on_published="delete"))


def explained(frame: Any) -> str:
    frame.createOrReplaceTempView("explained")
    return str(frame.sparkSession.sql("EXPLAIN SELECT * FROM explained").collect()[0][0])
