"""Delete or archive what a run has read, once it is published.

mark -> is history still ours? -> look at some files -> delete or move those that are as they were read -> again

This is the driver's last step, and best-effort: a failure is logged, the file stays, and the run remains published. The
next run of the job finds what a driver left (it died after the mark, or another process made the mark): the file is
listed, the ledger knows it, and the plan of one of the last runs names it.
"""

from __future__ import annotations

import hashlib
import logging
import os
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import count, islice
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from airflow_bookmarks.core.errors import BookmarkError, OptionError
from airflow_bookmarks.core.option import check_choice
from airflow_bookmarks.core.rules.territory import SourceBounds, Territory
from airflow_bookmarks.core.selection.listing import Listing
from airflow_bookmarks.core.selection.partition import placed, root_among
from airflow_bookmarks.core.text.escaping import in_lines
from airflow_bookmarks.core.timeline import living_runs
from airflow_bookmarks.files.input import is_hidden
from airflow_bookmarks.files.opener import open_filesystem
from airflow_bookmarks.files.real_path import RealRoots, respelled
from airflow_bookmarks.sinks.files.changes import FileChanges
from airflow_bookmarks.sources.files.recorded_plan import known_files
from airflow_bookmarks.sources.registry import files_in, has_ledger

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import numpy.typing as npt

    from airflow_bookmarks.core.files.file_plan import FilePlan
    from airflow_bookmarks.core.run import Run
    from airflow_bookmarks.core.selection.listing import FileInfo
    from airflow_bookmarks.files.filesystem import FileSystem
    from airflow_bookmarks.store.bookmark_store import BookmarkStore, LeaseGrant

log = logging.getLogger(__name__)

StillWanted = Callable[[Listing], tuple["npt.NDArray[np.bool_]", Sequence[str]]]
OnPublished = Literal["keep", "delete", "archive"]

ON_PUBLISHED = "on_published"  # among the facts of a plan: what is to become of its files
IS_READ_WHOLE = "is_read_whole"  # among what a run counts of a context: False if its files stay for good
LOOKED_BACK = 20  # runs whose plans are searched for leftovers
_AT_A_TIME = 100  # files between two checks of the job, and between the check of a file and its end
_GONE = "gone already"  # outcome of a file that was removed by others
_LONGEST_NAME = 255  # bytes of one name that a file system accepts
_TAIL = 100  # bytes at the end of a name that is too long, which are kept


@dataclass(frozen=True, slots=True)
class Disposal:
    """What happens to read files once the run is published: nothing, a delete, or a move below `archive_to`.

    Raises:
        OptionError: `archive_to` is missing, or given and not used.

    Example:
        >>> Disposal("archive", "/lake/done").target("/lake/raw/day=1/a.csv", ["/lake/raw"])
        '/lake/done/day=1/a.csv'
    """

    on_published: OnPublished = "keep"
    archive_to: str | None = None

    def __post_init__(self) -> None:
        check_choice("on_published", self.on_published, OnPublished)
        if (self.on_published == "archive") != (self.archive_to is not None):
            raise OptionError(
                f"on_published={self.on_published!r} with archive_to={self.archive_to!r}: 'archive' needs a folder, "
                "and nothing else takes one. Nothing was read or changed. Write on_published='archive', "
                "archive_to='/lake/done'."
            )

    @property
    def is_kept(self) -> bool:
        """Whether files stay where they are."""
        return self.on_published == "keep"

    def stats(self) -> dict[str, Any]:
        """Return as plain values what is not the default, for the record of a plan."""
        return {} if self.is_kept else {ON_PUBLISHED: self.on_published}

    def target(self, path: str, roots: Sequence[str]) -> str:
        """Return where a file goes: its path below its root, below the archive."""
        return self.target_among(path, placed(roots))

    def target_among(self, path: str, place_of: Mapping[str, int]) -> str:
        """Return the function behind `target` for some roots and their places, made once for many files."""
        root = root_among(path, place_of, recursive=True)
        below = path[len(root) :].strip("/") or path.rpartition("/")[2]
        return f"{(self.archive_to or '').rstrip('/')}/{below}"


def danger_of(archive: str, root: str) -> str | None:
    """Return why an archived file may be new input again in a folder or file that is read; None if it can't be.

    Example:
        >>> [danger_of(folder, "/lake/raw") is None for folder in ("/lake/done", "/lake/raw/_done", "/lake/raw/x", "/")]
        [True, True, False, False]
    """
    archive = respelled(archive, root)
    if _is_read(f"{archive.rstrip('/')}/file", [root]):
        return (
            f"lies in {root!r}, which this context reads: what is archived would be new again. Archive beside it, or "
            "in a folder whose name begins with an underscore"
        )
    if respelled(root, archive).startswith(f"{archive.rstrip('/')}/"):
        return (
            f"lies above {root!r}, which this context reads: what lies there under that path once more would be "
            "archived into it, and be new again. Archive in a folder beside it"
        )
    return None


@dataclass(slots=True)
class _Tally:
    """Counts of what became of the files, by a word for the log."""

    counts: Counter[str] = field(default_factory=Counter)
    first_error: str | None = None

    def note(self, became: str, error: OSError | None = None) -> None:
        self.counts[became] += 1
        if error is not None and self.first_error is None:
            self.first_error = str(error)


def put_away(
    store: BookmarkStore,
    grant: LeaseGrant,
    ctx: str,
    planned: FilePlan,
    committed: FilePlan,
    disposal: Disposal,
    still_wanted: StillWanted,
) -> None:
    """Delete or archive what a published run has read from one context, and what earlier runs left of theirs.

    Args:
        holding: what the run began with, and committed under.
        planned: the plan as it was made, which knows what else was listed.
        committed: what of it the run has read.
        still_wanted: returns which files others are still to read, and who; they stay, and a later run looks again.

    A file is touched only if it is still the version that was read, and only while the history of the job goes on as it
    was: a reset or rewind that comes meanwhile makes these files input again. Nothing is raised: the run is published.
    """
    if disposal.is_kept or committed.edge is not None:
        return
    label, tally = f"bookmark {grant.job}, context {ctx}", _Tally()
    try:
        left = leftovers(store, grant, ctx, known_files(planned))
        if len(left):
            log.info("%s: %d files of earlier runs were left, and go now", label, len(left))
        _dispose_all(
            _Ground(
                open_filesystem(committed.roots[0]),
                _bounds(store, grant, ctx, committed, disposal),
                committed.roots,
                disposal,
                f"run-{grant.key}.{grant.job}",
                tally,
            ),
            _unwanted(label, Listing.of([*committed.files, *left]), still_wanted, tally),
            lambda: store.head(grant.job).epoch == grant.base.epoch,
        )
    except (BookmarkError, OSError) as error:
        tally.first_error = tally.first_error or str(error)
    _log(label, disposal, tally)


def _bounds(store: BookmarkStore, grant: LeaseGrant, ctx: str, plan: FilePlan, disposal: Disposal) -> SourceBounds:
    item = f"RUN {grant.key}, context {ctx!r}"
    return SourceBounds(Territory(store.namespace, grant.job), item, frozenset(plan.roots), disposal.archive_to)


def _unwanted(label: str, files: Listing, still_wanted: StillWanted, tally: _Tally) -> list[FileInfo]:
    is_wanted, readers = still_wanted(files)
    if readers:
        wanted = int(np.count_nonzero(is_wanted))
        tally.counts["left, because others are to read them"] += wanted
        log.warning(
            "%s: %d files stay: %s, which read the same folder, have not read them yet. A later run puts them away "
            "once they have; of a job that is no more, delete the bookmark (`airflow-bookmarks delete`)",
            label,
            wanted,
            "; ".join(readers),
        )
    return list(files.take(np.flatnonzero(~is_wanted)))


def log_kept(job: str, ctx: str, disposal: Disposal, files: int, why: str) -> None:
    """Log that read files stay where they are, for good."""
    log.warning(
        "bookmark %s, context %s: on_published=%r: %d planned files stay, because %s. They count as read, and no later "
        "run puts them away: look whether their rows have arrived, then remove them by hand; or go back with "
        "`airflow-bookmarks rewind`, and read all of them in one action (a write by job.write does)",
        job,
        ctx,
        disposal.on_published,
        files,
        why,
    )


def leftovers(store: BookmarkStore, grant: LeaseGrant, ctx: str, known: Listing) -> Listing:
    """Return the known files that one of the last runs has read and was to put away.

    It searches only if there are known files at all, and at most the plans of `LOOKED_BACK` runs. Where the option is
    new, the files of earlier runs stay.
    """
    waiting = {file.path: file for file in known}
    found: list[FileInfo] = []
    for run in _last_runs(store, grant) if waiting else ():
        entry = run.plans.get(ctx)
        if entry is None or not has_ledger(entry.kind) or entry.metadata.on_published is None:
            continue
        read = run.measured(ctx)
        is_kept = read is not None and not read.is_read_whole
        for file in files_in(entry.kind, store.blobs.get(entry.body)) or ():
            there = waiting.get(file.path)
            if there is not None and there.version == file.version:
                waiting.pop(file.path)
                if not is_kept:
                    found.append(there)
        if not waiting:
            break
    return Listing.of(found)


def _last_runs(store: BookmarkStore, grant: LeaseGrant) -> list[Run]:
    living = store.ancestry(grant.job, grant.base.epoch)
    runs = store.runs(grant.job, until=grant.base.run_number, reverse=True)
    return list(islice(living_runs(runs, living), LOOKED_BACK))


# ---- file by file


@dataclass(frozen=True, slots=True)
class _Ground:
    """Where files lie, which may go and where to, and how many did.

    `mark` becomes part of a file's name if its own name is taken in the archive: it is unique to this run of this job.
    """

    files: FileSystem
    bounds: SourceBounds
    roots: Sequence[str]
    disposal: Disposal
    mark: str
    tally: _Tally
    _place_of: Mapping[str, int] = field(init=False)
    _real_roots: RealRoots = field(init=False)
    _names: dict[str, Iterator[str]] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        # Files may be named one by one, so that there are as many roots as files: check each root once.
        object.__setattr__(self, "_place_of", placed(self.roots))
        object.__setattr__(self, "_real_roots", RealRoots(self.roots))

    def unchanged(self, part: Sequence[FileInfo]) -> list[FileInfo]:
        """Return the files that are unchanged since they were read; the others are counted."""
        same: list[FileInfo] = []
        for file, now in zip(part, self.files.stat([file.path for file in part]), strict=True):
            if now is not None and now.version == file.version:
                same.append(file)
            else:
                self.tally.note(_GONE if now is None else "changed since and left")
        return same

    def targets(self, part: Sequence[FileInfo]) -> dict[str, str | None]:
        """Return where each file goes; None where it is there already, and only its source has to go.

        A name that is taken by another file is not taken from it: two folders may hold the same name, and a path may be
        read again with another content. A file that would be read again where it goes has no target, and is counted.
        """
        wanted = {file.path: self.disposal.target_among(file.path, self._place_of) for file in part}
        found = dict(zip(wanted.values(), self.files.stat(list(wanted.values())), strict=True))
        taken = {path for path, info in found.items() if info is not None}
        targets: dict[str, str | None] = {}
        homeless: list[FileInfo] = []
        is_read = cache(self._is_read_at)
        for file in part:
            target, there = wanted[file.path], found[wanted[file.path]]
            if target in self._place_of or is_read(target.rpartition("/")[0]):
                self.tally.note("left, because they would be new again in the archive")
            elif there is not None and file.etag is not None and there.etag == file.etag:
                targets[file.path] = None
            elif target in taken:
                homeless.append(file)
            else:
                taken.add(target)
                targets[file.path] = target
        return targets | self._other_targets({file.path: wanted[file.path] for file in homeless}, taken)

    def _other_targets(self, wanted: Mapping[str, str], taken: set[str]) -> dict[str, str]:
        """Return where files go whose targets are taken: to names that are neither in the archive nor given away."""
        targets: dict[str, str] = {}
        while waiting := [path for path in wanted if path not in targets]:
            asked = {path: self._other_name(wanted[path], taken) for path in waiting}
            for (path, name), there in zip(asked.items(), self.files.stat(list(asked.values())), strict=True):
                if there is None and name not in taken:
                    targets[path] = name
                taken.add(name)
        return targets

    def _other_name(self, target: str, taken: set[str]) -> str:
        """Return a name that no file of this run has been offered."""
        names = self._names.setdefault(target, _other_names(target, self.mark))
        return next(name for name in names if name not in taken)

    def _is_read_at(self, folder: str) -> bool:
        """Whether a file in a folder may be input of one of the roots, also by way of links."""
        spellings = self._real_roots.spellings(folder)
        return any(_is_read(f"{path.rstrip('/')}/file", [root]) for root, path in spellings.items())

    def dispose(self, part: Sequence[FileInfo]) -> None:
        """Delete or archive some files that are unchanged since they were read."""
        is_deleted = self.disposal.on_published == "delete"
        targets = dict.fromkeys([file.path for file in part], None) if is_deleted else self.targets(part)

        moves = [(path, target) for path, target in targets.items() if target is not None]
        deletes = [path for path, target in targets.items() if target is None]
        changes = FileChanges.of_source(self.bounds, moves, deletes)

        def request(file: FileInfo) -> str | OSError:
            """Return the outcome for a file, in a word, or why it was left."""
            try:
                target = targets[file.path]
                if target is None:
                    changes.delete_one(file.path)
                elif not changes.move_to_free(file.path, target):
                    return _GONE
            except OSError as error:
                return error
            return "deleted" if is_deleted else "archived"

        def note(file: FileInfo, became: str | OSError) -> None:
            if isinstance(became, OSError):
                self.tally.note("failed and left", became)
            else:
                self.tally.note(became)

        self.files.concurrency.each(request, [file for file in part if file.path in targets], note)


def _is_read(path: str, roots: Sequence[str]) -> bool:
    """Whether a file may be input of one of these roots: it lies there, and in no hidden folder."""
    for root in roots:
        inside = f"{root.rstrip('/')}/"
        if path == root or (path.startswith(inside) and not any(map(is_hidden, path[len(inside) :].split("/")[:-1]))):
            return True
    return False


def _other_names(target: str, mark: str) -> Iterator[str]:
    """Yield names for a file whose target is taken, without end."""
    folder, _, name = target.rpartition("/")
    for number in count(1):
        own = f"{mark}.{name}" if number == 1 else f"{mark}.{number}.{name}"
        if len(os.fsencode(own)) > _LONGEST_NAME:
            digest = hashlib.sha256(os.fsencode(own)).hexdigest()[:16]
            own = f"run-{digest}.{os.fsencode(name)[-_TAIL:].decode(errors='ignore')}"
        yield f"{folder}/{own}"


def _dispose_all(ground: _Ground, files: Sequence[FileInfo], is_current: Callable[[], bool]) -> None:
    for start in range(0, len(files), _AT_A_TIME):
        part = files[start : start + _AT_A_TIME]
        if not is_current():
            ground.tally.counts["left, because the job was taken back"] += len(files) - start
            return
        ground.dispose(ground.unchanged(part))


def _log(label: str, disposal: Disposal, tally: _Tally) -> None:
    if not tally.counts and tally.first_error is None:
        return
    counts: Mapping[str, int] = tally.counts
    words = ", ".join(f"{count} {became}" for became, count in sorted(counts.items())) or "none"
    log.info("%s: on_published=%r: files read: %s", label, disposal.on_published, words)
    if tally.first_error is not None:
        log.warning(
            "%s: some read files could not be put away: %s. The run is published; the next run tries again.",
            label,
            in_lines(tally.first_error),
        )
