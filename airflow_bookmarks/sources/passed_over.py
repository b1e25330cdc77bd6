"""What a position that is set ahead passes over: input that counts as read from then on, and that no run has read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from airflow_bookmarks.core.amount import Amount


@dataclass(frozen=True, slots=True)
class PassedOver:
    """How much input counts as read at one position of a context and was not read at another one.

    Attributes:
        amount: So much of it, in the unit of its kind; its count is None where it can't be told.
        commits: In how many steps of its table it came ("versions", "snapshots"); None: its kind has none.
        runs: The numbers of the runs of an upstream that it comes from.

    Example:
        >>> from airflow_bookmarks.core.amount import Amount
        >>> PassedOver(Amount("files", 3, 900), commits=Amount("versions", 2)).is_nothing
        False
        >>> PassedOver(Amount("rows", 0)).is_nothing
        True
    """

    amount: Amount
    commits: Amount | None = None
    runs: tuple[int, ...] = ()

    @property
    def is_nothing(self) -> bool:
        """Whether nothing is passed over; an amount that is not known may be something."""
        return self.amount.count == 0 and not self.runs
