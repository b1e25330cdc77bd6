"""Gaps: what is missing in a sequence of names, or among days, that a context reads."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_bookmarks.core.ledger.gap import gaps_in_words, shown_gaps
from airflow_bookmarks.lifecycle.maintenance.doctor.finding import Finding, Severity
from airflow_bookmarks.lifecycle.state.last_plan import last_plans_among

if TYPE_CHECKING:
    from collections.abc import Iterator

    from airflow_bookmarks.lifecycle.maintenance.doctor.survey import Survey


def examine_gaps(survey: Survey) -> Iterator[Finding]:
    """Find contexts in which something is missing between the first and the last that was seen."""
    if survey.head is None:
        return
    runs = {run.key: run for runs in survey.committed.values() for run in runs}
    for ctx, facts in last_plans_among(survey.head, runs).items():
        gaps = shown_gaps(facts)
        if gaps is not None and gaps["missing"]:
            what = f"in {ctx!r} {gaps_in_words(gaps)}: no file of theirs was ever listed"
            mend = (
                "Ask whoever delivers the files. One that comes after all is read by the next run, which closes its "
                "gap; where some are left out on purpose, read with gaps=False."
            )
            yield Finding("gap", survey.job, Severity.NOTICE, what, f"context {ctx!r}", mend)
