"""Servers for tests and the demo, without Docker, on a free port of the loopback: DynamoDB Local, moto, databases.

Each is a context manager that yields where the server is and ends its own process, and no other. On Linux the server
ends with the thread that started it, so that none is left behind; start it from a thread that lives as long as it is
needed.
"""

from __future__ import annotations

import ctypes
import os
import pwd
import resource
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal
from urllib.error import HTTPError, URLError
from urllib.request import urlopen

from tools.jars import fetch
from tools.patience import STUCK_S

_POLL_S = 0.05
_STOP_LIMIT_S = 10.0
_PR_SET_PDEATHSIG = 1
_PROGRAMS: Mapping[Literal["postgresql", "mariadb"], tuple[str, ...]] = {
    "postgresql": ("initdb", "postgres"),
    "mariadb": ("mariadb-install-db", "mariadbd"),
}
_ADMIN = "tester"  # who may do everything in a database

# moto copies the whole table in each transaction: without a limit it once took the machine down.
_MOTO_ADDRESS_SPACE_BYTES = 4_000_000 * 1024


@contextmanager
def dynamodb_local() -> Iterator[str]:
    """Run an empty DynamoDB Local, in memory; it needs Java, and fetches its jars at the first use.

    Example:
        >>> with dynamodb_local() as url:  # doctest: +SKIP
        ...     boto3.client("dynamodb", endpoint_url=url, region_name="eu-west-1").list_tables()
    """
    jars = fetch("dynamodb-local")
    port = free_port()
    command = ["java", "-Xmx256m", f"-Djava.library.path={jars}", "-cp", f"{jars}/*"]
    command += ["com.amazonaws.services.dynamodbv2.local.main.ServerRunner"]
    command += ["-inMemory", "-sharedDb", "-disableTelemetry", "-port", str(port)]
    with _running("DynamoDB Local", command, port):
        yield f"http://127.0.0.1:{port}"


@contextmanager
def moto_server(port: int | None = None) -> Iterator[str]:
    """Run an empty moto server, all its services in memory. `port` None takes a free one.

    Good for little data: its transactions copy the whole table, so its memory is limited to 4 GB.
    """
    port = free_port() if port is None else port
    command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    with _running("moto", command, port, address_space_bytes=_MOTO_ADDRESS_SPACE_BYTES):
        yield f"http://127.0.0.1:{port}"


@dataclass(frozen=True, slots=True)
class DatabaseServer:
    """A database server, and the user who may do everything in it, by password and over TCP.

    `database` is one that is there from the start; for tests make others (`CREATE DATABASE ...`).
    """

    dialect: Literal["postgresql", "mariadb"]
    host: str
    port: int
    user: str
    password: str
    database: str


@contextmanager
def postgresql(more: Mapping[str, str] | None = None) -> Iterator[DatabaseServer]:
    """Run an empty PostgreSQL, which keeps its data in a temporary folder.

    Args:
        more: settings of the server, such as `{"max_connections": "300"}`.

    Raises:
        FileNotFoundError: it is not installed; `tools/databases.sh` installs it.

    Example:
        >>> with postgresql() as server:  # doctest: +SKIP
        ...     psycopg.connect(host=server.host, port=server.port, user=server.user, password=server.password)
    """
    with postgresql_data(more) as run, run() as server:
        yield server


Runs = Callable[[], AbstractContextManager[DatabaseServer]]  # a server over data that are there


@contextmanager
def postgresql_data(more: Mapping[str, str] | None = None) -> Iterator[Runs]:
    """Make the data of a PostgreSQL; yield what runs the server over them, once and again. See `postgresql`."""
    initdb = _database_program("initdb")
    user, port, password = _not_root("postgres"), free_port(), secrets.token_hex(8)
    with tempfile.TemporaryDirectory(prefix="postgresql-") as folder:
        data, key = Path(folder) / "data", Path(folder) / "password"
        key.write_text(password)
        _give(user, Path(folder), key)
        create = [initdb, "-D", str(data), "-U", _ADMIN, "-A", "scram-sha-256", f"--pwfile={key}", "--no-sync"]
        _prepare([*create, "--encoding=UTF8", "--locale=C.UTF-8"], user)
        server = DatabaseServer("postgresql", "127.0.0.1", port, _ADMIN, password, "postgres")

        @contextmanager
        def run() -> Iterator[DatabaseServer]:
            with _postgresql_over(data, server, user, more or {}):
                yield server

        yield run


@contextmanager
def standby_of(primary: DatabaseServer) -> Iterator[DatabaseServer]:
    """Run a copy of a PostgreSQL that follows it, and can only be read."""
    copy, user, port = _database_program("pg_basebackup"), _not_root("postgres"), free_port()
    with tempfile.TemporaryDirectory(prefix="postgresql-") as folder:
        _give(user, Path(folder))
        data = Path(folder) / "data"
        place = f"host={primary.host} port={primary.port} user={primary.user} password={primary.password}"
        # `-R` makes a standby of it. Without a fast checkpoint it would wait for minutes.
        _prepare([copy, "-d", place, "-D", str(data), "-R", "--checkpoint=fast", "--no-sync"], user)
        server = replace(primary, port=port)
        with _postgresql_over(data, server, user, {}):
            yield server


@contextmanager
def _postgresql_over(
    data: Path, server: DatabaseServer, user: pwd.struct_passwd | None, more: Mapping[str, str]
) -> Iterator[None]:
    settings = {
        "listen_addresses": server.host,
        "port": str(server.port),
        "unix_socket_directories": "",
        "fsync": "off",
        "max_connections": "50",
        "max_prepared_transactions": "10",
        "shared_buffers": "16MB",
        **more,
    }
    command = [_database_program("postgres"), "-D", str(data)]
    command += [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
    # By default it would wait until all clients have left.
    answers = partial(_postgresql_answers, server)
    with _running("PostgreSQL", command, server.port, None, answers, user, signal.SIGINT):
        yield


@contextmanager
def mariadb(zone: str | None = None, max_connections: int = 50) -> Iterator[DatabaseServer]:
    """Run an empty MariaDB, which keeps its data in a temporary folder.

    Args:
        zone: its time zone, by a name such as 'America/New_York'; None: that of whoever runs it.

    Raises:
        FileNotFoundError: it is not installed; `tools/databases.sh` installs it.

    Example:
        >>> with mariadb() as server:  # doctest: +SKIP
        ...     pymysql.connect(host=server.host, port=server.port, user=server.user, password=server.password)
    """
    with mariadb_data(zone, max_connections) as run, run() as server:
        yield server


@contextmanager
def mariadb_data(zone: str | None = None, max_connections: int = 50) -> Iterator[Runs]:
    """Make the data of a MariaDB; yield what runs the server over them, once and again. See `mariadb`."""
    install, program = _database_program("mariadb-install-db"), _database_program("mariadbd")
    user, port, password = _not_root("nobody"), free_port(), secrets.token_hex(8)
    with tempfile.TemporaryDirectory(prefix="mariadb-") as folder:
        data, start, temporary = Path(folder) / "data", Path(folder) / "start.sql", Path(folder) / "tmp"
        # Its own: a server that starts removes all temporary tables there, also those that another one is at work with.
        temporary.mkdir()
        start.write_text(
            f"CREATE USER IF NOT EXISTS '{_ADMIN}'@'%' IDENTIFIED BY '{password}';\n"
            f"GRANT ALL PRIVILEGES ON *.* TO '{_ADMIN}'@'%' WITH GRANT OPTION;\n"
        )
        _give(user, Path(folder), start, temporary)
        create = [
            install,
            "--no-defaults",
            f"--datadir={data}",
            f"--tmpdir={temporary}",
            "--auth-root-authentication-method=normal",
        ]
        _prepare([*create, "--skip-test-db", "--skip-name-resolve"], user)
        command = [program, "--no-defaults", f"--datadir={data}", f"--tmpdir={temporary}", f"--port={port}"]
        command += ["--bind-address=127.0.0.1"]
        command += [f"--socket={folder}/socket", f"--pid-file={folder}/pid", f"--init-file={start}"]
        command += ["--skip-name-resolve", "--skip-log-bin", f"--max-connections={max_connections}"]
        command += [
            "--key-buffer-size=1M",
            "--innodb-buffer-pool-size=16M",
            "--innodb-flush-log-at-trx-commit=0",
            "--innodb-stats-auto-recalc=off",  # it is a transaction of its own, which tests would find among theirs
            "--aria-pagecache-buffer-size=1M",
        ]
        command += ["--character-set-server=utf8mb4", "--performance-schema=off"]
        server = DatabaseServer("mariadb", "127.0.0.1", port, _ADMIN, password, "mysql")
        # The server takes its zone from its environment.
        command = command if zone is None else ["env", f"TZ={zone}", *command]

        @contextmanager
        def run() -> Iterator[DatabaseServer]:
            with _running("MariaDB", command, port, None, lambda _: _mariadb_answers(server), user):
                yield server

        yield run


def free_port() -> int:
    """Return a TCP port of the loopback that nothing listens on at the moment."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@contextmanager
def _running(
    name: str,
    command: Sequence[str],
    port: int,
    address_space_bytes: int | None = None,
    answers: Callable[[int], bool] | None = None,
    user: pwd.struct_passwd | None = None,
    end: signal.Signals = signal.SIGTERM,
) -> Iterator[None]:
    with tempfile.TemporaryFile("w+", prefix="server-log-") as log:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,  # a Ctrl-C in the terminal is the parent's to handle
            preexec_fn=before_exec(os.getpid(), address_space_bytes),
            **_as_user(user),
        )
        try:
            if not _is_ready(process, port, answers or _answers):
                log.seek(0)
                raise RuntimeError(
                    f"{name} did not answer on 127.0.0.1:{port} within {STUCK_S:.0f} s (exit code "
                    f"{process.poll()}). Command: {' '.join(command)}\n{log.read()[-4000:]}"
                )
            yield
        finally:
            _stop(process, end)


def before_exec(parent: int, address_space_bytes: int | None) -> Callable[[], None]:
    """Return what a child does before it becomes a server: it ends with its parent, and may be kept small."""
    # Loaded before the fork: what runs between fork and exec must not import or allocate much.
    libc = ctypes.CDLL(None) if sys.platform == "linux" else None

    def prepare() -> None:
        if libc is not None:
            libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
            if os.getppid() != parent:  # the parent died before prctl took hold
                os._exit(1)
        if address_space_bytes is not None:
            resource.setrlimit(resource.RLIMIT_AS, (address_space_bytes, address_space_bytes))

    return prepare


def _is_ready(process: subprocess.Popen[bytes], port: int, answers: Callable[[int], bool]) -> bool:
    deadline = time.monotonic() + STUCK_S
    while time.monotonic() < deadline and process.poll() is None:
        if answers(port):
            # Another process may have taken the port between the probe and the start: then ours has ended.
            return process.poll() is None
        time.sleep(_POLL_S)
    return False


def _answers(port: int) -> bool:
    try:
        with urlopen(f"http://127.0.0.1:{port}/", timeout=60):
            return True
    except HTTPError:
        return True  # an unsigned request is refused, by a server that is up
    except (URLError, ConnectionError, TimeoutError):
        return False


def _postgresql_answers(server: DatabaseServer, _port: int) -> bool:
    import psycopg

    place = {"host": server.host, "port": server.port, "dbname": server.database, "connect_timeout": 60}
    try:
        with psycopg.connect(user=server.user, password=server.password, **place) as connection:  # type: ignore[arg-type]
            return connection.execute("SELECT 1").fetchone() == (1,)
    except psycopg.OperationalError:
        return False  # nothing listens yet, or it still starts


def _mariadb_answers(server: DatabaseServer) -> bool:
    import pymysql

    try:
        connection = pymysql.connect(
            host=server.host, port=server.port, user=server.user, password=server.password, connect_timeout=60
        )
    except pymysql.err.OperationalError:
        return False  # nothing listens yet, or the file with its user has not run
    with connection, connection.cursor() as cursor:
        cursor.execute("SELECT 1")
        return cursor.fetchone() == (1,)


# ---- what databases need besides


def has_databases(*dialects: Literal["postgresql", "mariadb"]) -> bool:
    """Say whether these databases are installed here; without names, whether both are."""
    try:
        for name in (program for each in dialects or _PROGRAMS for program in _PROGRAMS[each]):
            _database_program(name)
    except FileNotFoundError:
        return False
    return True


def _database_program(name: str) -> str:
    """Return the path of a program. Debian puts those of PostgreSQL into a folder for each version, not on PATH."""
    by_version = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"), key=lambda path: int(path.parts[-3]))
    found = shutil.which(name) or shutil.which(name, path="/usr/sbin:/usr/local/sbin")
    if found is None and by_version:
        found = str(by_version[-1])
    if found is None:
        raise FileNotFoundError(
            f"{name} is not installed. Nothing was started. 'make databases' installs PostgreSQL and MariaDB as root "
            "on Debian and Ubuntu; elsewhere install both yourself, e.g. 'brew install postgresql mariadb'."
        )
    return found


def _not_root(preferred: str) -> pwd.struct_passwd | None:
    """Return who a database server runs as: no server takes root; None: whoever runs this."""
    if os.geteuid() != 0:
        return None
    try:
        return pwd.getpwnam(preferred)
    except KeyError:
        return pwd.getpwnam("nobody")


def _as_user(user: pwd.struct_passwd | None) -> dict[str, Any]:
    if user is None:
        return {}
    return {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}


def _give(user: pwd.struct_passwd | None, *paths: Path) -> None:
    if user is not None:
        for path in paths:
            os.chown(path, user.pw_uid, user.pw_gid)


def _prepare(command: Sequence[str], user: pwd.struct_passwd | None) -> None:
    """Make the folder of a database."""
    done = subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, cwd="/", **_as_user(user)
    )
    if done.returncode != 0:
        raise RuntimeError(f"{command[0]} failed: {done.stdout[-2000:]}{done.stderr[-2000:]}")


def _stop(process: subprocess.Popen[bytes], end: signal.Signals) -> None:
    process.send_signal(end)
    try:
        process.wait(_STOP_LIMIT_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
