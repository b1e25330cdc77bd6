"""Let the publish of a run delete files that a script purges: listed when it asks for it, deleted after the commit."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_bookmarks.core.rules.territory import PurgeBounds, Territory
from airflow_bookmarks.sinks.staging import Staged, purge_request

if TYPE_CHECKING:
    from collections.abc import Sequence

    from airflow_bookmarks.core.selection.listing import FileInfo
    from airflow_bookmarks.spark.outputs.draft import WritingJob


def stage_purge(job: WritingJob, name: str, folder: str, files: Sequence[FileInfo]) -> None:
    """Let the publish of this run delete files below a folder: these, and none that come later, by their names or new.

    It is an output of its own, which makes nothing visible, so other outputs of the run may write to the same folder.

    Args:
        job: the job, which has begun.
        name: the name of the output.
        folder: the folder, as its file system spells it.
        files: those below it that are to go, as they were listed; none: the run says so, and deletes nothing.

    Raises:
        OutOfBoundsError: the folder is a whole file system or bucket, or a file lies elsewhere or is staged.
        MisuseError: an output of that name exists already.
    """
    run = job.active_run
    run.begin_write(name)
    with run.writing(name):
        bounds = PurgeBounds(Territory(job.store.namespace, job.name), f"output {name!r}", folder)
        for file in files:
            bounds.check_purge(file.path)
        run.place(name, purge_request(folder))
        run.staged(name, Staged((), [file.path for file in files], rows=0, purged=files))
