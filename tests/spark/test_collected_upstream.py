"""Files of an upstream whose runs were collected are read again as the script says that they were written."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from pyspark.sql import DataFrame

from airflow_bookmarks.core.errors import SourceError
from airflow_bookmarks.core.text.instant import utc_now
from airflow_bookmarks.lifecycle.maintenance.retention import collect
from airflow_bookmarks.spark import BookmarkedJob
from tests.spark.lake import Lake, rows_of

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]

COLUMNS = {"csv": "carrier STRING, delay INT", "text": "value STRING"}
FIRST: dict[str, tuple[Any, ...]] = {"csv": ("a,b", 1), "text": ("a;1",)}
SECOND: dict[str, tuple[Any, ...]] = {"csv": ("c,d", 2), "text": ("b;2",)}


def publish(lake: Lake, form: str, row: tuple[Any, ...], **options: str) -> None:
    """Make one run of the upstream `clean`, which writes one row."""
    lake.put(f"{len(list((lake.root / 'raw').iterdir()))}.txt", "new")
    with lake.job("clean") as job:
        lake.read(job)
        frame = lake.spark.createDataFrame([row], COLUMNS[form])
        job.write(frame, "out").format(form).options(**options).save(lake.path("clean"))


def read(job: BookmarkedJob, form: str | None = None, **options: str) -> DataFrame:
    """Read the upstream; with a format as the script says by itself how it was written."""
    reader = job.read("clean")
    if form is not None:
        reader = reader.format(form).schema(COLUMNS[form]).options(**options)
    return reader.upstream("clean")


def consume(lake: Lake, form: str | None = None, options: dict[str, str] | None = None, **kwargs: Any) -> list[Any]:
    """Make one run of the consumer, which writes what it has read to a target of its own."""
    with lake.job("report", **kwargs) as job:
        frame = read(job, form, **(options or {}))
        rows = rows_of(frame)
        job.write(frame, "out").parquet(lake.path(f"report-{kwargs.get('option', 'enable')}"))
    return rows


def make_two_and_collect_one(lake: Lake, form: str, **options: str) -> None:
    for row in (FIRST[form], SECOND[form]):
        publish(lake, form, row, **options)
        assert consume(lake) == [row]
    collect(lake.store, jobs=["clean"], clock=lambda: utc_now() + timedelta(days=100))
    assert [run.key.number for run in lake.store.runs("clean")] == [2]


@pytest.mark.seldom
def test_replay_reads_collected_files_with_the_format_columns_and_options_of_the_script(lake: Lake) -> None:
    make_two_and_collect_one(lake, "csv", sep=";")
    with pytest.raises(SourceError, match=r"collected.*Give \.format\(...\), \.schema\(...\) and each \.option"):
        consume(lake, replay=1)

    assert consume(lake, "csv", {"sep": ";"}, replay=1) == [FIRST["csv"]]
    target = lake.spark.read.parquet(lake.path("report-enable"))
    assert rows_of(target) == [FIRST["csv"], SECOND["csv"]]


@pytest.mark.seldom
def test_pause_window_over_collected_files_needs_the_options_that_the_runs_left_have_stored(lake: Lake) -> None:
    make_two_and_collect_one(lake, "csv", sep=";")
    (left,) = lake.store.runs("clean")
    stored = dict(left.outputs["out"].metadata.options)
    window: dict[str, Any] = {"option": "pause", "from_run": "0", "to_run": "2"}
    with pytest.raises(SourceError, match="were collected"):
        consume(lake, "csv", {"sep": ";"}, **window)

    assert consume(lake, "csv", stored, **window) == [FIRST["csv"], SECOND["csv"]]


@pytest.mark.seldom
@pytest.mark.parametrize("again", [{"option": "pause", "from_run": "0", "to_run": "2"}, {"replay": 1}])
def test_collected_files_are_not_read_by_a_script_that_gives_no_option(lake: Lake, again: dict[str, Any]) -> None:
    make_two_and_collect_one(lake, "text")
    with pytest.raises(SourceError, match="were collected"):
        consume(lake, "text", **again)


@pytest.mark.seldom
def test_replay_of_collected_text_needs_the_line_separator_of_the_script(lake: Lake) -> None:
    make_two_and_collect_one(lake, "text")
    assert consume(lake, "text", {"lineSep": "\n"}, replay=1) == [FIRST["text"]]
