"""A sink that commits by itself: it takes rows under a fence once, and under a burned fence, or one below it, never."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from airflow_bookmarks.sinks.sink import CommittingSink, StoredOutput
from tests.chaos.sim.scheduler import Scheduler

KIND = "rows"


class RowSink(CommittingSink):
    """The rows of one job. Own writes take even numbers, burns odd ones below them, as the transactions of Delta."""

    kind = KIND

    def __init__(self, job: str, scheduler: Scheduler) -> None:
        self._job, self._scheduler = job, scheduler
        self.top = 0
        self.rows: dict[int, Counter[str]] = {}

    def write(self, fence: int, rows: Sequence[str]) -> bool:
        """Take rows under a fence; False, and nothing is taken, when it or a higher one was taken or burned."""

        def effect() -> bool:
            if self.top >= 2 * fence:
                return False
            self.top = 2 * fence
            self.rows[fence] = Counter(rows)
            return True

        what = f"sink takes {list(rows)} under {fence}"
        return self._scheduler.call(what, effect, _failed, changes=True)

    def burn(self, output: StoredOutput, fence: int) -> None:
        """See `CommittingSink.burn`."""

        def effect() -> None:
            self.top = max(self.top, 2 * fence - 1)

        self._scheduler.call(f"sink burns below {fence}", effect, _failed, changes=True)

    def landed(self, output: StoredOutput) -> bool:
        """See `CommittingSink.landed`: under any fence that the run has had."""

        def look() -> bool:
            return any(self.rows.get(fence) for fence in output.run.fences)

        return self._scheduler.call(f"sink looks for {output.run.key}", look, _failed, changes=False)


def _failed() -> Exception:
    return OSError("the simulated sink did not answer")
