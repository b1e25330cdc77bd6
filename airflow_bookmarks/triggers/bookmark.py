"""The trigger behind a deferred `BookmarkSensor`."""

from __future__ import annotations

import asyncio
from datetime import datetime
from typing import TYPE_CHECKING, Any

from airflow.triggers.base import BaseTrigger, TriggerEvent

from airflow_bookmarks.core.errors import BookmarkError
from airflow_bookmarks.core.text.instant import utc_now
from airflow_bookmarks.core.text.redaction import redacted
from airflow_bookmarks.hooks.connection import DEFAULT_CONNECTION
from airflow_bookmarks.lifecycle.inspect.wait import Wait, WaitAnswer
from airflow_bookmarks.triggers.poller import POLL_INTERVAL_S, Waiter, poller_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

MET, TIMED_OUT, FAILED = "met", "timed_out", "failed"
SILENCE_S = 30.0  # how long past the deadline to wait for an answer of the store


class BookmarkTrigger(BaseTrigger):
    """Wait until a condition on one or several jobs holds, and fire one event.

    Its arguments hold its whole state, so another triggerer can resume it. The event is a dict: `status` ("met",
    "timed_out" or "failed"), `found` (the summaries of the runs that satisfied it), `standing` (what it waited for, and
    where the jobs stood), `warnings`.

    Args:
        wait: the jobs and the condition, as `Wait.as_dict` writes them.
        bookmarks_conn_id: an Airflow connection of the type `bookmarks`.
        poll_interval: seconds between two polls of the poller that all triggers share. It uses the shortest interval
            requested, randomly stretched up to twofold.
        deadline: when to give up, as an ISO 8601 time with a zone; None: never.
    """

    def __init__(
        self,
        wait: Mapping[str, Any],
        bookmarks_conn_id: str = DEFAULT_CONNECTION,
        poll_interval: float = POLL_INTERVAL_S,
        deadline: str | None = None,
    ) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.wait = dict(wait)
        self.bookmarks_conn_id = bookmarks_conn_id
        self.poll_interval = poll_interval
        self.deadline = deadline

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """Return the class path and the arguments, from which it is made again."""
        arguments = {name: getattr(self, name) for name in ("wait", "bookmarks_conn_id", "poll_interval", "deadline")}
        return "airflow_bookmarks.triggers.bookmark.BookmarkTrigger", arguments

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """Wait, and fire once."""
        try:
            event = await self._event()
        except BookmarkError as error:
            event = {"status": FAILED, "error": type(error).__name__, "standing": redacted(str(error))}
        yield TriggerEvent(event)  # type: ignore[no-untyped-call]

    async def _event(self) -> dict[str, Any]:
        wait = Wait.of(self.wait)
        standing = f"It waits for {wait}. Where it stands is not known: the store was not asked yet."
        with poller_of(self.bookmarks_conn_id).waiter(wait, self.poll_interval) as waiter:
            while True:
                answer = await self._next(waiter)
                standing = standing if answer is None else str(answer)
                if answer is not None and answer.is_met:
                    found, warnings = answer.found, answer.warnings
                    return {"status": MET, "found": found, "standing": standing, "warnings": warnings}
                if self._left_s() <= 0:
                    silent = f" The store does not answer: {redacted(waiter.outage)}" if waiter.outage else ""
                    return {"status": TIMED_OUT, "standing": standing + silent}

    async def _next(self, waiter: Waiter) -> WaitAnswer | None:
        """Return the next answer, None where the deadline passes in an outage."""
        if self.deadline is None:
            return await waiter.next()
        try:
            # A satisfied wait never times out, however late it is evaluated: hence the extra time.
            return await asyncio.wait_for(waiter.next(), max(0.0, self._left_s()) + SILENCE_S)
        except TimeoutError:
            return None

    def _left_s(self) -> float:
        if self.deadline is None:
            return float("inf")
        return (datetime.fromisoformat(self.deadline) - utc_now()).total_seconds()
