"""Clean: remove what undone runs staged and published. A reset or rewind requests it, and the next run does it.

change    one transaction: HEAD.cleaning = what the sink of each output of the runs being undone lists
begin     sinks that commit by themselves burn the tokens of their outputs; each sink checks its part; then what is
          staged, so that nothing is published any more; then what is visible; then the note that it is done
"""

from __future__ import annotations

import logging
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from airflow_bookmarks.core.errors import (
    CleanRefusedError,
    LookRefusedError,
    PublishError,
    SinkUnknownError,
    SourceError,
    StateCorruptError,
)
from airflow_bookmarks.core.rules.territory import Territory
from airflow_bookmarks.core.run import RunKey, RunState
from airflow_bookmarks.files.permission import present_permission
from airflow_bookmarks.sinks.clean import CleanGround, CleanList
from airflow_bookmarks.sinks.failure import named_failure, own_errors
from airflow_bookmarks.sinks.files.clean import published_files
from airflow_bookmarks.sinks.registry import SINKS
from airflow_bookmarks.sinks.sink import StoredOutput
from airflow_bookmarks.store.outputs import paths_replaced

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from airflow_bookmarks.core.run import Run
    from airflow_bookmarks.databases.access import DatabaseAccess
    from airflow_bookmarks.sinks.clean import CleanedSink, Removal
    from airflow_bookmarks.sinks.registry import SinkRegistry
    from airflow_bookmarks.store.bookmark_store import BookmarkStore, LeaseGrant

log = logging.getLogger(__name__)

_MEND_OR_KEEP = "Mend the sink, or reset or rewind without clean."
_NOTHING_CHANGED = "Nothing was changed. Mend the cause."
_REST_STAYS = (
    "What was removed stays removed, the rest is still there and still listed. Mend the cause; the next run of the job "
    "finishes it."
)
_CLEAN_STAYS = "Nothing was removed: the clean stays to be done. Mend the cause; the next run of the job does it."


def clean_list(
    store: BookmarkStore,
    job: str,
    undone: Sequence[Run],
    later: Iterable[Run],
    *,
    dropped: Sequence[Run] = (),
    stays: Collection[str] = (),
) -> CleanList:
    """Return what to remove with the runs being `undone` (committed ones, and open ones).

    Every revision counts: the staging of each of its fences, what it published, and, where a replay is due, the former
    files. `later` are all committed runs from the first undone one on, whose overwrites explain files that are gone.
    `dropped` are runs that an earlier change undid before they were published: their drivers may still move files.
    `stays` names outputs of which nothing is removed.

    Of a sink that can't be cleaned, an output that never was to be published is left to the sweep; and one of a dropped
    run is, with whatever it holds, as of any run that was undone without clean. One whose publish is due is refused: a
    driver that was given up may still be about to publish, and nobody could take its rows back.

    Raises:
        CleanRefusedError: an output is of a sink that can't be cleaned, or lists what is none of the output, or fails;
            or somebody else touched a published file.
    """
    listed: list[CleanList] = []
    deleted = {path for run in later for output in run.outputs.values() for path in paths_replaced(store.blobs, output)}
    given_up = {run.key for run in dropped}
    for output in _outputs(store, job, [*undone, *dropped], stays):
        with _refusing(output):
            why = SINKS.why_not_clean(output.entry)
        if why is not None and (output.run.key in given_up or _is_never_shown(output)):
            continue
        if why is not None:
            raise CleanRefusedError(
                job,
                f"output {output.name!r} of run {output.run.key.number} {why}, so nothing can be cleaned",
                "Do it without clean, which drops a publish that is due, and remove the rows of the undone runs from "
                "that table by hand.",
            )
        sink = _cleaned(job, output.entry.sink, SINKS.reaching(store.databases))
        with _refusing(output):
            found = sink.list_clean(output, deleted)
        why = _why_not_of(output, found) or _why_not_burned(output, found)
        if why is not None:
            what = f"output {output.name!r} of run {output.run.key.number} {why}"
            raise CleanRefusedError(job, what, _MEND_OR_KEEP)
        listed.append(found)
    return CleanList.joined(listed)


def shows_nothing(output: StoredOutput, databases: DatabaseAccess) -> bool:
    """Return whether nothing of an output is visible: it never got to its publish, as far as its sink knows.

    Raises:
        LookRefusedError: only a database could tell, and this process may ask none.
        SourceError: its sink fails to tell.
    """
    run, entry = output.run, output.entry
    if _is_never_shown(output):
        return True
    sink = SINKS.reaching(databases).find_staged(entry.sink)
    if sink is None or entry.commits_by_itself or run.state is RunState.PUBLISHED or run.revision > 0:
        return False
    if present_permission() is not None and not entry.lies_in_files:  # those are looked at below its prefixes alone
        raise LookRefusedError.of_database(entry.target)
    with own_errors(entry.sink):
        return sink.is_unpublished(output)


def _is_never_shown(output: StoredOutput) -> bool:
    """Return whether nobody may ever show an output: it is staged, and its run discards it or is not committed."""
    run, entry = output.run, output.entry
    is_staged = SINKS.find_staged(entry.sink) is not None and not entry.commits_by_itself and run.revision == 0
    return is_staged and (entry.is_left_out or not run.state.is_committed)


def check_published(store: BookmarkStore, job: str, runs: Iterable[Run], *, stays: Collection[str] = ()) -> None:
    """Make sure that what runs list as published can be theirs, because a clean removes it.

    Raises:
        OutOfBoundsError: a file that one lists is none of it. CleanRefusedError: a sink of a user's own failed.
    """
    for output in _outputs(store, job, runs, stays):
        sink = SINKS.reaching(store.databases).find_to_clean(output.entry.sink)
        if sink is not None:
            with _refusing(output):
                sink.check_visible(output)


@contextmanager
def _refusing(output: StoredOutput) -> Iterator[None]:
    """Refuse the clean of an output for which a sink of a user's own fails within the block."""
    try:
        with own_errors(output.entry.sink):
            yield
    except SourceError as error:
        if output.entry.lies_in_files:
            raise
        what = f"output {output.name!r} of run {output.run.key.number} can't be cleaned: {error}"
        raise CleanRefusedError(output.territory.job, what, _MEND_OR_KEEP) from error


def left_in_targets(store: BookmarkStore, job: str, runs: Iterable[Run], *, stays: Collection[str] = ()) -> CleanList:
    """Return what committed runs, undone before, published and what still lies there unchanged.

    An output in a sink that can't be cleaned, or that doesn't know, is left out. What somebody else has removed or
    replaced since is none of it: after a change without clean, a person may have tidied the target.

    Raises:
        SourceError, OptionError, OSError: a target is out of reach.
    """
    found = (left_of(output) for output in _outputs(store, job, runs, stays))
    return CleanList.joined(each for each in found if each is not None)


def left_of(output: StoredOutput) -> CleanList | None:
    """Return what an output of an undone run has still visible, unchanged; None: that is not known.

    Raises:
        SourceError, OptionError, OSError: its target is out of reach, or its sink fails.
    """
    sink = SINKS.find_to_clean(output.entry.sink)
    if sink is None:
        return None
    with named_failure(output.entry.sink, output, _NOTHING_CHANGED):
        found = sink.left(output)
    why = None if found is None else _why_not_of(output, found)
    if why is not None:
        raise SourceError(f"{output} {why}")
    return found


def _why_not_of(output: StoredOutput, listed: CleanList) -> str | None:
    """Return why a list can't be what a clean removes of an output; None if it can.

    If it was stored, each later run of the job would be refused for it.
    """
    run, sink = output.run, output.entry.sink
    if output.entry.lies_in_files:
        return None
    if listed.folders or listed.files:
        return f"is listed by its sink, of kind {sink!r}, as files, and not as a part"
    keys = {RunKey(run.key.number, fence) for fence in (run.key.fence, *run.fences)}
    for part in listed.parts:
        if (part.sink, part.output) != (sink, output.name) or part.run not in keys:
            what = f"sink {part.sink!r}, run {part.run}, output {part.output!r}"
            return f"is listed by its sink, of kind {sink!r}, as another output ({what})"
    return None


def _why_not_burned(output: StoredOutput, listed: CleanList) -> str | None:
    """Return why a clean could not burn the token of an open run, whose driver may only seem dead; None if it can."""
    if listed.parts or not output.entry.commits_by_itself or output.run.state.is_committed:
        return None
    return f"is not listed by its sink, of kind {output.entry.sink!r}, so what its driver writes too late would stay"


def _outputs(store: BookmarkStore, job: str, runs: Iterable[Run], stays: Collection[str]) -> Iterator[StoredOutput]:
    territory = Territory(store.namespace, job)
    return (
        StoredOutput(territory, run, name, store.blobs) for run in runs for name in run.outputs if name not in stays
    )


def overwritten_for_good(store: BookmarkStore, job: str, undone: Sequence[Run]) -> dict[str, int]:
    """Return the outputs in which `undone` runs replaced files that none of them wrote, with the number of files.

    Those files are deleted. Removing their replacements would leave nothing; the next overwrite replaces them, so no
    row comes twice where they stay.

    Raises:
        CleanRefusedError: one of these runs appended to such an output, and those rows would come twice.
    """
    territory = Territory(store.namespace, job)
    written: dict[str, set[str]] = {}
    deleted: dict[str, set[str]] = {}
    appended: dict[str, int] = {}
    for run in undone:
        for name, output in run.outputs.items():
            if output.publish is None or not output.lies_in_files:
                continue
            written.setdefault(name, set()).update(
                published_files(StoredOutput(territory, run, name, store.blobs)).files
            )
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


def finish_clean(store: BookmarkStore, grant: LeaseGrant, sinks: SinkRegistry = SINKS) -> LeaseGrant:
    """Remove what the head lists, and note that it is done. It can be repeated.

    A file whose content has changed stays, with a warning: it is not what the undone runs published.

    A driver of a run that was given up may only seem dead. A sink that commits by itself burns its token first, so that
    what it writes too late is refused, and what it has written until then is removed.

    Raises:
        OutOfBoundsError: the list names what no undone run of the job staged or published; nothing was removed.
        SinkUnknownError: it names a sink that is not known here; nothing was removed.
        SourceError: a sink of a user's own failed before anything was removed; the clean stays to be done.
        PublishError: something can't be removed; the clean stays to be done.
        FencedError: the job is not ours any more; whoever took it over does the clean.
    """
    if grant.base.cleaning is None:
        return grant
    listed = CleanList.decode(store.blobs.get(grant.base.cleaning))
    sinks = sinks.reaching(store.databases)
    _burn_tokens(_ground(store, grant.job, grant.base.epoch), grant.fence, listed, sinks)
    # Prepared after the burn: the sink may look here for what it removes, and nothing is added to that any more.
    prepared = prepare_clean(store, grant.job, grant.base.epoch, listed, sinks)
    log.info(
        "bookmark %s: cleaning: %d staging folders, %d published files%s",
        grant.job,
        len(listed.folders),
        len(listed.files),
        f", {len(listed.parts)} outputs that are no files" if listed.parts else "",
    )
    try:
        for part, each in prepared:
            with named_failure(part.sink, part, _REST_STAYS, PublishError):
                each.remove_staged()
        for part, each in prepared:
            with named_failure(part.sink, part, _REST_STAYS, PublishError):
                each.remove_visible()
    except OSError as error:
        raise PublishError(f"job {grant.job!r}: a clean can't go on: {error}. {_REST_STAYS}") from error
    return store.note_clean(grant)


def prepare_clean(
    store: BookmarkStore, job: str, epoch: int, listed: CleanList, sinks: SinkRegistry = SINKS
) -> list[tuple[_SinkPart, Removal]]:
    """Return what a clean list removes, each removal with the sink that makes it, all of it checked.

    Raises:
        OutOfBoundsError: it names what no undone run of the job staged or published.
        SinkUnknownError: it names a sink that is not known here.
        SourceError: a sink of a user's own failed to check it.
    """
    ground, sinks = _ground(store, job, epoch), sinks.reaching(store.databases)
    by_kind = [(_cleaned(job, kind, sinks), part) for kind, part in listed.by_sink().items()]
    prepared: list[tuple[_SinkPart, Removal]] = []
    for sink, listed_there in by_kind:
        part = _SinkPart(job, sink.kind, tuple(sorted({each.output for each in listed_there.parts})))
        with named_failure(sink.kind, part, _CLEAN_STAYS):
            prepared += [(part, removal) for removal in sink.prepare_clean(ground, listed_there)]
    return prepared


@dataclass(frozen=True, slots=True)
class _SinkPart:
    """What a clean removes in one sink, as errors name it."""

    job: str
    sink: str
    outputs: tuple[str, ...]

    def __str__(self) -> str:
        return f"job {self.job!r}, clean of {', '.join(f'output {name!r}' for name in self.outputs)}"


def _burn_tokens(ground: CleanGround, fence: int, listed: CleanList, sinks: SinkRegistry) -> None:
    burned = [(sink, ground.output_of(part)) for part in listed.parts if (sink := sinks.find_committing(part.sink))]
    for sink, output in burned:
        with named_failure(sink.kind, output, _CLEAN_STAYS):
            sink.burn(output, fence)


def _ground(store: BookmarkStore, job: str, epoch: int) -> CleanGround:
    def undone(first: int, last: int) -> Mapping[tuple[int, int], Run]:
        return _undone_by_key(store, job, epoch, first, last)

    return CleanGround(Territory(store.namespace, job), store.blobs, undone)


def _cleaned(job: str, kind: str, sinks: SinkRegistry) -> CleanedSink:
    """Return the sink of a kind that is part of a clean.

    Raises:
        SinkUnknownError: it is not known here.
    """
    sink = sinks.find_to_clean(kind)
    if sink is None:
        raise SinkUnknownError(
            f"job {job!r}: a clean removes what undone runs wrote to a sink of kind {kind!r}, which is not known here, "
            "or can't be cleaned by the version that is. Nothing was removed, read or written: the clean stays to be "
            f"done. Run the job where the sink is known.{sinks.why_unknown(kind)}"
        )
    return sink


def _undone_by_key(store: BookmarkStore, job: str, epoch: int, first: int, last: int) -> dict[tuple[int, int], Run]:
    """Return the runs with these numbers that are no longer history, by number and each of their fences."""
    living = store.ancestry(job, epoch)
    runs: dict[tuple[int, int], Run] = {}
    for _, run in store.runs_or_damage(job, after=first - 1, until=last):
        if isinstance(run, StateCorruptError):
            continue  # what only it could speak for is refused
        if not living.has(run):
            runs |= {(run.key.number, fence): run for fence in (run.key.fence, *run.fences)}
    return runs
