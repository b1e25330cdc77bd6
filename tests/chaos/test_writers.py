"""While many write out of order, no row is lost and none is read twice; the plain way loses rows of the same tables."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest

from tests.chaos.writers.race import Race
from tests.databases.servers import new_database
from tools.servers import DatabaseServer, mariadb, postgresql

pytestmark = [pytest.mark.chaos, pytest.mark.slow, pytest.mark.xdist_group("chaos-writers")]
_WRITERS = 40


def check(server: DatabaseServer, writers: int, seconds: float) -> None:
    with new_database(server) as login, tempfile.TemporaryDirectory(prefix="writers-") as folder:
        figures = Race(login, Path(folder), seconds, writers, longest=3, seed=1).play()
    print(*figures, sep="\n")
    assert [str(each) for each in figures if not each.is_right] == []
    assert all(each.rows for each in figures)
    # One row is late by arrangement; how many more are depends on chance.
    assert next(each for each in figures if each.table.name == "serial_rows").lost_plainly > 0


def test_no_row_of_postgresql_is_lost_or_read_twice(postgresql_server: DatabaseServer) -> None:
    """The server of other tests takes too few connections; asking for it skips where none is installed."""
    with postgresql({"max_connections": "100", "max_prepared_transactions": "100"}) as server:
        check(server, _WRITERS, 12)


@pytest.mark.thorough  # what has just been written is asked of both in sources/jdbc/test_settling.py
def test_no_row_of_mariadb_is_lost_or_read_twice(mariadb_server: DatabaseServer) -> None:
    with mariadb(max_connections=100) as server:
        check(server, _WRITERS // 2, 10)
