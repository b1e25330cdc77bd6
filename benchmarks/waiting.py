"""What it costs to wait: how long after a publish a deferred sensor is woken, and how many requests waiting takes.

Real triggers wait in a real event loop, each for what its consumer has not consumed of a job of its own. Again and
again one of the jobs publishes, at a moment that is random to the poller. The latency is the time from the end of that
run (its mark is written) to the event of the trigger. Requests are counted at the table of the poller; the publishing
goes by another one. Half of the interval is due to chance: a look comes every 2 to 4 s.

Beside it stands what most would write: each sensor polls by itself. There each of the waits looks alone, in poke mode,
which remembers names and layout between two looks, and as often as the poller does: what it costs in requests, and how
long one round of all of them takes, against one shared look.

Example:
    $ python -m benchmarks.waiting
    $ python -m benchmarks.waiting --publishes 3 --backends sqlite
"""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import os
import random
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from statistics import median
from typing import Any

from airflow_bookmarks.core.position import Edge
from airflow_bookmarks.core.rules.condition import NewsFor
from airflow_bookmarks.lifecycle.inspect.wait import Wait
from airflow_bookmarks.lifecycle.inspect.waiting import Memory, evaluate
from airflow_bookmarks.store.backends.dynamodb import DynamoTable
from airflow_bookmarks.store.backends.sqlite import SqliteTable
from airflow_bookmarks.store.bookmark_store import BookmarkStore
from airflow_bookmarks.store.codec.item import edge_attributes
from airflow_bookmarks.store.table import Put, Table
from benchmarks.request import RecordingTable
from benchmarks.steady_job import SteadyJob
from tools.servers import dynamodb_local

PROMISE_REQUESTS_PER_S = 4.0
RESULT = Path("build/bench/waiting.json")
BACKENDS = ("sqlite", "dynamodb-local")
WAITS = (1, 50, 200)
CONNECTION = "bench"
ROUNDS = 10
POLL_INTERVAL_S = 2.0  # that of the poller; its module imports Airflow, whose home is not known yet here


@dataclass(frozen=True, slots=True)
class Measured:
    """What one case came to. A look is one round of the poller; `requests_per_s` counts all of its requests.

    `look_ms` is the median time of one look at what stands still; `alone_...` is each wait by itself: all of them once,
    at the poller's mean interval; `ratio` is how many times more requests that is.
    """

    backend: str
    waits: int
    publishes: int
    median_ms: float
    worst_ms: float
    looks: int
    requests: int
    requests_per_look: float
    requests_per_s: float
    read_bytes_per_look: int
    look_ms: float
    alone_look_ms: float
    alone_requests_per_s: float
    ratio: float


@dataclass(frozen=True, slots=True)
class Rounds:
    """Rounds of looks at waits that stand still: their median time, and the requests of one of them."""

    median_ms: float
    requests: float


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, print a table, write `build/bench/waiting.json`."""
    given = _parser().parse_args(arguments)
    logging.getLogger("airflow_bookmarks").setLevel(logging.ERROR)  # the local server has no point-in-time recovery
    results: list[Measured] = []
    with tempfile.TemporaryDirectory(prefix="bench-airflow-") as home:
        os.environ["AIRFLOW_HOME"] = home
        print(_line(Measured.__dataclass_fields__))
        for backend in given.backends:
            for waits in given.waits:
                results.append(measure(backend, waits, given.publishes))
                print(_line(asdict(results[-1])), flush=True)
    RESULT.parent.mkdir(parents=True, exist_ok=True)
    facts = {"promise_requests_per_s": PROMISE_REQUESTS_PER_S, "results": [asdict(one) for one in results]}
    RESULT.write_text(json.dumps(facts, indent=2) + "\n")
    worst = max(results, key=lambda one: one.requests_per_s)
    kept = "kept" if worst.requests_per_s <= PROMISE_REQUESTS_PER_S else "BROKEN"
    print(
        f"promise {kept}: at most {worst.requests_per_s:.2f} requests a second ({worst.backend}, {worst.waits} waits); "
        f"{PROMISE_REQUESTS_PER_S:.0f} are allowed"
    )
    print(f"written to {RESULT}")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("python -m benchmarks.waiting", description="What it costs to wait.")
    parser.add_argument("--publishes", type=int, default=12, help="publishes that are waited for, per case")
    parser.add_argument("--waits", type=int, nargs="+", default=list(WAITS), help="triggers that wait together")
    parser.add_argument("--backends", nargs="+", choices=BACKENDS, default=list(BACKENDS))
    return parser


def measure(backend: str, waits: int, publishes: int) -> Measured:
    """Let `waits` triggers wait, and publish `publishes` times for one of them."""
    with _tables(backend) as (publishing, polling), tempfile.TemporaryDirectory(prefix="bench-waiting-") as folder:
        store = BookmarkStore(publishing, "bench")
        store.init()
        jobs = [SteadyJob(Path(folder) / str(number), store, 1, f"up_{number}") for number in range(waits)]
        for job in jobs:
            job.run()
            _consume(store, job.job)
        watched = asyncio.run(_watch(backend, RecordingTable(polling), jobs, publishes))
        table = RecordingTable(publishing)  # the poller has closed its own
        asked = [_wait(job.job) for job in jobs]
        return _beside(watched, _rounds(table, [asked]), _rounds(table, [[wait] for wait in asked]))


def _rounds(table: RecordingTable, groups: Sequence[Sequence[Wait]]) -> Rounds:
    """Let groups of waits look, one group after the other, each with a memory of its own; the first round is no count.

    DynamoDB answers waits that look at one time side by side: the time of a round is work, and not a delay.
    """
    store = BookmarkStore(table, "bench")
    memories = [Memory() for _ in groups]
    times_ms = []
    for number in range(ROUNDS + 1):
        if number == 1:
            table.take()
        begun = time.perf_counter()
        for waits, memory in zip(groups, memories, strict=True):
            if any(answer.is_met for answer in evaluate(store, waits, memory)):
                raise RuntimeError("a wait was met though nothing was published")
        times_ms.append((time.perf_counter() - begun) * 1000)
    return Rounds(median(times_ms[1:]), len(table.take()) / ROUNDS)


def _beside(watched: Measured, shared: Rounds, alone: Rounds) -> Measured:
    mean_interval_s = 1.5 * POLL_INTERVAL_S  # a pause is 1 to 2 times the interval, at random
    return replace(
        watched,
        look_ms=shared.median_ms,
        alone_look_ms=alone.median_ms,
        alone_requests_per_s=alone.requests / mean_interval_s,
        ratio=alone.requests / shared.requests,
    )


async def _watch(backend: str, table: RecordingTable, jobs: Sequence[SteadyJob], publishes: int) -> Measured:
    # Imported where Airflow's home is known: it makes its files when it is imported.
    from airflow_bookmarks.triggers.poller import poller_of

    poller = poller_of(CONNECTION, lambda: BookmarkStore(table, "bench"))
    # One who asks what a trigger asks: costs nothing, and stays when a trigger was released and none is left.
    with poller.waiter(_wait(jobs[0].job)) as stays:
        waiting = {job.job: asyncio.create_task(_event(job.job)) for job in jobs}
        await stays.next()
        table.take()
        first_look, started = poller.looks, time.perf_counter()
        latencies_ms = [await _latency_ms(jobs[number % len(jobs)], waiting) for number in range(publishes)]
        seconds, looks, requests = time.perf_counter() - started, poller.looks - first_look, table.take()
        for task in waiting.values():
            task.cancel()
        await asyncio.gather(*waiting.values(), return_exceptions=True)
    await poller.ended()
    return Measured(
        backend=backend,
        waits=len(jobs),
        publishes=publishes,
        median_ms=median(latencies_ms),
        worst_ms=max(latencies_ms),
        looks=looks,
        requests=len(requests),
        requests_per_look=len(requests) / looks,
        requests_per_s=len(requests) / seconds,
        read_bytes_per_look=sum(one.read_bytes for one in requests) // looks,
        look_ms=0.0,  # what was not looked at yet: see `_beside`
        alone_look_ms=0.0,
        alone_requests_per_s=0.0,
        ratio=0.0,
    )


async def _latency_ms(job: SteadyJob, waiting: dict[str, asyncio.Task[float]]) -> float:
    """Publish a run at a random moment, and return how long after it the trigger fired."""
    await asyncio.sleep(random.uniform(0, 2 * POLL_INTERVAL_S))
    await asyncio.to_thread(job.run)
    published = time.perf_counter()
    fired = await waiting[job.job]
    await asyncio.to_thread(_consume, job.store, job.job)
    waiting[job.job] = asyncio.create_task(_event(job.job))
    return (fired - published) * 1000


async def _event(job: str) -> float:
    """Wait for what the consumer of a job has not consumed; return when the trigger fired."""
    from airflow_bookmarks.triggers.bookmark import MET, BookmarkTrigger

    trigger = BookmarkTrigger(_wait(job).as_dict(), CONNECTION)
    payloads = [event.payload async for event in trigger.run()]
    fired = time.perf_counter()
    if [payload["status"] for payload in payloads] != [MET]:
        raise RuntimeError(f"the trigger of {job!r} fired {payloads}")
    return fired


def _wait(job: str) -> Wait:
    return Wait((job,), NewsFor(_consumer(job)))


def _consumer(job: str) -> str:
    return f"{job}.consumer"


def _consume(store: BookmarkStore, job: str) -> None:
    """Write what the commit of a consumer would write: that it has consumed all that is published."""
    head = store.head(job)
    edge = Edge(_consumer(job), head.published, head.epoch, head.changes, {"raw": head.published})
    store.table.transact([Put(store.keys(job).edge(edge.consumer), edge_attributes(edge))])


@contextmanager
def _tables(backend: str) -> Iterator[tuple[Table, Table]]:
    """Open a new, empty table twice: for those who publish, and for those who wait."""
    with ExitStack() as stack:
        if backend == "sqlite":
            path = f"{stack.enter_context(tempfile.TemporaryDirectory(prefix='bench-waiting-'))}/bookmarks.db"
            tables: tuple[Table, Table] = (SqliteTable(path, create=True), SqliteTable(path, create=True))
        else:
            os.environ.setdefault("AWS_ACCESS_KEY_ID", "local")  # the local server takes any, and none is an error
            os.environ.setdefault("AWS_SECRET_ACCESS_KEY", "local")
            url = stack.enter_context(dynamodb_local())
            one, other = (DynamoTable(name="bench", region="eu-west-1", endpoint=url) for _ in range(2))
            tables = (one, other)
        yield tables
        for table in tables:
            table.close()


# ---- what is shown


_COLUMNS: tuple[tuple[str, int], ...] = (
    ("backend", 14),
    ("waits", 6),
    ("publishes", 10),
    ("median_ms", 10),
    ("worst_ms", 9),
    ("looks", 6),
    ("requests_per_look", 18),
    ("requests_per_s", 15),
    ("read_bytes_per_look", 20),
    ("look_ms", 8),
    ("alone_look_ms", 14),
    ("alone_requests_per_s", 21),
    ("ratio", 6),
)


def _line(values: Mapping[str, Any]) -> str:
    return " ".join(_cell(name, values[name]).ljust(width) for name, width in _COLUMNS).rstrip()


def _cell(name: str, value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.2f}"
    return f"{value:,}" if isinstance(value, int) else value if isinstance(value, str) else name


if __name__ == "__main__":
    main()
