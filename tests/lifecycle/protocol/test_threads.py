"""Promise: several threads of one script read and write in one run, and nothing of what the run keeps is lost."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from airflow_bookmarks.core.errors import MisuseError
from airflow_bookmarks.core.files.file_plan import FilePlan
from airflow_bookmarks.lifecycle.maintenance.doctor import examine
from airflow_bookmarks.lifecycle.run.session import RunSession
from airflow_bookmarks.sinks.staging import Mode, StagingRequest, collect_staged
from airflow_bookmarks.sources.files.planner import FileSource
from tests.lifecycle.shop import FILES, Shop

THREADS = 8


def at_once(*works: Callable[[], object]) -> list[object]:
    """Do all of it, each in a thread of its own that begins when all are there; return the results, or errors."""
    barrier = threading.Barrier(len(works))

    def begin(work: Callable[[], object]) -> object:
        barrier.wait()
        try:
            return work()
        except MisuseError as error:
            return error

    with ThreadPoolExecutor(len(works)) as pool:
        return [made.result() for made in [pool.submit(begin, work) for work in works]]


def write(shop: Shop, run: RunSession, name: str) -> None:
    target = str(shop.root / name)
    folder = run.place(name, StagingRequest("files", target))
    Path(folder).mkdir(parents=True)
    Path(folder, "part.txt").write_text(f"{name}\n")
    run.staged(name, collect_staged(FILES, folder, target, run.file_token, Mode.APPEND, rows=1, schema=None))


def read(shop: Shop, run: RunSession, ctx: str) -> FilePlan:
    return run.plan(ctx, FileSource(FILES, [str(shop.root / "raw")]))


def test_outputs_of_eight_threads_are_published_and_nothing_stays_staged(shop: Shop) -> None:
    names = [f"out{number}" for number in range(THREADS)]
    run = shop.begin()
    at_once(*(lambda name=name: write(shop, run, name) for name in names))
    assert len(shop.store.head("copy").staging) == THREADS
    run.commit()
    assert {name: shop.target_lines(name)[name] for name in names} == dict.fromkeys(names, 1)
    assert not any(shop.staged_files(name) for name in names)
    assert examine(shop.store) == []


def test_what_a_failed_run_of_eight_threads_staged_the_next_run_sweeps(shop: Shop) -> None:
    names = [f"out{number}" for number in range(THREADS)]
    run = shop.begin()
    at_once(*(lambda name=name: write(shop, run, name) for name in names))
    run.abort("an error of the script")
    shop.begin().abort("it only had to sweep")
    assert not any(shop.staged_files(name) for name in names)


@pytest.mark.parametrize("kind", ["enable", "pause"])
def test_one_output_or_context_is_taken_by_one_thread_alone(shop: Shop, kind: str) -> None:
    shop.put("a.txt", "a")
    run = shop.begin() if kind == "enable" else shop.side()
    read_by = at_once(*[lambda: read(shop, run, "raw")] * THREADS)
    written_by = at_once(*[lambda: run.place("out", StagingRequest("files", str(shop.root / "out")))] * THREADS)
    for results in (read_by, written_by):
        assert sum(isinstance(result, MisuseError) for result in results) == THREADS - 1
    run.abort("enough")


def test_contexts_that_eight_threads_plan_all_move(shop: Shop) -> None:
    shop.put("a.txt", *["a line"] * 10)
    names = [f"ctx{number}" for number in range(THREADS)]
    run = shop.begin()
    at_once(*(lambda name=name: read(shop, run, name) for name in names))
    run.commit()
    assert sorted(shop.store.head("copy").contexts) == names
    run = shop.begin()
    assert [len(read(shop, run, name)) for name in names] == [0] * THREADS
    run.abort("enough")


def test_values_of_state_that_eight_threads_set_are_all_kept(shop: Shop) -> None:
    run = shop.begin()
    at_once(*(lambda number=number: run.state(f"s{number}").set(number) for number in range(THREADS)))
    run.commit()
    run = shop.begin()
    assert [run.state(f"s{number}").get() for number in range(THREADS)] == list(range(THREADS))
    run.abort("enough")
