"""Kinds of sink that an installed package names by an entry point: a worker settles what their runs left open."""

from __future__ import annotations

from pathlib import Path

import pytest

from airflow_bookmarks.core.run import RunState
from airflow_bookmarks.sinks.registry import GROUP
from airflow_bookmarks.store.backends.sqlite import SqliteTable
from airflow_bookmarks.store.bookmark_store import BookmarkStore
from tests.installed import install, printed
from tests.lifecycle.protocol.test_adopt import begin, fence_of, plan_and_place
from tests.lifecycle.rows import Rows
from tests.lifecycle.shop import Shop

MODULE = """
from pathlib import Path
from tests.lifecycle.rows import Rows

class Installed(Rows):
    def __init__(self):
        super().__init__(Path(__file__).with_name("rows.db"))

class Files(Installed):
    kind = "files"

class Nameless(Installed):
    kind = None
"""
CODE = """
import logging, sys
from pathlib import Path
from airflow_bookmarks.core.errors import SinkUnknownError
from airflow_bookmarks.core.rules.territory import Territory
from airflow_bookmarks.core.run import OutputEntry, RunKey
from airflow_bookmarks.lifecycle.changes.change import Change
from airflow_bookmarks.lifecycle.changes.preview import preview
from airflow_bookmarks.lifecycle.inspect.runs import history
from airflow_bookmarks.lifecycle.maintenance.doctor import examine
from airflow_bookmarks.lifecycle.run.empty import commit_empty
from airflow_bookmarks.sinks.registry import SINKS
from airflow_bookmarks.sinks.staging import StagingRequest
from airflow_bookmarks.store.backends.sqlite import SqliteTable
from airflow_bookmarks.store.bookmark_store import BookmarkStore
from tests.lifecycle.shop import Shop
"""


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """Return a folder for installed packages, with their module."""
    site = tmp_path / "site"
    site.mkdir()
    (site / "their_sinks.py").write_text(MODULE)
    return site


def told(site: Path, code: str) -> list[str]:
    return printed(site, CODE + code)


def test_sink_of_an_installed_package_is_known_once_it_is_asked_for(site: Path) -> None:
    install(site, GROUP, "theirs", rows="their_sinks:Installed")
    code = """
print("their_sinks" in sys.modules)
sink = SINKS.find("rows")
print(sink.kind, type(sink).__module__, sink is SINKS.find_committing("rows"), SINKS.find_staged("rows"))
"""
    assert told(site, code) == ["False", "rows their_sinks True None"]


def test_sink_of_this_package_is_not_replaced(site: Path) -> None:
    install(site, GROUP, "theirs", files="their_sinks:Files")
    code = 'print(type(SINKS.find("files")).__name__, "their_sinks" in sys.modules, repr(SINKS.why_unknown("files")))'
    assert told(site, code) == ["FilesSink False ''"]


def test_name_that_no_package_has_stays_unknown(site: Path) -> None:
    assert told(site, 'print(SINKS.find("absent"), repr(SINKS.why_unknown("absent")))') == ["None ''"]


BROKEN = [
    ("no_such_module:Sink", "(no_such_module:Sink) can't be loaded: ModuleNotFoundError: No module named"),
    ("their_sinks:Nameless", "(their_sinks:Nameless) is no class of a kind with that name."),
    ("their_sinks:Path", "(their_sinks:Path) is no class of a kind with that name."),
]


@pytest.fixture(params=[*BROKEN, None], ids=["absent", "nameless", "no sink", "doubled"])
def why(site: Path, request: pytest.FixtureRequest) -> str:
    """Install an entry point that gives no sink; return what is to be said of it."""
    if request.param is None:
        install(site, GROUP, "theirs", rows="their_sinks:Installed")
        install(site, GROUP, "again", rows="their_sinks:Files")
        what = "(their_sinks:Files, their_sinks:Installed) is that of several packages: remove all but one."
    else:
        value, what = request.param
        install(site, GROUP, "broken", rows=value)
    return f"The entry point 'rows' of the group '{GROUP}' {what}"


def test_entry_point_that_gives_no_sink_is_named_where_it_is_needed(site: Path, why: str) -> None:
    code = """
for need in (
    lambda: SINKS.stage(Territory("test", "copy"), RunKey(1, 1), "out", StagingRequest("rows", "dw.clean")),
    lambda: SINKS.sweep(Territory("test", "copy"), "rows:dw/copy", 1),
):
    try:
        need()
    except SinkUnknownError as error:
        print(error)
print(SINKS.why_not_clean(OutputEntry("rows", "dw.clean", "", {}, commits_by_itself=True)))
print(SINKS.why_not_replay(OutputEntry("rows", "dw.clean", "dw/copy", {})))
"""
    *errors, not_clean, not_again = told(site, code)
    assert len(errors) == 2
    assert all(why in error for error in errors)
    assert why.rstrip(".") in not_clean
    assert not_again.startswith(f"it wrote to a sink of kind 'rows', which is not known here: {why.rstrip('.')}")
    assert not not_again.endswith(".")


# ---- a driver died after its rows had landed, and a worker meets the run


@pytest.fixture
def left_open(tmp_path: Path, site: Path) -> Shop:
    store = BookmarkStore(SqliteTable(tmp_path / "bookmarks.db"), "test")
    store.init()
    shop = Shop(tmp_path, store)
    rows = Rows(site / "rows.db")
    shop.put("a.txt", "a")
    shop.run()
    shop.put("b.txt", "b")
    dead = begin(shop, rows, 1)
    assert rows.write(fence_of(dead), plan_and_place(shop, dead))
    dead.abort("the driver died")
    return shop


def worker(shop: Shop, code: str) -> str:
    folder = str(shop.root)
    opened = f'store = BookmarkStore(SqliteTable(Path({folder!r}) / "bookmarks.db"), "test")'
    return f"{opened}\nshop = Shop(Path({folder!r}), store, runs_made=100)\n{code}"


COMMIT = 'print(commit_empty(store, "copy", shop.identity(), shop.environment))'


def test_worker_takes_over_rows_that_landed_in_a_sink_of_an_installed_package(left_open: Shop, site: Path) -> None:
    assert told(site, worker(left_open, COMMIT)) == ["None"]
    assert left_open.store.head("copy").run_number == 1

    install(site, GROUP, "theirs", rows="their_sinks:Installed")
    told(site, worker(left_open, COMMIT))
    head = left_open.store.head("copy")
    assert (head.run_number, head.published, head.lease) == (3, 3, None)  # what it took over, and its own empty run
    assert Rows(site / "rows.db").lines() == ["b"]


def test_worker_refuses_an_open_run_whose_sink_can_not_be_loaded(left_open: Shop, site: Path, why: str) -> None:
    refused = """
logging.basicConfig(stream=sys.stdout, level=logging.INFO)
print(commit_empty(store, "copy", shop.identity(), shop.environment))
try:
    shop.begin()
except SinkUnknownError as error:
    print(error)
"""
    *_, said, none, error = told(site, worker(left_open, refused))
    assert (none, why in said, why in error) == ("None", True, True)
    assert "it is neither given up nor done again" in error
    states = [run.state for run in left_open.store.runs("copy")]
    assert states == [RunState.PUBLISHED, RunState.FAILED]
    assert left_open.store.head("copy").lease is None


def test_job_whose_sink_can_not_be_loaded_is_listed_and_shown(left_open: Shop, site: Path, why: str) -> None:
    looks = """
print([row["state"] for row in history(store, "copy", with_open=True)])
print(preview(store, "copy", Change("reset")).undone)
print([finding.code for finding in examine(store)])
"""
    assert why
    assert told(site, worker(left_open, looks)) == ["['PUBLISHED', 'FAILED']", "(1,)", "['kind-unknown']"]
