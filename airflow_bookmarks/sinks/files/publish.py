"""Publish files: move each staged file to its name in the target, then delete what the commit listed.

move each staged file to its name in the target   one request each, which fails when its source is gone; where the
                                                  file system bears it, several at a time, in any order
then delete the files on the delete list          overwrite and purge; the list was fixed at the commit, and a purge
                                                  leaves what is no longer as it was listed
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING

from airflow_bookmarks.core.errors import PublishError
from airflow_bookmarks.core.rules.territory import OutputBounds, Territory
from airflow_bookmarks.sinks.files.changes import FileChanges

if TYPE_CHECKING:
    from collections.abc import Sequence

    from airflow_bookmarks.core.run import OutputEntry, RunKey
    from airflow_bookmarks.core.selection.listing import FileInfo
    from airflow_bookmarks.sinks.files.changes import Move
    from airflow_bookmarks.sinks.sink import PublishSteps

log = logging.getLogger(__name__)

_LOOKED_AT = 1000  # files that are looked at before they are deleted
_PROGRESS_EVERY = 1000
_PROGRESS_EVERY_S = 10.0


@dataclass(frozen=True, slots=True)
class Closing:
    """How the message of a failed publish ends: what stays as it is, and what to do.

    `failed` is said where a file can't be moved or deleted, `lost` where what was staged is gone.
    """

    failed: str
    lost: str


COMMITTED = Closing(
    failed="The run stays committed and its publish stays due: what was moved stays, the rest is still staged. Mend "
    "the cause (disk, rights); the next run of the job, or a retry of this one, finishes it.",
    lost="A committed run stays committed and its publish stays due, unless the job was rewound or taken over "
    "meanwhile. Somebody else removed staged files: put them back, or rewind the job to before this run so that it is "
    "done again.",
)


def check_publishable(
    territory: Territory,
    key: RunKey,
    name: str,
    output: OutputEntry,
    moves: Sequence[Move],
    deletes: Sequence[str],
    *,
    replayed: Sequence[int] = (),
) -> None:
    """Make sure that a run may publish an output that it is about to commit: otherwise it could never be finished.

    Args:
        replayed: of a replay, the fences under which its run has published before.

    Raises:
        OutOfBoundsError: a link leads out of its target, it overwrites a whole file system or bucket, or the state that
            it replays names files of others.
    """
    tokens = frozenset(f"run-{key.number}.{fence}" for fence in (key.fence, *replayed))
    item = f"RUN {key}, output {name!r}"
    bounds = OutputBounds(territory, item, output.target, output.place, tokens, replaces_own=bool(replayed))
    FileChanges.of_output(bounds, moves, deletes)


def move_all(changes: FileChanges, what: str, steps: PublishSteps, closing: Closing = COMMITTED) -> int:
    """Move each staged file to its name in the target; return how many there are.

    Args:
        what: names the run for messages.
        closing: how these end; default: as befits a run that is committed.

    Raises:
        PublishError: a file is neither staged nor published, or can't be moved.
    """
    gone: list[tuple[str, str]] = []
    progress = _Progress(f"publishing {what}", len(changes.moves), steps)

    def note(move: tuple[str, str], was_there: bool) -> None:
        if not was_there:
            gone.append(move)
        steps.done()
        progress.one_more()

    try:
        changes.move(note)
    except OSError as error:
        raise PublishError(f"{what}: {error}. {closing.failed}") from error
    # If a source is gone, an earlier try moved it: its target must be there then.
    found = changes.stat([target for _, target in gone])
    lost = [source for (source, _), info in zip(gone, found, strict=True) if info is None]
    if lost:
        raise PublishError(
            f"{what}: {len(lost)} of {len(changes.moves)} staged files are gone and were not published, the first: "
            f"{lost[0]!r}. Nothing was deleted. {closing.lost}"
        )
    return len(changes.moves)


class _Progress:
    """Logs the progress of a long step: every so many files or seconds, whichever comes first."""

    def __init__(self, what: str, total: int, steps: PublishSteps) -> None:
        self._what, self._total, self._steps = what, total, steps
        self._done = 0
        self._told, self._told_at = 0, steps.monotonic()

    def one_more(self) -> None:
        """Count a file."""
        self._done += 1
        now = self._steps.monotonic()
        if self._done - self._told >= _PROGRESS_EVERY or now - self._told_at >= _PROGRESS_EVERY_S:
            self._told, self._told_at = self._done, now
            log.info("bookmark: %s: %d of %d files", self._what, self._done, self._total)


def delete_all(
    changes: FileChanges,
    what: str,
    steps: PublishSteps,
    closing: Closing = COMMITTED,
    *,
    listed: Sequence[FileInfo] = (),
) -> None:
    """Delete what a run has replaced, once everything that it staged is moved; for the arguments see `move_all`.

    Args:
        listed: those of the files that go only as they were listed: one that was delivered anew meanwhile stays.

    Raises:
        PublishError: a file can't be deleted.
    """
    progress = _Progress(f"deleting what {what} replaced", len(changes.deletes), steps)
    try:
        if len(listed) < len(changes.deletes):
            others = set(changes.deletes).difference(file.path for file in listed)
            changes.delete(lambda path, was_there: progress.one_more(), only=others)
        for start in range(0, len(listed), _LOOKED_AT):  # not all at once: a file may be replaced after the look
            unchanged = _unchanged(changes, listed[start : start + _LOOKED_AT], what)
            changes.delete(lambda path, was_there: progress.one_more(), only=unchanged)
    except OSError as error:
        raise PublishError(f"{what}: {error}. {closing.failed}") from error


def _unchanged(changes: FileChanges, listed: Sequence[FileInfo], what: str) -> set[str]:
    """Return the files that are as they were listed, and warn of those that are others now."""
    pairs = [(file, now) for file, now in zip(listed, changes.stat([f.path for f in listed]), strict=True) if now]
    changed = [file.path for file, now in pairs if now.version != file.version]
    if changed:
        log.warning(
            "bookmark: %s: %d files were replaced since the run listed them to delete them, and stay, the first: %r. A "
            "later purge deletes them once they are old enough",
            what,
            len(changed),
            changed[0],
        )
    return {file.path for file, now in pairs if now.version == file.version}
