"""One look at the folders of a source: what is there, before anybody asks what of it is new."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from airflow_bookmarks.core.listing import Listing
from airflow_bookmarks.core.virtual_shard import virtual_shards

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from datetime import datetime

    import numpy.typing as npt

    from airflow_bookmarks.core.shard import ShardBy, VirtualShard
    from airflow_bookmarks.files.filesystem import FileSystem


@dataclass(frozen=True, slots=True, eq=False)
class Look:
    """One look at some folders: what was listed, under which root each file was found, what was left out, and when."""

    listing: Listing
    root_of: Sequence[str]
    skipped: Mapping[str, int]
    listed_at: datetime
    _numbers: dict[ShardBy, npt.NDArray[np.uint8]] = field(default_factory=dict)
    _samples: list[tuple[str, str]] = field(default_factory=list)

    def belongs_to(self, shard: VirtualShard) -> npt.NDArray[np.bool_]:
        """Say which files belong to a virtual shard. What is hashed is hashed once, for all 64 of them.

        Raises:
            OptionError: it goes by partition, and a file lies in none.
        """
        if shard.by not in self._numbers:
            self._numbers[shard.by] = virtual_shards(self.listing.paths, shard.by)
        is_own: npt.NDArray[np.bool_] = self._numbers[shard.by] == shard.number
        return is_own

    def one_of_each_folder(self) -> Sequence[tuple[str, str]]:
        """Return the path and root of one file of each folder: all files of a folder have the same partition."""
        if not self._samples and len(self.listing):
            first: dict[tuple[str, str], str] = {}
            for path, root in zip(self.listing.paths, self.root_of, strict=True):
                first.setdefault((path.rpartition("/")[0], root), path)
            self._samples.extend((path, root) for (_, root), path in first.items())
        return self._samples


class Looks:
    """The looks of one task: its virtual shards read the same folders, which are listed once for all of them."""

    def __init__(self) -> None:
        self._kept: dict[tuple[tuple[str, ...], bool], Look] = {}

    def at(self, roots: tuple[str, ...], recursive: bool, look: Callable[[], Look]) -> Look:
        """Return the look at these roots, which `look` takes if nobody did before."""
        key = roots, recursive
        if key not in self._kept:
            self._kept[key] = look()
        return self._kept[key]


def look_at(files: FileSystem, roots: Sequence[str], *, recursive: bool, listed_at: datetime) -> Look:
    """List the input files below all roots; one that lies below several belongs to the first.

    Raises:
        SourceError: a root is not there, or can't be listed: a part is never taken for the whole.
    """
    parts: list[Listing] = []
    root_of: list[str] = []
    skipped: dict[str, int] = {}
    for root in roots:
        listed = files.list(root, recursive=recursive)
        parts.append(listed.files)
        root_of += [root] * len(listed.files)
        for reason, count in listed.skipped.items():
            skipped[reason] = skipped.get(reason, 0) + count
    listing = parts[0] if len(parts) == 1 else Listing.of(file for part in parts for file in part)
    if len(parts) > 1 and len(set(listing.paths)) < len(listing):
        # Roots that lie within each other: each file once, under the first root that names it.
        first = {path: i for i, path in reversed(list(enumerate(listing.paths)))}
        keep = np.array(sorted(first.values()), np.intp)
        listing, root_of = listing.take(keep), [root_of[i] for i in keep]
    return Look(listing, root_of, skipped, listed_at)
