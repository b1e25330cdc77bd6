"""Hold the columns of a read to those of the run before, or start over with the new ones."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Generic

from airflow_bookmarks.core.errors import SourceError
from airflow_bookmarks.core.files.file_plan import FilePlan
from airflow_bookmarks.core.rules.schema import with_unseen
from airflow_bookmarks.core.selection.reason import OVER_BOUND
from airflow_bookmarks.core.text.cause import cause_of
from airflow_bookmarks.sources.source import P
from airflow_bookmarks.spark.contexts.deletes import without_deletes
from airflow_bookmarks.spark.contexts.watermark import WatermarkColumn
from airflow_bookmarks.spark.readers.change import ColumnRule
from airflow_bookmarks.spark.readers.format import Format, case_rule, corrupt_column
from airflow_bookmarks.spark.use import UsageRequest

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

    from airflow_bookmarks.core.plan import Plan
    from airflow_bookmarks.core.rules.schema import SchemaDifference
    from airflow_bookmarks.spark.contexts.scope import ReadScope


class ContextFrames(ABC, Generic[P]):
    """Makes the frames of one context. Each kind of source has a subclass."""

    # Columns that have no type yet, because no value of theirs was seen: known once a frame is made.
    unseen: Sequence[str] = ()
    # Whether input is put away after the run, so that it has to be known whether actions have read all of it.
    disposes: bool = False

    @abstractmethod
    def frame(self, plan: P, recorded: str | None, schema: StructType | None) -> DataFrame:
        """Return a frame over a plan.

        Args:
            recorded: the schema (JSON) of the run before; None where there was none, or it does not matter.
            schema: the columns to read it with; None: those of the script, or what is found.
        """

    def judged(self, plan: P) -> P:
        """Return a plan without what can't be read."""
        return plan

    def handed(self, frame: DataFrame) -> DataFrame:
        """Return a frame as the script gets it, with what its kind adds to it."""
        return frame


def settled(scope: ReadScope, plan: P, frames: ContextFrames[P]) -> DataFrame:
    """Return the frame over a plan if its columns may be what they are; else fail, or read all from the beginning.

    Raises:
        SchemaChangedError: columns went or have another type than before, and `on_schema_change` is "fail".
        SourceError: with "reset", all can't be read in one run.
    """
    run, starts_over = scope.run, False
    try:
        rule = _column_rule(scope, plan)
        plan = frames.judged(plan)
        before = run.schema_before(scope.ctx)
        frame = frames.frame(plan, before, None)
        change = rule.judge(before if run.compares_columns else None, frame.schema.json())
        starts_over = not change.is_compatible and rule.on_change == "reset"
        if starts_over:
            plan = run.start_over(scope.ctx)
            _check_starts_over_whole(scope, plan)
            plan = frames.judged(plan)
            frame = frames.frame(plan, None, frame.schema)
        return _finished(scope, plan, frame, frames, change)
    except BaseException as error:
        # What was planned would count as read, where the script goes on.
        if starts_over or not plan.is_empty:
            run.set_failed(scope.ctx, cause_of(error).rstrip("."))
        raise


def _column_rule(scope: ReadScope, plan: Plan) -> ColumnRule:
    fold = case_rule(scope.spark)
    given = {fold(name) for name in (scope.schema.fieldNames() if scope.schema is not None else ())}
    partitions: Iterable[str] = plan.partition_types if isinstance(plan, FilePlan) else ()
    own = [name for name in partitions if fold(name) in given]
    corrupt = corrupt_column(scope.spark, Format(scope.label, scope.format or "", scope.settings, scope.schema))
    return ColumnRule(scope.label, scope.options.on_schema_change, fold, own, [corrupt])


def _check_starts_over_whole(scope: ReadScope, plan: Plan) -> None:
    """Make sure that a plan from the beginning goes to the end: else the next run would start over, without end."""
    if plan.skipped.get(OVER_BOUND):
        raise SourceError(
            f"{scope.label}: the columns have changed, on_schema_change='reset' reads all from the beginning, and "
            "that can't be done in one run: the upstream has changed the format, its options or the partitions of "
            "its output on the way (the log says with which run). Nothing was committed. Read on with "
            "on_schema_change='accept'; or let the upstream make its output anew, and reset this job."
        )


def _finished(
    scope: ReadScope, plan: P, frame: DataFrame, frames: ContextFrames[P], change: SchemaDifference
) -> DataFrame:
    """Record the columns of a read, and return the frame for the script."""
    name, run = scope.options.watermark_column, scope.run
    column = None if name is None else WatermarkColumn.of(frame, name, scope.label)
    schema = frame.schema.json()
    if frames.unseen:
        schema = json.dumps(with_unseen(json.loads(schema), frames.unseen, case_rule(scope.spark)))
    run.set_schema(scope.ctx, schema, change.stats())
    if plan.is_empty:
        run.set_rows(scope.ctx, 0)
        frame = scope.job.uses.frame_of_empty(scope.ctx, frame)
    else:
        wanted = UsageRequest(scope.options.count_rows, column, frames.disposes)
        frame = scope.job.uses.frame_of(scope.ctx, frame, wanted)
    deleted_when = scope.options.deleted_when
    return frames.handed(frame) if deleted_when is None else without_deletes(frame, deleted_when, scope.label)
