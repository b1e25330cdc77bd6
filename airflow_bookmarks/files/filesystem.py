"""The file systems that sources are planned on and staged output is published in."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import partial
from typing import IO, TYPE_CHECKING, Protocol, runtime_checkable

from airflow_bookmarks.core.errors import OptionError, SourceError
from airflow_bookmarks.core.selection.glob import SIGNS
from airflow_bookmarks.core.text.redaction import has_user_info
from airflow_bookmarks.files.permission import WatchedFileSystem, present_permission
from airflow_bookmarks.files.s3.settings import S3_SCHEMES, S3Settings

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from airflow_bookmarks.core.selection.listing import FileInfo, Listing
    from airflow_bookmarks.files.concurrency import Pace
    from airflow_bookmarks.files.hadoop.hdfs_settings import HdfsSettings


class FileSystemError(SourceError, OSError):
    """Raised when a store of files refuses a request, or does not answer: no file system of this machine's."""


class PathPatternError(OptionError):
    """Raised when a path is a pattern, and nothing has that very name."""


@dataclass(frozen=True, slots=True, eq=False)
class Listed:
    """What a listing found: the files that are input, by reason how many entries are not, how many folders it pruned.

    A pruned folder is one that the listing was told not to enter: what lies below it was not asked for. `links` are the
    files and folders among them that lie elsewhere, where the file system has links.
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
        """Whether all folders below one that is entered are entered too: then it may not be asked of them."""
        ...


class FileSystem(Protocol):
    """Files under absolute paths. Each method is one request, or several that can be repeated.

    What a store refuses is an `OSError`, or a `SourceError` where it is listed. Where `pace` lets several requests go
    at a time, they may come from several threads.
    """

    @property
    def pace(self) -> Pace:
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
            SourceMissingError: there is nothing at `root`.
        """
        ...

    def stat(self, paths: Sequence[str]) -> Sequence[FileInfo | None]:
        """Return each file as it is now, None where it is gone."""
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

        Makes the folders above it. When it returns the file outlives a power cut, as far as the store can tell.
        """
        ...


class ChangeableFileSystem(FileSystem, Protocol):
    """A file system that also moves and deletes: opened by `open_to_change` alone.

    Who lists, reads and looks has no use for it, and who takes paths from state goes by
    `lifecycle.protocol.file_changes`, which shows first that they are the job's own.
    """

    def move(self, source: str, target: str) -> bool:
        """Move one file; False when `source` is gone. Makes the folders above `target`.

        `target` shows the whole file or none, whoever else moves the same. One request where the store has it, else a
        copy and then the removal of `source`, which a later try finishes.
        """
        ...

    def delete(self, path: str) -> bool:
        """Delete one file; False when the store tells that it was gone (an object store does not)."""
        ...

    def remove(self, root: str) -> None:
        """Remove a folder with all that is in it; no error when it is gone.

        Where somebody removes it or writes into it at the same time (a driver that lost its job and does not know it
        yet), a part of it may stay: a later sweep removes that.
        """
        ...


def _open_local() -> ChangeableFileSystem:
    from airflow_bookmarks.files.local import LocalFileSystem

    return LocalFileSystem()


def _open_s3(settings: S3Settings, scheme: str) -> ChangeableFileSystem:
    from airflow_bookmarks.files.s3.filesystem import S3FileSystem

    return S3FileSystem(settings, scheme)


def _open_hdfs(settings: HdfsSettings | None, scheme: str) -> ChangeableFileSystem:
    from airflow_bookmarks.files.hadoop.hdfs import open_hdfs

    return open_hdfs(settings, scheme)


def _open_gs() -> ChangeableFileSystem:
    from airflow_bookmarks.files.hadoop.gs import open_gs

    return open_gs()


def _open_abfs(scheme: str) -> ChangeableFileSystem:
    from airflow_bookmarks.files.hadoop.abfs import open_abfs

    return open_abfs(scheme)


_HDFS_SCHEMES = ("hdfs", "webhdfs", "swebhdfs")
_ABFS_SCHEMES = ("abfss", "abfs")

_OPENERS: dict[str, Callable[[], ChangeableFileSystem]] = {
    "": _open_local,
    "file": _open_local,
    "gs": _open_gs,
    **{scheme: partial(_open_abfs, scheme) for scheme in _ABFS_SCHEMES},
}


def use_s3_settings(settings: S3Settings) -> None:
    """Make `open_filesystem` reach S3 as these settings say; before, it is reached as boto3 finds out by itself."""
    for scheme in S3_SCHEMES:
        _OPENERS[scheme] = partial(_open_s3, settings, scheme)


use_s3_settings(S3Settings())


def use_hdfs_settings(settings: HdfsSettings | None) -> None:
    """Make `open_filesystem` reach HDFS as these settings say; None and before: as Hadoop's configuration says."""
    for scheme in _HDFS_SCHEMES:
        _OPENERS[scheme] = partial(_open_hdfs, settings, scheme)


use_hdfs_settings(None)


def register_filesystem(scheme: str, opener: Callable[[], ChangeableFileSystem]) -> None:
    """Make `open_filesystem` answer with `opener()` for paths of a scheme; its canonical paths begin with it."""
    _OPENERS[scheme] = opener


_ONE_SLASH = re.compile(r"(file|dbfs|wasbs?):", re.IGNORECASE)  # of other names with a colon each may be a folder
_INSTEAD = {"dbfs": " name the store that lies below DBFS, or a volume by its path (/Volumes/...);"}


def open_filesystem(path: str) -> FileSystem:
    """Return the file system that a path lies on, as far as this process may look at it.

    Raises:
        OptionError: the path is empty, or its scheme has no file system here.
        LookRefusedError: this process may not look there.
    """
    permission = present_permission()
    if permission is None:
        return open_any_filesystem(path)
    permission.check(path)
    return WatchedFileSystem(open_any_filesystem(path), permission)


def open_to_change(path: str) -> ChangeableFileSystem:
    """Return the file system that a path lies on, also to move and delete.

    Raises:
        OptionError: the path is empty, or its scheme has no file system here.
        LookRefusedError: this process may not look there.
    """
    permission = present_permission()
    if permission is not None:
        permission.check(path)
    return open_any_filesystem(path)


def open_any_filesystem(path: str) -> ChangeableFileSystem:
    """Return the file system that a path lies on, whatever this process may look at: for where the state itself lies.

    Raises:
        OptionError: the path is empty, has a password in it, or its scheme has no file system here.
    """
    if not path or not path.strip():
        raise OptionError("the path is empty. Nothing was read or changed. Give the folder or file to read or write.")
    scheme, sign, _ = path.partition("://")
    if has_user_info(path):
        # The text is not repeated: a path is recorded in state, and told in logs and errors.
        raise OptionError(
            f"a path of {scheme}:// has a user and a password before its host. Nothing was read or changed. Leave them "
            "out; give credentials by the environment, a role or Spark's configuration."
        )
    if not sign:
        single = _ONE_SLASH.match(path)
        scheme = "" if single is None else single[1]
    if scheme not in _OPENERS:
        raise OptionError(
            f"{path!r}: no file system for scheme {scheme!r};{_INSTEAD.get(scheme, '')} this version "
            "knows local paths (/folder or file:///folder), S3 (s3a://bucket/folder), HDFS "
            "(hdfs://name-node/folder), Google Cloud Storage "
            "(gs://bucket/folder) and Azure (abfss://container@account.dfs.core.windows.net/folder). Nothing was read "
            "or changed."
        )
    return _OPENERS[scheme]()


def open_one_filesystem(paths: Sequence[str]) -> FileSystem:
    """Return the file system that all of these paths lie on.

    Raises:
        OptionError: they lie on several, or one of them is empty or of a scheme that is not known here.
    """
    files, *_ = [open_filesystem(path) for path in paths]
    first_of: dict[str, str] = {}
    for path in paths:
        first_of.setdefault(store_of(path), path)
    if len(first_of) > 1:
        first, other, *_ = first_of.values()
        raise OptionError(
            f"{first!r} and {other!r} lie on different file systems, and one read reads one of them. Nothing was read "
            "or changed. Read each under a context of its own and union the frames; of an upstream whose target moved, "
            "read up to its last run before that (until=), then the rest."
        )
    return files


def paths_and_patterns(files: FileSystem, paths: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the paths that name something, and those that are patterns, each in the one absolute spelling it has.

    A path that looks like a pattern names what is there by that very name.

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


def store_of(path: str) -> str:
    """Return what paths of one file system have in common, and no others: "file", "s3a", or another scheme.

    Example:
        >>> [store_of(path) for path in ("/lake/raw", "file:///lake/raw", "s3://lake/raw", "s3a://lake/raw")]
        ['file', 'file', 's3a', 's3a']
    """
    scheme = path.partition(":")[0] if "://" in path or path.startswith("file:") else "file"
    return next((family[0] for family in (S3_SCHEMES, _ABFS_SCHEMES) if scheme in family), scheme)
