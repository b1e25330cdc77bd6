"""A store with a past: jobs in every state that the page knows, made by real runs over the last days.

Files are sparse: they have the size of real ones, and take no room. Each run says that a row of it has `_ROW_BYTES`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

from airflow_bookmarks.core.job import RunIdentity, airflow_run_id
from airflow_bookmarks.core.option import Choice
from airflow_bookmarks.core.text.identity import Identity
from airflow_bookmarks.core.text.instant import to_text, utc_now
from airflow_bookmarks.files.local import LocalFileSystem
from airflow_bookmarks.lifecycle.changes.approval import protect, request
from airflow_bookmarks.lifecycle.changes.change import Change, reset, rewind
from airflow_bookmarks.lifecycle.protocol.failpoint import Failpoint, FaultHook, no_fault
from airflow_bookmarks.lifecycle.protocol.lease import RunEnvironment
from airflow_bookmarks.lifecycle.run.detached import DetachedRun
from airflow_bookmarks.lifecycle.run.enabled import ActiveRun
from airflow_bookmarks.lifecycle.run.replay import ReplayRun
from airflow_bookmarks.lifecycle.run.session import RunSession
from airflow_bookmarks.sinks.staging import Mode, StagingRequest, collect_staged
from airflow_bookmarks.sources.files.planner import FileSource
from airflow_bookmarks.sources.source import Source
from airflow_bookmarks.sources.upstream.source import UpstreamSource
from airflow_bookmarks.store.bookmark_store import BookmarkStore
from airflow_bookmarks.store.opener import open_table
from airflow_bookmarks.store.table import Key, Put, Update

RAW, CLEAN, REPORT = "flights.raw", "flights.clean", "flights.report"
LAGGING, REWOUND, PROTECTED = "crew.delays", "billing.ledger", "billing.invoices"
RUNNING, EXPIRED, DUE, DAMAGED = "weather.index", "weather.tiles", "weather.settle", "weather.stations"
FAILED, PAUSED, WITHOUT_DAG, EMPTIED = "weather.alerts", "weather.observations", "notebook_of-ada~2", "crew.roster"
ODD = ("flüge.säubern", "航班.清洗", "-_~a.very-long_name.of.a.job." + "x" * 120)
ASKED_BY = "user"

_FILES = LocalFileSystem()
_ROUNDS = 25
_EVERY = timedelta(hours=8)
_MB = 1_000_000
_ROW_BYTES = 120
_LONG_LEASE = timedelta(days=2)
_AT_ONCE = 25  # jobs of four items each fit into one transaction

Reads = Mapping[str, Source[Any]]


class _UnreachableError(Exception):
    """Raised in the place of a target that can't be written to."""


def _fail_after_commit(point: Failpoint) -> None:
    if point is Failpoint.COMMITTED:
        raise _UnreachableError


@dataclass
class World:
    """A store, the folders that its jobs read and write, and a clock that is set by hand."""

    root: Path
    store: BookmarkStore
    uri: str
    now: datetime
    random: Random = field(default_factory=lambda: Random(2013))
    files_made: int = 0

    @classmethod
    def open(cls, root: Path, uri: str | None = None) -> World:
        """Make an empty store: an SQLite file below `root`, or where `uri` says."""
        root.mkdir(parents=True)
        uri = uri or f"sqlite:///{root}/bookmarks.db?namespace=page"
        table, namespace = open_table(uri)
        began = utc_now() - _ROUNDS * _EVERY + timedelta(hours=3)
        world = cls(root, BookmarkStore(table, namespace, clock=lambda: world.now), uri, began)
        world.store.init()
        return world

    # ---- parts of which a past is made

    def folder(self, job: str, name: str = "raw") -> Path:
        """Return a folder that a job reads."""
        folder = self.root / "lake" / job / name
        folder.mkdir(parents=True, exist_ok=True)
        return folder

    def arrive(self, folder: Path, files: int = 1, mb: float = 40) -> None:
        """Let files arrive, of about so many MB each, dated now."""
        for _ in range(files):
            self.files_made += 1
            path = folder / f"part-{self.files_made:05}.csv"
            path.touch()
            os.truncate(path, int(mb * _MB * self.random.uniform(0.5, 1.5)))
            os.utime(path, (self.now.timestamp(), self.now.timestamp()))

    def wait(self, **duration: float) -> None:
        """Let time go by."""
        self.now += timedelta(**duration)

    def environment(self, lease_time: timedelta = timedelta(minutes=2), at: FaultHook = no_fault) -> RunEnvironment:
        """Return the machine of a driver: its clock is the world's, and nobody renews its lease."""
        return RunEnvironment(
            clock=lambda: self.now,
            monotonic=lambda: self.now.timestamp(),
            start_thread=lambda _: None,
            at=at,
            lease_time=lease_time,
        )

    def identity(self, job: str) -> RunIdentity:
        """Return who makes a run: the task of that name, in the DAG run of this moment."""
        at = to_text(self.now.replace(microsecond=0))
        dag_id, _, task_id = job.partition(".")
        dag_run_id = f"scheduled__{at}"
        run_id = airflow_run_id(dag_id, dag_run_id, task_id)
        return RunIdentity(run_id, dag_id=dag_id, task_id=task_id, dag_run_id=dag_run_id, logical_date=at)

    def from_files(self, *folders: Path) -> FileSource:
        """Return a source of files."""
        return FileSource(_FILES, [str(folder) for folder in folders])

    def run(
        self,
        job: str,
        reads: Reads | None = None,
        *,
        identity: RunIdentity | None = None,
        environment: RunEnvironment | None = None,
        minutes: float = 6,
        then: Callable[[ActiveRun], None] = lambda run: None,
    ) -> None:
        """Make one whole run; without `reads` it reads its own folder. `then` comes before the commit."""
        run = ActiveRun.begin(self.store, job, identity or self.identity(job), environment or self.environment())
        self._copy(run, reads or {"raw": self.from_files(self.folder(job))}, minutes)
        then(run)
        run.commit()
        self.wait(seconds=self.random.uniform(5, 40))

    def replay(self, job: str, number: int) -> None:
        """Make a run again that has read the folder of its job."""
        run = ReplayRun.begin_replay(self.store, job, self.identity(job), self.environment(), number)
        self._copy(run, {"raw": self.from_files(self.folder(job))}, 0.2)
        run.commit()
        self.wait(minutes=1)

    def fail(self, job: str, error: str, *, identity: RunIdentity | None = None, reads: Reads | None = None) -> None:
        """Make a run that fails when it has read half."""
        run = ActiveRun.begin(self.store, job, identity or self.identity(job), self.environment())
        self._copy(run, reads or {"raw": self.from_files(self.folder(job))}, 2)
        run.abort(error)
        self.wait(minutes=1)

    def hold(self, job: str, lease_time: timedelta = _LONG_LEASE) -> None:
        """Let a run begin that does not end: it lasts as long as its lease."""
        run = ActiveRun.begin(self.store, job, self.identity(job), self.environment(lease_time))
        run.plan("raw", self.from_files(self.folder(job)))

    def _copy(self, run: RunSession, reads: Reads, minutes: float) -> None:
        read = 0
        for ctx, source in reads.items():
            plan = run.plan(ctx, source)
            run.set_rows(ctx, plan.files.total_bytes // _ROW_BYTES)
            read += plan.files.total_bytes
            self.wait(seconds=self.random.uniform(1, 9))
        target = str(self.root / "lake" / run.job / "out")
        folder = Path(
            run.place("out", StagingRequest("files", target, stats={"format": "parquet", "mode": Mode.APPEND.value}))
        )
        self.wait(minutes=minutes * self.random.uniform(0.6, 1.8))
        if read:
            folder.mkdir(parents=True)
            (folder / "part-0.parquet").touch()
            os.truncate(folder / "part-0.parquet", read // 3)
        rows = read // _ROW_BYTES
        staged = collect_staged(_FILES, str(folder), target, run.file_token, Mode.APPEND, rows=rows, schema=None)
        run.staged("out", staged)

    # ---- a past

    def seed(self) -> None:
        """Make the past of all jobs; the present is the real one at its end."""
        self._chain()
        self.now = utc_now() - timedelta(hours=3)
        self._behind()
        self._protected()
        self._weather()
        self._names()
        self.now = utc_now()
        self._held()

    def _chain(self) -> None:
        began = self.now
        people = self.folder(CLEAN, "people")
        for round_ in range(_ROUNDS):
            self.now = began + round_ * _EVERY
            self.arrive(self.folder(RAW), 0 if round_ == 7 else self.random.randint(1, 6), 120)
            if round_ % 6 == 0:
                self.arrive(people, 1, 3)
            self._raw(round_)
            self._clean(round_, people)
            if round_ not in (11, 12):
                self.run(REPORT, {"flights": UpstreamSource(self.store, REPORT, CLEAN, on_rewind="rewind")}, minutes=2)
            if round_ % 6 == 5:
                up_to = UpstreamSource(self.store, LAGGING, RAW, until=round_ // 2)
                self.run(LAGGING, {"flights": up_to}, minutes=1)

    def _raw(self, round_: int) -> None:
        identity = self.identity(RAW)
        if round_ in (4, 14, 15):
            self.fail(RAW, "AnalysisException: [PATH_NOT_FOUND] the bucket answered 503 (SlowDown)", identity=identity)
            identity = replace(identity, attempt=2)
        self.run(RAW, identity=identity)

    def _clean(self, round_: int, people: Path) -> None:
        reads: Reads = {"flights": UpstreamSource(self.store, CLEAN, RAW), "people": self.from_files(people)}
        self.run(CLEAN, reads, minutes=11, then=lambda run: run.state("cursor").set(f"page {round_ + 1}"))
        if round_ == 12:
            rewind(self.store, CLEAN, "10", reason="months were read in the wrong time zone", who="admin")

    def _behind(self) -> None:
        self.arrive(self.folder(EMPTIED), 3)
        self.run(EMPTIED)
        reset(self.store, EMPTIED, reason="the roster starts anew", who="op")

    def _protected(self) -> None:
        for _ in range(6):
            self.arrive(self.folder(PROTECTED), 2, 8)
            self.run(PROTECTED, minutes=1)
            self.run(REWOUND, {"invoices": UpstreamSource(self.store, REWOUND, PROTECTED)}, minutes=1)
        rewind(self.store, PROTECTED, "4", reason="wrong currency", who="op")
        protect(self.store, PROTECTED, reason="money", who=Identity("op", True, "airflow"))
        asked_by = Identity(ASKED_BY, True, "airflow")
        request(self.store, PROTECTED, Change("rewind", to_run="2"), reason="the rates of May were wrong", who=asked_by)

    def _weather(self) -> None:
        for job in (FAILED, PAUSED, DAMAGED, DUE, EXPIRED, RUNNING):
            for _ in range(3):
                self.arrive(self.folder(job), 2, 1)
                self.run(job, minutes=0.3)
            self.arrive(self.folder(job), 1, 1)
        self.fail(FAILED, "Py4JJavaError: Job aborted due to stage failure: ExecutorLostFailure (exit code 137)")
        self._pause(PAUSED)
        self._leave_due(DUE)

    def _pause(self, job: str) -> None:
        identity = self.identity(job)
        run = DetachedRun.begin(self.store, job, identity, Choice.of("pause", "1", "3"), self.environment())
        self._copy(run, {"raw": self.from_files(self.folder(job))}, 1)
        run.commit()

    def _leave_due(self, job: str) -> None:
        run = ActiveRun.begin(self.store, job, self.identity(job), self.environment(at=_fail_after_commit))
        self._copy(run, {"raw": self.from_files(self.folder(job))}, 1)
        try:
            run.commit()
        except _UnreachableError as error:
            run.abort(str(error))

    def _names(self) -> None:
        for name in (WITHOUT_DAG, *ODD):
            self.arrive(self.folder(name), 1, 1)
            self.run(name, identity=RunIdentity(f"local/{name}"), minutes=0.2)

    def _held(self) -> None:
        self.hold(RUNNING)
        self.hold(EXPIRED, timedelta(0))

    def damage(self) -> None:
        """Damage one job, as a hand in the table does. What looks at all jobs at once fails from then on."""
        self._set_fence("0.0")

    @contextmanager
    def damaged(self) -> Iterator[None]:
        """Damage one job for the block alone."""
        fence = self.store.head(DAMAGED).fence
        self.damage()
        try:
            yield
        finally:
            self._set_fence(fence)

    def ask_twice(self, job: str) -> None:
        """Protect a job, and ask for a reset of it twice; the first of the requests is damaged."""
        who = Identity("ann", True, "airflow")
        protect(self.store, job, reason="money", who=who)
        first, _ = (request(self.store, job, Change("reset"), reason="wrong rates", who=who) for _ in range(2))
        self.store.table.transact([Update(self.store.keys(job).event(first.id), set={"preview": "none"})])

    def _set_fence(self, fence: int | str) -> None:
        self.store.table.transact([Update(self.store.keys(DAMAGED).head, set={"fence": fence})])

    # ---- more of it

    def small(self, job: str, *, runs: int = 4) -> str:
        """Make a job with some runs, for one test alone; return its name."""
        for _ in range(runs):
            self.arrive(self.folder(job), 1, 1)
            self.run(job, minutes=0.2)
        return job

    def set_aside(self, job: str) -> list[str]:
        """Let a run of a job find two files that can't be parsed; return their paths."""
        self.arrive(self.folder(job), 2, 1)
        run = ActiveRun.begin(self.store, job, self.identity(job), self.environment())
        plan = run.plan("raw", self.from_files(self.folder(job)))
        paths = list(plan.files.paths)
        run.quarantine("raw", dict.fromkeys(paths, "MALFORMED_CSV_RECORD: 3 of 40 columns are missing"))
        run.commit()
        self.wait(minutes=1)
        return paths

    def copy_jobs(self, number: int) -> None:
        """Write so many copies of a small job, in no time: what a list looks like that is long."""
        pattern = WITHOUT_DAG
        keys, namespace = self.store.keys(pattern), self.store.namespace
        index = Key(f"{namespace}#JOBS", pattern)
        copied = [key for key, _ in self.store.table.scan(namespace) if key.pk == keys.head.pk or key == index]
        items = list(self.store.table.get(copied).items())
        for first in range(0, number, _AT_ONCE // 2):
            writes: list[Put] = []
            for one in range(first, min(first + _AT_ONCE // 2, number)):
                name = f"small{one % 40:02}.task-{one:05}"
                for key, item in items:
                    there = Key(key.pk, name) if key == index else Key(key.pk.replace(pattern, name), key.sk)
                    writes.append(Put(there, item))
            self.store.table.transact(writes)
