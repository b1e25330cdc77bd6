"""Promise RUN-5 in numbers: a run of more contexts than one update has names for is committed, read and kept."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from airflow_bookmarks.core.errors import ChangeRefusedError, MisuseError
from airflow_bookmarks.core.text.instant import utc_now
from airflow_bookmarks.lifecycle.changes.change import reset, rewind, set_state, undo
from airflow_bookmarks.lifecycle.maintenance.retention import collect
from airflow_bookmarks.lifecycle.maintenance.transfer.exporting import export
from airflow_bookmarks.lifecycle.maintenance.transfer.importing import import_
from airflow_bookmarks.lifecycle.run.enabled import ActiveRun
from airflow_bookmarks.sources.files.planner import FileSource
from airflow_bookmarks.sources.upstream.source import UpstreamSource
from airflow_bookmarks.store.backends.sqlite import SqliteTable
from airflow_bookmarks.store.bookmark_store import MAX_JOB_UPSTREAMS, BookmarkStore
from airflow_bookmarks.store.table import Attributes
from airflow_bookmarks.store.transitions import collection
from tests.lifecycle.shop import FILES, Shop, unsound

FEW, MANY = 95, 120  # 95 are the most that one update has names for
WHY: dict[str, Any] = {"reason": "a test", "who": "me"}


@pytest.fixture
def store() -> BookmarkStore:
    """Open a fresh store in memory."""
    store = BookmarkStore(SqliteTable(":memory:"), "test")
    store.init()
    return store


def read(shop: Shop, count: int, run: ActiveRun) -> int:
    """Read so many folders, each as a context with a schema; return how many files were new."""
    found = 0
    for number in range(count):
        ctx = f"c{number}"
        plan = run.plan(ctx, FileSource(FILES, [str(shop.raw / ctx)]))
        run.set_schema(ctx, f'{{"fields":["{ctx}"]}}')
        found += len(plan.files.paths)
    return found


def put(shop: Shop, count: int, name: str) -> None:
    for number in range(count):
        shop.put(f"c{number}/{name}.txt", "x")


def make_run(shop: Shop, count: int, name: str) -> int:
    """Make a run over one new file in each of so many folders."""
    put(shop, count, name)
    run = shop.begin()
    found = read(shop, count, run)
    run.commit()
    return found


def faults(store: BookmarkStore) -> set[str]:
    """Return what the doctor finds, but for the size of a head with so many contexts."""
    return {finding.code for finding in unsound(store)} - {"head-large"}


def newest(shop: Shop) -> Attributes:
    """Return the item of the last run, as it is stored."""
    key = shop.store.head("copy").run_number
    (run,) = [each for each in shop.store.runs("copy") if each.key.number == key]
    stored = shop.store.keys("copy").run(run.key)
    return shop.store.table.get([stored])[stored]


@pytest.mark.parametrize("count", [FEW, MANY])
def test_each_run_reads_what_is_new_in_each_context(shop: Shop, count: int) -> None:
    assert make_run(shop, count, "a") == count
    assert make_run(shop, count, "b") == count
    run = shop.begin()
    assert read(shop, count, run) == 0
    assert run.known_schema("c7") == '{"fields":["c7"]}'
    run.commit()
    assert not faults(shop.store)


def test_few_are_stored_as_earlier_versions_did(shop: Shop) -> None:
    make_run(shop, FEW, "a")
    stored = newest(shop)
    assert {f"{kind}:c{number}" for kind in ("position", "schema") for number in range(FEW)} <= stored.keys()
    assert not {"positions", "schemas"} & stored.keys()


def test_many_are_a_map_of_each_kind(shop: Shop) -> None:
    make_run(shop, MANY, "a")
    stored: Any = newest(shop)
    assert len(stored["positions"]) == len(stored["schemas"]) == MANY
    assert not [name for name in stored if name.startswith(("position:", "schema:"))]


@pytest.mark.seldom
def test_job_grows_and_shrinks_over_the_number(shop: Shop) -> None:
    for count, name in ((5, "a"), (MANY, "b"), (5, "c"), (MANY, "d")):
        new = make_run(shop, count, name)
        assert new == {"a": 5, "b": MANY, "c": 5, "d": MANY}[name]
    rewind(shop.store, "copy", 2, **WHY)
    assert read(shop, MANY, shop.begin()) == 5 + MANY


@pytest.mark.seldom
def test_open_run_of_a_dead_driver_is_made_again(shop: Shop) -> None:
    make_run(shop, MANY, "a")
    put(shop, MANY, "b")
    read(shop, MANY, shop.begin("copy", "copy/dead"))
    again = shop.begin("copy", "copy/dead", attempt=2)
    assert read(shop, MANY, again) == MANY
    again.commit()


@pytest.mark.seldom
def test_what_they_need_is_kept_and_comes_along_with_an_export(shop: Shop, tmp_path: Path) -> None:
    for name in ("a", "b", "c"):
        make_run(shop, MANY, name)
    stored: Any = newest(shop)
    assert [each for each in stored["positions"].values() if "chunks" in each]  # not all fit into the item
    collect(shop.store, clock=lambda: utc_now() + timedelta(days=1000))
    assert not faults(shop.store)

    other = Shop(tmp_path, BookmarkStore(SqliteTable(":memory:"), "other"))
    other.store.init()
    import_(other.store, export(shop.store), **WHY)
    assert not faults(other.store)
    assert read(other, MANY, other.begin()) == 0


def test_lost_blob_of_a_position_is_found(shop: Shop) -> None:
    make_run(shop, MANY, "a")
    stored: Any = newest(shop)
    lost = next(each for each in stored["positions"].values() if "chunks" in each)
    (found,) = [each for each in collection.stored_blobs(shop.store) if each.sha256 == lost["sha256"]]
    collection.remove_blob(shop.store, found)
    assert "blob-missing" in faults(shop.store)


@pytest.mark.seldom
def test_context_that_could_not_be_committed_is_refused_before_it_is_read(shop: Shop) -> None:
    shop.put("a.txt", "x")
    names = [f"{number:03}".ljust(200, "x") for number in range(250)]  # which take room
    refused = shop.begin()
    with pytest.raises(
        MisuseError, match=r"reads \d+ contexts, and '\d+x+' has no room.*Divide the contexts"
    ) as raised:
        plan_all(refused, shop, names)
    refused.abort("the test says so")
    fits = int(str(raised.value).split("reads ")[1].split()[0])
    assert fits > FEW

    for name in ("b", "c"):
        fitting = shop.begin()
        plan_all(fitting, shop, names[:fits])
        fitting.commit()
        shop.put(f"{name}.txt", "x")


UPSTREAMS = "airflow_bookmarks.lifecycle.run.commit_preparation.MAX_JOB_UPSTREAMS"


def read_upstreams(shop: Shop, first: int, last: int) -> None:
    """Make a run that reads these upstream jobs, which have a run each."""
    for number in range(first, last):
        shop.run(f"u{number}")
    run = shop.begin("report")
    for number in range(first, last):
        run.plan(f"c{number}", UpstreamSource(shop.store, "report", f"u{number}"))
    run.commit()


@pytest.mark.seldom
def test_upstream_that_no_change_could_take_back_is_refused_before_it_is_read(shop: Shop) -> None:
    shop.put("a.txt", "x")
    read_upstreams(shop, 0, 50)
    read_upstreams(shop, 50, MAX_JOB_UPSTREAMS)
    shop.run("more")

    run = shop.begin("report")
    run.plan("c0", UpstreamSource(shop.store, "report", "u0"))  # known upstreams are no more
    with pytest.raises(MisuseError, match=r"reads upstream job 'more'.* 92 others already.*Divide the contexts"):
        run.plan("c92", UpstreamSource(shop.store, "report", "more"))
    run.abort("the test says so")

    assert reset(shop.store, "report", clean=True, **WHY).undone == (1, 2)
    assert {edge.run_number for number in range(92) for edge in shop.store.edges(f"u{number}")} == {0}


@pytest.mark.seldom
def test_job_that_reads_more_upstreams_since_an_earlier_version_is_changed_in_parts(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop.put("a.txt", "x")
    with monkeypatch.context() as patch:
        patch.setattr(UPSTREAMS, 98)
        read_upstreams(shop, 0, 50)
        read_upstreams(shop, 50, 98)

    set_state(shop.store, "report", "x", 1, **WHY)
    with pytest.raises(ChangeRefusedError, match=r"each of the 98 upstream jobs.*Nothing was changed.*--ctx"):
        reset(shop.store, "report", **WHY)
    for first, last in ((0, 50), (50, 98)):
        reset(shop.store, "report", contexts=[f"c{number}" for number in range(first, last)], **WHY)

    assert {edge.run_number for number in range(98) for edge in shop.store.edges(f"u{number}")} == {0}


def test_change_writes_no_edge_that_it_does_not_move(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    shop.put("a.txt", "x")
    read_upstreams(shop, 0, 2)
    written: list[str] = []
    real = shop.store.table.transact

    def noted(operations: Any, **how: Any) -> None:
        written.extend(each.key.pk for each in operations if each.key.sk.startswith("DOWN#"))
        real(operations, **how)

    monkeypatch.setattr(shop.store.table, "transact", noted)
    set_state(shop.store, "report", "x", 1, **WHY)
    assert written == []
    reset(shop.store, "report", contexts=["c1"], **WHY)
    assert written == [shop.store.keys("u1").partition]
    undo(shop.store, "report", **WHY)
    assert [edge.run_number for edge in shop.store.edges("u1")] == [1]


def plan_all(run: ActiveRun, shop: Shop, names: Sequence[str]) -> None:
    """Plan the raw folder as each of these contexts, which are read with a schema."""
    for name in names:
        run.plan(name, FileSource(FILES, [str(shop.raw)]))
        run.set_schema(name, f'{{"fields":["{name}"]}}')
