"""A counter before DynamoDB: passes each request on as it is, and notes when it came and what it asked for.

The local server counts nothing itself, and a count inside the process that asks would miss what the client repeats.
"""

from __future__ import annotations

import http.client
import json
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

from tools.patience import STUCK_S

_HOP_BY_HOP = {"connection", "keep-alive", "transfer-encoding", "content-length", "date", "server"}


@dataclass(frozen=True, slots=True)
class Asked:
    """One request: when it came (seconds of the wall clock), its operation, and whether all it read was consistent."""

    at: float
    operation: str
    is_consistent: bool


@dataclass
class Counter:
    """What has come so far; `url` is where to send it."""

    url: str = ""
    asked: list[Asked] = field(default_factory=list)

    def since(self, moment: float) -> Sequence[Asked]:
        """Return what came at or after a moment, oldest first."""
        return [one for one in list(self.asked) if one.at >= moment]


@contextmanager
def counting(endpoint: str) -> Iterator[Counter]:
    """Stand before `endpoint`, on a free port of the loopback."""
    counter = Counter()
    server = _Server(("127.0.0.1", 0), _Door)
    server.counter, server.behind = counter, urlsplit(endpoint).netloc
    counter.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, name="request counter", daemon=True)
    thread.start()
    try:
        yield counter
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False  # clients keep their connections open
    request_queue_size = 128
    counter: Counter
    behind: str


class _Door(BaseHTTPRequestHandler):
    """One connection of a client, and one behind it."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: _Server

    def setup(self) -> None:
        super().setup()
        self._behind = http.client.HTTPConnection(self.server.behind, timeout=STUCK_S)

    def finish(self) -> None:
        self._behind.close()
        super().finish()

    def do_POST(self) -> None:
        at = time.time()
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        operation = (self.headers.get("X-Amz-Target") or "").rpartition(".")[2]
        self.server.counter.asked.append(Asked(at, operation, _is_consistent(json.loads(body or b"{}"))))
        self._behind.request("POST", self.path, body, dict(self.headers))
        answer = self._behind.getresponse()
        said = answer.read()
        self.send_response(answer.status)
        for name, value in answer.getheaders():
            if name.lower() not in _HOP_BY_HOP:
                self.send_header(name, value)
        self.send_header("Content-Length", str(len(said)))
        self.end_headers()
        self.wfile.write(said)

    def log_message(self, format: str, *arguments: Any) -> None:
        """Say nothing: it would be a line a request."""


def _is_consistent(request: dict[str, Any]) -> bool:
    tables = request.get("RequestItems")
    asked = [request] if tables is None else list(tables.values())
    return all(one.get("ConsistentRead") is True for one in asked)
