"""IAM in front of moto's S3, as far as the shipped policies use it: what the policy does not allow is refused.

moto itself evaluates no conditions. One rule is not in the policy: S3 says that a key is not there only to callers that
may list the bucket without a prefix, and answers others 403.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape

_DENIED = "<Error><Code>AccessDenied</Code><Message>Access Denied</Message></Error>"


@dataclass(frozen=True, order=True)
class Call:
    """What IAM sees of one operation: its action, and the key, or the prefix of a listing ("" without one)."""

    action: str
    key: str


@dataclass
class Gate:
    """The endpoint `url` lets what `policy` allows through to moto; what it refused is in `refused`."""

    url: str
    policy: Mapping[str, Any]
    passed: set[Call] = field(default_factory=set)
    refused: set[Call] = field(default_factory=set)

    def lets(self, bucket: str, call: Call) -> bool:
        allowed = any(_applies(each, bucket, call) for each in self.policy["Statement"] if each["Effect"] == "Allow")
        (self.passed if allowed else self.refused).add(call)
        return allowed


@contextmanager
def iam_gate(moto_url: str, policy: Mapping[str, Any]) -> Iterator[Gate]:
    """Serve S3 under a policy, on a free port of the loopback."""
    handler = type("Handler", (_Handler,), {"moto": urlsplit(moto_url).netloc})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    gate = Gate(f"http://127.0.0.1:{server.server_port}", policy)
    handler.gate = gate  # type: ignore[attr-defined]
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield gate
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _applies(statement: Mapping[str, Any], bucket: str, call: Call) -> bool:
    actions, resources = statement["Action"], statement["Resource"]
    arn = f"arn:aws:s3:::{bucket}" + ("" if call.action == "s3:ListBucket" else f"/{call.key}")
    return (
        call.action in ([actions] if isinstance(actions, str) else actions)
        and any(_is_like(arn, each) for each in ([resources] if isinstance(resources, str) else resources))
        and all(_holds(operator, tests, call.key) for operator, tests in statement.get("Condition", {}).items())
    )


def _holds(operator: str, tests: Mapping[str, Any], prefix: str) -> bool:
    match operator, tests:
        case "StringLike", {"s3:prefix": patterns}:
            return any(_is_like(prefix, each) for each in patterns)
        case "Null", {"s3:prefix": "true"}:
            return not prefix
        case _:
            return False  # of DynamoDB


def _is_like(value: str, pattern: str) -> bool:
    return re.fullmatch(re.escape(pattern).replace(r"\*", ".*"), value, re.DOTALL) is not None


def _calls(method: str, key: str, query: Mapping[str, list[str]], copied: str, body: bytes) -> list[Call]:
    """Return what one request is to IAM."""
    match method, key:
        case "POST", "" if "delete" in query:
            return [Call("s3:DeleteObject", each) for each in _keys_in(body)]
        case (("GET" | "HEAD"), ""):
            return [Call("s3:ListBucket", query.get("prefix", [""])[0])]
        case (("GET" | "HEAD"), _):
            return [Call("s3:GetObject", key)]
        case "DELETE", _:
            return [Call("s3:AbortMultipartUpload" if "uploadId" in query else "s3:DeleteObject", key)]
        case _:
            source = [Call("s3:GetObject", unquote(copied).lstrip("/").partition("/")[2])] if copied else []
            return [Call("s3:PutObject", key), *source]


def _keys_in(body: bytes) -> list[str]:
    return re.findall(r"<Key>([^<]*)</Key>", body.decode())


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    moto: str
    gate: Gate

    def _serve(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        split = urlsplit(self.path)
        bucket, _, key = unquote(split.path).lstrip("/").partition("/")
        query = parse_qs(split.query, keep_blank_values=True)
        calls = _calls(self.command, key, query, self.headers.get("x-amz-copy-source", ""), body)
        refused = [call for call in calls if not self.gate.lets(bucket, call)]
        if refused and "delete" in query:
            self._answer(200, f"<DeleteResult>{''.join(map(_not_deleted, refused))}</DeleteResult>")
        elif refused:
            self._answer(403, _DENIED)
        else:
            self._pass_on(bucket, body)

    do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = _serve

    def _pass_on(self, bucket: str, body: bytes) -> None:
        connection = HTTPConnection(self.moto)
        connection.request(self.command, self.path, body, dict(self.headers.items()))
        answer = connection.getresponse()
        content = answer.read()
        is_missing = answer.status == 404 and self.command in ("GET", "HEAD")
        if is_missing and not self.gate.lets(bucket, Call("s3:ListBucket", "")):
            self._answer(403, _DENIED)
            return
        self.send_response(answer.status)
        for name, value in answer.getheaders():
            if name.lower() not in ("transfer-encoding", "connection", "content-length", "date", "server"):
                self.send_header(name, value)
        length = answer.getheader("Content-Length") if self.command == "HEAD" else str(len(content))
        self.send_header("Content-Length", length or "0")
        self.end_headers()
        self.wfile.write(content)
        connection.close()

    def _answer(self, status: int, text: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", "application/xml")
        self.send_header("Content-Length", str(len(text.encode())))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(text.encode())

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""


def _not_deleted(call: Call) -> str:
    return f"<Error><Key>{escape(call.key)}</Key><Code>AccessDenied</Code><Message>Access Denied</Message></Error>"
