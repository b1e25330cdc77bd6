"""The watcher: emits an asset event each time a job publishes something new, in any deployment."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow.sdk.exceptions import AirflowRuntimeError
from airflow.triggers.base import BaseEventTrigger, TriggerEvent

from airflow_bookmarks.airflow_compat import state_of
from airflow_bookmarks.core.job import check_name
from airflow_bookmarks.core.rules.condition import NewsSince
from airflow_bookmarks.hooks.connection import DEFAULT_CONNECTION
from airflow_bookmarks.lifecycle.inspect.wait import Wait, WaitStatus
from airflow_bookmarks.triggers.poller import POLL_INTERVAL_S, check_interval, poller_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

CURSOR = "bookmark_cursor"  # the key in the asset's state


class BookmarkWatcher(BaseEventTrigger):
    """Emit an asset event for each new publication of a job, to start a DAG when another Airflow has published.

    The payload is the summary of the newest run with data, as the operator pushes it to XCom, and beside it `runs` (how
    many runs with data are new: they are one event, however many) and `rewound_to` (the last run that still counts
    where the job was reset or rewound, else None). It is only a hint: the consumer's bookmark decides what there is to
    read.

    It keeps its place in the asset's state if Airflow lets a trigger do that; then it resumes there after a restart,
    and may repeat one event. Otherwise it starts from the current state, and what was published while no triggerer ran
    becomes part of the next event, without an event of its own.

    Args:
        job: name of the job, which need not exist yet.
        bookmarks_conn_id: an Airflow connection of the type `bookmarks`.
        poll_interval: seconds between two polls of the poller that all triggers share.

    Example:
        Asset("flights", watchers=[AssetWatcher(name="published", trigger=BookmarkWatcher(job="flights.clean"))])
    """

    def __init__(
        self, job: str, bookmarks_conn_id: str = DEFAULT_CONNECTION, poll_interval: float = POLL_INTERVAL_S
    ) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.job = check_name("job", job)
        self.bookmarks_conn_id = bookmarks_conn_id
        self.poll_interval = check_interval(poll_interval)
        self._keeps_place = False

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """Return the class path and the arguments, from which it is made again."""
        arguments = {name: getattr(self, name) for name in ("job", "bookmarks_conn_id", "poll_interval")}
        return "airflow_bookmarks.triggers.watcher.BookmarkWatcher", arguments

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """Watch, for ever: Airflow starts a watcher that returns again at once, over and over."""
        cursor = await self._cursor()
        with poller_of(self.bookmarks_conn_id).waiter(self._wait(cursor), self.poll_interval) as waiter:
            while True:
                answer = await waiter.next()
                standing = answer.standings[0]
                if answer.is_met:
                    self.log.info("bookmark watcher: %s: %s", self.job, standing.verdict.standing)
                    yield TriggerEvent(_payload(standing))  # type: ignore[no-untyped-call]
                elif cursor.run_number is not None:
                    continue
                # After the event: a crash in between repeats it, and loses none.
                cursor = standing.now
                await self._keep(cursor)
                waiter.go_on(self._wait(cursor))

    def _wait(self, cursor: NewsSince) -> Wait:
        return Wait((self.job,), cursor)

    # ---- its place in the job's history

    async def _cursor(self) -> NewsSince:
        stored = await self._stored()
        if not isinstance(stored, dict) or stored.get("job") != self.job:
            self.log.info("bookmark watcher: %s: begins at what is published now", self.job)
            return NewsSince()
        return NewsSince(int(stored["run_number"]), int(stored["epoch"]), int(stored["changes"]))

    async def _stored(self) -> Any:
        state = state_of(self)
        if state is None:
            self.log.warning("bookmark watcher: %s: its place can't be kept by this version of Airflow", self.job)
            return None
        try:
            stored = await state.aget(CURSOR)
        except ValueError:
            self.log.warning("bookmark watcher: %s: its place can't be kept: several assets share it", self.job)
            return None
        self._keeps_place = True
        return stored

    async def _keep(self, cursor: NewsSince) -> None:
        if not self._keeps_place:
            return
        place = {"run_number": cursor.run_number, "epoch": cursor.epoch, "changes": cursor.changes}
        state = state_of(self)
        try:
            await state.aset(CURSOR, {"job": self.job, **{name: str(number) for name, number in place.items()}})
        except AirflowRuntimeError as error:
            # Not raised: Airflow would start the watcher again at its old place, and it would repeat this event for
            # ever.
            self.log.warning("bookmark watcher: %s: its place is not kept: %s", self.job, error)


def _payload(standing: WaitStatus) -> dict[str, Any]:
    verdict = standing.verdict
    rewound_to = None if verdict.rewound_to is None else str(verdict.rewound_to)
    return {**(standing.summary or {}), "runs": verdict.runs, "rewound_to": rewound_to}
