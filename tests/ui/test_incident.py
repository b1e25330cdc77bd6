"""An incident at night, by clicks: find the failed job, its cause, what a rewind would do, do it, see it recover."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Locator, expect

from tests.ui.conftest import Visitors
from tests.ui.world import World

pytestmark = [pytest.mark.airflow, pytest.mark.slow, pytest.mark.xdist_group("page")]

JOB, WHY = "trials.incident", "the delivery of the night was cut off"
MOST_CLICKS = 6
_MOST_TABS = 30


class Hand:
    """Clicks, and counts; what is typed is no click, nor is the way to a field by the keyboard."""

    def __init__(self) -> None:
        self.clicks = 0

    def click(self, what: Locator) -> None:
        what.click()
        self.clicks += 1

    def choose(self, choice: Locator, value: str) -> None:
        """Choose from a list: one click opens it, one chooses."""
        choice.select_option(value)
        self.clicks += 2

    def type(self, what: Locator, text: str) -> None:
        """Go to a field by Tab from where the focus is, and type into it."""
        for _ in range(_MOST_TABS):
            what.page.keyboard.press("Tab")
            if what.evaluate("field => field === document.activeElement"):
                what.page.keyboard.type(text)
                return
        raise AssertionError(f"{_MOST_TABS} times Tab do not lead to the field for {text!r}")


@pytest.mark.usefixtures("axe")
@pytest.mark.often
def test_failed_job_is_found_taken_back_and_seen_to_recover_in_six_clicks(visitors: Visitors, world: World) -> None:
    world.small(JOB)
    world.arrive(world.folder(JOB))
    world.fail(JOB, "AnalysisException: no such column: price")
    hand, come = Hand(), visitors()
    page = come.open()

    # From the list: what is wrong stands first, with its cause and a link to the log of the try.
    rows = page.get_by_role("table", name="Jobs and their bookmarks").get_by_role("row")
    row = rows.filter(has=page.get_by_role("link", name=JOB, exact=True))
    expect(row).to_contain_text("FAILED")
    expect(row).to_contain_text("no such column: price")
    expect(row.get_by_role("link", name=f"Task log of the failed attempt of {JOB}")).to_have_attribute(
        "href", re.compile(r"/dags/trials/runs/scheduled__.+/tasks/incident\?try_number=1$")
    )
    above = rows.all_inner_texts()[1:]
    at = next(number for number, text in enumerate(above) if JOB in text)
    assert all("FAILED" in text for text in above[:at]), "what is well stands above what failed"
    assert come.barriers() == []
    hand.click(row.get_by_role("link", name=JOB, exact=True))

    # The job, and what a rewind would do.
    head = page.locator("header").filter(has_text=JOB).first
    expect(head.get_by_role("status").first).to_contain_text("no such column: price")
    changes = page.get_by_role("group", name="Change this job")
    hand.click(changes.get_by_role("button", name="Rewind", exact=True))
    dialog = page.get_by_role("dialog")
    hand.choose(dialog.get_by_label("Keep runs up to and including"), "3")
    expect(dialog.get_by_test_id("change-preview")).to_contain_text("1 run: 4")
    assert come.barriers() == []

    # Do it.
    hand.type(dialog.get_by_role("textbox", name="Reason"), WHY)
    hand.type(dialog.get_by_label("Type the name of the job"), JOB)
    hand.click(dialog.get_by_role("button", name="Rewind to run 3", exact=True))
    expect(dialog.get_by_test_id("change-answer")).to_contain_text(f"Rewind of job '{JOB}' is done")
    assert world.store.head(JOB).contexts["raw"].run.number == 3
    assert come.barriers() == []
    hand.click(dialog.get_by_role("button", name="Close").first)
    expect(head).to_contain_text("TAKEN BACK")

    # The next run comes, and the page shows it without a click.
    world.run(JOB)
    expect(head.get_by_text("OK", exact=True)).to_be_visible()
    expect(head).not_to_contain_text("FAILED")
    assert come.barriers() == []
    assert hand.clicks <= MOST_CLICKS
