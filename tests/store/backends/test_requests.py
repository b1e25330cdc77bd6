"""What a run asks of the state table: counted in requests and bytes, never in time."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from airflow_bookmarks.core.head import Head, Lease
from airflow_bookmarks.core.health.cadence import COMMITS_KEPT
from airflow_bookmarks.core.ledger.file_ledger import ROOT_BYTES
from airflow_bookmarks.core.run import ContextState, RunKey
from airflow_bookmarks.core.text.instant import utc_now
from airflow_bookmarks.store.backends.limits import check_item
from airflow_bookmarks.store.backends.sqlite import SqliteTable
from airflow_bookmarks.store.bookmark_store import BookmarkStore
from airflow_bookmarks.store.codec.item import head_attributes
from airflow_bookmarks.store.table import Key
from benchmarks.request import RecordingTable, Request, counted
from benchmarks.steady_job import SteadyJob
from benchmarks.store import Case, measure
from tests.thorough import mostly_thorough

HISTORY = 300
TIMES = COMMITS_KEPT * 30  # of the last commits: their list on the head fills up, and grows no further
DIGITS = 64  # run numbers stand in a few texts of a run: in folders and in names of positions

MakeJob = Callable[[int], SteadyJob]


@pytest.fixture
def table() -> RecordingTable:
    return RecordingTable(SqliteTable(":memory:"))


@pytest.fixture
def job_with(table: RecordingTable, tmp_path: Path) -> MakeJob:
    store = BookmarkStore(table, "test")
    store.init()
    return lambda contexts: SteadyJob(tmp_path, store, contexts)


def requests_of(table: RecordingTable, job: SteadyJob, *, is_empty: bool = False) -> list[Request]:
    """Make one run, and return what it asked."""
    number = job.arrive(is_empty=is_empty)
    table.take()
    job.pass_over(number)
    return table.take()


def steady(table: RecordingTable, job: SteadyJob, *, is_empty: bool = False) -> list[Request]:
    """Return what the third run asks: the first finds nothing to read back."""
    for _ in range(2):
        job.run()
    return requests_of(table, job, is_empty=is_empty)


def written(requests: list[Request]) -> int:
    return sum(one.written_bytes for one in requests)


def read(requests: list[Request]) -> int:
    return sum(one.read_bytes for one in requests)


# ---- how many requests


@pytest.mark.parametrize(("contexts", "gets"), [(0, 1), (1, 2), (10, 2)])
def test_a_run_costs_up_to_three_reads_three_writes_and_one_more_per_read_and_write(
    table: RecordingTable, job_with: MakeJob, contexts: int, gets: int
) -> None:
    requests = steady(table, job_with(contexts))
    # get: head and execution, positions of all contexts at once; query: open runs; transact: take, commit, mark, output
    assert counted(requests) == {"get": gets, "query": 1, "transact": 4 + contexts, "blob": 0}


@pytest.mark.parametrize("contexts", [1, 10])
def test_an_empty_run_asks_no_more_than_one_with_data_and_writes_no_ledger(
    table: RecordingTable, job_with: MakeJob, contexts: int
) -> None:
    job = job_with(contexts)
    full = steady(table, job)
    empty = requests_of(table, job, is_empty=True)
    assert counted(empty) == counted(full)
    named = {name for one in empty for operation in one.operations for name in getattr(operation, "set", {})}
    assert not [name for name in named if name.startswith("position:")]


def test_nothing_of_a_table_but_the_own_job_is_read(table: RecordingTable, job_with: MakeJob) -> None:
    job = job_with(2)
    requests = steady(table, job)
    asked = {key.pk for one in requests for key in one.keys} | {one.range[0] for one in requests if one.range}
    assert asked == {"SCHEMA", f"test#JOB#{job.job}"}


# ---- nothing grows with history


@pytest.mark.parametrize("contexts", mostly_thorough([1, 10]))
def test_a_run_after_many_asks_as_much_as_the_third(table: RecordingTable, job_with: MakeJob, contexts: int) -> None:
    job = job_with(contexts)
    early = steady(table, job, is_empty=True)
    for _ in range(HISTORY):
        job.run(is_empty=True)
    late = requests_of(table, job, is_empty=True)
    assert counted(late) == counted(early)
    assert written(late) <= written(early) + TIMES + DIGITS * (contexts + 1)
    assert read(late) <= read(early) + TIMES + DIGITS * (contexts + 1)


def test_history_with_data_adds_the_tiers_of_the_ledger_and_nothing_else(
    table: RecordingTable, job_with: MakeJob
) -> None:
    job = job_with(1)
    early = steady(table, job)
    blobs = 0
    for _ in range(HISTORY):
        latest = requests_of(table, job)
        blobs += sum(one.written_bytes for one in latest if one.is_blob)
        # The root of the ledger lies in the run item: text in base64, below its limit whatever has been read.
        rest = [one for one in latest if not one.is_blob]
        assert counted(rest) == counted(early)
        assert written(rest) <= written(early) + ROOT_BYTES + TIMES + DIGITS
        assert read(rest) <= read(early) + ROOT_BYTES + TIMES + DIGITS
    assert blobs < 200 * HISTORY  # a file is written once for each tier that it reaches


def test_runs_that_failed_or_were_given_up_are_not_read_again(table: RecordingTable, job_with: MakeJob) -> None:
    job = job_with(1)
    early = steady(table, job)
    for _ in range(20):
        number = job.arrive()
        with pytest.raises(InterruptedError):
            job.pass_over(number, before_commit=_interrupt)
    job.run()
    late = requests_of(table, job)
    assert counted(late) == counted(early)
    assert max(one.read_items for one in late) <= 2


def _interrupt() -> None:
    raise InterruptedError("the driver was stopped")


# ---- sizes


def test_head_with_ten_contexts_of_long_paths_stays_below_4_kb() -> None:
    fingerprint = f"files:{'/lake/' + 'raw/' * 40}"[:160] + "...#0123456789abcdef"
    state = ContextState("files", fingerprint, RunKey(10**9, 10**9), "2026-11-21T06:00:00.000Z")
    now = utc_now()
    head = Head(
        version=10**9,
        epoch=100,
        fence=10**9,
        run_number=10**9,
        published=10**9,
        publishing=RunKey(10**9, 10**9),
        lease=Lease("flights/scheduled__2026-11-21T06:00:00+00:00/clean", 3, now, now, "0" * 32),
        contexts={f"a_context_of_a_usual_name_{i}": state for i in range(10)},
        staging=("s3a://lake/clean/flights/_bookmarks/prod/flights.clean",),
    )
    assert check_item(Key("prod#JOB#flights.clean", "HEAD"), head_attributes(head)) < 4096


def test_head_after_many_runs_has_the_size_that_it_had_after_three(table: RecordingTable, job_with: MakeJob) -> None:
    job = job_with(10)
    steady(table, job)
    early = head_bytes(table, job)
    for _ in range(20):
        job.run()
    assert head_bytes(table, job) <= early + DIGITS * 10 < 4096


def head_bytes(table: RecordingTable, job: SteadyJob) -> int:
    key = job.store.keys(job.job).head
    return check_item(key, table.inner.get([key])[key])


# ---- the benchmark of it


def test_benchmark_finds_the_same_requests_with_and_without_history(tmp_path: Path) -> None:
    cases = (Case("young", 1), Case("old", 1, history_runs=200), Case("large", 1, ledger_files=1000))
    young, old, large = (measure("sqlite", c, SqliteTable(":memory:"), tmp_path / c.name, 3) for c in cases)
    assert old.requests == young.requests
    assert old.written_bytes <= young.written_bytes + 3 * DIGITS
    assert large.requests == {**young.requests, "blob": 1}  # the ledger's one segment that is too large for its root
