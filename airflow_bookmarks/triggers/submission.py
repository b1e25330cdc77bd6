"""The trigger of a task that is deferred while Spark works: the provider's own, and the fence of the try."""

from __future__ import annotations

import asyncio
from dataclasses import asdict, dataclass
from functools import cached_property
from importlib import import_module
from typing import TYPE_CHECKING, Any

from airflow.triggers.base import BaseTrigger

from airflow_bookmarks.airflow_compat import kill_of
from airflow_bookmarks.hooks.bookmark import BookmarkHook

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    from airflow.triggers.base import TriggerEvent


@dataclass(frozen=True, slots=True)
class Fence:
    """Which try to fence, and by which connection."""

    bookmarks_conn_id: str
    job: str
    run_id: str
    attempt: int

    def put(self) -> None:
        """Fence the try: if its driver is still alive, it can't plan, commit or mark any more."""
        BookmarkHook(self.bookmarks_conn_id).open_store().fence(self.job, self.run_id, self.attempt)


class SubmissionTrigger(BaseTrigger):
    """Wait as the provider's trigger does; if the deferred task is ended from outside, stop Spark as it does, and
    fence.

    The operator's `on_kill` is not called for a task that is deferred: the trigger's is, from Airflow 3.3 on. Where
    it is not, the next try of the task takes the job over and fences this one.

    Args:
        classpath, arguments: the provider's trigger, as its `serialize` writes it.
        fence: the try, as `Fence` has it.
    """

    def __init__(self, classpath: str, arguments: Mapping[str, Any], fence: Mapping[str, Any]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.classpath = classpath
        self.arguments = dict(arguments)
        self.fence = dict(fence)

    @classmethod
    def around(cls, trigger: BaseTrigger, fence: Fence) -> SubmissionTrigger:
        """Return a trigger that waits as `trigger` does."""
        return cls(*trigger.serialize(), asdict(fence))

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """Return the class path and the arguments, from which it is made again."""
        arguments = {name: getattr(self, name) for name in ("classpath", "arguments", "fence")}
        return "airflow_bookmarks.triggers.submission.SubmissionTrigger", arguments

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """Fire what the provider's trigger fires."""
        async for event in self._inner.run():
            yield event

    async def cleanup(self) -> None:
        """Let the provider's trigger clean up."""
        await self._inner.cleanup()

    async def on_kill(self) -> None:
        """Stop Spark if the provider's trigger can, and fence the try in every case."""
        try:
            stop = kill_of(self._inner)
            if stop is not None:
                await stop()
        finally:
            await asyncio.to_thread(Fence(**self.fence).put)

    @cached_property
    def _inner(self) -> BaseTrigger:
        module, _, name = self.classpath.rpartition(".")
        trigger: BaseTrigger = getattr(import_module(module), name)(**self.arguments)
        # What the triggerer has set on this one by now: some check their task before they stop anything.
        trigger.task_instance = self.task_instance
        trigger.trigger_id = self.trigger_id
        return trigger
