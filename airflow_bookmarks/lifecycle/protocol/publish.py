"""Publish: make what a committed run staged visible. It can be repeated, and finished by any process.

move each staged file to its name in the target   one request each, which fails when its source is gone; where the
                                                  file system bears it, several at a time, in any order
then delete the files on the delete list          overwrite only; the list was fixed at the commit
mark                                              one transaction; the caller's
sweep                                             staging of this fence and lower ones
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING

from airflow_bookmarks.core.errors import OptionError, OutOfBoundsError, PublishError, SourceError
from airflow_bookmarks.core.plan import decode_moves, decode_paths
from airflow_bookmarks.core.rules.territory import OutputBounds, StagingBounds, Territory, staged_key
from airflow_bookmarks.core.run import RunState
from airflow_bookmarks.lifecycle.protocol.failpoint import Failpoint
from airflow_bookmarks.lifecycle.protocol.file_changes import HEAD_STAGING, FileChanges, check_staging, staged_folders

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from airflow_bookmarks.core.run import OutputEntry, Run, RunKey
    from airflow_bookmarks.lifecycle.protocol.file_changes import Move
    from airflow_bookmarks.lifecycle.protocol.lease import RunEnvironment
    from airflow_bookmarks.store.bookmark_store import BookmarkStore, LeaseGrant

log = logging.getLogger(__name__)

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


def publish_run(store: BookmarkStore, holding: LeaseGrant, run: Run, machine: RunEnvironment) -> int:
    """Move what the run lists, then delete what it lists; return the number of files made visible.

    `run` is the item as the publisher first saw it: its lists are never read anew half-way. `holding` is the
    publisher's: before it deletes it makes sure that the job is still its own, because what a dropped publish meant to
    replace is living data.

    Raises:
        PublishError: a listed file is neither staged nor published, or can't be moved; the publish stays due.
        FencedError: the job was taken from the publisher before its deletes.
    """
    machine.at(Failpoint.PUBLISHING)
    total = 0
    for name, changes in _listed(store, holding.job, run).items():
        what = f"job {holding.job!r}, run {run.key}, output {name!r}"
        total += move_all(changes, what, machine)
        if changes.deletes:
            store.check_held(holding, f"delete what run {run.key} replaced")
            delete_all(changes, what, machine)
    machine.at(Failpoint.PUBLISHED)
    return total


def _listed(store: BookmarkStore, job: str, run: Run) -> dict[str, FileChanges]:
    """Return what the publish of each output changes, checked; none if nothing was staged.

    Nothing is staged by an empty run, nor for a sink that commits by itself.
    """
    territory = Territory(store.namespace, job)
    changes: dict[str, FileChanges] = {}
    for name, output in run.outputs.items():
        if output.publish is not None or output.delete is not None:
            moves = [] if output.publish is None else decode_moves(store.blobs.get(output.publish))
            deletes = [] if output.delete is None else decode_paths(store.blobs.get(output.delete))
            changes[name] = FileChanges.of_output(OutputBounds.of(territory, run, name), moves, deletes)
    return changes


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


def move_all(changes: FileChanges, what: str, machine: RunEnvironment, closing: Closing = COMMITTED) -> int:
    """Move each staged file to its name in the target; return how many there are.

    Args:
        what: names the run for messages.
        closing: how these end; default: as befits a run that is committed.

    Raises:
        PublishError: a file is neither staged nor published, or can't be moved.
    """
    gone: list[tuple[str, str]] = []
    progress = _Progress(f"publishing {what}", len(changes.moves), machine)

    def note(move: tuple[str, str], was_there: bool) -> None:
        if not was_there:
            gone.append(move)
        machine.at(Failpoint.MOVED)
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

    def __init__(self, what: str, total: int, machine: RunEnvironment) -> None:
        self._what, self._total, self._machine = what, total, machine
        self._done = 0
        self._told, self._told_at = 0, machine.monotonic()

    def one_more(self) -> None:
        """Count a file."""
        self._done += 1
        now = self._machine.monotonic()
        if self._done - self._told >= _PROGRESS_EVERY or now - self._told_at >= _PROGRESS_EVERY_S:
            self._told, self._told_at = self._done, now
            log.info("bookmark: %s: %d of %d files", self._what, self._done, self._total)


def delete_all(changes: FileChanges, what: str, machine: RunEnvironment, closing: Closing = COMMITTED) -> None:
    """Delete what a run has replaced, once everything that it staged is moved; for the arguments see `move_all`.

    Raises:
        PublishError: a file can't be deleted.
    """
    progress = _Progress(f"deleting what {what} replaced", len(changes.deletes), machine)
    try:
        changes.delete(lambda path, was_there: progress.one_more())
    except OSError as error:
        raise PublishError(f"{what}: {error}. {closing.failed}") from error


def sweep(territory: Territory, root: str, fence: int) -> None:
    """Remove what runs of this fence and lower ones staged in a root.

    Only when nothing of these fences is due or open: after an own mark, and for lower fences after recovery.
    """

    def is_over(folder: str) -> bool:
        key = staged_key(folder)
        return key is not None and key[1] <= fence

    staged_folders(StagingBounds(territory, HEAD_STAGING), root, is_over).remove()


def sweep_before_plan(store: BookmarkStore, job: str, staging: Iterable[str], fence: int) -> None:
    """Sweep what lower fences staged, after recovery; skip a root that is out of reach, if that is harmless.

    Only what is committed is ever moved, and all of that is published by now, but for a publish that a forced rewind
    has dropped: its driver, if it lives and reaches the root, could still move files into a target after this run has
    listed what it replaces.

    Raises:
        OutOfBoundsError: a root is none of this job; none was swept.
        OSError, SourceError, OptionError: a root is out of reach, and a dropped publish has staged there.
    """
    territory, roots = Territory(store.namespace, job), list(staging)
    check_staging(territory, roots)
    for root in roots:
        try:
            sweep(territory, root, fence)
        except (OptionError, SourceError, OSError) as error:
            committed = (run for run in store.runs(job) if run.state is RunState.COMMITTED)
            places = [output.place for run in committed for output in run.outputs.values()]
            if any(place.startswith(f"{root}/") for place in places):
                raise
            log.warning(
                "bookmark %s: the staging folder %r is out of reach; what earlier runs left there stays, and no run "
                "needs it: %s",
                job,
                root,
                error,
            )


def sweep_after_mark(store: BookmarkStore, job: str, staging: Iterable[str], fence: int) -> None:
    """Sweep each root that can be reached: the run is published, so leftovers are harmless and no failure.

    The sweep of the next begin takes it: see `sweep_before_plan`.
    """
    for root in staging:
        try:
            sweep(Territory(store.namespace, job), root, fence)
        except (OutOfBoundsError, OptionError, SourceError, OSError) as error:
            log.warning("bookmark: what was staged in %r is left, and the next run sweeps it: %s", root, error)
