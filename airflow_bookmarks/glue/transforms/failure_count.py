"""How many records a function has failed on, known without a query of its own."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from pyspark import AccumulatorParam, TaskContext

from airflow_bookmarks.glue.errors import ERROR_RECORDS

if TYPE_CHECKING:
    from pyspark import Accumulator
    from pyspark.sql import DataFrame

    from airflow_bookmarks.glue.run import GlueRun

# Failures by stage, partition and attempt. Each action runs the function anew, and a task may run twice.
FailuresByTask = dict[tuple[int, int, int], int]


class _ByTask(AccumulatorParam[FailuresByTask]):
    def zero(self, value: FailuresByTask) -> FailuresByTask:
        return {}

    def addInPlace(self, value1: FailuresByTask, value2: FailuresByTask) -> FailuresByTask:
        for task, number in value2.items():
            value1[task] = value1.get(task, 0) + number
        return value1


def note_failure(noted: Accumulator[FailuresByTask]) -> None:
    """Note one failure, in a task."""
    context = TaskContext.get()
    if context is not None:
        noted.add({(context.stageId(), context.partitionId(), context.taskAttemptId()): 1})


class FailureCount:
    """Counts the records that a filter has failed on, and tells the run.

    What is noted while rows are read is told before the run commits. A script that asks earlier gets the answer of a
    query.

    Args:
        run: the current run.
        ctx: the transformation context under which it counts.
    """

    def __init__(self, run: GlueRun, ctx: str) -> None:
        self.noted: Accumulator[FailuresByTask] = run.spark.sparkContext.accumulator({}, _ByTask())
        self._run, self._ctx = run, ctx
        self._number: int | None = None
        run.before_end(self._tell_noted)

    def of(self, failed: DataFrame) -> int:
        """Count the rows on which the function fails, once."""
        if self._number is None:
            self._tell(failed.count())
        return self._number or 0

    def _tell_noted(self) -> None:
        """Tell the run what was noted: that of the stage which has read most."""
        if self._number is not None:
            return
        most: defaultdict[int, defaultdict[int, int]] = defaultdict(lambda: defaultdict(int))
        for (stage, partition, _), number in self.noted.value.items():
            most[stage][partition] = max(most[stage][partition], number)
        self._tell(max((sum(each.values()) for each in most.values()), default=0))

    def _tell(self, number: int) -> None:
        self._number = number
        self._run.count(ERROR_RECORDS, number, ctx=self._ctx)
