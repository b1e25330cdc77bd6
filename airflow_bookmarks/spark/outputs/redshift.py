"""Stage an output for a table of Redshift."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_bookmarks.files.opener import open_filesystem
from airflow_bookmarks.sinks.staging import Mode
from airflow_bookmarks.spark.sinks.redshift import RedshiftTable

if TYPE_CHECKING:
    from airflow_bookmarks.spark.outputs.draft import OutputDraft
    from airflow_bookmarks.spark.sinks.redshift import CopyRequest


def stage_copy(draft: OutputDraft, request: CopyRequest, folder: str) -> None:
    """Stage the frame in files below a folder.

    Raises:
        OptionError: what is asked can't be done with a table of Redshift.
    """
    _check(draft)
    job, run = draft.job, draft.job.active_run
    files = open_filesystem(folder)
    tmp_dir = files.canonical(folder)
    job.inputs.check_staging(tmp_dir)
    sink = RedshiftTable.open(draft.what, job.store.databases, request, draft.frame, tmp_dir)
    job.check_table(str(sink.target.address), sink.target.table, overwrites=False, upserts=False)
    place = run.place(draft.name, sink.place(draft.when_empty))
    label = f"{job.store.namespace}/{job.name}/{draft.name}"
    run.staged(draft.name, draft.staged(draft.frame, lambda _: sink.write(draft.frame, files, place, label)))


def _check(draft: OutputDraft) -> None:
    what = "a table of Redshift"
    draft.check_no_delta_options(what)
    draft.check_no_catalog(what)
    if draft.options:
        raise draft.refused(f"the options {', '.join(sorted(draft.options))} have no effect on {what}")
    if draft.partition_by or draft.overwrite_mode is not None:
        raise draft.refused("partitionBy and partitionOverwriteMode are for files, and a table has no folders")
    if draft.upsert is not None or draft.mode is not Mode.APPEND:
        raise draft.refused(
            f"rows are appended to {what}, and neither upsert(...) nor mode 'overwrite' is there for it. Let "
            "statements do it (before=, after=): delete rows before, or load a table of its own and merge from that"
        )
    if draft.staging is not None:
        raise draft.refused(f"staging= has no effect on {what}, whose files lie below tmp_dir")
