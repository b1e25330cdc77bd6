"""Sides that find what is new without Spark: a bare look at the folders, and runs of ours."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from airflow_bookmarks.core.job import RunIdentity
from airflow_bookmarks.files.local import LocalFileSystem
from airflow_bookmarks.lifecycle.protocol.lease import RunEnvironment
from airflow_bookmarks.lifecycle.run.enabled import ActiveRun
from airflow_bookmarks.sources.files.planner import FileSource
from airflow_bookmarks.store.backends.sqlite import SqliteTable
from airflow_bookmarks.store.bookmark_store import BookmarkStore
from benchmarks.request import RecordingTable
from benchmarks.side import Play, Told, peak_mb

JOB, CONTEXT, NAMESPACE = "bench", "raw", "bench"


@contextmanager
def bare(root: str) -> Iterator[Play]:
    """Look at each file once, and keep nothing but how many there are: what any listing costs at least."""

    def play(_: Told) -> Told:
        begun, used = time.perf_counter(), time.process_time()
        files = _count(root)
        return {"seconds": time.perf_counter() - begun, "cpu_s": time.process_time() - used, "files": files}

    yield play


def _count(folder: str) -> int:
    files = 0
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir():
                files += _count(entry.path)
            else:
                entry.stat()
                files += 1
    return files


@contextmanager
def listing(root: str) -> Iterator[Play]:
    """List as a run does, with all that a plan needs to know of a file."""

    def play(_: Told) -> Told:
        begun = time.perf_counter()
        listed = LocalFileSystem().list(root)
        return {"seconds": time.perf_counter() - begun, "files": len(listed.files)}

    yield play


@contextmanager
def first(root: str, store: str, commits: bool) -> Iterator[Play]:
    """Plan a first load in a new store, which the last round leaves behind; `commits` is whether it is finished."""

    def play(_: Told) -> Told:
        for path in Path(store).parent.glob(f"{Path(store).name}*"):
            path.unlink()
        Path(store).parent.mkdir(parents=True, exist_ok=True)
        table = SqliteTable(store, create=True)
        bookmarks = BookmarkStore(table, NAMESPACE)
        bookmarks.init()
        came = _run(bookmarks, root, "first", commits=commits)
        table.close()
        return came

    yield play


@contextmanager
def known(root: str, store: str, copy: str) -> Iterator[Play]:
    """Make whole runs with a copy of a store that knows what was there."""
    shutil.copyfile(store, copy)
    table = RecordingTable(SqliteTable(copy))
    bookmarks, runs = BookmarkStore(table, NAMESPACE), 0

    def play(_: Told) -> Told:
        nonlocal runs
        runs += 1
        table.take()
        came = _run(bookmarks, root, f"next/{runs}", commits=True)
        return {**came, "blobs_written": sum(1 for one in table.take() if one.is_blob and one.kind == "transact")}

    yield play
    table.close()


def _run(bookmarks: BookmarkStore, root: str, run_id: str, *, commits: bool) -> Told:
    begun = time.perf_counter()
    run = ActiveRun.begin(bookmarks, JOB, RunIdentity(run_id), RunEnvironment())
    planning, used = time.perf_counter(), time.process_time()
    plan = run.plan(CONTEXT, FileSource(LocalFileSystem(), [root]))
    planned, plan_cpu_s = time.perf_counter(), time.process_time() - used
    plan_peak_mb = peak_mb()
    if commits:
        run.commit()
    else:
        run.abort("only planning is measured")
    return {
        "plan_s": planned - planning,
        "plan_cpu_s": plan_cpu_s,
        "run_s": time.perf_counter() - begun,
        "files": len(plan),
        "listed": plan.listed,
        "known": plan.known,
        "plan_peak_mb": plan_peak_mb,
    }
