"""A sink that commits by itself: it takes rows under a fence once, and under a burned fence, or one below it, never."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence

from airflow_bookmarks.sinks.sink import CommittingSink, StoredOutput
from tests.chaos.sim.scheduler import Scheduler

KIND = "rows"


class RowSink(CommittingSink):
    """The tables of one job, one for each output; own writes take even numbers, burns odd ones below, as in Delta."""

    kind = KIND

    def __init__(self, job: str, scheduler: Scheduler) -> None:
        self._job, self._scheduler = job, scheduler
        self.top: Counter[str] = Counter()
        self.rows: dict[str, dict[int, Counter[str]]] = defaultdict(dict)

    def write(self, output: str, fence: int, rows: Sequence[str]) -> bool:
        """Take rows under a fence; False, and nothing is taken, when it or a higher one was taken or burned."""

        def effect() -> bool:
            if self.top[output] >= 2 * fence:
                return False
            self.top[output] = 2 * fence
            self.rows[output][fence] = Counter(rows)
            return True

        what = f"{output} takes {list(rows)} under {fence}"
        return self._scheduler.call(what, effect, _failed, changes=True)

    def burn(self, output: StoredOutput, fence: int) -> None:
        """See `CommittingSink.burn`."""

        def effect() -> None:
            self.top[output.name] = max(self.top[output.name], 2 * fence - 1)

        self._scheduler.call(f"{output.name} burns below {fence}", effect, _failed, changes=True)

    def landed(self, output: StoredOutput) -> bool:
        """See `CommittingSink.landed`: under any fence that the run has had."""
        look = f"{output.name} looks for {output.run.key}"
        return self._scheduler.call(look, lambda: self.has(output.name, output.run.fences), _failed, changes=False)

    def has(self, output: str, fences: Sequence[int]) -> bool:
        """Whether rows lie in the table of an output under one of these fences."""
        return any(self.rows[output].get(fence) for fence in fences)


def _failed() -> Exception:
    return OSError("the simulated sink did not answer")
