"""Sensor, trigger and watcher, which note what they do: Airflow's own log of a trigger that ends loses its last lines.

Nothing else is changed: what decides when a trigger fires is that of the package.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from airflow.triggers.base import TriggerEvent

from airflow_bookmarks.core.rules.condition import NewsSince
from airflow_bookmarks.sensors.bookmark import BookmarkSensor
from airflow_bookmarks.triggers.bookmark import BookmarkTrigger
from airflow_bookmarks.triggers.watcher import BookmarkWatcher
from tests.chaos.fanout.event import note


class TimedSensor(BookmarkSensor):
    """A sensor that defers to a `TimedTrigger`."""

    def defer(self, *, trigger: Any, **arguments: Any) -> Any:
        _, given = trigger.serialize()
        super().defer(trigger=TimedTrigger(self.task_id, os.environ["FANOUT_EVENTS"], **given), **arguments)


class TimedTrigger(BookmarkTrigger):
    """A trigger that appends the moment of its event, and whose it is, to a file, and only then fires."""

    def __init__(self, who: str, events: str, **arguments: Any) -> None:
        super().__init__(**arguments)
        self.who, self.events = who, events

    def serialize(self) -> tuple[str, dict[str, Any]]:
        _, arguments = super().serialize()
        return f"{__name__}.TimedTrigger", {**arguments, "who": self.who, "events": self.events}

    async def run(self) -> AsyncIterator[TriggerEvent]:
        async for event in super().run():
            note(Path(self.events), self.who)
            yield event


class TimedWatcher(BookmarkWatcher):
    """A watcher that appends the moment at which it has a new place, and its job, to a file."""

    def __init__(self, job: str, places: str, **arguments: Any) -> None:
        super().__init__(job, **arguments)
        self.places = places

    def serialize(self) -> tuple[str, dict[str, Any]]:
        _, arguments = super().serialize()
        return f"{__name__}.TimedWatcher", {**arguments, "places": self.places}

    async def _keep(self, cursor: NewsSince) -> None:
        await super()._keep(cursor)
        note(Path(self.places), self.job)
