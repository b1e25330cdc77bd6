"""A stand-in for S3 that lists keys as fast as it can, and does what AWS and the network sometimes do.

It knows HEAD and ListObjectsV2, and says that all went well to a copy and a deletion, if no fault befalls them. What a
real server can show, a real server is asked for.

    $ python -m tests.files.s3.s3_stand_in 1000000 --far 0.05      # serves so many keys, and prints its URL
"""

from __future__ import annotations

import argparse
import threading
import time
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, quote, quote_plus, unquote, urlsplit

EARLY = "2013-01-01T00:00:00.000Z"
_PAGE_KEYS = 1000


@dataclass(frozen=True, slots=True)
class Refuse:
    """Answer with an error of S3."""

    status: int
    code: str


@dataclass(frozen=True, slots=True)
class CutOff:
    """Close the connection in the middle of the body."""


@dataclass(frozen=True, slots=True)
class Change:
    """Answer with another body than the right one."""

    body: Callable[[bytes], bytes]


@dataclass(frozen=True, slots=True)
class Pass:
    """Nothing befalls this request."""


Fault = Refuse | CutOff | Change | Pass


@dataclass(eq=False)
class StandIn:
    """The keys of every bucket, with the times at which they are stamped, and the faults of the next requests."""

    url: str
    keys: list[str] = field(default_factory=list)
    times: dict[str, str] = field(default_factory=dict)
    faults: list[Fault] = field(default_factory=list)
    always: Fault = field(default_factory=Pass)
    far_s: float = 0.0  # how long each answer is on its way
    seen: list[tuple[str, dict[str, str]]] = field(default_factory=list)

    def hold(self, keys: Iterable[str], time: str = EARLY) -> None:
        """Add keys, all stamped with one time."""
        added = list(keys)
        self.times.update(dict.fromkeys(added, time))
        # As bytes of UTF-8 and as characters the order is the same.
        self.keys[:] = sorted({*self.keys, *added})
        self.page.cache_clear()

    def befall(self, *faults: Fault) -> None:
        """Let these befall the next requests, one each."""
        self.faults[:] = faults

    @property
    def methods(self) -> Sequence[str]:
        return [method for method, _ in self.seen]

    @lru_cache(maxsize=100_000)  # noqa: B019  # it ends with its process
    def page(self, prefix: str, after: str, delimiter: str, max_keys: int) -> bytes:
        """Return the answer to ListObjectsV2."""
        keys, folders, last = self._entries(prefix, after, delimiter, max_keys)
        is_truncated = bool(last) and self._entries(prefix, last, delimiter, 1)[2] != ""
        token = f"<NextContinuationToken>{quote(last)}</NextContinuationToken>" if is_truncated else ""
        parts = [
            '<?xml version="1.0" encoding="UTF-8"?>\n<ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">',
            f"<Name>lake</Name><Prefix>{quote_plus(prefix, safe='/')}</Prefix><EncodingType>url</EncodingType>{token}",
            f"<KeyCount>{len(keys) + len(folders)}</KeyCount><MaxKeys>{max_keys}</MaxKeys>",
            f"<IsTruncated>{str(is_truncated).lower()}</IsTruncated>",
        ]
        parts += [
            f"<Contents><Key>{quote_plus(key, safe='/')}</Key><LastModified>{self.times[key]}</LastModified>"
            f"<ETag>&quot;{hash(key) & 0xFFFFFFFFFFFFFFFF:032x}&quot;</ETag>"
            "<ChecksumAlgorithm>CRC32</ChecksumAlgorithm><Size>1234</Size><StorageClass>STANDARD</StorageClass></Contents>"
            for key in keys
        ]
        parts += [f"<CommonPrefixes><Prefix>{quote_plus(f, safe='/')}</Prefix></CommonPrefixes>" for f in folders]
        return "".join([*parts, "</ListBucketResult>"]).encode()

    def _entries(self, prefix: str, after: str, delimiter: str, count: int) -> tuple[list[str], list[str], str]:
        keys: list[str] = []
        folders: list[str] = []
        at, last = max(bisect_right(self.keys, after), bisect_right(self.keys, prefix[:-1]) if prefix else 0), ""
        while at < len(self.keys) and len(keys) + len(folders) < count:
            key = self.keys[at]
            if not key.startswith(prefix):
                if key > prefix:
                    break
                at += 1
                continue
            rest = key[len(prefix) :]
            if delimiter and delimiter in rest:
                folder = prefix + rest.partition(delimiter)[0] + delimiter
                folders.append(folder)
                last = f"{folder}\U0010ffff"
                at = bisect_right(self.keys, last)
            else:
                keys.append(key)
                last = key
                at += 1
        return keys, folders, last


def _page_keys(asked: Mapping[str, str]) -> int:
    """Return how many keys a page may have: S3 gives 1,000 at most, whatever it is asked for (s3a asks for 5,000)."""
    return min(int(asked.get("max-keys", _PAGE_KEYS)), _PAGE_KEYS)


@contextmanager
def stand_in() -> Iterator[StandIn]:
    """Serve on a free port of the loopback."""
    server = _Server(("127.0.0.1", 0), _Handler)
    server.held = held = StandIn(f"http://127.0.0.1:{server.server_port}")
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield held
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    held: StandIn


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: _Server

    def do_HEAD(self) -> None:
        held = self.server.held
        held.seen.append(("HEAD", {}))
        fault = held.faults.pop(0) if held.faults else held.always
        key = unquote(urlsplit(self.path).path).partition("/")[2].partition("/")[2]
        status = fault.status if isinstance(fault, Refuse) else 200 if key in held.times else 404
        self.send_response(status)
        if status == 200:
            self.send_header("ETag", f'"{hash(key) & 0xFFFFFFFFFFFFFFFF:032x}"')
            self.send_header("Last-Modified", "Tue, 01 Jan 2013 00:00:00 GMT")
        self.send_header("Content-Length", "1234" if status == 200 else "0")
        self.end_headers()

    def do_GET(self) -> None:
        held = self.server.held
        asked = {name: values[0] for name, values in parse_qs(urlsplit(self.path).query).items()}
        held.seen.append(("GET", asked))
        fault = held.faults.pop(0) if held.faults else held.always
        time.sleep(held.far_s)
        if isinstance(fault, Refuse):
            body = f"<Error><Code>{fault.code}</Code><Message>as the test wants it</Message></Error>".encode()
            return self._send(fault.status, body, len(body))
        after = unquote(asked.get("continuation-token", "")) or asked.get("start-after", "")
        body = held.page(asked.get("prefix", ""), after, asked.get("delimiter", ""), _page_keys(asked))
        if isinstance(fault, CutOff):
            self.close_connection = True
            return self._send(200, body[: len(body) // 2], len(body))
        if isinstance(fault, Change):
            body = fault.body(body)
        return self._send(200, body, len(body))

    def do_PUT(self) -> None:
        self._change("PUT", 200, b"<CopyObjectResult/>")

    def do_DELETE(self) -> None:
        self._change("DELETE", 204, b"")

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self._change("POST", 200, b"<DeleteResult/>")

    def _change(self, method: str, status: int, body: bytes) -> None:
        held = self.server.held
        held.seen.append((method, {}))
        fault = held.faults.pop(0) if held.faults else held.always
        if isinstance(fault, Refuse):
            status, body = fault.status, f"<Error><Code>{fault.code}</Code></Error>".encode()
        if isinstance(fault, Change):
            body = fault.body(body)
        self._send(status, body, len(body))

    def _send(self, status: int, body: bytes, length: int) -> None:
        self.send_response(status)
        self.send_header("Content-Type", "application/xml")
        self.send_header("Content-Length", str(length))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


def _main() -> None:
    parser = argparse.ArgumentParser(description="Serve listings of so many keys until the input ends.")
    parser.add_argument("keys", type=int)
    parser.add_argument("--far", type=float, default=0.0, help="seconds that each answer is on its way")
    given = parser.parse_args()
    count = given.keys
    with stand_in() as served:
        served.far_s = given.far
        served.hold(f"raw/month={i * 12 // count + 1:02d}/part-{i:08d}.snappy.parquet" for i in range(count))
        print(served.url, flush=True)
        input()


if __name__ == "__main__":
    _main()
