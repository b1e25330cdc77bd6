"""Apply `start` to the first run of a job, and warn if the job may be another one under a new name."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from airflow_bookmarks.core.errors import StoreAccessError
from airflow_bookmarks.core.head import Head
from airflow_bookmarks.core.position import Position
from airflow_bookmarks.sources.registry import kind_of, own_errors
from airflow_bookmarks.store.transitions.naming import job_keys

if TYPE_CHECKING:
    from collections.abc import Mapping

    from airflow_bookmarks.core.plan import Plan
    from airflow_bookmarks.core.rules.start import Start
    from airflow_bookmarks.core.run import ContextState
    from airflow_bookmarks.sources.source import PlanInput, Source
    from airflow_bookmarks.store.bookmark_store import BookmarkStore

log = logging.getLogger(__name__)

_NAMED = 3  # jobs that a warning names


def found_at_start(store: BookmarkStore, source: Source[Any], start: Start) -> PlanInput:
    """Return what a context of a job without a bookmark is planned from, so that it begins at `start`.

    An upstream begins after the last run that it had published by then; any other source is given the time.
    """
    kind, ref = kind_of(source.kind), source.ref()
    with own_errors(kind.name):
        return kind.begin(store, ref, start)


def position_at_start(found: PlanInput, plan: Plan) -> Position | None:
    """Return the position of a context that the first run put at its start and read nothing from."""
    if found.position is None or plan.edge is None:
        return None
    return Position(found.position, str(plan.edge.until))


def log_start(log: logging.Logger, job: str, ctx: str, kind: str, start: Start) -> None:
    """Log where the first run of a job begins."""
    log.info(
        "bookmark %s, context %s (%s): no bookmark yet, start %r: what was there before counts as read",
        job,
        ctx,
        kind,
        start.text,
    )


def warn_renamed(job: str, before: Mapping[str, ContextState], read: Mapping[str, Source[Any]]) -> None:
    """Warn of each new context that has the source of one that the job has and this run did not read.

    Args:
        job: the job that is about to commit.
        before: its contexts.
        read: the sources of this run by context.
    """
    unread = {state.fingerprint: ctx for ctx, state in before.items() if ctx not in read}
    for ctx, source in read.items():
        other = unread.get(str(source.ref()))
        if ctx in before or other is None:
            continue
        log.warning(
            "bookmark %s, context %s: it is new, and its source (%s) is that of the context %r, which this run did not "
            "read. If that is the same read under a former name, all of it was read again: take this run back (rewind, "
            "with --clean where it wrote), and move the position with 'airflow-bookmarks rename-context %s %s %s'. "
            "Else nothing needs to be done.",
            job,
            ctx,
            str(source.ref()),
            other,
            job,
            other,
            ctx,
        )


class OtherReaders:
    """The other jobs of a namespace, read once, to recognise a renamed job in its first run."""

    def __init__(self, store: BookmarkStore, job: str) -> None:
        self._store, self._job = store, job
        self._heads: Mapping[str, Head] | None = None

    def warn(self, ctx: str, source: Source[Any]) -> None:
        """Warn if other jobs read the source of a context already, and name them."""
        fingerprint = str(source.ref())
        readers = sorted(
            name
            for name, head in self._others().items()
            if fingerprint in {s.fingerprint for s in head.contexts.values()}
        )
        if not readers:
            return
        more = f" and {len(readers) - _NAMED} more" if len(readers) > _NAMED else ""
        log.warning(
            "bookmark %s, context %s: this job has no bookmark, and the same source (%s) is read already by %s%s. If "
            "that is this job under a former name (a renamed DAG or task), stop this run before it commits and carry "
            "the bookmark over with `airflow-bookmarks adopt`; else nothing needs to be done.",
            self._job,
            ctx,
            fingerprint,
            ", ".join(map(repr, readers[:_NAMED])),
            more,
        )

    def _others(self) -> Mapping[str, Head]:
        if self._heads is None:
            try:
                others = [name for name in job_keys(self._store) if name != self._job]
                # Only a hint: the damage of another job is no reason to stop this one.
                found = self._store.heads_or_damage(others)
                self._heads = {name: head for name, head in found.items() if isinstance(head, Head)}
            except StoreAccessError as error:
                log.info("bookmark %s: can't look whether another job reads the same source: %s", self._job, error)
                self._heads = {}
        return self._heads
