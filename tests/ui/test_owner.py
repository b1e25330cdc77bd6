"""Whose a job is, changed by clicks: shared, taken back, handed over; nothing is chosen before a person does."""

from __future__ import annotations

import pytest
from playwright.sync_api import Locator, expect

from airflow_bookmarks.core.rules.owner import owners_in
from airflow_bookmarks.lifecycle.changes.sharing import share
from tests.ui.conftest import Visitors
from tests.ui.server import Server
from tests.ui.test_change import WHY, begin, close, confirm, done, protect, told
from tests.ui.world import World

# `tests/plugin/routes/test_ownership.py` asks the same of the routes
pytestmark = [pytest.mark.thorough, pytest.mark.airflow, pytest.mark.slow, pytest.mark.xdist_group("page")]


def type_dag(dialog: Locator, dag: str) -> None:
    dialog.get_by_label("DAG").first.fill(dag)


def test_job_is_shared_and_taken_back(visitors: Visitors, world: World, server: Server) -> None:
    job = "trials.shared"
    come = visitors()
    dialog = begin(come, job, "Share")
    expect(dialog.get_by_label("DAG").first).to_have_value("")
    type_dag(dialog, "flights")
    expect(told(dialog)).to_contain_text("none now; flights afterwards")
    assert world.store.head(job).shared_with == (), "a preview changes nothing"

    confirm(dialog, job, "Share with DAG flights")

    expect(done(dialog)).to_contain_text("may be run by 'flights' too")
    assert world.store.head(job).shared_with == ("flights",)
    assert ("bookmark.share", "admin", "trials") in server.audited()
    close(dialog)
    dialog = begin(come, job, "Stop sharing")
    expect(dialog.get_by_role("radio")).to_have_count(1)
    expect(dialog.get_by_role("radio", checked=True)).to_have_count(0)
    dialog.get_by_text("flights", exact=True).click()
    expect(told(dialog)).to_contain_text("flights now; none afterwards")
    confirm(dialog, job, "Stop sharing with DAG flights")
    done(dialog)
    assert world.store.head(job).shared_with == ()
    assert [(each["kind"], each["who"], each["why"]) for each in world.store.events(job)] == [
        ("share", "admin", WHY), ("unshare", "admin", WHY),
    ]  # fmt: skip


def test_job_is_handed_over_once_one_has_said_what_the_other_dag_is(visitors: Visitors, world: World) -> None:
    job = "trials.handed"
    dialog = begin(visitors(), job, "Hand over")
    type_dag(dialog, "billing")
    expect(dialog.get_by_role("radio", checked=True)).to_have_count(0)
    expect(dialog.get_by_test_id("change-preview")).to_contain_text("First choose what this DAG is.")
    expect(dialog.get_by_test_id("change-send")).to_be_disabled()

    dialog.get_by_text("Another DAG: ").click()

    expect(told(dialog)).to_contain_text("trials now; billing, trials afterwards")
    expect(told(dialog)).to_contain_text("Runs of DAG trials will be refused")
    confirm(dialog, job, "Hand over to DAG billing")
    expect(done(dialog)).to_contain_text("belongs to DAG 'billing'")
    assert world.store.head(job).owner == "billing"
    assert owners_in(world.store.index_entry(job)) == ("billing", "trials")


def test_second_of_two_who_share_at_once_is_shown_what_the_first_did(visitors: Visitors, world: World) -> None:
    job = "trials.owned"
    come = visitors()
    come.expected.add(409)
    dialog = begin(come, job, "Share")
    type_dag(dialog, "flights")
    told(dialog)
    share(world.store, job, "crew", reason="agreed", who="somebody else")

    confirm(dialog, job, "Share with DAG flights")

    alert = dialog.get_by_role("alert").filter(has_text="The job has changed since your preview")
    expect(alert).to_contain_text("Nothing was changed.")
    expect(alert).to_contain_text("share with DAG crew")
    expect(alert).to_contain_text("somebody else")
    assert world.store.head(job).shared_with == ("crew",)
    alert.get_by_role("button", name="Refresh preview").click()
    expect(told(dialog)).to_contain_text("crew now; crew, flights afterwards")
    dialog.get_by_role("button", name="Share with DAG flights", exact=True).click()
    done(dialog)
    assert world.store.head(job).shared_with == ("crew", "flights")


def test_dag_that_is_not_there_is_pointed_out_and_what_is_so_already_is_refused(
    visitors: Visitors, world: World
) -> None:
    job = "trials.misspelt"
    come = visitors()
    come.expected.add(409)
    dialog = begin(come, job, "Share")
    type_dag(dialog, "fligths")
    expect(told(dialog)).to_contain_text("DAG fligths not found or not visible to you")

    type_dag(dialog, "trials")

    preview = dialog.get_by_test_id("change-preview")
    expect(preview).to_contain_text("may run it already. Nothing was changed.")
    expect(dialog.get_by_test_id("change-send")).to_be_disabled()
    assert world.store.events(job) == []


def test_protected_job_is_shared_by_two_people(visitors: Visitors, world: World) -> None:
    job = "trials.shared_by_two"
    protect(visitors("admin"), job)
    dialog = begin(visitors("user"), job, "Share")
    type_dag(dialog, "flights")
    expect(told(dialog)).to_contain_text("The job is protected")
    confirm(dialog, job, "Request: share with DAG flights")
    done(dialog)
    assert world.store.head(job).shared_with == ()

    page = visitors("op").open(job=job)
    page.get_by_test_id("request").get_by_role("button", name="Approve").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text(f"DAG flights will be allowed to run job {job} too.")
    dialog.get_by_role("button", name="Share the job with DAG flights", exact=True).click()

    expect(done(dialog)).to_contain_text("Requested by user, approved by op.")
    assert world.store.head(job).shared_with == ("flights",)
