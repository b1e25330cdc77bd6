"""What the page shows when an answer is none, when the network is gone, and in which zone it says times."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, Route, expect

from airflow_bookmarks.plugin.schemas.refusal import Refusal
from tests.ui import world as past
from tests.ui.conftest import Visitors
from tests.ui.visit import Visit
from tests.ui.world import World

pytestmark = [pytest.mark.airflow, pytest.mark.slow, pytest.mark.xdist_group("page")]

JOBS = re.compile(r"/bookmarks/api/v1/jobs(\?|$)")
HTML = "<html><body><h1>502 Bad Gateway</h1></body></html>"
NO_ROWS = '{"jobs": [{}], "total": 1, "offset": 0, "limit": 50}'


def answer(come: Visit, body: str, status: int = 200, kind: str = "application/json") -> None:
    """Let something else answer in place of the list of jobs."""
    come.page.route(JOBS, lambda route: route.fulfill(status=status, content_type=kind, body=body))


def shows_the_list(page: Page) -> None:
    expect(page.get_by_role("link", name=past.RAW, exact=True)).to_be_visible()


@pytest.mark.parametrize(
    ("body", "status", "kind", "title", "told"),
    [
        (HTML, 502, "text/html", "The server in front of Airflow can't reach it", "answered 502"),
        ('{"jobs": [', 200, "application/json", "The answer can't be read", "isn't JSON"),
        (HTML, 200, "text/html", "The answer can't be read", "login page"),
        ('{"jobs": {}, "total": 1}', 200, "application/json", "The answer is not what was expected", "(jobs)"),
    ],
)
def test_what_is_no_answer_is_told_in_words_and_can_be_asked_for_again(
    visitors: Visitors, body: str, status: int, kind: str, title: str, told: str
) -> None:
    come = visitors()
    come.expected.add(502)
    answer(come, body, status, kind)
    page = come.open()

    alert = page.get_by_role("alert")
    expect(alert).to_contain_text(title)
    expect(alert).to_contain_text(told)

    page.unroute(JOBS)
    alert.get_by_role("button", name="Try again").click()
    shows_the_list(page)


@pytest.mark.parametrize(
    ("error", "message", "title", "advice"),
    [
        (
            "TableMissingError",
            "there is no state store where the connection leads.",
            "The state store is missing",
            "create a new store with airflow-bookmarks init, or restore a lost one from a backup",
        ),
        (
            "StoreThrottledError",
            "the state store throttles requests.",
            "The state store throttles requests",
            "raise its capacity or limits",
        ),
    ],
)
def test_store_that_is_missing_or_throttles_is_told_in_words_with_what_to_do(
    visitors: Visitors, error: str, message: str, title: str, advice: str
) -> None:
    come = visitors()
    come.expected.add(503)
    answer(come, Refusal(error=error, message=message).model_dump_json(), 503)
    page = come.open()

    alert = page.get_by_role("alert")
    expect(alert).to_contain_text(title)
    expect(alert).to_contain_text(f"{message[0].upper()}{message[1:]}")
    expect(alert).to_contain_text(advice)
    expect(page.get_by_role("heading", level=1)).to_have_text("Jobs")

    page.unroute(JOBS)
    alert.get_by_role("button", name="Try again").click()
    shows_the_list(page)
    expect(alert).to_have_count(0)


def test_list_that_gets_no_newer_answer_says_how_old_it_is_until_one_comes(visitors: Visitors) -> None:
    come = visitors()
    come.expected.add(500)
    come.page.clock.install()
    page = come.open()
    shows_the_list(page)
    banner = page.get_by_role("status").filter(has_text="This is out of date")
    expect(banner).to_have_count(0)

    answer(come, Refusal(error="InternalError", message="an unexpected error").model_dump_json(), 500)
    page.clock.fast_forward("02:00")

    expect(banner).to_contain_text(re.compile(r"You are looking at data from 2 min ago \(.+\); newer requests"))
    expect(page.get_by_role("alert")).to_contain_text("An unexpected error.")
    shows_the_list(page)

    page.unroute(JOBS)
    page.get_by_role("button", name="Refresh").click()
    expect(banner).to_have_count(0)
    shows_the_list(page)


def test_part_that_can_not_be_drawn_is_loaded_anew_and_all_around_it_stays(visitors: Visitors) -> None:
    come = visitors()
    answer(come, NO_ROWS)
    page = come.open()

    alert = page.get_by_role("alert")
    expect(alert).to_contain_text("This page can't be shown")
    expect(page.get_by_role("button", name="Browse")).to_be_visible()
    assert come.said, "React logs what it has caught"
    come.said.clear()

    page.unroute(JOBS)
    alert.get_by_role("button", name="Load this part again").click()
    shows_the_list(page)


def test_state_that_the_page_does_not_know_is_its_word(visitors: Visitors) -> None:
    come = visitors()

    def with_another_state(route: Route) -> None:
        found = route.fetch()
        told = found.json()
        told["jobs"][0]["health"]["state"] = "SLEEPY"
        told["jobs"][0]["state"] = "DREAMING"
        route.fulfill(response=found, json=told)

    come.page.route(JOBS, with_another_state)
    page = come.open()

    for word in ("SLEEPY", "DREAMING"):
        expect(page.get_by_text(word, exact=True)).to_be_visible()


def test_page_says_that_the_browser_is_offline_and_goes_on_after_it(visitors: Visitors) -> None:
    come = visitors()
    page = come.open()
    shows_the_list(page)

    page.context.set_offline(True)
    banner = page.get_by_role("status").filter(has_text="This browser is offline")
    expect(banner).to_be_visible()
    shows_the_list(page)

    page.context.set_offline(False)
    expect(banner).to_have_count(0)
    page.get_by_role("button", name="Refresh").click()
    expect(page.get_by_text("Updated just now")).to_be_visible()
    come.said[:] = [text for text in come.said if "ERR_INTERNET_DISCONNECTED" not in text]


def test_change_that_is_sent_offline_ends_and_is_said_to_be_unknown(visitors: Visitors, world: World) -> None:
    job = "trials.refused"
    come = visitors()
    page = come.open(job=job)
    page.get_by_role("button", name="Protect", exact=True).click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Reason").fill("the network is about to go")
    page.context.set_offline(True)

    dialog.get_by_role("button", name="Protect", exact=True).click()

    expect(dialog.get_by_role("alert")).to_contain_text("We couldn't confirm whether the change was made")
    expect(dialog.get_by_role("alert")).to_contain_text("This browser is offline")
    assert not world.store.head(job).protected
    page.context.set_offline(False)
    come.said[:] = [text for text in come.said if "ERR_INTERNET_DISCONNECTED" not in text]


def test_times_are_of_the_zone_that_is_chosen_in_airflow(visitors: Visitors) -> None:
    come = visitors()
    come.page.add_init_script("""localStorage.timezone ??= '"Asia/Tokyo"'""")
    page = come.open(job=past.CLEAN)
    expect(page.locator("[data-testid=bookmarks] time[title$=' +09:00']").first).to_be_visible()
    where = page.get_by_role("table", name="Contexts of the job")
    expect(where).to_contain_text(re.compile(r"the newest is of [-\d]+ [:\d]+ \+09:00, since run"))
    expect(where).not_to_contain_text(re.compile(r"\dT\d"))

    # As Airflow's own pages tell each other of another choice.
    page.evaluate("""() => {
        localStorage.setItem("timezone", '"Asia/Kolkata"');
        window.dispatchEvent(new StorageEvent("local-storage", {key: "timezone"}));
    }""")

    expect(page.locator("[data-testid=bookmarks] time[title$=' +05:30']").first).to_be_visible()
    expect(page.locator("[data-testid=bookmarks] time[title$=' +09:00']")).to_have_count(0)
