"""The page of one job: where it stands, its runs, charts, events, graph, and what it says when something is wrong."""

from __future__ import annotations

import json
import os
import re
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from playwright.sync_api import Locator, Page, expect

from airflow_bookmarks.core.text.instant import utc_now
from airflow_bookmarks.files.local import LocalFileSystem
from airflow_bookmarks.lifecycle.maintenance.transfer.importing import import_
from airflow_bookmarks.lifecycle.run.enabled import ActiveRun
from airflow_bookmarks.sources.delta.position import DeltaRecipe
from airflow_bookmarks.sources.delta.source import DeltaSource
from airflow_bookmarks.sources.files.options import FileOptions
from airflow_bookmarks.sources.files.planner import FileSource
from airflow_bookmarks.testing.memory import memory_store
from tests.sources.delta.regions import put, read_by_region
from tests.ui import world as past
from tests.ui.conftest import Visitors
from tests.ui.world import World

pytestmark = [pytest.mark.airflow, pytest.mark.slow, pytest.mark.xdist_group("page")]


def open_tab(page: Page, name: str) -> Locator:
    """Open a tab by a click; return what is in it."""
    page.get_by_role("tab", name=name).click()
    panel = page.get_by_role("tabpanel", name=name)
    expect(panel).to_be_visible()
    return panel


def table(page: Page, caption: str) -> Locator:
    return page.get_by_role("table", name=caption)


# ---- export


def test_export_saves_a_document_that_another_store_takes(visitors: Visitors, world: World, tmp_path: Path) -> None:
    job = past.ODD[0]
    page = visitors().open(job=job)
    with page.expect_download() as saved:
        page.get_by_role("button", name="Export", exact=True).click()
    saved.value.save_as(tmp_path / "saved.json")

    assert saved.value.suggested_filename == f"{job}.bookmark.json"
    with memory_store() as other:
        import_(other, json.loads((tmp_path / "saved.json").read_text()), who="uma", reason="a test")
        assert other.head(job).contexts == world.store.head(job).contexts


def test_export_that_is_refused_says_why(visitors: Visitors) -> None:
    come = visitors()
    come.expected.add(409)
    refusal = {"error": "ExportRefusedError", "message": "it is too large. Nothing was handed out."}
    come.page.route("**/export", lambda route: route.fulfill(status=409, json=refusal))
    page = come.open(job=past.CLEAN)
    page.get_by_role("button", name="Export", exact=True).click()
    expect(page.get_by_role("alert").filter(has_text="it is too large")).to_be_visible()


# ---- overview


def test_overview_has_each_context_with_where_it_stands(visitors: Visitors) -> None:
    page = visitors().open(job=past.CLEAN)

    contexts = table(page, "Contexts of the job")
    expect(contexts.get_by_role("row", name=re.compile("flights upstream|^flights"))).to_contain_text(
        "up to run 25 of flights.raw"
    )
    expect(contexts.get_by_role("row", name=re.compile("^people"))).to_contain_text("every file that was found")
    expect(table(page, "Consumers of the job").get_by_role("link", name=past.REPORT)).to_be_visible()


def test_what_is_missing_in_a_sequence_stands_below_its_context_and_at_the_run(
    visitors: Visitors, world: World
) -> None:
    job = "trials.gaps"
    for number in (1, 4):
        (world.folder(job) / f"part-9000{number}.csv").touch()
    options = FileOptions(sequence=r"part-9(?P<seq>\d{4})", on_unmatched="skip")
    world.run(job, {"raw": FileSource(LocalFileSystem(), [str(world.folder(job))], options)})

    page = visitors().open(job=job)

    row = table(page, "Contexts of the job").get_by_role("row", name=re.compile("^raw"))
    expect(row).to_contain_text("the highest is 4")
    expect(row).to_contain_text("2 of 1 to 4 are missing: 2 to 3")
    open_tab(page, "Runs")
    table(page, "Runs of the job").get_by_role("button", name=re.compile(r"^5\s*open")).click()
    expect(page.get_by_role("dialog")).to_contain_text("2 of 1 to 4 missing: 2 to 3")


@pytest.mark.parametrize(
    ("rule", "says"),
    [
        (None, "Watermarks are times."),
        (r"(?P<seq>\d{4})-\d{2}-\d{2}", "Watermarks are numbers"),
        ("path", "Watermarks are neither times nor numbers"),
    ],
)
def test_timeline_measures_watermarks_by_their_order(
    visitors: Visitors, world: World, rule: str | None, says: str
) -> None:
    job = f"trials.order-{'number' if rule else 'time'}" if rule != "path" else "trials.order-path"
    for number in (1, 2):
        # By its looks each of these names is a time.
        (world.folder(job) / f"201{number}-01-31T00:00:00Z").touch()
        options = FileOptions(sequence=rule)
        world.run(job, {"raw": FileSource(LocalFileSystem(), [str(world.folder(job))], options)})

    page = visitors().open(job=job)
    panel = open_tab(page, "Runs")

    expect(panel.get_by_text(says)).to_be_visible()


def test_next_run_and_lag_are_looked_up_when_one_asks(visitors: Visitors) -> None:
    page = visitors().open(job=past.LAGGING)
    expect(table(page, "What the next run would read")).to_have_count(0)

    for region in ("Next run", "Lag"):
        page.get_by_role("button", name=f"Check now: {region}").click()

    expect(table(page, "What the next run would read")).to_contain_text("flights.raw, runs 12 to 25")
    expect(page.get_by_role("tabpanel").get_by_text("LAGGING").first).to_be_visible()


def test_what_the_next_run_leaves_out_is_told_by_reason_with_examples(
    visitors: Visitors, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(world, "now", utc_now())  # other tests let time go by, and the server looks by the real one
    job = "trials.left-out"
    folder = world.folder(job)
    world.arrive(folder)
    options = FileOptions(late_after=timedelta(hours=1))
    world.run(job, {"raw": FileSource(LocalFileSystem(), [str(folder)], options)})
    late = folder / "late.csv"
    late.touch()
    os.utime(late, (1_300_000_000, 1_300_000_000))
    page = visitors().open(job=job)

    page.get_by_role("button", name="Check now: Next run").click()

    row = table(page, "What the next run would leave out").get_by_role("row", name=re.compile("^late"))
    expect(row).to_contain_text("Use a longer late_after.")
    row.get_by_role("button", name="Examples: late, raw").click()
    expect(row).to_contain_text(str(late))


@pytest.mark.parametrize(
    ("job", "says"),
    [
        (past.RUNNING, "Held by"),
        (past.EXPIRED, "Was held by"),
        (past.DUE, "publish"),
        (past.PROTECTED, "protected"),
        (past.EMPTIED, "No context has a position"),
        (past.PAUSED, "after run 1, up to run 3"),
    ],
)
def test_page_says_what_is_special_about_a_job(visitors: Visitors, job: str, says: str) -> None:
    page = visitors().open(job=job)

    expect(page.get_by_role("heading", name=job)).to_be_visible()
    expect(page.get_by_text(says).first).to_be_visible()


def test_damage_is_said_in_words(visitors: Visitors, world: World) -> None:
    come = visitors()
    come.expected.add(500)
    with world.damaged():
        page = come.open(job=past.DAMAGED)

        expect(page.get_by_role("alert")).to_contain_text("the item HEAD of the state table can't be read")


def test_job_that_there_is_not_is_said_in_words(visitors: Visitors) -> None:
    come = visitors()
    come.expected.add(404)
    page = come.open(job="nobody.knows")

    expect(page.get_by_role("alert")).to_contain_text("There is no such job")


# ---- runs


def test_runs_have_failed_and_undone_ones_among_them(visitors: Visitors, world: World) -> None:
    page = visitors().open(job=past.CLEAN)
    open_tab(page, "Runs")

    runs = table(page, "Runs of the job")
    living = sum(1 for _ in world.store.runs(past.CLEAN))
    expect(runs.get_by_role("row")).to_have_count(living + 1)
    expect(runs.get_by_text("UNDONE", exact=True)).to_have_count(3)
    expect(page).to_have_url(re.compile("tab=runs"))
    page.reload()
    expect(runs.get_by_role("row")).to_have_count(living + 1)


def test_failed_attempt_says_why_and_links_to_its_log(visitors: Visitors) -> None:
    page = visitors().open(job=past.RAW, tab="runs")

    failed = table(page, "Runs of the job").get_by_role("row").filter(has_text="SlowDown")

    expect(failed).to_have_count(3)
    expect(failed.first.get_by_role("link", name=re.compile("^Log of run"))).to_have_attribute(
        "href", re.compile("/dags/flights/runs/.+/tasks/raw")
    )


def test_run_opens_with_its_files_and_the_address_keeps_it(visitors: Visitors) -> None:
    page = visitors().open(job=past.RAW, tab="runs")

    table(page, "Runs of the job").get_by_role("button", name=re.compile(r"^25\s*open")).click()

    drawer = page.get_by_role("dialog")
    expect(drawer).to_contain_text("part-")
    expect(page).to_have_url(re.compile("run=25"))
    page.keyboard.press("Escape")
    expect(drawer).to_have_count(0)


def test_run_says_how_it_is_replayed_and_one_that_was_undone_does_not(visitors: Visitors) -> None:
    page = visitors().open(job=past.CLEAN, tab="runs")
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    drawer = page.get_by_role("dialog")
    replay = drawer.locator("section").filter(has=page.get_by_role("heading", name="Replay", exact=True))

    table(page, "Runs of the job").get_by_role("button", name=re.compile(r"^25\s*open")).click()

    expect(replay).to_contain_text("replaces this run's output")
    expect(replay.get_by_role("link", name="task clean")).to_have_attribute(
        "href", re.compile(r"/dags/flights/runs/scheduled__.+/tasks/clean")
    )
    replay.get_by_role("button", name="Copy command").click()
    assert page.evaluate("navigator.clipboard.readText()") == f"airflow-bookmarks replay --run 25 {past.CLEAN}"
    page.keyboard.press("Escape")
    expect(drawer).to_have_count(0)
    undone = table(page, "Runs of the job").get_by_role("row").filter(has_text="UNDONE").first
    undone.get_by_role("button", name=re.compile("open")).click()
    expect(drawer).to_contain_text("The files of an undone run are not listed.")
    expect(replay).to_have_count(0)


def test_run_that_was_replayed_says_so_and_its_number_stays(visitors: Visitors, world: World) -> None:
    job = world.small("trials.replayed", runs=2)
    before = world.store.head(job)
    world.replay(job, 1)
    page = visitors().open(job=job, tab="runs")

    line = table(page, "Runs of the job").get_by_role("row").nth(2)
    expect(line).to_contain_text("replayed")
    expect(line).to_contain_text("PUBLISHED")
    expect(table(page, "Runs of the job").get_by_role("row")).to_have_count(3)
    expect(open_tab(page, "Events")).to_contain_text("Replayed run 1")
    assert world.store.head(job).contexts == before.contexts


def test_run_over_a_table_lists_its_data_files_or_says_why_not(visitors: Visitors, world: World) -> None:
    folder = world.root / "lake" / "orders"
    for number in (1, 2):
        write_deltalake(str(folder), pa.table({"id": [number]}), mode="append")
        run = ActiveRun.begin(world.store, "shop.orders", world.identity("shop.orders"), world.environment())
        run.plan("orders", DeltaSource(DeltaRecipe(str(folder), "shop.orders"), "here", None, job="shop.orders"))
        run.commit()
    (newest,) = {str(path) for path in folder.glob("*.parquet")} - set(added_by(folder, 0))
    page = visitors().open(job="shop.orders", tab="runs")
    drawer = page.get_by_role("dialog")

    table(page, "Runs of the job").get_by_role("button", name=re.compile(r"^2\s*open")).click()
    expect(drawer.get_by_role("table", name="Files read by run 2")).to_contain_text(newest)
    page.keyboard.press("Escape")
    table(page, "Runs of the job").get_by_role("button", name=re.compile(r"^1\s*open")).click()

    expect(drawer).to_contain_text(
        "orders: this run's read of the table has no file list. What it read is shown above."
    )
    expect(drawer).not_to_contain_text("Something went wrong")


def test_partitions_are_looked_up_with_those_that_fail_first(visitors: Visitors, world: World) -> None:
    job, orders = "shop.by_region", str(world.root / "lake" / "by_region")
    put(orders, (1, "eu"), (2, "us"))
    read_by_region(world.store, job, orders, "us", identity=world.identity(job), environment=world.environment)
    page = visitors().open(job=job)

    page.get_by_role("button", name="Check now: Partitions").click()

    first = table(page, "Partitions of the job").get_by_role("row").nth(1)
    expect(first).to_contain_text("region='us'")
    expect(first).to_contain_text("us is wrong")


def added_by(folder: Path, version: int) -> list[str]:
    """Return the data files that a version of a Delta table has added."""
    lines = (folder / "_delta_log" / f"{version:020}.json").read_text().splitlines()
    return [str(folder / json.loads(line)["add"]["path"]) for line in lines if '"add"' in line]


def test_timeline_is_walked_by_arrow_keys(visitors: Visitors) -> None:
    page = visitors().open(job=past.CLEAN, tab="runs")
    rows = page.get_by_role("grid").locator("[role=row][tabindex]")
    rows.first.focus()

    page.keyboard.press("ArrowDown")

    expect(rows.nth(1)).to_be_focused()


def test_rewind_begins_at_a_run(visitors: Visitors) -> None:
    page = visitors().open(job=past.RAW, tab="runs")

    table(page, "Runs of the job").get_by_role("button", name="Rewind to here, run 20", exact=True).click()

    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_role("heading", name=f"Rewind {past.RAW}")).to_be_visible()
    expect(dialog.get_by_test_id("change-preview")).to_contain_text("5 runs: 21 to 25")
    expect(dialog.get_by_test_id("change-preview")).to_contain_text(f"{past.CLEAN} (has read up to run 25)")
    dialog.get_by_role("button", name="Cancel").click()
    expect(dialog).to_have_count(0)


# ---- the other tabs


def test_charts_have_the_same_as_tables(visitors: Visitors) -> None:
    page = visitors().open(job=past.RAW)
    panel = open_tab(page, "Charts")
    expect(panel.get_by_role("img").first).to_be_visible()

    panel.get_by_role("button", name="As a table").first.click()

    expect(panel.get_by_role("table").first.get_by_role("row")).to_have_count(25 + 3 + 1)  # with those that failed


def test_charts_are_named_say_what_is_unusual_and_mark_what_failed_or_went_back(visitors: Visitors) -> None:
    page = visitors().open(job=past.CLEAN, tab="charts")
    panel = page.get_by_role("tabpanel", name="Charts")
    figures = panel.get_by_role("figure")

    for title in ("Rows read", "Bytes read", "Files read", "Duration", "Rows per second", "Bytes per second"):
        figure = panel.get_by_role("figure", name=title, exact=True)
        expect(figure).to_contain_text(re.compile("Unusual: run|No run was unusual"))
        expect(figure.get_by_role("slider", name=f"Run shown for {title}")).to_be_visible()
    legend = panel.get_by_role("list", name="What the marks mean")
    expect(legend).to_contain_text("the median of the runs before")
    expect(legend).to_contain_text("an undone run")
    expect(legend).to_contain_text("a change by a person")
    expect(panel).to_contain_text("Changed: Rewound to run 10")
    lag = panel.get_by_role("figure", name="Lag of people", exact=True)
    expect(lag.locator("[data-mark=change]")).to_have_count(1)
    expect(lag.get_by_role("img")).not_to_contain_text("run ")  # by time, and not run by run

    panel.get_by_label("Context").select_option("people")
    expect(panel.get_by_role("figure", name="Lag of flights")).to_have_count(0)
    expect(figures.filter(has_text="in context people").first).to_be_visible()


def test_charts_mark_attempts_that_failed(visitors: Visitors) -> None:
    page = visitors().open(job=past.RAW, tab="charts")
    panel = page.get_by_role("tabpanel", name="Charts")

    expect(panel).to_contain_text("Failed or abandoned at least once: runs ")
    for title in ("Duration", "Lag"):
        failed = panel.get_by_role("figure", name=title, exact=True).locator("[data-mark=failed]")
        expect(failed).to_have_count(3)


def test_events_say_who_when_and_why(visitors: Visitors) -> None:
    page = visitors().open(job=past.CLEAN)
    open_tab(page, "Events")

    row = table(page, "Events of the job").get_by_role("row").nth(1)
    expect(row).to_contain_text("admin")
    expect(row).to_contain_text("months were read in the wrong time zone")
    expect(row).to_contain_text("1 to 2")


def test_graph_leads_to_the_jobs_around(visitors: Visitors) -> None:
    page = visitors().open(job=past.RAW)
    panel = open_tab(page, "Graph")
    expect(panel.get_by_role("link", name=past.LAGGING).first).to_be_visible()

    panel.get_by_role("link", name=past.REPORT, exact=True).last.click()

    expect(page.get_by_role("heading", name=past.REPORT)).to_be_visible()


def test_graph_names_a_source_by_the_end_of_its_path_and_in_full_in_its_tooltip(
    visitors: Visitors, world: World
) -> None:
    people = world.folder(past.CLEAN, "people")
    page = visitors().open(job=past.CLEAN)
    panel = open_tab(page, "Graph")

    box = panel.get_by_title(f"files:{people}", exact=True)

    expect(box).to_contain_text(f"…/{past.CLEAN}/people")
