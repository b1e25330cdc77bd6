"""Check planned input a second time before the commit."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import TYPE_CHECKING, Literal, TypeVar

import numpy as np

from airflow_bookmarks.core.amount import FILES
from airflow_bookmarks.core.errors import BookmarkError, OptionError, SourceChangedError
from airflow_bookmarks.core.files.file_plan import FilePlan
from airflow_bookmarks.core.selection.reason import MISSING
from airflow_bookmarks.sources.contract import checked_recheck

if TYPE_CHECKING:
    from collections.abc import Collection

    from airflow_bookmarks.core.plan import Plan
    from airflow_bookmarks.sources.source import P, Source

log = logging.getLogger(__name__)

OnMissing = Literal["error", "skip"]

F = TypeVar("F", bound=FilePlan)


def recheck_plan(job: str, ctx: str, source: Source[P], plan: P, on_missing: OnMissing) -> P:
    """Return the plan without what changed or went since planning.

    What is left out stays unread for the position, so the next run reads the version that is there then.

    Raises:
        SourceChangedError: something changed or went, and `on_missing` is "error", or it is the output of an
            upstream job, which a later run or a replay replaced: nothing was committed.
    """
    found = checked_recheck(source.kind, source.recheck(plan))
    if found.moved is not None:
        raise SourceChangedError(
            f"job {job!r}, context {ctx!r}: {found.moved} while it was read. Nothing was committed or published. Run "
            "it again: it plans anew and reads what is there then."
        )
    missing = set(found.missing)
    if not missing:
        return plan
    if not isinstance(plan, FilePlan):  # a part of it can't be left to the next run
        raise SourceChangedError(
            f"job {job!r}, context {ctx!r}: {gone_in_words(plan, missing)} changed or went while they were read, the "
            f"first: {min(missing)!r}. Nothing was committed or published. Run it again: it plans anew and reads what "
            "is there then."
        )
    if on_missing == "error" or plan.edge is not None:
        raise SourceChangedError(
            f"job {job!r}, context {ctx!r}: {len(missing)} planned file(s) changed or went while they were read, the "
            f"first: {min(missing)!r}. Nothing was committed or published. Run it again: it plans anew and reads "
            "what is there then. With on_missing='skip' such files are left, counted, to the next run."
        )
    log.warning(
        "bookmark %s, context %s: %d planned files changed or went; left to the next run", job, ctx, len(missing)
    )
    left = plan.files.take(np.array([row for row, path in enumerate(plan.files.paths) if path in missing], np.intp))
    return replace(without(plan, missing, MISSING), unread={**plan.unread, MISSING: left})


def warn_changed_since(job: str, ctx: str, source: Source[P], plan: P) -> None:
    """Warn if planned input has changed after the last look before rows landed, for they can't be taken back."""
    try:
        found = checked_recheck(source.kind, source.recheck(plan))
    except BookmarkError as error:
        log.warning("bookmark %s, context %s: can't look whether input changed as rows landed: %s", job, ctx, error)
        return
    what = found.moved
    if what is None and found.missing:
        what = f"{gone_in_words(plan, found.missing)} changed or went, the first: {min(found.missing)!r},"
    if what is not None:
        log.warning(
            "bookmark %s, context %s: %s while rows landed in an output that commits by itself. They may be those of "
            "either version, and the next run reads what is there then: look there for rows that are missing or twice",
            job,
            ctx,
            what,
        )


def gone_in_words(plan: Plan, missing: Collection[str]) -> str:
    """Return how much of a plan changed or went; how many, that is known of files alone."""
    unit = plan.amount.unit
    return f"{len(missing)} file(s)" if unit == FILES else f"some planned {unit}"


def plan_of_files(job: str, ctx: str, plan: Plan, what: str) -> FilePlan:
    """Return a plan that has to be one of files, because of `what` is done with it.

    Raises:
        OptionError: it is of another kind.
    """
    if not isinstance(plan, FilePlan):
        raise OptionError(
            f"job {job!r}, context {ctx!r}: {what} is for files, and what this context reads is {plan.amount.unit}. "
            "Nothing was changed. Leave it out."
        )
    return plan


def without(plan: F, paths: Collection[str], reason: str) -> F:
    """Return the plan without some of its files, which are counted under a reason."""
    keep = np.array([i for i, path in enumerate(plan.files.paths) if path not in paths], np.intp)
    skipped = {**plan.skipped, reason: plan.skipped.get(reason, 0) + len(plan) - len(keep)}
    return replace(plan, files=plan.files.take(keep), skipped=skipped)
