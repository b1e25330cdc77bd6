"""Apply a sequence to one listing: the order of reading, files that do not match, and the numbers or days that are
there.

Values are computed only for files that this run may read. Those of known files were computed before: the highest is the
watermark, and their numbers are among those seen. Another rule than that of the position begins anew.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from airflow_bookmarks.core.errors import OptionError, UnmatchedError
from airflow_bookmarks.core.ledger.seen import SeenRanges, days
from airflow_bookmarks.core.selection.partition import NULL_VALUE, partition_values
from airflow_bookmarks.core.selection.reason import UNMATCHED
from airflow_bookmarks.core.selection.sequence import SequenceRule, SequenceStart, dense_ranks, highest, numbers_among

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy.typing as npt

    from airflow_bookmarks.core.ledger.seen import Unit
    from airflow_bookmarks.sources.files.options import OnUnmatched
    from airflow_bookmarks.sources.files.scan import FolderScan
    from airflow_bookmarks.sources.files.selection import Selection
    from airflow_bookmarks.sources.source import PlanInput

_NAMED = 3  # files that an error names


@dataclass(frozen=True, slots=True, eq=False)
class Sequenced:
    """The values of those files of a listing that matter to this run: `rows` are theirs, and a value is None where the
    name does not match. `start` is the watermark that the plan begins with; `is_whole` says that all files matter.
    """

    rule: SequenceRule
    rows: npt.NDArray[np.intp]
    values: Sequence[str | None]
    start: SequenceStart
    is_whole: bool

    @classmethod
    def of(
        cls, text: str, roots: Sequence[str], found: PlanInput, chosen: Selection, is_read: npt.NDArray[np.bool_]
    ) -> Sequenced:
        """Compute the values of the selected files, and of other unread ones; `is_read` marks by row what was read."""
        rule, paths = SequenceRule.of(text), chosen.listing.paths
        if _rule_of(found) == text and found.watermark is not None:
            rows = np.flatnonzero(chosen.wanted | ~is_read)
            values = rule.values_of([paths[row] for row in rows.tolist()], roots)
            return cls(rule, rows, values, SequenceStart(text, found.watermark), is_whole=False)
        values = rule.values_of(paths, roots)
        read = (values[row] for row in np.flatnonzero(is_read & ~chosen.wanted).tolist())
        before = highest(read, is_text=rule.is_by_path)
        return cls(rule, np.arange(len(paths)), values, SequenceStart(text, before), is_whole=True)

    def arrange(self, chosen: Selection, on_unmatched: OnUnmatched) -> None:
        """Have files read in the order of the sequence, and leave out those that have no place in it.

        Raises:
            UnmatchedError: there are some, and `on_unmatched` is "error".
        """
        ranks = np.zeros(len(chosen.listing), np.int64)
        ranks[self.rows] = dense_ranks(self.values, is_text=self.rule.is_by_path)
        has_none = np.zeros(len(chosen.listing), np.bool_)
        has_none[self.rows] = [value is None for value in self.values]
        rows = np.flatnonzero(chosen.wanted & has_none)
        if len(rows) and on_unmatched == "error":
            named = ", ".join(repr(chosen.listing.paths[row]) for row in rows[:_NAMED].tolist())
            raise UnmatchedError(
                f"{len(rows)} file(s) that are to be read do not match sequence={self.rule.text!r}: {named}"
                f"{', ...' if len(rows) > _NAMED else ''}. Nothing was read or changed. Make the expression fit them, "
                "move them away, or use on_unmatched='skip' (they are counted, and read once it fits)."
            )
        chosen.leave(UNMATCHED, has_none)
        chosen.ranks = ranks

    def numbers(self) -> npt.NDArray[np.int64]:
        """Return the numbers among the values."""
        return np.empty(0, np.int64) if self.rule.is_by_path else numbers_among(self.values)


def continued(start: SequenceStart, found: PlanInput) -> SequenceStart:
    """Return where a later part of a plan starts: from the watermark that the parts before it have left, if any did."""
    is_moved = _rule_of(found) == start.rule and found.watermark is not None
    return replace(start, before=found.watermark) if is_moved else start


def _rule_of(found: PlanInput) -> str | None:
    """Return the rule behind the watermark of a position; None if that is time, or there is none."""
    return None if found.position is None else found.file_metadata.sequence


# ---- what was seen


def seen_numbers(
    found: PlanInput, sequenced: Sequenced, scan: FolderScan, roots: Sequence[str], *, is_part: bool
) -> SeenRanges | None:
    """Return the numbers of a sequence that were ever listed; None if there are none.

    Args:
        is_part: whether `sequenced` tells of a part of the look only: a number that another shard reads is not missing.
    """
    known = _seen_before(found, "number", sequenced.rule.text)
    # What a set marked as read is known, and its values were never computed.
    is_told = not is_part and not found.is_set and (sequenced.is_whole or bool(known.ranges))
    return _if_any(known.add(sequenced.numbers() if is_told else scan.numbers_of(sequenced.rule, roots)))


def seen_days(found: PlanInput, scan: FolderScan, types: Mapping[str, str]) -> SeenRanges | None:
    """Return which days of the one partition column of dates were ever listed; None where nothing is.

    Raises:
        OptionError: there is no such column, or more than one.
    """
    columns = [name for name, kind in types.items() if kind == "date"]
    if not len(scan.listing):
        return None
    if len(columns) != 1:
        raise OptionError(
            f"gaps=True, and of the partition columns {list(types)} {len(columns)} are dates: without a sequence of "
            "numbers, missing days of exactly one are looked for. Nothing was read or changed. Leave gaps out."
        )
    values = {partition_values(path, root)[columns[0]] for path, root in scan.one_of_each_folder()} - {NULL_VALUE}
    return _if_any(_seen_before(found, "day", columns[0]).add(days(sorted(values))))


def _seen_before(found: PlanInput, unit: Unit, of: str) -> SeenRanges:
    gaps = None if found.position is None else found.file_metadata.gaps
    is_same = gaps is not None and (gaps.unit, gaps.of) == (unit, of)
    return SeenRanges.of_stats(gaps.recorded) if gaps is not None and is_same else SeenRanges(unit, of)


def _if_any(seen: SeenRanges) -> SeenRanges | None:
    return seen if seen.ranges else None
