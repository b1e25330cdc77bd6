"""Records that a frame lacks because they could not be read or made: counted, shown, and held against thresholds."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from airflow_bookmarks.core.errors import BookmarkError
from airflow_bookmarks.core.text.count import counted

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark import RDD
    from pyspark.sql import SparkSession


class ErrorThresholdError(BookmarkError):
    """Raised when the records of a frame that could not be made are more than a script allows."""


@dataclass(frozen=True)
class RecordFailure:
    """A record that could not be read or made.

    Args:
        msg: what went wrong, in a line.
        stack_trace: where, as Python or the reader says it.
        record: the record that the function got, as a dict; for one that can't be read, what is known of it.
        source: its text, where it could not be read.
    """

    msg: str
    stack_trace: str = ""
    record: dict[str, Any] | None = None
    source: str = ""


@dataclass(frozen=True)
class ErrorStage:
    """What one read or transform could not make.

    Args:
        name: the transformation context, else the name of the call.
        info: what the script gave as `info`.
        count: counts them; asked when somebody asks, and once.
        failures: returns them.
    """

    name: str
    info: str
    count: Callable[[], int]
    failures: Callable[[], RDD[RecordFailure]]


@dataclass(frozen=True)
class ErrorLimits:
    """How many failures a frame may have: 0 for any number.

    Args:
        stage: those of its own read or transform.
        total: those and all earlier ones.
    """

    stage: int = 0
    total: int = 0


@dataclass(frozen=True)
class LimitedStages:
    """What a frame had failed to make when a script gave it limits: they hold for these stages, whatever follows."""

    stages: tuple[ErrorStage, ...]
    limits: ErrorLimits


@dataclass(frozen=True)
class ErrorRecords:
    """The failures of a frame by stage, first to last."""

    stages: tuple[ErrorStage, ...] = ()
    limits: tuple[LimitedStages, ...] = ()

    def after(self, stage: ErrorStage | None, limits: ErrorLimits) -> ErrorRecords:
        """Return these and those of one more stage, and its limits."""
        stages = self.stages if stage is None else (*self.stages, stage)
        if stage is None:  # nothing of it can fail
            limits = ErrorLimits(total=limits.total)
        is_limited = limits.stage > 0 or limits.total > 0
        return ErrorRecords(stages, (*self.limits, LimitedStages(stages, limits)) if is_limited else self.limits)

    def and_those_of(self, other: ErrorRecords) -> ErrorRecords:
        """Return these and those of another frame that was joined to this one, with the limits of both."""
        stages = tuple(stage for stage in other.stages if stage not in self.stages)
        limits = tuple(each for each in other.limits if each not in self.limits)
        return ErrorRecords((*self.stages, *stages), (*self.limits, *limits))

    def count(self) -> int:
        """Return how many there are, in all stages."""
        return sum(stage.count() for stage in self.stages)

    def stage_count(self) -> int:
        """Return how many the last stage has."""
        return self.stages[-1].count() if self.stages else 0

    def check(self) -> None:
        """Hold the counts against the limits that the script gave.

        Raises:
            ErrorThresholdError: there are more.
        """
        for stages, limits in ((each.stages, each.limits) for each in self.limits):
            counts = [stage.count() for stage in stages]
            if limits.stage > 0 and counts and counts[-1] > limits.stage:
                raise _too_many("stageThreshold", counts[-1], limits.stage, stages[-1].name)
            if limits.total > 0 and sum(counts) > limits.total:
                raise _too_many("totalThreshold", sum(counts), limits.total, stages[-1].name)


def _too_many(threshold: str, found: int, allowed: int, name: str) -> ErrorThresholdError:
    return ErrorThresholdError(
        f"{name}: {counted(found, 'record')} could not be made, and {threshold} is {allowed}. Nothing was written of "
        "this frame. errorsAsDynamicFrame() shows them; allow more, or 0 for any number."
    )


def shown_errors(errors: ErrorRecords, spark: SparkSession) -> RDD[Any]:
    """Return a record for each failure, as `errorsAsDynamicFrame` shows it."""
    shown = [stage.failures().map(partial(_shown, stage.name, stage.info)) for stage in errors.stages]
    return spark.sparkContext.union(shown) if shown else spark.sparkContext.emptyRDD()


def _shown(name: str, info: str, failure: RecordFailure) -> dict[str, Any]:
    error = {
        "callsite": {"site": name, "info": info},
        "msg": failure.msg,
        "stackTrace": failure.stack_trace,
        "input": "",
        "source": failure.source,
        "dynamicRecord": failure.record,
    }
    return {"error": error}
