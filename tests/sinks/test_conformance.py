"""The sinks of this package, and two that commit by themselves, keep the promises of every sink."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from airflow_bookmarks.core.errors import PublishError
from airflow_bookmarks.core.files.file_list import encode_moves, encode_paths
from airflow_bookmarks.core.run import OutputEntry, RunKey
from airflow_bookmarks.files.local import LocalFileSystem
from airflow_bookmarks.sinks.files.sink import FilesSink
from airflow_bookmarks.sinks.sink import SideOutput, StoredOutput
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
from tests.lifecycle.rows import ErasableRows, Rows

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
            file = folder / f"month={number}" / f"{output.name}.txt"
            file.parent.mkdir(parents=True)
            file.write_text(row)
        mode = Mode.OVERWRITE if overwrites else Mode.APPEND
        token = f"run-{output.run.key}"
        staged = collect_staged(FILES, str(folder), str(self._target), token, mode, rows=len(rows), schema=None)
        bodies = {"publish": encode_moves(staged.moves, staged.files), "delete": encode_paths(staged.deletes)}
        lists = self._store.payloads(bodies)
        stats = {**output.entry.stats, "mode": mode.value}
        deletes = lists["delete"] if overwrites else None
        return replace(output.entry, stats=stats, publish=lists["publish"], delete=deletes)

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


@pytest.mark.parametrize("mode", [Mode.APPEND, Mode.OVERWRITE_PARTITIONS])
def test_files_that_a_format_wrote_beside_their_partitions_are_refused(tmp_path: Path, mode: Mode) -> None:
    staging = tmp_path / "staging"
    (staging / "m=1").mkdir(parents=True)
    for name in ("m=1/a.txt", "b.txt"):
        (staging / name).write_text("row")
    beside = r"1 of 2 files .* lie in no partition, and .* partitioned by m, .*b\.txt'\. Nothing was committed"
    with pytest.raises(PublishError, match=beside):
        collect_staged(FILES, str(staging), "/out", "run-1.1", mode, rows=2, schema=None, partition_by=["m"])


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


class RowsGround:
    """An empty table in memory."""

    def __init__(self, sink: Rows, blobs: BlobStore) -> None:
        self.sink, self.blobs = sink, blobs
        self.request = StagingRequest(Rows.kind, "rows")

    def write(self, output: StoredOutput, fence: int, rows: Sequence[str]) -> bool:
        return self.sink.write(fence, rows)

    def visible(self) -> list[str]:
        return self.sink.lines()

    def touch(self, row: str) -> str:
        with self.sink.db as db:
            db.execute("UPDATE rows SET line = ? WHERE line = ?", [f"{row}, changed", row])
        return f"{row}, changed"


class TestRows(CommittingSinkConformance):
    @pytest.fixture
    def ground(self, store: BookmarkStore) -> RowsGround:
        return RowsGround(Rows(":memory:"), store.blobs)


class TestErasableRows(CommittingSinkConformance):
    @pytest.fixture
    def ground(self, store: BookmarkStore) -> RowsGround:
        return RowsGround(ErasableRows(":memory:"), store.blobs)
