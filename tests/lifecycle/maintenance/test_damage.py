"""Promises SEC-5, OBS-3: damage of one item is answered in words, stops one job at most, and leaves a way out."""

from __future__ import annotations

import copy
import json
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, redirect_stderr, redirect_stdout
from io import StringIO
from random import Random
from typing import Any

import pytest

from airflow_bookmarks.cli.command import run as run_command
from airflow_bookmarks.core.errors import BookmarkError, StateCorruptError
from airflow_bookmarks.core.health.verdict import HealthState
from airflow_bookmarks.core.rules.lag import LagState
from airflow_bookmarks.core.run import Run
from airflow_bookmarks.lifecycle.changes.change import Change, reset, rewind, set_position
from airflow_bookmarks.lifecycle.changes.naming import delete, rename
from airflow_bookmarks.lifecycle.changes.preview import preview
from airflow_bookmarks.lifecycle.health.job import health
from airflow_bookmarks.lifecycle.health.listed import healths
from airflow_bookmarks.lifecycle.inspect.difference import diff
from airflow_bookmarks.lifecycle.inspect.graph import graph
from airflow_bookmarks.lifecycle.inspect.lag import lags_of_all
from airflow_bookmarks.lifecycle.inspect.runs import files_of, history
from airflow_bookmarks.lifecycle.inspect.status import bookmarks
from airflow_bookmarks.lifecycle.maintenance.doctor import examine, repair
from airflow_bookmarks.lifecycle.maintenance.retention import collect
from airflow_bookmarks.lifecycle.maintenance.transfer.exporting import export
from airflow_bookmarks.lifecycle.maintenance.transfer.glue_entry import as_glue_entry
from airflow_bookmarks.store.bookmark_store import BookmarkStore
from airflow_bookmarks.store.table import Attributes, Delete, Key, Put, Update, Value
from tests.lifecycle.shop import Shop

# Entries of the index that name no job.
NO_NAMES: list[tuple[str, Attributes]] = [("a/b", {}), ("c", {"alias_of": 5})]


def three_runs(shop: Shop, job: str = "copy") -> None:
    for name in "abc":
        shop.put(f"{name}.txt", name)
        shop.run(job)


def committed(shop: Shop, number: int, job: str = "copy") -> Run:
    run = shop.store.committed_run(job, number)
    assert run is not None
    return run


def damage_run(shop: Shop, number: int, **changes: Value) -> None:
    key = shop.store.keys("copy").run(committed(shop, number).key)
    shop.store.table.transact([Update(key, set=changes)])


def damage_head(shop: Shop, job: str = "copy") -> None:
    shop.store.table.transact([Update(shop.store.keys(job).head, set={"fence": "0.0"})])


# ---- one job of many


def test_list_shows_a_damaged_job_beside_the_others(shop: Shop) -> None:
    three_runs(shop)
    three_runs(shop, "sound")
    damage_head(shop)
    damaged, sound = bookmarks(shop.store)
    assert damaged["job"] == "copy"
    assert "item HEAD" in damaged["damaged"]
    assert "'fence'" in damaged["damaged"]
    assert damaged["run_number"] is None
    assert (sound["job"], sound["run_number"], sound["damaged"]) == ("sound", 3, None)


def test_new_job_begins_though_another_is_damaged(shop: Shop) -> None:
    shop.put("a.txt", "a")
    shop.run("copy")
    damage_head(shop)

    assert shop.run("new")[0] == ["a"]


def test_graph_shows_a_damaged_job_and_goes_on_with_the_others(shop: Shop) -> None:
    shop.put("a.txt", "a")
    shop.run("up")
    shop.run("down", upstream="up")
    shop.run("copy")
    damage_head(shop)

    whole = graph(shop.store)

    assert [name for name, node in whole.nodes.items() if node.is_damaged] == ["copy"]
    assert whole.nodes["copy"].label == "copy (damaged)"
    assert [(read.job, read.source) for read in graph(shop.store, "down").reads if read.lag] == [("down", "up")]
    assert graph(shop.store, "copy").reads == ()


def test_list_shows_an_entry_that_is_no_name(shop: Shop) -> None:
    three_runs(shop)
    shop.store.table.transact([Put(Key("test#JOBS", name), entry) for name, entry in NO_NAMES])
    shown = {row["job"]: row["damaged"] for row in bookmarks(shop.store)}
    assert shown["copy"] is None
    assert "can't be the name of a job" in shown["a/b"]
    assert "is no name" in shown["c"]


@pytest.mark.parametrize("damage", ["head", "last run", "index", "upstream", "no head"])
def test_health_of_one_job_that_is_damaged_hides_no_other(shop: Shop, damage: str) -> None:
    three_runs(shop)
    three_runs(shop, "sound")
    shop.run("reader", upstream="copy")
    if damage == "last run":
        reset(shop.store, "copy", reason="a test", who="me")
        damage_run(shop, 3, state="LOST")
    elif damage == "index":
        shop.store.table.transact([Put(Key("test#JOBS", name), entry) for name, entry in NO_NAMES])
    elif damage == "no head":
        shop.store.table.transact([Delete(shop.store.keys("copy").head)])
    else:
        damage_head(shop)

    found = healths(shop.store)
    code, told = command(shop, "check", "--health")

    assert found["sound"].state is HealthState.OK
    assert health(shop.store, "sound") == found["sound"]
    assert health(shop.store, "reader").state is found["reader"].state
    for verb in (["list"], ["lag"], ["graph"], ["show", "sound"]):
        assert command(shop, *verb)[0] == 0, verb
    unreadable = {"last run": set(), "index": {"a/b", "c"}}.get(damage, {"copy"})
    assert {line.split()[0] for line in told.splitlines() if "DAMAGED" in line} == unreadable
    assert code == 1  # for the reader at least


@pytest.mark.parametrize("damage", ["head", "last run"])
def test_lag_of_all_says_which_job_can_not_be_read(shop: Shop, damage: str) -> None:
    three_runs(shop)
    shop.run("reader", upstream="copy")
    shop.run("other", upstream="reader")
    reset(shop.store, "reader", reason="a test", who="me")
    if damage == "head":
        damage_head(shop, "reader")
    else:
        run = shop.store.keys("reader").run(committed(shop, 1, "reader").key)
        shop.store.table.transact([Update(run, set={"state": "LOST"})])
    told = {lag.job: lag for lag in lags_of_all(shop.store) if not lag.source}
    assert list(told) == ["reader"]
    assert told["reader"].state is LagState.UNKNOWN
    assert told["reader"].why
    assert graph(shop.store).nodes["reader"].is_damaged
    (behind,) = [lag for lag in lags_of_all(shop.store) if lag.job == "other"]
    assert (behind.state is LagState.UNKNOWN and "can't be read" in str(behind.why)) == (damage == "head")


def test_collection_goes_on_with_the_other_jobs_and_keeps_every_blob(shop: Shop) -> None:
    three_runs(shop)
    three_runs(shop, "sound")
    damage_run(shop, 1, planned_at="yesterday")
    done = collect(shop.store, dry_run=True)
    assert [job.job for job in done.jobs] == ["sound"]
    assert "RUN 1.1" in done.left_alone["copy"]
    assert done.blobs == ()
    assert list(done.as_dict()["left_alone"]) == ["copy"]


def test_item_of_the_file_that_is_no_json_stops_its_own_job_alone(shop: Shop) -> None:
    three_runs(shop)
    three_runs(shop, "sound")
    spoil(shop, "test#JOB#copy", "HEAD", "[" * 5000)
    damaged, sound = bookmarks(shop.store)
    assert "can't be read" in damaged["damaged"]
    assert sound["damaged"] is None
    assert {f.job for f in examine(shop.store)} == {"copy"}


def spoil(shop: Shop, pk: str, sk: str, text: str) -> None:
    """Write what is no item into the file of the table."""
    path = shop.store.table.describe()["path"]
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE items SET attributes = ? WHERE pk = ? AND sk = ?", (text, pk, sk))


# ---- the way out


@pytest.mark.parametrize("damage", [{"state": "LOST"}, {"epoch": "1"}, {"plan:raw": 5}, {"committed_at": None}])
def test_job_with_a_damaged_old_run_goes_on_after_a_reset(shop: Shop, damage: Attributes) -> None:
    three_runs(shop)
    damage_run(shop, 2, **damage)
    assert preview(shop.store, "copy", Change("reset")).unreadable == ("2.2",)
    changed = reset(shop.store, "copy", reason="x", who="ada")
    assert (changed.undone, changed.unreadable) == ((1, 3), ("2.2",))
    assert changed.as_dict()["unreadable_runs"] == ["2.2"]
    assert shop.run()[0] == ["a", "b", "c"]


def test_job_whose_position_is_damaged_goes_on_after_a_reset(shop: Shop) -> None:
    three_runs(shop)
    shop.run("down", upstream="copy")
    key = shop.store.keys("down").run(committed(shop, 1, "down").key)
    shop.store.table.transact([Update(key, set={"position:raw": 5})])
    with pytest.raises(StateCorruptError, match="or reset the job without clean"):
        shop.run("down", upstream="copy")
    reset(shop.store, "down", reason="x", who="ada", force=True)
    assert shop.run("down", upstream="copy")[0] == ["a", "b", "c"]


def test_job_with_a_damaged_old_run_can_be_deleted(shop: Shop) -> None:
    three_runs(shop)
    damage_run(shop, 1, fences="1")
    delete(shop.store, "copy", typed_name="copy", reason="x", who="ada")
    assert bookmarks(shop.store) == []


def test_clean_needs_every_run_that_it_undoes(shop: Shop) -> None:
    three_runs(shop)
    damage_run(shop, 2, state="LOST")
    before = shop.store.head("copy")
    with pytest.raises(StateCorruptError, match=r"RUN 2\.2"):
        reset(shop.store, "copy", reason="x", who="ada", clean=True)
    assert shop.store.head("copy") == before


def test_run_that_is_due_is_needed_by_a_reset(shop: Shop) -> None:
    three_runs(shop)
    key = committed(shop, 3).key
    shop.store.table.transact([Update(shop.store.keys("copy").head, set={"publishing": str(key)})])
    damage_run(shop, 3, state="LOST")
    with pytest.raises(StateCorruptError, match=r"RUN 3\.3"):
        reset(shop.store, "copy", reason="x", who="ada")


# ---- any attribute of any item

JUNK: list[Any] = [
    None, "", 0, -1, True, [], {}, "x", "5", 10**25, [1], {"a": 1}, "9999-99-99", "\0", 1, 7, "0.0", "1.1.1", 2**63,
]  # fmt: skip


def verbs(shop: Shop) -> list[Callable[[], object]]:
    store = shop.store
    changes = [
        Change("reset"),
        Change("reset", clean=True),
        Change("reset", contexts=("raw",)),
        Change("rewind", "1"),
        Change("rewind", "2023-11-14T22:30:00Z"),
        Change("undo"),
        Change("set", ctx="raw", value="now"),
        Change("delete"),
    ]
    return [
        lambda: repair(store, examine(store), who="ada"),
        lambda: bookmarks(store),
        lambda: history(store, "copy", with_open=True),
        lambda: diff(store, "copy", "1", "2"),
        lambda: files_of(store, "copy", "1"),
        lambda: collect(store, dry_run=True),
        lambda: export(store),
        lambda: as_glue_entry(store, "copy"),
        *(lambda change=change: preview(store, "copy", change) for change in changes),
        lambda: preview(store, "cons", Change("set", ctx="raw", value="now")),
        lambda: preview(store, "cons", Change("reset")),
    ]


def world(shop: Shop) -> None:
    three_runs(shop)
    shop.run("cons", upstream="copy")
    rewind(shop.store, "copy", 2, reason="x", who="ada")
    shop.run()
    set_position(shop.store, "copy", "raw", "2023-11-14T22:13:20.001Z", reason="x", who="ada")
    shop.run()
    rename(shop.store, "copy", "kopie", reason="x", who="ada")


def items(store: BookmarkStore) -> dict[Key, Attributes]:
    partitions = sorted({key.pk for key, _ in store.table.scan("test#")})
    return {key: found for partition in partitions for key, found in store.table.query(partition)}


def paths(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if path:
        yield path
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from paths(inner, (*path, name))
    elif isinstance(value, list):
        for place, inner in enumerate(value):
            yield from paths(inner, (*path, place))


def damaged(attributes: Attributes, random: Random) -> tuple[str, Attributes]:
    """Return a copy with one attribute lost, changed a little, or replaced by something else, and what was done."""
    changed: Any = copy.deepcopy(attributes)
    path = random.choice(list(paths(attributes)) or [("new",)])
    holder = changed
    for part in path[:-1]:
        holder = holder[part]
    kind = random.randrange(4)
    value = holder[path[-1]] if path != ("new",) else None
    if kind == 0 and path != ("new",):
        del holder[path[-1]]
        return f"{path} lost", changed
    if kind == 1 and isinstance(value, int):
        holder[path[-1]] = value + random.choice([-1, 1, 5, -5])
    elif kind == 1 and isinstance(value, str) and value:
        place = random.randrange(len(value))
        holder[path[-1]] = value[:place] + random.choice("0aZ.\u00e9") + value[place + 1 :]
    else:
        holder[path[-1]] = random.choice(JUNK)
    return f"{path}: {value!r:.60} -> {holder[path[-1]]!r:.60}", changed


@pytest.mark.parametrize("seed", range(4))
def test_verbs_answer_a_damaged_attribute_in_words(shop: Shop, seed: int) -> None:
    world(shop)
    # It has been rewound without a clean.
    assert [finding.code for finding in examine(shop.store)] == ["undone-files-left"]
    sound, random = items(shop.store), Random(seed)
    keys = [key for key in sound if "#BLOB#" not in key.pk]
    for _ in range(60):
        key = random.choice(keys)
        done, changed = damaged(sound[key], random)
        shop.store.table.transact([Put(key, changed)])
        for verb in random.sample(verbs(shop), 4):
            try:
                verb()
            except BookmarkError as error:
                assert str(error)  # noqa: PT017
            except Exception as error:  # what no verb may end with, whatever it is
                raise AssertionError(f"{key}, {done}: {error!r}") from error
        shop.store.table.transact([Put(one, attributes) for one, attributes in sound.items() if "#BLOB#" not in one.pk])


# ---- on the command line


def command(shop: Shop, *arguments: str) -> tuple[int, str]:
    out = StringIO()
    store = f"sqlite:///{shop.store.table.describe()['path']}?namespace=test"
    with redirect_stdout(out), redirect_stderr(out):
        code = run_command(["--store", store, *arguments])
    return code, out.getvalue()


def test_list_of_the_command_line_has_a_column_for_damage_only_where_there_is_some(shop: Shop) -> None:
    three_runs(shop)
    assert "DAMAGED" not in command(shop, "list")[1]
    damage_head(shop)
    code, shown = command(shop, "list")
    assert code == 0
    assert "DAMAGED" in shown
    assert "'fence' is no number" in shown


def test_gc_of_the_command_line_names_what_it_left_alone_and_fails(shop: Shop) -> None:
    three_runs(shop)
    damage_head(shop)
    code, shown = command(shop, "--output", "json", "gc", "--dry-run")
    assert code == 1
    assert list(json.loads(shown[shown.index("{") :])["left_alone"]) == ["copy"]
