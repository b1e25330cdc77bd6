"""Write an output to a Delta table, at the commit of the run."""

from __future__ import annotations

import logging
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from airflow_bookmarks.core.option import Option
from airflow_bookmarks.sinks.staging import Mode, Staged
from airflow_bookmarks.spark.sinks.delta import DeltaTable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame

    from airflow_bookmarks.sinks.delta.target import DeltaTarget
    from airflow_bookmarks.sinks.staging import StagingRequest
    from airflow_bookmarks.spark.outputs.draft import OutputDraft
    from airflow_bookmarks.spark.query import Query

log = logging.getLogger(__name__)


def land_in_delta(draft: OutputDraft, target: DeltaTarget) -> None:
    """Let the frame be written when everything else of the run is staged.

    Raises:
        OptionError: what is asked can't be done with a Delta table, or not with this one.
    """
    _check(draft)
    draft.job.check_landing(draft.name)  # before the table is made
    table = DeltaTable.open(
        draft.what,
        draft.frame,
        target,
        mode=draft.table_mode(),
        partition_by=draft.partition_by,
        options=draft.options,
        upsert=draft.upsert,
    )
    frame = draft.rows()
    draft.job.check_target(table.location, overwrites=table.is_overwrite)
    draft.job.land_last(DeltaLanding(draft, table, frame))


def _check(draft: OutputDraft) -> None:
    draft.check_no_catalog("a Delta table")
    if draft.staging is not None:
        raise draft.refused("staging= is for what is staged, and a Delta table takes its rows itself")
    replaces = draft.mode is Mode.OVERWRITE or draft.upsert is not None
    if draft.job.option != Option.ENABLE.value and replaces and not draft.overwrite_published:
        raise draft.refused(
            f"to overwrite rows of a Delta table in a run of option {draft.job.option} may delete what runs wrote, "
            "and such a run is part of no history: write to another table, or ask for it by "
            f"job.write(df, {draft.name!r}, overwrite_published=True)"
        )


@dataclass(slots=True, eq=False)
class DeltaLanding:
    """The rows of an output on their way to a Delta table: see `LandingOutput`.

    `before` is the newest version of the table when it was prepared, and `made_from` the contexts of its rows, which
    the write of an upsert finds evaluated already.
    """

    draft: OutputDraft
    table: DeltaTable
    frame: DataFrame
    before: int = 0
    made_from: Sequence[str] = ()
    is_evaluated: bool = False

    @property
    def output(self) -> str:
        """See `LandingOutput.output`."""
        return self.draft.name

    def query(self) -> Query:
        """See `LandingOutput.query`."""
        return self.draft.job.uses.query_of_write(self.frame)

    def prepared(self) -> StagingRequest | None:
        """See `LandingOutput.prepared`."""
        draft, run, uses, frame = self.draft, self.draft.job.active_run, self.draft.job.uses, self.frame
        with draft.writing():
            query = self.query()
            self.made_from = uses.made_from(query, frame.sparkSession)
            self.table.check_columns(frame)
            self.before = self.table.version()
            request = self.table.request(self.before, draft.when_empty)
            if run.is_to_land(request, self.made_from, lambda: not frame.isEmpty()):
                self._evaluate(query)
                return request
            rows = 0 if frame.isEmpty() else None
            run.leave_out(draft.name, request, Staged((), rows=rows, made_from=self.made_from))
        return None

    def _evaluate(self, query: Query) -> None:
        """Evaluate and check the rows of an upsert: before any output lands, since landed rows can't be taken back."""
        if self.table.upsert is None:
            return
        uses = self.draft.job.uses
        with uses.of_write(query):
            self.frame = self.table.prepared(self.frame, is_observed=uses.is_observing)
        self.is_evaluated = True

    def land(self, place: str) -> None:
        """See `LandingOutput.land`."""
        draft, uses, table = self.draft, self.draft.job.uses, self.table
        with draft.writing():
            with nullcontext() if self.is_evaluated else uses.of_write(self.query()):
                staged = table.write(self.frame, place, self.before)
            draft.job.active_run.staged(draft.name, replace(staged, made_from=self.made_from))
        log.info(
            "bookmark %s: output %r has landed in the Delta table %s: version %s, %s rows",
            draft.job.name,
            draft.name,
            table.target.name,
            staged.figures["version_after"],
            "uncounted" if staged.rows is None else staged.rows,
        )
