"""Judge the health of all jobs of a namespace: by their heads, and by what they read of each other.

That costs one query for the index and one request for each hundred heads and each hundred edges, a few queries for each
job that is behind, and one for each protected job. How many files are set aside, and how much is missing in the input,
the heads say as well; of those that an earlier version wrote, only the items of the job do, which are read for one job
alone (`lifecycle.health.job`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from airflow_bookmarks.core.health.cadence import is_uncertain
from airflow_bookmarks.core.health.record import IndexFacts, record_of
from airflow_bookmarks.core.health.verdict import judge
from airflow_bookmarks.core.text.instant import to_text
from airflow_bookmarks.core.text.redaction import redacted
from airflow_bookmarks.lifecycle.health.job import facts_of, waiting_requests
from airflow_bookmarks.lifecycle.health.recorded import MANY_JOBS, RecordedHealth
from airflow_bookmarks.lifecycle.inspect.lag import Neighbours, readable_lags
from airflow_bookmarks.lifecycle.inspect.sharded_list import groups_of
from airflow_bookmarks.lifecycle.inspect.status import ListedJobs

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from datetime import datetime

    from airflow_bookmarks.core.health.record import HealthRecord
    from airflow_bookmarks.core.health.verdict import HealthVerdict
    from airflow_bookmarks.lifecycle.inspect.lag import Lag, Lags
    from airflow_bookmarks.store.bookmark_store import BookmarkStore

DAMAGED = "DAMAGED"  # in place of a state: the job can't be read


@dataclass(frozen=True, slots=True)
class JobHealth:
    """The health of one job among all of a namespace.

    Attributes:
        job: its name; a sharded job is one.
        state: a `HealthState`, or "DAMAGED" where it can't be read.
        rank: the place of the state among all, the worst first: 0 is DAMAGED, 1 FAILED, and so on.
        is_trouble: whether somebody has to look.
        reason: why it has this state.
        since: since when; None: not known.
        lag_s: for how many seconds the oldest input has been unread that another job published; 0 if nothing is, None
            where it reads no other job, or that can't be said.
    """

    job: str
    state: str
    rank: int
    is_trouble: bool
    reason: str
    since: datetime | None = None
    lag_s: int | None = None

    def as_dict(self) -> dict[str, Any]:
        """Return it as plain values."""
        since = None if self.since is None else to_text(self.since)
        names = ("job", "rank", "is_trouble", "reason")
        values = {name: getattr(self, name) for name in names}
        return {**values, "health": self.state, "since": since, "lag_seconds": self.lag_s}


def healths(store: BookmarkStore, listed: ListedJobs | None = None) -> dict[str, HealthVerdict]:
    """Return the health of each job that can be read, by name; that of a sharded job is the worst of its shards.

    Args:
        store: the store.
        listed: the jobs, where they were looked at before; None: they are looked at now.
    """
    found, _ = _judged(store, listed or ListedJobs.of(store))
    return found | {
        whole: min((found[shard] for shard in shards), key=lambda each: each.state.rank)
        for whole, shards in groups_of(found).items()
    }


def health_of_all(store: BookmarkStore) -> list[JobHealth]:
    """Return the health of each job, the worst first; a sharded job is one, as the worst of its shards.

    Where there are very many, it is recorded for the list on the page, as far as the role may.
    """
    begun, listed = store.now(), ListedJobs.of(store)
    found, behind = _judged(store, listed)
    if len(listed.entries) >= MANY_JOBS:
        RecordedHealth(store).write(_records(listed, found, begun), listed.entries)
    each = {job: _damaged(job, redacted(str(why))) for job, why in listed.damaged.items()}
    each |= {job: _listed(job, verdict, behind[job]) for job, verdict in found.items()}
    groups = groups_of(each)
    hidden = {shard for shards in groups.values() for shard in shards}
    rows = [one for job, one in each.items() if job not in hidden]
    rows += [_whole(whole, [each[shard] for shard in shards]) for whole, shards in groups.items()]
    return sorted(rows, key=lambda one: (one.rank, one.job))


def _judged(store: BookmarkStore, listed: ListedJobs) -> tuple[dict[str, HealthVerdict], Lags]:
    looked, now = Neighbours.of_listed(store, listed), store.now()
    behind = readable_lags(looked)
    requests = waiting_requests(store, {job: looked.heads[job] for job in looked.jobs})
    facts = {job: facts_of(looked.heads[job], now, behind[job], requests=requests.get(job, ())) for job in looked.jobs}
    return {job: judge(each) for job, each in facts.items()}, behind


def _records(listed: ListedJobs, found: Mapping[str, HealthVerdict], begun: datetime) -> dict[str, HealthRecord]:
    """Return what is to be recorded: not of jobs of which the schedule of their DAG, unknown here, says more."""
    records = {job: record_of(None, IndexFacts.of(listed.entries.get(job, {})), None, begun) for job in listed.damaged}
    for job, verdict in found.items():
        head = listed.heads[job]
        if not is_uncertain(head.commits, begun):
            records[job] = record_of(head, IndexFacts.of(listed.entries[job]), verdict, begun)
    return records


def _damaged(job: str, why: str) -> JobHealth:
    return JobHealth(job, DAMAGED, rank=0, is_trouble=True, reason=why)


def _listed(job: str, verdict: HealthVerdict, behind: Iterable[Lag]) -> JobHealth:
    state = verdict.state
    return JobHealth(
        job,
        state.value,
        1 + state.rank,
        state.is_trouble,
        verdict.reason,
        verdict.since,
        _longest(b.seconds for b in behind),
    )


def _whole(job: str, shards: list[JobHealth]) -> JobHealth:
    worst = min(shards, key=lambda each: each.rank)
    return replace(worst, job=job, lag_s=_longest(each.lag_s for each in shards))


def _longest(seconds: Iterable[int | None]) -> int | None:
    return max((each for each in seconds if each is not None), default=None)
