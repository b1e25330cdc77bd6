"""The watcher of assets: each piece of news of a job is one event, and none is lost."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any

import pytest
from airflow.providers.standard.operators.empty import EmptyOperator
from airflow.sdk import DAG, Asset, AssetWatcher
from airflow.sdk.exceptions import AirflowRuntimeError, ErrorType
from airflow.sdk.execution_time.comms import ErrorResponse
from airflow.triggers.base import BaseEventTrigger, TriggerEvent

from airflow_bookmarks.core.errors import NameInvalidError, OptionError
from airflow_bookmarks.lifecycle.changes.change import reset, rewind
from airflow_bookmarks.store.bookmark_store import open_store
from airflow_bookmarks.triggers import watcher
from airflow_bookmarks.triggers.poller import Poller
from airflow_bookmarks.triggers.watcher import CURSOR, BookmarkWatcher
from tests.airflow.conftest import Player, World
from tests.airflow.triggers.test_trigger import Beat, play, publish


class State:
    """Stands for Airflow's state of one asset, as far as a watcher uses it."""

    def __init__(self) -> None:
        self.kept: dict[str, Any] = {}
        self.fails = False

    async def aget(self, key: str) -> Any:
        return self.kept.get(key)

    async def aset(self, key: str, value: Any) -> None:
        if self.fails:
            raise AirflowRuntimeError(ErrorResponse(error=ErrorType.API_SERVER_ERROR))
        self.kept[key] = value


class SharedState(State):
    """The state of several assets that share one trigger: Airflow does not know which is meant."""

    async def aget(self, key: str) -> Any:
        raise ValueError("which of them?")


class Watching:
    """A watcher that runs, and the poller behind it."""

    def __init__(self, world: World, patch: pytest.MonkeyPatch, state: object = None) -> None:
        self.beat = Beat()
        self._poller = Poller(lambda: open_store(world.store_uri), sleep=self.beat)
        patch.setattr(watcher, "poller_of", lambda conn_id: self._poller)
        watching = BookmarkWatcher("up")
        if state is not None:
            watching.asset_state_store = state  # type: ignore[assignment]
        self._events: AsyncIterator[TriggerEvent] = watching.run()
        self._next = asyncio.ensure_future(anext(self._events))

    async def event(self) -> dict[str, Any] | None:
        """Let the poller look once more, and return the payload that the watcher fires on it, if any."""
        await self.beat.look()
        if not self._next.done():
            return None
        payload: dict[str, Any] = self._next.result().payload
        self._next = asyncio.ensure_future(anext(self._events))
        await asyncio.sleep(0)  # the watcher goes on as soon as its event is taken
        return payload

    async def stop(self) -> None:
        """Stop it, as a triggerer that ends."""
        self._next.cancel()
        await asyncio.gather(self._next, return_exceptions=True)
        await self._poller.ended()


Scene = Callable[[Watching], Coroutine[Any, Any, Any]]


def watch(world: World, patch: pytest.MonkeyPatch, scene: Scene, state: object = None) -> Any:
    async def whole() -> Any:
        watching = Watching(world, patch, state)
        try:
            return await scene(watching)
        finally:
            await watching.stop()

    return play(whole)


async def happens(work: Callable[..., object], *arguments: Any, **named: Any) -> None:
    await asyncio.to_thread(work, *arguments, **named)


# ---- what is an event


def test_each_publish_with_data_is_an_event(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    async def scene(watching: Watching) -> None:
        assert await watching.event() is None
        for number in ("1", "2"):
            await happens(publish, world, "up")
            found = await watching.event()
            assert found is not None
            assert (found["job"], found["run_number"], found["runs"], found["rewound_to"]) == ("up", number, 1, None)
            assert await watching.event() is None

    watch(world, monkeypatch, scene)


def test_empty_runs_are_no_event(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    async def scene(watching: Watching) -> None:
        await watching.event()
        await happens(world.shop.run, "up")
        assert await watching.event() is None

    watch(world, monkeypatch, scene)


def test_many_publishes_between_two_looks_are_one_event(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    async def scene(watching: Watching) -> None:
        await watching.event()
        for _ in range(5):
            await happens(publish, world, "up")
        found = await watching.event()
        assert found is not None
        assert (found["run_number"], found["runs"]) == ("5", 5)
        assert await watching.event() is None

    watch(world, monkeypatch, scene)


def test_reset_and_rewind_are_events(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    publish(world, "up")
    publish(world, "up")

    async def scene(watching: Watching) -> None:
        await watching.event()
        await happens(rewind, world.store, "up", 1, reason="r", who="w")
        found = await watching.event()
        assert found is not None
        assert (found["run_number"], found["rewound_to"], found["runs"]) == ("1", "1", 0)
        await happens(reset, world.store, "up", reason="r", who="w")
        found = await watching.event()
        assert found is not None
        assert (found["run_number"], found["epoch"], found["rewound_to"]) == (None, "3", "0")
        assert await watching.event() is None

    watch(world, monkeypatch, scene)


# ---- where it begins


def test_watcher_without_a_place_begins_at_what_is_there(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    publish(world, "up")

    async def scene(watching: Watching) -> None:
        assert await watching.event() is None
        assert await watching.event() is None

    watch(world, monkeypatch, scene)
    watch(world, monkeypatch, scene, SharedState())


def test_watcher_goes_on_where_it_was(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    state = State()

    async def before(watching: Watching) -> None:
        await watching.event()
        await happens(publish, world, "up")
        assert await watching.event() is not None

    watch(world, monkeypatch, before, state)
    assert state.kept == {CURSOR: {"job": "up", "run_number": "1", "epoch": "1", "changes": "0"}}
    publish(world, "up")  # while no triggerer runs
    publish(world, "up")

    async def after(watching: Watching) -> None:
        await watching.beat.rest()
        found = await watching.event()
        assert found is not None
        assert (found["run_number"], found["runs"]) == ("3", 2)
        assert await watching.event() is None

    watch(world, monkeypatch, after, state)


def test_place_of_another_job_is_not_taken_for_its_own(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    publish(world, "up")
    state = State()
    state.kept[CURSOR] = {"job": "another", "run_number": "0", "epoch": "1", "changes": "0"}

    async def scene(watching: Watching) -> None:
        assert await watching.event() is None

    watch(world, monkeypatch, scene, state)


def test_event_is_not_repeated_while_its_place_can_not_be_kept(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    state = State()
    state.fails = True

    async def scene(watching: Watching) -> None:
        await watching.event()
        await happens(publish, world, "up")
        assert await watching.event() is not None
        assert await watching.event() is None

    watch(world, monkeypatch, scene, state)


# ---- in a DAG


def test_watcher_belongs_to_an_asset(world: World, player: Player) -> None:
    from airflow.models.trigger import Trigger
    from airflow.utils.session import create_session

    made = BookmarkWatcher(job="flights.clean")
    asset = Asset("flights", watchers=[AssetWatcher(name="published", trigger=made)])
    with DAG("after_flights", schedule=[asset], is_paused_upon_creation=False) as dag:
        EmptyOperator(task_id="report")
    assert player.play(dag).state == "success"
    player.sync(dag)  # Airflow 3.0 regards an asset only from the second reading of its file on

    with create_session() as session:
        rows = session.query(Trigger).filter(Trigger.classpath == made.serialize()[0]).all()
        stored = [BookmarkWatcher(**row.kwargs).serialize() for row in rows]
    assert stored == [made.serialize()]


def test_two_watchers_of_one_job_are_one_trigger() -> None:
    first, second = (BookmarkWatcher("up").serialize() for _ in range(2))

    assert BaseEventTrigger.hash(*first) == BaseEventTrigger.hash(*second)


def test_name_that_no_job_can_have_is_refused_when_the_dag_file_is_read() -> None:
    with pytest.raises(NameInvalidError):
        BookmarkWatcher("a#b")


def test_interval_that_nobody_can_keep_is_refused_when_the_dag_file_is_read() -> None:
    with pytest.raises(OptionError, match="poll_interval=0"):
        BookmarkWatcher("up", poll_interval=0)
