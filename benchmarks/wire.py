"""Counts requests on the wire, whichever process sends them: it stands before a DynamoDB endpoint and passes all on."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

_PASSED = ("Content-Type", "x-amzn-RequestId", "x-amz-crc32")  # of an answer; the rest is of the connection


class Wire:
    """An endpoint that counts, and `counts`: how many requests of each operation it has passed on."""

    def __init__(self, url: str, counts: Counter[str]) -> None:
        self.url = url
        self._counts = counts

    def take(self) -> dict[str, int]:
        """Return the counts since the last take."""
        taken = dict(sorted(self._counts.items()))
        self._counts.clear()
        return taken


@contextmanager
def wire(endpoint: str) -> Iterator[Wire]:
    """Stand before an HTTP endpoint, on a free port of the loopback."""
    counts: Counter[str] = Counter()
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(urlsplit(endpoint).netloc, counts))
    server.daemon_threads = True  # a client may keep its connection open to its end
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield Wire(f"http://127.0.0.1:{server.server_address[1]}", counts)
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _handler(target: str, counts: Counter[str]) -> type[BaseHTTPRequestHandler]:
    counting = threading.Lock()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            with counting:
                counts[self.headers["X-Amz-Target"].rpartition(".")[2]] += 1
            body = self.rfile.read(int(self.headers["Content-Length"]))
            headers = {name: value for name, value in self.headers.items() if name.lower() != "content-length"}
            onwards = HTTPConnection(target)
            onwards.request("POST", self.path, body, headers)
            answer = onwards.getresponse()
            content = answer.read()
            onwards.close()
            self.send_response(answer.status)
            for name in _PASSED:
                if answer.headers[name] is not None:
                    self.send_header(name, answer.headers[name])
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *args: object) -> None:
            """Keep quiet."""

    return Handler
