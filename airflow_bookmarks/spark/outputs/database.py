"""Stage an output for a table of a database."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_bookmarks.sinks.staging import Mode
from airflow_bookmarks.spark.sinks.jdbc import JdbcTable

if TYPE_CHECKING:
    from collections.abc import Iterable

    from airflow_bookmarks.spark.outputs.draft import OutputDraft


def stage_table(
    draft: OutputDraft,
    url: str,
    table: str,
    before: str | Iterable[str] | None = None,
    after: str | Iterable[str] | None = None,
) -> None:
    """Stage the frame in a table of its own, beside the one it is for.

    Raises:
        OptionError: what is asked can't be done with a table of a database, or not with this one.
    """
    _check(draft)
    job, run = draft.job, draft.job.active_run
    sink = JdbcTable.open(
        draft.what,
        job.store.databases,
        url,
        table,
        mode=draft.mode,
        upsert=draft.upsert,
        options=draft.options,
        schema=draft.staging,
        before=before,
        after=after,
    )
    columns, frame = sink.check(draft.frame), draft.rows()
    # Once it can only be staged: a script may mend what was refused before, and write the output anew.
    job.check_table(
        str(sink.target.address),
        sink.target.table,
        overwrites=draft.mode is Mode.OVERWRITE,
        upserts=draft.upsert is not None,
    )
    place = run.place(draft.name, sink.place(draft.when_empty))
    label = f"{job.store.namespace}/{job.name}/{draft.name}"
    run.staged(draft.name, draft.staged(frame, lambda _: sink.write(frame, place, columns, label)))


def _check(draft: OutputDraft) -> None:
    draft.check_no_delta_options("a table of a database")
    draft.check_no_catalog("a table of a database")
    if draft.partition_by or draft.overwrite_mode is not None:
        raise draft.refused("partitionBy and partitionOverwriteMode are for files, and a table has no folders")
    if draft.upsert is not None and draft.mode is not Mode.APPEND:
        raise draft.refused("upsert(...) keeps rows, and mode 'overwrite' deletes all; use one of them")
