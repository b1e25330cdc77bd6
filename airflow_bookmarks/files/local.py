"""Local files, including mounted file systems."""

from __future__ import annotations

import contextlib
import errno
import logging
import os
import shutil
import tempfile
import uuid
from typing import IO, TYPE_CHECKING

from airflow_bookmarks.core.errors import OptionError, SourceError, SourceMissingError
from airflow_bookmarks.core.selection.listing import FileInfo, Listing
from airflow_bookmarks.core.selection.reason import HIDDEN
from airflow_bookmarks.files.concurrency import Concurrency
from airflow_bookmarks.files.filesystem import Listed, PathPatternError, vanished
from airflow_bookmarks.files.input import is_hidden
from airflow_bookmarks.files.local_listing import list_folder
from airflow_bookmarks.files.private_file import make_private_folders, open_private

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

log = logging.getLogger(__name__)

_GLOB = frozenset("*?[]{}")


class LocalFileSystem:
    """Files of this machine: one stat for each file."""

    concurrency = Concurrency()

    def __init__(self, *, is_private: bool = False) -> None:
        """Let `write` make files and folders for their owner alone, instead of by the umask."""
        self._is_private = is_private

    def list(
        self,
        root: str,
        *,
        recursive: bool = False,
        enters: Callable[[str], bool] | None = None,
        saw: Callable[[int], None] | None = None,
    ) -> Listed:
        """List the input files at `root`; see `FileSystem.list`."""
        try:
            if not os.path.isdir(root):
                status = os.stat(root)
                if is_hidden(os.path.basename(root)):  # Spark reads no row of it, also when it is named
                    return Listed(Listing.of([]), {HIDDEN: 1})
                return Listed(Listing.of([_info(root, status)]))
            return list_folder(root, recursive=recursive, enters=enters, saw=saw)
        except FileNotFoundError as error:
            if os.path.exists(root):
                raise vanished(root, error) from error
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
        except (FileNotFoundError, NotADirectoryError):  # in a file there are none either
            return []

    def remove(self, root: str) -> None:
        """Remove a folder with everything in it; see `FileSystem.remove`."""
        try:
            shutil.rmtree(root)
        except FileNotFoundError:
            return  # gone, or another process removes it at the same time
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
            raise PathPatternError(
                f"{path!r} is a pattern, and here one folder or file is named. Nothing was read or changed. "
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

    def write(self, path: str, content: IO[bytes]) -> None:
        """Write one file whole, by a rename of what was written beside it; see `FileSystem.write`."""
        folder = os.path.dirname(path)
        if self._is_private:
            make_private_folders(folder)
        else:
            os.makedirs(folder, exist_ok=True)
        # The other's name is no part of this one: it may be as long as a name can be.
        part = os.path.join(folder, f".{uuid.uuid4().hex}.part")
        try:
            with open(open_private(part), "wb") if self._is_private else open(part, "xb") as file:
                shutil.copyfileobj(content, file)
                file.flush()
                os.fsync(file.fileno())
            os.rename(part, path)
        except BaseException:  # an interrupt too may leave no part behind
            with contextlib.suppress(FileNotFoundError):
                os.unlink(part)
            raise
        _keep_entries(folder)


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
            # Like a rename: time and size tell this content from another. And check the source a last time: a publisher
            # that slept while another one moved the file, and a later run replaced it, would bring it back.
            shutil.copystat(source, part.name)
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


def _keep_entries(folder: str) -> None:
    """Let a rename in `folder` outlive a power cut."""
    entries = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(entries)
    finally:
        os.close(entries)


def _stat(path: str) -> FileInfo | None:
    try:
        return _info(path, os.stat(path))
    except (FileNotFoundError, NotADirectoryError):
        return None


def _info(path: str, status: os.stat_result) -> FileInfo:
    return FileInfo(path, status.st_size, status.st_mtime_ns // 1_000_000)
