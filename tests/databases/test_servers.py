"""The database servers of tests end with who started them, and take what databases are tested with."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import psutil
import pytest

from airflow_bookmarks.core.errors import DatabaseError
from airflow_bookmarks.databases.database import open_database
from tests.databases.servers import login_to, new_database
from tools.patience import STUCK_S
from tools.servers import DatabaseServer, mariadb

_ROOT = Path(__file__).parents[2]

# Starts a server, says by which port and which processes, and dies of what no `finally` sees.
_SCRIPT = """
import os, signal, sys, psutil, tools.servers
with getattr(tools.servers, sys.argv[1])() as server:
    print(server.port, *(child.pid for child in psutil.Process().children()), flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.seldom
@pytest.mark.parametrize("name", ["postgresql", "mariadb"])
def test_server_ends_with_its_parent(name: str, request: pytest.FixtureRequest) -> None:
    request.getfixturevalue(f"{name}_server")  # skips where none is installed
    command = [sys.executable, "-c", _SCRIPT, name]

    # A folder for what nobody removes then; that of pytest can't be entered by a server, which does not run as root.
    with tempfile.TemporaryDirectory(prefix="killed-", ignore_cleanup_errors=True) as folder:
        os.chmod(folder, 0o1777)  # noqa: S103
        environment = {**os.environ, "TMPDIR": folder}
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, cwd=_ROOT, check=False, env=environment)

    pids = [int(pid) for pid in done.stdout.split()[1:]]
    assert pids
    left = [process for process in psutil.process_iter() if process.pid in pids]
    _, alive = psutil.wait_procs(left, timeout=STUCK_S)
    assert alive == []


def test_prepared_transactions_are_allowed(postgresql_server: DatabaseServer) -> None:
    with new_database(postgresql_server) as login, open_database(login) as database:
        database.execute("CREATE TABLE notes (id INTEGER)")
        database.execute("BEGIN")
        database.execute("INSERT INTO notes VALUES (1)")
        database.execute("PREPARE TRANSACTION 'one'")
        assert database.rows("SELECT id FROM notes") == []
        database.execute("COMMIT PREPARED 'one'")

        assert database.rows("SELECT id FROM notes") == [(1,)]


@pytest.mark.parametrize("name", ["postgresql", "mariadb"])
def test_database_of_a_test_goes_with_it_though_a_connection_is_left(name: str, request: pytest.FixtureRequest) -> None:
    server: DatabaseServer = request.getfixturevalue(f"{name}_server")
    with new_database(server) as login:
        left = open_database(login)

    with pytest.raises(DatabaseError):
        open_database(login)
    left.close()
    with open_database(login_to(server, server.database)) as database:
        assert database.rows("SELECT 1") == [(1,)]


def test_mariadb_that_starts_removes_no_temporary_table_of_another(mariadb_server: DatabaseServer) -> None:
    """It removes all that lie in its folder for them, and the server that was at work with one crashes."""
    folders = set()
    with mariadb() as other:
        for server in (mariadb_server, other):
            with open_database(login_to(server, server.database)) as database:
                folders |= {str(folder) for (folder,) in database.rows("SELECT @@tmpdir")}
    assert len(folders) == 2
    assert tempfile.gettempdir() not in folders
