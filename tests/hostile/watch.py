"""What hostile tests watch: a server that notes who asks it, files that nobody should open, sources that claim them."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from airflow_bookmarks.core.job import RunIdentity
from airflow_bookmarks.core.selection.listing import FileInfo, Listing
from airflow_bookmarks.files.filesystem import Listed
from airflow_bookmarks.files.local import LocalFileSystem
from airflow_bookmarks.lifecycle.run.enabled import ActiveRun
from airflow_bookmarks.sources.files.options import FileOptions
from airflow_bookmarks.sources.files.planner import FileSource
from tests.airflow.conftest import World

_SUCCESS, _REDIRECT = 200, 307
_SIZE, _TIME_MS = 7, 1_700_000_000_000


class ClaimedFiles(LocalFileSystem):
    """Claims that some files are there, wherever that is: a driver may record what it likes."""

    def __init__(self, paths: Sequence[str]) -> None:
        self._files = [FileInfo(path, _SIZE, _TIME_MS) for path in paths]

    def list(self, root: str, **how: Any) -> Listed:
        """Return the files that are claimed."""
        return Listed(Listing.of(self._files))

    def stat(self, paths: Sequence[str]) -> Sequence[FileInfo | None]:
        """Return the same of each file."""
        return [next((file for file in self._files if file.path == path), None) for path in paths]


class ClaimingSource(FileSource):
    """Records other options than it was made with, as a driver of another version may."""

    claims: Mapping[str, Any] = {}

    def _figures(self, types: Mapping[str, str]) -> dict[str, Any]:
        return {**super()._figures(types), **self.claims}


def record_run(
    world: World,
    root: str,
    *names: str,
    job: str = "flights.clean",
    options: FileOptions = FileOptions(),  # noqa: B008 (a frozen value)
    claims: Mapping[str, Any] | None = None,
) -> str:
    """Record a run that claims to have read these files below `root`; return its job."""
    paths = [f"{root.rstrip('/')}/{name}" for name in names]
    dag_id, _, task_id = job.partition(".")
    run_id = f"{dag_id}/manual__{world.store.snapshot(job).head is None}/{task_id}"
    identity = RunIdentity(run_id, 1, dag_id=dag_id, task_id=task_id, dag_run_id="manual")
    run = ActiveRun.begin(world.store, job, identity, world.shop.environment)
    source = ClaimingSource(ClaimedFiles(paths), [root], options, clock=world.shop.environment.clock)
    source.claims = claims or {}
    run.plan("raw", source)
    run.commit()
    return job


@dataclass
class Witness:
    """A server on the loopback that notes each request, and answers as `answer` says: a status, headers, a body."""

    port: int
    asked: list[str] = field(default_factory=list)
    answer: Callable[[str], tuple[int, Mapping[str, str], bytes]] = lambda path: (_SUCCESS, {}, b"{}")

    @property
    def address(self) -> str:
        """Host and port."""
        return f"127.0.0.1:{self.port}"


@contextmanager
def witness() -> Iterator[Witness]:
    """Run such a server."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            found.asked.append(self.path)
            status, headers, body = found.answer(self.path)
            self.send_response(status)
            for name, value in {"Content-Length": str(len(body)), **headers}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        do_PUT = do_POST = do_GET

        def log_message(self, *args: Any) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        found = Witness(server.server_address[1])
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield found
        finally:
            server.shutdown()
            thread.join()


_OPENED: list[str] | None = None
_EVENTS = ("open", "os.listdir", "os.scandir")


def _note(event: str, arguments: tuple[Any, ...]) -> None:
    if _OPENED is not None and event in _EVENTS and isinstance(arguments[0], str):
        _OPENED.append(arguments[0])


@contextmanager
def opened_files() -> Iterator[list[str]]:
    """Note which files and folders this process opens, in whichever thread."""
    global _OPENED  # a hook of this kind can't be taken away, only told to rest
    if not hasattr(sys, "_bookmarks_hook"):
        sys.addaudithook(_note)
        sys._bookmarks_hook = True  # type: ignore[attr-defined]
    _OPENED = []
    try:
        yield _OPENED
    finally:
        _OPENED = None
