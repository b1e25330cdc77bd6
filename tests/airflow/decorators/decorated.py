"""The promises of `@task.bookmark`, on a session that `test_decorator.py` names: local, or a Connect server's.

In a process of their own each: a classic session and a remote one do not go together.
"""

from __future__ import annotations

import gc
import json
import os
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
from airflow.sdk import DAG, task

from airflow_bookmarks.core.errors import OptionError
from airflow_bookmarks.core.job import RunIdentity
from airflow_bookmarks.lifecycle.changes.change import reset
from tests.airflow.conftest import Player, World, connect

REMOTE = os.environ.get("DECORATED_REMOTE", "")
JOB = "shop.copy"


@pytest.fixture(scope="session", autouse=True)
def no_cyclic_collection() -> Iterator[None]:
    """Leave the sessions of earlier tests uncollected.

    A remote session closes itself as it is collected, and if that happens within a call of another, both wait for ever.
    """
    gc.disable()
    yield
    gc.enable()


@pytest.fixture(autouse=True)
def session(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the connection that names the session, with the conf of a classic one."""
    if REMOTE:
        value: dict[str, Any] = {"conn_type": "spark_connect", "host": REMOTE.removeprefix("sc://")}
    else:
        extra = {"spark.ui.enabled": "false", "spark.sql.shuffle.partitions": "1"}
        value = {"conn_type": "spark", "host": "local[1]", "extra": extra}
    monkeypatch.setenv("AIRFLOW_CONN_SPARK", json.dumps(value))


def copy_of(world: World, fails: Callable[[], object] = lambda: None) -> Callable[..., Any]:
    def copy(spark: Any, job: Any, suffix: str = "") -> Any:
        lines = job.read("raw").schema("value STRING").text(str(world.shop.raw))
        job.write(lines, "out").text(str(world.folder / "out"))
        fails()
        return {"suffix": suffix, "option": job.option, "remote": type(spark).__module__}

    return copy


def play(player: Player, function: Callable[..., Any], given: dict[str, Any] | None = None, **arguments: Any) -> Any:
    with DAG("shop", schedule=None, start_date=datetime(2026, 1, 1, tzinfo=UTC), params={"o": "pause"}) as dag:
        task.bookmark(task_id="copy", conn_id="spark", **arguments)(function)(**(given or {}))
    return player.play(dag)


def written(world: World) -> list[str]:
    files = [file for file in (world.folder / "out").glob("*.txt") if not file.name.startswith(("_", "."))]
    return sorted(line for file in files for line in file.read_text().splitlines())


def test_function_gets_session_and_job_and_its_return_commits(
    world: World, player: Player, caplog: pytest.LogCaptureFixture
) -> None:
    world.shop.put("a.txt", "a1", "a2")

    played = play(player, copy_of(world), {"suffix": "x"})

    assert played.state == "success"
    assert written(world) == ["a1", "a2"]
    assert "open store" not in caplog.text
    summary = played.xcom("copy")
    assert (summary["job"], summary["run_number"], summary["is_published"]) == (JOB, "1", True)
    returned = played._task("copy").xcom_pull(task_ids="copy", key="returned")
    assert (returned["suffix"], returned["option"]) == ("x", "enable")
    assert ("connect" in returned["remote"]) == bool(REMOTE)
    execution = world.store.execution(JOB, f"shop/{played.run.run_id}/copy")
    assert execution is not None
    assert execution.dag_run_id == played.run.run_id


def test_second_task_run_reads_what_came_since(world: World, player: Player) -> None:
    for name in "ab":
        world.shop.put(f"{name}.txt", name)
        assert play(player, copy_of(world)).state == "success"
    assert written(world) == ["a", "b"]
    assert world.store.head(JOB).run_number == 2


def test_exception_commits_nothing_and_the_retry_does_the_work(world: World, player: Player) -> None:
    world.shop.put("a.txt", "a")
    tries: list[int] = []

    def fail_once() -> None:
        tries.append(1)
        if len(tries) == 1:
            raise ZeroDivisionError("a test")

    played = play(player, copy_of(world, fail_once), retries=1)

    assert (played.state, played.tries("copy"), len(tries)) == ("success", 2, 2)
    assert written(world) == ["a"]
    assert world.store.head(JOB).run_number == 1


def test_job_that_was_reset_is_read_again(world: World, player: Player) -> None:
    world.shop.put("a.txt", "a")
    assert play(player, copy_of(world)).state == "success"
    reset(world.store, JOB, reason="a test", who="test")
    assert play(player, copy_of(world)).state == "success"
    assert written(world) == ["a", "a"]


def test_returned_value_that_cannot_be_kept_stops_the_commit(world: World, player: Player) -> None:
    world.shop.put("a.txt", "a")

    def copy(job: Any) -> Any:
        job.read("raw").schema("value STRING").text(str(world.shop.raw)).count()
        return object()

    assert play(player, copy).state == "failed"
    assert world.store.head(JOB).run_number == 0


def test_option_is_a_template_and_pause_changes_nothing(world: World, player: Player) -> None:
    world.shop.put("a.txt", "a")

    def look(job: Any) -> Any:
        return job.read("raw").schema("value STRING").text(str(world.shop.raw)).count()

    played = play(player, look, bookmark_option="{{ params.o }}")

    assert (played.state, played.xcom("copy")["option"]) == ("success", "pause")
    assert played._task("copy").xcom_pull(task_ids="copy", key="returned") == 1
    assert world.store.snapshot(JOB).head is None


def test_nothing_new_starts_no_session(world: World, player: Player, monkeypatch: pytest.MonkeyPatch) -> None:
    world.shop.put("a.txt", "a")
    assert play(player, copy_of(world)).state == "success"
    value = {"conn_type": "spark_connect", "host": "127.0.0.1", "port": 1}  # nobody listens there
    monkeypatch.setenv("AIRFLOW_CONN_SPARK", json.dumps(value))

    played = play(player, copy_of(world), skip_when_empty=True)

    assert (played.state, played.xcom("copy")["is_empty"]) == ("success", True)


def test_killed_try_is_fenced(world: World, player: Player) -> None:
    world.shop.put("a.txt", "a")
    from airflow.sdk import get_current_context

    def kill() -> None:
        running: Any = get_current_context()["task"]
        running.on_kill()

    played = play(player, copy_of(world, kill))

    assert (played.state, written(world)) == ("failed", [])
    execution = world.store.execution(JOB, RunIdentity(f"shop/{played.run.run_id}/copy").run_id)
    assert execution is not None
    assert execution.killed_attempt == 1


def test_state_may_lie_in_dynamodb_with_credentials_of_the_connection_only(
    world: World, player: Player, monkeypatch: pytest.MonkeyPatch, moto_url: str
) -> None:
    from airflow_bookmarks.hooks.bookmark import BookmarkHook

    secret = {"conn_type": "aws", "login": "AKIAEXAMPLE", "password": "wJalrXUtnFEMIK7MDENGbPxRfiCYSECRETKEY"}
    monkeypatch.setenv("AIRFLOW_CONN_AWS_BOOKMARKS", json.dumps(secret))
    uri = f"dynamodb://bookmarks-{os.getpid()}?region=eu-west-1&endpoint={moto_url}"
    connect(monkeypatch, store=uri, aws_conn_id="aws_bookmarks")
    BookmarkHook().get_conn().init()
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    world.shop.put("a.txt", "a")
    seen: list[str] = []

    def copy(spark: Any, job: Any) -> None:
        seen.append(json.dumps(dict(spark.conf.getAll)))
        job.write(job.read("raw").schema("value STRING").text(str(world.shop.raw))).text(str(world.folder / "out"))

    assert play(player, copy).state == "success"
    assert secret["password"] not in seen[0]
    assert written(world) == ["a"]


def test_conf_of_the_session_leaves_the_settings_to_the_decorator(world: World) -> None:
    with pytest.raises(OptionError, match="which the operator sets itself"):
        task.bookmark(task_id="copy", config_kwargs={"spark.bookmarks.option": "pause"})(copy_of(world))()
