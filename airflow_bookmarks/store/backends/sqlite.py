"""Implement `Table` on one SQLite file, or in memory: for one machine, for trying out, tests and simulation.

The file holds `items(pk, sk, attributes)`, where `attributes` is JSON that any SQLite tool can show, and `tokens`, the
tokens of the last ten minutes.
"""

from __future__ import annotations

import base64
import hashlib
import json
import logging
import os
import random as _random
import sqlite3
import threading
import time
import weakref
from contextlib import ExitStack, contextmanager, suppress
from typing import TYPE_CHECKING, TypeVar
from urllib.parse import quote

from airflow_bookmarks.core.errors import (
    ConditionFailedError,
    OptionError,
    StateCorruptError,
    StoreAccessError,
    StoreError,
    StoreUnavailableError,
    TableLayoutError,
    TableMissingError,
)
from airflow_bookmarks.files.private_file import make_private, wider_mode
from airflow_bookmarks.store.backends.backoff import OUTAGE_LIMIT_S, Backoff
from airflow_bookmarks.store.backends.limits import check_item, check_keys, check_operations, check_range
from airflow_bookmarks.store.table import Attributes, Check, Delete, Key, Operation, Put, Update, Value, evaluate
from airflow_bookmarks.store.table_settings import DEFAULT
from airflow_bookmarks.store.uri import MEMORY

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from airflow_bookmarks.store.table_settings import TableSettings

log = logging.getLogger(__name__)

TOKEN_LIFETIME_S = 600

_APPLICATION_ID = 0x41424B4D  # "ABKM" in the header of the file: tells our file from any other database
_LAYOUT_VERSION = 1
_LAYOUT = (
    "CREATE TABLE items (pk TEXT, sk TEXT, attributes TEXT NOT NULL, PRIMARY KEY (pk, sk)) WITHOUT ROWID",
    "CREATE TABLE tokens (token TEXT PRIMARY KEY, fingerprint TEXT NOT NULL, applied_at REAL NOT NULL) WITHOUT ROWID",
    "CREATE INDEX tokens_by_age ON tokens (applied_at)",
    f"PRAGMA application_id = {_APPLICATION_ID}",
    f"PRAGMA user_version = {_LAYOUT_VERSION}",
)

# SQLite's own busy wait polls slowly and starves one writer beside others in a tight loop. So it waits only briefly,
# and the backoff, short and random, does the rest.
_BUSY_TIMEOUT_S = 0.02
_FIRST_PAUSE_S = 0.002
_LONGEST_PAUSE_S = 0.05

_PAGE_ITEMS = 64
_LAST_CHARACTER = chr(0x10FFFF)
_BYTES_TAG = "$bytes"

# A connection belongs to one process and one thread; the one in memory to all threads, under the lock.
_SHARED = (0, threading.main_thread())

_T = TypeVar("_T")


class SqliteTable:
    """Items in an SQLite file; safe between threads and between processes of one machine.

    Args:
        path: absolute path of the file, or `:memory:` for a table that lives as long as this object.
        create: make the file at the first use if it is absent. Without it an absent file is an error, so that it is
            never taken for an empty bookmark. A table in memory is always made.
        outage_limit_s: how long a locked file is tried, in seconds.
        sleep, monotonic, random, clock: what a test holds in its hand; `clock` gives seconds since 1970, for tokens.

    Example:
        >>> table = SqliteTable(":memory:")
        >>> table.transact([Put(Key("default#JOBS", "flights"), {"run_number": 1})])
        >>> table.get([Key("default#JOBS", "flights")])
        {Key(pk='default#JOBS', sk='flights'): {'run_number': 1}}
    """

    def __init__(
        self,
        path: str | Path,
        create: bool = False,
        *,
        outage_limit_s: float = OUTAGE_LIMIT_S,
        sleep: Callable[[float], None] = time.sleep,
        monotonic: Callable[[], float] = time.monotonic,
        random: Callable[[], float] = _random.random,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._is_memory = str(path) == MEMORY
        self._path = MEMORY if self._is_memory else os.path.abspath(path)
        self._creates = create
        self._backoff = Backoff(outage_limit_s, _FIRST_PAUSE_S, _LONGEST_PAUSE_S, sleep, monotonic, random)
        self._clock = clock
        self._lock = threading.RLock()
        self._connections: dict[tuple[int, threading.Thread], sqlite3.Connection] = {}
        self._identity: tuple[int, int] | None = None
        self._is_closed = False
        # Hooks and triggers drop a table without closing it, and Python 3.13 warns of connections that end so. Not at
        # exit: a daemon thread may still be in the middle of a call.
        weakref.finalize(self, _close_own, self._connections).atexit = False

    # ---- the protocol

    def get(self, keys: Sequence[Key]) -> dict[Key, Attributes]:
        """See `Table.get`."""
        check_keys(keys)
        return self._patiently("get", lambda connection: _load(connection, keys))

    def query(
        self,
        pk: str,
        *,
        prefix: str = "",
        after: str | None = None,
        until: str | None = None,
        reverse: bool = False,
        limit: int | None = None,
    ) -> Iterator[tuple[Key, Attributes]]:
        """See `Table.query`."""
        check_range(pk, prefix, after, until, limit)
        conditions: list[tuple[str, str]] = [("pk = ?", pk)]
        if prefix:
            conditions += [("sk >= ?", prefix), *(("sk < ?", end) for end in _ends_of(prefix))]
        if after is not None:
            conditions.append(("sk > ?", after))
        if until is not None:
            conditions.append(("sk <= ?", until))
        return self._pages(conditions, reverse, limit)

    def scan(self, prefix: str, *, names: Sequence[str] = ()) -> Iterator[tuple[Key, Attributes]]:
        """See `Table.scan`."""
        if not prefix:
            raise StoreError("a scan needs the beginning of a pk, and it is empty. Nothing was read.")
        return self._scanned(prefix, frozenset(names))

    def transact(self, operations: Sequence[Operation], *, token: str | None = None) -> None:
        """See `Table.transact`."""
        check_operations(operations, token)
        self._patiently("transact", lambda connection: self._transact(connection, operations, token))

    def create(self, settings: TableSettings = DEFAULT) -> bool:
        """See `Table.create`. A file has no settings."""
        if not settings.is_default:
            raise OptionError(
                "an SQLite file has no encryption key, deletion protection, tags or stream. Nothing was made. Leave "
                "them out, or take a table in DynamoDB."
            )
        return self._patiently_do("create", self._create_memory if self._is_memory else self._create_file)

    def settings(self) -> None:
        """See `Table.settings`. A file has none."""

    def describe(self) -> dict[str, str]:
        """See `Table.describe`."""
        return {"kind": "sqlite", "path": self._path}

    def close(self) -> None:
        """See `Table.close`. What was in memory is lost."""
        with self._lock:
            self._is_closed = True
            _close_own(self._connections)

    # ---- transactions and pages

    def _transact(self, connection: sqlite3.Connection, operations: Sequence[Operation], token: str | None) -> None:
        with _writing(connection):
            if token is not None and not self._is_new(connection, token, operations):
                return
            found = _load(connection, [operation.key for operation in operations])
            failed = {
                index: found.get(operation.key)
                for index, operation in enumerate(operations)
                if not evaluate(operation.conditions, found.get(operation.key))
            }
            if failed:
                raise ConditionFailedError(failed)
            for operation in operations:
                _apply(connection, operation, found.get(operation.key))

    def _is_new(self, connection: sqlite3.Connection, token: str, operations: Sequence[Operation]) -> bool:
        now = self._clock()
        connection.execute("DELETE FROM tokens WHERE applied_at < ?", (now - TOKEN_LIFETIME_S,))
        fingerprint = hashlib.sha256(repr(operations).encode()).hexdigest()
        row = connection.execute("SELECT fingerprint FROM tokens WHERE token = ?", (token,)).fetchone()
        if row is None:
            connection.execute("INSERT INTO tokens VALUES (?, ?, ?)", (token, fingerprint, now))
            return True
        if row[0] != fingerprint:
            raise StoreError(
                f"the token {token!r} was used for other operations within the last ten minutes. Nothing was written. "
                "Take a new token for each transaction."
            )
        return False

    def _pages(
        self, conditions: list[tuple[str, str]], reverse: bool, limit: int | None
    ) -> Iterator[tuple[Key, Attributes]]:
        # Page by page, each a statement of its own: an open cursor would hold the write-ahead log back.
        last: list[tuple[str, str]] = []
        left = limit
        while left is None or left > 0:
            size = _PAGE_ITEMS if left is None else min(left, _PAGE_ITEMS)
            rows = self._patiently("query", _page([*conditions, *last], reverse, size))
            yield from rows
            if len(rows) < size:
                return
            left = None if left is None else left - size
            last = [("sk < ?" if reverse else "sk > ?", rows[-1][0].sk)]

    def _scanned(self, prefix: str, names: frozenset[str]) -> Iterator[tuple[Key, Attributes]]:
        # Partition by partition, so that no page spans two and no cursor stays open.
        ends = [("pk < ?", end) for end in _ends_of(prefix)]
        start = ("pk >= ?", prefix)
        while True:
            pk = self._patiently("scan", _first_partition([start, *ends]))
            if pk is None:
                return
            for key, attributes in self._pages([("pk = ?", pk)], False, None):
                yield key, {name: value for name, value in attributes.items() if name in names}
            start = ("pk > ?", pk)

    # ---- connections

    def _patiently(self, operation: str, act: Callable[[sqlite3.Connection], _T]) -> _T:
        def attempt() -> _T:
            with self._connection() as connection:
                return act(connection)

        return self._patiently_do(operation, attempt)

    def _patiently_do(self, operation: str, act: Callable[[], _T]) -> _T:
        busy: sqlite3.Error | None = None
        for _ in self._backoff.attempts():
            try:
                return act()
            except sqlite3.Error as error:
                if not _is_busy(error):
                    raise self._refused(operation, error) from error
                busy = error
        raise StoreUnavailableError(
            f"the state file {self._path} was locked by others for {self._backoff.limit_s:g} s ({operation}). This "
            "call wrote nothing, and nothing is lost. Look for a process that holds the file, and run the task again."
        ) from busy

    @contextmanager
    def _connection(self) -> Iterator[sqlite3.Connection]:
        if self._is_closed:
            raise StoreError(f"the state table {self._path} was closed; nothing was read or written. Open it anew.")
        if not self._is_memory:
            yield self._own_connection()
            return
        with self._lock:
            self._create_memory()
            yield self._connections[_SHARED]

    def _own_connection(self) -> sqlite3.Connection:
        me = (os.getpid(), threading.current_thread())
        if me not in self._connections:
            if self._creates:
                self._create_file()
                self._creates = False
            with ExitStack() as undo:
                connection = self._open("rw")
                undo.callback(connection.close)
                if not _is_laid_out(connection, self._path):
                    raise self._missing()
                undo.pop_all()
            with self._lock:
                self._drop_connections_of_ended_threads()
                self._connections[me] = connection
                if self._identity is None:
                    self._identity = _identity(self._path)
                    _warn_of_others(self._path)
        # An open connection keeps writing to a file that was removed or replaced, and those writes would be lost.
        if _identity(self._path) != self._identity:
            raise self._missing()
        return self._connections[me]

    def _drop_connections_of_ended_threads(self) -> None:
        # Those of a parent process stay untouched, as in `_close_own`.
        for key in [key for key in self._connections if key[0] == os.getpid() and not key[1].is_alive()]:
            self._connections.pop(key).close()

    def _open(self, mode: str) -> sqlite3.Connection:
        # Opened as rw, an absent file is an error of SQLite's; by a plain path it would be made.
        connection = sqlite3.connect(
            MEMORY if self._is_memory else f"file:{quote(self._path)}?mode={mode}",
            uri=not self._is_memory,
            timeout=_BUSY_TIMEOUT_S,
            isolation_level=None,  # transactions are begun by name
            check_same_thread=False,  # closed by whichever thread closes the table
        )
        # A commit survives a power cut: FULL; NORMAL could roll the last ones back.
        connection.execute("PRAGMA synchronous = FULL")
        return connection

    # ---- creation

    def _create_memory(self) -> bool:
        with self._lock:
            if _SHARED in self._connections:
                return False
            connection = self._open("rwc")
            _lay_out(connection)
            self._connections[_SHARED] = connection
            return True

    def _create_file(self) -> bool:
        # SQLite would create it as wide as the umask allows. Its journals inherit its mode. If it can't be created,
        # SQLite can't open it either, and reports why.
        with suppress(OSError):
            make_private(self._path)
        connection = self._open("rw")
        try:
            if _is_laid_out(connection, self._path):
                return False
            connection.execute("PRAGMA journal_mode = WAL")
            with _writing(connection):
                if _is_laid_out(connection, self._path):  # another process was faster
                    return False
                _lay_out(connection)
            return True
        finally:
            connection.close()

    # ---- what went wrong

    def _missing(self) -> TableMissingError:
        return TableMissingError(
            f"there is no state table in {self._path}. Nothing was read or changed: an absent file is never taken for "
            "an empty bookmark. Check the path; if it is a new one, run "
            f"'airflow-bookmarks init --store sqlite:///{self._path}'."
        )

    def _refused(self, operation: str, error: sqlite3.Error) -> StoreError:
        code = _code(error)
        if code == sqlite3.SQLITE_NOTADB:
            return TableLayoutError(
                f"{self._path} is no SQLite database. Nothing was changed. Name the file of the state."
            )
        if code == sqlite3.SQLITE_CORRUPT:
            return StateCorruptError(
                f"{self._path} is damaged ({error}). Nothing was written. Restore it from a backup."
            )
        if code == sqlite3.SQLITE_CANTOPEN and operation != "create" and not os.path.exists(self._path):
            return self._missing()
        if code in (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM):
            return StoreAccessError(
                f"can't open {self._path} for writing ({error}). Nothing was written. The folder must exist, and this "
                "user must be allowed to write the file and its folder."
            )
        return StoreError(f"SQLite refused {operation} on {self._path}: {error}. Nothing was written by this call.")


# ---- the file


def _close_own(connections: dict[tuple[int, threading.Thread], sqlite3.Connection]) -> None:
    # Those of a parent process stay untouched: SQLite forbids a forked child even to close them.
    for key in [key for key in connections if key[0] in (os.getpid(), _SHARED[0])]:
        connections.pop(key).close()


def _is_laid_out(connection: sqlite3.Connection, path: str) -> bool:
    mark = connection.execute("PRAGMA application_id").fetchone()[0]
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    if (mark, version) == (_APPLICATION_ID, _LAYOUT_VERSION):
        return True
    if mark == 0 and connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0] == 0:
        return False  # an empty database: made by hand, or by an init that was cut short
    what = f"of layout version {version}" if mark == _APPLICATION_ID else "of something else"
    raise TableLayoutError(
        f"{path} is an SQLite database {what}, and not the state that this package knows. Nothing was changed. Name "
        "another file, or use the package version that made it."
    )


def _lay_out(connection: sqlite3.Connection) -> None:
    for statement in _LAYOUT:
        connection.execute(statement)


@contextmanager
def _writing(connection: sqlite3.Connection) -> Iterator[None]:
    # IMMEDIATE takes the write lock before the first read, so that what was read still holds at the write.
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")


def _identity(path: str) -> tuple[int, int] | None:
    """Return what tells one file from another under the same path; None if there is none."""
    try:
        status = os.stat(path)
    except FileNotFoundError:
        return None
    return status.st_dev, status.st_ino


def _warn_of_others(path: str) -> None:
    mode = wider_mode(path)
    if mode is not None:
        log.warning(
            "bookmark: the state file %s has the permissions %04o: others than its owner may read or change where jobs "
            "stand. It stays as it is; 'chmod 600 %s*' makes it private",
            path,
            mode,
            path,
        )


def _is_busy(error: sqlite3.Error) -> bool:
    return _code(error) in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


def _code(error: sqlite3.Error) -> int | None:
    # The low byte is the primary code; the rest says more exactly why. Errors of the Python module have none.
    code = getattr(error, "sqlite_errorcode", None)
    return None if code is None else code & 0xFF


# ---- items


def _load(connection: sqlite3.Connection, keys: Sequence[Key]) -> dict[Key, Attributes]:
    # Not by `(pk, sk) IN (VALUES ...)`: with two keys or more SQLite then scans the table instead of using its key.
    places = " OR ".join(["(pk = ? AND sk = ?)"] * len(keys))
    statement = f"SELECT pk, sk, attributes FROM items WHERE {places}"  # noqa: S608 (marks only)
    rows = connection.execute(statement, [part for key in keys for part in (key.pk, key.sk)])
    return dict(_item(*row) for row in rows)


def _page(
    conditions: Sequence[tuple[str, str]], reverse: bool, size: int
) -> Callable[[sqlite3.Connection], list[tuple[Key, Attributes]]]:
    where = " AND ".join(text for text, _ in conditions)
    order = "DESC" if reverse else "ASC"
    # SQLite compares text by its bytes of UTF-8, which is the order the protocol asks for.
    statement = f"SELECT pk, sk, attributes FROM items WHERE {where} ORDER BY sk {order} LIMIT ?"  # noqa: S608 (marks only)
    values = [*(value for _, value in conditions), size]
    return lambda connection: [_item(*row) for row in connection.execute(statement, values)]


def _first_partition(conditions: Sequence[tuple[str, str]]) -> Callable[[sqlite3.Connection], str | None]:
    where = " AND ".join(text for text, _ in conditions)
    statement = f"SELECT min(pk) FROM items WHERE {where}"  # noqa: S608 (marks only)

    def first(connection: sqlite3.Connection) -> str | None:
        pk: str | None = connection.execute(statement, [value for _, value in conditions]).fetchone()[0]
        return pk

    return first


def _ends_of(prefix: str) -> list[str]:
    """Return the least text above every text that starts with `prefix`, or nothing if there is none."""
    kept = prefix.rstrip(_LAST_CHARACTER)
    if not kept:
        return []
    following = ord(kept[-1]) + 1
    # The code points of surrogates are no characters; UTF-8 goes on behind them.
    return [kept[:-1] + chr(0xE000 if following == 0xD800 else following)]


def _apply(connection: sqlite3.Connection, operation: Operation, found: Attributes | None) -> None:
    match operation:
        case Put(key, attributes):
            _store(connection, key, attributes)
        case Update(key, new, gone):
            merged = {name: value for name, value in (found or {}).items() if name not in gone} | dict(new)
            check_item(key, merged)
            _store(connection, key, merged)
        case Delete(key):
            connection.execute("DELETE FROM items WHERE pk = ? AND sk = ?", (key.pk, key.sk))
        case Check():
            pass


def _store(connection: sqlite3.Connection, key: Key, attributes: Mapping[str, Value]) -> None:
    text = json.dumps(_to_json(dict(attributes)), ensure_ascii=False, separators=(",", ":"))
    connection.execute("INSERT OR REPLACE INTO items VALUES (?, ?, ?)", (key.pk, key.sk, text))


def _item(pk: str, sk: str, text: str) -> tuple[Key, Attributes]:
    key = Key(pk, sk)
    if not isinstance(pk, str) or not isinstance(sk, str):  # SQLite keeps a blob in a column of text
        raise _unreadable(key)
    try:
        attributes = _from_json(json.loads(text))
    except (ValueError, TypeError, RecursionError) as error:  # TypeError: no text, and RecursionError: too deep
        raise _unreadable(key) from error
    if not isinstance(attributes, dict):
        raise _unreadable(key)
    return key, attributes


def _unreadable(key: Key) -> StateCorruptError:
    return StateCorruptError(
        f"the item {key} of the state file can't be read: it was changed from outside. Nothing was written. Restore "
        "the file from a backup."
    )


# Bytes become {"$bytes": "<base64>"}. Each name that starts with "$" gets another "$" in front, so that no map of a
# user looks like that.


def _to_json(value: Value) -> object:
    match value:
        case bytes():
            return {_BYTES_TAG: base64.b64encode(value).decode("ascii")}
        case list():
            return [_to_json(element) for element in value]
        case dict():
            return {f"${name}" if name.startswith("$") else name: _to_json(v) for name, v in value.items()}
        case _:
            return value


def _from_json(value: object) -> Value:
    match value:
        case None | str() | bool() | int():
            return value
        case list():
            return [_from_json(element) for element in value]
        case {"$bytes": str(text), **others} if not others:
            return base64.b64decode(text, validate=True)
        case dict() if _BYTES_TAG not in value:
            return {name.removeprefix("$"): _from_json(element) for name, element in value.items()}
        case _:
            raise ValueError(f"{value!r} is no value of a table")
