"""List local folders into columns, one folder after the other.

A folder is opened once and its entries are read relative to it: the path from `/` down to a file, which the system
would otherwise resolve for each of a million files, is resolved once for a folder. Entries are processed in small lots:
the memory that Python keeps for each (an entry remembers its stat) is freed before the next lot, which finds the same
memory warm. With lots of 2,048 the same took a fifth longer, and a third longer where a folder is large.

Threads were measured and left out: two, folder by folder, took a quarter longer than one, by the lock of Python that
they pass to each other for each stat.
"""

from __future__ import annotations

import os
from array import array
from bisect import bisect_left
from itertools import islice
from operator import attrgetter
from typing import TYPE_CHECKING

import numpy as np

from airflow_bookmarks.core.errors import SourceError
from airflow_bookmarks.core.selection.listing import Folders, Listing
from airflow_bookmarks.core.selection.partition import is_partition
from airflow_bookmarks.core.selection.reason import HIDDEN, NESTED, SPECIAL
from airflow_bookmarks.files.filesystem import Listed
from airflow_bookmarks.files.input import is_hidden

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    Entries = list[os.DirEntry[str]]

_SORTED = 4096  # entries of a folder that are sorted together, and at most so many are held
_AT_ONCE = 128  # entries that are processed together

_name_of = attrgetter("name")


def list_folder(
    root: str,
    *,
    recursive: bool = False,
    enters: Callable[[str], bool] | None = None,
    saw: Callable[[int], None] | None = None,
) -> Listed:
    """List the input files below a folder: those of a folder by their names, then its folders by theirs.

    Of a folder with thousands of entries each 4,096 are sorted, as it gives them. The arguments are those of
    `FileSystem.list`.

    Raises:
        SourceError: the name of a file that is input is not UTF-8.
        OSError: a folder can't be listed, or is gone; its `filename` is a whole path.
    """
    walk = _Walk(root, recursive, enters, saw)
    ahead = [(root, False)]
    while ahead:
        folder, is_nested = ahead.pop()
        ahead += reversed(walk.go_into(folder, is_nested))
    return walk.listed()


class _Walk:
    """What a listing has seen so far. Files of one folder stand together in the columns."""

    def __init__(
        self,
        root: str,
        recursive: bool,
        enters: Callable[[str], bool] | None,
        saw: Callable[[int], None] | None,
    ) -> None:
        self._recursive, self._enters, self._saw = recursive, enters, saw
        self._below = len(_inside(root))
        self._skipped: dict[str, int] = {}
        self._pruned = 0
        self._paths: list[str] = []
        self._sizes = array("q")
        self._times_ms = array("q")
        self._folders: list[str] = []
        self._counts: list[int] = []  # of files in each of these
        self._links: list[str] = []

    def listed(self) -> Listed:
        """Return what was found, in columns."""
        sizes, times_ms = np.array(self._sizes, np.int64), np.array(self._times_ms, np.int64)
        folders = Folders.in_turn(self._folders, self._counts)
        return Listed(Listing(self._paths, sizes, times_ms, folders=folders), self._skipped, self._pruned, self._links)

    def go_into(self, folder: str, is_nested: bool) -> Sequence[tuple[str, bool]]:
        """Take the files of one folder; return the folders in it that are to be listed, and which are nested."""
        first, inside = len(self._paths), _inside(folder)
        names: list[str] = []
        opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            with os.scandir(opened) as entries:
                for lot in _lots(entries):
                    self._add(inside, self._input(lot, is_nested, names))
                    if self._saw is not None:
                        self._saw(len(lot))
        except OSError as error:
            # Below an open folder an entry is known by its name alone, and the folder itself by a number.
            error.filename = os.path.join(inside, error.filename) if isinstance(error.filename, str) else folder
            raise
        finally:
            os.close(opened)
        if len(self._paths) > first:
            self._folders.append(inside[:-1])
            self._counts.append(len(self._paths) - first)
        return self._entered(inside, sorted(names), is_nested)

    def _input(self, lot: Entries, is_nested: bool, folders: list[str]) -> Entries:
        """Return which entries of a lot are input; count the others, and add the names of folders to `folders`."""
        names = [entry.name for entry in lot]
        if not _may_hold_hidden(names) and all(map(os.DirEntry.is_file, lot)):  # nearly every lot
            if not is_nested:
                return lot
            self._skip(NESTED, len(lot))
            return []
        files: Entries = []
        for entry in lot:
            if is_hidden(entry.name):
                self._skip(HIDDEN)
            elif entry.is_dir():
                folders.append(entry.name)
            elif is_nested:
                self._skip(NESTED)
            elif not entry.is_file():  # a pipe, a socket, a link that leads nowhere
                self._skip(SPECIAL)
            else:
                files.append(entry)
        return files

    def _skip(self, reason: str, count: int = 1) -> None:
        self._skipped[reason] = self._skipped.get(reason, 0) + count

    def _add(self, inside: str, files: Entries) -> None:
        """Add files of one folder to the columns."""
        if not files:
            return
        _check_utf8(inside, files)
        try:
            stats = list(map(os.DirEntry.stat, files))
        except FileNotFoundError:  # it went while we listed: it was not there
            files = [entry for entry in files if _is_there(entry)]
            stats = list(map(os.DirEntry.stat, files))  # which an entry remembers
        self._paths += [inside + entry.name for entry in files]
        if any(map(os.DirEntry.is_symlink, files)):  # which an entry knows without a stat
            self._links += [inside + entry.name for entry in files if entry.is_symlink()]
        self._sizes += array("q", [stat.st_size for stat in stats])
        self._times_ms += array("q", [stat.st_mtime_ns // 1_000_000 for stat in stats])

    def _entered(self, inside: str, names: Sequence[str], is_nested: bool) -> Sequence[tuple[str, bool]]:
        entered = []
        for name in names:
            folder = inside + name
            if self._enters is None or self._enters(folder[self._below :]):
                entered.append((folder, is_nested or not (self._recursive or is_partition(name))))
                if not entered[-1][1] and os.path.islink(folder):
                    self._links.append(folder)
            else:
                self._pruned += 1
        return entered


def _inside(folder: str) -> str:
    """Return what the paths of all entries of a folder begin with."""
    return folder if folder.endswith("/") else f"{folder}/"


def _lots(entries: Iterator[os.DirEntry[str]]) -> Iterator[Entries]:
    """Yield entries in lots, sorted by name, and let go of each lot when the next one is asked for."""
    while some := list(islice(entries, _SORTED)):
        some.sort(key=_name_of, reverse=True)
        while some:
            yield some[: -_AT_ONCE - 1 : -1]  # from the end, where a list gives up what it holds at no cost
            del some[-_AT_ONCE:]


def _may_hold_hidden(names: Sequence[str]) -> bool:
    """Whether to ask `is_hidden` about each of some sorted names: never False where one is hidden, and quick."""
    for beginning in "._":
        at = bisect_left(names, beginning)
        if names[at : at + 1] and names[at].startswith(beginning):
            return True
    return "_/" in "/".join([*names, ""])  # one ends so; no name has a slash


def _is_there(entry: os.DirEntry[str]) -> bool:
    try:
        entry.stat()
    except FileNotFoundError:
        return False
    return True


def _check_utf8(inside: str, files: Entries) -> None:
    try:
        "".join([inside, *(entry.name for entry in files)]).encode()
    except UnicodeEncodeError as error:
        path = next(path for entry in files if not _is_utf8(path := inside + entry.name))
        raise SourceError(
            f"the name of {os.fsencode(path)!r} is not UTF-8. Nothing was read or changed. Rename the file, or begin "
            "its name with '_' or '.' to leave it out."
        ) from error


def _is_utf8(path: str) -> bool:
    try:
        path.encode()
    except UnicodeEncodeError:
        return False
    return True
