"""Filter a scan: which folders are listed at all, and which files are input.

    /lake/raw/2013-*/x.csv     a pattern: `/lake/raw` is listed, and in it only folders that can match are entered
    partition_filter, _time    folders in which nothing can be wanted are not entered either
    pathGlobFilter, exclusions files that are left out, and counted as excluded

What this leaves out is no part of the ledger: it is read as soon as the options let it in.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum
from typing import TYPE_CHECKING

import numpy as np

from airflow_bookmarks.core.errors import SourceMissingError
from airflow_bookmarks.core.selection.listing import Listing
from airflow_bookmarks.core.selection.partition import is_partition
from airflow_bookmarks.core.selection.reason import EXCLUDED, NESTED
from airflow_bookmarks.files.filesystem import store_of

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence

    import numpy.typing as npt

    from airflow_bookmarks.core.selection.glob import Exclusions, Glob, NamePattern
    from airflow_bookmarks.files.filesystem import FileSystem
    from airflow_bookmarks.sources.files.partition_rule import PartitionRule


@dataclass(frozen=True, slots=True)
class ScanRoot:
    """What is loaded: a folder or file, or, with a glob, what matches below that folder.

    `pattern` is what it was made of, where that was a pattern. One with alternatives that have slashes in them makes
    several places: of such a place, `is_alternative`, the root may be missing, since for Hadoop they are one union.
    """

    root: str
    glob: Glob | None = None
    pattern: str | None = None
    is_alternative: bool = False

    def below(self, path: str) -> str:
        """Return a path without the root; empty for the root itself."""
        return path[len(self.root) :].strip("/")

    def reads(self, folder: str, *, recursive: bool) -> bool:
        """Whether what is written into a folder is read from here."""
        if not self.holds(folder):
            return False
        if self.glob is None:
            return folder == self.root or recursive or all(map(is_partition, self.below(folder).split("/")))
        names = self.below(folder)
        level = len(names.split("/")) if names else 0
        is_read = level >= self.glob.depth - 1 if recursive else level in (self.glob.depth - 1, self.glob.depth)
        return is_read and (not names or self.glob.may_match(names))

    def lies_in(self, folder: str) -> bool:
        """Whether a folder holds what is read from here."""
        if self.root.startswith(f"{folder.rstrip('/')}/"):
            return True
        if self.glob is None or not self.holds(folder):
            return False
        return folder == self.root or self.glob.may_match(self.below(folder))

    def holds(self, path: str) -> bool:
        """Whether a path is the root, or lies below it."""
        return f"{path.rstrip('/')}/".startswith(f"{self.root.rstrip('/')}/")


@dataclass(frozen=True, slots=True)
class Names:
    """Which files are left out by their names."""

    pattern: NamePattern | None = None
    exclusions: Exclusions | None = None

    def excludes(self, path: str) -> bool:
        """Whether a file is left out, by its path below the root."""
        if self.pattern is not None and not self.pattern.matches(path.rpartition("/")[2]):
            return True
        return self.exclusions is not None and self.exclusions.matches(path)


@dataclass(frozen=True, slots=True, eq=False)
class ScanResult:
    """The content of a place: the input files, the folder below which Spark reads each, and what was left out.

    `is_there` tells whether a pattern matched anything; `missing` is the error of an alternative that has no root;
    `links` are what of it lies elsewhere.
    """

    files: Listing
    base_of: Sequence[str]
    skipped: dict[str, int]
    is_there: bool = True
    missing: SourceMissingError | None = None
    links: Sequence[str] = ()


@dataclass(slots=True)
class ScanFilter:
    """Lists places, and keeps what is input.

    Args:
        recursive: whether folders that are no partition are descended into.
        names: which files are left out by their names.
        rule: which partitions are listed; None: all.
        may_be_gone: whether a folder of an object store counts as empty where there is nothing.

    `pruned` counts the folders that `rule` left out.
    """

    recursive: bool = False
    names: Names = Names()
    rule: PartitionRule | None = None
    may_be_gone: bool = False
    pruned: int = field(default=0, init=False)

    def list(self, files: FileSystem, place: ScanRoot, saw: Callable[[int], None] | None = None) -> ScanResult:
        """List one place. What partitions it holds is judged by `judge`, once all places are listed.

        Raises:
            SourceError: it can't be listed, or it is not there and no alternative.
            OptionError: the rule can't judge a partition.
        """
        entrance = _Entrance(place.glob, self.rule)
        is_open = place.glob is None and self.rule is None
        recursive = self.recursive or place.glob is not None
        try:
            listed = files.list(place.root, recursive=recursive, enters=None if is_open else entrance, saw=saw)
        except SourceMissingError as error:
            if self.may_be_gone and store_of(place.root) != store_of("/"):  # a local folder outlives its files
                return ScanResult(Listing.of([]), [], {})
            if not place.is_alternative:
                raise
            return ScanResult(Listing.of([]), [], {}, is_there=False, missing=error)
        self.pruned += entrance.pruned
        skipped = dict(listed.skipped)
        found, base_of = listed.files, [place.root] * len(listed.files)
        if place.glob is not None:
            found, base_of = _matching(found, place, place.glob, self.recursive, skipped)
        is_there = place.glob is None or len(found) > 0 or entrance.has_matched
        if self.names != Names():
            excludes = self.names.excludes
            is_out = np.array([excludes(place.below(path) or path) for path in found.paths], np.bool_)
            _count(skipped, EXCLUDED, int(np.count_nonzero(is_out)))
            found, base_of = _rows(found, base_of, np.flatnonzero(~is_out))
        return ScanResult(found, base_of, skipped, is_there, links=listed.links)

    def judge(self, listing: Listing, base_of: Sequence[str]) -> npt.NDArray[np.bool_] | None:
        """Say which files lie in partitions that are read; None: all.

        A type that was not known while folders were entered is known now that all of them were seen.

        Raises:
            OptionError: a partition can't be judged, or a column asked for is none of theirs.
        """
        if self.rule is None:
            return None
        folders = listing.in_folders()
        names_of = {
            int(folders.numbers[row]): _folders_between(listing.paths[row], base_of[row])
            for row in folders.first_files()
        }
        for names in names_of.values():
            self.rule.see(names)
        self.rule.check(len(listing))
        types = self.rule.settled()
        is_taken = np.zeros(len(folders.names), np.bool_)
        for number, names in names_of.items():
            is_taken[number] = self.rule.takes(names, types)
            self.pruned += not is_taken[number]
        return is_taken[folders.numbers]


@dataclass(slots=True)
class _Entrance:
    """Which folders of a place are entered: the `enters` of a listing, as `Pruning` has it."""

    glob: Glob | None
    rule: PartitionRule | None
    pruned: int = 0  # by the rule
    has_matched: bool = False  # whether the pattern named a folder

    def __call__(self, folder: str) -> bool:
        if self.glob is not None and not self.glob.may_match(folder):
            return False
        names = self._below_base(folder)
        self.has_matched = self.has_matched or names == ()
        if not names or self.rule is None or self.rule.enters(names):
            return True
        self.pruned += 1
        return False

    def is_whole(self, folder: str) -> bool:
        names = self._below_base(folder)
        if names is None:  # above what the pattern names
            return False
        return self.rule is None or (names != () and self.rule.is_whole(names))

    def _below_base(self, folder: str) -> tuple[str, ...] | None:
        names = tuple(folder.split("/"))
        depth = 0 if self.glob is None else self.glob.depth
        return names[depth:] if len(names) >= depth else None


class Below:
    """Enters some folders, with what is above and below them: the `enters` of a listing, as `Pruning` has it.

    Args:
        root: what is listed.
        folders: whole paths.
    """

    def __init__(self, root: str, folders: Collection[str]) -> None:
        self._inside = f"{root.rstrip('/')}/"
        self._folders = frozenset(folders)
        self._above = frozenset(above for folder in folders for above in _above(folder))

    def __call__(self, folder: str) -> bool:
        """Whether a folder is entered."""
        path = f"{self._inside}{folder}"
        return path in self._above or self._holds(path)

    def is_whole(self, folder: str) -> bool:
        """Whether all below it is entered."""
        return self._holds(f"{self._inside}{folder}")

    def _holds(self, path: str) -> bool:
        return path in self._folders or not self._folders.isdisjoint([*_above(path), "/"])


def _above(path: str) -> Iterator[str]:
    while path := path.rpartition("/")[0]:
        yield path


class _Files(IntEnum):
    """What a pattern makes of the files of a folder."""

    NONE = 0
    ALL = 1
    NESTED = 2  # below a folder that it names, in one that is no partition
    BY_NAME = 3  # it names files in here


def _matching(
    files: Listing, place: ScanRoot, glob: Glob, recursive: bool, skipped: dict[str, int]
) -> tuple[Listing, list[str]]:
    """Return what a pattern matches, and for each file the folder that Spark takes as its root.

    That is the folder that matches, so that partition columns appear below it only; of a file that matches by itself,
    its folder, which gives none.
    """
    folders = files.in_folders()
    verdicts: list[_Files] = []
    bases: list[str] = []
    for folder in folders.names:
        below = place.below(folder)
        names = below.split("/") if below else []
        # Where the root is a file, its folder lies above it, and a pattern below it matches nothing.
        verdicts.append(_verdict(names, glob, recursive) if place.holds(folder) else _Files.NONE)
        extra = len(names) - glob.depth
        bases.append(folder.rsplit("/", extra)[0] if extra > 0 else folder)
    codes = np.array(verdicts, np.int8)[folders.numbers]
    is_taken = codes == _Files.ALL
    for row in np.flatnonzero(codes == _Files.BY_NAME).tolist():
        is_taken[row] = glob.parts[-1].matches(files.paths[row].rpartition("/")[2])
    _count(skipped, NESTED, int(np.count_nonzero(codes == _Files.NESTED)))
    rows = np.flatnonzero(is_taken)
    return files.take(rows), [bases[number] for number in folders.numbers[rows].tolist()]


def _verdict(names: Sequence[str], glob: Glob, recursive: bool) -> _Files:
    if len(names) < glob.depth - 1 or not (not names or glob.may_match("/".join(names))):
        return _Files.NONE
    if len(names) == glob.depth - 1:
        return _Files.BY_NAME
    is_input = recursive or all(map(is_partition, names[glob.depth :]))
    return _Files.ALL if is_input else _Files.NESTED


def _folders_between(path: str, base: str) -> Sequence[str]:
    return path[len(base) :].strip("/").split("/")[:-1]


def _rows(files: Listing, base_of: Sequence[str], rows: npt.NDArray[np.intp]) -> tuple[Listing, list[str]]:
    return files.take(rows), [base_of[row] for row in rows.tolist()]


def _count(skipped: dict[str, int], reason: str, count: int) -> None:
    if count:
        skipped[reason] = skipped.get(reason, 0) + count
