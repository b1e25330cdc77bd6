"""Folders for rows that a run fixes for its own use: they disappear with the run.

On a cluster executors write them, so they lie below the script's TempDir; on one machine the disk will do.
"""

from __future__ import annotations

import logging
import shutil
import tempfile
import uuid
from pathlib import Path
from typing import TYPE_CHECKING

from airflow_bookmarks.core.errors import BookmarkError, OptionError
from airflow_bookmarks.core.job import DEFAULT_NAMESPACE
from airflow_bookmarks.core.rules.territory import PurgeBounds, Territory
from airflow_bookmarks.files.access import reached_by
from airflow_bookmarks.files.opener import open_filesystem
from airflow_bookmarks.sinks.files.changes import FileChanges
from airflow_bookmarks.spark.features import session_conf
from airflow_bookmarks.spark.session import session_access

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession

log = logging.getLogger(__name__)

_ITEM = "scratch folder of a run"
_MARK = "_SUCCESS"  # Spark's, which a listing leaves out


def scratch_folder(
    spark: SparkSession, temp_dir: str | None, job: str, name: str, offered: str | None = None
) -> tuple[str, Callable[[], None]]:
    """Return a folder that does not exist yet, and what removes it.

    Args:
        spark: the session that writes it.
        temp_dir: the folder of the script for such rows; None: a folder of this machine, if Spark runs here.
        job: the name of the job.
        name: a name for the folder.
        offered: a folder that a call of the script offers, used where one is needed and there is no `temp_dir`.

    Raises:
        OptionError: Spark runs on other machines, and there is neither folder.
    """
    is_here = str(spark.sparkContext.master).startswith("local")
    if temp_dir := temp_dir or (None if is_here else offered):
        folder = f"{temp_dir.rstrip('/')}/scratch/{job}/{uuid.uuid4().hex}/{name}"
        return folder, lambda: _remove(spark, job, folder)
    if not is_here:
        raise OptionError(
            f"{name}: rows have to be kept where all executors reach them, and the script has no --TempDir. Nothing "
            "was read or changed. Pass --TempDir with a folder of the lake."
        )
    root = Path(tempfile.mkdtemp(prefix="glue-run-"))
    return str(root / name), lambda: shutil.rmtree(root, ignore_errors=True)


def _remove(spark: SparkSession, job: str, folder: str) -> None:
    """Remove what was written; what can't be removed is named in the log, for the run is over."""
    with reached_by(session_access(spark, session_conf(spark))):
        try:
            files = open_filesystem(folder)
            listed = [file.path for file in files.list(folder, recursive=True).files]
            top = files.canonical(folder)
            bounds = PurgeBounds(Territory(DEFAULT_NAMESPACE, job), _ITEM, top)
            changes = FileChanges.of_purge(bounds, [*listed, f"{top}/{_MARK}"])
            for path in changes.deletes:  # one by one: at the end of a process no thread can be started
                changes.delete_one(path)
        except (BookmarkError, OSError) as error:
            log.warning("bookmark %s: the rows in %s were not removed: %s. Remove the folder", job, folder, error)
