"""Check requests for approval: whether they can be read, belong to a bookmark, and were made once approved."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_bookmarks.core.text.instant import to_text
from airflow_bookmarks.lifecycle.changes.approval import APPROVED, ASK_ANEW, decoded_requests
from airflow_bookmarks.lifecycle.maintenance.doctor.finding import RESTORE_HEAD, Finding, Severity
from airflow_bookmarks.store.codec.item import EVENT_PREFIX
from airflow_bookmarks.store.transitions.approval import requests_among

if TYPE_CHECKING:
    from collections.abc import Iterator

    from airflow_bookmarks.lifecycle.maintenance.doctor.survey import Survey


def examine_requests(survey: Survey) -> Iterator[Finding]:
    """Find requests that are damaged, that belong to no bookmark, or were approved and not carried out."""
    items = requests_among(survey.items.items())
    if survey.head is None:
        if items and not survey.runs and not survey.unreadable:  # runs without a head are a finding of its check
            what = f"job {survey.job!r} has {len(items)} request(s) for approval and no head: its bookmark is lost"
            where = EVENT_PREFIX + min(items)
            yield Finding("request-orphaned", survey.job, Severity.ERROR, what, where, RESTORE_HEAD)
        return
    found, damaged = decoded_requests(survey.job, items, survey.head, survey.now)
    for request_id, error in damaged.items():
        what = f"request {request_id} can't be read: {error}"
        where = EVENT_PREFIX + request_id
        yield Finding("request-damaged", survey.job, Severity.WARNING, what, where, ASK_ANEW)
    for request in found:
        if request.state == APPROVED:
            what = (
                f"request {request.id} ({request.change.kind}, asked for by {request.who.name!r}) is approved, and its "
                f"change is not made; it expires at {to_text(request.valid_until)}"
            )
            mend = "Approve it once more, which makes the change, or reject it."
            where = EVENT_PREFIX + request.id
            yield Finding("request-not-made", survey.job, Severity.NOTICE, what, where, mend)
