"""Promise DEP-5: a consumer that goes back along with its upstream has each row once, or says why that can't be."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import pytest

from airflow_bookmarks.core.errors import (
    ChangeRefusedError,
    PublishError,
    RewindAlongRefusedError,
    UpstreamReplayedError,
    UpstreamRewoundError,
)
from airflow_bookmarks.lifecycle.changes.change import rename_context, reset, rewind
from airflow_bookmarks.lifecycle.inspect.runs import history
from airflow_bookmarks.lifecycle.protocol.source_cleanup import Disposal
from airflow_bookmarks.lifecycle.run.enabled import ActiveRun
from airflow_bookmarks.lifecycle.run.replay import ReplayRun
from airflow_bookmarks.sinks.files.sink import FilesSink
from airflow_bookmarks.sinks.sink import NOT_TAKEN_BACK
from airflow_bookmarks.sinks.staging import Mode, StagingRequest, collect_staged
from airflow_bookmarks.sources.files.options import FileOptions
from airflow_bookmarks.sources.files.planner import FileSource
from airflow_bookmarks.sources.upstream.rewind import OnRewind
from airflow_bookmarks.sources.upstream.source import UpstreamSource
from tests.lifecycle.shop import FILES, Shop

WHY: dict[str, Any] = {"reason": "bad day", "who": "me"}
LEFT = "rewind_keep"


def rewound_chain(shop: Shop) -> None:
    """Let a consumer append three runs of its upstream, which is then made anew from its second run on."""
    for name in "abc":
        shop.put(f"{name}.txt", name)
        shop.run("up")
        shop.run("down", upstream="up")
    rewind(shop.store, "up", 1, clean=True, **WHY)
    shop.run("up")


def refused(shop: Shop, why: str) -> str:
    """Let the consumer go along, which is refused with the choices named and changes nothing."""
    before, rows = shop.store.head("down"), shop.target_lines("down")
    run = shop.begin("down")
    with pytest.raises(RewindAlongRefusedError, match=why) as caught:
        shop.copy(run, upstream="up", on_rewind="rewind")
    run.abort("a test")
    after = shop.store.head("down")
    assert (after.epoch, after.version, after.cleaning) == (before.epoch, before.version, None)
    assert shop.target_lines("down") == rows
    said = str(caught.value)
    for choice in (f"'{LEFT}'", "'ignore'", "Nothing was read or changed"):
        assert choice in said
    return said


def test_append_target_has_each_row_once_after_going_back_along(shop: Shop) -> None:
    rewound_chain(shop)
    lines, summary = shop.run("down", upstream="up", on_rewind="rewind")
    assert sorted(lines) == ["b", "c"]
    assert (summary.run_number, summary.epoch) == (4, 2)
    assert shop.target_lines("down") == {"a": 1, "b": 1, "c": 1}
    assert shop.store.head("down").cleaning is None


def test_going_back_along_to_the_beginning_leaves_each_row_once(shop: Shop) -> None:
    rewound_chain(shop)
    reset(shop.store, "up", clean=True, **WHY)
    shop.run("up")
    shop.run("down", upstream="up", on_rewind="rewind")
    assert shop.target_lines("down") == {"a": 1, "b": 1, "c": 1}


@pytest.mark.parametrize("way", ["rewind", LEFT])
def test_correction_that_was_taken_back_is_made_again_along(shop: Shop, way: OnRewind) -> None:
    down = replace(shop, mode=Mode.OVERWRITE_PARTITIONS)

    def consume() -> list[str]:
        run = down.begin("down")
        run.plan("news", UpstreamSource(down.store, "down", "up", on_rewind=way))
        lines = down.copy(run, options=FileOptions(reread="partition"))
        run.commit()
        return lines

    shop.put("month=1/a.txt", "a")
    shop.run("up")
    consume()
    shop.put("month=1/a.txt", "wrong", seconds=1_700_001_000)
    shop.run("up")
    assert consume() == ["wrong"]
    shop.put("month=1/a.txt", "a")
    rewind(shop.store, "up", 1, clean=True, **WHY)
    assert consume() == ["a"]
    assert shop.target_lines("down") == {"a": 1}
    assert consume() == []


def test_old_way_is_a_choice_by_name_and_leaves_what_was_written(shop: Shop) -> None:
    assert LEFT in get_args(OnRewind)
    rewound_chain(shop)
    shop.run("down", upstream="up", on_rewind=LEFT)
    assert shop.target_lines("down") == {"a": 1, "b": 2, "c": 2}


def test_clean_that_was_cut_off_is_finished_by_whoever_begins_next(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    rewound_chain(shop)
    run = shop.begin("down")
    with monkeypatch.context() as patch:
        patch.setattr("airflow_bookmarks.files.local.LocalFileSystem.delete", _out_of_reach)
        with pytest.raises(PublishError, match="the next run of the job finishes it"):
            shop.copy(run, upstream="up", on_rewind="rewind")
    run.abort("a test")
    assert shop.store.head("down").cleaning is not None
    shop.run("down", upstream="up")  # it is back already: nothing is left to decide
    assert shop.target_lines("down") == {"a": 1, "b": 1, "c": 1}


def _out_of_reach(*_: object) -> bool:
    raise PermissionError("the folder is read-only")


def test_file_that_somebody_touched_refuses_to_go_along(shop: Shop) -> None:
    rewound_chain(shop)
    file = _published(shop, 2)
    file.write_text("changed by hand\n")
    refused(shop, "has another content")


def _published(shop: Shop, number: int) -> Path:
    return next(path for path in (shop.root / "down").rglob(f"run-{number}.*") if path.is_file())


def test_consumer_that_has_read_the_undone_runs_refuses_to_go_along(shop: Shop) -> None:
    for name in "ab":
        shop.put(f"{name}.txt", name)
        shop.run("up")
        shop.run("down", upstream="up")
    shop.run("last", upstream="down")
    rewind(shop.store, "up", 1, clean=True, **WHY)
    said = refused(shop, "'last' has read it up to run 2")
    assert "rewind down --to 1 --clean" in said
    rewind(shop.store, "down", 1, clean=True, **WHY)
    shop.run("up")
    shop.run("down", upstream="up")
    shop.run("last", upstream="down", on_rewind="rewind")
    assert shop.target_lines("last") == {"a": 1, "b": 1}


def test_consumer_that_has_read_no_more_than_what_stays_hinders_nobody(shop: Shop) -> None:
    shop.put("a.txt", "a")
    shop.run("up")
    shop.run("down", upstream="up")
    shop.run("last", upstream="down")
    shop.put("b.txt", "b")
    shop.run("up")
    shop.run("down", upstream="up")
    rewind(shop.store, "up", 1, clean=True, **WHY)
    shop.run("up")
    shop.run("down", upstream="up", on_rewind="rewind")
    assert shop.target_lines("down") == {"a": 1, "b": 1}


@pytest.mark.parametrize("disposal", [Disposal("delete"), Disposal("archive", "done"), Disposal()])
def test_run_that_put_its_files_away_is_not_removed_by_going_along(shop: Shop, disposal: Disposal) -> None:
    """What it read besides the upstream can't be read again, so the rows made of it would be gone for good."""
    if disposal.archive_to is not None:
        disposal = replace(disposal, archive_to=str(shop.root / disposal.archive_to))
    beside = shop.root / "beside"
    beside.mkdir()

    def consume(name: str | None = None, on_rewind: OnRewind = "fail") -> None:
        if name is not None:
            (beside / name).write_text(f"{name}\n")
        run = shop.begin("down")
        run.dispose("beside", disposal)
        try:
            plans = [
                run.plan("raw", UpstreamSource(shop.store, "down", "up", on_rewind=on_rewind)),
                run.plan("beside", FileSource(FILES, [str(beside)])),
            ]
            append(shop, run, [path for plan in plans for path in plan.files.paths])
            run.commit()
        except RewindAlongRefusedError:
            run.abort("a test")
            raise

    for name in "ab":
        shop.put(f"{name}.txt", name)
        shop.run("up")
        consume(f"{name}{name}")
    rewind(shop.store, "up", 1, clean=True, **WHY)
    shop.run("up")
    if not disposal.is_kept:
        with pytest.raises(
            RewindAlongRefusedError, match="run 2 has put away the files that it read in context 'beside'"
        ):
            consume(on_rewind="rewind")
        assert shop.target_lines("down") == {"a": 1, "aa": 1, "b": 1, "bb": 1}
        consume(on_rewind="rewind_keep")
        assert shop.target_lines("down") == {"a": 1, "aa": 1, "b": 2, "bb": 1}
    else:
        consume(on_rewind="rewind")
        assert shop.target_lines("down") == {"a": 1, "aa": 1, "b": 1, "bb": 1}


def append(shop: Shop, run: ActiveRun, paths: Sequence[str]) -> None:
    """Stage the lines of some files as one output that appends."""
    target = str(shop.root / run.job)
    figures = {"format": "text", "mode": Mode.APPEND.value}
    folder = Path(run.place("out", StagingRequest("files", target, stats=figures)))
    folder.mkdir(parents=True)
    text = "".join(Path(path).read_text() for path in paths)
    (folder / "part.txt").write_text(text)
    rows = text.count("\n")
    staged = collect_staged(FILES, str(folder), target, run.file_token, Mode.APPEND, rows=rows, schema='{"fields":[]}')
    run.staged("out", staged)


def test_sink_that_takes_nothing_back_refuses_to_go_along(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    rewound_chain(shop)
    monkeypatch.setattr(FilesSink, "why_not_clean", lambda self, entry: NOT_TAKEN_BACK.format(entry.sink))
    refused(shop, r"a sink \(files\) that can't take rows back")


def test_overwritten_target_keeps_what_no_run_can_bring_back(shop: Shop, caplog: pytest.LogCaptureFixture) -> None:
    """Run 2 has replaced what run 1 wrote, and run 1 stays: to remove run 2's file would leave nothing of that."""
    for name in "abc":
        shop.put(f"{name}.txt", name)
        shop.run("up")
        overwriting(shop, "fail")
    rewind(shop.store, "up", 1, clean=True, **WHY)
    for _ in range(2):
        assert overwriting(shop, "rewind") == []
        assert shop.target_lines("down") == {"c": 1}
        assert "output 'out' stays as it is" in caplog.text
    shop.run("up")
    assert sorted(overwriting(shop, "fail")) == ["b", "c"]
    assert shop.target_lines("down") == {"b": 1, "c": 1}


def overwriting(shop: Shop, on_rewind: OnRewind) -> list[str]:
    """Make one run of the consumer that replaces all its target holds."""
    shop.mode = Mode.OVERWRITE
    lines, _ = shop.run("down", upstream="up", on_rewind=on_rewind)
    shop.mode = Mode.APPEND
    return lines


def test_overwritten_and_appended_target_refuses_to_go_along(shop: Shop) -> None:
    for name, mode in (("a", Mode.APPEND), ("b", Mode.OVERWRITE), ("c", Mode.APPEND)):
        shop.put(f"{name}.txt", name)
        shop.run("up")
        shop.mode = mode
        shop.run("down", upstream="up")
        shop.mode = Mode.APPEND
    rewind(shop.store, "up", 1, clean=True, **WHY)
    refused(shop, "overwritten files of output 'out' that no clean brings back, and run 3 has appended")


def test_open_and_undone_runs_are_told_in_the_history(shop: Shop) -> None:
    rewound_chain(shop)
    shop.run("down", upstream="up", on_rewind="rewind")
    assert [row["state"] for row in history(shop.store, "down")] == ["PUBLISHED", "UNDONE", "UNDONE", "PUBLISHED"]
    (event,) = shop.store.events("down")
    assert (event["kind"], event["files_to_clean"]) == ("rewind", 2)


# ---- the way out of REWOUND


def way_out(shop: Shop) -> str:
    """Let the consumer fail with REWOUND or REPLAYED, and return the command that its error names."""
    run = shop.begin("down")
    with pytest.raises((UpstreamRewoundError, UpstreamReplayedError)) as caught:
        shop.copy(run, upstream="up")
    run.abort("a test")
    command = re.search("'airflow-bookmarks ([^']+)'", str(caught.value))
    assert command is not None
    assert command[1].endswith(' --reason "..."')
    return command[1].removesuffix(' --reason "..."')


def test_error_names_the_run_to_go_back_to_and_that_works(shop: Shop) -> None:
    rewound_chain(shop)
    assert way_out(shop) == "rewind down --to 1 --clean"
    rewind(shop.store, "down", 1, clean=True, **WHY)
    shop.run("down", upstream="up")
    assert shop.target_lines("down") == {"a": 1, "b": 1, "c": 1}


def test_error_says_that_only_a_reset_fits_where_every_run_has_read_further(shop: Shop) -> None:
    for name in "ab":
        shop.put(f"{name}.txt", name)
        shop.run("up")
    shop.run("down", upstream="up")
    rewind(shop.store, "up", 1, clean=True, **WHY)
    assert way_out(shop) == "reset down --clean"
    reset(shop.store, "down", clean=True, **WHY)
    shop.run("up")
    shop.run("down", upstream="up")
    assert shop.target_lines("down") == {"a": 1, "b": 1}


def test_error_names_a_run_that_was_made_before_the_upstream_was_read(shop: Shop) -> None:
    shop.put("a.txt", "a")
    run = shop.begin("down")
    run.plan("other", FileSource(FILES, [str(shop.raw)]))
    run.commit()
    shop.run("up")
    shop.run("down", upstream="up")
    reset(shop.store, "up", clean=True, **WHY)
    assert way_out(shop) == "rewind down --to 1 --clean"


def test_error_of_a_replayed_upstream_names_the_way_too(shop: Shop) -> None:
    for name in "ab":
        shop.put(f"{name}.txt", name)
        shop.run("up")
        shop.run("down", upstream="up")
    replay = ReplayRun.begin_replay(shop.store, "up", shop.identity(), shop.environment, 2)
    shop.copy(replay)
    replay.commit()
    assert way_out(shop) == "rewind down --to 1 --clean"


def test_pause_of_a_rewound_consumer_names_the_way_too(shop: Shop) -> None:
    rewound_chain(shop)
    with pytest.raises(UpstreamRewoundError, match="rewind down --to 1 --clean"):
        shop.copy(shop.side("down"), upstream="up", on_rewind="rewind")


def test_consumer_whose_context_was_renamed_since_is_not_taken_back_under_its_former_name(shop: Shop) -> None:
    def consume(ctx: str, **more: Any) -> int:
        run = shop.begin("down")
        try:
            plan = run.plan(ctx, UpstreamSource(shop.store, "down", "up", **more))
        except ChangeRefusedError:
            run.abort("a test")
            raise
        run.commit()
        return len(plan)

    for name in "abc":
        shop.put(f"{name}.txt", name)
        shop.run("up")
        assert consume("raw") == 1
    rename_context(shop.store, "down", "raw", "clean", **WHY)
    assert consume("clean") == 0
    rewind(shop.store, "up", 2, clean=True, **WHY)
    shop.run("up")
    before = shop.store.head("down").epoch
    with pytest.raises(ChangeRefusedError, match="'clean' was called 'raw'"):
        consume("clean", on_rewind="rewind")
    assert shop.store.head("down").epoch == before

    rewind(shop.store, "down", 2, clean=True, **WHY)
    rename_context(shop.store, "down", "raw", "clean", **WHY)
    assert consume("clean", on_rewind="rewind") == 1


def test_context_that_read_less_does_not_hide_how_far_another_had_read(shop: Shop) -> None:
    def consume(*contexts: str, **more: Any) -> list[int]:
        run = shop.begin("down")
        try:
            plans = [run.plan(ctx, UpstreamSource(shop.store, "down", "up", **more)) for ctx in contexts]
        except UpstreamRewoundError:
            run.abort("a test")
            raise
        run.commit()
        return [len(plan) for plan in plans]

    for name, contexts in (("a", ("one", "two")), ("b", ("one",)), ("c", ("one",))):
        shop.put(f"{name}.txt", name)
        shop.run("up")
        consume(*contexts)
    rewind(shop.store, "up", 1, clean=True, **WHY)
    shop.put("d.txt", "d")
    shop.run("up")

    with pytest.raises(UpstreamRewoundError, match="rewind down --to 1 "):
        consume("one")
    assert consume("one", "two", on_rewind="rewind") == [3, 3]
    states = [row["state"] for row in history(shop.store, "down")]
    assert states == ["PUBLISHED", "UNDONE", "UNDONE", "PUBLISHED"]
