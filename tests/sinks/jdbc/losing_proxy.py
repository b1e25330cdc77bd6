"""A way to a database on which the reply of one statement is lost: the server has done it, the client is cut off."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace

from airflow_bookmarks.databases.login import DatabaseLogin


@contextmanager
def losing_the_reply_of(statement: bytes, after: bytes, login: DatabaseLogin) -> Iterator[DatabaseLogin]:
    """Yield a login that leads to the same database; the first reply of `statement` after another one is lost."""
    assert login.host is not None
    assert login.port is not None
    listener = socket.create_server(("127.0.0.1", 0))
    proxy = _Proxy(listener, (login.host, login.port), statement, after)
    accepting = threading.Thread(target=proxy.accept, daemon=True)
    accepting.start()
    try:
        yield replace(login, port=listener.getsockname()[1])
        assert proxy.lost.is_set(), "no reply was lost"
    finally:
        listener.shutdown(socket.SHUT_RDWR)  # to close it alone would not wake the thread that accepts
        listener.close()
        accepting.join()


@dataclass
class _Proxy:
    listener: socket.socket
    server: tuple[str, int]
    statement: bytes
    after: bytes
    lost: threading.Event = field(default_factory=threading.Event)

    def accept(self) -> None:
        with suppress(OSError):  # the listener is closed
            while True:
                client, _ = self.listener.accept()
                threading.Thread(target=self._carry, args=(client,), daemon=True).start()

    def _carry(self, client: socket.socket) -> None:
        said = threading.Event()
        with client, socket.create_connection(self.server) as remote, suppress(OSError):
            threading.Thread(target=self._say, args=(client, remote, said), daemon=True).start()
            while data := remote.recv(65536):
                if said.is_set() and not self.lost.is_set():
                    self.lost.set()
                    client.shutdown(socket.SHUT_RDWR)
                    return
                client.sendall(data)

    def _say(self, client: socket.socket, remote: socket.socket, said: threading.Event) -> None:
        """Carry what a client says, and note before it arrives that the reply to it is to be lost."""
        is_near = False
        with suppress(OSError):
            while data := client.recv(65536):
                if is_near and self.statement in data:
                    said.set()
                is_near = is_near or self.after in data
                remote.sendall(data)
            remote.shutdown(socket.SHUT_WR)
