"""Promises RUN-3 to RUN-6, RUN-14, RUN-17, RUN-20, FILE-19, SINK-6: how a block may end, and what it tells."""

# ruff: noqa: PT012 - what raises here is often the end of a block

from __future__ import annotations

import logging
import sys
from pathlib import Path

import pytest
from pyspark.sql import functions as F

from airflow_bookmarks.core.errors import FencedError, JobBusyError, MisuseError, StoreUnavailableError
from airflow_bookmarks.core.run import RunState
from airflow_bookmarks.files.local import LocalFileSystem
from airflow_bookmarks.lifecycle.run.detached import DetachedRun
from airflow_bookmarks.spark import BookmarkedJob
from tests.spark.lake import LISTING_KEY, Lake, lines_of, rows_of

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]


# ---- how a block may end


def test_exception_in_the_block_commits_nothing_and_the_next_run_reads_it_again(lake: Lake) -> None:
    lake.put("a.txt", "a")
    with pytest.raises(ZeroDivisionError), lake.job() as job:
        job.write(lake.read(job), "out").text(lake.path("copy"))
        raise ZeroDivisionError("a test")
    assert (lake.head().run_number, lake.head().lease, lake.visible(), job.summary) == (0, None, [], None)
    lake.put("b.txt", "b")
    lake.copy()
    assert lines_of(lake.spark.read.text(lake.path("copy"))) == ["a", "b"]
    assert lake.staged("copy/_bookmarks") == []


def test_early_return_commits(lake: Lake) -> None:
    lake.put("a.txt", "a")

    def script() -> None:
        with lake.job() as job:
            frame = lake.read(job)
            if frame.count() == 1:
                return
            raise AssertionError("not reached")

    script()
    assert lake.head().run_number == 1


@pytest.mark.parametrize("code", [0, 1, "no reason"])
def test_sys_exit_aborts_and_says_so(lake: Lake, code: int | str, caplog: pytest.LogCaptureFixture) -> None:
    lake.put("a.txt", "a")
    with pytest.raises(SystemExit), lake.job() as job:
        job.write(lake.read(job), "out").text(lake.path("copy"))
        sys.exit(code)
    assert (lake.head().run_number, lake.head().lease, lake.visible()) == (0, None, [])
    assert any("sys.exit" in line and "nothing is committed" in line for line in caplog.messages)
    failure = lake.head().failed
    assert failure is not None
    assert failure.exit_code == (1 if code == "no reason" else code)


def test_script_that_never_leaves_the_block_moves_nothing(lake: Lake) -> None:
    lake.put("a.txt", "a")
    job = lake.job(run_id="task", attempt=1).begin()
    job.write(lake.read(job), "out").text(lake.path("copy"))
    assert (lake.head().run_number, lake.visible()) == (0, [])
    lake.copy(run_id="task", attempt=2)
    assert lines_of(lake.spark.read.text(lake.path("copy"))) == ["a"]
    assert lake.staged("copy/_bookmarks") == []


def test_block_that_reads_and_writes_nothing_commits_an_empty_run(lake: Lake) -> None:
    with lake.job():
        pass
    assert lake.head().run_number == 1


# ---- order


def test_commit_twice_is_an_error_that_moves_nothing(lake: Lake) -> None:
    job = lake.job().begin()
    job.commit()
    before = lake.state()
    with pytest.raises(MisuseError, match="can't commit, this run is over"):
        job.commit()
    assert lake.state() == before


def test_read_and_write_after_the_commit_are_errors(lake: Lake) -> None:
    lake.put("a.txt", "a")
    with lake.job() as job:
        frame = lake.read(job)
        job.commit()
        with pytest.raises(MisuseError, match="can't read 'other', this run is over"):
            job.read("other").text(lake.path("raw"))
        with pytest.raises(MisuseError, match="can't write 'out', this run is over"):
            job.write(frame, "out").text(lake.path("copy"))
    assert (lake.state(), lake.visible()) == ((1, 1, 1, {"raw": 1}), [])


def test_two_sources_of_one_name_are_an_error(lake: Lake) -> None:
    lake.put("a.txt", "a")
    with pytest.raises(MisuseError, match=r"'raw' is read twice.*a name of its own"), lake.job() as job:
        lake.read(job)
        lake.read(job)
    assert lake.head().run_number == 0


def test_read_and_write_without_begin_are_errors_that_say_how(lake: Lake) -> None:
    lake.put("a.txt", "a")
    job = lake.job()
    for use in (lambda: lake.read(job), lambda: job.write(lake.spark.range(1)).parquet(lake.path("copy")), job.commit):
        with pytest.raises(MisuseError, match=r"has not begun: use .with BookmarkedJob.*Nothing moved"):
            use()
    assert not (lake.root / "copy").exists()
    job.abort("nothing to give back")


def test_begin_twice_is_an_error(lake: Lake) -> None:
    job = lake.job().begin()
    with pytest.raises(MisuseError, match="begun already"):
        job.begin()
    job.abort("a test")


def test_notebook_begins_commits_and_aborts_by_hand(lake: Lake) -> None:
    lake.put("a.txt", "a")
    job = lake.job().begin()
    lines_of(lake.read(job))
    summary = job.commit()
    assert (summary["run_number"], summary) == ("1", job.summary)
    job = lake.job().begin()
    job.abort("looked enough")
    assert (lake.head().run_number, lake.head().lease) == (1, None)


@pytest.mark.parametrize("option", ["enable", "pause"])
def test_error_of_the_script_is_what_is_raised_though_the_staging_can_not_be_removed(
    lake: Lake, option: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def deny(*_: object) -> None:
        raise PermissionError("denied")

    lake.put("a.txt", "a")
    before = lake.spark.conf.get(LISTING_KEY)
    monkeypatch.setattr(LocalFileSystem, "remove", deny)
    with pytest.raises(ZeroDivisionError), lake.job(option=option) as job:
        job.write(lake.read(job), "out").text(lake.path("copy"))
        raise ZeroDivisionError
    assert lake.spark.conf.get(LISTING_KEY) == before


def test_session_is_as_it_was_also_where_the_end_of_the_run_fails(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise StoreUnavailableError("no answer")

    closed: list[str] = []
    job = lake.job(option="pause").begin()
    job._session_conf.callback(closed.append, "closed")
    monkeypatch.setattr(DetachedRun, "abort", fail)
    with pytest.raises(StoreUnavailableError):
        job.abort("a test")
    assert closed == ["closed"]


def test_block_goes_on_with_a_job_that_was_begun_or_committed_or_aborted_by_hand(lake: Lake) -> None:
    with lake.job().begin() as job:
        job.commit()
    with lake.job() as job:
        job.abort("by hand")
    assert lake.head().run_number == 1


def test_context_that_a_run_does_not_use_keeps_its_position(lake: Lake) -> None:
    lake.put("a.txt", "a")
    with lake.job() as job:
        for ctx in ("one", "two"):
            job.read(ctx).text(lake.path("raw"))
    lake.put("b.txt", "b")
    with lake.job() as job:
        job.read("one").text(lake.path("raw"))
    with lake.job() as job:
        assert lines_of(job.read("one").text(lake.path("raw"))) == []
        assert lines_of(job.read("two").text(lake.path("raw"))) == ["b"]


# ---- looking


def test_run_sees_its_bookmark_before_and_after(lake: Lake) -> None:
    lake.put("a.txt", "a")
    with lake.job() as job:
        assert (job.position("raw"), job.watermark("raw"), job.run_number) == (None, None, 1)
        lake.read(job)
    first = job.watermark("raw")
    assert first == "2023-11-14T22:13:20.000000Z"
    assert job.position("raw") == {
        "kind": "files",
        "run_number": 1,
        "watermark": first,
        "source": f"files:{lake.path('raw')}",
    }
    lake.put("b.txt", "b")
    with lake.job() as job:
        assert job.watermark("raw") == first
        lake.read(job)
    assert job.watermark("raw") == "2023-11-14T22:13:21.000000Z"


def test_run_token_tells_runs_and_attempts_apart(lake: Lake) -> None:
    tokens = []
    for option in ("enable", "enable", "pause", "disable"):
        with lake.job(option=option) as job:
            tokens.append(job.run_token)
    job = lake.job().begin()
    tokens.append(job.run_token)
    job.abort("a test")
    with lake.job() as job:
        tokens.append(job.run_token)
    assert len(set(tokens)) == len(tokens)


@pytest.mark.needs("observations")
def test_summary_counts_what_was_read_and_written(lake: Lake) -> None:
    lake.put("a.txt", "a", "b")
    lake.put("b.txt", "c")
    lake.put("_hidden", "x")
    lake.copy()
    lake.put("c.txt", "d", "e", "f")
    with lake.job(run_id="night") as job:
        job.write(lake.read(job, count_rows=True).where("value <> 'd'"), "out").text(lake.path("copy"))
    summary = job.summary
    assert summary is not None
    seconds = summary.pop("seconds")
    assert set(seconds) == {"begin", "plan", "read_write", "commit", "publish"}
    assert summary == {
        "job": "copy",
        "namespace": "test",
        "run_id": "night",
        "option": "enable",
        "run_number": "2",
        "epoch": "1",
        "version": "2",
        "is_empty": False,
        "is_published": True,
        "contexts": {
            "raw": {
                "files": 1,
                "bytes": 6,
                "rows": 3,
                "listed": 3,
                "known": 2,
                "read_again": 0,
                "skipped": {"hidden": 1},
                "watermark_from": "2023-11-14T22:13:21.000000Z",
                "watermark_to": "2023-11-14T22:13:23.000000Z",
            }
        },
        "outputs": {"out": {"rows": 2, "files": 1, "bytes": 4}},
    }


def test_log_tells_each_step_with_bookmark_job_and_context(lake: Lake, caplog: pytest.LogCaptureFixture) -> None:
    for i in range(32):
        lake.put(f"old{i}.txt", "x")
    lake.run()
    for i in range(15):
        lake.put(f"new{i}.txt", "x")
    caplog.clear()
    with caplog.at_level(logging.INFO, "airflow_bookmarks"):
        lake.run()
    told = [line for line in caplog.messages if line.startswith("bookmark copy, context raw")]
    assert [any(word in line for line in told) for word in ("found position of run 1", "moved to run 2")] == [
        True,
        True,
    ]
    assert any("processing 15 of 47 files (31.91%), 30 bytes; 32 known" in line for line in told)
    assert all("bookmark" in line for line in caplog.messages)


# ---- counting


@pytest.mark.needs("observations")
def test_rows_read_are_those_of_the_source_not_those_that_are_left(lake: Lake) -> None:
    lake.put("a.txt", *"abcdef")
    with lake.job() as job:
        frame = lake.read(job, count_rows=True)
        assert frame.where("value > 'd'").count() == 2
        assert frame.count() == 6
    assert job.summary is not None
    assert job.summary["contexts"]["raw"]["rows"] == 6


@pytest.mark.needs("observations")
def test_rows_are_not_known_where_no_action_needed_the_frame_and_the_commit_does_not_hang(lake: Lake) -> None:
    lake.put("a.txt", "a")
    with lake.job() as job:
        job.read("unused", count_rows=True).text(lake.path("raw"))
        filtered = job.read("filtered", count_rows=True).text(lake.path("raw"))
        assert filtered.where(F.lit(False)).count() == 0
        job.write(filtered.where(F.lit(False)), "nothing").text(lake.path("nothing"))
        used = job.read("used", count_rows=True).text(lake.path("raw"))
        assert used.count() == 1
    assert job.summary is not None
    assert {ctx: figures["rows"] for ctx, figures in job.summary["contexts"].items()} == {
        "unused": None,
        "filtered": None,
        "used": 1,
    }


@pytest.mark.needs("observations")
def test_rows_of_an_empty_increment_are_none(lake: Lake) -> None:
    with lake.job() as job:
        frame = lake.read(job, count_rows=True)
        job.write(frame, "out").text(lake.path("copy"))
    assert job.summary is not None
    assert (job.summary["contexts"]["raw"]["rows"], job.summary["outputs"]["out"]["rows"]) == (0, 0)


@pytest.mark.parametrize(
    ("condition", "rows"), [("value >= 'b'", 2), ("value = 'z'", 0), ("false", 0), ("value is null", 0)]
)
def test_rows_written_are_counted(lake: Lake, condition: str, rows: int) -> None:
    lake.put("a.txt", *"abc")
    with lake.job() as job:
        job.write(lake.read(job).where(condition), "out").text(lake.path("copy"))
    assert job.summary is not None
    assert job.summary["outputs"]["out"]["rows"] == rows


def test_rows_written_are_not_counted_when_not_asked_for(lake: Lake) -> None:
    lake.put("a.txt", "a")
    with lake.job() as job:
        job.write(lake.read(job), "out", count_rows=False).text(lake.path("copy"))
    assert job.summary is not None
    assert job.summary["outputs"]["out"] == {"rows": None, "files": 1, "bytes": 2}


# ---- two at once


def test_second_run_of_a_job_is_told_who_holds_it(lake: Lake) -> None:
    with lake.job(run_id="first"):
        with pytest.raises(JobBusyError, match=r"worked on by 'first'.*Nothing was read or changed.*Let it end"):
            lake.job(run_id="second").begin()
        with lake.job("another", run_id="third"):
            pass
    with lake.job(run_id="second"):
        pass


def test_fenced_run_cannot_commit(lake: Lake) -> None:
    lake.put("a.txt", "a")
    zombie = lake.job(run_id="task", attempt=1).begin()
    zombie.write(lake.read(zombie), "out").text(lake.path("copy"))
    assert lake.copy(run_id="task", attempt=2)["run_number"] == "1"
    before = (lake.state(), lake.visible())
    with pytest.raises(FencedError):
        zombie.commit()
    zombie.abort("fenced")
    assert (lake.state(), lake.visible()) == before


def test_own_sink_can_use_the_token_to_write_once(lake: Lake) -> None:
    lake.put("a.txt", "a")
    with lake.job() as job:
        folder = Path(lake.path("own", job.run_token.replace("/", "~")))
        lake.read(job).write.mode("overwrite").parquet(str(folder))
    assert rows_of(lake.spark.read.parquet(lake.path("own", "*"))) == [("a",)]


def test_failed_run_is_kept_with_its_error(lake: Lake) -> None:
    lake.put("a.txt", "a")
    with pytest.raises(ValueError, match="bad row"), lake.job() as job:
        lake.read(job)
        raise ValueError("bad row")
    (run,) = lake.store.runs("copy")
    assert (run.state, run.error) == (RunState.FAILED, "ValueError: bad row")


def test_active_session_is_taken_where_none_is_given(lake: Lake) -> None:
    lake.spark.range(1).count()
    assert BookmarkedJob(name="copy", store=lake.store).spark is not None


@pytest.mark.needs("whole errors")
@pytest.mark.parametrize("is_caught", [False, True])
def test_stored_error_of_spark_has_its_cause_and_not_its_stack(
    lake: Lake, caplog: pytest.LogCaptureFixture, is_caught: bool
) -> None:
    lake.put("a.txt", "a")
    fails = F.udf(lambda value: 1 // (len(value) - 1), "int")

    job = lake.job().begin()
    out = job.write(lake.read(job).select(fails("value")), "out")
    with pytest.raises(Exception, match="division") as raised:
        out.parquet(lake.path("out"))
    if is_caught:
        with pytest.raises(MisuseError) as raised:
            job.commit()
    job.__exit__(raised.type, raised.value, None)

    run = next(iter(lake.store.runs("copy")))
    for told in (run.error or "", caplog.text):
        assert "ZeroDivisionError: integer division or modulo by zero" in told
        assert ".scala:" not in told
    assert len((run.error or "").splitlines()) < 12
