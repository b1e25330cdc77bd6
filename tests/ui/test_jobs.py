"""The list of jobs: searched, sorted, filtered, page by page, and what stands there when there is nothing."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from playwright.sync_api import Locator, Page, expect

from airflow_bookmarks.core.text.instant import utc_now
from airflow_bookmarks.lifecycle.inspect.sharded_list import grouped
from airflow_bookmarks.lifecycle.inspect.status import bookmarks
from tests.ui import world as past
from tests.ui.conftest import Visitors
from tests.ui.visit import log_in_by_page
from tests.ui.world import World

pytestmark = [pytest.mark.airflow, pytest.mark.slow, pytest.mark.xdist_group("page")]

TABLE = "Jobs and their bookmarks"
ALL = 100  # rows a page: with the jobs that other tests have made there are more than the 50 of a page by default


def rows(page: Page) -> Locator:
    """Return the rows of the list, without its head."""
    return page.get_by_role("table", name=TABLE).get_by_role("row").filter(has=page.get_by_role("cell"))


def listed(world: World) -> list[str]:
    """Return the jobs that are there now, a sharded one as one: another test may have deleted one."""
    return [each["job"] for each in grouped(bookmarks(world.store))]


def row(page: Page, job: str) -> Locator:
    return rows(page).filter(has=page.get_by_role("link", name=job, exact=True))


def test_page_sends_whoever_is_logged_out_to_the_login_and_comes_back(visitors: Visitors) -> None:
    come = visitors(None)
    come.expected.add(401)
    come.page.goto(f"{come.server.url}plugin/bookmarks")
    expect(come.page).to_have_url(re.compile(r"/auth/login\?next="))

    log_in_by_page(come, "admin")

    expect(come.page).to_have_url(re.compile(r"/plugin/bookmarks$"))
    expect(come.page.get_by_role("link", name=past.RAW, exact=True)).to_be_visible()


def test_page_is_found_in_the_navigation(visitors: Visitors) -> None:
    come = visitors()
    come.page.goto(come.server.url)

    come.page.get_by_role("button", name="Browse").click()
    come.page.get_by_role("menuitem", name="Bookmarks").click()

    expect(come.page.get_by_role("heading", level=1)).to_have_text(re.compile(r"\d+ jobs"))


def test_list_has_each_job_with_its_state(visitors: Visitors, world: World) -> None:
    page = visitors().open(limit=ALL)

    expect(rows(page)).to_have_count(len(listed(world)))
    for job, state in (
        (past.RAW, "IDLE"),
        (past.RUNNING, "RUNNING"),
        (past.EXPIRED, "EXPIRED"),
        (past.DUE, "DUE"),
    ):
        expect(row(page, job)).to_contain_text(state)
    expect(row(page, past.REWOUND)).to_contain_text("REWOUND")
    expect(row(page, past.LAGGING)).to_contain_text("LAGGING")
    expect(row(page, past.PROTECTED).get_by_role("img", name="protected")).to_be_visible()


def test_failed_job_stands_first_with_its_error_and_since_when(visitors: Visitors) -> None:
    page = visitors().open(limit=ALL)
    first = rows(page).first
    expect(first).to_contain_text("FAILED")
    failed = row(page, past.FAILED)
    expect(failed).to_contain_text("the last try failed: Py4JJavaError: Job aborted due to stage failure")
    expect(failed.get_by_role("time").first).to_be_visible()

    page.get_by_role("link", name=past.FAILED, exact=True).click()

    told = page.get_by_role("banner").or_(page.locator("header")).get_by_role("status")
    expect(told.first).to_contain_text("FAILED")
    expect(told.first).to_contain_text("ExecutorLostFailure (exit code 137)")
    expect(told.first.get_by_role("link", name="Task log")).to_be_visible()


def test_job_that_is_silent_for_too_long_is_late_and_says_how_often_it_commits(
    visitors: Visitors, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(world, "now", utc_now() - timedelta(days=3))
    job, why = "trials.silent", re.compile("its last commit was 2 d.* ago; it usually commits every 2 h")
    for _ in range(4):
        world.arrive(world.folder(job))
        world.run(job, minutes=0.2)
        world.wait(hours=2)
    page = visitors().open(limit=ALL)

    late = row(page, job)
    expect(late).to_contain_text(why)
    late.get_by_role("button", name="LATE", exact=True).hover()
    expect(page.get_by_role("tooltip").filter(has_text="no commit for longer than usual")).to_be_visible()
    late.get_by_role("link", name=job, exact=True).click()

    told = page.locator("header").filter(has_text=job).get_by_role("status").first
    expect(told).to_contain_text("LATE")
    expect(told).to_contain_text(why)


def test_count_of_a_health_shows_these_jobs_alone_and_the_address_keeps_it(visitors: Visitors) -> None:
    page = visitors().open(limit=ALL)
    chip = page.get_by_role("button", name=re.compile(r"^FAILED \d+$"))
    count = int((chip.text_content() or "").split()[-1])

    chip.click()

    expect(rows(page)).to_have_count(count)
    expect(page).to_have_url(re.compile("health=FAILED"))
    expect(chip).to_have_attribute("aria-pressed", "true")
    chip.click()
    expect(page).not_to_have_url(re.compile("health="))


def test_damaged_job_stands_in_the_list_among_the_others(visitors: Visitors, world: World) -> None:
    with world.damaged():
        page = visitors().open(limit=ALL)

        expect(row(page, past.DAMAGED)).to_contain_text("DAMAGED")
        expect(row(page, past.DAMAGED)).to_contain_text("'fence'")
        expect(row(page, past.RAW)).to_contain_text("IDLE")


@pytest.mark.parametrize("job", past.ODD)
def test_job_with_an_odd_name_opens_from_the_list(visitors: Visitors, job: str) -> None:
    page = visitors().open(limit=ALL)

    page.get_by_role("link", name=job, exact=True).click()

    expect(page.get_by_role("heading", name=job)).to_be_visible()


def test_search_finds_by_job_dag_and_task_and_the_address_keeps_it(visitors: Visitors) -> None:
    page = visitors().open(limit=ALL)

    page.get_by_role("searchbox").fill("LEDGER")

    expect(rows(page)).to_have_count(1)
    expect(page.get_by_role("heading", level=1)).to_have_text("1 job found")
    expect(page).to_have_url(re.compile("search=LEDGER"))
    page.reload()
    expect(rows(page)).to_have_count(1)
    expect(page.get_by_role("searchbox")).to_have_value("LEDGER")


def test_slash_leads_to_the_search(visitors: Visitors) -> None:
    page = visitors().open(limit=ALL)
    expect(row(page, past.RAW)).to_be_visible()

    page.keyboard.press("/")

    expect(page.get_by_role("searchbox")).to_be_focused()
    expect(page.get_by_role("searchbox")).to_have_value("")


def test_filter_shows_the_jobs_of_one_state(visitors: Visitors) -> None:
    page = visitors().open(limit=ALL)

    page.get_by_label("Filter by state").select_option("EXPIRED")

    expect(rows(page)).to_have_count(1)
    expect(row(page, past.EXPIRED)).to_be_visible()
    expect(page).to_have_url(re.compile("state=EXPIRED"))


def test_what_matches_nothing_says_so_and_is_cleared_by_a_click(visitors: Visitors, world: World) -> None:
    page = visitors().open(search="nothing of the kind", state="NEW", limit=ALL)
    expect(page.get_by_text("No matching jobs")).to_be_visible()

    page.get_by_role("button", name="Clear search and filters").click()

    expect(rows(page)).to_have_count(len(listed(world)))


def test_click_on_a_head_sorts_and_a_second_one_turns_it_round(visitors: Visitors) -> None:
    page = visitors().open(limit=ALL)
    runs = page.get_by_role("columnheader", name="Runs")

    page.get_by_role("button", name="Sort by Runs").click()
    expect(runs).to_have_attribute("aria-sort", "descending")
    expect(rows(page).first).to_contain_text("flights.")

    page.get_by_role("button", name="Sort by Runs").click()
    expect(runs).to_have_attribute("aria-sort", "ascending")
    expect(rows(page).last).to_contain_text("flights.")
    expect(page).to_have_url(re.compile("sort=run_number"))


def test_pages_turn_and_the_address_keeps_the_page(visitors: Visitors, world: World) -> None:
    page = visitors().open(limit=25)
    expect(rows(page)).to_have_count(25)

    page.get_by_role("button", name="Next page").click()

    expect(rows(page)).to_have_count(min(25, len(listed(world)) - 25))
    expect(page).to_have_url(re.compile("page=2"))
    page.go_back()
    expect(rows(page)).to_have_count(25)


def test_page_that_the_list_has_no_more_says_so(visitors: Visitors) -> None:
    page = visitors().open(page=7, limit=ALL)
    expect(page.get_by_text("Page 7 is out of range")).to_be_visible()

    page.get_by_role("button", name="Show the first page").click()

    expect(row(page, past.RAW)).to_be_visible()


def test_requests_of_all_jobs_are_one_list_and_lead_to_their_cards(visitors: Visitors) -> None:
    page = visitors().open(limit=ALL)

    page.get_by_role("navigation", name="Lists").get_by_role("link", name="Requests").click()

    line = page.get_by_role("table", name="Requests for approval").get_by_role("row").filter(has_text=past.PROTECTED)
    expect(line).to_contain_text("can approve")
    line.get_by_role("link", name=past.PROTECTED).click()
    expect(page.locator("[data-testid=request][aria-current=true]")).to_be_visible()
    page.get_by_role("link", name="All requests").click()
    expect(line).to_be_visible()


def test_way_back_from_a_job_leads_to_the_list_that_one_came_from(visitors: Visitors, world: World) -> None:
    trials = sum(job.startswith("trials.") for job in listed(world))
    page = visitors().open(search="trials", sort="-job", limit=ALL)
    expect(rows(page)).to_have_count(trials)
    page.get_by_role("link", name="trials.held", exact=True).click()
    expect(page.get_by_role("heading", name="trials.held")).to_be_visible()

    page.go_back()

    expect(rows(page)).to_have_count(trials)
    expect(page.get_by_role("searchbox")).to_have_value("trials")
