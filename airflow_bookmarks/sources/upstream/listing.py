"""List the files of published runs that are there to be read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_bookmarks.core.errors import LookRefusedError, OptionError, SourceChangedError
from airflow_bookmarks.core.files.file_list import decode_published
from airflow_bookmarks.core.selection.listing import FileInfo, Listing
from airflow_bookmarks.files.opener import open_one_filesystem
from airflow_bookmarks.store.outputs import paths_replaced_by_sides

if TYPE_CHECKING:
    from collections.abc import Sequence

    from airflow_bookmarks.sources.upstream.job import UpstreamJob
    from airflow_bookmarks.sources.upstream.written import WrittenRun


def files_of(job: UpstreamJob, written: Sequence[WrittenRun]) -> tuple[Listing, tuple[str, ...], int]:
    """Return the files to read, where they lie, and how many a pause or disable run was asked to replace.

    Raises:
        SourceChangedError: files are gone. OptionError: this process may not look, and their sizes are not recorded.
    """
    roots = tuple(dict.fromkeys(each.folder for each in written))
    if not roots:
        return Listing.of([]), (), 0
    paths = [path for each in written for path in each.paths]
    try:
        present = _present(job, paths, open_one_filesystem(roots).stat(paths))
    except LookRefusedError:  # this process may not look: trust what the runs published
        present = _as_published(job, written)
    return Listing.of(present), roots, len(paths) - len(present)


def _present(job: UpstreamJob, paths: Sequence[str], found: Sequence[FileInfo | None]) -> list[FileInfo]:
    gone = [path for path, info in zip(paths, found, strict=True) if info is None]
    replaced = paths_replaced_by_sides(job.store, job.name) if gone else set[str]()
    gone = [path for path in gone if path not in replaced]
    if gone:
        raise SourceChangedError(
            f"{len(gone)} file(s) that upstream {job.name!r} published are gone, the first: {gone[0]!r}. "
            f"Nothing was read or changed. Somebody else removed them: rewind {job.name!r} to before the "
            "run that wrote them, so that it publishes them again."
        )
    return [info for info in found if info is not None]


def _as_published(job: UpstreamJob, written: Sequence[WrittenRun]) -> list[FileInfo]:
    """Return the files as their runs recorded them.

    Raises:
        OptionError: runs of a version that recorded their names alone are among these.
    """
    found: list[FileInfo] = []
    for each in written:
        if each.entry.publish is None:
            continue
        of_run, wanted = decode_published(job.store.blobs.get(each.entry.publish)), set(each.paths)
        known = [file for file in of_run if isinstance(file, FileInfo) and file.path in wanted]
        if len(known) < len(wanted):
            raise OptionError(
                f"run {each.number} of upstream {job.name!r} did not record the sizes of its files, and this "
                "process does not look at them. Nothing was read or changed. The command line does."
            )
        found += known
    return found
