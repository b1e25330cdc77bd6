"""Find what undone runs have deleted of the runs that stay, and whether it is written again.

    run 1 reads a, writes A    run 2 reads b, writes B    rewind to 1    run 3 reads b, writes B3 over B

Undoing that rewind would bring run 2 back: b counts as read, B is deleted, and B3 belongs to a run that is no longer
history. So a change is refused if the position after it knows what such a run has read.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

from airflow_bookmarks.core.errors import ChangeRefusedError
from airflow_bookmarks.core.rules.territory import published_key
from airflow_bookmarks.lifecycle.history.timeline_switch import look_at_undone
from airflow_bookmarks.lifecycle.state.positions import ContextReader
from airflow_bookmarks.sources.registry import find_kind
from airflow_bookmarks.store.outputs import numbers_replacing

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from airflow_bookmarks.core.run import Run
    from airflow_bookmarks.core.timeline import Ancestry
    from airflow_bookmarks.lifecycle.history.snapshot import HistorySnapshot
    from airflow_bookmarks.store.bookmark_store import BookmarkStore
    from airflow_bookmarks.store.transitions.timeline import TimelineSwitch


def with_made_again(history: HistorySnapshot, switch: TimelineSwitch) -> TimelineSwitch:
    """Return the switch after which whatever undone runs have overwritten of runs that stay is read and written again.

    What those runs read anew, its position knows in an earlier version, which may be back in its place by the next run:
    no version of it counts as read after the switch.

    Raises:
        ChangeRefusedError: something that was read for the first time counts as read after the switch.
    """
    store, job = history.store, history.job
    undone = look_at_undone(history, switch).runs
    replaced = numbers_replacing(store.blobs, undone, ())
    if not replaced:
        return switch
    counts = Counter(replaced[path] for path in _of_living(store, job, history.after_switch(switch), replaced))
    reader = ContextReader(store, job, replace(history.head, contexts=switch.contexts))
    overwriting = [run for run in undone if counts[run.key.number]]
    for run in overwriting:
        if _is_known(store, reader, run):
            raise ChangeRefusedError(
                f"job {job!r}: this {switch.kind} would undo run {run.key.number}, which has overwritten "
                f"{counts[run.key.number]} file(s) of runs that stay, and go to a position that counts its input as "
                "read: no run would make these rows again. Nothing was changed. Go on from where the job is; or reset "
                "it, so that all of its output is made anew."
            )
    return _unlearned(history, switch, reader, overwriting)


def _unlearned(
    history: HistorySnapshot, switch: TimelineSwitch, reader: ContextReader, overwriting: Sequence[Run]
) -> TimelineSwitch:
    """Return the switch whose positions know nothing of what some undone runs have read."""
    blobs = history.store.blobs
    contexts, positions, bodies = dict(switch.contexts), dict(switch.positions), list(switch.bodies)
    for ctx, state in switch.contexts.items():
        entries = [run.plans[ctx] for run in overwriting if ctx in run.plans and run.plans[ctx].kind == state.kind]
        kind = find_kind(state.kind)
        if kind is None or not entries or ctx in positions:
            continue
        plan = kind.union([kind.decode(blobs.get(entry.body)) for entry in entries])
        position = kind.unlearned(reader.found(ctx), plan)
        if position is None:
            continue
        contexts[ctx] = replace(state, set_in=history.head.epoch + 1, set_aside=position.set_aside)
        positions[ctx] = blobs.refer(position.body)
        bodies += position.blobs.values()
        bodies += [] if positions[ctx].inline is not None else [position.body]
    return replace(switch, contexts=contexts, positions=positions, bodies=bodies)


def _of_living(store: BookmarkStore, job: str, living: Ancestry, paths: Iterable[str]) -> list[str]:
    """Return those of some published files that belong to history; their names carry the run number."""
    numbers = {path: key[0] for path in paths if (key := published_key(path)) is not None}
    runs = {number: store.committed_run(job, number) for number in sorted(set(numbers.values()))}
    stay = {number for number, run in runs.items() if run is not None and living.has(run)}
    return [path for path, number in numbers.items() if number in stay]


def _is_known(store: BookmarkStore, reader: ContextReader, run: Run) -> bool:
    """Whether positions know something that a run has read, apart from files read with it only for their group."""
    for ctx, entry in run.plans.items():
        found = reader.found(ctx)
        if found.position is None:
            continue
        kind, state = find_kind(entry.kind), reader.state(ctx)
        if kind is None or state is None or state.kind != entry.kind:
            return True  # it can't be told from here what such a position knows
        if kind.knows(found, kind.decode(store.blobs.get(entry.body))):
            return True
    return False
