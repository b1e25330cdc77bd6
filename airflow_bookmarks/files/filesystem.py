"""The protocol of a file system, for sources that are planned on it and output that is published in it.

`files.opener` opens the one that a path lies on.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import IO, TYPE_CHECKING, Protocol, runtime_checkable

from airflow_bookmarks.core.errors import FolderVanishedError, OptionError, SourceError
from airflow_bookmarks.core.selection.glob import SIGNS
from airflow_bookmarks.files.s3.settings import S3_SCHEMES

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from airflow_bookmarks.core.selection.listing import FileInfo, Listing
    from airflow_bookmarks.files.concurrency import Concurrency

ABFS_SCHEMES = ("abfss", "abfs")


class FileSystemError(SourceError, OSError):
    """Raised when a store of files refuses a request, or does not answer: no file system of this machine's."""


class PathPatternError(OptionError):
    """Raised when a path is a pattern, and nothing has that very name."""


@dataclass(frozen=True, slots=True, eq=False)
class Listed:
    """What a listing found: the files that are input, by reason how many entries are not, how many folders it pruned.

    A pruned folder is one that the listing was told not to enter: what lies below it was not requested. `links` are the
    files and folders among them that lie elsewhere, if the file system has links.
    """

    files: Listing
    skipped: Mapping[str, int] = field(default_factory=dict)
    pruned: int = 0
    links: Sequence[str] = ()


@runtime_checkable
class Pruning(Protocol):
    """An `enters` of `FileSystem.list` that knows more: a store that lists many folders by one request may ask it."""

    def __call__(self, folder: str) -> bool:
        """Whether a folder, by its path below the root, is entered."""
        ...

    def is_whole(self, folder: str) -> bool:
        """Whether all folders below an entered one are entered too: then the listing need not ask for each."""
        ...


class FileSystem(Protocol):
    """Files under absolute paths. Each method is one request, or several that can be repeated.

    A refusal of the store is an `OSError`, or a `SourceError` when listing. If `concurrency` allows several requests
    at a time, they may come from several threads.
    """

    @property
    def concurrency(self) -> Concurrency:
        """How fast the store is asked."""
        ...

    def list(
        self,
        root: str,
        *,
        recursive: bool = False,
        enters: Callable[[str], bool] | None = None,
        saw: Callable[[int], None] | None = None,
    ) -> Listed:
        """List the input files at `root`: a file, or a folder as Spark reads it.

        Left out, and counted: names that begin with `_` or `.` (`_name=value` is a partition) as `hidden`, and, unless
        `recursive`, files in folders that are no partition as `nested`; more reasons are in `files/input.py`.

        Args:
            recursive: whether folders that are no partition are descended into.
            enters: is given each folder before it is listed, as its path below the root ("year=2013/month=09"), once;
                False prunes it: nothing below it is asked for. Not asked of hidden folders. None: all are entered.
            saw: is told now and then how many more entries the listing has seen.

        Raises:
            SourceMissingError: there is nothing at `root`. FolderVanishedError: `root` is there, and a folder below it
                went before it was listed itself.
        """
        ...

    def stat(self, paths: Sequence[str]) -> Sequence[FileInfo | None]:
        """Return each file as it is now; None if it is gone."""
        ...

    def open(self, path: str) -> IO[bytes]:
        """Open a file for reading."""
        ...

    def folders(self, root: str) -> Sequence[str]:
        """Return the names of the folders directly in `root`; none when it is gone."""
        ...

    def canonical(self, path: str) -> str:
        """Return the one absolute spelling of a path.

        Raises:
            OptionError: it is empty or relative.
            PathPatternError: it is a pattern, and nothing has that very name.
        """
        ...

    def uri(self, path: str) -> str:
        """Return the path as Spark writes to it, and as an option names it."""
        ...

    def pattern(self, path: str) -> str:
        """Return the path as Spark reads it: what Spark would take for a pattern is escaped."""
        ...

    def write(self, path: str, content: IO[bytes]) -> None:
        """Write one file whole, from where `content` stands: a reader of `path` finds what was there before, or all.

        Creates the folders above it. When it returns, the file survives a power cut, as far as the store can guarantee.
        """
        ...


class ChangeableFileSystem(FileSystem, Protocol):
    """A file system that also moves and deletes: opened by `open_to_change` alone.

    Callers that only list and read do not need it, and those that take paths from state use
    `sinks.files.changes`, which first checks that they are the job's own.
    """

    def move(self, source: str, target: str) -> bool:
        """Move one file; False when `source` is gone. Makes the folders above `target`.

        `target` shows the whole file or none, even if others move the same file. One request where the store has it,
        else a copy and then the removal of `source`, which a later try finishes.
        """
        ...

    def delete(self, path: str) -> bool:
        """Delete one file; False when the store tells that it was gone (an object store does not)."""
        ...

    def remove(self, root: str) -> None:
        """Remove a folder with everything in it; no error if it is gone.

        If another process removes it or writes into it at the same time (a driver that lost its job and does not know
        it yet), a part of it may stay: a later sweep removes that.
        """
        ...


@runtime_checkable
class ClassedFileSystem(Protocol):
    """A store whose files are of storage classes."""

    def without_classes(self, classes: Collection[str]) -> FileSystem:
        """Return the same store, whose listings leave out files in these classes and count them as excluded."""
        ...


def without_classes(files: FileSystem, classes: Collection[str]) -> FileSystem:
    """Return a file system whose listings leave out these storage classes; the same where it has none."""
    return files.without_classes(classes) if classes and isinstance(files, ClassedFileSystem) else files


def paths_and_patterns(files: FileSystem, paths: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the paths that name something, and those that are patterns, each in the one absolute spelling it has.

    A path that looks like a pattern names the file with that very name.

    Raises:
        OptionError: a path is empty or relative.
    """
    named: list[str] = []
    patterns: list[str] = []
    for path in paths:
        try:
            named.append(files.canonical(path))
        except PathPatternError:
            folder = path[: min(path.index(sign) for sign in SIGNS & set(path))].rpartition("/")[0]
            names = [name for name in path[len(folder) :].split("/") if name]
            patterns.append("/".join([files.canonical(folder or "/").rstrip("/"), *names]))
    return named, patterns


def vanished(root: str, error: FileNotFoundError) -> FolderVanishedError:
    """Return the error of a listing of `root` in which a folder below it went."""
    gone = " ".join(str(error).split())
    return FolderVanishedError(
        f"a folder below {root!r} went while it was listed ({gone}). Nothing was read or changed; what could be listed "
        "is not taken for the whole. Run again: what is there then is listed anew."
    )


def store_of(path: str) -> str:
    """Return what paths of one file system have in common, and no others: "file", "s3a", or another scheme.

    Example:
        >>> [store_of(path) for path in ("/lake/raw", "file:///lake/raw", "s3://lake/raw", "s3a://lake/raw")]
        ['file', 'file', 's3a', 's3a']
    """
    scheme = path.partition(":")[0] if "://" in path or path.startswith("file:") else "file"
    return next((family[0] for family in (S3_SCHEMES, ABFS_SCHEMES) if scheme in family), scheme)
