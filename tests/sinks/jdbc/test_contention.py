"""Publishes beside others who work on the same tables: each gets through, and none blocks the rest (SINK-4)."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager

import pytest

from airflow_bookmarks.core.database import publish_sql
from airflow_bookmarks.core.database.publish_sql import TokenRow
from airflow_bookmarks.core.database.upsert import Upsert
from airflow_bookmarks.core.errors import PublishError, SourceError
from airflow_bookmarks.core.rules.mode import Mode
from airflow_bookmarks.core.run import RunKey
from airflow_bookmarks.databases.database import Database, open_database
from airflow_bookmarks.databases.login import DatabaseLogin
from airflow_bookmarks.sinks.jdbc import loading, sink
from airflow_bookmarks.sinks.jdbc import publish as publishing
from airflow_bookmarks.sinks.jdbc.place import StagePlace
from airflow_bookmarks.sinks.sink import StoredOutput
from airflow_bookmarks.store.blobs import BlobStore
from airflow_bookmarks.testing.sink_ground import JOB, NAME
from tests.databases.servers import new_database
from tests.lifecycle.protocol.test_tables_together import _WAITING
from tests.sinks.jdbc.table_ground import TableGround
from tests.sinks.jdbc.test_publish import ID_NAME, publish, token_of


@pytest.fixture(params=["postgresql", "mariadb"])
def login(request: pytest.FixtureRequest) -> Iterator[DatabaseLogin]:
    """Make an empty database in a server, where several can be at work."""
    with new_database(request.getfixturevalue(f"{request.param}_server")) as made:
        yield made


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(4) as opened:
        yield opened


def token(ground: TableGround, output: StoredOutput) -> TokenRow:
    place = StagePlace.parse(output.entry.place)
    assert place is not None
    return TokenRow.of(ground.login.dialect, place.table, place.name)


def wait_for_a_lock(ground: TableGround, publisher: Future[int]) -> None:
    """Return once a publisher waits for somebody's lock."""
    with ground.opened() as watcher:
        while not watcher.rows(_WAITING[ground.login.dialect]):
            assert not publisher.done()


@contextmanager
def somebody(ground: TableGround) -> Iterator[Database]:
    """Open a transaction of somebody whom the database spares in a deadlock."""
    is_pg = ground.login.dialect == "postgresql"
    ground.execute("CREATE TABLE heavy (id int)")
    if is_pg:  # whoever looks for a deadlock finds it, and gives way
        ground.execute(f"ALTER DATABASE {ground.login.database} SET deadlock_timeout = '3s'")
    with open_database(ground.login) as database:
        if is_pg:
            database.execute("SET deadlock_timeout = '1h'")
        with database.transaction():
            # MariaDB ends the one that has changed less.
            series = "generate_series(1, 100)" if is_pg else "seq_1_to_100"
            database.execute(f"INSERT INTO heavy SELECT 1 FROM {series}")
            yield database


def test_publish_that_gives_way_in_a_deadlock_is_begun_anew(
    login: DatabaseLogin, blobs: BlobStore, pool: ThreadPoolExecutor
) -> None:
    ground = TableGround(login, blobs, columns=ID_NAME, key=["id"], upsert=Upsert(("id",)))
    ground.execute("INSERT INTO dim VALUES (1, 'old')")
    output = ground.staged_output(RunKey(1, 1), [(1, "a"), (2, "b")])
    with somebody(ground) as other:
        other.execute("UPDATE dim SET name = 'other' WHERE id = 1")
        publisher = pool.submit(publish, ground, output)
        wait_for_a_lock(ground, publisher)  # for the row, with the token in its hands
        other.rows(token(ground, output).read() + " FOR UPDATE")
    assert publisher.result() == 2
    assert (ground.all_rows(), token_of(ground)) == ([(1, "a"), (2, "b")], (1, 2))


def test_publish_that_waits_in_vain_says_who_may_hold_it_up(login: DatabaseLogin, blobs: BlobStore) -> None:
    ground = TableGround(login, blobs, columns=ID_NAME)
    output = ground.staged_output(RunKey(1, 1), [(1, "a")])
    is_pg = login.dialect == "postgresql"
    if is_pg:
        ground.execute(f"ALTER DATABASE {login.database} SET lock_timeout = '1s'")
    else:
        ground.execute("SET GLOBAL innodb_lock_wait_timeout = 1")
    try:
        with somebody(ground) as other:
            other.execute(token(ground, output).note(0))
            with pytest.raises(SourceError, match=r"(?i)lock.*Nothing of it was published.*end its transaction"):
                publish(ground, output)
    finally:
        if not is_pg:
            ground.execute("SET GLOBAL innodb_lock_wait_timeout = DEFAULT")
    assert publish(ground, output) == 1


def test_executor_that_is_gone_while_it_loads_holds_nobody_up(
    login: DatabaseLogin, blobs: BlobStore, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(loading, "_LOADING_S", 1)
    monkeypatch.setattr(sink, "_LEAVING_S", 1)
    ground = TableGround(login, blobs, columns=ID_NAME)
    _, root = ground.sink.stage(JOB, RunKey(1, 1), NAME, ground.request)
    assert root is not None
    place = StagePlace.parse(ground.placed(RunKey(1, 1)).entry.place)
    assert place is not None
    load = loading.TableLoad("job 'job', output 'out'", ground.target, ("id", "name"))
    with ground.opened() as driver, ground.opened() as executor:
        load.create(driver, place, load.check(driver), "test/job/out")
        with executor.transaction():  # whose end the server would notice after hours
            executor.execute(f"INSERT INTO {ground.sql(place.loading)} VALUES (1, 'a')")
            with pytest.raises(PublishError, match=r"still holds that table.*Nothing was committed.*to another table"):
                load.seal(driver, place, None)
            ground.sink.sweep(JOB, root, 1)
            assert (ground.staged(), "so the next run drops it" in caplog.text) == ({RunKey(1, 1)}, True)
            assert publish(ground, ground.staged_output(RunKey(1, 2), [(2, "b")])) == 1
    ground.sink.sweep(JOB, root, 1)
    assert (ground.staged(), ground.all_rows()) == ({RunKey(1, 2)}, [(2, "b")])


def test_publishers_in_snapshots_publish_once(
    blobs: BlobStore, pool: ThreadPoolExecutor, postgresql_server: object
) -> None:
    with new_database(postgresql_server) as login:  # type: ignore[arg-type]
        ground = TableGround(login, blobs, columns=ID_NAME)
        output = ground.staged_output(RunKey(1, 1), [(1, "a")])
        ground.execute(f"ALTER DATABASE {login.database} SET default_transaction_isolation = 'repeatable read'")
        with somebody(ground) as other:
            other.execute(token(ground, output).note(0))
            publisher = pool.submit(publish, ground, output)
            wait_for_a_lock(ground, publisher)
        assert publisher.result() == 1
        assert ground.all_rows() == [(1, "a")]


def test_two_jobs_that_make_one_table_both_publish(
    blobs: BlobStore, pool: ThreadPoolExecutor, postgresql_server: object
) -> None:
    with new_database(postgresql_server) as login:  # type: ignore[arg-type]
        ground = TableGround(login, blobs, columns=ID_NAME, is_there=False)
        output = ground.staged_output(RunKey(1, 1), [(1, "a")])
        place = StagePlace.parse(output.entry.place)
        assert place is not None
        with somebody(ground) as other:
            for statement in ground.target.creation("postgresql", ground.table, place.table, ["id", "name"]):
                other.execute(statement)
            publisher = pool.submit(publish, ground, output)
            wait_for_a_lock(ground, publisher)
        assert publisher.result() == 1
        assert ground.all_rows() == [("1", "a")]


@pytest.mark.parametrize("isolation", ["READ COMMITTED", "REPEATABLE READ"])
@pytest.mark.parametrize("rows_before", [0, 2])
def test_of_two_jobs_that_overwrite_a_table_the_later_one_leaves_its_rows_alone(
    login: DatabaseLogin, blobs: BlobStore, pool: ThreadPoolExecutor, isolation: str, rows_before: int
) -> None:
    ground = TableGround(login, blobs, columns=ID_NAME, mode=Mode.OVERWRITE)
    for _ in range(rows_before):
        ground.execute("INSERT INTO dim VALUES (0, 'before')")
    output = ground.staged_output(RunKey(1, 1), [(1, "mine"), (2, "mine")])
    with default_isolation(ground, isolation), somebody(ground) as other:
        for statement in publish_sql.wait_for_others(login.dialect, ground.table):
            other.execute(statement)
        other.execute("DELETE FROM dim")
        other.execute("INSERT INTO dim VALUES (9, 'of another job')")
        publisher = pool.submit(publish, ground, output)
        wait_for_a_lock(ground, publisher)
    assert publisher.result() == 2
    assert ground.all_rows() == [(1, "mine"), (2, "mine")]


@contextmanager
def default_isolation(ground: TableGround, level: str) -> Iterator[None]:
    """Let sessions that begin within the block have an isolation level unless they ask for another one."""
    name = level.lower() if ground.login.dialect == "postgresql" else level.replace(" ", "-")
    if ground.login.dialect == "postgresql":
        ground.execute(f"ALTER DATABASE {ground.login.database} SET default_transaction_isolation = '{name}'")
        yield
        return
    ground.execute(f"SET GLOBAL tx_isolation = '{name}'")
    try:
        yield
    finally:
        ground.execute("SET GLOBAL tx_isolation = DEFAULT")


def test_publisher_that_is_heard_no_more_blocks_nobody_for_ever(
    login: DatabaseLogin, blobs: BlobStore, pool: ThreadPoolExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its machine stands still with the token in its hands; once it goes on, it finds what was done meanwhile."""
    ground = TableGround(login, blobs, columns=ID_NAME)
    output = ground.staged_output(RunKey(1, 1), [(1, "a"), (2, "b")])
    monkeypatch.setattr(publish_sql, "_SILENT_S", 1)
    stands, goes_on = threading.Event(), threading.Event()
    note = publishing._Step.note

    def note_late(step: publishing._Step, rows: int) -> None:
        if not stands.is_set():
            stands.set()
            goes_on.wait()
        note(step, rows)

    monkeypatch.setattr(publishing._Step, "note", note_late)
    first = pool.submit(publish, ground, output)
    stands.wait()
    try:
        assert publish(ground, output) == 2
    finally:
        goes_on.set()
    assert first.result() == 2
    assert ground.all_rows() == [(1, "a"), (2, "b")]
