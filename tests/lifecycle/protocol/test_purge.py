"""Promise SINK-5 for a purge: what a run has listed goes with its publish, and nothing goes before."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from airflow_bookmarks.core.errors import ChangeRefusedError, OutOfBoundsError
from airflow_bookmarks.core.job import RunIdentity
from airflow_bookmarks.core.rules.territory import PurgeBounds, Territory
from airflow_bookmarks.lifecycle.changes.change import reset, rewind
from airflow_bookmarks.lifecycle.maintenance.doctor import examine
from airflow_bookmarks.lifecycle.protocol.failpoint import Failpoint
from airflow_bookmarks.lifecycle.protocol.finish import finish
from airflow_bookmarks.lifecycle.protocol.lease import RunEnvironment
from airflow_bookmarks.lifecycle.run.enabled import ActiveRun
from airflow_bookmarks.lifecycle.run.replay import ReplayRun
from airflow_bookmarks.lifecycle.run.session import RunSession
from airflow_bookmarks.sinks.files.changes import FileChanges
from airflow_bookmarks.sinks.staging import Staged, StagingRequest
from airflow_bookmarks.sources.files.planner import FileSource
from tests.lifecycle.shop import FILES, Shop, short_lease

COMMITTED = list(Failpoint)[list(Failpoint).index(Failpoint.COMMITTED) :]


def purge(shop: Shop, run: RunSession, files: list[str] | None = None) -> None:
    """Let the run purge files of its target: by default all that lie there now."""
    target = shop.root / run.job
    listed = FILES.list(str(target), recursive=True).files if files is None and target.exists() else ()
    paths = [file.path for file in listed] if files is None else files
    run.place("purge", StagingRequest("files", str(target), stats={"mode": "purge"}))
    run.staged("purge", Staged((), paths, rows=0, purged=list(listed)))


def purge_and_copy(shop: Shop, run_id: str | None = None, attempt: int = 1) -> ActiveRun:
    run = shop.begin(run_id=run_id, attempt=attempt)
    purge(shop, run)
    shop.copy(run)
    run.commit()
    return run


class KilledError(BaseException):
    """No error that anything catches."""


def dies(shop: Shop, point: Failpoint, environment: RunEnvironment | None = None) -> None:
    def at(reached: Failpoint) -> None:
        if reached is point:
            raise KilledError

    with pytest.raises(KilledError):
        purge_and_copy(replace(shop, environment=replace(environment or RunEnvironment(), at=at)), "task")


def test_purge_and_rewrite_in_one_run_leaves_what_the_run_has_written(shop: Shop) -> None:
    shop.put("a.txt", "a")
    shop.run()
    shop.put("b.txt", "b")

    purge_and_copy(shop)

    assert shop.target_lines() == {"b": 1}
    assert shop.staged_files() == []
    assert examine(shop.store) == []


@pytest.mark.parametrize("point", Failpoint)
def test_purge_of_a_killed_run_is_made_by_its_retry_and_nothing_goes_before_the_commit(
    shop: Shop, point: Failpoint
) -> None:
    shop.put("a.txt", "a")
    shop.run()
    shop.put("b.txt", "b")
    shop.put("c.txt", "c")

    dies(shop, point)

    if point not in COMMITTED:
        assert shop.target_lines() == {"a": 1}
        purge_and_copy(shop, "task", 2)
    else:
        assert finish(shop.store, "copy", RunIdentity("task", 1), RunEnvironment()).is_published
    assert shop.target_lines() == {"b": 1, "c": 1}
    assert shop.staged_files() == []
    assert [found.code for found in examine(shop.store) if found.code != "staging-orphaned"] == []


def test_purge_leaves_what_came_after_its_call(shop: Shop) -> None:
    shop.put("a.txt", "a")
    shop.run()
    run = shop.begin()
    purge(shop, run)
    (shop.root / "copy" / "late.txt").write_text("late\n")

    run.commit()

    assert shop.target_lines() == {"late": 1}


@pytest.mark.parametrize("when", ["before the commit", "while the publish is due"])
def test_purge_leaves_a_file_that_was_delivered_anew_since_its_call(
    shop: Shop, caplog: pytest.LogCaptureFixture, when: str
) -> None:
    for name in ("day.txt", "old.txt"):
        (shop.root / "copy" / name).parent.mkdir(exist_ok=True)
        (shop.root / "copy" / name).write_text("old\n")
    if when == "before the commit":
        run = shop.begin()
        purge(shop, run)
        (shop.root / "copy" / "day.txt").write_text("new rows\n")
        run.commit()
    else:
        dies(shop, Failpoint.COMMITTED)
        (shop.root / "copy" / "day.txt").write_text("new rows\n")
        assert finish(shop.store, "copy", RunIdentity("task", 1), RunEnvironment()).is_published

    assert shop.target_lines() == {"new rows": 1}
    assert "1 files were replaced since the run listed them" in caplog.text


def test_purge_that_a_former_version_committed_deletes_by_name(shop: Shop) -> None:
    (shop.root / "copy").mkdir(exist_ok=True)
    (shop.root / "copy" / "day.txt").write_text("old\n")
    run = shop.begin()
    purge(shop, run, [str(shop.root / "copy" / "day.txt")])
    (shop.root / "copy" / "day.txt").write_text("new rows\n")

    run.commit()

    assert shop.target_lines() == {}


def test_purge_in_a_run_with_nothing_new_takes_effect(shop: Shop) -> None:
    shop.put("a.txt", "a")
    shop.run()
    run = shop.begin()
    purge(shop, run)
    run.plan("raw", FileSource(FILES, [str(shop.raw)]))

    summary = run.commit()

    assert shop.target_lines() == {}
    assert summary.is_published
    assert shop.store.head("copy").run_number == 2


def test_purge_that_finds_nothing_leaves_an_empty_run_empty(shop: Shop) -> None:
    shop.put("a.txt", "a")
    shop.run()
    run = shop.begin()
    run.plan("raw", FileSource(FILES, [str(shop.raw)]))
    purge(shop, run, [])

    run.commit()

    found = shop.store.committed_run("copy", 2)
    assert found is not None
    assert found.is_empty


def test_consumer_counts_purged_files_as_replaced_and_reads_the_one_output(shop: Shop) -> None:
    shop.put("a.txt", "a")
    shop.run()
    shop.put("b.txt", "b")
    purge_and_copy(shop)

    lines, _ = shop.run("down", upstream="copy")

    assert lines == ["b"]


def test_only_the_last_run_with_a_purge_is_replayed(shop: Shop) -> None:
    shop.put("a.txt", "a")
    purge_and_copy(shop)
    shop.put("b.txt", "b")
    purge_and_copy(shop)

    with pytest.raises(ChangeRefusedError, match="run 1 can't be replayed"):
        ReplayRun.begin_replay(shop.store, "copy", shop.identity(), RunEnvironment(), 1)
    replay = ReplayRun.begin_replay(shop.store, "copy", shop.identity(), RunEnvironment(), 2)
    purge(shop, replay)
    shop.copy(replay)
    replay.commit()

    assert shop.target_lines() == {"b": 1}


def test_reset_with_clean_after_a_purge_of_own_files_makes_all_of_it_anew(shop: Shop) -> None:
    shop.put("a.txt", "a")
    shop.run()
    shop.put("b.txt", "b")
    purge_and_copy(shop)

    reset(shop.store, "copy", clean=True, reason="again", who="me")
    shop.run()

    assert shop.target_lines() == {"a": 1, "b": 1}


def test_rewind_of_a_purge_whose_publish_is_due_purges_nothing(shop: Shop) -> None:
    shop.put("a.txt", "a")
    shop.run()
    shop.put("b.txt", "b")
    dies(shop, Failpoint.COMMITTED, short_lease())

    rewind(shop.store, "copy", 1, reason="not this", who="me")
    shop.run()

    assert shop.target_lines() == {"a": 1, "b": 1}


@pytest.mark.parametrize(
    ("folder", "path"),
    [
        ("/lake/out", "/lake/other/a"),
        ("/lake/out", "/lake/out/_bookmarks/x/y/1.1/out/a"),
        ("s3a://lake", "s3a://lake/a"),
    ],
    ids=["elsewhere", "staged", "whole bucket"],
)
def test_purge_of_what_is_not_below_the_folder_that_was_named_is_refused(folder: str, path: str) -> None:
    with pytest.raises(OutOfBoundsError):
        FileChanges.of_purge(PurgeBounds(Territory("test", "copy"), "purge", folder), [path])


def test_purge_at_once_deletes_what_it_was_given_and_nothing_else(tmp_path: Path) -> None:
    for name in ("a.txt", "b.txt"):
        (tmp_path / name).write_text(name)
    bounds = PurgeBounds(Territory("test", "copy"), "purge", str(tmp_path))

    FileChanges.of_purge(bounds, [f"{tmp_path}/a.txt"]).delete()

    assert [path.name for path in tmp_path.iterdir()] == ["b.txt"]
