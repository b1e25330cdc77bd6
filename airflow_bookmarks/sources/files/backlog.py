"""Keep what is left of one listing for the next batches of a loop.

Folders are listed and compared with the ledger once; each batch takes its part of what was new then, from memory. That
holds as long as the bookmark stands where the batch before has left it. Otherwise the next batch lists anew.

    batch 1   list, classify, select -> all that is new, in reading order -> the bound takes its part -> commit
    batch 2                             what is left of it                -> the bound takes its part -> commit
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from airflow_bookmarks.core.ledger.file_ledger import Ledger, Load
from airflow_bookmarks.core.ledger.segment import PathHashes, Segment, blake2b_64, opened
from airflow_bookmarks.core.selection.listing import FileInfo, Listing
from airflow_bookmarks.core.selection.partition import placed, roots_above
from airflow_bookmarks.core.selection.reason import MISSING

if TYPE_CHECKING:
    import numpy.typing as npt

    from airflow_bookmarks.core.files.file_plan import FilePlan
    from airflow_bookmarks.core.position import Position
    from airflow_bookmarks.sources.source import PlanInput


@dataclass(slots=True)
class Rest:
    """What one listing has left: rows of the files of `whole`, which is the plan that would read all at once.

    `listing` is what these were chosen from; `read` counts what batches have read so far, and `missing` are the files
    that they have left to a later run because they went.
    """

    whole: FilePlan
    listing: Listing
    rows: npt.NDArray[np.intp]
    read: int = 0
    missing: tuple[FileInfo, ...] = ()
    _collided: Listing | None = field(default=None, init=False)
    _place_of: Mapping[str, int] | None = field(default=None, init=False)

    def among(self, files: Listing) -> Listing:
        """Return of the whole listing what a ledger needs to know to tell these files from all others.

        That is themselves, and the paths that share their 64 bits with another one: all but always there are none.
        """
        if self._collided is None:
            collisions = PathHashes(blake2b_64).hashed(self.listing).collisions
            rows = [row for collision in collisions for row in collision]
            self._collided = self.listing.take(np.array(rows, np.intp))
        if not len(self._collided):
            return files
        return Listing.of({file.path: file for part in (self._collided, files) for file in part}.values())

    def bases_of(self, files: Listing) -> tuple[str, ...]:
        """Return those bases of the whole plan that these of its files lie below, in its order."""
        if self._place_of is None:
            self._place_of = placed(self.whole.bases)
        folders = files.in_folders().in_use()
        bases = {base for folder in folders for base in roots_above(folder, self._place_of)}
        bases.update(path for path in files.paths if path in self._place_of)  # a file is its own base
        return tuple(sorted(bases, key=self._place_of.__getitem__))


class Backlog:
    """What the batches of one loop share of one context.

    `last_run` is the run up to which the first batch found an upstream published: the loop ends there.
    """

    def __init__(self) -> None:
        self.last_run: int | None = None
        self._asked: Hashable = None
        self._rest: Rest | None = None
        self._position: bytes | None = None
        self._segments: dict[str, Segment] = {}

    def rest_at(self, asked: Hashable, position: bytes | None) -> Rest | None:
        """Return what is left, if the same is `asked` and the bookmark stands where the last batch has left it."""
        return self._rest if (self._asked, self._position) == (asked, position) else None

    def begin(self, asked: Hashable, position: bytes | None, rest: Rest) -> None:
        """Keep what a new listing has left after its first batch, which started from `position`."""
        self._asked, self._position, self._rest = asked, position, rest

    def ledger_at(self, found: PlanInput) -> Ledger:
        """Return the ledger at a position, whose segments come from the store once, and never those written here."""
        return Ledger.empty() if found.position is None else Ledger.from_root(found.position, self._load(found.load))

    def advanced(self, plan: FilePlan, position: Position | None) -> None:
        """Record what a batch has read, and where the bookmark stands once it commits (None: where it stood)."""
        if self._rest is not None:
            self._rest.read += len(plan)
            self._rest.missing += tuple(plan.unread.get(MISSING, ()))
        if position is not None:
            self._position = position.body
            self._segments |= {name: Segment.from_bytes(data, name) for name, data in position.blobs.items()}

    def _load(self, load: Load) -> Load:
        def remembered(ids: Sequence[str]) -> Mapping[str, Segment]:
            missing = [name for name in ids if name not in self._segments]
            if missing:
                self._segments |= {name: opened(found, name) for name, found in load(missing).items()}
            return {name: self._segments[name] for name in ids if name in self._segments}

        return remembered
