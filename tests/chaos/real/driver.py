"""The driver process of these tests, without Spark: one attempt of the copy job as its order says.

python -m tests.chaos.real.driver <order>
"""

from __future__ import annotations

import os
import sys
import time
from datetime import timedelta
from pathlib import Path

from airflow_bookmarks.core.files.file_plan import FilePlan
from airflow_bookmarks.files.local import LocalFileSystem
from airflow_bookmarks.lifecycle.protocol.failpoint import Failpoint
from airflow_bookmarks.lifecycle.protocol.lease import RunEnvironment
from airflow_bookmarks.lifecycle.run.enabled import ActiveRun
from airflow_bookmarks.sinks.registry import SINKS
from airflow_bookmarks.sinks.staging import Mode, Staged, StagingRequest, collect_staged
from airflow_bookmarks.sources.files.planner import FileSource
from airflow_bookmarks.store.backends import dynamodb
from airflow_bookmarks.store.bookmark_store import BookmarkStore, open_store
from tests.aborting import aborted_on_error
from tests.chaos.kill import kill_hook
from tests.chaos.real.order import CTX, JOB, OUTPUT, STARTED, WAITING, CommitPath, Order
from tests.chaos.real.rows import KIND, RowSink

FILES = LocalFileSystem()
MODES = {CommitPath.APPEND: Mode.APPEND, CommitPath.OVERWRITE: Mode.OVERWRITE_PARTITIONS}
_POLL_S = 0.05


def machine_of(order: Order) -> RunEnvironment:
    """Return a machine that kills or holds the process where the order says so."""
    fault = kill_hook(order.fault, order.attempt)
    passed: set[Failpoint] = set()

    def at(point: Failpoint) -> None:
        fault(point)
        if point not in passed:  # some it comes by several times
            passed.add(point)
            order.pass_gate(point)

    def sleep(seconds: float) -> None:
        order.pass_gate(WAITING)
        time.sleep(min(seconds, _POLL_S))

    return RunEnvironment(at=at, sleep=sleep, lease_time=timedelta(seconds=order.lease_s))


def store_of(order: Order) -> BookmarkStore:
    """Open the store of the order."""
    if not order.store.startswith("dynamodb:"):
        return open_store(order.store)
    from tests.chaos.real.session import SESSION  # costs what its docstring says

    if order.read_timeout_s is not None:
        vars(dynamodb)["_READ_TIMEOUT_S"] = order.read_timeout_s
    return open_store(order.store, session=SESSION)


def begin(order: Order) -> ActiveRun:
    """Open the store and take the job."""
    store = store_of(order)
    order.pass_gate(STARTED)
    return ActiveRun.begin(
        store,
        JOB,
        order.identity,
        machine_of(order),
        on_conflict="wait" if order.on_conflict == "wait" else "fail",
        sinks=SINKS.extended(sink_of(order)) if order.path is CommitPath.BY_ITSELF else SINKS,
    )


def sink_of(order: Order) -> RowSink:
    """Open the table of the order."""
    return RowSink(Path(order.root) / "rows.db")


def plan(order: Order, run: ActiveRun) -> FilePlan:
    """Plan the raw folder."""
    return run.plan(CTX, FileSource(FILES, [f"{order.root}/raw"]))


def write_rows(order: Order, run: ActiveRun, lines: list[str]) -> None:
    """Write into the sink that commits by itself, under the token of the run."""
    run.place(OUTPUT, StagingRequest(KIND, f"{order.root}/rows"))
    fence = int(run.token.rpartition("/")[2])
    # Where the token is burned the sink takes nothing, and the commit then says who has the job.
    sink_of(order).write(fence, lines)
    run.staged(OUTPUT, Staged((), rows=len(lines)))


def stage_files(order: Order, run: ActiveRun, planned: FilePlan) -> None:
    """Stage a copy of each planned file, in a partition of its name."""
    target = f"{order.root}/{JOB}"
    folder = run.place(OUTPUT, StagingRequest("files", target, order.staging, stats={"format": "text"}))
    for path in map(Path, planned.files.paths):
        part = Path(folder) / f"file={path.stem}" / "part-0.txt"
        part.parent.mkdir(parents=True, exist_ok=True)
        part.write_text(path.read_text())
    run.staged(
        OUTPUT,
        collect_staged(FILES, folder, target, run.file_token, MODES[order.path], rows=None, schema='{"fields":[]}'),
    )


def drive(order: Order) -> None:
    """Make the run, as a script with a `with` block does: an exception aborts it."""
    run = begin(order)
    with aborted_on_error(run):
        planned = plan(order, run)
        if order.path is CommitPath.BY_ITSELF:
            write_rows(order, run, [line for p in planned.files.paths for line in Path(p).read_text().splitlines()])
        else:
            stage_files(order, run, planned)
        run.commit()


def say_to_file(order: Order) -> None:
    """Send all that this process says to the file of the order: it may outlive whoever reads its output."""
    file = os.open(order.said, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.dup2(file, sys.stdout.fileno())
    os.dup2(file, sys.stderr.fileno())


def main(order: Order) -> None:
    """Make the run in a process that was made for it."""
    say_to_file(order)
    drive(order)


if __name__ == "__main__":
    main(Order.from_text(sys.argv[1]))
