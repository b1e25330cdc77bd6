"""The trigger and the poller that all triggers share: real ones, in a real event loop."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from datetime import timedelta
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

import pytest
from airflow.models.trigger import Trigger
from airflow.triggers.base import BaseTrigger

from airflow_bookmarks.core.errors import OptionError, StoreUnavailableError, TableMissingError
from airflow_bookmarks.core.rules.condition import NewsFor, RunReached, WatermarkReached
from airflow_bookmarks.core.text.instant import to_text, utc_now
from airflow_bookmarks.lifecycle.inspect.wait import Wait
from airflow_bookmarks.store.backends.sqlite import SqliteTable
from airflow_bookmarks.store.bookmark_store import BookmarkStore, open_store
from airflow_bookmarks.store.table import Attributes, Key
from airflow_bookmarks.triggers import bookmark
from airflow_bookmarks.triggers.bookmark import BookmarkTrigger
from airflow_bookmarks.triggers.poller import Poller, Waiter, poller_of
from tests.airflow.conftest import World
from tools.patience import STUCK_S

SOON = 0.01  # seconds between two looks of a poller that shall not take a test's time


def trigger(wait: Wait, *, deadline: timedelta | None = None) -> BookmarkTrigger:
    until = None if deadline is None else to_text(utc_now() + deadline)
    return BookmarkTrigger(wait.as_dict(), poll_interval=SOON, deadline=until)


async def fired(waiting: BaseTrigger) -> dict[str, Any]:
    """Return the payload of the one event of a trigger, and make sure that it fires no other."""
    events = [event.payload async for event in waiting.run()]
    assert len(events) == 1
    payload: dict[str, Any] = events[0]
    return payload


def play(scene: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
    """Run a scene in an event loop of its own, as a triggerer does, and make sure that nothing of it is left."""

    async def watched() -> Any:
        async with asyncio.timeout(STUCK_S):
            result = await scene()
            await ended()
            return result

    return asyncio.run(watched())


async def ended() -> None:
    """Wait until all pollers of this loop have ended: nobody waits any more."""
    others = asyncio.all_tasks() - {asyncio.current_task()}
    await asyncio.gather(*others, return_exceptions=True)


class Beat:
    """The pauses of a poller. Each ends when the test says so."""

    def __init__(self) -> None:
        self.pauses: list[float] = []
        self._resting, self._go = asyncio.Event(), asyncio.Event()

    async def __call__(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self._resting.set()
        await self._go.wait()
        self._go.clear()

    async def rest(self) -> None:
        """Wait until the poller pauses."""
        await self._resting.wait()

    async def look(self) -> None:
        """Let the poller look once more."""
        await self.rest()
        self._resting.clear()
        self._go.set()
        await self.rest()


# ---- one trigger


def test_trigger_fires_when_a_run_is_published(world: World) -> None:
    async def scene() -> dict[str, Any]:
        waiting = asyncio.create_task(fired(trigger(Wait(("up",), NewsFor("down")))))
        await asyncio.to_thread(publish, world, "up")
        return await waiting

    event = play(scene)

    assert event["status"] == "met"
    assert [found["run_number"] for found in event["found"]] == ["1"]
    assert "published run 1" in event["standing"]


def test_trigger_is_made_again_from_what_is_stored() -> None:
    until = timedelta(hours=1)
    for condition in (NewsFor("down"), RunReached(3), WatermarkReached("42", "raw")):
        classpath, arguments = trigger(Wait(("one", "two"), condition), deadline=until).serialize()
        stored = Trigger(classpath=classpath, kwargs=arguments)  # a row of Airflow's database
        again = resolve_name(stored.classpath)(**stored.kwargs)
        assert again.serialize() == (classpath, arguments)
        assert Wait.of(again.wait) == Wait(("one", "two"), condition)


def test_trigger_gives_up_at_its_deadline_and_says_where_it_stands(world: World) -> None:
    publish(world, "up")

    event = play(lambda: fired(trigger(Wait(("up",), RunReached(2)), deadline=timedelta(0))))

    assert event["status"] == "timed_out"
    assert "run 2 or a later one" in event["standing"]
    assert "'up': last published run 1" in event["standing"]


def test_trigger_that_comes_late_is_satisfied_by_what_is_there(world: World) -> None:
    publish(world, "up")

    event = play(lambda: fired(trigger(Wait(("up",), RunReached(1)), deadline=-timedelta(days=1))))

    assert event["status"] == "met"


def test_trigger_says_what_it_could_not_do(world: World) -> None:
    publish(world, "up")

    event = play(lambda: fired(trigger(Wait(("up",), WatermarkReached("42")))))

    assert (event["status"], event["error"]) == ("failed", "OptionError")
    assert "can't be compared" in event["standing"]


def test_trigger_gives_up_in_an_outage_too(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    store = BookmarkStore(FaultyTable(world.folder / "bookmarks.db", 10**6), "test")
    monkeypatch.setattr(bookmark, "poller_of", lambda conn_id: Poller(lambda: store))

    # On a busy machine the store is not even asked in the first hundredth of a second.
    silence_s, event = SOON, {"standing": ""}
    while "does not answer" not in event["standing"] and silence_s < STUCK_S:
        monkeypatch.setattr(bookmark, "SILENCE_S", silence_s)
        event = play(lambda: fired(trigger(Wait(("up",), RunReached(2)), deadline=timedelta(0))))
        silence_s *= 2
        assert event["status"] == "timed_out"

    assert "the store was not asked yet. The store does not answer: the cable is cut" in event["standing"]


# ---- many


def test_200_triggers_miss_nothing_of_what_is_published_meanwhile(world: World) -> None:
    jobs = [f"up_{number}" for number in range(20)]
    waits = [Wait((job,), NewsFor(f"down_{i}")) for job in jobs for i in range(5)]
    waits += [Wait((job,), RunReached(number)) for job in jobs for number in (1, 2, 3, 3, 2)]

    async def scene() -> list[dict[str, Any]]:
        waiting = [asyncio.create_task(fired(trigger(wait))) for wait in waits]
        for _ in range(3):
            await asyncio.to_thread(publish, world, *jobs)
        return await asyncio.gather(*waiting)

    events = play(scene)

    assert len(events) == 200
    for wait, event in zip(waits, events, strict=True):
        assert (event["status"], event["found"][0]["job"]) == ("met", wait.jobs[0])
        if isinstance(wait.condition, RunReached):
            assert int(event["found"][0]["run_number"]) >= wait.condition.number


def test_triggers_of_a_triggerer_that_is_started_anew_miss_nothing(world: World) -> None:
    jobs = [f"up_{number}" for number in range(10)]
    triggers = [trigger(Wait((job,), NewsFor(f"down_{i}"))) for job in jobs for i in range(5)]

    async def first() -> list[tuple[str, dict[str, Any]]]:
        waiting = [asyncio.create_task(fired(one)) for one in triggers]
        await asyncio.to_thread(publish, world, *jobs[:3])
        await asyncio.gather(*waiting[:15])
        for task in waiting[15:]:
            task.cancel()
        await asyncio.gather(*waiting[15:], return_exceptions=True)
        return [one.serialize() for one in triggers[15:]]

    async def second(stored: list[tuple[str, dict[str, Any]]]) -> list[dict[str, Any]]:
        waiting = [asyncio.create_task(fired(BookmarkTrigger(**arguments))) for _, arguments in stored]
        await asyncio.to_thread(publish, world, *jobs[6:])
        return await asyncio.gather(*waiting)

    stored = play(first)
    publish(world, *jobs[3:6])  # while no triggerer runs
    events = play(lambda: second(stored))

    assert [event["status"] for event in events] == ["met"] * 35


def test_triggers_of_one_connection_share_one_poller_which_ends_with_the_last(world: World) -> None:
    publish(world, "up")

    async def scene() -> None:
        waiting = [asyncio.create_task(fired(trigger(Wait(("up",), RunReached(9))))) for _ in range(50)]
        await asyncio.sleep(0)
        poller = poller_of("bookmarks_default")
        assert poller_of("bookmarks_default") is poller
        assert poller_of("another") is not poller
        others = asyncio.all_tasks() - {asyncio.current_task(), *waiting}
        assert len(others) == 1
        for task in waiting:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)
        await asyncio.gather(*others)
        assert poller_of("bookmarks_default") is not poller

    play(scene)


def test_wait_that_is_wrong_fails_that_trigger_alone(world: World) -> None:
    publish(world, "up")

    async def scene() -> list[dict[str, Any]]:
        right = asyncio.create_task(fired(trigger(Wait(("up",), RunReached(2)))))
        wrong = await fired(trigger(Wait(("up",), WatermarkReached("42"))))
        await asyncio.to_thread(publish, world, "up")
        return [wrong, await right]

    assert [event["status"] for event in play(scene)] == ["failed", "met"]


# ---- the poller


class FaultyTable(SqliteTable):
    """A table that is out of reach for its first `outages` reads."""

    def __init__(self, path: Path, outages: int) -> None:
        super().__init__(path)
        self.outages = outages

    def get(self, keys: Sequence[Key]) -> dict[Key, Attributes]:
        if self.outages:
            self.outages -= 1
            raise StoreUnavailableError("the cable is cut")
        return super().get(keys)


async def answers(waiter: Waiter, count: int, proceed: Callable[[], Awaitable[None]]) -> list[bool]:
    met = [(await waiter.next()).is_met]
    for _ in range(count - 1):
        await proceed()
        met.append((await waiter.next()).is_met)
    return met


def test_each_look_answers_each_waiter(world: World) -> None:
    async def scene() -> list[bool]:
        beat = Beat()
        poller = Poller(lambda: open_store(world.store_uri), sleep=beat, random=lambda: 0.5)

        async def proceed() -> None:
            await asyncio.to_thread(publish, world, "up")
            await beat.look()

        with poller.waiter(Wait(("up",), RunReached(2)), 4.0) as one, poller.waiter(Wait(("up",), RunReached(9))):
            met = await answers(one, 3, proceed)
        await poller.ended()
        assert beat.pauses == [4.0 / 2 * 1.5] * 3  # the other waiter asks for 2 seconds; and half of that at random
        assert poller.looks == 3
        return met

    assert play(scene) == [False, False, True]


def test_outage_is_outlasted_with_longer_and_longer_pauses(world: World) -> None:
    async def scene() -> list[float]:
        beat = Beat()
        store = BookmarkStore(FaultyTable(world.folder / "bookmarks.db", 6), "test")
        poller = Poller(lambda: store, sleep=beat, random=lambda: 0.0)
        with poller.waiter(Wait(("up",), RunReached(1))) as waiter:
            for _ in range(6):
                await beat.look()
            assert waiter.outage is None
            assert not (await waiter.next()).is_met
        await poller.ended()
        return beat.pauses

    assert play(scene) == [4.0, 8.0, 16.0, 32.0, 60.0, 60.0, 2.0]


def test_store_that_refuses_fails_all_who_wait(world: World) -> None:
    (world.folder / "bookmarks.db").unlink()

    async def scene() -> None:
        poller = Poller(lambda: open_store(world.store_uri))
        with poller.waiter(Wait(("up",), RunReached(1))) as one, poller.waiter(Wait(("up",), RunReached(2))) as two:
            for waiter in (one, two):
                with pytest.raises(TableMissingError):
                    await waiter.next()

    play(scene)


class BlockingTable(SqliteTable):
    """A table whose reads take until `go` is set."""

    go = threading.Event()

    def get(self, keys: Sequence[Key]) -> dict[Key, Attributes]:
        assert self.go.wait(STUCK_S)
        return super().get(keys)


def test_store_that_is_slow_does_not_hold_the_event_loop(world: World) -> None:
    async def scene() -> bool:
        store = BookmarkStore(BlockingTable(world.folder / "bookmarks.db"), "test")
        poller = Poller(lambda: store)
        with poller.waiter(Wait(("up",), RunReached(1))) as waiter:
            next_answer = asyncio.create_task(waiter.next())
            await asyncio.sleep(0)
            BlockingTable.go.set()  # would not be reached if the look were made in the loop
            return (await next_answer).is_met

    assert play(scene) is False


def test_whoever_leaves_in_the_middle_of_a_pause_ends_it(world: World) -> None:
    async def scene() -> None:
        beat = Beat()
        poller = Poller(lambda: open_store(world.store_uri), sleep=beat)
        with poller.waiter(Wait(("up",), RunReached(1))):
            await beat.rest()
        await poller.ended()

    play(scene)


def test_whoever_comes_after_the_last_has_left_is_answered(world: World) -> None:
    publish(world, "up")

    async def scene() -> list[bool]:
        poller = Poller(lambda: open_store(world.store_uri))
        met = []
        for _ in range(3):
            with poller.waiter(Wait(("up",), RunReached(1)), SOON) as waiter:
                met.append((await waiter.next()).is_met)
        with poller.waiter(Wait(("up",), RunReached(1)), SOON) as waiter:
            met.append((await waiter.next()).is_met)
        await poller.ended()
        with poller.waiter(Wait(("up",), RunReached(1)), SOON) as waiter:
            met.append((await waiter.next()).is_met)
        return met

    assert play(scene) == [True] * 5


def test_interval_has_to_be_above_zero(world: World) -> None:
    async def scene() -> None:
        with (
            pytest.raises(OptionError, match="poll_interval=0"),
            poller_of("bookmarks_default").waiter(Wait(("up",), RunReached(1)), 0),
        ):
            pass

    play(scene)


def publish(world: World, *jobs: str) -> None:
    """Let each of the jobs publish a run with data."""
    folder = Path(world.shop.raw)
    (folder / f"{len(list(folder.iterdir())):05d}.txt").write_text("a line\n")
    for job in jobs:
        world.shop.run(job)
