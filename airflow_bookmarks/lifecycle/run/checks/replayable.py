"""Which runs can be made again, and what stands against it: a change, a later run, or files that lie there still."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from airflow_bookmarks.core.errors import ChangeRefusedError, RunUnknownError
from airflow_bookmarks.core.files.file_list import decode_moves
from airflow_bookmarks.core.position import lowest_replayed
from airflow_bookmarks.core.run import RunState
from airflow_bookmarks.core.timeline import last_common_run, living_runs
from airflow_bookmarks.files.opener import open_filesystem
from airflow_bookmarks.sinks.registry import SINKS, SinkRegistry
from airflow_bookmarks.sinks.staging import Mode
from airflow_bookmarks.store.outputs import numbers_replacing, paths_replaced_by_sides
from airflow_bookmarks.store.transitions.collection import check_own, check_uncollected, collected_until

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from airflow_bookmarks.core.head import Head
    from airflow_bookmarks.core.run import OutputEntry, Run
    from airflow_bookmarks.sinks.staging import Staged
    from airflow_bookmarks.store.bookmark_store import BookmarkStore

_PUBLISHED = re.compile(r"run-(\d+)\.\d+-")  # how the names of published files begin: `LeaseHolder.file_token`


def replayable_run(store: BookmarkStore, job: str, head: Head, number: int, sinks: SinkRegistry = SINKS) -> Run:
    """Return the run that is to be made again.

    Raises:
        RunUnknownError: no such committed run.
        ChangeRefusedError: it can't be replayed: undone, written by a sink that commits by itself, or overwritten.
    """
    run = store.committed_run(job, number)
    if run is None:
        check_uncollected(store, job, number)
        raise RunUnknownError(f"job {job!r} has no committed run {number}. Nothing was changed.")
    check_own(store, job, number, "a replay")
    why = None
    if not store.ancestry(job, head.epoch).has(run):
        why = "it was undone by a reset or rewind"
    elif run.state is not RunState.PUBLISHED:
        why = "it is not published"
    if why is None:
        why = _refused_by_sink(run.outputs.values(), sinks) or _replaced(store, job, head, run)
    if why is None:
        why = _covered_by(store, job, head.epoch, run)
    if why is not None:
        raise _not_replayable(job, number, why)
    return run


def check_worth_a_replay(store: BookmarkStore, job: str, head: Head, run: Run, sinks: SinkRegistry = SINKS) -> None:
    """Refuse a replay that `replayable_run` refuses whatever is settled before it, so that no driver is started for it.

    The driver alone can tell the rest, once it holds the job: whether a publish or a clean that is due makes the run
    fit for it, what lies in the targets, and what an output is whose kind of sink is not known in this process.

    Args:
        run: a committed run of the living timeline.

    Raises:
        ChangeRefusedError: it is refused, in the same words.
        SourceError: a kind of sink of a user's own failed.

    Example:
        check_worth_a_replay(store, job, store.head(job), run)  # before spark-submit
    """
    outputs = run.outputs.values()
    known = [each for each in outputs if each.commits_by_itself or sinks.find_staged(each.sink) is not None]
    why = _refused_by_sink(known, sinks) or _replaced(store, job, head, run)
    if why is not None:
        raise _not_replayable(job, run.key.number, why)


def _not_replayable(job: str, number: int, why: str) -> ChangeRefusedError:
    return ChangeRefusedError(
        f"job {job!r}: run {number} can't be replayed: {why}. Nothing was changed. Rewind the job to before that "
        "run instead, or let the next run go on."
    )


def _refused_by_sink(outputs: Iterable[OutputEntry], sinks: SinkRegistry) -> str | None:
    return next(filter(None, map(sinks.why_not_replay, outputs)), None)


def _replaced(store: BookmarkStore, job: str, head: Head, run: Run) -> str | None:
    """Return what has replaced that which a run wrote, as far as that is stored: no settling takes it back."""
    overwrites = any(output.metadata.mode in (Mode.OVERWRITE, Mode.PURGE) for output in run.outputs.values())
    if overwrites and head.data_run_number != run.key.number and not run.is_empty:
        return "a later run has overwritten its output"
    return _replaced_by(store, job, head.epoch, run)


def check_not_overwritten(store: BookmarkStore, job: str, head: Head, run: Run, target: str, staged: Staged) -> None:
    """Refuse a new revision of an overwrite that writes where a later run wrote: that run has replaced it there.

    Raises:
        ChangeRefusedError: one has, and its files lie there.
    """
    mine = {path.rpartition("/")[0] for _, path in staged.moves}
    epoch = head.epoch
    left = _left_by_undone(store, job, epoch, run, target, mine)
    left = left or _left_by_collected(store, job, run, staged.deletes)
    if left is not None:
        raise ChangeRefusedError(
            f"job {job!r}: the replay of run {run.key.number} can't be committed: {left}. Nothing was "
            "committed. Rewind instead."
        )
    for later in _later_runs(store, job, epoch, run):
        for output in later.outputs.values():
            if output.target != target or output.publish is None:
                continue
            theirs = {path.rpartition("/")[0] for _, path in decode_moves(store.blobs.get(output.publish))}
            if mine & theirs:
                raise ChangeRefusedError(
                    f"job {job!r}: the replay of run {run.key.number} overwrites {min(mine & theirs)!r}, "
                    f"which run {later.key.number} has written since. Nothing was committed. Rewind instead."
                )


def _replaced_by(store: BookmarkStore, job: str, epoch: int, run: Run) -> str | None:
    published = {target for output in run.outputs.values() if output.publish is not None
                 for _, target in decode_moves(store.blobs.get(output.publish))}  # fmt: skip
    if published and not published.isdisjoint(paths_replaced_by_sides(store, job)):
        return "a pause or disable run has replaced some of its files since, and what that wrote would lie beside them"
    later = _later_runs(store, job, epoch, run)
    known = {each.key for each in later}
    undone = [r for r in store.runs(job, after=run.key.number) if r.state.is_committed and r.key not in known]
    replaced_by = numbers_replacing(store.blobs, later, undone)
    number = min((replaced_by[path] for path in published & replaced_by.keys()), default=None)
    return None if number is None else f"run {number} has replaced some of its files since"


def _covered_by(store: BookmarkStore, job: str, epoch: int, run: Run) -> str | None:
    """Return the undone run that has written where this one overwrites: both would lie there after the replay."""
    for output in run.outputs.values():
        if output.metadata.is_append or output.publish is None:
            continue
        published = decode_moves(store.blobs.get(output.publish))
        folders = None if output.metadata.mode == Mode.OVERWRITE else {path.rpartition("/")[0] for _, path in published}
        left = _left_by_undone(store, job, epoch, run, output.target, folders)
        if left is not None:
            return left
    return None


def _left_by_undone(
    store: BookmarkStore, job: str, epoch: int, run: Run, target: str, folders: set[str] | None
) -> str | None:
    """Return the later run, undone since, that still has files in a target; in these of its folders, None: in any."""
    living = store.ancestry(job, epoch)
    for later in store.runs(job, after=run.key.number):
        if not living.is_undone(later):
            continue
        lists = [output.publish for output in later.outputs.values() if output.publish is not None]
        published = (path for body in lists for _, path in decode_moves(store.blobs.get(body)))
        below = [path for path in published if path.startswith(f"{target}/")]
        there = [path for path in below if folders is None or path.rpartition("/")[0] in folders]
        if any(info is not None for info in open_filesystem(target).stat(there)):
            return f"output of run {later.key.number}, which was undone, still lies in its target"
    return None


def _left_by_collected(store: BookmarkStore, job: str, run: Run, present: Sequence[str]) -> str | None:
    """Return the later, collected run that has a file among the present ones; its name tells."""
    gone = collected_until(store, job)
    numbers = {int(found[1]) for path in present if (found := _PUBLISHED.match(path.rpartition("/")[2]))}
    left = [number for number in numbers if run.key.number < number <= gone]
    kept = {later.key.number for later in store.runs(job, after=run.key.number, until=gone)} if left else set()
    collected = sorted(set(left) - kept)
    return f"output of run {collected[0]}, which was collected, still lies in its target" if collected else None


def _later_runs(store: BookmarkStore, job: str, epoch: int, run: Run) -> list[Run]:
    return list(living_runs(store.runs(job, after=run.key.number), store.ancestry(job, epoch)))


def changed_upstream(store: BookmarkStore, run: Run) -> str | None:
    """Return the upstream job that has undone or replayed something that `run` read of it; None if none has.

    The stored plan of such a run names files that are replaced by now, or about to be removed.
    """
    windows = [window for entry in run.plans.values() if (window := entry.metadata.upstream) is not None]
    heads = store.heads([window.job for window in windows])
    for window in windows:
        upstream, after, until = window.job, window.after, window.until
        head = heads.get(upstream)
        if head is None or until <= after:
            continue
        shared = last_common_run(window.epoch, head.epoch, until, store.lines(upstream))
        if shared is not None and shared < until:
            return f"upstream {upstream!r} went back to run {shared}"
        replayed = lowest_replayed(store.runs(upstream, after=after, until=until), window.changes)
        if replayed is not None:
            return f"run {replayed.key.number} of upstream {upstream!r} was replayed"
    return None
