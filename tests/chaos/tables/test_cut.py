"""Sessions that are cut in the middle of a publish, and a database that is not there for a while: nothing is halved."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from airflow_bookmarks.databases.database import open_database
from airflow_bookmarks.databases.login import DatabaseLogin
from airflow_bookmarks.lifecycle.protocol.failpoint import Failpoint
from tests.chaos.real.order import JOB, Gate
from tests.chaos.real.process import DriverProcess
from tests.chaos.tables.conftest import scene_on
from tests.chaos.tables.order import UPSERTED
from tests.chaos.tables.scene import TablesScene
from tests.databases.servers import check_installed, login_to
from tools.servers import DatabaseServer, Runs, mariadb_data, postgresql_data

# Seldom: a database that restarts takes a minute, and few changes touch sessions that are cut.
pytestmark = [pytest.mark.chaos, pytest.mark.seldom, pytest.mark.xdist_group("chaos-tables")]

# Sessions that wait for a lock, with what cuts each of them off. MariaDB's own list of transactions is no good here: it
# stays as it is while anyone asks for it ten times a second.
_WAITING = {
    "postgresql": "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'",
    "mariadb": """
        SELECT id FROM information_schema.processlist
        WHERE db = database() AND command = 'Query' AND id <> connection_id() AND EXISTS (
            SELECT 1 FROM information_schema.global_status
            WHERE variable_name = 'INNODB_ROW_LOCK_CURRENT_WAITS' AND variable_value > 0)""",
}
_CUT = {"postgresql": "SELECT pg_terminate_backend({})", "mariadb": "KILL {}"}


def in_the_middle(scene: TablesScene, act: Callable[[DriverProcess, int], None], **given: Any) -> int:
    """Let a process publish until it waits for a row that another transaction has locked; then do something to it.

    By then its other table has got its rows in the same transaction. Returns its exit code.
    """
    waiting: list[int] = []
    with (
        open_database(scene.warehouse) as blocker,
        open_database(scene.warehouse) as watcher,
        blocker.transaction(),
    ):
        blocker.execute(f"UPDATE {UPSERTED} SET version = version + 0 WHERE id = 1")
        with scene.start(**given) as process:
            while not waiting:
                waiting = [int(number) for (number,) in watcher.rows(_WAITING[scene.warehouse.dialect])]
            act(process, waiting[0])
            return process.wait()


def cut(scene: TablesScene) -> Callable[[DriverProcess, int], None]:
    """Return what ends the session of a process from the side of the server."""
    return lambda _, number: scene.run(_CUT[scene.warehouse.dialect].format(number))


def test_driver_whose_session_is_cut_in_its_publish_leaves_it_due(scene: TablesScene) -> None:
    before = scene.targets()
    assert in_the_middle(scene, cut(scene)) == 1
    assert scene.targets() == before
    assert scene.store.head(JOB).publishing is not None
    scene.finish()
    scene.check_whole()


def test_worker_whose_session_is_cut_in_its_publish_leaves_it_due(scene: TablesScene) -> None:
    assert scene.drive(fault=Failpoint.COMMITTED) == -signal.SIGKILL
    assert in_the_middle(scene, cut(scene), is_worker=True) == 1
    assert scene.store.head(JOB).publishing is not None
    assert scene.work() == 0
    scene.finish()
    scene.check_whole()


def test_driver_killed_within_its_transaction_has_changed_nothing_in_it(scene: TablesScene) -> None:
    assert in_the_middle(scene, lambda process, _: process.kill()) == -signal.SIGKILL
    assert scene.work() == 0
    assert scene.targets() == scene.expected()
    scene.finish()
    scene.check_whole()


# ---- a server that goes and comes back


@pytest.fixture(params=[postgresql_data, mariadb_data], ids=["postgresql", "mariadb"])
def running(request: pytest.FixtureRequest) -> Iterator[Runs]:
    """Make the data of a server of its own, which a test runs as it likes."""
    check_installed()
    with request.param() as run:
        yield run


def new_login(server: DatabaseServer) -> DatabaseLogin:
    """Make a database in a server that ends with the test, and return the login to it."""
    with open_database(login_to(server, server.database)) as admin:
        admin.execute("CREATE DATABASE dw")
    return login_to(server, "dw")


@pytest.mark.slow
def test_publish_goes_on_over_a_restart_of_the_database(running: Runs, gate: Gate, tmp_path: Path) -> None:
    with ExitStack() as first:
        for scene in scene_on(new_login(first.enter_context(running())), tmp_path):
            with scene.start(holds=(Failpoint.COMMITTED,), gate=gate.port) as driver:
                held = gate.next(driver.pid)
                first.close()
                with running():
                    held.go_on()
                    assert driver.wait() == 0
                    assert scene.targets() == scene.expected()
                    scene.finish()
                    scene.check_whole()


@pytest.mark.slow
def test_publish_while_the_database_is_down_stays_due(running: Runs, gate: Gate, tmp_path: Path) -> None:
    with ExitStack() as first:
        for scene in scene_on(new_login(first.enter_context(running())), tmp_path):
            with scene.start(holds=(Failpoint.COMMITTED,), gate=gate.port) as driver:
                held = gate.next(driver.pid)
                first.close()
                held.go_on()
                assert driver.wait() == 1
            assert "its publish stays due" in scene.order().said.read_text()
            with running():
                scene.finish()
                scene.check_whole()
