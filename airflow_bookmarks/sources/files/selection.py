"""Select the files of a listing that a run reads: at first all new ones, then fewer with each reason."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    from airflow_bookmarks.core.selection.listing import Listing


class Selection:
    """The selected rows of `listing`, and the others by reason; each row has one reason, the first that applies.

    Args:
        listing: the files to choose from.
        wanted: which of them are new, a mask over `listing`; it is not changed.

    `ranks` gives the order of reading, a number for each row of `listing`, ties by path; None: oldest first.

    `counts` has the number of files that are left out by reason, and `left` their rows in `listing`; `stored` has those
    that the plan keeps by name, oldest first; `rows` those that only the present listing can name.
    """

    def __init__(self, listing: Listing, wanted: npt.NDArray[np.bool_]) -> None:
        self.listing = listing
        self.wanted = wanted.copy()
        self.ranks: npt.NDArray[np.int64] | None = None
        self.counts: dict[str, int] = {}
        self.stored: dict[str, Listing] = {}
        self.rows: dict[str, npt.NDArray[np.intp]] = {}
        self.left: dict[str, npt.NDArray[np.intp]] = {}

    def leave(self, reason: str, is_left: npt.NDArray[np.bool_], *, is_stored: bool = False) -> None:
        """Want these files no more. `is_stored`: the plan is to name them, so let them be few."""
        rows = np.flatnonzero(self.wanted & is_left)
        self.wanted &= ~is_left
        self._note(reason, rows, is_stored)

    def note(self, reason: str, is_left: npt.NDArray[np.bool_]) -> None:
        """Count files that were not wanted before either, under the reason for it."""
        self._note(reason, np.flatnonzero(is_left), False)

    def _note(self, reason: str, rows: npt.NDArray[np.intp], is_stored: bool) -> None:
        if reason in self.left:
            rows = np.union1d(self.left[reason], rows)
        if len(rows):
            self._tell(reason, rows, is_stored)

    def _tell(self, reason: str, rows: npt.NDArray[np.intp], is_stored: bool) -> None:
        self.left[reason] = rows
        self.counts[reason] = len(rows)
        if is_stored:
            self.stored[reason] = self.listing.take(rows).in_reading_order()
        else:
            self.rows[reason] = rows

    def want(self, is_wanted: npt.NDArray[np.bool_]) -> None:
        """Want these files after all, whatever they were left out or counted for."""
        self.wanted |= is_wanted
        for reason, rows in list(self.left.items()):
            kept = rows[~is_wanted[rows]]
            if len(kept) == len(rows):
                continue
            is_stored = reason in self.stored
            for told in (self.left, self.counts, self.stored, self.rows):
                told.pop(reason, None)
            if len(kept):
                self._tell(reason, kept, is_stored)

    def is_left(self, reason: str) -> npt.NDArray[np.bool_]:
        """Say of each row whether it is left out, or counted, for this reason."""
        is_left = np.zeros(len(self.listing), np.bool_)
        if reason in self.left:
            is_left[self.left[reason]] = True
        return is_left

    def files(self) -> Listing:
        """Return the selection in the order of reading: oldest first or as `ranks` says, ties by path."""
        wanted = self.listing.take(np.flatnonzero(self.wanted))
        if self.ranks is None:
            return wanted.in_reading_order()
        ranks = self.ranks[self.wanted]
        order = np.argsort(ranks, kind="stable")
        ends = np.flatnonzero(np.diff(ranks[order])) + 1
        for tied in np.split(order, ends) if len(ends) + 1 < len(order) else ():
            tied[:] = sorted(tied.tolist(), key=wanted.paths.__getitem__)  # a view: it orders what it is part of
        return wanted.take(order)
