"""Recover: finish and settle what earlier drivers left, before anything new is planned."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from airflow_bookmarks.core.errors import PublishError, SinkUnknownError, SourceUnknownError, StateCorruptError
from airflow_bookmarks.core.job_state import STATE_CONTEXT
from airflow_bookmarks.core.rules.territory import Territory
from airflow_bookmarks.core.run import RunState
from airflow_bookmarks.lifecycle.protocol.cleanup import finish_clean
from airflow_bookmarks.lifecycle.protocol.failpoint import Failpoint
from airflow_bookmarks.lifecycle.protocol.partial import settled
from airflow_bookmarks.lifecycle.protocol.publish import publish_run, stored_output
from airflow_bookmarks.sinks.failure import named_failure
from airflow_bookmarks.sinks.registry import SINKS
from airflow_bookmarks.sources.registry import find_kind, why_unknown

if TYPE_CHECKING:
    from collections.abc import Mapping

    from airflow_bookmarks.core.head import Head
    from airflow_bookmarks.core.run import OutputEntry, Run
    from airflow_bookmarks.lifecycle.protocol.lease import RunEnvironment
    from airflow_bookmarks.sinks.registry import SinkRegistry
    from airflow_bookmarks.store.bookmark_store import BookmarkStore, LeaseGrant

log = logging.getLogger(__name__)


def recover(
    store: BookmarkStore,
    grant: LeaseGrant,
    environment: RunEnvironment,
    sinks: SinkRegistry = SINKS,
) -> tuple[LeaseGrant, Run | None]:
    """Finish a clean, publish what is due, then settle every open run.

    Returns the holding as it is then, and the run that was taken over because its rows had landed in a sink that
    commits by itself (None: there was none). The caller goes to commit with that one before it plans anything.

    Raises:
        OutOfBoundsError: state names files that are not the job's; nothing was changed.
        PartlyLandedError: an open run has landed in some of its tables only, and nobody has settled it.
        PublishError: what is due can't be published.
        SinkUnknownError: an open run, or one whose publish is due, wrote to a sink that is not known, or that can't be
            asked from this process.
        SourceError: a sink of a user's own failed to settle an open run, which stays open.
        SourceUnknownError: an open run reads a source of a kind that this version does not know.
    """
    # The whole list before the first change: a job whose state names files of others publishes nothing by halves.
    sinks.check_roots(Territory(store.namespace, grant.job), list(grant.base.staging))
    grant = finish_clean(store, grant, sinks)
    if grant.base.publishing is not None:
        grant = finish_publish(store, grant, environment, sinks)
    adopted: Run | None = None
    opened = list(store.open_runs(grant.job, grant.base))
    for run in opened:  # before the first of them is settled
        check_known_sinks(grant.job, run, sinks)
        check_reached_sinks(grant.job, run, sinks)
        check_known_sources(grant.job, run)
    for run in opened:
        # Asked of each, also behind one that was taken over: that burns its token, and it may have another output.
        landed = _landed(store, grant, run, sinks)
        has_landed = any(landed.values())
        may_count = adopted is None and has_landed and _is_same_position(grant, run)
        taken_over = settled(store, grant, run, landed) if may_count else None
        if taken_over is not None:
            adopted = store.adopt(grant, taken_over)
            log.warning(
                "bookmark %s: the rows of run %s had landed; it is taken over and committed", grant.job, run.key
            )
        else:
            store.abandon(grant, run)
            left = "had failed" if run.state is RunState.FAILED else "was left open"
            log.info("bookmark %s: run %s (%s) %s and is given up", grant.job, run.key, run.run_id, left)
            if has_landed:
                _warn_of_rows(grant.job, run, landed)
    environment.at(Failpoint.RECOVERED)
    return grant, adopted


def check_known_sinks(job: str, run: Run, sinks: SinkRegistry = SINKS) -> None:
    """Make sure that all sinks of a run that is not settled are known here.

    Giving up an open run whose rows may have landed would duplicate them; marking a due one would lose rows that its
    sink still has to publish.

    Raises:
        SinkUnknownError: one is not.
    """
    for name, output in unknown_sinks(run, sinks).items():
        stays = "its publish stays due" if run.state.is_committed else "it is neither given up nor done again"
        raise SinkUnknownError(
            f"job {job!r}: run {run.key} wrote output {name!r} to a sink of kind {output.sink!r} ({output.target}), "
            f"which is not known here. Nothing was read, written or changed: {stays}. Run the job where the sink is "
            "known: with the version of this package, and the script, that made that run."
            f"{sinks.why_unknown(output.sink)}"
        )


def unknown_sinks(run: Run, sinks: SinkRegistry = SINKS) -> Mapping[str, OutputEntry]:
    """Return the outputs of a run that is not settled whose sinks are not known here."""
    return {
        name: output
        for name, output in run.outputs.items()
        if not (run.state.is_committed and output.commits_by_itself) and not sinks.knows(output)
    }


def check_reached_sinks(job: str, run: Run, sinks: SinkRegistry = SINKS) -> None:
    """Make sure that this process can settle an open run: burn its tokens, and see whether its rows have landed.

    Raises:
        SinkUnknownError: it can't.
    """
    for name, output in run.outputs.items():
        sink = sinks.find_committing(output.sink)
        why = None if sink is None else sink.why_not_here()
        if why is not None:
            raise SinkUnknownError(
                f"job {job!r}: run {run.key} was left open, and wrote output {name!r} to a sink of kind "
                f"{output.sink!r} ({output.target}): {why}. Nothing was read, written or changed: the run is neither "
                "given up nor done again. Run the job where its driver can reach the sink, as that run did."
            )


def check_known_sources(job: str, run: Run) -> None:
    """Make sure that the kinds of all sources of an open run are known here.

    Otherwise its plan can't be read. And giving it up may lose input: a source that can't be read twice (a queue, a
    stream) was drained when the run was planned, and only its own kind knows where that lies.

    Raises:
        SourceUnknownError: one is not.
    """
    for ctx, kind in unknown_sources(run).items():
        raise SourceUnknownError(
            f"job {job!r}: run {run.key} was left open, and its context {ctx!r} reads a source of kind {kind!r}, which "
            "is not known here. Nothing was read, written or changed: the run is neither given up nor committed. Run "
            f"the job once with the version of this package that made it{made_by(run)}; then with this one."
            f"{why_unknown(kind)}"
        )


def unknown_sources(run: Run) -> Mapping[str, str]:
    """Return the kinds of source of a run that this version does not know, by context."""
    return {ctx: plan.kind for ctx, plan in sorted(run.plans.items()) if find_kind(plan.kind) is None}


def made_by(run: Run) -> str:
    """Return in parentheses the version that made a run; empty if it is not recorded."""
    return f" ({run.runtime_version})" if run.runtime_version else ""


def finish_publish(
    store: BookmarkStore,
    grant: LeaseGrant,
    environment: RunEnvironment,
    sinks: SinkRegistry = SINKS,
) -> LeaseGrant:
    """Publish and mark the run that the head names as due, whatever its epoch."""
    key = grant.base.publishing
    if key is None:
        raise PublishError(f"job {grant.job!r} has no publish due")
    run = store.run(grant.job, key)
    if run is None:
        raise StateCorruptError(
            f"job {grant.job!r}: the head says that run {key} is to be published, and there is no such run item. "
            "Nothing was changed. Restore the table from a backup, or reset the job."
        )
    check_known_sinks(grant.job, run, sinks)
    log.info("bookmark %s: run %s is committed and not published; publishing it", grant.job, key)
    publish_run(store, grant, run, environment, sinks)
    after = store.mark(grant, run, is_own=False)
    if after is None:
        raise StateCorruptError(f"job {grant.job!r}: the mark of run {key} released a lease that it must keep")
    return after


STAYS_OPEN = (
    "The run is neither committed nor given up, and nothing was planned or read. Mend the cause; the next run of the "
    "job settles it."
)


def _landed(store: BookmarkStore, grant: LeaseGrant, run: Run, sinks: SinkRegistry) -> Mapping[str, bool]:
    """Burn the tokens of a run; return of each output that commits by itself whether its rows are there."""
    landed: dict[str, bool] = {}
    sinks = sinks.reaching(store.databases)
    for name, entry in run.outputs.items():
        sink = None if entry.is_left_out else sinks.find_committing(entry.sink)
        if sink is not None:
            output = stored_output(store, grant.job, run, name)
            with named_failure(sink.kind, output, STAYS_OPEN):
                sink.burn(output, grant.fence)
                landed[name] = sink.landed(output)
    return landed


def _warn_of_rows(job: str, run: Run, landed: Mapping[str, bool]) -> None:
    """Say where the rows of a run stay that is given up, and why it is."""
    targets = ", ".join(sorted(run.outputs[name].target for name, is_there in landed.items() if is_there))
    why = (
        "a person has decided that its input is read again"
        if any(run.outputs[name].metadata.settled_as == "given-up" for name in landed)
        else "the job stands elsewhere since (a reset, a rewind, a set, another run that was taken over)"
    )
    log.warning(
        "bookmark %s: the rows of run %s had landed in %s, and %s: unless they were taken back by hand, what is read "
        "again comes twice there",
        job,
        run.key,
        targets,
        why,
    )


def _is_same_position(grant: LeaseGrant, run: Run) -> bool:
    # By position and not by epoch or version: a rewind to the last run leaves the position where it was, and rows that
    # have landed must be carried over it, or they come twice.
    is_same_state = run.job_state is None or run.job_state.starts_from == starts_from(grant.base, STATE_CONTEXT)
    return (
        is_same_state
        and run.key.number == grant.run_number
        and all(plan.metadata.starts_from == starts_from(grant.base, ctx) for ctx, plan in run.plans.items())
    )


STARTS_FROM = "starts_from"
STARTS_OVER = "starts_over"


def starts_from(head: Head, ctx: str) -> str | None:
    """Return the name of the position from which a plan of `ctx` starts: the run (or set) that holds it, or None."""
    state = head.contexts.get(ctx)
    if state is None:
        return None
    return str(state.run) if state.set_in is None else f"set in epoch {state.set_in}"
