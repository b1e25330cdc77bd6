"""The file systems that sources are planned on and staged output is published in."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import IO, TYPE_CHECKING, Protocol

from airflow_bookmarks.core.errors import OptionError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from airflow_bookmarks.core.listing import FileInfo, Listing


@dataclass(frozen=True, slots=True, eq=False)
class Listed:
    """What a listing found: the files that are input, and by reason how many entries are not."""

    files: Listing
    skipped: Mapping[str, int] = field(default_factory=dict)


class FileSystem(Protocol):
    """Files under absolute paths. Each method is one request, or several that can be repeated."""

    def list(self, root: str, *, recursive: bool = False) -> Listed:
        """List the input files at `root`: a file, or a folder as Spark reads it.

        Left out, and counted: names that begin with `_` or `.` (`_name=value` is a partition) as `hidden`, and, unless
        `recursive`, files in folders that are no partition as `nested`.

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
        """Move one file by one atomic request; False when `source` is gone. Makes the folders above `target`."""
        ...

    def delete(self, path: str) -> bool:
        """Delete one file; False when it is gone."""
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


_OPENERS: dict[str, Callable[[], FileSystem]] = {"": _open_local, "file": _open_local}


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
            "file:///folder). Nothing was read or changed."
        )
    return _OPENERS[scheme]()
