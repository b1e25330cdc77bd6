"""Stage an output of files."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from airflow_bookmarks.files.opener import open_filesystem
from airflow_bookmarks.sinks.staging import Mode
from airflow_bookmarks.spark.features import check_format
from airflow_bookmarks.spark.sinks.catalog_table import checked
from airflow_bookmarks.spark.sinks.files import FileSink

if TYPE_CHECKING:
    from collections.abc import Sequence

    from airflow_bookmarks.sinks.staging import Staged
    from airflow_bookmarks.spark.outputs.draft import OutputDraft

log = logging.getLogger(__name__)


def stage_files(draft: OutputDraft, path: str) -> None:
    """Stage the frame for a folder.

    Raises:
        OptionError: what is asked can't be done with files, or not there.
    """
    _check(draft)
    check_format(draft.job.spark, draft.format, draft.what)
    files = open_filesystem(path)
    target = files.canonical(path)
    draft.job.check_target(target, overwrites=draft.mode is Mode.OVERWRITE)
    staging = None if draft.staging is None else files.canonical(draft.staging)
    if staging is not None:
        draft.job.inputs.check_staging(staging)
    sink = _sink(draft, target, staging)
    run, schema = draft.job.active_run, draft.frame.schema
    for loss in sink.losses(schema):
        log.warning("bookmark %s: output %r as %s, %s", draft.job.name, draft.name, draft.format, loss)
    folder = run.place(draft.name, sink.place(schema))

    def write(made_from: Sequence[str]) -> Staged:
        # If nothing is new, the presence of rows decides what becomes of them; and new input may be read later.
        count_rows = draft.count_rows or not run.has_input or draft.job.uses.are_empty(made_from)
        return sink.write(draft.frame, files, folder, run.file_token, count_rows=count_rows)

    staged = draft.staged(draft.frame, write)
    draft.job.inputs.check_published(target, staged)
    run.staged(draft.name, staged)


def _check(draft: OutputDraft) -> None:
    draft.check_no_delta_options("files")
    if draft.upsert is not None:
        given = "upsert(...)" if draft.deletes is None else "upsert(..., deletes=...)"
        raise draft.refused(
            f"{given} can't be done with files; rows of a table have keys: .jdbc(url, table), .delta(table) or "
            ".iceberg(table)"
        )


def _sink(draft: OutputDraft, target: str, staging: str | None) -> FileSink:
    mode, table = draft.publish_mode(), draft.catalog_table
    if table is not None:
        may_be_made = draft.catalog_definition is not None
        table = checked(
            draft.what,
            draft.job.spark,
            table,
            target,
            draft.partition_by,
            may_be_made=may_be_made,
            replaces_all=mode is Mode.OVERWRITE,
        )
    return FileSink(
        draft.format,
        target,
        mode,
        draft.partition_by,
        draft.options,
        staging,
        draft.when_empty,
        draft.on_unknown_runs,
        draft.overwrite_published,
        table,
        draft.catalog_definition,
    )
