"""Find the stored plans that a pause run over earlier runs reads again for a context, whatever its name was then."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from airflow_bookmarks.core.errors import SourceSwitchedError
from airflow_bookmarks.lifecycle.state.positions import is_of_another_format, switched_format

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from airflow_bookmarks.core.run import PlanEntry, Run
    from airflow_bookmarks.sources.source import Source

log = logging.getLogger(__name__)


def window_entries(
    job: str, ctx: str, source: Source[Any], runs: Sequence[Run], contexts: Collection[str]
) -> list[PlanEntry]:
    """Return the plans that runs stored for a context, oldest first.

    A run that lacks the context, but has one over the same source under a name that the job no longer has, read it
    under that name. If no run read it at all, a warning says what they read.

    Args:
        contexts: the names that the job has now.

    Raises:
        SourceSwitchedError: it was of another kind, or read as another format.
    """
    found = [entry for run in runs if (entry := _entry_of(run, ctx, source, contexts)) is not None]
    for entry in found:
        if entry.kind != source.kind:
            raise SourceSwitchedError(job, ctx, entry.fingerprint, str(source.ref()))
        if is_of_another_format(source, entry):
            raise switched_format(job, ctx, source, entry)
    others = sorted({name for run in runs for name in run.plans})
    if others and not found:
        numbers = [run.key.number for run in runs]
        log.warning(
            "bookmark %s, context %s: none of the runs %s read it, they read %s: there is nothing to read again. Was "
            "it called otherwise then?",
            job,
            ctx,
            numbers,
            ", ".join(map(repr, others)),
        )
    return found


def _entry_of(run: Run, ctx: str, source: Source[Any], contexts: Collection[str]) -> PlanEntry | None:
    if ctx in run.plans:
        return run.plans[ctx]
    same = source.kind, str(source.ref())
    former = [e for name, e in run.plans.items() if name not in contexts and (e.kind, e.fingerprint) == same]
    return former[0] if len(former) == 1 else None
