"""Where these tests play: raw files and a target, a bookmark in DynamoDB, and the operator that copies the files."""

from __future__ import annotations

import json
import os
import socket
from collections import Counter
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psutil
import pytest

from airflow_bookmarks.core.head import Head
from airflow_bookmarks.core.run import Run
from airflow_bookmarks.files.local import LocalFileSystem
from airflow_bookmarks.operators.spark_submit import BookmarkSparkSubmitOperator
from airflow_bookmarks.store.bookmark_store import BookmarkStore
from tools.patience import STUCK_S

DAG_ID, TASK_ID = "clusters", "copy"
JOB = f"{DAG_ID}.{TASK_ID}"
SCRIPT = Path(__file__).with_name("copy_job.py")
full_only = pytest.mark.skipif(
    os.environ.get("CHAOS") != "full",
    reason="each is a Spark application of its own on a cluster: CHAOS=full plays them",
)
_LOOK_EVERY_S = 0.5

FILES = LocalFileSystem()


@dataclass(frozen=True, slots=True)
class Order:
    """What the driver is told: `fault` is a point at which it kills itself, `gate` a port at which it waits."""

    root: str
    fault: str = ""
    takes_its_container_along: bool = False
    fails: bool = False
    gate: int = 0


@dataclass
class Scene:
    """Files below `root`, the bookmark of the job that copies them, and what to tell the cluster in each submit."""

    root: Path
    store: BookmarkStore
    submit: Mapping[str, Any]
    _seconds: Iterator[int] = field(default_factory=lambda: count(1_700_000_000))

    def land(self, name: str, *lines: str) -> None:
        """Write a raw file, each dated one second after the one before."""
        path = self.root / "raw" / f"{name}.txt"
        path.parent.mkdir(exist_ok=True)
        path.write_text("".join(f"{line}\n" for line in lines))
        seconds = next(self._seconds)
        os.utime(path, (seconds, seconds))

    # ---- submitting

    def task(self, *, retries: int = 0, conf: Mapping[str, str] | None = None, **order: Any) -> Any:
        """Return the operator for one try; `order` are the fields of `Order`."""
        told = Order(str(self.root), **order)
        return BookmarkSparkSubmitOperator(
            task_id=TASK_ID,
            application=str(SCRIPT),
            application_args=[json.dumps(asdict(told))],
            retries=retries,
            **{**self.submit, "conf": {**self.submit["conf"], **(conf or {})}},
        )

    def run(self, dag_run: str, attempt: int = 1, *, retries: int = 0, **given: Any) -> dict[str, Any]:
        """Play one try of the task in a DAG run; return its summary, which is its XCom."""
        summary: dict[str, Any] = self.task(retries=retries, **given).execute(context(dag_run, attempt, retries))
        return summary

    # ---- looking

    @property
    def head(self) -> Head:
        return self.store.head(JOB)

    def runs(self) -> list[Run]:
        return list(self.store.runs(JOB))

    def report(self) -> dict[str, Any]:
        """Return what the last driver said of itself."""
        found: dict[str, Any] = json.loads((self.root / "report.json").read_text())
        return found

    def error(self) -> str:
        """Return the error with which the last driver ended that ended with one."""
        return (self.root / "error.txt").read_text()

    def events(self) -> str:
        """Return what Spark has noted of its applications: all that its UI shows, the environment page among it."""
        files = [path for path in (self.root / "events").rglob("*") if path.is_file()]
        return "".join(path.read_text() for path in files)

    def sources(self) -> Counter[str]:
        """Return the rows that lie in the raw folder."""
        return _lines(self.root / "raw")

    def target(self) -> Counter[str]:
        """Return the rows that a reader of the target sees."""
        return _lines(self.root / "out")

    def check_whole(self) -> None:
        """Make sure that each row is there once, and that nothing is staged, due, open or held."""
        assert self.target() == self.sources()
        assert [path for path in self.root.glob("out/_bookmarks/**/*") if path.is_file()] == []
        head = self.head
        assert (head.publishing, head.lease, head.published) == (None, None, head.run_number)
        assert self.store.open_runs(JOB, head) == []


def context(dag_run: str, attempt: int = 1, retries: int = 0) -> Any:
    """Return what Airflow hands to `execute`, as far as the operator looks at it."""
    ti = SimpleNamespace(
        dag_id=DAG_ID, task_id=TASK_ID, run_id=dag_run, map_index=-1, try_number=attempt, max_tries=retries
    )
    return {"ti": ti, "logical_date": datetime(2026, 5, 3, tzinfo=UTC)}


def _lines(folder: Path) -> Counter[str]:
    if not folder.exists():
        return Counter()
    paths = FILES.list(str(folder), recursive=True).files.paths
    return Counter(line for path in paths for line in Path(path).read_text().splitlines())


# ---- a try that is held in the middle


class Held:
    """A try whose driver has staged all and waits. `task` is its operator, `ended` what becomes of `execute`."""

    def __init__(self, task: Any, ended: Future[Any], line: socket.socket) -> None:
        self.task, self.ended, self._line = task, ended, line
        with line.makefile() as words:
            self.driver = psutil.Process(int(words.readline()))

    def go_on(self) -> None:
        """Let the driver go on, if it still lives."""
        self._line.close()


@contextmanager
def held(scene: Scene, dag_run: str, **given: Any) -> Iterator[Held]:
    """Play one try in a thread, up to where its driver has staged all; at the end it goes on and is waited for."""
    with socket.create_server(("127.0.0.1", 0)) as server, ThreadPoolExecutor(1) as pool:
        task = scene.task(gate=server.getsockname()[1], **given)
        ended = pool.submit(task.execute, context(dag_run))
        with arrival(server, ended) as line:
            yield Held(task, ended, line)


def arrival(server: socket.socket, ended: Future[Any]) -> socket.socket:
    """Wait for a driver; what else the try ends with is raised here."""
    server.settimeout(_LOOK_EVERY_S)
    while True:
        try:
            line, _ = server.accept()
        except TimeoutError:
            if ended.done():
                raise AssertionError(f"the try ended before its driver came: {ended.result()}") from None
        else:
            line.settimeout(STUCK_S)
            return line


# ---- what processes show to others


def command_lines() -> dict[int, str]:
    """Return the command lines of all processes of this machine, as anybody who is logged in can read them."""
    found = {each.pid: " ".join(each.info["cmdline"] or ()) for each in psutil.process_iter(["cmdline"])}
    return {pid: line for pid, line in found.items() if line}


def environment_of(pid: int) -> dict[str, str]:
    """Return the environment with which a process was started."""
    found: dict[str, str] = psutil.Process(pid).environ()
    return found
