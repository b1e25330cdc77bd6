"""Archive: delete or move away what a run has read, once it is published.

mark -> is history still ours? -> look at some files -> delete or move those that are as they were read -> again

It is the driver's last step, and a kindness: whatever fails is said and left where it is, and the run stays published.
What a driver leaves (it died after the mark, or somebody else made the mark) the next run of the job finds: it is
listed, the ledger knows it, and the plan of one of the last runs names it.
"""

from __future__ import annotations

import logging
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from airflow_bookmarks.core.errors import BookmarkError, OptionError
from airflow_bookmarks.core.listing import Listing
from airflow_bookmarks.core.option import check_choice
from airflow_bookmarks.core.partition import root_of
from airflow_bookmarks.core.plan import FilePlan
from airflow_bookmarks.files.filesystem import open_filesystem
from airflow_bookmarks.sources.files import known_files

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from airflow_bookmarks.core.listing import FileInfo
    from airflow_bookmarks.core.run import Run
    from airflow_bookmarks.files.filesystem import FileSystem
    from airflow_bookmarks.store.bookmark_store import BookmarkStore, Holding

log = logging.getLogger(__name__)

OnPublished = Literal["keep", "delete", "archive"]

ON_PUBLISHED = "on_published"  # among the facts of a plan: what is to become of its files
LOOKED_BACK = 20  # runs whose plans are asked whose leftovers lie there
_AT_A_TIME = 100  # files between two looks at the job, and between the look at a file and its end


@dataclass(frozen=True, slots=True)
class Disposal:
    """What becomes of read files once the run is published: nothing, an end, or a place below `archive_to`.

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

    def facts(self) -> dict[str, Any]:
        """Return as plain values what is not the default, for the record of a plan."""
        return {} if self.is_kept else {ON_PUBLISHED: self.on_published}

    def target(self, path: str, roots: Sequence[str]) -> str:
        """Return where a file goes: its path below its root, below the archive."""
        root = root_of(path, roots, recursive=True)
        below = path[len(root) :].strip("/") or path.rpartition("/")[2]
        return f"{(self.archive_to or '').rstrip('/')}/{below}"


@dataclass(slots=True)
class _Tally:
    """What became of the files, by a word for the log."""

    counts: Counter[str] = field(default_factory=Counter)
    first_error: str | None = None

    def note(self, became: str, error: OSError | None = None) -> None:
        self.counts[became] += 1
        if error is not None and self.first_error is None:
            self.first_error = str(error)


def put_away(
    store: BookmarkStore, holding: Holding, ctx: str, planned: FilePlan, committed: FilePlan, disposal: Disposal
) -> None:
    """Delete or archive what a published run has read from one context, and what earlier runs left of theirs.

    Args:
        holding: what the run began with, and committed under.
        planned: the plan as it was made, which knows what else was listed.
        committed: what of it the run has read.

    A file is touched only if it is still the version that was read, and only while the history of the job goes on as it
    was: a reset or rewind that comes meanwhile makes these files input again. Nothing is raised: the run is published.
    """
    if disposal.is_kept or committed.upstream is not None:
        return
    label, tally = f"bookmark {holding.job}, context {ctx}", _Tally()
    try:
        left = leftovers(store, holding, ctx, known_files(planned))
        if len(left):
            log.info("%s: %d files of earlier runs were left, and go now", label, len(left))
        _dispose_all(
            _Ground(open_filesystem(committed.roots[0]), committed.roots, disposal, holding.run_number, tally),
            [*committed.files, *left],
            lambda: store.head(holding.job).epoch == holding.base.epoch,
        )
    except (BookmarkError, OSError) as error:
        tally.first_error = tally.first_error or str(error)
    _log(label, disposal, tally)


def leftovers(store: BookmarkStore, holding: Holding, ctx: str, known: Listing) -> Listing:
    """Return which known files one of the last runs has read and was to put away.

    It asks only if there are known files at all, and looks at the plans of `LOOKED_BACK` runs at most. Where the option
    is new, the files of the runs before it stay.
    """
    waiting = {file.path: file for file in known}
    found: list[FileInfo] = []
    for run in _last_runs(store, holding) if waiting else ():
        entry = run.plans.get(ctx)
        if entry is None or ON_PUBLISHED not in entry.facts:
            continue
        for file in FilePlan.decode(store.blobs.get(entry.body)).files:
            there = waiting.get(file.path)
            if there is not None and there.version == file.version:
                found.append(waiting.pop(file.path))
        if not waiting:
            break
    return Listing.of(found)


def _last_runs(store: BookmarkStore, holding: Holding) -> list[Run]:
    living = store.ancestry(holding.job, holding.base.epoch)
    runs: list[Run] = []
    for run in store.runs(holding.job, until=holding.base.run_number, reverse=True):
        if run.state.is_committed and living.is_living(run.key.number, run.epoch):
            runs.append(run)
        if len(runs) == LOOKED_BACK:
            break
    return runs


# ---- file by file


@dataclass(frozen=True, slots=True)
class _Ground:
    """Where files lie, what is to become of them, and what did."""

    files: FileSystem
    roots: Sequence[str]
    disposal: Disposal
    run_number: int
    tally: _Tally

    def unchanged(self, part: Sequence[FileInfo]) -> list[FileInfo]:
        """Return which of some files are as they were read; the others are counted."""
        same: list[FileInfo] = []
        for file, now in zip(part, self.files.stat([file.path for file in part]), strict=True):
            if now is not None and now.version == file.version:
                same.append(file)
            else:
                self.tally.note("gone already" if now is None else "changed since and left")
        return same

    def targets(self, part: Sequence[FileInfo]) -> dict[str, str | None]:
        """Return where each file goes; None where it is there already, and only its source has to go.

        A name that is taken by another file is not taken from it: two folders may hold the same name, and a path may be
        read again with another content.
        """
        wanted = {file.path: self.disposal.target(file.path, self.roots) for file in part}
        found = dict(zip(wanted.values(), self.files.stat(list(wanted.values())), strict=True))
        taken = {path for path, info in found.items() if info is not None}
        targets: dict[str, str | None] = {}
        for file in part:
            target = wanted[file.path]
            if target in taken:
                there = found[target]
                is_copy = there is not None and file.etag is not None and there.etag == file.etag
                folder, _, name = target.rpartition("/")
                target = "" if is_copy else f"{folder}/run-{self.run_number}.{name}"
            taken.add(target)
            targets[file.path] = target or None
        return targets

    def dispose(self, part: Sequence[FileInfo]) -> None:
        """Delete or archive some files that are as they were read."""
        targets = {} if self.disposal.on_published == "delete" else self.targets(part)

        def request(file: FileInfo) -> OSError | None:
            try:
                target = targets.get(file.path)
                if target is None:
                    self.files.delete(file.path)
                else:
                    self.files.move(file.path, target)
            except OSError as error:
                return error
            return None

        def note(file: FileInfo, error: OSError | None) -> None:
            done = "deleted" if self.disposal.on_published == "delete" else "archived"
            self.tally.note(done if error is None else "failed and left", error)

        self.files.pace.each(request, part, note)


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
            tally.first_error,
        )
