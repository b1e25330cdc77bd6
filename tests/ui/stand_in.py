"""Answers that stand in for those of the server: of changes that would leave nothing to look at, or that are rare."""

from __future__ import annotations

from playwright.sync_api import Page, Route
from pydantic import BaseModel

from airflow_bookmarks.core.errors import BackfillStoppedError, ChangeRefusedError
from airflow_bookmarks.core.text.instant import to_text, utc_now
from airflow_bookmarks.plugin.schemas.refusal import Difference, Refusal, Seen
from airflow_bookmarks.plugin.schemas.responses import Changed, EventRow, Moved, Requested, RequestRow, Window

LOST = "<html><body><h1>502 Bad Gateway</h1></body></html>"
"""What a proxy answers in the place of the server: nobody knows what became of the request."""


def answer_once(page: Page, path: str, answer: BaseModel | str) -> None:
    """Answer the next request to a path in the place of the server: what was done, why not, or nothing of use."""

    def fulfil(route: Route) -> None:
        if isinstance(answer, str):
            route.fulfill(status=502, content_type="text/html", body=answer)
        else:
            route.fulfill(status=409 if isinstance(answer, Refusal) else 200, json=answer.model_dump(mode="json"))

    page.route(path, fulfil, times=1)


def reset_done(job: str, epoch: int = 2) -> Changed:
    """Return what is answered to a reset that is done; it begins the epoch."""
    return Changed(
        job=job,
        change="reset",
        said=f"Reset of job '{job}' is done: 25 runs undone",
        audited=True,
        epoch=Moved(before=epoch - 1, after=epoch),
        version=Moved(before=26, after=27),
        watermarks={
            "flights": Window(before="run 25", after=None),
            "people": Window(before=to_text(utc_now()), after=None),
        },
    )


def moved_meanwhile(job: str) -> Refusal:
    """Return what is answered to a change of a job that somebody else has changed since its preview."""
    why = "the month was closed, and the correction of it came in three parts, of which the second was late"
    event = EventRow(kind="rewind", who="op", at=to_text(utc_now()), why=why, to_run=20, epoch_before=1, epoch_after=2)
    difference = Difference(
        version_seen=26,
        version_now=27,
        epoch_now=2,
        run_number_now=25,
        runs=[],
        events=[event],
        watermarks={"flights": Seen(seen="run 25", now="run 20")},
    )
    message = f"job '{job}' is at version 27, and not at 26. Nothing was changed."
    return Refusal(error="ChangedMeanwhileError", message=message, difference=difference)


def request_made(job: str) -> Requested:
    """Return what is answered to a request for a reset."""
    asked = RequestRow(
        id="20130131T000000.000000Z",
        state="open",
        job=job,
        change={"kind": "reset"},
        who="admin",
        why="wrong rates",
        made_at=to_text(utc_now()),
        valid_until=to_text(utc_now()),
        version=9,
        preview={},
        decided_by=None,
        may_approve=False,
    )
    return Requested(
        request=asked, said=f"Reset of job '{job}' is requested. Another person has to approve it.", audited=True
    )


def backfill_stopped(went: str, left: str) -> Refusal:
    """Return what is answered to a backfill that took one job back, and was refused at the next one."""
    busy = ChangeRefusedError(f"job {left!r}: a file that it has to read again is gone. Nothing was changed.")
    return Refusal(error="BackfillStoppedError", message=str(BackfillStoppedError(left, [went], [left], busy)))
