"""Judge the health of all jobs of a namespace: by their heads, and by what they read of each other.

That costs one query for the index and one request for each hundred heads and each hundred edges, and a few queries for
each job that is behind. What only the items of a job tell is looked at for one job alone (`lifecycle.health.job`):
requests, files that are set aside, and gaps.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from airflow_bookmarks.core.health.verdict import judge
from airflow_bookmarks.core.rules.shard import sharded_name
from airflow_bookmarks.lifecycle.health.job import facts_of
from airflow_bookmarks.lifecycle.inspect.lag import Neighbours, readable_lags
from airflow_bookmarks.lifecycle.inspect.status import ListedJobs

if TYPE_CHECKING:
    from collections.abc import Mapping

    from airflow_bookmarks.core.health.verdict import HealthVerdict
    from airflow_bookmarks.store.bookmark_store import BookmarkStore


def healths(store: BookmarkStore, listed: ListedJobs | None = None) -> dict[str, HealthVerdict]:
    """Return the health of each job that can be read, by name; that of a sharded job is the worst of its shards.

    Args:
        store: the store.
        listed: the jobs, where they were looked at before; None: they are looked at now.
    """
    looked, now = Neighbours.of_listed(store, listed or ListedJobs.of(store)), store.now()
    behind = readable_lags(looked)
    found = {job: judge(facts_of(looked.heads[job], now, behind[job])) for job in looked.jobs}
    return found | _of_sharded(found)


def _of_sharded(found: Mapping[str, HealthVerdict]) -> dict[str, HealthVerdict]:
    shards: dict[str, list[HealthVerdict]] = defaultdict(list)
    for job, verdict in found.items():
        whole = sharded_name(job)
        if whole is not None and whole not in found:
            shards[whole].append(verdict)
    return {whole: min(verdicts, key=lambda each: each.state.rank) for whole, verdicts in shards.items()}
