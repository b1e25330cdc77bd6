"""Make sure that a loop of batches ends: what a bound left over is read by the next batch, and not the same again."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from airflow_bookmarks.core.errors import MisuseError
from airflow_bookmarks.core.files.file_plan import FilePlan

if TYPE_CHECKING:
    from airflow_bookmarks.core.plan import Plan
    from airflow_bookmarks.core.position import Position
    from airflow_bookmarks.sources.source import PlanInput

log = logging.getLogger(__name__)


def warn_of_standstill(job: str, ctx: str, found: PlanInput, plan: Plan, position: Position | None) -> None:
    """Warn if a source of a user's own has read something, and the next run reads it again.

    Args:
        found: what the run was planned from.
        position: where its source leads after `plan`; None: it stays.
    """
    why = None if plan.is_empty else _standstill(found, position)
    if why is not None:
        log.warning(
            "bookmark %s, context %s: read %s, and %s: the next run reads the same again, and appended rows will "
            "be there twice. Mend advance() of its source",
            job,
            ctx,
            plan.amount.in_words(),
            why,
        )


def _standstill(found: PlanInput, position: Position | None) -> str | None:
    """Say why what was read is read again; None where it is not, or the watermarks do not tell."""
    if position is None or position.body == found.position:
        return "its position does not move"
    before, after = found.watermark, position.watermark
    if position.order is None or before is None or after is None or position.order.compare(after, before) != -1:
        return None
    return f"its position goes back from {before} to {after}"


def check_moves(job: str, ctx: str, found: PlanInput, plan: Plan, position: Position | None, done: str) -> None:
    """Make sure that a batch of a source of a user's own leads on, if its plan says that more is left.

    A batch of files may stay where it is: what changed while it was read is left to the next one.

    Args:
        found: what the batch was planned from.
        position: where its source leads after `plan`; None: it stays.
        done: what became of the batch, as a sentence.

    Raises:
        MisuseError: the next batch would read the same.
    """
    if isinstance(plan, FilePlan) or not plan.has_more or (position is not None and position.body != found.position):
        return
    raise MisuseError(
        f"job {job!r}, context {ctx!r}: its plan says that a bound has left something over, and its position does not "
        f"move, so each batch would read the same again, for ever. {done} Mend has_more of its plan, or advance() of "
        "its source."
    )
