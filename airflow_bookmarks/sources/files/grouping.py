"""Apply `reread` to a selection: if one file of a group is read, all present files of the group are read.

    listing     a (known)  b (known)  c (new) | d (known)  e (known)
    chosen                            c
    completed   a          b          c            a and b are companions of c; the group of d and e is left alone

So an output that replaces the partition of a, b and c has afterwards what is there now.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from airflow_bookmarks.core.errors import MisuseError
from airflow_bookmarks.core.selection.group import GroupRule
from airflow_bookmarks.core.selection.reason import QUARANTINED, SETTLING, UNMATCHED

if TYPE_CHECKING:
    import numpy.typing as npt

    from airflow_bookmarks.core.selection.listing import Listing
    from airflow_bookmarks.sources.files.scan import FolderScan
    from airflow_bookmarks.sources.files.selection import Selection

_NEVER_COMPANIONS = (QUARANTINED, UNMATCHED, SETTLING)


@dataclass(frozen=True, slots=True, eq=False)
class Grouping:
    """The groups of planned files, in the order in which they are read: the files of a group stand together.

    `numbers` has the group of each file; `is_cause` marks those that are new or changed, not companions.
    """

    numbers: npt.NDArray[np.int64]
    is_cause: npt.NDArray[np.bool_]


def grouped(
    text: str | None,
    chosen: Selection,
    scan: FolderScan,
    mine: npt.NDArray[np.intp] | None,
    is_changed: npt.NDArray[np.bool_],
) -> tuple[Listing, Grouping | None]:
    """Return what is chosen in the order of reading; where files are read in groups, whole groups of it.

    Args:
        text: the rule of the groups (`core.selection.group`); None: each file is read by itself.
        mine: which rows of the look the selection chooses from; None: all.
        is_changed: which rows of the selection were read before in another version.

    Raises:
        OptionError, UnmatchedError: a file belongs to no group.
    """
    if text is None:
        return chosen.files(), None
    groups = GroupRule.of(text).numbers(scan.listing, scan.root_of)
    own = np.arange(len(scan.listing)) if mine is None else mine
    causes = np.zeros(len(scan.listing), np.bool_)
    causes[own] = complete(chosen, groups[own], is_changed)
    files = chosen.files()
    rows = files.rows_in(scan.listing)
    if rows is None:
        raise MisuseError("a selection returned files that were not taken from what was listed")
    return in_groups(files, rows, groups, causes)


def complete(
    chosen: Selection, groups: npt.NDArray[np.int64], is_changed: npt.NDArray[np.bool_]
) -> npt.NDArray[np.bool_]:
    """Select all files of each group with a selected file; return which of them were selected by themselves.

    A group with a changed file that is still settling waits as a whole: without that file its rows would be missing.
    Files of a selected group that are late, or lie before the start, are read with it: the group is read as it is
    there.

    Args:
        groups: the number of the group of each row.
        is_changed: which rows were read before in another version.
    """
    is_waiting = np.isin(groups, groups[chosen.is_left(SETTLING) & is_changed])
    chosen.leave(SETTLING, is_waiting, is_stored=True)
    causes = chosen.wanted.copy()
    is_completed = np.isin(groups, groups[causes])
    for reason in _NEVER_COMPANIONS:
        is_completed &= ~chosen.is_left(reason)
    chosen.want(is_completed)
    return causes


def in_groups(
    files: Listing, rows: npt.NDArray[np.intp], groups: npt.NDArray[np.int64], causes: npt.NDArray[np.bool_]
) -> tuple[Listing, Grouping]:
    """Return files in the order of reading, group by group, ordered by the first cause of each group.

    Args:
        files: the files, in the order of reading by themselves; `rows` are theirs in what was listed.
        groups, causes: of all that was listed.
    """
    numbers, is_cause = groups[rows], causes[rows]
    at = np.flatnonzero(is_cause)
    first = {number: place for place, number in reversed(list(enumerate(numbers[at].tolist())))}
    places = np.array([first[number] for number in numbers.tolist()], np.int64)
    order = np.argsort(places, kind="stable")
    return files.take(order), Grouping(numbers[order], is_cause[order])
