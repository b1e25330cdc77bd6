"""`Job.init` and `commit`: which run they begin and end, and what happens to scripts that do it wrong."""

from __future__ import annotations

import itertools
import logging
import sys
import threading
from typing import Any

import pytest
from pyspark.sql import SparkSession

from airflow_bookmarks.core.errors import (
    BookmarkError,
    JobBusyError,
    MisuseError,
    NameInvalidError,
    OptionError,
    OutOfBoundsError,
)
from airflow_bookmarks.core.option import Option
from airflow_bookmarks.glue.arguments import getResolvedOptions
from airflow_bookmarks.glue.context import GlueContext
from airflow_bookmarks.glue.dynamic.records import FieldCaseError
from airflow_bookmarks.glue.job import Job, end_of_process
from airflow_bookmarks.glue.run import GlueRun, current_run, forget_runs
from airflow_bookmarks.spark import BookmarkedJob
from airflow_bookmarks.store.bookmark_store import BookmarkStore

ENABLE: dict[str, Any] = {"job_bookmark_option": "job-bookmark-enable"}

pytestmark = pytest.mark.spark


@pytest.fixture
def uri(store: BookmarkStore, tmp_path: Any, spark: SparkSession) -> str:
    """Name the store of this test in the conf, as the operator does."""
    uri = f"sqlite:///{tmp_path}/bookmarks.db?namespace=test"
    spark.conf.set("spark.bookmarks.store", uri)
    return uri


@pytest.fixture
def run(spark: SparkSession, uri: str) -> GlueRun:
    return current_run(spark)


def _with_state(run: GlueRun, value: int) -> None:
    run.state("counter").set(value)


def test_init_and_commit_move_the_bookmark(spark: SparkSession, run: GlueRun) -> None:
    job = Job(GlueContext(spark))
    for value in (1, 2):
        job.init("nightly orders", {**ENABLE, "JOB_RUN_ID": "jr_1"})
        assert (job.isInitialized(), run.is_managed, run.state("counter").get(0)) == (True, True, value - 1)
        _with_state(run, value)
        job.commit()
        assert (job.isInitialized(), run.is_managed) == (False, False)

    assert run.job is not None
    assert run.job.name == "nightly~20orders"


def test_second_run_of_a_script_has_a_run_id_of_its_own(spark: SparkSession, run: GlueRun) -> None:
    spark.conf.set("spark.bookmarks.run_id", "dag/run/task")
    job, ids = Job(spark), []
    for value in range(3):
        job.init("orders", ENABLE)
        ids.append(run.run_id)
        _with_state(run, value)
        job.commit()

    assert ids == ["dag/run/task", "dag/run/task-2", "dag/run/task-3"]
    assert spark.conf.get("spark.bookmarks.run_id") == "dag/run/task"


def test_option_that_nobody_gave_is_disable_and_the_operators_takes_its_place(
    spark: SparkSession, run: GlueRun, caplog: pytest.LogCaptureFixture
) -> None:
    args = getResolvedOptions(["script.py", "--JOB_NAME", "orders"], ["JOB_NAME"])
    with caplog.at_level(logging.INFO):
        Job(spark).init("orders", args)
        Job(spark).commit()
    assert run.option.value == "disable"
    assert "option disable (default of scripts for AWS Glue)" in caplog.text

    spark.conf.set("spark.bookmarks.option", "enable")
    Job(spark).init("orders", args)

    assert run.option.value == "enable"


def test_disable_without_a_store_works_and_records_nothing(spark: SparkSession) -> None:
    job = Job(spark)
    job.init("orders", {})
    run = current_run(spark)
    run.state("counter").set(1)

    assert (run.job, run.is_managed, run.state("counter").get()) == (None, False, 1)
    job.commit()


def test_enable_without_a_store_is_an_error(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AIRFLOW_BOOKMARKS_STORE", raising=False)

    with pytest.raises(OptionError, match=r"no store.*AIRFLOW_BOOKMARKS_STORE.*spark\.bookmarks\.store"):
        Job(spark).init("orders", ENABLE)


@pytest.mark.parametrize("name", ["", None])
def test_job_without_a_name_is_an_error_that_says_where_it_comes_from(
    spark: SparkSession, run: GlueRun, name: Any
) -> None:
    with pytest.raises(NameInvalidError, match=r"the job has no name.*--JOB_NAME"):
        Job(spark).init(name, ENABLE)


def test_busy_job_says_how_a_script_waits_for_it(spark: SparkSession, run: GlueRun, store: BookmarkStore) -> None:
    with BookmarkedJob(spark.newSession(), "orders", store=store), pytest.raises(JobBusyError) as busy:
        Job(spark).init("orders", ENABLE)

    assert any("--conf spark.bookmarks.on_conflict=wait" in note for note in busy.value.__notes__)


def test_store_may_come_from_the_environment(spark: SparkSession, uri: str, monkeypatch: pytest.MonkeyPatch) -> None:
    spark.conf.unset("spark.bookmarks.store")
    monkeypatch.setenv("AIRFLOW_BOOKMARKS_STORE", uri)

    Job(spark).init("orders", ENABLE)

    assert current_run(spark).is_managed


def test_failed_init_that_a_script_swallows_is_raised_by_all_that_follows(
    spark: SparkSession, run: GlueRun, store: BookmarkStore
) -> None:
    with BookmarkedJob(spark.newSession(), "orders", store=store):
        with pytest.raises(JobBusyError):
            Job(spark).init("orders", ENABLE)

        with pytest.raises(JobBusyError):
            run.check()
        with pytest.raises(JobBusyError):
            run.job_for("datasource0", "read")
        with pytest.raises(JobBusyError):
            Job(spark).commit()

    Job(spark).init("orders", ENABLE)
    run.check()


def test_bad_option_is_an_error_at_init_and_at_each_later_call(spark: SparkSession, run: GlueRun) -> None:
    with pytest.raises(OptionError, match="'persist'"):
        Job(spark).init("orders", {"job_bookmark_option": "persist"})

    with pytest.raises(OptionError, match="'persist'"):
        run.check()


@pytest.mark.parametrize("key", ["job-bookmark-option", "--job-bookmark-option", "job_bookmark_opt"])
def test_misspelt_key_of_the_arguments_is_an_error(spark: SparkSession, run: GlueRun, key: str) -> None:
    with pytest.raises(OptionError, match="known are job_bookmark_option"):
        Job(spark).init("orders", {key: "job-bookmark-enable"})


def test_name_that_is_not_the_operators_is_an_error_that_names_both(spark: SparkSession, run: GlueRun) -> None:
    spark.conf.set("spark.bookmarks.job", "orders")

    with pytest.raises(OptionError, match=r"'orders_eu'.*'orders'.*bookmark_job='orders_eu'"):
        Job(spark).init("orders_eu", ENABLE)


@pytest.mark.parametrize(("operators", "scripts"), [("a~b", "a~b"), ("a~20b", "a b")])
def test_name_that_is_the_operators_in_either_spelling_is_taken(
    spark: SparkSession, run: GlueRun, operators: str, scripts: str
) -> None:
    spark.conf.set("spark.bookmarks.job", operators)

    Job(spark).init(scripts, ENABLE)

    assert run.job is not None
    assert run.job.name == operators


def test_name_that_nobody_gave_the_script_is_the_operators(spark: SparkSession, run: GlueRun) -> None:
    spark.conf.set("spark.bookmarks.job", "orders")

    Job(spark).init("", ENABLE)

    assert run.job_name == "orders"


def test_read_whole_in_one_thread_leaves_those_of_others_their_bookmark(spark: SparkSession, run: GlueRun) -> None:
    Job(spark).init("orders", ENABLE)
    found: list[object] = []

    def read() -> None:
        found.append(run.job_for("datasource0", "create_dynamic_frame.from_options"))

    with run.reading_whole("create_data_frame.from_options"):
        thread = threading.Thread(target=read)
        thread.start()
        thread.join()
        assert run.job_for("datasource0", "create_data_frame.from_options") is None

    assert found == [run.job]


def test_init_twice_before_a_commit_is_an_error(spark: SparkSession, run: GlueRun) -> None:
    Job(spark).init("orders", ENABLE)

    with pytest.raises(MisuseError, match="has begun and is not committed"):
        Job(spark).init("orders", ENABLE)


def test_commit_without_init_warns_and_does_nothing(
    spark: SparkSession, run: GlueRun, caplog: pytest.LogCaptureFixture
) -> None:
    Job(spark).commit()

    assert "job.commit() without job.init() does nothing" in caplog.text


def test_commit_again_warns_and_is_an_error_if_something_was_written_since(
    spark: SparkSession, run: GlueRun, caplog: pytest.LogCaptureFixture
) -> None:
    job = Job(spark)
    job.init("orders", ENABLE)
    job.commit()
    job.commit()
    assert "job.commit() again does nothing" in caplog.text

    run.note_use()

    with pytest.raises(MisuseError, match="read or written since"):
        job.commit()


def test_context_after_the_commit_is_an_error(spark: SparkSession, run: GlueRun) -> None:
    Job(spark).init("orders", ENABLE)
    Job(spark).commit()

    with pytest.raises(MisuseError, match="is committed"):
        run.job_for("datasource0", "create_dynamic_frame.from_options")


def test_script_that_ends_without_commit_is_aborted_at_once_and_named_in_the_log(
    spark: SparkSession, run: GlueRun, store: BookmarkStore, caplog: pytest.LogCaptureFixture
) -> None:
    Job(spark).init("orders", ENABLE)
    run.job_for("datasource0", "read")
    run.output_name("sink", "s3://lake/orders")
    _with_state(run, 1)
    released: list[str] = []
    run.at_end(lambda: released.append("frame"))

    end_of_process()

    assert "was not committed: the script ended without job.commit()" in caplog.text
    assert "Nothing was published (what Spark's own writer has written stays)" in caplog.text
    assert "Read contexts: datasource0; outputs: sink" in caplog.text
    assert released == ["frame"]
    with BookmarkedJob(spark.newSession(), "orders", store=store) as job:
        assert job.state("counter").get() is None


def test_end_of_a_script_that_failed_is_told_in_sentences(
    spark: SparkSession, run: GlueRun, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    Job(spark).init("orders", ENABLE)
    monkeypatch.setattr(sys, "last_value", OptionError("no such table. Nothing was written."), raising=False)

    end_of_process()

    assert "no such table. Nothing was written. Nothing was published" in caplog.text


def test_reads_without_context_or_init_warn_once_each(
    spark: SparkSession, run: GlueRun, caplog: pytest.LogCaptureFixture
) -> None:
    for _ in range(2):
        assert run.job_for("datasource0", "create_dynamic_frame.from_catalog('orders')") is None
    Job(spark).init("orders", ENABLE)
    for _ in range(2):
        assert run.job_for("", "create_dynamic_frame.from_catalog('items')") is None

    warned = [record.getMessage() for record in caplog.records if "it has no bookmark" in record.getMessage()]
    assert len(warned) == 2
    assert all("bookmark" in message for message in warned)


def current_job(spark: SparkSession) -> BookmarkedJob:
    job = current_run(spark).job
    assert job is not None
    return job


@pytest.mark.seldom
def test_target_that_shares_a_name_keeps_its_own_in_a_run_that_writes_it_alone(
    spark: SparkSession, uri: str, tmp_path: Any, caplog: pytest.LogCaptureFixture
) -> None:
    context, job = GlueContext(spark), Job(spark)
    sources = {name: str(tmp_path / f"raw-{name}") for name in ("a", "b")}

    def run(*new: str) -> set[tuple[str, str]]:
        """Put a file into some sources, read and write both, and return the outputs with their targets."""
        for name in new:
            _files(tmp_path / f"raw-{name}", **{f"f{len(list((tmp_path / f'raw-{name}').glob('*')))}": '{"id": 1}\n'})
        job.init("orders", ENABLE)
        for name, source in sources.items():
            target = {"path": str(tmp_path / name)}
            context.write_dynamic_frame.from_options(
                _read(context, source, name), "file", target, "json", transformation_ctx="sink"
            )
        job.commit()
        (last,) = itertools.islice(current_job(spark).store.runs("orders", reverse=True), 1)
        return {(name, entry.target.rpartition("/")[2]) for name, entry in last.outputs.items()}

    for name in sources:
        (tmp_path / f"raw-{name}").mkdir()
    first = run("a", "b")
    (own,) = (name for name, target in first if target == "b")
    assert first == {("sink", "a"), (own, "b")}
    assert f"is {own!r}, now and in later runs" in caplog.text
    assert run("b") == {(own, "b")}
    assert run("a") == {("sink", "a")}


def test_outputs_are_named_by_context_or_target_and_never_by_order(spark: SparkSession, run: GlueRun) -> None:
    assert run.output_name("", "s3://lake/orders/") == "orders"
    assert run.output_name("sink", "s3://lake/a") == "sink"
    other = run.output_name("sink", "s3://lake/b")
    assert other.startswith("sink-")
    assert run.output_name("sink", "s3://lake/b") == other

    Job(spark).init("orders", ENABLE)
    assert run.output_name("sink", "s3://lake/b") == "sink"


def test_pause_run_over_a_window_begins_with_from_and_to(spark: SparkSession, run: GlueRun) -> None:
    for number in (1, 2):
        Job(spark).init("orders", {**ENABLE, "JOB_RUN_ID": f"jr_{number}"})
        _with_state(run, number)
        Job(spark).commit()

    Job(spark).init(
        "orders",
        {"job_bookmark_option": "job-bookmark-pause", "job_bookmark_from": "jr_1", "job_bookmark_to": "jr_2-2"},
    )

    assert (run.option, run.is_managed) == (Option.PAUSE, False)


def test_something_that_is_no_session_is_refused() -> None:
    with pytest.raises(TypeError, match=r"Job\(str\)"):
        Job("spark")


# ---- errors that a script catches


def _files(folder: Any, **texts: str) -> str:
    folder.mkdir(exist_ok=True)
    for name, text in texts.items():
        (folder / f"{name}.json").write_text(text)
    return str(folder)


def _read(context: GlueContext, path: str, ctx: str = "orders") -> Any:
    return context.create_dynamic_frame.from_options("file", {"paths": [path]}, "json", transformation_ctx=ctx)


@pytest.mark.parametrize(
    ("options", "fmt", "why"),
    [
        ({"path": "{target}"}, "csv", "choice"),
        ({"path": "{target}", "partitionKeys": ["day"]}, "json", "partitionKeys"),
        ({"path": "{target}"}, "ion", "ion"),
        ({}, "json", "path"),
    ],
    ids=["choice", "partition", "format", "path"],
)
def test_write_that_fails_before_anything_is_staged_blocks_the_commit(
    spark: SparkSession, uri: str, tmp_path: Any, options: dict[str, Any], fmt: str, why: str
) -> None:
    source = _files(tmp_path / "raw", a='{"id": 1}\n{"id": "x"}\n')
    context, job = GlueContext(spark), Job(spark)
    given = {key: str(tmp_path / "out") if value == "{target}" else value for key, value in options.items()}
    job.init("orders", ENABLE)
    frame = _read(context, source)
    with pytest.raises((BookmarkError, TypeError)):
        context.write_dynamic_frame.from_options(frame, "file", given, fmt)
    with pytest.raises(MisuseError, match=f"a write or purge has failed, and the script went on: .*{why}"):
        job.commit()
    end_of_process()
    job.init("orders", ENABLE)
    assert _read(context, source).count() == 2


def test_write_that_succeeds_when_tried_again_lets_the_run_commit(spark: SparkSession, uri: str, tmp_path: Any) -> None:
    source = _files(tmp_path / "raw", a='{"id": 1}\n{"id": "x"}\n')
    context, job = GlueContext(spark), Job(spark)
    job.init("orders", ENABLE)
    frame = _read(context, source)
    with pytest.raises(BookmarkError, match="choice"):
        context.write_dynamic_frame.from_options(frame, "file", {"path": str(tmp_path / "out")}, "csv")
    context.write_dynamic_frame.from_options(frame, "file", {"path": f"{tmp_path / 'out'}/"}, "json")
    job.commit()
    assert spark.read.json(str(tmp_path / "out")).count() == 2


@pytest.mark.parametrize(
    ("options", "error"),
    [({"dbtable": "orders", "database": "dw"}, BookmarkError), ("dbtable=orders", (TypeError, ValueError))],
    ids=["connection", "no-options"],
)
def test_write_that_fails_is_not_made_good_by_a_write_of_the_frame_to_another_place(
    spark: SparkSession, uri: str, tmp_path: Any, options: Any, error: Any
) -> None:
    context, job = GlueContext(spark), Job(spark)
    job.init("orders", ENABLE)
    frame = _read(context, _files(tmp_path / "raw", a='{"id": 1}\n'))
    with pytest.raises(error):
        context.write_dynamic_frame.from_jdbc_conf(frame, "no-such-connection", options)
    context.write_dynamic_frame.from_options(frame, "file", {"path": str(tmp_path / "out")}, "json")
    with pytest.raises(MisuseError, match="a write or purge has failed"):
        job.commit()


def test_frame_of_spark_that_is_written_when_tried_again_lets_the_run_commit(
    spark: SparkSession, uri: str, tmp_path: Any
) -> None:
    context, job = GlueContext(spark), Job(spark)
    job.init("orders", ENABLE)
    rows = _read(context, _files(tmp_path / "raw", a='{"id": 1}\n')).toDF()
    target = {"path": str(tmp_path / "out")}
    with pytest.raises(BookmarkError):
        context.write_data_frame.from_options(rows, "file", target, "ion")
    context.write_data_frame.from_options(rows, "file", target, "json")
    job.commit()
    assert spark.read.json(str(tmp_path / "out")).count() == 1


@pytest.mark.parametrize("writer", ["write_dynamic_frame", "write_data_frame"])
def test_frame_of_the_other_kind_that_is_given_to_a_write_blocks_the_commit(
    spark: SparkSession, uri: str, tmp_path: Any, writer: str
) -> None:
    context, job = GlueContext(spark), Job(spark)
    job.init("orders", ENABLE)
    frame = _read(context, _files(tmp_path / "raw", a='{"id": 1}\n'))
    with pytest.raises(TypeError):
        getattr(context, writer).from_options(
            frame.toDF() if writer == "write_dynamic_frame" else frame, "file", {"path": str(tmp_path / "out")}, "json"
        )
    with pytest.raises(MisuseError, match="a write or purge has failed"):
        job.commit()


def test_purge_that_fails_blocks_the_commit(spark: SparkSession, uri: str, tmp_path: Any) -> None:
    context, job = GlueContext(spark), Job(spark)
    job.init("orders", ENABLE)
    with pytest.raises(OutOfBoundsError):
        context.purge_s3_path("file:///", {"retentionPeriod": 0})
    frame = _read(context, _files(tmp_path / "raw", a='{"id": 1}\n'))
    context.write_dynamic_frame.from_options(frame, "file", {"path": str(tmp_path / "out")}, "json")
    with pytest.raises(MisuseError, match="a write or purge has failed"):
        job.commit()


@pytest.mark.parametrize(
    ("table", "options", "why"),
    [
        ("missing", {}, "missing"),
        ("orders", {"partitionPredicate": "day = '1'"}, "no partitions"),
        ("orders", {"retentionPeriod": "soon"}, "retentionPeriod"),
    ],
    ids=["no-table", "no-partitions", "option"],
)
def test_purge_of_a_table_that_fails_before_anything_is_listed_blocks_the_commit(
    spark: SparkSession, uri: str, tmp_path: Any, table: str, options: dict[str, Any], why: str
) -> None:
    spark.conf.set("spark.bookmarks.glue.catalog", "hive")
    forget_runs()  # a run takes its settings when it is made
    spark.sql(f"CREATE TABLE orders (id INT) USING parquet LOCATION '{(tmp_path / 'out').as_uri()}'")
    try:
        context, job = GlueContext(spark), Job(spark)
        job.init("orders", ENABLE)
        with pytest.raises(Exception, match=why):
            context.purge_table(None, "default", table, options)
        frame = _read(context, _files(tmp_path / "raw", a='{"id": 1}\n'))
        context.write_dynamic_frame.from_options(frame, "file", {"path": str(tmp_path / "out")}, "json")
        with pytest.raises(MisuseError, match="a write or purge has failed"):
            job.commit()
    finally:
        spark.sql("DROP TABLE orders")


def test_purge_that_succeeds_when_tried_again_lets_the_run_commit(spark: SparkSession, uri: str, tmp_path: Any) -> None:
    (tmp_path / "out").mkdir()
    context, job = GlueContext(spark), Job(spark)
    job.init("orders", ENABLE)
    with pytest.raises(BookmarkError):
        context.purge_s3_path(str(tmp_path / "out"), {"retentionPeriod": "soon"})
    context.purge_s3_path(f"{tmp_path / 'out'}/", {"retentionPeriod": 0})
    job.commit()


def test_read_that_fails_when_it_is_planned_blocks_the_commit(spark: SparkSession, uri: str, tmp_path: Any) -> None:
    source = _files(tmp_path / "raw", a='{"id": 1}\n{"Id": 2}\n')
    context, job = GlueContext(spark), Job(spark)
    job.init("orders", ENABLE)
    with pytest.raises(FieldCaseError):
        _read(context, source)
    with pytest.raises(BookmarkError, match="only in case"):
        job.commit()


def test_source_that_is_missing_lets_the_others_commit(spark: SparkSession, uri: str, tmp_path: Any) -> None:
    context, job = GlueContext(spark), Job(spark)
    job.init("orders", ENABLE)
    with pytest.raises(BookmarkError):
        _read(context, str(tmp_path / "never"), "never")
    frame = _read(context, _files(tmp_path / "raw", a='{"id": 1}\n'))
    context.write_dynamic_frame.from_options(frame, "file", {"path": str(tmp_path / "out")}, "json")
    job.commit()
    assert spark.read.json(str(tmp_path / "out")).count() == 1


def test_failure_of_a_run_that_moves_no_bookmark_is_the_scripts_own(
    spark: SparkSession, uri: str, tmp_path: Any
) -> None:
    context, job = GlueContext(spark), Job(spark)
    job.init("orders", {"job_bookmark_option": "job-bookmark-disable"})
    frame = _read(context, _files(tmp_path / "raw", a='{"id": 1}\n'))
    with pytest.raises(BookmarkError):
        context.write_dynamic_frame.from_options(frame, "file", {}, "json")
    job.commit()


@pytest.mark.parametrize("option", ["job-bookmark-disable", "job-bookmark-pause"])
def test_source_that_changes_during_a_run_fails_no_commit_of_what_is_written_already(
    spark: SparkSession, uri: str, tmp_path: Any, option: str
) -> None:
    source = _files(tmp_path / "raw", a='{"id": 1}\n', b='{"id": 2}\n')
    context, job = GlueContext(spark), Job(spark)
    job.init("orders", {"job_bookmark_option": option})
    frame = _read(context, source)
    context.write_dynamic_frame.from_options(frame, "file", {"path": str(tmp_path / "out")}, "json")
    _files(tmp_path / "raw", a='{"id": 1, "name": "replaced"}\n')
    job.commit()
    assert spark.read.json(str(tmp_path / "out")).count() == 2
