"""Clean: remove what undone runs staged and published. Begun by a reset or rewind, done by whoever begins next.

change    one transaction: HEAD.cleaning = the list of every staging folder and published file of the runs being undone
begin     staging first, so that nothing is moved any more; then the published files; then the note that it is done
"""

from __future__ import annotations

import json
import logging
import zlib
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from airflow_bookmarks.core.errors import ChangeRefusedError, PublishError, StateCorruptError
from airflow_bookmarks.core.listing import FileInfo
from airflow_bookmarks.core.plan import decode_paths, decode_published
from airflow_bookmarks.core.run import RunState
from airflow_bookmarks.files.filesystem import open_filesystem, store_of
from airflow_bookmarks.lifecycle.place import STAGED_SINKS
from airflow_bookmarks.store.output import paths_replaced

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from airflow_bookmarks.core.run import OutputEntry, Run
    from airflow_bookmarks.files.filesystem import FileSystem
    from airflow_bookmarks.store.bookmark_store import BookmarkStore, Holding

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class CleanList:
    """What a clean removes: folders in which runs staged, and files that they published.

    `versions` tells for a file what was published under its name: another content there is somebody else's, and stays.
    """

    folders: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    versions: Mapping[str, str] = field(default_factory=dict)

    def encode(self) -> bytes:
        """Return it as stored: one zlib stream over a JSON object of all three."""
        document = {"folders": list(self.folders), "files": list(self.files), "versions": dict(self.versions)}
        return zlib.compress(json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode(), 6)

    @classmethod
    def decode(cls, body: bytes) -> CleanList:
        """Return what `encode` wrote.

        Raises:
            StateCorruptError: it is something else.
        """
        try:
            document = json.loads(zlib.decompress(body))
            versions = dict(document.get("versions", {}))
            return cls(tuple(document["folders"]), tuple(document["files"]), versions)
        except (zlib.error, ValueError, KeyError, TypeError, AttributeError) as error:
            raise StateCorruptError(f"a stored clean list can't be read ({error}); nothing was changed") from error

    def __or__(self, other: CleanList) -> CleanList:
        """Return both lists as one."""
        return CleanList(
            tuple(dict.fromkeys(self.folders + other.folders)),
            tuple(dict.fromkeys(self.files + other.files)),
            {**self.versions, **other.versions},
        )

    def remaining(self, there: Sequence[FileInfo | None]) -> list[str]:
        """Return those of `files` that are still what was published; `there` is each as it is now, None: gone."""
        return [
            info.path
            for path, info in zip(self.files, there, strict=True)
            if info is not None and self.versions.get(path, info.version) == info.version
        ]


def clean_list(store: BookmarkStore, job: str, undone: Sequence[Run], later: Iterable[Run]) -> CleanList:
    """Return what is to be removed with the runs being `undone` (committed ones, and open ones).

    Every revision counts: the staging folder of each of its fences, the files that it published, and, where a replay is
    due, the former ones. `later` are all committed runs from the first undone one on, whose overwrites explain files
    that are gone.

    Raises:
        ChangeRefusedError: an output is of a sink that can't be cleaned, or somebody else touched a published file.
    """
    folders: list[str] = []
    files: list[str] = []
    versions: dict[str, str] = {}
    deleted = {path for run in later for output in run.outputs.values() for path in paths_replaced(store.blobs, output)}
    for run in undone:
        for name, output in run.outputs.items():
            if output.sink not in STAGED_SINKS:
                raise ChangeRefusedError(
                    f"job {job!r}: output {name!r} of run {run.key.number} went to a sink ({output.sink}) that can't "
                    "take rows back, so nothing can be cleaned. Nothing was changed. Reset or rewind without clean, "
                    "and remove its rows there."
                )
            root = output.place.rsplit("/", 2)[0]
            folders += [f"{root}/{run.key.number}.{fence}" for fence in run.fences]
            published = [] if output.publish is None else decode_published(store.blobs.get(output.publish))
            if run.state.is_committed:
                _check_untouched(job, run, output, published, deleted)
            files += [file if isinstance(file, str) else file.path for file in published]
            versions |= {file.path: file.version for file in published if isinstance(file, FileInfo)}
            if run.revision > 0:
                files += [] if output.delete is None else decode_paths(store.blobs.get(output.delete))
    return CleanList(tuple(dict.fromkeys(folders)), tuple(dict.fromkeys(files)), versions)


def _check_untouched(
    job: str, run: Run, output: OutputEntry, published: Sequence[FileInfo | str], deleted: set[str]
) -> None:
    known = [file for file in published if isinstance(file, FileInfo)]
    now = open_filesystem(output.target).stat([file.path for file in known])
    for was, there in zip(known, now, strict=True):
        is_gone = there is None and run.state is RunState.PUBLISHED and was.path not in deleted
        if is_gone or (there is not None and there.version != was.version):
            what = "is gone" if there is None else "has another content"
            raise ChangeRefusedError(
                f"job {job!r}: {was.path!r}, which run {run.key.number} published, {what}: something else has touched "
                "it. Nothing was changed: a clean removes exactly what the undone runs published. Put the file back, "
                "or reset or rewind without clean and tidy the target by hand."
            )


def finish_clean(store: BookmarkStore, holding: Holding) -> Holding:
    """Remove what the head lists, and note that it is done. It can be repeated.

    A file whose content is another by now stays, and is warned about: it is not what the undone runs published.

    Raises:
        PublishError: something can't be removed; the clean stays to be done.
        FencedError: the job is not ours any more; whoever took it over does the clean.
    """
    if holding.base.cleaning is None:
        return holding
    listed = CleanList.decode(store.blobs.get(holding.base.cleaning))
    log.info(
        "bookmark %s: cleaning: %d staging folders, %d published files",
        holding.job,
        len(listed.folders),
        len(listed.files),
    )
    try:
        for folder in listed.folders:
            open_filesystem(folder).remove(folder)
        _delete_published(holding.job, listed)
    except OSError as error:
        raise PublishError(
            f"job {holding.job!r}: a clean can't go on: {error}. What was removed stays removed, the rest is still "
            "there and still listed. Mend the cause; the next run of the job finishes it."
        ) from error
    return store.note_clean(holding)


def _delete_published(job: str, listed: CleanList) -> None:
    for files, part in _by_filesystem(listed):
        there = files.stat(part.files)
        remaining = part.remaining(there)
        is_ours = set(remaining)
        for path, info in zip(part.files, there, strict=True):
            if info is not None and path not in is_ours:
                log.warning("bookmark %s: %r has another content than was published; the clean leaves it", job, path)
        files.pace.each(files.delete, remaining, lambda path, was_there: None)


def _by_filesystem(listed: CleanList) -> list[tuple[FileSystem, CleanList]]:
    """Return the files of a list by where they lie: a job's outputs may lie on several file systems."""
    files_of: dict[str, list[str]] = {}
    for path in listed.files:
        files_of.setdefault(store_of(path), []).append(path)
    return [(open_filesystem(files[0]), replace(listed, files=tuple(files))) for files in files_of.values()]
