"""Local files, and whatever is mounted as such."""

from __future__ import annotations

import contextlib
import errno
import logging
import os
import shutil
import tempfile
from typing import IO, TYPE_CHECKING

from airflow_bookmarks.core.errors import OptionError, SourceError, SourceMissingError
from airflow_bookmarks.core.listing import FileInfo, Listing
from airflow_bookmarks.core.partition import is_partition
from airflow_bookmarks.core.reason import HIDDEN, NESTED, SPECIAL
from airflow_bookmarks.files.filesystem import Listed
from airflow_bookmarks.files.input import is_hidden
from airflow_bookmarks.files.pace import Pace

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

log = logging.getLogger(__name__)

_GLOB = frozenset("*?[]{}")


class LocalFileSystem:
    """Files of this machine by `os.scandir`: one stat a file, no second look."""

    pace = Pace()

    def list(self, root: str, *, recursive: bool = False) -> Listed:
        """List the input files at `root`; see `FileSystem.list`."""
        skipped: dict[str, int] = {}
        try:
            if not os.path.isdir(root):
                status = os.stat(root)
                if is_hidden(os.path.basename(root)):  # Spark reads no row of it, also when it is named
                    return Listed(Listing.of([]), {HIDDEN: 1})
                return Listed(Listing.of([_info(root, status)]))
            return Listed(Listing.of(_walk(root, recursive, False, skipped)), skipped)
        except FileNotFoundError as error:
            raise SourceMissingError(
                f"{root!r} does not exist (or went while it was listed). Nothing was read or changed. Check the "
                "path; a folder that is only empty so far has to be there."
            ) from error
        except OSError as error:  # no right to list it, a link that leads to itself, a name that is too long
            raise SourceError(
                f"{error.filename!r} can't be listed: {error.strerror}. Nothing was read or changed; what could be "
                "listed is not taken for the whole. Mend it, or give this user the right to read it."
            ) from error

    def stat(self, paths: Sequence[str]) -> Sequence[FileInfo | None]:
        """Return each file as it is now; see `FileSystem.stat`."""
        return [_stat(path) for path in paths]

    def open(self, path: str) -> IO[bytes]:
        """Open a file for reading."""
        return open(path, "rb")

    def move(self, source: str, target: str) -> bool:
        """Move one file by one rename; see `FileSystem.move`."""
        os.makedirs(os.path.dirname(target), exist_ok=True)
        try:
            os.rename(source, target)
        except FileNotFoundError:
            return False
        except OSError as error:
            if error.errno != errno.EXDEV:
                raise
            return _move_across(source, target)
        return True

    def delete(self, path: str) -> bool:
        """Delete one file; see `FileSystem.delete`."""
        try:
            os.unlink(path)
        except FileNotFoundError:
            return False
        return True

    def folders(self, root: str) -> Sequence[str]:
        """Return the names of the folders directly in `root`; see `FileSystem.folders`."""
        try:
            with os.scandir(root) as entries:
                return sorted(entry.name for entry in entries if entry.is_dir(follow_symlinks=False))
        except FileNotFoundError:
            return []

    def remove(self, root: str) -> None:
        """Remove a folder with all that is in it; see `FileSystem.remove`."""
        try:
            shutil.rmtree(root)
        except FileNotFoundError:
            return  # gone, or somebody removes it at the same time
        except OSError as error:
            if error.errno != errno.ENOTEMPTY:
                raise
            log.info("%s is being written by somebody: what is left of it goes with the next sweep", root)

    def canonical(self, path: str) -> str:
        """Return the one absolute spelling of a path; see `FileSystem.canonical`."""
        plain = path
        for prefix in ("file://", "file:"):
            if plain.startswith(prefix):
                plain = plain.removeprefix(prefix)
                break
        if not plain.startswith("/"):
            raise OptionError(
                f"{path!r} is not an absolute path. Nothing was read or changed. Driver and workers may run in "
                "different folders, so a relative path would name different data."
            )
        if _GLOB & set(plain) and not os.path.exists(plain):
            raise OptionError(
                f"{path!r} is a pattern, and patterns are not planned by this version. Nothing was read or changed. "
                "Name the folder, or several folders as a list."
            )
        return os.path.normpath("/" + plain.lstrip("/"))  # normpath keeps two slashes at the start

    def uri(self, path: str) -> str:
        """Return the path with its scheme; see `FileSystem.uri`."""
        return f"file://{path}"

    def pattern(self, path: str) -> str:
        """Return the path with its scheme and escapes; see `FileSystem.pattern`."""
        escaped = "".join("\\" + c if c in _GLOB or c == "\\" else c for c in path)
        return f"file://{escaped}"


def _walk(folder: str, recursive: bool, is_nested: bool, skipped: dict[str, int]) -> Iterator[FileInfo]:
    with os.scandir(folder) as entries:
        rows = sorted(entries, key=lambda entry: entry.name)
    for entry in rows:
        if is_hidden(entry.name):
            skipped[HIDDEN] = skipped.get(HIDDEN, 0) + 1
        elif entry.is_dir():
            inside = is_nested or not (recursive or is_partition(entry.name))
            yield from _walk(entry.path, recursive, inside, skipped)
        elif is_nested:
            skipped[NESTED] = skipped.get(NESTED, 0) + 1
        elif not entry.is_file():  # a pipe, a socket, a link that leads nowhere
            skipped[SPECIAL] = skipped.get(SPECIAL, 0) + 1
        else:
            info = _stat(_text(entry.path))
            if info is not None:  # it went while we listed: it was not there
                yield info


def _text(path: str) -> str:
    try:
        path.encode()
    except UnicodeEncodeError as error:
        raise SourceError(
            f"the name of {os.fsencode(path)!r} is not UTF-8. Nothing was read or changed. Rename the file, or begin "
            "its name with '_' or '.' to leave it out."
        ) from error
    return path


def _move_across(source: str, target: str) -> bool:
    """Move between two mounts: the copy gets its name only when it is whole, and the source goes last."""
    folder, name = os.path.split(target)
    # Two publishers may be at it: each has a part of its own, and both parts are the same file in the end.
    with tempfile.NamedTemporaryFile(dir=folder, prefix=f".{name}.", suffix=".part", delete=False) as part:
        try:
            with open(source, "rb") as staged:
                shutil.copyfileobj(staged, part)
                part.flush()
                os.fsync(part.fileno())
            shutil.copystat(source, part.name)  # as a rename does: time and size tell this content from another
        except FileNotFoundError:
            os.unlink(part.name)
            return False
        except OSError:  # the disk is full: what half a copy takes of it is needed for the next try
            os.unlink(part.name)
            raise
    os.rename(part.name, target)
    with contextlib.suppress(FileNotFoundError):
        os.unlink(source)
    return True


def _stat(path: str) -> FileInfo | None:
    try:
        return _info(path, os.stat(path))
    except (FileNotFoundError, NotADirectoryError):
        return None


def _info(path: str, status: os.stat_result) -> FileInfo:
    return FileInfo(path, status.st_size, status.st_mtime_ns // 1_000_000)
