"""Publish: make what a committed run staged visible. It can be repeated, and finished by anyone.

move each staged file to its name in the target   one request each, which fails when its source is gone
then delete the files on the delete list          overwrite only; the list was fixed at the commit
mark                                              one transaction; the caller's
sweep                                             staging of this fence and lower ones
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from airflow_bookmarks.core.errors import PublishError
from airflow_bookmarks.core.plan import decode_moves, decode_paths
from airflow_bookmarks.files.filesystem import FileSystem, open_filesystem
from airflow_bookmarks.lifecycle.point import Point

if TYPE_CHECKING:
    from collections.abc import Iterable

    from airflow_bookmarks.core.run import Run
    from airflow_bookmarks.lifecycle.lease import Machine
    from airflow_bookmarks.store.bookmark_store import BookmarkStore

log = logging.getLogger(__name__)

STAGING_FOLDER = "_bookmarks"
_PROGRESS_EVERY = 1000


def publish_run(store: BookmarkStore, job: str, run: Run, machine: Machine) -> int:
    """Move what the run lists, then delete what it lists; return the number of files made visible.

    `run` is the item as the publisher first saw it: its lists are never read anew half-way.

    Raises:
        PublishError: a listed file is neither staged nor published; the publish stays due.
    """
    machine.at(Point.PUBLISHING)
    total = 0
    for name, output in run.outputs.items():
        if output.publish is None and output.delete is None:
            continue  # nothing staged: an empty run, or a sink that commits by itself
        files = open_filesystem(output.target)
        moves = [] if output.publish is None else decode_moves(store.blobs.get(output.publish))
        deletes = [] if output.delete is None else decode_paths(store.blobs.get(output.delete))
        try:
            total += _move_all(files, job, run, name, moves, machine)
            for path in deletes:
                files.delete(path)
        except OSError as error:
            raise PublishError(
                f"job {job!r}, run {run.key}, output {name!r}: {error}. The run stays committed and its "
                "publish stays due: what was moved stays, the rest is still staged. Mend the cause (disk, rights); the "
                "next run of the job, or a retry of this one, finishes it."
            ) from error
    machine.at(Point.PUBLISHED)
    return total


def _move_all(files: FileSystem, job: str, run: Run, name: str, moves: list[tuple[str, str]], machine: Machine) -> int:
    gone: list[tuple[str, str]] = []
    for done, (source, target) in enumerate(moves, 1):
        if not files.move(source, target):
            gone.append((source, target))
        machine.at(Point.MOVED)
        if done % _PROGRESS_EVERY == 0:
            log.info(
                "bookmark %s: publishing output %s of run %s: %d of %d files", job, name, run.key, done, len(moves)
            )
    # A source that is gone was moved by an earlier try: its target must be there then.
    found = files.stat([target for _, target in gone])
    lost = [source for (source, _), info in zip(gone, found, strict=True) if info is None]
    if lost:
        raise PublishError(
            f"job {job!r}, run {run.key}, output {name!r}: {len(lost)} of {len(moves)} staged files are gone and "
            f"were not published, the first: {lost[0]!r}. The run stays committed and its publish stays due; nothing "
            "was deleted. Somebody else removed staged files (or this publisher is stale and a later run replaced "
            "them): put them back, or rewind the job to before this run so that it is done again."
        )
    return len(moves)


def sweep(staging: Iterable[str], fence: int, machine: Machine) -> int:
    """Remove what runs of this fence and lower ones staged; return how many places were removed.

    Only after an own mark: until then a lower fence may have staged what is still due.
    """
    removed = 0
    for root in staging:
        files = open_filesystem(root)
        for folder in files.folders(root):
            number, _, placed_by = folder.partition(".")
            if number.isdigit() and placed_by.isdigit() and int(placed_by) <= fence:
                files.remove(f"{root}/{folder}")
                removed += 1
    machine.at(Point.SWEPT)
    return removed


def staging_root(target: str, staging: str | None, namespace: str, job: str) -> str:
    """Return the folder in which all runs of a job stage what they write to `target`.

    `_bookmarks` hides it from Spark's reads of the target; the levels below keep it from `load(target + "/*")`.
    """
    base = staging if staging is not None else f"{target}/{STAGING_FOLDER}"
    return f"{base}/{namespace}/{job}"
