"""Run each task that reads files in a child process: an interpreter of its own, killed if it exceeds its limits.

It holds no lock of the API server, and its memory and time are limited: by the child itself, and by its parent, which
kills it with everything that it has started.
"""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import signal
import subprocess
import sys
from dataclasses import dataclass
from time import monotonic
from typing import IO, TYPE_CHECKING, Any

from airflow.configuration import conf

from airflow_bookmarks.core import errors
from airflow_bookmarks.core.errors import (
    BookmarkError,
    LookFailedError,
    OptionError,
    StoreAccessError,
    TooLargeHereError,
)
from airflow_bookmarks.core.text.redaction import has_user_info
from airflow_bookmarks.core.text.stored_json import read_json
from airflow_bookmarks.files.permission import Permission, Prefix

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from airflow_bookmarks.hooks.bookmark import BookmarkHook

_MODULE = "airflow_bookmarks.plugin.scan.worker"
_PART = 1 << 16  # bytes of an answer that are read at a time
_CREDENTIALS = {
    "AWS_ACCESS_KEY_ID": "aws_access_key_id",
    "AWS_SECRET_ACCESS_KEY": "aws_secret_access_key",
    "AWS_SESSION_TOKEN": "aws_session_token",
}


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of a child: seconds, seconds of processor time, bytes of addresses, bytes of its answer."""

    life_s: int = 15
    processor_s: int = 15
    memory: int = 1 << 30
    answer: int = 8 << 20


LIMITS = Limits()


def look_below() -> tuple[str, ...]:
    """Return the prefixes below which the deployment lets the page read: `[bookmarks] look_below`; none by default.

    Raises:
        StoreAccessError: one of them is no prefix.
    """
    listed = conf.get("bookmarks", "look_below", fallback="") or ""
    prefixes = tuple(text.strip() for text in listed.split(",") if text.strip())
    for text in prefixes:
        _check_prefix(text)
    return prefixes


def may_look() -> bool:
    """Whether the deployment lets the page read any files; also if its setting is wrong: the read then reports that."""
    try:
        return bool(look_below())
    except StoreAccessError:
        return True


def _check_prefix(text: str) -> None:
    _check_spelling(text)
    try:
        prefix = Prefix.of(text)
    except OptionError as error:
        raise StoreAccessError(f"the setting [bookmarks] look_below can't be read: {error}") from error
    if not prefix.authority and not prefix.names:
        raise StoreAccessError(
            f"the setting [bookmarks] look_below lists {text!r}, which is all of a file system. Nothing was read or "
            "changed. List folders, buckets or hosts, for example s3://bucket/raw/."
        )


def _check_spelling(text: str) -> None:
    """Make sure that there may be something below a prefix: else the page would look at nothing, and not say why."""
    if has_user_info(text):
        why = "a prefix with a user and a password"
    elif "*" in text or "?" in text:
        why = f"{text!r}, which has a wildcard: prefixes are plain names, with all that lies below them"
    elif "://" in text and text.partition("://")[0] != text.partition("://")[0].lower():
        why = f"{text!r}, whose file system is written in capitals"
    else:
        return
    raise StoreAccessError(
        f"the setting [bookmarks] look_below lists {why}. Nothing was read or changed. Write it as s3://bucket/raw/."
    )


def is_allowed(prefixes: Sequence[str], paths: Sequence[str]) -> bool:
    """Whether one of some paths lies below one of these prefixes."""
    permission = Permission(tuple(map(Prefix.of, prefixes)))
    return any(map(permission.allows, paths))


def run_in_child(
    hook: BookmarkHook, prefixes: Sequence[str], what: str, job: str, arguments: Mapping[str, Any], limits: Limits
) -> Any:
    """Let a child do one of the `TASKS`, and return what it returns or raise what it raises.

    Raises:
        LookFailedError: it broke a limit, or ended without an answer.
    """
    keys: dict[str, str | None] = {
        _CREDENTIALS[name]: value for name, value in hook.credentials_environment().items() if value
    }
    task = {
        "store": hook.store_uri,
        "credentials": {**keys, "region_name": hook.address.region} if keys else None,
        "prefixes": list(prefixes),
        "what": what,
        "job": job,
        "arguments": arguments,
    }
    result = _parsed(_exchanged(json.dumps(task).encode(), limits), job, limits)
    if "error" in result:
        raise _error_of(str(result["error"]), str(result["message"]))
    return result["answer"]


def _parsed(said: bytes, job: str, limits: Limits) -> Mapping[str, Any]:
    try:
        result: Mapping[str, Any] = read_json(said, "answer")
        if not isinstance(result, dict) or not result.keys() & {"answer", "error"}:
            raise ValueError("it is no answer")
    except (ValueError, RecursionError, TooLargeHereError) as error:
        raise LookFailedError(
            f"job {job!r}: the process that looks at files for the API server was ended before it had an answer. It "
            f"may take {limits.life_s} s, {limits.memory >> 20} MiB of addresses, and {limits.answer >> 20} MiB for "
            "its answer; a large folder, a pattern of the job that runs away, or a silent server takes more. "
            "If it was a change, look whether it was made. The command line has no such limits."
        ) from error
    return result


def _exchanged(task: bytes, limits: Limits) -> bytes:
    """Return what a child wrote to its standard output before it ended or was killed."""
    arguments = map(str, (limits.life_s + 1, limits.processor_s, limits.memory))
    child = subprocess.Popen(  # noqa: S603  # this interpreter, and a module of ours
        # Not from the folder in which it runs: what lies there is no module of anybody's.
        [sys.executable, "-P", "-m", _MODULE, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        bufsize=0,
        env=_environment(),
        cwd="/",
        start_new_session=True,
    )
    try:
        said = _communicate(child, task, limits)
    finally:
        # Until it is waited for, its number is nobody else's. What has answered may be killed as well.
        _kill(child)
        child.wait()
    return b"" if len(said) > limits.answer else said


def _communicate(child: subprocess.Popen[bytes], task: bytes, limits: Limits) -> bytes:
    """Send a child its task, and return its answer until it ends, its time is up, or it says too much.

    Nothing here waits for longer: who has left the child's session has its pipes still, and is not killed with it.
    """
    until, said, rest = monotonic() + limits.life_s, bytearray(), memoryview(task)
    with child.stdin as stdin, child.stdout as stdout, selectors.DefaultSelector() as ready:  # type: ignore[union-attr]  # they are pipes
        os.set_blocking(stdin.fileno(), False)
        ready.register(stdin, selectors.EVENT_WRITE)
        ready.register(stdout, selectors.EVENT_READ)
        while len(said) <= limits.answer and (left_s := until - monotonic()) > 0:
            for key, _ in ready.select(left_s):
                if key.events == selectors.EVENT_READ:
                    part = stdout.read(_PART)
                    if not part:
                        return bytes(said)
                    said += part
                    continue
                rest = rest[_write_some(stdin, rest) :]
                if not rest:
                    ready.unregister(stdin)
                    stdin.close()
    return bytes(said)


def _write_some(stdin: IO[bytes], rest: memoryview) -> int:
    """Write what fits, and return how much is done: all of it if the reader is gone."""
    try:
        return stdin.write(rest) or 0
    except BrokenPipeError:
        return len(rest)


def _kill(child: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)


def _environment() -> dict[str, str]:
    """Return the environment without Airflow's: a child needs no key of Airflow's, nor its database."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("AIRFLOW_", "_AIRFLOW_"))}
    # One thread of BLAS: each more takes its share of the addresses.
    return {**kept, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "OPENBLAS_NUM_THREADS": "1"}


def _error_of(name: str, message: str) -> BookmarkError:
    kind = getattr(errors, name, None)
    if not (isinstance(kind, type) and issubclass(kind, BookmarkError)):
        return LookFailedError(message)
    # Some make their message of what they are given; this one is made already.
    error = kind.__new__(kind, message)
    error.args = (message,)
    return error
