"""Many jobs taken back at once: selected in the list, previewed together, changed one by one, and told job by job."""

from __future__ import annotations

import re
from collections.abc import Sequence

import pytest
from playwright.sync_api import Locator, Page, Route, expect

from airflow_bookmarks.core.rules.shard import shard_name
from airflow_bookmarks.core.text.identity import Identity
from airflow_bookmarks.lifecycle.changes.approval import protect
from airflow_bookmarks.lifecycle.changes.change import rewind
from tests.ui import world as past
from tests.ui.conftest import Visitors
from tests.ui.server import Server
from tests.ui.test_jobs import ALL, listed
from tests.ui.visit import Visit
from tests.ui.world import World

pytestmark = [pytest.mark.airflow, pytest.mark.slow, pytest.mark.xdist_group("page")]

WHY = "May was read in the wrong time zone"


def select(page: Page, jobs: Sequence[str]) -> None:
    for job in jobs:
        page.get_by_role("checkbox", name=f"Select {job}", exact=True).check()


def begin(come: Visit, change: str, jobs: Sequence[str]) -> Locator:
    """Select jobs of the list, and open the dialog that changes them; return it."""
    page = come.open(limit=ALL)
    select(page, jobs)
    page.get_by_role("group", name="Change the selected jobs").get_by_role("button", name=change).click()
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_role("heading", name=f"{change} {len(jobs)} jobs")).to_be_visible()
    return dialog


def told(dialog: Locator) -> Locator:
    """Return the preview, once it is there."""
    preview = dialog.get_by_test_id("change-preview")
    expect(preview.get_by_text("Based on the present version of each job.")).to_be_visible()
    return preview


def of(part: Locator, job: str) -> Locator:
    """Return the line of a job in a preview or a result."""
    return part.get_by_role("listitem").filter(has=part.page.get_by_text(job, exact=True))


def confirm(dialog: Locator, typed: str) -> None:
    """Say why, and type what is done to how many jobs."""
    dialog.get_by_role("textbox", name="Reason").fill(WHY)
    dialog.get_by_label("Type this to confirm").fill(typed)


def send(dialog: Locator, button: str) -> None:
    dialog.get_by_role("button", name=button, exact=True).click()


def result(dialog: Locator) -> Locator:
    """Return what became of each job, once it is there."""
    found = dialog.get_by_test_id("bulk-result")
    expect(found).to_be_visible()
    return found


def test_job_that_moved_since_the_preview_is_refused_and_the_others_are_changed(
    visitors: Visitors, world: World, server: Server
) -> None:
    jobs = [world.small(f"trials.many_{each}") for each in ("first", "raced", "last")]
    come = visitors()
    come.expected.add(409)
    dialog = begin(come, "Reset", jobs)
    preview = told(dialog)
    expect(preview).to_contain_text("3 to change")
    expect(preview).to_contain_text("12 runs")
    expect(preview).to_contain_text("This will duplicate rows")
    of(preview, jobs[0]).get_by_role("button", name="Details").click()
    expect(of(preview, jobs[0])).to_contain_text("4 runs: 1 to 4")
    assert all(world.store.events(job) == [] for job in jobs), "a preview changes nothing"
    rewind(world.store, jobs[1], "3", reason="somebody was faster", who="op")

    confirm(dialog, "reset 3 jobs")
    send(dialog, "Reset 3 jobs")

    answer = result(dialog)
    expect(answer).to_contain_text("2 changed, 1 refused.")
    expect(answer.get_by_text("Not all jobs were changed")).to_be_in_viewport(ratio=1)
    lines = answer.get_by_role("list", name="Result by job").locator(":scope > li")
    expect(lines).to_have_count(3)
    expect(lines.first).to_contain_text("The job has changed since your preview")
    expect(lines.first).to_contain_text("somebody was faster")
    for job in (jobs[0], jobs[2]):
        expect(of(answer, job)).to_contain_text(f"Reset of job '{job}' is done: 4 runs undone")
        expect(of(answer, job).get_by_role("link", name=job)).to_have_attribute("href", re.compile(f"job={job}"))
    heads = {job: world.store.head(job) for job in jobs}
    assert [head.contexts == {} for head in heads.values()] == [True, False, True]
    assert [[event["kind"] for event in world.store.events(job)] for job in jobs] == [["reset"], ["rewind"], ["reset"]]
    assert world.store.events(jobs[0])[0]["why"] == WHY
    assert server.audited().count(("bookmark.reset", "admin", "trials")) >= 2
    dialog.get_by_role("button", name="Close").first.click()
    expect(dialog).to_have_count(0)
    page = come.page
    expect(page.get_by_role("status").filter(has_text="1 job selected")).to_be_visible()
    expect(page.get_by_role("checkbox", name=f"Select {jobs[1]}")).to_be_checked()


def test_each_job_finds_the_time_in_its_own_history_and_says_what_it_lacks(visitors: Visitors, world: World) -> None:
    moved, guarded, held = (world.small(f"trials.point_{each}", runs=2) for each in ("moved", "guarded", "held"))
    shards = [world.small(shard_name("trials.point_split", number), runs=2) for number in range(2)]
    time = max(run.committed_at or "" for run in world.store.runs(shards[-1]))
    late = world.small("trials.point_late", runs=1)
    for job in (moved, guarded, held, *shards):
        world.arrive(world.folder(job))
        world.run(job)
    protect(world.store, guarded, reason="money", who=Identity("op", True, "airflow"))
    world.hold(held)
    jobs = [moved, guarded, held, late, "trials.point_split"]
    come = visitors()
    come.expected.update((404, 422))
    dialog = begin(come, "Rewind", jobs)
    expect(dialog.get_by_test_id("change-preview")).to_contain_text("First choose")

    dialog.get_by_label("Keep runs up to and including").fill(time)

    preview = told(dialog)
    expect(preview).to_contain_text("2 to change, 1 to request, 1 in use by a run, 1 can't be changed")
    expect(of(preview, moved)).to_contain_text("To run 2: 1 run undone; read again: 1 file")
    expect(of(preview, guarded)).to_contain_text("Needs approval")
    expect(of(preview, held)).to_contain_text("In use by trials/")
    expect(of(preview, late)).to_contain_text("has no living run at or before")
    expect(of(preview, "trials.point_split")).to_contain_text("2 virtual shards: 2 runs undone")
    dialog.get_by_text("Stop runs that are using these jobs from committing").click()
    expect(of(preview, held)).to_contain_text("Stops its run")
    confirm(dialog, "rewind 4 jobs")
    send(dialog, "Rewind 3 jobs and request it for 1")

    answer = result(dialog)
    expect(answer).to_contain_text("3 changed, 1 requested, 1 left unchanged.")
    expect(of(answer, guarded)).to_contain_text("Approval requested")
    for job in (moved, held, *shards):
        assert world.store.head(job).contexts["raw"].run.number == 2, job
    assert world.store.head(guarded).contexts["raw"].run.number == 3
    assert {event["kind"] for event in world.store.events(guarded)} == {"protect", "request"}
    assert world.store.events(late) == []


def test_viewer_is_told_for_each_job_that_it_can_not_be_changed(visitors: Visitors, world: World) -> None:
    come = visitors("viewer")
    come.expected.add(403)

    dialog = begin(come, "Reset", [past.RAW, past.CLEAN])

    preview = told(dialog)
    expect(preview).to_contain_text("2 can't be changed")
    for job in (past.RAW, past.CLEAN):
        expect(of(preview, job)).to_contain_text(f"'viewer' may not change job '{job}'")
    expect(dialog.get_by_label("Type this to confirm")).to_have_count(0)
    expect(dialog.get_by_test_id("change-send")).to_be_disabled()
    expect(dialog).to_contain_text("Required: a job that can be changed.")


def test_selection_is_made_by_keyboard_stays_while_pages_turn_and_is_cleared(visitors: Visitors, world: World) -> None:
    page, second = visitors().open(limit=25, sort="job"), min(25, len(listed(world)) - 25)
    everything = page.get_by_role("checkbox", name="Select all jobs on this page")
    box = page.get_by_role("checkbox", name=re.compile("^Select (?!all)")).first
    selected = page.get_by_role("status").filter(has_text="selected")
    box.focus()
    page.keyboard.press("Space")
    expect(selected).to_have_text("1 job selected")
    expect(everything).not_to_be_checked()

    page.get_by_role("button", name="Next page").click()
    expect(selected).to_have_text("1 job selected, 1 not on this page")
    everything.focus()
    page.keyboard.press("Space")
    expect(selected).to_have_text(f"{second + 1} jobs selected, 1 not on this page")
    everything.uncheck()
    expect(selected).to_have_text("1 job selected, 1 not on this page")
    page.go_back()

    expect(box).to_be_checked()
    page.get_by_role("button", name="Clear selection").click()
    expect(box).not_to_be_checked()
    expect(selected).to_have_count(0)
    expect(page.get_by_role("group", name="Change the selected jobs")).to_have_count(0)


def test_answer_that_is_lost_is_not_told_as_done_and_whoever_stops_leaves_the_rest(
    visitors: Visitors, world: World
) -> None:
    jobs = [world.small(f"trials.lost_{each}", runs=1) for each in ("a", "b", "c")]
    come = visitors()
    come.expected.add(502)
    dialog = begin(come, "Reset", jobs)
    told(dialog)
    confirm(dialog, "reset 3 jobs")

    sent: list[str] = []

    def answer_late(route: Route) -> None:
        """Make the first change and lose its answer; stop while the second is on its way."""
        sent.append(route.request.url)
        if len(sent) > 1:
            dialog.get_by_role("button", name="Stop", exact=True).click()
            route.continue_()
            return
        route.fetch()
        route.fulfill(status=502, content_type="text/html", body="<h1>502 Bad Gateway</h1>")

    dialog.page.route("**/changes", answer_late)
    send(dialog, "Reset 3 jobs")

    answer = result(dialog)
    expect(answer).to_contain_text("1 changed, 1 left unchanged, 1 not confirmed.")
    expect(of(answer, jobs[0])).to_contain_text("The change may have been made.")
    expect(of(answer, jobs[2])).to_contain_text("Not sent, because you stopped.")
    assert [len(world.store.events(job)) for job in jobs] == [1, 1, 0]
