"""Settle a run that has landed in some of its tables only: a person says what it counts as."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, get_args

from airflow_bookmarks.core.errors import ChangedMeanwhileError, ChangeRefusedError
from airflow_bookmarks.core.option import Settlement, check_choice
from airflow_bookmarks.core.rules.audit import check_reason, check_who
from airflow_bookmarks.core.text.identity import signed
from airflow_bookmarks.lifecycle.changes.change import check_free
from airflow_bookmarks.lifecycle.protocol.partial import in_words, landed_in, with_settlement
from airflow_bookmarks.store.transitions.importing import check_unclaimed
from airflow_bookmarks.store.transitions.naming import resolve_name

if TYPE_CHECKING:
    from airflow_bookmarks.core.head import Head
    from airflow_bookmarks.core.rules.audit import AuditEvent
    from airflow_bookmarks.core.run import Run
    from airflow_bookmarks.store.bookmark_store import BookmarkStore


@dataclass(frozen=True, slots=True)
class PartlyLandedRun:
    """An open run that has landed in some of its tables only.

    `landed` and `missing` are its outputs with their targets; `settled_as` is what was decided of it (None: nothing).
    """

    job: str
    number: int
    landed: tuple[str, ...]
    missing: tuple[str, ...]
    settled_as: str | None


def find_partly_landed(store: BookmarkStore, job: str) -> PartlyLandedRun | None:
    """Return the open run of a job, given by any of its names, that waits for a person; None if there is none."""
    job = resolve_name(store, job)
    run = _find(store, job, store.head(job))
    if run is None:
        return None
    seen = landed_in(run)
    landed, missing = in_words(run, seen)
    decided = next(run.outputs[name].metadata.settled_as for name in seen)
    return PartlyLandedRun(job, run.key.number, tuple(landed), tuple(missing), decided)


def settle(
    store: BookmarkStore, job: str, number: int, settled_as: Settlement, *, reason: str, who: str
) -> dict[str, Any]:
    """Say what a run counts as that has landed in some of its tables only; the next run of the job acts on it.

    Nothing but the record of that run changes; a driver whose lease has expired is fenced. Until the next run begins,
    it can be said anew.

    Args:
        number: the number of that run, as its error says it.
        settled_as: "committed": what has landed stays, the position moves over its input, and the other outputs have
            none of its rows. "given-up": its input is read again, and what has landed comes twice, unless it was taken
            back by hand.

    Raises:
        OptionError: no reason, or another `settled_as`. ChangeRefusedError: no run of that number waits for it.
        JobBusyError: a run holds the job, and acts on what was decided before it began.
        ChangedMeanwhileError: a run has begun meanwhile, or the job was changed. Nothing was changed.
    """
    check_choice("settled_as", settled_as, Settlement)
    check_reason("settle", reason)
    check_who(who)
    job = resolve_name(store, job)
    head = store.head(job)
    run = _find(store, job, head)
    if run is None or run.key.number != number:
        known = "no run is known to be" if run is None else f"run {run.key.number} is"
        raise ChangeRefusedError(
            f"job {job!r}: run {number} is not known to have landed in some of its tables only; {known}. Nothing was "
            "changed. Only a run of the job looks, and stops with PartlyLandedError if it finds one: run the job first."
        )
    check_unclaimed(job, head)
    check_free(store, job, head, force=False)
    event: AuditEvent = {"kind": "settle", **signed(who), "why": reason, "run": str(run.key)}
    event["value"] = settled_as
    if not store.settle(job, head, run, with_settlement(run, settled_as), event):
        raise ChangedMeanwhileError(
            f"job {job!r} moved while run {number} was to be settled: another run has begun, or the job was changed. "
            "Nothing was changed. Look at the job again once that run has ended."
        )
    return {"job": job, "change": "settle", "run": number, "settled_as": settled_as}


def _find(store: BookmarkStore, job: str, head: Head) -> Run | None:
    return next((run for run in store.open_runs(job, head) if with_settlement(run, get_args(Settlement)[0])), None)
