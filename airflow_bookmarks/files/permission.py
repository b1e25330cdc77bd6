"""Limit what this process may read: a driver or the command line everything, the API server the listed prefixes.

A permission holds within a `with`, for the thread or task that is in it. File systems that are opened there refuse
every path outside of its prefixes, and every change. Without a permission nothing is refused.
"""

from __future__ import annotations

import os.path
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import IO, TYPE_CHECKING
from urllib.parse import urlsplit

from airflow_bookmarks.core.errors import LookRefusedError, OptionError
from airflow_bookmarks.files.filesystem import without_classes
from airflow_bookmarks.files.hadoop.hdfs_settings import without_default_port
from airflow_bookmarks.files.s3.settings import S3_SCHEMES

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence

    from airflow_bookmarks.core.selection.listing import FileInfo
    from airflow_bookmarks.files.concurrency import Concurrency
    from airflow_bookmarks.files.filesystem import FileSystem, Listed

_LOCAL = "file"
_SAME_STORE = {**dict.fromkeys(S3_SCHEMES, "s3a"), "abfs": "abfss"}


@dataclass(frozen=True, slots=True)
class Prefix:
    """A folder, bucket or host, with everything below it: file system, authority, and the names down to it."""

    store: str
    authority: str
    names: tuple[str, ...]

    @classmethod
    def of(cls, path: str) -> Prefix:
        """Return where a path leads, whatever it is spelled like: `..` is resolved, and so are local links.

        Raises:
            OptionError: it leads nowhere: it is relative, or climbs above its root.

        Example:
            >>> Prefix.of("s3://lake/raw/../clean/") == Prefix.of("s3a://lake/clean")
            True
        """
        if "\0" in path:
            raise OptionError(f"{path!r} is no path. Nothing was read or changed.")
        scheme, sign, rest = path.partition("://")
        if not sign or scheme == _LOCAL:
            return cls(_LOCAL, "", _local_names(path))
        authority, _, below = rest.partition("/")
        if scheme == "hdfs":
            authority = without_default_port(authority)
        return cls(_SAME_STORE.get(scheme, scheme), authority, _names(path, below))

    def holds(self, other: Prefix) -> bool:
        """Whether another place is this one, or lies below it; compared by whole names."""
        is_same = (self.store, self.authority) == (other.store, other.authority)
        return is_same and other.names[: len(self.names)] == self.names


def _local_names(path: str) -> tuple[str, ...]:
    local = path.removeprefix(f"{_LOCAL}:")
    if local != path and local.startswith("//"):
        host, _, below = local[2:].partition("/")
        local = "" if host else f"/{below}"
    if not local.startswith("/"):
        raise OptionError(f"{path!r} is no absolute path. Nothing was read or changed.")
    return tuple(name for name in os.path.realpath(local).split("/") if name)


def _names(path: str, below: str) -> tuple[str, ...]:
    names: list[str] = []
    for name in below.split("/"):
        if name == ".." and not names:
            raise OptionError(f"{path!r} climbs above its root. Nothing was read or changed.")
        if name == "..":
            names.pop()
        elif name not in ("", "."):
            names.append(name)
    return tuple(names)


@dataclass(frozen=True, slots=True)
class Permission:
    """What may be read: what lies below one of `prefixes`; none: nothing. `refused` collects refused requests."""

    prefixes: tuple[Prefix, ...] = ()
    refused: list[str] = field(default_factory=list)

    def allows(self, path: str) -> bool:
        """Whether a path lies below one of the prefixes."""
        if not self.prefixes:
            return False
        try:
            place = Prefix.of(path)
        except OptionError:
            return False
        return any(prefix.holds(place) for prefix in self.prefixes)

    def check(self, path: str) -> None:
        """Make sure that a path may be read.

        Raises:
            LookRefusedError: it may not.
        """
        if not self.allows(path):
            self.refused.append(path)
            raise LookRefusedError(path)

    def check_host(self, url: str) -> None:
        """Make sure that a host to which a server of files points may be asked.

        Raises:
            LookRefusedError: no prefix is of this host and port.
        """
        if urlsplit(url).netloc not in {prefix.authority for prefix in self.prefixes}:
            self.refused.append(url)
            raise LookRefusedError(url)


_PRESENT: ContextVar[Permission | None] = ContextVar("bookmarks_permission", default=None)


def present_permission() -> Permission | None:
    """Return the permission in force; None: everything may be read."""
    return _PRESENT.get()


@contextmanager
def looking_below(*prefixes: Prefix) -> Iterator[Permission]:
    """Allow reads only below these prefixes; without any, none at all."""
    permission = Permission(prefixes)
    before = _PRESENT.set(permission)
    try:
        yield permission
    finally:
        _PRESENT.reset(before)


class WatchedFileSystem:
    """A file system on which only permitted paths are read, and nothing is changed."""

    def __init__(self, files: FileSystem, permission: Permission) -> None:
        self._files, self._permission = files, permission

    @property
    def concurrency(self) -> Concurrency:
        """How fast the store is asked."""
        return self._files.concurrency

    def list(
        self,
        root: str,
        *,
        recursive: bool = False,
        enters: Callable[[str], bool] | None = None,
        saw: Callable[[int], None] | None = None,
    ) -> Listed:
        """List the input files at `root`. A link that leads out of what is allowed is refused, before it is entered."""
        self._permission.check(root)
        if Prefix.of(root).store != _LOCAL:
            return self._files.list(root, recursive=recursive, enters=enters, saw=saw)

        def enters_allowed(folder: str) -> bool:
            if enters is not None and not enters(folder):
                return False
            self._permission.check(os.path.join(root, folder))
            return True

        listed = self._files.list(root, recursive=recursive, enters=enters_allowed, saw=saw)
        for link in listed.links:
            self._permission.check(link)
        return listed

    def without_classes(self, classes: Collection[str]) -> WatchedFileSystem:
        """Return the same store, whose listings leave out files in these storage classes."""
        return WatchedFileSystem(without_classes(self._files, classes), self._permission)

    def stat(self, paths: Sequence[str]) -> Sequence[FileInfo | None]:
        """Return each file as it is now; None if it is gone."""
        for path in paths:
            self._permission.check(path)
        return self._files.stat(paths)

    def open(self, path: str) -> IO[bytes]:
        """Open a file for reading."""
        self._permission.check(path)
        return self._files.open(path)

    def folders(self, root: str) -> Sequence[str]:
        """Return the names of the folders directly in `root`."""
        self._permission.check(root)
        return self._files.folders(root)

    def canonical(self, path: str) -> str:
        """Return the one absolute spelling of a path; finding it may take a request."""
        self._permission.check(path)
        return self._files.canonical(path)

    def uri(self, path: str) -> str:
        """Return the path as Spark writes to it."""
        return self._files.uri(path)

    def pattern(self, path: str) -> str:
        """Return the path as Spark reads it."""
        return self._files.pattern(path)

    def move(self, source: str, target: str) -> bool:
        """Refuse to move a file."""
        raise self._no_change(source)

    def delete(self, path: str) -> bool:
        """Refuse to delete a file."""
        raise self._no_change(path)

    def remove(self, root: str) -> None:
        """Refuse to remove a folder."""
        raise self._no_change(root)

    def write(self, path: str, content: IO[bytes]) -> None:
        """Refuse to write a file."""
        raise self._no_change(path)

    def _no_change(self, path: str) -> LookRefusedError:
        self._permission.refused.append(path)
        return LookRefusedError(path)
