"""The page inside Airflow: in its navigation, in the tab of a DAG, in that of a task, without a reload between them."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from tests.ui import world as past
from tests.ui.conftest import Visitors

pytestmark = [pytest.mark.airflow, pytest.mark.slow, pytest.mark.xdist_group("page")]


def tab(page: Page) -> None:
    """Open the tab of this package."""
    page.get_by_role("link", name="Bookmarks", exact=True).click()
    expect(page.get_by_test_id("bookmarks")).to_be_visible()


def test_tabs_of_dag_and_task_show_their_own_jobs_without_a_reload(visitors: Visitors) -> None:
    page = visitors().open(search="flights.clean")
    page.evaluate("window.wasHereBefore = true")

    page.get_by_role("link", name="clean", exact=True).click()
    expect(page).to_have_url(re.compile("/dags/flights/tasks/clean"))
    tab(page)
    expect(page.get_by_role("heading", name=past.CLEAN)).to_be_visible()

    page.get_by_role("link", name="flights", exact=True).first.click()
    expect(page).to_have_url(re.compile("/dags/flights"))
    tab(page)
    expect(page.get_by_role("heading", name="3 jobs in this DAG")).to_be_visible()
    for job in (past.RAW, past.CLEAN, past.REPORT):
        expect(page.get_by_role("link", name=job, exact=True)).to_be_visible()
    expect(page.get_by_role("link", name=past.REWOUND, exact=True)).to_have_count(0)

    page.get_by_role("link", name=past.REPORT, exact=True).click()
    expect(page.get_by_role("heading", name=past.REPORT)).to_be_visible()
    expect(page).to_have_url(re.compile(r"/dags/flights/.*job=flights\.report"))

    page.go_back()
    expect(page.get_by_role("heading", name="3 jobs in this DAG")).to_be_visible()
    page.get_by_role("button", name="Browse").click()
    page.get_by_role("menuitem", name="Bookmarks").click()
    expect(page.get_by_role("heading", name=re.compile(r"^\d+ jobs$"))).to_be_visible()
    assert page.evaluate("window.wasHereBefore") is True


def test_tab_of_a_dag_is_there_after_a_reload(visitors: Visitors) -> None:
    come = visitors()
    page = come.open("dags/flights/plugin/bookmarks_dag")
    expect(page.get_by_role("heading", name="3 jobs in this DAG")).to_be_visible()

    page.reload()

    expect(page.get_by_role("heading", name="3 jobs in this DAG")).to_be_visible()


@pytest.mark.parametrize(
    ("path", "says"),
    [
        ("dags/without_jobs/plugin/bookmarks_dag", "No task in this DAG has a bookmark yet"),
        ("dags/without_jobs/tasks/nothing/plugin/bookmarks_task", "This task has no bookmark yet"),
    ],
)
def test_tab_without_a_job_says_how_one_comes_about(visitors: Visitors, path: str, says: str) -> None:
    page = visitors().open(path)

    expect(page.get_by_text(says)).to_be_visible()
    expect(page.get_by_text("BookmarkSparkSubmitOperator")).to_be_visible()
