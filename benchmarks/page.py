"""What the page of bookmarks costs the API server of Airflow: while its store hangs, and with ten thousand jobs.

A real `airflow api-server` of one worker shows the bookmarks of DynamoDB Local.

hanging    Airflow's own routes, in turns: alone, and while the store is stopped (SIGSTOP) and requests for bookmarks
           hang on it. Median and p95 are those of one round
list       the first page of the list with very many jobs, which are copies of one that has run: "cold" is the first
           request after the server has forgotten what it had kept, "warm" those right behind it. One that is refused
           because it takes too long (503) is asked again, and its time is that until the answer

Example:
    $ python -m benchmarks.page
    $ python -m benchmarks.page --rounds 2 --jobs 500 --list-rounds 1
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import secrets
import signal
import statistics
import sys
import time
from base64 import urlsafe_b64encode
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import httpx
import psutil

from airflow_bookmarks.plugin.bulkhead import PATIENCE_S, QUEUE, THREADS
from airflow_bookmarks.store.bookmark_store import open_store
from benchmarks.figure import Figure, beside, header, line
from benchmarks.job_copies import copy_job
from benchmarks.steady_job import SteadyJob
from demo import session
from demo.airflow_home import environment, migrate
from demo.folders import Folders
from tools.daemon import answer, daemon
from tools.servers import dynamodb_local, free_port

PROMISE_RATIO = 2.0
RESULT = Path("build/bench/page.json")
API = "/bookmarks/api/v1"
OWN_ROUTES = ("/api/v2/version", "/api/v2/dags")
# The list, how it is asked for, and how long the server keeps what it takes: the index, and the heads of all jobs.
_LISTS: Mapping[str, tuple[Mapping[str, str], float]] = {
    "by name": ({}, 5.0),
    "by last commit": ({"sort": "-last_commit_at"}, 5.0),
    "of one state": ({"state": "IDLE"}, 60.0),
}
_FORGET_S = 1.0
_FIRST, _FEW = "bench.task-00000", 50  # jobs are few while the store hangs: what waits there should be the store
_WARM = 5
_GIVE_UP_S = 300.0
_WHO = {"username": "admin", "password": "admin of the benchmark"}


@dataclass
class Results:
    """What was measured so far; each figure is printed when it is known."""

    figures: list[Figure] = field(default_factory=list)
    facts: dict[str, Any] = field(default_factory=dict)

    def add(self, figures: Sequence[Figure]) -> None:
        """Keep figures, and print them."""
        self.figures += figures
        for figure in figures:
            print(line(figure), flush=True)


@dataclass(frozen=True)
class Served:
    """A running API server with somebody logged in, and its store: where it is, and its process."""

    client: httpx.Client
    uri: str
    store: psutil.Process

    def time_ms(self, path: str) -> float:
        """Ask for a page of Airflow's own; return how long that took."""
        begun = time.perf_counter()
        self.client.get(path).raise_for_status()
        return (time.perf_counter() - begun) * 1000

    @contextmanager
    def stopped_store(self) -> Iterator[None]:
        """Let the store hang for the block: it is there, and answers nothing."""
        self.store.send_signal(signal.SIGSTOP)
        try:
            yield
        finally:
            self.store.send_signal(signal.SIGCONT)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, print a table, write `build/bench/page.json`."""
    given = _parser().parse_args(arguments)
    logging.getLogger("airflow_bookmarks").setLevel(logging.ERROR)  # the local server has no point-in-time recovery
    results = Results(facts={"promise_ratio": PROMISE_RATIO, "requests_that_hang": given.hanging})
    print(header())
    with TemporaryDirectory(prefix="bench-page-") as folder, _served(Path(folder)) as served:
        measure_hanging(results, served, given.rounds, given.requests, given.hanging)
        begun = time.perf_counter()
        _copy_jobs(served.uri, range(_FEW, given.jobs))
        results.facts["filled_in_s"] = time.perf_counter() - begun
        measure_lists(results, served, given.jobs, given.list_rounds)
    RESULT.parent.mkdir(parents=True, exist_ok=True)
    facts = {**results.facts, "results": [one.as_dict() for one in results.figures]}
    RESULT.write_text(json.dumps(facts, indent=2) + "\n")
    for verdict in _verdicts(results):
        print(verdict)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("python -m benchmarks.page", description="What the page costs the API server.")
    parser.add_argument("--rounds", type=int, default=7, help="rounds alone and with a store that hangs, in turns")
    parser.add_argument("--requests", type=int, default=40, help="requests of each route in a round, at most")
    parser.add_argument("--hanging", type=int, default=50, help="requests for bookmarks that hang in a round")
    parser.add_argument("--jobs", type=int, default=10_000, help="jobs of the list")
    parser.add_argument("--list-rounds", type=int, default=3, help="cold requests of each list")
    return parser


# ---- a store that hangs


def measure_hanging(results: Results, served: Served, rounds: int, requests: int, hanging: int) -> None:
    """Measure Airflow's own routes alone, then while requests for bookmarks hang, in turns."""
    for path in OWN_ROUTES:
        served.time_ms(path)
    alone: list[dict[str, list[float]]] = []
    beside_it: list[dict[str, list[float]]] = []
    statuses: dict[str, int] = {}
    for _ in range(rounds):
        # The connection is open, as in any server that has been up for a while, and no call of the last round is left.
        _list(served, {})
        alone.append({path: [] for path in OWN_ROUTES})
        for _ in range(requests):
            _take(alone[-1], served)
        beside_it.append(_while_it_hangs(served, requests, hanging, statuses))
    results.facts["answers_of_requests_that_hung"] = statuses
    for path in OWN_ROUTES:
        for name, of in (("median", statistics.median), ("p95", _p95)):
            hung, free = ([of(one[path]) for one in series] for series in (beside_it, alone))
            results.add(beside(f"GET {path}, {name}", "ms", ("while the store hangs", hung), ("alone", free)))


def _while_it_hangs(served: Served, requests: int, hanging: int, statuses: dict[str, int]) -> dict[str, list[float]]:
    """Measure for as long as the requests hang that are let in."""
    taken: dict[str, list[float]] = {path: [] for path in OWN_ROUTES}
    limits = httpx.Limits(max_connections=hanging, max_keepalive_connections=0)
    headers, url = served.client.headers, served.client.base_url
    with (
        httpx.Client(base_url=url, headers=headers, timeout=60, limits=limits) as people,
        ThreadPoolExecutor(hanging) as pool,
    ):
        with served.stopped_store():
            asked = [pool.submit(people.get, f"{API}/jobs", params={"search": str(n)}) for n in range(hanging)]
            # Who finds no place to wait is told at once: then all the others hang.
            _wait_for(asked, max(0, hanging - THREADS - QUEUE))
            let_in = sum(not each.done() for each in asked)
            while len(taken[OWN_ROUTES[0]]) < requests and sum(not each.done() for each in asked) > let_in / 2:
                _take(taken, served)
        for each in asked:
            name = str(each.result().status_code)
            statuses[name] = statuses.get(name, 0) + 1
    if not all(taken.values()):
        raise RuntimeError(f"of {hanging} requests none hung for long enough to measure anything beside them")
    return taken


def _wait_for(asked: Sequence[Future[httpx.Response]], done: int) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while sum(each.done() for each in asked) < done and time.monotonic() < deadline:
        time.sleep(0.01)


def _take(taken: dict[str, list[float]], served: Served) -> None:
    for path, times in taken.items():
        times.append(served.time_ms(path))


def _p95(values: Sequence[float]) -> float:
    return sorted(values)[max(0, round(0.95 * len(values)) - 1)]


# ---- very many jobs


def measure_lists(results: Results, served: Served, jobs: int, rounds: int) -> None:
    """Measure the first page of the list, cold and warm, in the orders that are asked for most."""
    refused: dict[str, int] = {}
    for name, (params, kept_s) in _LISTS.items():
        cold: list[float] = []
        warm: list[float] = []
        for _ in range(rounds):
            time.sleep(kept_s + _FORGET_S)
            took_ms, refusals = _list(served, params, jobs)
            cold.append(took_ms)
            refused[name] = refused.get(name, 0) + refusals
            warm.append(statistics.median(_list(served, params, jobs)[0] for _ in range(_WARM)))
        measure = f"first page of {jobs:,} jobs {name}"
        results.add([Figure.of(measure, "cold", "ms", cold), Figure.of(measure, "warm", "ms", warm)])
    results.facts["lists_refused_before_they_were_answered"] = refused


def _list(served: Served, params: Mapping[str, str], jobs: int | None = None) -> tuple[float, int]:
    """Ask for a list until it is answered; return how long that took, in ms, and how often it was refused before."""
    begun = time.perf_counter()
    refused = 0
    while (reply := served.client.get(f"{API}/jobs", params=params)).status_code == 503:
        refused += 1
        if time.perf_counter() - begun > _GIVE_UP_S:
            raise RuntimeError(f"the list {params} was refused for {_GIVE_UP_S:.0f} s: {reply.text}")
    reply.raise_for_status()
    if jobs is not None and reply.json()["total"] != jobs:
        raise RuntimeError(f"the list {params} has {reply.json()['total']} jobs instead of {jobs}")
    return (time.perf_counter() - begun) * 1000, refused


# ---- server and store


@contextmanager
def _served(folder: Path) -> Iterator[Served]:
    os.environ.setdefault("AWS_ACCESS_KEY_ID", "local")  # the local server takes any, and none is an error
    os.environ.setdefault("AWS_SECRET_ACCESS_KEY", "local")
    with dynamodb_local() as endpoint:
        process = _process_at(endpoint)
        uri = f"dynamodb://bench?region=eu-west-1&namespace=bench&endpoint={endpoint}"
        store = open_store(uri)
        store.init()
        SteadyJob(folder / "shop", store, job=_FIRST).run()
        store.table.close()
        _copy_jobs(uri, range(1, _FEW))
        with _api_server(folder / "airflow", uri) as client:
            yield Served(client, uri, process)


def _process_at(endpoint: str) -> psutil.Process:
    port = endpoint.rpartition(":")[2]
    children = psutil.Process().children()
    return next(child for child in children if child.cmdline()[-2:] == ["-port", port])


def _copy_jobs(uri: str, numbers: range) -> None:
    store = open_store(uri)
    copy_job(store, _FIRST, [f"bench{number % 40:02}.task-{number:05}" for number in numbers])
    store.table.close()


@contextmanager
def _api_server(root: Path, store: str) -> Iterator[httpx.Client]:
    folders, port = Folders.make(root), free_port()
    settings = {**environment(folders, store, ""), **_settings(folders)}
    folders.passwords.write_text(json.dumps({_WHO["username"]: _WHO["password"]}))
    (folders.airflow / "airflow.cfg").touch()
    migrate(folders, settings)
    airflow = [sys.executable, "-m", "airflow"]
    session.run([*airflow, "dags", "reserialize"], settings)
    command = [*airflow, "api-server", "--host", "127.0.0.1", "--port", str(port), "--workers", "1"]
    url = f"http://127.0.0.1:{port}"
    with daemon("api-server", command, settings, folders.logs) as server, httpx.Client(base_url=url) as client:
        server.wait_until(lambda: answer(f"{url}/api/v2/version") is not None)
        client.timeout = httpx.Timeout(60)
        token = client.post("/auth/token", json=_WHO).raise_for_status().json()["access_token"]
        client.headers["Authorization"] = f"Bearer {token}"
        yield client


def _settings(folders: Folders) -> dict[str, str]:
    secret = secrets.token_hex(32)
    return {
        "AIRFLOW__API__SECRET_KEY": secret,
        "AIRFLOW__API_AUTH__JWT_SECRET": secret,
        "AIRFLOW__CORE__FERNET_KEY": urlsafe_b64encode(secrets.token_bytes(32)).decode(),
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE": str(folders.passwords),
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_USERS": f"{_WHO['username']}:admin",
        "AIRFLOW__LOGGING__LOGGING_LEVEL": "ERROR",
    }


# ---- what is shown


def _verdicts(results: Results) -> Iterator[str]:
    ratios = {one.measure: one.median for one in results.figures if one.case == "ratio"}
    kept = all(ratio < PROMISE_RATIO for ratio in ratios.values())
    told = ", ".join(f"{ratio:.2f} ({measure})" for measure, ratio in ratios.items())
    yield (
        f"promise {'kept' if kept else 'BROKEN'}: while the store hangs, Airflow's own routes take so many times as "
        f"long: {told}; less than {PROMISE_RATIO:g} is allowed"
    )
    yield f"requests that hung were answered: {results.facts['answers_of_requests_that_hung']}"
    yield f"lists refused before they were answered: {results.facts['lists_refused_before_they_were_answered']}"
    yield f"written to {RESULT}"


if __name__ == "__main__":
    main()
