"""Look at one job, and judge its health: what its head, its upstreams, its requests and its input say."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from airflow_bookmarks.core.health.verdict import HealthFacts, SourceLag, judge
from airflow_bookmarks.core.text.instant import to_text
from airflow_bookmarks.lifecycle.changes.approval import OPEN, decoded_requests, requests_or_damage
from airflow_bookmarks.lifecycle.inspect.lag import Neighbours, readable_lags
from airflow_bookmarks.lifecycle.state.positions import last_plans, shown
from airflow_bookmarks.lifecycle.state.quarantine import quarantined_counts
from airflow_bookmarks.store.transitions.approval import request_items

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from datetime import datetime

    from airflow_bookmarks.core.head import Head
    from airflow_bookmarks.core.health.cadence import Schedule
    from airflow_bookmarks.core.health.verdict import HealthVerdict
    from airflow_bookmarks.lifecycle.inspect.lag import Lag
    from airflow_bookmarks.lifecycle.state.positions import LastPlans
    from airflow_bookmarks.store.bookmark_store import BookmarkStore


def health(store: BookmarkStore, job: str, schedule: Schedule | None = None) -> HealthVerdict:
    """Return the health of a job. No folder is listed, and nothing is read of what it reads.

    What is damaged of its requests, or of a job that it reads, says nothing here; `doctor` names it.

    Args:
        job: the key of the job.
        schedule: that of its DAG; None: it has none, or it is not known.

    Raises:
        JobUnknownError: no such bookmark.
    """
    head = store.head(job)
    found, _ = requests_or_damage(store, job)
    facts = facts_of(
        head,
        store.now(),
        readable_lags(Neighbours.of_heads(store, {job: head}))[job],
        schedule=schedule,
        requests=[each.made_at for each in found if each.state == OPEN],
        quarantined=set_aside(quarantined_counts(store, job, head)),
        gaps=missing_in(head, last_plans(store, job, head)),
    )
    return judge(facts)


def waiting_requests(store: BookmarkStore, heads: Mapping[str, Head]) -> dict[str, list[datetime]]:
    """Return when changes were requested that wait for a second person, by job.

    Only protected jobs have such: one query for each of them. What is damaged is left out; `doctor` names it.
    """
    now = store.now()
    found: dict[str, list[datetime]] = {}
    for job, head in heads.items():
        if head.protected:
            body, _ = decoded_requests(job, request_items(store, job), head, now)
            found[job] = [each.made_at for each in body if each.state == OPEN]
    return found


def set_aside(counts: Mapping[str, int | None]) -> int:
    """Return how many files contexts have set aside; where it is not known how many, one."""
    return sum(1 if count is None else count for count in counts.values())


def missing_in(head: Head, plans: LastPlans) -> int:
    """Return how many partitions or numbers are missing between the first and the last that contexts have seen.

    Args:
        head: that of the job, which says so.
        plans: what listed each context last: asked where an earlier version wrote the head.
    """
    counts = {ctx: (shown(plan).get("gaps") or {}).get("missing", 0) for ctx, plan in plans.items()}
    told = {ctx: state.missing for ctx, state in head.contexts.items() if state.missing is not None}
    return sum((counts | told).values())


def facts_of(
    head: Head,
    now: datetime,
    behind: Iterable[Lag] = (),
    *,
    schedule: Schedule | None = None,
    requests: Sequence[datetime] = (),
    quarantined: int | None = None,
    gaps: int | None = None,
) -> HealthFacts:
    """Return what a head says of the health of its job, with what else is known.

    Args:
        head: that of the job.
        now: the present time.
        behind: how far it is behind the jobs that it reads.
        schedule: that of its DAG; None: it has none, or it is not known.
        requests: when the changes were requested that wait for a second person.
        quarantined, gaps: what is set aside, and missing, in its input; None: as the head says. What earlier versions
            wrote does not say so.
    """
    states = head.contexts.values()
    is_working = head.holder(now) is not None
    left = None if head.lease is None or is_working else head.lease.expires_at
    return HealthFacts(
        now=now,
        run_number=head.run_number,
        commits=head.commits,
        schedule=schedule,
        is_working=is_working,
        failure=head.failed,
        left_at=left,
        due=None if head.publishing is None else head.publishing.number,
        cleans=head.cleaning is not None,
        lags=[_source_lag(each, now) for each in behind],
        requests=requests,
        quarantined=sum(state.set_aside or 0 for state in states) if quarantined is None else quarantined,
        gaps=sum(state.missing or 0 for state in states) if gaps is None else gaps,
        move=head.moved,
    )


def _source_lag(behind: Lag, now: datetime) -> SourceLag:
    since = None if not behind.seconds else now - timedelta(seconds=behind.seconds)
    return SourceLag(behind.source, behind.state, behind.is_by_upstream, behind.why, since, behind.runs)


def as_row(verdict: HealthVerdict | None) -> dict[str, Any]:
    """Return a verdict as plain values: `health`, `since` and `reason`; all None where there is none."""
    if verdict is None:
        return {"health": None, "since": None, "reason": None}
    since = None if verdict.since is None else to_text(verdict.since)
    return {"health": verdict.state.value, "since": since, "reason": verdict.reason}
