"""The poller: one in each triggerer process for each connection, which evaluates all waits together.

trigger 1 --+                        +--> every 2 to 4 s, in a thread:
trigger 2 --+--> waiters --> poller -+    evaluate(store, all waits), a few requests
watcher   --+                        +--> each waiter gets its answer
"""

from __future__ import annotations

import asyncio
import logging
import math
import random
from contextlib import contextmanager
from contextvars import Context
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from airflow_bookmarks.airflow_compat import ask_in_thread
from airflow_bookmarks.core.errors import OptionError, StoreUnavailableError
from airflow_bookmarks.hooks.bookmark import BookmarkHook
from airflow_bookmarks.lifecycle.inspect.waiting import Memory, evaluate

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

    from airflow_bookmarks.lifecycle.inspect.wait import Wait, WaitAnswer
    from airflow_bookmarks.store.bookmark_store import BookmarkStore

POLL_INTERVAL_S = 2.0
LONGEST_PAUSE_S = 60.0  # between polls while the store does not answer

log = logging.getLogger(__name__)


def check_interval(seconds: float) -> float:
    """Return the seconds if they are a valid pause between two polls.

    Raises:
        OptionError: they are not above 0, or without end.
    """
    if not 0 < seconds < math.inf:
        raise OptionError(f"poll_interval={seconds!r}: expected seconds above 0. Nothing was read or changed.")
    return seconds


class Waiter:
    """One waiter: its wait, and the newest answer to it. `outage` says that there is none just now."""

    def __init__(self, wait: Wait, poll_interval_s: float) -> None:
        self.wait = wait
        self.poll_interval_s = poll_interval_s
        self.outage: str | None = None
        self._answer: WaitAnswer | None = None
        self._failure: BaseException | None = None
        self._news = asyncio.Event()

    def go_on(self, wait: Wait) -> None:
        """Wait for something else from now on; earlier answers, and a poll in progress, are dropped."""
        self.wait = wait
        self._answer = None
        self._news.clear()

    async def next(self) -> WaitAnswer:
        """Return the next answer to the present wait, as soon as there is one.

        Raises:
            BookmarkError: the wait is wrong, or the store refuses. An outage raises nothing: the poller tries again.
        """
        await self._news.wait()
        self._news.clear()
        if self._failure is not None:
            raise self._failure
        if self._answer is None:
            raise RuntimeError("the poller has woken a waiter without an answer")
        if self._answer.error is not None:
            raise self._answer.error
        return self._answer

    def tell(self, answer: WaitAnswer) -> None:
        """Hand over an answer, unless it is to what was waited for before."""
        self.outage = None
        if answer.wait is self.wait:
            self._answer = answer
            self._news.set()

    def fail(self, failure: BaseException) -> None:
        """Wake the waiter with a failure."""
        self._failure = failure
        self._news.set()


@dataclass(eq=False)
class Poller:
    """Looks for all of its waiters, again and again; it begins with the first of them and ends after the last.

    A poll is one batched evaluation in a thread, so that the event loop never blocks. Between two polls it pauses for 1
    to 2 times the shortest interval that a waiter asks for, so that triggerers that started together spread. While the
    store does not answer, pauses double up to a minute, and no wait ends.

    Args:
        open_store: opens the store; called in a thread, when the first waiter comes.
        sleep: pauses for so many seconds.
        random: draws a number from 0 to 1.
        on_end: called when nobody waits any more, before the store is closed.
    """

    open_store: Callable[[], BookmarkStore]
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    random: Callable[[], float] = random.random
    on_end: Callable[[], object] = lambda: None
    looks: int = 0
    _waiters: list[Waiter] = field(default_factory=list)
    _memory: Memory = field(default_factory=Memory)
    _store: BookmarkStore | None = None
    _task: asyncio.Task[None] | None = None
    _nobody: asyncio.Event = field(default_factory=asyncio.Event)

    @contextmanager
    def waiter(self, wait: Wait, poll_interval_s: float = POLL_INTERVAL_S) -> Iterator[Waiter]:
        """Wait along for as long as the block lasts.

        Raises:
            OptionError: nobody can pause for such an interval.
        """
        waiter = Waiter(wait, check_interval(poll_interval_s))
        self._waiters.append(waiter)
        self._nobody.clear()
        if self._task is None:
            # In a context of its own: what it logs belongs to no single trigger.
            self._task = asyncio.get_running_loop().create_task(self._poll(), context=Context())
            self._task.add_done_callback(self._pass_on)
        try:
            yield waiter
        finally:
            self._waiters.remove(waiter)
            if not self._waiters:
                self._nobody.set()

    async def ended(self) -> None:
        """Wait until the poller has ended, which it does when no waiter is left."""
        if self._task is not None:
            await self._task

    async def _poll(self) -> None:
        failed_looks = 0
        try:
            while self._waiters:
                failed_looks = 0 if await self._look() else failed_looks + 1
                await self._pause(failed_looks)
        finally:
            # Before anything is awaited again: a later waiter begins anew, with another store.
            self._task = None
            self.on_end()
        store, self._store = self._store, None
        if store is not None:
            await asyncio.to_thread(store.close)

    def _pass_on(self, task: asyncio.Task[None]) -> None:
        """Fail the waiters with what has ended the poller."""
        failure = asyncio.CancelledError() if task.cancelled() else task.exception()
        if failure is not None:
            for waiter in self._waiters:
                waiter.fail(failure)

    async def _look(self) -> bool:
        """Look once for all; return whether the store answered."""
        waiters = list(self._waiters)
        waits = [waiter.wait for waiter in waiters]
        try:
            answers = await ask_in_thread(self._evaluate, waits)
        except StoreUnavailableError as error:
            log.warning("bookmark poller: %d waits go on, though the store did not answer: %s", len(waits), error)
            for waiter in waiters:
                waiter.outage = str(error)
            return False
        self.looks += 1
        for waiter, answer in zip(waiters, answers, strict=True):
            waiter.tell(answer)
        return True

    def _evaluate(self, waits: list[Wait]) -> list[WaitAnswer]:
        if self._store is None:
            self._store = self.open_store()
        return evaluate(self._store, waits, self._memory)

    async def _pause(self, failed_looks: int) -> None:
        """Pause until the next poll is due, or no waiter is left."""
        if not self._waiters:
            return
        interval_s = min(waiter.poll_interval_s for waiter in self._waiters)
        pause_s = min(interval_s * 2**failed_looks, max(interval_s, LONGEST_PAUSE_S)) * (1 + self.random())
        pauses = [asyncio.ensure_future(self.sleep(pause_s)), asyncio.ensure_future(self._nobody.wait())]
        try:
            await asyncio.wait(pauses, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for pause in pauses:
                pause.cancel()


# A triggerer is one process with one event loop. The loop is part of the key because a poller can't outlive it.
_POLLERS: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[str, Poller]] = WeakKeyDictionary()


def poller_of(conn_id: str, open_store: Callable[[], BookmarkStore] | None = None) -> Poller:
    """Return the poller that all waiters on one Airflow connection share, in this event loop.

    A change of the connection takes effect when no waiter is left, and at the triggerer's next start.

    Args:
        open_store: opens the store otherwise than by the connection; counts for whoever asks first.
    """
    pollers = _POLLERS.setdefault(asyncio.get_running_loop(), {})
    if conn_id not in pollers:

        def end() -> None:
            del pollers[conn_id]

        pollers[conn_id] = Poller(open_store or (lambda: BookmarkHook(conn_id).open_store()), on_end=end)
    return pollers[conn_id]
