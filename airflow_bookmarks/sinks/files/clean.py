"""Clean files: remove the folders in which undone runs staged, and the files that they published."""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from airflow_bookmarks.core.errors import CleanRefusedError, OutOfBoundsError
from airflow_bookmarks.core.files.file_list import decode_paths, decode_published
from airflow_bookmarks.core.rules.territory import OutputBounds, StagingBounds, parts_below, published_key
from airflow_bookmarks.core.run import RunState
from airflow_bookmarks.core.selection.listing import FileInfo
from airflow_bookmarks.files.filesystem import store_of
from airflow_bookmarks.files.opener import open_filesystem
from airflow_bookmarks.sinks.clean import HEAD_CLEANING, CleanList
from airflow_bookmarks.sinks.files.changes import FileChanges

if TYPE_CHECKING:
    from collections.abc import Collection

    from airflow_bookmarks.core.run import Run
    from airflow_bookmarks.sinks.clean import CleanGround
    from airflow_bookmarks.sinks.sink import StoredOutput

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class FilesRemoval:
    """The checked removal of staging folders, or of published files, in one store."""

    job: str
    listed: CleanList
    folders: FileChanges | None = None
    files: FileChanges | None = None

    def remove_staged(self) -> None:
        """Remove the folders."""
        if self.folders is not None:
            self.folders.remove()

    def remove_visible(self) -> None:
        """Delete the files that are still as published; any other stays, with a warning."""
        if self.files is None:
            return
        paths = self.files.deletes
        there = self.files.stat(paths)
        remaining = set(replace(self.listed, files=tuple(paths)).remaining(there))
        for path, info in zip(paths, there, strict=True):
            if info is not None and path not in remaining:
                log.warning(
                    "bookmark %s: %r has another content than was published; the clean leaves it", self.job, path
                )
        self.files.delete(only=remaining)


def files_to_clean(output: StoredOutput, replaced: Collection[str]) -> CleanList:
    """Return the staging folder of each fence of a run, and the files that its revisions published.

    Raises:
        CleanRefusedError: a published file is gone or changed, and no later publish explains that.
    """
    if output.run.state.is_committed:
        _check_untouched(output, replaced)
    return replace(published_files(output), folders=_staged(output))


def published_files(output: StoredOutput) -> CleanList:
    """Return the files that an output lists as published, in all its revisions."""
    entry = output.entry
    published = [] if entry.publish is None else decode_published(output.blobs.get(entry.publish))
    files = [file if isinstance(file, str) else file.path for file in published]
    if output.run.revision > 0:
        files += [] if entry.delete is None else decode_paths(output.blobs.get(entry.delete))
    return CleanList((), tuple(files), {file.path: file.version for file in published if isinstance(file, FileInfo)})


def files_left(output: StoredOutput) -> CleanList:
    """Return the published files of an output that still lie there unchanged."""
    listed = published_files(output)
    if not listed.files:
        return listed
    there = listed.remaining(open_filesystem(listed.files[0]).stat(listed.files))
    return CleanList((), tuple(there), {path: listed.versions[path] for path in there if path in listed.versions})


def removals(ground: CleanGround, listed: CleanList) -> list[FilesRemoval]:
    """Return the checked removal of listed folders and files, one for each store where they lie."""
    job = ground.territory.job
    published = [FilesRemoval(job, listed, files=_files_of(ground, part)) for part in _by_filesystem(listed)]
    return [*(FilesRemoval(job, listed, folders=folders) for folders in _staging_of(ground, listed)), *published]


def _staged(output: StoredOutput) -> tuple[str, ...]:
    """Return the folders in which a run staged an output; none if its job had another namespace then.

    Only what a committed run staged is ever moved, so a foreign folder that another run lists is harmless: it stays.

    Raises:
        OutOfBoundsError: the run is committed and not published, and that folder is none of the job's.
    """
    run = output.run
    root = output.entry.place.rsplit("/", 2)[0]
    try:
        OutputBounds.of(output.territory, run, output.name).check_place()
    except OutOfBoundsError as error:
        if run.state is RunState.COMMITTED:
            raise
        log.warning("%s The clean leaves that folder.", error)
        return ()
    return tuple(f"{root}/{run.key.number}.{fence}" for fence in run.fences)


def _check_untouched(output: StoredOutput, replaced: Collection[str]) -> None:
    entry, run = output.entry, output.run
    published = [] if entry.publish is None else decode_published(output.blobs.get(entry.publish))
    known = [file for file in published if isinstance(file, FileInfo)]
    now = open_filesystem(entry.target).stat([file.path for file in known])
    for was, there in zip(known, now, strict=True):
        is_gone = there is None and run.state is RunState.PUBLISHED and was.path not in replaced
        if is_gone or (there is not None and there.version != was.version):
            what = "is gone" if there is None else "has another content"
            raise CleanRefusedError(
                output.territory.job,
                f"{was.path!r}, which run {run.key.number} published, {what}: something else has touched it, and a "
                "clean removes exactly what the undone runs published",
                "Put the file back, or reset or rewind without clean and tidy the target by hand.",
            )


def _staging_of(ground: CleanGround, listed: CleanList) -> list[FileChanges]:
    """Return the checked removal of the listed staging folders, one for each place where they lie."""
    bounds = StagingBounds(ground.territory, HEAD_CLEANING)
    folders_of: dict[str, list[str]] = {}
    for folder in listed.folders:
        bounds.check_folder(folder)
        folders_of.setdefault(store_of(folder), []).append(folder)
    return [FileChanges.of_staging(bounds, folders) for folders in folders_of.values()]


def _files_of(ground: CleanGround, listed: CleanList) -> FileChanges:
    """Return the checked deletes of listed files of one store."""
    territory = ground.territory
    numbers = [key[0] for path in listed.files if (key := published_key(path)) is not None]
    undone = ground.undone(min(numbers), max(numbers)) if numbers else {}
    files: list[tuple[OutputBounds, str]] = []
    for path in listed.files:
        run = undone.get(published_key(path) or (0, 0))
        if run is None:
            raise territory.refuse(HEAD_CLEANING, path, "no run of this job that is undone has published it")
        files.append((_bounds_for(ground, run, path), path))
    return FileChanges.of_own_files(files)


def _bounds_for(ground: CleanGround, run: Run, path: str) -> OutputBounds:
    """Return the bounds of the output whose target contains a file."""
    for name, output in run.outputs.items():
        if output.lies_in_files and parts_below(path, output.target) is not None:
            return replace(OutputBounds.of(ground.territory, run, name), item=HEAD_CLEANING)
    raise ground.territory.refuse(HEAD_CLEANING, path, f"it lies in no target of run {run.key}")


def _by_filesystem(listed: CleanList) -> list[CleanList]:
    """Group the files of a list by file system: the outputs of a job may lie on several."""
    files_of: dict[str, list[str]] = {}
    for path in listed.files:
        files_of.setdefault(store_of(path), []).append(path)
    return [replace(listed, files=tuple(files)) for files in files_of.values()]
