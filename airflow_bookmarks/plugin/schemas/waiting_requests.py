"""Answers about the requests of all jobs that wait for approval."""

from typing import Any

from airflow_bookmarks.plugin.schemas.responses import ResponseModel


class WaitingRequest(ResponseModel):
    """A change of a protected job that waits for a second person; what it would do stands on the page of the job.

    `may_change`: whether the user may change the job, and so turn the request down. `may_approve`: whether they may
    approve it, which nobody may do with a request of their own.
    """

    id: str
    job: str
    dag_id: str | None
    change: dict[str, Any]
    who: str
    why: str
    made_at: str
    valid_until: str
    may_change: bool
    may_approve: bool


class WaitingRequests(ResponseModel):
    """A page of the jobs with requests that wait for approval, by the age of their oldest one, with these requests.

    `total` counts the jobs, and `limit` and `offset` are of jobs; `requests` has those of the jobs on the page, as they
    are now, oldest first. `as_of` is as of when it is known which jobs have one (null: none of them is known): a newer
    request may be missing. `unjudged` is how many more jobs may have one: they are only just read for the first time.
    `damaged` are the jobs of the page some of whose requests can't be read.
    """

    requests: list[WaitingRequest]
    damaged: list[str]
    total: int
    limit: int
    offset: int
    unjudged: int = 0
    as_of: str | None
