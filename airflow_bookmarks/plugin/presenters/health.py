"""Present the health of jobs as answers, without the names of jobs that a user may not look at."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from airflow_bookmarks.core.health.verdict import HealthFinding, HealthState, judge
from airflow_bookmarks.core.text.instant import to_text
from airflow_bookmarks.lifecycle.health.job import facts_of
from airflow_bookmarks.lifecycle.inspect.lag import Neighbours, readable_lags
from airflow_bookmarks.plugin.redaction import hidden_from
from airflow_bookmarks.plugin.schemas.responses import HealthNote, HealthRow

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence
    from datetime import datetime

    from airflow_bookmarks.core.head import Head
    from airflow_bookmarks.lifecycle.inspect.lag import Lag, Lags
    from airflow_bookmarks.plugin.auth import UserScope
    from airflow_bookmarks.store.bookmark_store import BookmarkStore

RANKS: Mapping[str, int] = {state.value: state.rank for state in HealthState}


def lags_of(store: BookmarkStore, heads: Mapping[str, Head]) -> Lags:
    """Return how far jobs are behind the jobs that they read; UNKNOWN for one that is damaged, or reads one that is."""
    return readable_lags(Neighbours.of_heads(store, heads))


def without_names(store: BookmarkStore, scope: UserScope, found: Lags) -> Lags:
    """Return lags whose sources a user may know: of a job that they may not look at, only how it is read."""
    sources = sorted({lag.source for each in found.values() for lag in each if lag.source})
    hidden = hidden_from(store, scope, sources) if sources else set()
    return {job: [_told(lag, hidden) for lag in each] for job, each in found.items()}


def _told(lag: Lag, hidden: Collection[str]) -> Lag:
    return replace(lag, source="a job that it reads", why=None) if lag.source in hidden else lag


def health_of(head: Head, now: datetime, behind: Iterable[Lag], **known: Any) -> HealthRow:
    """Return the health of a job by its head, by what it reads, and by what else is known: see `facts_of`."""
    verdict = judge(facts_of(head, now, behind, **known))
    worst = HealthFinding(verdict.state, verdict.reason, verdict.since)
    return HealthRow(**_note(worst).model_dump(), more=[_note(each) for each in verdict.more])


def worst_of(rows: Sequence[HealthRow | None]) -> HealthRow | None:
    """Return the worst health among the shards of a job; None if one can't be read, or there is none."""
    if not rows or any(row is None for row in rows):
        return None
    return min((row for row in rows if row is not None), key=rank_of)


def rank_of(row: HealthRow | None) -> int:
    """Return by what jobs are sorted, the worst first: what can't be read before all else."""
    return -1 if row is None else RANKS[row.state]


def _note(finding: HealthFinding) -> HealthNote:
    since = None if finding.since is None else to_text(finding.since)
    return HealthNote(state=finding.state.value, reason=finding.reason, since=since)
