"""Outputs of a run without new input: which are published nevertheless, and which are discarded and reported."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from airflow_bookmarks.core.rules.emptiness import Increment
from airflow_bookmarks.core.rules.mode import Mode
from airflow_bookmarks.core.selection.reason import MISSING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from airflow_bookmarks.core.plan import Plan
    from airflow_bookmarks.core.run import OutputEntry
    from airflow_bookmarks.sinks.staging import Staged, StagingRequest

log = logging.getLogger(__name__)

_CHOOSE = (
    "With job.write(..., when_empty='publish') it is published in such runs too; with 'discard' this is no warning."
)
DISCARDED = ("discarded", "discarded_rows", "discarded_files")  # among the stats of an output


def increment_of(plans: Mapping[str, Plan], *, state_changed: bool | None) -> Increment:
    """Return what a run with these plans has found."""
    return Increment(
        reads=bool(plans),
        has_input=any(not plan.is_empty for plan in plans.values()),
        state_changed=state_changed,
        leaves_input=any(plan.skipped.get(MISSING) for plan in plans.values()),
        idle=frozenset(ctx for ctx, plan in plans.items() if plan.is_empty),
    )


def is_published(increment: Increment, entry: OutputEntry, staged: Staged) -> bool:
    """Whether what is staged for an output becomes visible; where there are no files, rows not counted are rows.

    A purge was asked for by name, whatever its run has found: it takes effect where there is anything to delete.
    """
    output = entry.metadata
    if output.mode == Mode.PURGE:
        return bool(staged.deletes)
    return increment.publishes(
        rows=staged.rows,
        files=len(staged.moves) if entry.lies_in_files else 1,
        overwrites=not output.is_append,
        when_empty=output.when_empty,
        made_from=staged.made_from,
    )


def is_to_land(
    increment: Increment, request: StagingRequest, made_from: Sequence[str], has_rows: Callable[[], bool]
) -> bool:
    """Decide, before its rows land, whether an output that commits by itself is written in a run that found this.

    Afterwards nothing can be left out. `has_rows` is asked only where it matters: it may be a query.
    """
    output = request.metadata

    def publishes(rows: int) -> bool:
        return increment.publishes(
            rows=rows,
            files=1,
            overwrites=not output.is_append,
            when_empty=output.when_empty,
            made_from=made_from,
        )

    with_rows = publishes(1)
    return with_rows if with_rows == publishes(0) else has_rows()


def log_discarded(
    job: str, output: str, stats: Mapping[str, Any], *, when_empty: str | None = None, remedy: str = _CHOOSE
) -> None:
    """Log that rows of an output are not published; nothing if none were staged.

    Args:
        stats: those of the output, with what `sinks.entry.discarded_stats` says.
        when_empty: the choice of its script; None: it has made none.
        remedy: what to do about it.
    """
    if stats.get("discarded"):
        log.log(
            logging.INFO if when_empty == "discard" else logging.WARNING,
            "bookmark %s: %s not published, because no context of this run has anything new. The target is as it was. "
            "%s",
            job,
            discarded_in_words(output, stats),
            remedy,
        )


def remedy_for(plans: Mapping[str, Plan]) -> str:
    """Return what to do about an output that a run with these plans has discarded."""
    left = any(plan.skipped.get(MISSING) for plan in plans.values())
    return "Its input changed while it was read: the next run makes it anew." if left else _CHOOSE


def discarded_in_words(output: str, stats: Mapping[str, Any]) -> str:
    """Return how much of an output is not published, as text.

    Example:
        >>> discarded_in_words("clean", {"discarded_rows": 2, "discarded_files": 1})
        "2 rows of output 'clean' (1 file) are"
    """
    rows, files = stats.get("discarded_rows"), stats["discarded_files"]
    in_files = f"{files} file{'' if files == 1 else 's'}"
    if rows is None:
        what = f"{in_files} of output {output!r}" if files else f"what was staged of output {output!r}"
        return f"{what}, whose rows were not counted, {'are' if files else 'is'}"
    in_files = f" ({in_files})" if files else ""
    return f"{rows} row{'' if rows == 1 else 's'} of output {output!r}{in_files} {'is' if rows == 1 else 'are'}"
