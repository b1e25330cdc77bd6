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

    def begun_with(self, others: Iterable[OpenTransaction]) -> OpenTransaction:
        """Return it as begun no later than others that may go on as this one; not known if it is not of one of them."""
        times = [each.since for each in others]
        known = [each for each in (*times, self.since) if each is not None]
        return replace(self, since=None if None in times else min(known))


def still_open(left: Iterable[OpenTransaction], found: Iterable[OpenTransaction]) -> tuple[OpenTransaction, ...]:
    """Return who of those that are waited for is left, by a later list.

    One that is gone from the list has ended, or goes on at a later stage. So whoever may be its continuation is waited
    for as well. Stages only grow: the wait has an end.
    """
    listed = {each.id: each for each in found}
    waited = tuple(left)
    kept = {each.id: each for each in waited if each.id in listed}
    gone = [each for each in waited if each.id not in listed]
    for each in listed.values():
        if before := [one for one in gone if each.may_continue(one)]:
            kept[each.id] = each.begun_with([*before, *([kept[each.id]] if each.id in kept else [])])
    return tuple(kept.values())


def earliest(transactions: Iterable[OpenTransaction], head_start: timedelta) -> datetime | None:
    """Return a time before which none of these has taken a value of a key; None where it is not known of one of them.

    Args:
        head_start: how long before its transaction a statement may have begun.
    """
    times = [None if each.since is None else each.since - head_start * bool(each.stage) for each in transactions]
    known = [each for each in times if each is not None]
    return min(known) if len(known) == len(times) else None
