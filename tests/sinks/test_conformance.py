"""The sinks of this package, and two that commit by themselves, keep the promises of every sink."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from airflow_bookmarks.core.plan import encode_moves, encode_paths
from airflow_bookmarks.core.run import OutputEntry, RunKey
from airflow_bookmarks.files.local import LocalFileSystem
from airflow_bookmarks.sinks.clean import CleanedSink, CleanGround, CleanList, CleanPart
from airflow_bookmarks.sinks.files.sink import FilesSink
from airflow_bookmarks.sinks.sink import CommittingSink, SideOutput, StoredOutput
from airflow_bookmarks.sinks.staging import Mode, Staged, StagingRequest, collect_staged
from airflow_bookmarks.store.blobs import BlobStore
from airflow_bookmarks.store.bookmark_store import BookmarkStore
from airflow_bookmarks.store.codec.item import output_attribute
from airflow_bookmarks.testing.memory import memory_store
from airflow_bookmarks.testing.sink_conformance import (
    JOB,
    CommittingSinkConformance,
    OverwritingSinkConformance,
)

FILES = LocalFileSystem()


@pytest.fixture
def store() -> Iterator[BookmarkStore]:
    """Open an empty store."""
    with memory_store() as opened:
        yield opened


class FilesGround:
    """Files below a local folder; a file for each row."""

    def __init__(self, root: Path, store: BookmarkStore) -> None:
        self.sink, self.blobs, self._store, self._root = FilesSink(), store.blobs, store, root
        self._target = root / "target"
        self.request = StagingRequest(FilesSink.kind, str(self._target))
        beside = root / "target2" / "_bookmarks" / "test" / "job" / "1.1" / "out" / "beside.txt"
        beside.parent.mkdir(parents=True)
        beside.write_text("beside")
        (root / "beside.txt").write_text("beside")

    def stage(self, output: StoredOutput, rows: Sequence[str], *, overwrites: bool = False) -> OutputEntry:
        folder = Path(output.entry.place)
        for number, row in enumerate(rows):
            file = folder / f"month={number}" / "part.txt"
            file.parent.mkdir(parents=True)
            file.write_text(row)
        mode = Mode.OVERWRITE if overwrites else Mode.APPEND
        token = f"run-{output.run.key}"
        staged = collect_staged(FILES, str(folder), str(self._target), token, mode, rows=len(rows), schema=None)
        bodies = {"publish": encode_moves(staged.moves, staged.files), "delete": encode_paths(staged.deletes)}
        lists = self._store.payloads(bodies)
        return replace(output.entry, publish=lists["publish"], delete=lists["delete"] if overwrites else None)

    def stage_aside(self, output: SideOutput, rows: Sequence[str]) -> Staged:
        folder = Path(output.entry.place)
        for number, row in enumerate(rows):
            folder.mkdir(parents=True, exist_ok=True)
            (folder / f"{number}.txt").write_text(row)
        target = str(self._target)
        return collect_staged(FILES, str(folder), target, output.token, Mode.APPEND, rows=len(rows), schema=None)

    def staged_aside(self) -> set[str]:
        return {path.name for path in self._target.glob("_bookmarks/test/job.side/*")}

    def put(self, row: str) -> None:
        self._target.mkdir(exist_ok=True)
        (self._target / f"{row}.txt").write_text(row)

    def visible(self) -> list[str]:
        if not self._target.exists():
            return []
        return [Path(path).read_text() for path in FILES.list(str(self._target), recursive=True).files.paths]

    def touch(self, row: str) -> str:
        paths = [Path(path) for path in FILES.list(str(self._target), recursive=True).files.paths]
        (path,) = (path for path in paths if path.read_text() == row)
        path.write_text(f"{row}, changed")
        return path.read_text()

    def staged(self) -> set[RunKey]:
        return {RunKey.parse(path.name) for path in self._target.glob("_bookmarks/test/job/*")}

    def outside(self) -> object:
        paths = (path for path in self._root.rglob("*") if self._target not in (path, *path.parents))
        return {str(path): path.read_text() if path.is_file() else None for path in paths}


class TestFilesSink(OverwritingSinkConformance):
    @pytest.fixture
    def ground(self, tmp_path: Path, store: BookmarkStore) -> FilesGround:
        return FilesGround(tmp_path, store)


def test_output_of_files_is_stored_as_it_always_was() -> None:
    request = StagingRequest("files", "s3a://lake/clean", stats={"format": "csv"}, when_empty="discard")
    entry, root = FilesSink().stage(JOB, RunKey(3, 7), "out", request)

    assert root == "s3a://lake/clean/_bookmarks/test/job"
    assert output_attribute("out", entry) == {
        "output:out": {
            "sink": "files",
            "target": "s3a://lake/clean",
            "place": "s3a://lake/clean/_bookmarks/test/job/3.7/out",
            "facts": {"format": "csv", "when_empty": "discard"},
        }
    }


class Ledger(CommittingSink):
    """Lines in an SQLite table; a token of a fence is taken once, in the transaction of its lines."""

    kind = "ledger"

    def __init__(self, db: sqlite3.Connection) -> None:
        self.db = db
        self.db.execute("CREATE TABLE lines (fence INT, line TEXT, written TEXT)")
        self.db.execute("CREATE TABLE token (next INT)")
        self.db.execute("INSERT INTO token VALUES (0)")

    def burn(self, output: StoredOutput, fence: int) -> None:
        with self.db:
            self.db.execute("UPDATE token SET next = ? WHERE next < ?", (fence, fence))

    def landed(self, output: StoredOutput) -> bool:
        fences = {fence for (fence,) in self.db.execute("SELECT DISTINCT fence FROM lines")}
        return not fences.isdisjoint(output.run.fences)


@dataclass(frozen=True)
class Erasure:
    """The removal of the lines of some fences, but for those that somebody else has changed."""

    db: sqlite3.Connection
    fences: frozenset[int]

    def remove_staged(self) -> None:
        """Do nothing: nothing is staged."""

    def remove_visible(self) -> None:
        with self.db:
            for fence in self.fences:
                self.db.execute("DELETE FROM lines WHERE fence = ? AND line IS written", [fence])


class ErasableLedger(Ledger, CleanedSink):
    """A ledger from which a clean removes lines; it does not know what an earlier change has left."""

    def why_not_clean(self, entry: OutputEntry) -> str | None:
        return None

    def list_clean(self, output: StoredOutput, replaced: Collection[str]) -> CleanList:
        return CleanList(parts=(CleanPart.of(output),))

    def left(self, output: StoredOutput) -> CleanList | None:
        return None

    def prepare_clean(self, ground: CleanGround, listed: CleanList) -> Sequence[Erasure]:
        return [Erasure(self.db, frozenset(ground.output_of(part).run.fences)) for part in listed.parts]


class LedgerGround:
    """An empty table in memory."""

    def __init__(self, sink: Ledger, blobs: BlobStore) -> None:
        self.sink, self.blobs = sink, blobs
        self.request = StagingRequest(Ledger.kind, "lines")

    def write(self, output: StoredOutput, fence: int, rows: Sequence[str]) -> bool:
        with self.sink.db as db:
            if not db.execute("UPDATE token SET next = ? WHERE next <= ?", (fence + 1, fence)).rowcount:
                return False
            db.executemany("INSERT INTO lines VALUES (?, ?, ?)", [(fence, row, row) for row in rows])
        return True

    def visible(self) -> list[str]:
        return [line for (line,) in self.sink.db.execute("SELECT line FROM lines")]

    def touch(self, row: str) -> str:
        with self.sink.db as db:
            db.execute("UPDATE lines SET line = ? WHERE line = ?", [f"{row}, changed", row])
        return f"{row}, changed"


class TestLedger(CommittingSinkConformance):
    @pytest.fixture
    def ground(self, store: BookmarkStore) -> LedgerGround:
        return LedgerGround(Ledger(sqlite3.connect(":memory:")), store.blobs)


class TestErasableLedger(CommittingSinkConformance):
    @pytest.fixture
    def ground(self, store: BookmarkStore) -> LedgerGround:
        return LedgerGround(ErasableLedger(sqlite3.connect(":memory:")), store.blobs)
