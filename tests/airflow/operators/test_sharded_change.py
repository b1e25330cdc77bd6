"""Changes of sharded jobs from Airflow: by the hook, and by the change operators, once for a series of tries."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest

from airflow_bookmarks.airflow_compat import AirflowFailException
from airflow_bookmarks.core.errors import ShardsBusyError, ShardsLeftError
from airflow_bookmarks.hooks.bookmark import BookmarkHook
from airflow_bookmarks.lifecycle.changes.change import Change
from airflow_bookmarks.operators.change import (
    BookmarkResetOperator,
    BookmarkRewindOperator,
    BookmarkSetOperator,
    BookmarkUndoOperator,
)
from tests.airflow.conftest import World
from tests.lifecycle.changes.test_sharded_change import Meddler
from tests.lifecycle.run.test_shards import Task, put

BEGUN = 6
RANGE = f"0:{BEGUN}"
WHY: dict[str, Any] = {"task_id": "change", "job": "copy", "reason": "wrong delivery"}


def sharded(world: World) -> tuple[Task, Counter[str]]:
    put(world.shop, [f"f{i}" for i in range(40)])
    task = Task(world.shop)
    return task, Counter(task.run(RANGE))


def told(attempt: int = 1) -> Any:
    """Return what Airflow hands to `execute` of a try, as far as the operators look at it."""
    ti = SimpleNamespace(
        dag_id="ops", task_id="change", run_id="manual__1", map_index=-1, try_number=attempt, max_tries=2
    )
    return {"ti": ti, "dag_run": SimpleNamespace(start_date=datetime(2026, 5, 3, tzinfo=UTC))}


def test_hook_resets_a_sharded_job_against_the_version_of_its_preview(world: World) -> None:
    task, lines = sharded(world)
    hook = BookmarkHook()
    seen = hook.preview("copy", Change("reset"))

    done = hook.reset("copy", reason="wrong delivery", expected_version=seen["version"])

    assert (seen["shards"], done["shards"]) == (BEGUN, BEGUN)
    assert Counter(task.run(RANGE)) == lines


def test_hook_lists_a_sharded_job_as_one_or_by_its_shards(world: World) -> None:
    sharded(world)

    assert [(row["job"], row["shards"]) for row in BookmarkHook().list()] == [("copy", BEGUN)]
    assert len(BookmarkHook().list(with_shards=True)) == BEGUN


def test_operator_resets_a_sharded_job(world: World) -> None:
    task, lines = sharded(world)

    done = BookmarkResetOperator(**WHY).execute(told())

    assert (done["changed"], done["shards"]) == (True, BEGUN)
    assert Counter(task.run(RANGE)) == lines


def test_condition_of_a_sharded_job_gets_the_preview_of_all_its_shards(world: World) -> None:
    _, lines = sharded(world)

    def is_much(_: Any, seen: dict[str, Any]) -> bool:
        return bool(seen["read_again"]["files"] > lines.total())

    assert BookmarkResetOperator(**WHY, condition=is_much).execute(told())["changed"] is False
    preview = BookmarkResetOperator(**WHY, dry_run=True).execute(told())
    assert preview["read_again"]["files"] == lines.total()
    done = BookmarkResetOperator(**WHY, expected_version=preview).execute(told())
    assert done["changed"] is True


def test_retry_takes_the_shards_that_are_left_and_no_other_a_second_time(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    task, _ = sharded(world)
    reset = BookmarkResetOperator(**WHY, retries=2)
    with monkeypatch.context() as patch:
        patch.setattr(type(world.store), "begin_timeline", _for_class(Meddler(world.shop, 3)))
        with pytest.raises(ShardsLeftError):
            reset.execute(told())
    task.run("0:3")  # they read again what the reset gave them
    with pytest.raises(ShardsBusyError):
        reset.execute(told(2))

    done = BookmarkResetOperator(**WHY, retries=2, force=True).execute(told(2))

    assert list(done["by_shard"]) == ["copy~03"]
    assert task.run("0:3") == []


def _for_class(meddler: Meddler) -> Any:
    return lambda _store, *args, **kwargs: meddler(*args, **kwargs)


def test_rewind_takes_a_sharded_job_back_to_a_time(world: World) -> None:
    task, _ = sharded(world)
    at = max(BookmarkHook().history(f"copy~{number:02}")[0]["committed_at"] for number in range(BEGUN))
    task.run(RANGE)

    done = BookmarkRewindOperator(**WHY, to_time=at).execute(told())

    assert (done["shards"], done["undone_run_count"]) == (BEGUN, BEGUN)
    assert BookmarkHook().rewind("copy", to_run=at, reason="again")["shards"] == 0
    with pytest.raises(AirflowFailException, match="run 1 is another one in each"):
        BookmarkRewindOperator(**WHY, to_run=1).execute(told())


def test_change_that_takes_one_bookmark_fails_for_good(world: World) -> None:
    sharded(world)

    for operator in (BookmarkUndoOperator(**WHY), BookmarkSetOperator(**WHY, ctx="raw", value="now")):
        with pytest.raises(AirflowFailException, match=r"is sharded.*Name a virtual shard, such as 'copy~00'"):
            operator.execute(told())
    with pytest.raises(AirflowFailException, match="a request is of one virtual shard"):
        BookmarkResetOperator(**WHY, request=True).execute(told())
