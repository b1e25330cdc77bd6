"""Who may still write into a database, and who of them is left in a later list."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta


@dataclass(frozen=True, slots=True)
class OpenTransaction:
    """A transaction, or a statement, that may still write.

    It can go on under another id at a later `stage`: a statement becomes a transaction, and a transaction is prepared.
    `owner` is the session that it belongs to; None: it may be the work of any session, as it belongs to none now.
    `since` None: it is not known when it began.
    """

    id: str
    owner: str | None
    stage: int
    since: datetime | None
    who: str

    def __str__(self) -> str:
        return f"{self.who} (since {'not known when' if self.since is None else self.since.isoformat(' ', 'seconds')})"

    def may_continue(self, other: OpenTransaction) -> bool:
        """Whether another one, which is gone, may go on as this one."""
        return self.stage > other.stage and self.owner in (other.owner, None)

    def begun_with(self, other: OpenTransaction) -> OpenTransaction:
        """Return it as begun no later than another one, which may go on as this one."""
        if other.since is None or self.since is None:
            return replace(self, since=other.since)
        return replace(self, since=min(self.since, other.since))


def still_open(left: Iterable[OpenTransaction], found: Iterable[OpenTransaction]) -> tuple[OpenTransaction, ...]:
    """Return who of those that are waited for is left, by a later list.

    One that is gone from the list has ended, or goes on at a later stage. So whoever may be its continuation is waited
    for as well. Stages only grow: the wait has an end.
    """
    listed = {each.id: each for each in found}
    waited = tuple(left)
    kept = {each.id: each for each in waited if each.id in listed}
    for gone in waited:
        if gone.id not in listed:
            for each in listed.values():
                if each.may_continue(gone):
                    kept[each.id] = kept.get(each.id, each).begun_with(gone)
    return tuple(kept.values())


def earliest(transactions: Iterable[OpenTransaction], head_start: timedelta) -> datetime | None:
    """Return a time before which none of these has taken a value of a key; None where it is not known of one of them.

    Args:
        head_start: how long before its transaction a statement may have begun.
    """
    times = [None if each.since is None else each.since - head_start * bool(each.stage) for each in transactions]
    known = [each for each in times if each is not None]
    return min(known) if len(known) == len(times) else None
