"""What `SqliteTable` does with files: absent, foreign, damaged, locked, shared. The rest: the conformance suite."""

from __future__ import annotations

import gc
import multiprocessing
import os
import sqlite3
import stat
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from airflow_bookmarks.core.errors import (
    ConditionFailedError,
    StateCorruptError,
    StoreAccessError,
    StoreError,
    StoreUnavailableError,
    TableLayoutError,
    TableMissingError,
)
from airflow_bookmarks.files.objects import FileObjects
from airflow_bookmarks.lifecycle.maintenance.doctor import examine
from airflow_bookmarks.lifecycle.maintenance.doctor.finding import Severity
from airflow_bookmarks.store.backends.sqlite import TOKEN_LIFETIME_S, SqliteTable
from airflow_bookmarks.store.bookmark_store import BookmarkStore
from airflow_bookmarks.store.table import Equals, Key, Put, Update

HEAD = Key("default#JOB#flights", "HEAD")
PROCESSES = 4
INCREMENTS = 25


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state of it?#%" / "bookmarks.db"


@pytest.fixture
def table(path: Path) -> Iterator[SqliteTable]:
    path.parent.mkdir()
    table = SqliteTable(path)
    table.create()
    yield table
    table.close()


# ---- absent, foreign and damaged files


def test_an_absent_file_is_missing_and_not_created(tmp_path: Path) -> None:
    path = tmp_path / "bookmarks.db"
    table = SqliteTable(path)
    for touch in (lambda: table.get([HEAD]), lambda: list(table.query("p")), lambda: table.transact([Put(HEAD, {})])):
        with pytest.raises(TableMissingError, match=f"airflow-bookmarks init --store sqlite:///{path}'"):
            touch()
    assert list(tmp_path.iterdir()) == []


def test_an_absent_file_is_created_when_that_was_asked_for(tmp_path: Path) -> None:
    with closing(SqliteTable(tmp_path / "bookmarks.db", create=True)) as table:
        table.transact([Put(HEAD, {"fence": 1})])
    with closing(SqliteTable(tmp_path / "bookmarks.db")) as table:
        assert table.get([HEAD]) == {HEAD: {"fence": 1}}


def test_a_file_in_an_absent_folder_is_refused_by_creation(tmp_path: Path) -> None:
    with pytest.raises(StoreAccessError, match="folder must exist"):
        SqliteTable(tmp_path / "absent" / "bookmarks.db").create()


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(StoreAccessError, match="can't open"):
        SqliteTable(tmp_path).get([HEAD])


def test_an_empty_file_is_no_table_and_can_become_one(tmp_path: Path) -> None:
    path = tmp_path / "bookmarks.db"
    path.touch()
    table = SqliteTable(path)
    with pytest.raises(TableMissingError):
        table.get([HEAD])
    assert table.create() is True
    assert table.get([HEAD]) == {}
    table.close()


def test_a_file_that_is_no_database_is_left_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("not a database\n" * 100)
    table = SqliteTable(path, create=True)
    for touch in (lambda: table.get([HEAD]), table.create):
        with pytest.raises(TableLayoutError, match="no SQLite database"):
            touch()
    assert path.read_text() == "not a database\n" * 100


def test_a_database_of_something_else_is_left_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "airflow.db"
    with closing(sqlite3.connect(path)) as other:
        other.execute("CREATE TABLE items (id INTEGER)")
    before = path.read_bytes()
    table = SqliteTable(path)
    for touch in (lambda: table.get([HEAD]), table.create):
        with pytest.raises(TableLayoutError, match="of something else"):
            touch()
    assert path.read_bytes() == before


def test_a_file_of_a_later_layout_is_refused(table: SqliteTable, path: Path) -> None:
    with closing(sqlite3.connect(path)) as other:
        other.execute("PRAGMA user_version = 9")
    with pytest.raises(TableLayoutError, match="layout version 9"):
        SqliteTable(path).get([HEAD])


def test_a_damaged_file_is_corrupt_state(table: SqliteTable, path: Path) -> None:
    table.transact([Put(Key("p", f"{n:03d}"), {"data": "x" * 1000}) for n in range(100)])
    table.close()
    content = bytearray(path.read_bytes())
    content[4096:] = b"\xff" * (len(content) - 4096)
    path.write_bytes(content)
    with closing(SqliteTable(path)) as damaged, pytest.raises(StateCorruptError, match="backup"):
        list(damaged.query("p"))


def test_an_item_that_was_edited_into_nonsense_is_corrupt_state(table: SqliteTable, path: Path) -> None:
    table.transact([Put(HEAD, {})])
    for text in ("{", "[]", '{"n": 1.5}', '{"b": {"$bytes": "?"}}', '{"b": {"$bytes": 1}}'):
        with closing(sqlite3.connect(path, isolation_level=None)) as other:
            other.execute("UPDATE items SET attributes = ?", (text,))
        with pytest.raises(StateCorruptError, match="HEAD"):
            table.get([HEAD])


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write what is read-only")
def test_a_file_that_may_not_be_written_is_told(table: SqliteTable, path: Path) -> None:
    table.close()
    path.chmod(stat.S_IRUSR)
    with closing(SqliteTable(path)) as read_only, pytest.raises(StoreAccessError, match="must be allowed"):
        read_only.transact([Put(HEAD, {})])


def test_items_are_readable_with_any_sqlite_tool(table: SqliteTable, path: Path) -> None:
    table.transact([Put(HEAD, {"state": "PLANNED", "root": b"a", "note": "Zürich"})])
    with closing(sqlite3.connect(path)) as other:
        row = other.execute("SELECT pk, sk, attributes FROM items").fetchone()
        mode = other.execute("PRAGMA journal_mode").fetchone()[0]
    assert row == (HEAD.pk, HEAD.sk, '{"state":"PLANNED","root":{"$bytes":"YQ=="},"note":"Zürich"}')
    assert mode == "wal"


# ---- locks


def test_a_file_that_stays_locked_is_unavailable_after_the_limit(table: SqliteTable, path: Path) -> None:
    now_s = 0.0

    def sleep(seconds: float) -> None:
        nonlocal now_s
        now_s += seconds

    patient = SqliteTable(path, outage_limit_s=1.0, sleep=sleep, monotonic=lambda: now_s, random=lambda: 1.0)
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreUnavailableError, match=r"1 s \(transact\)"):
            patient.transact([Put(HEAD, {})])
        assert patient.get([HEAD]) == {}  # reading needs no lock
    patient.transact([Put(HEAD, {})])
    patient.close()


def test_a_writer_waits_for_the_one_before_it(table: SqliteTable, path: Path) -> None:
    with closing(sqlite3.connect(path, isolation_level=None, check_same_thread=False)) as other:
        other.execute("BEGIN IMMEDIATE")

        def release(_: float) -> None:
            if other.in_transaction:
                other.execute("COMMIT")

        waiting = SqliteTable(path, sleep=release)
        waiting.transact([Put(HEAD, {"fence": 1})])
        assert waiting.get([HEAD]) == {HEAD: {"fence": 1}}
        waiting.close()


def test_a_table_is_used_by_threads_that_come_and_go(table: SqliteTable) -> None:
    for fence in range(20):
        thread = threading.Thread(target=table.transact, args=([Put(HEAD, {"fence": fence})],))
        thread.start()
        thread.join()
    assert table.get([HEAD]) == {HEAD: {"fence": 19}}
    assert len(table._connections) <= 2  # those of ended threads are closed


@pytest.mark.parametrize("where", ["bookmarks.db", ":memory:"])
def test_table_that_is_dropped_closes_its_connections(
    where: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    table = SqliteTable(where, create=True)
    table.get([HEAD])
    (connection,) = table._connections.values()

    del table
    gc.collect()

    with pytest.raises(sqlite3.ProgrammingError, match="closed"):
        connection.execute("SELECT 1")


# ---- processes


def increment(path: Path) -> None:
    with closing(SqliteTable(path)) as table:
        for _ in range(INCREMENTS):
            while not _counted(table):
                pass


def _counted(table: SqliteTable) -> bool:
    count = table.get([HEAD])[HEAD]["count"]
    assert isinstance(count, int)
    try:
        table.transact([Update(HEAD, set={"count": count + 1}, conditions=[Equals("count", count)])], token=_token())
    except ConditionFailedError:
        return False
    return True


def _token() -> str:
    return str(uuid.uuid4())


def create(path: Path, results: multiprocessing.Queue[bool]) -> None:
    with closing(SqliteTable(path)) as table:
        results.put(table.create())


def run(target: object, *arguments: object) -> None:
    context = multiprocessing.get_context("spawn")
    processes = [context.Process(target=target, args=arguments) for _ in range(PROCESSES)]  # type: ignore[arg-type]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    assert [process.exitcode for process in processes] == [0] * PROCESSES


def test_processes_that_count_by_compare_and_set_lose_nothing(table: SqliteTable, path: Path) -> None:
    table.transact([Put(HEAD, {"count": 0})])
    run(increment, path)
    assert table.get([HEAD]) == {HEAD: {"count": PROCESSES * INCREMENTS}}


def test_of_processes_that_create_one_file_exactly_one_does(tmp_path: Path) -> None:
    path = tmp_path / "bookmarks.db"
    results: multiprocessing.Queue[bool] = multiprocessing.get_context("spawn").Queue()
    run(create, path, results)
    assert sorted(results.get() for _ in range(PROCESSES)) == [False] * (PROCESSES - 1) + [True]
    with closing(SqliteTable(path)) as table:
        assert table.get([HEAD]) == {}


def test_a_forked_child_opens_a_connection_of_its_own(table: SqliteTable) -> None:
    table.transact([Put(HEAD, {"fence": 1})])
    child = multiprocessing.get_context("fork").Process(target=table.transact, args=([Put(HEAD, {"fence": 2})],))
    child.start()
    child.join()
    assert child.exitcode == 0
    assert table.get([HEAD]) == {HEAD: {"fence": 2}}


# ---- tokens, memory


def test_a_token_is_forgotten_after_ten_minutes(tmp_path: Path) -> None:
    now = time.time()
    table = SqliteTable(tmp_path / "bookmarks.db", create=True, clock=lambda: now)
    table.transact([Put(HEAD, {"fence": 1})], token="t")
    now += TOKEN_LIFETIME_S - 1
    with pytest.raises(StoreError, match="new token"):
        table.transact([Put(HEAD, {"fence": 2})], token="t")
    now += 2
    table.transact([Put(HEAD, {"fence": 3})], token="t")
    assert table.get([HEAD]) == {HEAD: {"fence": 3}}
    table.close()


def test_two_tables_in_memory_are_two() -> None:
    with closing(SqliteTable(":memory:")) as one, closing(SqliteTable(":memory:")) as other:
        one.transact([Put(HEAD, {})])
        assert other.get([HEAD]) == {}


def test_a_failure_inside_a_transaction_in_memory_leaves_it_usable() -> None:
    with closing(SqliteTable(":memory:")) as table:
        table.transact([Put(HEAD, {"a": "x" * 300_000})])
        with pytest.raises(StoreError):
            table.transact([Put(Key("p", "a"), {}), Update(HEAD, set={"b": "x" * 300_000})])
        table.transact([Put(Key("p", "b"), {})])
        assert [key.sk for key, _ in table.query("p")] == ["b"]


def test_file_that_was_removed_under_an_open_table_is_an_error_and_no_success(tmp_path: Path) -> None:
    table = SqliteTable(tmp_path / "bookmarks.db")
    table.create()
    table.transact([Put(Key("p", "s"), {"a": 1})])
    for path in tmp_path.iterdir():
        path.unlink()
    with pytest.raises(TableMissingError):
        table.transact([Put(Key("p", "s"), {"a": 2})])
    with pytest.raises(TableMissingError):
        table.get([Key("p", "s")])


def test_reading_some_items_costs_no_look_at_the_others(table: SqliteTable) -> None:
    wanted = [Key("a", "1"), Key("b", "1"), Key("c", "1")]
    table.transact([Put(key, {}) for key in wanted])
    steps_alone = _steps(table, wanted)
    for page in range(20):
        table.transact([Put(Key(f"other {page}", str(number)), {}) for number in range(100)])

    assert _steps(table, wanted) < steps_alone + 50


def _steps(table: SqliteTable, keys: list[Key]) -> int:
    """Count the instructions of SQLite's virtual machine that one read takes."""
    counted: list[None] = []
    with table._connection() as connection:
        connection.set_progress_handler(lambda: counted.append(None), 1)
        assert len(table.get(keys)) == len(keys)
        connection.set_progress_handler(None, 0)
    return len(counted)


# ---- who may read it


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.parametrize("umask", [0, 0o022, 0o777])
def test_file_and_its_journals_are_made_for_their_owner_alone_whatever_the_umask(tmp_path: Path, umask: int) -> None:
    before = os.umask(umask)
    try:
        table = SqliteTable(tmp_path / "bookmarks.db")
        table.create()
        table.transact([Put(HEAD, {"version": 1})])
        modes = {path.name: mode_of(path) for path in tmp_path.iterdir()}
    finally:
        os.umask(before)
    assert modes == dict.fromkeys(["bookmarks.db", "bookmarks.db-wal", "bookmarks.db-shm"], 0o600)
    table.close()


def test_file_is_not_wider_for_a_moment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, seen = tmp_path / "bookmarks.db", []

    def connect(*args: object, **kwargs: object) -> sqlite3.Connection:
        seen.append(mode_of(path))
        return connected(*args, **kwargs)

    connected: Callable[..., sqlite3.Connection] = sqlite3.connect
    monkeypatch.setattr(sqlite3, "connect", connect)
    SqliteTable(path).create()
    assert seen == [0o600]


def test_file_that_others_may_read_stays_so_and_is_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "bookmarks.db"
    SqliteTable(path).create()
    assert "permissions" not in caplog.text
    path.chmod(0o664)
    table = SqliteTable(path)
    table.transact([Put(HEAD, {"version": 1})])
    table.get([HEAD])
    assert [record.getMessage().count("0664") for record in caplog.records] == [1]
    assert mode_of(path) == 0o664
    table.close()


@pytest.mark.parametrize(("above", "folder", "file"), [(0o755, 0o700, 0o600), (0o2775, 0o2770, 0o660)])
def test_blob_in_a_folder_is_private_unless_its_group_may_write_there(
    tmp_path: Path, above: int, folder: int, file: int
) -> None:
    state = tmp_path / "state"
    state.mkdir()
    state.chmod(above)
    before = os.umask(0)
    try:
        FileObjects().put(f"{state}/prod/blobs/a", b"secret")
    finally:
        os.umask(before)
    assert [mode_of(state / name) for name in ("prod", "prod/blobs", "prod/blobs/a")] == [folder, folder, file]
    assert mode_of(state) == above


def test_doctor_tells_of_a_state_file_that_others_may_read(tmp_path: Path) -> None:
    path = tmp_path / "bookmarks.db"
    store = BookmarkStore(SqliteTable(path), "test")
    store.init()
    assert examine(store) == []
    path.chmod(0o644)
    (finding,) = examine(store)
    assert (finding.code, finding.severity, finding.where) == ("file-open", Severity.NOTICE, str(path))
