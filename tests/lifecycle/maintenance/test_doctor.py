"""Promises OBS-3 and SEC-5: the doctor names each damage, is silent on a sound state, and mends only what is safe."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from airflow_bookmarks.core.errors import JobUnknownError, StateCorruptError
from airflow_bookmarks.core.files.file_plan import FilePlan
from airflow_bookmarks.core.ledger.file_ledger import Ledger
from airflow_bookmarks.core.run import Run, RunKey
from airflow_bookmarks.core.text.instant import utc_now
from airflow_bookmarks.lifecycle.changes.change import reset, rewind, set_position, undo
from airflow_bookmarks.lifecycle.changes.naming import adopt, delete, rename
from airflow_bookmarks.lifecycle.maintenance.doctor import Finding, repair
from airflow_bookmarks.lifecycle.maintenance.retention import collect
from airflow_bookmarks.lifecycle.maintenance.transfer.exporting import export
from airflow_bookmarks.lifecycle.maintenance.transfer.importing import import_
from airflow_bookmarks.lifecycle.protocol.failpoint import Failpoint
from airflow_bookmarks.lifecycle.protocol.lease import RunEnvironment
from airflow_bookmarks.lifecycle.run.replay import ReplayRun
from airflow_bookmarks.lifecycle.run.session import RunSession
from airflow_bookmarks.sinks.staging import Mode, StagingRequest, collect_staged
from airflow_bookmarks.store.bookmark_store import BookmarkStore
from airflow_bookmarks.store.codec import item
from airflow_bookmarks.store.table import Attributes, Delete, Key, Operation, Put, Table, Update, Value
from airflow_bookmarks.store.transitions.collection import collected_until
from tests.lifecycle.shop import FILES, Shop, short_lease
from tests.lifecycle.shop import unsound as examine


def items(store: BookmarkStore) -> dict[Key, Attributes]:
    """Return every item of the namespace, whole."""
    partitions = {key.pk for key, _ in store.table.scan(f"{store.namespace}#")}
    return {key: found for partition in partitions for key, found in store.table.query(partition)}


def files(root: Path) -> dict[str, bytes]:
    """Return every file below the shop, but the state itself."""
    return {str(p): p.read_bytes() for p in root.rglob("*") if p.is_file() and "bookmarks.db" not in p.name}


def in_days(days: int) -> Callable[[], datetime]:
    at = utc_now() + timedelta(days=days)
    return lambda: at


def three_runs(shop: Shop, job: str = "copy") -> None:
    for name in "abc":
        shop.put(f"{name}.txt", f"{name} of {job}")
        shop.run(job)


def replay(shop: Shop, number: int) -> ReplayRun:
    """Make a run again, up to its commit."""
    run = ReplayRun.begin_replay(shop.store, "copy", shop.identity(), shop.environment, number)
    shop.copy(run)
    return run


def committed(shop: Shop, number: int, job: str = "copy") -> Run:
    run = shop.store.committed_run(job, number)
    assert run is not None
    return run


def raw(shop: Shop, key: Key) -> Attributes:
    return shop.store.table.get([key])[key]


def write(shop: Shop, *operations: Operation) -> None:
    shop.store.table.transact(operations)


def change_head(shop: Shop, **changes: Value) -> None:
    write(shop, Update(shop.store.keys("copy").head, set=changes))


def change_run(shop: Shop, number: int, **changes: Value) -> None:
    write(shop, Update(shop.store.keys("copy").run(committed(shop, number).key), set=changes))


@pytest.fixture(params=["inline", "blobs"])
def large(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Keep plans, lists and positions once in their item and once in blobs."""
    if request.param == "blobs":
        in_blobs(monkeypatch)
    return bool(request.param == "blobs")


def in_blobs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("airflow_bookmarks.store.bookmark_store.INLINE_BYTES", 0)
    monkeypatch.setattr("airflow_bookmarks.core.ledger.file_ledger.ROOT_BYTES", 0)


# ---- a sound state gives no finding


def test_empty_namespace_is_sound(shop: Shop) -> None:
    assert examine(shop.store) == []


def test_job_that_was_never_there_is_an_error(shop: Shop) -> None:
    with pytest.raises(JobUnknownError):
        examine(shop.store, jobs=["nobody"])


@pytest.mark.seldom
def test_every_step_of_a_varied_history_is_sound(shop: Shop, large: bool) -> None:
    shop.mode = Mode.OVERWRITE_PARTITIONS

    def sound(step: str) -> None:
        # A file in no partition is overwritten on the way: whether its partition was read whole nobody can tell.
        found = [*examine(shop.store, clock=in_days(400)), *examine(shop.store)]
        assert [f.what for f in found if f.code != "published-file-replaced"] == [], step

    three_runs(shop)
    sound("runs")
    shop.run("down", upstream="copy")
    shop.run()
    shop.run("down", upstream="copy")
    sound("empty runs")
    again = replay(shop, 2)
    assert examine(shop.store) == []
    again.abort("no luck")
    sound("a replay that failed")
    replay(shop, 2).commit()
    sound("a replay")
    shop.run("down", upstream="copy", on_rewind="ignore")
    sound("a consumer that took note of it")
    shop.put("a.txt", "a2", seconds=1_700_000_500)
    shop.run()
    sound("an overwritten file")
    failing = shop.begin()
    shop.put("d.txt", "d")
    shop.copy(failing)
    failing.abort("no luck")
    sound("a failed run")
    shop.run()
    shop.run("down", upstream="copy")
    sound("a run after it")
    shop.mode = Mode.APPEND
    shop.side_lines("pause", "1", "3")
    shop.side_lines("disable")
    shop.mode = Mode.OVERWRITE_PARTITIONS
    sound("side runs")
    rewind(shop.store, "copy", 2, reason="x", who="ada")
    sound("a rewind")
    shop.run("down", upstream="copy", on_rewind="rewind")
    sound("a consumer that went along")
    shop.run()
    shop.run("down", upstream="copy")
    sound("runs after the rewind")
    reset(shop.store, "copy", reason="x", who="ada")
    sound("a reset")
    undo(shop.store, "copy", reason="x", who="ada")
    sound("an undo")
    shop.put("e.txt", "e")
    shop.run()
    sound("a run after the undo")
    set_position(shop.store, "copy", "raw", "now", reason="x", who="ada")
    sound("a set")
    shop.put("f.txt", "f")
    shop.run()
    sound("a run after the set")
    rewind(shop.store, "copy", 1, reason="x", who="ada", contexts=["raw"])
    sound("one context taken back")
    shop.run()
    sound("a run after that")
    rewind(shop.store, "copy", 1, reason="x", who="ada", clean=True)
    sound("a clean that is to be done")
    shop.run()
    sound("a clean that is done")
    collect(shop.store, clock=in_days(100))
    sound("a collection")
    shop.put("g.txt", "g")
    shop.run()
    sound("a run after the collection")


def test_due_replay_and_what_it_leaves_are_sound(shop: Shop) -> None:
    three_runs(shop)
    shop.environment = replace(short_lease(), at=stop_at(Failpoint.COMMITTED))
    with pytest.raises(Stopped):
        replay(shop, 2).commit()
    assert examine(shop.store) == []
    rewind(shop.store, "copy", 1, reason="x", who="ada", force=True)
    assert examine(shop.store) == []
    shop.environment = RunEnvironment()
    shop.run()
    assert examine(shop.store) == []


@pytest.mark.parametrize("point", Failpoint)
def test_run_that_died_at_any_point_leaves_no_more_than_a_lease_and_staging(shop: Shop, point: Failpoint) -> None:
    three_runs(shop)
    shop.put("d.txt", "d")
    shop.environment = replace(short_lease(), at=stop_at(point), start_thread=lambda work: None)
    try:
        run = shop.begin()
        shop.copy(run)
        run.commit()
    except Stopped:
        pass
    assert {f.code for f in examine(shop.store)} <= {"staging-orphaned"}
    later = {f.code for f in examine(shop.store, clock=in_days(1))}
    assert later <= {"lease-dangling", "staging-orphaned"}
    shop.environment = RunEnvironment()
    shop.run()
    assert examine(shop.store, clock=in_days(1)) == []


class Stopped(Exception):
    """Stands for the death of a driver."""


def stop_at(point: Failpoint) -> Callable[[Failpoint], None]:
    def stop(reached: Failpoint) -> None:
        if reached is point:
            raise Stopped

    return stop


def test_running_job_is_sound(shop: Shop) -> None:
    three_runs(shop)
    run = shop.begin()
    assert examine(shop.store) == []
    shop.copy(run)
    assert examine(shop.store) == []
    run.commit()
    assert examine(shop.store) == []


def test_run_that_kept_a_changed_file_for_the_next_one_is_sound(shop: Shop) -> None:
    three_runs(shop)
    shop.put("d.txt", "d")
    shop.put("e.txt", "e")
    later = 1_700_000_900
    shop.run(on_missing="skip", between=lambda: shop.put("d.txt", "d2", seconds=later))
    assert examine(shop.store) == []


@pytest.mark.parametrize("mode", [Mode.OVERWRITE, Mode.OVERWRITE_PARTITIONS])
def test_side_run_that_overwrote_what_runs_published_is_sound(shop: Shop, mode: Mode) -> None:
    three_runs(shop)
    shop.mode = mode
    shop.side_lines("disable")
    assert examine(shop.store) == []


def test_side_run_that_replaced_a_partition_with_deeper_folders_is_sound(shop: Shop) -> None:
    def publish(run: RunSession, partition: str) -> None:
        target, mode = str(shop.root / "copy"), Mode.OVERWRITE_PARTITIONS
        folder = run.place(
            "out", StagingRequest("files", target, stats={"mode": mode.value}, overwrites_published=True)
        )
        Path(folder, partition).mkdir(parents=True)
        Path(folder, partition, "part").write_text("a\n")
        run.staged("out", collect_staged(FILES, folder, target, run.file_token, mode, rows=1, schema=None))
        run.commit()

    publish(shop.begin(), "m=1/d=5")
    publish(shop.side(option="disable"), "m=1")
    assert shop.target_lines() == {"a": 1}
    assert examine(shop.store) == []


def test_file_that_went_from_beside_those_of_a_side_run_is_named(shop: Shop) -> None:
    shop.put("a.txt", "a")
    shop.put("b.txt", "b")
    shop.put("keep.txt", "keep")
    shop.run()
    shop.put("b.txt", "b2", seconds=1_700_000_500)
    shop.mode = Mode.OVERWRITE_PARTITIONS
    shop.side_lines("pause")
    assert examine(shop.store) == []
    os.unlink(next((shop.root / "copy" / "file=a").iterdir()))
    shop.put("c.txt", "c")
    shop.run()  # and this one replaces what the side run left
    (found,) = examine(shop.store)
    assert found.code == "published-file-missing"
    assert "1 file(s)" in found.what
    assert "file=a" in found.what


def test_due_publish_is_no_damage(shop: Shop) -> None:
    three_runs(shop)
    change_run(shop, 3, state="COMMITTED")
    change_head(shop, publishing="3.3", published=2)
    assert examine(shop.store) == []


# ---- each damage by name


@dataclass(frozen=True)
class Damage:
    """A fault that is planted: its code, words that the finding has, and whether the doctor may mend it."""

    code: str
    words: str
    plant: Callable[[Shop], object]
    is_repairable: bool = False


def remove_chunk(shop: Shop) -> None:
    sha256 = committed(shop, 2).plans["raw"].body.sha256
    write(shop, Delete(Key(f"test#BLOB#{sha256}", "0000000000")))


def flip_bit_of_blob(shop: Shop) -> None:
    key = Key(f"test#BLOB#{committed(shop, 2).plans['raw'].body.sha256}", "0000000000")
    data = raw(shop, key)["data"]
    assert isinstance(data, bytes)
    write(shop, Update(key, set={"data": bytes([data[0] ^ 1]) + data[1:]}))


def cut_segment(shop: Shop) -> None:
    run = committed(shop, 3)
    root = shop.store.blobs.get(run.positions["raw"])
    segment = Ledger.from_root(root, shop.store.blobs.get_named).segment_ids()[-1]
    key = Key(f"test#BLOB#{segment}", "0000000000")
    data = raw(shop, key)["data"]
    assert isinstance(data, bytes)
    write(shop, Update(key, set={"data": data[:-1]}))


def flip_bit_in_item(shop: Shop) -> None:
    key = shop.store.keys("copy").run(committed(shop, 2).key)
    plan = raw(shop, key)["plan:raw"]
    assert isinstance(plan, dict)
    body = plan["body"]
    assert isinstance(body, dict)
    inline = body["inline"]
    assert isinstance(inline, bytes)
    flipped: Value = {**plan, "body": {**body, "inline": inline[:-1] + bytes([inline[-1] ^ 128])}}
    write(shop, Update(key, set={"plan:raw": flipped}))


def leave_lease(shop: Shop) -> None:
    then = "2013-01-01T00:00:00.000000Z"
    lease: Attributes = {"lease_run_id": "gone", "lease_attempt": 2, "lease_nonce": "n", "lease_since": then}
    change_head(shop, **lease, lease_until=then)


def remove_last_run(shop: Shop) -> None:
    write(shop, Delete(shop.store.keys("copy").run(committed(shop, 3).key)))


def remove_middle_run(shop: Shop) -> None:
    write(shop, Delete(shop.store.keys("copy").run(committed(shop, 2).key)))


def double_run(shop: Shop) -> None:
    keys = shop.store.keys("copy")
    again = dict(raw(shop, keys.run(committed(shop, 2).key)))
    for name in [name for name in again if name.startswith("output:")]:
        del again[name]
    write(shop, Put(keys.run(RunKey(2, 1)), again))


def lose_publish(shop: Shop) -> None:
    change_run(shop, 3, state="COMMITTED")
    change_head(shop, published=2)


def open_below(shop: Shop) -> None:
    keys = shop.store.keys("copy")
    planned = item.run_attributes(committed(shop, 2))
    kept = {name: value for name, value in planned.items() if ":" not in name} | {"state": "PLANNED"}
    write(shop, Put(keys.run(RunKey(2, 1)), kept))


def remove_published(shop: Shop) -> None:
    os.unlink(next((shop.root / "copy" / "file=b").iterdir()))


def cut_published(shop: Shop) -> None:
    next((shop.root / "copy" / "file=b").iterdir()).write_text("")


def add_foreign(shop: Shop) -> None:
    (shop.root / "copy" / "file=b" / "run-2.99-part-0.txt").write_text("b again\n")


def leave_staging(shop: Shop) -> None:
    folder = shop.root / "copy" / "_bookmarks" / "test" / "copy" / "2.1" / "out"
    folder.mkdir(parents=True)
    (folder / "part-0.txt").write_text("late\n")


def forget_files(shop: Shop) -> None:
    """Put the ledger of before run 3 in the place of that after it."""
    keys = shop.store.keys("copy")
    older = raw(shop, keys.run(committed(shop, 2).key))["position:raw"]
    write(shop, Update(keys.run(committed(shop, 3).key), set={"position:raw": older}))


def move_watermark(shop: Shop) -> None:
    for key in (shop.store.keys("copy").head, shop.store.keys("copy").run(committed(shop, 3).key)):
        contexts = raw(shop, key)["contexts"]
        assert isinstance(contexts, dict)
        state = contexts["raw"]
        assert isinstance(state, dict)
        moved: Value = {"raw": {**state, "watermark": "2013-01-01T00:00:00.000000Z"}}
        write(shop, Update(key, set={"contexts": moved}))


def take_head_back(shop: Shop) -> None:
    change_head(shop, contexts=raw(shop, shop.store.keys("copy").run(committed(shop, 2).key))["contexts"])


def lose_position(shop: Shop) -> None:
    write(shop, Update(shop.store.keys("copy").run(committed(shop, 3).key), remove=["position:raw"]))


def move_unread(shop: Shop) -> None:
    metrics = committed(shop, 3).metrics
    nothing: Value = {"contexts": {"raw": {**metrics["contexts"]["raw"], "files": 0}}}
    change_run(shop, 3, metrics=nothing)


def overstate_plan(shop: Shop) -> None:
    key = shop.store.keys("copy").run(committed(shop, 2).key)
    plan = raw(shop, key)["plan:raw"]
    assert isinstance(plan, dict)
    figures = plan["facts"]
    assert isinstance(figures, dict)
    write(shop, Update(key, set={"plan:raw": {**plan, "facts": {**figures, "files": 7}}}))


def overstate_output(shop: Shop) -> None:
    key = shop.store.keys("copy").run(committed(shop, 2).key)
    output = raw(shop, key)["output:out"]
    assert isinstance(output, dict)
    figures = output["facts"]
    assert isinstance(figures, dict)
    write(shop, Update(key, set={"output:out": {**output, "facts": {**figures, "files": 7}}}))


def put_edge(shop: Shop, consumer: str, number: int, epoch: int = 1) -> None:
    edge: Attributes = {"run_number": number, "epoch": epoch, "changes": 0, "contexts": {}, "updated_at": None}
    write(shop, Put(shop.store.keys("copy").edge(consumer), edge))


def swell_head(shop: Shop) -> None:
    head = raw(shop, shop.store.keys("copy").head)
    staging = head["staging"]
    assert isinstance(staging, list)
    change_head(shop, staging=[*staging, *(f"{shop.root}/{'x' * 200}/{i}" for i in range(20))])


def lose_execution_run(shop: Shop) -> None:
    write(shop, Update(shop.store.keys("copy").execution("manual/2"), set={"last_run": 9}))


def change_line(shop: Shop, epoch: int = 2, **changes: Value) -> None:
    write(shop, Update(shop.store.keys("copy").line(epoch), set=changes))


def lose_staged(shop: Shop) -> None:
    """Let a run end between its commit and its publish, and lose what it staged."""
    shop.put("d.txt", "d")
    shop.environment = replace(short_lease(), at=stop_at(Failpoint.COMMITTED), start_thread=lambda work: None)
    with pytest.raises(Stopped):
        shop.run()
    shop.environment = RunEnvironment()
    for path in shop.staged_files():
        path.unlink()


def die_importing(shop: Shop) -> None:
    then = "2013-01-01T00:00:00.000000Z"
    lease: Attributes = {"lease_run_id": "(import)", "lease_attempt": 1, "lease_nonce": "n", "lease_since": then}
    change_head(shop, **lease, lease_until="9999-12-31T00:00:00.000000Z")


def lose_execution(shop: Shop) -> None:
    write(shop, Delete(shop.store.keys("copy").execution("manual/2")))


def point_execution_elsewhere(shop: Shop) -> None:
    write(shop, Update(shop.store.keys("copy").execution("manual/3"), set={"last_run": 2}))


DAMAGES_IN_BLOBS = [
    Damage("blob-missing", "has 0 of all chunks", remove_chunk),
    Damage("bytes-damaged", "don't match their checksum", flip_bit_of_blob),
    Damage("bytes-damaged", "ledger segment", cut_segment),
]

DAMAGES = [
    Damage("bytes-damaged", "changed from outside", flip_bit_in_item),
    Damage("lease-dangling", "its driver is gone", leave_lease, True),
    Damage("head-ahead", "there is no such run", remove_last_run),
    Damage("head-behind", "the head is behind its own items", lambda shop: change_head(shop, run_number=2)),
    Damage("head-behind", "fence 1", lambda shop: change_head(shop, fence=1)),
    Damage("head-inconsistent", "published 1", lambda shop: change_head(shop, published=1)),
    Damage("head-inconsistent", "no committed run with data", lambda shop: change_head(shop, data_run_number=7)),
    Damage("head-large", "should stay below 4096", swell_head),
    Damage("head-missing", "its bookmark is lost", lambda shop: write(shop, Delete(shop.store.keys("copy").head))),
    Damage("index-missing", "no list shows it", lambda shop: write(shop, Delete(shop.store.keys("copy").index)), True),
    Damage("item-unreadable", "can't be read", lambda shop: change_run(shop, 2, state="LOST")),
    Damage("publish-unknown", "no such run item", lambda shop: change_head(shop, publishing="3.9")),
    Damage("publish-not-committed", "that run is PUBLISHED", lambda shop: change_head(shop, publishing="3.3")),
    Damage("publish-lost", "no run will publish it", lose_publish, True),
    Damage("head-behind", "version 2; there are", lambda shop: change_head(shop, version=2)),
    Damage("import-unfinished", "has not ended", die_importing),
    Damage("publish-impossible", "are gone and not published either", lose_staged),
    Damage("execution-missing", "there is no such execution", lose_execution),
    Damage("execution-differs", "says that its last one is 2", point_execution_elsewhere),
    Damage("run-of-no-line", "made in epoch 7", lambda shop: change_run(shop, 2, epoch=7)),
    Damage("run-doubled", "was committed 2 times (2.1, 2.2)", double_run),
    Damage("run-missing", "committed run(s) are missing, the first: 2", remove_middle_run),
    Damage("open-run-below-head", "no run will settle it", open_below),
    Damage("execution-without-run", "run 9 was its last", lose_execution_run),
    Damage("plan-differs", "its facts say 7", overstate_plan),
    Damage("edge-ahead", "only 3 is published", lambda shop: put_edge(shop, "copy2", 4)),
    Damage("edge-ahead", "would miss the next reset", lambda shop: put_edge(shop, "copy2", 3, epoch=2)),
    Damage("edge-without-consumer", "has an edge and no bookmark", lambda shop: put_edge(shop, "nobody", 1)),
    Damage("position-missing", "is not there", lose_position),
    Damage("position-differs", "in run 2.2 instead of 3.3", take_head_back),
    Damage("position-moved-unread", "read nothing from 'raw'", move_unread),
    Damage("watermark-differs", "its position says", move_watermark),
    Damage("ledger-lacks-files", "They would be read again", forget_files),
    Damage("published-file-missing", "are gone", remove_published),
    Damage("published-file-changed", "another size", cut_published),
    Damage("published-count-differs", "says that it published 7", overstate_output),
    Damage("file-foreign", "no run published them", add_foreign),
    Damage("staging-orphaned", "under a fence that has passed", leave_staging, True),
]


def named(found: list[Finding], damage: Damage) -> Finding:
    """Return the one finding of a damage; whatever else was found follows from it and has its own name."""
    matching = [f for f in found if f.code == damage.code and damage.words in f.what]
    assert len(matching) == 1, [(f.code, f.what) for f in found]
    return matching[0]


def plant_and_find(shop: Shop, damage: Damage) -> Finding:
    three_runs(shop)
    shop.run("copy2")
    assert examine(shop.store) == []
    damage.plant(shop)
    stored, on_disk = items(shop.store), files(shop.root)
    found = named(examine(shop.store, jobs=["copy"]), damage)
    assert items(shop.store) == stored
    assert files(shop.root) == on_disk
    assert found.job == "copy"
    assert found.where
    assert found.repair
    assert found.is_repairable is damage.is_repairable
    return found


@pytest.mark.parametrize("damage", DAMAGES, ids=[f"{d.code}-{i}" for i, d in enumerate(DAMAGES)])
def test_damage_is_named(shop: Shop, damage: Damage) -> None:
    found = plant_and_find(shop, damage)
    assert found.as_dict()["severity"] in ("error", "warning", "notice")


@pytest.mark.parametrize("damage", DAMAGES_IN_BLOBS, ids=["chunk", "bit", "segment"])
def test_damage_of_blobs_is_named(shop: Shop, monkeypatch: pytest.MonkeyPatch, damage: Damage) -> None:
    in_blobs(monkeypatch)
    plant_and_find(shop, damage)


def test_line_without_a_parent_is_named(shop: Shop) -> None:
    three_runs(shop)
    reset(shop.store, "copy", reason="x", who="ada")
    write(shop, Update(shop.store.keys("copy").line(2), set={"parent": 9}))
    (found,) = [f for f in examine(shop.store) if f.code == "line-missing"]
    assert "branches off epoch 9" in found.what
    write(shop, Delete(shop.store.keys("copy").line(2)))
    (found,) = [f for f in examine(shop.store) if f.code == "line-missing"]
    assert "nobody can tell which runs are history" in found.what


LINES = [
    Damage("line-implausible", "keeps runs up to 9", lambda shop: change_line(shop, kept=9)),
    Damage(
        "line-implausible", "branches off epoch 3, which is not before it", lambda shop: change_line(shop, parent=3)
    ),
    Damage("line-implausible", "and later only 3 was", lambda shop: change_line(shop, start=7)),
    Damage("line-differs", "kept 1, start 3) is not what", lambda shop: change_line(shop, kept=1)),
    Damage("line-differs", "start 2) is not what", lambda shop: change_line(shop, start=2)),
    Damage("line-differs", "parent 1, kept 0", lambda shop: change_line(shop, 3, parent=1)),
    Damage("event-missing", "the audit trail has a gap", lambda shop: lose_events(shop)),
    Damage("item-unreadable", "'kept' is no number", lambda shop: change_line(shop, kept="")),
    Damage("item-unreadable", "'contexts_before'", lambda shop: change_line(shop, contexts_before=5)),
]


def lose_events(shop: Shop) -> None:
    """Take away who rewound, and leave who undid it."""
    events = shop.store.table.query("test#JOB#copy", prefix="EVENT#")
    write(shop, *(Delete(key) for key, event in events if event["epoch_after"] == 2))


@pytest.mark.parametrize("damage", LINES, ids=[f"{d.code}-{i}" for i, d in enumerate(LINES)])
def test_damage_of_a_line_is_named(shop: Shop, damage: Damage) -> None:
    three_runs(shop)
    rewind(shop.store, "copy", 2, reason="x", who="ada")
    reset(shop.store, "copy", reason="x", who="ada")
    assert examine(shop.store) == []
    damage.plant(shop)
    named(examine(shop.store), damage)


def test_run_that_says_another_epoch_than_its_number_allows_is_named(shop: Shop) -> None:
    three_runs(shop)
    rewind(shop.store, "copy", 2, reason="x", who="ada")
    shop.run()
    assert examine(shop.store) == []
    change_run(shop, 4, epoch=1)
    assert "run-of-no-line" in {f.code for f in examine(shop.store)}


# ---- what a consumer and its upstream say of each other


def plant_edge(shop: Shop, **changes: Value) -> list[Finding]:
    three_runs(shop)
    shop.run("down", upstream="copy")
    assert examine(shop.store) == []
    write(shop, Update(shop.store.keys("copy").edge("down"), set=changes))
    return examine(shop.store)


def test_edge_behind_its_consumer_is_a_warning(shop: Shop) -> None:
    (found,) = plant_edge(shop, run_number=1, contexts={"raw": 1})
    assert (found.code, found.job, found.severity.value) == ("edge-differs", "down", "warning")


def test_edge_before_its_consumer_is_an_error(shop: Shop) -> None:
    three_runs(shop)
    shop.run("down", upstream="copy")
    shop.put("d.txt", "d")
    shop.run()
    write(shop, Update(shop.store.keys("copy").edge("down"), set={"run_number": 4, "contexts": {"raw": 4}}))
    (found,) = examine(shop.store)
    assert (found.code, found.severity.value) == ("edge-differs", "error")
    assert "up to run 3, and its edge there says 4" in found.what


def test_edge_that_lies_apart_from_its_contexts_is_named(shop: Shop) -> None:
    (found,) = plant_edge(shop, run_number=1)
    assert (found.code, found.job) == ("edge-differs", "copy")


def test_consumer_without_an_edge_is_named(shop: Shop) -> None:
    three_runs(shop)
    shop.run("down", upstream="copy")
    write(shop, Delete(shop.store.keys("copy").edge("down")))
    (found,) = examine(shop.store)
    assert (found.code, found.job) == ("edge-missing", "down")


def test_deleted_consumer_and_its_undo_are_sound(shop: Shop) -> None:
    three_runs(shop)
    shop.run("down", upstream="copy")
    delete(shop.store, "down", typed_name="down", reason="x", who="ada")
    assert examine(shop.store) == []
    undo(shop.store, "down", reason="x", who="ada")
    assert examine(shop.store) == []


def test_names_that_were_given_are_sound(shop: Shop) -> None:
    three_runs(shop)
    rename(shop.store, "copy", "kopie", reason="x", who="ada")
    begun = shop.begin("neu")
    begun.abort("no luck")
    adopt(shop.store, "neu", "copy", reason="x", who="ada")
    assert examine(shop.store) == []


def test_name_of_a_job_that_is_not_there_is_named(shop: Shop) -> None:
    three_runs(shop)
    rename(shop.store, "copy", "kopie", reason="x", who="ada")
    write(shop, Update(shop.store.keys("kopie").index, set={"alias_of": "cop0"}))
    (found,) = examine(shop.store)
    assert (found.code, found.job) == ("alias-dangling", "kopie")


def test_name_that_the_index_has_forgotten_is_named(shop: Shop) -> None:
    three_runs(shop)
    rename(shop.store, "copy", "kopie", reason="x", who="ada")
    write(shop, Update(shop.store.keys("kopie").index, remove=["alias_of"]))
    (found,) = examine(shop.store)
    assert (found.code, found.job) == ("alias-lost", "copy")


def test_context_that_turned_into_one_of_another_source_is_named(shop: Shop) -> None:
    three_runs(shop)
    state = raw(shop, shop.store.keys("copy").head)["contexts"]
    assert isinstance(state, dict)
    assert isinstance(state["raw"], dict)
    change_head(shop, contexts={"raw": {**state["raw"], "fingerprint": "files:/elsewhere"}})
    (found,) = examine(shop.store)
    assert found.code == "position-differs"
    assert "as one of 'files:/elsewhere'" in found.what


def test_copy_in_another_namespace_is_sound(shop: Shop) -> None:
    three_runs(shop)
    shop.run("down", upstream="copy")
    rewind(shop.store, "copy", 2, reason="x", who="ada")
    undo(shop.store, "copy", reason="x", who="ada")
    other = BookmarkStore(shop.store.table, "other")
    import_(other, export(shop.store), who="ada", reason="x")
    assert examine(other) == []
    other_shop = Shop(shop.root, other)
    other_shop.put("d.txt", "d")
    other_shop.run()
    other_shop.run("down", upstream="copy")
    assert [f for f in examine(other) if f.code != "file-foreign"] == []


# ---- one job that can't be read, among others


def test_unreadable_job_does_not_hide_what_is_wrong_with_others(shop: Shop) -> None:
    three_runs(shop)
    shop.run("down")
    change_head(shop, fence="0.0")
    write(shop, Update(shop.store.keys("down").head, set={"published": 7}))
    found = {(f.job, f.code) for f in examine(shop.store)}
    assert {("copy", "item-unreadable"), ("down", "head-inconsistent")} <= found


def test_entry_that_is_no_name_is_named_and_the_rest_is_examined(shop: Shop) -> None:
    three_runs(shop)
    write(shop, Put(Key("test#JOBS", "a/b"), {}), Put(Key("test#JOBS", "c"), {"alias_of": 5}))
    change_head(shop, published=1)
    found = {(f.job, f.code) for f in examine(shop.store)}
    assert {("a/b", "entry-unreadable"), ("c", "entry-unreadable"), ("copy", "head-inconsistent")} <= found


def test_position_that_moved_after_a_rewind_by_no_run_is_named(shop: Shop) -> None:
    three_runs(shop)
    contexts = raw(shop, shop.store.keys("copy").run(committed(shop, 1).key))["contexts"]
    shop.put("late.txt", "late", seconds=1_700_000_900)
    shop.run()
    rewind(shop.store, "copy", 4, reason="x", who="ada")
    assert examine(shop.store) == []
    change_head(shop, contexts=contexts)
    (found,) = examine(shop.store)
    assert found.code == "position-differs"
    assert "the rewind of" in found.what
    assert "by ada" in found.what


def test_clean_target_without_files_is_not_looked_at(shop: Shop) -> None:
    three_runs(shop)
    remove_published(shop)
    assert examine(shop.store, with_files=False) == []


def test_targets_that_jobs_share_are_no_damage(shop: Shop) -> None:
    three_runs(shop)
    for name in ("one", "two"):
        target = shop.root / name
        target.symlink_to(shop.root / "copy", target_is_directory=True)
    assert examine(shop.store) == []


def test_targets_that_jobs_share_by_a_link_are_no_damage(shop: Shop) -> None:
    three_runs(shop)
    (shop.root / "two").symlink_to("copy", target_is_directory=True)
    for name in "abc":
        (shop.raw / f"{name}.txt").unlink()
    shop.put("d.txt", "d")
    shop.run("two")
    assert shop.target_lines()["d"] == 1
    assert examine(shop.store) == []


# ---- SEC-5: no damage is ever taken for an empty state


@pytest.mark.parametrize("plant", [cut_segment, "root", "root gone"])
def test_run_never_takes_a_damaged_position_for_an_empty_one(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, plant: Callable[[Shop], object] | str
) -> None:
    in_blobs(monkeypatch)
    three_runs(shop)
    key = Key(f"test#BLOB#{committed(shop, 3).positions['raw'].sha256}", "0000000000")
    if plant == "root":
        write(shop, Update(key, set={"data": b""}))
    elif plant == "root gone":
        write(shop, Delete(key))
    elif callable(plant):
        plant(shop)
    before = shop.target_lines()
    anew = replace(shop, store=BookmarkStore(shop.store.table, "test"))  # a store keeps segments that it has read
    with pytest.raises(StateCorruptError):
        anew.run()
    assert shop.target_lines() == before
    assert shop.store.head("copy").run_number == 3


def test_tampered_plan_of_a_window_is_an_error(shop: Shop) -> None:
    three_runs(shop)
    flip_bit_in_item(shop)
    with pytest.raises(StateCorruptError):
        shop.side_lines("pause", "1", "3")


# ---- repairs


def repaired(shop: Shop, damage: Damage) -> set[Key]:
    """Plant, repair, and return the keys of the items that the repair changed; positions are none of it."""
    plant_and_find(shop, damage)
    before = items(shop.store)
    positions = before.get(shop.store.keys("copy").head, {}).get("contexts")
    (done,) = repair(shop.store, examine(shop.store, jobs=["copy"]), who="ada")
    assert done.is_done, done.what
    after = items(shop.store)
    assert after[shop.store.keys("copy").head]["contexts"] == positions
    assert examine(shop.store, jobs=["copy"]) == []
    return {key for key in {*before, *after} if before.get(key) != after.get(key)}


def damage_of(code: str) -> Damage:
    (found,) = [damage for damage in DAMAGES if damage.code == code]
    return found


def without_event(changed: set[Key]) -> set[Key]:
    events = {key for key in changed if key.sk.startswith("EVENT#")}
    assert len(events) == 1
    return changed - events


def test_dangling_lease_is_taken_away_under_the_next_fence(shop: Shop) -> None:
    changed = without_event(repaired(shop, damage_of("lease-dangling")))
    assert changed == {shop.store.keys("copy").head}
    assert shop.store.head("copy").lease is None
    assert shop.store.head("copy").fence == 4
    (event,) = shop.store.events("copy")
    assert (event["kind"], event["who"], event["code"]) == ("repair", "ada", "lease-dangling")
    assert shop.run()[0] == []


def test_lost_publish_is_due_again_and_the_next_run_makes_it(shop: Shop) -> None:
    changed = without_event(repaired(shop, damage_of("publish-lost")))
    assert changed == {shop.store.keys("copy").head}
    assert shop.store.head("copy").publishing == RunKey(3, 3)
    shop.run()
    assert shop.store.head("copy").published == 4
    assert shop.target_lines() == {"a of copy": 1, "b of copy": 1, "c of copy": 1}


def test_lost_publish_whose_staging_is_gone_is_left_to_a_person(shop: Shop) -> None:
    three_runs(shop)
    lose_publish(shop)
    os.unlink(next((shop.root / "copy" / "file=c").iterdir()))
    (found,) = examine(shop.store)
    assert found.code == "publish-lost"
    assert not found.is_repairable
    assert "rewind the job to before this run" in found.repair


def test_missing_index_entry_is_written(shop: Shop) -> None:
    changed = without_event(repaired(shop, damage_of("index-missing")))
    assert changed == {shop.store.keys("copy").index}
    assert "copy" in dict(shop.store.jobs())


def test_lost_index_entry_is_found_where_it_is_looked_for(shop: Shop) -> None:
    three_runs(shop)
    write(shop, Delete(shop.store.keys("copy").index))
    assert [f.code for f in examine(shop.store, with_lost=True)] == ["index-missing"]


def collected_job(shop: Shop) -> int:
    three_runs(shop)
    shop.put("d.txt", "d")
    shop.run()
    (done,) = collect(shop.store, clock=in_days(100)).jobs
    assert done.collected_until > 1
    assert examine(shop.store) == []
    write(shop, Delete(shop.store.keys("copy").index))
    return done.collected_until


def test_entry_that_is_written_anew_says_what_was_collected(shop: Shop) -> None:
    until = collected_job(shop)
    (done,) = [each for each in repair(shop.store, examine(shop.store, with_lost=True), who="ada") if each.is_done]
    assert done.finding.code == "index-missing"
    assert collected_until(shop.store, "copy") == until
    assert examine(shop.store) == []


def test_entry_is_not_written_anew_where_nobody_can_tell_what_was_collected(shop: Shop) -> None:
    for name in "abcde":
        shop.put(f"{name}.txt", name)
        shop.run()
    write(shop, Delete(shop.store.keys("copy").run(committed(shop, 3).key)))
    write(shop, Delete(shop.store.keys("copy").execution("manual/1")))
    write(shop, Delete(shop.store.keys("copy").index))
    (found,) = [f for f in examine(shop.store, with_lost=True) if f.code == "index-missing"]
    assert not found.is_repairable
    assert "Restore the entry from a backup" in found.repair


def test_entry_of_an_imported_job_is_not_written_anew(shop: Shop) -> None:
    three_runs(shop)
    other = BookmarkStore(shop.store.table, "other")
    import_(other, export(shop.store), who="ada", reason="x")
    write(shop, Delete(other.keys("copy").index))
    (found,) = [f for f in examine(other, with_lost=True) if f.code == "index-missing"]
    assert not found.is_repairable


def test_orphaned_staging_is_removed_and_nothing_else(shop: Shop) -> None:
    three_runs(shop)
    shop.run("copy2")
    kept = files(shop.root)
    leave_staging(shop)
    before = items(shop.store)
    found = examine(shop.store)
    (done,) = repair(shop.store, found, who="ada")
    assert done.is_done
    assert items(shop.store) == before
    assert files(shop.root) == kept


def test_staging_of_an_open_or_due_run_is_no_orphan(shop: Shop) -> None:
    three_runs(shop)
    shop.environment = short_lease()
    left = shop.begin()
    shop.put("d.txt", "d")
    shop.copy(left)
    assert [f.code for f in examine(shop.store, clock=in_days(1))] == ["lease-dangling"]


def test_repair_of_what_is_not_so_any_more_changes_nothing(shop: Shop) -> None:
    three_runs(shop)
    leave_lease(shop)
    found = examine(shop.store)
    shop.run()
    before = items(shop.store)
    (done,) = repair(shop.store, found, who="ada")
    assert not done.is_done
    assert "not so any more" in done.what
    assert items(shop.store) == before


def test_what_needs_a_person_is_never_repaired(shop: Shop) -> None:
    three_runs(shop)
    take_head_back(shop)
    before = items(shop.store)
    assert repair(shop.store, examine(shop.store), who="ada") == []
    assert items(shop.store) == before


def test_plans_of_the_sound_state_are_what_was_read(shop: Shop) -> None:
    three_runs(shop)
    plan = FilePlan.decode(shop.store.blobs.get(committed(shop, 2).plans["raw"].body))
    assert [Path(path).name for path in plan.files.paths] == ["b.txt"]


def test_damage_is_found_and_mended_on_this_backend(table: Table, tmp_path: Path) -> None:
    store = BookmarkStore(table, "test")
    store.init()
    shop = Shop(tmp_path, store)
    three_runs(shop)
    assert examine(store) == []
    leave_lease(shop)
    lose_publish(shop)
    assert {f.code for f in examine(store)} == {"lease-dangling", "publish-lost"}
    for _ in range(2):  # first the lease, and only then the publish can be noted as due
        repair(store, examine(store), who="ada")
    assert examine(store) == []
    shop.run()
    assert store.head("copy").published == 4
