"""Present the health of jobs as answers, without the names of jobs that a user may not look at."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from airflow_bookmarks.core.head import Head
from airflow_bookmarks.core.health.record import IndexFacts, record_of
from airflow_bookmarks.core.health.verdict import HealthFinding, HealthState, judge
from airflow_bookmarks.core.text.instant import to_text
from airflow_bookmarks.lifecycle.health.job import facts_of, waiting_requests
from airflow_bookmarks.lifecycle.inspect.lag import Neighbours, readable_lags, upstreams_in
from airflow_bookmarks.plugin.airflow_database.schedule import schedules_of
from airflow_bookmarks.plugin.redaction import hidden_from, without_names
from airflow_bookmarks.plugin.schemas.responses import HealthNote, HealthRow

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from datetime import datetime

    from airflow_bookmarks.core.errors import BookmarkError
    from airflow_bookmarks.core.health.record import HealthRecord
    from airflow_bookmarks.core.health.verdict import HealthVerdict
    from airflow_bookmarks.lifecycle.inspect.lag import Lag, Lags
    from airflow_bookmarks.plugin.airflow_database.schedule import Schedules
    from airflow_bookmarks.plugin.auth import UserScope
    from airflow_bookmarks.store.bookmark_store import BookmarkStore
    from airflow_bookmarks.store.stored_item import IndexEntry

RANKS: Mapping[str, int] = {state.value: state.rank for state in HealthState}


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What heads alone don't tell of the health of jobs.

    How far they are behind others, when they were due, and which changes of them wait for a second person. `upstreams`
    are the jobs that each of them reads, and `hidden` those of them whose names are left out of reasons.
    """

    lags: Lags = field(default_factory=dict)
    schedules: Schedules = field(default_factory=dict)
    requests: Mapping[str, Sequence[datetime]] = field(default_factory=dict)
    upstreams: Mapping[str, Collection[str]] = field(default_factory=dict)
    hidden: Collection[str] = ()

    @classmethod
    def of(
        cls, store: BookmarkStore, heads: Mapping[str, Head | BookmarkError], entries: Mapping[str, Mapping[str, Any]]
    ) -> Surroundings:
        """Look around some jobs by their heads and index entries; what is damaged is UNKNOWN, or left out."""
        readable = {job: head for job, head in heads.items() if isinstance(head, Head)}
        looked = Neighbours.of_heads(store, readable)
        upstreams = {job: upstreams_in(contexts) for job, contexts in looked.reads.items()}
        schedules, requests = schedules_of(readable, entries, store.now()), waiting_requests(store, readable)
        return cls(readable_lags(looked), schedules, requests, upstreams)

    def told_to(self, store: BookmarkStore, scope: UserScope) -> Surroundings:
        """Return what a user may know: of an upstream that they may not look at, only how it is read.

        The error of a failed try, which is the reason of FAILED, may name it as well.
        """
        sources = sorted({name for each in self.upstreams.values() for name in each})
        hidden = hidden_from(store, scope, sources) if sources else set()
        lags = {job: [_told(lag, hidden) for lag in each] for job, each in self.lags.items()}
        return replace(self, lags=lags, hidden=hidden)

    def verdict(self, job: str, head: Head, now: datetime, **known: Any) -> HealthVerdict:
        """Judge the health of a job by its head, and by what else is known: see `facts_of`."""
        given = {"schedule": self.schedules.get(job), "requests": self.requests.get(job, ()), **known}
        return judge(facts_of(head, now, self.lags.get(job, ()), **given))

    def health(self, job: str, head: Head, now: datetime, **known: Any) -> HealthRow:
        """Return the health of a job as `verdict` has it, for an answer."""
        verdict = self.verdict(job, head, now, **known)
        worst = HealthFinding(verdict.state, verdict.reason, verdict.since)
        return HealthRow(**self._note(worst).model_dump(), more=[self._note(each) for each in verdict.more])

    def _note(self, finding: HealthFinding) -> HealthNote:
        since = None if finding.since is None else to_text(finding.since)
        return HealthNote(state=finding.state.value, reason=without_names(finding.reason, self.hidden), since=since)


def records_of(store: BookmarkStore, entries: Mapping[str, IndexEntry]) -> dict[str, HealthRecord]:
    """Judge the health of jobs by their heads and by what they read of each other, for lists.

    Args:
        store: the store.
        entries: of the index, by job.
    """
    now = store.now()  # before the heads are read: what is written later is not in the records
    heads = store.heads_or_damage(list(entries))
    around = Surroundings.of(store, heads, entries)
    return {job: record_in(job, heads.get(job), entry, around, now) for job, entry in entries.items()}


def record_in(
    job: str, head: Head | BookmarkError | None, entry: IndexEntry, around: Surroundings, now: datetime
) -> HealthRecord:
    """Return the record of a job by its head and index entry, at the time before these were read."""
    index = IndexFacts.of(entry)
    if not isinstance(head, Head):
        return record_of(None, index, None, now)
    return record_of(head, index, around.verdict(job, head, now), now)


def _told(lag: Lag, hidden: Collection[str]) -> Lag:
    return replace(lag, source="a job that it reads", why=None) if lag.source in hidden else lag


def worst_of(rows: Sequence[HealthRow | None]) -> HealthRow | None:
    """Return the worst health among the shards of a job; None if one can't be read, or there is none."""
    if not rows or any(row is None for row in rows):
        return None
    return min((row for row in rows if row is not None), key=rank_of)


def rank_of(row: HealthRow | None) -> int:
    """Return by what jobs are sorted, the worst first: what can't be read before all else."""
    return -1 if row is None else RANKS[row.state]
