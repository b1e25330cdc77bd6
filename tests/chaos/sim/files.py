"""Files in memory under `sim://`: each has size, time, rows and a version; and the same with whatever befalls it."""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import IO

from airflow_bookmarks.core.errors import SourceError, SourceMissingError
from airflow_bookmarks.core.selection.listing import FileInfo, Listing
from airflow_bookmarks.core.selection.partition import is_partition
from airflow_bookmarks.files.concurrency import Concurrency
from airflow_bookmarks.files.filesystem import Listed
from tests.chaos.sim.scheduler import Scheduler

SCHEME = "sim"
Row = str


@dataclass(frozen=True, slots=True)
class SimFile:
    """One file: rows, and what a listing says of it."""

    rows: tuple[Row, ...]
    size_bytes: int
    modified_ms: int
    etag: str | None = None


class SimFiles:
    """All files of a world. Folders are what paths say, and those that were made."""

    def __init__(self) -> None:
        self.files: dict[str, SimFile] = {}
        self.folders: set[str] = set()
        self.written: dict[tuple[str, str], SimFile] = {}
        self.on_move: Callable[[str, str, SimFile | None], None] = lambda source, target, replaced: None

    def info(self, path: str) -> FileInfo | None:
        """Return what a listing says of a file."""
        file = self.files.get(path)
        return None if file is None else FileInfo(path, file.size_bytes, file.modified_ms, file.etag)

    def put(self, path: str, file: SimFile) -> None:
        """Write a file whole."""
        self.files[path] = file
        info = FileInfo(path, file.size_bytes, file.modified_ms, file.etag)
        self.written[path, info.version] = file

    def listed(self, root: str, recursive: bool) -> Listed:
        """List input files as Spark reads a folder."""
        skipped: Counter[str] = Counter()
        below = root + "/"
        found: list[FileInfo] = []
        paths = [path for path in self.files if path == root or path.startswith(below)]
        if not paths and root not in self.folders:
            raise SourceMissingError(f"{root!r} does not exist. Nothing was read or changed.")
        for path in sorted(paths):
            *folders, name = path[len(below) :].split("/")
            info = self.info(path)
            if any(_is_hidden(part) for part in (*folders, name)):
                skipped["hidden"] += 1
            elif not recursive and not all(is_partition(folder) for folder in folders):
                skipped["nested"] += 1
            elif info is not None:
                found.append(info)
        return Listed(Listing.of(found), dict(skipped))

    def move(self, source: str, target: str) -> bool:
        """Move one file; False when it is gone."""
        file = self.files.pop(source, None)
        if file is None:
            return False
        replaced = self.files.get(target)
        self.put(target, file)
        self.on_move(source, target, replaced)
        return True

    def below(self, root: str) -> list[str]:
        """Return the paths below a folder."""
        return sorted(path for path in self.files if path.startswith(root + "/"))

    def rows(self, root: str) -> Counter[Row]:
        """Return the visible rows below a folder, with how often each is there."""
        found: Counter[Row] = Counter()
        for path in self.below(root):
            if not any(_is_hidden(part) for part in path[len(root) + 1 :].split("/")):
                found.update(self.files[path].rows)
        return found


def _is_hidden(name: str) -> bool:
    return name.startswith(".") or (name.startswith("_") and "=" not in name)


class FaultyFiles:
    """The file system of a world as the package sees it (`FileSystem`), and `read` and `put` for drivers."""

    concurrency = Concurrency()

    def __init__(self, files: SimFiles, scheduler: Scheduler, told: Callable[[str, Listed], None]) -> None:
        self._files, self._scheduler, self._told = files, scheduler, told

    def list(
        self,
        root: str,
        *,
        recursive: bool = False,
        enters: Callable[[str], bool] | None = None,
        saw: Callable[[int], None] | None = None,
    ) -> Listed:
        """See `FileSystem.list`."""

        def look() -> Listed:
            listed = self._files.listed(root, recursive)
            self._told(root, listed)
            return listed

        return self._scheduler.call(f"list {_short(root)}", look, _no_listing, changes=False)

    def stat(self, paths: Sequence[str]) -> Sequence[FileInfo | None]:
        """See `FileSystem.stat`."""
        return [self._stat(path) for path in paths]

    def _stat(self, path: str) -> FileInfo | None:
        return self._scheduler.call(f"stat {_short(path)}", lambda: self._files.info(path), _failed, changes=False)

    def open(self, path: str) -> IO[bytes]:
        """See `FileSystem.open`."""
        return io.BytesIO("\n".join(self.read(path)).encode())

    def read(self, path: str) -> tuple[Row, ...]:
        """Return the rows of a file as it is now."""

        def look() -> tuple[Row, ...]:
            if path not in self._files.files:
                raise FileNotFoundError(path)
            return self._files.files[path].rows

        return self._scheduler.call(f"read {_short(path)}", look, _failed, changes=False)

    def write(self, path: str, content: IO[bytes]) -> None:
        """See `FileSystem.write`."""
        rows = tuple(content.read().decode().split("\n"))
        self.put(path, SimFile(rows, sum(map(len, rows)), 0))

    def put(self, path: str, file: SimFile) -> None:
        """Write a file whole."""
        what = f"put {_short(path)} {list(file.rows)}"
        self._scheduler.call(what, lambda: self._files.put(path, file), _failed, changes=True)

    def move(self, source: str, target: str) -> bool:
        """See `FileSystem.move`."""
        what = f"move {_short(source)} to {_short(target)}"
        return self._scheduler.call(what, lambda: self._files.move(source, target), _failed, changes=True)

    def delete(self, path: str) -> bool:
        """See `FileSystem.delete`."""

        def effect() -> bool:
            return self._files.files.pop(path, None) is not None

        return self._scheduler.call(f"delete {_short(path)}", effect, _failed, changes=True)

    def folders(self, root: str) -> Sequence[str]:
        """See `FileSystem.folders`."""

        def look() -> Sequence[str]:
            inner = (path[len(root) + 1 :] for path in self._files.below(root))
            return sorted({rest.split("/")[0] for rest in inner if "/" in rest})

        return self._scheduler.call(f"folders of {_short(root)}", look, _failed, changes=False)

    def remove(self, root: str) -> None:
        """See `FileSystem.remove`: one request a file, as in an object store."""
        for path in self._scheduler.call(
            f"walk {_short(root)}", lambda: self._files.below(root), _failed, changes=False
        ):
            self.delete(path)

    def canonical(self, path: str) -> str:
        """See `FileSystem.canonical`."""
        return path.rstrip("/")

    def uri(self, path: str) -> str:
        """See `FileSystem.uri`."""
        return path

    def pattern(self, path: str) -> str:
        """See `FileSystem.pattern`."""
        return path


def _failed() -> Exception:
    return OSError("the simulated file system did not answer")


def _no_listing() -> Exception:
    return SourceError("the simulated file system did not answer. Nothing was read or changed.")


def _short(path: str) -> str:
    return path.removeprefix(f"{SCHEME}://lake/").replace("_bookmarks/sim/", "_b/")
