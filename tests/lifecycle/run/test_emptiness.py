"""Promise RUN-4: a run is empty if nothing moved, and rows are never dropped in silence or reported unpublished."""

from __future__ import annotations

import logging
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from airflow_bookmarks.core.job_state import STATE_CONTEXT
from airflow_bookmarks.core.rules.emptiness import WhenEmpty
from airflow_bookmarks.lifecycle.inspect.lag import lag
from airflow_bookmarks.lifecycle.inspect.pending import pending
from airflow_bookmarks.lifecycle.inspect.runs import history
from airflow_bookmarks.lifecycle.maintenance.doctor import examine
from airflow_bookmarks.lifecycle.run.empty import commit_empty
from airflow_bookmarks.lifecycle.run.replay import ReplayRun
from airflow_bookmarks.lifecycle.run.session import RunSession
from airflow_bookmarks.lifecycle.state.summary import Summary
from airflow_bookmarks.sinks.staging import Mode, StagingRequest, collect_staged
from airflow_bookmarks.sources.files.planner import FileSource
from tests.lifecycle.shop import FILES, Shop


def stage(
    shop: Shop,
    run: RunSession,
    *lines: str,
    output: str = "api",
    mode: Mode = Mode.APPEND,
    when_empty: WhenEmpty | None = None,
    counted: bool = True,
) -> None:
    """Stage lines that come from somewhere else: one file, also where there is no line."""
    target = str(shop.root / output)
    place = StagingRequest("files", target, stats={"format": "text", "mode": mode.value}, when_empty=when_empty)
    folder = Path(run.place(output, place))
    folder.mkdir(parents=True)
    (folder / "part.txt").write_text("".join(f"{line}\n" for line in lines))
    rows = len(lines) if counted else None
    staged = collect_staged(FILES, str(folder), target, run.file_token, mode, rows=rows, schema='{"fields":[]}')
    run.staged(output, staged)


def fetch(shop: Shop, *lines: str, cursor: str | None = None, **kwargs: Any) -> Summary:
    """Make a run that reads the raw folder, writes lines from an API, and keeps how far it has asked for them."""
    run = shop.begin()
    run.plan("raw", FileSource(FILES, [str(shop.raw)]))
    stage(shop, run, *lines, **kwargs)
    if cursor is not None:
        run.state("cursor").set(cursor)
    return run.commit()


def visible(shop: Shop, output: str = "api") -> Counter[str]:
    return shop.target_lines(output)


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    """Return the messages of warnings: another test may have turned on the log of what goes as it should."""
    return [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]


@pytest.fixture
def read(shop: Shop) -> Shop:
    """Let a first run read all that is there, and write an output of an API."""
    shop.put("a.txt", "a")
    fetch(shop, "first", cursor="1")
    return shop


def test_rows_behind_a_cursor_that_moved_are_published(read: Shop) -> None:
    summary = fetch(read, "second", cursor="2")

    assert visible(read) == {"first": 1, "second": 1}
    assert (summary.is_empty, summary.outputs["api"]["rows"]) == (False, 1)
    assert read.store.head("copy").data_run_number == 2
    assert read.store.head("copy").contexts[STATE_CONTEXT].run.number == 2


def test_run_is_not_empty_if_its_state_alone_has_moved(read: Shop) -> None:
    run = read.begin()
    run.plan("raw", FileSource(FILES, [str(read.raw)]))
    run.state("cursor").set("2")
    assert not run.commit().is_empty
    run = read.begin()
    run.plan("raw", FileSource(FILES, [str(read.raw)]))
    run.state("cursor").set("2")
    assert run.commit().is_empty


def test_run_without_contexts_and_outputs_is_empty_unless_its_state_moves(shop: Shop) -> None:
    seen = []
    for cursor in ("1", "1", "2"):
        run = shop.begin()
        run.state("cursor").set(cursor)
        seen.append(run.commit().is_empty)
    assert seen == [False, True, False]


def test_output_of_a_run_without_contexts_is_published(shop: Shop) -> None:
    for line in ("first", "second"):
        run = shop.begin()
        stage(shop, run, line, mode=Mode.OVERWRITE)
        assert not run.commit().is_empty
    assert visible(shop) == {"second": 1}


def test_rows_that_are_appended_though_nothing_moved_are_published_and_are_news(read: Shop) -> None:
    read.run("report", upstream="copy")

    summary = fetch(read, "second")

    assert (summary.is_empty, read.store.head("copy").data_run_number) == (False, 2)
    (behind,) = (each for each in lag(read.store, "report") if each.kind == "upstream")
    assert (behind.runs, behind.files) == (1, 1)
    assert not pending(read.store, "report").is_empty
    assert read.run("report", upstream="copy")[0] == ["second"]
    assert examine(read.store) == []


def test_overwrite_of_a_run_in_which_nothing_moved_keeps_the_target_and_names_what_it_drops(
    read: Shop, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, "airflow_bookmarks"):
        summary = fetch(read, "x", "y", mode=Mode.OVERWRITE)

    assert visible(read) == {"first": 1}
    assert (summary.is_empty, read.store.head("copy").data_run_number) == (True, 1)
    expected = {"rows": 0, "files": 0, "bytes": 0, "discarded": True, "discarded_rows": 2, "discarded_files": 1}
    assert dict(summary.outputs["api"]) == expected
    assert "2 rows" in summary.in_words()
    assert "2 rows written" not in summary.in_words()
    (said,) = (record.getMessage() for record in caplog.records if "'api'" in record.getMessage())
    assert "2 rows" in said
    assert "when_empty" in said
    row = history(read.store, "copy")[-1]
    assert (row["rows_written"], row["outputs"]["api"]["discarded_rows"]) == (0, 2)


def test_rows_that_nobody_counted_are_named_by_their_files(read: Shop, caplog: pytest.LogCaptureFixture) -> None:
    summary = fetch(read, "x", mode=Mode.OVERWRITE, counted=False)
    figures = summary.outputs["api"]
    assert (figures["rows"], figures["discarded"], figures["discarded_rows"], figures["discarded_files"]) == (
        0,
        True,
        None,
        1,
    )
    assert any("1 file" in record.getMessage() for record in caplog.records)
    assert fetch(read, "y", counted=False).outputs["api"]["rows"] is None
    assert visible(read) == {"first": 1, "y": 1}


@pytest.mark.parametrize("cursor", [None, "2"])
@pytest.mark.parametrize("mode", list(Mode))
def test_output_without_rows_wipes_no_target_though_the_state_moves(
    read: Shop, mode: Mode, cursor: str | None, caplog: pytest.LogCaptureFixture
) -> None:
    summary = fetch(read, mode=mode, cursor=cursor)
    assert visible(read) == {"first": 1}
    assert list((read.root / "api").glob("*.txt")) == list((read.root / "api").glob("run-1*"))
    assert summary.is_empty is (cursor is None)
    assert "discarded" not in summary.outputs["api"]
    assert warnings(caplog) == []


def test_overwrite_behind_a_cursor_that_moved_is_published(read: Shop) -> None:
    fetch(read, "second", cursor="2", mode=Mode.OVERWRITE)
    assert visible(read) == {"second": 1}


@pytest.mark.parametrize("mode", [Mode.APPEND, Mode.OVERWRITE])
@pytest.mark.parametrize("cursor", [None, "2"])
def test_script_says_of_each_output_what_becomes_of_it(read: Shop, mode: Mode, cursor: str | None) -> None:
    fetch(read, "dropped", mode=mode, cursor=cursor, when_empty="discard")
    assert visible(read) == {"first": 1}
    summary = fetch(read, "wanted", mode=mode, when_empty="publish")
    assert visible(read) == ({"wanted": 1} if mode is Mode.OVERWRITE else {"first": 1, "wanted": 1})
    assert not summary.is_empty
    fetch(read, mode=Mode.OVERWRITE, when_empty="publish")
    assert visible(read) == {}


def test_what_becomes_of_an_empty_run_says_nothing_of_one_with_input(read: Shop) -> None:
    read.put("b.txt", "b")
    fetch(read, "second", when_empty="discard")
    assert visible(read) == {"first": 1, "second": 1}


def replay(shop: Shop, number: int, *lines: str, mode: Mode = Mode.APPEND) -> Summary:
    run = ReplayRun.begin_replay(shop.store, "copy", shop.identity(), shop.environment, number)
    run.plan("raw", FileSource(FILES, [str(shop.raw)]))
    stage(shop, run, *lines, mode=mode)
    return run.commit()


def test_replay_replaces_what_a_run_without_input_has_published(read: Shop) -> None:
    fetch(read, "second", cursor="2")
    replay(read, 2, "second, mended")
    assert visible(read) == {"first": 1, "second, mended": 1}
    assert examine(read.store) == []


def test_replay_drops_again_what_its_run_has_dropped_and_says_so(read: Shop, caplog: pytest.LogCaptureFixture) -> None:
    fetch(read, mode=Mode.OVERWRITE, cursor="2")
    summary = replay(read, 2, "x", mode=Mode.OVERWRITE)
    assert visible(read) == {"first": 1}
    assert (summary.outputs["api"]["rows"], summary.outputs["api"]["discarded_rows"]) == (0, 1)
    assert any("'api'" in record.getMessage() for record in caplog.records)


def test_replay_of_an_empty_run_that_makes_rows_publishes_none_and_claims_none(
    read: Shop, caplog: pytest.LogCaptureFixture
) -> None:
    fetch(read)
    summary = replay(read, 2, "x")
    assert visible(read) == {"first": 1}
    assert (summary.is_empty, summary.outputs["api"]["rows"]) == (True, 0)
    assert any("1 row of output 'api'" in record.getMessage() for record in caplog.records)


@pytest.mark.parametrize(
    ("mode", "lines", "seen"),
    [
        (Mode.APPEND, ["second"], {"first": 1, "second": 1}),
        (Mode.OVERWRITE, ["second"], {"first": 1}),
        (Mode.OVERWRITE, [], {"first": 1}),
    ],
)
def test_paused_run_decides_as_an_enabled_one(
    read: Shop, mode: Mode, lines: list[str], seen: dict[str, int], caplog: pytest.LogCaptureFixture
) -> None:
    run = read.side()
    run.plan("raw", FileSource(FILES, [str(read.raw)]))
    stage(read, run, *lines, mode=mode)
    summary = run.commit()
    assert visible(read) == seen
    published = len(lines) if seen != {"first": 1} else 0
    assert summary.outputs["api"]["rows"] == published
    assert bool(warnings(caplog)) is (len(lines) > published)


def test_worker_leaves_a_job_that_keeps_a_state_to_spark(read: Shop) -> None:
    assert commit_empty(read.store, "copy", read.identity(), read.environment) is None
    assert read.store.head("copy").run_number == 1


@pytest.mark.parametrize("publishes", ["by its rows", "by choice"])
def test_worker_leaves_a_job_whose_output_needs_no_input_to_spark(shop: Shop, publishes: str) -> None:
    shop.put("a.txt", "a")
    by_choice = publishes == "by choice"
    fetch(shop, "first", when_empty="publish" if by_choice else None)
    if not by_choice:
        fetch(shop, "second")
    before = shop.store.head("copy").run_number
    assert commit_empty(shop.store, "copy", shop.identity(), shop.environment) is None
    assert shop.store.head("copy").run_number == before


@pytest.mark.parametrize("has_input", [True, False], ids=["something new", "nothing new"])
def test_output_that_goes_by_its_rows_is_published_if_it_has_any(shop: Shop, has_input: bool) -> None:
    fetch(shop, "one", when_empty="rows")
    if has_input:
        shop.put("a.txt", "a")
    fetch(shop, when_empty="rows")
    assert visible(shop) == {"one": 1}
    files = list((shop.root / "api").glob("run-*"))

    fetch(shop, "two", when_empty="rows")

    assert visible(shop) == {"one": 1, "two": 1}
    assert len(files) == 1
    assert shop.staged_files("api") == []
