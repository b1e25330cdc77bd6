"""The requests of all jobs that a user may look at, as far as they wait for approval.

Which jobs have one is known with their health (`all_jobs`). Only the jobs of one page are read: their index entries and
heads by one request each for a hundred jobs, and their requests by one for each job.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from airflow_bookmarks.core.head import Head
from airflow_bookmarks.core.rules.owner import DAG_ID, owners_in
from airflow_bookmarks.lifecycle.changes.approval import OPEN, decoded_requests
from airflow_bookmarks.plugin.presenters.bookmark import request_row
from airflow_bookmarks.plugin.schemas.waiting_requests import WaitingRequest
from airflow_bookmarks.store.transitions.approval import request_items

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from airflow_bookmarks.lifecycle.changes.approval import Request
    from airflow_bookmarks.plugin.auth import Person, UserScope
    from airflow_bookmarks.plugin.presenters.all_jobs import AllJobs
    from airflow_bookmarks.store.bookmark_store import BookmarkStore
    from airflow_bookmarks.store.stored_item import IndexEntry


@dataclass(frozen=True, slots=True)
class JobRequests:
    """The open requests of one job, with every DAG that owns or owned it.

    `is_damaged`: others can't be read.
    """

    job: str
    entry: IndexEntry
    requests: Sequence[Request]
    is_damaged: bool

    @property
    def owners(self) -> tuple[str, ...]:
        """The DAGs on which rights are asked."""
        return tuple(owners_in(self.entry))

    def rows(self, person: Person, *, may_change: bool, hides_state: bool) -> list[WaitingRequest]:
        """Return the requests for an answer to a person."""
        dag_id, told = self.entry.get(DAG_ID), list[WaitingRequest]()
        for each in self.requests:
            row = request_row(each, person, may_change=may_change, hides_state=hides_state).model_dump()
            known = {name: row[name] for name in WaitingRequest.model_fields if name in row}
            owner = dag_id if isinstance(dag_id, str) else None
            told.append(WaitingRequest(**known, dag_id=owner, may_change=may_change))
        return told


@dataclass(frozen=True, slots=True)
class RequestPage:
    """The jobs of a page, how many there are in all, and as of when that is known; None: nothing is known of any.

    `unjudged` is how many more there may be: nobody has looked at these jobs yet.
    """

    jobs: Sequence[JobRequests]
    total: int
    as_of: datetime | None
    unjudged: int


def request_page(store: BookmarkStore, scope: UserScope, all_jobs: AllJobs, limit: int, offset: int) -> RequestPage:
    """Return a page of the jobs with requests that wait, by the age of the oldest one.

    Jobs whose requests were decided since, or that may not be looked at any more, are left out of it.

    Args:
        limit: how many jobs at most.
        offset: how many jobs to leave out.
    """
    listed = all_jobs.look(store, with_health=True)
    known = {job: record for job, record in listed.records.items() if job in listed.entries}
    seen = {job: record for job, record in known.items() if scope.sees(listed.entries[job])}
    waiting = sorted((since, job) for job, record in seen.items() if (since := record.waiting_since) is not None)
    names = [job for _, job in waiting]
    page = names[offset : offset + limit]
    found = _requests_of(store, scope, page)
    unjudged = listed.count_unjudged(lambda _, entry: scope.sees(entry))
    return RequestPage(found, len(names) - len(page) + len(found), listed.as_of(seen), unjudged)


def _requests_of(store: BookmarkStore, scope: UserScope, jobs: Sequence[str]) -> list[JobRequests]:
    entries, heads, now = store.index_entries(list(jobs)), store.heads_or_damage(list(jobs)), store.now()
    found: list[JobRequests] = []
    for job in jobs:
        entry, head = entries.get(job), heads.get(job)
        if entry is None or not isinstance(head, Head) or not head.protected or not scope.sees(entry):
            continue
        requests, damaged = decoded_requests(job, request_items(store, job), head, now)
        waiting = [each for each in requests if each.state == OPEN]
        if waiting or damaged:
            found.append(JobRequests(job, entry, waiting, bool(damaged)))
    return found
