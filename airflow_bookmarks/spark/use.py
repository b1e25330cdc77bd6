"""Track use: what the actions of a session have read of the frames of a run, and how much of each.

Spark tells by public means only what an observation (`DataFrame.observe`) has seen, and of a classic session only
during the first action. So a frame that has to be known carries two of them:

any action      armed when the frame is made: tells that an action has read something of it, and leaves open how much
managed write   armed anew before each `job.write` whose query, as Spark explains it, reads the frame: that write reads
                it to its end, unless the query has a limit, or a function that may stop early

What stays open is settled at the commit, if it matters, by counting the planned rows once and comparing.

An observation holds filters back from the source (columns are pruned as ever), so no other frame has one. Of those it
is known which were used for an output of the run, from the explained query of that output.
"""

from __future__ import annotations

import logging
import uuid
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from pyspark.sql import functions as F

from airflow_bookmarks.core.errors import MisuseError
from airflow_bookmarks.core.position import Greatest
from airflow_bookmarks.core.settings import PREFIX
from airflow_bookmarks.core.text.cause import cause_of
from airflow_bookmarks.core.text.escaping import in_lines
from airflow_bookmarks.spark.features import SPARK_ERRORS, names_columns_once, tells_last_action
from airflow_bookmarks.spark.query import UNKNOWN, Query, query_of
from airflow_bookmarks.spark.session import RowCount

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pyspark.sql import DataFrame, SparkSession

    from airflow_bookmarks.core.option import OnUnused
    from airflow_bookmarks.files.access import FileAccess
    from airflow_bookmarks.lifecycle.run.session import RunSession
    from airflow_bookmarks.spark.contexts.watermark import WatermarkColumn
    from airflow_bookmarks.spark.inputs import Inputs

log = logging.getLogger(__name__)


class RunningJob(Protocol):
    """What a reader and a writer need of the job that they work for."""

    inputs: Inputs

    @property
    def name(self) -> str:
        """The job, the key of its bookmark."""
        ...

    @property
    def access(self) -> FileAccess:
        """How the job reaches S3 and HDFS."""
        ...

    @property
    def spark(self) -> SparkSession:
        """The session that reads and writes."""
        ...

    @property
    def active_run(self) -> RunSession:
        """The run between begin and its end; MisuseError before."""
        ...

    @property
    def uses(self) -> Uses:
        """What the actions of the session read of the contexts of this run."""
        ...


@dataclass(frozen=True, slots=True)
class Reading:
    """What an action has read of a frame: rows (None: not known), and the greatest value of the watermark's column."""

    rows: int | None
    greatest: str | None


class ObservedFrame:
    """The frame of one context, which tells what actions have read of it; hand `frame` to the script.

    `column` is that of the watermark, if there is one.
    """

    def __init__(self, planned: DataFrame, column: WatermarkColumn | None = None) -> None:
        self.column = column
        self._planned = planned
        self._metric = f"bookmark-write-{uuid.uuid4().hex}"
        self._any = RowCount(column)
        self._write: RowCount | None = None
        self._whole: Reading | None = None
        self._is_open = False
        self.frame = self._any.of(self._with_metric(planned))

    def _with_metric(self, planned: DataFrame) -> DataFrame:
        if not tells_last_action(planned.sparkSession):
            return RowCount.named(planned, self._metric, self.column)
        self._write = RowCount(self.column, self._metric)
        return self._write.of(planned)

    def is_in(self, query: Query) -> bool:
        """Whether a managed write will read this frame."""
        return self._metric in query.metrics

    def expect_write(self, query: Query) -> bool:
        """Prepare for a managed write; return whether it will read this frame."""
        if not self.is_in(query):
            return False
        if tells_last_action(self._planned.sparkSession):
            return self._write is not None and self._write.forget()
        if self._write is not None and self._write.rows() is None:
            # It waits still, since a write that Spark has cut short: what it tells may be of any action in between.
            self._is_open = True
            return False
        self._write = RowCount(self.column, self._metric)
        self._write.of(self._planned)  # what it returns is the frame that the script has
        return True

    def note_write(self, query: Query) -> None:
        """Take what the managed write, for which `expect_write` has prepared, has read; it has succeeded."""
        rows = None if self._write is None else self._write.rows()
        if self._write is None or rows is None:
            return  # Spark found that the rest of the query makes no row of this frame count
        self._is_open = True
        if query.reads_to_the_end:
            self._whole = Reading(rows if query.reads_once else None, self._write.greatest())

    @property
    def is_used(self) -> bool:
        """Whether an action has read something of the frame: Spark tells of one that failed while it read, too."""
        return self._whole is not None or self._is_open or self._any.rows() is not None

    def whole(self, *, counts: bool) -> Reading | None:
        """Return what a completed action has read that read all of the frame; None where none is known to have.

        Where that is open, the planned rows are counted: one pass over them. With `counts` also where only their number
        is not known.
        """
        if self._whole is not None and not (counts and self._whole.rows is None):
            return self._whole
        if not self.is_used:
            return None
        planned = self._counted()
        if planned is None or self._whole is not None:
            return planned or self._whole
        seen = {count.rows() for count in (self._any, self._write) if count is not None}
        return planned if planned.rows in seen else None

    def _counted(self) -> Reading | None:
        greatest = [] if self.column is None else [self.column.observed().alias("greatest")]
        try:
            row = self._planned.agg(F.count(F.lit(1)).alias("rows"), *greatest).collect()[0]
        except SPARK_ERRORS as error:  # a file that is gone since, which the commit checks too
            log.warning("bookmark: what was planned can't be counted: %s", in_lines(cause_of(error)))
            return None
        return Reading(int(row["rows"]), None if self.column is None else self.column.text(row["greatest"]))


@dataclass(frozen=True, slots=True)
class UsageRequest:
    """What has to be known of the use of a context: its rows, its watermark's column, whether all of it was read."""

    counts: bool = False
    column: WatermarkColumn | None = None
    disposes: bool = False

    @property
    def is_any(self) -> bool:
        """Whether anything of it has to be known."""
        return self.counts or self.disposes or self.column is not None


class Uses:
    """The use of all contexts of one run of `job`. `on_unused`: what becomes of a run that has not used one."""

    def __init__(self, job: str, on_unused: OnUnused) -> None:
        self._job, self._on_unused = job, on_unused
        self._observed: dict[str, tuple[ObservedFrame, UsageRequest]] = {}
        self._marks: dict[str, frozenset[str]] = {}
        self._inputs: dict[str, tuple[DataFrame, bool]] = {}  # by context: the planned frame, whether it is empty
        self._marks_of_inputs: dict[str, frozenset[str]] = {}
        self._outputs = 0
        self._takes_rows_for_any = False

    def take_rows_for_any(self) -> None:
        """Let a write of rows that Python has made count as one of any context: a layer makes such rows by itself."""
        self._takes_rows_for_any = True

    @property
    def observed(self) -> list[str]:
        """The option, as given, for which it has to be known of each context whether an action has read it."""
        return ["on_unused='error'"] if self._on_unused == "error" else []

    @property
    def is_observing(self) -> bool:
        """Whether it has to be known of a context what actions have read of it."""
        return bool(self._observed)

    def frame_of_empty(self, ctx: str, planned: DataFrame) -> DataFrame:
        """Return the frame of a context that has nothing new, to be handed to the script."""
        self._inputs[ctx] = planned, True
        return planned

    def frame_of(self, ctx: str, planned: DataFrame, wanted: UsageRequest) -> DataFrame:
        """Return the frame of a context whose plan is not empty, to be handed to the script."""
        self._inputs[ctx] = planned, False
        if wanted.is_any or self._on_unused == "error":
            observed = ObservedFrame(planned, wanted.column)
            self._observed[ctx] = observed, wanted
            return observed.frame
        if self._on_unused == "ignore":
            return planned
        if not names_columns_once(planned.sparkSession):
            mark = f"bookmark_{uuid.uuid4().hex}"
            self._marks[ctx] = frozenset([mark])
            return planned.alias(mark)
        self._marks[ctx] = query_of(planned).marks
        return planned

    def made_from(self, query: Query, spark: SparkSession) -> tuple[str, ...]:
        """Return the contexts that a query of a managed write is made from; empty where that is not known.

        Spark Connect names relations anew each time that it is asked, so it is not known there.
        """
        if not query.is_known or not names_columns_once(spark):
            return ()
        # A copy: another thread of the script may be reading a context.
        return tuple(ctx for ctx in tuple(self._inputs) if not self._marks_of(ctx).isdisjoint(query.marks))

    def are_empty(self, contexts: Sequence[str]) -> bool:
        """Whether there are some, and none of them has anything new."""
        return bool(contexts) and all(self._inputs[ctx][1] for ctx in contexts)

    def _marks_of(self, ctx: str) -> frozenset[str]:
        if ctx not in self._marks_of_inputs:
            self._marks_of_inputs[ctx] = query_of(self._inputs[ctx][0]).marks
        return self._marks_of_inputs[ctx]

    def query_of_write(self, frame: DataFrame) -> Query:
        """Return what a managed write of a frame reads; `UNKNOWN` where nothing depends on it."""
        return query_of(frame) if self._inputs else UNKNOWN

    @contextmanager
    def of_write(self, query: Query) -> Iterator[None]:
        """Note, around a managed write, what it reads."""
        if not self._observed and not self._marks:
            yield
            return
        prepared = [observed for observed, _ in tuple(self._observed.values()) if observed.expect_write(query)]
        yield
        self._outputs += 1
        for observed in prepared:
            observed.note_write(query)
        is_of_any = query.has_rows and self._takes_rows_for_any
        for ctx in [ctx for ctx, marks in tuple(self._marks.items()) if is_of_any or query.is_made_from(marks)]:
            del self._marks[ctx]

    def check_used(self, queries: Sequence[Query]) -> None:
        """Make sure, before outputs land by themselves, that each context is used: by them, or by an action before.

        Raises:
            MisuseError: one is not, and on_unused is "error".
        """
        if self._on_unused == "error":
            observed = {ctx: frame for ctx, (frame, _) in self._observed.items() if not any(map(frame.is_in, queries))}
            self._check_none_unused([ctx for ctx, frame in observed.items() if not frame.is_used])

    def _check_none_unused(self, unused: Sequence[str]) -> None:
        if unused and self._on_unused == "error":
            raise MisuseError(
                f"job {self._job!r}: no action of this script has read {_named(unused)}, and on_unused is 'error'. "
                "Nothing was committed: what was planned would count as read. Use what is read, or read it in a run "
                "that does."
            )

    def settle(self, run: RunSession) -> None:
        """Tell a run, which is about to commit, what was read of its contexts, and warn of those that were not.

        Raises:
            MisuseError: one was not used, and on_unused is "error".
        """
        unused = [ctx for ctx, (observed, _) in self._observed.items() if not observed.is_used]
        self._check_none_unused(unused)
        for ctx, (observed, wanted) in self._observed.items():
            self._tell(run, ctx, observed, wanted)
        if self._on_unused == "warn":
            self._warn(unused)

    def _tell(self, run: RunSession, ctx: str, observed: ObservedFrame, wanted: UsageRequest) -> None:
        if not wanted.is_any:
            return
        reading = observed.whole(counts=wanted.counts)
        run.set_rows(ctx, None if reading is None else reading.rows)
        why = "" if reading is not None else _OPEN if observed.is_used else "no action has read the frame"
        if wanted.column is not None:
            self._tell_watermark(run, ctx, wanted.column, reading, why)
        if wanted.disposes and reading is None:
            run.keep_files(ctx, why)

    def _tell_watermark(
        self, run: RunSession, ctx: str, column: WatermarkColumn, reading: Reading | None, why: str
    ) -> None:
        value = None if reading is None else reading.greatest
        run.set_greatest(ctx, Greatest(column.name, value, column.order))
        if value is None:
            why = why or "no row has a value that can be one"
            log.warning("bookmark %s, context %s: %s has no new watermark: %s", self._job, ctx, column.name, why)

    def _warn(self, unused: Sequence[str]) -> None:
        if unused:
            log.warning(
                "bookmark %s: no action of this script has read %s; what was planned of it counts as read all the same",
                self._job,
                _named(unused),
            )
        if self._marks and self._outputs:
            log.warning(
                "bookmark %s: no output of this run is known to be made from %s; what was planned of it counts as read "
                "all the same. Where the script has used it otherwise (collect(), a sink of its own), or its reader "
                "makes the frame of rows, say on_unused='ignore' (in the conf %son_unused=ignore); with 'error' it is "
                "known exactly whether an action has read it",
                self._job,
                _named(list(self._marks)),
                PREFIX,
            )


_OPEN = "no action is known to have read it to its end (of several actions, one before the first managed write counts)"


def _named(contexts: Sequence[str]) -> str:
    return f"context{'s' if len(contexts) > 1 else ''} {', '.join(map(repr, contexts))}"
