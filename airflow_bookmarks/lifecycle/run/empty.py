"""Empty runs: the worker commits a run that has nothing to read, so that Spark need not start for it.

The sources are those that the newest run recorded; see `airflow_bookmarks.lifecycle.inspect.pending`. They are checked
twice: first without the lease, which is cheap and tells whether Spark is needed, then under it, as every run plans.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from airflow_bookmarks.core.errors import (
    DatabaseError,
    ManifestError,
    OptionError,
    SinkUnknownError,
    SourceError,
    SourceUnknownError,
)
from airflow_bookmarks.lifecycle.inspect.pending import (
    made_without_input,
    recent_runs,
    recorded_on_change,
    recorded_plans,
    up_to_script,
)
from airflow_bookmarks.lifecycle.run.enabled import ActiveRun
from airflow_bookmarks.lifecycle.state.manifest import Manifests
from airflow_bookmarks.sources.registry import only_script_knows, recorded_source

if TYPE_CHECKING:
    from airflow_bookmarks.core.job import RunIdentity
    from airflow_bookmarks.lifecycle.inspect.pending import PendingInput
    from airflow_bookmarks.lifecycle.protocol.lease import RunEnvironment
    from airflow_bookmarks.lifecycle.run.session import RunSession
    from airflow_bookmarks.lifecycle.state.summary import Summary
    from airflow_bookmarks.store.bookmark_store import BookmarkStore

log = logging.getLogger(__name__)


def log_pending(seen: PendingInput) -> None:
    """Log what was checked, and what was found: one line for each context."""
    for context in seen.contexts:
        if context.unknown is not None:
            found = f"not known: {context.unknown}"
        elif context.runs:
            found = f"{context.files} files of runs {', '.join(map(str, context.runs))}"
        else:
            found = context.amount_in_words + ("" if context.newest is None else f", the newest of {context.newest}")
        log.info(
            "bookmark %s, context %s: looked at %s without Spark: %s", seen.job, context.ctx, context.source, found
        )
    if seen.unknown is not None:
        log.info("bookmark %s: what is pending is not known without Spark: %s", seen.job, seen.unknown)


def commit_empty(
    store: BookmarkStore, job: str, identity: RunIdentity, environment: RunEnvironment, manifest_uri: str | None = None
) -> Summary | None:
    """Make a run that reads nothing; return None if there is something to read after all, and Spark has to run.

    So it has where something is left out that the script, which may say otherwise today, could let in, and where the
    script makes something without new input: behind `job.state`, or by `when_empty="publish"`; and where an earlier run
    is to be settled whose sink or source is not known here. Call it when `pending` has said that nothing is new. Edges
    move on as in any run, over runs without data too. Below `manifest_uri` (None: nowhere) the empty plans are written
    down.

    Raises:
        JobBusyError, AttemptRefusedError, PublishError, SourceError, StoreError: as any begin; nothing of this run has
            begun.
    """
    try:
        run = ActiveRun.begin(store, job, identity, environment)
    except (SinkUnknownError, SourceUnknownError) as error:
        log.info("bookmark %s: Spark is started, because what is left open can't be settled here: %s", job, error)
        return None
    try:
        surprise = _surprise(store, run, manifest_uri)
        if surprise is None:
            return run.commit()
    except BaseException as error:  # an interrupt too: the job is free for the next try at once
        run.abort(f"the worker could not commit this as empty: {type(error).__name__}: {error}")
        raise
    run.abort(f"the worker does not commit this as empty: {surprise}", is_failure=False)
    return None


def _surprise(store: BookmarkStore, run: RunSession, manifest_uri: str | None) -> str | None:
    try:
        if manifest_uri is not None:
            run.write_manifests(Manifests.of(manifest_uri, run.job, run.execution_id))
        return _planned(store, run)
    except (DatabaseError, ManifestError, OptionError, SourceError) as error:
        return str(error)  # the driver meets it too, and can say more


def _planned(store: BookmarkStore, run: RunSession) -> str | None:
    """Plan each context as the newest run recorded it; return why the run is not empty, None if it is."""
    head = store.head(run.job)
    recent = recent_runs(store, run.job, head)
    more = made_without_input(head, recent)
    if more is not None:
        return more
    plans = recorded_plans(store, run.job, head, recent)
    if not plans:
        return "no run is left that says what the job reads"
    for ctx, entry in sorted(plans.items()):
        if entry is None:
            return f"no run is left that says how context {ctx!r} is read"
        source = recorded_source(store, run.job, entry)
        why = only_script_knows(entry, source)
        if why is not None:
            return f"what is new in context {ctx!r} is not known here: {why}"
        plan = run.plan(ctx, source, on_source_change=recorded_on_change(entry))
        if not plan.is_empty:
            return f"{plan.amount.in_words()} of context {ctx!r} came meanwhile"
        choice = up_to_script(plan, entry)
        if choice is not None:
            return f"of context {ctx!r} {choice}, which the script decides"
    return None
