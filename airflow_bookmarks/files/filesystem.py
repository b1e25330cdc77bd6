"""The file systems that sources are planned on and staged output is published in."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import IO, TYPE_CHECKING, Protocol

from airflow_bookmarks.core.errors import OptionError, SourceError
from airflow_bookmarks.files.s3_settings import S3_SCHEMES, S3Settings

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from airflow_bookmarks.core.listing import FileInfo, Listing
    from airflow_bookmarks.files.pace import Pace


class FileSystemError(SourceError, OSError):
    """Raised when a store of files refuses a request, or does not answer: no file system of this machine's."""


@dataclass(frozen=True, slots=True, eq=False)
class Listed:
    """What a listing found: the files that are input, and by reason how many entries are not."""

    files: Listing
    skipped: Mapping[str, int] = field(default_factory=dict)


class FileSystem(Protocol):
    """Files under absolute paths. Each method is one request, or several that can be repeated.

    What a store refuses is an `OSError`, or a `SourceError` where it is listed. Where `pace` lets several requests go
    at a time, they may come from several threads.
    """

    @property
    def pace(self) -> Pace:
        """How fast the store is asked."""
        ...

    def list(self, root: str, *, recursive: bool = False) -> Listed:
        """List the input files at `root`: a file, or a folder as Spark reads it.

        Left out, and counted: names that begin with `_` or `.` (`_name=value` is a partition) as `hidden`, and, unless
        `recursive`, files in folders that are no partition as `nested`; more reasons are in `files/input.py`.

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

    def move(self, source: str, target: str) -> bool:
        """Move one file; False when `source` is gone. Makes the folders above `target`.

        `target` shows the whole file or none, whoever else moves the same. One request where the store has it, else a
        copy and then the removal of `source`, which a later try finishes.
        """
        ...

    def delete(self, path: str) -> bool:
        """Delete one file; False when the store tells that it was gone (an object store does not)."""
        ...

    def folders(self, root: str) -> Sequence[str]:
        """Return the names of the folders directly in `root`; none when it is gone."""
        ...

    def remove(self, root: str) -> None:
        """Remove a folder with all that is in it; no error when it is gone.

        Where somebody removes it or writes into it at the same time (a driver that lost its job and does not know it
        yet), a part of it may stay: a later sweep removes that.
        """
        ...

    def canonical(self, path: str) -> str:
        """Return the one absolute spelling of a path.

        Raises:
            OptionError: it is empty, relative or a pattern.
        """
        ...

    def uri(self, path: str) -> str:
        """Return the path as Spark writes to it, and as an option names it."""
        ...

    def pattern(self, path: str) -> str:
        """Return the path as Spark reads it: what Spark would take for a pattern is escaped."""
        ...


def _open_local() -> FileSystem:
    from airflow_bookmarks.files.local import LocalFileSystem

    return LocalFileSystem()


def _open_s3(settings: S3Settings, scheme: str) -> FileSystem:
    from airflow_bookmarks.files.s3 import S3FileSystem

    return S3FileSystem(settings, scheme)


_OPENERS: dict[str, Callable[[], FileSystem]] = {"": _open_local, "file": _open_local}


def use_s3_settings(settings: S3Settings) -> None:
    """Make `open_filesystem` reach S3 as these settings say; before, it is reached as boto3 finds out by itself."""
    for scheme in S3_SCHEMES:
        _OPENERS[scheme] = partial(_open_s3, settings, scheme)


use_s3_settings(S3Settings())


def register_filesystem(scheme: str, opener: Callable[[], FileSystem]) -> None:
    """Make `open_filesystem` answer with `opener()` for paths of a scheme; its canonical paths begin with it."""
    _OPENERS[scheme] = opener


def open_filesystem(path: str) -> FileSystem:
    """Return the file system that a path lies on.

    Raises:
        OptionError: the path is empty, or its scheme has no file system here.
    """
    if not path or not path.strip():
        raise OptionError("the path is empty. Nothing was read or changed. Give the folder or file to read or write.")
    scheme, sign, _ = path.partition("://")
    if not sign:
        scheme = "file" if path.startswith("file:") else ""
    if scheme not in _OPENERS:
        raise OptionError(
            f"{path!r}: no file system for scheme {scheme!r}; this version knows local paths (/folder or "
            "file:///folder) and S3 (s3a://bucket/folder). Nothing was read or changed."
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


def store_of(path: str) -> str:
    """Return what paths of one file system have in common, and no others: "file", "s3a", or another scheme.

    Example:
        >>> [store_of(path) for path in ("/lake/raw", "file:///lake/raw", "s3://lake/raw", "s3a://lake/raw")]
        ['file', 'file', 's3a', 's3a']
    """
    scheme = path.partition(":")[0] if "://" in path or path.startswith("file:") else "file"
    return S3_SCHEMES[0] if scheme in S3_SCHEMES else scheme
