"""What the state costs a run: begin, plan, commit and publish against the bare requests that they make.

Each run of the package is followed by its own requests once more, sent by the same `Table` to the same server, to a
second namespace that has gone through the same life: the same kinds, conditions and item sizes, and nothing of the
package above the table. The difference is what the package adds; it includes listing, staging and moving one tiny file
on the local disk, which is work of the run and not of the store.

Cases: 0, 1 and 10 contexts; a job with 10,000 runs of history; a ledger of 1,000,000 files. The history is
synthesised: copies of the items of a real run, under other numbers. The ledger is real: its first run has read
1,000,000 files that are listed and not there. Its tiers are what may grow: each plan fetches and checks them, so that
case stands beside the promise and not under it.

Example:
    $ python -m benchmarks.store
    $ python -m benchmarks.store --rounds 10 --files 100000 --backends sqlite
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from statistics import median
from typing import Any

from airflow_bookmarks.core.run import RunKey
from airflow_bookmarks.store.backends.dynamodb import DynamoTable
from airflow_bookmarks.store.backends.sqlite import SqliteTable
from airflow_bookmarks.store.bookmark_store import BookmarkStore
from airflow_bookmarks.store.table import MAX_OPERATIONS, Attributes, Key, Put, Table, Update
from benchmarks.request import RecordingTable, Request, counted
from benchmarks.steady_job import ListedFiles, SteadyJob
from tools.servers import dynamodb_local

PROMISE_MS = 50
RESULT = Path("build/bench/store.json")
NAMESPACE, SHADOW = "bench", "shade"  # of one length, so that requests to both have one size
WARM_UP = 20
BACKENDS = ("sqlite", "dynamodb-local")


@dataclass(frozen=True, slots=True)
class Case:
    """One job to measure: its contexts, the runs that lie behind it, the files in its ledger."""

    name: str
    contexts: int
    history_runs: int = 0
    ledger_files: int = 0


@dataclass(frozen=True, slots=True)
class Measured:
    """What one case came to. Times are medians in ms; `over_ms` is the median of the differences, pair by pair."""

    backend: str
    case: str
    contexts: int
    history_runs: int
    ledger_files: int
    rounds: int
    run_ms: float
    bare_ms: float
    over_ms: float
    ratio: float
    requests: Mapping[str, int]
    written_bytes: int
    read_bytes: int


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, print a table, write `build/bench/store.json`."""
    given = _parser().parse_args(arguments)
    cases = (
        Case("0 contexts", 0),
        Case("1 context", 1),
        Case("10 contexts", 10),
        Case(f"1 context, {given.runs:,} runs of history", 1, history_runs=given.runs),
        Case(f"1 context, {given.files:,} files in the ledger", 1, ledger_files=given.files),
    )
    results: list[Measured] = []
    logging.getLogger("airflow_bookmarks").setLevel(logging.ERROR)  # the local server has no point-in-time recovery
    print(_line(Measured.__dataclass_fields__))
    for backend in given.backends:
        for case in cases:
            with _table(backend) as table, tempfile.TemporaryDirectory(prefix="bench-store-") as folder:
                results.append(measure(backend, case, table, Path(folder), given.rounds))
            print(_line(asdict(results[-1])), flush=True)
    _write(results, given)
    for verdict in _verdicts(results):
        print(verdict)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("python -m benchmarks.store", description="What the state costs a run.")
    parser.add_argument("--rounds", type=int, default=40, help="pairs of a run and its bare requests, per case")
    parser.add_argument("--runs", type=int, default=10_000, help="runs of history")
    parser.add_argument("--files", type=int, default=1_000_000, help="files in the ledger")
    parser.add_argument("--backends", nargs="+", choices=BACKENDS, default=list(BACKENDS))
    return parser


@contextmanager
def _table(backend: str) -> Iterator[Table]:
    """Open a new, empty table; each case has a server of its own, so that none runs on what another left."""
    with ExitStack() as stack:
        if backend == "sqlite":
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="bench-store-"))
            table: Table = SqliteTable(f"{folder}/bookmarks.db", create=True)
        else:
            os.environ.setdefault("AWS_ACCESS_KEY_ID", "local")  # the local server takes any, and none is an error
            os.environ.setdefault("AWS_SECRET_ACCESS_KEY", "local")
            table = DynamoTable(name="bench", region="eu-west-1", endpoint=stack.enter_context(dynamodb_local()))
        yield table
        table.close()


# ---- one case


def measure(backend: str, case: Case, table: Table, root: Path, rounds: int) -> Measured:
    """Measure one case on an empty table; `root` is an empty folder for input and output."""
    recording = RecordingTable(table)
    store = BookmarkStore(recording, NAMESPACE)
    store.init()
    recording.take()
    job = SteadyJob(root, store, case.contexts)
    follow = _Follower(recording, table)
    if case.ledger_files:
        job.pass_over(job.arrive(is_empty=True), ListedFiles(case.ledger_files))
        follow()
    for _ in range(WARM_UP):
        job.run()
        follow()
    if case.history_runs:
        for namespace in (NAMESPACE, SHADOW):
            _write_history(table, BookmarkStore(table, namespace), job.job, case.history_runs)
    pairs = [(_timed_run(job), _timed(follow)) for _ in range(rounds)]
    over = [run - bare for run, bare in pairs]
    return Measured(
        backend=backend,
        case=case.name,
        contexts=case.contexts,
        history_runs=case.history_runs,
        ledger_files=case.ledger_files,
        rounds=rounds,
        run_ms=median(run for run, _ in pairs),
        bare_ms=median(bare for _, bare in pairs),
        over_ms=median(over),
        ratio=median(run / bare for run, bare in pairs),
        requests=_median_counts(follow.sent[-rounds:]),
        written_bytes=round(median(sum(one.written_bytes for one in sent) for sent in follow.sent[-rounds:])),
        read_bytes=round(median(sum(one.read_bytes for one in sent) for sent in follow.sent[-rounds:])),
    )


class _Follower:
    """Sends what was recorded since the last call once more, to the shadow namespace."""

    def __init__(self, recording: RecordingTable, table: Table) -> None:
        self._recording, self._table = recording, table
        self._next: list[Request] = []
        self.sent: list[list[Request]] = []

    def __call__(self) -> None:
        self.prepare()()

    def prepare(self) -> Callable[[], None]:
        """Return the sending alone, so that what leads up to it is not timed."""
        recorded = self._recording.take()
        self.sent.append(recorded)
        shadowed = [one.moved_to(NAMESPACE, SHADOW) for one in recorded]

        def send() -> None:
            for request in shadowed:
                request.send(self._table)

        return send


def _timed_run(job: SteadyJob) -> float:
    number = job.arrive()
    job.store = BookmarkStore(job.store.table, job.store.namespace)  # that of a new process: it remembers no ledger
    started = time.perf_counter()
    job.pass_over(number)
    return (time.perf_counter() - started) * 1000


def _timed(follow: _Follower) -> float:
    send = follow.prepare()
    started = time.perf_counter()
    send()
    return (time.perf_counter() - started) * 1000


def _median_counts(sent: Sequence[Sequence[Request]]) -> dict[str, int]:
    counts = [counted(one) for one in sent]
    return {kind: round(median(one[kind] for one in counts)) for kind in counts[0]}


# ---- history


def _write_history(table: Table, store: BookmarkStore, job: str, runs: int) -> None:
    """Let a job have `runs` runs behind it: copies of its last run and execution, with numbers and names of their own.

    The copies stand before the head's next number, the head is moved behind them, and its position is the copy's of the
    last run.
    """
    keys, head = store.keys(job), store.head(job)
    run_key = keys.run(RunKey(head.run_number, head.fence))
    execution_key = keys.execution(f"bench/{head.run_number:06d}")
    found = table.get([run_key, execution_key])
    puts: list[Put] = []
    for number in range(head.run_number + 1, runs + 1):
        run = found[run_key] | {"version": number, "base_version": number - 1, "fences": [number]}
        puts.append(Put(keys.run(RunKey(number, number)), run))
        execution = found[execution_key] | {"first_run": number, "last_run": number}
        puts.append(Put(keys.execution(f"past/{number:06d}"), execution))
    for start in range(0, len(puts), MAX_OPERATIONS):
        table.transact(puts[start : start + MAX_OPERATIONS])
    last = RunKey(runs, runs)
    contexts = {ctx: replace(state, run=last) for ctx, state in head.contexts.items()}
    _move_head(table, keys.head, last, {ctx: str(state.run) for ctx, state in contexts.items()})


def _move_head(table: Table, key: Key, last: RunKey, positions: Mapping[str, str]) -> None:
    found: Any = table.get([key])[key]["contexts"]
    contexts = {ctx: value | {"run": positions[ctx]} for ctx, value in found.items()}
    number = last.number
    changes: Attributes = {"version": number, "fence": last.fence, "run_number": number, "published": number}
    table.transact([Update(key, set={**changes, "data_run_number": number, "contexts": contexts})])


# ---- what is shown


_COLUMNS: tuple[tuple[str, int], ...] = (
    ("backend", 14),
    ("case", 38),
    ("run_ms", 9),
    ("bare_ms", 9),
    ("over_ms", 9),
    ("ratio", 7),
    ("requests", 36),
    ("written_bytes", 14),
    ("read_bytes", 11),
)


def _line(values: Mapping[str, Any]) -> str:
    return " ".join(_cell(name, values[name]).ljust(width) for name, width in _COLUMNS).rstrip()


def _cell(name: str, value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.2f}"
    if isinstance(value, Mapping):
        return " ".join(f"{count} {kind}" for kind, count in value.items() if count)
    return f"{value:,}" if isinstance(value, int) else value if isinstance(value, str) else name


def _write(results: Sequence[Measured], given: argparse.Namespace) -> None:
    RESULT.parent.mkdir(parents=True, exist_ok=True)
    facts = {
        "promise_ms": PROMISE_MS,
        "rounds": given.rounds,
        "history": "copies of the items of a real run",
        "ledger": "filled by one run that read files which are listed and not there",
        "bare": "the same requests of a run, sent again by the same table class to a second namespace",
        "results": [asdict(one) for one in results],
    }
    RESULT.write_text(json.dumps(facts, indent=2) + "\n")


def _verdicts(results: Sequence[Measured]) -> Iterator[str]:
    steady = [one for one in results if not one.ledger_files]
    worst = max(steady, key=lambda one: one.over_ms)
    kept = "kept" if worst.over_ms < PROMISE_MS else "BROKEN"
    yield (
        f"promise {kept}: at most {worst.over_ms:.1f} ms over the bare requests ({worst.backend}, {worst.case}); "
        f"{PROMISE_MS} ms are allowed"
    )
    for one in results:
        young = next(o for o in results if o.backend == one.backend and o.contexts == one.contexts)
        if one.history_runs:
            yield (
                f"{one.backend}, {one.history_runs:,} runs of history against {WARM_UP}: requests "
                f"{sum(one.requests.values())} ({sum(young.requests.values())}), bytes written {one.written_bytes:,} "
                f"({young.written_bytes:,}), read {one.read_bytes:,} ({young.read_bytes:,}); bare requests take "
                f"{one.bare_ms / young.bare_ms:.1f} times as long"
            )
        if one.ledger_files:
            yield (
                f"{one.backend}, {one.ledger_files:,} files in the ledger: {one.over_ms:.0f} ms over the bare requests "
                f"to check and search {one.read_bytes:,} bytes of it; {one.written_bytes:,} bytes written"
            )
    yield f"written to {RESULT}"


if __name__ == "__main__":
    main()
