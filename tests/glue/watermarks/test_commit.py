"""Promise GLUE-10: a watermark becomes visible with the rows of its run, neither before them nor without them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from pyspark.sql import SparkSession

from airflow_bookmarks.core.errors import OptionError, TableMissingError
from airflow_bookmarks.glue.context import GlueContext
from airflow_bookmarks.glue.dynamic.frame import DynamicFrame
from airflow_bookmarks.glue.job import GlueJob
from airflow_bookmarks.glue.watermarks.kept import KeptWatermarks
from airflow_bookmarks.glue.watermarks.table import WatermarkExistsError, Watermarks
from airflow_bookmarks.spark.job import BookmarkedJob
from tests.glue.running import Script
from tests.glue.watermarks.tables import make_table

pytestmark = pytest.mark.spark

RUN = "jr_1"


class Killed(BaseException):
    """Stands for a process that ended at a point."""


@pytest.fixture
def marks(client: Any) -> Iterator[Watermarks]:
    name = f"glue-watermarks-{uuid4().hex}"
    make_table(client, name)
    yield Watermarks(name, client)
    client.delete_table(TableName=name)


def item(run: str = RUN, **values: Any) -> dict[str, Any]:
    return Watermarks.create_watermark_item("script", run, **values)


def written(marks: Watermarks) -> list[str]:
    """Return the runs that have a watermark in the table, as another program sees it."""
    found = marks.dynamodb_client.scan(TableName=marks.table_name, ConsistentRead=True)
    return sorted(each["runId"]["S"] for each in found["Items"])


def copy(script: Script, marks: Watermarks, day: int, run: str = RUN, then: Callable[[], object] = int) -> Any:
    """Return the body of a script that writes a row, adds the watermark of its day, and goes on with `then`."""

    def body(context: GlueContext) -> dict[str, Any] | None:
        before = marks.get_watermark_values("script")
        rows = context.spark_session.createDataFrame([(day,)], ["day"])
        context.write_dynamic_frame.from_options(
            DynamicFrame.fromDF(rows, context, "rows"),
            connection_type="s3",
            connection_options={"path": script.path("out")},
            format="json",
        )
        marks.add_watermark(item(run, day=day))
        then()
        return before

    return body


def rows(script: Script) -> list[str]:
    out = Path(script.path("out"))
    files = [path for path in out.glob("[!._]*") if path.is_file()] if out.exists() else []
    return sorted(line for path in files for line in path.read_text().splitlines())


def stop() -> None:
    raise Killed


def test_run_sees_what_it_has_added_and_others_see_it_once_it_is_committed(script: Script, marks: Watermarks) -> None:
    seen: list[Any] = []

    def look() -> None:
        seen.append((marks.get_most_recent_run_id("script"), marks.get_watermark_values("script", RUN)))
        seen.append([each["watermarks"] for each in marks.history("script")])
        seen.append(written(marks))

    assert script.run(copy(script, marks, 1, then=look)) is None
    assert seen == [(RUN, {"day": 1}), [{"day": 1}], []]
    assert written(marks) == [RUN]
    assert rows(script) == ['{"day":1}']


@pytest.mark.seldom
def test_run_that_fails_behind_its_watermark_leaves_none_and_its_retry_works(script: Script, marks: Watermarks) -> None:
    with pytest.raises(Killed):
        script.run(copy(script, marks, 1, then=stop))
    assert (written(marks), rows(script)) == ([], [])

    assert script.run(copy(script, marks, 2)) is None  # the same run id, and other values
    assert (marks.get_watermark_values("script"), rows(script)) == ({"day": 2}, ['{"day":2}'])


def die_behind_the_commit(script: Script, marks: Watermarks, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run it until its watermark would be written."""
    with monkeypatch.context() as patched:
        patched.setattr(KeptWatermarks, "write", lambda _: stop())
        with pytest.raises(Killed):
            script.run(copy(script, marks, 1))


@pytest.mark.seldom
def test_run_that_dies_behind_its_commit_leaves_its_watermark_to_the_next(
    script: Script, marks: Watermarks, monkeypatch: pytest.MonkeyPatch
) -> None:
    die_behind_the_commit(script, marks, monkeypatch)
    assert (written(marks), rows(script)) == ([], ['{"day":1}'])

    assert script.run(copy(script, marks, 2, "jr_2")) == {"day": 1}
    assert written(marks) == [RUN, "jr_2"]
    assert [each["watermarks"]["day"] for each in marks.history("script")] == [1, 2]
    assert rows(script) == ['{"day":1}', '{"day":2}']


@pytest.mark.seldom
def test_what_was_left_is_kept_until_the_script_asks_its_table(
    script: Script, marks: Watermarks, client: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    die_behind_the_commit(script, marks, monkeypatch)
    other = Watermarks(f"{marks.table_name}-other", client)
    make_table(client, other.table_name)
    script.run(lambda _: other.add_watermark(item("jr_2", day=7)))
    assert (written(marks), written(other)) == ([], ["jr_2"])
    assert script.run(lambda _: marks.get_watermark_values("script")) == {"day": 1}


def test_commit_that_fails_leaves_no_watermark(
    script: Script, marks: Watermarks, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(BookmarkedJob, "commit", lambda _: stop())
        with pytest.raises(Killed):
            script.run(copy(script, marks, 1))
    assert written(marks) == []


def test_second_watermark_of_the_run_is_refused_before_the_commit(script: Script, marks: Watermarks) -> None:
    def body(_: GlueContext) -> None:
        marks.add_watermark(item(day=1))
        marks.add_watermark(item(day=1))
        with pytest.raises(WatermarkExistsError, match="'jr_1' of job 'script' has a watermark"):
            marks.add_watermark(item(day=2))

    script.run(body)
    assert marks.get_watermark_values("script") == {"day": 1}
    with pytest.raises(WatermarkExistsError):
        script.run(copy(script, marks, 3))
    assert rows(script) == []


def test_table_that_is_missing_fails_the_run_before_its_commit(script: Script, client: Any) -> None:
    missing = Watermarks("no-such-table", client)
    with pytest.raises(TableMissingError):
        script.run(lambda _: missing.add_watermark(item(day=1)))
    assert script.run(lambda _: None) is None


@pytest.mark.seldom
def test_watermark_that_can_not_be_written_behind_the_commit_says_where_it_is(
    script: Script, marks: Watermarks, client: Any
) -> None:
    context = script.context
    job = GlueJob(context)
    job.init(script.name, {"job_bookmark_option": "job-bookmark-enable"})
    copy(script, marks, 1)(context)
    client.delete_table(TableName=marks.table_name)
    with pytest.raises(TableMissingError) as caught:
        job.commit()
    assert "is committed. Its watermark is kept with it, in job.state" in "".join(caught.value.__notes__)
    assert rows(script) == ['{"day":1}']
    make_table(client, marks.table_name)
    assert script.run(lambda _: marks.get_watermark_values("script")) == {"day": 1}


@pytest.mark.parametrize("option", ["pause", "disable"])
def test_watermark_is_written_at_once_where_rows_are(script: Script, marks: Watermarks, option: str) -> None:
    script.run(lambda _: None)
    seen: list[Any] = []
    script.run(copy(script, marks, 1, then=lambda: seen.append((written(marks), rows(script)))), option)
    assert seen == [([RUN], ['{"day":1}'])]


def test_watermark_is_written_at_once_with_direct_writes_and_without_init(
    script: Script, marks: Watermarks, spark: SparkSession
) -> None:
    marks.add_watermark(item("jr_0", day=0))
    assert written(marks) == ["jr_0"]
    spark.conf.set("spark.bookmarks.glue.writes", "direct")
    seen: list[Any] = []
    script.run(copy(script, marks, 1, then=lambda: seen.append(written(marks))))
    assert seen == [["jr_0", RUN]]


def test_watermark_that_is_too_large_to_be_kept_is_refused(script: Script, marks: Watermarks) -> None:
    with pytest.raises(OptionError, match="is the most"):
        script.run(lambda _: marks.add_watermark(item(text="x" * 20_000)))
    assert written(marks) == []
