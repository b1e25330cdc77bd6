"""Write an output to a Delta table, at the commit of the run."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import TYPE_CHECKING

from airflow_bookmarks.core.option import Option
from airflow_bookmarks.sinks.staging import Mode, Staged
from airflow_bookmarks.spark.sinks.delta import DeltaTable

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from airflow_bookmarks.sinks.delta.target import DeltaTarget
    from airflow_bookmarks.spark.outputs.draft import OutputDraft

log = logging.getLogger(__name__)


def land_in_delta(draft: OutputDraft, target: DeltaTarget) -> None:
    """Let the frame be written when everything else of the run is staged.

    Raises:
        OptionError: what is asked can't be done with a Delta table, or not with this one.
    """
    _check(draft)
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
    draft.job.land_last(draft.name, lambda: _land(draft, table, frame))


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


def _land(draft: OutputDraft, table: DeltaTable, frame: DataFrame) -> None:
    """Write to a table that commits by itself: everything else of the run is staged."""
    run, uses = draft.job.active_run, draft.job.uses
    with draft.writing():
        query = uses.query_of_write(frame)
        uses.check_used(query)
        made_from = uses.made_from(query, frame.sparkSession)
        before = table.version()
        request = table.request(before, draft.when_empty)
        if not run.is_to_land(request, made_from, lambda: not frame.isEmpty()):
            rows = 0 if frame.isEmpty() else None
            run.leave_out(draft.name, request, Staged((), rows=rows, made_from=made_from))
            return
        with uses.of_write(query):
            prepared = table.prepared(frame, is_observed=uses.is_observing)
            staged = table.write(prepared, run.place(draft.name, request), before)
        run.staged(draft.name, replace(staged, made_from=made_from))
    log.info(
        "bookmark %s: output %r has landed in the Delta table %s: version %s, %s rows",
        draft.job.name,
        draft.name,
        table.target.name,
        staged.figures["version_after"],
        "uncounted" if staged.rows is None else staged.rows,
    )
