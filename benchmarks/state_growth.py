"""Sides that make many runs without Spark: what the state comes to, and what becomes of files of one time."""

from __future__ import annotations

import os
import shutil
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from airflow_bookmarks.core.job import RunIdentity
from airflow_bookmarks.core.ledger.file_ledger import Ledger
from airflow_bookmarks.core.ledger.segment import ENTRY_BYTES
from airflow_bookmarks.core.rules.start import BEGINNING
from airflow_bookmarks.core.selection.bound import Bound
from airflow_bookmarks.core.selection.listing import FileInfo, Listing
from airflow_bookmarks.files.filesystem import Listed
from airflow_bookmarks.files.local import LocalFileSystem
from airflow_bookmarks.lifecycle.protocol.lease import RunEnvironment
from airflow_bookmarks.lifecycle.run.enabled import ActiveRun
from airflow_bookmarks.lifecycle.state.positions import ContextReader
from airflow_bookmarks.sources.files.options import FileOptions
from airflow_bookmarks.sources.files.planner import FileSource
from airflow_bookmarks.store.backends.limits import check_item
from airflow_bookmarks.store.backends.sqlite import SqliteTable
from airflow_bookmarks.store.bookmark_store import BookmarkStore
from benchmarks.ground import make_files
from benchmarks.planning import CONTEXT, JOB, NAMESPACE
from benchmarks.request import RecordingTable, counted

if TYPE_CHECKING:
    from airflow_bookmarks.store.table import Attributes, Key, Table
    from benchmarks.side import Play, Told

_ROOT = "/lake/raw"
_FIRST_MS = 1_700_000_000_000
_SIZE_BYTES = 1234
_KEYS_AT_ONCE = 50
_TIE_S = 1_700_000_000


class Arrivals(LocalFileSystem):
    """A file system in which `lot` is there, and what was there before is not: listings stay short, the ledger grows.

    No file is on any disk.
    """

    def __init__(self, files: int) -> None:
        self._files, self.lot = files, 0

    def list(
        self,
        root: str,
        *,
        recursive: bool = False,
        enters: Callable[[str], bool] | None = None,
        saw: Callable[[int], None] | None = None,
    ) -> Listed:
        """List the lot; see `FileSystem.list`."""
        paths = [f"{root}/lot-{self.lot:05d}/part-{number:05d}.csv" for number in range(self._files)]
        times = np.arange(self._files, dtype=np.int64) + _FIRST_MS + self.lot * self._files
        # Recursive: a folder of a lot is no partition.
        return Listed(Listing(paths, np.full(self._files, _SIZE_BYTES, np.int64), times))

    def stat(self, paths: Sequence[str]) -> Sequence[FileInfo | None]:
        """Return each file as it was listed; see `FileSystem.stat`."""
        first = _FIRST_MS + self.lot * self._files
        return [FileInfo(path, _SIZE_BYTES, first + int(path[-9:-4])) for path in paths]


@contextmanager
def state(store: str, files: int) -> Iterator[Play]:
    """Make `runs` runs of so many new files in each round, all of one job; tell what the state has come to.

    The last one of a round is `alone`: it has a store of its own, as a new process has, and reads the ledger whole.
    """
    Path(store).parent.mkdir(parents=True, exist_ok=True)
    table = RecordingTable(SqliteTable(store, create=True))
    bookmarks, arrivals = BookmarkStore(table, NAMESPACE), Arrivals(files)
    bookmarks.init()
    table.take()
    planned = 0

    def play(told: Told) -> Told:
        nonlocal planned
        table.take()  # what looked at the state since
        begun, begun_cpu = time.perf_counter(), time.process_time()
        for _ in range(told["runs"] - 1):
            arrivals.lot += 1
            planned += make_run(bookmarks, _source(arrivals), f"run/{arrivals.lot}")[0]
        seconds, cpu = time.perf_counter() - begun, time.process_time() - begun_cpu
        sent = table.take()
        arrivals.lot += 1
        begun = time.perf_counter()
        planned += make_run(BookmarkStore(table, NAMESPACE), _source(arrivals), f"run/{arrivals.lot}")[0]
        alone = time.perf_counter() - begun
        sent_alone = table.take()
        items, stored = _stored(table.inner)
        return {
            "seconds": seconds / (told["runs"] - 1),
            "seconds_alone": alone,
            "cpu": cpu / (told["runs"] - 1),
            "files": planned,
            "runs": bookmarks.head(JOB).run_number,
            **_ledger_bytes(bookmarks),
            "items": items,
            "stored": stored,
            "written": sum(one.written_bytes for one in [*sent, *sent_alone]),
            "read": sum(one.read_bytes for one in sent) / (told["runs"] - 1),
            "read_alone": sum(one.read_bytes for one in sent_alone),
            "requests": counted([*sent, *sent_alone]),
            "on_disk": sum(path.stat().st_size for path in Path(store).parent.glob(f"{Path(store).name}*")),
        }

    yield play
    table.close()


def _source(arrivals: Arrivals) -> FileSource:
    return FileSource(arrivals, [_ROOT], FileOptions(recursive=True))


def _ledger_bytes(bookmarks: BookmarkStore) -> Mapping[str, int]:
    """Return the bytes of the ledger that the head has now: `ledger` is its entries, one a file, `around` the rest.

    Around them are the root, and the header and checksum of each segment outside of that: they grow with the tiers.
    """
    found = ContextReader(bookmarks, JOB, bookmarks.head(JOB), BEGINNING).found(CONTEXT)
    if found.position is None:
        return {"ledger": 0, "around": 0}
    ledger = Ledger.from_root(found.position, found.load)
    segments = bookmarks.blobs.get_named(ledger.segment_ids())
    entries = ENTRY_BYTES * len(ledger)
    return {"ledger": entries, "around": len(found.position) + sum(map(len, segments.values())) - entries}


def _stored(table: Table) -> tuple[Mapping[str, int], Mapping[str, int]]:
    """Return the number of items of each kind, and their bytes."""
    items: Counter[str] = Counter()
    stored: Counter[str] = Counter()
    # A scan gives the attributes that it is asked for, and there is no way to ask for all.
    keys: list[Key] = [key for key, _ in table.scan(f"{NAMESPACE}#")]
    for key, attributes in _whole(table, keys):
        kind = _kind(key.pk, key.sk)
        items[kind] += 1
        stored[kind] += check_item(key, attributes)
    return items, stored


def _whole(table: Table, keys: Sequence[Key]) -> Iterator[tuple[Key, Attributes]]:
    for start in range(0, len(keys), _KEYS_AT_ONCE):
        yield from table.get(keys[start : start + _KEYS_AT_ONCE]).items()


def _kind(pk: str, sk: str) -> str:
    for part in ("BLOB", "JOBS"):
        if f"#{part}" in pk:
            return part
    return sk.partition("#")[0]


@contextmanager
def ties(root: str, store: str, max_files: int) -> Iterator[Play]:
    """Let files of one time arrive where a round says so, and make a bounded run; tell what was read, and how often."""
    shutil.rmtree(root, ignore_errors=True)
    Path(store).parent.mkdir(parents=True, exist_ok=True)
    table = SqliteTable(store, create=True)
    bookmarks, lots = BookmarkStore(table, NAMESPACE), 0
    bookmarks.init()
    read: Counter[str] = Counter()

    options = FileOptions(bound=Bound(max_files=max_files))

    def play(told: Told) -> Told:
        nonlocal lots
        lots += 1
        if told["arrive"]:
            make_files(Path(root) / f"batch={lots}", told["arrive"], _TIE_S)
        begun = time.perf_counter()
        count, paths = make_run(bookmarks, FileSource(LocalFileSystem(), [root], options), f"run/{lots}")
        seconds = time.perf_counter() - begun
        read.update(paths)
        there = {entry.path for folder in os.scandir(root) for entry in os.scandir(folder.path)}
        return {
            "seconds": seconds,
            "planned": count,
            "there": len(there),
            "lost": len(there - read.keys()),
            "twice": sum(1 for times in read.values() if times > 1),
        }

    yield play
    table.close()


def make_run(bookmarks: BookmarkStore, source: FileSource, run_id: str) -> tuple[int, Sequence[str]]:
    """Make a run that writes nothing; return how many files it has read, and their paths."""
    run = ActiveRun.begin(bookmarks, JOB, RunIdentity(run_id), RunEnvironment())
    plan = run.plan(CONTEXT, source)
    run.commit()
    return len(plan), plan.files.paths
