"""The first page of a list of ten thousand jobs, by each sort and filter: wall and processor time, cold and warm.

What the API server does for it, in one process over DynamoDB Local, without the way through HTTP. The health of all
jobs is recorded before.

cold   nothing is kept: the first request of a server that has just begun. What it reads again behind the request takes
       processor time beside it
warm   what was read is kept, and is read anew behind the request every few seconds

Example:
    $ python -m benchmarks.page_lists
    $ python -m benchmarks.page_lists --jobs 2000 --rounds 1 --only "by job" "by health"
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from benchmarks.figure import Figure, header, line
from benchmarks.job_copies import copy_job
from benchmarks.steady_job import SteadyJob
from tools.servers import dynamodb_local

if TYPE_CHECKING:
    from airflow_bookmarks.plugin.auth import UserScope
    from airflow_bookmarks.plugin.presenters.all_jobs import AllJobs

PROMISE_S, PROMISE_JOBS = 2.0, 10_000
RESULT = Path("build/bench/page_lists.json")
_SORTS = ("job", "dag_id", "last_commit_at", "run_number", "epoch", "state", "health")
_LISTS: dict[str, dict[str, Any]] = {
    **{f"by {sort}": {"sort": sort} for sort in _SORTS},
    "worst first, with counts": {"sort": "health", "counts": True},
    "of one state": {"state": "IDLE"},
    "of one health": {"health": "OK"},
    "searched": {"search": "task-0000", "counts": True},
}
_FIRST = "bench.task-00000"


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, print a table, write `build/bench/page_lists.json`."""
    given = _parser().parse_args(arguments)
    logging.getLogger("airflow_bookmarks").setLevel(logging.ERROR)  # the local server has no point-in-time recovery
    logging.getLogger("botocore").setLevel(logging.WARNING)  # it tells of each client where its credentials are from
    os.environ.setdefault("AWS_ACCESS_KEY_ID", "local")  # the local server takes any, and none is an error
    os.environ.setdefault("AWS_SECRET_ACCESS_KEY", "local")
    figures: list[Figure] = []
    print(header())
    with TemporaryDirectory(prefix="bench-lists-") as folder, _filled(Path(folder), given.jobs) as uri:
        _record(uri)
        for name in given.only:
            wanted = _LISTS[name]
            figures += _measured(uri, name, wanted, given.rounds)
            for figure in figures[-4:]:
                print(line(figure), flush=True)
    RESULT.parent.mkdir(parents=True, exist_ok=True)
    facts = {"promise_s": PROMISE_S, "promise_jobs": PROMISE_JOBS, "jobs": given.jobs}
    RESULT.write_text(json.dumps({**facts, "results": [one.as_dict() for one in figures]}, indent=2) + "\n")
    print(_verdict(figures, given.jobs))
    print(f"written to {RESULT}")


def _verdict(figures: Sequence[Figure], jobs: int) -> str:
    """Say which cold page was the slowest, and whether that keeps the promise, which is of so many jobs alone."""
    cold = [figure for figure in figures if figure.case == "cold" and figure.unit == "s"]
    worst = max(cold, key=lambda figure: figure.most)
    told = f"the slowest of {len(cold)} cold pages, {worst.measure}, took {worst.most:.2f} s"
    if jobs != PROMISE_JOBS:
        return f"{told}; nothing is promised of {jobs:,} jobs, {PROMISE_S:g} s of {PROMISE_JOBS:,}"
    kept = "kept" if worst.most <= PROMISE_S else "BROKEN"
    return f"promise {kept}: {told}; {PROMISE_S:g} s are allowed"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("python -m benchmarks.page_lists", description="First pages of very many jobs.")
    parser.add_argument("--jobs", type=int, default=PROMISE_JOBS, help="jobs of the list")
    parser.add_argument("--rounds", type=int, default=3, help="requests of each list, cold and warm")
    parser.add_argument("--only", nargs="+", choices=_LISTS, default=list(_LISTS), help="these lists alone")
    return parser


@contextmanager
def _filled(folder: Path, jobs: int) -> Iterator[str]:
    from airflow_bookmarks.store.bookmark_store import open_store

    with dynamodb_local() as endpoint:
        uri = f"dynamodb://bench?region=eu-west-1&namespace=bench&endpoint={endpoint}"
        store = open_store(uri)
        store.init()
        SteadyJob(folder / "shop", store, job=_FIRST).run()
        copy_job(store, _FIRST, [f"bench{number % 40:02}.task-{number:05}" for number in range(1, jobs)])
        store.close()
        yield uri


def _record(uri: str) -> None:
    from airflow_bookmarks.plugin.presenters.all_jobs import AllJobs
    from airflow_bookmarks.store.bookmark_store import open_store

    store, all_jobs = open_store(uri), AllJobs()
    all_jobs.look(store, with_health=True)
    all_jobs.settle()  # no page waits for the heads of so many
    all_jobs.close()
    store.close()


def _measured(uri: str, name: str, wanted: dict[str, Any], rounds: int) -> list[Figure]:
    from airflow_bookmarks.plugin.presenters.all_jobs import AllJobs

    taken: dict[str, list[tuple[float, float]]] = {"cold": [], "warm": []}
    for _ in range(rounds):
        all_jobs = AllJobs()
        taken["cold"].append(_page(uri, all_jobs, wanted))
        all_jobs.settle()
        taken["warm"].append(_page(uri, all_jobs, wanted))
        all_jobs.settle()
        all_jobs.close()
    return [
        Figure.of(f"first page {name}", case, unit, [each[at] for each in values])
        for case, values in taken.items()
        for at, unit in enumerate(("s", "s CPU"))
    ]


def _page(uri: str, all_jobs: AllJobs, wanted: dict[str, Any]) -> tuple[float, float]:
    """Ask for a page with a store that was opened before; return seconds, and seconds of processor time."""
    from airflow_bookmarks.plugin.presenters.job_list import JobQuery, job_list
    from airflow_bookmarks.store.bookmark_store import open_store

    store = open_store(uri)
    store.check_layout()  # the connection is there: a server opens it once
    wall, processor = time.perf_counter(), time.process_time()
    told = job_list(store, _everything(), JobQuery(**wanted), all_jobs)
    taken = time.perf_counter() - wall, time.process_time() - processor
    if not told.jobs:
        raise RuntimeError(f"the list {wanted} is empty")
    return taken


def _everything() -> UserScope:
    from airflow_bookmarks.plugin.auth import UserScope

    return UserScope(frozenset(), frozenset(), may_read_assets=True, may_read_unknown=True, may_see_the_store=True)


if __name__ == "__main__":
    main()
