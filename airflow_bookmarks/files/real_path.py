"""Resolve real paths: two spellings of one place, by links, by mounts, or where a file system folds case.

Canonical paths are compared as text, and a job's inputs and outputs keep the spelling that was given: the ledger holds
paths. Before something is refused or deleted, one path is respelled as the other has it.
"""

from __future__ import annotations

import os
from functools import cache
from typing import TYPE_CHECKING

from airflow_bookmarks.core.selection.partition import placed, roots_above

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


def real_path(path: str) -> str:
    """Return a canonical path with its links followed. Object stores and HDFS have none: there it stays as it is."""
    return os.path.realpath(path) if _is_local(path) else path


def real_paths(paths: Iterable[str]) -> list[str]:
    """Return files with the links of their folders followed, each folder once. A link to a file is a file itself."""
    real_folder = cache(real_path)
    split = [path.rpartition("/") for path in paths]
    return [f"{real_folder(folder).rstrip('/')}/{name}" if _is_local(folder) else f"{folder}/{name}"
            for folder, _, name in split]  # fmt: skip


def respelled(path: str, root: str) -> str:
    """Return a path in the spelling that begins with `root`, if it really lies there; else as it is.

    Both are canonical. Neither has to exist: what exists of them is compared as the file system knows it.

    Example:
        >>> respelled("/lake/raw/day=1", "/lake/raw"), respelled("s3a://lake/out", "/lake/raw")
        ('/lake/raw/day=1', 's3a://lake/out')
    """
    if _is_within(path, root) or not (_is_local(path) and _is_local(root)):
        return path
    folder, real_root = os.path.realpath(path), os.path.realpath(root)
    if _is_within(folder, real_root):
        return _joined(root, folder[len(real_root) :])
    # A bind mount is no link, and `Raw` may be `raw`: the file system tells by its numbers.
    wanted, below = _identity(real_root), ""
    while wanted is not None:
        if _identity(folder) == wanted:
            return _joined(root, below)
        if folder == "/":
            break
        folder, name = os.path.split(folder)
        below = f"/{name}{below}"
    return path


def _is_local(path: str) -> bool:
    return path.startswith("/")


def _is_within(path: str, root: str) -> bool:
    return f"{path.rstrip('/')}/".startswith(f"{root.rstrip('/')}/")


def _joined(root: str, below: str) -> str:
    below = below.strip("/")
    return f"{root.rstrip('/')}/{below}" if below else root


def _identity(path: str) -> tuple[int, int] | None:
    try:
        status = os.stat(path)
    except OSError:  # it is not there, or not readable: then no one reads through it either
        return None
    return status.st_dev, status.st_ino


class RealRoots:
    """Many roots, each resolved once, to find those that a path really lies in; else as `respelled` has it."""

    def __init__(self, roots: Sequence[str]) -> None:
        self._place_of = placed(roots)
        self._by_real: dict[str, list[str]] = {}
        self._by_identity: dict[tuple[int, int], list[str]] = {}
        for root in self._place_of:
            if _is_local(root):
                real = os.path.realpath(root)
                self._by_real.setdefault(real, []).append(root)
                identity = _identity(real)
                if identity is not None:
                    self._by_identity.setdefault(identity, []).append(root)

    def spellings(self, path: str) -> dict[str, str]:
        """Return by root the spelling of a path that begins with it, of each root that it lies in.

        Example:
            >>> RealRoots(["/lake/raw", "/lake/done"]).spellings("/lake/raw/day=1")
            {'/lake/raw': '/lake/raw/day=1'}
        """
        found = dict.fromkeys(roots_above(path, self._place_of), path)
        if not _is_local(path):
            return found
        folder, below = os.path.realpath(path), ""
        while True:
            identity = _identity(folder)
            same = [] if identity is None else self._by_identity.get(identity, [])
            for root in (*self._by_real.get(folder, ()), *same):
                found.setdefault(root, _joined(root, below))
            if folder == "/":
                return found
            folder, name = os.path.split(folder)
            below = f"/{name}{below}"
