"""The gate between the API server's event loop and blocking calls: the state store, and folder listings.

Each call has one of a few threads while it lasts; a limited number of others wait for a limited time. A request that
can't wait any longer gets an error, but its thread counts as taken until its call ends. So a store that hangs costs its
threads and no more, and the rest of the API server answers as usual.

(`anyio.to_thread` with a limiter would free the place of a thread that was given up, and start one more beside it.)
"""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import TYPE_CHECKING, TypeVar

from airflow_bookmarks.core.errors import StoreUnavailableError

if TYPE_CHECKING:
    from collections.abc import Callable
    from concurrent.futures import Future

PATIENCE_S = 5.0
THREADS = 6
QUEUE = 30

_T = TypeVar("_T")


class NotInTimeError(StoreUnavailableError):
    """Raised when a request waited for too long. Its message reveals nothing of the store."""


class Bulkhead:
    """Lets a few calls at a time through, each for a limited time.

    Args:
        to: what is behind it, for messages.
        threads: how many calls are made at a time.
        queue: how many more may wait for that.
    """

    def __init__(self, to: str, *, threads: int = THREADS, queue: int = QUEUE) -> None:
        self._to, self._queue, self._most = to, queue, threads
        self._threads = self._new_threads()
        self._waiting = 0
        self._lock = threading.Lock()

    async def run(self, call: Callable[[], _T], patience_s: float = PATIENCE_S) -> _T:
        """Make a call in a thread, and return what it returns or raise what it raises.

        Raises:
            StoreUnavailableError: too many wait already, or it took longer than `patience_s` seconds, waiting and all.
        """
        with self._lock:
            if self._waiting >= self._queue:
                raise NotInTimeError(
                    f"{self._waiting} requests wait for the {self._to} already, which does not answer fast enough. "
                    "Nothing was read or changed. Try again in a minute."
                )
            self._waiting += 1
        future: Future[_T] = self._threads.submit(copy_context().run, self._pass, call)
        future.add_done_callback(self._leave)
        limit = asyncio.timeout(patience_s)
        try:
            async with limit:
                return await asyncio.wrap_future(future)
        except TimeoutError as error:
            if not limit.expired():
                raise  # of the call itself
            result = (
                "Nothing was read or changed" if future.cancel() else "If it was a change, look whether it was made"
            )
            raise NotInTimeError(
                f"the {self._to} did not answer within {round(patience_s, 1):g} s. {result}. Try again, or ask on the "
                "command line, which waits for longer."
            ) from error

    def close(self) -> None:
        """End the threads as their calls end; calls that wait are dropped. Later calls get new threads."""
        ended, self._threads = self._threads, self._new_threads()
        ended.shutdown(wait=False, cancel_futures=True)

    def _new_threads(self) -> ThreadPoolExecutor:
        return ThreadPoolExecutor(self._most, thread_name_prefix=f"bookmarks {self._to}")

    def _pass(self, call: Callable[[], _T]) -> _T:
        with self._lock:
            self._waiting -= 1
        return call()

    def _leave(self, future: Future[_T]) -> None:
        if future.cancelled():  # it never got through
            with self._lock:
                self._waiting -= 1
