"""Counts requests to S3 on the wire, whichever process sends them: it stands before an endpoint and passes all on."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

_OF_THE_CONNECTION = ("connection", "keep-alive", "transfer-encoding", "content-length")


class S3Wire:
    """An endpoint that counts."""

    def __init__(self, url: str, counts: Counter[str]) -> None:
        self.url = url
        self._counts = counts

    def take(self) -> dict[str, int]:
        """Return how many requests of each kind have passed since the last take."""
        taken = dict(sorted(self._counts.items()))
        self._counts.clear()
        return taken


def kind_of(method: str, path: str, headers: Mapping[str, str]) -> str:
    """Return what a request is to the price list: PUT, COPY, POST and LIST are of one class, GET and HEAD of another.

    Example:
        >>> kind_of("GET", "/lake?list-type=2", {}), kind_of("PUT", "/lake/a", {"x-amz-copy-source": "/lake/b"})
        ('LIST', 'COPY')
    """
    asked = parse_qs(urlsplit(path).query, keep_blank_values=True)
    if "list-type" in asked or "uploads" in asked:
        return "LIST" if method == "GET" else method
    if method == "PUT" and any(name.lower() == "x-amz-copy-source" for name in headers):
        return "COPY"
    return "DELETE" if method == "POST" and "delete" in asked else method


@contextmanager
def s3_wire(endpoint: str) -> Iterator[S3Wire]:
    """Stand before an S3 endpoint, on a free port of the loopback."""
    counts: Counter[str] = Counter()
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(urlsplit(endpoint).netloc, counts))
    server.daemon_threads = True  # a client may keep its connection open to its end
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield S3Wire(f"http://127.0.0.1:{server.server_address[1]}", counts)
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _handler(target: str, counts: Counter[str]) -> type[BaseHTTPRequestHandler]:
    counting = threading.Lock()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def pass_on(self) -> None:
            with counting:
                counts[kind_of(self.command, self.path, dict(self.headers.items()))] += 1
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            onwards = HTTPConnection(target)
            # Host too is passed as it came: it is signed.
            onwards.putrequest(self.command, self.path, skip_host=True, skip_accept_encoding=True)
            for name, value in self.headers.items():
                if name.lower() not in ("connection", "expect"):
                    onwards.putheader(name, value)
            onwards.endheaders(body)
            answer = onwards.getresponse()
            content = answer.read()
            self.send_response(answer.status)
            for name, value in answer.headers.items():
                if name.lower() not in _OF_THE_CONNECTION:
                    self.send_header(name, value)
            is_head = self.command == "HEAD"  # which tells a length and sends nothing
            self.send_header(
                "Content-Length", answer.headers.get("Content-Length", "0") if is_head else str(len(content))
            )
            self.end_headers()
            self.wfile.write(content)
            onwards.close()

        do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = pass_on

        def log_message(self, format: str, *args: object) -> None:
            """Keep quiet."""

    return Handler
