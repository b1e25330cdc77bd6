"""A sharded job by clicks: one row, a page that leads to its shards, one reset and one rewind for all of them."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from airflow_bookmarks.core.rules.shard import shard_name
from tests.ui.conftest import SHARDS, Visitors
from tests.ui.server import Server
from tests.ui.test_change import WHY, begin, confirm, done, told
from tests.ui.world import World

# `tests/plugin/routes/test_sharded.py` asks the same of the routes
pytestmark = [pytest.mark.thorough, pytest.mark.airflow, pytest.mark.slow, pytest.mark.xdist_group("page")]

JOB = "trials.split"


def names(job: str) -> list[str]:
    return [shard_name(job, number) for number in range(SHARDS)]


def test_sharded_job_is_one_row_and_leads_to_its_shards_and_back(visitors: Visitors) -> None:
    page = visitors("viewer").open(search=JOB)
    row = page.get_by_role("row").filter(has=page.get_by_role("link", name=JOB, exact=True))
    expect(row).to_contain_text(f"virtual shards: {SHARDS}")
    expect(page.get_by_role("link", name=names(JOB)[0])).to_have_count(0)

    row.get_by_role("link", name=JOB, exact=True).click()

    shards = page.get_by_role("region", name="Virtual shards of the job")
    for name in names(JOB):
        expect(shards.get_by_role("link", name=name)).to_be_visible()
    expect(page.get_by_text("You can view but not change this job.")).to_be_visible()
    shards.get_by_role("link", name=names(JOB)[1]).click()
    expect(page.get_by_role("heading", name=names(JOB)[1])).to_be_visible()
    expect(page.get_by_role("tab", name="Runs")).to_be_visible()
    page.get_by_role("link", name=JOB, exact=True).click()
    expect(page.get_by_role("heading", name=JOB, exact=True)).to_be_visible()


def test_whole_job_is_reset_in_all_of_its_shards(visitors: Visitors, world: World, server: Server) -> None:
    job = "trials.split_reset"
    dialog = begin(visitors(), job, "Reset")
    preview = told(dialog)
    expect(preview).to_contain_text(f"{SHARDS} shards")
    expect(preview).to_contain_text(f"{2 * SHARDS} runs")
    for name in names(job):
        expect(preview.get_by_role("cell", name=name)).to_be_visible()
    assert all(world.store.head(name).epoch == 1 for name in names(job)), "a preview changes nothing"

    confirm(dialog, job, "Reset all shards")

    expect(done(dialog)).to_contain_text(f"is done in {SHARDS} of its virtual shards: {2 * SHARDS} runs undone")
    for name in names(job):
        (event,) = world.store.events(name)
        assert (event["kind"], event["who"], event["why"]) == ("reset", "admin", WHY)
        assert world.store.head(name).contexts == {}
    assert ("bookmark.reset", "admin", "trials") in server.audited()


def test_whole_job_is_rewound_to_what_one_types(visitors: Visitors, world: World) -> None:
    job = "trials.split_rewind"
    at = next(iter(world.store.runs(names(job)[-1]))).committed_at or ""
    dialog = begin(visitors(), job, "Rewind")
    point = dialog.get_by_label("Keep runs up to and including")
    expect(point).to_have_value("")
    expect(dialog.get_by_test_id("change-preview")).to_contain_text("First choose a run id or a time.")
    expect(dialog.get_by_test_id("change-send")).to_be_disabled()

    point.fill(at)

    expect(told(dialog)).to_contain_text("1 run")
    confirm(dialog, job, f"Rewind all shards to {at}")
    done(dialog)
    assert world.store.head(names(job)[-1]).contexts["raw"].run.number == 1


def test_point_that_is_none_is_refused_before_anything_is_changed(visitors: Visitors, world: World) -> None:
    come = visitors()
    come.expected.add(422)
    dialog = begin(come, JOB, "Rewind")

    dialog.get_by_label("Keep runs up to and including").fill("3")

    expect(dialog.get_by_test_id("change-preview")).to_contain_text("Nothing was read or changed.")
    expect(dialog.get_by_test_id("change-send")).to_be_disabled()
    assert all(world.store.events(name) == [] for name in names(JOB))


def test_shards_offer_no_change_of_their_owner_alone(visitors: Visitors) -> None:
    come = visitors()
    page = come.open(job=names(JOB)[0])
    changes = page.get_by_role("group", name="Change this job")
    expect(changes.get_by_role("button", name="Reset")).to_be_visible()
    expect(changes.get_by_role("button", name="Share")).to_have_count(0)

    page = come.open(job=JOB)

    expect(changes.get_by_role("button")).to_have_text(["Reset", "Rewind", "Backfill", "Share", "Hand over"])
