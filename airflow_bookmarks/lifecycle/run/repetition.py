"""Warn of repetition: files that a run reads again while an output appends."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from airflow_bookmarks.sinks.staging import Mode

if TYPE_CHECKING:
    from collections.abc import Mapping

    from airflow_bookmarks.core.plan import Plan
    from airflow_bookmarks.core.run import OutputEntry

log = logging.getLogger(__name__)


def warn_of_repetition(job: str, plans: Mapping[str, Plan], outputs: Mapping[str, OutputEntry]) -> None:
    """Warn where files are read again and an output appends: the rows of the first reading stay beside the new ones.

    The script decides which output a context goes into, so each output that appends is named.
    """
    again = {ctx: count for ctx, plan in plans.items() if (count := plan.read_again)}
    appended = sorted(name for name, entry in outputs.items() if entry.facts.get("mode") == Mode.APPEND)
    if not again or not appended:
        return
    told = ", ".join(f"{count} of context {ctx!r}" for ctx, count in sorted(again.items()))
    log.warning(
        "bookmark %s: files that were read before are read again (%s), and output %s appends: rows of the former "
        "reading stay there beside the new ones. Overwrite partitions under reread='partition' to replace them",
        job,
        told,
        ", ".join(map(repr, appended)),
    )
