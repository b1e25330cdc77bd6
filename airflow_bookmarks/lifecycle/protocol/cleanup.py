"""Clean: remove what undone runs staged and published. A reset or rewind requests it, and the next run does it.

change    one transaction: HEAD.cleaning = the list of every staging folder and published file of the runs being undone
begin     staging first, so that nothing is moved any more; then the published files; then the note that it is done
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from airflow_bookmarks.core.errors import CleanRefusedError, OutOfBoundsError, PublishError, StateCorruptError
from airflow_bookmarks.core.plan import decode_paths, decode_published
from airflow_bookmarks.core.rules.territory import OutputBounds, StagingBounds, Territory, parts_below, published_key
from airflow_bookmarks.core.run import RunState
from airflow_bookmarks.core.selection.listing import FileInfo
from airflow_bookmarks.core.text.deflated import deflated, inflated
from airflow_bookmarks.files.filesystem import store_of
from airflow_bookmarks.files.opener import open_filesystem
from airflow_bookmarks.sinks.files.changes import FileChanges
from airflow_bookmarks.sinks.registry import SINKS
from airflow_bookmarks.store.outputs import paths_replaced

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from airflow_bookmarks.core.run import OutputEntry, Run
    from airflow_bookmarks.store.bookmark_store import BookmarkStore, LeaseGrant

log = logging.getLogger(__name__)

HEAD_CLEANING = "HEAD, cleaning"  # the item that lists what to clean, as errors name it


@dataclass(frozen=True, slots=True)
class CleanList:
    """What a clean removes: folders in which runs staged, and files that they published.

    `versions` holds what was published under the name of a file: if the content is another by now, the file is not the
    run's, and stays.
    """

    folders: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    versions: Mapping[str, str] = field(default_factory=dict)

    def encode(self) -> bytes:
        """Return it as stored: a JSON object of all three, deflated."""
        document = {"folders": list(self.folders), "files": list(self.files), "versions": dict(self.versions)}
        return deflated(document)

    @classmethod
    def decode(cls, body: bytes) -> CleanList:
        """Return what `encode` wrote.

        Raises:
            StateCorruptError: it is something else.
        """
        try:
            document = inflated(body, "clean list")
            versions = dict(document.get("versions", {}))
            listed = cls(tuple(document["folders"]), tuple(document["files"]), versions)
            if not all(isinstance(path, str) for path in (*listed.folders, *listed.files)):
                raise TypeError("a path in it is no text")
            return listed
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise StateCorruptError(f"a stored clean list can't be read ({error}); nothing was changed") from error

    @classmethod
    def joined(cls, lists: Iterable[CleanList]) -> CleanList:
        """Merge several lists; of two entries for one file, the later one counts."""
        folders: dict[str, None] = {}
        files: dict[str, None] = {}
        versions: dict[str, str] = {}
        for each in lists:
            folders.update(dict.fromkeys(each.folders))
            files.update(dict.fromkeys(each.files))
            versions.update(each.versions)
        return cls(tuple(folders), tuple(files), versions)

    def remaining(self, there: Sequence[FileInfo | None]) -> list[str]:
        """Return those of `files` that are still as published; `there` is each as it is now, None: gone."""
        return [
            info.path
            for path, info in zip(self.files, there, strict=True)
            if info is not None and self.versions.get(path, info.version) == info.version
        ]


def clean_list(
    store: BookmarkStore, job: str, undone: Sequence[Run], later: Iterable[Run], *, stays: Collection[str] = ()
) -> CleanList:
    """Return what to remove with the runs being `undone` (committed ones, and open ones).

    Every revision counts: the staging folder of each of its fences, the files that it published, and, where a replay is
    due, the former ones. `later` are all committed runs from the first undone one on, whose overwrites explain files
    that are gone. `stays` names outputs of which nothing is removed.

    Raises:
        CleanRefusedError: an output is of a sink that can't be cleaned, or somebody else touched a published file.
    """
    listed: list[CleanList] = []
    deleted = {path for run in later for output in run.outputs.values() for path in paths_replaced(store.blobs, output)}
    for run in undone:
        for name, output in run.outputs.items():
            if name in stays:
                continue
            why = SINKS.why_not_clean(output)
            if why is not None:
                raise CleanRefusedError(
                    job,
                    f"output {name!r} of run {run.key.number} {why}, so nothing can be cleaned",
                    "Reset or rewind without clean, and remove its rows there.",
                )
            if run.state.is_committed:
                _check_untouched(store, job, run, output, deleted)
            listed += [CleanList(_staged(store, job, run, name)), _published(store, run, output)]
    return CleanList.joined(listed)


def _staged(store: BookmarkStore, job: str, run: Run, name: str) -> tuple[str, ...]:
    """Return the folders in which a run staged an output; none if its job had another namespace then.

    Only what a committed run staged is ever moved, so a foreign folder that another run lists is harmless: it stays.

    Raises:
        OutOfBoundsError: the run is committed and not published, and that folder is none of the job's.
    """
    output = run.outputs[name]
    root = output.place.rsplit("/", 2)[0]
    try:
        OutputBounds.of(Territory(store.namespace, job), run, name).check_place()
    except OutOfBoundsError as error:
        if run.state is RunState.COMMITTED:
            raise
        log.warning("%s The clean leaves that folder.", error)
        return ()
    return tuple(f"{root}/{run.key.number}.{fence}" for fence in run.fences)


def check_published(store: BookmarkStore, job: str, runs: Iterable[Run], *, stays: Collection[str] = ()) -> None:
    """Make sure that the files which runs list as published can be theirs, because a clean removes them.

    Raises:
        OutOfBoundsError: a file that one lists is none of it.
    """
    territory = Territory(store.namespace, job)
    for run in runs:
        for name, output in run.outputs.items():
            if output.lies_in_files and name not in stays:
                bounds = OutputBounds.of(territory, run, name)
                for path in _published(store, run, output).files:
                    bounds.check_own(path)


def left_in_targets(store: BookmarkStore, runs: Iterable[Run], *, stays: Collection[str] = ()) -> CleanList:
    """Return what committed runs, undone before, published and what still lies there unchanged.

    An output in a sink that can't be cleaned is not looked at. What somebody else has removed or replaced since is none
    of it: after a change without clean, a person may have tidied the target.

    Raises:
        SourceError, OptionError, OSError: a target is out of reach.
    """
    listed = CleanList.joined(
        _published(store, run, output)
        for run in runs
        for name, output in run.outputs.items()
        if output.lies_in_files and name not in stays
    )
    there: list[str] = []
    for part in _by_filesystem(listed):
        there += part.remaining(open_filesystem(part.files[0]).stat(part.files))
    return CleanList((), tuple(there), {path: listed.versions[path] for path in there if path in listed.versions})


def _published(store: BookmarkStore, run: Run, output: OutputEntry) -> CleanList:
    published = [] if output.publish is None else decode_published(store.blobs.get(output.publish))
    files = [file if isinstance(file, str) else file.path for file in published]
    if run.revision > 0:
        files += [] if output.delete is None else decode_paths(store.blobs.get(output.delete))
    return CleanList((), tuple(files), {file.path: file.version for file in published if isinstance(file, FileInfo)})


def _check_untouched(store: BookmarkStore, job: str, run: Run, output: OutputEntry, deleted: set[str]) -> None:
    published = [] if output.publish is None else decode_published(store.blobs.get(output.publish))
    known = [file for file in published if isinstance(file, FileInfo)]
    now = open_filesystem(output.target).stat([file.path for file in known])
    for was, there in zip(known, now, strict=True):
        is_gone = there is None and run.state is RunState.PUBLISHED and was.path not in deleted
        if is_gone or (there is not None and there.version != was.version):
            what = "is gone" if there is None else "has another content"
            raise CleanRefusedError(
                job,
                f"{was.path!r}, which run {run.key.number} published, {what}: something else has touched it, and a "
                "clean removes exactly what the undone runs published",
                "Put the file back, or reset or rewind without clean and tidy the target by hand.",
            )


def overwritten_for_good(store: BookmarkStore, job: str, undone: Sequence[Run]) -> dict[str, int]:
    """Return the outputs in which `undone` runs replaced files that none of them wrote, with the number of files.

    Those files are deleted. Removing their replacements would leave nothing; the next overwrite replaces them, so no
    row comes twice where they stay.

    Raises:
        CleanRefusedError: one of these runs appended to such an output, and those rows would come twice.
    """
    written: dict[str, set[str]] = {}
    deleted: dict[str, set[str]] = {}
    appended: dict[str, int] = {}
    for run in undone:
        for name, output in run.outputs.items():
            if output.publish is None:
                continue
            written.setdefault(name, set()).update(_published(store, run, output).files)
            if output.metadata.is_append:
                appended[name] = run.key.number
                continue
            own = f"run-{run.key.number}."  # files of its own earlier revisions, which a replay has replaced
            paths = paths_replaced(store.blobs, output)
            deleted.setdefault(name, set()).update(p for p in paths if not p.rpartition("/")[2].startswith(own))
    lost = {name: len(paths - written[name]) for name, paths in deleted.items() if paths - written[name]}
    for name in lost.keys() & appended.keys():
        raise CleanRefusedError(
            job,
            f"the undone runs have overwritten files of output {name!r} that no clean brings back, and run "
            f"{appended[name]} has appended to it",
            "Reset or rewind without clean, and tidy the target by hand.",
        )
    return lost


def finish_clean(store: BookmarkStore, holding: LeaseGrant) -> LeaseGrant:
    """Remove what the head lists, and note that it is done. It can be repeated.

    A file whose content has changed stays, with a warning: it is not what the undone runs published.

    Raises:
        OutOfBoundsError: the list names what no undone run of the job staged or published; nothing was removed.
        PublishError: something can't be removed; the clean stays to be done.
        FencedError: the job is not ours any more; whoever took it over does the clean.
    """
    if holding.base.cleaning is None:
        return holding
    listed = CleanList.decode(store.blobs.get(holding.base.cleaning))
    staging, published = listed_changes(store, holding.job, holding.base.epoch, listed)
    log.info(
        "bookmark %s: cleaning: %d staging folders, %d published files",
        holding.job,
        len(listed.folders),
        len(listed.files),
    )
    try:
        for folders in staging:
            folders.remove()
        for files in published:
            _delete_published(holding.job, listed, files)
    except OSError as error:
        raise PublishError(
            f"job {holding.job!r}: a clean can't go on: {error}. What was removed stays removed, the rest is still "
            "there and still listed. Mend the cause; the next run of the job finishes it."
        ) from error
    return store.note_clean(holding)


def listed_changes(
    store: BookmarkStore, job: str, epoch: int, listed: CleanList
) -> tuple[list[FileChanges], list[FileChanges]]:
    """Return what a clean list removes, checked: staging folders, and files that undone runs published.

    Raises:
        OutOfBoundsError: it names what no undone run of the job staged or published.
    """
    published = [_files_of(store, job, epoch, part) for part in _by_filesystem(listed)]
    return _staging_of(store, job, listed), published


def _staging_of(store: BookmarkStore, job: str, listed: CleanList) -> list[FileChanges]:
    """Return the checked removal of the listed staging folders, one for each place where they lie."""
    bounds = StagingBounds(Territory(store.namespace, job), HEAD_CLEANING)
    folders_of: dict[str, list[str]] = {}
    for folder in listed.folders:
        bounds.check_folder(folder)
        folders_of.setdefault(store_of(folder), []).append(folder)
    return [FileChanges.of_staging(bounds, folders) for folders in folders_of.values()]


def _files_of(store: BookmarkStore, job: str, epoch: int, listed: CleanList) -> FileChanges:
    """Return the checked deletes of listed files of one store."""
    territory = Territory(store.namespace, job)
    undone = _undone_by_key(store, job, epoch, listed)
    files: list[tuple[OutputBounds, str]] = []
    for path in listed.files:
        run = undone.get(published_key(path) or (0, 0))
        if run is None:
            raise territory.refuse(HEAD_CLEANING, path, "no run of this job that is undone has published it")
        files.append((_bounds_for(territory, run, path), path))
    return FileChanges.of_own_files(files)


def _undone_by_key(store: BookmarkStore, job: str, epoch: int, listed: CleanList) -> dict[tuple[int, int], Run]:
    """Return the runs that may have published the listed files and are no longer history, by number and fence."""
    numbers = [key[0] for path in listed.files if (key := published_key(path)) is not None]
    if not numbers:
        return {}
    living = store.ancestry(job, epoch)
    runs: dict[tuple[int, int], Run] = {}
    for _, run in store.runs_or_damage(job, after=min(numbers) - 1, until=max(numbers)):
        if isinstance(run, StateCorruptError):
            continue  # what only it could speak for is refused
        if not living.has(run):
            runs |= {(run.key.number, fence): run for fence in (run.key.fence, *run.fences)}
    return runs


def _bounds_for(territory: Territory, run: Run, path: str) -> OutputBounds:
    """Return the bounds of the output whose target contains a file."""
    for name, output in run.outputs.items():
        if output.lies_in_files and parts_below(path, output.target) is not None:
            return replace(OutputBounds.of(territory, run, name), item=HEAD_CLEANING)
    raise territory.refuse(HEAD_CLEANING, path, f"it lies in no target of run {run.key}")


def _delete_published(job: str, listed: CleanList, files: FileChanges) -> None:
    there = files.stat(files.deletes)
    remaining = set(replace(listed, files=tuple(files.deletes)).remaining(there))
    for path, info in zip(files.deletes, there, strict=True):
        if info is not None and path not in remaining:
            log.warning("bookmark %s: %r has another content than was published; the clean leaves it", job, path)
    files.delete(only=remaining)


def _by_filesystem(listed: CleanList) -> list[CleanList]:
    """Group the files of a list by file system: the outputs of a job may lie on several."""
    files_of: dict[str, list[str]] = {}
    for path in listed.files:
        files_of.setdefault(store_of(path), []).append(path)
    return [replace(listed, files=tuple(files)) for files in files_of.values()]
