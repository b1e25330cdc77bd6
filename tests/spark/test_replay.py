"""Promise RUN-18 with Spark: a replay reads the stored plan again and replaces the run's own files."""

# ruff: noqa: PT012 - what raises here is often the end of a block

from __future__ import annotations

from typing import Any

import pytest

from airflow_bookmarks.core.errors import MisuseError, OptionError, SourceChangedError
from tests.spark.lake import Lake, lines_of, rows_of

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]


def target_lines(lake: Lake) -> list[str]:
    return lines_of(lake.spark.read.text(lake.path("copy")))


def test_replay_with_other_code_replaces_the_output_of_that_run_alone(lake: Lake) -> None:
    lake.put("a.txt", "a")
    lake.copy()
    lake.put("b.txt", "b")
    lake.copy()

    with lake.job(replay=1) as job:
        frame = lake.read(job)
        assert lines_of(frame) == ["a"]
        job.write(frame.selectExpr("upper(value) AS value"), "out").text(lake.path("copy"))

    assert target_lines(lake) == ["A", "b"]
    assert job.summary is not None
    assert job.summary["run_number"] == "1"
    assert lake.staged("copy/_bookmarks") == []
    lake.put("c.txt", "c")
    lake.copy()
    assert target_lines(lake) == ["A", "b", "c"]


def test_replay_reads_the_columns_that_the_run_read(lake: Lake) -> None:
    def run(**kwargs: Any) -> list[tuple[str, str]]:
        with lake.job(**kwargs) as job:
            frame = job.read("raw").json(lake.path("raw"))
            job.write(frame, "out").parquet(lake.path("copy"))
            return frame.dtypes

    lake.put("1.json", '{"id": 1, "delay": 1.5, "tail": "x"}')
    run()
    lake.put("2.json", '{"id": 2, "delay": 3}')
    columns = run()
    lake.put("3.json", '{"id": 3, "delay": 3, "more": 1}')
    run()

    assert run(replay=2) == columns == [("delay", "double"), ("id", "bigint"), ("tail", "string")]
    assert rows_of(lake.spark.read.parquet(lake.path("copy")).select("id", "delay")) == [(1, 1.5), (2, 3.0), (3, 3.0)]


@pytest.mark.needs("observations")
def test_replay_of_which_a_read_failed_leaves_the_target(lake: Lake) -> None:
    lake.put("a.txt", "a")
    lake.copy()
    with pytest.raises(MisuseError, match="'raw' was planned and not read"), lake.job(replay=1) as job:
        with pytest.raises(OptionError):
            job.read("raw", watermark_column="nothing").text(lake.path("raw"))
        job.write(lake.spark.createDataFrame([], "value STRING"), "out").text(lake.path("copy"))
    assert target_lines(lake) == ["a"]


def test_replay_of_input_that_changed_fails_and_leaves_the_target(lake: Lake) -> None:
    lake.put("a.txt", "a")
    lake.copy()
    lake.put("a.txt", "another a")

    with pytest.raises(SourceChangedError), lake.job(replay=1) as job:
        lake.read(job)
    assert target_lines(lake) == ["a"]


@pytest.mark.parametrize(
    ("given", "said"), [({"replay": 0}, "number of a run"), ({"replay": 1, "option": "pause"}, "commits")]
)
def test_replay_that_makes_no_sense_is_refused(lake: Lake, given: dict[str, Any], said: str) -> None:
    with pytest.raises(OptionError, match=said):
        lake.job(**given)
