"""Places of the page that are looked at in each light: addresses, and dialogs that are opened there."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from playwright.sync_api import Locator, Page, expect
from pydantic import BaseModel

from tests.ui import world as past
from tests.ui.stand_in import LOST, answer_once, backfill_stopped, moved_meanwhile, request_made, reset_done
from tests.ui.visit import Visit

BUILD = Path(__file__).parents[2] / "build" / "page"


Opens = Callable[[Page], object]
WHY = "the rates of May were wrong"
MANY = (past.RAW, past.REPORT, past.PROTECTED, past.RUNNING, past.EMPTIED)


@dataclass(frozen=True)
class Place:
    """Where to go, what shows that one is there, and what to open then.

    `refused` are the statuses of answers that belong to it: what the browser logs of them is no fault.
    """

    name: str
    asked: dict[str, Any] = field(default_factory=dict)
    path: str = "plugin/bookmarks"
    shows: str = ""
    opens: Opens | None = None
    refused: tuple[int, ...] = ()

    def go(self, come: Visit) -> Page:
        """Go there, and wait until it is all there."""
        come.expected.update(self.refused)
        page = come.open(self.path, **self.asked)
        if self.shows:
            expect(page.get_by_text(self.shows).first).to_be_visible()
        if self.opens is not None:
            self.opens(page)
        come.settle()
        return page


# ---- what is opened


def _begin(page: Page, change: str) -> Locator:
    """Open the dialog of a change of a job, and wait for its preview if it has one."""
    changes = page.get_by_role("group", name="Change this job")
    changes.get_by_role("button", name=change, exact=True).click()
    dialog = page.get_by_role("dialog")
    if change == "Rewind":
        dialog.get_by_label("Keep runs up to and including").select_option("20")
    if change == "Set":  # nothing is chosen before a person does, and this choice has the strongest words
        dialog.get_by_text("Now: ").click()
    if change in ("Share", "Hand over"):
        dialog.get_by_label("DAG").first.fill("billing")
    if change == "Hand over":
        dialog.get_by_text("Another DAG: ").click()
    if change == "Stop sharing":
        dialog.get_by_text("flights", exact=True).click()
    if change == "Backfill":
        dialog.get_by_text("Back to before its first run").click()
        expect(dialog.get_by_text("Based on the present version")).to_be_visible()
    elif change not in ("Protect", "Unlock"):
        expect(dialog.get_by_text("Based on version")).to_be_visible()
    return dialog


def _begin_many(page: Page) -> Locator:
    """Open the dialog of a reset of many jobs."""
    for job in MANY:
        page.get_by_role("checkbox", name=f"Select {job}", exact=True).check()
    page.get_by_role("group", name="Change the selected jobs").get_by_role("button", name="Reset").click()
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_text("Based on the present version")).to_be_visible()
    return dialog


def _send(page: Page, typed: str) -> None:
    """Say why, type what confirms it, and send it."""
    dialog = page.get_by_role("dialog")
    dialog.get_by_role("textbox", name="Reason").fill(WHY)
    dialog.get_by_label(re.compile("^Type ")).fill(typed)
    dialog.get_by_test_id("change-send").click()


def _answered(change: str, path: str, answer: BaseModel | str, job: str = past.CLEAN) -> Opens:
    """Return what makes a change that is answered in the place of the server."""

    def opens(page: Page) -> None:
        answer_once(page, path, answer)
        _begin(page, change)
        _send(page, job)
        dialog = page.get_by_role("dialog")
        expect(dialog.get_by_test_id("change-answer").or_(dialog.locator("[role=alert]:focus"))).to_be_visible()

    return opens


def _lost(page: Page) -> None:
    """Make a change whose answer is lost, and look whether it was made."""
    _answered("Reset", "**/changes", LOST)(page)
    dialog = page.get_by_role("dialog")
    dialog.get_by_role("button", name="Check now").click()
    expect(dialog.get_by_text(" since version ")).to_be_visible()


def _many_answered(page: Page) -> None:
    """Change many jobs, each with another answer."""
    answer_once(page, f"**/{past.RAW}/changes", reset_done(past.RAW))
    answer_once(page, f"**/{past.REPORT}/changes", moved_meanwhile(past.REPORT))
    answer_once(page, f"**/{past.PROTECTED}/requests", request_made(past.PROTECTED))
    answer_once(page, f"**/{past.RUNNING}/changes", LOST)
    dialog = _begin_many(page)
    dialog.get_by_text("Stop runs that are using these jobs from committing").click()
    expect(dialog.get_by_text("Stops its run")).to_be_visible()
    _send(page, "reset 4 jobs")
    expect(dialog.get_by_test_id("bulk-result")).to_be_visible()


def _clicked(button: str, shows: str) -> Opens:
    """Return what opens a dialog by a button of the page."""

    def opens(page: Page) -> None:
        page.get_by_test_id("bookmarks").get_by_role("button", name=button, exact=True).click()
        expect(page.get_by_role("dialog").get_by_text(shows).first).to_be_visible()

    return opens


def _run(number: int, part: str) -> Opens:
    """Return what opens a run of the table, and looks at a part of it."""

    def opens(page: Page) -> None:
        runs = page.get_by_role("table", name="Runs of the job")
        runs.get_by_role("button", name=re.compile(rf"^{number}\s*open")).first.click()
        heading = page.get_by_role("dialog").get_by_role("heading", name=part, exact=True)
        expect(heading).to_be_visible()
        heading.evaluate("(each) => each.scrollIntoView()")

    return opens


# ---- places


def _tab(name: str, shows: str, job: str = past.CLEAN) -> Place:
    return Place(f"job-{name}", {"job": job} | ({} if name == "overview" else {"tab": name}), shows=shows)


def _dialog(change: str, job: str = past.CLEAN) -> Place:
    name = f"preview-{change.lower().replace(' ', '-')}"
    return Place(name, {"job": job}, opens=lambda page: _begin(page, change))


PLACES = (
    Place("jobs", shows=past.RAW),
    Place("jobs-none", {"search": "nothing of the kind"}, shows="No matching jobs"),
    _tab("overview", past.CLEAN),
    _tab("runs", "PUBLISHED"),
    _tab("charts", past.CLEAN),
    _tab("events", "months were read in the wrong time zone"),
    _tab("graph", past.RAW),
    Place("job-protected", {"job": past.PROTECTED}, shows="Requests for approval"),
    Place("job-unknown", {"job": "nobody.knows"}, shows="There is no such job", refused=(404,)),
    Place("dag", path="dags/flights/plugin/bookmarks_dag", shows=past.REPORT),
    Place("task", path="dags/flights/tasks/report/plugin/bookmarks_task", shows=past.REPORT),
    _dialog("Reset"),
    _dialog("Rewind"),
    _dialog("Set"),
    _dialog("Undo"),
    _dialog("Delete"),
    _dialog("Protect"),
    Place("job-sharded", {"job": "trials.split"}, shows="trials.split~01"),
    Place("preview-sharded", {"job": "trials.split"}, opens=lambda page: _begin(page, "Reset")),
    _dialog("Backfill"),
    _dialog("Share"),
    _dialog("Hand over"),
    Place("preview-many", {"limit": 100}, opens=_begin_many),
    Place("requests", {"view": "requests"}, shows=past.PROTECTED),
    Place("run", {"job": past.CLEAN, "tab": "runs"}, opens=_run(25, "Run 25")),
    Place("run-replay", {"job": past.RAW, "tab": "runs"}, opens=_run(25, "Replay")),
    Place("job-set-aside", {"job": "trials.looked_at"}, shows="MALFORMED_CSV_RECORD"),
    _dialog("Unlock", past.RUNNING),
    _dialog("Stop sharing", "trials.looked_at"),
    Place("preview-retry", {"job": "trials.looked_at"}, opens=_clicked("Retry all of raw", "Based on version")),
    Place("approve", {"job": past.PROTECTED}, opens=_clicked("Approve", "Requested by")),
    Place("reject", {"job": past.PROTECTED}, opens=_clicked("Reject", "Reason")),
    Place("answer-done", {"job": past.CLEAN}, opens=_answered("Reset", "**/changes", reset_done(past.CLEAN, 3))),
    Place(
        "answer-refused",
        {"job": past.CLEAN},
        opens=_answered("Reset", "**/changes", moved_meanwhile(past.CLEAN)),
        refused=(409,),
    ),
    Place("answer-lost", {"job": past.CLEAN}, opens=_lost, refused=(502,)),
    Place(
        "answer-stopped",
        {"job": past.CLEAN},
        opens=_answered("Backfill", "**/backfill", backfill_stopped(past.CLEAN, past.REPORT)),
        refused=(409,),
    ),
    Place("answer-many", {"limit": 100}, opens=_many_answered, refused=(409, 502)),
)
