"""An HTTP endpoint between a client and DynamoDB Local or moto that does what the network and AWS sometimes do."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

from tools.patience import STUCK_S


@dataclass(frozen=True, slots=True)
class Refuse:
    """Answer with an error of DynamoDB; the server behind sees nothing."""

    code: str
    status: int = 400
    reasons: tuple[str, ...] = ()  # the codes of a cancelled transaction's operations


@dataclass(frozen=True, slots=True)
class LoseRequest:
    """Close the connection before the server behind sees anything."""


@dataclass(frozen=True, slots=True)
class LoseReply:
    """Let the server behind do it, and close the connection without an answer."""


@dataclass(frozen=True, slots=True)
class ReadNothing:
    """Answer a BatchGetItem with none of its items: all keys unprocessed."""


@dataclass(frozen=True, slots=True)
class Pass:
    """Nothing befalls this request."""


Fault = Refuse | LoseRequest | LoseReply | ReadNothing | Pass


@dataclass(slots=True)
class FaultyEndpoint:
    """`faults` befall the requests one after the other, what comes after them passes; `seen` are operation and body."""

    url: str
    faults: list[Fault] = field(default_factory=list)
    seen: list[tuple[str, dict[str, Any]]] = field(default_factory=list)

    def befall(self, *faults: Fault) -> None:
        """Let these befall the next requests, and forget which were seen."""
        self.faults[:] = faults
        self.seen.clear()

    @property
    def operations(self) -> Sequence[str]:
        """The names of the operations seen."""
        return [name for name, _ in self.seen]


@contextmanager
def faulty_endpoint(behind: str) -> Iterator[FaultyEndpoint]:
    """Serve on a free port of the loopback in front of the server at `behind`."""
    server = _Server(("127.0.0.1", 0), _Handler)
    server.behind = behind
    server.endpoint = endpoint = FaultyEndpoint(f"http://127.0.0.1:{server.server_port}")
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield endpoint
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _Server(ThreadingHTTPServer):
    behind: str
    endpoint: FaultyEndpoint


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        content = json.loads(body)
        endpoint = self.server.endpoint
        endpoint.seen.append((self.headers["X-Amz-Target"].partition(".")[2], content))
        match endpoint.faults.pop(0) if endpoint.faults else Pass():
            case Refuse(code, status, reasons):
                error: dict[str, Any] = {"__type": f"com.amazonaws.dynamodb.v20120810#{code}", "message": "injected"}
                if reasons:
                    error["CancellationReasons"] = [{"Code": reason, "Message": "injected"} for reason in reasons]
                self._answer(status, json.dumps(error).encode())
            case LoseRequest():
                self.close_connection = True
            case LoseReply():
                self._ask(body)
                self.close_connection = True
            case ReadNothing():
                nothing = {"Responses": {}, "UnprocessedKeys": content["RequestItems"]}
                self._answer(200, json.dumps(nothing).encode())
            case Pass():
                self._answer(*self._ask(body))

    def _ask(self, body: bytes) -> tuple[int, bytes]:
        headers = {name: value for name, value in self.headers.items() if name != "Host"}
        try:
            # The URL is that of a server which the tests started.
            with urlopen(Request(self.server.behind, body, headers), timeout=STUCK_S) as answer:  # noqa: S310
                return answer.status, answer.read()
        except HTTPError as error:
            return error.code, error.read()

    def _answer(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", "application/x-amz-json-1.0")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Keep quiet."""
