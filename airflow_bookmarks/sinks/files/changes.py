"""File changes: the moves, deletes and removals of a job, all checked to be its own before the first is made.

Nothing else in the package moves, deletes or removes files that state names: only this module calls `open_to_change` (a
test checks it), and its callers pass the whole list, with the bounds to check it by.
"""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Self

from airflow_bookmarks.core.errors import MisuseError
from airflow_bookmarks.core.rules.territory import SIDE_FOLDER, StagingBounds, Territory, is_root
from airflow_bookmarks.files.filesystem import store_of
from airflow_bookmarks.files.local import LocalFileSystem
from airflow_bookmarks.files.opener import open_filesystem, open_to_change
from airflow_bookmarks.files.real_path import real_path

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from airflow_bookmarks.core.rules.territory import OutputBounds, PurgeBounds, SourceBounds
    from airflow_bookmarks.core.selection.listing import FileInfo
    from airflow_bookmarks.files.filesystem import ChangeableFileSystem

Move = tuple[str, str]
HEAD_STAGING = "HEAD, staging"  # the item that names staging roots, as errors name it


@dataclass(frozen=True)
class FileChanges:
    """Moves, deletes and removals in one file system that the job is allowed to make.

    Made by `of_output`, `of_staging`, `of_source` and `of_purge`, which check all of them and touch nothing.
    """

    moves: Sequence[Move]
    deletes: Sequence[str]
    folders: Sequence[str]
    _files: ChangeableFileSystem
    _checked: frozenset[str | Move] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_checked", frozenset([*self.moves, *self.deletes]))

    @classmethod
    def of_output(cls, bounds: OutputBounds, moves: Sequence[Move] = (), deletes: Sequence[str] = ()) -> Self:
        """Return what publishing an output changes.

        Raises:
            OutOfBoundsError: a path is none that the run may have listed, or a link leads elsewhere.
        """
        links = _Links(bounds.territory, bounds.item)
        for source, target in moves:
            staged_below, published_below = bounds.check_move(source, target)
            links.check(source, staged_below)
            links.check(target, published_below)
            if store_of(source) != store_of(target):
                raise bounds.territory.refuse(bounds.item, source, f"it lies on another file system than {target!r}")
        for path in deletes:
            links.check(path, bounds.check_delete(path))
        return cls(tuple(moves), tuple(deletes), (), open_to_change(bounds.target))

    @classmethod
    def of_own_files(cls, paths: Sequence[tuple[OutputBounds, str]]) -> Self:
        """Return the deletes of files that runs have published, each with the bounds of its output; all in one store.

        Raises:
            OutOfBoundsError: a file is none that its run published, or a link leads elsewhere.
        """
        links: dict[str, _Links] = {}
        for bounds, path in paths:
            of_item = links.setdefault(bounds.item, _Links(bounds.territory, bounds.item))
            of_item.check(path, bounds.check_own(path))
        return cls((), tuple(path for _, path in paths), (), open_to_change(paths[0][1]))

    @classmethod
    def of_staging(cls, bounds: StagingBounds, folders: Sequence[str]) -> Self:
        """Return the removals of folders that runs have staged; all lie on one file system.

        Raises:
            OutOfBoundsError: a folder is none of this job, or a link leads elsewhere.
        """
        links = _Links(bounds.territory, bounds.item)
        for folder in folders:
            below = bounds.check_folder(folder)
            if is_root(folder):
                raise bounds.territory.refuse(bounds.item, folder, "it is a whole file system or bucket")
            links.check(f"{folder}/part", below)
        return cls((), (), tuple(folders), open_to_change(folders[0] if folders else "/"))

    @classmethod
    def of_source(cls, bounds: SourceBounds, moves: Sequence[Move] = (), deletes: Sequence[str] = ()) -> Self:
        """Return what putting read files away changes. Links are the user's own there: Spark has read through them.

        Raises:
            OutOfBoundsError: a file lies in no root of its context, or is to go elsewhere than into the archive.
        """
        for source, target in moves:
            bounds.check_move(source, target)
        for path in deletes:
            bounds.check_delete(path)
        return cls(tuple(moves), tuple(deletes), (), open_to_change(next(iter(bounds.roots))))

    @classmethod
    def of_purge(cls, bounds: PurgeBounds, deletes: Sequence[str]) -> Self:
        """Return the deletes of a purge that a script has asked for by name, to be made at once.

        Raises:
            OutOfBoundsError: a file lies elsewhere, or is staged; a link leads elsewhere; the folder is a whole bucket.
        """
        links = _Links(bounds.territory, bounds.item)
        for path in deletes:
            links.check(path, bounds.check_purge(path))
        return cls((), tuple(deletes), (), open_to_change(bounds.folder))

    def stat(self, paths: Sequence[str]) -> Sequence[FileInfo | None]:
        """Return files as they are now; see `FileSystem.stat`."""
        return self._files.stat(paths)

    # ---- make them

    def move(self, then: Callable[[Move, bool], None]) -> None:
        """Make the moves, as fast as the store allows; `then` gets each, and whether its source was there."""
        self._files.concurrency.each(lambda move: self._files.move(*move), self.moves, then)

    def delete(
        self,
        then: Callable[[str, bool], None] = lambda path, was_there: None,
        *,
        only: Collection[str] | None = None,
    ) -> None:
        """Make the deletes, or `only` some, as fast as the store allows; `then` gets each, and whether it was there."""
        wanted = self.deletes if only is None else [path for path in self.deletes if path in only]
        self._files.concurrency.each(self._files.delete, wanted, then)

    def remove(self) -> None:
        """Remove the folders."""
        for folder in self.folders:
            self._files.remove(folder)

    def delete_one(self, path: str) -> bool:
        """Delete one of the checked files; return whether it was there."""
        if path not in self._checked:
            raise MisuseError(f"{path!r} was not checked before it was to be deleted. Nothing was changed.")
        return self._files.delete(path)

    def move_to_free(self, source: str, target: str) -> bool:
        """Move a file to a name that was free when checked, and that another job may have taken since.

        Return False if the file is gone meanwhile.

        A local disk gives a name to one job only: an empty file reserves it until the move. An object store is asked
        again just before.

        Raises:
            FileExistsError: the name is taken. OSError: the file can't be moved.
        """
        if (source, target) not in self._checked:
            raise MisuseError(f"{source!r} was not checked before it was to be moved. Nothing was changed.")
        if not isinstance(self._files, LocalFileSystem):
            if self._files.stat([target])[0] is not None:
                raise FileExistsError(f"{target!r} was taken by another job at the same time")
            return self._files.move(source, target)
        os.makedirs(os.path.dirname(target), exist_ok=True)
        with open(target, "xb"):
            pass
        is_moved = False
        try:
            is_moved = self._files.move(source, target)
        finally:
            with suppress(OSError):  # the error of the move is the one to report
                if not is_moved and os.path.getsize(target) == 0:
                    os.unlink(target)
        return is_moved


def staged_folders(bounds: StagingBounds, root: str, is_wanted: Callable[[str], bool]) -> FileChanges:
    """Return the removal of the folders in a staging root whose names are wanted.

    Raises:
        OutOfBoundsError: it is no staging root of the job. OSError, SourceError, OptionError: it is out of reach.
    """
    bounds.territory.check_staging_root(bounds.item, root.removesuffix(SIDE_FOLDER))
    names = [name for name in open_filesystem(root).folders(root) if is_wanted(name)]
    return FileChanges.of_staging(bounds, [f"{root}/{name}" for name in names])


class _Links:
    """Follows the links of local folders, each once: below what a path is measured by, there may be none."""

    def __init__(self, territory: Territory, item: str) -> None:
        self._territory, self._item = territory, item
        self._checked: set[tuple[str, str]] = set()
        self._real = cache(real_path)

    def check(self, path: str, below: str) -> None:
        """Check that a file below a folder really lies there."""
        folder = path.rpartition("/")[0]
        if not path.startswith("/") or (folder, below) in self._checked:
            return
        real, base = self._real(folder), self._real(below)
        if real.rstrip("/") != f"{base.rstrip('/')}{folder[len(below.rstrip('/')) :]}":
            advice = "Let a folder stand in the place of that link."
            raise self._territory.refuse(self._item, path, f"a link leads from there to {real!r}", advice)
        self._checked.add((folder, below))
