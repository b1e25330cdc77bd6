"""Publish: make what a committed run staged visible. It can be repeated, and finished by any process.

prepare   every output of the run, by its sink: nothing is changed before all of it is checked
publish   one output after the other, by its sink: files last, since a database may refuse rows, and files refuse none;
          purges after them, so that what replaces their files is there before those go
mark      one transaction; the caller's
sweep     staging of this fence and lower ones
"""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING

from airflow_bookmarks.core.errors import (
    BookmarkError,
    OptionError,
    PublishError,
    SinkUnknownError,
    SourceError,
)
from airflow_bookmarks.core.rules.mode import Mode
from airflow_bookmarks.core.rules.territory import Territory
from airflow_bookmarks.core.run import RunState
from airflow_bookmarks.core.timeline import newest_living
from airflow_bookmarks.lifecycle.protocol.failpoint import Failpoint
from airflow_bookmarks.sinks.failure import named_failure
from airflow_bookmarks.sinks.registry import SINKS
from airflow_bookmarks.sinks.sink import PublishSteps, StoredOutput

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from airflow_bookmarks.core.run import OutputEntry, Run
    from airflow_bookmarks.lifecycle.protocol.lease import RunEnvironment
    from airflow_bookmarks.sinks.registry import SinkRegistry
    from airflow_bookmarks.sinks.sink import Publication, StagedSink
    from airflow_bookmarks.store.bookmark_store import BookmarkStore, LeaseGrant

log = logging.getLogger(__name__)


_STAYS_DUE = "The run stays committed, and its publish stays due. Mend the cause; the next run of the job finishes it."
_TRIED_FIRST = (
    "The run stays committed, and its publish stays due: each further run of the job tries it first, and ends here. "
    "Mend the cause, and run the job again"
)


def publish_run(
    store: BookmarkStore, grant: LeaseGrant, run: Run, environment: RunEnvironment, sinks: SinkRegistry = SINKS
) -> int:
    """Publish every output of a run; return the number of files made visible.

    `run` is the item as the publisher first saw it: its lists are never read anew half-way. `grant` is the
    publisher's: before a sink deletes it makes sure that the job is still its own, because what a dropped publish meant
    to replace is living data.

    Raises:
        PublishError: an output can't be published; the publish stays due.
        SinkUnknownError: the kind of one is not known here; nothing was published, and the publish stays due.
        FencedError: the job was taken from the publisher before its deletes.
    """
    environment.at(Failpoint.PUBLISHING)
    steps = steps_of(environment)
    total, published = 0, list[str]()
    for outputs, each in _publications(store, grant.job, run, sinks.reaching(store.databases)):
        first = outputs[0]
        with named_failure(
            first.entry.sink, _named(outputs), partial(_ways_out, store, first, published), PublishError
        ):
            total += each.publish(lambda what: store.check_held(grant, what), steps)
        published.extend(output.name for output in outputs)
    environment.at(Failpoint.PUBLISHED)
    return total


def _ways_out(store: BookmarkStore, output: StoredOutput, published: Sequence[str]) -> str:
    """Say what becomes of a run that can't be published, and how its job goes on without it.

    A replay that is due stays so through a rewind: it can only be finished.
    """
    job, run = output.territory.job, output.run
    if run.revision > 0:
        return _STAYS_DUE
    try:
        kept = newest_living(store.runs(job, until=run.key.number - 1, reverse=True), store.ancestry(job, run.epoch))
    except BookmarkError:
        how = "rewind the job to the run before it"
    else:
        verb = f"rewind {job} --to {kept}" if kept else f"reset {job}"
        how = f"'airflow-bookmarks {verb} --reason \"...\"'"
    told = f"{_TRIED_FIRST}. Or give the run up by {how}: the next run then reads its input again."
    if published:
        there = ", ".join(map(repr, published))
        told += f" What it has published by now stays ({there}): --dry-run tells whether its rows would come twice."
    return told


def steps_of(environment: RunEnvironment) -> PublishSteps:
    """Return what a publish tells a run: each step, with the time between them."""
    return PublishSteps(lambda: environment.at(Failpoint.MOVED), environment.monotonic)


def _publications(
    store: BookmarkStore, job: str, run: Run, sinks: SinkRegistry
) -> Sequence[tuple[Sequence[StoredOutput], Publication]]:
    """Return what the publish of a run changes, checked, each with its outputs.

    Nothing is staged for a sink that commits by itself.
    """
    of_kind: dict[str, tuple[StagedSink, dict[str, Publication]]] = {}
    outputs: dict[str, StoredOutput] = {}
    for name, entry in sorted(run.outputs.items(), key=lambda each: _place_in_publish(each[1])):
        if entry.commits_by_itself or entry.is_left_out:
            continue
        sink = sinks.find_staged(entry.sink)
        if sink is None:  # to mark the run without it would lose the rows that it has staged
            raise SinkUnknownError(
                f"job {job!r}: run {run.key} has staged output {name!r} in a sink of kind {entry.sink!r} "
                f"({entry.target}), which is not known here. Nothing was published: its publish stays due. Run the job "
                f"where the sink is known.{sinks.why_unknown(entry.sink)}"
            )
        outputs[name] = stored_output(store, job, run, name)
        with named_failure(entry.sink, outputs[name], _STAYS_DUE, PublishError):
            prepared = sink.prepare(outputs[name])
        if prepared is not None:
            of_kind.setdefault(sink.kind, (sink, {}))[1][name] = prepared
    found: list[tuple[Sequence[StoredOutput], Publication]] = []
    for sink, publications in of_kind.values():
        named = [outputs[name] for name in publications]
        with named_failure(sink.kind, _named(named), _STAYS_DUE, PublishError):
            joined = sink.joined(publications)
        found += [([outputs[name] for name in names], each) for names, each in joined.items()]
    return found


def _place_in_publish(entry: OutputEntry) -> int:
    """Return where an output comes in the publish of its run: files last, and what only deletes after them."""
    return int(entry.lies_in_files) + int(entry.metadata.mode == Mode.PURGE)


def _named(outputs: Sequence[StoredOutput]) -> str:
    """Say which outputs of a run they are."""
    first, *others = outputs
    return f"{first}{''.join(f', and {other.name!r}' for other in others)}"


def stored_output(store: BookmarkStore, job: str, run: Run, name: str) -> StoredOutput:
    """Return an output of a run as its sink meets it."""
    return StoredOutput(Territory(store.namespace, job), run, name, store.blobs)


_COULD_STILL_PUBLISH = (
    "A publish that was dropped has staged there, and its driver could still finish it. Nothing was planned, read or "
    "written. Mend the cause, and run the job again."
)


def sweep_before_plan(
    store: BookmarkStore, job: str, staging: Iterable[str], fence: int, sinks: SinkRegistry = SINKS
) -> None:
    """Sweep what lower fences staged, after recovery; skip a root that is out of reach, if that is harmless.

    Only what is committed is ever moved, and all of that is published by now, but for a publish that a forced rewind
    has dropped: its driver, if it lives and reaches the root, could still move files into a target after this run has
    listed what it replaces.

    Raises:
        OutOfBoundsError, SinkUnknownError: a root is none of this job, or of an unknown sink; none was swept.
        OSError, SourceError, OptionError: a root is out of reach, and a dropped publish has staged there.
    """
    territory, roots = Territory(store.namespace, job), list(staging)
    sinks = sinks.reaching(store.databases)
    sinks.check_roots(territory, roots)
    for listed in roots:
        try:
            sinks.sweep(territory, listed, fence)
        except (OptionError, SourceError, OSError) as error:
            committed = (run for run in store.runs(job) if run.state is RunState.COMMITTED)
            sink, root = sinks.of_root(job, listed)
            if any(sinks.may_lie_in(job, listed, entry) for run in committed for entry in run.outputs.values()):
                with named_failure(sink.kind, f"job {job!r}, staging root {root!r}", _COULD_STILL_PUBLISH):
                    raise
            log.warning(
                "bookmark %s: the staging folder %r is out of reach; what earlier runs left there stays, and no run "
                "needs it: %s",
                job,
                root,
                error,
            )


def sweep_after_mark(
    store: BookmarkStore, job: str, run: Run, staging: Iterable[str], fence: int, sinks: SinkRegistry = SINKS
) -> None:
    """Sweep each root that can be reached: the run is published, so leftovers are harmless and no failure.

    The sweep of the next begin takes it: see `sweep_before_plan`.
    """
    left_out = {entry.sink for entry in run.outputs.values() if entry.is_left_out}
    sinks = sinks.reaching(store.databases)
    for root in staging:
        try:
            sink, _ = sinks.of_root(job, root)
            if sink.kind in left_out or not sink.clears_as_it_publishes:
                sinks.sweep(Territory(store.namespace, job), root, fence)
        except (BookmarkError, OSError) as error:  # a sink of a user's own may raise any error of this package
            log.warning("bookmark: what was staged in %r is left, and the next run sweeps it: %s", root, error)
