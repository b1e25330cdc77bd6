"""Hadoop's file systems besides S3 and the local one, through fsspec if it is installed."""

from __future__ import annotations

import importlib
import io
import logging
import posixpath
import shutil
import tempfile
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import IO, TYPE_CHECKING, Any, ClassVar, TypeVar, cast

import numpy as np

from airflow_bookmarks.core.errors import FolderVanishedError, OptionError, SourceMissingError
from airflow_bookmarks.core.selection.listing import FileInfo, Listing
from airflow_bookmarks.core.selection.reason import HIDDEN, SPECIAL
from airflow_bookmarks.files.concurrency import Concurrency
from airflow_bookmarks.files.filesystem import FileSystemError, Listed, PathPatternError, vanished
from airflow_bookmarks.files.input import Sieve, is_hidden

if TYPE_CHECKING:
    from fsspec import AbstractFileSystem

log = logging.getLogger(__name__)

_GLOB = frozenset("*?[]{}")
_AT_ONCE = 8
_PROGRESS_EVERY = 100_000

_T = TypeVar("_T")
_Info = Mapping[str, Any]  # the entry attributes of fsspec; each file system has its own names


@dataclass(frozen=True, slots=True)
class HadoopPath:
    """The parts of a canonical path: its authority (a name node, a bucket, a container), and the path within."""

    scheme: str
    authority: str
    path: str

    def __str__(self) -> str:
        return f"{self.scheme}://{self.authority}{self.path.rstrip('/')}"


class HadoopFileSystem(ABC):
    """Files of one scheme by an fsspec file system: folders are listed one by one, `concurrency.at_once` at a time.

    A subclass says which one it is, how it is reached, and how it tells time and version of a file. Its `move` copies
    and then deletes; one that can rename does that instead. Safe between threads.
    """

    schemes: ClassVar[tuple[str, ...]]  # the first is that of canonical paths
    protocol: ClassVar[str]  # by which fsspec knows it
    package: ClassVar[str]  # what pip is to install
    example: ClassVar[str]

    concurrency = Concurrency(_AT_ONCE, 1000)

    def __init__(self, scheme: str | None = None) -> None:
        self._scheme = scheme or self.schemes[0]
        self._class = _fsspec_class(self.protocol, self.package, self.schemes[0])
        self._connections = threading.local()  # a session of HTTP is for one thread
        self._errors: tuple[type[Exception], ...] = (OSError, RuntimeError, ValueError, *self.other_errors())

    # ---- for subclasses

    @abstractmethod
    def options(self, authority: str) -> Mapping[str, Any]:
        """Return with which arguments fsspec's class is made."""

    @abstractmethod
    def inner(self, at: HadoopPath) -> str:
        """Return a path as fsspec's class takes it."""

    @abstractmethod
    def time_ms(self, info: _Info) -> int:
        """Return when a file was changed last, in milliseconds since 1970."""

    @abstractmethod
    def etag(self, info: _Info) -> str | None:
        """Return what changes with the content of a file and with nothing else; None where nothing does."""

    @abstractmethod
    def authority(self, text: str, path: str) -> str:
        """Return the one spelling of what stands between `://` and the path.

        Raises:
            OptionError: it is none; `path` is the whole, for the message.
        """

    def other_errors(self) -> tuple[type[Exception], ...]:
        """Return what fsspec's class raises beside OSError, RuntimeError and ValueError when it is refused."""
        return ()

    # ---- reading

    def list(
        self,
        root: str,
        *,
        recursive: bool = False,
        enters: Callable[[str], bool] | None = None,
        saw: Callable[[int], None] | None = None,
    ) -> Listed:
        """List the input files at `root`, by one request for each folder, or several for a large one.

        See `FileSystem.list`.
        """
        at = self._place(root)
        with self._telling(f"{root!r} can't be listed"):
            try:
                info = self._info(at)
                if info["type"] != "directory":
                    return self._list_file(at, info)
                walk = _HadoopWalk(self, at, Sieve(recursive), enters, saw)
                folders = [""]
                while folders:
                    folders = walk.enter(folders)
                return walk.listed()
            except FileNotFoundError as error:
                if self._is_there(at):
                    raise vanished(root, error) from error
                raise SourceMissingError(
                    f"{root!r} does not exist (or went while it was listed). Nothing was read or changed. Check the "
                    "path; a folder that is only empty so far has to be there."
                ) from error

    def _list_file(self, at: HadoopPath, info: _Info) -> Listed:
        if is_hidden(posixpath.basename(at.path)):  # Spark reads no row of it, also when it is named
            return Listed(Listing.of([]), {HIDDEN: 1})
        return Listed(Listing.of([self._file(at, info)]))

    def entries(self, at: HadoopPath) -> Sequence[_Info]:
        """Return what lies directly in a folder."""
        return cast("Sequence[_Info]", self._ask(at, lambda fs: fs.ls(self.inner(at), detail=True)))

    def stat(self, paths: Sequence[str]) -> Sequence[FileInfo | None]:
        """Return each file as it is now, by one request for each; see `FileSystem.stat`."""
        found: dict[int, FileInfo | None] = {}
        self.concurrency.each(lambda row: self._stat(paths[row]), range(len(paths)), found.__setitem__)
        return [found[row] for row in range(len(paths))]

    def _stat(self, path: str) -> FileInfo | None:
        at = self._place(path)
        with self._telling(f"{path!r} can't be looked at"):
            try:
                info = self._info(at)
            except (FileNotFoundError, NotADirectoryError):
                return None
        return None if info["type"] == "directory" else self._file(at, info)

    def _info(self, at: HadoopPath) -> _Info:
        return cast("_Info", self._ask(at, lambda fs: fs.info(self.inner(at))))

    def _file(self, at: HadoopPath, info: _Info) -> FileInfo:
        return FileInfo(str(at), int(info["size"]), self.time_ms(info), self.etag(info))

    def folders(self, root: str) -> Sequence[str]:
        """Return the names of the folders directly in `root`; see `FileSystem.folders`."""
        at = self._place(root)
        with self._telling(f"{root!r} can't be listed"):
            try:
                inside = self.entries(at)
            except FileNotFoundError:
                return []
        own = self.inner(at).strip("/")
        below = (entry for entry in inside if entry["type"] == "directory" and entry["name"].strip("/") != own)
        return sorted({_name(entry) for entry in below})

    # ---- reading

    def open(self, path: str) -> IO[bytes]:
        """Open a file for reading; see `FileSystem.open`."""
        at = self._place(path)
        with self._telling(f"{path!r} can't be read"):
            content = self.content(at)
        return cast("IO[bytes]", io.BufferedReader(_Content(self, path, content)))

    def content(self, at: HadoopPath) -> Any:
        """Begin to read a file; return what has `read(count)` and `close()`."""
        return self._ask(at, lambda fs: fs.open(self.inner(at), "rb"))

    # ---- changing

    def write(self, path: str, content: IO[bytes]) -> None:
        """Write one file whole, by way of this machine's disk; see `FileSystem.write`."""
        at = self._place(path)
        with self._telling(f"{path!r} can't be written"), tempfile.NamedTemporaryFile(prefix="bookmark-") as kept:
            shutil.copyfileobj(content, kept)
            kept.flush()
            self.put(at, kept.name)

    def put(self, at: HadoopPath, local: str) -> None:
        """Write a file of this machine, in the place of what is there."""
        self._ask(at, lambda fs: fs.put_file(local, self.inner(at)))

    def move(self, source: str, target: str) -> bool:
        """Copy one file, then delete the source; see `FileSystem.move`."""
        here, there = self._place(source), self._place(target)
        with self._telling(f"{source!r} can't be moved to {target!r}"):
            try:
                size = self._info(here)["size"]
                self.copy(here, there)
            except FileNotFoundError:  # also where another publisher is faster
                return False
            copied = self._info(there)["size"]
            if copied != size:
                raise FileSystemError(
                    f"{source!r} has {size} bytes, and its copy {target!r} {copied}. The source was left where it is. "
                    "Run the job again: it copies the file anew."
                )
            with suppress(FileNotFoundError):
                self._ask(here, lambda fs: fs.rm_file(self.inner(here)))
        return True

    def copy(self, here: HadoopPath, there: HadoopPath) -> None:
        """Copy one file so that no reader sees a part of it at its new place."""
        self._ask(here, lambda fs: fs.cp_file(self.inner(here), self.inner(there)))

    def delete(self, path: str) -> bool:
        """Delete one file; see `FileSystem.delete`."""
        at = self._place(path)
        with self._telling(f"{path!r} can't be deleted"):
            try:
                self._ask(at, lambda fs: fs.rm_file(self.inner(at)))
            except FileNotFoundError:
                return False
        return True

    def remove(self, root: str) -> None:
        """Delete each file below `root`: where folders are but parts of names, they go with them."""
        at = self._place(root)
        with self._telling(f"{root!r} can't be removed"):
            try:
                found = self._ask(at, lambda fs: fs.find(self.inner(at)))
            except FileNotFoundError:
                return
            self.concurrency.each(lambda name: self._remove_file(at, name), found, lambda name, _: None)

    def _remove_file(self, at: HadoopPath, name: str) -> None:
        with suppress(FileNotFoundError):
            self._ask(at, lambda fs: fs.rm_file(name))

    # ---- paths

    def canonical(self, path: str) -> str:
        """Return `scheme://authority/path` without needless slashes; see `FileSystem.canonical`."""
        at = self._place(path)
        if _GLOB & set(at.path) and not self._is_there(at):
            raise PathPatternError(
                f"{path!r} is a pattern, and here one folder or file is named. Nothing was read or changed. "
                "Name the folder, or several folders as a list."
            )
        return str(at)

    def _is_there(self, at: HadoopPath) -> bool:
        with self._telling(f"{str(at)!r} can't be looked at"):
            try:
                self._info(at)
            except (FileNotFoundError, NotADirectoryError):
                return False
        return True

    def uri(self, path: str) -> str:
        """Return the path with the scheme that it was given with; see `FileSystem.uri`."""
        at = self._place(path)
        return f"{self._scheme}://{at.authority}{at.path}"

    def pattern(self, path: str) -> str:
        """Return the path with its scheme and escapes; see `FileSystem.pattern`."""
        return "".join("\\" + c if c in _GLOB or c == "\\" else c for c in self.uri(path))

    def _place(self, path: str) -> HadoopPath:
        scheme, sign, rest = path.partition("://")
        authority, _, inside = rest.partition("/")
        if not sign or scheme not in self.schemes:
            raise OptionError(
                f"{path!r} is no path of {self.schemes[0]}. Nothing was read or changed. Write it as {self.example}, "
                "and keep sources or targets that belong together on one file system."
            )
        whole = posixpath.normpath(f"/{inside.lstrip('/')}")
        return HadoopPath(self.schemes[0], self.authority(authority, path), whole)

    # ---- asking

    def _ask(self, at: HadoopPath, request: Callable[[AbstractFileSystem], _T]) -> _T:
        """Make one request of the file system that keeps `at`."""
        return request(self._connection(at.authority, self.options(at.authority)))

    def _connection(self, name: str, options: Mapping[str, Any]) -> AbstractFileSystem:
        """Return this thread's connection of a name, after making it."""
        made: dict[str, AbstractFileSystem] = self._connections.__dict__
        if name not in made:
            with _naming(self.package, self.schemes[0]):
                # What fsspec remembers of a listing is not asked for: a file that comes later would never be seen.
                made[name] = self._class(**options, use_listings_cache=False, skip_instance_cache=True)
        return made[name]

    @contextmanager
    def _telling(self, what: str) -> Iterator[None]:
        """Turn a refusal into an error of this package that says what could not be done."""
        try:
            yield
        except (FileSystemError, SourceMissingError, FolderVanishedError, OptionError, FileNotFoundError):
            raise
        except self._errors as error:
            raise FileSystemError(
                f"{what}: {type(error).__name__}: {' '.join(str(error).split()) or 'no reason was given'}. Nothing "
                "more was read or changed. Check that the store is up, its address, and the rights of this user; then "
                "run again."
            ) from error


def _fsspec_class(protocol: str, package: str, scheme: str) -> type[AbstractFileSystem]:
    """Return fsspec's class for a protocol.

    Raises:
        OptionError: what it needs is not installed here.
    """
    with _naming(package, scheme):
        found: type[AbstractFileSystem] = importlib.import_module("fsspec").get_filesystem_class(protocol)
    return found


@contextmanager
def _naming(package: str, scheme: str) -> Iterator[None]:
    """Turn an import that fails into an error that names what to install."""
    try:
        yield
    except ImportError as error:
        raise OptionError(
            f"paths of {scheme}:// are listed through fsspec, and this Python lacks a part of it ({error}). Nothing "
            f"was read or changed. Install it on the Spark driver and on the Airflow workers: pip install {package}"
        ) from error


@dataclass(slots=True)
class _HadoopWalk:
    """Makes of folder after folder the columns of a listing."""

    files: HadoopFileSystem
    root: HadoopPath
    sieve: Sieve
    enters: Callable[[str], bool] | None
    saw: Callable[[int], None] | None
    paths: list[str] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)
    times_ms: list[int] = field(default_factory=list)
    etags: list[str | None] = field(default_factory=list)
    pruned: int = 0
    seen: int = 0

    def enter(self, folders: Sequence[str]) -> list[str]:
        """List folders, by their paths below the root; return those that lie directly in them."""
        below: list[str] = []
        self.files.concurrency.each(
            lambda folder: self.files.entries(self._at(folder)),
            folders,
            lambda folder, entries: below.extend(self._take(folder, entries)),
        )
        return below

    def _at(self, below: str) -> HadoopPath:
        path = posixpath.join(self.root.path, below) if below else self.root.path
        return HadoopPath(self.root.scheme, self.root.authority, path)

    def _take(self, folder: str, entries: Sequence[_Info]) -> Iterator[str]:
        own = self.files.inner(self._at(folder)).strip("/")
        for entry in entries:
            if entry["name"].strip("/") == own:  # an empty object that stands for the folder itself
                self.sieve.takes(f"{folder}/")
                continue
            below = f"{folder}/{_name(entry)}" if folder else _name(entry)
            if entry["type"] == "directory":
                if self._enters(below):
                    yield below
            elif entry["type"] != "file":
                self._leave(SPECIAL)
            elif self.sieve.takes(below):
                self._add(below, entry)
        self._tell(len(entries))

    def _enters(self, folder: str) -> bool:
        if is_hidden(posixpath.basename(folder)):
            self._leave(HIDDEN)
            return False
        if self.enters is not None and not self.enters(folder):
            self.pruned += 1
            return False
        return True

    def _leave(self, reason: str) -> None:
        self.sieve.counts[reason] = self.sieve.counts.get(reason, 0) + 1

    def _add(self, below: str, entry: _Info) -> None:
        self.paths.append(str(self._at(below)))
        self.sizes.append(int(entry["size"]))
        self.times_ms.append(self.files.time_ms(entry))
        self.etags.append(self.files.etag(entry))

    def _tell(self, more: int) -> None:
        before, self.seen = self.seen, self.seen + more
        if self.saw is not None:
            self.saw(more)
        if before // _PROGRESS_EVERY < self.seen // _PROGRESS_EVERY:
            log.info("bookmark: listing %s: %d entries so far", self.root, self.seen)

    def listed(self) -> Listed:
        """Return what was found, in the order of paths: folders answer in any order."""
        order = sorted(range(len(self.paths)), key=self.paths.__getitem__)
        rows = np.array(order, np.intp)
        listing = Listing(
            [self.paths[row] for row in order],
            np.array(self.sizes, np.int64)[rows],
            np.array(self.times_ms, np.int64)[rows],
            [self.etags[row] for row in order] if any(etag is not None for etag in self.etags) else None,
        )
        return Listed(listing, self.sieve.counts, self.pruned)


def _name(entry: _Info) -> str:
    return str(entry["name"]).rstrip("/").rpartition("/")[2]


class _Content(io.RawIOBase):
    """The content of a file as a stream whose errors say what it is of."""

    def __init__(self, files: HadoopFileSystem, path: str, content: Any) -> None:
        self._files, self._path, self._content = files, path, content

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        with self._files._telling(f"{self._path!r} can't be read to its end"):
            piece = self._content.read(len(buffer))
        buffer[: len(piece)] = piece
        return len(piece)

    def close(self) -> None:
        if not self.closed:
            self._content.close()
        super().close()
