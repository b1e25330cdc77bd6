"""Changes made by clicks: what is shown before, what it takes, what is answered, and where the job stands then."""

from __future__ import annotations

import re
from functools import partial

import pytest
from playwright.sync_api import Locator, Page, expect

from airflow_bookmarks.lifecycle.changes.change import rewind
from airflow_bookmarks.lifecycle.run.enabled import ActiveRun
from airflow_bookmarks.lifecycle.state.quarantine import quarantined_files
from airflow_bookmarks.sources.upstream.source import UpstreamSource
from tests.ui.conftest import Visitors
from tests.ui.server import Server
from tests.ui.stand_in import answer_once, backfill_stopped
from tests.ui.visit import Visit
from tests.ui.world import RAW, World

pytestmark = [pytest.mark.airflow, pytest.mark.slow, pytest.mark.xdist_group("page")]

WHY = "May was read in the wrong time zone"


def begin(come: Visit, job: str, change: str) -> Locator:
    """Open the dialog of a change; return it."""
    page = come.open(job=job)
    page.get_by_role("group", name="Change this job").get_by_role("button", name=change, exact=True).click()
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_role("heading", name=change)).to_contain_text(job)
    return dialog


def told(dialog: Locator) -> Locator:
    """Return the preview, once it is there."""
    preview = dialog.get_by_test_id("change-preview")
    expect(preview.get_by_text("Based on version")).to_be_visible()
    return preview


def confirm(dialog: Locator, job: str, button: str) -> None:
    """Say why, type the name, and send it."""
    dialog.get_by_role("textbox", name="Reason").fill(WHY)
    dialog.get_by_label("Type the name of the job").fill(job)
    dialog.get_by_role("button", name=button, exact=True).click()


def done(dialog: Locator) -> Locator:
    """Return the answer, once it is there."""
    answer = dialog.get_by_test_id("change-answer")
    expect(answer.get_by_text("Done", exact=True)).to_be_visible()
    return answer


def close(dialog: Locator) -> None:
    dialog.get_by_role("button", name="Close").first.click()
    expect(dialog).to_have_count(0)


# ---- reset, rewind, set, undo


@pytest.mark.often
def test_rewind_shows_what_it_would_do_and_does_that(visitors: Visitors, world: World, server: Server) -> None:
    job = "trials.rewind"
    before = world.store.head(job)
    dialog = begin(visitors(), job, "Rewind")
    dialog.get_by_label("Keep runs up to and including").select_option("2")

    preview = told(dialog)

    expect(preview).to_contain_text("2 runs: 3, 4")
    expect(preview).to_contain_text("2 files")
    expect(preview).to_contain_text("This will duplicate rows")
    assert world.store.head(job) == before, "a preview changes nothing"
    confirm(dialog, job, "Rewind to run 2")
    expect(done(dialog)).to_contain_text(f"Rewind of job '{job}' is done")
    head, (event,) = world.store.head(job), world.store.events(job)
    assert (head.epoch, head.version) == (before.epoch + 1, before.version + 1)
    assert head.contexts["raw"].run.number == 2
    assert (event["kind"], event["who"], event["why"]) == ("rewind", "admin", WHY)
    assert ("bookmark.rewind", "admin", "trials") in server.audited()


def test_page_behind_the_dialog_shows_at_once_what_was_done(visitors: Visitors, world: World) -> None:
    job = "trials.reset"
    come = visitors("user")
    dialog = begin(come, job, "Reset")
    expect(told(dialog)).to_contain_text("4 runs: 1 to 4")
    confirm(dialog, job, "Reset the job")
    done(dialog)

    close(dialog)

    page = come.page
    page.get_by_role("tab", name="Events").click()
    events = page.get_by_role("tabpanel", name="Events")
    expect(events).to_contain_text(WHY)
    expect(events).to_contain_text("user")
    head = world.store.head(job)
    assert (head.contexts, head.epoch, head.run_number) == ({}, 2, 4)


def test_clean_is_offered_where_rows_would_come_twice_and_names_the_files(visitors: Visitors, world: World) -> None:
    job = "trials.clean"
    dialog = begin(visitors(), job, "Reset")
    told(dialog).get_by_role("button", name="Remove their output").click()
    expect(dialog.get_by_label("Remove the undone runs' output to avoid duplicates")).to_be_checked()

    expect(told(dialog)).to_contain_text("4 files, by the next run")
    confirm(dialog, job, "Reset the job")

    done(dialog)
    assert world.store.head(job).cleaning is not None


def test_file_that_was_set_aside_is_read_again_after_a_preview(visitors: Visitors, world: World) -> None:
    job = "trials.retried"
    first, second = sorted(file["path"] for file in quarantined_files(world.store, job))
    page = visitors().open(job=job)
    lines = page.get_by_role("table", name="Files set aside").get_by_role("row")
    expect(lines.filter(has_text="MALFORMED_CSV_RECORD")).to_have_count(2)

    page.get_by_role("button", name=f"Retry {first}", exact=True).click()
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_role("heading", name="Retry files of")).to_contain_text(job)
    told(dialog)
    confirm(dialog, job, "Retry 1 file of raw")

    done(dialog)
    close(dialog)
    expect(lines.filter(has_text="MALFORMED_CSV_RECORD")).to_have_count(1)
    assert [file["path"] for file in quarantined_files(world.store, job)] == [second]


def test_set_moves_one_context_to_where_one_says(visitors: Visitors, world: World) -> None:
    job = "trials.set"
    come = visitors()
    dialog = begin(come, job, "Set")
    dialog.get_by_text("A time", exact=True).click()
    dialog.get_by_label("Time, in UTC").fill("2026-01-02T03:04:05")

    told(dialog)
    confirm(dialog, job, "Set raw to 2026-01-02 03:04:05 UTC")

    done(dialog)
    close(dialog)
    come.page.get_by_role("tab", name="Events").click()
    expect(come.page.get_by_role("table", name="Events of the job")).to_contain_text(
        "Set raw to 2026-01-02 03:04:05 UTC"
    )
    (event,) = world.store.events(job)
    assert (event["kind"], event["ctx"], event["value"]) == ("set", "raw", "2026-01-02T03:04:05.000Z")
    assert world.store.head(job).contexts["raw"].set_in == 2


def test_set_says_in_red_what_is_never_read_and_who_misses_it(visitors: Visitors, world: World) -> None:
    job, reader = "trials.ahead", "trials.behind"
    world.small(job, runs=1)
    world.run(reader, reads={"raw": UpstreamSource(world.store, reader, job)})
    world.arrive(world.folder(job), 2)
    dialog = begin(visitors(), job, "Set")
    preview = dialog.get_by_test_id("change-preview")
    expect(dialog.get_by_role("radio", checked=True)).to_have_count(0)
    expect(preview).to_contain_text("First choose")

    dialog.get_by_text("Now: skip all unread files").click()

    lost = told(dialog).get_by_role("alert")
    expect(lost).to_contain_text(re.compile(r"Never read: 2 files, \d"))
    expect(lost).to_contain_text(f"Output made from it will never reach {reader}")


def keep_page(number: int, run: ActiveRun) -> None:
    run.state("cursor").set(f"page {number}")


def test_rewind_counts_values_and_leftovers_and_follows_the_next_run(visitors: Visitors, world: World) -> None:
    job, dag = "trials.kept", "trials"
    for number in (1, 2, 3):
        world.arrive(world.folder(job))
        world.run(job, then=partial(keep_page, number))
    rewind(world.store, job, "2", reason="a first time, without a clean", who="op")
    dialog = begin(visitors(), job, "Rewind")
    dialog.get_by_label("Keep runs up to and including").select_option("1")

    preview = told(dialog)

    values = preview.get_by_role("table", name="Values of job.state before and after the change")
    expect(values.get_by_role("row").first).to_contain_text("Value")
    expect(values.get_by_role("row").nth(1)).to_contain_text(re.compile("cursor.*page 2.*page 1"))
    expect(preview).to_contain_text("Output left by earlier undone runs1 file")
    confirm(dialog, job, "Rewind to run 1")
    answer = done(dialog)
    expect(answer.get_by_role("link", name=f"task kept of DAG {dag}")).to_have_attribute(
        "href", re.compile(f"/dags/{dag}/tasks/kept$")
    )
    expect(answer.get_by_test_id("next-run")).to_have_text("Next run: not started yet.")

    world.run(job)

    expect(answer.get_by_test_id("next-run")).to_have_text(re.compile("Run 4 has read 2 files, .* and is published"))


def test_undo_takes_the_last_change_back(visitors: Visitors, world: World) -> None:
    job = "trials.undo"
    before = world.store.head(job).contexts
    come = visitors()
    dialog = begin(come, job, "Reset")
    told(dialog)
    confirm(dialog, job, "Reset the job")
    done(dialog)
    assert world.store.head(job).contexts == {}
    close(dialog)

    dialog = begin(come, job, "Undo")
    told(dialog)
    confirm(dialog, job, "Undo the last change")

    done(dialog)
    assert world.store.head(job).contexts == before
    assert [event["kind"] for event in world.store.events(job)] == ["reset", "undo"]


def test_deleted_job_is_in_the_list_no_more(visitors: Visitors, world: World) -> None:
    job = "trials.gone"
    come = visitors()
    come.expected.add(404)
    dialog = begin(come, job, "Delete")
    told(dialog)
    confirm(dialog, job, "Delete the bookmark")
    done(dialog)

    page = come.open(search=job)

    expect(page.get_by_text("No matching jobs")).to_be_visible()
    assert [event["kind"] for event in world.store.events(job)] == ["delete"]


def test_nothing_is_sent_without_a_reason_and_the_name(visitors: Visitors, world: World) -> None:
    job = "trials.refused"
    before = world.store.head(job)
    dialog = begin(visitors(), job, "Reset")
    told(dialog)
    send = dialog.get_by_role("button", name="Reset the job", exact=True)
    expect(send).to_be_disabled()

    dialog.get_by_role("textbox", name="Reason").fill(WHY)
    expect(send).to_be_disabled()
    dialog.get_by_label("Type the name of the job").fill("trials.refuse")
    expect(send).to_be_disabled()
    dialog.get_by_label("Type the name of the job").fill(job)
    expect(send).to_be_enabled()

    dialog.get_by_role("button", name="Cancel").click()
    expect(dialog).to_have_count(0)
    assert world.store.head(job) == before


def test_job_that_a_run_holds_is_taken_from_it_only_when_one_says_so(visitors: Visitors, world: World) -> None:
    job = "trials.held"
    fence = world.store.head(job).fence
    dialog = begin(visitors(), job, "Reset")
    told(dialog)
    dialog.get_by_role("textbox", name="Reason").fill(WHY)
    dialog.get_by_label("Type the name of the job").fill(job)
    send = dialog.get_by_role("button", name="Reset the job", exact=True)
    expect(dialog.get_by_text("is using this job")).to_be_visible()
    expect(send).to_be_disabled()

    dialog.get_by_text("Stop that run from committing").click()
    send.click()

    done(dialog)
    assert world.store.head(job).fence > fence


def test_job_is_unlocked_from_a_driver_that_is_known_to_be_dead(visitors: Visitors, world: World) -> None:
    job = "trials.locked"
    lease = world.store.head(job).lease
    assert lease is not None
    come = visitors()
    dialog = begin(come, job, "Unlock")
    expect(dialog.get_by_text(f"Run {lease.run_id}")).to_contain_text(re.compile(r"its lease ends in \d+ [dh]"))
    expect(dialog.get_by_text("That run won't be able to commit")).to_be_visible()
    expect(dialog.get_by_role("button", name="Unlock", exact=True)).to_be_disabled()
    confirm(dialog, job, "Unlock")
    expect(done(dialog)).to_contain_text("no longer held by")
    assert world.store.head(job).lease is None
    close(dialog)
    changes = come.page.get_by_role("group", name="Change this job")
    expect(changes.get_by_role("button", name="Unlock", exact=True)).to_have_count(0)


def with_reader(world: World, root: str) -> str:
    """Make a job and one that reads it, with two runs each; return the reader."""
    reader = f"{root}_reader"
    for _ in range(2):
        world.arrive(world.folder(root))
        world.run(root)
        world.run(reader, reads={"raw": UpstreamSource(world.store, reader, root)})
    return reader


def test_job_goes_back_with_what_reads_it_by_one_plan(visitors: Visitors, world: World) -> None:
    root = "trials.root"
    reader = with_reader(world, root)
    before = world.store.head(root).run_number
    dialog = begin(visitors(), root, "Backfill")
    dialog.get_by_label("Keep runs up to and including").fill(str(before - 1))
    preview = dialog.get_by_test_id("change-preview")
    plan = preview.get_by_role("table", name="Jobs that go back, in this order")
    expect(plan.get_by_role("row")).to_have_count(3)
    expect(plan.get_by_role("row").nth(1)).to_contain_text(root)
    expect(plan.get_by_role("row").nth(2)).to_contain_text(f"{root} (up to run {before - 1})")
    expect(preview.get_by_text("2 jobs", exact=True)).to_be_visible()

    dialog.get_by_label("Price of an hour of a run").fill("1.20")
    expect(preview).to_contain_text(re.compile(r"Expected cost\d+\.\d\d"))

    confirm(dialog, root, "Take 2 jobs back")

    expect(done(dialog)).to_contain_text(f"{root}, {reader} went back")
    expect(dialog.get_by_test_id("dag-runs").get_by_role("link", name="DAG trials", exact=True)).to_be_visible()
    assert (world.store.head(root).epoch, world.store.head(reader).epoch) == (2, 2)


def plan_backfill(come: Visit, root: str, to: str) -> Locator:
    """Open the dialog of a backfill to a run; return it, once two jobs are to go back."""
    dialog = begin(come, root, "Backfill")
    dialog.get_by_label("Keep runs up to and including").fill(to)
    expect(dialog.get_by_test_id("change-preview").get_by_text("2 jobs", exact=True)).to_be_visible()
    return dialog


def test_backfill_of_which_a_job_moved_since_its_preview_is_refused_whole(visitors: Visitors, world: World) -> None:
    root = "trials.root_moved"
    reader = with_reader(world, root)
    come = visitors()
    come.expected.add(409)
    dialog = plan_backfill(come, root, "1")
    world.run(reader, reads={"raw": UpstreamSource(world.store, reader, root)})

    confirm(dialog, root, "Take 2 jobs back")

    alert = dialog.get_by_role("alert").filter(has_text="The job has changed since your preview")
    expect(alert).to_contain_text(reader)
    expect(alert).to_contain_text("othing was changed")
    assert [world.store.head(job).epoch for job in (root, reader)] == [1, 1]
    alert.get_by_role("button", name="Refresh preview").click()
    dialog.get_by_role("button", name="Take 2 jobs back", exact=True).click()
    done(dialog)
    assert [world.store.head(job).epoch for job in (root, reader)] == [2, 2]


def test_backfill_that_stopped_midway_says_where_and_goes_on_with_the_rest(visitors: Visitors, world: World) -> None:
    root = "trials.root_stopped"
    reader = with_reader(world, root)
    come = visitors()
    come.expected.add(409)
    dialog = plan_backfill(come, root, "1")
    rewind(world.store, root, "1", reason="the first of two", who="admin")
    answer_once(come.page, "**/backfill", backfill_stopped(root, reader))

    confirm(dialog, root, "Take 2 jobs back")

    alert = dialog.get_by_role("alert").filter(has_text="Some jobs went back, others did not")
    expect(alert).to_contain_text(f"The backfill stopped at job '{reader}': these went back: {root}")
    expect(dialog.get_by_test_id("change-send")).to_be_disabled()
    alert.get_by_role("button", name="Refresh preview").click()
    plan = dialog.get_by_role("table", name="Jobs that go back, in this order")
    expect(plan.get_by_role("row").filter(has_text="already there")).to_contain_text(root)
    dialog.get_by_role("button", name="Take 1 job back", exact=True).click()
    done(dialog)
    assert [world.store.head(job).epoch for job in (root, reader)] == [2, 2]


# ---- two people


def test_protected_job_takes_one_person_who_asks_and_another_who_approves(visitors: Visitors, world: World) -> None:
    job = "trials.guarded"
    protect(visitors("admin"), job)
    assert world.store.head(job).protected
    asking = visitors("user")
    dialog = begin(asking, job, "Rewind")
    dialog.get_by_label("Keep runs up to and including").select_option("3")
    told(dialog)
    confirm(dialog, job, "Request: rewind to run 3")
    done(dialog)
    close(dialog)
    epoch = world.store.head(job).epoch
    mine = asking.page.get_by_test_id("request").filter(has_text="Rewind to run 3")
    expect(mine.get_by_role("button", name="Withdraw")).to_be_visible()
    expect(mine.get_by_role("button", name="Approve")).to_have_count(0)

    page = visitors("op").open(job=job)
    page.get_by_test_id("request").get_by_role("button", name="Approve").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text(WHY)
    dialog.get_by_role("button", name="Rewind to run 3", exact=True).click()

    expect(done(dialog)).to_contain_text("Requested by user, approved by op.")
    head = world.store.head(job)
    assert (head.epoch, head.contexts["raw"].run.number, head.protected) == (epoch + 1, 3, True)


def test_request_is_turned_down_with_a_reason(visitors: Visitors, world: World) -> None:
    job = "trials.turned_down"
    protect(visitors("admin"), job)
    dialog = begin(visitors("user"), job, "Reset")
    told(dialog)
    confirm(dialog, job, "Request: reset the job")
    done(dialog)
    epoch = world.store.head(job).epoch

    page = visitors("op").open(job=job)
    page.get_by_test_id("request").get_by_role("button", name="Reject").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_role("textbox", name="Reason").fill("the month is closed")
    dialog.get_by_role("button", name="Reject", exact=True).click()

    done(dialog)
    assert world.store.head(job).epoch == epoch
    assert [event["kind"] for event in world.store.events(job)][-1] == "reject"


def protect(come: Visit, job: str) -> None:
    dialog = begin(come, job, "Protect")
    dialog.get_by_role("textbox", name="Reason").fill("money")
    dialog.get_by_role("button", name="Protect", exact=True).click()
    done(dialog)


@pytest.mark.parametrize(("user", "sees_the_item", "may_approve"), [("admin", True, True), ("viewer", False, False)])
def test_damaged_request_is_shown_beside_one_that_can_be_approved(
    visitors: Visitors, user: str, sees_the_item: bool, may_approve: bool
) -> None:
    page = visitors(user).open(job="trials.asked")

    damaged, sound = page.get_by_test_id("damaged-request"), page.get_by_test_id("request")
    expect(damaged.get_by_text("is damaged", exact=False).first).to_be_visible()
    expect(damaged.get_by_role("button")).to_have_count(0)
    assert damaged.inner_text().count("Ask for the change anew") == 1
    assert ("EVENT" in damaged.inner_text()) is sees_the_item
    expect(sound).to_contain_text("Requested by ann")
    expect(sound.get_by_role("button", name="Approve")).to_have_count(int(may_approve))


def test_second_of_two_who_change_at_once_is_shown_what_the_first_did(visitors: Visitors, world: World) -> None:
    job = "trials.raced"
    first, second = visitors("admin"), visitors("user")
    second.expected.add(409)
    early, late = begin(first, job, "Rewind"), begin(second, job, "Reset")
    early.get_by_label("Keep runs up to and including").select_option("1")
    told(early)
    told(late)
    confirm(early, job, "Rewind to run 1")
    done(early)
    version = world.store.head(job).version

    confirm(late, job, "Reset the job")

    alert = late.get_by_role("alert").filter(has_text="The job has changed since your preview")
    expect(alert).to_contain_text(f"You previewed version {version - 1}; the job is now at version {version}.")
    expect(alert).to_contain_text("rewind to run 1")
    expect(alert).to_contain_text("admin")
    assert world.store.head(job).version == version
    alert.get_by_role("button", name="Refresh preview").click()
    expect(told(late)).to_contain_text(f"Based on version {version} of the job.")
    late.get_by_role("button", name="Reset the job", exact=True).click()
    done(late)
    assert world.store.head(job).version == version + 1


# ---- who may not


@pytest.mark.parametrize("job", [RAW, "billing.invoices"])
def test_viewer_is_told_why_there_is_nothing_to_click(visitors: Visitors, job: str) -> None:
    page: Page = visitors("viewer").open(job=job)

    expect(page.get_by_text("You can view but not change this job.")).to_be_visible()
    expect(page.get_by_role("group", name="Change this job")).to_have_count(0)
    for name in ("Reset", "Rewind", "Set", "Undo", "Protect", "Share", "Hand over", "Delete", "Approve", "Reject"):
        button = page.get_by_test_id("bookmarks").get_by_role("button", name=re.compile(rf"^{name}\b"))
        expect(button).to_have_count(0)
