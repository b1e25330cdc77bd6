"""The state transitions on every backend: one head, one fence, one committer, whatever keeps the items."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from airflow_bookmarks.core.errors import FencedError, StateCorruptError, TableLayoutError
from airflow_bookmarks.core.job import RunIdentity
from airflow_bookmarks.core.position import Edge
from airflow_bookmarks.core.run import OutputEntry, RunKey, RunState
from airflow_bookmarks.lifecycle.changes.change import reset, rewind
from airflow_bookmarks.lifecycle.inspect.runs import history
from airflow_bookmarks.lifecycle.protocol.recover import STARTS_FROM
from airflow_bookmarks.sinks.staging import Mode
from airflow_bookmarks.store.blobs import CHUNK_BYTES
from airflow_bookmarks.store.bookmark_store import MAX_UPSTREAMS, BookmarkStore, Commit, LeaseGrant
from airflow_bookmarks.store.codec import item
from airflow_bookmarks.store.table import Attributes, Put, Table
from tests.lifecycle.shop import Shop

LEASE = timedelta(minutes=2)


@pytest.fixture
def store(table: Table) -> BookmarkStore:
    """Open an initialised store on this backend."""
    store = BookmarkStore(table, "test")
    store.init()
    return store


def take(store: BookmarkStore, run_id: str = "one", attempt: int = 1) -> LeaseGrant:
    identity = RunIdentity(run_id, attempt)
    grant = store.take("job", identity, store.snapshot("job", run_id), LEASE)
    assert grant is not None
    return grant


def nothing(**changes: object) -> Commit:
    commit = Commit(
        contexts={}, positions={}, outputs={}, edges={}, schemas={}, metrics={}, is_empty=False, has_item=False
    )
    return replace(commit, **changes)  # type: ignore[arg-type]


def test_whole_life_of_a_chain_with_a_rewind(store: BookmarkStore, tmp_path: Path) -> None:
    shop = Shop(tmp_path, store, mode=Mode.OVERWRITE_PARTITIONS)
    for name in "ab":
        shop.put(f"{name}.txt", name)
        shop.run("up")
        shop.run("down", upstream="up")
    rewind(store, "up", 1, reason="a test", who="me")
    shop.put("c.txt", "c")
    shop.run("up")
    lines, _ = shop.run("down", upstream="up", on_rewind="rewind")
    assert sorted(lines) == ["b", "c"]
    assert shop.target_lines("down") == {"a": 1, "b": 1, "c": 1}
    assert [row["state"] for row in history(store, "up")] == ["PUBLISHED", "UNDONE", "PUBLISHED"]


def test_init_twice_changes_nothing(store: BookmarkStore) -> None:
    before = store.table.get([item.SCHEMA])
    assert store.init() is False
    assert store.table.get([item.SCHEMA]) == before


def test_table_of_another_layout_version_is_refused(store: BookmarkStore) -> None:
    schema: Attributes = {"layout_version": 99}
    store.table.transact([Put(item.SCHEMA, schema)])
    for call in (store.init, store.check_layout, lambda: store.snapshot("job")):
        with pytest.raises(TableLayoutError, match="99"):
            call()


def test_of_several_takers_exactly_one_gets_the_job(store: BookmarkStore, backend: str) -> None:
    if backend == "moto":
        pytest.skip("moto checks a transaction and writes it in steps that another request can come between")
    seen = {run_id: store.snapshot("job", run_id) for run_id in "abcdef"}
    got: list[LeaseGrant | None] = []
    start = threading.Barrier(len(seen))

    def race(run_id: str) -> None:
        start.wait()
        got.append(store.take("job", RunIdentity(run_id), seen[run_id], LEASE))

    threads = [threading.Thread(target=race, args=(run_id,)) for run_id in seen]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len([grant for grant in got if grant is not None]) == 1
    assert store.head("job").fence == 1


def test_fence_grows_with_each_take_kill_and_reset(store: BookmarkStore) -> None:
    fences = [take(store, "one", 1).fence, take(store, "one", 2).fence]
    store.fence("job", "one", 2)
    fences.append(store.head("job").fence)
    reset(store, "job", reason="a test", who="me")
    fences.append(store.head("job").fence)
    assert fences == [1, 2, 3, 4]


def test_stale_holder_can_write_nothing(store: BookmarkStore) -> None:
    stale = take(store, "one", 1)
    take(store, "one", 2)
    run = store.run("job", RunKey(1, 1))
    assert run is None
    writes: list[Callable[[], object]] = [
        lambda: store.commit(stale, nothing()),
        lambda: store.fail(stale, "late", has_item=True),
        lambda: store.renew(stale, LEASE),
        lambda: store.release(stale),
    ]
    for write in writes:
        with pytest.raises(FencedError, match="'one'"):
            write()
    head = store.head("job")
    assert (head.version, head.run_number, head.fence) == (0, 0, 2)


def test_commit_of_many_contexts_and_as_many_upstreams_as_fit_is_read_back(store: BookmarkStore) -> None:
    body = store.payloads({"raw": b"{}"})["raw"]
    names = [f"c{number}" for number in range(MAX_UPSTREAMS)]
    edges = {f"up{ctx}": Edge("job", 1, 1, 0, {ctx: 1}) for ctx in names}
    bodies = dict.fromkeys(names, body)
    output = OutputEntry("files", "/out", "/out/_bookmarks/1.1/out")
    grant = take(store)
    store.commit(grant, nothing(positions=bodies, schemas=bodies, edges=edges, outputs={"out": output}))
    run = store.run("job", grant.key)
    assert run is not None
    assert (run.positions, run.schemas, run.edges.keys(), run.outputs) == (
        bodies,
        bodies,
        edges.keys(),
        {"out": output},
    )


def test_commit_and_mark_move_head_run_execution_and_index_together(store: BookmarkStore) -> None:
    grant = take(store)
    store.commit(grant, nothing())
    head = store.head("job")
    assert (head.version, head.run_number, head.published, head.publishing) == (1, 1, 0, RunKey(1, 1))
    run = store.run("job", grant.key)
    assert run is not None
    assert run.state is RunState.COMMITTED
    store.mark(grant, run, is_own=True)
    head, execution = store.head("job"), store.execution("job", "one")
    assert execution is not None
    assert (head.published, head.publishing, head.lease) == (1, None, None)
    assert (execution.first_run, execution.last_run, execution.is_finished) == (1, 1, True)
    assert store.index_entry("job")["run_number"] == 1  # type: ignore[index]


def test_mark_can_take_the_next_fence_in_the_same_transaction(store: BookmarkStore) -> None:
    grant = take(store)
    store.commit(grant, nothing(is_last=False))
    run = store.run("job", grant.key)
    assert run is not None
    following = store.mark(grant, run, is_own=True, take_next=LEASE)
    assert following is not None
    assert (following.fence, following.run_number, following.base.version) == (2, 2, 1)
    store.commit(following, nothing())
    with pytest.raises(FencedError):
        store.renew(grant, LEASE)


def test_landed_run_is_adopted_in_one_transaction(store: BookmarkStore, tmp_path: Path) -> None:
    from airflow_bookmarks.core.run import PlanEntry

    dead = take(store, "one", 1)
    entry = PlanEntry("files", store.blobs.payload(b"plan"), {STARTS_FROM: None}, "files:/x")
    store.plan(dead, "raw", entry, option="enable", is_last=True)
    heir = take(store, "one", 2)
    open_run = store.open_runs("job", heir.base)[0]
    adopted = store.adopt(heir, open_run)
    assert (adopted.key, adopted.fences) == (RunKey(1, 2), (1, 2))
    old = store.run("job", RunKey(1, 1))
    assert old is not None
    assert old.state is RunState.ABANDONED
    assert [run.key for run in store.open_runs("job", heir.base)] == [RunKey(1, 2)]


def test_items_can_be_read_by_a_person(store: BookmarkStore, tmp_path: Path) -> None:
    shop = Shop(tmp_path, store)
    shop.put("a.txt", "a")
    shop.run("job", run_id="dag/run/task")
    keys = store.keys("job")
    found = store.table.get([keys.head, keys.run(RunKey(1, 1)), keys.execution("dag/run/task")])
    head = found[keys.head]
    assert head["contexts"]["raw"]["watermark"] == "2023-11-14T22:13:20.000000Z"  # type: ignore[index,call-overload]
    run = found[keys.run(RunKey(1, 1))]
    assert (run["state"], run["run_id"], run["epoch"]) == ("PUBLISHED", "dag/run/task", 1)
    assert str(run["committed_at"]).endswith("Z")
    assert keys.head.pk == "test#JOB#job"
    assert keys.run(RunKey(1, 1)).sk == "RUN#0000000001#0000000001"


def test_large_payload_becomes_a_checksummed_blob(store: BookmarkStore) -> None:
    data = bytes(range(256)) * (CHUNK_BYTES // 256 + 10)
    payload = store.payloads({"x": data})["x"]
    assert (payload.inline, payload.chunks) == (None, 2)
    assert store.blobs.get(payload) == data


def test_tampered_or_truncated_blob_is_an_error(store: BookmarkStore) -> None:
    payload = store.blobs.put(b"x" * (CHUNK_BYTES + 1))
    partition = f"test#BLOB#{payload.sha256}"
    (key, first), (_, _) = list(store.table.query(partition))
    store.table.transact([Put(key, {**first, "data": b"y" + b"x" * (CHUNK_BYTES - 1)})])
    with pytest.raises(StateCorruptError, match="checksum"):
        store.blobs.get(payload)
    from airflow_bookmarks.store.table import Delete

    store.table.transact([Delete(key)])
    with pytest.raises(StateCorruptError, match="1 of 2 chunks"):
        store.blobs.get(payload)


def test_job_that_a_dag_took_over_is_found_under_that_dag(store: BookmarkStore, tmp_path: Path) -> None:
    shop = Shop(tmp_path, store)
    shop.raw.mkdir()
    shop.run("job")
    identity = RunIdentity("dag/run/task", 1, dag_id="dag", task_id="task")
    grant = store.take("job", identity, store.snapshot("job", identity.run_id), LEASE, owner="dag")
    assert grant is not None
    store.commit(grant, nothing())
    entry = store.index_entry("job")
    assert entry is not None
    assert (entry["dag_id"], entry["task_id"], entry["run_number"]) == ("dag", "task", 2)


def test_take_is_refused_when_the_holder_committed_since_the_look(store: BookmarkStore) -> None:
    first = take(store, "one", 1)
    seen = store.snapshot("job", "one")
    store.commit(first, nothing())

    assert store.take("job", RunIdentity("one", 2), seen, LEASE) is None
    assert take(store, "one", 2).base.publishing == RunKey(1, 1)


def test_take_is_refused_when_the_holder_placed_an_output_since_the_look(store: BookmarkStore) -> None:
    first = take(store, "one", 1)
    seen = store.snapshot("job", "one")
    entry = OutputEntry("files", "/target", "/target/_bookmarks/test/job/1.1/out")
    store.place(first, {"out": entry}, ["/target/_bookmarks/test/job"], option="enable", is_last=True)

    assert store.take("job", RunIdentity("one", 2), seen, LEASE) is None
    assert take(store, "one", 2).base.staging == ("/target/_bookmarks/test/job",)
