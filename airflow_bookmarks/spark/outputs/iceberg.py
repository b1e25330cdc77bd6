"""Stage an output for an Iceberg table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_bookmarks.spark.sinks.iceberg import IcebergTable

if TYPE_CHECKING:
    from airflow_bookmarks.spark.outputs.draft import OutputDraft


def stage_iceberg(draft: OutputDraft, name: str) -> None:
    """Stage the frame in a snapshot of the table.

    Raises:
        OptionError: what is asked can't be done with an Iceberg table, or not with this one.
    """
    draft.check_no_delta_options("an Iceberg table")
    draft.check_no_catalog("an Iceberg table")
    if draft.staging is not None:
        raise draft.refused("staging= is for files and tables of a database; an Iceberg table stages in itself")
    job, run = draft.job, draft.job.active_run
    table = IcebergTable.open(
        draft.what,
        draft.frame,
        name,
        mode=draft.table_mode(),
        partition_by=draft.partition_by,
        options=draft.options,
        upsert=draft.upsert,
    )
    job.check_target(table.location, overwrites=table.is_overwrite)
    job.inputs.check_alone(str(table.target), replaces=table.is_overwrite or draft.upsert is not None)
    frame = draft.rows()
    place = run.place(draft.name, table.request(draft.when_empty))
    is_observed = job.uses.is_observing
    run.staged(draft.name, draft.staged(frame, lambda _: table.write(frame, place, is_observed=is_observed)))
