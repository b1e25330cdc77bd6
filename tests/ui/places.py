"""Places of the page that are looked at in each light: addresses, and dialogs that are opened there."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from playwright.sync_api import Page, expect

from tests.ui import world as past
from tests.ui.visit import Visit

BUILD = Path(__file__).parents[2] / "build" / "page"


@dataclass(frozen=True)
class Place:
    """Where to go, which tab to open, and which change to begin there: of one job, or of those that are picked."""

    name: str
    asked: dict[str, Any] = field(default_factory=dict)
    path: str = "plugin/bookmarks"
    change: str = ""
    shows: str = ""
    picks: tuple[str, ...] = ()

    def go(self, come: Visit) -> Page:
        """Go there, and wait until it is all there."""
        page = come.open(self.path, **self.asked)
        if self.shows:
            expect(page.get_by_text(self.shows).first).to_be_visible()
        if self.picks:
            self._begin_many(page)
        elif self.change:
            self._begin(page)
        come.settle()
        return page

    def _begin_many(self, page: Page) -> None:
        for job in self.picks:
            page.get_by_role("checkbox", name=f"Select {job}", exact=True).check()
        page.get_by_role("group", name="Change the selected jobs").get_by_role("button", name=self.change).click()
        expect(page.get_by_role("dialog").get_by_text("Based on the present version")).to_be_visible()

    def _begin(self, page: Page) -> None:
        changes = page.get_by_role("group", name="Change this job")
        changes.get_by_role("button", name=self.change, exact=True).click()
        dialog = page.get_by_role("dialog")
        if self.change == "Rewind":
            dialog.get_by_label("Keep runs up to and including").select_option("20")
        if self.change == "Set":  # nothing is chosen before a person does, and this choice has the strongest words
            dialog.get_by_text("Now: ").click()
        if self.change in ("Share", "Hand over"):
            dialog.get_by_label("DAG").first.fill("billing")
        if self.change == "Hand over":
            dialog.get_by_text("Another DAG: ").click()
        if self.change == "Backfill":
            dialog.get_by_text("Back to before its first run").click()
            expect(dialog.get_by_text("Based on the present version")).to_be_visible()
        elif self.change != "Protect":
            expect(dialog.get_by_text("Based on version")).to_be_visible()


def _tab(name: str, shows: str, job: str = past.CLEAN) -> Place:
    return Place(f"job-{name}", {"job": job} | ({} if name == "overview" else {"tab": name}), shows=shows)


def _dialog(name: str, job: str = past.CLEAN) -> Place:
    return Place(f"preview-{name.lower().replace(' ', '-')}", {"job": job}, change=name)


PLACES = (
    Place("jobs", shows=past.RAW),
    Place("jobs-none", {"search": "nothing of the kind"}, shows="No matching jobs"),
    _tab("overview", past.CLEAN),
    _tab("runs", "PUBLISHED"),
    _tab("charts", past.CLEAN),
    _tab("events", "months were read in the wrong time zone"),
    _tab("graph", past.RAW),
    Place("job-protected", {"job": past.PROTECTED}, shows="Requests for approval"),
    Place("job-unknown", {"job": "nobody.knows"}, shows="There is no such job"),
    Place("dag", path="dags/flights/plugin/bookmarks_dag", shows=past.REPORT),
    Place("task", path="dags/flights/tasks/report/plugin/bookmarks_task", shows=past.REPORT),
    _dialog("Reset"),
    _dialog("Rewind"),
    _dialog("Set"),
    _dialog("Undo"),
    _dialog("Delete"),
    _dialog("Protect"),
    Place("job-sharded", {"job": "trials.split"}, shows="trials.split~01"),
    Place("preview-sharded", {"job": "trials.split"}, change="Reset"),
    _dialog("Backfill"),
    _dialog("Share"),
    _dialog("Hand over"),
    Place(
        "preview-many",
        {"limit": 100},
        change="Reset",
        picks=(past.RAW, past.REPORT, past.PROTECTED, past.RUNNING, past.EMPTIED),
    ),
)
